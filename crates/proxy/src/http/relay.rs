//! A client connection of the application level: its TCP end, those towards its server, and the
//! session between them.

mod explicit;

use std::net::SocketAddr;
use std::sync::Arc;

use airpath_core::{FlowId, Instant, Slot, Span, UserId};
use airpath_path::{Departures, MiddleboxContext, Side};
use airpath_tcp::{Connection, Identity, Segment};

use crate::config::Config;
use crate::http::cache::SharedCache;
use crate::http::channel::Channel;
use crate::http::dictionary::Dictionaries;
use crate::http::exchange::End;
use crate::http::names::Names;
use crate::http::refusal::Refusal;
use crate::http::session::Session;
use crate::http::statistics::Statistics;
use crate::relay::{HeldSyn, Relay, are_finished, deadline, next_segment, were_opened};
pub use explicit::Destination;
use explicit::Explicit;

/// A client waits for this time at most for a server connection that has never answered, while
/// another is idle.
const MOST_STALL: Span = Span::from_secs(5);

/// A client connection of the application level. The client is a mobile.
#[derive(Debug)]
pub struct HttpRelay {
    flow: FlowId,
    user: UserId,
    /// Port of the server.
    port: u16,
    mobile: Channel,
    /// By their numbers in the session. Number 0 has the client's port.
    servers: Vec<Option<Channel>>,
    session: Session,
    held_syn: HeldSyn,
    opened: Instant,
    /// When the last segment arrived.
    active: Instant,
    /// When the mobile's connection has ended.
    ended: Option<Instant>,
    /// Since when the session is stalled.
    stalled: Option<Instant>,
    /// Bytes that may wait for each server.
    buffer: u64,
    /// The address of the server.
    server: Option<SocketAddr>,
    /// Whether server connections may be kept for another client connection.
    keeps: bool,
    /// With a pool, the server connection with the client's port, if no other can be had.
    spare: Option<Channel>,
    /// Server connections that are open and are not used any more.
    released: Vec<Channel>,
    /// Flows of server connections that have ended, with their ports.
    closed: Vec<(FlowId, u16)>,
    /// Whether payload is only counted.
    is_counted: bool,
    /// If the client has named it as its proxy.
    explicit: Option<Explicit>,
}

/// A server connection that the proxy opens: its flow, the server, and the port and first sequence
/// number of the proxy.
#[derive(Clone, Copy, Debug)]
pub struct NewServer {
    pub flow: FlowId,
    pub server: Option<SocketAddr>,
    pub port: u16,
    pub initial_sequence: u32,
}

impl HttpRelay {
    /// The application level for a connection that was opened for transport, before any payload.
    pub fn new(
        relay: Relay,
        (address, port): (Option<SocketAddr>, u16),
        (config, http): (&Config, &super::Config),
        (cache, dictionaries, names): (&SharedCache, &Dictionaries, &Names),
    ) -> Self {
        let own = http.address.filter(|own| address == Some(*own));
        let explicit = own.map(|address| Explicit::new(address, http, names, config.open_timeout));
        // Responses are those of the names that the proxy has resolved, not of its own address.
        let address = address.filter(|_| explicit.is_none());
        let Relay { flow, user, ends: [server, mobile], held_syn, opened, active, .. } = relay;
        let buffer = config.buffer.get();
        let session = Session::new(http, usize::try_from(buffer).unwrap_or(usize::MAX));
        let session = if http.cache.is_some() { session.with_cache(cache.clone(), address) } else { session };
        let session = match http.dictionaries {
            Some(_) => session.with_dictionaries(dictionaries.clone()),
            None => session,
        };
        let session = match &explicit {
            Some(explicit) => session.with_explicit(explicit.proxy.clone()),
            None => session,
        };
        let server = Some(Channel::new(flow, None, server, Side::Server).to(address));
        let keeps = http.server_pool > 0 && (address.is_some() || explicit.is_some());
        let is_spare = http.server_pool > 0 || explicit.is_some();
        let (first, spare) = if is_spare { (None, server) } else { (server, None) };
        Self {
            flow,
            user,
            port,
            server: address,
            keeps,
            spare,
            released: Vec::new(),
            mobile: Channel::new(flow, None, mobile, Side::Mobile),
            servers: vec![first],
            session,
            held_syn,
            opened,
            active,
            ended: None,
            stalled: None,
            buffer,
            closed: Vec::new(),
            is_counted: false,
            explicit,
        }
    }

