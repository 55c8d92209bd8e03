//! Transactions: requests of the mobile and responses of the server, over one TCP connection or one
//! for each.

use std::sync::Arc;

use airpath_app::Transactions;
use airpath_app::transactions::{Client, ClientStep, Connections as Number, Server};
use airpath_core::{AppStep, Context, Instant};
use airpath_path::Side;
use airpath_scenario::tcp::Settings;
use airpath_tcp::{Negotiated, Segment};

use super::Identity;
use super::connections::Connections;
use crate::network::Network;

/// Transactions in progress.
pub struct TransactionsFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// The workload.
    pub work: Transactions,
    /// TCP settings of both ends.
    pub tcp: Settings,
    /// The end that sends requests.
    pub client: Client,
    /// Negotiated options of the first connection.
    pub negotiated: Option<Negotiated>,
    connections: Connections<Server>,
    aborted: Option<String>,
    over: bool,
}

impl TransactionsFlow {
    /// Transactions that wait for their start.
    pub fn new(identity: Identity, work: Transactions, tcp: &Settings) -> Self {
        Self {
            client: Client::new(work, identity.start),
            identity,
            work,
            tcp: tcp.clone(),
            negotiated: None,
            // One may begin while the one before closes.
            connections: Connections::new(Arc::clone(&tcp.config), work.connections == Number::Each),
            aborted: None,
            over: false,
        }
    }

    /// Whether all responses have arrived and all connections are closed, or one was aborted.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Why it was aborted, if it was.
    pub fn cause(&self) -> Option<&str> {
        self.aborted.as_deref()
    }

    pub(super) fn receive(&mut self, now: Instant, side: Side, segment: &Segment, cx: &mut Context<'_>) {
        self.connections.receive(now, side, segment, cx);
    }

    pub(super) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        self.connections.handle_timeouts(now, side, &self.identity, network);
        self.proceed(now, side, network)
    }

    /// Runs the application of `side`, then sends segments.
    pub(super) fn proceed(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if self.over {
            return None;
        }
        match side {
            Side::Mobile => self.send_requests(now, network),
            Side::Server => {
                for pair in self.connections.iter_mut() {
                    pair.application.step(&mut pair.server);
                }
            }
        }
        self.connections.transmit(now, side, &self.identity, network);
        self.settle(now, side, network);
        let wakeups = self.connections.next_wakeup(side);
        match side {
            Side::Mobile => wakeups.into_iter().chain(self.client.next_wakeup().filter(|_| !self.over)).min(),
            Side::Server => wakeups,
        }
    }

    fn send_requests(&mut self, now: Instant, network: &mut Network<'_>) {
        loop {
            if self.client.opens(now) {
                if self.connections.opened() == 0 {
                    self.identity.report(network, now, Side::Mobile, AppStep::Started, 0);
                }
                self.connections.open(now, &self.identity, Server::new(self.work), network);
            }
            let Some(pair) = self.connections.last_mut() else { return };
            match self.client.step(now, &mut pair.mobile) {
                ClientStep::Nothing => return,
                ClientStep::Connected => {
                    self.negotiated.get_or_insert_with(|| pair.mobile.negotiated());
                    self.identity.report(network, now, Side::Mobile, AppStep::Connected, self.delivered());
                }
                ClientStep::Request => {}
                ClientStep::Response(sequence, delay) => {
                    let delivered = self.delivered();
                    self.identity.report(network, now, Side::Mobile, AppStep::Arrived { sequence, delay }, delivered);
                }
            }
        }
    }

    /// Removes connections that both ends have closed, and updates whether the workload is over.
    fn settle(&mut self, now: Instant, side: Side, network: &mut Network<'_>) {
        self.aborted = self.connections.settle(side);
        if self.aborted.is_some() && self.connections.forget_lost(side, self.client.is_done(now)) {
            // They were lost only while they closed: nothing is missing.
            self.aborted = self.connections.settle(side);
        }
        if self.aborted.is_some() {
            self.over = true;
            self.identity.report(network, now, side, AppStep::Aborted, self.delivered());
            return;
        }
        self.over = self.connections.is_silent() && self.client.is_over(now);
    }

    fn delivered(&self) -> u64 {
        self.client.latencies().count() * self.work.response.get()
    }
}
