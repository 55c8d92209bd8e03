//! The mobiles that can get a new block, in the order of the scheduler.
//!
//! A scheduler with [ranks](Scheduler::rank) has its candidates in a tree with the best at the
//! root: a change takes as many steps as there are levels. Any other gets the list of all.

use std::cmp::Ordering;

use crate::common::shared_channel::harq::MAX_CQI;
use crate::common::shared_channel::scheduler::{Candidate, Scheduler};

/// The candidates of a cell.
#[derive(Debug)]
pub struct Candidates {
    /// By mobile.
    all: Vec<Option<Candidate>>,
    /// How many report each CQI, and a bit for each that is reported.
    levels: [u32; MAX_CQI as usize + 1],
    reported: u32,
    order: Order,
    revision: u64,
}

#[derive(Debug)]
enum Order {
    /// The root is at 1, the children of n are at 2n and 2n+1; the second half are the leaves. A
    /// node has the better of its two children. `taken` are those that the TTI has had.
    Ranked { nodes: Vec<Entry>, taken: Vec<Entry> },
    /// Those that the TTI has not had, by mobile.
    Listed(Vec<Candidate>),
}

/// A candidate in the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    rank: f64,
    waiting_since: u64,
    user: u32,
}

impl Entry {
    /// No candidate: worse than all.
    const NONE: Self = Self { rank: f64::NEG_INFINITY, waiting_since: u64::MAX, user: u32::MAX };

    fn of(candidate: &Candidate, rank: f64) -> Self {
        Self { rank, waiting_since: candidate.waiting_since, user: candidate.user }
    }

    /// The better of two: the higher rank, then by turn.
    fn better(self, other: Self) -> Self {
        let by_turn = || (self.waiting_since, self.user).cmp(&(other.waiting_since, other.user));
        match other.rank.total_cmp(&self.rank).then_with(by_turn) {
            Ordering::Greater => other,
            Ordering::Less | Ordering::Equal => self,
        }
    }
}

impl Candidates {
    /// None of this number of `users` yet.
    pub fn new(users: usize, scheduler: &dyn Scheduler) -> Self {
        let anyone = Candidate { user: 0, level: 1, pdus: 1, waiting_since: 0 };
        let order = if users > 0 && scheduler.rank(&anyone).is_some() {
            Order::Ranked { nodes: vec![Entry::NONE; 2 * users.next_power_of_two()], taken: Vec::new() }
        } else {
            Order::Listed(Vec::new())
        };
        Self {
            all: vec![None; users],
            levels: [0; MAX_CQI as usize + 1],
            reported: 0,
            order,
            revision: scheduler.revision(),
        }
    }

    /// Adds one that is not among them.
    pub fn insert(&mut self, candidate: Candidate, scheduler: &dyn Scheduler) {
        self.all[candidate.user as usize] = Some(candidate);
        self.levels[usize::from(candidate.level)] += 1;
        self.reported |= 1 << candidate.level;
        if let Order::Ranked { nodes, .. } = &mut self.order {
            let rank = scheduler.rank(&candidate).expect("a scheduler ranks all or none");
            set(nodes, candidate.user as usize, Entry::of(&candidate, rank));
        }
    }

    /// Removes the one of a mobile, if it is among them.
    pub fn remove(&mut self, index: usize) {
        let Some(candidate) = self.all[index].take() else { return };
        let count = &mut self.levels[usize::from(candidate.level)];
        *count -= 1;
        if *count == 0 {
            self.reported &= !(1 << candidate.level);
        }
        if let Order::Ranked { nodes, .. } = &mut self.order {
            set(nodes, index, Entry::NONE);
        }
    }

    /// A mobile was served on another carrier: its rank has changed.
    pub fn served_elsewhere(&mut self, index: usize, scheduler: &dyn Scheduler) {
        if let (Some(candidate), Order::Ranked { nodes, .. }) = (&self.all[index], &mut self.order) {
            let rank = scheduler.rank(candidate).expect("a scheduler ranks all or none");
            set(nodes, index, Entry::of(candidate, rank));
        }
    }

    /// The highest CQI that one of them reports.
    pub fn best_level(&self) -> Option<u8> {
        self.reported.checked_ilog2().map(|level| level as u8)
    }

    /// A TTI begins to take them.
    pub fn begin(&mut self) {
        if let Order::Listed(list) = &mut self.order {
            list.extend(self.all.iter().flatten());
        }
    }

    /// The next one in the order of the scheduler.
    pub fn next(&mut self, scheduler: &mut dyn Scheduler) -> Option<Candidate> {
        match &mut self.order {
            Order::Ranked { nodes, taken } => {
                let best = nodes[1];
                let candidate = *self.all.get(best.user as usize)?;
                set(nodes, best.user as usize, Entry::NONE);
                taken.push(best);
                candidate
            }
            Order::Listed(list) if list.is_empty() => None,
            Order::Listed(list) => Some(list.remove(scheduler.choose(list))),
        }
    }

    /// The TTI has had the last one: all are there again.
    pub fn end(&mut self) {
        match &mut self.order {
            Order::Ranked { nodes, taken } => {
                taken.drain(..).for_each(|entry| set(nodes, entry.user as usize, entry));
            }
            Order::Listed(list) => list.clear(),
        }
    }

    /// Ranks all of them again, if the scheduler has changed the ranks of all.
    pub fn rank_again(&mut self, scheduler: &dyn Scheduler) {
        if scheduler.revision() == self.revision {
            return;
        }
        self.revision = scheduler.revision();
        if let Order::Ranked { nodes, .. } = &mut self.order {
            for candidate in self.all.iter().flatten() {
                let rank = scheduler.rank(candidate).expect("a scheduler ranks all or none");
                set(nodes, candidate.user as usize, Entry::of(candidate, rank));
            }
        }
    }
}

/// Changes a leaf of the tree.
fn set(nodes: &mut [Entry], leaf: usize, entry: Entry) {
    let mut node = nodes.len() / 2 + leaf;
    nodes[node] = entry;
    while node > 1 {
        let better = nodes[node].better(nodes[node ^ 1]);
        node /= 2;
        if nodes[node] == better {
            break;
        }
        nodes[node] = better;
    }
}
