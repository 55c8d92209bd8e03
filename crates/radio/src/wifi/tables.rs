//! Data rates of 802.11n (HT, IEEE 802.11-2020 clause 19) and 802.11ac (VHT, clause 21).

use airpath_core::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Frames that one Block Ack acknowledges, and the window of the receiver (IEEE 802.11-2020
/// §10.25.6).
pub const BLOCK_ACK_WINDOW: usize = 64;

/// The amendment that the access point and all stations follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Standard {
    /// High throughput.
    #[serde(rename = "802.11n")]
    N,
    /// Very high throughput.
    #[serde(rename = "802.11ac")]
    Ac,
}

/// Bandwidth of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Serialize, Deserialize, JsonSchema)]
pub enum Bandwidth {
    /// 20 MHz.
    #[serde(rename = "20 MHz")]
    Mhz20,
    /// 40 MHz.
    #[serde(rename = "40 MHz")]
    Mhz40,
    /// 80 MHz, 802.11ac only.
    #[serde(rename = "80 MHz")]
    Mhz80,
    /// 160 MHz, 802.11ac only.
    #[serde(rename = "160 MHz")]
    Mhz160,
}

/// Guard interval of an OFDM symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GuardInterval {
    /// The short one.
    #[serde(rename = "400 ns")]
    Short,
    /// The long one.
    #[serde(rename = "800 ns")]
    Long,
}

/// Bits of a subcarrier and code rate by MCS: tables 19-27 to 19-30 for MCS 0 to 7 of one stream,
/// clause 21.5 for MCS 8 and 9.
const SCHEMES: [(u64, u64, u64); 10] =
    [(1, 1, 2), (2, 1, 2), (2, 3, 4), (4, 1, 2), (4, 3, 4), (6, 2, 3), (6, 3, 4), (6, 5, 6), (8, 3, 4), (8, 5, 6)];

impl Standard {
    /// The highest MCS of one spatial stream.
    pub const fn highest_mcs(self) -> u8 {
        match self {
            Self::N => 7,
            Self::Ac => 9,
        }
    }

    /// The widest channel.
    pub const fn widest(self) -> Bandwidth {
        match self {
            Self::N => Bandwidth::Mhz40,
            Self::Ac => Bandwidth::Mhz160,
        }
    }

    /// The longest time of a PPDU, aPPDUMaxTime (IEEE 802.11-2020 §19.4.4 and §21.4.4), and what is
    /// expected in place of a longer one.
    pub const fn longest_ppdu(self) -> (Span, &'static str) {
        match self {
            Self::N => (Span::from_millis(10), "above 0 and at most 10 ms, the longest PPDU of 802.11n"),
            Self::Ac => (Span::from_micros(5484), "above 0 and at most 5.484 ms, the longest PPDU of 802.11ac"),
        }
    }

    /// The longest A-MPDU in bytes: maximum A-MPDU length exponents 3 (802.11n) and 7 (802.11ac).
    pub const fn longest_a_mpdu(self) -> u64 {
        match self {
            Self::N => 65_535,
            Self::Ac => 1_048_575,
        }
    }
}

impl Bandwidth {
    /// Subcarriers with data.
    pub const fn data_subcarriers(self) -> u64 {
        match self {
            Self::Mhz20 => 52,
            Self::Mhz40 => 108,
            Self::Mhz80 => 234,
            Self::Mhz160 => 468,
        }
    }
}

impl GuardInterval {
    /// Length of a symbol with it.
    pub const fn symbol(self) -> Span {
        match self {
            Self::Short => Span::from_nanos(3_600),
            Self::Long => Span::from_nanos(4_000),
        }
    }
}

/// Data bits of an OFDM symbol (N_DBPS); `None` for a combination that the standard excludes.
pub fn data_bits_per_symbol(bandwidth: Bandwidth, streams: u8, mcs: u8) -> Option<u64> {
    let (bits, numerator, denominator) = *SCHEMES.get(usize::from(mcs))?;
    // Clause 21.5 excludes two combinations of three streams, because bits do not fit into the
    // encoders, and all whose symbols would not have a whole number of bits.
    if matches!((bandwidth, streams, mcs), (Bandwidth::Mhz80, 3, 6) | (Bandwidth::Mhz160, 3, 9)) {
        return None;
    }
    let coded = bandwidth.data_subcarriers() * bits * u64::from(streams) * numerator;
    coded.is_multiple_of(denominator).then_some(coded / denominator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_rates_are_those_of_the_standard() {
        // Mbit/s: 802.11-2020 tables 19-27, 19-28, 19-32 and 21-30, 21-38, 21-46, 21-54.
        let published = [
            (Bandwidth::Mhz20, 1, 0, GuardInterval::Long, 6.5),
            (Bandwidth::Mhz20, 1, 7, GuardInterval::Long, 65.0),
            (Bandwidth::Mhz20, 2, 7, GuardInterval::Short, 144.444),
            (Bandwidth::Mhz40, 1, 7, GuardInterval::Long, 135.0),
            (Bandwidth::Mhz40, 2, 7, GuardInterval::Short, 300.0),
            (Bandwidth::Mhz40, 4, 7, GuardInterval::Short, 600.0),
            (Bandwidth::Mhz80, 1, 9, GuardInterval::Long, 390.0),
            (Bandwidth::Mhz80, 2, 7, GuardInterval::Long, 585.0),
            (Bandwidth::Mhz80, 2, 9, GuardInterval::Short, 866.667),
            (Bandwidth::Mhz160, 2, 9, GuardInterval::Short, 1733.333),
        ];
        for (bandwidth, streams, mcs, guard, rate) in published {
            let bits = data_bits_per_symbol(bandwidth, streams, mcs).expect("a combination of the standard");
            let found = bits as f64 / guard.symbol().as_secs_f64() / 1e6;
            assert!((found - rate).abs() < 0.001, "{bandwidth:?} {streams} {mcs}: {found} of {rate}");
        }
        let excluded = [(Bandwidth::Mhz20, 1, 9), (Bandwidth::Mhz20, 2, 9), (Bandwidth::Mhz80, 3, 6)];
        for (bandwidth, streams, mcs) in excluded {
            assert_eq!(data_bits_per_symbol(bandwidth, streams, mcs), None, "{bandwidth:?} {streams} {mcs}");
        }
        assert_eq!(data_bits_per_symbol(Bandwidth::Mhz20, 3, 9), Some(1040));
    }
}
