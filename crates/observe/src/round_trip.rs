//! Round trips: their distribution, and the smoothed estimate that a sender's timer follows.

use airpath_core::Span;

/// Minimum of the retransmission timer in Linux and Windows. RFC 6298 §2.4 requires a second; few
/// stacks comply.
const MINIMUM_TIMEOUT: Span = Span::from_millis(200);

/// The timer before the first measurement (RFC 6298 §2.1).
const INITIAL_TIMEOUT: Span = Span::from_secs(1);

/// The smoothed round trip and its variation (RFC 6298 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    smoothed: u64,
    variation: u64,
    minimum: u64,
}

impl Estimate {
    /// Takes a sample.
    pub(crate) fn sample(&mut self, sample: Span) {
        // With a clock of microseconds a sample may be zero; an estimate of zero means that there
        // is none.
        let sample = sample.as_nanos().max(1);
        if self.smoothed == 0 {
            *self = Self { smoothed: sample, variation: sample / 2, minimum: sample };
        } else {
            // RFC 6298 §2.3, with beta 1/4 and alpha 1/8, in this order.
            self.variation = self.variation - self.variation / 4 + self.smoothed.abs_diff(sample) / 4;
            self.smoothed = (self.smoothed - self.smoothed / 8 + sample / 8).max(1);
            self.minimum = self.minimum.min(sample);
        }
    }

    /// The smoothed round trip; zero before the first sample.
    pub(crate) const fn smoothed(&self) -> Span {
        Span::from_nanos(self.smoothed)
    }

    /// The shortest round trip; zero before the first sample.
    pub(crate) const fn minimum(&self) -> Span {
        Span::from_nanos(self.minimum)
    }

    /// The round trip between the two ends, seen from the middle: this is one part of it, `other`
    /// the other part.
    pub(crate) fn both_sides(&self, other: &Self) -> Self {
        Self {
            smoothed: self.smoothed.saturating_add(other.smoothed),
            variation: self.variation.saturating_add(other.variation),
            minimum: self.minimum.saturating_add(other.minimum),
        }
    }

    /// The minimum retransmission timer of a sender: SRTT + max(4 RTTVAR, 200 ms).
    pub(crate) fn timeout(&self) -> Span {
        if self.smoothed == 0 {
            return INITIAL_TIMEOUT;
        }
        let margin = self.variation.saturating_mul(4).max(MINIMUM_TIMEOUT.as_nanos());
        Span::from_nanos(self.smoothed.saturating_add(margin))
    }
}

/// Distribution of a duration: count, minimum, maximum, mean, deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Samples.
    pub count: u64,
    minimum: u64,
    maximum: u64,
    sum: f64,
    sum_of_squares: f64,
}

impl Spread {
    /// Takes a sample.
    pub fn sample(&mut self, span: Span) {
        let nanos = span.as_nanos();
        self.minimum = if self.count == 0 { nanos } else { self.minimum.min(nanos) };
        self.maximum = self.maximum.max(nanos);
        self.count += 1;
        let seconds = span.as_secs_f64();
        self.sum += seconds;
        self.sum_of_squares += seconds * seconds;
    }

    /// The shortest.
    pub fn minimum(&self) -> Option<Span> {
        (self.count > 0).then_some(Span::from_nanos(self.minimum))
    }

    /// The longest.
    pub fn maximum(&self) -> Option<Span> {
        (self.count > 0).then_some(Span::from_nanos(self.maximum))
    }

    /// The mean, in seconds.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The standard deviation of the sample (divided by one less than its size), in seconds; `None`
    /// for fewer than two.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| {
            let count = self.count as f64;
            // Rounding may leave a difference below zero where all samples are equal.
            let squares = (self.sum_of_squares - self.sum * self.sum / count).max(0.0);
            (squares / (count - 1.0)).sqrt()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_follows_rfc_6298() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.timeout(), INITIAL_TIMEOUT);
        estimate.sample(Span::from_millis(800));
        assert_eq!(estimate.timeout(), Span::from_millis(800 + 4 * 400));
        for _ in 0..200 {
            estimate.sample(Span::from_millis(100));
        }
        assert!(estimate.timeout() < Span::from_millis(310), "{}", estimate.timeout());
        assert_eq!(estimate.minimum(), Span::from_millis(100));
    }

    #[test]
    fn the_spread_of_three() {
        let mut spread = Spread::default();
        assert_eq!((spread.mean(), spread.minimum(), spread.deviation()), (None, None, None));
        for millis in [10, 20, 30] {
            spread.sample(Span::from_millis(millis));
        }
        assert_eq!(spread.minimum(), Some(Span::from_millis(10)));
        assert_eq!(spread.maximum(), Some(Span::from_millis(30)));
        assert!((spread.mean().unwrap() - 0.02).abs() < 1e-12);
        assert!((spread.deviation().unwrap() - 0.01).abs() < 1e-9);
    }
}