    pub const fn mobile(&self) -> &Connection {
        &self.mobile.connection
    }

    /// The ends of the connection that the mobile has opened: the server's, and its own.
    pub fn first_ends(&self) -> [&Connection; 2] {
        let is_own = |server: &&Channel| server.port.is_none();
        let server = self.servers[0].as_ref().filter(is_own).or(self.spare.as_ref());
        let server = server.expect("the server connection with the client's port is not released");
        [&server.connection, self.mobile()]
    }

    pub const fn statistics(&self) -> &Statistics {
        &self.session.statistics
    }

    pub const fn identity(&self) -> (FlowId, UserId) {
        (self.flow, self.user)
    }

    pub fn bound_upload(&mut self, bytes: u64) {
        self.mobile.connection.bound_receive_window(bytes);
    }

    /// The relay at transport level, where payload is only counted; nothing was read yet.
    pub fn into_transport(self) -> Relay {
        let Self { flow, user, mobile, mut servers, held_syn, opened, active, .. } = self;
        let server = servers.swap_remove(0).expect("where payload is counted, the proxy opens no connections");
        let ends = [server.connection, mobile.connection];
        Relay { flow, user, ends, streams: Default::default(), client: Side::Mobile, held_syn, opened, active }
    }

    /// Whether payload is only counted, so that nothing can be read.
    pub const fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// A segment of `flow` from `side` arrives, with its payload at `slot`.
    pub fn receive(
        &mut self,
        now: Instant,
        (flow, side): (FlowId, Side),
        segment: &Segment,
        slot: Slot,
        cx: &mut MiddleboxContext<'_>,
    ) {
        self.active = now;
        let channel = match side {
            Side::Mobile if flow != self.flow => return,
            Side::Mobile if self.held_syn.is_held() => {
                if self.held_syn.receive(segment) {
                    self.abort(now, cx);
                }
                return;
            }
            Side::Mobile => Some(&mut self.mobile),
            Side::Server => self.server_channels().find(|channel| channel.flow == flow),
        };
        if let Some(channel) = channel {
            let is_counted = !channel.receive(now, segment, slot, cx);
            self.is_counted |= is_counted && self.servers[0].as_ref().is_some_and(|server| server.port.is_none());
        }
    }

    /// The end of `flow` towards `side`.
    pub fn end_mut(&mut self, flow: FlowId, side: Side) -> Option<&mut Connection> {
        let channel = match side {
            Side::Mobile => Some(&mut self.mobile).filter(|mobile| mobile.flow == flow),
            Side::Server => self.server_channels().find(|channel| channel.flow == flow),
        };
        channel.map(|channel| &mut channel.connection)
    }

    pub fn handle_timeout(&mut self, now: Instant, config: &Config, cx: &mut MiddleboxContext<'_>) {
        for channel in self.channels() {
            channel.connection.handle_timeout(now, cx.context());
        }
        if self.stalled.is_some_and(|since| since + MOST_STALL <= now) {
            self.session.use_one_server();
        }
        self.session.handle_timeout(now);
        self.give_up(now);
        if self.deadline(config).is_some_and(|deadline| deadline <= now) {
            self.abort(now, cx);
        }
    }

    pub fn next_wakeup(&self, config: &Config) -> Option<Instant> {
        let timers = self.connections().filter_map(Connection::next_wakeup);
        let stall = self.stalled.map(|since| since + MOST_STALL);
        let explicit = self.explicit.iter();
        let limits =
            explicit.flat_map(|explicit| explicit.limits().map(|(limit, _)| limit).chain(explicit.lookup.limit()));
        timers.chain(self.deadline(config)).chain(stall).chain(limits).chain(self.session.next_wakeup()).min()
    }

    /// Server connections have some time to end after the mobile's, and are aborted then.
    fn deadline(&self, config: &Config) -> Option<Instant> {
        if let Some(ended) = self.ended {
            return (!self.is_over()).then(|| ended + config.open_timeout);
        }
        deadline(self.opening_ends(), (self.opened, self.active), config)
    }

    /// The ends that are open when the client's connection is: its own, and that of server
    /// connection 0. An explicit proxy has no server yet.
    fn opening_ends(&self) -> impl Iterator<Item = &Connection> + Clone {
        self.connections().take(if self.explicit.is_some() { 1 } else { 2 })
    }

