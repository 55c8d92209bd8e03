//! The error probability of a block without a decoder: the normal approximation of finite-length
//! coding, and an implementation gap.
//!
//! A code block of k bits in n symbols fails with P = Q((n·C − k + ½·log₂ n) / √(n·V)), where C and
//! V are [mean and variance](super::information) of the information of a symbol (Y. Polyanskiy, H.
//! V. Poor, S. Verdú, IEEE Trans. Inf. Theory 56(5), 2010, eq. 223, recalled). Real decoders need
//! some more: the ratio is reduced by a gap before.

use airpath_core::{Decibel, Probability};

use super::information::Information;
use super::segmentation::{CodeBlocks, Coding};
use super::{Format, Modulation};

/// A transport block in the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The modulation.
    pub modulation: Modulation,
    /// Bits of the transport block, without its CRC.
    pub bits: u32,
    /// Modulation symbols: resource elements, times layers.
    pub symbols: u32,
}

impl Block {
    /// A block with this format, in this many symbols.
    pub fn of(format: &Format, symbols: u32) -> Self {
        let bits = (format.efficiency() * f64::from(symbols)) as u32;
        Self { modulation: format.modulation, bits, symbols }
    }

    /// Bits by coded bits, without the CRC.
    pub fn code_rate(&self) -> f64 {
        f64::from(self.bits) / f64::from(self.symbols * self.modulation.bits())
    }

    pub(super) fn code_blocks(&self, coding: Coding) -> CodeBlocks {
        CodeBlocks::of(coding, self.bits, self.code_rate())
    }
}

/// A decoder: a code, and how much worse than the approximation it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decoder {
    /// The code.
    pub coding: Coding,
    /// The implementation gap, by which the signal-to-noise ratio is reduced.
    pub gap: Decibel,
}

impl Decoder {
    /// A decoder with the gap of its code: 1.5 dB for turbo codes, the mean distance of the
    /// approximation to the 10 % points of the Vienna LTE simulator (standard deviation 0.33 dB
    /// over the 15 CQIs; the points are recalled), 1.0 dB for LDPC codes (recalled).
    pub fn new(coding: Coding) -> Self {
        let gap = match coding {
            Coding::Turbo => 1.5,
            Coding::Ldpc => 1.0,
        };
        Self { coding, gap: Decibel::new(gap).expect("finite") }
    }

    /// The probability that a block fails when it is sent once, at a signal-to-noise ratio for each
    /// symbol. One look-up and one error function; no allocation.
    #[inline]
    pub fn errors(&self, block: &Block, snr: Decibel) -> Probability {
        let blocks = block.code_blocks(self.coding);
        let symbols = f64::from(block.symbols) / f64::from(blocks.count);
        let each = code_block_errors(block.modulation, blocks.bits, symbols, snr.get() - self.gap.get());
        any_of(each, blocks.count)
    }

    /// The signal-to-noise ratio at which a block fails with the probability `target`: above it
    /// fewer do. By bisection to 0.001 dB; for set-up, not for each block. The search is from −30
    /// to 60 dB, and the ends stand for what lies outside.
    pub fn required(&self, block: &Block, target: Probability) -> Decibel {
        let (mut low, mut high) = (-30.0, 60.0);
        while high - low > 0.001 {
            let middle = (low + high) / 2.0;
            let errors = self.errors(block, Decibel::new(middle).expect("finite"));
            *(if errors > target { &mut low } else { &mut high }) = middle;
        }
        Decibel::new(high).expect("finite")
    }
}

/// The normal approximation for one code block of `bits` bits with its CRCs in `symbols` symbols,
/// at a signal-to-noise ratio in decibels.
#[inline]
pub fn code_block_errors(modulation: Modulation, bits: f64, symbols: f64, snr_db: f64) -> f64 {
    let Information { mean, variance } = Information::of(modulation, snr_db);
    missing_information(symbols * mean, symbols * variance, bits, symbols)
}

/// The probability that `symbols` symbols, whose information has this mean and variance, are not
/// enough for `bits` bits.
#[inline]
pub(super) fn missing_information(mean: f64, variance: f64, bits: f64, symbols: f64) -> f64 {
    let margin = mean - bits + 0.5 * libm::log2(symbols);
    // Without variance the margin alone decides.
    let deviations = margin / libm::sqrt(variance.max(1e-12));
    0.5 * libm::erfc(deviations * std::f64::consts::FRAC_1_SQRT_2)
}

