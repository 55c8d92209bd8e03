//! A stream whose packets are in one TCP connection, which the mobile opens.

use std::sync::Arc;

use airpath_app::Transport;
use airpath_app::streaming::Server;
use airpath_app::streaming::interleaved::{Interleaved, Packet};
use airpath_core::{AppStep, Context, Instant, RandomStream};
use airpath_path::Side;
use airpath_scenario::tcp::Settings;
use airpath_tcp::{Negotiated, Segment};

use super::StreamFlow;
use crate::flow::connections::Connections;
use crate::network::Network;

/// The connection of a stream.
pub struct TcpCarrier {
    /// TCP settings of both ends.
    pub tcp: Settings,
    /// Negotiated options of the connection.
    pub negotiated: Option<Negotiated>,
    /// When and why the connection was lost while the mobile still played, if it was.
    pub lost: Option<(Instant, String)>,
    connections: Connections<()>,
    /// Packets of the server.
    down: Interleaved,
    /// Packets of the mobile.
    up: Interleaved,
    /// The random stream of the server, which begins when the connection is open.
    random: Option<RandomStream>,
}

impl TcpCarrier {
    /// No connection yet; `random` is the random stream of the server.
    pub fn new(tcp: &Settings, random: RandomStream) -> Self {
        Self {
            connections: Connections::new(Arc::clone(&tcp.config), false),
            tcp: tcp.clone(),
            negotiated: None,
            lost: None,
            down: Interleaved::default(),
            up: Interleaved::default(),
            random: Some(random),
        }
    }

    pub(super) fn receive(&mut self, now: Instant, side: Side, segment: &Segment, cx: &mut Context<'_>) {
        self.connections.receive(now, side, segment, cx);
    }
}

impl StreamFlow {
    /// Runs the application of `side` of a stream over TCP, then sends segments.
    pub(super) fn wake_tcp(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if self.over {
            return None;
        }
        let tcp = self.tcp.as_mut().expect("TCP carries the stream");
        if side == Side::Mobile && tcp.connections.opened() == 0 && now >= self.identity.start {
            self.identity.report(network, now, side, AppStep::Started, 0);
            tcp.connections.open(now, &self.identity, (), network);
        }
        tcp.connections.handle_timeouts(now, side, &self.identity, network);
        let application = match side {
            Side::Server => self.step_server(now),
            Side::Mobile => self.step_client(now, network),
        };
        let tcp = self.tcp.as_mut().expect("TCP carries the stream");
        tcp.connections.transmit(now, side, &self.identity, network);
        if let Some(cause) = tcp.connections.settle(side) {
            if !self.client.is_over() {
                tcp.lost = Some((now, cause));
                self.identity.report(network, now, side, AppStep::Aborted, self.client.received().bytes);
            }
            tcp.connections.forget();
            self.over = true;
            return None;
        }
        if self.client.timed_out() {
            // The player closes its socket, and reads nothing any more.
            tcp.connections.forget();
            self.over = true;
            return None;
        }
        self.over = self.client.is_over() && self.server.is_over() && tcp.connections.is_silent();
        let timers = tcp.connections.next_wakeup(side);
        timers.into_iter().chain(application.filter(|_| !self.over)).min()
    }

    fn step_server(&mut self, now: Instant) -> Option<Instant> {
        let Self { tcp, server, session, .. } = self;
        let tcp = tcp.as_mut()?;
        let end = &mut tcp.connections.last_mut()?.server;
        if !end.is_established() {
            return None;
        }
        if let Some(random) = tcp.random.take() {
            *server = Server::new(Arc::clone(session), now, random);
        }
        while let Some(Packet { head, .. }) = tcp.up.read(end) {
            server.receive(now, &head);
        }
        while let Some(datagram) = server.poll(now) {
            tcp.down.write(now, &datagram, end);
        }
        if server.is_over() {
            end.close();
        }
        server.next_wakeup()
    }

    fn step_client(&mut self, now: Instant, network: &mut Network<'_>) -> Option<Instant> {
        let Self { tcp, client, identity, .. } = self;
        let tcp = tcp.as_mut()?;
        let Some(pair) = tcp.connections.last_mut() else { return client.next_wakeup() };
        let end = &mut pair.mobile;
        if end.is_established() && tcp.negotiated.is_none() {
            tcp.negotiated = Some(end.negotiated());
            identity.report(network, now, Side::Mobile, AppStep::Connected, 0);
        }
        // What the full buffer has no room for stays in the connection, whose window closes. The
        // next frame is a wake-up.
        while !client.is_full(now)
            && let Some(Packet { channel, head, written, .. }) = tcp.down.read(end)
        {
            if let Some(sequence) = client.receive(now, channel, &head) {
                let step = AppStep::Arrived { sequence, delay: now.since(written) };
                identity.report(network, now, Side::Mobile, step, client.received().bytes);
            }
        }
        while let Some(datagram) = client.poll(now) {
            // A report that is due before the connection is open has nothing to report.
            if end.is_established() {
                tcp.up.write(now, &datagram, end);
            }
        }
        if client.is_over() && end.is_established() {
            end.close();
        }
        client.next_wakeup()
    }
}