    /// The mobile's end first, then that of server connection 0.
    fn connections(&self) -> impl Iterator<Item = &Connection> + Clone {
        let lookup = self.explicit.as_ref().and_then(|explicit| explicit.lookup.channel.as_ref());
        let channels = std::iter::once(&self.mobile).chain(self.servers.iter().flatten()).chain(lookup);
        channels.map(|channel| &channel.connection)
    }

    fn server_channels(&mut self) -> impl Iterator<Item = &mut Channel> {
        let lookup = self.explicit.as_mut().and_then(|explicit| explicit.lookup.channel.as_mut());
        self.servers.iter_mut().flatten().chain(lookup)
    }

    fn channels(&mut self) -> impl Iterator<Item = &mut Channel> {
        let lookup = self.explicit.as_mut().and_then(|explicit| explicit.lookup.channel.as_mut());
        std::iter::once(&mut self.mobile).chain(self.servers.iter_mut().flatten()).chain(lookup)
    }

    pub fn is_finished(&self) -> bool {
        are_finished(self.connections())
    }

    pub fn was_opened(&self) -> bool {
        were_opened(self.opening_ends())
    }

    pub fn is_over(&self) -> bool {
        self.connections().all(|connection| connection.outcome().is_some())
    }

    /// Passes on what has arrived or ended.
    pub fn exchange(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        if let Some(server) = &self.servers[0] {
            self.held_syn.release(now, &mut self.mobile.connection, &server.connection, cx);
        }
        self.channels().for_each(Channel::free_acknowledged);
        while self.pass_on(now) {}
        self.stalled = if self.session.is_stalled() { self.stalled.or(Some(now)) } else { None };
        let mobile_ended = self.mobile.connection.outcome();
        if mobile_ended.is_some() {
            self.ended.get_or_insert(now);
        }
        let is_aborted = mobile_ended.is_some_and(|outcome| !outcome.is_orderly());
        if is_aborted || self.session.end() == Some(End::Abort) {
            return self.abort(now, cx);
        }
        let ends = self.session.end().is_some();
        self.close_explicit(ends);
        if ends && self.mobile.is_writable() {
            self.mobile.close();
        }
        for (number, place) in self.servers.iter_mut().enumerate() {
            let Some(channel) = place else { continue };
            let is_used = self.session.tunnel_server() == Some(number) || !ends && !self.session.has_abandoned(number);
            if !is_used && channel.is_writable() {
                if self.keeps && channel.is_quiet() && self.session.may_keep(number) {
                    self.released.extend(place.take());
                    continue;
                }
                channel.close();
            }
            if number > 0 && channel.connection.outcome().is_some() && self.session.has_abandoned(number) {
                self.closed.extend(channel.port.map(|port| (channel.flow, port)));
                *place = None;
                self.session.release_server(number);
            }
        }
    }

    /// Reads what the session can use, and writes what it sends to the servers. Returns whether
    /// there was any.
    fn pass_on(&mut self, now: Instant) -> bool {
        self.read_lookup(now);
        let Self { mobile, servers, session, explicit, .. } = self;
        let read = session.read_client(now, mobile.unread());
        mobile.consume(read);
        let unread = mobile.unread().len();
        if mobile.connection.peer_closed() {
            session.client_ended(unread);
        }
        let mut any = read > 0;
        for (number, place) in servers.iter_mut().enumerate() {
            if session.is_wanted(number) {
                self.released.extend(place.take());
            }
            let Some(channel) = place else { continue };
            if channel.connection.state().is_synchronised() {
                session.connected(number);
            }
            if let Some(explicit) = explicit
                && let Some(outcome) = channel.connection.outcome()
                && !session.is_connected(number)
                && !session.has_abandoned(number)
            {
                self.closed.extend(channel.port.map(|port| (channel.flow, port)));
                let server = channel.server;
                *place = None;
                explicit.not_opened(session, number, server, outcome);
                any = true;
                continue;
            }
            if channel.is_writable() {
                let room = self.buffer.saturating_sub(channel.stored()) as usize;
                any |= session.take_request_bytes(number, room, |bytes| channel.write(bytes)) > 0;
                if unread == 0 && session.ends_stream(number) {
                    channel.close();
                }
            }
            let read = session.read_server(now, number, channel.unread());
            channel.consume(read);
            any |= read > 0;
            let is_reset = channel.connection.outcome().is_some_and(|outcome| !outcome.is_orderly());
            if is_reset || channel.connection.peer_closed() {
                session.server_ended(number, !is_reset, channel.unread());
            }
        }
        any
    }

