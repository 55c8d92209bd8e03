//! Round trips and the retransmission timeout (RFC 6298).

use airpath_core::range_set::Range;
use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use crate::config::{Floor, RetransmissionTimeout};
use crate::sequence::Sequence;
use crate::timers::after;

/// The estimator of one direction.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RoundTrip {
    smoothed: Option<Span>,
    variation: Span,
    /// What is added to the smoothed round trip, if `minimum` bounds it.
    margin: Margin,
    /// The least of the last round trips, for RACK (RFC 8985 §6.2 step 1).
    least: Minimum,
    /// Number of times the timeout was doubled.
    backoff: u32,
    /// Whether the SYN was retransmitted.
    fallen_back: bool,
}

/// The largest variation of the last round trips, times four, as in Linux since 2.4 (Sarolahti
/// and Kuznetsov, "Congestion Control in Linux TCP", Usenix 2002; `tcp_rtt_estimator`). One round
/// trip of acknowledgements that are alike then does not make the timeout short.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Margin {
    value: Span,
    /// The largest since `end` was set, at least the minimum.
    largest: Span,
    /// The round trip ends with the acknowledgement of more than this.
    end: Sequence,
}

impl Margin {
    const NONE: Self = Self { value: Span::ZERO, largest: Span::ZERO, end: 0 };

    fn first(variation: Span, outstanding: Range<Sequence>, minimum: Span) -> Self {
        let value = (variation * 4).max(minimum);
        Self { value, largest: value, end: outstanding.end }
    }

    fn update(&mut self, variation: Span, outstanding: Range<Sequence>, minimum: Span) {
        self.largest = self.largest.max(variation * 4);
        self.value = self.value.max(self.largest);
        if outstanding.start > self.end {
            self.value = (self.value * 3 + self.largest) / 4;
            self.end = outstanding.end;
            self.largest = minimum;
        }
    }
}

/// Lower bound of the timeout before the first measurement, if the SYN was retransmitted (RFC 6298
/// §5.7).
const FALLBACK: Span = Span::from_secs(3);

/// Further back-off changes nothing: the maximum bounds the timeout long before.
const MAX_BACKOFF: u32 = 30;

impl RoundTrip {
    /// An estimator without measurements.
    pub const fn new() -> Self {
        Self {
            smoothed: None,
            variation: Span::ZERO,
            margin: Margin::NONE,
            least: Minimum::NONE,
            backoff: 0,
            fallen_back: false,
        }
    }

    /// Smoothed round trip.
    #[inline]
    pub const fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }

    /// The least round trip of the last minutes.
    #[inline]
    pub fn least(&self) -> Option<Span> {
        self.least.get()
    }

    /// Records the measurement of a segment sent at `sent` and acknowledged `now` (RFC 6298 §2),
    /// and ends the back-off (§5.7). `outstanding` is what has been sent and is not acknowledged.
    pub fn measure(
        &mut self,
        sent: Instant,
        now: Instant,
        outstanding: Range<Sequence>,
        config: &RetransmissionTimeout,
    ) {
        self.least.update(now, now.since(sent));
        // A coarse clock counts its ticks, at least one.
        let tick = config.granularity.as_nanos();
        let ticks = now.as_nanos() / tick - sent.as_nanos() / tick;
        let sample = Span::from_nanos(ticks.max(1) * tick);
        match self.smoothed {
            None => {
                self.smoothed = Some(sample);
                self.variation = sample / 2;
                self.margin = Margin::first(self.variation, outstanding, config.minimum);
            }
            Some(smoothed) => {
                // RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|; SRTT = 7/8 SRTT + 1/8 R, in this order
                // (§2.3).
                let (variation, difference) = (self.variation, smoothed.abs_diff(sample));
                self.variation = if config.floor == Floor::Variation && sample < smoothed && difference > variation {
                    // A round trip that falls is no reason to wait longer.
                    variation + (difference - variation) / 32
                } else {
                    (variation * 3 + difference) / 4
                };
                self.smoothed = Some((smoothed * 7 + sample) / 8);
                self.margin.update(self.variation, outstanding, config.minimum);
            }
        }
        self.backoff = 0;
    }

    /// The timeout in force, back-off included (RFC 6298 §2).
    pub fn timeout(&self, config: &RetransmissionTimeout) -> Span {
        let base = match self.smoothed {
            None if self.fallen_back => config.initial.max(FALLBACK),
            None => config.initial,
            Some(smoothed) => match config.floor {
                Floor::Timeout => (smoothed + (self.variation * 4).max(config.granularity)).max(config.minimum),
                Floor::Variation => smoothed + self.margin.value.max(config.granularity),
            },
        };
        base.saturating_mul(1 << self.backoff).min(config.maximum)
    }

    /// When a timer that is started now expires.
    #[inline]
    pub fn deadline(&self, now: Instant, config: &RetransmissionTimeout) -> Instant {
        after(now, self.timeout(config))
    }

    /// Doubles the timeout (RFC 6298 §5.5).
    pub const fn back_off(&mut self) {
        if self.backoff < MAX_BACKOFF {
            self.backoff += 1;
        }
    }

    /// The SYN was retransmitted, and its round trip is unknown.
    pub const fn fall_back(&mut self) {
        self.fallen_back = true;
        self.backoff = 0;
    }

    /// Resets the back-off, after a spurious timeout.
    pub const fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
}

/// Minimum over a sliding window of time, stored as the minima of its two halves.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Minimum {
    half: u64,
    previous: u64,
    current: u64,
}

