//! The packet buffer: payloads of the packets in the network, while the hops carry their handles.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

use airpath_app::streaming::Channel;
use airpath_core::{Direction, Dropped, FlowId, Instant, Packet, SegmentInfo, SegmentLookup, Slot};
use airpath_path::{Contents, NewSegment, PacketStore, Payload as TcpPayload};
use airpath_tcp::Segment;
use airpath_wire::ip::set_ecn;
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::ipv6::Ipv6Header;

/// Port of the servers whose connections carry bytes.
pub const HTTP_PORT: u16 = 80;

/// The address of all servers in captures, and of the first host of pages, from the block for
/// documentation (RFC 5737).
pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The payload of an IP packet. Its kind takes no space: it is an unused value of a field at the
/// start of a segment's options.
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
    /// A datagram of a stream; the buffer has its headers as bytes.
    Stream {
        /// Its connection.
        channel: Channel,
        /// When it was sent.
        sent: Instant,
    },
    /// A QUIC datagram; the buffer has its bytes.
    Quic {
        /// The mobile's port.
        port: u16,
    },
    /// A packet of a recording that is replayed: its TCP header is known, if it has one. The buffer
    /// has its headers as bytes, if the recording has them.
    Recorded(Option<SegmentInfo>),
}

// Larger values are copied by a call of `memmove`, and take a third cache line.
const _: () = assert!(size_of::<Payload>() <= 128, "two cache lines");

impl Payload {
    /// The TCP header, if it is a TCP segment.
    #[inline]
    pub const fn segment(&self) -> Option<SegmentInfo> {
        match self {
            Self::Segment(segment) => Some(segment.info),
            Self::Recorded(info) => *info,
            Self::Echo { .. } | Self::Datagram { .. } | Self::Stream { .. } | Self::Quic { .. } => None,
        }
    }
}

/// A payload that begins at a cache line, so that it has as few as possible.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Stored(Payload);

/// The payloads of all packets in the network. Slots are reused.
#[derive(Debug, Default)]
pub struct PacketBuffer {
    payloads: Vec<Stored>,
    free: Vec<Slot>,
    /// Recorded flows over IPv6; all others have IPv4 headers.
    ipv6_flows: BTreeSet<FlowId>,
    /// By slot, the payload bytes of packets that carry them; empty for all others. It has no
    /// elements while no packet carries bytes.
    bytes: Vec<Vec<u8>>,
    /// Connections whose segments carry bytes, with the address of the server.
    carriers: BTreeMap<FlowId, SocketAddr>,
    /// The addresses of hosts.
    hosts: BTreeMap<String, SocketAddr>,
    /// Number of flows of the scenario.
    flows: u32,
    /// Number of connections that middleboxes have opened.
    opened: u32,
}

impl PacketBuffer {
    /// An empty buffer, for `flows` flows.
    pub fn new(flows: u32) -> Self {
        Self { flows, ..Self::default() }
    }

