//! The bearer of a scenario: which model, with which parameters, and the objects made from them.

use std::path::{Path, PathBuf};

use airpath_core::Seed;
use airpath_link::Bearer;
use airpath_radio::gsm::{csd, gprs};
use airpath_radio::study::uplink::Uplink;
use airpath_radio::study::{dch_simple, hs_dsch_simple};
use airpath_radio::umts::{hsdpa, r99};
use airpath_radio::{ConfigError, conditions};
use serde::Serialize;

use crate::Mobile;
use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError, did_you_mean};
use crate::links::{BothWays, OneWay};
use crate::preset::{Kind, Preset};
use crate::scene;

/// A bearer's model and parameters.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum BearerConfig {
    /// Two plain links for each mobile; a recorded link among them if they say so.
    Wired(Wired),
    /// A UMTS dedicated channel for each mobile.
    DchSimple(dch_simple::Config),
    /// A circuit-switched call of GSM for each mobile.
    GsmCsd(Box<csd::Config>),
    /// A UMTS packet bearer for each mobile, with RLC by its specification and RRC states.
    Umts(Box<r99::Config>),
    /// A cell whose HS-DSCH all mobiles share.
    HsDschSimple(hs_dsch_simple::Config),
    /// A cell with HSDPA by its specifications, whose codes all mobiles share.
    Hsdpa(Box<hsdpa::Config>),
    /// A GPRS or EGPRS cell, whose timeslots all mobiles share.
    Gprs(Box<gprs::Config>),
}

/// Two plain links.
#[derive(Clone, Debug, Serialize)]
pub struct Wired {
    /// Towards the mobile.
    pub downlink: OneWay,
    /// From the mobile.
    pub uplink: OneWay,
}

/// The bearer objects of a scenario.
pub struct Cells {
    /// Each with its name.
    pub bearers: Vec<(String, Box<dyn Bearer>)>,
    /// The index of each user's bearer.
    pub of_user: Vec<usize>,
}

/// The keys of `[bearer]` itself, of whichever model.
const OWN_KEYS: &[&str] = &[
    "preset",
    "model",
    "downlink",
    "uplink",
    "conditions",
    "ppp",
    "serial",
    "modem",
    "radio",
    "call",
    "cell",
    "mobile",
    "rlc",
    "tbf",
    "rrc",
    "switching",
    "mobility",
];

const MODELS: &[&str] = &["wired", "recorded", "gsm-csd", "gprs", "dch-simple", "umts", "hs-dsch-simple", "hsdpa"];

/// Former names of models, and what they are called now.
const RENAMED: &[(&str, &str)] = &[("umts-dch", "dch-simple"), ("hsdpa-cell", "hsdpa")];

