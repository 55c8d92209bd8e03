//! LTE-M (Cat-M1, Release 13): a narrowband of six resource blocks in a cell of LTE, for mobiles
//! with one antenna and small transport blocks.
//!
//! What it has in common with LTE is the cell of [`ofdma`](crate::ofdma). MPDCCH, PDSCH, PUSCH and
//! PUCCH are repeated, by the coverage mode of a mobile. Data come two subframes after the end of
//! their assignment, and a mobile with half duplex sends or receives at a time. Hybrid ARQ is
//! asynchronous in both directions.
//!
//! ```
//! use airpath_core::Seed;
//! use airpath_radio::ltem::{Config, LteM};
//!
//! let preset: toml::Table = include_str!("../../../presets/lte-cat-m1.toml").parse()?;
//! let mut bearer = preset["bearer"].as_table().expect("a table").clone();
//! bearer.remove("model");
//! let config: Config = bearer.try_into()?;
//! let cell = LteM::new(&config, 20, Seed::new(1), "cell")?;
//! # let _ = cell;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod config;

use airpath_core::{Seed, Span};
use airpath_link::Bearer;

pub use crate::lte::{Acknowledged, ConfigError, Pdcp, Rlc, Unacknowledged};
pub use crate::ofdma::config::{Downlink, Drx, Duplex, Harq, RandomAccess, Rrc, Uplink};
pub use crate::ofdma::paging::{ExtendedDrx, PowerSaving, PowerSavingMode};
pub use config::{Cell, Config, Coverage, Mobile, ModeA, ModeB};

use crate::common::header_compression;
use crate::conditions;
use crate::lte::tables::TTI;
use crate::model::Model;
use crate::ofdma::CellBearer;

/// A narrowband of LTE-M with its mobiles.
pub type LteM = CellBearer<Config>;

impl Model for Config {
    const NAME: &'static str = "lte-m";
    const TITLE: &'static str = "an LTE-M narrowband whose resource blocks all mobiles share";

    type Error = ConfigError;

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        Some(&mut self.conditions)
    }

    fn transmission_period(&self) -> Option<Span> {
        Some(TTI)
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        let bearer = LteM::new(self, classes.len(), seed, name)?;
        Ok(header_compression::above(self.header_compression.as_ref(), bearer, classes.len(), None)?)
    }
}
