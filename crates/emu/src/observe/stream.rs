//! One direction of a TCP connection: from sequence numbers to the stream, and what became of it.

use std::collections::VecDeque;

use airpath_core::{Instant, SegmentInfo, Span};
use airpath_wire::tcp::{Flags, Options};

use super::headers::TcpSegment;
use super::ranges::Ranges;

/// Segments whose acknowledgement is waited for to measure a round trip; of what is sent beyond, none is measured.
const MOST_TIMED: usize = 4096;

/// What one end sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// Sequence number of the SYN, which lies at -1: seen, or concluded from the first header that tells of it.
    initial: Option<u32>,
    /// The options of its SYN.
    pub syn: Option<Options>,
    /// Whether its SYN asked for ECN (RFC 3168 §6.1.1), or agreed to it.
    pub wants_ecn: bool,
    /// Near where sequence numbers are expected: the highest offset so far.
    edge: i64,
    sent: Ranges,
    arrived: Ranges,
    /// One past the last byte that was sent.
    pub end: i64,
    /// Where the stream ends, once a FIN says so.
    pub fin: Option<i64>,
    /// Sent segments that were not sent before, with where they end: the next ones to be acknowledged.
    timed: VecDeque<(i64, Instant)>,
    /// Segments with payload, their bytes, and those of them that were not sent before.
    pub data_packets: u64,
    pub data_bytes: u64,
    pub unique_bytes: u64,
    /// Segments of which a part was sent before.
    pub repeated_packets: u64,
    /// Segments with nothing but an acknowledgement of the other direction.
    pub pure_acks: u64,
    pub syn_arrived: Option<Instant>,
    pub first_arrived: Option<Instant>,
    /// When the part of the stream that is whole grew last.
    pub last_arrived: Option<Instant>,
    /// When a reset by this end arrived.
    pub reset_arrived: Option<Instant>,
    /// Up to where the other end's acknowledgements came back, and when they last acknowledged data.
    pub acknowledged: i64,
    pub acknowledged_at: Option<Instant>,
    pub round_trips: RoundTrips,
}

/// Round trips, from when a segment entered the link to when its acknowledgement left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RoundTrips {
    pub count: u64,
    pub sum: Span,
    pub least: Option<Span>,
    pub greatest: Option<Span>,
}

impl RoundTrips {
    fn add(&mut self, sample: Span) {
        self.count += 1;
        self.sum = Span::from_nanos(self.sum.as_nanos().saturating_add(sample.as_nanos()));
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        self.greatest = Some(self.greatest.map_or(sample, |greatest| greatest.max(sample)));
    }

    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.as_secs_f64() / self.count as f64)
    }
}

impl Stream {
    /// A segment enters the link. `window` and `ack` are filled in by the connection, which knows both directions.
    pub fn sends(&mut self, now: Instant, header: &TcpSegment) -> SegmentInfo {
        let again = header.has(Flags::SYN) && self.syn.is_some() || header.has(Flags::FIN) && self.fin.is_some();
        if let Some(options) = header.options {
            self.initial = Some(header.sequence);
            self.syn = Some(options);
            self.wants_ecn = header.has(Flags::ECE);
        }
        let offset = self.offset(header);
        let (start, end) = payload(offset, header);
        let fresh = self.sent.insert(start, end);
        let length = u64::from(header.length);
        // A SYN or FIN is repeated as payload is.
        let retransmission = fresh < length || again && !header.has(Flags::RST);
        if length > 0 {
            self.data_packets += 1;
            self.data_bytes += length;
            self.unique_bytes += fresh;
            self.repeated_packets += u64::from(fresh < length);
        } else if !occupies(header) && header.has(Flags::ACK) {
            self.pure_acks += 1;
        }
        self.time(now, header, (offset, end), retransmission);
        if !header.has(Flags::RST) {
            self.edge = self.edge.max(end);
            if length > 0 {
                self.end = self.end.max(end);
            }
            if header.has(Flags::FIN) {
                self.fin = Some(end);
            }
        }
        SegmentInfo { offset, length: header.length, ack: None, window: 0, flags: header.flags.0, retransmission }
    }

