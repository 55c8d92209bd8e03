//! UMTS packet bearers (release 99): a dedicated channel each way with the acknowledged mode of RLC
//! by TS 25.322, the states of the RRC connection, radio-bearer switching, handover and the failure
//! of the radio link.
//!
//! [`dch_simple`](crate::study::dch_simple) is the simpler model, that of the study `hsdpa-sim`:
//! there a fixed delay stands for polls and reports, and the mobile is always on its channel.
//!
//! - A TTI carries up to `pdus` PDUs, including those with reports. It is in error as a whole, by a
//!   power-controlled share of errors in bursts; where C/I is too low for the format, power is at
//!   its limit and errors multiply. Fast fading makes a format need more, and the more so the
//!   slower it is.
//! - The RLC polls, reports, repeats, discards and resets as configured; packets leave in sequence.
//!   A sender derives from frame numbers which PDUs a report covers, and does not repeat those that
//!   were sent later.
//! - Without the table `rrc` the mobile is always in CELL_DCH. With it, it begins in IDLE, and its
//!   channel comes and goes with traffic and time.
//! - A hard handover, commanded or by the mobile's `conditions`, interrupts both directions. With
//!   the buffer kept, RLC goes on where it was, and the waiting packets arrive in a burst, all the
//!   more so if the terminal's driver keeps it for a time. With the buffer forwarded, RLC is
//!   re-established in another radio network controller, and what it had begun is lost. A soft
//!   handover has no gap.
//! - Without coverage for longer than `mobility.link_failure`, or when RLC cannot even reset, the
//!   link has failed: what was inside is lost, and what comes is lost until there is coverage
//!   again.
//!
//! ```
//! use airpath_core::{Context, Direction, Instant, Packet, Seed};
//! use airpath_link::Bearer;
//! use airpath_radio::umts::r99::{Config, Umts};
//!
//! let link = |formats: &str| format!(r#"
//!     formats = [{formats}]
//!     pdu = "40 B"
//!     bler = 0.0
//!     radio_delay = "20 ms"
//!     delay = "30 ms"
//!     [RLC]
//!     window = 512
//!     max_dat = 10
//!     timer_rst = "300 ms"
//!     max_rst = 8
//!     poll_last = true
//!     poll_last_repeat = true
//!     timer_poll = "200 ms"
//!     status_missing = true
//! "#);
//! let (down, up) = (link(r#"{ tti = "10 ms", pdus = 12 }"#), link(r#"{ tti = "20 ms", pdus = 4 }"#));
//! let (down, up) = (down.replace("RLC", "downlink.rlc"), up.replace("RLC", "uplink.rlc"));
//! let config: Config = toml::from_str(&format!("conditions.ci = \"12 dB\"\n[downlink]{down}[uplink]{up}"))?;
//! let mut bearer = Umts::new(&config, 1, Seed::new(1), "cell")?;
//!
//! let mut lost = Vec::new();
//! let mut cx = Context::new(None, &mut lost, Default::default());
//! # use airpath_core::{Ecn, FlowId, Slot, UserId};
//! # let packet = Packet { id: 0, size: 1500, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
//! bearer.push(Instant::ZERO, Direction::Down, packet, &mut cx);
//! // 1500 bytes are 38 PDUs, in the four TTIs from 10 ms on; 20 ms to the RLC at the other end, 30 ms to IP.
//! let (_, departure) = bearer.pop(Instant::from_nanos(200_000_000), &mut cx).expect("a departure");
//! assert_eq!(departure.due, Instant::from_nanos(100_000_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
pub(crate) mod errors;
mod mobile;
pub(crate) mod radio_link;
mod rrc;
mod switching;

use airpath_core::{
    ConnectionTotals, Context, Direction, Instant, Packet, PacketCounters, RadioTotals, Seed, Span, UserId,
};
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

pub use crate::common::arq::rlc_am::{Discard, Rlc};
pub use config::{Config, Connected, Fading, Format, Mobility, Pch, RadioLink, Rrc, Switching, Undelivered};

use crate::common::header_compression;
use crate::common::multiplexing::members::Members;
use crate::conditions;
use crate::model::Model;
use crate::umts::ConfigError;
use mobile::Mobile;

impl Model for Config {
    const NAME: &'static str = "umts";
    const TITLE: &'static str = "a UMTS packet bearer over dedicated channels for each mobile";
    const FADING_PROFILES: bool = true;

    type Error = ConfigError;

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        Some(&mut self.conditions)
    }

    fn transmission_period(&self) -> Option<Span> {
        [&self.downlink, &self.uplink].into_iter().flat_map(|link| &link.formats).map(|format| format.tti).min()
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        let bearer = Umts::new(self, classes.len(), seed, name)?;
        Ok(header_compression::above(self.header_compression.as_ref(), bearer, classes.len(), None)?)
    }
}

/// The packet bearers of all mobiles of a network.
#[derive(Debug)]
pub struct Umts {
    mobiles: Members<Mobile>,
}

impl Umts {
    /// Idle mobiles 0 to `users` − 1. Generator streams are below `name/user-N`: `down/errors`,
    /// `up/errors`, `conditions`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let mobile = |user| Mobile::new(config, user as u32, seed, &format!("{name}/user-{user}"));
        Ok(Self { mobiles: Members::new((0..users).map(mobile).collect::<Result<_, _>>()?) })
    }

    /// The directions in which it does as commanded.
    fn directions(&self, command: &BearerCommand) -> Result<Vec<Direction>, CommandError> {
        let users = self.mobiles.len();
        if let Some(user) = command.user.filter(|user| user.index() >= users) {
            return Err(CommandError::NoSuchUser { user: user.number(), users });
        }
        // All mobiles are alike in what they can do.
        let first = self.mobiles.get(0);
        command.directions(|direction| first.map_or(Ok(()), |mobile| mobile.check(direction, &command.change)))
    }
}

impl Bearer for Umts {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.mobiles.push(packet.user.index(), now, direction, packet, cx)
    }

    #[inline]
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.mobiles.pop(now, cx)
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Instant> {
        self.mobiles.next_wakeup()
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        self.mobiles.counters(direction)
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        self.mobiles.get(user.index()).map(|mobile| mobile.radio_totals(direction))
    }

    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        self.mobiles.get(user.index()).map(Mobile::connection_totals)
    }

    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.mobiles.iter_mut().for_each(|mobile| mobile.end(now, cx));
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.directions(command).map(drop)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        let directions = self.directions(command)?;
        let users = match command.user {
            Some(user) => user.index()..user.index() + 1,
            None => 0..self.mobiles.len(),
        };
        for user in users {
            self.mobiles.change(user, now, cx, |mobile, cx| mobile.command(now, command, &directions, cx));
        }
        command.report(now, cx);
        Ok(())
    }
}
