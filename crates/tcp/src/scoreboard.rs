//! Segments that were sent and are not cumulatively acknowledged.
//!
//! The segments lie in a ring buffer in order of their sequence numbers, and are found by
//! interpolation. All searches start from pointers that only move forwards within a recovery, and
//! the bytes in flight are counted incrementally. The work per packet thus does not depend on the
//! window.

mod losses;
mod repair;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use crate::rate::RateEstimator;
use crate::sequence::Sequence;

/// A segment that was sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sent {
    pub start: Sequence,
    /// Time of the last transmission.
    pub at: Instant,
    /// Sequence numbers that it covers: its payload, and one for a FIN.
    pub length: u32,
    state: u8,
}

impl Sent {
    /// A segment that was sent once.
    pub const fn new(start: Sequence, at: Instant, length: u32, fin: bool) -> Self {
        Self { start, at, length, state: if fin { Self::FIN } else { 0 } }
    }

    /// Acknowledged selectively.
    const SACKED: u8 = 1;
    /// Considered lost: its first transmission is not in flight any more.
    const LOST: u8 = 2;
    /// Retransmitted, and the retransmission is in flight.
    const REPEATING: u8 = 4;
    /// Sent more than once.
    const REPEATED: u8 = 8;
    /// Its last sequence number is that of the FIN.
    const FIN: u8 = 16;

    #[inline]
    pub const fn end(&self) -> Sequence {
        self.start + self.length as u64
    }

    #[inline]
    const fn is(&self, state: u8) -> bool {
        self.state & state != 0
    }

    /// Whether it was sent more than once, so that the acknowledged transmission is ambiguous.
    #[inline]
    pub const fn is_repeated(&self) -> bool {
        self.is(Self::REPEATED)
    }

    #[inline]
    pub const fn is_sacked(&self) -> bool {
        self.is(Self::SACKED)
    }

    /// Whether its first transmission is considered lost.
    #[inline]
    pub const fn is_lost(&self) -> bool {
        self.is(Self::LOST)
    }

    #[inline]
    pub const fn has_fin(&self) -> bool {
        self.is(Self::FIN)
    }

    /// Lost, and not retransmitted since.
    #[inline]
    const fn needs_repair(&self) -> bool {
        self.state & (Self::SACKED | Self::LOST | Self::REPEATING) == Self::LOST
    }

    /// Bytes in flight (the pipe of RFC 6675 §4, which counts a retransmission beside the
    /// original).
    #[inline]
    const fn in_network(&self) -> u64 {
        if self.is(Self::SACKED) {
            return 0;
        }
        let copies = !self.is(Self::LOST) as u64 + self.is(Self::REPEATING) as u64;
        copies * self.length as u64
    }
}

/// Data that one acknowledgement newly reports as delivered.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    pub now: Instant,
    /// A retransmission that was acknowledged faster than this is not the transmission that arrived
    /// (RFC 8985 §6.2 step 2).
    pub least_round_trip: Option<Span>,
    /// The segment whose timestamp is echoed was sent before this; later transmissions are not
    /// acknowledged here.
    pub echoed_before: Option<Instant>,
    /// Bytes newly delivered.
    pub bytes: u64,
    /// Segments newly delivered.
    pub segments: u64,
    /// Send time of the last cumulatively acknowledged segment that was sent once only, and was not
    /// selectively acknowledged before.
    pub last_original: Option<Instant>,
    /// Send time of the last selectively acknowledged segment that was sent once only.
    pub last_sacked: Option<Instant>,
    /// The most recently sent of the delivered segments.
    pub newest: Option<Newest>,
    /// The most recently sent of those that were sent more than once.
    pub newest_repeated: Option<Newest>,
    /// Send time of the last delivered segment, in the order of processing (`RACK.rtt`, RFC 8985
    /// §6.2 step 2).
    pub last_delivered: Option<Instant>,
    /// The lowest newly delivered segment that was sent once only.
    pub lowest_original: Option<Sequence>,
    /// Send time of the first newly delivered segment that was sent once only.
    pub first_original: Option<Instant>,
    /// Send time of the first segment that is cumulatively acknowledged, and was not selectively
    /// before.
    pub first_acknowledged: Option<Instant>,
    /// Send time of the last cumulatively acknowledged segment, if it was sent once, none before it
    /// was sent later, and the acknowledgement ends with it.
    pub last_acknowledged: Option<Instant>,
    /// Whether a cumulatively acknowledged segment was sent more than once.
    pub repeated: bool,
}

