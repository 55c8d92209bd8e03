//! The uplink of one user.

use std::path::PathBuf;

use airpath_core::{Direction, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::multiplexing::paths::OneWay;
use crate::study::ConfigError;
use crate::study::dedicated_channel::Dch;

/// The uplink of one user, not shared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Uplink {
    /// `uplink.link`: a plain link, without TTIs.
    Link(airpath_link::Config),
    /// `uplink.dch`: a dedicated channel.
    Dch(Dch),
}

impl Uplink {
    /// The recording that it sends by, if it has one.
    pub(crate) const fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Link(link) => link.recorded.as_mut(),
            Self::Dch(_) => None,
        }
    }

    /// Makes the uplinks of `users` users, with streams below `name/user-N/up`.
    pub(crate) fn build(&self, users: usize, seed: Seed, name: &str) -> Result<Vec<OneWay>, ConfigError> {
        match self {
            Self::Link(config) => {
                let plan = config.prepare()?;
                let path = |user| plan.pipe(seed, &format!("{name}/user-{user}/up"));
                Ok((0..users).map(|user| OneWay::Link(Direction::Up, Box::new(path(user)))).collect())
            }
            Self::Dch(dch) => dch.build(Direction::Up, users, seed, name),
        }
    }
}
