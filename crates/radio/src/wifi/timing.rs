//! The time of an exchange, and of the contention before it, in a channel of 5 GHz without legacy
//! stations.

use airpath_core::Span;

use super::config::Config;
use super::tables::{Standard, data_bits_per_symbol};

/// SIFS and slot time of OFDM in 20 MHz (IEEE 802.11-2020 table 17-21).
const SIFS: Span = Span::from_micros(16);
const SLOT: Span = Span::from_micros(9);
/// AIFS of best effort: SIFS and three slots (§9.4.2.28, default EDCA parameter set).
const AIFS: Span = Span::from_micros(16 + 3 * 9);
/// The smallest contention window, in slots (the same).
const CONTENTION_WINDOW: u32 = 15;
/// A Block Ack with a bitmap of 64 frames: 32 bytes at 24 Mbit/s, three symbols after a preamble of
/// 20 µs (§17.4.3).
const BLOCK_ACK: Span = Span::from_micros(20 + 3 * 4);

/// Bytes of a frame beside the IP packet: QoS data header (26), CCMP (16), LLC and SNAP (8), frame
/// check sequence (4).
const FRAME_OVERHEAD: u64 = 26 + 16 + 8 + 4;
/// The delimiter in front of each frame of an A-MPDU, which is padded to a multiple of it
/// (§9.7.1).
const DELIMITER: u64 = 4;
/// Bits of a PPDU beside the A-MPDU: SERVICE field and tail of one encoder.
const SERVICE_AND_TAIL: u64 = 16 + 6;
/// The length of a PPDU is a multiple of a long symbol, whatever the guard interval (§19.4.3).
const LONG_SYMBOL: Span = Span::from_micros(4);

/// The times of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    preamble: Span,
    symbol: Span,
    bits_per_symbol: u64,
    /// Bytes of an A-MPDU at most.
    pub most_bytes: u64,
    /// Frames in it at most.
    pub most_frames: usize,
}

impl Timing {
    /// The times of a configuration that was checked.
    pub fn new(config: &Config) -> Self {
        let channel = &config.channel;
        let bits_per_symbol = data_bits_per_symbol(channel.bandwidth, channel.streams, channel.mcs)
            .expect("a combination of the standard: it was checked");
        // Legacy preamble and signal field: 20 µs. HT: HT-SIG 8, HT-STF 4 (§19.3.2). VHT: VHT-SIG-A
        // 8, VHT-STF 4, VHT-SIG-B 4 (§21.3.4). A training field of 4 µs for each stream, for three
        // streams four (table 19-13).
        let fields = match channel.standard {
            Standard::N => 20 + 12,
            Standard::Ac => 20 + 16,
        };
        let training = [1, 2, 4, 4][usize::from(channel.streams) - 1];
        let preamble = Span::from_micros(fields + 4 * training);
        let symbol = channel.guard_interval.symbol();
        let symbols = config.aggregation.time.saturating_sub(preamble).as_nanos() / symbol.as_nanos();
        let in_time = (symbols * bits_per_symbol).saturating_sub(SERVICE_AND_TAIL) / 8;
        Self {
            preamble,
            symbol,
            bits_per_symbol,
            most_bytes: in_time.min(channel.standard.longest_a_mpdu()),
            most_frames: config.aggregation.frames as usize,
        }
    }

    /// Bytes of an IP packet of `size` bytes in an A-MPDU.
    pub const fn frame(size: u32) -> u64 {
        (DELIMITER + FRAME_OVERHEAD + size as u64).next_multiple_of(DELIMITER)
    }

    /// The time of an A-MPDU of this number of bytes.
    pub const fn a_mpdu(&self, bytes: u64) -> Span {
        let symbols = (8 * bytes + SERVICE_AND_TAIL).div_ceil(self.bits_per_symbol);
        let data = Span::from_nanos(symbols * self.symbol.as_nanos());
        Span::from_nanos(self.preamble.as_nanos() + data.round_up_to(LONG_SYMBOL).as_nanos())
    }

    /// From the end of an A-MPDU to the end of its exchange.
    pub fn acknowledgement() -> Span {
        SIFS + BLOCK_ACK
    }

    /// The mean time from the end of an exchange to the next one, for which this number of stations
    /// contend: AIFS and the smallest of their backoffs, each of 0 to 15 slots.
    pub fn access(contenders: u64) -> Span {
        let values = f64::from(CONTENTION_WINDOW + 1);
        // The mean of a whole number is the sum of the probabilities that it is at least 1, 2, …
        let slots: f64 =
            (1..=CONTENTION_WINDOW).map(|least| power((values - f64::from(least)) / values, contenders)).sum();
        AIFS + Span::from_secs_f64(slots * SLOT.as_secs_f64())
    }
}

/// A power by multiplications: the same on all platforms.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            product *= base;
        }
        base *= base;
        exponent /= 2;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_backoff_of_one_station_is_half_the_window() {
        assert_eq!(Timing::access(1), AIFS + Span::from_nanos(67_500));
        // Of two uniform numbers 0 to 15 the smaller one has a mean of 15 · 31 / (6 · 16).
        assert_eq!(Timing::access(2), AIFS + Span::from_secs_f64(9e-6 * 15.0 * 31.0 / 96.0));
        assert!(Timing::access(1000) < AIFS + Span::from_nanos(1));
    }
}
