//! The receiving half: reassembly, acknowledgements and their times, and the window.

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Instant, Span};
use airpath_wire::tcp::SackBlocks;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::delayed_ack::{AckSchedule, Estimate, Schedule};
use crate::receive_window::ReceiveWindow;
use crate::sequence::{FIRST_BYTE, Sequence, to_wire};

/// The receiving half of a connection. Fields are ordered by use, as those of the connection.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Receiver {
    /// The peer's initial sequence number.
    pub initial: u32,
    /// The size of a full segment: that of the largest so far, or of the last two that were not
    /// pushed.
    full_size: u32,
    /// The next sequence number expected.
    pub next: Sequence,
    /// Everything below this was read.
    read: Sequence,
    /// The sequence number of the FIN, once received.
    fin: Option<Sequence>,
    /// The next sequence number expected when the last acknowledgement was sent.
    pub last_ack: Sequence,
    pub acks: AckSchedule,
    /// The last segment below `full_size` that was not pushed.
    last_size: u32,
    pub window: ReceiveWindow,
    /// The part of the last segment that was inside the window, with its first sequence number; the
    /// FIN counts.
    pub accepted: Option<(Range<Sequence>, Sequence)>,
    /// Ranges that arrived out of order.
    gaps: RangeSet<Sequence>,
    /// A range that arrived twice, to be reported once (DSACK, RFC 2883).
    duplicate: Option<Range<Sequence>>,
    /// Start of the range that the last blocks reported as duplicate.
    reported: Option<Sequence>,
    /// The ranges of `gaps` changed most recently, the newest first (RFC 2018 §4).
    recent: [Range<Sequence>; SackBlocks::MAX],
}

/// The part of a segment's payload that the receiver accepted: an owner of payload stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedPayload {
    /// Offset of its first byte in the peer's stream.
    pub offset: u64,
    /// Bytes of the segment's payload before it.
    pub skip: u32,
    /// Its bytes.
    pub length: u32,
}

/// A segment with payload or FIN.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Its first sequence number.
    pub start: Sequence,
    /// The sequence numbers that it covers, including the FIN as the last.
    pub length: u32,
    /// Whether it has a FIN.
    pub fin: bool,
    /// Whether it ends what the application has written (PSH).
    pub push: bool,
    /// Whether this end has not closed its stream: its own FIN may acknowledge that of the peer.
    pub awaits_close: bool,
}

/// How to acknowledge a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Immediately.
    Now,
    /// After at most this time.
    After(Span),
    /// Immediately: it contained no new data.
    Duplicate,
}

impl From<Schedule> for Arrival {
    fn from(schedule: Schedule) -> Self {
        match schedule {
            Schedule::Now => Self::Now,
            Schedule::After(wait) => Self::After(wait),
        }
    }
}

/// The size of a full segment before one has arrived, as in Linux (`tcp_initialize_rcv_mss`).
const LEAST_SEGMENT: u32 = 536;

const NOTHING: Range<Sequence> = Range::new(0, 0);

impl Receiver {
    /// A receiver before any arrival.
    pub fn new(config: &Config) -> Self {
        let segment_size = u32::from(config.maximum_segment_size);
        Self {
            initial: 0,
            next: 0,
            read: FIRST_BYTE,
            fin: None,
            gaps: RangeSet::default(),
            recent: [NOTHING; SackBlocks::MAX],
            duplicate: None,
            reported: None,
            window: ReceiveWindow::new(&config.receive_buffer, segment_size),
            acks: AckSchedule::new(&config.delayed_ack),
            full_size: if config.delayed_ack.is_adaptive() { LEAST_SEGMENT.min(segment_size) } else { 0 },
            last_ack: 0,
            last_size: 0,
            accepted: None,
        }
    }

    /// The peer's SYN, with sequence number `initial`, arrived.
    pub const fn open(&mut self, initial: u32) {
        self.initial = initial;
        self.next = FIRST_BYTE;
    }

