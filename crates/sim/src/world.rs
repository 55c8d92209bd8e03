//! Everything that flows share: the hops of the topology, the packets on their way, who listens.
//!
//! A packet's way down is server → access (where servers have one) → fixed network → cell → mobile,
//! and the same backwards.

use airpath_core::{
    Classes, ComponentId, Context, Direction, Dropped, Ecn, FlowId, Headers, Instant, Packet, PacketStep, SegmentInfo,
    Sink, Slot, Succession, UserId,
};
use airpath_link::{Bearer, BearerCommand, CommandError, Departure};

use crate::agenda::Agenda;
use crate::capture::Captures;
use crate::route::{Route, Side};
use crate::store::{Body, Store};

/// The shared part of a simulation.
pub struct World<'a> {
    /// Every bearer that packets cross; its index is its node number and its component.
    pub hops: Vec<Box<dyn Bearer>>,
    /// Which hop is what.
    pub route: Route,
    /// Who is called next.
    pub agenda: Agenda,
    /// Packet captures, if asked for.
    pub captures: Option<Captures>,
    /// Packets created so far.
    pub packets: u64,
    store: Store,
    /// What was last sent of each flow, each way, if a hop reads headers.
    successions: Option<Vec<[Succession; 2]>>,
    sink: Option<&'a mut dyn Sink>,
    // What the sink wants, which never changes.
    wants: Classes,
    dropped: Vec<Dropped>,
}

/// What an end point sends.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// The flow.
    pub flow: FlowId,
    /// Whose.
    pub user: UserId,
    /// The side that sends.
    pub side: Side,
    /// Size of the IP packet in bytes.
    pub size: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// What it carries.
    pub body: Body,
}

impl<'a> World<'a> {
    /// A world without packets.
    pub fn new(hops: Vec<Box<dyn Bearer>>, route: Route, nodes: usize, sink: Option<&'a mut dyn Sink>) -> Self {
        Self {
            successions: hops.iter().any(|hop| hop.reads_headers()).then(Vec::new),
            hops,
            route,
            agenda: Agenda::new(nodes),
            captures: None,
            packets: 0,
            store: Store::default(),
            wants: sink.as_ref().map_or(Classes::NONE, |sink| sink.wants()),
            sink,
            dropped: Vec::new(),
        }
    }

