//! A set of ranges of stream offsets.

/// Ranges kept at most; of more, the lowest are forgotten.
const MAXIMUM: usize = 256;

/// Ranges in order, which neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<(i64, i64)>);

impl Ranges {
    /// Adds `start` to before `end`, and names each part that was not in the set.
    pub(crate) fn insert(&mut self, start: i64, end: i64, mut news: impl FnMut(i64, i64)) {
        if start >= end {
            return;
        }
        // Those that touch it or overlap it.
        let first = self.0.partition_point(|&(_, to)| to < start);
        let mut last = first;
        let (mut low, mut high, mut at) = (start, end, start);
        while let Some(&(from, to)) = self.0.get(last).filter(|&&(from, _)| from <= end) {
            if at < from {
                news(at, from);
            }
            at = at.max(to);
            low = low.min(from);
            high = high.max(to);
            last += 1;
        }
        if at < end {
            news(at, end);
        }
        if first == last {
            if self.0.len() == MAXIMUM {
                self.0.remove(0);
                self.0.insert(first.saturating_sub(1), (low, high));
            } else {
                self.0.insert(first, (low, high));
            }
        } else {
            self.0[first] = (low, high);
            self.0.drain(first + 1..last);
        }
    }

    /// Forgets what lies below `offset`.
    pub(crate) fn remove_below(&mut self, offset: i64) {
        let gone = self.0.partition_point(|&(_, to)| to <= offset);
        self.0.drain(..gone);
    }

    /// One past the highest, if there is any.
    pub(crate) fn highest(&self) -> Option<i64> {
        self.0.last().map(|&(_, to)| to)
    }

    /// Whether all of `start` to before `end` is in the set.
    pub(crate) fn contains(&self, start: i64, end: i64) -> bool {
        let index = self.0.partition_point(|&(_, to)| to < end);
        self.0.get(index).is_some_and(|&(from, to)| from <= start && end <= to)
    }

    /// How much lies in the set.
    pub(crate) fn total(&self) -> i64 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_range_that_joins_two_is_news_in_the_middle() {
        let mut ranges = Ranges::default();
        ranges.insert(0, 10, |_, _| {});
        ranges.insert(20, 30, |_, _| {});
        let mut news = Vec::new();
        ranges.insert(0, 30, |from, to| news.push((from, to)));
        assert_eq!(news, [(10, 20)]);
        assert!(ranges.contains(0, 30) && !ranges.contains(0, 31));
    }

    proptest! {
        #[test]
        fn counts_like_a_set(inserted in prop::collection::vec((0..200_i64, 0..20_i64), 0..40)) {
            let mut ranges = Ranges::default();
            let mut set = std::collections::BTreeSet::new();
            for (start, length) in inserted {
                let mut news = 0;
                ranges.insert(start, start + length, |from, to| news += to - from);
                let fresh = (start..start + length).filter(|&at| set.insert(at)).count();
                prop_assert_eq!(news, fresh as i64);
                prop_assert_eq!(ranges.total(), set.len() as i64);
                prop_assert!(ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
