//! The times at which a resource of a carrier is taken.

use std::collections::VecDeque;

use airpath_core::Instant;
use airpath_core::Span;

/// Intervals that are taken, in the order of time; they do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    taken: VecDeque<(Instant, Instant)>,
}

impl Calendar {
    /// The first time from `from` on from which the resource is free for `length`.
    pub fn first_free(&self, from: Instant, length: Span) -> Instant {
        let mut at = from;
        let first = self.taken.partition_point(|(_, end)| *end <= from);
        for (start, end) in self.taken.range(first..) {
            if at + length <= *start {
                break;
            }
            at = at.max(*end);
        }
        at
    }

    /// Whether nothing is taken from `start` to `end`.
    pub fn is_free(&self, start: Instant, end: Instant) -> bool {
        let first = self.taken.partition_point(|(_, other)| *other <= start);
        self.taken.get(first).is_none_or(|(other, _)| *other >= end)
    }

    /// Takes the resource from `start` to `end`, where it is free.
    pub fn take(&mut self, start: Instant, end: Instant) {
        debug_assert!(self.is_free(start, end), "taken twice");
        let index = self.taken.partition_point(|(other, _)| *other < start);
        self.taken.insert(index, (start, end));
    }

    /// Forgets what has ended by `now`.
    pub fn forget_before(&mut self, now: Instant) {
        while self.taken.front().is_some_and(|(_, end)| *end <= now) {
            self.taken.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn what_is_taken_is_not_free() {
        let mut calendar = Calendar::default();
        calendar.take(at(10), at(20));
        calendar.take(at(25), at(30));
        let free = |from, length| calendar.first_free(at(from), Span::from_millis(length));
        assert_eq!(
            [free(0, 10), free(0, 11), free(12, 5), free(12, 6), free(31, 9)],
            [at(0), at(30), at(20), at(30), at(31)]
        );
        assert!(
            calendar.is_free(at(20), at(25)) && !calendar.is_free(at(20), at(26)) && !calendar.is_free(at(9), at(11))
        );
        calendar.forget_before(at(20));
        assert!(calendar.is_free(at(10), at(25)) && !calendar.is_free(at(29), at(35)));
    }
}
