//! What a link that compresses headers has to know of those of a packet.
//!
//! Such a link (RFC 1144) sends of a TCP segment how its header differs from the one before. It is told with each packet
//! whether that can be done; a [`Succession`] finds it out where packets enter the network, from what the log has of them,
//! so that a run, its replay and an emulated link agree.

use crate::event::SegmentInfo;

/// Whether the headers of a packet can be sent as differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Headers {
    /// No: it is no TCP segment, or one that opens, ends or resets a connection (RFC 1144 §3.2.3).
    #[default]
    Other,
    /// Not from those before, but the next segment's can be told from these: the first segment of a connection, one that
    /// goes back or repeats an acknowledgement, or one with TCP options.
    Whole,
    /// Yes.
    Difference,
}

/// Bytes of IPv4 and TCP headers without options (RFC 791 §3.1, RFC 9293 §3.1).
pub const PLAIN_HEADERS: u32 = 40;

const FIN_SYN_RST: u8 = 0x07;

/// The segments of one connection that go one way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Succession {
    last: Option<SegmentInfo>,
}

impl Succession {
    /// What the headers of the next packet are, which has `size` bytes and this TCP header.
    #[inline]
    pub fn next(&mut self, size: u32, segment: &SegmentInfo) -> Headers {
        let Some(ack) = segment.ack.filter(|_| segment.flags & FIN_SYN_RST == 0) else {
            // What opens a connection has no predecessor, and neither has what follows.
            if segment.flags & 0x02 != 0 {
                self.last = None;
            }
            return Headers::Other;
        };
        let last = self.last.replace(*segment);
        // Options change with each segment (timestamps, selective acknowledgement), and IPv6 is not compressed at all.
        let is_plain = size == PLAIN_HEADERS + segment.length;
        let Some(last) = last.filter(|_| is_plain) else { return Headers::Whole };
        // Differences have 16 bits without a sign.
        let fits = |from: i64, to: i64| (0..=0xffff).contains(&(to - from));
        let last_ack = last.ack.unwrap_or(0);
        if !fits(last.offset, segment.offset) || !fits(last_ack, ack) {
            return Headers::Whole;
        }
        let is_same = (last.offset, last_ack, last.window) == (segment.offset, ack, segment.window);
        // Nothing is new: a segment with data after a bare acknowledgement is, all else is sent again (RFC 1144 §3.2.4).
        if is_same && !(segment.length > 0 && last.length == 0) { Headers::Whole } else { Headers::Difference }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_step_by_step() {
        let mut succession = Succession::default();
        let mut next = |offset, length, ack, flags| {
            let segment = SegmentInfo { offset, length, ack, window: 8192, flags, retransmission: false };
            succession.next(PLAIN_HEADERS + length, &segment)
        };
        assert_eq!(next(-1, 0, None, 0x02), Headers::Other, "it opens the connection");
        assert_eq!(next(0, 0, Some(0), 0x10), Headers::Whole, "nothing comes before it");
        assert_eq!(next(0, 500, Some(0), 0x18), Headers::Difference, "data after a bare acknowledgement");
        assert_eq!(next(500, 500, Some(0), 0x18), Headers::Difference);
        assert_eq!(next(500, 500, Some(0), 0x18), Headers::Whole, "it is sent again");
        assert_eq!(next(0, 500, Some(0), 0x18), Headers::Whole, "it goes back");
        assert_eq!(next(1000, 500, Some(70_000), 0x18), Headers::Whole, "a leap of more than 16 bits");
        assert_eq!(next(1500, 0, Some(70_100), 0x10), Headers::Difference);
        assert_eq!(next(1500, 0, Some(70_100), 0x10), Headers::Whole, "a duplicate acknowledgement");
        assert_eq!(next(1500, 0, Some(70_100), 0x11), Headers::Other, "it ends the connection");
        let with_options = SegmentInfo { offset: 1500, length: 10, ack: Some(70_100), ..SegmentInfo::default() };
        assert_eq!(succession.next(12 + PLAIN_HEADERS + 10, &with_options), Headers::Whole);
    }
}
