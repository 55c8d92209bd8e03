//! Packet counters of links, bearers and middleboxes, with the conservation law.

use serde::{Deserialize, Serialize};

use crate::event::{DropCause, RadioEvent};
use crate::packet::Packet;

/// Packets and bytes through one direction of a link, bearer or middlebox. At any time
/// `offered + created = delivered + dropped + absorbed + queued`, in packets and in bytes: see
/// [`PacketCounters::is_conserved`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)] // Fields that every packet changes are adjacent.
pub struct PacketCounters {
    /// Pushed.
    pub offered: Count,
    /// Popped.
    pub delivered: Count,
    /// Inside: waiting, in transmission or in flight.
    pub queued: Count,
    /// Dropped, by cause, in the order of [`DropCause::ALL`].
    pub dropped: [Count; DropCause::ALL.len()],
    /// Created inside, by a middlebox.
    pub created: Count,
    /// Taken out of the network, by a middlebox.
    pub absorbed: Count,
}

impl PacketCounters {
    /// Dropped packets, all causes.
    pub fn dropped_total(&self) -> Count {
        self.dropped.iter().fold(Count::default(), |sum, count| Count {
            packets: sum.packets + count.packets,
            bytes: sum.bytes + count.bytes,
        })
    }

    /// Whether the conservation law holds.
    pub fn is_conserved(&self) -> bool {
        let lost = self.dropped_total();
        let is_balanced = |count: fn(&Count) -> u64| {
            let [offered, created] = [&self.offered, &self.created].map(count);
            let out = [&self.delivered, &lost, &self.absorbed, &self.queued].map(count);
            offered + created == out.iter().sum::<u64>()
        };
        is_balanced(|count| count.packets) && is_balanced(|count| count.bytes)
    }

    /// Counts a packet that enters.
    #[inline]
    pub fn offer(&mut self, packet: &Packet) {
        self.offered.add(packet);
        self.queued.add(packet);
    }

    /// Counts a packet that leaves at the far end.
    #[inline]
    pub fn deliver(&mut self, packet: &Packet) {
        self.queued.take(packet);
        self.delivered.add(packet);
    }

    /// Reverts a delivery: the packet is still inside.
    #[inline]
    pub fn recall(&mut self, packet: &Packet) {
        self.delivered.take(packet);
        self.queued.add(packet);
    }

    /// Counts a packet that was created inside.
    pub fn create(&mut self, packet: &Packet) {
        self.created.add(packet);
        self.queued.add(packet);
    }

    /// Counts a packet that is taken out of the network.
    pub fn absorb(&mut self, packet: &Packet) {
        self.queued.take(packet);
        self.absorbed.add(packet);
    }

    /// Counts a packet inside whose size changes: the difference is created or absorbed.
    pub fn resize(&mut self, from: u32, to: u32) {
        let (from, to) = (u64::from(from), u64::from(to));
        self.queued.bytes = self.queued.bytes + to - from;
        self.created.bytes += to.saturating_sub(from);
        self.absorbed.bytes += from.saturating_sub(to);
    }

    /// Counts a dropped packet.
    #[inline]
    pub fn lose(&mut self, packet: &Packet, cause: DropCause) {
        self.queued.take(packet);
        self.dropped[cause as usize].add(packet);
    }
}

/// The sum of the counters of several hops.
impl std::ops::AddAssign for PacketCounters {
    fn add_assign(&mut self, other: Self) {
        let sum = |a: &mut Count, b: Count| {
            a.packets += b.packets;
            a.bytes += b.bytes;
        };
        sum(&mut self.offered, other.offered);
        sum(&mut self.delivered, other.delivered);
        sum(&mut self.queued, other.queued);
        sum(&mut self.created, other.created);
        sum(&mut self.absorbed, other.absorbed);
        for (mine, others) in self.dropped.iter_mut().zip(other.dropped) {
            sum(mine, others);
        }
    }
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes, including IP headers.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }

    fn take(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
    }
}

/// All transmissions on the air of one user in one direction: the sum of its [`RadioEvent`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioTotals {
    /// TTIs with a transmission from or to the user.
    pub ttis: u64,
    /// PDUs in them.
    pub pdus: u64,
    /// PDUs sent for the second or a later time.
    pub repeated: u64,
    /// PDUs that the receiver could not decode.
    pub errored: u64,
    /// RLC bytes sent, including padding.
    pub bytes: u64,
}

/// What happened to the radio connection of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTotals {
    /// Changes of the serving cell while there was data: handovers, and reselections.
    pub handovers: u32,
    /// Connections that were set up: of RRC, or calls of GSM.
    pub set_ups: u32,
    /// Radio links that failed, and calls that were lost.
    pub link_failures: u32,
}

/// The sum of two cells.
impl std::ops::AddAssign for RadioTotals {
    fn add_assign(&mut self, other: Self) {
        self.ttis += other.ttis;
        self.pdus += other.pdus;
        self.repeated += other.repeated;
        self.errored += other.errored;
        self.bytes += other.bytes;
    }
}

impl RadioTotals {
    /// Counts one transmission.
    #[inline]
    pub fn add(&mut self, event: &RadioEvent) {
        self.ttis += 1;
        self.pdus += u64::from(event.pdus);
        self.repeated += u64::from(event.repeated);
        self.errored += u64::from(event.errored);
        self.bytes += u64::from(event.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId, Slot, UserId};

    fn packet(id: u64, size: u32) -> Packet {
        Packet { id, size, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) }
    }

    #[test]
    fn counters_conserve_packets() {
        let mut counters = PacketCounters::default();
        for id in 0..3 {
            counters.offer(&packet(id, 100));
        }
        counters.deliver(&packet(0, 100));
        counters.lose(&packet(1, 100), DropCause::Loss);
        assert!(counters.is_conserved());
        assert_eq!((counters.queued.packets, counters.dropped_total().bytes), (1, 100));
        counters.create(&packet(3, 60));
        counters.resize(60, 90);
        counters.resize(100, 80);
        assert!(counters.is_conserved());
        assert_eq!((counters.created.bytes, counters.absorbed.bytes, counters.queued.bytes), (90, 20, 170));
        counters.absorb(&packet(3, 90));
        assert!(counters.is_conserved());
        let mut both = counters;
        both += counters;
        assert!(both.is_conserved());
        assert_eq!((both.offered.packets, both.dropped_total().bytes), (6, 200));
        for (index, cause) in DropCause::ALL.into_iter().enumerate() {
            assert_eq!(index, cause as usize, "the order of ALL is that of the counters");
        }
    }
}
