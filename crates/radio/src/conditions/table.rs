//! C/I drawn from a table at intervals.

use airpath_core::{Decibel, Instant, Seed, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::indexed_random::IndexedRandom;
use crate::conditions::ConfigError;
use crate::error::ValueError;

/// Values of C/I and how often each comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// How long a value holds before the next is drawn, independently of it.
    pub hold: Span,
    /// The values.
    pub values: Vec<Decibel>,
    /// How often each comes, in any unit: the numbers are divided by their sum.
    pub weights: Vec<f64>,
}

impl Table {
    pub(super) fn process(&self, seed: Seed, path: &str) -> Result<Process, ConfigError> {
        if self.hold.is_zero() {
            return Err(ValueError::Zero { key: "conditions.table.hold".to_owned() }.into());
        }
        let total: f64 = self.weights.iter().sum();
        let sound = self.weights.len() == self.values.len()
            && self.weights.iter().all(|weight| *weight >= 0.0)
            && total > 0.0
            && total.is_finite();
        if !sound {
            return Err(ConfigError::TableWeights { values: self.values.len() });
        }
        let mut sum = 0.0;
        let up_to = self.weights.iter().map(|weight| {
            sum += weight / total;
            sum
        });
        Ok(Process {
            hold: self.hold,
            up_to: up_to.collect(),
            values: self.values.iter().map(|value| value.get()).collect(),
            random: IndexedRandom::new(seed, path),
        })
    }
}

/// The values that are drawn from a table.
#[derive(Clone, Debug)]
pub struct Process {
    hold: Span,
    /// The probability that it is the first value, one of the first two, …
    up_to: Vec<f64>,
    values: Vec<f64>,
    random: IndexedRandom,
}

impl Process {
    /// The value that holds at `now`.
    #[inline]
    pub fn at(&self, now: Instant) -> f64 {
        let draw = self.random.uniform(now.as_nanos() / self.hold.as_nanos());
        let index = self.up_to.iter().take_while(|up_to| draw >= **up_to).count();
        // Rounding may leave the last sum a little below 1.
        self.values[index.min(self.values.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_shares_of_the_table_and_hold() {
        let text = "hold = \"1 s\"\nvalues = [\"3 dB\", \"9 dB\"]\nweights = [1, 3]";
        let table: Table = toml::from_str(text).expect("a table");
        let process = table.process(Seed::new(1), "a").expect("sound");
        let high = (0..40_000).filter(|second| process.at(Instant::ZERO + Span::from_secs(*second)) == 9.0).count();
        // Standard deviation √(40000·0.75·0.25) ≈ 87: five of them.
        assert!((29_567..=30_433).contains(&high), "{high}");
        let within = |millis: u64| process.at(Instant::ZERO + Span::from_millis(7_000 + millis));
        assert!((0..1000).all(|millis| within(millis) == within(0)));
    }
}
