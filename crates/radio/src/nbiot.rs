//! NB-IoT (TS 36.211 §10, TS 36.213 §16): a carrier of 180 kHz whose subframes and tones many
//! mobiles share.
//!
//! A mobile has one of three coverage levels, with repetitions of all that is sent. When coverage
//! gets better, its data have those of a better level. It has one process of hybrid ARQ and sends
//! or receives at a time, so it does one thing after the other: random access, messages that set
//! the connection up, blocks of data. Each takes the resources of the carrier that it needs; an
//! idle mobile takes none, and adds no event.
//!
//! | module | what |
//! | --- | --- |
//! | [`tables`] | transport block sizes, repetitions, delays |
//! | [`timeline`] | the times of one downlink or uplink transfer |

mod calendar;
mod cell;
mod config;
mod plan;
pub mod tables;
pub mod timeline;
mod user;

use airpath_core::{Seed, Span};
use airpath_link::Bearer;

pub use crate::ofdma::ConfigError;
pub use crate::ofdma::paging::{ExtendedDrx, PowerSaving, PowerSavingMode};
pub use cell::NbIot;
pub use config::{Carrier, Config, Coverage, Downlink, Harq, Mobile, Operation, ReleaseAssistance, Rlc, Rrc, Uplink};

use crate::common::header_compression;
use crate::conditions;
use crate::model::Model;

impl Model for Config {
    const NAME: &'static str = "nb-iot";
    const TITLE: &'static str = "an NB-IoT carrier whose subframes and tones all mobiles share";

    type Error = ConfigError;

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        Some(&mut self.conditions)
    }

    fn transmission_period(&self) -> Option<Span> {
        Some(plan::SUBFRAME)
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        let bearer = NbIot::new(self, classes.len(), seed, name)?;
        Ok(header_compression::above(self.header_compression.as_ref(), bearer, classes.len(), None)?)
    }
}
