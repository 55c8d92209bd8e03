//! C/I levels: the rate that each allows, and how often a user's channel has which.

use std::collections::BTreeMap;

use airpath_core::{Bitrate, RandomStream, Seed, Span};
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// C/I levels. The channel of each user is drawn anew in each TTI, independently of all others.
///
/// ```toml
/// [bearer.downlink.levels]
/// rates = ["120 kbit/s", "240 kbit/s", "360 kbit/s", "480 kbit/s", "640 kbit/s"]
/// rate_share = "per-user"
/// classes.a = [9, 60, 24, 5, 2]
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateShare {
    /// Of the cell: while it sends to a user at that level, it sends at this rate.
    Cell,
    /// Of one user when all users of the cell take turns: the cell sends at this rate times their
    /// number, whether they all have something to receive or not.
    PerUser,
}

impl Levels {
    /// How many PDUs of `pdu` bytes a TTI carries, by level, in a cell of `users`; level 0 does not
    /// exist and carries none.
    pub(crate) fn pdus_per_tti(&self, tti: Span, pdu: u32, users: usize) -> Result<Vec<u32>, ConfigError> {
        if self.rates.is_empty() || self.rates.len() > usize::from(u8::MAX) {
            return Err(ConfigError::LevelCount { given: self.rates.len() });
        }
        let share = match self.rate_share {
            RateShare::Cell => 1,
            RateShare::PerUser => users.max(1) as u64,
        };
        let mut pdus = vec![0];
        for (index, rate) in self.rates.iter().enumerate() {
            let bytes = rate.bytes_in(tti.saturating_mul(share)).get();
            let fit =
                u16::try_from(bytes / u64::from(pdu)).map_err(|_| ConfigError::LevelTooFast { level: index + 1 })?;
            if fit == 0 {
                return Err(ConfigError::LevelTooSlow { level: index + 1, bytes, pdu });
            }
            pdus.push(u32::from(fit));
        }
        Ok(pdus)
    }

    /// The channel of a user of `class`, which draws from the stream `path`.
    pub(crate) fn channel(&self, class: Option<&str>, seed: Seed, path: &str) -> Result<Channel, ConfigError> {
        let name = class.ok_or_else(|| ConfigError::NoClass { known: self.class_names() })?;
        let up_to = self
            .distribution(name)
            .ok_or_else(|| ConfigError::UnknownClass { class: name.to_owned(), known: self.class_names() })?;
        Ok(Channel { up_to, stream: seed.stream(path) })
    }

    /// Whether the weights of all classes make sense: any of them may be commanded later.
    pub(crate) fn check_classes(&self) -> Result<(), ConfigError> {
        let sound = |weights: &[f64]| {
            let total: f64 = weights.iter().sum();
            weights.len() == self.rates.len()
                && weights.iter().all(|weight| *weight >= 0.0)
                && total > 0.0
                && total.is_finite()
        };
        match self.classes.iter().find(|(_, weights)| !sound(weights)) {
            Some((class, _)) => Err(ConfigError::Weights { class: class.clone(), levels: self.rates.len() }),
            None => Ok(()),
        }
    }

    /// The names of the classes, for people.
    pub(crate) fn class_names(&self) -> String {
        self.classes.keys().cloned().collect::<Vec<_>>().join(", ")
    }

    /// The probability that the level of a user of `class` is at most 1, 2, …; `None` if there is no such class.
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
    /// Draws by this distribution from now on, from the same stream: the probability that the level is at most 1, 2, …
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
