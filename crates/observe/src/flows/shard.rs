//! A shard of the connections: those with the same upper bits of the hash of addresses and ports.
//! Shards are independent of each other.

use std::collections::VecDeque;

use airpath_core::Instant;
use airpath_wire::segment::Segment;

use super::table::{Slot, Table};
use super::{Ending, FlowNumber, Limits, Listener};
use crate::connection::Connection;
use crate::observation::End;

/// Segments between two searches for idle connections.
const SEGMENTS_PER_SWEEP: u64 = 256;

/// Connections examined in each search.
const SLOTS_PER_SWEEP: usize = 16;

/// The connections of a shard.
#[derive(Debug)]
pub struct Shard {
    limits: Limits,
    table: Table,
    /// Closed connections, in the order in which they closed.
    closed: VecDeque<(u32, FlowNumber, Instant)>,
    segments: u64,
    /// Slot where the next search begins.
    hand: u32,
}

impl Shard {
    /// No connections yet. `limits` are those of this shard alone.
    pub fn new(limits: Limits) -> Self {
        Self { limits, table: Table::default(), closed: VecDeque::new(), segments: 0, hand: 0 }
    }

    /// Number of stored connections.
    pub const fn open(&self) -> usize {
        self.table.len()
    }

    /// Processes the next segment, whose route has this hash. A connection that begins with it gets
    /// the next number after `begun`.
    pub fn segment(&mut self, hash: u32, segment: &Segment<'_>, begun: &mut u64, listener: &mut impl Listener) {
        self.segments += 1;
        if self.segments.is_multiple_of(SEGMENTS_PER_SWEEP) {
            self.sweep(segment.time, listener);
        }
        let mut begin = |table: &mut Table, reused| {
            *begun += 1;
            let connection = Connection::new(segment, reused);
            let from = if connection.route().source == segment.route.source { End::Client } else { End::Server };
            (table.insert(Slot { hash, number: FlowNumber(*begun), closed: false, connection }), from)
        };
        let (index, from) = match self.table.find(hash, &segment.route) {
            Some((index, from)) if !self.table.slot(index).connection.superseded_by(segment, from) => (index, from),
            Some((index, _)) => {
                self.end(index, Ending::Reused, listener);
                begin(&mut self.table, true)
            }
            None => begin(&mut self.table, false),
        };
        let slot = self.table.slot_mut(index);
        let observation = slot.connection.segment(segment, from);
        listener.observed(slot.number, &observation, segment, &slot.connection);
        let (was_closed, number) = (slot.closed, slot.number);
        slot.closed = slot.connection.closed();
        if !was_closed && slot.closed {
            slot.connection.shrink_to_fit();
            self.closed.push_back((index, number, segment.time));
            self.let_go(segment.time, listener);
        } else if was_closed && !slot.closed {
            // The reset ended an earlier connection.
            self.closed.retain(|(_, closed, _)| *closed != number);
        }
    }

    /// The stored connections in the order of their numbers, with their slots.
    pub fn held(&self) -> Vec<(FlowNumber, u32)> {
        let mut held: Vec<_> = self.table.slots().map(|(index, slot)| (slot.number, index)).collect();
        held.sort_unstable();
        held
    }

    /// Ends the connection in this slot at the end of the capture.
    pub fn finish_one(&mut self, index: u32, listener: &mut impl Listener) {
        let why = if self.table.slot(index).closed { Ending::Closed } else { Ending::EndOfCapture };
        self.end(index, why, listener);
    }

    fn end(&mut self, index: u32, why: Ending, listener: &mut impl Listener) {
        let slot = self.table.slot(index);
        listener.ended(slot.number, &slot.connection, why);
        self.table.remove(index);
    }

    /// Removes closed connections that have lingered, or are too many.
    fn let_go(&mut self, now: Instant, listener: &mut impl Listener) {
        while let Some(&(index, number, since)) = self.closed.front() {
            if self.closed.len() <= self.limits.lingering && now.since(since) <= self.limits.linger {
                break;
            }
            self.closed.pop_front();
            // Unless a new connection took its place.
            if self.table.get(index).is_some_and(|slot| slot.number == number) {
                self.end(index, Ending::Closed, listener);
            }
        }
    }

    /// Examines some connections, and removes those that are idle.
    fn sweep(&mut self, now: Instant, listener: &mut impl Listener) {
        self.let_go(now, listener);
        for _ in 0..SLOTS_PER_SWEEP {
            self.hand = if self.hand + 1 < self.table.capacity() { self.hand + 1 } else { 0 };
            let idle =
                self.table.get(self.hand).is_some_and(|slot| now.since(slot.connection.last()) > self.limits.idle);
            if idle {
                self.end(self.hand, Ending::Idle, listener);
            }
        }
    }
}
