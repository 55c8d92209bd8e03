//! EN-DC, the non-standalone deployment of NR (NSA): a mobile has an LTE cell as master cell group
//! and an NR cell as secondary cell group (TS 37.340).
//!
//! - The connection is that of LTE, with paging, set-up, DRX and release. Until the NR cell is
//!   added, and whenever it is not there, LTE carries all packets.
//! - The NR cell is added after the mobile has reported it (event B1), by a reconfiguration and
//!   random access. It is released with the connection, when its signal is weak (SCG failure), and
//!   at a handover of LTE, after which it is added again.
//! - The NR cell carries the downlink while it is there. The uplink has a primary path, and may use
//!   both above a threshold.
//! - Both cells have the same sites, and a mobile is at one place: with the shared `conditions` it
//!   has the same way and the same shadows in both, each at its own frequency.
//! - One PDCP, that of NR, is above both: it puts the packets of both cells into their order, and
//!   sends packets again by LTE that NR did not carry before its release. Nothing is lost then.
//!
//! Both cells are those of [`ofdma`](crate::ofdma), with the parameters of [`lte`](crate::lte) and
//! [`nr`](crate::nr).
//!
//! ```
//! use airpath_core::Seed;
//! use airpath_radio::endc::{Config, EnDc};
//!
//! let preset: toml::Table = include_str!("../../../presets/nr-n78-100mhz-nsa.toml").parse()?;
//! let mut bearer = preset["bearer"].as_table().expect("a table").clone();
//! bearer.remove("model");
//! let config: Config = bearer.try_into()?;
//! let cells = EnDc::new(&config, 20, Seed::new(1), "cell")?;
//! # let _ = cells;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bearer;
mod config;
mod error;
mod events;
mod filter;
mod mobile;
mod pdcp;
mod secondary_group;

use std::path::PathBuf;

use airpath_core::{Seed, Span};
use airpath_link::Bearer;

pub use bearer::EnDc;
pub use config::{Addition, CellGroup, Config, Release, Uplink};
pub use error::ConfigError;

use crate::common::header_compression;
use crate::conditions;
use crate::model::Model;

impl Model for Config {
    const NAME: &'static str = "en-dc";
    const TITLE: &'static str = "an LTE cell and an NR cell that serve the same mobiles (EN-DC, NSA)";
    const SHORTHAND: Option<&'static str> = None;

    type Error = ConfigError;

    fn transmission_period(&self) -> Option<Span> {
        Model::transmission_period(&self.secondary)
    }

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        Some(&mut self.conditions)
    }

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let Self { conditions, master, secondary, .. } = self;
        [conditions, &mut master.conditions, &mut secondary.conditions]
            .into_iter()
            .flat_map(|it| it.files_mut())
            .collect()
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        let bearer = EnDc::new(self, classes.len(), seed, name)?;
        let compression = self.secondary.header_compression.as_ref();
        header_compression::above(compression, bearer, classes.len(), None)
            .map_err(|error| self.error_in(CellGroup::Secondary, error))
    }
}
