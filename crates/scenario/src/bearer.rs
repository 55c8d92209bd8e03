//! The bearer of a scenario: which model, with which parameters, and the objects made from them.

use std::path::{Path, PathBuf};

use airpath_core::Seed;
use airpath_link::Bearer;
use airpath_radio::{hsdpa, umts_dch};
use serde::{Deserialize, Serialize};

use crate::Mobile;
use crate::document::Node;
use crate::error::{Origin, ScenarioError, did_you_mean};
use crate::preset::Preset;

/// A bearer's model and parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum BearerConfig {
    /// Two plain links for each mobile.
    Wired(Wired),
    /// A UMTS dedicated channel for each mobile.
    UmtsDch(umts_dch::Config),
    /// A cell whose HS-DSCH all mobiles share.
    Hsdpa(hsdpa::Config),
    /// A recorded link for each mobile.
    Recorded(Recorded),
}

/// Two plain links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wired {
    /// Towards the mobile.
    pub downlink: airpath_link::Config,
    /// From the mobile.
    pub uplink: airpath_link::Config,
}

/// A recorded link: two files of delivery opportunities in the mahimahi format, and what stands
/// before and behind them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// File of the downlink, relative to the scenario's folder.
    pub down: PathBuf,
    /// File of the uplink.
    pub up: PathBuf,
    /// Queue and delay of the downlink.
    #[serde(default)]
    pub downlink: airpath_link::Config,
    /// Queue and delay of the uplink.
    #[serde(default)]
    pub uplink: airpath_link::Config,
}

/// The bearer objects of a scenario.
pub struct Cells {
    /// Each with its name.
    pub bearers: Vec<(String, Box<dyn Bearer>)>,
    /// The index of each user's bearer.
    pub of_user: Vec<usize>,
}

const MODELS: [&str; 4] = ["wired", "umts-dch", "hsdpa", "recorded"];

impl BearerConfig {
    /// Reads a `[bearer]` table: a model with all its parameters, or a preset and what differs from it.
    pub(crate) fn read(mut node: Node, folder: &Path) -> Result<Self, ScenarioError> {
        if let Some(preset) = node.take("preset") {
            let name: String = preset.read("bearer.preset")?;
            let mut base = Preset::load(&name, folder, preset.origin()).map_err(|mut error| {
                error.field.get_or_insert_with(|| "bearer.preset".to_owned());
                error
            })?;
            base.bearer.overlay(node);
            node = base.bearer;
        }
        let Some(model) = node.take("model") else {
            return Err(ScenarioError::new("this key is missing", node.origin().clone(), "bearer.preset")
                .help("name a preset (`airpath presets list` shows them), or give a `model` and all its parameters"));
        };
        let name: String = model.read("bearer.model")?;
        Ok(match name.as_str() {
            "wired" => Self::Wired(node.read("bearer")?),
            "umts-dch" => Self::UmtsDch(node.read("bearer")?),
            "hsdpa" => Self::Hsdpa(node.read("bearer")?),
            "recorded" => {
                let mut recorded: Recorded = node.read("bearer")?;
                recorded.down = folder.join(recorded.down);
                recorded.up = folder.join(recorded.up);
                Self::Recorded(recorded)
            }
            _ => {
                return Err(ScenarioError::new(
                    format!("there is no bearer model `{name}`"),
                    model.origin().clone(),
                    "bearer.model",
                )
                .help(did_you_mean(&name, &MODELS)));
            }
        })
    }

    /// Makes the bearers for `mobiles`.
    pub(crate) fn build(&self, mobiles: &[Mobile], seed: Seed) -> Result<Cells, ScenarioError> {
        let refuse = |error: &dyn std::error::Error| ScenarioError::new(error.to_string(), Origin::Default, "bearer");
        match self {
            Self::UmtsDch(config) => {
                let bearer = umts_dch::UmtsDch::new(config, mobiles.len(), seed, "cell").map_err(|e| refuse(&e))?;
                Ok(Cells::shared(Box::new(bearer), mobiles.len()))
            }
            Self::Hsdpa(config) => {
                let classes: Vec<Option<String>> = mobiles.iter().map(|mobile| mobile.class.clone()).collect();
                let bearer = hsdpa::Hsdpa::new(config, &classes, seed, "cell").map_err(|e| refuse(&e))?;
                Ok(Cells::shared(Box::new(bearer), mobiles.len()))
            }
            Self::Wired(config) => Cells::own(mobiles, |name| {
                airpath_link::duplex(&config.downlink, &config.uplink, seed, name).map_err(|e| refuse(&e))
            }),
            Self::Recorded(config) => {
                let read = |path: &Path, key: &str| {
                    airpath_link::Recording::read(path).map_err(|error| {
                        ScenarioError::new(error.to_string(), Origin::Default, format!("bearer.{key}"))
                    })
                };
                let (down, up) = (read(&config.down, "down")?, read(&config.up, "up")?);
                Cells::own(mobiles, |name| {
                    airpath_link::recorded_duplex((&down, &config.downlink), (&up, &config.uplink), seed, name)
                        .map_err(|e| refuse(&e))
                })
            }
        }
    }
}

impl Cells {
    fn shared(bearer: Box<dyn Bearer>, users: usize) -> Self {
        Self { bearers: vec![("cell".to_owned(), bearer)], of_user: vec![0; users] }
    }

    fn own<B: Bearer + 'static>(
        mobiles: &[Mobile],
        make: impl Fn(&str) -> Result<B, ScenarioError>,
    ) -> Result<Self, ScenarioError> {
        let mut bearers: Vec<(String, Box<dyn Bearer>)> = Vec::with_capacity(mobiles.len());
        for mobile in mobiles {
            let name = format!("bearer-{}", mobile.name);
            let bearer = make(&name)?;
            bearers.push((name, Box::new(bearer)));
        }
        Ok(Self { of_user: (0..bearers.len()).collect(), bearers })
    }
}
