//! Shares of blocks in error at which a direction changes its coding scheme.

use std::fmt;

use airpath_core::Probability;
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// One share for all steps between neighbouring schemes, or one for each, from the most robust on.
/// Written `"10 %"` or `["10 %", "5 %"]`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Shares {
    /// The same for each step.
    All(Probability),
    /// One for each.
    Each(Vec<Probability>),
}

impl Shares {
    /// That of the step between the schemes `step` and `step` + 1.
    pub fn at(&self, step: usize) -> f64 {
        match self {
            Self::All(share) => share.get(),
            Self::Each(shares) => shares[step].get(),
        }
    }

    /// Whether there is one for each of this number of steps.
    pub const fn fits(&self, steps: usize) -> bool {
        match self {
            Self::All(_) => true,
            Self::Each(shares) => shares.len() == steps,
        }
    }
}

impl<'de> Deserialize<'de> for Shares {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrSeveral)
    }
}

struct OneOrSeveral;

impl<'de> Visitor<'de> for OneOrSeveral {
    type Value = Shares;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a share such as \"10 %\", or a list of them")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Shares, E> {
        Probability::deserialize(text.into_deserializer()).map(Shares::All)
    }

    fn visit_f64<E: serde::de::Error>(self, share: f64) -> Result<Shares, E> {
        Probability::deserialize(share.into_deserializer()).map(Shares::All)
    }

    fn visit_i64<E: serde::de::Error>(self, share: i64) -> Result<Shares, E> {
        Probability::deserialize(share.into_deserializer()).map(Shares::All)
    }

    fn visit_u64<E: serde::de::Error>(self, share: u64) -> Result<Shares, E> {
        Probability::deserialize(share.into_deserializer()).map(Shares::All)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, shares: A) -> Result<Shares, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(shares)).map(Shares::Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Table {
        shares: Shares,
    }

    fn read(text: &str) -> Result<Shares, toml::de::Error> {
        toml::from_str(&format!("shares = {text}")).map(|table: Table| table.shares)
    }

    #[test]
    fn one_or_several() {
        let one = read("\"10 %\"").expect("a share");
        assert_eq!((one.at(0), one.at(7), one.fits(3)), (0.1, 0.1, true));
        assert_eq!((read("0.1").as_ref(), read("1").map(|all| all.at(0))), (Ok(&one), Ok(1.0)));
        let two = read("[\"10 %\", 0.05]").expect("two shares");
        assert_eq!((two.at(0), two.at(1), two.fits(2), two.fits(3)), (0.1, 0.05, true, false));
        for wrong in ["true", "\"110 %\"", "[\"much\"]"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
