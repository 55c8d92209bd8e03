//! Which bytes of a stream were seen.

use std::collections::VecDeque;

/// Gaps that are remembered. Nobody's TCP leaves as many; whoever does it on purpose has the oldest taken for seen.
const MOST: usize = 1024;

/// A set of stream offsets, as ranges in order of which none touches another.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: VecDeque<(i64, i64)>,
}

impl Ranges {
    /// Adds the bytes from `start` up to but not including `end`, and returns how many of them are new.
    pub fn insert(&mut self, start: i64, end: i64) -> u64 {
        if start >= end {
            return 0;
        }
        // Nearly always it goes on where the last range ends.
        let first = match self.ranges.back_mut() {
            Some((_, last)) if *last == start => {
                *last = end;
                return (end - start) as u64;
            }
            _ => self.ranges.partition_point(|(_, before)| *before < start),
        };
        let beyond = self.ranges.partition_point(|(from, _)| *from <= end);
        let (mut merged, mut known) = ((start, end), 0);
        for (from, to) in self.ranges.range(first..beyond) {
            known += ((*to).min(end) - (*from).max(start)).max(0);
            merged = (merged.0.min(*from), merged.1.max(*to));
        }
        if first == beyond {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..beyond);
        }
        if self.ranges.len() > MOST
            && let Some((from, _)) = self.ranges.pop_front()
            && let Some(next) = self.ranges.front_mut()
        {
            next.0 = from;
        }
        (end - start - known) as u64
    }

    /// Up to where all bytes from 0 on are there.
    pub fn prefix(&self) -> i64 {
        self.ranges.front().map_or(0, |(from, to)| if *from <= 0 { (*to).max(0) } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_set(parts in prop::collection::vec((0usize..80, 0usize..20), 1..60)) {
            let (mut ranges, mut set) = (Ranges::default(), [false; 100]);
            for (start, length) in parts {
                let fresh = set[start..start + length].iter().filter(|seen| !**seen).count() as u64;
                prop_assert_eq!(ranges.insert(start as i64, (start + length) as i64), fresh);
                set[start..start + length].fill(true);
                prop_assert_eq!(ranges.prefix() as usize, set.iter().take_while(|seen| **seen).count());
                let apart = ranges.ranges.iter().zip(ranges.ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0);
                prop_assert!(apart);
            }
        }
    }

    #[test]
    fn gaps_beyond_the_most_are_forgotten_from_the_oldest_on() {
        let mut ranges = Ranges::default();
        (0..MOST as i64 + 1).for_each(|index| assert_eq!(ranges.insert(2 * index, 2 * index + 1), 1));
        assert_eq!(ranges.ranges.len(), MOST);
        assert_eq!(ranges.prefix(), 3, "the first gap is taken for seen");
    }
}
