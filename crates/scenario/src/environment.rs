//! Radio conditions in a scenario: an environment by name, and what differs from it.

use std::path::Path;

use airpath_radio::Models;
use airpath_radio::conditions::Config;
use airpath_radio::model::Entry;

use crate::document::{Node, join};
use crate::error::ScenarioError;
use crate::preset::{Kind, Preset};

/// The keys for the source of C/I; exactly one is given.
const KINDS: [&str; 5] = ["ci", "level", "table", "recorded", "cells"];

/// Resolves a `conditions` table at the path `at`, which lies over that of a preset, or of the
/// bearer if it is a mobile's. An `environment` takes the place of what is below it, and so does
/// another way to make C/I; but the network stays, because it belongs to the technology. Single
/// keys replace those of the environment, and of the two kinds of fast fading, `fading` and
/// `rayleigh`, that which is given counts.
pub(crate) fn resolve(
    mut given: Node,
    below: Option<Node>,
    folder: &Path,
    at: &str,
    fading: &Fading,
) -> Result<Node, ScenarioError> {
    for node in [Some(&given), below.as_ref()].into_iter().flatten() {
        fading.check(node, at)?;
    }
    let mut base = below.unwrap_or_else(|| Node::table(given.origin().clone()));
    let network = base.get("network").cloned();
    let another = KINDS.iter().any(|kind| given.get(kind).is_some() && base.get(kind).is_none());
    if let Some(environment) = given.take("environment") {
        base = load(&environment, folder, at)?;
        refuse_another_kind(&given, &base, at)?;
    } else if another {
        base = Node::table(given.origin().clone());
    } else if let Some(environment) = base.take("environment") {
        let over = base;
        base = load(&environment, folder, at)?;
        base.overlay(over);
    }
    for (kind, other) in [("fading", "rayleigh"), ("rayleigh", "fading")] {
        if given.get(kind).is_some() && given.get(other).is_none() {
            base.take(other);
        }
    }
    if let Some(network) = network
        && base.get("network").is_none()
    {
        base.insert("network", network);
    }
    replace_change(&given, &mut base);
    base.overlay(given);
    if !fading.is_supported {
        base.take("fading");
    }
    base.set_read_apart(["environment"]);
    Ok(base)
}

/// Rejects a source of C/I beside that of an `environment`.
fn refuse_another_kind(given: &Node, environment: &Node, at: &str) -> Result<(), ScenarioError> {
    let other = KINDS.into_iter().find_map(|kind| Some((kind, given.get(kind)?)));
    let own = KINDS.into_iter().find(|kind| environment.get(kind).is_some());
    match (other, own) {
        (Some((kind, node)), Some(own)) if kind != own => {
            let message = format!("radio conditions are made in one way, and the environment has `{own}`");
            let help = format!("give either `environment` or `{kind}`");
            Err(ScenarioError::new(message, node.origin().clone(), join(at, kind)).help(help))
        }
        _ => Ok(()),
    }
}

/// Whether a bearer has block errors for `fading`, and which have.
pub(crate) struct Fading {
    model: &'static str,
    is_supported: bool,
    models: String,
}

impl Fading {
    /// That of the bearers of `entry`, one of `models`.
    pub(crate) fn new(entry: &Entry, models: &Models) -> Self {
        let supporting = models.iter().filter(|entry| entry.has_fading_profiles);
        let names: Vec<String> = supporting.map(|entry| format!("`{}`", entry.name)).collect();
        Self { model: entry.name, is_supported: entry.has_fading_profiles, models: names.join(", ") }
    }

    /// Rejects a `fading` that would have no effect. An environment may have one: it is for
    /// bearers of any kind.
    fn check(&self, node: &Node, at: &str) -> Result<(), ScenarioError> {
        let Some(fading) = node.get("fading").filter(|_| !self.is_supported) else { return Ok(()) };
        let message = format!("a bearer of the model `{}` has no block errors for fading profiles", self.model);
        let help = format!(
            "remove it; `rayleigh`, a speed, makes fast fading a part of the SINR. The models {} have `fading`",
            self.models
        );
        Err(ScenarioError::new(message, fading.origin().clone(), join(at, "fading")).help(help))
    }
}

/// Removes the parameters of a change of the cell from `base` if `given` names another change.
fn replace_change(given: &Node, base: &mut Node) {
    let change = |node: &Node| node.get("network").and_then(|network| network.get("change")).map(Node::to_value);
    let Some(wanted) = change(given) else { return };
    if change(base).is_some_and(|below| below != wanted)
        && let Some(mut network) = base.take("network")
    {
        network.take("gap");
        network.take("window");
        base.insert("network", network);
    }
}

/// Whether a table has a source of C/I, so that only the network of the table below it
/// matters.
pub(crate) fn is_complete(given: &Node) -> bool {
    KINDS.iter().any(|kind| given.get(kind).is_some())
}

fn load(environment: &Node, folder: &Path, at: &str) -> Result<Node, ScenarioError> {
    let field = join(at, "environment");
    let name: String = environment.read(&field)?;
    let preset = Preset::load_kind(Kind::Environment, &name, folder, environment.origin()).map_err(|mut error| {
        error.field.get_or_insert(field);
        error
    })?;
    Ok(preset.content)
}

