//! The packet buffer: payloads of the packets in the network, while the hops carry their handles.

use std::collections::BTreeSet;

use airpath_core::{Direction, Dropped, FlowId, Instant, Packet, SegmentInfo, SegmentLookup, Slot};
use airpath_path::{Contents, NewSegment, PacketStore};
use airpath_tcp::Segment;
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::ipv6::Ipv6Header;

/// The payload of an IP packet.
#[derive(Clone, Copy, Debug)]
pub enum Payload {
    /// A TCP segment.
    Segment(Segment),
    /// An ICMP echo request or reply.
    Echo {
        /// Number of the request.
        sequence: u32,
        /// When the request was sent.
        sent: Instant,
        /// Whether this is the reply.
        reply: bool,
    },
    /// A UDP datagram.
    Datagram {
        /// Its number.
        sequence: u32,
        /// When it was sent.
        sent: Instant,
    },
    /// A packet of a recording that is replayed: only its TCP header is known, if it has one.
    Recorded(Option<SegmentInfo>),
}

impl Payload {
    /// The TCP header, if it is a TCP segment.
    #[inline]
    pub const fn segment(&self) -> Option<SegmentInfo> {
        match self {
            Self::Segment(segment) => Some(segment.info),
            Self::Recorded(info) => *info,
            Self::Echo { .. } | Self::Datagram { .. } => None,
        }
    }
}

/// The payloads of all packets in the network. Slots are reused.
#[derive(Debug, Default)]
pub struct PacketBuffer {
    payloads: Vec<Payload>,
    free: Vec<Slot>,
    /// Recorded flows over IPv6; all others have IPv4 headers.
    ipv6_flows: BTreeSet<FlowId>,
}

impl PacketBuffer {
    /// Stores `payload` and returns its slot.
    #[inline]
    pub fn insert(&mut self, payload: Payload) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.payloads[slot.0 as usize] = payload;
                slot
            }
            None => {
                self.payloads.push(payload);
                Slot(u32::try_from(self.payloads.len() - 1).expect("fewer than 2³² packets are in the network"))
            }
        }
    }

    /// The payload at `slot`.
    #[inline]
    pub fn get(&self, slot: Slot) -> &Payload {
        &self.payloads[slot.0 as usize]
    }

    /// The payload at `slot`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> &mut Payload {
        &mut self.payloads[slot.0 as usize]
    }

    /// Frees `slot`.
    #[inline]
    pub fn release(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// Segments that a middlebox creates for `flow` are to have IPv6 headers.
    pub fn set_ipv6(&mut self, flow: FlowId) {
        self.ipv6_flows.insert(flow);
    }

    /// Number of slots in use, which is the number of packets in the network.
    pub fn len(&self) -> usize {
        self.payloads.len() - self.free.len()
    }

    /// Whether no packet is in the network.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl SegmentLookup for PacketBuffer {
    fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
        self.get(slot).segment()
    }
}

impl PacketStore for PacketBuffer {
    #[inline]
    fn take_dropped(&mut self, dropped: &Dropped) {
        self.release(dropped.packet.slot);
    }

    fn take_absorbed(&mut self, packet: &Packet) {
        self.release(packet.slot);
    }

    /// Simulated packets have no bytes: only copies can be created.
    fn create(&mut self, _: Instant, _: Direction, contents: Contents<'_>) -> Option<Slot> {
        match contents {
            Contents::CopyOf(slot) => Some(self.insert(*self.get(slot))),
            _ => None,
        }
    }

    fn tcp_segment(&self, slot: Slot) -> Option<Segment> {
        match self.get(slot) {
            Payload::Segment(segment) => Some(*segment),
            Payload::Echo { .. } | Payload::Datagram { .. } | Payload::Recorded(_) => None,
        }
    }

    fn create_segment(&mut self, _: Instant, _: Direction, new: NewSegment<'_>) -> Option<(Slot, u32)> {
        let segment = *new.segment;
        let ip_header = if self.ipv6_flows.contains(&new.flow) { Ipv6Header::LENGTH } else { Ipv4Header::LENGTH };
        Some((self.insert(Payload::Segment(segment)), segment.wire_size(ip_header as u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused() {
        let mut buffer = PacketBuffer::default();
        let payload = |sequence| Payload::Datagram { sequence, sent: Instant::ZERO };
        let (a, b) = (buffer.insert(payload(0)), buffer.insert(payload(1)));
        assert!(matches!(buffer.get(a), Payload::Datagram { sequence: 0, .. }));
        buffer.release(a);
        assert_eq!(buffer.insert(payload(2)), a);
        assert!(matches!(buffer.get(b), Payload::Datagram { sequence: 1, .. }));
        buffer.release(b);
        assert_eq!((buffer.len(), buffer.is_empty()), (1, false));
    }
}
