//! What was sent and not yet cumulatively acknowledged, segment by segment.
//!
//! The segments lie in a ring in order of their sequence numbers, and one is found from a number by interpolation. All
//! searches start from pointers that only move forwards within a recovery, and the bytes in the network are counted as
//! they change, so that the work per packet does not depend on the window.

mod losses;
mod repair;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Instant, Span};

use crate::sequence::Sequence;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub start: Sequence,
    /// When it was sent, the last time.
    pub at: Instant,
    /// Sequence numbers that it takes: its payload, and one for a FIN.
    pub length: u32,
    state: u8,
}

impl Sent {
    /// Acknowledged selectively.
    const SACKED: u8 = 1;
    /// Taken for lost: its first transmission is not in the network any more.
    const LOST: u8 = 2;
    /// Sent again, and that is still in the network.
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

    /// Whether it was sent more than once, so that it is unknown which transmission is acknowledged.
    #[inline]
    pub const fn is_repeated(&self) -> bool {
        self.is(Self::REPEATED)
    }

    #[inline]
    pub const fn is_sacked(&self) -> bool {
        self.is(Self::SACKED)
    }

    /// Whether its first transmission is taken for lost.
    #[inline]
    pub const fn is_lost(&self) -> bool {
        self.is(Self::LOST)
    }

    #[inline]
    pub const fn has_fin(&self) -> bool {
        self.is(Self::FIN)
    }

    /// Lost, and not sent again since.
    #[inline]
    const fn needs_repair(&self) -> bool {
        self.state & (Self::SACKED | Self::LOST | Self::REPEATING) == Self::LOST
    }

    /// Bytes of it that are in the network (the pipe of RFC 6675 §4, which counts a retransmission beside the original).
    #[inline]
    const fn in_network(&self) -> u64 {
        if self.is(Self::SACKED) {
            return 0;
        }
        let copies = !self.is(Self::LOST) as u64 + self.is(Self::REPEATING) as u64;
        copies * self.length as u64
    }
}

/// What one acknowledgement says has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    pub now: Instant,
    /// A retransmission that seems to come back faster than this was not what is acknowledged (RFC 8985 §6.2 step 2).
    pub least_round_trip: Option<Span>,
    /// The segment that the timestamp option echoes was sent before this; a later transmission is not acknowledged here.
    pub echoed_before: Option<Instant>,
    /// Bytes newly known to have arrived.
    pub bytes: u64,
    /// Of what arrived, the segment sent last.
    pub newest: Option<Newest>,
    /// The lowest segment newly known to have arrived that was sent once only.
    pub lowest_original: Option<Sequence>,
    /// When the first segment newly known to have arrived that was sent once only was sent.
    pub first_original: Option<Instant>,
    /// When the first segment that is acknowledged cumulatively, and was not selectively before, was sent.
    pub first_acknowledged: Option<Instant>,
    /// When the last segment that is acknowledged cumulatively was sent, if it was sent once, none before it was sent later,
    /// and the acknowledgement ends with it.
    pub last_acknowledged: Option<Instant>,
    /// Whether a segment that is acknowledged cumulatively was sent more than once.
    pub repeated: bool,
}

/// The segment that was sent last of those that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Newest {
    pub at: Instant,
    pub end: Sequence,
}

impl Delivery {
    pub const fn new(now: Instant, least_round_trip: Option<Span>, echoed_before: Option<Instant>) -> Self {
        Self {
            now,
            least_round_trip,
            echoed_before,
            bytes: 0,
            newest: None,
            lowest_original: None,
            first_original: None,
            first_acknowledged: None,
            last_acknowledged: None,
            repeated: false,
        }
    }

    /// Takes note of a segment that was not known to have arrived.
    #[inline]
    fn arrived(&mut self, segment: &Sent) {
        self.bytes += u64::from(segment.length);
        if segment.is_repeated() {
            let too_soon = self.least_round_trip.is_some_and(|least| self.now.since(segment.at) < least);
            if too_soon || self.echoed_before.is_some_and(|before| segment.at >= before) {
                return;
            }
        } else {
            self.lowest_original = Some(self.lowest_original.map_or(segment.start, |low| low.min(segment.start)));
            self.first_original = self.first_original.or(Some(segment.at));
        }
        self.newest = self.newest.max(Some(Newest { at: segment.at, end: segment.end() }));
    }
}