/// The probability that at least one of `count` blocks fails, each with `p`.
#[inline]
pub(super) fn any_of(p: f64, count: u32) -> Probability {
    let p = if count == 1 { p } else { -libm::expm1(f64::from(count) * libm::log1p(-p)) };
    Probability::new(p.clamp(0.0, 1.0)).expect("clamped")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::csv::{rows, value};
    use crate::lte::tables::{CqiTable, cqis};
    use proptest::prelude::*;

    fn db(db: f64) -> Decibel {
        Decibel::new(db).expect("finite")
    }

    /// The ratio at which a code block fails with `target`.
    fn point(modulation: Modulation, bits: f64, symbols: f64, target: f64) -> f64 {
        let (mut low, mut high) = (-25.0, 45.0);
        while high - low > 1e-4 {
            let middle = (low + high) / 2.0;
            let above = code_block_errors(modulation, bits, symbols, middle) > target;
            *(if above { &mut low } else { &mut high }) = middle;
        }
        low
    }

    /// The 10 % points of all formats, computed by another program with points 1 dB apart, and the
    /// distance from 50 % to 1 %. Two rows of that table lie below its range and are marked by −12.
    #[test]
    fn points_agree_with_an_independent_computation() {
        let mut compared = 0;
        for [_, _, bits, rate, points @ .., slope] in rows::<9>(include_str!("../../../data/3gpp/awgn_bound.csv")) {
            let modulation: Modulation = value(bits);
            let efficiency = value::<f64>(rate) / 1024.0 * f64::from(modulation.bits());
            for (bits, expected) in [256.0, 1000.0, 6144.0, 8424.0].into_iter().zip(points) {
                let expected: f64 = value(expected);
                if expected > -12.0 {
                    let found = point(modulation, bits, bits / efficiency, 0.1);
                    assert!((found - expected).abs() < 0.03, "{modulation:?} {rate} {bits}: {found} {expected}");
                    compared += 1;
                }
            }
            let slope: f64 = value(slope);
            if slope > 0.0 {
                let at = |target| point(modulation, 1000.0, 1000.0 / efficiency, target);
                assert!((at(0.01) - at(0.5) - slope).abs() < 0.03, "{modulation:?} {rate}: {slope}");
            }
        }
        assert_eq!(compared, 4 * (101 - 2));
    }

    /// The 10 % thresholds of CQI 1 to 15 of the Vienna LTE simulator in 5 MHz (recalled). Its
    /// turbo decoder is 1.0 to 2.2 dB worse than the approximation, by CQI as the second row has
    /// it.
    #[test]
    fn a_gap_of_1_5_decibels_gives_the_thresholds_of_a_turbo_decoder() {
        let published =
            [-6.94, -5.15, -3.18, -1.25, 0.76, 2.70, 4.69, 6.53, 8.57, 10.37, 12.29, 14.17, 15.89, 17.81, 19.83];
        let expected = [2.2, 2.1, 1.8, 1.4, 1.3, 1.2, 1.5, 1.5, 1.5, 1.7, 1.6, 1.6, 1.3, 1.1, 1.2];
        let ideal = Decoder { coding: Coding::Turbo, gap: db(0.0) };
        let decoder = Decoder::new(Coding::Turbo);
        let target = Probability::new(0.1).expect("a share");
        let mut gaps = Vec::new();
        for ((format, published), expected) in cqis(CqiTable::Qam64).iter().zip(published).zip(expected) {
            // 25 resource blocks with 120 resource elements: three symbols of control, two
            // antennas. With its CRC, a block has the code rate of its format.
            let block = Block::of(format, 25 * 120);
            let block = Block { bits: block.bits - 24, ..block };
            let gap = published - ideal.required(&block, target).get();
            assert!((gap - expected).abs() < 0.25, "{format:?}: {gap} {expected}");
            let threshold = decoder.required(&block, target).get();
            assert!((threshold - published).abs() < 0.75, "{format:?}: {threshold} {published}");
            gaps.push(gap);
        }
        let mean = gaps.iter().sum::<f64>() / 15.0;
        let deviation = libm::sqrt(gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / 15.0);
        assert!((mean - 1.5).abs() < 0.1 && (deviation - 0.33).abs() < 0.05, "{mean} {deviation}");
    }

    #[test]
    fn the_required_ratio_is_that_of_the_target() {
        let decoder = Decoder::new(Coding::Ldpc);
        for format in cqis(CqiTable::Qam256) {
            for target in [0.001, 0.1, 0.9] {
                let block = Block::of(format, 12_000);
                let at = decoder.required(&block, Probability::new(target).expect("a share"));
                let errors = decoder.errors(&block, at).get();
                assert!((errors / target - 1.0).abs() < 0.05, "{format:?} {target} {errors}");
            }
        }
    }

    #[test]
    fn several_code_blocks_fail_more_often_than_one() {
        assert!((any_of(0.1, 2).get() - 0.19).abs() < 1e-12);
        assert_eq!((any_of(1.0, 3), any_of(0.0, 3)), (Probability::ALWAYS, Probability::NEVER));
        assert!((any_of(1e-12, 1000).get() - 1e-9).abs() < 1e-17);
    }

    proptest! {
        #[test]
        fn errors_fall_with_the_ratio_and_rise_with_the_bits(
            modulation in 0usize..4, bits in 16u32..100_000, rate in 0.03f64..0.94, snr in -30.0f64..50.0,
            turbo: bool,
        ) {
            let decoder = Decoder::new(if turbo { Coding::Turbo } else { Coding::Ldpc });
            let modulation = Modulation::ALL[modulation];
            let symbols = (f64::from(bits) / rate / f64::from(modulation.bits())).ceil() as u32;
            let block = Block { modulation, bits, symbols };
            let errors = decoder.errors(&block, db(snr)).get();
            prop_assert!(decoder.errors(&block, db(snr + 0.1)).get() <= errors + 1e-9);
            let more = Block { symbols: symbols + symbols / 20 + 1, ..block };
            prop_assert!(decoder.errors(&more, db(snr)).get() <= errors + 1e-9);
        }
    }
}
