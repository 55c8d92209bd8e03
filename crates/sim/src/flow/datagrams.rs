//! Datagrams in one direction, at a constant rate or in bursts at random times.

use airpath_app::datagrams::{HEADERS, Receiver, Sender, Spacing};
use airpath_app::{Datagrams, Phase};
use airpath_core::{AppStep, Ecn, Instant, RandomStream};
use airpath_path::Side;

use super::Identity;
use crate::network::{Network, Outgoing};
use crate::packet_buffer::Payload;

/// A stream of datagrams in progress.
pub struct DatagramsFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// The workload.
    pub datagrams: Datagrams,
    /// The end that sends.
    pub sender: Sender,
    /// The end that receives.
    pub receiver: Receiver,
    over: bool,
}

impl DatagramsFlow {
    /// A stream that waits for its start.
    ///
    /// `bursts`: of a stream without a constant rate, with the random stream of their times.
    pub fn new(
        identity: Identity,
        datagrams: Datagrams,
        bursts: Option<(Spacing, RandomStream)>,
        mut phase: Phase,
    ) -> Self {
        let start = identity.start + phase.draw(datagrams.interval());
        let sender = match bursts {
            Some((spacing, random)) => Sender::in_bursts(datagrams, start, spacing, random),
            None => Sender::new(datagrams, start),
        };
        Self { identity, datagrams, sender, receiver: Receiver::default(), over: false }
    }

    /// The side that sends.
    pub const fn source(&self) -> Side {
        match self.datagrams.direction {
            airpath_core::Direction::Down => Side::Server,
            airpath_core::Direction::Up => Side::Mobile,
        }
    }

    /// Whether all were sent and the time-out of the last has passed.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Whether no datagram is missing any more: all have arrived, or it is over.
    pub fn is_complete(&self) -> bool {
        self.over || self.sender.next_due().is_none() && self.receiver.received() == self.sender.sent()
    }

    pub(super) fn wake(&mut self, now: Instant, network: &mut Network<'_>) -> Option<Instant> {
        while let Some(sequence) = self.sender.poll(now) {
            if sequence == 0 {
                self.identity.report(network, now, self.source(), AppStep::Started, 0);
            }
            let outgoing = Outgoing {
                flow: self.identity.id,
                user: self.identity.user,
                side: self.source(),
                size: self.datagrams.size + HEADERS,
                ecn: Ecn::NotEct,
                payload: Payload::Datagram { sequence, sent: now },
            };
            network.send(now, outgoing);
        }
        self.over = self.sender.is_over(now);
        (!self.over).then(|| self.sender.next_wakeup()).flatten()
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        sequence: u32,
        sent: Instant,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
        let delay = self.receiver.receive(now, sequence, sent)?;
        let delivered = u64::from(self.receiver.received()) * u64::from(self.datagrams.size);
        let side = Side::at_end_of(self.datagrams.direction);
        self.identity.report(network, now, side, AppStep::Arrived { sequence, delay }, delivered);
        None
    }
}
