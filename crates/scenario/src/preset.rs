//! Presets: named parameters of a bearer, of the environment in which it is, or of a proxy, each
//! with where it comes from.
//!
//! A preset is a TOML file: `format`, `name`, `title`, the `[bearer]` table that a scenario could
//! write itself, and a `[source]` table that names the origin of every key of it. An environment
//! has `[conditions]` in place of `[bearer]`, a proxy `[proxy]`.

use std::path::Path;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError, nearest};

static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../presets");

/// Common names of radio technologies, each with the preset that it selects.
pub const COMMON_NAMES: [(&str, &str); 18] = [
    ("gsm", "gsm-csd-9600"),
    ("gprs", "gprs-4+1"),
    ("2g", "gprs-4+1"),
    ("edge", "egprs-4+1"),
    ("umts", "umts-r99-384"),
    ("3g", "umts-r99-384"),
    ("hsdpa", "hsdpa-cat6"),
    ("hsupa", "hspa-cat10-eul"),
    ("hspa", "hspa-cat10-eul"),
    ("hspa+", "hspa-plus-21"),
    ("lte", "lte-10mhz"),
    ("4g", "lte-10mhz"),
    ("lte-m", "lte-cat-m1"),
    ("ltem", "lte-cat-m1"),
    ("nr", "nr-n78-100mhz-sa"),
    ("5g", "nr-n78-100mhz-sa"),
    ("nsa", "nr-n78-100mhz-nsa"),
    ("en-dc", "nr-n78-100mhz-nsa"),
];

/// The kind of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A bearer.
    Bearer,
    /// Radio conditions.
    Environment,
    /// The settings of a proxy.
    Proxy,
}

impl Kind {
    /// All, as they are listed.
    pub const ALL: [Self; 3] = [Self::Bearer, Self::Environment, Self::Proxy];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Environment => "environment",
            Self::Proxy => "proxy",
        }
    }

    /// The table of the file that has the parameters.
    const fn table(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Environment => "conditions",
            Self::Proxy => "proxy",
        }
    }

    /// What one is called in messages.
    const fn word(self) -> &'static str {
        match self {
            Self::Bearer => "preset",
            Self::Environment => "environment",
            Self::Proxy => "proxy preset",
        }
    }

    /// The text of the one called `name`, if it is shipped.
    fn shipped(self, name: &str) -> Option<&'static str> {
        let file = SHIPPED.get_file(format!("{}{name}.toml", self.folder()))?;
        Some(file.contents_utf8().expect("shipped presets are text"))
    }

    /// Where those lie that are shipped.
    const fn folder(self) -> &'static str {
        match self {
            Self::Bearer => "",
            Self::Environment => "environments/",
            Self::Proxy => "proxy/",
        }
    }
}

/// A named set of parameters.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// One line on what it is.
    pub title: String,
    /// The file as it is written.
    pub text: String,
    /// The parameters, in the order of the file.
    pub parameters: Vec<Parameter>,
    /// The table of the parameters.
    pub(crate) content: Node,
}

