//! CoDel (RFC 8289): packets are dropped, or marked, on dequeue, at an increasing rate until their
//! sojourn time falls below a target.

use airpath_core::{Instant, Packet, Span};

use super::Limits;
use super::fifo::{Entry, Fifo};

/// The parameters of CoDel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The acceptable standing sojourn time (RFC 8289 §4). `None`: 5 ms, or two TTIs of the bearer
    /// if they are longer.
    pub target: Option<Span>,
    /// About the round trip of the slowest flow: the time for which the target must be exceeded
    /// before CoDel acts (RFC 8289 §4). Default: 100 ms.
    pub interval: Span,
    /// Whether packets of ECN-capable transports are marked instead of dropped, as in Linux: one
    /// mark replaces one drop. Default: `false`.
    pub ecn: bool,
}

impl Default for Settings {
    fn default() -> Self {
        // The constants of RFC 8289 §5.
        Self { target: None, interval: Span::from_millis(100), ecn: false }
    }
}

impl Settings {
    /// The default target (RFC 8289 §5).
    pub const TARGET: Span = Span::from_millis(5);

    /// The parameters of the control loop, at a bearer that cannot keep sojourn times below
    /// `floor`.
    pub(super) fn law(&self, floor: Span) -> Law {
        let target = self.target.unwrap_or(Self::TARGET.max(floor));
        Law { target, interval: self.interval, ecn: self.ecn }
    }
}

/// [`Settings`] without choices that are still open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    target: Span,
    interval: Span,
    ecn: bool,
}

/// A queue with CoDel.
#[derive(Clone, Debug)]
pub struct CoDel {
    law: Law,
    limits: Limits,
    fifo: Fifo,
    control: Control,
}

impl CoDel {
    /// An empty queue.
    pub fn new(settings: &Settings, limits: Limits) -> Self {
        Self::with_floor(settings, limits, Span::ZERO)
    }

    /// An empty queue of a bearer that cannot keep sojourn times below `floor`.
    pub(super) fn with_floor(settings: &Settings, limits: Limits, floor: Span) -> Self {
        Self { law: settings.law(floor), limits, fifo: Fifo::default(), control: Control::default() }
    }

    /// Whether a packet of `size` bytes fits.
    pub fn has_room(&self, size: u32) -> bool {
        self.limits.admit(self.fifo.len(), self.fifo.bytes(), size)
    }

    /// Enqueues a packet.
    pub fn enter(&mut self, now: Instant, packet: Packet) {
        self.fifo.push(now, packet);
    }

    /// Bytes that wait.
    pub const fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    /// Removes the packet at the head, without a step of the control loop.
    pub fn drop_head(&mut self) -> Option<Packet> {
        self.fifo.pop().map(|entry| entry.packet)
    }

    /// Entry time of the packet at the head.
    pub fn head_entered(&self) -> Option<Instant> {
        self.fifo.head_entered()
    }

    /// Entry time of the packet that was dequeued last.
    pub(super) const fn last_entered(&self) -> Instant {
        self.fifo.last_entered()
    }

    /// Removes all waiting packets.
    pub fn clear(&mut self, lost: impl FnMut(Packet)) {
        self.control.restart();
        self.fifo.clear(lost);
    }

    /// Packets and bytes that wait.
    pub fn backlog(&self) -> (u32, u64) {
        (self.fifo.len() as u32, self.fifo.bytes())
    }

    /// The packet to send at `now`, possibly marked; `dropped` is called for the packets dropped
    /// before it.
    pub fn dequeue(&mut self, now: Instant, dropped: impl FnMut(Packet)) -> Option<Packet> {
        self.control.dequeue(self.law, &mut self.fifo, now, dropped)
    }
}

/// The state of the control loop, named as in RFC 8289 §5.
#[derive(Clone, Debug)]
pub(super) struct Control {
    /// The largest packet seen: a smaller backlog is not a standing queue.
    maximum_packet: u32,
    /// Time at which the sojourn time will have exceeded the target for an interval; `None` below
    /// it.
    first_above: Option<Instant>,
    dropping: bool,
    /// Time of the next drop, while dropping.
    drop_next: Instant,
    /// Drops in this dropping state; the rate grows with its square root.
    count: u32,
    /// `count` at the start of the last dropping state.
    last_count: u32,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            maximum_packet: 0,
            first_above: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }
}

impl Control {
    /// The queue was emptied.
    pub const fn restart(&mut self) {
        self.first_above = None;
    }

