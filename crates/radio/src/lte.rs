//! LTE: a cell with frequency or time division duplex, whose resource blocks all mobiles share from
//! one subframe of 1 ms to the next.
//!
//! What it has in common with NR is the cell of [`ofdma`](crate::ofdma). The RLC concatenates
//! packets into PDUs of the size of a grant (TS 36.322); a block follows from I_TBS and its
//! resource blocks (TS 36.213 §7.1.7); hybrid ARQ repeats after 8 ms, upwards exactly, and with TDD
//! later, by fixed tables.
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

pub(crate) mod cell;
pub(crate) mod config;
pub mod tables;
pub mod tdd;

use airpath_core::{Seed, Span};
use airpath_link::Bearer;

pub use crate::ofdma::ConfigError;
pub use crate::ofdma::config::{
    Background, Downlink, DownlinkModulation, Drx, Duplex, Harq, Mobile, Prescheduling, RandomAccess, Rrc, Uplink,
    UplinkModulation,
};
pub use crate::ofdma::paging::{ExtendedDrx, PowerSaving, PowerSavingMode};
pub use config::{Acknowledged, Cell, Config, Pdcp, Rlc, Tdd, Unacknowledged, Voice};

use crate::common::header_compression;
use crate::conditions;
use crate::model::Model;
use crate::ofdma::CellBearer;
use crate::ofdma::channels::Channel;

/// An LTE cell with its mobiles.
pub type Lte = CellBearer<Config>;

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
        let is_voice = self.voice.as_ref().map(|voice| -> header_compression::IsVoice {
            let template = voice.template();
            Box::new(move |headers| template.channel(headers) == Channel::Voice)
        });
        Ok(header_compression::above(self.header_compression.as_ref(), bearer, classes.len(), is_voice)?)
    }
}
