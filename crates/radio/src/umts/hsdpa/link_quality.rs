//! From signal-to-noise ratio to CQI and to block errors, and what combining adds.

use airpath_core::Probability;

use super::transport_block::TransportBlock;
use crate::common::link_adaptation::Combining;
use crate::common::shared_channel::harq::{MAX_CQI, block_error_rate, ratio_of_block_error_rate};

/// The spreading factor of 16 in decibels: C/I is measured before despreading, the curves are over
/// what is after it.
const SPREADING_GAIN: f64 = 12.041_199_826_559_248;

/// The code rate of the turbo code (TS 25.212 §4.2.3.2).
const MOTHER_CODE_RATE: f64 = 1.0 / 3.0;

/// Decibels of a CQI step.
const DECIBELS_PER_CQI: f64 = 1.02;

/// The CQI that a mobile reports at a C/I in decibels: the highest with which at most about 10 % of
/// blocks fail (TS 25.214 §6A.2.1); 0 if there is none. From F. Brouwer et al., "Usage of
/// link-level performance indicators for HSDPA network-level simulations in E-UMTS", IEEE ISSSTA
/// 2004, as in the user guide of EURANE (recalled, not verified).
pub fn reported(ci: f64) -> u8 {
    let cqi = libm::floor(ci / DECIBELS_PER_CQI + 16.62);
    if cqi.is_nan() { 0 } else { cqi.clamp(0.0, f64::from(MAX_CQI)) as u8 }
}

/// The share of the power that a block of `cqi` needs of what the mobile assumed when it reported
/// `reported`.
pub fn share(reported: u8, cqi: u8) -> f64 {
    libm::exp10(-DECIBELS_PER_CQI * f64::from(reported.saturating_sub(cqi)) / 10.0)
}

/// A C/I in decibels as a ratio.
pub fn ratio(ci: f64) -> f64 {
    libm::exp10(ci / 10.0)
}

/// The C/I, as a ratio, at which a block of `cqi` fails with `bler` when it is sent once.
pub fn ratio_of(bler: Probability, cqi: u8) -> f64 {
    if bler == Probability::NEVER {
        f64::INFINITY
    } else if bler == Probability::ALWAYS {
        0.0
    } else {
        ratio(ratio_of_block_error_rate(bler.get(), cqi) - SPREADING_GAIN)
    }
}

/// The probability that a block fails which was received with these ratios, in `attempts` of it.
pub fn bler(cqi: u8, combining: Combining, attempts: u32, last: f64, sum: f64) -> f64 {
    let ratio = match combining {
        Combining::None => last,
        Combining::Chase => sum,
        Combining::IncrementalRedundancy => {
            sum * redundancy_gain(&TransportBlock::of(cqi), attempts) / f64::from(attempts)
        }
    };
    if ratio <= 0.0 { 1.0 } else { block_error_rate(10.0 * libm::log10(ratio) + SPREADING_GAIN, cqi) }
}

/// SNR gain per attempt of incremental redundancy after k attempts. Each attempt brings new bits as
/// long as the code has any.
///
/// By Shannon, a symbol carries e bits where the ratio is at least 2^e − 1. After k attempts the
/// code rate is R/k, but not below 1/3, and so a symbol carries as much less; what goes beyond the
/// bits of the code repeats them.
fn redundancy_gain(block: &TransportBlock, attempts: u32) -> f64 {
    let attempts = f64::from(attempts);
    let efficiency = block.efficiency();
    let rate = efficiency / f64::from(block.bits_per_symbol);
    let dilution = (rate / MOTHER_CODE_RATE).clamp(1.0, attempts);
    let needs = |efficiency: f64| libm::exp2(efficiency) - 1.0;
    needs(efficiency) / needs(efficiency / dilution) * (attempts / dilution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reported_cqi_keeps_errors_near_a_tenth() {
        for cqi in 1..=30 {
            let ci = DECIBELS_PER_CQI * (f64::from(cqi) - 16.62) + 1e-9;
            assert_eq!(reported(ci), cqi);
            let bler = bler(cqi, Combining::None, 1, ratio(ci), ratio(ci));
            // The fits of CQI and of errors agree best in the middle of the scale, and are 0.35 dB
            // apart at its ends.
            assert!((0.03..0.18).contains(&bler), "{cqi}: {bler}");
        }
        assert_eq!((reported(-40.0), reported(60.0)), (0, 30));
    }

    #[test]
    fn chase_gains_three_decibels_and_redundancy_more_the_higher_the_rate() {
        let needed = |cqi, combining, attempts: u32| {
            // By bisection, the ratio of each attempt at which half of the blocks fail.
            let (mut low, mut high) = (-40.0, 40.0);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                let sum = f64::from(attempts) * ratio(middle);
                *(if bler(cqi, combining, attempts, ratio(middle), sum) > 0.5 { &mut low } else { &mut high }) = middle;
            }
            low
        };
        for cqi in 1..=30 {
            let gain = |combining, attempts| needed(cqi, combining, 1) - needed(cqi, combining, attempts);
            assert!(gain(Combining::None, 2).abs() < 1e-6);
            assert!((gain(Combining::Chase, 2) - 3.0103).abs() < 1e-4);
            assert!((gain(Combining::Chase, 4) - 6.0206).abs() < 1e-4);
            assert!(gain(Combining::IncrementalRedundancy, 2) > 3.0102);
        }
        let redundancy =
            |cqi| needed(cqi, Combining::IncrementalRedundancy, 1) - needed(cqi, Combining::IncrementalRedundancy, 2);
        // CQI 22: 7168 bits over 2400 symbols are 2.987 a symbol; (2^2.987 − 1) / (2^1.493 − 1) =
        // 3.82, 5.82 dB.
        assert!((redundancy(22) - 5.82).abs() < 0.02, "{}", redundancy(22));
        // CQI 1: below a rate of 1/3 there are no new bits.
        assert!((redundancy(1) - 3.0103).abs() < 1e-4);
    }

    #[test]
    fn a_given_error_rate_is_that_of_the_first_attempt() {
        for cqi in [1, 15, 30] {
            for p in [0.01, 0.1, 0.9] {
                let ratio = ratio_of(Probability::new(p).expect("a share"), cqi);
                assert!((bler(cqi, Combining::Chase, 1, ratio, ratio) - p).abs() < 1e-9);
            }
            let (never, always) = (ratio_of(Probability::NEVER, cqi), ratio_of(Probability::ALWAYS, cqi));
            assert_eq!(bler(cqi, Combining::Chase, 1, never, never), 0.0);
            assert_eq!(bler(cqi, Combining::Chase, 1, always, always), 1.0);
        }
    }
}
