//! Link adaptation: which scheme a direction uses, by the C/I that was measured, by the share of
//! blocks in error, or by both.
//!
//! The mobile averages C/I and reports it with its bitmaps; the network counts the blocks that
//! these report in error (3GPP TS 45.008 §10.2.3, TS 44.060 §9.1.8). So a scheme changes when the
//! network learns something, not before. What is repeated keeps its scheme with GPRS (TS 44.060
//! §8.1.1), and its family with EGPRS.

use airpath_core::{Decibel, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coding_scheme::CodingScheme;
use super::shares::Shares;
use crate::gsm::gprs::ConfigError;

/// Nominal blocks in a second, for averages.
const BLOCKS_PER_SECOND: f64 = 50.0;

/// How the scheme of a direction is chosen: by `ci`, `errors` or both, which then must both allow a
/// scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adaptation {
    /// The schemes to choose from, from the most robust to the fastest.
    pub schemes: Vec<CodingScheme>,
    /// By C/I.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci: Option<ByRatio>,
    /// By the share of blocks in error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<ByErrors>,
}

/// By C/I.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByRatio {
    /// The C/I at which the second scheme is taken, the third, …
    pub thresholds: Vec<Decibel>,
    /// By how much C/I must lie below a threshold before the scheme is left again.
    pub hysteresis: Decibel,
    /// The time constant of the average.
    pub averaging: Span,
}

/// By the share of blocks in error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByErrors {
    /// From this share on the next more robust scheme is taken,
    pub above: Shares,
    /// up to this one the next faster.
    pub below: Shares,
    /// The number of blocks of the average.
    pub blocks: u32,
    /// A faster scheme is taken only so long after the last share that was not below, and after the
    /// last change.
    #[serde(default)]
    pub hold: Span,
}

impl Adaptation {
    /// Whether it makes sense in a direction that begins with `initial`.
    pub fn check(&self, initial: CodingScheme, table: &str) -> Result<(), ConfigError> {
        let wrong =
            |key: &str, problem| Err(ConfigError::Adaptation { key: format!("{table}.adaptation.{key}"), problem });
        if !self.schemes.is_sorted_by(|a, b| a < b) {
            return wrong("schemes", "give the schemes from the most robust to the fastest, each once");
        }
        if !self.schemes.contains(&initial) {
            return wrong("schemes", "the direction's `scheme`, with which a mobile begins, must be one of them");
        }
        if self.schemes.iter().any(|scheme| scheme.is_egprs() != initial.is_egprs()) {
            return wrong("schemes", "all must be of one kind: `cs-…` for GPRS, `mcs-…` for EGPRS");
        }
        if self.ci.is_none() && self.errors.is_none() {
            return wrong("schemes", "give the criterion of the choice: `ci`, `errors` or both");
        }
        if let Some(ci) = &self.ci {
            if ci.thresholds.len() + 1 != self.schemes.len() || !ci.thresholds.is_sorted() {
                return wrong("ci.thresholds", "give one for each scheme but the first, rising");
            }
            if ci.hysteresis.get() < 0.0 {
                return wrong("ci.hysteresis", "this must not be negative");
            }
        }
        let Some(errors) = &self.errors else { return Ok(()) };
        let steps = self.schemes.len() - 1;
        for (shares, key) in [(&errors.above, "errors.above"), (&errors.below, "errors.below")] {
            if !shares.fits(steps) {
                return wrong(key, "give one share for all schemes, or one for each but the first");
            }
        }
        if (0..steps).any(|step| errors.below.at(step) >= errors.above.at(step)) {
            return wrong("errors.below", "this must lie below `above`");
        }
        if errors.blocks == 0 { wrong("errors.blocks", "this must be above zero") } else { Ok(()) }
    }
}

/// The link adaptation of one direction of a mobile.
#[derive(Clone, Debug)]
pub struct Adapter {
    config: Adaptation,
    /// The weight of a new value in the average of C/I.
    weight: f64,
    average: Option<f64>,
    /// What C/I allows, and what the errors do.
    by_ratio: usize,
    by_errors: usize,
    sent: u32,
    errored: u32,
    /// Blocks of time since the share of errors was not low, or the scheme was changed for it.
    low_for: u64,
    /// How many it takes.
    hold: u64,
}

impl Adapter {
    /// An adapter that has measured nothing.
    pub fn new(config: &Adaptation, initial: CodingScheme) -> Self {
        let first = config.schemes.iter().position(|scheme| *scheme == initial).expect("it was checked");
        let last = config.schemes.len() - 1;
        let constant = config.ci.as_ref().map_or(0.0, |ci| ci.averaging.as_secs_f64());
        Self {
            weight: if constant > 0.0 { 1.0 - libm::exp(-1.0 / (constant * BLOCKS_PER_SECOND)) } else { 1.0 },
            average: None,
            by_ratio: if config.ci.is_some() { first } else { last },
            by_errors: if config.errors.is_some() { first } else { last },
            sent: 0,
            errored: 0,
            low_for: 0,
            hold: config.errors.as_ref().map_or(0, |errors| (errors.hold.as_secs_f64() * BLOCKS_PER_SECOND) as u64),
            config: config.clone(),
        }
    }

    /// C/I was measured, once a block of time.
    #[inline]
    pub fn measure(&mut self, ratio: f64) {
        self.low_for += 1;
        let average = self.average.get_or_insert(ratio);
        *average += self.weight * (ratio - *average);
    }

