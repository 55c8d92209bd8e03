//! Transactions: requests of the mobile and responses of the server, over one TCP connection or one
//! for each.

use airpath_app::Transactions;
use airpath_app::transactions::{Client, ClientStep, Server};
use airpath_core::{AppStep, Context, Direction, Instant};
use airpath_path::Side;
use airpath_scenario::tcp::Settings;
use airpath_tcp::{Connection, Identity as TcpIdentity, Negotiated, Segment};

use super::Identity;
use super::transfer::{is_done, outgoing};
use crate::network::Network;

/// The first dynamic port, and the number of dynamic ports (RFC 6335 §6).
const PORTS: (u16, u32) = (49_152, 16_384);
/// Distance between the first ports of two flows: a prime, so that the ports of many flows seldom
/// collide.
const PORTS_OF_A_FLOW: u32 = 1009;

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
    /// Open connections; the latest is the last.
    exchanges: Vec<Exchange>,
    opened: u32,
    aborted: Option<String>,
    over: bool,
}

/// A connection with its two ends.
struct Exchange {
    port: u16,
    mobile: Connection,
    server: Connection,
    responder: Server,
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
            exchanges: Vec::new(),
            opened: 0,
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
        let port = match side {
            Side::Mobile => segment.header.destination_port,
            Side::Server => segment.header.source_port,
        };
        // Late segments of a connection that both ends have closed are ignored.
        if let Some(exchange) = self.exchanges.iter_mut().rev().find(|exchange| exchange.port == port) {
            exchange.end(side).handle_segment(now, segment, cx);
        }
    }

    pub(super) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        let component = network.component(self.identity.user, side);
        for exchange in &mut self.exchanges {
            let end = exchange.end(side);
            if end.next_wakeup().is_some_and(|due| due <= now) {
                end.handle_timeout(now, &mut network.context(component));
            }
        }
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
                for exchange in &mut self.exchanges {
                    exchange.responder.step(&mut exchange.server);
                }
            }
        }
        let component = network.component(self.identity.user, side);
        for exchange in &mut self.exchanges {
            let end = exchange.end(side);
            while let Some(segment) = end.poll_transmit(now, &mut network.context(component)) {
                network.send(now, outgoing(&self.identity, self.identity.user, side, segment));
            }
        }
        self.settle(now, side, network);
        let wakeups = self.exchanges.iter_mut().filter_map(|exchange| exchange.end(side).next_wakeup()).min();
        match side {
            Side::Mobile => wakeups.into_iter().chain(self.client.next_wakeup().filter(|_| !self.over)).min(),
            Side::Server => wakeups,
        }
    }

    fn send_requests(&mut self, now: Instant, network: &mut Network<'_>) {
        loop {
            if self.client.opens(now) {
                if self.opened == 0 {
                    self.identity.report(network, now, Side::Mobile, AppStep::Started, 0);
                }
                let exchange = self.open(now);
                self.exchanges.push(exchange);
                // Without a handshake the server's end is open from the start, and no packet wakes
                // it.
                network.events.wake(network.node_of(self.identity.id, Side::Server), Some(now));
            }
            let Some(exchange) = self.exchanges.last_mut() else { return };
            match self.client.step(now, &mut exchange.mobile) {
                ClientStep::Nothing => return,
                ClientStep::Connected => {
                    self.negotiated.get_or_insert_with(|| exchange.mobile.negotiated());
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

    fn open(&mut self, now: Instant) -> Exchange {
        let number = (self.identity.id.0.wrapping_mul(PORTS_OF_A_FLOW)).wrapping_add(self.opened);
        let port = PORTS.0 + (number % PORTS.1) as u16;
        self.opened += 1;
        let end = |direction, local_port, remote_port| TcpIdentity {
            flow: self.identity.id,
            direction,
            local_port,
            remote_port,
            initial_sequence: 0,
        };
        Exchange {
            port,
            mobile: Connection::connect(self.tcp.config.clone(), end(Direction::Up, port, 80), now),
            server: Connection::listen(self.tcp.config.clone(), end(Direction::Down, 80, port)),
            responder: Server::new(self.work),
        }
    }

    /// Removes connections that both ends have closed, and updates whether the workload is over.
    fn settle(&mut self, now: Instant, side: Side, network: &mut Network<'_>) {
        let lost = self
            .exchanges
            .iter_mut()
            .find_map(|exchange| exchange.end(side).outcome().filter(|outcome| !outcome.is_orderly()));
        if let Some(outcome) = lost {
            let end = match side {
                Side::Mobile => "mobile",
                Side::Server => "server",
            };
            self.aborted = Some(format!("{outcome}, reported by the {end}"));
            self.over = true;
            self.identity.report(network, now, side, AppStep::Aborted, self.delivered());
            return;
        }
        self.exchanges.retain(|exchange| !(is_done(&exchange.mobile) && is_done(&exchange.server)));
        let silent = self.exchanges.is_empty() || !self.tcp.config.handshake;
        self.over = silent && self.opened > 0 && self.client.is_over(now);
    }

    fn delivered(&self) -> u64 {
        self.client.latencies().count() * self.work.response.get()
    }
}

impl Exchange {
    const fn end(&mut self, side: Side) -> &mut Connection {
        match side {
            Side::Mobile => &mut self.mobile,
            Side::Server => &mut self.server,
        }
    }
}
