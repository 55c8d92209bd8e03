//! Sets of sequence numbers as ranges: what a receiver holds out of order, and what a sender knows of that.

use std::collections::VecDeque;

use crate::sequence::Sequence;

/// Sequence numbers from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: Sequence,
    pub end: Sequence,
}

impl Range {
    #[inline]
    pub const fn new(start: Sequence, end: Sequence) -> Self {
        Self { start, end }
    }

    #[inline]
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// Ranges in order, none touching another. Work at either end, where nearly all of it is, takes constant time; elsewhere
/// a range is found by bisection.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    ranges: VecDeque<Range>,
}

impl Ranges {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn first(&self) -> Option<Range> {
        self.ranges.front().copied()
    }

    pub fn last(&self) -> Option<Range> {
        self.ranges.back().copied()
    }

    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Adds `new`, calls `fresh` with each part of it that was not there, in order, and returns the range of which it is
    /// now a part.
    pub fn insert(&mut self, new: Range, mut fresh: impl FnMut(Range)) -> Range {
        debug_assert!(!new.is_empty());
        // The first range that touches or lies above the new one.
        let first = match self.ranges.back() {
            Some(last) if last.end < new.start => self.ranges.len(),
            Some(last) if last.start <= new.start => self.ranges.len() - 1,
            _ => self.ranges.partition_point(|range| range.end < new.start),
        };
        let mut merged = new;
        let mut known = new.start;
        let mut next = first;
        while let Some(range) = self.ranges.get(next).filter(|range| range.start <= new.end) {
            if known < range.start {
                fresh(Range::new(known, range.start));
            }
            known = known.max(range.end);
            merged = Range::new(merged.start.min(range.start), merged.end.max(range.end));
            next += 1;
        }
        if known < new.end {
            fresh(Range::new(known, new.end));
        }
        if first == next {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            if next > first + 1 {
                self.ranges.drain(first + 1..next);
            }
        }
        merged
    }

    /// Forgets everything below `edge`.
    #[inline]
    pub fn remove_below(&mut self, edge: Sequence) {
        while let Some(first) = self.ranges.front_mut() {
            if first.end > edge {
                first.start = first.start.max(edge);
                break;
            }
            self.ranges.pop_front();
        }
    }

    /// From the highest range downwards.
    pub fn downwards(&self) -> impl Iterator<Item = Range> + '_ {
        self.ranges.iter().rev().copied()
    }

    /// The range that holds all of `part`.
    #[cfg(any(test, feature = "testing"))]
    pub fn holding(&self, part: Range) -> Option<Range> {
        let above = self.ranges.partition_point(|range| range.end < part.end);
        self.ranges.get(above).copied().filter(|range| range.contains(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_merge_where_they_touch() {
        let mut ranges = Ranges::default();
        let mut add = |start, end| {
            let mut fresh = Vec::new();
            let merged = ranges.insert(Range::new(start, end), |part| fresh.push((part.start, part.end)));
            ((merged.start, merged.end), fresh)
        };
        assert_eq!(add(10, 20), ((10, 20), vec![(10, 20)]));
        assert_eq!(add(30, 40), ((30, 40), vec![(30, 40)]));
        assert_eq!(add(20, 25), ((10, 25), vec![(20, 25)]));
        assert_eq!(add(5, 50), ((5, 50), vec![(5, 10), (25, 30), (40, 50)]));
        assert_eq!(add(6, 7), ((5, 50), vec![]));
        ranges.remove_below(8);
        assert_eq!(ranges.first(), Some(Range::new(8, 50)));
        assert_eq!(ranges.holding(Range::new(8, 50)), ranges.first());
        assert_eq!(ranges.holding(Range::new(7, 9)), None);
    }

    proptest! {
        #[test]
        fn ranges_are_a_set(parts in prop::collection::vec((0usize..60, 1usize..20), 1..40), edge in 0u64..90) {
            let mut ranges = Ranges::default();
            let mut set = [false; 90];
            for (start, length) in parts {
                let end = (start + length).min(89);
                let mut fresh = 0;
                let merged = ranges.insert(Range::new(start as u64, end as u64 + 1), |part| {
                    prop_assert_fresh(&set, part);
                    fresh += part.end - part.start;
                });
                prop_assert_eq!(fresh as usize, set[start..=end].iter().filter(|held| !**held).count());
                set[start..=end].fill(true);
                prop_assert!(set[merged.start as usize..merged.end as usize].iter().all(|held| *held));
            }
            ranges.remove_below(edge);
            set[..edge as usize].fill(false);
            let mut ours = [false; 90];
            for range in &ranges.ranges {
                ours[range.start as usize..range.end as usize].fill(true);
            }
            prop_assert_eq!(ours, set);
            prop_assert!(ranges.ranges.iter().zip(ranges.ranges.iter().skip(1)).all(|(a, b)| a.end < b.start));
        }
    }

    fn prop_assert_fresh(set: &[bool], part: Range) {
        assert!(set[part.start as usize..part.end as usize].iter().all(|held| !held));
    }
}
