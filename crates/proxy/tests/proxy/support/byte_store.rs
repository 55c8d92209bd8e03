//! The packet store of the conversations: segments with real payload.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airpath_core::{Direction, Dropped, Ecn, FlowId, Instant, Packet, SegmentInfo, SegmentLookup, Slot};
use airpath_path::{Contents, NewSegment, PacketStore, Payload};
use airpath_tcp::Segment;
use airpath_wire::icmp::IcmpError;
use airpath_wire::tcp::Flags;

use super::IP_HEADER;

/// Segments with their payload.
#[derive(Debug, Default)]
pub struct ByteStore {
    /// Flows of the conversations, and those that the middlebox has begun.
    flows: u32,
    slots: Vec<Option<(Segment, Vec<u8>)>>,
    free: Vec<u32>,
    /// Servers to which the middlebox has begun flows by their address.
    pub opened: Vec<SocketAddr>,
    /// Packets that are ICMP errors.
    pub errors: BTreeMap<u32, (FlowId, IcmpError)>,
    /// Whether a packet may stand for consecutive segments of a connection.
    pub offloads: bool,
    /// Payload bytes of the full segments of each created packet, by slot.
    pub segment_sizes: BTreeMap<u32, u32>,
}

impl ByteStore {
    /// A store without packets, for this number of conversations.
    pub fn new(flows: u32) -> Self {
        Self { flows, ..Self::default() }
    }

    pub fn insert(&mut self, segment: Segment, payload: Vec<u8>) -> Slot {
        assert_eq!(payload.len(), segment.length as usize, "the payload has the length of its segment");
        let stored = Some((segment, payload));
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = stored;
                Slot(slot)
            }
            None => {
                self.slots.push(stored);
                Slot(self.slots.len() as u32 - 1)
            }
        }
    }

    pub fn take(&mut self, slot: Slot) -> (Segment, Vec<u8>) {
        self.errors.remove(&slot.0);
        self.free.push(slot.0);
        self.segment_sizes.remove(&slot.0);
        self.slots[slot.0 as usize].take().expect("the slot is in use")
    }

    pub fn get(&self, slot: Slot) -> &(Segment, Vec<u8>) {
        self.slots[slot.0 as usize].as_ref().expect("the slot is in use")
    }

    pub fn mark(&mut self, slot: Slot) {
        let segment = &mut self.slots[slot.0 as usize].as_mut().expect("the slot is in use").0;
        if segment.ecn.is_capable() {
            segment.ecn = Ecn::Ce;
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl SegmentLookup for ByteStore {
    fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
        Some(self.get(slot).0.info)
    }
}

impl PacketStore for ByteStore {
    fn take_dropped(&mut self, dropped: &Dropped) {
        self.take(dropped.packet.slot);
    }
    fn take_absorbed(&mut self, packet: &Packet) {
        self.take(packet.slot);
    }
    fn create(&mut self, _: Instant, _: Direction, _: Contents<'_>) -> Option<Slot> {
        None
    }
    fn tcp_segment(&self, slot: Slot) -> Option<Segment> {
        (!self.errors.contains_key(&slot.0)).then(|| self.get(slot).0)
    }
    fn icmp_error(&self, slot: Slot) -> Option<(FlowId, IcmpError)> {
        self.errors.get(&slot.0).copied()
    }
    fn tcp_payload(&self, slot: Slot) -> Payload<'_> {
        Payload::Bytes([&self.get(slot).1, &[]])
    }
    fn most_payload(&self) -> Option<u32> {
        self.offloads.then_some(65_435)
    }
    fn create_segment(&mut self, _: Instant, _: Direction, new: NewSegment<'_>) -> Option<(Slot, u32)> {
        let payload = match new.payload {
            Payload::Bytes(parts) => parts.concat(),
            Payload::Counted => Vec::new(),
        };
        let slot = self.insert(*new.segment, payload);
        self.segment_sizes.insert(slot.0, new.segment_size);
        Some((slot, new.segment.wire_size(IP_HEADER)))
    }
    fn server_address(&self, _: FlowId) -> Option<SocketAddr> {
        Some(SocketAddr::from(([192, 0, 2, 1], 80)))
    }
    fn open_flow(&mut self, _: Instant, _: FlowId, _: u16) -> Option<FlowId> {
        self.flows += 1;
        Some(FlowId(self.flows - 1))
    }
    fn open_flow_to(&mut self, now: Instant, flow: FlowId, port: u16, server: SocketAddr) -> Option<FlowId> {
        self.opened.push(server);
        self.open_flow(now, flow, port)
    }
}

/// The segments for which one stands, with at most `segment_size` bytes of payload each.
pub fn split(segment: &Segment, payload: &[u8], segment_size: u32) -> Vec<(Segment, Vec<u8>)> {
    let mut parts = Vec::new();
    for (index, part) in payload.chunks(segment_size as usize).enumerate() {
        let mut each = *segment;
        let before = index as u32 * segment_size;
        each.length = part.len() as u32;
        each.info.length = each.length;
        each.info.offset += i64::from(before);
        each.header.sequence = segment.header.sequence.wrapping_add(before);
        if before + each.length < segment.length {
            each.header.flags.0 &= !(Flags::FIN.0 | Flags::PSH.0);
        }
        parts.push((each, part.to_vec()));
    }
    parts
}

/// Merges consecutive full segments, as receive offload does.
pub fn merge(segments: Vec<Segment>) -> Vec<Segment> {
    let mut merged: Vec<Segment> = Vec::new();
    for segment in segments {
        match merged.last_mut() {
            Some(last)
                if last.length > 0
                    && segment.length > 0
                    && last.header.flags == Flags::ACK
                    && last.length + segment.length < 65_000
                    && segment.header.sequence == last.header.sequence.wrapping_add(last.length) =>
            {
                last.length += segment.length;
                last.info.length = last.length;
                last.header.flags |= segment.header.flags;
            }
            _ => merged.push(segment),
        }
    }
    merged
}
