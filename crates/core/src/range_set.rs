//! A set of numbers as ranges: the sequence numbers that a receiver holds, or that were
//! reported to a sender.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Numbers from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range<T> {
    /// The first.
    pub start: T,
    /// One past the last.
    pub end: T,
}

impl<T> Range<T> {
    /// From `start` up to but not including `end`.
    #[inline]
    pub const fn new(start: T, end: T) -> Self {
        Self { start, end }
    }
}

impl<T: Copy + Ord> Range<T> {
    /// Whether there is no number in it.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Whether every number of `other` is in it.
    #[inline]
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A set of numbers: ranges in order, none empty, none touching another.
///
/// Work at either end takes constant time, elsewhere a range is found by bisection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RangeSet<T> {
    ranges: VecDeque<Range<T>>,
}

impl<T> Default for RangeSet<T> {
    fn default() -> Self {
        Self { ranges: VecDeque::new() }
    }
}

impl<T: Copy + Ord> RangeSet<T> {
    /// Whether there is no number in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Ranges in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The lowest range.
    #[inline]
    pub fn first(&self) -> Option<Range<T>> {
        self.ranges.front().copied()
    }

    /// The highest range.
    #[inline]
    pub fn last(&self) -> Option<Range<T>> {
        self.ranges.back().copied()
    }

    /// The ranges, in order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<T>> + '_ {
        self.ranges.iter().copied()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Removes the lowest range, and returns it.
    pub fn pop_first(&mut self) -> Option<Range<T>> {
        self.ranges.pop_front()
    }

    /// Adds `new`, calls `added` with each part of it that was not in the set, in order, and
    /// returns the range that contains it now. `new` must not be empty.
    pub fn insert(&mut self, new: Range<T>, mut added: impl FnMut(Range<T>)) -> Range<T> {
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
                added(Range::new(known, range.start));
            }
            known = known.max(range.end);
            merged = Range::new(merged.start.min(range.start), merged.end.max(range.end));
            next += 1;
        }
        if known < new.end {
            added(Range::new(known, new.end));
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

    /// Removes every number below `edge`.
    #[inline]
    pub fn remove_below(&mut self, edge: T) {
        while let Some(first) = self.ranges.front_mut() {
            if first.end > edge {
                first.start = first.start.max(edge);
                break;
            }
            self.ranges.pop_front();
        }
    }

    /// The range that contains all of `part`.
    #[inline]
    pub fn containing(&self, part: Range<T>) -> Option<Range<T>> {
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
        let mut ranges = RangeSet::default();
        let mut add = |start, end| {
            let mut added = Vec::new();
            let merged = ranges.insert(Range::new(start, end), |part| added.push((part.start, part.end)));
            ((merged.start, merged.end), added)
        };
        assert_eq!(add(10, 20), ((10, 20), vec![(10, 20)]));
        assert_eq!(add(30, 40), ((30, 40), vec![(30, 40)]));
        assert_eq!(add(20, 25), ((10, 25), vec![(20, 25)]));
        assert_eq!(add(5, 50), ((5, 50), vec![(5, 10), (25, 30), (40, 50)]));
        assert_eq!(add(6, 7), ((5, 50), vec![]));
        ranges.remove_below(8);
        assert_eq!(ranges.first(), Some(Range::new(8, 50)));
        assert_eq!(ranges.containing(Range::new(8, 50)), ranges.first());
        assert_eq!(ranges.containing(Range::new(7, 9)), None);
        assert_eq!(ranges.pop_first(), Some(Range::new(8, 50)));
        assert!(ranges.is_empty() && ranges.last().is_none());
    }

    proptest! {
        /// Against an array of flags, with numbers of either sign.
        #[test]
        fn ranges_equal_a_naive_set(parts in prop::collection::vec((0usize..60, 1usize..20), 1..40), edge in 0usize..90) {
            let number = |index: usize| index as i64 - 45;
            let index = |number: i64| (number + 45) as usize;
            let (mut ranges, mut set) = (RangeSet::default(), [false; 90]);
            for (start, length) in parts {
                let end = (start + length).min(90);
                let missing: Vec<i64> = (start..end).filter(|at| !set[*at]).map(number).collect();
                let mut added = Vec::new();
                let merged = ranges.insert(Range::new(number(start), number(end)), |part| added.extend(part.start..part.end));
                prop_assert_eq!(added, missing);
                set[start..end].fill(true);
                prop_assert!(set[index(merged.start)..index(merged.end)].iter().all(|held| *held));
                let whole = |part: Range<i64>| set[index(part.start)..index(part.end)].iter().all(|held| *held);
                for (from, to) in [(0, 5), (start, end), (start.saturating_sub(1), end), (start, (end + 1).min(90))] {
                    let part = Range::new(number(from), number(to));
                    prop_assert_eq!(ranges.containing(part).is_some(), whole(part));
                }
            }
            ranges.remove_below(number(edge));
            set[..edge].fill(false);
            let mut ours = [false; 90];
            ranges.iter().for_each(|range| ours[index(range.start)..index(range.end)].fill(true));
            prop_assert_eq!(ours, set);
            prop_assert_eq!(ranges.len(), ranges.iter().count());
            prop_assert_eq!((ranges.first(), ranges.last()), (ranges.iter().next(), ranges.iter().next_back()));
            prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(below, above)| below.end < above.start));
        }
    }
}
