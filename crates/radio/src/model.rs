//! The interface of a bearer model.
//!
//! A model is a folder with the type of its parameters, which implements [`Model`], and one line in
//! [`Models::shipped`](crate::Models::shipped).

use std::fmt::Debug;
use std::path::PathBuf;

use airpath_core::{Seed, Span};
use airpath_link::Bearer;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::conditions;
use crate::error::ModelError;

/// The parameters of a bearer model: the `[bearer]` table of a scenario without `preset` and
/// `model`.
pub trait Model: Clone + Debug + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The name that `bearer.model` gives.
    const NAME: &'static str;
    /// One line on what it is.
    const TITLE: &'static str;
    /// Names that it had before: an error for one of them gives the new name.
    const FORMER_NAMES: &'static [&'static str] = &[];
    /// The table whose keys may stand right below `[bearer]`: with `downlink`, `bearer.bler` is
    /// short for `bearer.downlink.bler`. Keys of `[bearer]` itself take precedence.
    const SHORTHAND: Option<&'static str> = Some("downlink");
    /// Whether one bearer carries all mobiles. Otherwise each mobile has a bearer of its own.
    const SHARED: bool = true;
    /// Whether its errors depend on [`Conditions::profile`](conditions::Conditions::profile).
    /// Otherwise `conditions.fading` is an error, and that of an environment is left out.
    const FADING_PROFILES: bool = false;

    /// Why no bearer can be made of the parameters.
    type Error: ModelError;

    /// The radio conditions of its mobiles, if it has any.
    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        None
    }

    /// The classes of radio conditions that its mobiles can have; of most models none.
    fn classes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The shortest period in which it transmits: a TTI, a radio block, a frame. None without one.
    fn transmission_period(&self) -> Option<Span> {
        None
    }

    /// The files that the parameters name. The default: those of the radio conditions.
    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        self.conditions().into_iter().flat_map(conditions::Config::files_mut).collect()
    }

    /// Reads what is to be read only once for many bearers. Called after the paths of the files are
    /// resolved.
    ///
    /// # Errors
    /// If a file cannot be read, or if the parameters make no sense.
    fn prepare(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Makes an idle bearer called `name` for users 0 to `classes.len()` − 1; one user if it is not
    /// [`Self::SHARED`]. `classes` are their classes of radio conditions. Generator streams lie
    /// below `name`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, Self::Error>;
}

/// The parameters of any model: what [`Model`] gives without its type.
pub trait AnyModel: Debug + Send + Sync {
    /// [`Model::NAME`].
    fn name(&self) -> &'static str;
    /// [`Model::SHARED`].
    fn is_shared(&self) -> bool;
    /// [`Model::FADING_PROFILES`].
    fn has_fading_profiles(&self) -> bool;
    /// [`Model::conditions`].
    fn conditions(&mut self) -> Option<&mut conditions::Config>;
    /// [`Model::classes`].
    fn classes(&self) -> Vec<String>;
    /// [`Model::transmission_period`].
    fn transmission_period(&self) -> Option<Span>;
    /// [`Model::files_mut`].
    fn files_mut(&mut self) -> Vec<&mut PathBuf>;
    /// [`Model::prepare`].
    ///
    /// # Errors
    /// As there.
    fn prepare(&mut self) -> Result<(), Box<dyn ModelError>>;
    /// [`Model::build`].
    ///
    /// # Errors
    /// As there.
    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str)
    -> Result<Box<dyn Bearer>, Box<dyn ModelError>>;
    /// The parameters as a TOML table.
    fn to_value(&self) -> toml::Table;
    /// A copy.
    fn boxed_clone(&self) -> Box<dyn AnyModel>;
}

impl<M: Model> AnyModel for M {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn is_shared(&self) -> bool {
        M::SHARED
    }

    fn has_fading_profiles(&self) -> bool {
        M::FADING_PROFILES
    }

