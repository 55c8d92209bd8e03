//! The PDCP of NR above both cell groups, in one direction of a mobile: the order of packets that
//! two cells carry (TS 38.323 §5.2.2).
//!
//! A cell returns its packets in their order, so packets wait here only for those of the other one.

use std::collections::VecDeque;

use airpath_core::range_set::Range;
use airpath_core::{Instant, Packet, Span};

use crate::ofdma::reordering::{self, Reordering};
use crate::ofdma::rlc::{Cut, Pdu};

/// Both ends of one direction.
#[derive(Clone, Debug)]
pub struct Pdcp {
    /// Packets that have not left, in the order of their sequence numbers.
    packets: VecDeque<Numbered>,
    /// The next sequence number.
    next: u64,
    reordering: Reordering,
    /// The numbers of packets in the cells that are not waited for any more.
    late: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Numbered {
    sequence: u64,
    id: u64,
    /// The packet, when it has come out of a cell.
    received: Option<Packet>,
}

/// What becomes of a packet that has come out of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It waits for its turn, or leaves.
    InTime,
    /// It is dropped: it was waited for too long.
    Late,
}

impl Pdcp {
    /// Nothing sent.
    pub fn new(t_reordering: Span) -> Self {
        let parameters = reordering::Parameters { wait: t_reordering, window: u64::MAX, has_segments: false };
        Self { packets: VecDeque::new(), next: 0, reordering: Reordering::new(&parameters), late: Vec::new() }
    }

    /// Gives a packet its sequence number.
    pub fn send(&mut self, id: u64) {
        let sequence = self.next;
        self.next += 1;
        self.reordering.send_new(Cut { range: unit(sequence), unit: unit(sequence), header: 0 });
        self.packets.push_back(Numbered { sequence, id, received: None });
    }

    /// A cell has dropped a packet before it was sent, so that it has no number. Returns whether it
    /// is one of this direction.
    pub fn withdraw(&mut self, now: Instant, id: u64) -> bool {
        let Some(index) = self.packets.iter().rposition(|packet| packet.id == id) else {
            return self.take_late(id);
        };
        let numbered = self.packets.remove(index).expect("it was found there");
        self.reordering.withdraw(now, unit(numbered.sequence));
        true
    }

    /// A packet has come out of a cell.
    pub fn receive(&mut self, now: Instant, packet: Packet) -> Received {
        let Some(numbered) = self.packets.iter_mut().find(|numbered| numbered.id == packet.id) else {
            self.take_late(packet.id);
            return Received::Late;
        };
        let range = unit(numbered.sequence);
        numbered.received = Some(packet);
        self.reordering.receive(now, &Pdu { sequence: range.start, range, unit: range, again: false, polls: false });
        Received::InTime
    }

    /// The next packet that leaves now.
    pub fn pop(&mut self) -> Option<Packet> {
        let (edge, _) = self.reordering.delivered(self.next);
        while let Some(numbered) = self.packets.front().copied().filter(|numbered| numbered.sequence < edge) {
            self.packets.pop_front();
            self.reordering.forget_below(numbered.sequence + 1);
            match numbered.received {
                Some(packet) => return Some(packet),
                None => self.late.push(numbered.id),
            }
        }
        None
    }

    /// When t-Reordering expires.
    pub const fn next_timer(&self) -> Option<Instant> {
        self.reordering.next_timer()
    }

    /// Does not wait any more for what t-Reordering has waited for up to `now`.
    pub fn expire(&mut self, now: Instant) {
        self.reordering.expire(now);
    }

    fn take_late(&mut self, id: u64) -> bool {
        let index = self.late.iter().position(|late| *late == id);
        index.map(|index| self.late.remove(index)).is_some()
    }
}

/// A sequence number as a unit of the reordering.
const fn unit(sequence: u64) -> Range<u64> {
    Range::new(sequence, sequence + 1)
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, FlowId, Slot, UserId};

    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(Span::from_millis(millis).as_nanos())
    }

    const fn packet(id: u64) -> Packet {
        Packet { id, size: 100, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) }
    }

    fn pdcp(packets: u64) -> Pdcp {
        let mut pdcp = Pdcp::new(Span::from_millis(50));
        (0..packets).for_each(|id| pdcp.send(id));
        pdcp
    }

    fn left(pdcp: &mut Pdcp) -> Vec<u64> {
        std::iter::from_fn(|| pdcp.pop()).map(|packet| packet.id).collect()
    }

    #[test]
    fn packets_of_two_cells_leave_in_their_order() {
        let mut pdcp = pdcp(4);
        for (id, leave) in [(1, vec![]), (2, vec![]), (0, vec![0, 1, 2]), (3, vec![3])] {
            assert_eq!(pdcp.receive(at(id), packet(id)), Received::InTime);
            assert_eq!(left(&mut pdcp), leave, "after {id}");
        }
        assert_eq!(pdcp.next_timer(), None);
    }

    #[test]
    fn a_packet_that_is_waited_for_too_long_is_late() {
        let mut pdcp = pdcp(3);
        pdcp.receive(at(5), packet(1));
        assert_eq!(pdcp.next_timer(), Some(at(55)));
        pdcp.expire(at(55));
        assert_eq!(left(&mut pdcp), [1]);
        assert_eq!(pdcp.receive(at(60), packet(0)), Received::Late);
        assert_eq!(pdcp.receive(at(61), packet(2)), Received::InTime);
        assert_eq!(left(&mut pdcp), [2]);
    }

    #[test]
    fn a_packet_that_was_dropped_before_it_was_sent_is_not_waited_for() {
        let mut pdcp = pdcp(5);
        pdcp.receive(at(0), packet(1));
        pdcp.receive(at(1), packet(3));
        pdcp.withdraw(at(2), 0);
        assert_eq!(left(&mut pdcp), [1]);
        pdcp.withdraw(at(3), 2);
        assert_eq!((left(&mut pdcp), pdcp.next_timer()), (vec![3], None));
        pdcp.withdraw(at(3), 4);
        pdcp.send(5);
        pdcp.receive(at(9), packet(5));
        assert_eq!(left(&mut pdcp), [5]);
    }
}
