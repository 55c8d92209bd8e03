//! Tables of NB-IoT: transport block sizes, repetitions and delays. Their data are in
//! `crates/radio/data/3gpp`, where a README has the source of each.

use std::sync::LazyLock;

use airpath_core::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::csv::{rows, value};

/// A category of mobiles (TS 36.306 §4.1C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Release 13: blocks of at most 680 bits downlink and 1000 bits uplink.
    Nb1,
    /// Release 14: blocks of at most 2536 bits.
    Nb2,
}

/// A transport block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// I_TBS, 0 to 13. In a carrier of LTE (in-band) the NPDSCH has at most 10.
    pub i_tbs: u8,
    /// Subframes of NPDSCH (N_SF) or resource units of NPUSCH (N_RU).
    pub units: u32,
    /// Bits, without its CRC.
    pub bits: u32,
    /// The first category that has it.
    pub category: Category,
}

/// The blocks of the downlink, by I_TBS and subframes (TS 36.213 Table 16.4.1.5.1-1).
pub fn downlink_blocks() -> &'static [Block] {
    &DOWNLINK
}

/// The blocks of the uplink, by I_TBS and resource units (TS 36.213 Table 16.5.1.2-2).
pub fn uplink_blocks() -> &'static [Block] {
    &UPLINK
}

static DOWNLINK: LazyLock<Vec<Block>> = LazyLock::new(|| blocks(include_str!("../../data/3gpp/nbiot_tbs_dl.csv")));
static UPLINK: LazyLock<Vec<Block>> = LazyLock::new(|| blocks(include_str!("../../data/3gpp/nbiot_tbs_ul.csv")));

fn blocks(csv: &'static str) -> Vec<Block> {
    let row = |[i_tbs, _, units, bits, release]: [&str; 5]| Block {
        i_tbs: value(i_tbs),
        units: value(units),
        bits: value(bits),
        category: if release == "13" { Category::Nb1 } else { Category::Nb2 },
    };
    rows(csv).map(row).collect()
}

/// The tones of NPUSCH format 1 (TS 36.211 Table 10.1.2.3-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Tones {
    /// One of 3.75 kHz.
    #[serde(rename = "one-of-3.75-khz")]
    Single3k75,
    /// One of 15 kHz.
    #[serde(rename = "one")]
    Single15k,
    /// Three of 15 kHz.
    #[serde(rename = "three")]
    Three,
    /// Six of 15 kHz.
    #[serde(rename = "six")]
    Six,
    /// All twelve of 15 kHz.
    #[serde(rename = "twelve")]
    Twelve,
}

impl Tones {
    /// All, from the longest resource unit to the shortest.
    pub const ALL: [Self; 5] = [Self::Single3k75, Self::Single15k, Self::Three, Self::Six, Self::Twelve];

    /// The duration of a resource unit.
    pub fn resource_unit(self) -> Span {
        Span::from_millis(TIMING.resource_units[self as usize])
    }
}

/// Lists of numbers. The control information or the configuration selects one of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Repetitions of NPDSCH (TS 36.213 Table 16.4.1.3-2).
    DownlinkRepetitions,
    /// Repetitions of NPUSCH (TS 36.213 Table 16.5.1.1-3).
    UplinkRepetitions,
    /// k0 of NPDSCH in subframes where R_max of NPDCCH is below 128 (TS 36.213 Table 16.4.1-1).
    DownlinkDelay,
    /// The same where R_max is 128 or more.
    DownlinkDelayOfLongSearchSpace,
    /// k0 of NPUSCH in subframes (TS 36.213 Table 16.5.1-1).
    UplinkDelay,
    /// k0 of the acknowledgement in subframes, with 15 kHz (TS 36.213 Table 16.4.2-2).
    AcknowledgementDelay,
    /// Period of NPRACH in ms (TS 36.331, NPRACH-ConfigSIB-NB).
    RandomAccessPeriod,
    /// Repetitions of a preamble of NPRACH (TS 36.331, NPRACH-ConfigSIB-NB).
    PreambleRepetitions,
}

/// The numbers in the order of their indices.
pub fn choices(of: Choice) -> &'static [u64] {
    &TIMING.choices[of as usize]
}

struct Timing {
    resource_units: [u64; 5],
    choices: [Vec<u64>; 8],
}

static TIMING: LazyLock<Timing> = LazyLock::new(|| {
    let column = |name: &str| {
        let all = rows(include_str!("../../data/3gpp/nbiot_timing.csv"));
        let column: Vec<u64> = all.filter(|row: &[&str; 5]| row[0] == name).map(|row| value(row[2])).collect();
        assert!(!column.is_empty(), "`{name}` in the table of NB-IoT timing");
        column
    };
    Timing {
        resource_units: ["single_tone_3_75khz", "single_tone_15khz", "3_tones", "6_tones", "12_tones"]
            .map(|tones| column(&format!("resource_unit_ms_{tones}"))[0]),
        choices: [
            "npdsch_repetitions",
            "npusch_repetitions",
            "npdsch_k0_rmax_below_128",
            "npdsch_k0_rmax_from_128",
            "npusch_k0",
            "ack_k0_15khz",
            "nprach_period",
            "nprach_repetitions",
        ]
        .map(column),
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(blocks: &[Block], category: Category) -> Option<u32> {
        blocks.iter().filter(|block| block.category <= category).map(|block| block.bits).max()
    }

    #[test]
    fn categories_have_their_largest_blocks() {
        let (down, up) = (downlink_blocks(), uplink_blocks());
        assert_eq!((down.len(), up.len()), (112, 112));
        assert_eq!((largest(down, Category::Nb1), largest(up, Category::Nb1)), (Some(680), Some(1000)));
        assert_eq!((largest(down, Category::Nb2), largest(up, Category::Nb2)), (Some(2536), Some(2536)));
    }

    #[test]
    fn blocks_are_whole_bytes_and_grow() {
        for blocks in [downlink_blocks(), uplink_blocks()] {
            assert!(blocks.iter().all(|block| block.bits % 8 == 0));
            for pair in blocks.windows(2).filter(|pair| pair[0].i_tbs == pair[1].i_tbs) {
                assert!(pair[0].units < pair[1].units && pair[0].bits < pair[1].bits, "{pair:?}");
            }
        }
    }

    #[test]
    fn numbers_are_those_of_the_standard() {
        assert_eq!(Tones::ALL.map(|tones| tones.resource_unit().as_nanos() / 1_000_000), [32, 8, 4, 2, 1]);
        let ends = |of| {
            let all = choices(of);
            (all.len(), all[0], all[all.len() - 1])
        };
        assert_eq!(ends(Choice::DownlinkRepetitions), (16, 1, 2048));
        assert_eq!(ends(Choice::UplinkRepetitions), (8, 1, 128));
        assert_eq!(ends(Choice::DownlinkDelay), (8, 0, 128));
        assert_eq!(ends(Choice::DownlinkDelayOfLongSearchSpace), (8, 0, 1024));
        assert_eq!(choices(Choice::UplinkDelay), [8, 16, 32, 64]);
        assert_eq!(choices(Choice::AcknowledgementDelay), [13, 15, 17, 18]);
        assert_eq!(ends(Choice::RandomAccessPeriod), (8, 40, 2560));
        assert_eq!(ends(Choice::PreambleRepetitions), (8, 1, 128));
    }
}
