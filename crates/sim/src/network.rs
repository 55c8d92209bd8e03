//! The network of a simulation, which all flows share: the path, the event queue, the packet
//! buffer, captures.

use airpath_capture::headers::HeaderRecorder;
use airpath_core::{
    AppEvent, ComponentId, Context, Direction, Ecn, FlowId, Instant, Packet, SegmentLookup, Span, UserId,
};
use airpath_link::{BearerCommand, CommandError, Departure};
use airpath_path::{PacketStore, Path, Payload as TcpPayload, Side};

use crate::capture::Captures;
use crate::event_queue::EventQueue;
use crate::packet_buffer::{PacketBuffer, Payload};
use crate::steering::{Handling, Steering};

/// The network of a simulation.
pub struct Network<'a> {
    /// The hops between servers and mobiles.
    pub path: Path<'a>,
    /// Wake-ups of the hops and of both ends of each flow.
    pub events: EventQueue,
    /// Packet captures, if they were requested.
    pub captures: Option<Captures>,
    /// Headers of the packets that enter, if a replay needs them.
    pub headers: Option<HeaderRecorder>,
    /// Chooses the bearers of flows, if mobiles have two.
    pub steering: Option<Steering>,
    /// Packets that end points have sent.
    pub packets: u64,
    buffer: PacketBuffer,
    /// Number of flows.
    flows: u32,
    /// Number of hops. Nodes of the event queue with smaller numbers are hops; the others are end
    /// points.
    hops: u32,
}

/// A packet that an end point sends.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Its flow.
    pub flow: FlowId,
    /// The mobile that sends or receives it.
    pub user: UserId,
    /// The side that sends.
    pub side: Side,
    /// Size of the IP packet in bytes.
    pub size: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its payload.
    pub payload: Payload,
}

/// A node of the event queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A hop.
    Hop(usize),
    /// One end of a flow.
    End(FlowId, Side),
}

impl<'a> Network<'a> {
    /// A network without packets, for `flows` flows.
    pub fn new(path: Path<'a>, flows: usize) -> Self {
        let hops = path.hops().len();
        // A replay has none.
        let numbers = flows.max(1) as u32;
        Self {
            path,
            events: EventQueue::new(hops + 2 * flows),
            captures: None,
            headers: None,
            steering: None,
            packets: 0,
            buffer: PacketBuffer::new(numbers),
            flows: numbers,
            hops: hops as u32,
        }
    }

    /// The flow number on the path of connection `connection` of `flow`. On the path a flow is one
    /// connection, so that middleboxes distinguish them: further connections have numbers above
    /// those of the flows.
    #[inline]
    pub const fn flow_of_connection(&self, flow: FlowId, connection: u32) -> FlowId {
        FlowId(flow.0.wrapping_add(connection.wrapping_mul(self.flows)))
    }

    /// The index of the flow whose connection has this number on the path.
    #[inline]
    pub const fn flow_index(&self, flow: FlowId) -> usize {
        (if flow.0 < self.flows { flow.0 } else { flow.0 % self.flows }) as usize
    }

    /// The node of one end of a flow. Server is 0, Mobile is 1, as in [`Self::decode_node`].
    #[inline]
    pub const fn node_of(&self, flow: FlowId, side: Side) -> u32 {
        self.hops + 2 * self.flow_index(flow) as u32 + side as u32
    }

    /// The hop or end that a node stands for.
    #[inline]
    pub const fn decode_node(&self, node: u32) -> Node {
        match node.checked_sub(self.hops) {
            None => Node::Hop(node as usize),
            Some(end) => Node::End(FlowId(end / 2), if end % 2 == 0 { Side::Server } else { Side::Mobile }),
        }
    }

    /// Whether the event log or the captures can record no more.
    pub fn has_failed(&self) -> bool {
        self.path.has_failed() || self.captures.as_ref().is_some_and(Captures::has_failed)
    }

    /// The component number of an end point.
    #[inline]
    pub const fn component(&self, user: UserId, side: Side) -> ComponentId {
        self.path.component(user, side)
    }

