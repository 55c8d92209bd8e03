//! UMTS dedicated channels (DCH): each user has its own, at a constant rate, with the ARQ of the
//! RLC.
//!
//! A DCH is a number of parallel channels. Each carries one PDU in each TTI. What was in
//! error is sent again by the RLC, between new PDUs, a fixed delay later: the time that it takes
//! the receiver's status report to get through. The RLC of 3GPP TS 25.322 requests these reports by
//! polling, and paces them by timers; the model, as the study `hsdpa-sim`, has their mean effect.
//!
//! ```
//! use airpath_core::{Context, Direction, Instant, Packet, Seed, Span};
//! use airpath_link::Bearer;
//! use airpath_radio::study::dch_simple::{Config, DchSimple};
//!
//! let config: Config = toml::from_str(r#"
//!     [downlink]
//!     tti = "10 ms"
//!     pdu = "40 B"
//!     channels = 12
//!     error_unit = "pdu"
//!     bler = 0.0
//!     retransmission_delay = "89 ms"
//!     delay = "20 ms"
//!     [uplink.link]
//!     rate = "64 kbit/s"
//!     delay = "20 ms"
//! "#)?;
//! let mut bearer = DchSimple::new(&config, 1, Seed::new(1), "cell")?;
//!
//! let mut lost = Vec::new();
//! let mut cx = Context::new(None, &mut lost, Default::default());
//! # use airpath_core::{Ecn, FlowId, Slot, UserId};
//! # let packet = Packet { id: 0, size: 1500, flow: FlowId(0), user: UserId(0), ecn: Ecn::NotEct, slot: Slot(0) };
//! bearer.push(Instant::ZERO, Direction::Down, packet, &mut cx);
//! // 1500 bytes are 38 PDUs. The TTI that begins at 0 has passed; these take the next four, and 20 ms to arrive.
//! let (_, departure) = bearer.pop(Instant::from_nanos(100_000_000), &mut cx).expect("a departure");
//! assert_eq!(departure.due, Instant::ZERO + Span::from_millis(10 + 4 * 10 + 20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::PathBuf;

use airpath_core::{Bytes, Direction, Probability, Seed, Span};
use airpath_link::Bearer;
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::multiplexing::path_bearer::PathBearer;
use crate::common::multiplexing::paths::OneWay;
use crate::common::shared_channel::harq::ErrorsByAttempt;
use crate::common::shared_channel::scheduler::round_robin::RoundRobin;
use crate::common::shared_channel::transport_channel::{Parameters, Repetition, TransportChannel};
use crate::error::{above_zero, at_most, check_queue, pdu_size, within_an_hour};
use crate::model::Model;
use crate::study::ConfigError;
use crate::study::in_sequence;
use crate::study::uplink::Uplink;

/// A dedicated channel down and an uplink for each user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Towards the mobile.
    pub downlink: Dch,
    /// From the mobile.
    pub uplink: Uplink,
}

/// A dedicated channel in one direction. Its rate is `channels` · `pdu` / `tti`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dch {
    /// Length of a TTI. TTIs begin at multiples of it.
    pub tti: Span,
    /// Payload of a PDU, in bytes. Packets are cut into such PDUs, the last one is padded.
    pub pdu: Bytes,
    /// Parallel channels. Each carries one PDU in a TTI.
    pub channels: u32,
    /// What is in error as one.
    pub error_unit: ErrorUnit,
    /// The probability that it is, at each transmission, independently of all others.
    pub bler: Probability,
    /// From the end of the TTI of a PDU in error to when the PDU may be sent again, in the next TTI
    /// that begins.
    pub retransmission_delay: Span,
    /// How often a PDU is sent before its packet is given up. Without it: until it gets through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Whether packets are delivered in the order in which they came, the default, or each as soon
    /// as it is complete.
    #[serde(default = "in_sequence")]
    pub in_sequence: bool,
    /// From the end of the TTI that completes a packet to its arrival.
    pub delay: Span,
    /// Bound and discipline of what waits to be cut into PDUs. Without it, any number of packets
    /// may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// What is in error as one on a dedicated channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorUnit {
    /// All PDUs of a TTI.
    Tti,
    /// Each PDU by itself.
    Pdu,
}

impl Dch {
    /// Makes the channels of `users` users, with streams `name/user-N/down/errors` or
    /// `…/up/errors`.
    pub(crate) fn build(
        &self,
        direction: Direction,
        users: usize,
        seed: Seed,
        name: &str,
    ) -> Result<Vec<OneWay>, ConfigError> {
        let parameters = self.parameters(direction)?;
        let carrier = |user| {
            let path = format!("{name}/user-{user}/{}", direction.name());
            let users = (user as u16, vec![format!("{path}/errors")]);
            OneWay::TransportChannel(Box::new(TransportChannel::new(
                parameters.clone(),
                Box::new(RoundRobin),
                Vec::new(),
                users,
                seed,
            )))
        };
        Ok((0..users).map(carrier).collect())
    }

    fn parameters(&self, direction: Direction) -> Result<Parameters, ConfigError> {
        let table = match direction {
            Direction::Down => "downlink",
            Direction::Up => "uplink.dch",
        };
        above_zero(!self.tti.is_zero(), table, "tti")?;
        within_an_hour(self.tti, table, "tti")?;
        within_an_hour(self.retransmission_delay, table, "retransmission_delay")?;
        within_an_hour(self.delay, table, "delay")?;
        above_zero(self.channels > 0, table, "channels")?;
        above_zero(self.max_attempts != Some(0), table, "max_attempts")?;
        at_most(self.channels.into(), u16::MAX.into(), table, "channels")?;
        Ok(Parameters {
            direction,
            tti: self.tti,
            pdu: pdu_size(self.pdu, table)?,
            pdus_per_tti: vec![self.channels],
            errors: ErrorsByAttempt::constant(self.bler),
            repetition: Repetition::Pdus { together: self.error_unit == ErrorUnit::Tti },
            retransmission_delay: self.retransmission_delay,
            max_attempts: self.max_attempts,
            in_sequence: self.in_sequence,
            delay: self.delay,
            queue: check_queue(self.queue.as_ref(), table)?,
            levels: None,
        })
    }
}

impl Model for Config {
    const NAME: &'static str = "dch-simple";
    const TITLE: &'static str =
        "a dedicated channel at a constant rate for each mobile: the model of the study hsdpa-sim";
    const FORMER_NAMES: &'static [&'static str] = &["umts-dch"];

    type Error = ConfigError;

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        self.uplink.file_mut().into_iter().collect()
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        Ok(Box::new(DchSimple::new(self, classes.len(), seed, name)?))
    }
}

/// The dedicated channels of all users.
pub type DchSimple = PathBearer<false>;

impl DchSimple {
    /// Idle channels for users 0 to `users` − 1. Generator streams are `name/user-N/down/errors`,
    /// and below `name/user-N/up` those of the uplink.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        let downlinks = config.downlink.build(Direction::Down, users, seed, name)?;
        Ok(Self::of(downlinks, config.uplink.build(users, seed, name)?))
    }
}
