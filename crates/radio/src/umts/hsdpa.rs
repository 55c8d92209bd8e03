//! A cell with HSDPA: its mobiles share the codes and the power of the HS-DSCH from one TTI of 2 ms
//! to the next. Each has a dedicated channel of UMTS upwards.
//!
//! [`hsdpa`](crate::hsdpa) is the simpler model, that of the study `hsdpa-sim`: one block a TTI,
//! C/I levels that are drawn, and a fixed delay for repetitions that go on until a block gets
//! through.
//!
//! - The RLC of the RNC cuts packets into PDUs, and sends as many as it has [credits](Iub) for.
//! - A mobile reports a CQI, which arrives late. From it follow size, codes and modulation of a
//!   block, within the mobile's category (TS 25.214 §6A.2), and from C/I when it is sent, whether
//!   it is decoded.
//! - A block in error is sent again by hybrid ARQ, with soft combining, up to `max_transmissions`;
//!   then the RLC repairs it. The mobile puts blocks into their order, and waits for a missing one
//!   as long as window and timer T1 allow.
//! - Several mobiles are served in a TTI if codes and power are enough; a [`Scheduler`] decides the
//!   order.
//! - A change of the serving cell interrupts for its gap, and loses the packets in the base
//!   station. Without coverage nothing is sent.
//!
//! All mobiles share one cell's codes, whatever the serving cell of their `conditions`.
//!
//! ```
//! use airpath_core::Seed;
//! use airpath_radio::umts::hsdpa::{Config, Hsdpa};
//!
//! let preset: toml::Table = include_str!("../../../../presets/hsdpa-cat10.toml").parse()?;
//! let mut bearer = preset["bearer"].as_table().expect("a table").clone();
//! bearer.remove("model");
//! let config: Config = bearer.try_into()?;
//! let cell = Hsdpa::new(&config, 20, Seed::new(1), "cell")?;
//! # let _ = cell;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffer;
mod candidates;
mod cell;
mod config;
mod e_dch;
mod harq;
mod iub;
mod link_quality;
mod plan;
mod reordering;
mod transport_block;
mod unit;
mod uplink;
mod user;

use airpath_core::{
    ConnectionTotals, Context, Direction, Instant, Packet, PacketCounters, RadioTotals, Seed, Span, UserId,
};
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

pub use e_dch::config::{EDch, Grants};

pub use config::{Cell, Config, Downlink, Harq, Iub, Mac, Mobile, TTI};

use crate::common::header_compression;
use crate::common::shared_channel::scheduler::{Scheduler, options};
use crate::conditions;
use crate::model::Model;
use crate::umts::ConfigError;
use plan::Plan;
use user::User;

impl Model for Config {
    const NAME: &'static str = "hsdpa";
    const TITLE: &'static str = "an HSDPA cell whose codes and power all mobiles share";
    const FORMER_NAMES: &'static [&'static str] = &["hsdpa-cell"];
    const FADING_PROFILES: bool = true;

    type Error = ConfigError;

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        Some(&mut self.conditions)
    }

    fn transmission_period(&self) -> Option<Span> {
        Some(TTI)
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        let bearer = Hsdpa::new(self, classes.len(), seed, name)?;
        Ok(header_compression::above(self.header_compression.as_ref(), bearer, classes.len(), None)?)
    }
}

/// A cell with its mobiles.
#[derive(Debug)]
pub struct Hsdpa {
    cell: cell::Cell,
}

impl Hsdpa {
    /// An idle cell with `users` mobiles. Generator streams are below `name/user-N`: `down/errors`,
    /// `up/errors` and `conditions`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        let cell = &config.cell;
        let unit = config.downlink.mac.packing().unit(config.downlink.pdu);
        let scheduler = cell.scheduler.build(users, TTI, unit, options!(cell), "cell")?;
        Self::with_scheduler(config, users, seed, name, scheduler)
    }

    /// The same with a scheduler of one's own, in place of that of the configuration.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn with_scheduler(
        config: &Config,
        users: usize,
        seed: Seed,
        name: &str,
        scheduler: Box<dyn Scheduler>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let user = |index| User::new(config, index, seed, &format!("{name}/user-{index}"));
        let users = (0..users).map(user).collect::<Result<_, _>>()?;
        let uplink = config.e_dch.as_ref().map(EDch::scheduling).transpose()?;
        Ok(Self { cell: cell::Cell::new(Plan::new(config)?, scheduler, uplink, users) })
    }

    fn directions(&self, command: &BearerCommand) -> Result<Vec<Direction>, CommandError> {
        let users = self.cell.users.len();
        if let Some(user) = command.user.filter(|user| user.index() >= users) {
            return Err(CommandError::NoSuchUser { user: user.number(), users });
        }
        if command.change.needs_radio_conditions() && command.direction.is_some() {
            let (key, what) = (command.change.kind().name(), "one direction of an HSDPA cell");
            return Err(CommandError::Foreign { key, what, help: "it is that of both: leave out `direction`" });
        }
        // All mobiles are alike in what they can do.
        let first = self.cell.users.first();
        command.directions(|_| first.map_or(Ok(()), |user| user.check(&command.change)))
    }
}

impl Bearer for Hsdpa {
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
        self.cell.users.get(user.index()).map(|user| user.radio_totals(direction))
    }

    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        self.cell.users.get(user.index()).map(User::connection_totals)
    }

    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.cell.users.iter_mut().for_each(|user| user.end(now, cx));
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.directions(command).map(drop)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        let directions = self.directions(command)?;
        let users = match command.user {
            Some(user) => user.index()..user.index() + 1,
            None => 0..self.cell.users.len(),
        };
        for user in users {
            self.cell.command(user, now, command, &directions, cx);
        }
        command.report(now, cx);
        Ok(())
    }
}
