//! The bearer of a scenario: its model with its parameters, and the objects made from them.

use std::path::{Path, PathBuf};

use airpath_core::{Seed, Span};
use airpath_link::Bearer;
use airpath_radio::model::{AnyModel, Entry};
use airpath_radio::{ModelError, Models, conditions};
use serde::{Deserialize, Serialize, Serializer};

use crate::Mobile;
use crate::document::{Node, join};
use crate::environment;
use crate::error::{Origin, ScenarioError, did_you_mean};
use crate::layers;
use crate::model_keys;
use crate::preset::{Kind, Preset};

/// A bearer's model and parameters.
#[derive(Clone, Debug)]
pub struct BearerConfig {
    parameters: Box<dyn AnyModel>,
    which: Which,
}

/// One of the bearers of a mobile: it has an interface on each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// `[bearer]`.
    #[default]
    First,
    /// `[second_bearer]`.
    Second,
}

impl Which {
    /// Its table in a scenario.
    pub const fn table(self) -> &'static str {
        match self {
            Self::First => "bearer",
            Self::Second => "second_bearer",
        }
    }

    /// The key `key` of its table.
    fn key(self, key: &str) -> String {
        join(self.table(), key)
    }

    /// What the names of its components begin with.
    const fn prefix(self) -> &'static str {
        match self {
            Self::First => "",
            Self::Second => "second-",
        }
    }
}

/// The bearer objects of a scenario.
pub struct Cells {
    /// Each with its name.
    pub bearers: Vec<(String, Box<dyn Bearer>)>,
    /// The index of each user's bearer.
    pub of_user: Vec<usize>,
}

impl BearerConfig {
    /// Reads the table of a bearer: one of `models` with all its parameters, or a preset and what
    /// differs from it. Returns the resolved table, too: errors that only building finds name its
    /// origins.
    pub(crate) fn read(
        which: Which,
        mut node: Node,
        folder: &Path,
        models: &Models,
    ) -> Result<(Self, Node), ScenarioError> {
        let given = node.take("conditions");
        let mut base = Node::table(node.origin().clone());
        if let Some(preset_node) = node.take("preset") {
            let name: String = preset_node.read(&which.key("preset"))?;
            let preset =
                Preset::load_kind(Kind::Bearer, &name, folder, preset_node.origin()).map_err(|mut error| {
                    error.field.get_or_insert_with(|| which.key("preset"));
                    error
                })?;
            base = preset.content;
            refuse_other_model(which, &node, &base, &name, preset_node.origin())?;
        }
        let Some(model) = node.take("model").or_else(|| base.take("model")) else {
            return Err(ScenarioError::new("this key is missing", node.origin().clone(), which.key("preset"))
                .help("name a preset (`airpath presets list` shows them), or give a `model` and all its parameters"));
        };
        base.take("model");
        let entry = find(which, &model, models)?;
        let suggest = |error| model_keys::suggest(which.table(), entry, error);
        expand(which, &mut base, entry).map_err(suggest)?;
        expand(which, &mut node, entry).map_err(suggest)?;
        let schema = entry.schema();
        layers::leave_out(&mut base, &mut node, schema.as_value());
        layers::change_mode(&mut base, &node, schema.as_value());
        base.overlay(node);
        let preset = base.take("conditions");
        if let Some(given) = given.or_else(|| preset.as_ref().map(|preset| Node::table(preset.origin().clone()))) {
            let fading = environment::Fading::new(entry, models);
            let at = which.key("conditions");
            base.insert("conditions", environment::resolve(given, preset, folder, &at, &fading).map_err(suggest)?);
        }
        let parameters = base.read_with(which.table(), |value| entry.read(value)).map_err(suggest)?;
        let mut config = Self { parameters, which };
        for file in config.files_mut() {
            *file = folder.join(&*file);
        }
        config.parameters.prepare().map_err(|error| {
            let error = which.refuse(error.as_ref());
            ScenarioError { origin: layers::origin_of(&base, which.field_below(&error), &error.message), ..error }
        })?;
        Ok((config, base))
    }

    /// The radio conditions of its mobiles, if the model has any.
    pub(crate) fn conditions(&mut self) -> Option<&mut conditions::Config> {
        self.parameters.conditions()
    }

    /// The shortest period in which it transmits, if it has any.
    pub fn transmission_period(&self) -> Option<Span> {
        self.parameters.transmission_period()
    }

    /// What the `fading` of radio conditions means to it; `models` has its model.
    pub(crate) fn fading(&self, models: &Models) -> environment::Fading {
        environment::Fading::new(models.get(self.parameters.name()).expect("it was read as one of them"), models)
    }

    /// Whether one bearer has all mobiles, rather than each its own.
    pub(crate) fn is_shared(&self) -> bool {
        self.parameters.is_shared()
    }

    /// The classes of mobiles that it has.
    pub(crate) fn classes(&self) -> Vec<String> {
        self.parameters.classes()
    }