    /// The server connection that is to be opened.
    pub fn wanted_server(&self) -> Option<usize> {
        self.session.wanted_server()
    }

    /// The server, if a connection that was open before may be used as this one.
    pub fn reusable(&self, number: usize, server: Option<SocketAddr>) -> Option<SocketAddr> {
        server.filter(|_| self.keeps && self.session.may_reuse(number))
    }

    /// Uses a server connection that was open before.
    pub fn reuse_server(&mut self, number: usize, channel: Channel) {
        self.set_channel(number, channel);
        self.session.reuse_server(number);
    }

    fn set_channel(&mut self, number: usize, channel: Channel) {
        if self.servers.len() <= number {
            self.servers.resize_with(number + 1, || None);
        }
        // What was there is not used any more.
        self.released.extend(self.servers[number].replace(channel));
    }

    /// Server connections that are open and were not used since the last call.
    pub fn take_released(&mut self) -> Vec<Channel> {
        std::mem::take(&mut self.released)
    }

    /// Opens a server connection that was wanted; `None` if it cannot be had.
    pub fn open_server(
        &mut self,
        now: Instant,
        number: usize,
        new: Option<NewServer>,
        config: &Arc<airpath_tcp::Config>,
    ) {
        if let Some(explicit) = &mut self.explicit {
            if new.is_none() {
                return self.session.fail(number, Refusal::Unreachable);
            }
            explicit.opening.entry(number).or_insert((now, 0)).0 = now;
        }
        let spare = self.spare.take_if(|_| number == 0 && new.is_none());
        self.session.set_server(number, new.is_some() || spare.is_some());
        if let Some(channel) = spare {
            return self.set_channel(number, channel);
        }
        if let Some(new) = new {
            self.set_channel(number, new.connect(now, self.port, config));
        }
    }

    /// Flows of server connections that have ended since the last call, with their ports.
    pub fn take_closed(&mut self) -> Vec<(FlowId, u16)> {
        std::mem::take(&mut self.closed)
    }

    /// All flows that the proxy has opened, with their ports.
    pub fn opened_flows(&self) -> impl Iterator<Item = (FlowId, u16)> {
        self.opened().filter_map(|channel| channel.port.map(|port| (channel.flow, port)))
    }

    /// The ends of all flows that the proxy has opened.
    pub fn opened_ends(&self) -> impl Iterator<Item = (FlowId, UserId, &Connection)> {
        self.opened().map(|channel| (channel.flow, self.user, &channel.connection))
    }

    fn opened(&self) -> impl Iterator<Item = &Channel> {
        let lookup = self.explicit.iter().filter_map(|explicit| explicit.lookup.channel.as_ref());
        let channels = self.servers.iter().flatten().chain(&self.released).chain(lookup);
        channels.filter(|channel| channel.port.is_some())
    }

    pub fn backlog(&self) -> u64 {
        if self.mobile.is_writable() { self.session.available() } else { 0 }
    }

    pub fn next_segment(&self) -> Option<u32> {
        next_segment(self.mobile(), self.backlog())
    }

    /// Forwards `bytes` to the mobile.
    pub fn grant(&mut self, now: Instant, bytes: u32, cx: &mut MiddleboxContext<'_>) {
        self.session.take_response_bytes(bytes.into(), |bytes| self.mobile.write(bytes));
        self.exchange(now, cx);
    }

    /// Sends the segments that are due at all ends.
    pub fn transmit(&mut self, now: Instant, left: &mut Departures, cx: &mut MiddleboxContext<'_>) {
        let user = self.user;
        let lookup = self.explicit.as_mut().and_then(|explicit| explicit.lookup.channel.as_mut());
        for channel in self.servers.iter_mut().flatten().chain(lookup).chain([&mut self.mobile]) {
            channel.transmit(now, user, left, cx);
        }
    }

    pub fn abort(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        for channel in self.channels() {
            channel.connection.abort(now, cx.context());
        }
    }
}

impl NewServer {
    fn connect(self, now: Instant, own_port: u16, config: &Arc<airpath_tcp::Config>) -> Channel {
        let Self { flow, server, port: local_port, initial_sequence } = self;
        let remote_port = server.map_or(own_port, |server| server.port());
        let identity = Identity { flow, direction: Side::Mobile.sends(), local_port, remote_port, initial_sequence };
        let connection = Connection::connect(Arc::clone(config), identity, now);
        Channel::new(flow, Some(local_port), connection, Side::Server).to(server)
    }
}
