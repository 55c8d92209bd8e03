//! Transactions: requests of the mobile and responses of the server, over one TCP connection or one for each.

use airpath_app::Transactions;
use airpath_app::transactions::{Asked, Client, Server};
use airpath_core::{AppStep, Context, Direction, Instant};
use airpath_scenario::tcp::Settings;
use airpath_tcp::{Connection, Identity as TcpIdentity, Negotiated, Segment};

use super::Identity;
use super::transfer::{is_done, outgoing};
use crate::route::Side;
use crate::world::World;

/// First of the ports from which mobiles connect, and how many there are (RFC 6335 §6).
const PORTS: (u16, u32) = (49_152, 16_384);
/// How far apart the first ports of two flows lie: a prime, so that those of many flows seldom meet.
const PORTS_OF_A_FLOW: u32 = 1009;

/// Transactions in progress.
pub struct TransactionsFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// What is asked.
    pub work: Transactions,
    /// TCP settings of both ends.
    pub tcp: Settings,
    /// The end that asks.
    pub client: Client,
    /// What the server agreed to on the first connection.
    pub negotiated: Option<Negotiated>,
    /// The connections that are not over; the latest one is the last.
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

    /// Whether all responses came and all connections are over, or one of them was lost.
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
        // What comes for a connection that both ends have forgotten is too late to matter.
        if let Some(exchange) = self.exchanges.iter_mut().rev().find(|exchange| exchange.port == port) {
            exchange.end(side).handle_segment(now, segment, cx);
        }
    }

    pub(super) fn wake(&mut self, now: Instant, side: Side, world: &mut World<'_>) -> Option<Instant> {
        let component = world.component(self.identity.user, side);
        for exchange in &mut self.exchanges {
            let end = exchange.end(side);
            if end.next_wakeup().is_some_and(|due| due <= now) {
                end.handle_timeout(now, &mut world.cx(component));
            }
        }
        self.proceed(now, side, world)
    }

    /// Lets the application of `side` act, then sends what is to be sent.
    pub(super) fn proceed(&mut self, now: Instant, side: Side, world: &mut World<'_>) -> Option<Instant> {
        if self.over {
            return None;
        }
        match side {
            Side::Mobile => self.ask(now, world),
            Side::Server => {
                for exchange in &mut self.exchanges {
                    exchange.responder.step(&mut exchange.server);
                }
            }
        }
        let component = world.component(self.identity.user, side);
        for exchange in &mut self.exchanges {
            let end = exchange.end(side);
            while let Some(segment) = end.poll_transmit(now, &mut world.cx(component)) {
                world.send(now, outgoing(&self.identity, self.identity.user, side, segment));
            }
        }
        self.settle(now, side, world);
        let wakeups = self.exchanges.iter_mut().filter_map(|exchange| exchange.end(side).next_wakeup()).min();
        match side {
            Side::Mobile => wakeups.into_iter().chain(self.client.next_wakeup().filter(|_| !self.over)).min(),
            Side::Server => wakeups,
        }
    }

    fn ask(&mut self, now: Instant, world: &mut World<'_>) {
        loop {
            if self.client.opens(now) {
                if self.opened == 0 {
                    self.identity.report(world, now, Side::Mobile, AppStep::Started, 0);
                }
                let exchange = self.open(now);
                self.exchanges.push(exchange);
                // Without a handshake the server's end is open from the start, and nothing will wake it.
                world.agenda.wake(world.route.node(self.identity.id, Side::Server), Some(now));
            }
            let Some(exchange) = self.exchanges.last_mut() else { return };
            match self.client.step(now, &mut exchange.mobile) {
                Asked::Nothing => return,
                Asked::Connected => {
                    self.negotiated.get_or_insert_with(|| exchange.mobile.negotiated());
                    self.identity.report(world, now, Side::Mobile, AppStep::Connected, self.delivered());
                }
                Asked::Request => {}
                Asked::Response(sequence, delay) => {
                    let delivered = self.delivered();
                    self.identity.report(world, now, Side::Mobile, AppStep::Arrived { sequence, delay }, delivered);
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

    /// Forgets connections that are over at both ends, and sees whether all is.
    fn settle(&mut self, now: Instant, side: Side, world: &mut World<'_>) {
        let lost = self
            .exchanges
            .iter_mut()
            .find_map(|exchange| exchange.end(side).outcome().filter(|outcome| !outcome.is_orderly()));
        if let Some(outcome) = lost {
            let end = match side {
                Side::Mobile => "mobile",
                Side::Server => "server",
            };
            self.aborted = Some(format!("{outcome}, says the {end}"));
            self.over = true;
            self.identity.report(world, now, side, AppStep::Aborted, self.delivered());
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
