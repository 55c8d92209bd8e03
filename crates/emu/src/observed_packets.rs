//! The packets on the path of a forwarder: the packet store of its path, and what observes them.

use std::net::SocketAddr;
use std::ops::Range;

use airpath_core::{Direction, Dropped, FlowId, Instant, Packet, SegmentInfo, SegmentLookup, Slot, UserId};
use airpath_path::{Contents, NewSegment, PacketStore, Payload, PolledPath, SharedPayload};
use airpath_tcp::Segment;
use airpath_wire::icmp::IcmpError;
use airpath_wire::segment::{Endpoint, Route};

use crate::live::router::Router;
use crate::observe::{MOST_FLOWS, icmp_error};
use crate::offload::{Frame, VirtioHeader};
use crate::packet_buffer::{BufferedPacket, PacketBuffer, SuperSegment};
use crate::taps::{Taps, View};
use crate::tcp_packet;

/// The packets on the path, and the taps that observe them.
#[derive(Debug)]
pub struct ObservedPackets {
    pub packets: PacketBuffer,
    pub taps: Taps,
    /// The mobiles, if both ports are one interface of a router.
    pub router: Option<Router>,
}

impl ObservedPackets {
    /// Source and destination of packets of `direction` of a connection.
    pub fn route(&self, flow: FlowId, direction: Direction) -> Option<Route> {
        let observed = self.taps.observer.as_ref().and_then(|observer| observer.route(flow, direction));
        observed.or_else(|| self.router.as_ref()?.route(flow, direction))
    }

    /// Whether packets may be super-segments: only the proxy of a router reads them.
    pub const fn carries_super_segments(&self) -> bool {
        self.router.is_some() && self.taps.is_empty()
    }

    /// The payload of a new segment in the memory of its buffer, if it is a super-segment that
    /// leaves as it is.
    fn shared_payload(&self, new: &NewSegment<'_>) -> Option<SharedPayload> {
        let is_super = new.segment.length > new.segment_size && self.carries_super_segments();
        let buffer = new.buffer.filter(|_| is_super)?;
        buffer.share(new.segment.info.offset.cast_unsigned(), new.segment.length)
    }

    /// The packets of a super-segment enter the path.
    pub fn enter(
        &mut self,
        now: Instant,
        (direction, user): (Direction, UserId),
        (frame, read): (Frame, &mut Vec<u8>),
        path: &mut PolledPath<'_>,
        next_id: &mut u64,
    ) {
        // A super-segment passes a live proxy as one packet, if no observer needs its segments.
        let (segments, super_segment) = if self.carries_super_segments() {
            (frame.segments(), self.packets.insert_read(frame, read, 1))
        } else {
            (1, self.packets.insert_copy(frame, &read[..frame.bytes() as usize], frame.segments()))
        };
        let packets = frame.segments() / segments;
        let mut connection = None;
        for segment in 0..packets {
            let packet = BufferedPacket::entering(super_segment, segment, segments, direction, now);
            let slot = self.packets.add(packet);
            let size = if packets == 1 { frame.bytes() } else { frame.segment_bytes(segment) };
            let mut packet = Packet { id: *next_id, size, flow: FlowId(0), user, ecn: frame.ecn(), slot };
            *next_id += u64::from(segments);
            let bytes = &self.packets.super_segment(super_segment).bytes;
            let sighting = self.taps.enters(now, direction, &mut packet, View { frame: &frame, bytes, segment });
            // The observer numbers the flows as far as it can.
            if let Some(router) = &mut self.router
                && sighting.is_none_or(|sighting| sighting.flow.0 as usize >= MOST_FLOWS)
            {
                packet.flow = *connection.get_or_insert_with(|| router.flow(direction, &frame, bytes));
            }
            sighting.into_iter().for_each(|sighting| self.packets.set_sighting(slot, sighting));
            path.push(now, direction, packet, self);
        }
    }
}

impl SegmentLookup for ObservedPackets {
    fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
        self.packets.segment(slot)
    }

    fn headers(&self, direction: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        self.packets.headers(direction, packet, out)
    }
}

impl PacketStore for ObservedPackets {
    fn take_dropped(&mut self, dropped: &Dropped) {
        let slot = dropped.packet.slot;
        self.taps.lost(self.packets.packet(slot).direction, &dropped.packet);
        self.packets.release(slot);
    }

    fn take_absorbed(&mut self, packet: &Packet) {
        self.packets.release(packet.slot);
    }

    fn create(&mut self, now: Instant, direction: Direction, contents: Contents<'_>) -> Option<Slot> {
        match contents {
            Contents::CopyOf(slot) => Some(self.packets.copy(slot)),
            Contents::Bytes(bytes) => {
                let frame = Frame::inspect(&VirtioHeader::default(), bytes).ok()?;
                let super_segment = self.packets.insert_copy(frame, bytes, 1);
                Some(self.packets.add(BufferedPacket::entering(super_segment, 0, 1, direction, now)))
            }
            // `Contents` is non-exhaustive: the emulator has no form for further kinds.
            _ => None,
        }
    }

