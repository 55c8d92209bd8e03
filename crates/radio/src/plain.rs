//! Bearers that are no radio: two plain links for each mobile.

use std::path::PathBuf;

use airpath_core::Seed;
use airpath_link::config::Plan;
use airpath_link::duplex::Duplex;
use airpath_link::{Bearer, Config};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::model::Model;

/// Two plain links for each mobile.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wired {
    /// Towards the mobile.
    pub downlink: Config,
    /// From the mobile.
    pub uplink: Config,
    /// Both, with the recordings that they name.
    #[serde(skip)]
    plans: Option<[Plan; 2]>,
}

/// Two links that send as recorded, for each mobile: [`Wired`] with a file in each direction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Recorded(Wired);

/// Why two links cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// In a link.
    #[error("{source}")]
    Link {
        /// `downlink` or `uplink`.
        table: &'static str,
        /// What is wrong.
        source: airpath_link::ConfigError,
    },
    /// A recorded link without its file.
    #[error("this key is missing: give it a file of delivery opportunities in the mahimahi format")]
    NoRecording {
        /// `downlink` or `uplink`.
        table: &'static str,
    },
}

impl ModelError for ConfigError {
    fn field(&self) -> String {
        match self {
            Self::Link { table, source } => format!("{table}.{}", source.field()),
            Self::NoRecording { table } => format!("{table}.recorded"),
        }
    }
}

impl Wired {
    fn plans(&self) -> Result<[Plan; 2], ConfigError> {
        let plan = |link: &Config, table| link.prepare().map_err(|source| ConfigError::Link { table, source });
        Ok([plan(&self.downlink, "downlink")?, plan(&self.uplink, "uplink")?])
    }
}

impl Model for Wired {
    const NAME: &'static str = "wired";
    const TITLE: &'static str = "two plain links for each mobile";
    const SHARED: bool = false;

    type Error = ConfigError;

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        [&mut self.downlink, &mut self.uplink].into_iter().filter_map(|link| link.recorded.as_mut()).collect()
    }

    fn prepare(&mut self) -> Result<(), ConfigError> {
        self.plans = Some(self.plans()?);
        Ok(())
    }

    fn build(&self, _: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        let [down, up] = match &self.plans {
            Some(plans) => plans.clone(),
            None => self.plans()?,
        };
        Ok(Box::new(Duplex::from_plans(&down, &up, seed, name)))
    }
}

impl Model for Recorded {
    const NAME: &'static str = "recorded";
    const TITLE: &'static str = "two links for each mobile that send as recorded";
    const SHARED: bool = false;

    type Error = ConfigError;

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        self.0.files_mut()
    }

    fn prepare(&mut self) -> Result<(), ConfigError> {
        for (link, table) in [(&self.0.downlink, "downlink"), (&self.0.uplink, "uplink")] {
            if link.recorded.is_none() {
                return Err(ConfigError::NoRecording { table });
            }
        }
        self.0.prepare()
    }

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        self.0.build(classes, seed, name)
    }
}
