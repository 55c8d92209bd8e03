//! The application level of a proxy: what its client connections share, and the server connections
//! that it opens for them.

use std::net::SocketAddr;
use std::sync::Arc;

use airpath_core::{Bytes, FlowId, Instant, RandomStream, Slot, Span, UserId};
use airpath_path::{Departures, MiddleboxContext};
use airpath_tcp::{Connection, Segment};

use crate::config::Config;
use crate::flows::Flows;
use crate::http::cache::SharedCache;
use crate::http::dictionary::Dictionaries;
use crate::http::names::Names;
use crate::http::pool::Pool;
use crate::http::ports::Ports;
use crate::http::relay::{Destination, HttpRelay, NewServer};
use crate::http::statistics::{Bypass, Statistics};
use crate::relay::Relay;

/// What the client connections of the application level share.
#[derive(Debug)]
pub struct Application {
    cache: SharedCache,
    dictionaries: Dictionaries,
    names: Names,
    pool: Pool,
    ports: Ports,
    /// Server connections that are kept, for each server.
    most_kept: usize,
    /// The counters of client connections that have ended.
    statistics: Statistics,
}

/// What the proxy lends to open server connections and to end them.
#[derive(Debug)]
pub struct Opening<'a> {
    /// The settings of the proxy's end.
    pub end: &'a Arc<airpath_tcp::Config>,
    pub initial_sequences: &'a mut RandomStream,
    pub flows: &'a mut Flows,
    pub left: &'a mut Departures,
}

impl Application {
    /// No connections, and nothing is stored.
    pub fn new(config: &Config) -> Self {
        let mut application = Self {
            cache: SharedCache::new(0),
            dictionaries: Dictionaries::new(0),
            names: Names::default(),
            pool: Pool::default(),
            ports: Ports::default(),
            most_kept: 0,
            statistics: Statistics::default(),
        };
        application.reconfigure(config);
        application
    }

    /// Changes the settings. What exceeds a new capacity is removed.
    pub fn reconfigure(&mut self, config: &Config) {
        let http = config.http.as_ref();
        self.cache.set_capacity(http.and_then(|http| http.cache).map_or(0, Bytes::get));
        self.dictionaries.set_capacity(http.and_then(|http| http.dictionaries).map_or(0, Bytes::get));
        self.most_kept = http.map_or(0, |http| http.server_pool.into());
    }

    /// Continues with the counters and ports of another process.
    pub fn restore(&mut self, statistics: Statistics, next_port: u16) {
        self.statistics = statistics;
        self.ports = Ports::beginning_with(next_port);
    }

    /// The time of day when the clock was zero, since 1 January 1970, UTC.
    pub fn set_time_of_day(&self, start: Span) {
        self.cache.set_epoch(start.as_nanos() / 1_000_000_000);
    }

    /// The counters of client connections that have ended, and of those without HTTP.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Counts bytes towards a mobile from a port that is not one of HTTP.
    pub const fn count_other_port(&mut self, bytes: u64) {
        self.statistics.bypass(Bypass::OtherPort, bytes);
    }

    /// The port that is tried next.
    pub const fn next_port(&self) -> u16 {
        self.ports.next_port()
    }

    /// The application level for a connection that was opened for transport, before any payload.
    pub fn relay(
        &self,
        relay: Relay,
        server: (Option<SocketAddr>, u16),
        settings: (&Config, &super::Config),
    ) -> HttpRelay {
        HttpRelay::new(relay, server, settings, (&self.cache, &self.dictionaries, &self.names))
    }

    /// A client connection has ended.
    pub fn remove(&mut self, relay: &HttpRelay, flows: &mut Flows) {
        self.statistics.add(relay.statistics());
        for (flow, port) in relay.opened_flows() {
            self.ports.free(relay.identity().1, port);
            flows.end(flow);
        }
    }

    /// Opens the server connections that a client connection wants, and takes those that it does
    /// not use any more.
    pub fn open_servers(
        &mut self,
        now: Instant,
        (number, relay): (u32, &mut HttpRelay),
        opening: &mut Opening<'_>,
        cx: &mut MiddleboxContext<'_>,
    ) {
        let user = relay.identity().1;
        for (flow, port) in relay.take_closed() {
            self.ports.free(user, port);
            opening.flows.end(flow);
        }
        let mut any = false;
        while let Some(wanted) = relay.wanted_server() {
            any = true;
            match relay.destination(now, wanted) {
                Destination::Server(server) => self.open_server(now, (number, relay), (wanted, server), opening, cx),
                Destination::Resolver(resolver) => {
                    let new = self.open(now, (number, relay), Some(resolver), opening, cx);
                    relay.open_lookup(now, new, opening.end);
                }
                Destination::Queried | Destination::Refused => {}
            }
        }
        if any {
            relay.exchange(now, cx);
        }
        for channel in relay.take_released() {
            let Some(server) = channel.server else { continue };
            let flow = channel.flow;
            opening.flows.release(flow);
            self.pool.put(now, channel, (user, server), self.most_kept);
            self.proceed_kept(now, flow, opening.flows, opening.left, cx);
        }
    }