/// The most recently sent of the delivered segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Newest {
    pub at: Instant,
    pub end: Sequence,
}

impl Newest {
    pub const NONE: Self = Self { at: Instant::ZERO, end: 0 };

    const fn of(segment: &Sent) -> Self {
        Self { at: segment.at, end: segment.end() }
    }
}

impl Delivery {
    pub const fn new(now: Instant, least_round_trip: Option<Span>, echoed_before: Option<Instant>) -> Self {
        Self {
            now,
            least_round_trip,
            echoed_before,
            bytes: 0,
            segments: 0,
            last_original: None,
            last_sacked: None,
            newest: None,
            newest_repeated: None,
            last_delivered: None,
            lowest_original: None,
            first_original: None,
            first_acknowledged: None,
            last_acknowledged: None,
            repeated: false,
        }
    }

    /// Records a newly delivered segment. For one that was sent more than once, `echoed_before`
    /// bounds the time of the transmission that arrived.
    #[inline]
    fn arrived(&mut self, segment: &Sent, echoed_before: Option<Instant>) {
        self.bytes += u64::from(segment.length);
        self.segments += 1;
        if segment.is_repeated() {
            let too_soon = self.least_round_trip.is_some_and(|least| self.now.since(segment.at) < least);
            if too_soon || echoed_before.is_some_and(|before| segment.at >= before) {
                return;
            }
            self.newest_repeated = self.newest_repeated.max(Some(Newest::of(segment)));
        } else {
            self.lowest_original = Some(self.lowest_original.map_or(segment.start, |low| low.min(segment.start)));
            self.first_original = self.first_original.or(Some(segment.at));
        }
        self.last_delivered = Some(segment.at);
        self.newest = self.newest.max(Some(Newest::of(segment)));
    }
}

/// Numbers of outstanding segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCounts {
    pub outstanding: u64,
    /// Selectively acknowledged.
    pub sacked: u64,
    /// Considered lost, retransmitted or not.
    pub lost: u64,
    /// Retransmitted, with the retransmission in flight.
    pub repeating: u64,
}

/// The outstanding segments and their state. Fields are ordered by use, as those of the connection.
#[derive(Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Bytes in flight.
    pipe: u64,
    /// Bytes in selectively acknowledged segments.
    sacked_bytes: u64,
    /// Segments marked as lost so far; a retransmission that is lost counts again.
    lost: u64,
    /// Everything below was already checked for losses by counting.
    examined: Sequence,
    sacked: RangeSet<Sequence>,
    /// Lost segments that are not retransmitted yet.
    waiting: u32,
    /// The delivery rate, where the congestion control uses it.
    pub rate: Option<Box<RateEstimator>>,
    /// Where the search for a segment to retransmit resumes.
    repair_from: Sequence,
    /// Where that search ends: no segment above is considered lost.
    repair_end: Sequence,
    /// Retransmissions in the order of their times, for loss detection by time. Entries may be
    /// stale, as above.
    repeating: VecDeque<(Sequence, Instant)>,
    /// Segments whose retransmission was lost too. Entries whose segment has changed since are
    /// stale.
    lost_again: VecDeque<Sequence>,
    /// Newly covered parts of a selective acknowledgement; a field only to reuse its memory.
    fresh: Vec<Range<Sequence>>,
}

