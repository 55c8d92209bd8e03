//! GSM circuit-switched data (CSD): each mobile has a call of its own to a gateway, over which PPP
//! carries IP packets.
//!
//! ```text
//! gateway – PPP – serial – modem ~ V.42 ~ modem – interworking function – L2RCOP/RLP ~ traffic channel ~ mobile – serial – PPP
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | [`config`] | the parameters |
//! | `ppp` | packets become frames in a stream of octets, and packets again |
//! | `van_jacobson` | TCP/IP header compression, and its errors after a loss |
//! | `modem` | the fixed link: V.42 between two modems, or start and stop bits, which the serial interfaces have, too |
//! | `traffic_channel` | the radio link: RLP frames each 20 or 40 ms, over one channel or several |
//! | `air`, `tracks` | frame errors by the mobile's conditions; what the radio log shows |
//! | `hdlc_abm` | numbering, acknowledgement and recovery, which RLP and V.42 have in common |
//! | `compression` | V.42bis on a link |
//! | `circuit` | the call of one mobile: the links in a row |
//!
//! ```
//! use airpath_core::{Context, Direction, Instant, Packet, Seed, Span};
//! use airpath_link::Bearer;
//! use airpath_radio::gsm::csd::{Config, GsmCsd};
//!
//! let config: Config = toml::from_str(r#"
//!     [ppp]
//!     overhead = "8 B"
//!     [radio]
//!     channel = "tch-f9.6"
//!     slots = 1
//!     interleaving = "110 ms"
//!     delay = "40 ms"
//!     window = 61
//!     acknowledgement_timer = "480 ms"
//!     attempts = 6
//!     recovery = "selective"
//!     frame_errors = 0.0
//!     [call]
//!     dial = "before"
//!     set_up = "20 s"
//! "#)?;
//! let mut bearer = GsmCsd::new(&config, 1, Seed::new(1), "cell")?;
//!
//! let mut lost = Vec::new();
//! let mut cx = Context::new(None, &mut lost, Default::default());
//! # use airpath_core::{Ecn, FlowId, Slot, UserId};
//! # let packet = Packet { id: 0, size: 808, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
//! bearer.push(Instant::ZERO, Direction::Down, packet, &mut cx);
//! // 816 octets are 34 RLP frames of 24. The frame that begins at 0 has passed; these take the next ones.
//! let (_, departure) = bearer.pop(Instant::from_nanos(1_000_000_000), &mut cx).expect("a departure");
//! assert_eq!(departure.due, Instant::ZERO + Span::from_millis(20 + 33 * 20 + 110 + 40));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod air;
mod circuit;
mod compression;
pub mod config;
mod error;
mod hdlc_abm;
mod modem;
mod octets;
mod ppp;
mod stream;
mod tracks;
mod traffic_channel;
mod van_jacobson;

use airpath_core::{
    ConnectionTotals, Context, Direction, Instant, Packet, PacketCounters, RadioTotals, Seed, Span, UserId,
};
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

use circuit::Circuit;
pub use config::Config;
pub use error::ConfigError;

use crate::common::multiplexing::members::Members;
use crate::conditions;
use crate::model::Model;

impl Model for Config {
    const NAME: &'static str = "gsm-csd";
    const TITLE: &'static str = "a circuit-switched call of GSM for each mobile";
    const FADING_PROFILES: bool = true;

    type Error = ConfigError;

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        self.conditions.as_mut()
    }

    fn transmission_period(&self) -> Option<Span> {
        self.radio.as_ref().map(|radio| radio.channel.frame_duration())
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        Ok(Box::new(GsmCsd::new(self, classes.len(), seed, name)?))
    }
}

/// The calls of all mobiles.
#[derive(Debug)]
pub struct GsmCsd {
    circuits: Members<Circuit>,
}

impl GsmCsd {
    /// Calls for users 0 to `users` − 1. Generator streams lie below `name/user-N`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let circuit =
            |user: usize| Circuit::new(config, UserId::new(user as u32), seed, &format!("{name}/user-{user}"));
        Ok(Self { circuits: Members::new((0..users).map(circuit).collect::<Result<_, _>>()?) })
    }

    /// The circuits that a command for `user`, or for all, concerns.
    fn concerned(&self, user: Option<UserId>) -> std::ops::Range<usize> {
        match user {
            Some(user) => user.index()..user.index() + 1,
            None => 0..self.circuits.len(),
        }
    }
}

impl Bearer for GsmCsd {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.circuits.push(packet.user.index(), now, direction, packet, cx)
    }

    #[inline]
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.circuits.pop(now, cx)
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Instant> {
        self.circuits.next_wakeup()
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        self.circuits.counters(direction)
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        self.circuits.get(user.index())?.radio_totals(direction)
    }

    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        self.circuits.get(user.index())?.connection_totals()
    }

    fn inspects_segments(&self) -> bool {
        self.circuits.get(0).is_some_and(Circuit::compresses_headers)
    }

    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.circuits.iter_mut().for_each(|circuit| circuit.end(now, cx));
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        let users = self.circuits.len();
        if let Some(user) = command.user.filter(|user| user.index() >= users) {
            return Err(CommandError::NoSuchUser { user: user.number(), users });
        }
        if command.direction.is_some() {
            return Err(CommandError::Foreign {
                key: command.change.kind().name(),
                what: "one direction of a call",
                help: "it has one radio for both: leave out `direction`",
            });
        }
        let mut concerned = self.concerned(command.user).filter_map(|index| self.circuits.get(index));
        concerned.try_for_each(|circuit| circuit.check(&command.change))
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        self.check(command)?;
        for index in self.concerned(command.user) {
            self.circuits.change(index, now, cx, |circuit, cx| circuit.command(now, &command.change, cx));
        }
        command.report(now, cx);
        Ok(())
    }
}