    fn conditions(&mut self) -> Option<&mut conditions::Config> {
        Model::conditions(self)
    }

    fn classes(&self) -> Vec<String> {
        Model::classes(self)
    }

    fn transmission_period(&self) -> Option<Span> {
        Model::transmission_period(self)
    }

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        Model::files_mut(self)
    }

    fn prepare(&mut self) -> Result<(), Box<dyn ModelError>> {
        Model::prepare(self).map_err(|error| Box::new(error) as Box<dyn ModelError>)
    }

    fn build(
        &self,
        classes: &[Option<String>],
        seed: Seed,
        name: &str,
    ) -> Result<Box<dyn Bearer>, Box<dyn ModelError>> {
        Model::build(self, classes, seed, name).map_err(|error| Box::new(error) as Box<dyn ModelError>)
    }

    fn to_value(&self) -> toml::Table {
        toml::Table::try_from(self).expect("parameters are tables and values")
    }

    fn boxed_clone(&self) -> Box<dyn AnyModel> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AnyModel> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// Why a value is not what is read from it.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ReadError {
    /// The path of the offending key.
    pub path: serde_path_to_error::Path,
    /// What is wrong with its value.
    pub message: String,
}

/// Reads a value as a `T`.
///
/// The deserialiser is a trait object: the compiler makes one copy of the code of each type, not
/// one for each kind of access that TOML has.
///
/// # Errors
/// If a key is missing or unknown, or a value has the wrong type.
pub fn read<T: DeserializeOwned>(value: toml::Value) -> Result<T, ReadError> {
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    let result = erased_serde::deserialize(&mut <dyn erased_serde::Deserializer>::erase(tracked));
    result.map_err(|error| {
        // The text of an error of `toml` ends with the path, which `track` has completely.
        let text = error.to_string();
        let message = text.split_once("\n\nin `").map_or(text.as_str(), |(message, _)| message).trim_end();
        ReadError { path: track.path(), message: message.to_owned() }
    })
}

/// One model of a list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// [`Model::NAME`].
    pub name: &'static str,
    /// [`Model::TITLE`].
    pub title: &'static str,
    /// [`Model::FORMER_NAMES`].
    pub former_names: &'static [&'static str],
    /// [`Model::SHORTHAND`].
    pub shorthand: Option<&'static str>,
    /// [`Model::FADING_PROFILES`].
    pub has_fading_profiles: bool,
    read: fn(toml::Value) -> Result<Box<dyn AnyModel>, ReadError>,
    schema: fn() -> Schema,
}

impl Entry {
    /// The entry of a model.
    pub const fn of<M: Model>() -> Self {
        Self {
            name: M::NAME,
            title: M::TITLE,
            former_names: M::FORMER_NAMES,
            shorthand: M::SHORTHAND,
            has_fading_profiles: M::FADING_PROFILES,
            read: |value| Ok(Box::new(read::<M>(value)?)),
            schema: || {
                let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
                settings.into_generator().into_root_schema_for::<M>()
            },
        }
    }

    /// Reads parameters.
    ///
    /// # Errors
    /// If a key is missing or unknown, or a value has the wrong type.
    pub fn read(&self, value: toml::Value) -> Result<Box<dyn AnyModel>, ReadError> {
        (self.read)(value)
    }

    /// The JSON schema of the parameters: keys, types, defaults and the documentation of each.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }

    /// The keys of the parameters in alphabetical order, or those of their table `table`; none if
    /// there is no such table.
    pub fn keys(&self, table: Option<&str>) -> Vec<String> {
        let schema = self.schema();
        let properties = schema.get("properties");
        let properties = match table {
            None => properties,
            Some(table) => properties.and_then(|it| it.get(table)).and_then(|it| it.get("properties")),
        };
        let mut keys: Vec<String> =
            properties.and_then(|it| it.as_object()).into_iter().flat_map(|it| it.keys().cloned()).collect();
        keys.sort_unstable();
        keys
    }
}