    /// The next packet of `fifo` to send at `now`, possibly marked; `dropped` is called for the
    /// packets dropped before it (RFC 8289 §5.5).
    pub fn dequeue(
        &mut self,
        law: Law,
        fifo: &mut Fifo,
        now: Instant,
        mut dropped: impl FnMut(Packet),
    ) -> Option<Packet> {
        let mut head = self.take(law, fifo, now);
        if self.dropping {
            if !head.ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if let Some(marked) = head.packet.and_then(|packet| mark(law.ecn, packet)) {
                    self.drop_next = self.control_law(law, self.drop_next);
                    return Some(marked);
                }
                head.packet.into_iter().for_each(&mut dropped);
                head = self.take(law, fifo, now);
                if head.ok_to_drop {
                    self.drop_next = self.control_law(law, self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if head.ok_to_drop {
            match head.packet.and_then(|packet| mark(law.ecn, packet)) {
                Some(marked) => head.packet = Some(marked),
                None => {
                    head.packet.into_iter().for_each(&mut dropped);
                    head = self.take(law, fifo, now);
                }
            }
            self.dropping = true;
            // If the last dropping state ended recently, its drop rate is a good initial rate.
            let recently = now.since(self.drop_next) < law.interval.saturating_mul(16);
            let delta = self.count - self.last_count;
            self.count = if delta > 1 && recently { delta } else { 1 };
            self.drop_next = self.control_law(law, now);
            self.last_count = self.count;
        }
        head.packet
    }

    /// Dequeues the packet at the head, and checks whether the sojourn time has been above the
    /// target for an interval (RFC 8289 §5.6).
    fn take(&mut self, law: Law, fifo: &mut Fifo, now: Instant) -> Head {
        let Some(Entry { entered, packet }) = fifo.pop() else {
            self.first_above = None;
            return Head { packet: None, ok_to_drop: false };
        };
        self.maximum_packet = self.maximum_packet.max(packet.size);
        let below = now.since(entered) < law.target || fifo.bytes() <= u64::from(self.maximum_packet);
        let ok_to_drop = match self.first_above {
            _ if below => {
                self.first_above = None;
                false
            }
            None => {
                self.first_above = Some(now + law.interval);
                false
            }
            Some(first_above) => now >= first_above,
        };
        Head { packet: Some(packet), ok_to_drop }
    }

    fn control_law(&self, law: Law, after: Instant) -> Instant {
        after + spacing(law.interval, self.count)
    }
}

/// The time between signals is the interval divided by the square root of their number (RFC 8289
/// §5.6).
pub(super) fn spacing(interval: Span, count: u32) -> Span {
    // IEEE 754 square root and quotient are correctly rounded, so the same on every machine.
    Span::from_nanos((interval.as_nanos() as f64 / f64::from(count.max(1)).sqrt()) as u64)
}

/// The marked packet, if it can be marked instead of dropped.
pub(super) fn mark(ecn: bool, packet: Packet) -> Option<Packet> {
    (ecn && packet.ecn.is_capable()).then(|| super::marked(packet))
}

struct Head {
    packet: Option<Packet>,
    ok_to_drop: bool,
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, FlowId, Slot, UserId};

    use super::*;
    use crate::queue::Queue;

    #[test]
    fn a_recent_dropping_state_sets_the_initial_rate() {
        // RFC 8289 §5.5: `delta > 1 && now - drop_next_ < 16 * interval`. Here four drops were made
        // in the last dropping state, and its next would have been at 1 s; the interval is 100 ms.
        let count = |since: Span, drops: u32| {
            let mut codel = CoDel::new(&Settings::default(), Limits::of(&Queue::default()));
            (codel.control.count, codel.control.last_count) = (1 + drops, 1);
            codel.control.drop_next = Instant::ZERO + Span::from_secs(1);
            let now = codel.control.drop_next + since;
            codel.control.first_above = Some(now);
            for id in 0..4 {
                let (flow, user, slot) = (FlowId(0), UserId::new(0), Slot(0));
                codel.enter(Instant::ZERO, Packet { id, size: 1000, flow, user, ecn: Ecn::NotEct, slot });
            }
            let mut dropped = 0;
            let sent = codel.dequeue(now, |_| dropped += 1).map(|packet| packet.id);
            assert_eq!((dropped, sent), (1, Some(1)));
            codel.control.count
        };
        let limit = Span::from_millis(1600);
        assert_eq!(count(limit - Span::from_nanos(1), 4), 4);
        assert_eq!(count(limit, 4), 1);
        assert_eq!(count(Span::ZERO, 2), 2);
        assert_eq!(count(Span::ZERO, 1), 1);
    }
}
