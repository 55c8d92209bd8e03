//! NR (TS 38.xxx): a standalone cell in FR1 with time or frequency division duplex, whose resource
//! blocks all mobiles share from one slot to the next.
//!
//! What it has in common with LTE is the cell of [`ofdma`](crate::ofdma). The slots of a TDD
//! pattern and the offsets K1 and K2 give the times of feedback, repetitions and grants. The RLC
//! does not concatenate and delivers out of sequence (TS 38.322); PDCP puts packets into their
//! order (TS 38.323 §5.2.2). A connection without activity is suspended (RRC_INACTIVE), and resumed
//! faster than set up.
//!
//! | module | what |
//! | --- | --- |
//! | [`tables`] | the tables of the physical layer, and the size of a transport block |
//! | [`tdd`] | TDD patterns |
//!
//! ```
//! use airpath_core::Seed;
//! use airpath_radio::nr::{Config, Nr};
//!
//! let preset: toml::Table = include_str!("../../../presets/nr-n78-100mhz-sa.toml").parse()?;
//! let mut bearer = preset["bearer"].as_table().expect("a table").clone();
//! bearer.remove("model");
//! let config: Config = bearer.try_into()?;
//! let cell = Nr::new(&config, 20, Seed::new(1), "cell")?;
//! # let _ = cell;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod config;
pub mod tables;
pub mod tdd;

use airpath_core::{Seed, Span};
use airpath_link::Bearer;

pub use crate::ofdma::ConfigError;
pub use crate::ofdma::config::{
    Background, ConfiguredGrant, Downlink, DownlinkModulation, Drx, Duplex, Harq, Mobile, Prescheduling, RandomAccess,
    Uplink, UplinkModulation,
};
pub use config::{Acknowledged, Cell, Config, Inactive, Pdcp, Rlc, Rrc, Tdd, Unacknowledged};

use crate::common::header_compression;
use crate::conditions;
use crate::model::Model;
use crate::ofdma::CellBearer;

/// An NR cell with its mobiles.
pub type Nr = CellBearer<Config>;

impl Model for Config {
    const NAME: &'static str = "nr-cell";
    const TITLE: &'static str = "an NR cell whose resource blocks all mobiles share";

    type Error = ConfigError;

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        Some(&mut self.conditions)
    }

    fn transmission_period(&self) -> Option<Span> {
        tables::Numerology::of_spacing(self.cell.spacing).map(tables::Numerology::slot)
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        let bearer = Nr::new(self, classes.len(), seed, name)?;
        Ok(header_compression::above(self.header_compression.as_ref(), bearer, classes.len(), None)?)
    }
}