/// One parameter of a preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Dotted path below `bearer`, `conditions` or `proxy`.
    pub key: String,
    /// Its value, as TOML.
    pub value: String,
    /// Where it comes from: a study and table, a specification and clause, or the reason of a
    /// choice.
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
    /// The preset called `name`, of any kind: one that is shipped, or a user's own file.
    pub fn load(name: &str, folder: &Path, origin: &Origin) -> Result<Self, ScenarioError> {
        let shipped = Kind::ALL.into_iter().find(|kind| kind.shipped(name).is_some());
        if let Some(kind) = shipped {
            return Self::load_kind(kind, name, folder, origin);
        }
        let others = [Kind::Environment, Kind::Proxy].into_iter();
        let found = others.filter_map(|kind| Self::load_kind(kind, name, folder, origin).ok()).next();
        // Errors refer to a bearer, the most common kind.
        found.map_or_else(|| Self::load_kind(Kind::Bearer, name, folder, origin), Ok)
    }

    /// The preset called `name` of this kind.
    pub(crate) fn load_kind(kind: Kind, name: &str, folder: &Path, origin: &Origin) -> Result<Self, ScenarioError> {
        let common = COMMON_NAMES.iter().find(|(common, _)| kind == Kind::Bearer && common.eq_ignore_ascii_case(name));
        let name = common.map_or(name, |(_, preset)| preset);
        if let Some(text) = kind.shipped(name) {
            return Self::parse(kind, text, &format!("{} {name}", kind.word()));
        }
        let wrong = |message: String| ScenarioError::new(message, origin.clone(), "");
        if !is_path(name) {
            let names = Self::names(kind);
            let common = COMMON_NAMES.iter().filter(|_| kind == Kind::Bearer).map(|(common, _)| *common);
            let known = names.iter().map(String::as_str).chain(common);
            let error = wrong(format!("there is no {} `{name}`", kind.word()));
            // Names of other tools contain that of a technology, such as "Slow 3G" of DevTools.
            let contained = COMMON_NAMES.iter().map(|(common, _)| *common).find(|common| {
                kind == Kind::Bearer
                    && name.split(|c: char| !c.is_alphanumeric()).any(|word| common.eq_ignore_ascii_case(word))
            });
            let of_kind = nearest(name, known).or(contained).map(|name| format!("`{name}`"));
            let of_other = || {
                let others = Kind::ALL.into_iter().filter(|other| kind == Kind::Bearer && *other != kind);
                let similar = |other: Kind| {
                    let names = Self::names(other);
                    Some(format!("the {} `{}`", other.word(), nearest(name, names.iter().map(String::as_str))?))
                };
                others.filter_map(similar).next()
            };
            let meant = of_kind.or_else(of_other).map_or_else(String::new, |name| format!("did you mean {name}? "));
            return Err(match kind {
                Kind::Bearer if Kind::Environment.shipped(name).is_some() => {
                    error.help(format!("that is an environment: write `bearer.conditions.environment = \"{name}\"`"))
                }
                Kind::Bearer if Kind::Proxy.shipped(name).is_some() => {
                    error.help(format!("that is a proxy: write `proxy.preset = \"{name}\"`"))
                }
                Kind::Proxy => {
                    error.help(format!("{meant}known here: {}; the path of a file works, too", names.join(", ")))
                }
                _ => error.help(format!("{meant}`airpath presets list` shows all; the path of a file works, too")),
            });
        }
        Self::parse(kind, &read_file(kind, name, folder, origin)?, name)
    }

    /// The names of all of a kind that are shipped, sorted.
    pub fn names(kind: Kind) -> Vec<String> {
        let folder = kind.folder();
        let files = match kind {
            Kind::Bearer => SHIPPED.files(),
            _ => SHIPPED.get_dir(folder.trim_end_matches('/')).expect("every kind is shipped").files(),
        };
        let name = |path: &Path| Some(path.to_str()?.strip_prefix(folder)?.strip_suffix(".toml")?.to_owned());
        let mut names: Vec<String> = files.filter_map(|file| name(file.path())).collect();
        names.sort();
        names
    }

    /// All that are shipped, by kind and name.
    pub fn shipped() -> Vec<Self> {
        let load = |kind: Kind, name: &String| {
            Self::load_kind(kind, name, Path::new(""), &Origin::Default).expect("a test reads every shipped preset")
        };
        Kind::ALL
            .into_iter()
            .flat_map(|kind| Self::names(kind).into_iter().map(move |name| load(kind, &name)))
            .collect()
    }

    fn parse(kind: Kind, text: &str, file: &str) -> Result<Self, ScenarioError> {
        let mut node = Node::parse(text, file)?;
        let is_scenario = node.get("flow").is_some() || node.get("fixed").is_some();
        let missing = |key| {
            let origin = Origin::File(file.to_owned());
            if is_scenario {
                return ScenarioError::new("this is a scenario, not a preset", origin, "")
                    .help(format!("`airpath run {file}` runs it"));
            }
            ScenarioError::new("this table is missing", origin, key)
                .help("`airpath presets show gprs-4+1` prints a preset, to copy and change")
        };
        if let Some(base) = named_base(kind, &node).filter(|_| !is_scenario) {
            return Err(base_error(kind, base));
        }
        let content = node.take(kind.table()).ok_or_else(|| missing(kind.table()))?;
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
        flatten(&content.to_value(), "", &mut |key, value| {
            let source = sources.get(key).and_then(toml::Value::as_str).map(str::to_owned);
            parameters.push(Parameter { key: key.to_owned(), value: value.to_string(), source });
        });
        Ok(Self { name: head.name, title: head.title, text: text.to_owned(), parameters, content, kind })
    }
}

/// Refuses a preset `file` that was given in place of a scenario.
pub(crate) fn refuse(node: &Node, file: &str) -> Result<(), ScenarioError> {
    let kind = Kind::ALL.into_iter().find(|kind| node.get(kind.table()).is_some());
    let Some(kind) = kind.filter(|_| node.get("source").is_some()) else { return Ok(()) };
    let option = match kind {
        Kind::Bearer => "--set bearer.preset=",
        Kind::Environment => "--set bearer.conditions.environment=",
        Kind::Proxy => "--proxy ",
    };
    Err(ScenarioError::new("this is a preset, not a scenario", Origin::File(file.to_owned()), "")
        .help(format!("`airpath run lte {option}{file}` uses it")))
}

