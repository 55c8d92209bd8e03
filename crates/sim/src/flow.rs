//! Flows: the two ends of each, and the workload between them.

mod datagrams;
mod ping;
mod transactions;
mod transfer;

use airpath_core::{AppEvent, AppStep, Bytes, FlowId, Instant, Packet, UserId};

use crate::route::Side;
use crate::store::Body;
use crate::world::World;

pub use datagrams::DatagramsFlow;
pub use ping::PingFlow;
pub use transactions::TransactionsFlow;
pub use transfer::TransferFlow;

/// What all flows have.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its number.
    pub id: FlowId,
    /// Its name in reports.
    pub name: String,
    /// Its mobile.
    pub user: UserId,
    /// When it starts.
    pub start: Instant,
}

impl Identity {
    fn report(&self, world: &mut World<'_>, now: Instant, side: Side, step: AppStep, delivered: u64) {
        let component = world.component(self.user, side);
        let event = || AppEvent { flow: self.id, step, delivered: Bytes::new(delivered) };
        world.cx(component).app(now, event);
    }
}

/// One flow.
pub enum Flow {
    /// A bulk transfer over TCP.
    Transfer(Box<TransferFlow>),
    /// Echo requests from the mobile.
    Ping(Box<PingFlow>),
    /// Datagrams at a constant rate.
    Datagrams(Box<DatagramsFlow>),
    /// Requests of the mobile and their responses.
    Transactions(Box<TransactionsFlow>),
}

impl Flow {
    /// What all flows have.
    pub const fn identity(&self) -> &Identity {
        match self {
            Self::Transfer(flow) => &flow.identity,
            Self::Ping(flow) => &flow.identity,
            Self::Datagrams(flow) => &flow.identity,
            Self::Transactions(flow) => &flow.identity,
        }
    }

    /// `packet` has reached `side`. Returns the next wake-up of that side.
    #[inline]
    pub fn receive(&mut self, now: Instant, side: Side, packet: &Packet, world: &mut World<'_>) -> Option<Instant> {
        let (body, mut cx) = world.open(packet, side);
        match (self, body) {
            (Self::Transfer(flow), Body::Segment(segment)) => {
                flow.receive(now, side, segment, &mut cx);
                flow.proceed(now, side, world)
            }
            (Self::Transactions(flow), Body::Segment(segment)) => {
                flow.receive(now, side, segment, &mut cx);
                flow.proceed(now, side, world)
            }
            (Self::Ping(flow), &Body::Echo { sequence, sent, reply }) => {
                flow.receive(now, sequence, sent, reply, world)
            }
            (Self::Datagrams(flow), &Body::Datagram { sequence, sent }) => flow.receive(now, sequence, sent, world),
            _ => unreachable!("a flow gets only packets of its own kind"),
        }
    }

    /// It is time for `side` to act. Returns its next wake-up.
    pub fn wake(&mut self, now: Instant, side: Side, world: &mut World<'_>) -> Option<Instant> {
        match self {
            Self::Transfer(flow) => flow.wake(now, side, world),
            Self::Ping(flow) => flow.wake(now, world),
            Self::Datagrams(flow) => flow.wake(now, world),
            Self::Transactions(flow) => flow.wake(now, side, world),
        }
    }

    /// Whether nothing more will happen that a user would wait for.
    pub const fn is_over(&self) -> bool {
        match self {
            Self::Transfer(flow) => flow.is_over(),
            Self::Ping(flow) => flow.is_over(),
            Self::Datagrams(flow) => flow.is_over(),
            Self::Transactions(flow) => flow.is_over(),
        }
    }
}
