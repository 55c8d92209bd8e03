//! What a scenario says of radio conditions.

use std::path::{Path, PathBuf};

use airpath_core::{Decibel, Seed};
use serde::{Deserialize, Serialize};

use super::{Process, Series, Table};
use crate::ConfigError;

/// Radio conditions: exactly one of `ci`, `table` and `recorded`.
///
/// ```toml
/// [bearer.conditions]
/// ci = "12 dB"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// C/I that is always the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci: Option<Decibel>,
    /// C/I that is drawn from a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    /// A file with a recorded series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<PathBuf>,
    /// What is different for some mobiles, by their number; all else holds for those that are not in here. Whoever
    /// makes the bearer sets it.
    #[serde(skip)]
    pub of_mobiles: Vec<Option<Config>>,
}

impl Config {
    /// C/I that is always the same.
    pub fn fixed(ci: Decibel) -> Self {
        Self { ci: Some(ci), ..Self::default() }
    }

    /// Makes the path of a recorded series one from the working directory.
    pub fn locate(&mut self, folder: &Path) {
        self.recorded = self.recorded.take().map(|file| folder.join(file));
    }

    /// The conditions of the mobile `user`.
    pub(super) fn of(&self, user: usize) -> &Self {
        self.of_mobiles.get(user).and_then(Option::as_ref).unwrap_or(self)
    }

    pub(super) fn process(&self, seed: Seed, path: &str) -> Result<Process, ConfigError> {
        match (&self.ci, &self.table, &self.recorded) {
            (Some(ci), None, None) => Ok(Process::Fixed(ci.get())),
            (None, Some(table), None) => table.process(seed, path).map(Process::Table),
            (None, None, Some(file)) => Series::read(file).map(Process::Recorded).map_err(ConfigError::Series),
            _ => Err(ConfigError::Conditions),
        }
    }
}
