//! A bulk transfer: the two ends of a TCP connection, with an application on each.

use airpath_app::bulk::{Milestones, Progress, Role, Transfer};
use airpath_core::{AppStep, Context, Direction, Instant, UserId};
use airpath_path::Side;
use airpath_scenario::tcp::Settings;
use airpath_scenario::work::Freeze;
use airpath_tcp::{Connection, Identity as TcpIdentity, Segment, State};
use airpath_wire::ipv4::Ipv4Header;

use super::{Identity, seed};
use crate::network::{Network, Outgoing};
use crate::packet_buffer::Payload;

/// A transfer in progress.
///
/// Fields are ordered by use, and the struct is aligned to a cache line: thousands of flows exceed
/// the cache, and the cost of a packet is the number of lines that it touches.
#[repr(C, align(64))]
pub struct TransferFlow {
    over: bool,
    started: bool,
    /// The workload.
    pub transfer: Transfer,
    mobile_role: Role,
    server_role: Role,
    /// When the mobile closes its window, and when it opens it again; the next one last.
    freezes: Vec<(Instant, bool)>,
    /// Times of its milestones.
    pub milestones: Milestones,
    /// Name, mobile, start.
    pub identity: Identity,
    /// TCP settings of both ends.
    pub tcp: Settings,
    /// The mobile's connection.
    pub mobile: Connection,
    /// The server's connection.
    pub server: Connection,
}

impl TransferFlow {
    /// A transfer that waits for its start. `freezes` are the times in which the mobile offers a
    /// window of zero.
    pub fn new(identity: Identity, transfer: Transfer, tcp: &Settings, freezes: &[Freeze]) -> Self {
        let ports = (49_152 + (identity.id.0 % 16_384) as u16, 80);
        // Fixed initial sequence numbers make a capture easier to read.
        let end = |direction, local_port, remote_port| TcpIdentity {
            flow: identity.id,
            direction,
            local_port,
            remote_port,
            initial_sequence: 0,
        };
        let (mobile_role, server_role) = transfer.roles();
        let mut mobile = Connection::connect(tcp.config.clone(), end(Direction::Up, ports.0, ports.1), identity.start);
        let mut server = Connection::listen(tcp.config.clone(), end(Direction::Down, ports.1, ports.0));
        seed(&mut mobile, &identity.random, 0, Side::Mobile);
        seed(&mut server, &identity.random, 0, Side::Server);
        Self {
            mobile,
            server,
            identity,
            transfer,
            tcp: tcp.clone(),
            milestones: Milestones::default(),
            mobile_role,
            server_role,
            freezes: times_of(freezes),
            started: false,
            over: false,
        }
    }

    /// The side that sends the bytes.
    pub const fn source(&self) -> Side {
        match self.transfer.direction {
            Direction::Down => Side::Server,
            Direction::Up => Side::Mobile,
        }
    }

    /// The connection that sends the bytes.
    pub const fn sender(&self) -> &Connection {
        match self.transfer.direction {
            Direction::Down => &self.server,
            Direction::Up => &self.mobile,
        }
    }

    /// The connection that receives the bytes.
    pub const fn receiver(&self) -> &Connection {
        match self.transfer.direction {
            Direction::Down => &self.mobile,
            Direction::Up => &self.server,
        }
    }

    /// Why the transfer was aborted, if it was.
    pub fn cause(&self) -> Option<String> {
        self.milestones.aborted.filter(|_| self.milestones.finished.is_none())?;
        let ends = [("mobile", &self.mobile), ("server", &self.server)];
        let lost = ends.into_iter().find_map(|(end, connection)| {
            let outcome = connection.outcome().filter(|outcome| !outcome.is_orderly())?;
            Some(format!("{outcome}, reported by the {end}"))
        });
        lost.or_else(|| Some("a connection was lost".to_owned()))
    }