    /// Stores `payload` and returns its slot.
    #[inline]
    pub fn insert(&mut self, payload: Payload) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.payloads[slot.0 as usize] = Stored(payload);
                slot
            }
            None => {
                self.payloads.push(Stored(payload));
                Slot(u32::try_from(self.payloads.len() - 1).expect("fewer than 2³² packets are in the network"))
            }
        }
    }

    /// The payload at `slot`.
    #[inline]
    pub fn get(&self, slot: Slot) -> &Payload {
        &self.payloads[slot.0 as usize].0
    }

    /// The payload at `slot`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> &mut Payload {
        &mut self.payloads[slot.0 as usize].0
    }

    /// Frees `slot`.
    #[inline]
    pub fn release(&mut self, slot: Slot) {
        self.free.push(slot);
        if let Some(bytes) = self.bytes.get_mut(slot.0 as usize) {
            bytes.clear();
        }
    }

    /// The bytes that the packet at `slot` carries; of a stream, those with which it begins.
    pub fn bytes(&self, slot: Slot) -> &[u8] {
        self.bytes.get(slot.0 as usize).map_or(&[], |bytes| bytes)
    }

    /// Takes the bytes that the packet at `slot` carries.
    pub fn take_bytes(&mut self, slot: Slot) -> Vec<u8> {
        self.bytes.get_mut(slot.0 as usize).map(std::mem::take).unwrap_or_default()
    }

    /// Gives the memory of [`Self::take_bytes`] back, before the slot is released.
    pub fn return_bytes(&mut self, slot: Slot, bytes: Vec<u8>) {
        if let Some(place) = self.bytes.get_mut(slot.0 as usize) {
            *place = bytes;
        }
    }

    /// The segment or datagram at `slot` carries these bytes.
    pub fn store_bytes(&mut self, slot: Slot, parts: [&[u8]; 2]) {
        let slot = slot.0 as usize;
        if self.bytes.len() <= slot {
            self.bytes.resize_with(slot + 1, Vec::new);
        }
        parts.into_iter().for_each(|part| self.bytes[slot].extend_from_slice(part));
    }

    /// The segments of `flow`, a connection to `host`, carry bytes.
    pub fn carry_bytes(&mut self, flow: FlowId, host: &str) {
        let next = Ipv4Addr::from_bits(SERVER.to_bits() + self.hosts.len() as u32);
        let address = self.hosts.entry(host.to_owned()).or_insert_with(|| (next, HTTP_PORT).into());
        self.carriers.insert(flow, *address);
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

    fn headers(&self, direction: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let payload = self.get(packet.slot);
        if let Payload::Recorded(_) = payload {
            let start = out.len();
            out.extend_from_slice(self.bytes(packet.slot));
            if out.len() > start {
                // A queue may have marked it since.
                set_ecn(&mut out[start..], packet.ecn);
            }
            return out.len() > start;
        }
        // The payload of QUIC is no header.
        let head = if matches!(payload, Payload::Quic { .. }) { &[] } else { self.bytes(packet.slot) };
        let Some(Ok(headers)) = crate::capture::headers(Instant::ZERO, direction, packet, payload, head) else {
            return false;
        };
        out.extend_from_slice(headers.as_bytes());
        true
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
            Contents::CopyOf(slot) => {
                let copy = self.insert(*self.get(slot));
                if let Some(bytes) = self.bytes.get(slot.0 as usize).filter(|bytes| !bytes.is_empty()).cloned() {
                    self.store_bytes(copy, [&bytes, &[]]);
                }
                Some(copy)
            }
            _ => None,
        }
    }

    #[inline]
    fn tcp_payload(&self, slot: Slot) -> TcpPayload<'_> {
        match self.bytes.get(slot.0 as usize) {
            Some(bytes) if !bytes.is_empty() => TcpPayload::Bytes([bytes, &[]]),
            _ => TcpPayload::Counted,
        }
    }

    fn tcp_segment(&self, slot: Slot) -> Option<Segment> {
        match self.get(slot) {
            Payload::Segment(segment) => Some(*segment),
            _ => None,
        }
    }

    fn create_segment(&mut self, _: Instant, _: Direction, new: NewSegment<'_>) -> Option<(Slot, u32)> {
        let segment = *new.segment;
        let ip_header = if self.ipv6_flows.contains(&new.flow) { Ipv6Header::LENGTH } else { Ipv4Header::LENGTH };
        let slot = self.insert(Payload::Segment(segment));
        if let TcpPayload::Bytes(parts) = new.payload {
            self.store_bytes(slot, parts);
        }
        Some((slot, segment.wire_size(ip_header as u32)))
    }

    /// The connection belongs to the same flow of the scenario: its number is congruent, as those
    /// of [`Network::flow_of_connection`](crate::network::Network::flow_of_connection), and they
    /// are counted from the other end.
    fn open_flow(&mut self, _: Instant, flow: FlowId, _: u16) -> Option<FlowId> {
        let address = *self.carriers.get(&flow)?;
        self.opened += 1;
        let opened = FlowId(flow.0 % self.flows + self.flows * (u32::MAX / self.flows - self.opened));
        self.carriers.insert(opened, address);
        Some(opened)
    }

    fn server_address(&self, flow: FlowId) -> Option<SocketAddr> {
        self.carriers.get(&flow).copied()
    }

    fn end_flow(&mut self, flow: FlowId) {
        self.carriers.remove(&flow);
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

    #[test]
    fn a_slot_that_is_used_again_carries_no_old_bytes() {
        let mut buffer = PacketBuffer::new(2);
        let payload = Payload::Datagram { sequence: 0, sent: Instant::ZERO };
        let slot = buffer.insert(payload);
        assert_eq!(buffer.tcp_payload(slot), TcpPayload::Counted);
        buffer.store_bytes(slot, [b"ab", b"c"]);
        let copy = buffer.create(Instant::ZERO, Direction::Up, Contents::CopyOf(slot)).expect("it can be copied");
        buffer.release(slot);
        assert_eq!(buffer.insert(payload), slot);
        assert_eq!(buffer.tcp_payload(slot), TcpPayload::Counted);
        assert_eq!(buffer.tcp_payload(copy), TcpPayload::Bytes([b"abc", b""]));
    }

    #[test]
    fn a_middlebox_opens_connections_of_flows_that_carry_bytes_only() {
        let mut buffer = PacketBuffer::new(3);
        assert_eq!(buffer.open_flow(Instant::ZERO, FlowId(1), 61_000), None);
        buffer.carry_bytes(FlowId(1), "a");
        buffer.carry_bytes(FlowId(2), "b");
        let first = buffer.open_flow(Instant::ZERO, FlowId(1), 61_000).expect("it carries bytes");
        let second = buffer.open_flow(Instant::ZERO, FlowId(1), 61_001).expect("it carries bytes");
        assert!(first != second && first.0 % 3 == 1 && second.0 % 3 == 1, "{first:?} {second:?}");
        assert_eq!(buffer.server_address(first), Some((SERVER, 80).into()));
        assert_ne!(buffer.server_address(FlowId(2)), buffer.server_address(first));
        buffer.end_flow(first);
        assert_eq!(buffer.server_address(first), None);
    }
}
