//! FTP: a control connection, and a data connection for each file.

use std::sync::Arc;

use airpath_app::ftp::{Client, Mode, Server, Settings, Step};
use airpath_core::{AppStep, Context, Instant};
use airpath_path::Side;
use airpath_scenario::tcp::Settings as TcpSettings;
use airpath_tcp::{Negotiated, Segment};

use super::Identity;
use super::connections::Connections;
use crate::network::Network;

/// Port of the server for control connections (RFC 959 §8).
const CONTROL_PORT: u16 = 21;
/// Its port for the data connections that it opens (§3.2).
const ACTIVE_PORT: u16 = 20;
/// Its port for the data connections that the client opens: the one in the reply to `PASV`.
const PASSIVE_PORT: u16 = 50_000;

/// A session in progress.
pub struct FtpFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// TCP settings of both ends.
    pub tcp: TcpSettings,
    /// The mobile.
    pub client: Client,
    /// Negotiated options of the control connection.
    pub negotiated: Option<Negotiated>,
    server: Server,
    connections: Connections<Role>,
    aborted: Option<String>,
    finished: bool,
    over: bool,
}

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Control,
    /// The data of the file with this number.
    Data(u32),
}

impl FtpFlow {
    /// A session that waits for its start.
    pub fn new(identity: Identity, settings: Settings, tcp: &TcpSettings) -> Self {
        Self {
            client: Client::new(settings, identity.start),
            server: Server::new(settings),
            identity,
            tcp: tcp.clone(),
            negotiated: None,
            connections: Connections::new(Arc::clone(&tcp.config), true),
            aborted: None,
            finished: false,
            over: false,
        }
    }

    /// Whether the session is over and its connections are closed, or one was lost.
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
        if side == Side::Mobile && self.connections.opened() == 0 && now >= self.identity.start {
            self.identity.report(network, now, side, AppStep::Started, 0);
            self.connections.open_from(now, side, CONTROL_PORT, &self.identity, Role::Control, network);
        }
        self.connections.handle_timeouts(now, side, &self.identity, network);
        self.proceed(now, side, network)
    }

    /// Runs the application of `side`, then sends segments.
    pub(super) fn proceed(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if self.over {
            return None;
        }
        loop {
            while self.step(now, side, network) {}
            self.connections.transmit(now, side, &self.identity, network);
            // What was sent may have been the last byte of a file, after which a reply is due.
            if !self.step(now, side, network) {
                break;
            }
        }
        if let Some(cause) = self.connections.settle(side) {
            if !self.client.is_complete() {
                self.identity.report(network, now, side, AppStep::Aborted, self.delivered());
                self.aborted = Some(cause);
                self.over = true;
                return None;
            }
            // It was lost only while it closed: nothing is missing.
            self.connections.forget();
        }
        self.over = self.client.is_complete() && self.connections.is_silent();
        let application = match side {
            Side::Mobile => None,
            Side::Server => self.server.next_wakeup(now),
        };
        let timers = self.connections.next_wakeup(side);
        timers.into_iter().chain(application.filter(|_| !self.over)).min()
    }

    /// Lets `side` act once. Returns whether it may act again.
    fn step(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> bool {
        let file = match side {
            Side::Mobile => self.client.file(),
            Side::Server => self.server.file(),
        };
        let (mut control, mut data) = (None, None);
        for pair in self.connections.iter_mut() {
            let role = pair.application;
            let end = match side {
                Side::Mobile => &mut pair.mobile,
                Side::Server => &mut pair.server,
            };
            match role {
                Role::Control => control = Some(end),
                Role::Data(number) if file == Some(number) => data = Some(end),
                Role::Data(_) => {}
            }
        }
        let Some(control) = control else { return false };
        let step = match side {
            Side::Mobile => self.client.step(now, control, data),
            Side::Server => self.server.step(now, control, data),
        };
        match step {
            Step::Nothing => return false,
            Step::Progress => {}
            Step::Connected => {
                self.negotiated = Some(control.negotiated());
                self.identity.report(network, now, side, AppStep::Connected, 0);
            }
            Step::Open(file) => {
                let port = match self.client.settings().mode {
                    Mode::Passive => PASSIVE_PORT,
                    Mode::Active => ACTIVE_PORT,
                };
                self.connections.open_from(now, side, port, &self.identity, Role::Data(file), network);
            }
            Step::File(sequence, delay) => {
                let step = AppStep::Arrived { sequence, delay };
                self.identity.report(network, now, side, step, self.delivered());
            }
        }
        if side == Side::Mobile && self.client.is_complete() && !self.finished {
            self.finished = true;
            self.identity.report(network, now, side, AppStep::Finished, self.delivered());
        }
        true
    }

    /// Bytes of the files that are complete.
    fn delivered(&self) -> u64 {
        u64::from(self.client.files()) * self.client.settings().file.get()
    }
}
