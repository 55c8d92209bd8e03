//! The cell that LTE and NR have in common: mobiles share its resource blocks from one slot to the
//! next.
//!
//! - PDCP has a bounded queue with a discard timer; the RLC puts packets into PDUs of the size of a
//!   grant, in the acknowledged or the unacknowledged mode.
//! - A mobile reports a CQI, which arrives late; an outer loop corrects it. From it follow the
//!   modulation and coding scheme and with the resource blocks the size of a transport block, and
//!   from the SINR when it is sent, whether it is decoded.
//! - A block in error is sent again by hybrid ARQ, when the timeline of the slots permits it;
//!   feedback can be mistaken. What hybrid ARQ gives up, the RLC repairs.
//! - The mobile requests the uplink by a scheduling request, and reports its buffer in what it then
//!   sends. Grants without a request take that wait away (prescheduling, configured grants).
//! - A connected mobile listens at times only (DRX); an idle or inactive one is paged, and its
//!   connection takes time. None of them costs anything while nothing happens.
//! - A handover interrupts both directions. In the acknowledged mode nothing is lost: packets are
//!   forwarded and sent again.
//!
//! All mobiles share one cell's resource blocks, whatever the serving cell of their `conditions`.
//!
//! What differs is a [`Technology`]: slots and their timeline, block sizes, headers of the RLC.

mod background;
mod buffer_status;
pub(crate) mod cell;
pub(crate) mod channels;
pub(crate) mod config;
pub(crate) mod configured_grant;
mod drx;
mod error;
mod grid;
mod harq;
mod link_quality;
mod occupancy;
pub(crate) mod paging;
pub(crate) mod pdcp;
pub(crate) mod plan;
mod power_limit;
pub(crate) mod radio_link;
pub(crate) mod reordering;
pub(crate) mod repetition;
pub(crate) mod rlc;
pub(crate) mod rlc_am;
pub(crate) mod rrc;
mod scheduling_request;
mod transport_block;
mod transport_format;
pub(crate) mod user;

use std::marker::PhantomData;

use airpath_core::{
    ConnectionTotals, Context, Decibel, Direction, Instant, Packet, PacketCounters, Probability, RadioTotals, Seed,
    Span, UserId,
};
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

pub use error::ConfigError;
pub(crate) use grid::{Allocation, BlockSizes, CodeWords, Grid, GridParameters};

use crate::common::buffer_sizes::BufferSizes;
use crate::common::link_adaptation::Decoder;
use crate::common::shared_channel::scheduler::{self, SchedulerName};
use crate::common::slots::Timeline;
use crate::conditions;

/// What LTE and NR do differently.
pub trait Technology: std::fmt::Debug {
    /// What messages call the cell.
    const CELL: &'static str;
    /// What messages call one direction of it.
    const ONE_DIRECTION: &'static str;

    /// The parameters of a cell.
    ///
    /// # Errors
    /// If they make no sense.
    fn parameters(&self) -> Result<Parameters, ConfigError>;
}

/// The parameters of a cell of any technology, checked.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Slots, and the times of data, feedback and grants.
    pub(crate) timeline: Timeline,
    /// The resource blocks of the downlink.
    pub(crate) down: Grid,
    /// Those of the uplink.
    pub(crate) up: Grid,
    pub(crate) decoder: Decoder,
    /// The levels of a buffer status report.
    pub(crate) buffer_sizes: &'static BufferSizes,
    pub(crate) cell: Cell,
    /// How hybrid ARQ of the uplink works.
    pub(crate) uplink_harq: UplinkHarq,
    pub(crate) mobile: config::Mobile,
    pub(crate) harq: config::Harq,
    pub(crate) downlink: config::Downlink,
    pub(crate) uplink: config::Uplink,
    pub(crate) configured_grant: Option<configured_grant::Parameters>,
    pub(crate) rlc: rlc::Parameters,
    pub(crate) pdcp: pdcp::Parameters,
    pub(crate) drx: Option<config::Drx>,
    pub(crate) rrc: Option<rrc::Parameters>,
    /// A second bearer for voice.
    pub(crate) voice: Option<Voice>,
    /// Repetitions in a narrowband.
    pub(crate) repetition: Option<repetition::Parameters>,
    pub(crate) conditions: conditions::Config,
}

/// The voice bearer.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    /// The packets that use it.
    pub template: channels::Template,
    pub rlc: rlc::Parameters,
    pub pdcp: pdcp::Parameters,
}

/// The base station.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// Carriers of the downlink.
    pub carriers: u8,
    /// Mobiles that a slot of a carrier can serve in each direction.
    pub users_per_slot: u8,
    pub scheduler: SchedulerName,
    pub scheduler_options: scheduler::Options,
    /// From the end of what the base station received to the slot in which it reacts to it.
    pub processing: Span,
    pub target_bler: Probability,
    pub step: Decibel,
    pub max_correction: Decibel,
    pub delay: Span,
    /// Load by other users.
    pub background: Option<config::Background>,
}

/// Hybrid ARQ of the uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UplinkHarq {
    /// Feedback, on the PHICH, decides whether the mobile sends a block again at a fixed time. So
    /// there are as many processes as fit into the round trip (TS 36.321 §5.4.2).
    ByFeedback,
    /// There is no feedback: a grant with the same NDI requests a block again (TS 38.321 §5.4.2.1),
    /// of one of at most this number of processes (TS 38.214 §6.1).
    ByGrants { processes: usize },
}

/// A cell with its mobiles.
#[derive(Debug)]
pub struct CellBearer<T> {
    cell: cell::Cell,
    technology: PhantomData<fn() -> T>,
}

impl<T: Technology> CellBearer<T> {
    /// An idle cell with `users` mobiles. Generator streams are below `name/user-N`: `down/errors`,
    /// `up/errors`, `control`, `offsets` and `conditions`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &T, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        Ok(Self { cell: cell::Cell::new(&config.parameters()?, users, seed, name, name)?, technology: PhantomData })
    }

    fn directions(&self, command: &BearerCommand) -> Result<Vec<Direction>, CommandError> {
        self.cell.directions(command, T::CELL, T::ONE_DIRECTION)
    }
}

impl<T: Technology> Bearer for CellBearer<T> {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.cell.push(now, direction, packet, cx)
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.cell.pop(now, cx)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.cell.next_wakeup()
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        self.cell.counters(direction)
    }

    fn inspects_headers(&self) -> bool {
        self.cell.has_voice()
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        self.cell.users.get(user.index()).map(|user| user.radio_totals(direction))
    }

    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        self.cell.users.get(user.index()).map(|user| user.connection_totals())
    }

    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.cell.users.iter_mut().for_each(|user| user.end(now, cx));
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.directions(command).map(drop)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        let directions = self.directions(command)?;
        self.cell.command(now, command, &directions, cx);
        command.report(now, cx);
        Ok(())
    }
}
