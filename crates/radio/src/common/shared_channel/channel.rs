//! C/I levels: the rate that each allows, and how often a user's channel has which.

use std::collections::BTreeMap;

use airpath_core::{Bitrate, RandomStream, Seed, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ModelError;

/// C/I levels. The channel of each user is drawn again in each TTI, independently of all others.
///
/// ```toml
/// [bearer.downlink.levels]
/// rates = ["120 kbit/s", "240 kbit/s", "360 kbit/s", "480 kbit/s", "640 kbit/s"]
/// rate_share = "per-user"
/// classes.a = [9, 60, 24, 5, 2]
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Levels {
    /// The rate at level 1, 2, …
    pub rates: Vec<Bitrate>,
    /// What these rates are the rates of.
    pub rate_share: RateShare,
    /// For each class of users, how often each level comes, in any unit: the numbers are divided by
    /// their sum. A class whose channel never changes has one number that is not zero.
    pub classes: BTreeMap<String, Vec<f64>>,
}

/// What a level's rate is the rate of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateShare {
    /// Of the cell: while it sends to a user at that level, it sends at this rate.
    Cell,
    /// Of one user when all users of the cell take turns: the cell sends at this rate times their
    /// number, whether they all have something to receive or not.
    PerUser,
}

/// C/I levels that make no sense, or a class that they do not have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LevelsError {
    /// No level, or too many.
    #[error("there are {given} levels: give 1 to 255 rates")]
    Count {
        /// How many there are.
        given: usize,
    },
    /// Not even one PDU fits into a TTI.
    #[error(
        "a TTI at level {level} carries {bytes} B, less than a PDU of {pdu} B: give a higher rate or a smaller `pdu`"
    )]
    TooSlow {
        /// The level, from 1.
        level: usize,
        /// What a TTI carries, in bytes.
        bytes: u64,
        /// The size of a PDU in bytes.
        pdu: u32,
    },
    /// More PDUs than can be counted.
    #[error("a TTI at level {level} carries more than 65535 PDUs: give a lower rate or a larger `pdu`")]
    TooFast {
        /// The level, from 1.
        level: usize,
    },
    /// Weights that do not fit the levels.
    #[error(
        "class `{class}` needs a weight for each of the {levels} levels: {levels} numbers, none negative, not all zero"
    )]
    Weights {
        /// The class.
        class: String,
        /// The number of levels.
        levels: usize,
    },
    /// A user without a class in a cell with classes.
    #[error("each mobile needs a class in this cell: one of {known}")]
    NoClass {
        /// The classes there are.
        known: String,
    },
    /// A class that is not there.
    #[error("there is no class `{class}` in this cell: its classes are {known}")]
    UnknownClass {
        /// The class.
        class: String,
        /// The classes there are.
        known: String,
    },
}

impl ModelError for LevelsError {
    fn field(&self) -> String {
        match self {
            Self::Count { .. } | Self::TooSlow { .. } | Self::TooFast { .. } => "downlink.levels.rates".to_owned(),
            Self::Weights { class, .. } => format!("downlink.levels.classes.{class}"),
            Self::NoClass { .. } | Self::UnknownClass { .. } => String::new(),
        }
    }
}

impl Levels {
    /// How many PDUs of `pdu` bytes a TTI carries, by level, in a cell of `users`; level 0 does not
    /// exist and carries none.
    pub(crate) fn pdus_per_tti(&self, tti: Span, pdu: u32, users: usize) -> Result<Vec<u32>, LevelsError> {
        if self.rates.is_empty() || self.rates.len() > usize::from(u8::MAX) {
            return Err(LevelsError::Count { given: self.rates.len() });
        }
        let share = match self.rate_share {
            RateShare::Cell => 1,
            RateShare::PerUser => users.max(1) as u64,
        };
        let mut pdus = vec![0];
        for (index, rate) in self.rates.iter().enumerate() {
            let bytes = rate.bytes_in(tti.saturating_mul(share)).get();
            let fit = u16::try_from(bytes / u64::from(pdu)).map_err(|_| LevelsError::TooFast { level: index + 1 })?;
            if fit == 0 {
                return Err(LevelsError::TooSlow { level: index + 1, bytes, pdu });
            }
            pdus.push(u32::from(fit));
        }
        Ok(pdus)
    }

    /// The channel of a user of `class`, which draws from the stream `path`.
    pub(crate) fn channel(&self, class: Option<&str>, seed: Seed, path: &str) -> Result<Channel, LevelsError> {
        let name = class.ok_or_else(|| LevelsError::NoClass { known: self.class_names() })?;
        let up_to = self
            .distribution(name)
            .ok_or_else(|| LevelsError::UnknownClass { class: name.to_owned(), known: self.class_names() })?;
        Ok(Channel { up_to, stream: seed.stream(path) })
    }

    /// Whether the weights of all classes make sense: any of them may be commanded later.
    pub(crate) fn check_classes(&self) -> Result<(), LevelsError> {
        let sound = |weights: &[f64]| {
            let total: f64 = weights.iter().sum();
            weights.len() == self.rates.len()
                && weights.iter().all(|weight| *weight >= 0.0)
                && total > 0.0
                && total.is_finite()
        };
        match self.classes.iter().find(|(_, weights)| !sound(weights)) {
            Some((class, _)) => Err(LevelsError::Weights { class: class.clone(), levels: self.rates.len() }),
            None => Ok(()),
        }
    }

    /// The names of the classes, for people.
    pub(crate) fn class_names(&self) -> String {
        self.classes.keys().cloned().collect::<Vec<_>>().join(", ")
    }

    /// The probability that the level of a user of `class` is at most 1, 2, …; `None` if there is
    /// no such class.
    pub(crate) fn distribution(&self, class: &str) -> Option<Vec<f64>> {
        let weights = self.classes.get(class)?;
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let up_to = weights.iter().map(|weight| {
            sum += weight;
            sum / total
        });
        Some(up_to.collect())
    }

    /// The same of a user that is always at `level`, from 1; `None` if there is no such level.
    pub(crate) fn always(&self, level: u8) -> Option<Vec<f64>> {
        let levels = 1..=self.rates.len();
        let up_to = levels.clone().map(|at_most| if at_most >= usize::from(level) { 1.0 } else { 0.0 });
        levels.contains(&usize::from(level)).then(|| up_to.collect())
    }
}

/// The channel of one user.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The probability that the level is at most 1, 2, …
    up_to: Vec<f64>,
    stream: RandomStream,
}

impl Channel {
    /// Draws by this distribution from now on, from the same stream: the probability that the level
    /// is at most 1, 2, …
    pub fn set(&mut self, up_to: Vec<f64>) {
        self.up_to = up_to;
    }

    /// The level in the next TTI, from 1.
    #[inline]
    pub fn draw(&mut self) -> u8 {
        let draw = self.stream.uniform();
        // The last is exactly 1, and a draw is below.
        let below = self.up_to.iter().take_while(|up_to| draw >= **up_to).count();
        below as u8 + 1
    }
}
