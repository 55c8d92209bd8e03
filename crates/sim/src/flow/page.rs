//! Web pages: a browser at the mobile, and the servers of the page.
//!
//! Bytes are counted. If a proxy reads HTTP in them, they are carried ([`text`]).

mod http3;
mod text;

use std::sync::Arc;

use airpath_app::datagrams::HEADERS;
use airpath_app::web::settings::{Downward, Upward};
use airpath_app::web::{Action, Browser, Messages, Server, Session, Urls};
use airpath_core::{AppStep, Ecn, Instant, Packet, Seed};
use airpath_path::Side;
use airpath_scenario::page::Transport;
use airpath_tcp::Negotiated;

use super::Identity;
use super::connections::Connections;
use crate::network::{Network, Outgoing};
use crate::packet_buffer::Payload;
use http3::Http3Connections;
use text::TextConnections;

/// Bytes of a DNS query beside the name: header, length of the first label, root, type and class
/// (RFC 1035 §4.1).
const QUERY: u32 = 12 + 2 + 4;
/// Bytes that an answer with one address has more: name by reference, type, class, time to live,
/// length and address (RFC 1035 §4.1.3, §4.1.4).
const ANSWER: u32 = 16;

/// Pages in progress.
pub struct PageFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// Settings and pages.
    pub session: Arc<Session>,
    /// TCP or QUIC, with the settings of both ends.
    pub transport: Transport,
    /// The browser.
    pub browser: Browser,
    /// Negotiated options of the first TCP connection.
    pub negotiated: Option<Negotiated>,
    connections: Carrier,
    /// Views whose end was reported.
    reported: u32,
    aborted: Option<String>,
    over: bool,
}

/// The connections.
enum Carrier {
    /// Of counted bytes.
    Counted(Connections<Applications>),
    /// Of text.
    Text(TextConnections),
    /// Over QUIC.
    Http3(Http3Connections),
}

/// Calls the same method of all.
macro_rules! each {
    ($carrier:expr, $connections:ident => $call:expr) => {
        match $carrier {
            Carrier::Counted($connections) => $call,
            Carrier::Text($connections) => $call,
            Carrier::Http3($connections) => $call,
        }
    };
}

/// The applications of a connection, and what is between them.
struct Applications {
    /// Number that the browser gave it.
    number: u32,
    server: Server,
    up: Messages<Upward>,
    down: Messages<Downward>,
}

impl PageFlow {
    /// Whether a proxy can read its HTTP: without a handshake it does not see connections open.
    pub fn is_read(session: &Arc<Session>, transport: &Transport) -> bool {
        matches!(transport, Transport::Tcp(tcp) if tcp.config.handshake) && Urls::of(session).is_some()
    }

    /// A session that waits for its start. With `carries_text`, HTTP/1.x in clear text is carried,
    /// not counted.
    pub fn new(
        identity: Identity,
        session: Arc<Session>,
        transport: &Transport,
        carries_text: bool,
        seed: Seed,
    ) -> Self {
        let connections = match transport {
            Transport::Quic(quic) => Carrier::Http3(Http3Connections::new(&quic.config, Arc::clone(&session), seed)),
            Transport::Tcp(tcp) => {
                let config = Arc::clone(&tcp.config);
                // Without a handshake a proxy does not see that a connection opens.
                let is_read = carries_text && config.handshake;
                match is_read.then(|| Urls::of(&session)).flatten() {
                    Some(urls) => Carrier::Text(TextConnections::new(config, Arc::new(urls), identity.random.clone())),
                    None => Carrier::Counted(Connections::new(config, true)),
                }
            }
        };
        Self {
            browser: Browser::new(Arc::clone(&session), identity.start),
            identity,
            session,
            transport: transport.clone(),
            negotiated: None,
            connections,
            reported: 0,
            aborted: None,
            over: false,
        }
    }

    /// Whether all pages are loaded and all connections closed, or one was aborted.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Why it was aborted, if it was.
    pub fn cause(&self) -> Option<&str> {
        self.aborted.as_deref()
    }