impl Scoreboard {
    /// Bytes in flight.
    #[inline]
    pub const fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Bytes that arrived out of order.
    #[inline]
    pub const fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Segments marked as lost so far; a retransmission that is lost counts again.
    #[inline]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of lost segments before the first that is not, retransmitted or not. Without SACK
    /// the oldest are lost first.
    pub fn first_lost(&self) -> u64 {
        self.segments.iter().take_while(|segment| segment.is_lost()).count() as u64
    }

    /// Segments by state, counted one by one.
    pub fn counts(&self) -> SegmentCounts {
        let mut counts = SegmentCounts { outstanding: self.segments.len() as u64, ..SegmentCounts::default() };
        for segment in &self.segments {
            counts.sacked += u64::from(segment.is_sacked());
            counts.lost += u64::from(segment.is_lost() && !segment.is_sacked());
            counts.repeating += u64::from(segment.is(Sent::REPEATING) && !segment.is_sacked());
        }
        counts
    }

    /// Number of outstanding segments.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// One past the highest selectively acknowledged byte.
    pub fn highest_sacked(&self) -> Option<Sequence> {
        self.sacked.last().map(|range| range.end)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The oldest segment.
    #[inline]
    pub fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    #[inline]
    pub fn get(&self, index: usize) -> &Sent {
        &self.segments[index]
    }

    /// Adds a segment that is sent for the first time, after the last one.
    #[inline]
    pub fn send(&mut self, now: Instant, start: Sequence, length: u32, fin: bool) {
        debug_assert!(length > 0 && self.segments.back().is_none_or(|last| last.end() == start));
        if let Some(rate) = &mut self.rate {
            rate.on_sent(now, self.segments.is_empty(), self.pipe + u64::from(length), self.lost);
        }
        self.segments.push_back(Sent::new(start, now, length, fin));
        self.pipe += u64::from(length);
    }

    /// Records a retransmission.
    pub fn send_again(&mut self, now: Instant, index: usize) {
        let segment = &mut self.segments[index];
        debug_assert!(!segment.is_sacked());
        if segment.needs_repair() {
            self.waiting -= 1;
        }
        self.pipe -= segment.in_network();
        segment.state |= Sent::REPEATING | Sent::REPEATED;
        segment.at = now;
        self.pipe += segment.in_network();
        self.repeating.push_back((segment.start, now));
        if let Some(rate) = &mut self.rate {
            rate.on_sent_again(index, self.pipe, self.lost);
        }
    }

    /// Everything below `edge` has arrived.
    #[inline]
    pub fn acknowledge(&mut self, edge: Sequence, delivery: &mut Delivery) {
        let mut latest = Instant::ZERO;
        while let Some(segment) = self.segments.front().copied() {
            if segment.end() > edge {
                if segment.start < edge {
                    self.trim_first(edge, delivery);
                }
                break;
            }
            self.segments.pop_front();
            self.pipe -= segment.in_network();
            self.waiting -= u32::from(segment.needs_repair());
            delivery.repeated |= segment.is_repeated();
            if let Some(rate) = &mut self.rate {
                rate.on_acknowledged(&segment, !segment.is_sacked());
            }
            if segment.is_sacked() {
                self.sacked_bytes -= u64::from(segment.length);
            } else {
                delivery.arrived(&segment, delivery.echoed_before);
                delivery.first_acknowledged.get_or_insert(segment.at);
                if !segment.is_repeated() {
                    delivery.last_original = Some(segment.at);
                }
            }
            // A segment before it that was sent later may have triggered the acknowledgement.
            latest = latest.max(segment.at);
            let clear = segment.end() == edge && segment.at == latest && !segment.is_repeated();
            delivery.last_acknowledged = clear.then_some(segment.at);
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(edge);
        }
        self.forget_stale();
    }

    /// The receiver has everything in `block`, which lies within the outstanding data.
    pub fn acknowledge_selectively(&mut self, block: Range<Sequence>, delivery: &mut Delivery) {
        let mut fresh = std::mem::take(&mut self.fresh);
        let merged = self.sacked.insert(block, |part| fresh.push(part));
        for part in fresh.drain(..) {
            let mut index = self.index_of(part.start);
            while let Some(segment) = self.segments.get_mut(index).filter(|segment| segment.start < part.end) {
                // A partly covered segment has not arrived (RFC 6675 §3).
                if merged.contains(Range::new(segment.start, segment.end())) && !segment.is_sacked() {
                    // Its timestamp is not echoed: it lies above a hole (RFC 7323 §4.3). As
                    // `tcp_sacktag_one` of Linux, which differs from RFC 8985 §6.2 here.
                    delivery.arrived(segment, None);
                    if !segment.is_repeated() {
                        delivery.last_sacked = Some(segment.at);
                    }
                    if let Some(rate) = &mut self.rate {
                        rate.on_sacked(index, segment);
                    }
                    self.pipe -= segment.in_network();
                    self.waiting -= u32::from(segment.needs_repair());
                    segment.state |= Sent::SACKED;
                    self.sacked_bytes += u64::from(segment.length);
                }
                index += 1;
            }
        }
        self.fresh = fresh;
    }

    /// Discards all selective acknowledgements: a receiver may renege (RFC 2018 §8).
    pub fn forget_sacked(&mut self) {
        self.sacked.clear();
        self.sacked_bytes = 0;
        for segment in &mut self.segments {
            if segment.is_sacked() {
                // As if lost: it is retransmitted unless it is acknowledged.
                segment.state = (segment.state & !(Sent::SACKED | Sent::REPEATING)) | Sent::LOST;
                self.waiting += 1;
            }
        }
        self.restart_search();
    }

    /// Index of the segment that holds `sequence`, or of the next one above it.
    pub fn index_of(&self, sequence: Sequence) -> usize {
        /// Linear steps from the estimate before bisecting.
        const STEPS: usize = 8;
        let (Some(first), Some(last)) = (self.segments.front(), self.segments.back()) else {
            return 0;
        };
        if sequence < first.end() {
            return 0;
        }
        if sequence >= last.end() {
            return self.segments.len();
        }
        // Segments mostly have one size: interpolate, then step linearly.
        let count = self.segments.len() as u64;
        let mut index = ((sequence - first.start) * count / (last.end() - first.start)) as usize;
        for _ in 0..STEPS {
            let segment = &self.segments[index];
            if sequence < segment.start {
                index -= 1;
            } else if sequence >= segment.end() {
                index += 1;
            } else {
                return index;
            }
        }
        self.segments.partition_point(|segment| segment.end() <= sequence)
    }

    /// The acknowledgement ends within the first segment.
    fn trim_first(&mut self, edge: Sequence, delivery: &mut Delivery) {
        let segment = &mut self.segments[0];
        let cut = (edge - segment.start) as u32;
        self.pipe -= segment.in_network();
        if segment.is_sacked() {
            self.sacked_bytes -= u64::from(cut);
        } else {
            delivery.bytes += u64::from(cut);
        }
        if self.repair_from == segment.start {
            self.repair_from = edge;
        }
        for lost in self.lost_again.iter_mut().filter(|lost| **lost == segment.start) {
            *lost = edge;
        }
        for (repeating, _) in self.repeating.iter_mut().filter(|(start, _)| *start == segment.start) {
            *repeating = edge;
        }
        segment.start = edge;
        segment.length -= cut;
        self.pipe += segment.in_network();
        delivery.last_acknowledged = None;
    }

    /// Frees entries of acknowledged segments, where that is cheap.
    #[inline]
    fn forget_stale(&mut self) {
        let first = self.segments.front().map_or(Sequence::MAX, |segment| segment.start);
        while self.repeating.front().is_some_and(|(start, _)| *start < first) {
            self.repeating.pop_front();
        }
        while self.lost_again.front().is_some_and(|start| *start < first) {
            self.lost_again.pop_front();
        }
    }
}
