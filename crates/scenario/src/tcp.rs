//! TCP settings: a profile, and what differs from it.

use std::sync::Arc;

use airpath_tcp::{Algorithm, Config, Profile};
use serde::Serialize;

use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError, did_you_mean};

/// The profile of a scenario that names none.
const DEFAULT_PROFILE: Profile = Profile::Linux6;

/// All TCP settings of a flow, and the profile that they began from.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// The profile.
    pub profile: Profile,
    /// Every setting that is in force; shared by the connections.
    #[serde(flatten)]
    pub config: Arc<Config>,
}

impl Settings {
    /// Reads a `tcp` table over the scenario's `defaults`. One that names a profile begins from
    /// that profile afresh.
    pub(crate) fn read(own: Option<Node>, at: &str, defaults: &Node) -> Result<Self, ScenarioError> {
        let mut layers = vec![written_out(defaults.clone())];
        let mut field = "tcp";
        if let Some(own) = own {
            field = at;
            let own = written_out(own);
            if own.get("profile").is_some() {
                layers.clear();
            }
            layers.push(own);
        }
        let mut node = Node::table(layers[0].origin().clone());
        layers.iter().for_each(|layer| node.overlay(layer.clone()));
        let profile = match node.take("profile") {
            None => DEFAULT_PROFILE,
            Some(named) => {
                let name: String = named.read(&join(field, "profile"))?;
                name.parse().map_err(|_| {
                    let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name()).collect();
                    ScenarioError::new(
                        format!("there is no TCP profile `{name}`"),
                        named.origin().clone(),
                        join(field, "profile"),
                    )
                    .help(did_you_mean(&name, &names))
                })?
            }
        };
        let mut base = settings_of(&profile.config());
        base.overlay(node);
        let mut config: Config = base.read(field)?;
        for path in without_effect(&layers, &config, &profile.config(), field)? {
            base.copy(&path, &settings_of(&profile.config()));
            config = base.read(field)?;
        }
        config.check().map_err(|error| {
            let origin = base.origin_of(error.field).clone();
            ScenarioError::new(error.to_string(), origin, join(field, error.field))
        })?;
        Ok(Self { profile, config: Arc::new(config) })
    }
}

/// Settings as a document without an origin.
fn settings_of(config: &Config) -> Node {
    let settings = toml::Value::try_from(config).expect("settings of TCP are a table");
    Node::from_value(settings, &Origin::Default)
}

/// The keys of `layers` that the congestion control of `config` does not have, as dotted paths. One
/// is an error if it was given beside the algorithm, or later: a file that sets keys of one
/// algorithm can be run with another. Values of the profile are no error in a file, because a
/// resolved scenario has all of them.
fn without_effect(
    layers: &[Node],
    config: &Config,
    profile: &Config,
    field: &str,
) -> Result<Vec<String>, ScenarioError> {
    let algorithm = config.congestion.algorithm;
    // The layer of a key, and whether the command line has it.
    let place = |path: &str| {
        let of_layer = |(index, layer): (usize, &Node)| {
            layer.at(path).map(|node| (index, matches!(node.origin(), Origin::Argument(_)), node.origin().clone()))
        };
        layers.iter().enumerate().rev().find_map(of_layer)
    };
    let chosen = place("congestion.algorithm").map(|(index, is_argument, _)| (index, is_argument));
    let [given, usual] = [config, profile].map(settings_of);
    let value = |settings: &Node, path: &str| settings.at(path).map(Node::to_value);
    let foreign = Algorithm::KEYS.into_iter().filter(|(_, having)| !having.contains(&algorithm));
    let mut without_effect = Vec::new();
    for (key, having) in foreign {
        let path = format!("congestion.{key}");
        let Some((index, is_argument, origin)) = place(&path) else { continue };
        let differs = value(&given, &path) != value(&usual, &path);
        if (is_argument || differs) && Some((index, is_argument)) >= chosen {
            let names: Vec<String> = having.iter().map(|algorithm| format!("\"{}\"", name(*algorithm))).collect();
            let message = format!("the algorithm \"{}\" does not have this key", name(algorithm));
            let help = format!("remove it, or choose an `algorithm` that has it: {}", names.join(", "));
            return Err(ScenarioError::new(message, origin, join(field, &path)).help(help));
        }
        without_effect.push(path);
    }
    if algorithm.always_paces()
        && !config.pacing
        && let Some((index, is_argument, origin)) = place("pacing")
    {
        if (is_argument || profile.pacing) && Some((index, is_argument)) >= chosen {
            let message = format!("the algorithm \"{}\" always paces", name(algorithm));
            let help = "remove it, or choose another `congestion.algorithm`";
            return Err(ScenarioError::new(message, origin, join(field, "pacing")).help(help));
        }
        without_effect.push("pacing".to_owned());
    }
    Ok(without_effect)
}

/// The name of an algorithm in a scenario.
fn name(algorithm: Algorithm) -> String {
    let value = toml::Value::try_from(algorithm).expect("an algorithm is a name");
    value.as_str().expect("an algorithm is a name").to_owned()
}

/// Rejects settings of the command line that no flow has, because each names a profile.
pub(crate) fn refuse_unused(defaults: &Node, flows: &[Node]) -> Result<(), ScenarioError> {
    let names_profile = |flow: &Node| {
        let tcp = flow.get("tcp").map(|tcp| written_out(tcp.clone()));
        tcp.is_some_and(|tcp| tcp.get("profile").is_some())
    };
    if flows.is_empty() || !flows.iter().all(names_profile) {
        return Ok(());
    }
    let Some((path, origin)) = defaults.first_argument("tcp") else { return Ok(()) };
    let message = "no flow has this setting, because each flow has a profile of its own";
    let help = format!("write `flow.{path}`, which sets it for all flows, or `flow.NAME.{path}`");
    Err(ScenarioError::new(message, origin, path).help(help))
}

/// Writes out the short forms `tcp = "linux-6"` (the profile) and `tcp.congestion = "cubic"` (the
/// algorithm), also as `tcp.cc`, the option of iperf3 and of `ss`.
fn written_out(tcp: Node) -> Node {
    let mut tcp = tcp.or_table_with("profile");
    if tcp.get("congestion").is_none()
        && let Some(congestion) = tcp.take("cc")
    {
        tcp.insert("congestion", congestion);
    }
    if let Some(congestion) = tcp.take("congestion") {
        tcp.insert("congestion", congestion.or_table_with("algorithm"));
    }
    tcp
}
