//! Deficit round robin (Shreedhar and Varghese 1995) in the form of RFC 8290 §4: flows that begin
//! to send come first.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The order of service of backlogged flows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeficitRoundRobin {
    new: VecDeque<Turn>,
    old: VecDeque<Turn>,
    /// What a flow may send in its first turn, in [`UNIT`]s of a byte.
    first_turn: i64,
    /// What it may send in each later turn.
    quantum: i64,
}

/// Units of a byte, in which turns are counted. A quantum divided by hundreds of flows is a few
/// bytes, and must not be rounded to whole bytes.
const UNIT: i64 = 1 << 16;

/// A flow, and what it may still send.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Turn {
    flow: u32,
    /// What it may send in this turn, in [`UNIT`]s of a byte.
    deficit: i64,
    backlogged: bool,
}

/// What happens next in the lists.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// This flow sends.
    Sends(u32),
    /// This flow has left the lists, without packets.
    Left(u32),
}

impl DeficitRoundRobin {
    /// No flow is backlogged. A flow may send `first_turn` bytes in its first turn and `quantum` in
    /// each later one.
    pub const fn new(first_turn: u32, quantum: u32) -> Self {
        let (first_turn, quantum) = (first_turn as i64 * UNIT, quantum as i64 * UNIT);
        Self { new: VecDeque::new(), old: VecDeque::new(), first_turn, quantum }
    }

    /// From now on, a flow may send `quantum` bytes in each turn.
    pub(super) const fn set_quantum(&mut self, quantum: u32) {
        self.quantum = quantum as i64 * UNIT;
        self.first_turn = self.quantum;
    }

    /// `flow` has packets. It is new unless it is in a list, as an empty flow is for a turn after
    /// it has sent. The flow is looked for in both lists.
    pub fn add(&mut self, flow: u32) {
        let known = self.new.iter_mut().chain(&mut self.old).find(|turn| turn.flow == flow);
        match known {
            Some(turn) => turn.backlogged = true,
            None => self.begin(flow, 1),
        }
    }

    /// `flow`, which is in no list, has packets. Its first turn is divided by `divisor`, at least
    /// one.
    pub(super) fn begin(&mut self, flow: u32, divisor: u32) {
        self.new.push_back(Turn { flow, deficit: self.first_turn / i64::from(divisor), backlogged: true });
    }

    /// The flow whose turn it is; `None` if none has packets. As in RFC 8290 §4.2, a new flow that
    /// has used its quantum or has no packets becomes an old one, and an old one without packets
    /// leaves.
    #[inline]
    pub fn next_flow(&mut self) -> Option<u32> {
        loop {
            if let Next::Sends(flow) = self.step(|turn| turn.backlogged, |_| 1)? {
                return Some(flow);
            }
        }
    }

    /// As [`Self::next_flow`], for flows with packets by `has_packets`, until a flow sends or
    /// leaves the lists. The quantum of a flow is divided by its `divisor`, at least one.
    #[inline]
    pub(super) fn next(&mut self, has_packets: impl Fn(u32) -> bool, divisor: impl FnMut(u32) -> u32) -> Option<Next> {
        self.step(|turn| has_packets(turn.flow), divisor)
    }

    #[inline]
    fn step(&mut self, is_backlogged: impl Fn(&Turn) -> bool, mut divisor: impl FnMut(u32) -> u32) -> Option<Next> {
        loop {
            let (list, is_new) = if self.new.is_empty() { (&mut self.old, false) } else { (&mut self.new, true) };
            let turn = list.front()?;
            if turn.deficit > 0 && is_backlogged(turn) {
                return Some(Next::Sends(turn.flow));
            }
            let mut turn = list.pop_front()?;
            if turn.deficit <= 0 {
                turn.deficit += self.quantum / i64::from(divisor(turn.flow));
            } else if !is_new {
                return Some(Next::Left(turn.flow));
            }
            self.old.push_back(turn);
        }
    }

    /// The flow that [`Self::next_flow`] returned has sent `bytes`, and has more packets or none.
    #[inline]
    pub fn sent(&mut self, bytes: u32, backlogged: bool) {
        let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
        if let Some(turn) = list.front_mut() {
            turn.deficit -= i64::from(bytes) * UNIT;
            turn.backlogged = backlogged;
        }
    }

    /// `flow` has ended.
    pub fn remove(&mut self, flow: u32) {
        self.new.retain(|turn| turn.flow != flow);
        self.old.retain(|turn| turn.flow != flow);
    }

    /// The flows in the lists, in no particular order.
    pub(super) fn flows(&self) -> impl Iterator<Item = u32> {
        self.new.iter().chain(&self.old).map(|turn| turn.flow)
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        self.new.clear();
        self.old.clear();
    }
}
