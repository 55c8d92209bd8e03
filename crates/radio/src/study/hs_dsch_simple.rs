//! HSDPA: a cell's high-speed downlink shared channel (HS-DSCH), which its users share in time,
//! with fast hybrid ARQ at the base station. Each user has an uplink of its own.
//!
//! Each TTI carries one block to one user. A block in error is sent again a fixed delay later,
//! before anything new and in a TTI of its own. What a block carries is fixed, or depends on the
//! C/I level that is drawn for each user and TTI; the level is known to the scheduler without
//! delay.
//!
//! ```
//! use airpath_core::Seed;
//! use airpath_radio::study::hs_dsch_simple::{Config, HsDschSimple};
//!
//! let config: Config = toml::from_str(r#"
//!     [downlink]
//!     tti = "2 ms"
//!     pdu = "30 B"
//!     bler = 0.1
//!     retransmission_delay = "9.5 ms"
//!     delay = "20 ms"
//!     scheduler = "proportional-fair"
//!     [downlink.levels]
//!     rates = ["120 kbit/s", "240 kbit/s", "360 kbit/s", "480 kbit/s", "640 kbit/s"]
//!     rate_share = "per-user"
//!     classes.far = [9, 60, 24, 5, 2]
//!     classes.near = [0, 0, 0, 0, 1]
//!     [uplink.link]
//!     rate = "64 kbit/s"
//!     delay = "20 ms"
//! "#)?;
//! let classes = [Some("far".to_owned()), Some("near".to_owned())];
//! let cell = HsDschSimple::new(&config, &classes, Seed::new(1), "cell")?;
//! # let _ = cell;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::PathBuf;

use airpath_core::{Bytes, Direction, Probability, Seed, Span};
use airpath_link::Bearer;
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::link_adaptation::Combining;
use crate::common::multiplexing::path_bearer::PathBearer;
use crate::common::multiplexing::paths::OneWay;
use crate::common::shared_channel::channel::{Channel, Levels};
use crate::common::shared_channel::harq::{DEFAULT_CQI, ErrorsByAttempt, MAX_CQI};
use crate::common::shared_channel::scheduler::{SchedulerName, options};
use crate::common::shared_channel::transport_channel::{Parameters, Repetition, TransportChannel};
use crate::error::{ValueError, above_zero, at_most, check_queue, pdu_size, within_an_hour};
use crate::model::Model;
use crate::study::ConfigError;
use crate::study::in_sequence;
use crate::study::uplink::Uplink;

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The HS-DSCH, towards the mobiles.
    pub downlink: HsDsch,
    /// From each mobile.
    pub uplink: Uplink,
}

/// A high-speed downlink shared channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HsDsch {
    /// Length of a TTI. TTIs begin at multiples of it.
    pub tti: Span,
    /// Payload of a PDU, in bytes. Packets are cut into such PDUs, the last one is padded.
    pub pdu: Bytes,
    /// PDUs in a block, if that is always the same: the rate of the cell is `pdus_per_tti` · `pdu`
    /// / `tti`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdus_per_tti: Option<u32>,
    /// The probability that a block is in error at its first transmission, independently of all
    /// others.
    pub bler: Probability,
    /// From the end of the TTI of a block in error to when the block may be sent again, in the next
    /// TTI that begins.
    pub retransmission_delay: Span,
    /// How often a block is sent before the packets in it are given up. Without it: until it gets
    /// through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// What the receiver makes of the repetitions of a block: `none`, the default, or `chase`.
    #[serde(default = "no_combining")]
    pub combining: Combining,
    /// The CQI, 1 to 30, whose modulation and coding the blocks use, for `combining = "chase"`: it
    /// gives the steepness of the error probability over the signal-to-noise ratio. Default: 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cqi: Option<u8>,
    /// Whether packets are delivered in the order in which they came, the default, or each as soon
    /// as it is complete.
    #[serde(default = "in_sequence")]
    pub in_sequence: bool,
    /// From the end of the TTI that completes a packet to its arrival.
    pub delay: Span,
    /// Who is served next. Default: `round-robin`.
    #[serde(default)]
    pub scheduler: SchedulerName,
    /// Over what time the schedulers `proportional-fair` and `run2c` average what a user got.
    /// Default: 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging_time: Option<Span>,
    /// For the schedulers `least-attained-service` and `run2c`: the pause after which what comes
    /// for a user is a new flow. Default: 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_timeout: Option<Span>,
    /// For the scheduler `run2c`: the bytes until which a flow is short. Default: 100 kB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_flow: Option<Bytes>,
    /// Bound and discipline of what waits for each user. Without it, any number of packets may
    /// wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The C/I levels, if what a block carries depends on them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Levels>,
}

