//! Transactions over QUIC: requests of the mobile and responses of the server, over one connection
//! or one for each.

use airpath_app::Transactions;
use airpath_app::transactions::{Client, ClientStep, Server};
use airpath_core::{AppStep, Instant, Packet, Seed};
use airpath_path::Side;
use airpath_scenario::quic::Settings;

use super::Pair;
use crate::flow::Identity;
use crate::network::Network;
use crate::packet_buffer::Payload;

/// Transactions in progress.
pub struct QuicTransactionsFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// The workload.
    pub work: Transactions,
    /// Settings of both ends.
    pub quic: Settings,
    /// The end that sends requests.
    pub client: Client,
    seed: Seed,
    /// Connections that are not closed at both ends; the latest is the last.
    pairs: Vec<(Pair, Server)>,
    opened: u32,
    aborted: Option<String>,
    over: bool,
}

impl QuicTransactionsFlow {
    /// Transactions that wait for their start.
    pub fn new(identity: Identity, work: Transactions, quic: &Settings, seed: Seed) -> Self {
        Self {
            client: Client::new(work, identity.start),
            identity,
            work,
            quic: quic.clone(),
            seed,
            pairs: Vec::new(),
            opened: 0,
            aborted: None,
            over: false,
        }
    }

    /// Whether all responses have arrived and all connections are closed, or one was lost.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Why it was aborted, if it was.
    pub fn cause(&self) -> Option<&str> {
        self.aborted.as_deref()
    }

    pub(in crate::flow) fn receive(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
        let Payload::Quic { port } = *network.datagram(packet).0 else {
            unreachable!("a flow receives only packets of its own kind")
        };
        let datagram = network.take_datagram(packet);
        // Late datagrams of a connection that both ends have closed are ignored.
        if let Some((pair, _)) = self.pairs.iter_mut().rev().find(|(pair, _)| pair.port == port) {
            pair.receive(now, side, (packet.ecn, packet.user), &self.identity, network, &datagram);
        }
        network.return_datagram(packet, datagram);
        self.proceed(now, side, network)
    }

    pub(in crate::flow) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        for (pair, _) in &mut self.pairs {
            pair.handle_timeout(now, side, &self.identity, network);
        }
        self.proceed(now, side, network)
    }

    /// Runs the application of `side`, then sends datagrams.
    fn proceed(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if self.over {
            return None;
        }
        match side {
            Side::Mobile => self.send_requests(now, network),
            Side::Server => {
                for (pair, server) in &mut self.pairs {
                    server.step(&mut pair.server);
                }
            }
        }
        for (pair, _) in &mut self.pairs {
            pair.close_if_done(now, side);
            pair.transmit(now, side, &self.identity, network);
        }
        self.settle(now, side, network);
        if self.over {
            return None;
        }
        let wakeups = self.pairs.iter_mut().filter_map(|(pair, _)| pair.next_wakeup(now, side)).min();
        match side {
            Side::Mobile => wakeups.into_iter().chain(self.client.next_wakeup()).min(),
            Side::Server => wakeups,
        }
    }

    fn send_requests(&mut self, now: Instant, network: &mut Network<'_>) {
        loop {
            if self.client.opens(now) {
                if self.opened == 0 {
                    self.identity.report(network, now, Side::Mobile, AppStep::Started, 0);
                }
                let flow = self.identity.id;
                let pair = Pair::new(now, &self.identity, flow, self.opened, &self.quic.config, self.seed);
                self.opened += 1;
                self.pairs.push((pair, Server::new(self.work)));
            }
            let Some((pair, _)) = self.pairs.last_mut() else { return };
            match self.client.step(now, &mut pair.mobile) {
                ClientStep::Nothing => return,
                ClientStep::Connected => {
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
        self.aborted = self.pairs.iter().find_map(|(pair, _)| pair.loss());
        if self.aborted.is_some() {
            self.over = true;
            self.identity.report(network, now, side, AppStep::Aborted, self.delivered());
            return;
        }
        let is_done = self.client.is_over(now);
        let all_closed = self.pairs.iter().all(|(pair, _)| pair.mobile.outcome().is_some());
        self.over = is_done && all_closed;
        self.pairs.retain(|(pair, _)| pair.mobile.outcome().is_none() || pair.server.outcome().is_none());
    }

    fn delivered(&self) -> u64 {
        self.client.latencies().count() * self.work.response.get()
    }
}
