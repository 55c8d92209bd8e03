//! The TCP connections of a flow that opens several.

use std::sync::Arc;

use airpath_core::{Context, Direction, FlowId, Instant};
use airpath_path::Side;
use airpath_tcp::{Config, Connection, Identity as TcpIdentity, Segment};

use super::transfer::{is_done, outgoing};
use super::{Identity, seed};
use crate::network::{Network, Outgoing};

/// The first dynamic port, and the number of dynamic ports (RFC 6335 §6).
const PORTS: (u16, u32) = (49_152, 16_384);
/// Distance between the first ports of two flows: a prime, so that the ports of many flows seldom
/// collide.
const PORTS_OF_A_FLOW: u32 = 1009;

/// Open connections of a flow; the latest is the last.
pub struct Connections<A> {
    config: Arc<Config>,
    pairs: Vec<Pair<A>>,
    opened: u32,
    /// Whether several may be open at a time: then each is a flow of its own on the path.
    parallel: bool,
}

/// A connection with its two ends.
pub struct Pair<A> {
    flow: FlowId,
    port: u16,
    /// The mobile's end.
    pub mobile: Connection,
    /// The server's end.
    pub server: Connection,
    /// The applications at both ends.
    pub application: A,
}

impl<A> Connections<A> {
    /// No connections yet; they are to have these settings, and may be open at the same time if
    /// `parallel`.
    pub const fn new(config: Arc<Config>, parallel: bool) -> Self {
        Self { config, pairs: Vec::new(), opened: 0, parallel }
    }

    /// Number of connections opened so far.
    pub const fn opened(&self) -> u32 {
        self.opened
    }

    /// The open connections.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pair<A>> {
        self.pairs.iter_mut()
    }

    /// The latest connection.
    pub fn last_mut(&mut self) -> Option<&mut Pair<A>> {
        self.pairs.last_mut()
    }

    /// Whether no more packets will come: without a handshake, connections do not close.
    pub fn is_silent(&self) -> bool {
        self.pairs.is_empty() || !self.config.handshake
    }

    /// Opens a connection from the mobile to port 80 of the server.
    pub fn open(&mut self, now: Instant, identity: &Identity, application: A, network: &mut Network<'_>) {
        self.open_from(now, Side::Mobile, 80, identity, application, network);
    }

    /// Opens a connection from the side `opener`; the server has the port `server_port`.
    pub fn open_from(
        &mut self,
        now: Instant,
        opener: Side,
        server_port: u16,
        identity: &Identity,
        application: A,
        network: &mut Network<'_>,
    ) {
        let port = port_of(identity, self.opened);
        let flow = network.flow_of_connection(identity.id, if self.parallel { self.opened } else { 0 });
        let end = |direction, local_port, remote_port| TcpIdentity {
            flow,
            direction,
            local_port,
            remote_port,
            initial_sequence: 0,
        };
        let (mobile, server) = (end(Direction::Up, port, server_port), end(Direction::Down, server_port, port));
        let config = || Arc::clone(&self.config);
        let (mut mobile, mut server) = match opener {
            Side::Mobile => (Connection::connect(config(), mobile, now), Connection::listen(config(), server)),
            Side::Server => (Connection::listen(config(), mobile), Connection::connect(config(), server, now)),
        };
        seed(&mut mobile, &identity.random, self.opened, Side::Mobile);
        seed(&mut server, &identity.random, self.opened, Side::Server);
        self.opened += 1;
        self.pairs.push(Pair { flow, port, mobile, server, application });
        // Without a handshake the other end is open from the start, and no packet wakes it.
        let other = match opener {
            Side::Mobile => Side::Server,
            Side::Server => Side::Mobile,
        };
        network.events.wake(network.node_of(identity.id, other), Some(now));
    }

    /// `side` receives a segment. Late segments of a connection that both ends have closed are
    /// ignored.
    pub fn receive(&mut self, now: Instant, side: Side, segment: &Segment, cx: &mut Context<'_>) {
        let port = match side {
            Side::Mobile => segment.header.destination_port,
            Side::Server => segment.header.source_port,
        };
        if let Some(pair) = self.pairs.iter_mut().rev().find(|pair| pair.port == port) {
            pair.end(side).handle_segment(now, segment, cx);
        }
    }

    /// Handles the timers of `side` that have expired.
    pub fn handle_timeouts(&mut self, now: Instant, side: Side, identity: &Identity, network: &mut Network<'_>) {
        let component = network.component(identity.user, side);
        for pair in &mut self.pairs {
            let end = pair.end(side);
            if end.next_wakeup().is_some_and(|due| due <= now) {
                end.handle_timeout(now, &mut network.context(component));
            }
        }
    }

    /// Sends the segments of `side`.
    pub fn transmit(&mut self, now: Instant, side: Side, identity: &Identity, network: &mut Network<'_>) {
        let component = network.component(identity.user, side);
        for pair in &mut self.pairs {
            let flow = pair.flow;
            let end = pair.end(side);
            while let Some(segment) = end.poll_transmit(now, &mut network.context(component)) {
                network.send(now, Outgoing { flow, ..outgoing(identity, identity.user, side, segment) });
            }
        }
    }

    /// Why `side` lost a connection, if it did. Removes connections that both ends have closed.
    pub fn settle(&mut self, side: Side) -> Option<String> {
        let lost = self.pairs.iter_mut().find_map(|pair| loss(pair.end(side), side));
        if lost.is_some() {
            return lost;
        }
        self.pairs.retain(|pair| !(is_done(&pair.mobile) && is_done(&pair.server)));
        None
    }

    /// Removes the connections that `side` has lost, but for the latest unless it `is_done`.
    /// Returns whether there were any.
    pub fn forget_lost(&mut self, side: Side, is_done: bool) -> bool {
        let (before, mut later) = (self.pairs.len(), self.pairs.len());
        self.pairs.retain_mut(|pair| {
            later -= 1;
            loss(pair.end(side), side).is_none() || (later == 0 && !is_done)
        });
        self.pairs.len() < before
    }

    /// Forgets all connections, without a packet.
    pub fn forget(&mut self) {
        self.pairs.clear();
    }

    /// The next timer of `side`.
    pub fn next_wakeup(&mut self, side: Side) -> Option<Instant> {
        self.pairs.iter_mut().filter_map(|pair| pair.end(side).next_wakeup()).min()
    }
}

/// The mobile's port of connection number `connection` of a flow.
pub(super) fn port_of(identity: &Identity, connection: u32) -> u16 {
    let number = identity.id.0.wrapping_mul(PORTS_OF_A_FLOW).wrapping_add(connection);
    PORTS.0 + (number % PORTS.1) as u16
}

/// Why `side` lost a connection, if it did.
pub(super) fn loss(connection: &Connection, side: Side) -> Option<String> {
    let outcome = connection.outcome().filter(|outcome| !outcome.is_orderly())?;
    let end = match side {
        Side::Mobile => "mobile",
        Side::Server => "server",
    };
    Some(format!("{outcome}, reported by the {end}"))
}

impl<A> Pair<A> {
    const fn end(&mut self, side: Side) -> &mut Connection {
        match side {
            Side::Mobile => &mut self.mobile,
            Side::Server => &mut self.server,
        }
    }
}
