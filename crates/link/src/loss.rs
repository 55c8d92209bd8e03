//! Packet loss: independent, or in bursts.

use std::borrow::Cow;
use std::fmt;

use airpath_core::{Probability, RandomStream, Seed};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which packets a link loses. Written as a probability, `0.01` or `"1 %"`, for independent losses
/// (Bernoulli), or as a table for burst losses:
///
/// ```toml
/// loss = { good_to_bad = 0.002, bad_to_good = 0.2 }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each packet is lost with the same probability.
    Bernoulli(Probability),
    /// In bursts.
    GilbertElliott(GilbertElliott),
}

impl Default for Loss {
    /// No losses.
    fn default() -> Self {
        Self::Bernoulli(Probability::NEVER)
    }
}

/// Burst losses by a Markov chain of two states that takes a step with every packet (Gilbert 1960,
/// Elliott 1963). The first state is drawn from the stationary distribution.
///
/// With g = `good_to_bad` and b = `bad_to_good`, the mean stay in the bad state is 1/b packets and
/// the share of packets in it is g/(g+b), which with the defaults below is the mean loss. These are
/// p, r, 1−h and 1−k of netem's `loss gemodel`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability that the good state ends after a packet.
    pub good_to_bad: Probability,
    /// Probability that the bad state ends after a packet.
    pub bad_to_good: Probability,
    /// Probability of loss in the bad state. Default: 1, as in Gilbert's simplest form.
    #[serde(default = "always")]
    pub loss_in_bad: Probability,
    /// Probability of loss in the good state. Default: 0.
    #[serde(default)]
    pub loss_in_good: Probability,
}

const fn always() -> Probability {
    Probability::ALWAYS
}

/// An invalid loss model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LossError {
    /// The chain never leaves the bad state.
    #[error("with a `bad_to_good` of 0 the bad state never ends: give the inverse of a burst's mean length in packets")]
    Absorbing,
}

impl GilbertElliott {
    /// The stationary probability of the bad state.
    pub fn share_of_bad(&self) -> Probability {
        let (enter, leave) = (self.good_to_bad.get(), self.bad_to_good.get());
        let share = if enter == 0.0 { 0.0 } else { enter / (enter + leave) };
        Probability::new(share).expect("both are positive, so the quotient lies from 0 to 1")
    }
}

impl Loss {
    /// Checks the parameters together.
    pub fn check(&self) -> Result<(), LossError> {
        match self {
            Self::GilbertElliott(model) if model.bad_to_good == Probability::NEVER => Err(LossError::Absorbing),
            _ => Ok(()),
        }
    }

    /// The mean loss probability.
    pub fn mean(&self) -> Probability {
        match self {
            Self::Bernoulli(p) => *p,
            Self::GilbertElliott(model) => {
                let bad = model.share_of_bad().get();
                let mean = bad * model.loss_in_bad.get() + (1.0 - bad) * model.loss_in_good.get();
                Probability::new(mean.min(1.0)).expect("a mean of two probabilities")
            }
        }
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bernoulli(p) => p.serialize(serializer),
            Self::GilbertElliott(model) => model.serialize(serializer),
        }
    }
}

/// The forms of a [`Loss`] in a scenario.
const FORMS: &str = "a probability such as 0.01 or \"1 %\", or a table with `good_to_bad` and `bad_to_good`";

impl JsonSchema for Loss {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["number", "string", "object"], "title": FORMS })
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrTable;
        impl<'de> Visitor<'de> for NumberOrTable {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(FORMS)
            }
            fn visit_f64<E: Error>(self, p: f64) -> Result<Loss, E> {
                Probability::deserialize(serde::de::value::F64Deserializer::new(p)).map(Loss::Bernoulli)
            }
            fn visit_i64<E: Error>(self, p: i64) -> Result<Loss, E> {
                self.visit_f64(p as f64)
            }
            fn visit_u64<E: Error>(self, p: u64) -> Result<Loss, E> {
                self.visit_f64(p as f64)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Loss, E> {
                text.parse().map(Loss::Bernoulli).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
                let loss = Loss::GilbertElliott(GilbertElliott::deserialize(MapAccessDeserializer::new(map))?);
                loss.check().map_err(A::Error::custom)?;
                Ok(loss)
            }
        }
        deserializer.deserialize_any(NumberOrTable)
    }
}

/// The loss decisions, packet by packet.
#[derive(Clone, Debug)]
pub struct LossProcess {
    model: Loss,
    stream: RandomStream,
    /// State of the Gilbert–Elliott chain.
    bad: bool,
}

