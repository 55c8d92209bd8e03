//! W-TCP: local retransmission that hides its time from the sender.
//!
//! Source: Ratnam and Matta, "WTCP: an efficient mechanism for improving TCP performance over
//! wireless links", IEEE ISCC 1998. An agent at the base station stores the sender's segments and
//! retransmits them, as [`Snoop`](crate::Snoop) does, and acknowledges to the sender only what the
//! mobile has acknowledged. It differs in two ways:
//!
//! - After a timeout it takes the loss for one of a burst. It sends one segment at a time until the
//!   mobile acknowledges something, and then everything that has waited. A duplicate
//!   acknowledgement shows that the link works again, so it causes a retransmission at once and
//!   does not reduce the window.
//! - It hides the time that a segment spends in the agent. It adds this time to the sender's
//!   timestamp in the segment. The mobile echoes the timestamp, and the round trip that the sender
//!   measures lacks the time. So the sender's retransmission timer follows the fixed network.
//!
//! The paper's text could not be read; this follows the description of the study `gprs-proxy` and
//! public summaries of the paper. The agent is that of Snoop, with the same timer.
//!
//! Limits: the sender must use timestamps (RFC 7323). The queue of the bearer is behind the agent,
//! so its time is not hidden; SACK blocks pass unchanged.

use airpath_core::{Direction, Instant, Packet, Span};

use crate::middlebox::MiddleboxContext;
use crate::payload::Payload;
use crate::store::NewSegment;

/// The timestamp clock of a sender, whose tick is measured by the segments that arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderClock {
    /// The first and the newest timestamp, and when they arrived.
    seen: Option<[(Instant, u32); 2]>,
    /// The highest timestamp towards the mobile, which drops lower ones (RFC 7323 §5.3).
    sent: Option<u32>,
}

impl SenderClock {
    /// Ticks of the clock in `span`.
    fn ticks(&self, span: Span) -> u32 {
        let Some([(began, first), (now, newest)]) = self.seen else { return 0 };
        let elapsed = u128::from(now.since(began).as_nanos());
        let ticks = u128::from(newest.wrapping_sub(first)) * u128::from(span.as_nanos());
        u32::try_from(ticks.checked_div(elapsed).unwrap_or(0)).unwrap_or(0)
    }

    /// A packet towards the mobile passes at `now`. Returns what leaves in its place.
    pub(crate) fn pass(&mut self, now: Instant, packet: Packet, cx: &mut MiddleboxContext<'_>) -> Packet {
        let timestamp = cx.tcp_segment(&packet).and_then(|segment| segment.header.options.timestamps);
        if let Some(value) = timestamp.map(|timestamp| timestamp.value) {
            let first = self.seen.map_or((now, value), |[first, _]| first);
            self.seen = Some([first, (now, value)]);
        }
        let Some(changed) = self.with_delay(now, Span::ZERO, packet, cx) else { return packet };
        cx.absorb(now, Direction::Down, packet);
        changed
    }

    /// A copy of `packet`, which arrived at `arrived`, with a timestamp of `clock` for the time
    /// since then. `None` where no packet can be created.
    pub(crate) fn send_copy(
        clock: Option<&mut Self>,
        now: Instant,
        arrived: Instant,
        packet: Packet,
        cx: &mut MiddleboxContext<'_>,
    ) -> Option<Packet> {
        clock
            .and_then(|clock| clock.with_delay(now, now.since(arrived), packet, cx))
            .or_else(|| cx.copy(now, Direction::Down, packet))
    }

    /// A copy of `packet` with its timestamp later by `delay`; `None` if it has none, or the
    /// timestamp stays the same.
    fn with_delay(
        &mut self,
        now: Instant,
        delay: Span,
        packet: Packet,
        cx: &mut MiddleboxContext<'_>,
    ) -> Option<Packet> {
        let mut segment = cx.tcp_segment(&packet)?;
        let timestamps = segment.header.options.timestamps.as_mut()?;
        let delayed = timestamps.value.wrapping_add(self.ticks(delay));
        // Timestamps wrap.
        let value = self.sent.filter(|sent| sent.wrapping_sub(delayed).cast_signed() > 0).unwrap_or(delayed);
        self.sent = Some(value);
        if std::mem::replace(&mut timestamps.value, value) == value {
            return None;
        }
        let bytes = match cx.tcp_payload(packet.slot) {
            Payload::Counted => None,
            Payload::Bytes(parts) => Some(parts.concat()),
        };
        let payload = bytes.as_deref().map_or(Payload::Counted, |bytes| Payload::Bytes([bytes, &[]]));
        let new =
            NewSegment { flow: packet.flow, segment: &segment, segment_size: segment.length, payload, buffer: None };
        cx.create_segment(now, Direction::Down, packet.user, new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_is_that_of_the_segments() {
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        assert_eq!(SenderClock::default().ticks(Span::from_secs(1)), 0);
        // 200 ticks of 10 ms; the clock wraps.
        let clock = SenderClock { seen: Some([(at(500), u32::MAX - 99), (at(2500), 100)]), sent: None };
        assert_eq!(clock.ticks(Span::from_secs(1)), 100);
        assert_eq!(clock.ticks(Span::from_millis(19)), 1);
        let once = SenderClock { seen: Some([(at(500), 7), (at(500), 7)]), sent: None };
        assert_eq!(once.ticks(Span::from_secs(1)), 0);
    }
}
