//! Which segments are taken for lost.

use airpath_core::Instant;

use super::{Newest, Scoreboard, Sent};
use crate::sequence::Sequence;

impl Scoreboard {
    /// Takes for lost what has `threshold` separate ranges above it that arrived, or more bytes than fit into one segment
    /// less than that (`IsLost`, RFC 6675 §4). Says whether anything is newly lost.
    pub fn find_losses_by_count(&mut self, threshold: u32, segment_size: u32) -> bool {
        let enough_bytes = u64::from(threshold.saturating_sub(1)) * u64::from(segment_size);
        let mut bytes = 0;
        let mut count = 0;
        let edge = self.sacked.iter().rev().find(|range| {
            bytes += range.end - range.start;
            count += 1;
            count >= threshold || bytes > enough_bytes
        });
        edge.is_some_and(|edge| self.lose_below(edge.start))
    }

    /// Takes for lost all that lies at least `threshold` segments below the highest byte that arrived (forward
    /// acknowledgement, Mathis and Mahdavi 1996).
    pub fn find_losses_by_distance(&mut self, threshold: u32, segment_size: u32) -> bool {
        let distance = u64::from(threshold) * u64::from(segment_size);
        self.highest_sacked().is_some_and(|highest| self.lose_below(highest.saturating_sub(distance)))
    }

    /// Takes the oldest segment for lost.
    pub fn lose_first(&mut self) {
        if let Some(first) = self.segments.front().copied() {
            if first.is(Sent::REPEATING) {
                self.lose_retransmission(0);
            } else {
                self.lose(0);
            }
        }
    }

    /// Takes all for lost that has not arrived, retransmissions too: the timer went off (RFC 6675 §5.1).
    pub fn lose_all(&mut self) {
        self.waiting = 0;
        for segment in &mut self.segments {
            if !segment.is_sacked() {
                segment.state = (segment.state & !Sent::REPEATING) | Sent::LOST;
                self.waiting += 1;
            }
        }
        self.pipe = 0;
        self.repeating.clear();
        self.look_again();
    }

    /// Nothing counts as lost any more: it was delayed.
    pub fn lose_nothing(&mut self) {
        for segment in &mut self.segments {
            if segment.is(Sent::LOST) {
                self.pipe -= segment.in_network();
                segment.state &= !Sent::LOST;
                self.pipe += segment.in_network();
            }
        }
        self.waiting = 0;
        self.look_again();
        self.repair_end = 0;
    }

    /// Takes for lost what was sent before `newest`, which arrived, and so long before `now` that `is_late` says so of its
    /// time (RFC 8985 §6.2 step 5). Originals are looked at in their order, which is that of their times, from `from` on;
    /// retransmissions in that of theirs. Returns whether anything is newly lost, and whether something is left that may
    /// become late.
    pub fn find_losses_by_time(
        &mut self,
        from: &mut Sequence,
        newest: Newest,
        is_late: impl Fn(Instant) -> bool,
    ) -> (bool, bool) {
        let (mut found, mut open) = (false, false);
        let mut index = self.index_of(*from);
        while let Some(segment) = self.segments.get(index).copied() {
            *from = segment.start;
            if segment.state & (Sent::SACKED | Sent::LOST | Sent::REPEATED) == 0 {
                if (Newest { at: segment.at, end: segment.end() }) >= newest {
                    break;
                }
                if !is_late(segment.at) {
                    open = true;
                    break;
                }
                self.lose(index);
                found = true;
            }
            *from = segment.end();
            index += 1;
        }
        while let Some((start, at)) = self.repeating.front().copied() {
            let index = self.index_of(start);
            let current = self.segments.get(index).copied();
            if let Some(segment) = current.filter(|segment| segment.start == start && segment.at == at)
                && !segment.is_sacked()
                && segment.is(Sent::REPEATING)
            {
                // What was sent at the same instant may have been sent before it.
                if at >= newest.at {
                    break;
                }
                if !is_late(at) {
                    open = true;
                    break;
                }
                self.lose_retransmission(index);
                found = true;
            }
            self.repeating.pop_front();
        }
        (found, open)
    }

    /// Takes for lost what ends at or below `edge` and has not arrived.
    fn lose_below(&mut self, edge: Sequence) -> bool {
        if edge <= self.examined {
            return false;
        }
        let mut found = false;
        let mut index = self.index_of(self.examined);
        while let Some(segment) = self.segments.get(index).filter(|segment| segment.end() <= edge) {
            if segment.state & (Sent::SACKED | Sent::LOST) == 0 {
                self.lose(index);
                found = true;
            }
            index += 1;
        }
        self.examined = self.segments.get(index).map_or(edge, |segment| segment.start);
        found
    }

    /// The first transmission of a segment is lost.
    fn lose(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.state & (Sent::SACKED | Sent::LOST) != 0 {
            return;
        }
        self.pipe -= u64::from(segment.length);
        segment.state |= Sent::LOST;
        if !segment.is(Sent::REPEATING) {
            let (start, end) = (segment.start, segment.end());
            self.waiting += 1;
            self.repair_end = self.repair_end.max(end);
            if start < self.repair_from {
                self.lost_again.push_back(start);
            }
        }
    }

    /// The retransmission of a segment is lost, and so was the first transmission.
    fn lose_retransmission(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        self.pipe -= segment.in_network();
        segment.state = (segment.state & !Sent::REPEATING) | Sent::LOST;
        self.waiting += 1;
        self.lost_again.push_back(segment.start);
    }

    /// All pointers go back to the oldest segment.
    pub(super) fn look_again(&mut self) {
        let (first, end) = match (self.segments.front(), self.segments.back()) {
            (Some(first), Some(last)) => (first.start, last.end()),
            _ => (0, 0),
        };
        self.examined = first;
        self.repair_from = first;
        self.repair_end = end;
        self.lost_again.clear();
    }
}
