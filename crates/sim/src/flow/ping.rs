//! Ping: the mobile asks, the server answers at once.

use airpath_app::Ping;
use airpath_app::ping::Pinger;
use airpath_core::{AppStep, Ecn, Instant};
use airpath_wire::icmp::IcmpEcho;
use airpath_wire::ipv4::Ipv4Header;

use super::Identity;
use crate::route::Side;
use crate::store::Body;
use crate::world::{Outgoing, World};

/// A ping in progress.
pub struct PingFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// What is sent.
    pub ping: Ping,
    /// The end that asks.
    pub pinger: Pinger,
    over: bool,
}

impl PingFlow {
    /// A ping that waits for its start.
    pub fn new(identity: Identity, ping: Ping) -> Self {
        Self { pinger: Pinger::new(ping, identity.start), identity, ping, over: false }
    }

    /// Whether all replies came or were given up.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn wake(&mut self, now: Instant, world: &mut World<'_>) -> Option<Instant> {
        while let Some(sequence) = self.pinger.poll(now) {
            if sequence == 0 {
                self.identity.report(world, now, Side::Mobile, AppStep::Started, 0);
            }
            self.send(now, Side::Mobile, Body::Echo { sequence, sent: now, reply: false }, world);
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
        world: &mut World<'_>,
    ) -> Option<Instant> {
        if !reply {
            self.send(now, Side::Server, Body::Echo { sequence, sent, reply: true }, world);
            return None;
        }
        if let Some(delay) = self.pinger.reply(now, sequence, sent) {
            let answered = self.pinger.round_trips().count() * u64::from(self.ping.size);
            self.identity.report(world, now, Side::Mobile, AppStep::Arrived { sequence, delay }, answered);
        }
        self.over = self.pinger.is_over(now);
        (!self.over).then(|| self.pinger.next_wakeup()).flatten()
    }

    fn send(&self, now: Instant, side: Side, body: Body, world: &mut World<'_>) {
        let size = (Ipv4Header::LENGTH + IcmpEcho::LENGTH) as u32 + self.ping.size;
        world.send(
            now,
            Outgoing { flow: self.identity.id, user: self.identity.user, side, size, ecn: Ecn::NotEct, body },
        );
    }
}