impl HsDsch {
    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<TransportChannel, ConfigError> {
        above_zero(!self.tti.is_zero(), "downlink", "tti")?;
        within_an_hour(self.tti, "downlink", "tti")?;
        within_an_hour(self.retransmission_delay, "downlink", "retransmission_delay")?;
        within_an_hour(self.delay, "downlink", "delay")?;
        above_zero(self.max_attempts != Some(0), "downlink", "max_attempts")?;
        let pdu = pdu_size(self.pdu, "downlink")?;
        let parameters = Parameters {
            direction: Direction::Down,
            tti: self.tti,
            pdu,
            pdus_per_tti: self.pdus_per_tti(pdu, classes.len())?,
            errors: self.errors()?,
            repetition: Repetition::Blocks,
            retransmission_delay: self.retransmission_delay,
            max_attempts: self.max_attempts,
            in_sequence: self.in_sequence,
            delay: self.delay,
            queue: check_queue(self.queue.as_ref(), "downlink")?,
            levels: self.levels.clone(),
        };
        let scheduler =
            self.scheduler.build(classes.len(), self.tti, 8 * u64::from(pdu), options!(self), "downlink")?;
        let errors = (0..classes.len()).map(|user| format!("{name}/user-{user}/errors")).collect();
        let channels = self.channels(classes, seed, name)?;
        Ok(TransportChannel::new(parameters, scheduler, channels, (0, errors), seed))
    }

    fn pdus_per_tti(&self, pdu: u32, users: usize) -> Result<Vec<u32>, ConfigError> {
        match (self.pdus_per_tti, &self.levels) {
            (Some(pdus), None) => {
                above_zero(pdus > 0, "downlink", "pdus_per_tti")?;
                at_most(pdus.into(), u16::MAX.into(), "downlink", "pdus_per_tti")?;
                Ok(vec![pdus])
            }
            (None, Some(levels)) => Ok(levels.pdus_per_tti(self.tti, pdu, users)?),
            (Some(_), Some(_)) | (None, None) => Err(ConfigError::Rate),
        }
    }

    fn channels(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Vec<Channel>, ConfigError> {
        match &self.levels {
            Some(levels) => {
                levels.check_classes()?;
                let channel = |(user, class): (usize, &Option<String>)| {
                    levels.channel(class.as_deref(), seed, &format!("{name}/user-{user}/channel"))
                };
                Ok(classes.iter().enumerate().map(channel).collect::<Result<_, _>>()?)
            }
            None => match classes.iter().flatten().next() {
                Some(class) => Err(ConfigError::NoLevels { class: class.clone() }),
                None => Ok(Vec::new()),
            },
        }
    }

    fn errors(&self) -> Result<ErrorsByAttempt, ConfigError> {
        match (self.combining, self.cqi) {
            (Combining::None, None) => Ok(ErrorsByAttempt::constant(self.bler)),
            (Combining::None, Some(_)) => {
                Err(ValueError::Needs { key: "downlink.cqi".to_owned(), needs: "combining = \"chase\"" }.into())
            }
            (Combining::IncrementalRedundancy, _) => {
                let expected = "none or chase: the model has no code rates";
                Err(ValueError::Range { key: "downlink.combining".to_owned(), expected }.into())
            }
            (Combining::Chase, cqi) => {
                let cqi = cqi.unwrap_or(DEFAULT_CQI);
                above_zero(cqi > 0, "downlink", "cqi")?;
                at_most(cqi.into(), MAX_CQI.into(), "downlink", "cqi")?;
                Ok(ErrorsByAttempt::chase(self.bler, cqi))
            }
        }
    }
}

const fn no_combining() -> Combining {
    Combining::None
}

impl Model for Config {
    const NAME: &'static str = "hs-dsch-simple";
    const TITLE: &'static str = "an HS-DSCH that all mobiles share in time: the model of the study hsdpa-sim";

    type Error = ConfigError;

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        self.uplink.file_mut().into_iter().collect()
    }

    fn classes(&self) -> Vec<String> {
        self.downlink.levels.iter().flat_map(|levels| levels.classes.keys().cloned()).collect()
    }

    fn transmission_period(&self) -> Option<Span> {
        Some(self.downlink.tti)
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        Ok(Box::new(HsDschSimple::new(self, classes, seed, name)?))
    }
}

/// A cell: the shared downlink, and the uplink of each user.
pub type HsDschSimple = PathBearer<true>;

impl HsDschSimple {
    /// An idle cell with as many users as there are `classes`, each in its class. Generator streams
    /// are `name/user-N/errors`, `name/user-N/channel` for the C/I levels, and below
    /// `name/user-N/up` those of the uplink.
    ///
    /// # Errors
    /// If the parameters make no sense, or a user's class is not among those of the C/I levels.
    pub fn new(config: &Config, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Self, ConfigError> {
        let downlink = OneWay::TransportChannel(Box::new(config.downlink.build(classes, seed, name)?));
        Ok(Self::of(vec![downlink], config.uplink.build(classes.len(), seed, name)?))
    }
}