    fn tcp_segment(&self, slot: Slot) -> Option<Segment> {
        let packet = self.packets.packet(slot);
        // Only packets that the observer assigned to a connection have this header; a router
        // identifies connections by itself.
        let info = packet.header.or_else(|| self.router.as_ref().map(|_| SegmentInfo::default()))?;
        let SuperSegment { frame, bytes, .. } = self.packets.super_segment(packet.super_segment);
        let (header, payload) = tcp_packet::parse(frame, bytes, &packet.run())?;
        Some(Segment { header, length: payload.len() as u32, ecn: frame.ecn(), info })
    }

    fn packets(&self, slot: Slot) -> u32 {
        self.packets.packet(slot).segments
    }

    fn most_payload(&self) -> Option<u32> {
        self.carries_super_segments().then_some(tcp_packet::MOST_PAYLOAD)
    }

    fn tcp_payload(&self, slot: Slot) -> Payload<'_> {
        let packet = self.packets.packet(slot);
        let SuperSegment { frame, bytes, .. } = self.packets.super_segment(packet.super_segment);
        match tcp_packet::payload(frame, bytes, &packet.run()) {
            Some(payload) => Payload::Bytes([&bytes[payload], &[]]),
            None => Payload::Counted,
        }
    }

    fn take_tcp_payload(&mut self, slot: Slot) -> Option<(Vec<u8>, Range<usize>)> {
        let packet = self.packets.packet(slot);
        let SuperSegment { frame, bytes, .. } = self.packets.super_segment(packet.super_segment);
        let payload = tcp_packet::payload(frame, bytes, &packet.run())?;
        let memory = self.packets.take_read(packet.super_segment)?;
        Some((memory, payload))
    }

    fn give_back(&mut self, memory: Vec<u8>) {
        self.packets.free_memory(memory);
    }

    fn icmp_error(&self, slot: Slot) -> Option<(FlowId, IcmpError)> {
        let BufferedPacket { super_segment, direction, .. } = self.packets.packet(slot);
        let SuperSegment { frame, bytes, .. } = self.packets.super_segment(super_segment);
        let error = icmp_error(frame, bytes)?;
        // It comes from where the segment went.
        let (direction, IcmpError { source, destination, .. }) = (direction.opposite(), error);
        let observed = self.taps.observer.as_ref();
        let observed = observed.and_then(|observer| observer.flow_of_segment(direction, source, destination));
        let flow = observed.or_else(|| self.router.as_ref()?.flow_of_segment(direction, source, destination))?;
        Some((flow, error))
    }

    fn create_segment(&mut self, now: Instant, direction: Direction, new: NewSegment<'_>) -> Option<(Slot, u32)> {
        let route = self.route(new.flow, direction)?;
        let shared = self.shared_payload(&new);
        let elsewhere = if shared.is_some() { new.segment.length as usize } else { 0 };
        let mut memory = self.packets.memory(tcp_packet::MOST_HEADER + new.segment.length as usize - elsewhere);
        let NewSegment { segment, segment_size, payload, .. } = new;
        let virtio = match self.router {
            Some(_) if shared.is_some() => tcp_packet::write_headers(&route, segment, segment_size, &mut memory),
            // The kernel completes the checksum, so the payload is not read.
            Some(_) => tcp_packet::write_offloaded(&route, segment, segment_size, payload, &mut memory),
            None => tcp_packet::write(&route, segment, payload, &mut memory).map(|()| VirtioHeader::default()),
        };
        let frame = virtio.and_then(|virtio| Frame::inspect_headers(&virtio, &memory, elsewhere).ok());
        let Some(frame) = frame else {
            self.packets.free_memory(memory);
            return None;
        };
        let super_segment = self.packets.insert_shared(frame, memory, shared, 1);
        let packet = BufferedPacket::entering(super_segment, 0, frame.segments(), direction, now);
        let packet = BufferedPacket { header: Some(new.segment.info), ..packet };
        Some((self.packets.add(packet), frame.bytes()))
    }

    fn server_address(&self, flow: FlowId) -> Option<SocketAddr> {
        let Endpoint { address, port } = self.route(flow, Direction::Up)?.destination;
        Some(SocketAddr::new(address, port))
    }

    fn open_flow(&mut self, now: Instant, flow: FlowId, port: u16) -> Option<FlowId> {
        let server = self.server_address(flow)?;
        self.open_flow_to(now, flow, port, server)
    }

    fn open_flow_to(&mut self, now: Instant, flow: FlowId, port: u16, server: SocketAddr) -> Option<FlowId> {
        let mobile = self.route(flow, Direction::Up)?.source.address;
        let is_permitted = self.router.as_ref().is_none_or(|router| router.permits_server(server.ip()));
        if !is_permitted || mobile.is_ipv4() != server.is_ipv4() {
            return None;
        }
        let (mobile, server) =
            (Endpoint { address: mobile, port }, Endpoint { address: server.ip(), port: server.port() });
        let observed = self.taps.observer.as_mut().and_then(|observer| observer.begin_on_path(now, mobile, server));
        observed.or_else(|| self.router.as_mut()?.open_flow(mobile, server))
    }

    fn end_flow(&mut self, flow: FlowId) {
        self.router.iter_mut().for_each(|router| router.end_flow(flow));
    }
}
