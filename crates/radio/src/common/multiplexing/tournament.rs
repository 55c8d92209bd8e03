//! The earliest of many wake-ups.

use airpath_core::Instant;

/// The earliest of a fixed number of wake-ups, and whose it is: a binary tree in which each node
/// has the earlier of its two children. A change takes as many steps as there are levels.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// The root is at 1, the children of n are at 2n and 2n+1; the second half are the leaves.
    nodes: Vec<(Instant, u32)>,
}

impl Tournament {
    /// A tree with this number of entries, all without a wake-up.
    pub fn new(entries: usize) -> Self {
        let leaves = entries.next_power_of_two();
        Self { nodes: (0..2 * leaves).map(|node| (Instant::FAR_FUTURE, (node % leaves) as u32)).collect() }
    }

    /// The earliest, and whose it is; of those at the same time the one with the lowest index.
    #[inline]
    pub fn first(&self) -> Option<(usize, Instant)> {
        let (wakeup, index) = self.nodes[1];
        (wakeup < Instant::FAR_FUTURE).then_some((index as usize, wakeup))
    }

    /// This entry wakes up then, or not at all.
    #[inline]
    pub fn set(&mut self, index: usize, wakeup: Option<Instant>) {
        let mut node = self.nodes.len() / 2 + index;
        self.nodes[node].0 = wakeup.unwrap_or(Instant::FAR_FUTURE);
        while node > 1 {
            let winner = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == winner {
                break;
            }
            self.nodes[node] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_wins_and_ties_go_to_the_first() {
        let at = Instant::from_nanos;
        for entries in 1..=9 {
            let mut tournament = Tournament::new(entries);
            assert_eq!(tournament.first(), None);
            let mut wakeups = vec![None; entries];
            for step in 0..200u64 {
                let index = (step * 7 % entries as u64) as usize;
                let wakeup = (step % 5 > 0).then_some(at(step * 13 % 17));
                wakeups[index] = wakeup;
                tournament.set(index, wakeup);
                let earliest =
                    (0..entries).filter_map(|i| wakeups[i].map(|at| (at, i))).min().map(|(at, index)| (index, at));
                assert_eq!(tournament.first(), earliest);
            }
        }
    }
}