impl BearerConfig {
    /// Reads a `[bearer]` table: a model with all its parameters, or a preset and what differs from it.
    /// Keys right below `bearer` are those of its downlink: `bearer.bler` is short for `bearer.downlink.bler`.
    /// Returns the table as it was resolved, too: what only building finds wrong was written there.
    pub(crate) fn read(mut node: Node, folder: &Path) -> Result<(Self, Node), ScenarioError> {
        let short: Vec<String> = node.keys().filter(|key| !OWN_KEYS.contains(key)).map(str::to_owned).collect();
        for key in short {
            let value = node.take(&key).expect("it is one of the keys");
            let mut downlink = Node::table(value.origin().clone());
            downlink.insert(&key, value);
            match node.take("downlink") {
                Some(mut given) => {
                    given.overlay(downlink);
                    node.insert("downlink", given);
                }
                None => node.insert("downlink", downlink),
            }
        }
        let given = node.take("conditions");
        if let Some(preset) = node.take("preset") {
            let name: String = preset.read("bearer.preset")?;
            let mut base = Preset::load_kind(Kind::Bearer, &name, folder, preset.origin()).map_err(|mut error| {
                error.field.get_or_insert_with(|| "bearer.preset".to_owned());
                error
            })?;
            base.content.overlay(node);
            node = base.content;
        }
        let preset = node.take("conditions");
        if let Some(given) = given.or_else(|| preset.as_ref().map(|preset| Node::table(preset.origin().clone()))) {
            node.insert("conditions", scene::resolve(given, preset, folder, "bearer.conditions")?);
        }
        let Some(model) = node.take("model") else {
            return Err(ScenarioError::new("this key is missing", node.origin().clone(), "bearer.preset")
                .help("name a preset (`airpath presets list` shows them), or give a `model` and all its parameters"));
        };
        let name: String = model.read("bearer.model")?;
        let config = match name.as_str() {
            // A recorded bearer is a wired one that must not lack its files.
            "wired" | "recorded" => {
                if node.get("conditions").is_some() {
                    return Err(node.unknown_key("bearer", "conditions", &["preset", "model", "downlink", "uplink"]));
                }
                let link = |key: &str| {
                    let link = node.get(key).ok_or_else(|| {
                        ScenarioError::new("this table is missing", node.origin().clone(), format!("bearer.{key}"))
                    })?;
                    let at = format!("bearer.{key}");
                    if name == "recorded" && link.get("recorded").is_none() {
                        let error =
                            ScenarioError::new("this key is missing", link.origin().clone(), join(&at, "recorded"));
                        return Err(error.help("name a file of delivery opportunities in the mahimahi format"));
                    }
                    OneWay::read(link, &at, folder)
                };
                Self::Wired(Wired { downlink: link("downlink")?, uplink: link("uplink")? })
            }
            "dch-simple" => {
                let mut config: dch_simple::Config = node.read("bearer")?;
                locate(&mut config.uplink, folder);
                Self::DchSimple(config)
            }
            "gsm-csd" => {
                let mut config: csd::Config = node.read("bearer")?;
                if let Some(conditions) = &mut config.conditions {
                    conditions.locate(folder);
                }
                Self::GsmCsd(Box::new(config))
            }
            "umts" => {
                let mut config: r99::Config = node.read("bearer")?;
                config.conditions.locate(folder);
                Self::Umts(Box::new(config))
            }
            "hs-dsch-simple" => {
                let mut config: hs_dsch_simple::Config = node.read("bearer")?;
                locate(&mut config.uplink, folder);
                Self::HsDschSimple(config)
            }
            "hsdpa" => {
                let mut config: hsdpa::Config = node.read("bearer")?;
                config.conditions.locate(folder);
                Self::Hsdpa(Box::new(config))
            }
            "gprs" => {
                let mut config: gprs::Config = node.read("bearer")?;
                config.conditions.locate(folder);
                Self::Gprs(Box::new(config))
            }
            _ => {
                return Err(ScenarioError::new(
                    format!("there is no bearer model `{name}`"),
                    model.origin().clone(),
                    "bearer.model",
                )
                .help(match RENAMED.iter().find(|(former, _)| *former == name) {
                    Some((_, now)) => format!("it is called `{now}` now"),
                    None => did_you_mean(&name, MODELS),
                }));
            }
        };
        Ok((config, node))
    }

    /// The radio conditions of its mobiles, where the model knows them.
    pub(crate) fn conditions(&mut self) -> Option<&mut conditions::Config> {
        match self {
            Self::Gprs(config) => Some(&mut config.conditions),
            Self::Umts(config) => Some(&mut config.conditions),
            Self::Hsdpa(config) => Some(&mut config.conditions),
            Self::GsmCsd(config) => config.conditions.as_mut(),
            Self::Wired(_) | Self::DchSimple(_) | Self::HsDschSimple(_) => None,
        }
    }

    /// Whether one bearer has all mobiles, rather than each its own.
    pub(crate) const fn is_shared(&self) -> bool {
        !matches!(self, Self::Wired(_))
    }

