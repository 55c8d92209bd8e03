//! A GPRS or EGPRS cell: radio blocks, temporary block flows, and the acknowledged mode of the RLC.
//!
//! ```text
//!   server ─► support nodes ─► base station ─── timeslots, 20 ms blocks ───► mobile
//!              queue            LLC frames       RLC blocks, window, Ack/Nack
//! ```
//!
//! A packet is cut into LLC frames, these into RLC blocks. A radio block of 4 bursts carries one
//! RLC block, or two with the fastest schemes of EGPRS. A temporary block flow (TBF) is set up
//! before, in each direction by itself, and released when there is no more data: the first packet
//! after a pause waits for it. The receiver acknowledges with bitmaps (Packet Downlink and Uplink
//! Ack/Nack); the mobile sends its own when the network polls.
//!
//! One mechanism a file:
//!
//! | file | what |
//! | --- | --- |
//! | `multiframe` | the clocks: 12 blocks in 240 ms, and the common control channel |
//! | `coding_scheme` | payload of a block |
//! | `llc` | headers and segments of LLC and SNDCP |
//! | `multislot` | timeslots that a mobile uses |
//! | `parameters` | parameters and deadlines of TBFs |
//! | `cell` | the scheduler of blocks on timeslots |
//! | `mobile` | establishment and release of TBFs, radio log |
//! | `downlink`, `uplink` | the phases of a TBF, polls, Ack/Nack |
//! | `radio_block` | the content of a block (new, repeated, halved), and its transmission |
//! | `soft_combining` | incremental redundancy: the transmissions that a receiver combines |
//! | `adaptation`, `shares` | link adaptation |
//! | `goodput` | goodput of a scheme at a C/I |
//! | `voice` | calls that take timeslots away |
//! | `air` | radio conditions, and whether a block is received |
//! | `tracks` | states in the radio log |
//!
//! Clauses without a document refer to 3GPP TS 44.060.
//!
//! ```
//! use airpath_core::{Context, Direction, Instant, Packet, Seed, Span};
//! use airpath_link::Bearer;
//! use airpath_radio::gsm::gprs::{Config, Gprs};
//!
//! # let preset = include_str!("../../../../presets/gprs-3+1.toml");
//! # let mut preset: toml::Table = preset.parse()?;
//! # let mut bearer = preset.remove("bearer").and_then(|it| it.as_table().cloned()).unwrap();
//! # bearer.remove("model");
//! // The `[bearer]` table of a scenario or preset:
//! let config: Config = bearer.try_into()?;
//! let mut cell = Gprs::new(&config, 1, Seed::new(1), "cell")?;
//!
//! let mut lost = Vec::new();
//! let mut cx = Context::new(None, &mut lost, Default::default());
//! # use airpath_core::{Ecn, FlowId, Slot, UserId};
//! # let packet = Packet { id: 0, size: 40, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
//! assert_eq!(cell.next_wakeup(), None, "an idle cell sleeps");
//! cell.push(Instant::ZERO, Direction::Up, packet, &mut cx);
//! let (_, departure) = cell.pop(Instant::ZERO + Span::from_secs(5), &mut cx).expect("it has arrived");
//! assert!(departure.due > Instant::ZERO + Span::from_millis(100), "random access takes its time");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adaptation;
mod air;
mod cell;
pub mod coding_scheme;
pub mod config;
mod downlink;
mod ends;
mod error;
mod goodput;
mod llc;
mod mobile;
pub mod multiframe;
pub mod multislot;
mod parameters;
mod radio_block;
mod shares;
mod soft_combining;
mod tracks;
mod uplink;
mod voice;

use airpath_core::{
    ConnectionTotals, Context, Direction, DropCause, Instant, Packet, PacketCounters, PacketStep, RadioTotals, Seed,
    Span, UserId, earliest,
};
use airpath_link::command::Change;
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

pub use adaptation::{Adaptation, ByErrors, ByRatio};
pub use coding_scheme::CodingScheme;
pub use config::Config;
pub use error::ConfigError;
pub use goodput::{crossing, goodput};
pub use shares::Shares;
pub use voice::Voice;

use crate::conditions;
use crate::model::Model;
use cell::Cell;
use ends::Ends;
use mobile::Mobile;
use parameters::Parameters;
use voice::Calls;

impl Model for Config {
    const NAME: &'static str = "gprs";
    const TITLE: &'static str = "a GPRS or EGPRS cell whose timeslots all mobiles share";
    const FADING_PROFILES: bool = true;

    type Error = ConfigError;

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        Some(&mut self.conditions)
    }

    fn transmission_period(&self) -> Option<Span> {
        Some(multiframe::BLOCK_PERIOD)
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        Ok(Box::new(Gprs::new(self, classes.len(), seed, name)?))
    }
}

/// A cell and its mobiles.
#[derive(Debug)]
pub struct Gprs {
    cell: Cell,
}

