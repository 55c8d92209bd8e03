//! Known differences with their reasons: `differences.toml`.

use serde::Deserialize;

/// All known differences.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Differences {
    /// Captures with connections that only one program finds.
    pub unmatched: Vec<Unmatched>,
    /// Figures with a known relation to ours.
    pub difference: Vec<Difference>,
    /// Figures that are listed one by one.
    pub stated: Vec<Stated>,
}

/// A capture with connections that only one program finds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unmatched {
    /// The capture.
    pub capture: String,
    /// The reason.
    pub reason: String,
}

/// A way in which tcptrace's figures differ from ours.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// tcptrace's names, without the direction.
    pub columns: Vec<String>,
    /// The captures; all where it is left out.
    #[serde(default)]
    pub captures: Vec<String>,
    /// Whether only the expected outputs of tcptrace's own tests differ in this way.
    #[serde(default)]
    pub expected_outputs_only: bool,
    /// How the figures are related.
    pub relation: Relation,
    /// Why tcptrace is not right.
    pub reason: String,
    /// The packet that shows it: capture and frame.
    pub proof: (String, u64),
}

/// Figures of a capture that differ, with both values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// The capture.
    pub capture: String,
    /// Why tcptrace is not right.
    pub reason: String,
    /// The frame that shows it.
    pub proof: u64,
    /// A line for each: tcptrace's number of the connection, the direction, its column, our figure
    /// with as many places, theirs.
    pub figures: String,
}

/// Relation of tcptrace's figure to ours.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Theirs is one, for any value of ours.
    One,
    /// Theirs is one more.
    OneMore,
    /// Theirs is less by one or two.
    LittleLess,
    /// Theirs is more.
    More,
    /// Theirs is less.
    Less,
    /// Theirs is less by a thousandth at most.
    Nearly,
    /// Theirs is nothing.
    Nothing,
    /// Theirs is the result of tcptrace's method for the sent data: see `reckoning.rs`.
    Reckoned,
}

impl Relation {
    /// Whether it holds. `reckoned` is the result of tcptrace's method and its tolerance, if known.
    pub fn holds(self, ours: f64, theirs: f64, reckoned: Option<(f64, f64)>) -> bool {
        match self {
            Self::One => theirs == 1.0,
            // Means are cut to whole numbers.
            Self::OneMore => (theirs - 1.0 - ours).abs() < 1.0,
            Self::LittleLess => theirs < ours && ours - theirs < 3.0,
            Self::More => theirs > ours,
            Self::Less => theirs < ours,
            Self::Nearly => theirs <= ours && ours - theirs <= ours * 1e-3 + 0.1,
            Self::Nothing => theirs == 0.0,
            Self::Reckoned => reckoned.is_some_and(|(reckoned, within)| (theirs - reckoned).abs() <= within),
        }
    }
}

impl Differences {
    /// The differences in the file.
    pub fn known() -> Self {
        toml::from_str(include_str!("differences.toml")).expect("the file of differences is in order")
    }
}

impl Stated {
    /// The line for this figure.
    pub fn line(&self, figure: &str) -> Option<usize> {
        self.lines().position(|line| line.split_whitespace().eq(figure.split_whitespace()))
    }

    /// Its figures.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.figures.lines().filter(|line| !line.trim().is_empty())
    }
}