    /// Where its recorded links and radio conditions lie.
    pub(crate) fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        fn of_uplink(uplink: &mut Uplink) -> Option<&mut PathBuf> {
            match uplink {
                Uplink::Link(link) => link.recorded.as_mut(),
                Uplink::Dch(_) => None,
            }
        }
        match self {
            Self::Wired(Wired { downlink, uplink }) => {
                [downlink.file_mut(), uplink.file_mut()].into_iter().flatten().collect()
            }
            Self::DchSimple(config) => of_uplink(&mut config.uplink).into_iter().collect(),
            Self::HsDschSimple(config) => of_uplink(&mut config.uplink).into_iter().collect(),
            Self::Umts(_) | Self::Hsdpa(_) | Self::Gprs(_) | Self::GsmCsd(_) => {
                self.conditions().into_iter().flat_map(conditions::Config::files_mut).collect()
            }
        }
    }

    /// Makes the bearers for `mobiles`.
    pub(crate) fn build(&self, mobiles: &[Mobile], seed: Seed) -> Result<Cells, ScenarioError> {
        let refuse =
            |error: ConfigError| ScenarioError::new(error.to_string(), Origin::Default, join("bearer", &error.field()));
        match self {
            Self::DchSimple(config) => {
                let bearer = dch_simple::DchSimple::new(config, mobiles.len(), seed, "cell").map_err(refuse)?;
                Ok(Cells::shared(Box::new(bearer), mobiles.len()))
            }
            Self::GsmCsd(config) => {
                let bearer = csd::GsmCsd::new(config, mobiles.len(), seed, "cell").map_err(refuse)?;
                Ok(Cells::shared(Box::new(bearer), mobiles.len()))
            }
            Self::Umts(config) => {
                let bearer = r99::Umts::new(config, mobiles.len(), seed, "cell").map_err(refuse)?;
                Ok(Cells::shared(Box::new(bearer), mobiles.len()))
            }
            Self::HsDschSimple(config) => {
                let classes: Vec<Option<String>> = mobiles.iter().map(|mobile| mobile.class.clone()).collect();
                let bearer = hs_dsch_simple::HsDschSimple::new(config, &classes, seed, "cell").map_err(refuse)?;
                Ok(Cells::shared(Box::new(bearer), mobiles.len()))
            }
            Self::Hsdpa(config) => {
                let bearer = hsdpa::Hsdpa::new(config, mobiles.len(), seed, "cell").map_err(refuse)?;
                Ok(Cells::shared(Box::new(bearer), mobiles.len()))
            }
            Self::Gprs(config) => {
                let bearer = gprs::Gprs::new(config, mobiles.len(), seed, "cell").map_err(refuse)?;
                Ok(Cells::shared(Box::new(bearer), mobiles.len()))
            }
            Self::Wired(Wired { downlink, uplink }) => {
                let both = BothWays { down: downlink.clone(), up: uplink.clone() };
                Ok(Cells::own(mobiles, |name| Box::new(both.build(seed, name))))
            }
        }
    }
}

/// Makes the path of a recorded uplink one from the working directory.
fn locate(uplink: &mut Uplink, folder: &Path) {
    if let Uplink::Link(link) = uplink {
        link.recorded = link.recorded.take().map(|file| folder.join(file));
    }
}

impl Cells {
    fn shared(bearer: Box<dyn Bearer>, users: usize) -> Self {
        Self { bearers: vec![("cell".to_owned(), bearer)], of_user: vec![0; users] }
    }

    fn own(mobiles: &[Mobile], make: impl Fn(&str) -> Box<dyn Bearer>) -> Self {
        let named = |mobile: &Mobile| {
            let name = format!("bearer-{}", mobile.name);
            let bearer = make(&name);
            (name, bearer)
        };
        Self { bearers: mobiles.iter().map(named).collect(), of_user: (0..mobiles.len()).collect() }
    }
}
