//! LTE: a cell with frequency division duplex, whose resource blocks all mobiles share from one
//! subframe of 1 ms to the next.
//!
//! - PDCP has a bounded queue with a discard timer; the RLC concatenates packets into PDUs of the
//!   size of a grant, in the acknowledged or the unacknowledged mode (TS 36.322).
//! - A mobile reports a CQI, which arrives late; an outer loop corrects it. From it follow the
//!   modulation and coding scheme and with the resource blocks the size of a transport block
//!   (TS 36.213 §7.1.7), and from the SINR when it is sent, whether it is decoded.
//! - A block in error is sent again by hybrid ARQ, after 8 ms at the earliest; feedback can be
//!   mistaken. What hybrid ARQ gives up, the RLC repairs.
//! - The mobile requests the uplink by a scheduling request, and reports its buffer in what it then
//!   sends. Grants without a request take that wait away (prescheduling).
//! - A connected mobile listens at times only (DRX); an idle one is paged, and its connection takes
//!   time. Neither costs anything while nothing happens.
//! - A handover interrupts both directions. In the acknowledged mode nothing is lost: packets are
//!   forwarded and sent again.
//!
//! All mobiles share one cell's resource blocks, whatever the serving cell of their `conditions`.
//!
//! | module | what |
//! | --- | --- |
//! | [`tables`] | the tables of the physical layer and of the buffer status report |
//! | [`tdd`] | subframes, feedback and grants of TDD |
//!
//! ```
//! use airpath_core::Seed;
//! use airpath_radio::lte::{Config, Lte};
//!
//! let preset: toml::Table = include_str!("../../../presets/lte-10mhz.toml").parse()?;
//! let mut bearer = preset["bearer"].as_table().expect("a table").clone();
//! bearer.remove("model");
//! let config: Config = bearer.try_into()?;
//! let cell = Lte::new(&config, 20, Seed::new(1), "cell")?;
//! # let _ = cell;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffer_status;
mod cell;
mod config;
mod drx;
mod error;
mod harq;
mod link_quality;
mod pdcp;
mod plan;
mod rlc;
mod rlc_am;
mod rlc_um;
mod rrc;
mod scheduling_request;
pub mod tables;
pub mod tdd;
mod transport_format;
mod user;

use airpath_core::{Context, Direction, Instant, Packet, PacketCounters, RadioTotals, Seed, Span, UserId};
use airpath_link::command::Change;
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

pub use config::{
    Acknowledged, Cell, Config, Downlink, DownlinkModulation, Drx, Harq, Mobile, Pdcp, Prescheduling, RandomAccess,
    Rlc, Rrc, Unacknowledged, Uplink, UplinkModulation,
};
pub use error::ConfigError;

use crate::common::header_compression;
use crate::conditions;
use crate::model::Model;
use plan::Plan;
use user::User;

impl Model for Config {
    const NAME: &'static str = "lte-cell";
    const TITLE: &'static str = "an LTE cell whose resource blocks all mobiles share";

    type Error = ConfigError;

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        Some(&mut self.conditions)
    }

    fn transmission_period(&self) -> Option<Span> {
        Some(tables::TTI)
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        let bearer = Lte::new(self, classes.len(), seed, name)?;
        Ok(header_compression::above(self.header_compression.as_ref(), bearer, classes.len())?)
    }
}

/// A cell with its mobiles.
#[derive(Debug)]
pub struct Lte {
    cell: cell::Cell,
}

impl Lte {
    /// An idle cell with `users` mobiles. Generator streams are below `name/user-N`: `down/errors`,
    /// `up/errors`, `control`, `offsets` and `conditions`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let cell = &config.cell;
        let scheduler = || cell.scheduler.build(users, tables::TTI, cell.averaging_time, "cell");
        let schedulers = [scheduler()?, scheduler()?];
        let plan = Plan::new(config);
        let user = |index| User::new(config, index, seed, &format!("{name}/user-{index}"));
        let users = (0..users).map(user).collect::<Result<_, _>>()?;
        Ok(Self { cell: cell::Cell::new(plan, schedulers, users) })
    }

    fn directions(&self, command: &BearerCommand) -> Result<Vec<Direction>, CommandError> {
        let users = self.cell.users.len();
        if let Some(UserId(user)) = command.user.filter(|user| usize::from(user.0) >= users) {
            return Err(CommandError::NoSuchUser { user, users });
        }
        // A handover ends the connection of both directions.
        let concerns_both =
            command.change.needs_radio_conditions() || matches!(command.change, Change::Handover { .. });
        if concerns_both && command.direction.is_some() {
            let (key, what) = (command.change.kind().name(), "one direction of an LTE cell");
            return Err(CommandError::Foreign { key, what, help: "it is that of both: leave out `direction`" });
        }
        // All mobiles are alike in what they can do.
        let first = self.cell.users.first();
        command.directions(|_| first.map_or(Ok(()), |user| user.check(&command.change)))
    }
}

impl Bearer for Lte {
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

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        self.cell.users.get(usize::from(user.0)).map(|user| user.radio_totals(direction))
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.directions(command).map(drop)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        let directions = self.directions(command)?;
        let users = match command.user {
            Some(UserId(user)) => usize::from(user)..usize::from(user) + 1,
            None => 0..self.cell.users.len(),
        };
        for user in users {
            self.cell.command(user, now, command, &directions, cx);
        }
        command.report(now, cx);
        Ok(())
    }
}
