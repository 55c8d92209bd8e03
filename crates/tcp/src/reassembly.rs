//! The receiver's side of the sequence space: what has come, in order and beyond gaps.

use std::collections::VecDeque;

use crate::segment::Position;

/// Ranges received beyond the first gap, and the place of that gap.
///
/// A segment costs O(1) when it extends what came last or fills the first gap, which is what
/// senders do; elsewhere it costs a search.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    next: Position,
    /// Disjoint, not touching, in order, all beyond `next`.
    ranges: VecDeque<(Position, Position)>,
    /// The start of the ranges that changed last, the latest first (RFC 2018 §4).
    recent: [Position; 4],
}

/// What a segment brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Whether it was the next in order.
    pub in_order: bool,
    /// The part that had come before, if any: to be reported by D-SACK (RFC 2883).
    pub duplicate: Option<(Position, Position)>,
    /// Whether it filled all or part of a gap.
    pub filled: bool,
}

impl Reassembly {
    /// Waits for `next`.
    pub fn new(next: Position) -> Self {
        Self { next, ..Self::default() }
    }

    /// The first position that has not come.
    pub const fn next(&self) -> Position {
        self.next
    }

    /// Whether something lies beyond a gap.
    pub fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Takes `start..end`.
    pub fn insert(&mut self, start: Position, end: Position) -> Arrival {
        if end <= self.next {
            return Arrival { in_order: false, duplicate: Some((start, end)), filled: false };
        }
        let had_gap = self.has_gap();
        if start <= self.next {
            let duplicate = (start < self.next).then_some((start, self.next));
            self.next = end;
            while let Some(&(first, last)) = self.ranges.front() {
                if first > self.next {
                    break;
                }
                self.next = self.next.max(last);
                self.ranges.pop_front();
            }
            return Arrival { in_order: true, duplicate, filled: had_gap };
        }
        let at = match self.ranges.back() {
            Some(&(_, last)) if last >= start => self.ranges.partition_point(|(_, last)| *last < start),
            _ => self.ranges.len(),
        };
        let mut merged = (start, end);
        let mut duplicate = None;
        let mut count = 0;
        while let Some(&(first, last)) = self.ranges.get(at + count) {
            if first > end {
                break;
            }
            if first < end && last > start && duplicate.is_none() {
                duplicate = Some((first.max(start), last.min(end)));
            }
            merged = (merged.0.min(first), merged.1.max(last));
            count += 1;
        }
        match count {
            0 => self.ranges.insert(at, merged),
            _ => {
                self.ranges[at] = merged;
                if count > 1 {
                    self.ranges.drain(at + 1..at + count);
                }
            }
        }
        self.note(merged.0);
        Arrival { in_order: false, duplicate, filled: count > 1 }
    }

    /// The blocks to report, the one that changed last first.
    pub fn blocks(&self) -> impl Iterator<Item = (Position, Position)> + '_ {
        let mut last = None;
        self.recent.iter().filter_map(move |start| {
            let at = self.ranges.partition_point(|(_, end)| *end <= *start);
            let block = self.ranges.get(at).filter(|(first, _)| first <= start).copied();
            let fresh = block.filter(|block| Some(*block) != last);
            last = block;
            fresh
        })
    }

    fn note(&mut self, start: Position) {
        let at = self.recent.iter().position(|known| *known == start).unwrap_or(self.recent.len() - 1);
        self.recent[..=at].rotate_right(1);
        self.recent[0] = start;
    }
}
