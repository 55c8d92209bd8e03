//! Which connection of a mobile sends next.

use std::collections::VecDeque;

use airpath_link::queue::DeficitRoundRobin;
use serde::{Deserialize, Serialize};

use crate::config::Discipline;

/// Bytes that a connection may send in each turn of deficit round robin: about one segment.
const QUANTUM: u32 = 1514;

/// Bytes that a connection may send in its first turn, before connections that have sent more:
/// ten segments, as `initial_quantum` of Linux' `sch_fq`.
const INITIAL_QUANTUM: u32 = 10 * QUANTUM;

/// The backlogged connections of a mobile, by their numbers, in an order of service.
#[derive(Debug, Serialize, Deserialize)]
pub enum Scheduler {
    /// Deficit round robin with new connections first (RFC 8290 §4).
    DeficitRoundRobin(DeficitRoundRobin),
    /// The connection at the front is next.
    RoundRobin(VecDeque<u32>),
    /// The data at the front is next: a connection, and bytes.
    Fifo(VecDeque<(u32, u64)>),
    /// The least is next: stored bytes, and the connection.
    ShortestRemaining(Vec<(u64, u32)>),
}

impl Scheduler {
    pub const fn new(discipline: Discipline) -> Self {
        match discipline {
            Discipline::DeficitRoundRobin => Self::DeficitRoundRobin(DeficitRoundRobin::new(INITIAL_QUANTUM, QUANTUM)),
            Discipline::RoundRobin => Self::RoundRobin(VecDeque::new()),
            Discipline::Fifo => Self::Fifo(VecDeque::new()),
            Discipline::ShortestRemaining => Self::ShortestRemaining(Vec::new()),
        }
    }

    /// The order of service of flows in FQ-CoDel (RFC 8290 §4.2).
    pub const fn fair_queue() -> Self {
        Self::DeficitRoundRobin(DeficitRoundRobin::new(QUANTUM, QUANTUM))
    }

    /// `connection` has `backlog` bytes to send and can send them.
    pub fn add(&mut self, connection: u32, backlog: u64) {
        match self {
            Self::DeficitRoundRobin(turns) => turns.add(connection),
            Self::RoundRobin(queue) => {
                if !queue.contains(&connection) {
                    queue.push_back(connection);
                }
            }
            Self::Fifo(queue) => {
                let queued: u64 = queue.iter().filter(|(of, _)| *of == connection).map(|(_, bytes)| bytes).sum();
                if backlog > queued {
                    queue.push_back((connection, backlog - queued));
                }
            }
            Self::ShortestRemaining(all) => {
                all.retain(|(_, of)| *of != connection);
                all.push((backlog, connection));
            }
        }
    }

    /// The connection that sends next; `None` if none is backlogged.
    pub fn next(&mut self) -> Option<u32> {
        match self {
            Self::DeficitRoundRobin(turns) => turns.next_flow(),
            Self::RoundRobin(queue) => queue.front().copied(),
            Self::Fifo(queue) => queue.front().map(|(connection, _)| *connection),
            Self::ShortestRemaining(all) => all.iter().min().map(|(_, connection)| *connection),
        }
    }

    /// The `connection` that [`Self::next`] returned has sent `bytes`, and is still backlogged or
    /// is not.
    pub fn sent(&mut self, connection: u32, bytes: u32, backlogged: bool) {
        match self {
            Self::DeficitRoundRobin(turns) => turns.sent(bytes, backlogged),
            Self::RoundRobin(queue) => {
                queue.pop_front();
                if backlogged {
                    queue.push_back(connection);
                }
            }
            Self::Fifo(queue) => {
                let mut left = u64::from(bytes);
                for (_, queued) in queue.iter_mut().filter(|(of, _)| *of == connection) {
                    let taken = left.min(*queued);
                    *queued -= taken;
                    left -= taken;
                }
                queue.retain(|(of, queued)| *queued > 0 && (backlogged || *of != connection));
            }
            Self::ShortestRemaining(all) => {
                for (backlog, _) in all.iter_mut().filter(|(_, of)| *of == connection) {
                    *backlog -= u64::from(bytes).min(*backlog);
                }
                all.retain(|(_, of)| backlogged || *of != connection);
            }
        }
    }

    /// `connection` has ended.
    pub fn remove(&mut self, connection: u32) {
        match self {
            Self::DeficitRoundRobin(turns) => turns.remove(connection),
            Self::RoundRobin(queue) => queue.retain(|of| *of != connection),
            Self::Fifo(queue) => queue.retain(|(of, _)| *of != connection),
            Self::ShortestRemaining(all) => all.retain(|(_, of)| *of != connection),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of service of connections that have so much to send, in segments of 1,000 bytes.
    fn order(discipline: Discipline, backlogs: &[(u32, u64)]) -> Vec<u32> {
        let mut scheduler = Scheduler::new(discipline);
        let mut left: Vec<u64> = backlogs.iter().map(|(_, segments)| segments * 1000).collect();
        for (index, (connection, _)) in backlogs.iter().enumerate() {
            scheduler.add(*connection, left[index]);
        }
        std::iter::from_fn(|| {
            let connection = scheduler.next()?;
            let index = backlogs.iter().position(|(of, _)| *of == connection).expect("it was added");
            left[index] -= 1000;
            scheduler.sent(connection, 1000, left[index] > 0);
            Some(connection)
        })
        .collect()
    }

    #[test]
    fn each_discipline_has_its_order() {
        let backlogs = [(7, 3), (2, 1), (5, 2)];
        assert_eq!(order(Discipline::RoundRobin, &backlogs), [7, 2, 5, 7, 5, 7]);
        assert_eq!(order(Discipline::Fifo, &backlogs), [7, 7, 7, 2, 5, 5]);
        assert_eq!(order(Discipline::ShortestRemaining, &backlogs), [2, 5, 5, 7, 7, 7]);
        assert_eq!(order(Discipline::DeficitRoundRobin, &backlogs), [7, 7, 7, 2, 5, 5], "all are short");
    }

    #[test]
    fn a_new_connection_overtakes_those_that_have_sent_more() {
        let mut scheduler = Scheduler::new(Discipline::DeficitRoundRobin);
        scheduler.add(1, 1 << 20);
        for _ in 0..16 {
            assert_eq!(scheduler.next(), Some(1));
            scheduler.sent(1, 1000, true);
        }
        scheduler.add(2, 1 << 20);
        let order: Vec<u32> = std::iter::from_fn(|| {
            let next = scheduler.next()?;
            scheduler.sent(next, 1000, true);
            Some(next)
        })
        .take(32)
        .collect();
        assert_eq!(order[..16], [2; 16], "a first turn of ten segments of 1,514 bytes");
        let ones = order[16..].iter().filter(|next| **next == 1).count();
        assert!((7..=9).contains(&ones), "then half each: {order:?}");
    }

    #[test]
    fn an_empty_connection_leaves_after_a_turn_among_the_old() {
        let mut scheduler = Scheduler::new(Discipline::DeficitRoundRobin);
        scheduler.add(1, 1000);
        assert_eq!(scheduler.next(), Some(1));
        scheduler.sent(1, 1000, false);
        assert_eq!(scheduler.next(), None);
        scheduler.add(1, 1000);
        assert_eq!(scheduler.next(), Some(1), "it is new again");
        scheduler.remove(1);
        assert_eq!(scheduler.next(), None);
    }
}