    /// Where its recorded links and radio conditions lie.
    pub(crate) fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        self.parameters.files_mut()
    }

    /// Which bearer of a mobile it is.
    pub const fn which(&self) -> Which {
        self.which
    }

    /// How many bearers this number of mobiles has.
    pub(crate) fn cells(&self, mobiles: usize) -> usize {
        if self.is_shared() { 1 } else { mobiles }
    }

    /// Makes the bearers for `mobiles`. Errors have no origin yet.
    pub(crate) fn build(&self, mobiles: &[Mobile], seed: Seed) -> Result<Cells, ScenarioError> {
        let which = self.which;
        let classes: Vec<Option<String>> = match which {
            Which::First => mobiles.iter().map(|mobile| mobile.class.clone()).collect(),
            // Interfaces on the second bearer are the users after those on the first, and a shared
            // bearer has all users. Users without packets cost it nothing.
            Which::Second if self.is_shared() => vec![None; 2 * mobiles.len()],
            Which::Second => vec![None; mobiles.len()],
        };
        let build = |classes: &[Option<String>], name: String| {
            let bearer = self.parameters.build(classes, seed, &name).map_err(|error| which.refuse(error.as_ref()))?;
            Ok((name, bearer))
        };
        let prefix = which.prefix();
        if self.is_shared() {
            return Ok(Cells {
                bearers: vec![build(&classes, format!("{prefix}cell"))?],
                of_user: vec![0; mobiles.len()],
            });
        }
        let own = |(mobile, class): (&Mobile, &Option<String>)| {
            build(std::slice::from_ref(class), format!("{prefix}bearer-{}", mobile.name))
        };
        let bearers = mobiles.iter().zip(&classes).map(own).collect::<Result<_, ScenarioError>>()?;
        Ok(Cells { bearers, of_user: (0..mobiles.len()).collect() })
    }
}

impl Serialize for BearerConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = self.parameters.to_value();
        table.insert("model".to_owned(), self.parameters.name().into());
        table.serialize(serializer)
    }
}

/// Rejects a preset whose model is not the `model` of the scenario: a resolved scenario, which is
/// what a replay reads, has the keys of its model.
fn refuse_other_model(
    which: Which,
    node: &Node,
    preset: &Node,
    name: &str,
    origin: &Origin,
) -> Result<(), ScenarioError> {
    let model = |node: &Node| node.get("model").and_then(Node::as_str).map(str::to_owned);
    let (Some(own), Some(other)) = (model(node), model(preset)) else { return Ok(()) };
    if own == other {
        return Ok(());
    }
    let message = format!("preset `{name}` has the model `{other}`, but this scenario has `model = \"{own}\"`");
    Err(ScenarioError::new(message, origin.clone(), which.key("preset")).help(format!(
        "name a preset of the model `{own}`, or run the original scenario with this preset: a resolved scenario, as \
         in a result folder, keeps its model"
    )))
}

impl Which {
    /// The error of a model as one of the scenario, without an origin.
    fn refuse(self, error: &dyn ModelError) -> ScenarioError {
        ScenarioError::new(error.to_string(), Origin::Default, self.key(&error.field()))
    }

    /// The dotted path of an error's field in the table of the bearer.
    pub(crate) fn field_below(self, error: &ScenarioError) -> &str {
        let field = error.field.as_deref().and_then(|field| field.strip_prefix(self.table()));
        field.and_then(|field| field.strip_prefix('.')).unwrap_or_default()
    }
}

/// The model that `model` names.
fn find<'a>(which: Which, model: &Node, models: &'a Models) -> Result<&'a Entry, ScenarioError> {
    let name: String = model.read(&which.key("model"))?;
    models.get(&name).ok_or_else(|| {
        let names: Vec<&str> = models.iter().map(|entry| entry.name).collect();
        let message = format!("there is no bearer model `{name}`");
        let help = match models.get_former(&name) {
            Some(entry) => format!("it is called `{}` now", entry.name),
            None => did_you_mean(&name, &names),
        };
        ScenarioError::new(message, model.origin().clone(), which.key("model")).help(help)
    })
}

/// Moves keys that stand right below the table of the bearer into the table for which the model
/// declares them short. A key that belongs to neither is an error.
fn expand(which: Which, node: &mut Node, entry: &Entry) -> Result<(), ScenarioError> {
    let own = entry.keys(None);
    let unknown: Vec<String> = node.keys().filter(|key| !own.iter().any(|it| it == key)).map(str::to_owned).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let Some(table) = entry.shorthand else { return Err(unknown_key(which, node, &unknown[0], &own, &[])) };
    let of_table = entry.keys(Some(table));
    for key in unknown {
        if !of_table.contains(&key) {
            return Err(unknown_key(which, node, &key, &own, &of_table));
        }
        let value = node.take(&key).expect("it is one of the keys");
        let mut moved = Node::table(value.origin().clone());
        moved.insert(&key, value);
        match node.take(table) {
            Some(mut given) => {
                given.overlay(moved);
                node.insert(table, given);
            }
            None => node.insert(table, moved),
        }
    }
    Ok(())
}

fn unknown_key(which: Which, node: &Node, key: &str, own: &[String], of_table: &[String]) -> ScenarioError {
    let known: Vec<&str> =
        ["preset", "model"].into_iter().chain(own.iter().chain(of_table).map(String::as_str)).collect();
    node.unknown_key(which.table(), key, &known)
}
