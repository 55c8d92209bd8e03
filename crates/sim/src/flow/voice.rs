//! A call between the server and the mobile over RTP.

use std::sync::Arc;

use airpath_app::datagrams::HEADERS;
use airpath_app::streaming::Channel;
use airpath_app::voice::codec::LOOK_AHEAD;
use airpath_app::voice::{Arrival, Datagram, End, Session, Settings};
use airpath_core::{AppStep, Direction, Ecn, Instant, Packet, RandomStream};
use airpath_path::{Payload as Bytes, Side};

use super::Identity;
use crate::network::{Network, Outgoing};
use crate::packet_buffer::Payload;

/// A call in progress.
pub struct VoiceFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// The call, as both ends have it.
    pub session: Arc<Session>,
    /// Both ends, by the direction in which they send.
    ends: [End; 2],
    /// Which ends are over.
    finished: [bool; 2],
    started: bool,
}

impl VoiceFlow {
    /// A call that waits for its start; `random` makes the random streams of its parts.
    pub fn new(identity: Identity, settings: Settings, random: impl Fn(&'static str) -> RandomStream) -> Self {
        let session = Arc::new(Session::new(settings, random("session"), random("conversation")));
        let ends = Direction::BOTH.map(|direction| End::new(Arc::clone(&session), direction, identity.start));
        Self { identity, session, ends, finished: [false; 2], started: false }
    }

    /// Whether both ends have left the call.
    pub const fn is_over(&self) -> bool {
        self.finished[0] && self.finished[1]
    }

    /// The end that sends in `direction`.
    pub const fn end(&self, direction: Direction) -> &End {
        &self.ends[direction as usize]
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
        let (Payload::Stream { .. }, bytes) = network.datagram(packet) else {
            unreachable!("a flow receives only packets of its own kind")
        };
        let end = &mut self.ends[side.sends() as usize];
        if let Some(Arrival { number, delay, spurt }) = end.receive(now, bytes) {
            let delivered = u64::from(end.received().packets);
            let step = AppStep::Arrived { sequence: number, delay };
            self.identity.report(network, now, side, step, delivered);
            if let Some(spurt) = spurt {
                let step = AppStep::Playout { sequence: spurt.first, delay: spurt.delay + LOOK_AHEAD };
                self.identity.report(network, now, side, step, delivered);
            }
        }
        self.ends[side.sends() as usize].next_wakeup(now)
    }

    pub(super) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if !self.started {
            self.started = true;
            self.identity.report(network, now, side, AppStep::Started, 0);
        }
        let end = &mut self.ends[side.sends() as usize];
        while let Some(datagram) = end.poll(now) {
            send(&self.identity, now, side, datagram, network);
        }
        let finished = std::mem::replace(&mut self.finished[side.sends() as usize], end.is_over(now));
        let wakeup = end.next_wakeup(now);
        if !finished && self.is_over() {
            let delivered = u64::from(self.end(side.sends()).received().packets);
            self.identity.report(network, now, side, AppStep::Finished, delivered);
        }
        wakeup
    }
}

fn send(identity: &Identity, now: Instant, side: Side, datagram: Datagram<'_>, network: &mut Network<'_>) {
    let Datagram { head, media } = datagram;
    let outgoing = Outgoing {
        flow: identity.id,
        user: identity.user,
        side,
        size: head.len() as u32 + media + HEADERS,
        ecn: Ecn::NotEct,
        payload: Payload::Stream { channel: Channel::Media, sent: now },
    };
    network.send_with(now, outgoing, Bytes::Bytes([head, &[]]));
}