    /// A segment leaves the link, which means that it arrives.
    pub fn arrives(&mut self, due: Instant, header: &TcpSegment) {
        if header.has(Flags::RST) {
            self.reset_arrived.get_or_insert(due);
            return;
        }
        if header.has(Flags::SYN) {
            self.syn_arrived.get_or_insert(due);
        }
        let (start, end) = payload(self.offset(header), header);
        if start < end {
            self.first_arrived.get_or_insert(due);
            let whole = self.arrived.prefix();
            self.arrived.insert(start, end);
            if self.arrived.prefix() > whole {
                self.last_arrived = Some(due);
            }
        }
    }

    /// The other end's acknowledgement up to `offset` has come back.
    pub fn is_acknowledged(&mut self, due: Instant, offset: i64) {
        if offset > self.acknowledged {
            // What is acknowledged beyond the data is the FIN.
            if self.acknowledged < self.end {
                self.acknowledged_at = Some(due);
            }
            self.acknowledged = offset;
        }
        let mut sent = None;
        while let Some((end, time)) = self.timed.front().copied()
            && end <= offset
        {
            self.timed.pop_front();
            sent = Some(time);
        }
        if let Some(sent) = sent {
            self.round_trips.add(due.since(sent));
        }
    }

    /// The offset of the other end's acknowledgment number.
    pub fn offset_of(&mut self, acknowledgment: u32) -> i64 {
        // What is acknowledged first is the SYN, if that was not seen.
        let initial = *self.initial.get_or_insert(acknowledgment.wrapping_sub(1));
        unwrap(initial, self.edge, acknowledgment)
    }

    /// Whether this header begins another connection between the same ports.
    pub fn is_succeeded_by(&self, header: &TcpSegment) -> bool {
        let is_opening = header.has(Flags::SYN) && !header.has(Flags::ACK);
        is_opening && self.syn.is_some() && self.initial.is_some_and(|initial| initial != header.sequence)
    }

    /// Bytes that reached the receiver with all before them.
    pub fn delivered(&self) -> i64 {
        self.arrived.prefix()
    }

    /// Whether all of it arrived, and it is known that it was all.
    pub fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.delivered() >= fin)
    }

    fn offset(&mut self, header: &TcpSegment) -> i64 {
        // A connection whose SYN was not seen begins with the first byte that was.
        let initial = match self.initial {
            Some(initial) => initial,
            // The number in a reset may be anything.
            None if header.has(Flags::RST) => return -1,
            None => *self.initial.insert(header.sequence.wrapping_sub(1)),
        };
        unwrap(initial, self.edge, header.sequence)
    }

    /// Notes when a segment was sent, to time its round trip. One that is sent again makes all those that were sent before
    /// and end behind its start useless: their acknowledgement may have waited for it (Karn's rule, RFC 6298 §3).
    fn time(&mut self, now: Instant, header: &TcpSegment, (start, end): (i64, i64), retransmission: bool) {
        if retransmission {
            self.timed.truncate(self.timed.partition_point(|(end, _)| *end <= start));
        } else if occupies(header) && self.timed.len() < MOST_TIMED {
            let end = if header.has(Flags::FIN) { end + 1 } else { end };
            self.timed.push_back((end, now));
        }
    }
}

/// Whether the segment takes sequence numbers, so that it is acknowledged.
const fn occupies(header: &TcpSegment) -> bool {
    (header.length > 0 || header.has(Flags::SYN) || header.has(Flags::FIN)) && !header.has(Flags::RST)
}

/// Where payload begins and ends in the stream. A probe that repeats the number before the first byte carries none.
fn payload(offset: i64, header: &TcpSegment) -> (i64, i64) {
    let start = if header.has(Flags::SYN) { offset + 1 } else { offset };
    (start.max(0), (start + i64::from(header.length)).max(0))
}

/// The stream offset nearest to `near` that stands in a header as `number` (RFC 9293 §3.4).
const fn unwrap(initial: u32, near: i64, number: u32) -> i64 {
    // Offset -1 is `initial`. Truncation is the wrapping.
    let at_near = initial.wrapping_add(1).wrapping_add(near as u32);
    near + number.wrapping_sub(at_near).cast_signed() as i64
}
