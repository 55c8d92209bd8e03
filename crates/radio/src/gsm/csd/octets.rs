//! A stream of octets, waiting or in flight. It stores the number of octets of each PPP frame.

use std::collections::VecDeque;

/// Octets that follow each other and belong to the same PPP frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The frame, counted from zero.
    pub frame: u64,
    /// How many.
    pub octets: u32,
}

/// Octets in the order in which they go on.
#[derive(Clone, Debug, Default)]
pub struct Octets {
    runs: VecDeque<Run>,
    count: u64,
    /// All that ever came in.
    entered: u64,
}

impl Octets {
    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// How many ever came in: the position in the stream of the next one.
    pub const fn entered(&self) -> u64 {
        self.entered
    }

    /// Puts some at the end.
    pub fn push(&mut self, run: Run) {
        self.count += u64::from(run.octets);
        self.entered += u64::from(run.octets);
        match self.runs.back_mut() {
            Some(last) if last.frame == run.frame => last.octets += run.octets,
            _ => self.runs.push_back(run),
        }
    }

    /// Takes the first `octets`, or all if there are fewer, and calls `each` with them.
    pub fn take(&mut self, mut octets: u64, mut each: impl FnMut(Run)) {
        while octets > 0
            && let Some(first) = self.runs.front_mut()
        {
            let taken = Run { octets: first.octets.min(u32::try_from(octets).unwrap_or(u32::MAX)), ..*first };
            first.octets -= taken.octets;
            if first.octets == 0 {
                self.runs.pop_front();
            }
            octets -= u64::from(taken.octets);
            self.count -= u64::from(taken.octets);
            each(taken);
        }
    }

    /// Takes all before `position` in the stream.
    pub fn take_before(&mut self, position: u64, each: impl FnMut(Run)) {
        let first = self.entered - self.count;
        self.take(position.saturating_sub(first), each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_leave_in_their_order() {
        let mut octets = Octets::default();
        octets.push(Run { frame: 0, octets: 30 });
        octets.push(Run { frame: 1, octets: 10 });
        octets.push(Run { frame: 1, octets: 10 });
        let mut taken = Vec::new();
        octets.take(40, |run| taken.push((run.frame, run.octets)));
        assert_eq!(taken, [(0, 30), (1, 10)]);
        assert_eq!((octets.count(), octets.entered()), (10, 50));
        taken.clear();
        octets.take_before(45, |run| taken.push((run.frame, run.octets)));
        assert_eq!(taken, [(1, 5)]);
        octets.take_before(45, |_| panic!("they are gone"));
        octets.take(99, |run| assert_eq!(run.octets, 5));
        assert_eq!(octets.count(), 0);
    }
}
