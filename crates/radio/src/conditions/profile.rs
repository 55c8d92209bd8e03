//! Propagation conditions by name.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

/// How signal and interferer fade while a block is sent: the propagation conditions of TS 45.005
/// annex C at 900 MHz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// No fading within a block: all fading is part of the C/I.
    Static,
    /// Typical urban at 3 km/h without frequency hopping: someone who walks or sits.
    #[default]
    Tu3,
    /// Typical urban at 3 km/h with ideal frequency hopping: each burst fades by itself.
    Tu3Hopping,
    /// Typical urban at 50 km/h without frequency hopping: someone who drives.
    Tu50,
}

/// Reads a table by profile. Errors in the value of a key that is read into an enumeration would
/// not have the key.
pub(crate) fn by_profile<'de, D, V>(deserializer: D) -> Result<BTreeMap<Profile, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    let by_name = BTreeMap::<String, V>::deserialize(deserializer)?;
    let read = |(name, value): (String, V)| Ok((Profile::deserialize(name.into_deserializer())?, value));
    by_name.into_iter().map(read).collect()
}

impl Profile {
    /// In the order of the tables' columns.
    pub(crate) const ALL: [Self; 4] = [Self::Static, Self::Tu3, Self::Tu3Hopping, Self::Tu50];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Tu3 => "tu3",
            Self::Tu3Hopping => "tu3-hopping",
            Self::Tu50 => "tu50",
        }
    }
}
