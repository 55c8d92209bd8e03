//! Acknowledgements of a proxy, held until all packets that are due were delivered. A later one of
//! the connection then makes an earlier one superfluous (RFC 3449 §5.2.1), also where packets of
//! several connections alternate, and so does data.

use std::collections::VecDeque;

use airpath_core::{FlowId, Packet, SegmentInfo, Slot};
use airpath_wire::tcp::Flags;

use crate::join;
use crate::packet_buffer::PacketBuffer;

/// Acknowledgements that are held at most: a search among them is cheaper than a write.
const MOST_HELD: usize = 64;

/// Acknowledgements of one direction, at most one of each connection.
#[derive(Debug, Default)]
pub struct HeldAcknowledgements {
    packets: VecDeque<Packet>,
    /// Number of those that were held before the last [`Self::end_round`], which are the first.
    old: usize,
}

impl HeldAcknowledgements {
    /// Holds `new` in place of an earlier one that need not be sent then. Returns the slot of that
    /// one, if there is one.
    pub fn replace(&mut self, new: Packet, packets: &PacketBuffer) -> Option<Slot> {
        let earlier = self.packets.iter_mut().find(|earlier| earlier.flow == new.flow)?;
        let [before, after] =
            [earlier.slot, new.slot].map(|slot| packets.super_segment(packets.packet(slot).super_segment));
        join::supersedes(after, before).then(|| std::mem::replace(earlier, new).slot)
    }

    /// Whether those that are held must leave before `new` can be held.
    pub fn must_leave_before(&self, new: Packet) -> bool {
        self.packets.len() >= MOST_HELD || self.packets.iter().any(|earlier| earlier.flow == new.flow)
    }

    /// Takes out the one of `flow`.
    pub fn take(&mut self, flow: FlowId) -> Option<Packet> {
        let index = self.packets.iter().position(|held| held.flow == flow)?;
        self.old -= usize::from(index < self.old);
        self.packets.remove(index)
    }

    /// Holds `new`.
    pub fn push(&mut self, new: Packet) {
        self.packets.push_back(new);
    }

    /// Takes out the one that is to leave next.
    pub fn pop(&mut self) -> Option<Packet> {
        self.old = self.old.saturating_sub(1);
        self.packets.pop_front()
    }

    /// Takes out the next one that was held before the last [`Self::end_round`].
    pub fn pop_old(&mut self) -> Option<Packet> {
        if self.old > 0 { self.pop() } else { None }
    }

