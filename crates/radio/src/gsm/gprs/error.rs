//! Why a GPRS cell cannot be made from its parameters.

use crate::conditions;
use crate::error::{ModelError, ValueError};

/// Parameters of a cell that make no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A single value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// In the radio conditions.
    #[error(transparent)]
    Conditions(#[from] conditions::ConfigError),
    /// A multislot class that is not modelled.
    #[error("there is no such multislot class here: give one of {known}")]
    MultislotClass {
        /// Those that there are.
        known: &'static str,
    },
    /// More uplink timeslots than a class allows, or none.
    #[error("a mobile of multislot class {class} sends in 1 to {max} timeslots")]
    UplinkSlots {
        /// The class.
        class: u8,
        /// What it allows.
        max: u8,
    },
    /// Link adaptation that makes no sense.
    #[error("{problem}")]
    Adaptation {
        /// The key, dotted, below the bearer's.
        key: String,
        /// What is wrong, or what to do.
        problem: &'static str,
    },
    /// GPRS in one direction and EGPRS in the other.
    #[error("both directions have schemes of one kind: `cs-…` for GPRS, `mcs-…` for EGPRS")]
    SchemesOfTwoKinds,
}

impl ModelError for ConfigError {
    fn field(&self) -> String {
        match self {
            Self::Value(error) => error.field(),
            Self::Conditions(error) => error.field(),
            Self::MultislotClass { .. } => "mobile.multislot_class".to_owned(),
            Self::UplinkSlots { .. } => "mobile.uplink_slots".to_owned(),
            Self::Adaptation { key, .. } => key.clone(),
            Self::SchemesOfTwoKinds => "uplink.scheme".to_owned(),
        }
    }
}