    /// Bytes that arrived in order.
    #[inline]
    pub fn received(&self) -> u64 {
        self.data_end().saturating_sub(FIRST_BYTE)
    }

    /// The payload of the last segment that was inside the window.
    pub fn accepted_payload(&self) -> Option<AcceptedPayload> {
        let (part, start) = self.accepted?;
        let end = self.fin.map_or(part.end, |fin| part.end.min(fin));
        (part.start < end).then(|| AcceptedPayload {
            offset: part.start - FIRST_BYTE,
            skip: (part.start - start) as u32,
            length: (end - part.start) as u32,
        })
    }

    /// The size of a full segment.
    #[inline]
    pub const fn full_size(&self) -> u32 {
        self.full_size
    }

    /// Bytes that arrived in order and are unread.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.data_end().saturating_sub(self.read)
    }

    /// Whether everything up to the FIN has arrived.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The application reads `bytes`. Returns whether the window has opened enough for an update. A
    /// segment has `segment_size` bytes.
    #[inline]
    pub fn read(&mut self, now: Instant, bytes: u64, segment_size: u32) -> bool {
        self.read += bytes.min(self.readable());
        if self.readable() == 0 {
            self.acks.on_read();
        }
        if self.is_complete() {
            return false;
        }
        self.window.on_read(now, self.next, self.read, self.beyond());
        self.window.is_worth_an_update(self.next, self.read, segment_size)
    }

    /// A segment with payload or FIN arrived. It overlaps the window; what lies outside is cut off.
    #[inline]
    pub fn on_segment(&mut self, now: Instant, data: Data, estimate: Estimate, config: &Config) -> Arrival {
        let Data { start, length, fin, push, awaits_close } = data;
        let end = start + u64::from(length);
        if end <= self.next {
            self.on_old(start, length, config);
            return Arrival::Duplicate;
        }
        let payload = length - u32::from(fin);
        let segment_size = u32::from(config.maximum_segment_size);
        // Only receive offload returns more than the MSS: consecutive segments as one.
        let segments = payload.div_ceil(segment_size).max(1);
        self.measure(payload.min(segment_size), push || fin, config);
        if fin && self.fin.is_none() {
            self.fin = Some(end - 1);
        }
        let part = Range::new(start.max(self.next), end.min(self.limit()));
        if start < self.next {
            self.report_duplicate(Range::new(start, self.next), config);
        }
        if part.is_empty() {
            self.acks.demand();
            return Arrival::Now;
        }
        self.accepted = Some((part, start));
        if part.start > self.next {
            return self.on_gap(part, config);
        }
        if let Some(again) = self.gaps.first().filter(|range| range.start < part.end && part.start == start) {
            // RFC 2883 §4: one range, the first that arrived out of order before.
            self.report_duplicate(Range::new(again.start, again.end.min(part.end)), config);
        }
        let filled = self.advance(part.end);
        let grows = self.window.on_arrival(segments * segment_size);
        let waits = awaits_close && config.delayed_ack.is_adaptive();
        if filled || part.start > start || self.is_complete() && !waits {
            self.acks.demand();
            return Arrival::Now;
        }
        if self.is_complete() {
            self.acks.on_fin(self.next - self.last_ack > u64::from(self.full_size));
            if payload == 0 {
                return self.acks.schedule_fin(estimate, &config.delayed_ack).into();
            }
        }
        if grows && config.delayed_ack.quick_growth {
            self.acks.on_growth();
        }
        let full = length >= self.full_size;
        self.acks.on_arrival(now, segments, full, estimate, &config.delayed_ack).into()
    }

    /// Measures the size of full segments. As in Linux (`tcp_measure_rcv_mss`), two equal ones that
    /// are not pushed show that segments have become smaller.
    #[inline]
    fn measure(&mut self, payload: u32, pushed: bool, config: &Config) {
        if payload >= self.full_size {
            self.full_size = payload;
        } else if config.delayed_ack.is_adaptive() && !pushed {
            if payload == self.last_size {
                self.full_size = payload;
            }
            self.last_size = payload;
        }
    }

    /// A segment without new data arrived.
    pub fn on_old(&mut self, start: Sequence, length: u32, config: &Config) {
        self.acks.on_duplicate(&config.delayed_ack);
        self.report_duplicate(Range::new(start, start + u64::from(length)), config);
    }

    /// The blocks of a selective acknowledgement, at most `room` of them, as wire numbers relative
    /// to `initial`.
    pub fn sack_blocks(&mut self, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut put = |range: Range<Sequence>| {
            let (start, end) = (to_wire(self.initial, range.start), to_wire(self.initial, range.end));
            blocks.as_slice().len() < room && blocks.push(start, end)
        };
        let duplicate = self.duplicate.take();
        self.reported = duplicate.map(|range| range.start);
        if let Some(duplicate) = duplicate {
            put(duplicate);
        }
        if !self.gaps.is_empty() {
            for range in self.recent {
                if range.start > self.next && !put(range) {
                    break;
                }
            }
        }
        blocks
    }

    /// Whether a selective acknowledgement has blocks.
    #[inline]
    pub fn has_blocks(&self) -> bool {
        !self.gaps.is_empty() || self.duplicate.is_some()
    }

    /// Start of the duplicate that the last selective acknowledgement reported, if it did.
    pub const fn reported_duplicate(&self) -> Option<Sequence> {
        self.reported
    }

    /// The window to offer now, for segments of `segment_size` bytes.
    #[inline]
    pub fn offer(&mut self, segment_size: u32) -> u64 {
        // Before the peer's SYN, the offer starts at its first byte.
        let next = self.next.max(FIRST_BYTE);
        self.window.offer(next, self.read.min(next), segment_size)
    }

    /// Nothing is accepted from here on. A FIN takes no buffer space, and nothing follows it.
    #[inline]
    fn limit(&self) -> Sequence {
        let edge = self.window.edge().max(self.next);
        self.fin.map_or(edge, |fin| if fin <= edge { fin + 1 } else { edge })
    }

    /// One past the last byte of data that arrived in order, without the FIN.
    #[inline]
    fn data_end(&self) -> Sequence {
        self.fin.map_or(self.next, |fin| self.next.min(fin))
    }

    /// Everything up to `end` arrived in order. Returns whether that reaches data that arrived out
    /// of order before.
    #[inline]
    fn advance(&mut self, end: Sequence) -> bool {
        self.next = end;
        if self.gaps.is_empty() {
            return false;
        }
        while let Some(range) = self.gaps.first().filter(|range| range.start <= self.next) {
            self.next = self.next.max(range.end);
            self.gaps.remove_below(self.next);
        }
        true
    }

    fn on_gap(&mut self, part: Range<Sequence>, config: &Config) -> Arrival {
        self.acks.demand();
        let mut fresh = false;
        let merged = self.gaps.insert(part, |_| fresh = true);
        self.window.on_gap(self.beyond());
        if !fresh {
            self.report_duplicate(part, config);
        }
        // The newest first; blocks merged into it are removed.
        let mut kept = [NOTHING; SackBlocks::MAX];
        kept[0] = merged;
        let others = self.recent.iter().filter(|range| range.start > self.next && !merged.contains(**range));
        kept[1..].iter_mut().zip(others).for_each(|(slot, range)| *slot = *range);
        self.recent = kept;
        if fresh { Arrival::Now } else { Arrival::Duplicate }
    }

    /// Bytes from what is expected to the end of what has arrived out of order.
    fn beyond(&self) -> u64 {
        self.gaps.last().map_or(0, |range| range.end - self.next)
    }

    fn report_duplicate(&mut self, range: Range<Sequence>, config: &Config) {
        self.acks.demand();
        if config.duplicate_reports {
            self.duplicate = Some(range);
        }
    }
}
