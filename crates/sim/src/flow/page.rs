//! Web pages: a browser at the mobile, and the servers of the page.

use std::sync::Arc;

use airpath_app::datagrams::HEADERS;
use airpath_app::web::settings::{Downward, Upward};
use airpath_app::web::{Action, Browser, Messages, Server, Session};
use airpath_core::{AppStep, Context, Ecn, Instant};
use airpath_path::Side;
use airpath_scenario::tcp::Settings;
use airpath_tcp::{Negotiated, Segment};

use super::Identity;
use super::connections::Connections;
use crate::network::{Network, Outgoing};
use crate::packet_buffer::Payload;

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
    /// TCP settings of both ends.
    pub tcp: Settings,
    /// The browser.
    pub browser: Browser,
    /// Negotiated options of the first connection.
    pub negotiated: Option<Negotiated>,
    connections: Connections<Applications>,
    /// Views whose end was reported.
    reported: u32,
    aborted: Option<String>,
    over: bool,
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
    /// A session that waits for its start.
    pub fn new(identity: Identity, session: Arc<Session>, tcp: &Settings) -> Self {
        Self {
            browser: Browser::new(Arc::clone(&session), identity.start),
            identity,
            session,
            tcp: tcp.clone(),
            negotiated: None,
            connections: Connections::new(Arc::clone(&tcp.config), true),
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

    pub(super) fn receive(&mut self, now: Instant, side: Side, segment: &Segment, cx: &mut Context<'_>) {
        if side == Side::Mobile
            && let Some(view) = self.browser.view()
        {
            view.downlink.segment(now, segment.length);
        }
        self.connections.receive(now, side, segment, cx);
    }

    /// `side` receives a query for the name of `origin`, or its answer.
    pub(super) fn receive_datagram(
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
                self.browser.resolved(origin);
                self.proceed(now, side, network)
            }
        }
    }

    pub(super) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if side == Side::Mobile && self.browser.views().is_empty() {
            self.identity.report(network, now, side, AppStep::Started, 0);
        }
        self.connections.handle_timeouts(now, side, &self.identity, network);
        self.proceed(now, side, network)
    }

    /// Runs the applications of `side`, then sends segments.
    pub(super) fn proceed(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if self.over {
            return None;
        }
        match side {
            Side::Mobile => self.browse(now, network),
            Side::Server => {
                for pair in self.connections.iter_mut() {
                    let Applications { server, up, down, .. } = &mut pair.application;
                    server.step(now, up, down, &mut pair.server);
                }
            }
        }
        self.connections.transmit(now, side, &self.identity, network);
        self.settle(now, side, network);
        match side {
            Side::Mobile => {
                let browser = self.browser.next_wakeup().filter(|_| !self.over);
                self.connections.next_wakeup(side).into_iter().chain(browser).min()
            }
            Side::Server => self.server_wakeup(now),
        }
    }

    fn server_wakeup(&mut self, now: Instant) -> Option<Instant> {
        let tcp = self.connections.next_wakeup(Side::Server);
        let servers = self.connections.iter_mut().filter_map(|pair| pair.application.server.next_wakeup(now)).min();
        tcp.into_iter().chain(servers).min()
    }

    fn browse(&mut self, now: Instant, network: &mut Network<'_>) {
        loop {
            while let Some(action) = self.browser.poll(now) {
                match action {
                    Action::Resolve(origin) => self.send_datagram(now, Side::Mobile, origin, 0, network),
                    Action::Open(number) => self.open(now, number, network),
                }
            }
            let mut acted = false;
            for pair in self.connections.iter_mut() {
                let Applications { number, up, down, .. } = &mut pair.application;
                acted |= self.browser.step(now, *number, up, down, &mut pair.mobile);
                if self.negotiated.is_none() && acted {
                    self.negotiated = Some(pair.mobile.negotiated());
                }
            }
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
        let handshake = self.browser.handshake(number).expect("the browser has just requested it");
        let server = Server::new(Arc::clone(&self.session), handshake);
        let application = Applications { number, server, up: Messages::default(), down: Messages::default() };
        self.connections.open(now, &self.identity, application, network);
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
        self.aborted = self.connections.settle(side);
        if self.aborted.is_some() {
            self.over = true;
            self.identity.report(network, now, side, AppStep::Aborted, 0);
            return;
        }
        self.over = self.connections.is_silent() && self.browser.is_over();
    }
}
