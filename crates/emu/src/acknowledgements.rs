//! Acknowledgements of a proxy, held until all packets that are due were delivered. A later one of
//! the connection then makes an earlier one superfluous (RFC 3449 §5.2.1), also where packets of
//! several connections alternate, and so does data.

use std::collections::VecDeque;

use airpath_core::{FlowId, Instant, Packet, SegmentInfo, Slot, Span};
use airpath_wire::tcp::Flags;

use crate::join;
use crate::packet_buffer::PacketBuffer;

/// Acknowledgements that are held at most: a search among them is cheaper than a write.
const MOST_HELD: usize = 128;

/// How long one is held at most. Linux delays acknowledgements by ten times as much.
const MOST_TIME: Span = Span::from_millis(4);

/// Acknowledgements of one direction, at most one of each connection, with the times since when
/// they are held. The first is held for longest.
#[derive(Debug, Default)]
pub struct HeldAcknowledgements(VecDeque<(Instant, Packet)>);

impl HeldAcknowledgements {
    /// Holds `new` in place of an earlier one that need not be sent then. Returns the slot of that
    /// one, if there is one.
    pub fn replace(&mut self, new: Packet, packets: &PacketBuffer) -> Option<Slot> {
        let (_, earlier) = self.0.iter_mut().find(|(_, earlier)| earlier.flow == new.flow)?;
        let [before, after] =
            [earlier.slot, new.slot].map(|slot| packets.super_segment(packets.packet(slot).super_segment));
        join::supersedes(after, before).then(|| std::mem::replace(earlier, new).slot)
    }

    /// Whether those that are held must leave before `new` can be held.
    pub fn must_leave_before(&self, new: Packet) -> bool {
        self.0.len() >= MOST_HELD || self.0.iter().any(|(_, earlier)| earlier.flow == new.flow)
    }

    /// Takes out the one of `flow`.
    pub fn take(&mut self, flow: FlowId) -> Option<Packet> {
        let index = self.0.iter().position(|(_, held)| held.flow == flow)?;
        self.0.remove(index).map(|(_, held)| held)
    }

    /// Holds `new` from `now` on.
    pub fn push(&mut self, now: Instant, new: Packet) {
        self.0.push_back((now, new));
    }

    /// Takes out the one that is to leave next.
    pub fn pop(&mut self) -> Option<Packet> {
        self.0.pop_front().map(|(_, held)| held)
    }

    /// Takes out the next one that is held for too long at `now`.
    pub fn pop_late(&mut self, now: Instant) -> Option<Packet> {
        let (since, _) = self.0.front()?;
        if *since + MOST_TIME <= now { self.pop() } else { None }
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether an earlier acknowledgement need not be sent if `data` leaves, with payload or a FIN.
///
/// Data cannot report a loss as a duplicate acknowledgement does (RFC 5681 §2). With SACK such a
/// one has blocks and is not held. Without SACK, all of them but the last leave
/// ([`HeldAcknowledgements::must_leave_before`]).
pub fn carries(data: SegmentInfo, acknowledgement: SegmentInfo) -> bool {
    let is_open = !Flags(data.flags).contains(Flags::SYN) && !Flags(data.flags).contains(Flags::RST);
    is_open && data.offset >= acknowledgement.offset && data.ack >= acknowledgement.ack
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use airpath_core::{Direction, Ecn, UserId};
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
        Packet { id: 0, size, flow: FlowId(flow), user: UserId::new(0), ecn: Ecn::NotEct, slot }
    }

    #[test]
    fn a_later_one_replaces_an_earlier_one_of_the_same_connection() {
        let (mut packets, mut held) = (PacketBuffer::default(), HeldAcknowledgements::default());
        let [a, b, later_a, later_b, again_b] =
            [(1, 100), (2, 100), (1, 200), (2, 300), (2, 300)].map(|(flow, n)| acknowledgement(flow, n, &mut packets));
        for new in [a, b] {
            assert!(!held.must_leave_before(new));
            held.push(Instant::ZERO, new);
        }
        assert_eq!(held.replace(later_a, &packets), Some(a.slot));
        assert_eq!(held.replace(later_b, &packets), Some(b.slot));
        // A duplicate acknowledgement reports a loss.
        assert_eq!(held.replace(again_b, &packets), None);
        assert!(held.must_leave_before(again_b));
        assert_eq!([held.pop(), held.pop(), held.pop()], [Some(later_a), Some(later_b), None]);
    }

    #[test]
    fn data_carries_an_acknowledgement_of_no_more() {
        let info = |offset, ack: i64, flags: Flags| SegmentInfo {
            offset,
            ack: ack.into(),
            flags: flags.0,
            ..SegmentInfo::default()
        };
        let (ack, end) = (Flags::ACK, Flags::ACK | Flags::FIN);
        let held = info(10, 100, ack);
        assert!(carries(info(10, 101, ack), held) && carries(info(20, 101, end), held));
        assert!(carries(info(10, 100, ack | Flags::PSH), held));
        assert!(!carries(info(10, 99, ack), held) && !carries(info(9, 101, ack), held));
        assert!(!carries(info(10, 101, ack | Flags::RST), held));
        let (mut packets, mut held) = (PacketBuffer::default(), HeldAcknowledgements::default());
        let [a, b] = [1, 2].map(|flow| acknowledgement(flow, 100, &mut packets));
        held.push(Instant::ZERO, a);
        held.push(Instant::ZERO, b);
        assert_eq!([held.take(FlowId(2)), held.take(FlowId(2)), held.pop()], [Some(b), None, Some(a)]);
    }

    #[test]
    fn none_is_held_for_long() {
        let (mut packets, mut held) = (PacketBuffer::default(), HeldAcknowledgements::default());
        let [a, b, c, d] = [1, 2, 3, 4].map(|flow| acknowledgement(flow, 100, &mut packets));
        let later = Instant::ZERO + Span::from_millis(3);
        [a, b, c].into_iter().for_each(|each| held.push(Instant::ZERO, each));
        held.push(later, d);
        assert_eq!(held.pop_late(later), None);
        assert_eq!(held.take(FlowId(2)), Some(b));
        let again = acknowledgement(1, 200, &mut packets);
        assert_eq!(held.replace(again, &packets), Some(a.slot), "it leaves when the earlier one would have left");
        let late = Instant::ZERO + MOST_TIME;
        assert_eq!([held.pop_late(late), held.pop_late(late), held.pop_late(late)], [Some(again), Some(c), None]);
        assert_eq!([held.pop(), held.pop()], [Some(d), None]);
        assert!(held.is_empty());
    }

    #[test]
    fn their_number_is_bounded() {
        let (mut packets, mut held) = (PacketBuffer::default(), HeldAcknowledgements::default());
        for flow in 0..MOST_HELD as u32 {
            let new = acknowledgement(flow, 1, &mut packets);
            assert!(!held.must_leave_before(new));
            held.push(Instant::ZERO, new);
        }
        assert!(held.must_leave_before(acknowledgement(1000, 1, &mut packets)));
    }
}
