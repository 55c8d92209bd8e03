//! Ping: one end sends echo requests, the mobile by default; the other replies at once.

use airpath_app::ping::Pinger;
use airpath_app::{Phase, Ping};
use airpath_core::{AppStep, Direction, Ecn, Instant, Span};
use airpath_path::Side;
use airpath_scenario::steering::SteeringConfig;
use airpath_wire::icmp::IcmpEcho;
use airpath_wire::ipv4::Ipv4Header;

use super::Identity;
use crate::network::{Network, Outgoing};
use crate::packet_buffer::Payload;
use crate::steering::Monitor;

/// Data bytes of a probe of steering.
const PROBE_SIZE: u32 = 32;

/// A ping in progress.
pub struct PingFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// The workload.
    pub ping: Ping,
    /// Of the requests.
    pub direction: Direction,
    /// The end that sends requests.
    pub pinger: Pinger,
    over: bool,
    /// Of the probes of steering: they last as long as the run.
    monitor: Option<Monitor>,
}

impl PingFlow {
    /// A ping that waits for its start.
    pub fn new(identity: Identity, ping: Ping, direction: Direction, phase: Phase) -> Self {
        Self { pinger: Pinger::new(ping, identity.start, phase), identity, ping, direction, over: false, monitor: None }
    }

    /// Probes of the bearer of `identity`, for steering, in a run of this `duration`.
    pub fn probes(identity: Identity, config: &SteeringConfig, duration: Span) -> Self {
        let interval = config.probe_interval;
        let count = (duration.as_nanos() / interval.as_nanos() + 1) as u32;
        let ping = Ping { size: PROBE_SIZE, interval, count, timeout: config.probe_timeout };
        Self { monitor: Some(Monitor::new(config)), ..Self::new(identity, ping, Direction::Up, Phase::ZERO) }
    }

    /// The side that sends requests.
    pub const fn source(&self) -> Side {
        match self.direction {
            Direction::Down => Side::Server,
            Direction::Up => Side::Mobile,
        }
    }

    /// Whether each reply has arrived or timed out.
    pub const fn is_over(&self) -> bool {
        self.over || self.monitor.is_some()
    }

    pub(super) fn wake(&mut self, now: Instant, network: &mut Network<'_>) -> Option<Instant> {
        while let Some(sequence) = self.pinger.poll(now) {
            if sequence == 0 {
                self.identity.report(network, now, self.source(), AppStep::Started, 0);
            }
            self.send(now, self.source(), Payload::Echo { sequence, sent: now, reply: false }, network);
            if self.monitor.as_mut().is_some_and(|monitor| monitor.send(now)) {
                network.measured(now, self.identity.user, None);
            }
        }
        self.over = self.pinger.is_over(now);
        (!self.over).then(|| self.pinger.next_wakeup()).flatten()
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        sequence: u32,
        sent: Instant,
        reply: bool,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
        if !reply {
            self.send(now, Side::at_end_of(self.direction), Payload::Echo { sequence, sent, reply: true }, network);
            return None;
        }
        if let Some(delay) = self.pinger.reply(now, sequence, sent) {
            if let Some(monitor) = &mut self.monitor {
                monitor.answer();
                network.measured(now, self.identity.user, Some(delay));
            }
            let answered = self.pinger.round_trips().count() * u64::from(self.ping.size);
            self.identity.report(network, now, self.source(), AppStep::Arrived { sequence, delay }, answered);
        }
        self.over = self.pinger.is_over(now);
        (!self.over).then(|| self.pinger.next_wakeup()).flatten()
    }

    fn send(&self, now: Instant, side: Side, payload: Payload, network: &mut Network<'_>) {
        let size = (Ipv4Header::LENGTH + IcmpEcho::LENGTH) as u32 + self.ping.size;
        network.send(
            now,
            Outgoing { flow: self.identity.id, user: self.identity.user, side, size, ecn: Ecn::NotEct, payload },
        );
    }
}