    /// `side` receives `packet`. Returns its next wake-up.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
        if let Payload::Quic { port } = *network.datagram(packet).0 {
            return self.receive_quic(now, side, packet, port, network);
        }
        let (payload, bytes, mut cx) = network.contents_for(packet, side);
        let segment = match payload {
            Payload::Segment(segment) => segment,
            &Payload::Datagram { sequence, .. } => return self.receive_datagram(now, side, sequence, network),
            _ => unreachable!("a flow receives only packets of its own kind"),
        };
        if side == Side::Mobile
            && let Some(view) = self.browser.view()
        {
            view.downlink.segment(now, segment.length);
        }
        match &mut self.connections {
            Carrier::Counted(connections) => connections.receive(now, side, segment, &mut cx),
            Carrier::Text(connections) => connections.receive(now, side, packet, (segment, bytes), &mut cx),
            Carrier::Http3(_) => unreachable!("a flow over QUIC receives no segments"),
        }
        self.proceed(now, side, network)
    }

    /// Whether QUIC carries its pages.
    pub const fn is_over_quic(&self) -> bool {
        matches!(self.connections, Carrier::Http3(_))
    }

    /// `side` receives a datagram of the connection of `port`.
    fn receive_quic(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        port: u16,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
        let Carrier::Http3(connections) = &mut self.connections else {
            unreachable!("a flow over TCP receives no datagrams of QUIC")
        };
        let datagram = network.take_datagram(packet);
        if side == Side::Mobile
            && let Some(view) = self.browser.view()
        {
            view.downlink.segment(now, datagram.len() as u32);
        }
        connections.receive(now, side, (packet.ecn, packet.user), port, &datagram, &self.identity, network);
        network.return_datagram(packet, datagram);
        self.proceed(now, side, network)
    }

    /// `side` receives a query for the name of `origin`, or its answer.
    fn receive_datagram(
        &mut self,
        now: Instant,
        side: Side,
        origin: u32,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
        match side {
            Side::Server => {
                self.send_datagram(now, side, origin, ANSWER, network);
                self.server_wakeup(now)
            }
            Side::Mobile => {
                self.browser.resolved(now, origin);
                self.proceed(now, side, network)
            }
        }
    }

    pub(super) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if side == Side::Mobile && self.browser.views().is_empty() {
            self.identity.report(network, now, side, AppStep::Started, 0);
        }
        each!(&mut self.connections, connections => connections.handle_timeouts(now, side, &self.identity, network));
        self.proceed(now, side, network)
    }

    /// Runs the applications of `side`, then sends segments.
    pub(super) fn proceed(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if self.over {
            return None;
        }
        match side {
            Side::Mobile => self.browse(now, network),
            Side::Server => self.serve(now, network),
        }
        each!(&mut self.connections, connections => connections.transmit(now, side, &self.identity, network));
        self.settle(now, side, network);
        match side {
            Side::Mobile => {
                let browser = self.browser.next_wakeup().filter(|_| !self.over);
                let connections = match &mut self.connections {
                    Carrier::Counted(connections) => connections.next_wakeup(side),
                    Carrier::Text(connections) => connections.next_wakeup(now, side),
                    Carrier::Http3(connections) => connections.next_wakeup(now, side),
                };
                connections.into_iter().chain(browser).min()
            }
            Side::Server => self.server_wakeup(now),
        }
    }

    fn server_wakeup(&mut self, now: Instant) -> Option<Instant> {
        match &mut self.connections {
            Carrier::Counted(connections) => {
                let tcp = connections.next_wakeup(Side::Server);
                let servers = connections.iter_mut().filter_map(|pair| pair.application.server.next_wakeup(now)).min();
                tcp.into_iter().chain(servers).min()
            }
            Carrier::Text(connections) => connections.next_wakeup(now, Side::Server),
            Carrier::Http3(connections) => connections.next_wakeup(now, Side::Server),
        }
    }

    /// Runs the servers. One that limits what it writes goes on when that was sent.
    fn serve(&mut self, now: Instant, network: &mut Network<'_>) {
        match &mut self.connections {
            Carrier::Counted(connections) => loop {
                let mut wrote = false;
                for pair in connections.iter_mut() {
                    let Applications { server, up, down, .. } = &mut pair.application;
                    wrote |= server.step(now, up, down, &mut pair.server);
                }
                if !wrote {
                    return;
                }
                connections.transmit(now, Side::Server, &self.identity, network);
            },
            Carrier::Text(connections) => connections.serve(now),
            Carrier::Http3(connections) => connections.serve(now),
        }
    }

    fn browse(&mut self, now: Instant, network: &mut Network<'_>) {
        loop {
            while let Some(action) = self.browser.poll(now) {
                match action {
                    Action::Resolve(origin) => self.send_datagram(now, Side::Mobile, origin, 0, network),
                    Action::Open(number) => self.open(now, number, network),
                }
            }
            let acted = match &mut self.connections {
                Carrier::Counted(connections) => {
                    let mut acted = false;
                    for pair in connections.iter_mut() {
                        let Applications { number, up, down, .. } = &mut pair.application;
                        acted |= self.browser.step(now, *number, up, down, &mut pair.mobile);
                        if self.negotiated.is_none() && acted {
                            self.negotiated = Some(pair.mobile.negotiated());
                        }
                    }
                    acted
                }
                Carrier::Text(connections) => {
                    let (acted, negotiated) = connections.browse(now, &mut self.browser);
                    self.negotiated = self.negotiated.or(negotiated);
                    acted
                }
                Carrier::Http3(connections) => connections.browse(now, &mut self.browser),
            };
            if !acted {
                break;
            }
        }
        let loaded = self.browser.views().iter().skip(self.reported as usize).filter_map(airpath_app::web::View::time);
        for delay in loaded {
            let sequence = self.reported;
            self.reported += 1;
            self.identity.report(network, now, Side::Mobile, AppStep::Arrived { sequence, delay }, 0);
        }
    }

    fn open(&mut self, now: Instant, number: u32, network: &mut Network<'_>) {
        let (origin, handshake) = self.browser.connection(number).expect("the browser has just requested it");
        match &mut self.connections {
            Carrier::Counted(connections) => {
                let server = Server::new(Arc::clone(&self.session), handshake);
                let application = Applications { number, server, up: Messages::default(), down: Messages::default() };
                connections.open(now, &self.identity, application, network);
            }
            Carrier::Text(connections) => {
                // The proxy in the browser's settings is one host.
                let host = if self.session.settings.proxy { "" } else { &self.session.origins[origin as usize] };
                connections.open(now, &self.identity, number, host, network);
            }
            Carrier::Http3(connections) => connections.open(now, &self.identity, number, network),
        }
    }

    fn send_datagram(&self, now: Instant, side: Side, origin: u32, more: u32, network: &mut Network<'_>) {
        let outgoing = Outgoing {
            flow: self.identity.id,
            user: self.identity.user,
            side,
            size: HEADERS + QUERY + self.session.origins[origin as usize].len() as u32 + more,
            ecn: Ecn::NotEct,
            payload: Payload::Datagram { sequence: origin, sent: now },
        };
        network.send(now, outgoing);
    }

    /// Removes connections that both ends have closed, and updates whether the session is over.
    fn settle(&mut self, now: Instant, side: Side, network: &mut Network<'_>) {
        self.aborted = match &mut self.connections {
            Carrier::Counted(connections) => connections.settle(side),
            Carrier::Text(connections) => connections.settle(),
            Carrier::Http3(connections) => connections.settle(&self.browser),
        };
        if self.aborted.is_some() {
            self.over = true;
            self.identity.report(network, now, side, AppStep::Aborted, 0);
            return;
        }
        let is_silent = each!(&self.connections, connections => connections.is_silent());
        self.over = is_silent && self.browser.is_over();
    }
}
