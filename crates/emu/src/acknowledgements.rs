//! Acknowledgements of a proxy, held until all packets that are due were delivered. A later one of
//! the connection then makes an earlier one superfluous (RFC 3449 §5.2.1), also where packets of
//! several connections alternate.

use std::collections::VecDeque;

use airpath_core::{Packet, Slot};

use crate::join;
use crate::packet_buffer::PacketBuffer;

/// Acknowledgements that are held at most: a search among them is cheaper than a write.
const MOST_HELD: usize = 32;

/// Acknowledgements of one direction, at most one of each connection.
#[derive(Debug, Default)]
pub struct HeldAcknowledgements(VecDeque<Packet>);

impl HeldAcknowledgements {
    /// Holds `new` in place of an earlier one that need not be sent then. Returns the slot of that
    /// one, if there is one.
    pub fn replace(&mut self, new: Packet, packets: &PacketBuffer) -> Option<Slot> {
        let earlier = self.0.iter_mut().find(|earlier| earlier.flow == new.flow)?;
        let [before, after] =
            [earlier.slot, new.slot].map(|slot| packets.super_segment(packets.packet(slot).super_segment));
        join::supersedes(after, before).then(|| std::mem::replace(earlier, new).slot)
    }

    /// Whether those that are held must leave before `new` can be held.
    pub fn must_leave_before(&self, new: Packet) -> bool {
        self.0.len() >= MOST_HELD || self.0.iter().any(|earlier| earlier.flow == new.flow)
    }

    /// Holds `new`.
    pub fn push(&mut self, new: Packet) {
        self.0.push_back(new);
    }

    /// Takes out the one that is to leave next.
    pub fn pop(&mut self) -> Option<Packet> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use airpath_core::{Direction, Ecn, FlowId, Instant, SegmentInfo, UserId};
    use airpath_path::Payload;
    use airpath_tcp::Segment;
    use airpath_wire::segment::{Endpoint, Route, Tunnel};
    use airpath_wire::tcp::{Flags, TcpHeader};

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
