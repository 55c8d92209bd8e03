//! SDU discard with explicit signalling: a packet that may not be sent once more (TS 25.322
//! §9.7.3.3), or that has waited for too long (§9.7.3.1), is given up by itself, and the receiver
//! is informed (§11.6).

use airpath_core::{DropCause, Instant, Packet, Span};

use super::Control;
use super::config::Discard;

/// The discards of one sender, one at a time.
#[derive(Clone, Debug)]
pub(crate) struct Discarding {
    config: Option<Discard>,
    running: Option<Running>,
    /// Packets that were given up and not yet reported, and why.
    pub lost: Vec<(Packet, DropCause)>,
}

/// A receiver is being informed.
#[derive(Clone, Copy, Debug)]
struct Running {
    message: Control,
    /// How often it was sent: VT(MRW).
    attempts: u32,
    /// When the answer is late: Timer_MRW; `None` while the message is to be sent.
    expires: Option<Instant>,
}

impl Discarding {
    /// None yet. Without a configuration there never are any: the RLC resets instead.
    pub const fn new(config: Option<Discard>) -> Self {
        Self { config, running: None, lost: Vec::new() }
    }

    /// Whether packets are discarded rather than that the RLC resets.
    #[inline]
    pub const fn is_configured(&self) -> bool {
        self.config.is_some()
    }

    /// How long after its arrival a packet is discarded.
    #[inline]
    pub fn timer(&self) -> Option<Span> {
        self.config.and_then(|config| config.timer_discard)
    }

    /// Whether the receiver has not confirmed the last discard.
    #[inline]
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether a message is to be sent.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.running.is_some_and(|running| running.expires.is_none())
    }

    /// The receiver is to skip what comes before a PDU, and the packets that end there.
    pub const fn begin(&mut self, sequence: u64, end: u64) {
        self.running = Some(Running { message: Control::MoveWindow { sequence, end }, attempts: 0, expires: None });
    }

    /// The message to send, if one is due. `Err` if it may not be sent once more: so it stays until
    /// the RLC has reset.
    pub fn message(&mut self, now: Instant) -> Result<Option<Control>, ()> {
        let (Some(config), Some(running)) = (&self.config, &mut self.running) else { return Ok(None) };
        if running.expires.is_some() {
            return Ok(None);
        }
        // TS 25.322 §9.6: the maximum number of transmissions is MaxMRW.
        if running.attempts >= config.max_mrw {
            return Err(());
        }
        running.attempts += 1;
        running.expires = Some(now + config.timer_mrw);
        Ok(Some(running.message))
    }

    /// An answer has come. Returns whether it is that to the last message.
    pub fn answered(&mut self, moved_to: u64) -> bool {
        let is_it = |running: &mut Running| matches!(running.message, Control::MoveWindow { sequence, .. } if sequence == moved_to);
        self.running.take_if(is_it).is_some()
    }

    /// When an answer is late.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        self.running.and_then(|running| running.expires)
    }

    /// Handles the timer, if it expired by `now`.
    pub fn expire(&mut self, now: Instant) {
        if let Some(running) = self.running.as_mut().filter(|running| running.expires.is_some_and(|at| at <= now)) {
            running.expires = None;
        }
    }

    /// Stops informing the receiver.
    pub const fn reset(&mut self) {
        self.running = None;
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Span;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_receiver_is_informed_until_it_answers() {
        let mut discarding =
            Discarding::new(Some(Discard { timer_mrw: Span::from_millis(100), max_mrw: 3, timer_discard: None }));
        assert!(discarding.is_configured() && !discarding.is_running() && !discarding.is_due());
        assert_eq!(discarding.message(at(0)), Ok(None));
        discarding.begin(7, 1000);
        let message = Some(Control::MoveWindow { sequence: 7, end: 1000 });
        for attempt in 0..3 {
            let now = 100 * attempt;
            assert!(discarding.is_running() && discarding.is_due());
            assert_eq!(discarding.message(at(now)), Ok(message));
            assert_eq!((discarding.is_due(), discarding.message(at(now))), (false, Ok(None)), "Timer_MRW is running");
            assert_eq!(discarding.next_timer(), Some(at(now + 100)));
            discarding.expire(at(now + 99));
            assert!(!discarding.is_due());
            discarding.expire(at(now + 100));
        }
        // TS 25.322 §9.6: MaxMRW transmissions, and no more.
        assert_eq!(discarding.message(at(300)), Err(()));
        assert!(!discarding.answered(6), "an answer to an earlier message");
        assert!(discarding.answered(7) && !discarding.is_running());
        assert_eq!((discarding.message(at(400)), discarding.next_timer()), (Ok(None), None));
        discarding.begin(9, 2000);
        discarding.reset();
        assert!(!discarding.is_running() && !discarding.is_due());
        assert!(!Discarding::new(None).is_configured());
    }
}
