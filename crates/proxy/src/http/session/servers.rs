//! The server connections of a session by number, and what their owner reports of them.

use std::ops::{Index, IndexMut};

use crate::http::message::Method;
use crate::http::refusal::Refusal;
use crate::http::server::{Server, ServerState, take};
use crate::http::session::Session;
use crate::http::statistics::Bypass;
use crate::http::target::Origin;

/// The server connections of a session.
#[derive(Debug)]
pub struct Servers {
    all: Vec<Server>,
    /// The first ones are for requests of the client, the others prefetch.
    for_client: usize,
    /// Of the first ones, those that new requests may use.
    usable: usize,
}

impl Servers {
    /// Number 0 has the state `first`, the others do not exist.
    pub fn new(first: ServerState, for_client: usize, for_prefetching: usize) -> Self {
        let mut all = vec![Server::new(first)];
        all.resize_with(for_client + for_prefetching, || Server::new(ServerState::Unused));
        Self { all, for_client, usable: for_client }
    }

    /// The connections for requests of the client.
    fn for_client(&self) -> &[Server] {
        &self.all[..self.for_client]
    }

    /// The connections that prefetch, with their numbers.
    pub fn for_prefetching(&self) -> impl Iterator<Item = (usize, &Server)> {
        self.all.iter().enumerate().skip(self.for_client)
    }

    /// Whether a request of the client can still be answered.
    pub fn has_usable(&self) -> bool {
        self.for_client().iter().any(Server::is_usable)
    }

    /// The numbers of the connections in this state.
    fn in_state(&self, state: ServerState) -> impl Iterator<Item = usize> {
        self.all.iter().enumerate().filter(move |(_, server)| server.state == state).map(|(number, _)| number)
    }

    /// Takes the connection for the next request of the client, which leads to `origin` if the
    /// client has named it; `None` if the request has to wait. One that is open is preferred.
    pub fn choose(&mut self, is_safe: bool, origin: &Option<Origin>) -> Option<usize> {
        // What cannot be repeated needs a connection that the server has not closed meanwhile.
        let is_own = |server: &Server| server.origin == *origin;
        let is_replaced = |server: &Server| server.is_untried() && server.is_idle() && is_own(server);
        let untried = self.for_client().iter().position(is_replaced);
        if let Some(number) = untried.filter(|_| !is_safe) {
            self.all[number] = Server { origin: origin.clone(), ..Server::replacement() };
            return Some(number);
        }
        let first = &self.all[0];
        if self.usable == 1 && first.state != ServerState::Unused && is_own(first) {
            return first.is_usable().then_some(0);
        }
        let usable = &self.all[..self.usable];
        let idle = |state| {
            let fits = |server: &Server| server.state == state && server.assigned.is_empty();
            usable.iter().position(|server| fits(server) && (is_own(server) || state == ServerState::Unused))
        };
        let own = idle(ServerState::Open).or_else(|| idle(ServerState::Wanted));
        let chosen = own.or_else(|| idle(ServerState::Unused));
        let other = usable.iter().position(|server| server.is_idle() && !is_own(server));
        if let Some(number) = other.filter(|_| chosen.is_none()) {
            // One of another origin makes room.
            self.all[number] = Server::new(ServerState::Wanted);
            return Some(number);
        }
        chosen
    }

    /// A connection for the next object of `origin`, and whether it is open; `None` if it has to
    /// wait.
    pub fn choose_for_prefetching(&self, origin: &Option<Origin>) -> Option<(usize, bool)> {
        let fits = |server: &Server| server.state == ServerState::Unused || server.is_idle();
        let free = || self.for_prefetching().filter(|(_, server)| fits(server));
        let open = free().find(|(_, server)| server.is_idle() && server.origin == *origin);
        open.or_else(|| free().next()).map(|(number, _)| (number, open.is_some()))
    }

    /// From now on all requests use number 0. Returns the numbers of the others that exist and have
    /// never answered.
    fn use_one(&mut self) -> Vec<usize> {
        self.usable = 1;
        let unanswered = |server: &Server| server.state != ServerState::Unused && !server.has_answered;
        let others = self.for_client().iter().enumerate().skip(1);
        others.filter(|(_, server)| unanswered(server)).map(|(number, _)| number).collect()
    }
}

impl Index<usize> for Servers {
    type Output = Server;

    fn index(&self, number: usize) -> &Server {
        &self.all[number]
    }
}

impl IndexMut<usize> for Servers {
    fn index_mut(&mut self, number: usize) -> &mut Server {
        &mut self.all[number]
    }
}

impl Session {
    /// The server connection that the owner is to open, if there is one.
    pub fn wanted_server(&self) -> Option<usize> {
        self.servers.in_state(ServerState::Wanted).next()
    }

    /// Whether a server connection is to be opened, and what has its number not to be used.
    pub fn is_wanted(&self, server: usize) -> bool {
        let wanted = [ServerState::Wanted, ServerState::Resolving];
        self.servers.all.get(server).is_some_and(|server| wanted.contains(&server.state))
    }

