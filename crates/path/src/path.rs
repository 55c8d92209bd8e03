//! The hops of a network: forwarding from one to the next, packet events, component numbers.

use airpath_core::{Classes, ComponentId, Context, Direction, Instant, Packet, PacketStep, Reporter, Sink, UserId};
use airpath_link::{BearerCommand, CommandError, Departure};

use crate::hop::Hop;
use crate::route::{Route, Side};
use crate::store::PacketStore;

/// The hops of a network before any packet has entered.
pub struct Topology {
    /// Hops with their names. The index of a hop is its component number.
    pub hops: Vec<(String, Hop)>,
    /// The order in which packets cross them.
    pub route: Route,
    /// Names of the mobiles.
    pub mobiles: Vec<String>,
}

impl Topology {
    /// Names of all components, by their number: the hops, the server, the mobiles.
    pub fn component_names(&self) -> Vec<String> {
        let hops = self.hops.iter().map(|(name, _)| name.clone());
        hops.chain(["server".to_owned()]).chain(self.mobiles.iter().cloned()).collect()
    }
}

/// The hops of a network.
///
/// Packets that are dropped go back to the [`PacketStore`] of the call.
pub struct Path<'a> {
    hops: Vec<Hop>,
    names: Vec<String>,
    route: Route,
    reporter: Reporter<'a>,
}

impl<'a> Path<'a> {
    /// The path of `topology`, which reports to `sink`.
    pub fn new(topology: Topology, sink: Option<&'a mut (dyn Sink + 'a)>) -> Self {
        let names = topology.component_names();
        let hops = topology.hops.into_iter().map(|(_, hop)| hop).collect();
        Self { hops, names, route: topology.route, reporter: Reporter::new(sink) }
    }

    /// The first hop of `packet`, which an end point sends in `direction` and which enters there.
    #[inline]
    pub fn enter<S: PacketStore>(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        store: &mut S,
    ) -> usize {
        if self.reporter.wants(Classes::PACKET) {
            let sender = self.component(packet.user, Side::at_start_of(direction));
            self.report(now, sender, direction, packet, PacketStep::Sent(store.segment(packet.slot)));
        }
        let hop = self.route.first_hop(direction, &packet);
        self.push(now, hop, direction, packet, store);
        hop
    }

    /// The next packet that has left `hop` at or before `now`. The caller repeats the call until it
    /// returns `None`.
    #[inline]
    pub fn pop<S: PacketStore>(&mut self, now: Instant, hop: usize, store: &mut S) -> Option<(Direction, Departure)> {
        let mut cx = self.reporter.context(component_of(hop));
        let departure = match &mut self.hops[hop] {
            Hop::Bearer(bearer) => bearer.pop(now, cx.with_segments(store)),
            Hop::Middlebox(middlebox) => middlebox.pop(now, cx, store),
        };
        self.return_dropped(store);
        departure
    }

    /// Passes a packet that has left `hop` to the next hop, which is returned; `None` if the packet
    /// has arrived.
    #[inline]
    pub fn forward<S: PacketStore>(
        &mut self,
        now: Instant,
        hop: usize,
        direction: Direction,
        packet: &Packet,
        store: &mut S,
    ) -> Option<usize> {
        let next = self.route.next_hop(hop, direction, packet);
        match next {
            Some(next) => self.push(now, next, direction, *packet, store),
            None if self.reporter.wants(Classes::PACKET) => {
                let receiver = self.component(packet.user, Side::at_end_of(direction));
                self.report(now, receiver, direction, *packet, PacketStep::Received);
            }
            None => {}
        }
        next
    }

    /// Changes the conditions of `hop`.
    ///
    /// # Errors
    /// If the hop cannot carry out the command; then nothing has changed.
    pub fn command<S: PacketStore>(
        &mut self,
        now: Instant,
        hop: usize,
        command: &BearerCommand,
        store: &mut S,
    ) -> Result<(), CommandError> {
        let mut cx = self.reporter.context(component_of(hop));
        let outcome = match &mut self.hops[hop] {
            Hop::Bearer(bearer) => bearer.command(now, command, cx.with_segments(store)),
            Hop::Middlebox(middlebox) => middlebox.command(now, command, cx, store),
        };
        self.return_dropped(store);
        outcome
    }

    /// The run ends at `now`: bearers report what has changed by itself.
    pub fn end(&mut self, now: Instant) {
        for (index, hop) in self.hops.iter_mut().enumerate() {
            if let Hop::Bearer(bearer) = hop {
                bearer.end(now, &mut self.reporter.context(component_of(index)));
            }
        }
    }

    /// When the state of `hop` changes next without further calls.
    #[inline]
    pub fn next_wakeup(&self, hop: usize) -> Option<Instant> {
        self.hops[hop].next_wakeup()
    }

    /// A context for a call into `component`, which may be an end point.
    #[inline]
    pub fn context(&mut self, component: ComponentId) -> Context<'_> {
        self.reporter.context(component)
    }

    /// The component number of an end point.
    #[inline]
    pub const fn component(&self, user: UserId, side: Side) -> ComponentId {
        let server = self.hops.len() as u32;
        match side {
            Side::Server => ComponentId(server),
            Side::Mobile => ComponentId(server + 1 + user.number()),
        }
    }

    /// Names of all components, by their number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The hops with their names.
    pub fn hops(&self) -> impl DoubleEndedIterator<Item = (&str, &Hop)> + ExactSizeIterator {
        self.names[..self.hops.len()].iter().map(String::as_str).zip(&self.hops)
    }

    /// The hop with this index.
    pub fn hop_mut(&mut self, index: usize) -> Option<&mut Hop> {
        self.hops.get_mut(index)
    }

    /// The order in which packets cross the hops.
    pub const fn route(&self) -> &Route {
        &self.route
    }

    /// Whether any hop reads the headers of packets as bytes.
    pub fn inspects_headers(&self) -> bool {
        self.hops.iter().any(Hop::inspects_headers)
    }

    /// Whether any hop looks up TCP headers.
    pub fn inspects_segments(&self) -> bool {
        self.hops.iter().any(Hop::inspects_segments)
    }

    /// Whether the sink can record no more.
    pub fn has_failed(&self) -> bool {
        self.reporter.has_failed()
    }

    #[inline]
    fn push<S: PacketStore>(&mut self, now: Instant, hop: usize, direction: Direction, packet: Packet, store: &mut S) {
        let mut cx = self.reporter.context(component_of(hop));
        cx.direction = direction;
        match &mut self.hops[hop] {
            Hop::Bearer(bearer) => {
                bearer.push(now, direction, packet, cx.with_segments(store));
            }
            Hop::Middlebox(middlebox) => middlebox.push(now, direction, packet, cx, store),
        }
        self.return_dropped(store);
    }

    #[inline]
    fn return_dropped<S: PacketStore>(&mut self, store: &mut S) {
        // The check is faster than an empty `drain`.
        if !self.reporter.dropped.is_empty() {
            for dropped in self.reporter.dropped.drain(..) {
                store.take_dropped(&dropped);
            }
        }
    }

    /// Reports a step of a packet at an end point.
    #[cold]
    fn report(&mut self, now: Instant, at: ComponentId, direction: Direction, packet: Packet, step: PacketStep) {
        let mut cx = self.reporter.context(at);
        cx.direction = direction;
        cx.packet(now, packet, || step);
    }
}

/// Hops come first among the components.
#[inline]
const fn component_of(hop: usize) -> ComponentId {
    ComponentId(hop as u32)
}
