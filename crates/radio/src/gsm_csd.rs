//! GSM circuit-switched data (CSD): each mobile has a call of its own to a gateway, over which PPP carries IP packets.
//!
//! ```text
//! gateway – PPP – modem ~ V.42 ~ modem – interworking function – L2RCOP/RLP ~ traffic channel ~ mobile – PPP
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | [`config`] | the parameters |
//! | `ppp` | packets become frames in a stream of octets, and packets again |
//! | `van_jacobson` | compression of TCP/IP headers, and what loss does to it |
//! | `modem` | the fixed leg: V.42 between two modems, or start and stop bits |
//! | `traffic_channel` | the radio leg: RLP frames each 20 or 40 ms, over one channel or several |
//! | `air`, `lanes` | frame errors by the mobile's conditions; what the radio log shows |
//! | `balanced` | numbering, acknowledgement and recovery, which RLP and V.42 have in common |
//! | `circuit` | the call of one mobile: the legs in a row |
//!
//! ```
//! use airpath_core::{Cx, Direction, Instant, Packet, Seed, Span};
//! use airpath_link::Bearer;
//! use airpath_radio::gsm_csd::{Config, GsmCsd};
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
//! let mut cx = Cx::new(None, &mut lost, Default::default());
//! # use airpath_core::{Ecn, FlowId, Headers, Slot, UserId};
//! # let packet = Packet { id: 0, size: 808, flow: FlowId(0), user: UserId(0), ecn: Ecn::NotEct, headers: Headers::Other, slot: Slot(0) };
//! bearer.push(Instant::ZERO, Direction::Down, packet, &mut cx);
//! // 816 octets are 34 RLP frames of 24. The frame that begins at 0 has passed; these take the next ones.
//! let (_, departure) = bearer.pop(Instant::from_nanos(1_000_000_000), &mut cx).expect("a departure");
//! assert_eq!(departure.due, Instant::ZERO + Span::from_millis(20 + 33 * 20 + 110 + 40));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod air;
mod balanced;
mod circuit;
pub mod config;
mod lanes;
mod modem;
mod octets;
mod ppp;
mod stream;
mod traffic_channel;
mod van_jacobson;

use std::collections::VecDeque;

use airpath_core::{Cx, Direction, Instant, Packet, PacketStep, RadioTotals, Seed, Tally, UserId};
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

use circuit::Circuit;
pub use config::Config;

use crate::ConfigError;
use crate::common::tournament::Tournament;

/// The calls of all mobiles.
#[derive(Debug)]
pub struct GsmCsd {
    circuits: Vec<Circuit>,
    wakeups: Tournament,
    /// What has left and was not asked for yet.
    left: VecDeque<(Direction, Departure)>,
}

impl GsmCsd {
    /// Calls for users 0 to `users` − 1. Generator streams lie below `name/user-N`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let circuit = |user: usize| Circuit::new(config, UserId(user as u16), seed, &format!("{name}/user-{user}"));
        let circuits = (0..users).map(circuit).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { wakeups: Tournament::new(circuits.len()), circuits, left: VecDeque::new() })
    }

    /// Works off what happens up to and including `now`.
    fn advance(&mut self, now: Instant, cx: &mut Cx<'_>) {
        while let Some((index, at)) = self.wakeups.first()
            && at <= now
        {
            let circuit = &mut self.circuits[index];
            circuit.step(at, &mut self.left, cx);
            self.wakeups.set(index, circuit.next_event());
        }
    }

    /// The circuits that a command for `user`, or for all, concerns.
    fn concerned(&self, user: Option<UserId>) -> std::ops::Range<usize> {
        match user {
            Some(user) => usize::from(user.0)..usize::from(user.0) + 1,
            None => 0..self.circuits.len(),
        }
    }
}

impl Bearer for GsmCsd {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Cx<'_>) -> Admission {
        self.advance(now, cx);
        let index = usize::from(packet.user.0);
        let circuit = &mut self.circuits[index];
        let admission = circuit.push(now, direction, packet, cx);
        self.wakeups.set(index, circuit.next_event());
        admission
    }

    fn pop(&mut self, now: Instant, cx: &mut Cx<'_>) -> Option<(Direction, Departure)> {
        // What has left before is handed over first, one after the other as it left.
        while self.left.is_empty()
            && let Some((_, at)) = self.wakeups.first()
            && at <= now
        {
            self.advance(at, cx);
        }
        let (direction, departure) = self.left.pop_front()?;
        cx.direction = direction;
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        self.circuits[usize::from(departure.packet.user.0)].deliver(direction, &departure.packet);
        Some((direction, departure))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        match self.left.front() {
            Some((_, departure)) => Some(departure.due),
            None => self.wakeups.first().map(|(_, at)| at),
        }
    }

    fn tally(&self, direction: Direction) -> Tally {
        let mut sum = Tally::default();
        self.circuits.iter().for_each(|circuit| sum += circuit.tally(direction));
        sum
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        self.circuits.get(usize::from(user.0))?.radio_totals(direction)
    }

    fn reads_headers(&self) -> bool {
        self.circuits.first().is_some_and(Circuit::reads_headers)
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        let users = self.circuits.len();
        if let Some(UserId(user)) = command.user.filter(|user| usize::from(user.0) >= users) {
            return Err(CommandError::NoSuchUser { user, users });
        }
        if command.direction.is_some() {
            return Err(CommandError::Foreign {
                key: command.change.kind().name(),
                what: "one direction of a call",
                help: "it has one radio for both: leave out `direction`",
            });
        }
        self.circuits[self.concerned(command.user)].iter().try_for_each(|circuit| circuit.check(&command.change))
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        self.check(command)?;
        self.advance(now, cx);
        for index in self.concerned(command.user) {
            let circuit = &mut self.circuits[index];
            circuit.command(now, &command.change, cx);
        }
        command.report(now, cx);
        Ok(())
    }
}
