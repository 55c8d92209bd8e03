//! The layer 3 filter of measurements (TS 36.331 §5.5.3.2): fast fading does not trigger reports.

use airpath_core::Span;

/// The period of measurements for which filter coefficients are defined (TS 36.331 §5.5.3.2).
const NOMINAL_PERIOD: Span = Span::from_millis(200);
/// The weight of a measurement then: 1/2^(k/4) with filterCoefficient fc4, the default (TS 36.331
/// §6.3.5).
const NOMINAL_WEIGHT: f64 = 0.5;

/// A filtered measurement in decibels, after the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Filter(Option<f64>);

impl Filter {
    /// The filtered value after a measurement, one of each `period`; there is none without
    /// coverage.
    pub fn measured(&mut self, measured: Option<f64>, period: Span) -> Option<f64> {
        let periods = period.as_nanos() as f64 / NOMINAL_PERIOD.as_nanos() as f64;
        let kept = libm::pow(1.0 - NOMINAL_WEIGHT, periods);
        self.0 = measured.map(|measured| match self.0 {
            Some(before) => kept * before + (1.0 - kept) * measured,
            None => measured,
        });
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_halved_in_200_ms_at_any_period() {
        for millis in [20, 40, 100, 200] {
            let (mut filter, period) = (Filter::default(), Span::from_millis(millis));
            assert_eq!(filter.measured(Some(20.0), period), Some(20.0));
            let after = (0..200 / millis).map(|_| filter.measured(Some(0.0), period)).last().flatten();
            assert!((after.expect("covered") - 10.0).abs() < 1e-9, "{millis} ms: {after:?}");
        }
    }

    #[test]
    fn it_begins_again_after_a_loss_of_coverage() {
        let (mut filter, period) = (Filter::default(), Span::from_millis(40));
        filter.measured(Some(20.0), period);
        assert_eq!(filter.measured(None, period), None);
        assert_eq!(filter.measured(Some(-5.0), period), Some(-5.0));
    }
}
