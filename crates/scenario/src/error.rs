//! What is wrong with a scenario: what, where, and what to do next.

use std::fmt;

/// Why a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// What is wrong.
    pub message: String,
    /// What to do next, where that is known.
    pub help: Option<String>,
    /// Where the offending value was written.
    pub origin: Origin,
    /// Dotted path of the offending key, such as `bearer.bler`.
    pub field: Option<String>,
}

/// Where a value was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// In a file or a preset, at this line, counted from 1.
    Line {
        /// Name of the file, as the user gave it.
        file: String,
        /// The line.
        line: usize,
    },
    /// In an argument: `override key=value`, or a change of a running link as JSON.
    Argument(String),
    /// Somewhere in this file, such as a key that is missing.
    File(String),
    /// Nowhere: it is a default.
    #[default]
    Default,
}

impl ScenarioError {
    /// An error about the value at `field`.
    pub fn new(message: impl Into<String>, origin: Origin, field: impl Into<String>) -> Self {
        let field = field.into();
        Self { message: message.into(), help: None, origin, field: (!field.is_empty()).then_some(field) }
    }

    /// The same, with what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The file that it is about, if it is about one.
    pub fn file(&self) -> Option<&str> {
        match &self.origin {
            Origin::Line { file, .. } | Origin::File(file) => Some(file),
            Origin::Argument(_) | Origin::Default => None,
        }
    }

    /// The line in that file, counted from 1.
    pub fn line(&self) -> Option<usize> {
        match self.origin {
            Origin::Line { line, .. } => Some(line),
            _ => None,
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Line { file, line } => write!(f, "{file}:{line}: ")?,
            Origin::File(file) => write!(f, "{file}: ")?,
            Origin::Argument(argument) => write!(f, "{argument}: ")?,
            Origin::Default => {}
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

/// Names of the kernel and of other tools, each with the path of the key in a scenario.
const NAMES_ELSEWHERE: [(&str, &str); 11] = [
    ("cc", "congestion.algorithm"),
    ("congestion_control", "congestion.algorithm"),
    ("congestion-control", "congestion.algorithm"),
    ("rate", "fixed.rate"),
    ("bandwidth", "fixed.rate"),
    ("loss", "fixed.loss"),
    ("delay", "fixed.delay"),
    ("latency", "fixed.delay"),
    ("rtt", "fixed.delay"),
    ("loss", "bler"),
    ("error_rate", "bler"),
];

/// The name in `known` that is most similar to `wrong`, or a path below one of them that other
/// tools call `wrong`.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let elsewhere = NAMES_ELSEWHERE
        .iter()
        .find(|(name, path)| *name == wrong && path.split('.').next().is_some_and(|key| known.contains(&key)));
    if let Some((_, path)) = elsewhere {
        return Some(path);
    }
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(wrong.len()) / 3 + 1)
        .min()
        .map(|(_, name)| name)
}

/// `did you mean …?` and what there is.
pub fn did_you_mean(wrong: &str, known: &[&str]) -> String {
    let all = known.join(", ");
    match nearest(wrong, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`? known here: {all}"),
        None => format!("known here: {all}"),
    }
}
