//! A bearer model of another crate: a satellite beam with one fixed delay for all its mobiles.

use airpath_core::{Seed, Span};
use airpath_link::{Bearer, duplex};
use airpath_radio::{Model, ModelError, ValueError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A beam.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Orbit of the satellite.
    pub orbit: Orbit,
    /// Beam to the mobiles.
    pub downlink: Beam,
    /// Beam from the mobiles.
    pub uplink: Beam,
}

/// An orbit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Orbit {
    /// Propagation delay up to the satellite and down again.
    pub delay: Span,
}

/// One direction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Beam {
    /// Its rate.
    pub rate: airpath_core::Bitrate,
}

/// Errors of a scenario with this model.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A single value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// In one of its links.
    #[error(transparent)]
    Link(#[from] airpath_link::ConfigError),
}

impl ModelError for ConfigError {
    fn field(&self) -> String {
        match self {
            Self::Value(error) => error.field(),
            Self::Link(error) => error.field().to_owned(),
        }
    }
}

impl Model for Config {
    const NAME: &'static str = "satellite";
    const TITLE: &'static str = "a satellite's beam that all mobiles share";
    const FORMER_NAMES: &'static [&'static str] = &["sputnik"];

    type Error = ConfigError;

    fn build(&self, _: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ConfigError> {
        if self.orbit.delay.is_zero() {
            return Err(ValueError::Zero { key: "orbit.delay".to_owned() }.into());
        }
        let link = |beam: &Beam| airpath_link::Config {
            rate: Some(beam.rate),
            delay: self.orbit.delay.into(),
            ..airpath_link::Config::default()
        };
        Ok(Box::new(duplex(&link(&self.downlink), &link(&self.uplink), seed, name)?))
    }
}