    /// A block was sent.
    #[inline]
    pub fn count(&mut self, received: bool) {
        self.sent += 1;
        self.errored += u32::from(!received);
    }

    /// Chooses the scheme from now on. `downlink.rs` and `uplink.rs` call it when an Ack/Nack has
    /// brought the measurements to the network.
    pub fn decide(&mut self) -> CodingScheme {
        if let (Some(ci), Some(average)) = (&self.config.ci, self.average) {
            let threshold = |place: usize| ci.thresholds[place].get();
            while self.by_ratio < ci.thresholds.len() && average >= threshold(self.by_ratio) {
                self.by_ratio += 1;
            }
            while self.by_ratio > 0 && average < threshold(self.by_ratio - 1) - ci.hysteresis.get() {
                self.by_ratio -= 1;
            }
        }
        if let Some(errors) = &self.config.errors
            && self.sent >= errors.blocks
        {
            let share = f64::from(self.errored) / f64::from(self.sent);
            let now = self.by_errors.min(self.by_ratio);
            let fastest = self.config.schemes.len() - 1;
            let is_low = now == fastest || share <= errors.below.at(now);
            self.by_errors = if now > 0 && share >= errors.above.at(now - 1) {
                now - 1
            } else if is_low && self.low_for >= self.hold {
                (now + 1).min(fastest)
            } else {
                now
            };
            if !is_low || self.by_errors != now {
                self.low_for = 0;
            }
            (self.sent, self.errored) = (0, 0);
        }
        self.config.schemes[self.by_ratio.min(self.by_errors)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(text: &str) -> Adapter {
        let config: Adaptation = toml::from_str(text).expect("an adaptation");
        config.check(CodingScheme::Cs2, "downlink").expect("sound");
        Adapter::new(&config, CodingScheme::Cs2)
    }

    #[test]
    fn by_ratio_with_hysteresis() {
        let mut adapter = adapter(
            r#"
            schemes = ["cs-1", "cs-2", "cs-3"]
            ci = { thresholds = ["8 dB", "15 dB"], hysteresis = "2 dB", averaging = "0 s" }
            "#,
        );
        assert_eq!(adapter.decide(), CodingScheme::Cs2, "nothing was measured");
        let mut at = |ratio| {
            adapter.measure(ratio);
            adapter.decide().number()
        };
        assert_eq!([at(15.0), at(13.5), at(12.9), at(6.0), at(5.9), at(7.9), at(30.0)], [3, 3, 2, 2, 1, 1, 3]);
    }

    #[test]
    fn by_errors_step_by_step() {
        let mut adapter =
            adapter("schemes = [\"cs-1\", \"cs-2\", \"cs-3\"]\nerrors = { above = 0.2, below = 0.05, blocks = 10 }");
        let mut after = |errored| {
            (0..10).for_each(|block| adapter.count(block >= errored));
            adapter.decide().number()
        };
        assert_eq!([after(1), after(0), after(0), after(3), after(9), after(9), after(0)], [2, 3, 3, 2, 1, 1, 2]);
    }

    #[test]
    fn each_step_may_have_shares_of_its_own() {
        let text = "schemes = [\"cs-1\", \"cs-2\", \"cs-3\"]\n\
                    errors = { above = [0.4, 0.2], below = [0.1, 0.0], blocks = 10 }";
        let mut adapter = adapter(text);
        let mut after = |errored| {
            (0..10).for_each(|block| adapter.count(block >= errored));
            adapter.decide().number()
        };
        assert_eq!([after(1), after(0), after(1), after(2), after(3), after(4), after(1)], [2, 3, 3, 2, 2, 1, 2]);
        let config: Adaptation = toml::from_str(&text.replace("[0.4, 0.2]", "[0.4]")).expect("an adaptation");
        assert!(config.check(CodingScheme::Cs2, "downlink").is_err(), "there are two steps");
    }

    #[test]
    fn errors_that_are_few_again_are_waited_for() {
        let mut adapter = adapter(
            "schemes = [\"cs-1\", \"cs-2\", \"cs-3\"]\n\
             errors = { above = 0.33, below = 0.1, blocks = 10, hold = \"1 s\" }",
        );
        let mut after = |errored, times: u32| {
            (0..times).for_each(|_| adapter.measure(20.0));
            (0..10).for_each(|block| adapter.count(block >= errored));
            adapter.decide().number()
        };
        // 50 blocks of time: two in ten are not few, and restart the wait; so does each change
        // upwards.
        assert_eq!(
            [after(0, 40), after(2, 40), after(0, 49), after(0, 1), after(0, 49), after(4, 1)],
            [2, 2, 2, 3, 3, 2]
        );
    }

    #[test]
    fn the_average_lags() {
        let text = r#"
            schemes = ["cs-1", "cs-2"]
            ci = { thresholds = ["8 dB"], hysteresis = "0 dB", averaging = "1 s" }
        "#;
        let mut adapter = adapter(text);
        (0..200).for_each(|_| adapter.measure(20.0));
        // From 20 to 8 dB towards 2 dB: ln(18/6) time constants, 55 blocks.
        let blocks = (0..200).take_while(|_| {
            adapter.measure(2.0);
            adapter.decide() == CodingScheme::Cs2
        });
        assert_eq!(blocks.count(), 54);
    }
}
