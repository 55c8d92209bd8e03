//! The QUIC connections of pages with HTTP/3.

use std::sync::Arc;

use airpath_app::web::http3::{Exchanges, Server};
use airpath_app::web::{Browser, Session};
use airpath_core::{Ecn, Instant, Seed, UserId};
use airpath_path::Side;
use airpath_quic::Config;

use super::super::Identity;
use super::super::quic::Pair;
use crate::network::Network;

/// Connections that are not closed at both ends.
pub struct Http3Connections {
    config: Arc<Config>,
    session: Arc<Session>,
    seed: Seed,
    list: Vec<Http3Connection>,
}

struct Http3Connection {
    /// Number that the browser gave it.
    number: u32,
    pair: Pair,
    server: Server,
    exchanges: Exchanges,
}

impl Http3Connections {
    /// No connections yet; they are to have these settings.
    pub fn new(config: &Arc<Config>, session: Arc<Session>, seed: Seed) -> Self {
        Self { config: Arc::clone(config), session, seed, list: Vec::new() }
    }

    /// Opens connection `number` of the browser.
    pub fn open(&mut self, now: Instant, identity: &Identity, number: u32, network: &Network<'_>) {
        let flow = network.flow_of_connection(identity.id, number);
        let pair = Pair::new(now, identity, flow, number, &self.config, self.seed);
        let server = Server::new(Arc::clone(&self.session));
        self.list.push(Http3Connection { number, pair, server, exchanges: Exchanges::default() });
    }

    /// `side` receives a datagram of the connection of `port`. Late datagrams of a connection that
    /// both ends have closed are ignored.
    #[expect(clippy::too_many_arguments, reason = "a datagram with its place")]
    pub fn receive(
        &mut self,
        now: Instant,
        side: Side,
        arrival: (Ecn, UserId),
        port: u16,
        datagram: &[u8],
        identity: &Identity,
        network: &mut Network<'_>,
    ) {
        if let Some(connection) = self.list.iter_mut().rev().find(|connection| connection.pair.port() == port) {
            connection.pair.receive(now, side, arrival, identity, network, datagram);
        }
    }

    /// Handles the timers of `side` that have expired.
    pub fn handle_timeouts(&mut self, now: Instant, side: Side, identity: &Identity, network: &mut Network<'_>) {
        for connection in &mut self.list {
            connection.pair.handle_timeout(now, side, identity, network);
        }
    }

    /// Runs the browser on all connections. Returns whether it has something to do.
    pub fn browse(&mut self, now: Instant, browser: &mut Browser) -> bool {
        let mut acted = false;
        for Http3Connection { number, pair, exchanges, .. } in &mut self.list {
            acted |= browser.step_streams(now, *number, exchanges, &mut pair.mobile);
        }
        acted
    }

    /// Runs the servers of all connections.
    pub fn serve(&mut self, now: Instant) {
        for Http3Connection { pair, server, exchanges, .. } in &mut self.list {
            server.step(now, exchanges, &mut pair.server);
        }
    }

    /// Sends the datagrams of `side`.
    pub fn transmit(&mut self, now: Instant, side: Side, identity: &Identity, network: &mut Network<'_>) {
        for connection in &mut self.list {
            connection.pair.transmit(now, side, identity, network);
        }
    }

    /// Why a connection with outstanding requests was lost, if one was. Removes connections that
    /// both ends have closed.
    pub fn settle(&mut self, browser: &Browser) -> Option<String> {
        let mut needed = self.list.iter().filter(|connection| browser.awaits(connection.number));
        let lost = needed.find_map(|connection| connection.pair.loss_at_mobile());
        if lost.is_none() {
            self.list.retain(|Http3Connection { pair, .. }| {
                pair.mobile.outcome().is_none() || pair.server.outcome().is_none()
            });
        }
        lost
    }

    /// Whether the mobile has closed all connections.
    pub fn is_silent(&self) -> bool {
        self.list.iter().all(|connection| connection.pair.mobile.outcome().is_some())
    }

    /// The next timer of `side`.
    pub fn next_wakeup(&mut self, now: Instant, side: Side) -> Option<Instant> {
        let servers = self.list.iter().filter(|_| side == Side::Server);
        let server = servers.filter_map(|connection| connection.server.next_wakeup()).min();
        let timers = self.list.iter_mut().filter_map(|connection| connection.pair.next_wakeup(now, side)).min();
        timers.into_iter().chain(server).min()
    }
}
