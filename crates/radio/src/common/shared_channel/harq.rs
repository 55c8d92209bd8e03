//! How likely a block is in error at each of its attempts: plain repetition, or soft combining.

use std::sync::Arc;

use airpath_core::Probability;

/// The CQI whose error curve gives the steepness unless another is given: the middle
/// of those that use QPSK. The choice matters little: where 10 % of the first attempts fail, the
/// second fails with 1.5e-6 at CQI 1, and less above.
pub const DEFAULT_CQI: u8 = 8;

/// The highest CQI (3GPP TS 25.214 §6A.2).
pub const MAX_CQI: u8 = 30;

/// The probability of an error by attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorsByAttempt {
    /// First, second, …; the last holds for all that follow.
    by_attempt: Arc<[Probability]>,
    /// With soft combining, the CQI of the blocks.
    combined_cqi: Option<u8>,
}

impl ErrorsByAttempt {
    /// The same probability at each attempt.
    pub fn constant(bler: Probability) -> Self {
        Self { by_attempt: [bler].into(), combined_cqi: None }
    }

    /// Chase combining of blocks whose first attempt fails with `bler`, and which use the
    /// modulation and coding of `cqi`, 1 to 30.
    ///
    /// Every attempt is received at the signal-to-noise ratio at which one alone fails with `bler`.
    pub fn chase(bler: Probability, cqi: u8) -> Self {
        if bler == Probability::NEVER || bler == Probability::ALWAYS {
            return Self { combined_cqi: Some(cqi), ..Self::constant(bler) };
        }
        let curve = ErrorCurve::of_cqi(cqi);
        let first = curve.exponent_at(bler.get());
        let attempt = |k: u32| {
            let gain = 10.0 * libm::log10(f64::from(k));
            Probability::new(curve.bler_at(first + curve.per_decibel * gain)).expect("the curve lies between 0 and 1")
        };
        Self { by_attempt: (1..=MAX_COMBINED).map(attempt).collect(), combined_cqi: Some(cqi) }
    }

    /// The same receiver where the first attempt fails with `bler`.
    #[must_use]
    pub fn with_bler(&self, bler: Probability) -> Self {
        match self.combined_cqi {
            None => Self::constant(bler),
            Some(cqi) => Self::chase(bler, cqi),
        }
    }

    /// The probability that the `attempt`-th transmission is in error, from 1.
    #[inline]
    pub fn at(&self, attempt: u32) -> Probability {
        let last = self.by_attempt.len() - 1;
        self.by_attempt[(attempt as usize - 1).min(last)]
    }
}

/// Attempts after which the probability is not computed any further: it is far below 1e-9 by then
/// for any curve and any first probability up to 99.99 %.
const MAX_COMBINED: u32 = 16;

/// Block errors against the signal-to-noise ratio in a static channel, from link-level simulations
/// with turbo coding:
///
/// BLER = (1 + 10^x)^(−1/0.7), x = 2 (SINR − 1.03 CQI + 5.26) / (√3 − log₁₀ CQI)
///
/// with the SINR in decibels after despreading. R. Litjens, "HSDPA flow level performance and the
/// impact of terminal mobility", IEEE WCNC 2005, after F. Brouwer et al., "Usage of link-level
/// performance indicators for HSDPA network-level simulations in E-UMTS", IEEE ISSSTA 2004.
/// [`ErrorsByAttempt`] only uses its steepness: the place on the curve follows from the error
/// probability of the first attempt.
struct ErrorCurve {
    /// Growth of x per decibel.
    per_decibel: f64,
}

impl ErrorCurve {
    fn of_cqi(cqi: u8) -> Self {
        Self { per_decibel: 2.0 / (3.0f64.sqrt() - libm::log10(f64::from(cqi))) }
    }

    /// The x at which the curve has this error probability, above 0 and below 1.
    fn exponent_at(&self, bler: f64) -> f64 {
        libm::log10(libm::pow(bler, -0.7) - 1.0)
    }

    fn bler_at(&self, exponent: f64) -> f64 {
        libm::pow(1.0 + libm::pow(10.0, exponent), -1.0 / 0.7)
    }
}

/// The constant of the curve, in decibels after despreading.
const OFFSET: f64 = 5.26;

/// The curve itself: the share of blocks of `cqi`, 1 to 30, that fail at a ratio in decibels after
/// despreading.
pub(crate) fn block_error_rate(ratio: f64, cqi: u8) -> f64 {
    let curve = ErrorCurve::of_cqi(cqi);
    curve.bler_at((ratio - 1.03 * f64::from(cqi) + OFFSET) * curve.per_decibel)
}

/// Its inverse, for a share above 0 and below 1.
pub(crate) fn ratio_of_block_error_rate(bler: f64, cqi: u8) -> f64 {
    let curve = ErrorCurve::of_cqi(cqi);
    curve.exponent_at(bler) / curve.per_decibel + 1.03 * f64::from(cqi) - OFFSET
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probability(p: f64) -> Probability {
        Probability::new(p).expect("within range")
    }

    #[test]
    fn without_combining_every_attempt_is_alike() {
        let errors = ErrorsByAttempt::constant(probability(0.2));
        assert_eq!([1, 2, 99].map(|attempt| errors.at(attempt).get()), [0.2; 3]);
    }

    #[test]
    fn chase_adds_signal_to_noise_ratios() {
        // By hand for CQI 1, where the curve is flattest (2/√3 a decibel): x₁ = log₁₀(0.1^-0.7 − 1)
        // = 0.6032, x₂ = x₁ + 3.0103 · 1.1547 = 4.0792, BLER₂ = 10^(−4.0792/0.7) = 1.49e-6.
        let errors = ErrorsByAttempt::chase(probability(0.1), 1);
        assert!((errors.at(1).get() - 0.1).abs() < 1e-12);
        assert!((errors.at(2).get() / 1.49e-6 - 1.0).abs() < 0.01, "{:?}", errors.at(2));
        assert!(errors.at(3) < errors.at(2));
        for cqi in 1..=MAX_CQI {
            for bler in [0.01, 0.5, 0.9, 0.9999] {
                let errors = ErrorsByAttempt::chase(probability(bler), cqi);
                assert!((errors.at(1).get() - bler).abs() < 1e-9, "the first attempt has nothing to combine with");
                assert!((1..=MAX_COMBINED).all(|attempt| errors.at(attempt + 1) <= errors.at(attempt)));
                assert!(errors.at(MAX_COMBINED).get() < 1e-9);
                assert_eq!(errors.at(MAX_COMBINED + 1), errors.at(MAX_COMBINED));
            }
        }
    }

    #[test]
    fn a_hopeless_channel_stays_hopeless() {
        assert_eq!(ErrorsByAttempt::chase(Probability::ALWAYS, 8).at(5), Probability::ALWAYS);
        assert_eq!(ErrorsByAttempt::chase(Probability::NEVER, 8).at(5), Probability::NEVER);
    }
}