    /// Those that are held now are old from now on.
    pub fn end_round(&mut self) {
        self.old = self.packets.len();
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

/// Whether an earlier acknowledgement need not be sent if `data` leaves, with payload or a FIN.
///
/// A duplicate acknowledgement, which reports a loss, cannot be carried by data (RFC 5681 §2). The
/// one that ends the handshake is none.
pub fn carries(data: SegmentInfo, acknowledgement: SegmentInfo) -> bool {
    let is_open = !Flags(data.flags).contains(Flags::SYN) && !Flags(data.flags).contains(Flags::RST);
    let ends_handshake = acknowledgement.offset == 0 && acknowledgement.ack == Some(0);
    is_open
        && data.offset >= acknowledgement.offset
        && (data.ack > acknowledgement.ack || (ends_handshake && data.ack == acknowledgement.ack))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use airpath_core::{Direction, Ecn, Instant, UserId};
    use airpath_path::Payload;
    use airpath_tcp::Segment;
    use airpath_wire::segment::{Endpoint, Route, Tunnel};
    use airpath_wire::tcp::TcpHeader;

    use super::*;
    use crate::offload::{Frame, VirtioHeader};
    use crate::packet_buffer::BufferedPacket;
    use crate::tcp_packet;

    /// An acknowledgement of a connection whose client has the port 50000 + `flow`.
    fn acknowledgement(flow: u32, acknowledgment: u32, packets: &mut PacketBuffer) -> Packet {
        let end = |last, port| Endpoint { address: Ipv4Addr::new(10, 0, 0, last).into(), port };
        let route = Route { source: end(1, 50_000 + flow as u16), destination: end(2, 80), tunnel: Tunnel::None };
        let ports = (route.source.port, route.destination.port);
        let header = TcpHeader {
            source_port: ports.0,
            destination_port: ports.1,
            sequence: 1,
            acknowledgment,
            flags: Flags::ACK,
            ..TcpHeader::default()
        };
        let segment = Segment { header, length: 0, ecn: Ecn::NotEct, info: SegmentInfo::default() };
        let mut bytes = Vec::new();
        tcp_packet::write(&route, &segment, Payload::Counted, &mut bytes).expect("it can be written");
        let frame = Frame::inspect(&VirtioHeader::default(), &bytes).expect("a valid packet");
        let size = frame.bytes();
        let index = packets.insert(frame, bytes, 1);
        let slot = packets.add(BufferedPacket::entering(index, 0, 1, Direction::Up, Instant::ZERO));
        Packet { id: 0, size, flow: FlowId(flow), user: UserId(0), ecn: Ecn::NotEct, slot }
    }

    #[test]
    fn a_later_one_replaces_an_earlier_one_of_the_same_connection() {
        let (mut packets, mut held) = (PacketBuffer::default(), HeldAcknowledgements::default());
        let [a, b, later_a, later_b, again_b] =
            [(1, 100), (2, 100), (1, 200), (2, 300), (2, 300)].map(|(flow, n)| acknowledgement(flow, n, &mut packets));
        for new in [a, b] {
            assert!(!held.must_leave_before(new));
            held.push(new);
        }
        assert_eq!(held.replace(later_a, &packets), Some(a.slot));
        assert_eq!(held.replace(later_b, &packets), Some(b.slot));
        // A duplicate acknowledgement reports a loss.
        assert_eq!(held.replace(again_b, &packets), None);
        assert!(held.must_leave_before(again_b));
        assert_eq!([held.pop(), held.pop(), held.pop()], [Some(later_a), Some(later_b), None]);
    }

    #[test]
    fn data_carries_an_acknowledgement_unless_it_may_be_a_duplicate() {
        let info = |offset, ack, flags: Flags| SegmentInfo { offset, ack, flags: flags.0, ..SegmentInfo::default() };
        let (ack, end) = (Flags::ACK, Flags::ACK | Flags::FIN);
        let held = info(10, Some(100), ack);
        assert!(carries(info(10, Some(101), ack), held) && carries(info(20, Some(101), end), held));
        assert!(!carries(info(10, Some(100), ack), held), "it may be a duplicate");
        assert!(!carries(info(10, Some(99), ack), held) && !carries(info(9, Some(101), ack), held));
        assert!(!carries(info(10, Some(101), ack | Flags::RST), held));
        let handshake = info(0, Some(0), ack);
        assert!(carries(info(0, Some(0), ack | Flags::PSH), handshake));
        let (mut packets, mut held) = (PacketBuffer::default(), HeldAcknowledgements::default());
        let [a, b] = [1, 2].map(|flow| acknowledgement(flow, 100, &mut packets));
        held.push(a);
        held.push(b);
        assert_eq!([held.take(FlowId(2)), held.take(FlowId(2)), held.pop()], [Some(b), None, Some(a)]);
    }

    #[test]
    fn those_of_a_round_are_old_in_the_next() {
        let (mut packets, mut held) = (PacketBuffer::default(), HeldAcknowledgements::default());
        let [a, b, c, d] = [1, 2, 3, 4].map(|flow| acknowledgement(flow, 100, &mut packets));
        [a, b, c].into_iter().for_each(|each| held.push(each));
        assert_eq!(held.pop_old(), None);
        held.end_round();
        held.push(d);
        assert_eq!([held.take(FlowId(2)), held.take(FlowId(4))], [Some(b), Some(d)]);
        held.push(d);
        let later = acknowledgement(1, 200, &mut packets);
        assert_eq!(held.replace(later, &packets), Some(a.slot), "it leaves when the earlier one would have left");
        assert_eq!([held.pop_old(), held.pop_old(), held.pop_old()], [Some(later), Some(c), None]);
        assert_eq!([held.pop(), held.pop()], [Some(d), None]);
        assert!(held.is_empty());
    }

    #[test]
    fn their_number_is_bounded() {
        let (mut packets, mut held) = (PacketBuffer::default(), HeldAcknowledgements::default());
        for flow in 0..MOST_HELD as u32 {
            let new = acknowledgement(flow, 1, &mut packets);
            assert!(!held.must_leave_before(new));
            held.push(new);
        }
        assert!(held.must_leave_before(acknowledgement(1000, 1, &mut packets)));
    }
}
