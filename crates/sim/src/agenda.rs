//! The event queue: who is to be called next, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use airpath_core::Instant;

/// Wake-ups of nodes, each with at most one that counts.
///
/// A node that finds its next wake-up later than the one on the agenda leaves that in place, is
/// called too early once, and asks again: a timer that is put off with every packet costs nothing
/// until it would have gone off.
#[derive(Debug)]
pub struct Agenda {
    // Ties are settled by node number, so that the order never depends on history.
    entries: BinaryHeap<Reverse<(Instant, u32)>>,
    wakeups: Vec<Instant>,
}

impl Agenda {
    /// An empty agenda for `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self { entries: BinaryHeap::with_capacity(nodes), wakeups: vec![Instant::FAR_FUTURE; nodes] }
    }

    /// Sees to it that `node` is called at `time` at the latest.
    #[inline]
    pub fn wake(&mut self, node: u32, time: Option<Instant>) {
        let Some(time) = time else { return };
        let wakeup = &mut self.wakeups[node as usize];
        if time < *wakeup {
            *wakeup = time;
            self.entries.push(Reverse((time, node)));
        }
    }

    /// The next node to call, and when; its wake-up is then spent.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, u32)> {
        while let Some(Reverse((time, node))) = self.entries.pop() {
            let wakeup = &mut self.wakeups[node as usize];
            if *wakeup == time {
                *wakeup = Instant::FAR_FUTURE;
                return Some((time, node));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Option<Instant> {
        Some(Instant::from_nanos(nanos))
    }

    #[test]
    fn calls_in_time_order_and_each_node_once() {
        let mut agenda = Agenda::new(3);
        agenda.wake(2, at(5));
        agenda.wake(1, at(7));
        agenda.wake(0, at(5));
        agenda.wake(1, at(3));
        agenda.wake(1, at(9));
        agenda.wake(0, None);
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop()).map(|(time, node)| (time.as_nanos(), node)).collect();
        assert_eq!(order, [(3, 1), (5, 0), (5, 2)]);
    }

    #[test]
    fn a_node_may_ask_again() {
        let mut agenda = Agenda::new(1);
        agenda.wake(0, at(3));
        assert_eq!(agenda.pop(), at(3).map(|time| (time, 0)));
        agenda.wake(0, at(4));
        assert_eq!(agenda.pop(), at(4).map(|time| (time, 0)));
        assert_eq!(agenda.pop(), None);
    }
}
