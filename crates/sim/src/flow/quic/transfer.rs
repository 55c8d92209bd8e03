//! A bulk transfer over QUIC.

use airpath_app::bulk::{Milestones, Progress, Role, Transfer};
use airpath_core::{AppStep, Direction, Instant, Packet, Seed};
use airpath_path::Side;
use airpath_quic::Connection;
use airpath_scenario::quic::Settings;

use super::Pair;
use crate::flow::Identity;
use crate::network::Network;

/// A transfer in progress.
pub struct QuicTransferFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// The workload.
    pub transfer: Transfer,
    /// Times of its milestones.
    pub milestones: Milestones,
    /// Settings of both ends.
    pub quic: Settings,
    seed: Seed,
    pair: Pair,
    mobile_role: Role,
    server_role: Role,
    started: bool,
    over: bool,
}

impl QuicTransferFlow {
    /// A transfer that waits for its start.
    pub fn new(identity: Identity, transfer: Transfer, quic: &Settings, seed: Seed) -> Self {
        let (mobile_role, server_role) = transfer.roles();
        Self {
            pair: Pair::new(identity.start, &identity, identity.id, 0, &quic.config, seed),
            identity,
            transfer,
            milestones: Milestones::default(),
            quic: quic.clone(),
            seed,
            mobile_role,
            server_role,
            started: false,
            over: false,
        }
    }

    /// Logs the packets of its connection, which has not begun yet.
    pub(in crate::flow) fn log_packets(&mut self) {
        let Self { identity, quic, seed, .. } = self;
        identity.logs_packets = true;
        self.pair = Pair::new(identity.start, identity, identity.id, 0, &quic.config, *seed);
    }

    /// The end that sends the bytes.
    pub const fn sender(&self) -> &Connection {
        match self.transfer.direction {
            Direction::Down => &self.pair.server,
            Direction::Up => &self.pair.mobile,
        }
    }

    /// The end that receives the bytes.
    pub const fn receiver(&self) -> &Connection {
        match self.transfer.direction {
            Direction::Down => &self.pair.mobile,
            Direction::Up => &self.pair.server,
        }
    }

    /// Why the transfer was aborted, if it was.
    pub fn cause(&self) -> Option<String> {
        self.milestones.aborted.filter(|_| self.milestones.finished.is_none())?;
        self.pair.loss()
    }

    /// Whether the transfer is complete or aborted.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    pub(in crate::flow) fn receive(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
        let datagram = network.take_datagram(packet);
        self.pair.receive(now, side, (packet.ecn, packet.user), &self.identity, network, &datagram);
        network.return_datagram(packet, datagram);
        self.proceed(now, side, network)
    }

    pub(in crate::flow) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if !self.started {
            self.started = true;
            self.identity.report(network, now, Side::Mobile, AppStep::Started, 0);
        }
        self.pair.handle_timeout(now, side, &self.identity, network);
        self.proceed(now, side, network)
    }

    /// Runs the application on the state of its connection, then sends datagrams.
    fn proceed(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        let role = match side {
            Side::Mobile => &mut self.mobile_role,
            Side::Server => &mut self.server_role,
        };
        let progress = role.step(self.pair.end(side));
        self.pair.close_if_done(now, side);
        self.pair.transmit(now, side, &self.identity, network);
        self.mark(now, side, progress, network);
        self.pair.next_wakeup(now, side).filter(|_| !self.over)
    }

    fn mark(&mut self, now: Instant, side: Side, progress: Progress, network: &mut Network<'_>) {
        let steps = self.milestones.note(now, progress, self.transfer.bytes);
        for step in steps.into_iter().flatten() {
            self.identity.report(network, now, side, step, self.milestones.delivered);
        }
        let delivered = self.milestones.delivered;
        if self.milestones.acknowledged.is_none() && self.sender().is_acknowledged() {
            self.milestones.acknowledged = Some(now);
            self.identity.report(network, now, side, AppStep::Acknowledged, delivered);
        }
        let is_complete = self.milestones.finished.is_some() && self.milestones.acknowledged.is_some();
        if !is_complete && self.milestones.aborted.is_none() && self.pair.loss().is_some() {
            self.milestones.aborted = Some(now);
            self.identity.report(network, now, side, AppStep::Aborted, delivered);
        }
        // The server waits for the datagram that closes the connection, and for the last
        // acknowledgements in it.
        let is_closed = self.pair.mobile.outcome().is_some();
        let is_settled = self.milestones.acknowledged.is_some() || self.pair.server.outcome().is_some();
        let is_finished = self.milestones.finished.is_some() && is_closed && is_settled;
        self.over = self.milestones.aborted.is_some() || is_finished;
    }
}
