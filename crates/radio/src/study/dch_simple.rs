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
//! # let packet = Packet { id: 0, size: 1500, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
//! bearer.push(Instant::ZERO, Direction::Down, packet, &mut cx);
//! // 1500 bytes are 38 PDUs. The TTI that begins at 0 has passed; these take the next four, and 20 ms to arrive.
//! let (_, departure) = bearer.pop(Instant::from_nanos(100_000_000), &mut cx).expect("a departure");
//! assert_eq!(departure.due, Instant::ZERO + Span::from_millis(10 + 4 * 10 + 20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::PathBuf;

use airpath_core::{Direction, Seed, Span};
use airpath_link::Bearer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::multiplexing::path_bearer::PathBearer;
use crate::model::Model;
use crate::study::ConfigError;
use crate::study::dedicated_channel::Dch;
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

impl Model for Config {
    const NAME: &'static str = "dch-simple";
    const TITLE: &'static str =
        "a dedicated channel at a constant rate for each mobile: the model of the study hsdpa-sim";
    const FORMER_NAMES: &'static [&'static str] = &["umts-dch"];

    type Error = ConfigError;

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        self.uplink.file_mut().into_iter().collect()
    }

    fn transmission_period(&self) -> Option<Span> {
        Some(self.downlink.tti)
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
