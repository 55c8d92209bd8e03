//! The connections of a page whose segments carry bytes, because a proxy reads HTTP in them.
//!
//! The proxy ends the mobile's connections and opens its own to the servers. So the two ends of a
//! connection do not belong together: a server accepts what comes.

use std::sync::Arc;

use airpath_app::web::{Browser, ClientText, ServerText, Urls};
use airpath_core::{Context, Direction, FlowId, Instant, Packet, RandomStream};
use airpath_path::{Payload, Side, Streams};
use airpath_tcp::{Config, Connection, Identity as TcpIdentity, Negotiated, Segment};
use airpath_wire::tcp::Flags;

use super::super::connections::{loss, port_of};
use super::super::transfer::{is_done, outgoing};
use super::super::{Identity, seed};
use crate::network::{Network, Outgoing};

/// The connections.
#[derive(Debug)]
pub struct TextConnections {
    config: Arc<Config>,
    urls: Arc<Urls>,
    /// Of the random choices of their congestion control.
    random: RandomStream,
    ends: Vec<End>,
    opened: u32,
    /// Why the browser cannot continue, if it cannot.
    failure: Option<String>,
    /// What an application sends, while it does.
    text: Vec<u8>,
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    flow: FlowId,
    connection: Connection,
    streams: Streams,
    application: Application,
    is_closing: bool,
}

#[derive(Debug)]
enum Application {
    Client(ClientText),
    Server(ServerText),
}

impl Application {
    const fn side(&self) -> Side {
        match self {
            Self::Client(_) => Side::Mobile,
            Self::Server(_) => Side::Server,
        }
    }
}

impl TextConnections {
    /// No connections yet; they are to have these settings, and their random choices this stream.
    pub const fn new(config: Arc<Config>, urls: Arc<Urls>, random: RandomStream) -> Self {
        Self { config, urls, random, ends: Vec::new(), opened: 0, failure: None, text: Vec::new() }
    }

    /// Opens the browser's connection `number` to `host`.
    pub fn open(&mut self, now: Instant, identity: &Identity, number: u32, host: &str, network: &mut Network<'_>) {
        let flow = network.flow_of_connection(identity.id, self.opened);
        let local_port = port_of(identity, self.opened);
        network.carry_bytes(flow, host);
        let end = TcpIdentity { flow, direction: Direction::Up, local_port, remote_port: 80, initial_sequence: 0 };
        let mut connection = Connection::connect(Arc::clone(&self.config), end, now);
        seed(&mut connection, &self.random, self.opened, Side::Mobile);
        self.opened += 1;
        self.add(flow, connection, Application::Client(ClientText::new(Arc::clone(&self.urls), number)));
    }

    fn add(&mut self, flow: FlowId, connection: Connection, application: Application) {
        self.ends.push(End { flow, connection, streams: Streams::default(), application, is_closing: false });
    }

    /// The ends of `side`.
    fn of(&mut self, side: Side) -> impl Iterator<Item = &mut End> {
        self.ends.iter_mut().filter(move |end| end.application.side() == side)
    }

