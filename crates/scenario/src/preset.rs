//! Bearer presets: named parameters of a bearer, each with where it comes from.
//!
//! A preset is a TOML file: `format`, `name`, `title`, the `[bearer]` table that a scenario could
//! write itself, and a `[source]` table that names the origin of every key of it.

use std::path::Path;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError, did_you_mean};

static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../presets");

/// A named set of bearer parameters.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// One line on what it is.
    pub title: String,
    /// The file as it is written.
    pub text: String,
    /// The parameters, in the order of the file.
    pub parameters: Vec<Parameter>,
    pub(crate) bearer: Node,
}

/// One parameter of a preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Dotted path below `bearer`.
    pub key: String,
    /// Its value, as TOML.
    pub value: String,
    /// Where it comes from: a study and table, a specification and clause, or the reason of a choice.
    pub source: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u32,
    name: String,
    title: String,
}

impl Preset {
    /// The preset called `name`: one that is shipped, or a user's own file.
    pub fn load(name: &str, folder: &Path, origin: &Origin) -> Result<Self, ScenarioError> {
        if let Some(file) = SHIPPED.get_file(format!("{name}.toml")) {
            return Self::parse(file.contents_utf8().expect("shipped presets are text"), &format!("preset {name}"));
        }
        let is_path = name.contains(['/', '\\']) || name.ends_with(".toml");
        if !is_path {
            let names = Self::names();
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(ScenarioError::new(format!("there is no preset `{name}`"), origin.clone(), "")
                .help(format!("{}; a path to a file of your own works too", did_you_mean(name, &known))));
        }
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            ScenarioError::new(
                format!("the preset file `{}` cannot be read: {error}", path.display()),
                origin.clone(),
                "",
            )
        })?;
        Self::parse(&text, name)
    }

    /// The names of all that are shipped, sorted.
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> =
            SHIPPED.files().filter_map(|file| file.path().to_str()?.strip_suffix(".toml").map(str::to_owned)).collect();
        names.sort();
        names
    }

    /// All that are shipped, by name.
    pub fn shipped() -> Vec<Self> {
        let load = |name: &String| Self::load(name, Path::new(""), &Origin::Default);
        Self::names().iter().map(|name| load(name).expect("a test reads every shipped preset")).collect()
    }

    fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let mut node = Node::parse(text, file)?;
        let missing = |key| ScenarioError::new("this table is missing", Origin::File(file.to_owned()), key);
        let bearer = node.take("bearer").ok_or_else(|| missing("bearer"))?;
        let sources = node.take("source").ok_or_else(|| missing("source"))?;
        let sources: toml::map::Map<String, toml::Value> = sources.read("source")?;
        let head: Head = node.read("")?;
        if head.format != 1 {
            return Err(ScenarioError::new(
                format!("format {} is not known: this version reads format 1", head.format),
                node.get("format").map_or(Origin::Default, |node| node.origin().clone()),
                "format",
            ));
        }
        let mut parameters = Vec::new();
        flatten(&bearer.to_value(), "", &mut |key, value| {
            let source = sources.get(key).and_then(toml::Value::as_str).map(str::to_owned);
            parameters.push(Parameter { key: key.to_owned(), value: value.to_string(), source });
        });
        Ok(Self { name: head.name, title: head.title, text: text.to_owned(), parameters, bearer })
    }
}

/// Calls `each` with every leaf below `value` and its dotted path; arrays are leaves.
fn flatten(value: &toml::Value, at: &str, each: &mut impl FnMut(&str, &toml::Value)) {
    match value {
        toml::Value::Table(table) => table.iter().for_each(|(key, value)| flatten(value, &join(at, key), each)),
        leaf => each(at, leaf),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_of_every_preset_has_a_source() {
        for preset in Preset::shipped() {
            assert!(
                SHIPPED.get_file(format!("{}.toml", preset.name)).is_some(),
                "{} is named as its file",
                preset.name
            );
            for parameter in preset.parameters.iter().filter(|parameter| parameter.key != "model") {
                assert!(parameter.source.is_some(), "{}: {} has no source", preset.name, parameter.key);
            }
        }
    }

    #[test]
    fn a_typo_in_a_name_is_helped() {
        let error = Preset::load("hs-dsch-348", Path::new(""), &Origin::Default).expect_err("no such preset");
        assert!(error.to_string().contains("did you mean `hs-dsch-3"), "{error}");
        let error = Preset::load("./none.toml", Path::new("nowhere"), &Origin::Default).expect_err("no such file");
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
}
