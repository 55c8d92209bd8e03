//! Loss marking.

use airpath_core::Instant;

use super::{Newest, Range, Scoreboard, Sent};
use crate::sequence::Sequence;

impl Scoreboard {
    /// Marks segments as lost that have `threshold` separate ranges above them that arrived, or
    /// more bytes than `threshold` - 1 segments hold (`IsLost`, RFC 6675 §4). Returns whether any
    /// is newly lost.
    ///
    /// The sequence number of a FIN is no byte: two full segments with it are no three, as in
    /// Linux, which counts packets.
    pub fn find_losses_by_count(&mut self, threshold: u32, segment_size: u32) -> bool {
        let enough_bytes = u64::from(threshold.saturating_sub(1)) * u64::from(segment_size);
        let fin_end = self.segments.back().filter(|last| last.has_fin()).map(Sent::end);
        let mut bytes = 0;
        let mut count = 0;
        let edge = self.sacked.iter().rev().find(|range| {
            bytes += range.end - range.start - u64::from(fin_end == Some(range.end));
            count += 1;
            count >= threshold || bytes > enough_bytes
        });
        edge.is_some_and(|edge| self.lose_below(edge.start))
    }

    /// Marks everything as lost that lies at least `threshold` segments below the highest byte that
    /// arrived (forward acknowledgement, Mathis and Mahdavi 1996).
    pub fn find_losses_by_distance(&mut self, threshold: u32, segment_size: u32) -> bool {
        let distance = u64::from(threshold) * u64::from(segment_size);
        self.highest_sacked().is_some_and(|highest| self.lose_below(highest.saturating_sub(distance)))
    }

    /// Marks the oldest segment as lost.
    pub fn lose_first(&mut self) {
        if let Some(first) = self.segments.front().copied() {
            if first.is(Sent::REPEATING) {
                self.lose_retransmission(0);
            } else {
                self.lose(0);
            }
        }
    }

    /// Marks everything as lost that has not arrived, including retransmissions: the timer expired
    /// (RFC 6675 §5.1).
    pub fn lose_all(&mut self) {
        self.waiting = 0;
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if !segment.is_sacked() {
                if !segment.needs_repair() {
                    self.lost += 1;
                    if let Some(rate) = &mut self.rate {
                        rate.on_lost(index, self.lost);
                    }
                }
                segment.state = (segment.state & !Sent::REPEATING) | Sent::LOST;
                self.waiting += 1;
            }
        }
        self.pipe = 0;
        self.repeating.clear();
        self.restart_search();
        if let Some(rate) = &mut self.rate {
            rate.forget_presumed();
        }
    }

    /// Marks segments with more than `size` payload bytes that have not arrived as lost, and
    /// divides them into such of this size. Returns whether there are any.
    pub fn split(&mut self, size: u32) -> bool {
        let payload = |segment: &Sent| segment.length - u32::from(segment.has_fin());
        let is_large = |segment: &Sent| !segment.is_sacked() && payload(segment) > size;
        if !self.segments.iter().any(is_large) {
            return false;
        }
        let mut parents = Vec::new();
        for (index, segment) in std::mem::take(&mut self.segments).into_iter().enumerate() {
            if !is_large(&segment) {
                self.segments.push_back(segment);
                parents.push(index);
                continue;
            }
            self.pipe -= segment.in_network();
            self.waiting -= u32::from(segment.needs_repair());
            let state = (segment.state & !(Sent::REPEATING | Sent::FIN)) | Sent::LOST;
            let mut start = segment.start;
            while start < segment.end() {
                let left = (segment.end() - start) as u32;
                // A FIN belongs to the last payload.
                let is_last = left - u32::from(segment.has_fin()) <= size;
                let length = if is_last { left } else { size };
                let fin = if is_last { segment.state & Sent::FIN } else { 0 };
                let range = Range::new(start, start + u64::from(length));
                let state = if self.sacked.containing(range).is_some() {
                    // It has arrived, though its segment has not as a whole.
                    self.sacked_bytes += u64::from(length);
                    (state & !Sent::LOST) | Sent::SACKED
                } else {
                    self.waiting += 1;
                    state
                };
                self.segments.push_back(Sent { start, length, state: state | fin, ..segment });
                parents.push(index);
                start += u64::from(length);
            }
        }
        if let Some(rate) = &mut self.rate {
            rate.split(parents.into_iter());
        }
        self.restart_search();
        true
    }

    /// Clears all loss marks: the segments were delayed.
    pub fn lose_nothing(&mut self) {
        for segment in &mut self.segments {
            if segment.is(Sent::LOST) {
                self.pipe -= segment.in_network();
                segment.state &= !Sent::LOST;
                self.pipe += segment.in_network();
            }
        }
        self.waiting = 0;
        self.restart_search();
        self.repair_end = 0;
    }

    /// Marks segments as lost that were sent before `newest`, which arrived, and whose send time
    /// `is_late` (RFC 8985 §6.2 step 5). Checks originals in their order, which is that of their
    /// times, from `from` on; retransmissions in the order of their times, where the lower one of
    /// an instant is the earlier. The second of `newest` is the newest retransmission that arrived.
    /// Returns whether any is newly lost, and whether any may become late.
    pub fn find_losses_by_time(
        &mut self,
        from: &mut Sequence,
        [newest, newest_repeated]: [Newest; 2],
        is_late: impl Fn(Instant) -> bool,
    ) -> (bool, bool) {
        let (mut found, mut open) = (false, false);
        let mut index = self.index_of(*from);
        while let Some(segment) = self.segments.get(index).copied() {
            *from = segment.start;
            if segment.state & (Sent::SACKED | Sent::LOST | Sent::REPEATED) == 0 {
                if Newest::of(&segment) >= newest {
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
                // New data sent at the same instant may have been sent before it; a higher
                // retransmission was not (RACK_sent_after of RFC 8985 §6.2).
                if at >= newest.at && Newest::of(&segment) >= newest_repeated {
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

    /// Marks segments as lost that end at or below `edge` and have not arrived.
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

    /// Marks the first transmission of a segment as lost.
    fn lose(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.state & (Sent::SACKED | Sent::LOST) != 0 {
            return;
        }
        self.pipe -= u64::from(segment.length);
        self.lost += 1;
        if let Some(rate) = &mut self.rate {
            rate.on_lost(index, self.lost);
        }
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

    /// Marks the retransmission of a segment as lost, after the first transmission was.
    fn lose_retransmission(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        self.pipe -= segment.in_network();
        segment.state = (segment.state & !Sent::REPEATING) | Sent::LOST;
        self.lost += 1;
        if let Some(rate) = &mut self.rate {
            rate.on_lost(index, self.lost);
        }
        self.waiting += 1;
        self.lost_again.push_back(segment.start);
    }

    /// Resets all search pointers to the oldest segment.
    pub(super) fn restart_search(&mut self) {
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