/// The segments, and what is known of them.
#[derive(Debug, Default)]
pub struct Scoreboard {
    segments: VecDeque<Sent>,
    sacked: RangeSet<Sequence>,
    /// Bytes in segments that are acknowledged selectively.
    sacked_bytes: u64,
    /// Bytes in the network.
    pipe: u64,
    /// Segments that are lost and not sent again since.
    waiting: u32,
    /// Everything below was looked at for losses by counting.
    examined: Sequence,
    /// Where the search for a segment to repair goes on.
    repair_from: Sequence,
    /// Where it ends: no segment above was taken for lost.
    repair_end: Sequence,
    /// Segments whose retransmission was lost too; an entry whose segment has changed since counts for nothing.
    lost_again: VecDeque<Sequence>,
    /// Retransmissions in the order of their times, for those who tell losses by time; entries as above.
    repeating: VecDeque<(Sequence, Instant)>,
    /// Parts of a selective acknowledgement that are new; kept for its memory.
    fresh: Vec<Range<Sequence>>,
}

impl Scoreboard {
    /// Bytes in the network.
    #[inline]
    pub const fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Bytes that arrived out of order.
    #[inline]
    pub const fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// One past the highest byte that is acknowledged selectively.
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

    /// Adds a segment that is sent for the first time; it follows the last one.
    #[inline]
    pub fn send(&mut self, now: Instant, start: Sequence, length: u32, fin: bool) {
        debug_assert!(length > 0 && self.segments.back().is_none_or(|last| last.end() == start));
        self.segments.push_back(Sent { start, at: now, length, state: if fin { Sent::FIN } else { 0 } });
        self.pipe += u64::from(length);
    }

    /// Takes note that a segment is sent again.
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
            if segment.is_sacked() {
                self.sacked_bytes -= u64::from(segment.length);
            } else {
                delivery.arrived(&segment);
                delivery.first_acknowledged.get_or_insert(segment.at);
            }
            // A segment before it that was sent later may be what the acknowledgement waited for.
            latest = latest.max(segment.at);
            let clear = segment.end() == edge && segment.at == latest && !segment.is_repeated();
            delivery.last_acknowledged = clear.then_some(segment.at);
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(edge);
        }
        self.forget_stale();
    }

    /// The receiver has everything in `block`, which lies within what is outstanding.
    pub fn acknowledge_selectively(&mut self, block: Range<Sequence>, delivery: &mut Delivery) {
        let mut fresh = std::mem::take(&mut self.fresh);
        let merged = self.sacked.insert(block, |part| fresh.push(part));
        for part in fresh.drain(..) {
            let mut index = self.index_of(part.start);
            while let Some(segment) = self.segments.get_mut(index).filter(|segment| segment.start < part.end) {
                // A segment of which only a part has arrived has not (RFC 6675 §3).
                if merged.contains(Range::new(segment.start, segment.end())) && !segment.is_sacked() {
                    delivery.arrived(segment);
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

    /// Forgets all selective acknowledgements: a receiver may take them back (RFC 2018 §8).
    pub fn forget_sacked(&mut self) {
        self.sacked.clear();
        self.sacked_bytes = 0;
        for segment in &mut self.segments {
            if segment.is_sacked() {
                // As if it had been lost: it is sent again unless it is acknowledged.
                segment.state = (segment.state & !(Sent::SACKED | Sent::REPEATING)) | Sent::LOST;
                self.waiting += 1;
            }
        }
        self.look_again();
    }

    /// Index of the segment that holds `sequence`, or of the next one above it.
    pub fn index_of(&self, sequence: Sequence) -> usize {
        /// Steps to walk from the guess before bisecting.
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
        // Segments are mostly of one size: interpolate, and walk the rest of the way.
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

    /// Frees entries of segments that have been acknowledged, where that is cheap.
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
