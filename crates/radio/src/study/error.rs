//! Why a bearer of the study's models cannot be made from its parameters.

use crate::common::shared_channel::channel::LevelsError;
use crate::error::{ModelError, ValueError};

/// Parameters of dedicated or shared channels that make no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A single value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// In an uplink that is a plain link.
    #[error(transparent)]
    UplinkLink(#[from] airpath_link::ConfigError),
    /// In the C/I levels, or in a mobile's class of them.
    #[error(transparent)]
    Levels(#[from] LevelsError),
    /// No rate, or two.
    #[error("the rate is `pdus_per_tti` or that of the `levels`: give one of the two")]
    Rate,
    /// A user with a class in a cell without classes.
    #[error(
        "a mobile has the class `{class}`, but there are no classes in this cell: remove it, or give the cell `downlink.levels`"
    )]
    NoLevels {
        /// The class.
        class: String,
    },
}

impl ModelError for ConfigError {
    fn field(&self) -> String {
        match self {
            Self::Value(error) => error.field(),
            Self::UplinkLink(error) => format!("uplink.link.{}", error.field()),
            Self::Levels(error) => error.field(),
            Self::Rate => "downlink.pdus_per_tti".to_owned(),
            Self::NoLevels { .. } => String::new(),
        }
    }
}
