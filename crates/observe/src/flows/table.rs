//! Connections by their addresses and ports: one hash per segment, equal in both directions.

use std::net::IpAddr;

use airpath_wire::segment::{Endpoint, Route, Tunnel};

use super::FlowNumber;
use crate::connection::Connection;
use crate::observation::End;

/// Connections that are allocated together, so that none ever moves.
const CHUNK: usize = 16;

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

    pub(super) fn remove(&mut self, number: u32) {
        let hash = self.slot(number).hash;
        self.chunks[number as usize / CHUNK][number as usize % CHUNK] = None;
        let mask = self.index.len() - 1;
        let entry = u64::from(hash) << 32 | u64::from(number + 1);
        let mut hole = hash as usize & mask;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::segment;

    fn route(port: u16) -> Route {
        let mut route = segment("0 > syn", 1).0.route;
        route.source.port = port;
        route
    }

    fn insert(table: &mut Table, hash: u32, port: u16) -> u32 {
        let mut syn = segment("0 > syn", 1).0;
        syn.route = route(port);
        let connection = Connection::new(&syn, false);
        table.insert(Slot { hash, number: FlowNumber(port.into()), closed: false, connection })
    }

    /// Every entry of the map is found, from both ends, and nothing else.
    fn assert_same(table: &Table, map: &BTreeMap<u16, u32>, ports: u16, hash: impl Fn(u16) -> u32) {
        for port in 0..ports {
            let index = map.get(&port).copied();
            assert_eq!(table.find(hash(port), &route(port)), index.map(|index| (index, End::Client)));
            assert_eq!(table.find(hash(port), &route(port).reversed()), index.map(|index| (index, End::Server)));
            let tunnelled = Route { tunnel: Tunnel::Gtp, ..route(port) };
            assert_eq!(table.find(hash(port), &tunnelled), None, "a tunnel separates connections");
        }
        assert_eq!(table.len(), map.len());
        let slots: BTreeMap<u16, u32> = table.slots().map(|(index, slot)| (slot.number.0 as u16, index)).collect();
        assert_eq!(slots, *map);
    }

    proptest! {
        /// Compared with a map. Hashes collide completely or in the lower bits, and their entries
        /// continue from the end of the index at its beginning.
        #[test]
        fn the_table_finds_what_it_has(steps in prop::collection::vec((0..24_u16, any::<bool>()), 1..150)) {
            let hash = |port: u16| 1020 + u32::from(port % 6) + (u32::from(port % 3) << 20);
            let (mut table, mut map) = (Table::default(), BTreeMap::new());
            for (port, adds) in steps {
                match map.remove(&port) {
                    None if adds => {
                        map.insert(port, insert(&mut table, hash(port), port));
                    }
                    None => {}
                    Some(index) if adds => {
                        map.insert(port, index);
                        table.slot_mut(index).closed = true;
                        prop_assert!(table.slot(index).closed);
                    }
                    Some(index) => {
                        prop_assert_eq!(table.slot(index).number, FlowNumber(port.into()));
                        table.remove(index);
                    }
                }
                prop_assert!(table.capacity() <= 24, "free slots are used again");
            }
            assert_same(&table, &map, 24, hash);
        }
    }

    #[test]
    fn the_index_grows_with_its_connections() {
        const PORTS: u16 = 1200;
        let hash = |port: u16| u32::from(port).wrapping_mul(0x9e37_79b9);
        let (mut table, mut map) = (Table::default(), BTreeMap::new());
        for port in 0..PORTS {
            map.insert(port, insert(&mut table, hash(port), port));
            assert!(
                table.len() * 2 <= table.index.len(),
                "at most half of the index is used, so that searches are short"
            );
        }
        assert_eq!(table.capacity(), u32::from(PORTS));
        assert_same(&table, &map, PORTS, hash);
        assert!(table.get(u32::from(PORTS)).is_none());
    }
}