    /// Whether what happens can no longer be recorded.
    pub fn has_failed(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.has_failed())
            || self.captures.as_ref().is_some_and(Captures::has_failed)
    }

    /// A context for a call into `component`.
    #[inline]
    pub fn cx(&mut self, component: ComponentId) -> Context<'_> {
        // The explicit match shortens the sink's lifetime to that of the borrow.
        let sink: Option<&mut dyn Sink> = match &mut self.sink {
            Some(sink) => Some(&mut **sink),
            None => None,
        };
        Context::wanting(self.wants, sink, &mut self.dropped, component)
    }

    /// The component of one end of a flow.
    pub fn component(&self, user: UserId, side: Side) -> ComponentId {
        match side {
            Side::Server => self.route.server,
            Side::Mobile => self.route.mobile_of[usize::from(user.0)],
        }
    }

    /// Sends a packet from an end point.
    #[inline]
    pub fn send(&mut self, now: Instant, outgoing: Outgoing) {
        let Outgoing { flow, user, side, size, ecn, body } = outgoing;
        let id = self.packets;
        self.packets += 1;
        let headers = self.headers(flow, side, size, &body);
        let slot = self.store.put(body);
        let packet = Packet { id, size, flow, user, ecn, headers, slot };
        if self.captures.is_some() || self.sink.is_some() {
            self.note_sent(now, side, packet);
        }
        let hop = match side {
            Side::Mobile => self.route.cell_of[usize::from(user.0)],
            Side::Server => self.route.access_of.get(flow.0 as usize).copied().unwrap_or(self.route.fixed),
        };
        self.push(now, hop, side.sends(), packet);
    }

    /// What a hop that reads headers is told of those of a packet.
    #[inline]
    fn headers(&mut self, flow: FlowId, side: Side, size: u32, body: &Body) -> Headers {
        let Some(successions) = &mut self.successions else { return Headers::Other };
        let Some(segment) = segment_info(body) else { return Headers::Other };
        let index = flow.0 as usize;
        if successions.len() <= index {
            successions.resize(index + 1, Default::default());
        }
        successions[index][side.sends() as usize].next(size, &segment)
    }

    /// Tells those who listen of a packet that an end point sends.
    #[cold]
    fn note_sent(&mut self, now: Instant, side: Side, packet: Packet) {
        let body = self.store.get(packet.slot);
        let info = segment_info(body);
        if let Some(captures) = &mut self.captures {
            captures.record(side, now, side.sends(), &packet, body);
        }
        let component = self.component(packet.user, side);
        let mut cx = self.cx(component);
        cx.direction = side.sends();
        cx.packet(now, packet, || PacketStep::Sent(info));
    }

    /// Tells those who listen of a packet that has arrived at an end point.
    #[cold]
    fn note_received(&mut self, now: Instant, direction: Direction, packet: Packet) {
        let side = Side::at_end_of(direction);
        if let Some(captures) = &mut self.captures {
            captures.record(side, now, direction, &packet, self.store.get(packet.slot));
        }
        let component = self.component(packet.user, side);
        let mut cx = self.cx(component);
        cx.direction = direction;
        cx.packet(now, packet, || PacketStep::Received);
    }

    /// The next packet that has left `hop`. Call until `None`, then [`Self::rearm`].
    #[inline]
    pub fn pop(&mut self, now: Instant, hop: usize) -> Option<(Direction, Departure)> {
        let sink: Option<&mut dyn Sink> = match &mut self.sink {
            Some(sink) => Some(&mut **sink),
            None => None,
        };
        let mut cx = Context::wanting(self.wants, sink, &mut self.dropped, component_of(hop));
        let departure = self.hops[hop].pop(now, &mut cx);
        self.reclaim();
        departure
    }

    /// Puts the next wake-up of `hop` on the agenda.
    #[inline]
    pub fn rearm(&mut self, hop: usize) {
        self.agenda.wake(hop as u32, self.hops[hop].next_wakeup());
    }

    /// Takes a packet from `hop` to the next one. Says whether it is at the end of its way: then [`Self::open`] has
    /// what it carries, until [`Self::free`].
    #[inline]
    pub fn forward(&mut self, now: Instant, hop: usize, direction: Direction, packet: &Packet) -> bool {
        let (fixed, cell) = (self.route.fixed, self.route.cell_of[usize::from(packet.user.0)]);
        let access = self.route.access_of.get(packet.flow.0 as usize).copied();
        let next = match direction {
            Direction::Down if hop == fixed => Some(cell),
            Direction::Down if hop == cell => None,
            Direction::Down => Some(fixed),
            Direction::Up if hop == cell => Some(fixed),
            Direction::Up if hop == fixed => access,
            Direction::Up => None,
        };
        if let Some(next) = next {
            self.push(now, next, direction, *packet);
            return false;
        }
        if let Body::Segment(segment) = self.store.get(packet.slot) {
            segment.ecn = packet.ecn;
        }
        if self.captures.is_some() || self.sink.is_some() {
            self.note_received(now, direction, *packet);
        }
        true
    }

    /// What a packet carries that has arrived at `side`, and a context for who takes it there.
    #[inline]
    pub fn open(&mut self, packet: &Packet, side: Side) -> (&Body, Context<'_>) {
        let component = self.component(packet.user, side);
        let sink: Option<&mut dyn Sink> = match &mut self.sink {
            Some(sink) => Some(&mut **sink),
            None => None,
        };
        (self.store.get(packet.slot), Context::wanting(self.wants, sink, &mut self.dropped, component))
    }

    /// Forgets what a packet carried that has arrived.
    #[inline]
    pub fn free(&mut self, slot: Slot) {
        self.store.free(slot);
    }

    /// Changes the conditions of `hop`.
    ///
    /// # Errors
    /// What it cannot do; then nothing has changed.
    pub fn command(&mut self, now: Instant, hop: usize, command: &BearerCommand) -> Result<(), CommandError> {
        let sink: Option<&mut dyn Sink> = match &mut self.sink {
            Some(sink) => Some(&mut **sink),
            None => None,
        };
        let mut cx = Context::wanting(self.wants, sink, &mut self.dropped, component_of(hop));
        let answer = self.hops[hop].command(now, command, &mut cx);
        self.reclaim();
        self.rearm(hop);
        answer
    }

    /// Packets that are under way somewhere.
    pub fn under_way(&self) -> u64 {
        self.store.kept() as u64
    }

    #[inline]
    fn push(&mut self, now: Instant, hop: usize, direction: Direction, packet: Packet) {
        let sink: Option<&mut dyn Sink> = match &mut self.sink {
            Some(sink) => Some(&mut **sink),
            None => None,
        };
        let mut cx = Context::wanting(self.wants, sink, &mut self.dropped, component_of(hop));
        cx.direction = direction;
        self.hops[hop].push(now, direction, packet, &mut cx);
        self.reclaim();
        self.rearm(hop);
    }

    /// Frees what lost packets carried.
    #[inline]
    fn reclaim(&mut self) {
        for dropped in self.dropped.drain(..) {
            self.store.free(dropped.packet.slot);
        }
    }
}

/// Hops come first among the components.
fn component_of(hop: usize) -> ComponentId {
    ComponentId(hop as u16)
}

fn segment_info(body: &Body) -> Option<SegmentInfo> {
    match body {
        Body::Segment(segment) => Some(segment.info),
        Body::Recorded(info) => *info,
        Body::Echo { .. } | Body::Datagram { .. } => None,
    }
}
