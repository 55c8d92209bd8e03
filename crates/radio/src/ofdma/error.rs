//! Why a cell of LTE or NR cannot be made from its parameters.

use crate::conditions;
use crate::error::{ModelError, ValueError};

/// Parameters of a cell of LTE or NR that make no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A single value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// In the radio conditions.
    #[error(transparent)]
    Conditions(#[from] conditions::ConfigError),
}

impl ModelError for ConfigError {
    fn field(&self) -> String {
        match self {
            Self::Value(error) => error.field(),
            Self::Conditions(error) => error.field(),
        }
    }
}
