//! Why the cells of EN-DC cannot be made from their parameters.

use crate::error::{ModelError, ValueError};
use crate::ofdma;

/// Parameters of EN-DC that make no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value of its own.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// In the table of a cell.
    #[error("{source}")]
    Cell {
        /// `master` or `secondary`; empty if both have it from the bearer.
        table: &'static str,
        /// What is wrong in it.
        source: ofdma::ConfigError,
    },
}

impl ModelError for ConfigError {
    fn field(&self) -> String {
        match self {
            Self::Value(error) => error.field(),
            Self::Cell { table: "", source } => source.field(),
            Self::Cell { table, source } => format!("{table}.{}", source.field()),
        }
    }
}
