//! Coding schemes: how much a radio block carries, and what may be sent again in another scheme.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A coding scheme of GPRS (CS) or EGPRS (MCS), from the most robust to the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "they are named as in the specification")]
pub enum CodingScheme {
    #[serde(rename = "cs-1")]
    Cs1,
    #[serde(rename = "cs-2")]
    Cs2,
    #[serde(rename = "cs-3")]
    Cs3,
    #[serde(rename = "cs-4")]
    Cs4,
    #[serde(rename = "mcs-1")]
    Mcs1,
    #[serde(rename = "mcs-2")]
    Mcs2,
    #[serde(rename = "mcs-3")]
    Mcs3,
    #[serde(rename = "mcs-4")]
    Mcs4,
    #[serde(rename = "mcs-5")]
    Mcs5,
    #[serde(rename = "mcs-6")]
    Mcs6,
    #[serde(rename = "mcs-7")]
    Mcs7,
    #[serde(rename = "mcs-8")]
    Mcs8,
    #[serde(rename = "mcs-9")]
    Mcs9,
}

use CodingScheme::{Cs1, Cs2, Cs3, Cs4, Mcs1, Mcs2, Mcs3, Mcs4, Mcs5, Mcs6, Mcs7, Mcs8, Mcs9};

impl CodingScheme {
    /// All schemes, in their order.
    pub const ALL: [Self; 13] = [Cs1, Cs2, Cs3, Cs4, Mcs1, Mcs2, Mcs3, Mcs4, Mcs5, Mcs6, Mcs7, Mcs8, Mcs9];

    /// The name under which it is written and logged.
    pub const fn name(self) -> &'static str {
        [
            "cs-1", "cs-2", "cs-3", "cs-4", "mcs-1", "mcs-2", "mcs-3", "mcs-4", "mcs-5", "mcs-6", "mcs-7", "mcs-8",
            "mcs-9",
        ][self as usize]
    }

    /// Its number, from 1, among those of GPRS or EGPRS.
    pub const fn number(self) -> u8 {
        if self.is_egprs() { self as u8 - Cs4 as u8 } else { self as u8 + 1 }
    }

    /// Whether it is one of EGPRS.
    pub const fn is_egprs(self) -> bool {
        self as u8 > Cs4 as u8
    }

    /// Octets of an RLC data block's data field: of what LLC gives, length indicators included
    /// (3GPP TS 44.060 §10.2.1 table 10.2.1 and §10.3a table 10.3a.1.1).
    pub const fn payload(self) -> u32 {
        [20, 30, 36, 50, 22, 28, 37, 44, 56, 74, 56, 68, 74][self as usize]
    }

    /// The scheme in which a block of this one is sent again when `current` is in force (3GPP TS
    /// 44.060 §8.1.1, table 8.1.1.1, with re-segmentation): with GPRS its own; with EGPRS one of
    /// its family, A (MCS-3, 6, 9, and 8 with padding), B (2, 5, 7) or C (1, 4). Where that has
    /// half the payload, the block takes two radio blocks.
    pub fn repeated_as(self, current: Self) -> Self {
        match self {
            Mcs9 | Mcs6 if current >= Mcs9 => Mcs9,
            Mcs8 if current >= Mcs8 => Mcs8,
            Mcs9 | Mcs8 | Mcs6 if current >= Mcs6 => Mcs6,
            Mcs9 | Mcs8 | Mcs6 => Mcs3,
            Mcs7 | Mcs5 if current >= Mcs7 => Mcs7,
            Mcs7 | Mcs5 if current >= Mcs5 => Mcs5,
            Mcs7 | Mcs5 => Mcs2,
            Mcs4 if current < Mcs4 => Mcs1,
            _ => self,
        }
    }

    /// RLC data blocks in a radio block.
    pub const fn blocks(self) -> u32 {
        if self as u8 >= Mcs7 as u8 { 2 } else { 1 }
    }
}

impl fmt::Display for CodingScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_have_the_rates_of_the_specification() {
        // Bits per second of RLC data in a timeslot: 50 blocks a second.
        let rates = CodingScheme::ALL.map(|scheme| scheme.payload() * scheme.blocks() * 8 * 50);
        let expected =
            [8_000, 12_000, 14_400, 20_000, 8_800, 11_200, 14_800, 17_600, 22_400, 29_600, 44_800, 54_400, 59_200];
        assert_eq!(rates, expected);
    }

    #[test]
    fn repetitions_keep_their_family() {
        for original in CodingScheme::ALL {
            for current in CodingScheme::ALL {
                let repeated = original.repeated_as(current);
                let fits = repeated.payload() >= original.payload();
                // 68 octets of MCS-8 are two of 34, padded to 37.
                assert!(fits || repeated.payload() * 2 >= original.payload(), "{original} as {repeated}");
                assert_eq!(repeated.is_egprs(), original.is_egprs());
            }
            assert_eq!(original.repeated_as(original), original);
        }
        assert_eq!(Mcs9.repeated_as(Mcs7), Mcs6);
        assert_eq!(Mcs6.repeated_as(Mcs5), Mcs3);
        assert_eq!(Mcs7.repeated_as(Mcs6), Mcs5);
        assert_eq!(Cs4.repeated_as(Cs1), Cs4);
    }

    #[test]
    fn names_are_written_as_they_are_read() {
        for scheme in CodingScheme::ALL {
            let text = format!("scheme = \"{scheme}\"");
            let table: std::collections::BTreeMap<String, CodingScheme> = toml::from_str(&text).expect("reads");
            assert_eq!(table["scheme"], scheme);
            assert!(scheme.name().ends_with(&scheme.number().to_string()));
        }
    }
}
