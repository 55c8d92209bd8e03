//! Why a bearer of UMTS, with or without HSDPA, cannot be made from its parameters.

use crate::common::arq::rlc_am::RlcError;
use crate::conditions;
use crate::error::{ModelError, ValueError};

/// Parameters of a packet bearer that make no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A single value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// In the radio conditions.
    #[error(transparent)]
    Conditions(#[from] conditions::ConfigError),
    /// In the RLC.
    #[error(transparent)]
    Rlc(#[from] RlcError),
    /// Both kinds of uplinks, or none.
    #[error("{problem}: give `uplink`, a dedicated channel (TS 25.211 §5.2.1), or `e_dch` (TS 25.319)")]
    Uplinks {
        /// What is wrong.
        problem: &'static str,
    },
    /// Bursts of errors shorter than those of independent errors.
    #[error(
        "bursts are at least {shortest:.3} TTIs long on average at this `bler`: leave it out for errors by themselves"
    )]
    Burst {
        /// The key, dotted, below the bearer's.
        key: String,
        /// The mean length of a burst of independent errors, in TTIs.
        shortest: f64,
    },
}

impl ModelError for ConfigError {
    fn field(&self) -> String {
        match self {
            Self::Value(error) => error.field(),
            Self::Conditions(error) => error.field(),
            Self::Rlc(error) => error.field(),
            Self::Uplinks { .. } => "e_dch".to_owned(),
            Self::Burst { key, .. } => key.clone(),
        }
    }
}