    /// Whether the transfer is complete or aborted.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// `side` receives a segment. The caller calls [`Self::proceed`] next.
    #[inline]
    pub(super) fn receive(&mut self, now: Instant, side: Side, segment: &Segment, cx: &mut Context<'_>) {
        self.connection(side).handle_segment(now, segment, cx);
    }

    pub(super) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if !self.started {
            self.started = true;
            self.identity.report(network, now, Side::Mobile, AppStep::Started, 0);
            // Without a handshake the server's end is open from the start, and no packet wakes it.
            let server = self.proceed(now, Side::Server, network);
            network.events.wake(network.node_of(self.identity.id, Side::Server), server);
            return self.proceed(now, Side::Mobile, network);
        }
        let component = network.component(self.identity.user, side);
        self.connection(side).handle_timeout(now, &mut network.context(component));
        self.proceed(now, side, network)
    }

    /// Runs the application on the state of its connection, then sends segments.
    #[inline]
    pub(super) fn proceed(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        let (connection, role) = match side {
            Side::Mobile => (&mut self.mobile, &mut self.mobile_role),
            Side::Server => (&mut self.server, &mut self.server_role),
        };
        if side == Side::Mobile {
            while let Some((_, closed)) = self.freezes.pop_if(|(at, _)| *at <= now) {
                connection.close_window(closed);
            }
        }
        let progress = role.step(connection);
        let component = network.component(self.identity.user, side);
        while let Some(segment) = connection.poll_transmit(now, &mut network.context(component)) {
            network.send(now, outgoing(&self.identity, self.identity.user, side, segment));
        }
        let freeze = self.freezes.last().filter(|_| side == Side::Mobile).map(|(at, _)| *at);
        let wakeup = connection.next_wakeup().into_iter().chain(freeze).min();
        self.mark(now, side, progress, network);
        wakeup
    }

    #[inline]
    fn mark(&mut self, now: Instant, side: Side, progress: Progress, network: &mut Network<'_>) {
        let steps = self.milestones.note(now, progress, self.transfer.bytes);
        for step in steps.into_iter().flatten() {
            self.identity.report(network, now, side, step, self.milestones.delivered);
        }
        let delivered = self.milestones.delivered;
        if self.milestones.acknowledged.is_none()
            && side == self.source()
            && self.sender().acknowledged() >= self.transfer.bytes.get()
        {
            self.milestones.acknowledged = Some(now);
            self.identity.report(network, now, side, AppStep::Acknowledged, delivered);
        }
        if self.milestones.acknowledged.is_none()
            && self.milestones.aborted.is_none()
            && self.connection(side).outcome().is_some_and(|outcome| !outcome.is_orderly())
        {
            self.milestones.aborted = Some(now);
            self.identity.report(network, now, side, AppStep::Aborted, delivered);
        }
        self.over = self.milestones.aborted.is_some()
            || (self.milestones.finished.is_some()
                && self.milestones.acknowledged.is_some()
                && (!self.tcp.config.handshake || (is_done(&self.mobile) && is_done(&self.server))));
    }

    #[inline]
    const fn connection(&mut self, side: Side) -> &mut Connection {
        match side {
            Side::Mobile => &mut self.mobile,
            Side::Server => &mut self.server,
        }
    }
}

/// The times at which the window closes and opens, the first one last.
fn times_of(freezes: &[Freeze]) -> Vec<(Instant, bool)> {
    let times = freezes.iter().rev().flat_map(|freeze| [(freeze.until, false), (freeze.from, true)]);
    times.map(|(after, closed)| (Instant::ZERO + after, closed)).collect()
}

pub(super) fn is_done(connection: &Connection) -> bool {
    connection.outcome().is_some() || connection.state() == State::TimeWait
}

pub(super) fn outgoing(identity: &Identity, user: UserId, side: Side, segment: Segment) -> Outgoing {
    Outgoing {
        flow: identity.id,
        user,
        side,
        size: segment.wire_size(Ipv4Header::LENGTH as u32),
        ecn: segment.ecn,
        payload: Payload::Segment(segment),
    }
}