    /// Opens a server connection of a client connection, or uses one that was kept.
    fn open_server(
        &mut self,
        now: Instant,
        (number, relay): (u32, &mut HttpRelay),
        (wanted, server): (usize, Option<SocketAddr>),
        opening: &mut Opening<'_>,
        cx: &mut MiddleboxContext<'_>,
    ) {
        let user = relay.identity().1;
        let kept = relay.reusable(wanted, server).and_then(|server| self.pool.take((user, server)));
        if let Some(channel) = kept {
            opening.flows.assign(channel.flow, number);
            relay.reuse_server(wanted, channel);
            return;
        }
        let new = self.open(now, (number, relay), server, opening, cx);
        relay.open_server(now, wanted, new, opening.end);
    }

    /// Begins a flow with a port of the proxy's own; `None` if there is none.
    fn open(
        &mut self,
        now: Instant,
        (number, relay): (u32, &HttpRelay),
        server: Option<SocketAddr>,
        opening: &mut Opening<'_>,
        cx: &mut MiddleboxContext<'_>,
    ) -> Option<NewServer> {
        let (flow, user) = relay.identity();
        let own = cx.server_address(flow);
        let (flow, port) = self.ports.open(user, |port| match server.filter(|_| server != own) {
            Some(server) => cx.open_flow_to(now, flow, port, server),
            None => cx.open_flow(now, flow, port),
        })?;
        opening.flows.assign(flow, number);
        // Truncation to the width of a sequence number.
        let initial_sequence = opening.initial_sequences.bits() as u32;
        Some(NewServer { flow, server, port, initial_sequence })
    }

    /// Whether a server connection of a mobile is kept.
    pub fn keeps_for(&self, user: UserId) -> bool {
        self.pool.has_user(user)
    }

    /// Whether a flow is that of a server connection that is kept.
    pub fn keeps(&self, flow: FlowId) -> bool {
        self.pool.has(flow)
    }

    /// A server connection that is kept.
    pub fn kept_mut(&mut self, flow: FlowId) -> Option<&mut Connection> {
        self.pool.connection_mut(flow)
    }

    /// A segment of a server whose connection is kept arrives.
    pub fn receive(
        &mut self,
        now: Instant,
        (flow, segment, slot): (FlowId, &Segment, Slot),
        cx: &mut MiddleboxContext<'_>,
    ) {
        self.pool.receive(now, flow, (segment, slot), cx);
    }

    /// Continues a server connection that is kept.
    pub fn proceed_kept(
        &mut self,
        now: Instant,
        flow: FlowId,
        flows: &mut Flows,
        left: &mut Departures,
        cx: &mut MiddleboxContext<'_>,
    ) {
        if let Some((user, port)) = self.pool.proceed(now, flow, left, cx) {
            port.into_iter().for_each(|port| self.ports.free(user, port));
            flows.end(flow);
        }
    }

    /// Resets a server connection that is kept, because the mobile begins a connection with its
    /// port. The flow becomes the mobile's.
    pub fn give_up_port(&mut self, now: Instant, flow: FlowId, left: &mut Departures, cx: &mut MiddleboxContext<'_>) {
        if let Some((user, port)) = self.pool.reset(now, flow, left, cx) {
            port.into_iter().for_each(|port| self.ports.free(user, port));
        }
    }

    /// When to call [`Self::proceed_kept`] next, and for which flow.
    pub fn next_wakeup(&self) -> Option<(Instant, FlowId)> {
        self.pool.next_wakeup()
    }

    /// Resets all server connections that are kept, from `now` on.
    pub fn abort_kept(&mut self, now: Instant) {
        self.pool.abort_all(now);
    }

    /// Resets a server connection of another process, from `now` on.
    pub fn abort(&mut self, now: Instant, (flow, user): (FlowId, UserId), connection: Connection) {
        self.pool.abort(now, (flow, user), connection);
    }

    /// The server connections that are kept.
    pub fn kept(&self) -> impl Iterator<Item = (FlowId, UserId, &Connection)> {
        self.pool.connections()
    }
}