/// Reads resolved conditions at the path `at`; relative paths in them start from `folder`.
pub(crate) fn read(node: &Node, folder: &Path, at: &str) -> Result<Config, ScenarioError> {
    let mut config: Config = node.read(at)?;
    for file in config.files_mut() {
        *file = folder.join(&*file);
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BELOW: &str = "ci = \"15 dB\"\nrayleigh = \"3 km/h\"\nnetwork.reuse = 12";

    fn resolved(given: &str, below: &str) -> Result<toml::Value, ScenarioError> {
        let given = Node::parse(given, "a.toml").expect("valid");
        let below = Node::parse(below, "preset").expect("valid");
        resolve_for("gprs", given, below).map(|node| node.to_value())
    }

    fn resolve_for(model: &str, given: Node, below: Node) -> Result<Node, ScenarioError> {
        let models = Models::shipped();
        let fading = Fading::new(models.get(model).expect("a model"), &models);
        resolve(given, Some(below), Path::new(""), "bearer.conditions", &fading)
    }

    #[test]
    fn an_environment_takes_the_place_of_all_but_the_network() {
        let value = resolved("environment = \"walking\"\nmovement.speed = \"5 km/h\"", BELOW).expect("an environment");
        assert!(value.get("ci").is_none() && value.get("rayleigh").is_none(), "{value}");
        assert_eq!(value["network"]["reuse"].as_integer(), Some(12));
        assert_eq!(value["movement"]["speed"].as_str(), Some("5 km/h"));
        assert_eq!(value["cells"]["spacing"].as_str(), Some("1 km"), "the rest is the environment's");
        let below = "environment = \"walking\"\nnetwork.reuse = 1";
        assert_eq!(resolved("cells.count = 2", below).expect("an environment")["cells"]["count"].as_integer(), Some(2));
    }

    #[test]
    fn keys_lie_over_those_of_a_preset() {
        let value = resolved("ci = \"8 dB\"", BELOW).expect("conditions");
        assert_eq!((value["ci"].as_str(), value["rayleigh"].as_str()), (Some("8 dB"), Some("3 km/h")));
        let value = resolved("recorded = \"a.csv\"", BELOW).expect("conditions");
        assert!(value.get("ci").is_none() && value.get("rayleigh").is_none(), "another way to make C/I: {value}");
        assert_eq!(value["network"]["reuse"].as_integer(), Some(12));
    }

    #[test]
    fn another_change_of_the_cell_takes_the_place_of_the_parameters_of_that_below() {
        let below = "ci = \"1 dB\"\nnetwork = { change = \"hard-handover\", gap = \"100 ms\", reuse = 1 }";
        let soft = "network = { change = \"soft-handover\", window = \"4 dB\" }";
        let value = resolved(soft, below).expect("conditions");
        let network = value["network"].as_table().expect("a table");
        assert!(network.get("gap").is_none() && network["window"].as_str() == Some("4 dB"), "{network}");
        assert_eq!(network["reuse"].as_integer(), Some(1));
        let value = resolved("network.change = \"hard-handover\"", below).expect("conditions");
        assert_eq!(value["network"]["gap"].as_str(), Some("100 ms"), "the change is the same");
    }

    #[test]
    fn fading_is_rejected_where_it_would_have_no_effect() {
        for model in ["lte-cell", "lte-m", "nr-cell", "nb-iot"] {
            let parse = |text| Node::parse(text, "a.toml").expect("valid");
            let resolve = |given, below| resolve_for(model, parse(given), parse(below));
            let walking = resolve("environment = \"walking\"", BELOW).expect("an environment").to_value();
            assert!(walking.get("fading").is_none() && walking.get("cells").is_some(), "{walking}");
            for (given, below) in [
                ("fading = \"tu50\"", BELOW),
                ("environment = \"walking\"\nfading = \"static\"", BELOW),
                ("ci = \"9 dB\"", "ci = \"1 dB\"\nfading = \"tu3\""),
            ] {
                let error = resolve(given, below).expect_err("no effect").to_string();
                let expected = format!(
                    "bearer.conditions.fading: a bearer of the model `{model}` has no block errors for fading profiles"
                );
                assert!(error.contains(&expected), "{error}");
                assert!(error.contains("The models `gsm-csd`, `gprs`, `umts`, `hsdpa` have `fading`"), "{error}");
            }
        }
        let walking = resolved("environment = \"walking\"", BELOW).expect("an environment");
        assert_eq!(walking["fading"].as_str(), Some("tu3"), "GPRS has it");
    }

    #[test]
    fn of_two_kinds_of_fast_fading_the_given_one_counts() {
        let value = resolved("environment = \"walking\"\nrayleigh = \"5 km/h\"", BELOW).expect("conditions");
        assert_eq!((value.get("fading"), value["rayleigh"].as_str()), (None, Some("5 km/h")));
        let value = resolved("fading = \"tu50\"", BELOW).expect("conditions");
        assert_eq!((value["fading"].as_str(), value.get("rayleigh")), (Some("tu50"), None));
    }

    #[test]
    fn an_environment_is_the_only_source_of_radio_conditions() {
        let error = resolved("environment = \"walking\"\nci = \"3 dB\"", BELOW).expect_err("two sources").to_string();
        assert_eq!(
            error,
            "a.toml:2: bearer.conditions.ci: radio conditions are made in one way, and the environment has `cells`; \
             give either `environment` or `ci`"
        );
        let value = resolved("ci = \"3 dB\"", "environment = \"walking\"").expect("in place of that below");
        assert!(value.get("cells").is_none() && value["ci"].as_str() == Some("3 dB"), "{value}");
    }

    #[test]
    fn a_typo_in_an_environment_is_helped() {
        let error = resolved("environment = \"drivin\"", BELOW).expect_err("no such environment").to_string();
        assert!(error.starts_with(
            "a.toml:1: bearer.conditions.environment: there is no environment `drivin`; did you mean `driving`"
        ));
        let error = resolved("environment = 5", BELOW).expect_err("no name").to_string();
        assert!(error.starts_with("a.toml:1: bearer.conditions.environment: invalid type"), "{error}");
    }
}
