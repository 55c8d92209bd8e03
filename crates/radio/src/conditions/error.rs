//! Why radio conditions cannot be made from their parameters.

use super::path_loss::PathLoss;
use super::recorded::SeriesError;
use crate::error::{ModelError, ValueError};

/// Parameters of radio conditions that make no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A single value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Conditions that are made in no way, or in two.
    #[error("radio conditions are made in one way: give one of `ci`, `level`, `table`, `recorded` and `cells`")]
    Kind,
    /// Cells at positions without a network of the technology.
    #[error(
        "an environment, and cells at positions, need `network`, which presets of NB-IoT and above {} GHz do not have: \
         write it, or give `ci`, `level`, `table` or `recorded`", PathLoss::HIGHEST / 1e3
    )]
    Network,
    /// Fading profiles, for a bearer without block errors for them.
    #[error("LTE, NR and NB-IoT have no block errors for fading profiles: remove it, or use `rayleigh`")]
    Fading,
    /// Shadowing that changes over nothing, or over two things.
    #[error("shadowing changes over distance or over time: give `correlation_distance` or `correlation_time`")]
    Correlation,
    /// Weights that do not fit the values of a table.
    #[error("each of the {values} values needs a weight: {values} numbers, none negative, not all zero")]
    TableWeights {
        /// The number of values.
        values: usize,
    },
    /// A recorded series.
    #[error(transparent)]
    Series(#[from] SeriesError),
}

impl ModelError for ConfigError {
    fn field(&self) -> String {
        match self {
            Self::Value(error) => error.field(),
            Self::Kind => "conditions".to_owned(),
            Self::Network => "conditions.cells".to_owned(),
            Self::Fading => "conditions.fading".to_owned(),
            Self::Correlation => "conditions.shadowing".to_owned(),
            Self::TableWeights { .. } => "conditions.table.weights".to_owned(),
            Self::Series(_) => "conditions.recorded".to_owned(),
        }
    }
}