/// The name of another preset in a preset file, if there is one. The table of a proxy may name a
/// shipped one.
fn named_base(kind: Kind, node: &Node) -> Option<&Node> {
    let table = node.get(kind.table());
    match kind {
        Kind::Bearer => {
            let short_form = table.filter(|table| table.as_str().is_some());
            node.get("preset").or_else(|| node.at("bearer.preset")).or(short_form)
        }
        Kind::Environment => node.at("conditions.environment"),
        Kind::Proxy => None,
    }
}

/// The error of a preset file that names another preset.
fn base_error(kind: Kind, base: &Node) -> ScenarioError {
    let name = base.as_str().unwrap_or("NAME");
    let key = match kind {
        Kind::Environment => "bearer.conditions.environment",
        _ => "bearer.preset",
    };
    ScenarioError::new("a preset file cannot name another preset", base.origin().clone(), "").help(format!(
        "copy the values that `airpath presets show {name} --format toml` prints; or write `{key} = \"{name}\"` in \
         the scenario, and the keys that differ beside it"
    ))
}

/// Whether `name` is the path of a file.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || name.ends_with(".toml")
}

/// The text of a user's own file of this kind; `origin` is where its path was written.
pub(crate) fn read_file(kind: Kind, name: &str, folder: &Path, origin: &Origin) -> Result<String, ScenarioError> {
    let path = folder.join(name);
    std::fs::read_to_string(&path).map_err(|error| {
        let message = format!("the {} file `{}` cannot be read: {error}", kind.word(), path.display());
        ScenarioError::new(message, origin.clone(), "").help("check the path and its permissions")
    })
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
            assert!(preset.kind.shipped(&preset.name).is_some(), "{} is named as its file", preset.name);
            for parameter in preset.parameters.iter().filter(|parameter| parameter.key != "model") {
                assert!(parameter.source.is_some(), "{}: {} has no source", preset.name, parameter.key);
            }
        }
    }

    #[test]
    fn a_typo_in_a_name_is_helped() {
        let error = Preset::load("hs-dsch-348", Path::new(""), &Origin::Default).expect_err("no such preset");
        assert!(error.to_string().contains("did you mean `hs-dsch-3"), "{error}");
        let environment = Preset::load("driving", Path::new(""), &Origin::Default).expect("an environment");
        assert_eq!(environment.kind, Kind::Environment);
        let error =
            Preset::load_kind(Kind::Bearer, "driving", Path::new(""), &Origin::Default).expect_err("an environment");
        assert!(error.to_string().contains("bearer.conditions.environment"), "{error}");
        let error = Preset::load("drivng", Path::new(""), &Origin::Default).expect_err("no such preset");
        assert!(error.to_string().contains("did you mean the environment `driving`?"), "{error}");
        let error = Preset::load("gsmm", Path::new(""), &Origin::Default).expect_err("no such preset");
        assert!(error.to_string().contains("did you mean `gsm`?"), "{error}");
        let helped = [("Slow 3G", "3g"), ("fast-4g", "4g"), ("lte-20", "lte-20mhz"), ("lte10", "lte-10mhz")];
        for (wrong, meant) in helped {
            let error = Preset::load(wrong, Path::new(""), &Origin::Default).expect_err("no such preset");
            assert!(error.to_string().contains(&format!("did you mean `{meant}`?")), "{error}");
        }
        for (common, preset) in COMMON_NAMES {
            let found = Preset::load(common, Path::new(""), &Origin::Default).expect("a common name");
            assert_eq!(found.name, preset);
        }
        let error = Preset::load_kind(Kind::Bearer, "i-tcp", Path::new(""), &Origin::Default).expect_err("a proxy");
        assert!(error.to_string().contains("proxy.preset"), "{error}");
        let scenario = "format = 1\n[bearer]\nmodel = \"wired\"\n[[flow]]\nkind = \"ping\"";
        let error = Preset::parse(Kind::Bearer, scenario, "s.toml").expect_err("a scenario");
        assert!(error.to_string().contains("a scenario, not a preset; `airpath run s.toml`"), "{error}");
        let base = "format = 1\nname = \"mine\"\ntitle = \"Mine\"\n";
        for (kind, text, line) in [
            (Kind::Bearer, "bearer.preset = \"gprs\"\nbearer.cell.slots = 2\n[source]", 4),
            (Kind::Bearer, "preset = \"gprs\"\n[bearer]\ncell.slots = 2", 4),
            (Kind::Bearer, "\nbearer = \"gprs\"", 5),
            (Kind::Environment, "[conditions]\nenvironment = \"indoor\"\n[source]", 5),
        ] {
            let error = Preset::parse(kind, &format!("{base}{text}"), "p.toml").expect_err("a base").to_string();
            assert!(
                error.starts_with(&format!("p.toml:{line}: a preset file cannot name another preset; ")),
                "{error}"
            );
            assert!(error.contains("`airpath presets show") && error.contains("beside it"), "{error}");
        }
        let error = Preset::load("./none.toml", Path::new("nowhere"), &Origin::Default).expect_err("no such file");
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
}