impl Gprs {
    /// An idle cell for users 0 to `users` − 1. Generator streams are `name/user-N/…`:
    /// `down/errors`, `up/errors`, `access`, `paging`, and those of the radio conditions below
    /// `conditions`; `name/voice` is the calls'.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let mobiles = (0..users).map(|user| Mobile::new(config, user, seed, name)).collect::<Result<_, _>>()?;
        let ends = Ends::new([config.downlink.delay, config.uplink.delay]);
        let calls = config.cell.voice.as_ref().map(|voice| Calls::new(voice, seed, &format!("{name}/voice")));
        Ok(Self { cell: Cell::new(Parameters::new(config), mobiles, ends, config.cell.slots, config.slots()?, calls) })
    }

    fn check_change(&self, change: &Change) -> Result<(), CommandError> {
        change.check()?;
        if change.needs_radio_conditions() {
            return self.cell.mobiles.iter().try_for_each(|mobile| mobile.air.check(change));
        }
        let foreign = |help| Err(CommandError::Foreign { key: change.kind().name(), what: "a GPRS cell", help });
        match change {
            Change::Outage(_) | Change::Handover { .. } | Change::Bler(_) => Ok(()),
            Change::Delay(delay) if delay.fixed().is_some() => Ok(()),
            Change::Delay(_) => foreign("its delay is one length of time, not a distribution"),
            Change::Loss(_) => foreign("blocks are lost by its C/I, or with a `bler`"),
            _ => foreign("its rate follows from timeslots, coding scheme and C/I"),
        }
    }

    /// Does in one direction what was checked before, for one mobile.
    fn change(&mut self, now: Instant, direction: Direction, index: usize, change: &Change, cx: &mut Context<'_>) {
        let Cell { mobiles, ends, .. } = &mut self.cell;
        let mobile = &mut mobiles[index];
        if let Some((span, _)) = change.interruption() {
            let block = multiframe::block_from(now + span);
            match change {
                Change::Handover { .. } => mobile.reconnect(direction, block),
                _ => mobile.silence(direction, block),
            }
        }
        match change {
            Change::Handover { buffer, .. } => mobile.hand_over(direction, now, *buffer, ends, cx),
            Change::Bler(rate) => mobile.air.force(direction, *rate),
            _ => {}
        }
    }
}

impl Bearer for Gprs {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.cell.advance(now, cx);
        self.cell.ends.offer(direction, &packet);
        let Cell { mobiles, ends, .. } = &mut self.cell;
        let mobile = mobiles.get_mut(packet.user.index()).expect("a packet belongs to one of the cell's mobiles");
        let queue = match direction {
            Direction::Down => &mut mobile.down.queue,
            Direction::Up => &mut mobile.up.queue,
        };
        let lost = |packet| ends.lose(direction, now, packet, DropCause::QueueFull, cx);
        if let Err(cause) = queue.enqueue(now, packet, lost) {
            ends.lose(direction, now, packet, cause, cx);
            return Admission::Dropped(cause);
        }
        let (backlog_packets, backlog_bytes) = mobile.backlog(direction);
        cx.direction = direction;
        cx.packet(now, packet, || PacketStep::Queued { backlog_packets, backlog_bytes });
        self.cell.activate(packet.user.index(), now);
        Admission::Queued
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.cell.advance(now, cx);
        self.cell.ends.pop(now, cx)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let leaves = self.cell.ends.next().map(|(due, _)| due);
        earliest([leaves, self.cell.next_step()])
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        self.cell.ends.counters(direction)
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        self.cell.mobiles.get(user.index()).map(|mobile| mobile.totals[direction as usize])
    }

    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        self.cell.mobiles.get(user.index()).map(|mobile| mobile.connection)
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        let users = self.cell.mobiles.len();
        if let Some(user) = command.user.filter(|user| user.index() >= users) {
            return Err(CommandError::NoSuchUser { user: user.number(), users });
        }
        if command.change.needs_radio_conditions() && command.direction.is_some() {
            let (key, what) = (command.change.kind().name(), "one direction of a GPRS cell");
            return Err(CommandError::Foreign { key, what, help: "it is that of both: leave out `direction`" });
        }
        command.directions(|_| self.check_change(&command.change)).map(drop)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        self.check(command)?;
        self.cell.advance(now, cx);
        let users = match command.user {
            Some(user) => user.index()..user.index() + 1,
            None => 0..self.cell.mobiles.len(),
        };
        if command.change.needs_radio_conditions() {
            self.cell.mobiles[users].iter_mut().for_each(|mobile| mobile.air.command(now, &command.change));
            command.report(now, cx);
            return Ok(());
        }
        if matches!(command.change, Change::Handover { .. }) {
            self.cell.mobiles[users.clone()].iter_mut().for_each(|mobile| mobile.connection.handovers += 1);
        }
        for direction in command.directions(|_| Ok(())).expect("it was checked") {
            if let Change::Delay(delay) = &command.change {
                self.cell.ends.set_delay(direction, delay.fixed().expect("it was checked"));
            }
            for index in users.clone() {
                self.change(now, direction, index, &command.change, cx);
            }
        }
        command.report(now, cx);
        Ok(())
    }
}