    /// `side` receives a segment. A SYN to a server opens a connection; other segments of unknown
    /// connections are late.
    pub fn receive(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        (segment, payload): (&Segment, Payload<'_>),
        cx: &mut Context<'_>,
    ) {
        let opens = side == Side::Server && segment.header.flags.contains(Flags::SYN);
        if opens && !self.of(side).any(|end| end.flow == packet.flow) {
            let identity = TcpIdentity {
                flow: packet.flow,
                direction: Direction::Down,
                local_port: segment.header.destination_port,
                remote_port: segment.header.source_port,
                initial_sequence: 0,
            };
            let mut connection = Connection::listen(Arc::clone(&self.config), identity);
            seed(&mut connection, &self.random, packet.flow.0, Side::Server);
            self.add(packet.flow, connection, Application::Server(ServerText::new(Arc::clone(&self.urls))));
        }
        if let Some(end) = self.of(side).find(|end| end.flow == packet.flow) {
            end.connection.handle_segment(now, segment, cx);
            end.streams.accept(&end.connection, payload);
        }
    }

    /// Handles the timers of `side` that have expired.
    pub fn handle_timeouts(&mut self, now: Instant, side: Side, identity: &Identity, network: &mut Network<'_>) {
        let component = network.component(identity.user, side);
        for end in self.of(side) {
            if end.connection.next_wakeup().is_some_and(|due| due <= now) {
                end.connection.handle_timeout(now, &mut network.context(component));
            }
        }
    }

    /// Runs the browser on its connections. Returns whether [`Browser::poll`] has something to do,
    /// and the negotiated options of a connection that is open.
    pub fn browse(&mut self, now: Instant, browser: &mut Browser) -> (bool, Option<Negotiated>) {
        let (mut acted, mut negotiated) = (false, None);
        for end in &mut self.ends {
            let End { connection, streams, application: Application::Client(client), .. } = end else { continue };
            if !airpath_app::Transport::is_established(connection) {
                continue;
            }
            negotiated.get_or_insert_with(|| connection.negotiated());
            client.establish();
            let unread = streams.unread(connection);
            let count = unread.len();
            let mut read = client.receive(unread);
            streams.consume(connection, count);
            self.text.clear();
            acted |= client.step(now, browser, &mut self.text);
            if connection.peer_closed() && !client.is_closed() {
                read = read.and_then(|()| client.end());
            }
            if let Err(unexpected) = read {
                self.failure.get_or_insert_with(|| unexpected.to_string());
            }
            let closes = client.is_closed();
            end.send(&self.text, closes);
        }
        (acted, negotiated)
    }

    /// Runs the servers.
    pub fn serve(&mut self, now: Instant) {
        for end in &mut self.ends {
            let End { connection, streams, application: Application::Server(server), is_closing, .. } = end else {
                continue;
            };
            let unread = streams.unread(connection);
            let count = unread.len();
            server.receive(unread);
            streams.consume(connection, count);
            if connection.peer_closed() {
                server.end();
            }
            if !*is_closing {
                self.text.clear();
                let closes = server.step(now, &mut self.text);
                end.send(&self.text, closes);
            }
        }
    }

    /// Sends the segments of `side`.
    pub fn transmit(&mut self, now: Instant, side: Side, identity: &Identity, network: &mut Network<'_>) {
        let component = network.component(identity.user, side);
        for end in self.of(side) {
            end.streams.free_acknowledged(&end.connection);
            while let Some(segment) = end.connection.poll_transmit(now, &mut network.context(component)) {
                let sent = Outgoing { flow: end.flow, ..outgoing(identity, identity.user, side, segment) };
                network.send_with(now, sent, end.streams.payload(&segment));
            }
        }
    }

    /// Removes connections that have ended. Returns why the browser cannot continue, if it cannot.
    pub fn settle(&mut self) -> Option<String> {
        let lost = self.of(Side::Mobile).find_map(|end| loss(&end.connection, Side::Mobile));
        self.ends.retain(|end| !is_done(&end.connection));
        self.failure.take().or(lost)
    }

    /// Whether the browser has no connection. Those of servers may be open: a proxy keeps them.
    pub fn is_silent(&self) -> bool {
        self.ends.iter().all(|end| end.application.side() == Side::Server)
    }

    /// The next wake-up of `side`.
    pub fn next_wakeup(&mut self, now: Instant, side: Side) -> Option<Instant> {
        let wakeups = self.of(side).flat_map(|end| {
            let response = match &end.application {
                Application::Client(_) => None,
                Application::Server(server) => server.next_wakeup(now),
            };
            end.connection.next_wakeup().into_iter().chain(response)
        });
        wakeups.min()
    }
}

impl End {
    /// Sends what the application has written, and ends the stream if the application does.
    fn send(&mut self, text: &[u8], closes: bool) {
        if !text.is_empty() {
            self.streams.write(&mut self.connection, text);
        }
        if closes && !self.is_closing {
            self.is_closing = true;
            self.connection.close();
        }
    }
}