impl LossProcess {
    /// The process of `model`, which draws from the stream `path` of `seed`.
    pub fn new(model: Loss, seed: Seed, path: &str) -> Self {
        let mut process = Self { model, stream: seed.stream(path), bad: false };
        process.set(model);
        process
    }

    /// Sets the model; the stream of draws continues.
    pub fn set(&mut self, model: Loss) {
        self.model = model;
        self.bad = match &model {
            Loss::Bernoulli(_) => false,
            Loss::GilbertElliott(model) => self.stream.chance(model.share_of_bad()),
        };
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn is_lost(&mut self) -> bool {
        match &self.model {
            Loss::Bernoulli(Probability::NEVER) => false,
            Loss::Bernoulli(p) => self.stream.chance(*p),
            Loss::GilbertElliott(model) => {
                let (loss, change) = match self.bad {
                    true => (model.loss_in_bad, model.bad_to_good),
                    false => (model.loss_in_good, model.good_to_bad),
                };
                let lost = self.stream.chance(loss);
                self.bad ^= self.stream.chance(change);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(p: f64) -> Probability {
        Probability::new(p).expect("a probability")
    }

    fn losses(model: Loss, packets: usize) -> Vec<bool> {
        let mut process = LossProcess::new(model, Seed::new(1), "loss");
        (0..packets).map(|_| process.is_lost()).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
    }

    #[test]
    fn bernoulli_keeps_to_its_probability() {
        // 100,000 packets at 3 %: standard deviation √(0.03·0.97/100,000) = 0.00054; five of them.
        let ours = share(&losses(Loss::Bernoulli(p(0.03)), 100_000));
        assert!((ours - 0.03).abs() < 0.0027, "{ours}");
        assert_eq!(share(&losses(Loss::default(), 1000)), 0.0);
        assert_eq!(share(&losses(Loss::Bernoulli(Probability::ALWAYS), 1000)), 1.0);
    }

    #[test]
    fn gilbert_elliott_keeps_to_its_mean_loss_and_burst_length() {
        const PACKETS: usize = 1_000_000;
        for (enter, leave) in [(0.002, 0.2), (0.01, 0.5), (0.05, 0.1)] {
            let model = Loss::GilbertElliott(GilbertElliott {
                good_to_bad: p(enter),
                bad_to_good: p(leave),
                loss_in_bad: Probability::ALWAYS,
                loss_in_good: Probability::NEVER,
            });
            let lost = losses(model, PACKETS);
            let bursts = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
            let (mean, length) = (share(&lost), lost.iter().filter(|lost| **lost).count() as f64 / bursts as f64);
            let expected = enter / (enter + leave);
            assert!((model.mean().get() - expected).abs() < 1e-12);
            // Losses are correlated: the chain's variance factor is (2 − g − b)/(g + b), so the
            // standard deviation of the share is √(π(1−π)/n·(2−g−b)/(g+b)); of the mean burst,
            // √((1−b)/bursts)/b.
            let factor = (2.0 - enter - leave) / (enter + leave);
            let deviation = (expected * (1.0 - expected) / PACKETS as f64 * factor).sqrt();
            assert!((mean - expected).abs() < 5.0 * deviation, "{mean}, expected {expected} ± {deviation}");
            let deviation = ((1.0 - leave) / bursts as f64).sqrt() / leave;
            assert!((length - 1.0 / leave).abs() < 5.0 * deviation, "{length}, expected {} ± {deviation}", 1.0 / leave);
        }
    }

    #[test]
    fn elliott_loses_in_both_states() {
        let model =
            GilbertElliott { good_to_bad: p(0.1), bad_to_good: p(0.3), loss_in_bad: p(0.5), loss_in_good: p(0.01) };
        let loss = Loss::GilbertElliott(model);
        assert!((loss.mean().get() - (0.25 * 0.5 + 0.75 * 0.01)).abs() < 1e-12);
        let ours = share(&losses(loss, 1_000_000));
        // √(0.1325·0.8675/10⁶) = 0.00034, and the chain's correlation adds to it: 0.0004·5.
        assert!((ours - loss.mean().get()).abs() < 0.003, "{ours}");
    }

    #[test]
    fn a_bad_state_without_end_is_refused() {
        let model = GilbertElliott {
            good_to_bad: p(0.1),
            bad_to_good: Probability::NEVER,
            loss_in_bad: Probability::ALWAYS,
            loss_in_good: Probability::NEVER,
        };
        assert_eq!(Loss::GilbertElliott(model).check(), Err(LossError::Absorbing));
    }
}