    /// The server that a connection is to lead to, if the client has named it.
    pub fn origin(&self, server: usize) -> Option<&Origin> {
        self.servers[server].origin.as_ref()
    }

    /// The owner queries the address of a server connection that is wanted.
    pub fn set_resolving(&mut self, server: usize) {
        self.servers[server].state = ServerState::Resolving;
    }

    /// Server connections that it may have at a time.
    pub const fn servers_count(&self) -> usize {
        self.servers.all.len()
    }

    /// The numbers of server connections whose address the owner queries.
    pub fn resolving(&self) -> Vec<usize> {
        self.servers.in_state(ServerState::Resolving).collect()
    }

    /// A server connection is wanted again: its address is known, or another is to be tried.
    pub fn set_wanted(&mut self, server: usize) {
        self.servers[server].state = ServerState::Wanted;
    }

    /// The connection to the server is open.
    pub fn connected(&mut self, server: usize) {
        let is_new = !std::mem::replace(&mut self.servers[server].is_connected, true);
        let Some(index) = self.front(server).filter(|_| is_new && self.explicit.is_some()) else { return };
        let exchange = &mut self.exchanges[index];
        if exchange.method == Method::Connect && !exchange.has_response {
            self.statistics.tunnels += 1;
            exchange.append_head(b"HTTP/1.1 200 OK\r\n\r\n", &mut self.statistics);
            self.begin_tunnel(server, Bypass::Connect);
        }
    }

    /// Whether the connection to the server is or was open.
    pub fn is_connected(&self, server: usize) -> bool {
        self.servers[server].is_connected
    }

    /// A server connection of an explicit proxy cannot be had.
    pub fn fail(&mut self, server: usize, refusal: Refusal) {
        self.servers[server].state = ServerState::Ended;
        self.refuse_first(server, refusal);
        self.settle();
    }

    /// The first request of a server connection is answered with an error, the others need another
    /// connection.
    pub(super) fn refuse_first(&mut self, server: usize, refusal: Refusal) {
        let index = self.front(server);
        self.servers[server].assigned.pop_front();
        self.reassign(server);
        index.into_iter().for_each(|index| self.refuse(index, refusal));
    }

    /// Whether a server connection that is wanted may be one that was open before.
    pub fn may_reuse(&self, server: usize) -> bool {
        !self.servers[server].needs_new
    }

    /// A server connection that was wanted is one that was open before.
    pub fn reuse_server(&mut self, server: usize) {
        self.statistics.reused_servers += 1;
        self.servers[server].is_reused = true;
        self.set_server(server, true);
    }

    /// Whether another client connection may use a server connection after the end of this one.
    pub fn may_keep(&self, server: usize) -> bool {
        let is_tunnel = self.tunnel == Some(server);
        self.servers.all.get(server).is_some_and(|server| !is_tunnel && server.is_idle() && !server.is_bound)
    }

    /// A server connection that was wanted exists now, or cannot be had.
    pub fn set_server(&mut self, server: usize, exists: bool) {
        self.servers[server].state = if exists { ServerState::Open } else { ServerState::Ended };
        if !exists {
            self.reassign(server);
            self.settle();
        }
    }

    /// An ended server connection is gone: another may take its number.
    pub fn release_server(&mut self, server: usize) {
        self.end_prefetch(server, false);
        self.servers[server] = Server::new(ServerState::Unused);
        self.settle();
    }

    /// Whether the session does not use a server connection any more.
    pub fn has_abandoned(&self, server: usize) -> bool {
        self.servers[server].state == ServerState::Ended
    }

    /// Takes at most `most` bytes that are to be sent to a server.
    pub fn take_request_bytes(&mut self, server: usize, most: usize, mut sink: impl FnMut(&[u8])) -> usize {
        take(&mut self.servers[server].outgoing, most, &mut sink)
    }

    /// Whether the client waits for a server connection that has never answered, while the first
    /// one answers and is idle: the server may serve one connection at a time.
    pub fn is_stalled(&self) -> bool {
        let first = &self.servers[0];
        let waits_for = self.exchanges.iter().find(|exchange| !exchange.is_complete).and_then(|next| next.server);
        first.state == ServerState::Open
            && first.has_answered
            && first.assigned.is_empty()
            && waits_for.is_some_and(|server| {
                let server = &self.servers[server];
                !server.has_answered && server.origin == first.origin
            })
    }

    /// From now on all requests use the first server connection, also those of connections that
    /// have never answered.
    pub fn use_one_server(&mut self) {
        for number in self.servers.use_one() {
            let server = &mut self.servers[number];
            server.state = ServerState::Ended;
            self.statistics.retries += server.assigned.len() as u64;
            self.reassign(number);
        }
        self.settle();
    }

    /// The requests of a server connection need another.
    pub(super) fn reassign(&mut self, server: usize) {
        for number in std::mem::take(&mut self.servers[server].assigned) {
            self.exchanges[(number - self.first) as usize].server = None;
        }
    }
}
