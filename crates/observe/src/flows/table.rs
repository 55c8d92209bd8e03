//! Connections by their addresses and ports: one hash per segment, equal in both directions.

use std::net::IpAddr;

use airpath_wire::segment::{Endpoint, Route, Tunnel};

use super::FlowNumber;
use crate::connection::Connection;
use crate::observation::End;

/// Connections that are allocated together, so that none ever moves.
const CHUNK: usize = 64;

/// A connection and its key in the table.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) hash: u32,
    pub(super) number: FlowNumber,
    pub(super) closed: bool,
    pub(super) connection: Connection,
}

/// Slots, and an index of them by linear probing.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Hash in the upper half, slot number plus one in the lower; 0 for an empty entry. The length
    /// is a power of two.
    index: Vec<u64>,
    chunks: Vec<Vec<Option<Slot>>>,
    free: Vec<u32>,
    length: usize,
    capacity: u32,
}

impl Table {
    /// Slots in use.
    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// Slots, used or free.
    pub(super) const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The slot of the connection on this route, and the end that is the source of the route.
    pub(super) fn find(&self, hash: u32, route: &Route) -> Option<(u32, End)> {
        let mask = self.index.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let entry = self.index[at];
            if entry == 0 {
                return None;
            }
            if (entry >> 32) as u32 == hash {
                let number = entry as u32 - 1;
                let known = self.slot(number).connection.route();
                if known.source == route.source
                    && known.destination == route.destination
                    && known.tunnel == route.tunnel
                {
                    return Some((number, End::Client));
                }
                if known.source == route.destination
                    && known.destination == route.source
                    && known.tunnel == route.tunnel
                {
                    return Some((number, End::Server));
                }
            }
            at = (at + 1) & mask;
        }
    }

    pub(super) fn get(&self, index: u32) -> Option<&Slot> {
        let index = index as usize;
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)?.as_ref()
    }

    pub(super) fn slot(&self, index: u32) -> &Slot {
        self.get(index).expect("the index names slots in use")
    }

    pub(super) fn slot_mut(&mut self, index: u32) -> &mut Slot {
        let index = index as usize;
        self.chunks[index / CHUNK][index % CHUNK].as_mut().expect("the index names slots in use")
    }

    /// Slots in use with their numbers.
    pub(super) fn slots(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (0..self.capacity).filter_map(|index| Some((index, self.get(index)?)))
    }

    pub(super) fn insert(&mut self, slot: Slot) -> u32 {
        if (self.length + 1) * 2 > self.index.len() {
            self.grow();
        }
        let number = self.free.pop().unwrap_or(self.capacity);
        if number == self.capacity {
            self.capacity += 1;
            if (number as usize).is_multiple_of(CHUNK) {
                self.chunks.push(Vec::with_capacity(CHUNK));
            }
            self.chunks[number as usize / CHUNK].push(None);
        }
        self.enter(u64::from(slot.hash) << 32 | u64::from(number + 1));
        self.chunks[number as usize / CHUNK][number as usize % CHUNK] = Some(slot);
        self.length += 1;
        number
    }

    pub(super) fn remove(&mut self, number: u32) -> Slot {
        let slot = self.chunks[number as usize / CHUNK][number as usize % CHUNK].take();
        let slot = slot.expect("only a slot in use is removed");
        let mask = self.index.len() - 1;
        let entry = u64::from(slot.hash) << 32 | u64::from(number + 1);
        let mut hole = slot.hash as usize & mask;
        while self.index[hole] != entry {
            hole = (hole + 1) & mask;
        }
        // Later entries move up, unless that would move them before the start of their search.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.index[at];
            if next == 0 {
                break;
            }
            let home = (next >> 32) as usize & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.index[hole] = next;
                hole = at;
            }
        }
        self.index[hole] = 0;
        self.free.push(number);
        self.length -= 1;
        slot
    }

    fn enter(&mut self, entry: u64) {
        let mask = self.index.len() - 1;
        let mut at = (entry >> 32) as usize & mask;
        while self.index[at] != 0 {
            at = (at + 1) & mask;
        }
        self.index[at] = entry;
    }

    fn grow(&mut self) {
        let larger = vec![0; (self.index.len() * 2).max(1024)];
        for entry in std::mem::replace(&mut self.index, larger) {
            if entry != 0 {
                self.enter(entry);
            }
        }
    }
}

/// A hash of a route that is equal for both directions.
pub fn hash(route: &Route) -> u32 {
    let ends = of(&route.source).wrapping_add(of(&route.destination));
    let tunnel = match route.tunnel {
        Tunnel::None => 0,
        Tunnel::Gtp => 1,
        Tunnel::Ip => 2,
    };
    let mixed = fold(ends ^ tunnel, 0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32) as u32
}

fn of(endpoint: &Endpoint) -> u64 {
    let port = u64::from(endpoint.port);
    match endpoint.address {
        IpAddr::V4(address) => fold(u64::from(address.to_bits()) << 16 | port, 0xd6e8_feb8_6659_fd93),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            fold((bits >> 64) as u64 ^ port, 0xd6e8_feb8_6659_fd93) ^ fold(bits as u64, 0xa076_1d64_78bd_642f)
        }
    }
}

/// Multiplies to 128 bits, and folds the halves together.
fn fold(value: u64, by: u64) -> u64 {
    let product = u128::from(value ^ 0x2545_f491_4f6c_dd1d) * u128::from(by);
    (product >> 64) as u64 ^ product as u64
}