impl Minimum {
    /// Half the window: Linux uses 300 s (`tcp_min_rtt_wlen`); RFC 8985 leaves it open.
    const HALF: u64 = 150_000_000_000;
    pub const NONE: Self = Self { half: 0, previous: u64::MAX, current: u64::MAX };

    pub fn update(&mut self, now: Instant, sample: Span) {
        let half = now.as_nanos() / Self::HALF;
        if half != self.half {
            self.previous = if half == self.half + 1 { self.current } else { u64::MAX };
            self.current = u64::MAX;
            self.half = half;
        }
        self.current = self.current.min(sample.as_nanos());
    }

    pub fn get(&self) -> Option<Span> {
        let least = self.previous.min(self.current);
        (least != u64::MAX).then(|| Span::from_nanos(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Samples;

    const CONFIG: RetransmissionTimeout = RetransmissionTimeout {
        initial: Span::from_secs(1),
        minimum: Span::from_millis(200),
        floor: Floor::Timeout,
        maximum: Span::from_secs(60),
        granularity: Span::from_millis(1),
        retries: 15,
        samples: Samples::EveryAck,
    };

    const NOTHING: Range<Sequence> = Range::new(0, 0);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_estimator_of_rfc_6298() {
        let mut rtt = RoundTrip::new();
        assert_eq!(rtt.timeout(&CONFIG), Span::from_secs(1));
        rtt.measure(at(0), at(100), NOTHING, &CONFIG);
        assert_eq!((rtt.smoothed(), rtt.timeout(&CONFIG)), (Some(Span::from_millis(100)), Span::from_millis(300)));
        rtt.measure(at(100), at(280), NOTHING, &CONFIG);
        // RTTVAR = (3·50 + 80)/4 = 57.5, SRTT = (7·100 + 180)/8 = 110: RTO = 340 ms.
        assert_eq!(rtt.timeout(&CONFIG), Span::from_millis(340));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.timeout(&CONFIG), Span::from_millis(1360));
        (0..40).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(&CONFIG), CONFIG.maximum);
        rtt.measure(at(300), at(410), NOTHING, &CONFIG);
        assert!(rtt.timeout(&CONFIG) < Span::from_millis(400), "a measurement ends the back-off");
    }

    #[test]
    fn the_floor_bounds_the_timeout_or_the_variation() {
        let mut rtt = RoundTrip::new();
        (0..100).for_each(|n| rtt.measure(at(n * 50), at(n * 50 + 50), NOTHING, &CONFIG));
        assert_eq!(rtt.timeout(&CONFIG), Span::from_millis(200));
        let linux = RetransmissionTimeout { floor: Floor::Variation, ..CONFIG };
        assert_eq!(rtt.timeout(&linux), Span::from_millis(250));
    }

    #[test]
    fn the_largest_variation_of_a_round_trip_counts() {
        let linux = RetransmissionTimeout { floor: Floor::Variation, ..CONFIG };
        let mut rtt = RoundTrip::new();
        let mut measure = |sample: u64, acknowledged, next| {
            rtt.measure(at(0), at(sample), Range::new(acknowledged, next), &linux);
            rtt.timeout(&linux) - rtt.smoothed().expect("it was measured")
        };
        // Values in milliseconds by hand: the variation is 100, then (3·100 + 200)/4 = 125.
        assert_eq!(measure(200, 0, 10), Span::from_millis(400));
        assert_eq!(measure(400, 5, 15), Span::from_millis(500));
        // The smoothed round trip is 225. The difference is 0, the variation 93.75: within the
        // round trip the margin stays.
        assert_eq!(measure(225, 10, 20), Span::from_millis(500));
        // 70.3125, but the largest of this round trip was 125. That of the next one is 52.734, so
        // the margin falls from 500 by a quarter of the difference to 210.938.
        assert_eq!(measure(225, 11, 21), Span::from_millis(500));
        assert_eq!(measure(225, 22, 30), Span::from_nanos(427_734_375));
        // A round trip that falls by more than the variation counts for an eighth.
        let mut falling = RoundTrip::new();
        falling.measure(at(0), at(400), NOTHING, &linux);
        falling.measure(at(0), at(100), NOTHING, &linux);
        // 200 + (300 - 200)/32.
        assert_eq!(falling.variation, Span::from_micros(203_125));
    }

    #[test]
    fn a_coarse_clock_counts_its_ticks() {
        let coarse = RetransmissionTimeout { granularity: Span::from_millis(100), ..CONFIG };
        let mut rtt = RoundTrip::new();
        rtt.measure(at(99), at(301), NOTHING, &coarse);
        assert_eq!(rtt.smoothed(), Some(Span::from_millis(300)), "three ticks lie between, at 100, 200 and 300");
        let mut rtt = RoundTrip::new();
        rtt.measure(at(110), at(190), NOTHING, &coarse);
        assert_eq!(rtt.smoothed(), Some(Span::from_millis(100)), "never less than a tick");
    }

    #[test]
    fn the_least_round_trip_is_forgotten() {
        let mut least = Minimum::NONE;
        least.update(at(0), Span::from_millis(10));
        least.update(at(1000), Span::from_millis(30));
        assert_eq!(least.get(), Some(Span::from_millis(10)));
        least.update(at(200_000), Span::from_millis(20));
        assert_eq!(least.get(), Some(Span::from_millis(10)));
        least.update(at(310_000), Span::from_millis(25));
        assert_eq!(least.get(), Some(Span::from_millis(20)));
    }
}