    /// A context for a call into `component`.
    #[inline]
    pub fn context(&mut self, component: ComponentId) -> Context<'_> {
        self.path.context(component)
    }

    /// The interface of a mobile that carries `flow`; `user` is that of the scenario.
    pub fn interface(&mut self, flow: FlowId, user: UserId) -> UserId {
        let index = self.flow_index(flow);
        self.steering.as_mut().map_or(user, |steering| steering.interface(index, user))
    }

    /// A probe has measured the round trip on the interface `user`, or was not answered in time.
    pub fn measured(&mut self, now: Instant, user: UserId, round_trip: Option<Span>) {
        let Some(steering) = &mut self.steering else { return };
        for flow in steering.measured(user, round_trip) {
            let node = self.node_of(flow, Side::Mobile);
            self.events.wake(node, Some(now));
        }
    }

    /// Reports progress of an application.
    pub fn report(&mut self, now: Instant, user: UserId, side: Side, event: impl FnOnce() -> AppEvent) {
        let component = self.component(user, side);
        self.context(component).app(now, event);
    }

    /// Sends a packet from an end point.
    #[inline]
    pub fn send(&mut self, now: Instant, outgoing: Outgoing) {
        self.send_with(now, outgoing, TcpPayload::Counted);
    }

    /// The segments of `flow`, a connection to `host`, will carry bytes.
    pub fn carry_bytes(&mut self, flow: FlowId, host: &str) {
        self.buffer.carry_bytes(flow, host);
    }

    /// Sends a packet from an end point; a TCP segment with this payload, or a datagram that begins
    /// with it.
    #[inline]
    pub fn send_with(&mut self, now: Instant, outgoing: Outgoing, content: TcpPayload<'_>) {
        let Outgoing { flow, mut user, side, size, ecn, payload } = outgoing;
        let index = self.flow_index(flow);
        if let Some(steering) = &mut self.steering {
            // The ends of a connection that migrates have chosen.
            if steering.handling(index) != Handling::Migrates || !matches!(payload, Payload::Quic { .. }) {
                user = steering.interface(index, user);
            }
        }
        let id = self.packets;
        self.packets += 1;
        let slot = self.buffer.insert(payload);
        if let TcpPayload::Bytes(parts) = content {
            self.buffer.store_bytes(slot, parts);
        }
        let packet = Packet { id, size, flow, user, ecn, slot };
        let direction = side.sends();
        if self.headers.is_some() || self.captures.is_some() {
            self.record(now, side, packet);
        }
        let hop = self.path.enter(now, direction, packet, &mut self.buffer);
        self.rearm(hop);
    }

    /// Records a packet that `side` sends. By value: the compiler need not keep the packet of the
    /// caller in memory.
    #[cold]
    fn record(&mut self, now: Instant, side: Side, packet: Packet) {
        let direction = side.sends();
        if let Some(headers) = &mut self.headers {
            headers.add(now, packet.size, |out| _ = self.buffer.headers(direction, &packet, out));
        }
        if self.captures.is_some() {
            self.capture(now, side, direction, &packet);
        }
    }

    /// Forwards all packets that have left `hop` by `now`. `arrived` is called for each that has
    /// reached an end point; [`Self::payload_for`] has its payload during that call.
    #[inline]
    pub fn drain_hop(&mut self, now: Instant, hop: usize, mut arrived: impl FnMut(&mut Self, Side, &Packet)) {
        // The hop wakes when a packet is due, so `Departure::due` equals `now` and is not needed.
        while let Some((direction, Departure { packet, .. })) = &self.path.pop(now, hop, &mut self.buffer) {
            if let Some(next) = self.path.forward(now, hop, *direction, packet, &mut self.buffer) {
                self.rearm(next);
                continue;
            }
            let side = Side::at_end_of(*direction);
            if let Payload::Segment(segment) = self.buffer.get_mut(packet.slot) {
                // A queue may have marked the packet as CE (RFC 3168 §5).
                segment.ecn = packet.ecn;
            }
            if self.captures.is_some() {
                self.capture(now, side, *direction, packet);
            }
            arrived(self, side, packet);
            self.buffer.release(packet.slot);
        }
        self.rearm(hop);
    }

    /// Segments that a proxy creates for `flow` are to have IPv6 headers.
    pub fn set_ipv6(&mut self, flow: FlowId) {
        self.buffer.set_ipv6(flow);
    }

    /// The payload of a packet that has arrived at `side`, and a context for its receiver.
    #[inline]
    pub fn payload_for(&mut self, packet: &Packet, side: Side) -> (&Payload, Context<'_>) {
        let component = self.receiver(packet, side);
        (self.buffer.get(packet.slot), self.path.context(component))
    }

    /// The component number of the end of a packet's flow.
    #[inline]
    fn receiver(&self, packet: &Packet, side: Side) -> ComponentId {
        let owner = |steering: &Steering| steering.owner(self.flow_index(packet.flow), packet.user);
        self.component(self.steering.as_ref().map_or(packet.user, owner), side)
    }

    /// The same, with the payload of its TCP segment.
    pub fn contents_for(&mut self, packet: &Packet, side: Side) -> (&Payload, TcpPayload<'_>, Context<'_>) {
        let component = self.receiver(packet, side);
        let buffer = &self.buffer;
        (buffer.get(packet.slot), buffer.tcp_payload(packet.slot), self.path.context(component))
    }

    /// The payload of a packet that has arrived, and the bytes with which it begins.
    pub fn datagram(&self, packet: &Packet) -> (&Payload, &[u8]) {
        (self.buffer.get(packet.slot), self.buffer.bytes(packet.slot))
    }

    /// Takes the bytes of a datagram that has arrived.
    pub fn take_datagram(&mut self, packet: &Packet) -> Vec<u8> {
        self.buffer.take_bytes(packet.slot)
    }

    /// Gives back the memory of [`Self::take_datagram`].
    pub fn return_datagram(&mut self, packet: &Packet, datagram: Vec<u8>) {
        self.buffer.return_bytes(packet.slot, datagram);
    }

    /// Changes the conditions of `hop`.
    ///
    /// # Errors
    /// If the hop cannot carry out the command; then nothing has changed.
    pub fn command(&mut self, now: Instant, hop: usize, command: &BearerCommand) -> Result<(), CommandError> {
        let outcome = self.path.command(now, hop, command, &mut self.buffer);
        self.rearm(hop);
        outcome
    }

    /// Number of packets in the network.
    pub fn packets_inside(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// Schedules the next wake-up of `hop`.
    #[inline]
    fn rearm(&mut self, hop: usize) {
        self.events.wake(hop as u32, self.path.next_wakeup(hop));
    }

    /// Cold, because few simulations record captures: the callers test that first.
    #[cold]
    fn capture(&mut self, now: Instant, side: Side, direction: Direction, packet: &Packet) {
        let mut packet = *packet;
        if let Some(steering) = &self.steering {
            packet.user = steering.addressed(self.flow_index(packet.flow), packet.user);
        }
        if let Some(captures) = &mut self.captures {
            let head = self.buffer.bytes(packet.slot);
            captures.record(side, now, direction, &packet, self.buffer.get(packet.slot), head);
        }
    }
}
