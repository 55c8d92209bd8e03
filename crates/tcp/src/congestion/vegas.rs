//! TCP Vegas: the window follows the number of segments that wait in the queue.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet",
//! IEEE JSAC 13(8), 1995. Once per round trip the expected rate, the window over the least round
//! trip, is compared with the actual one. Their difference, times the least round trip, is the
//! number of segments in queues. The window grows by one segment while it is below `ALPHA`, and
//! shrinks by one above `BETA`. Slow start ends above `GAMMA`.
//!
//! Compared with the source of Linux (`tcp_vegas.c`), and equal to it: constants, the least round
//! trip of each round as its sample, slow start that doubles in each round, NewReno in rounds with
//! fewer than three samples, the window at the end of slow start. The paper's retransmission rules
//! are left out. In contrast to Linux rounds continue while the losses of a timeout are repaired,
//! and an idle time does not reset the least round trip unless it exceeds a retransmission timeout.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Congested, CongestionControl, NewReno};
use crate::config::Config;

/// Segments in queues below which the window grows.
const ALPHA: u64 = 2;
/// Segments in queues above which it shrinks.
const BETA: u64 = 4;
/// Segments in queues above which slow start ends.
const GAMMA: u64 = 1;
/// Fewer samples in a round may all come from delayed acknowledgements.
const LEAST_SAMPLES: u32 = 3;
/// The least window, in segments.
const LEAST_WINDOW: u64 = 2;

/// Vegas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Vegas {
    reno: NewReno,
    segment_size: u64,
    /// The least round trip.
    base: Option<Span>,
    round: Round,
}

/// A round trip.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Round {
    /// It ends when everything below is acknowledged; `None` until it begins.
    end: Option<u64>,
    least: Option<Span>,
    samples: u32,
}

impl Vegas {
    /// The configured controller, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        let reno = NewReno::new(config, size);
        Self { reno, segment_size: u64::from(size), base: None, round: Round::default() }
    }

    fn is_slow_start(&self) -> bool {
        self.reno.slow_start_threshold().is_none_or(|threshold| self.reno.congestion_window() < threshold)
    }

    /// Sets the window at the end of a round.
    fn adapt(&mut self, base: Span, least: Span, ack: &Acknowledged) {
        let window = self.reno.congestion_window() / self.segment_size;
        let (base, least) = (base.as_nanos().max(1), least.as_nanos().max(1));
        let product = |factor: u64, divisor: u64| {
            (u128::from(window) * u128::from(factor) / u128::from(divisor)).min(u128::from(u64::MAX)) as u64
        };
        let queued = product(least.saturating_sub(base), base);
        let (window, falls) = match self.is_slow_start() {
            true if queued > GAMMA => (window.min(product(base, least) + 1), true),
            true => return self.reno.on_ack(ack),
            false if queued > BETA => (window.saturating_sub(1), true),
            false if queued < ALPHA && ack.limited => (window + 1, false),
            false => (window, false),
        };
        let window = window.max(LEAST_WINDOW) * self.segment_size;
        let threshold = self.reno.slow_start_threshold().unwrap_or(u64::MAX);
        let threshold = if falls { threshold.min(window) } else { threshold };
        self.reno.set(window, threshold.max(window / 4 * 3));
    }
}

impl CongestionControl for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn on_ack(&mut self, ack: &Acknowledged) {
        if let Some(round_trip) = ack.round_trip {
            self.base = Some(self.base.map_or(round_trip, |base| base.min(round_trip)));
            self.round.least = Some(self.round.least.map_or(round_trip, |least| least.min(round_trip)));
            self.round.samples += 1;
        }
        match self.round.end {
            Some(end) if ack.acknowledged < end => {
                if self.is_slow_start() {
                    self.reno.on_ack(ack);
                }
                return;
            }
            Some(_) if self.round.samples >= LEAST_SAMPLES => {
                if let (Some(base), Some(least)) = (self.base, self.round.least) {
                    self.adapt(base, least, ack);
                }
            }
            _ => self.reno.on_ack(ack),
        }
        self.round = Round { end: Some(ack.sent), ..Round::default() };
    }

    fn on_congestion(&mut self, congested: &Congested) {
        self.reno.on_congestion(congested);
        self.round = Round::default();
    }

    fn undo(&mut self, now: Instant) {
        self.reno.undo(now);
    }

    fn on_idle(&mut self, now: Instant, window: u64, threshold: u64) {
        self.reno.on_idle(now, window, threshold);
        self.base = None;
        self.round = Round::default();
    }

    fn congestion_window(&self) -> u64 {
        self.reno.congestion_window()
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.reno.slow_start_threshold()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    const SIZE: u64 = 1000;

    /// A controller with a window of 20 segments and a least round trip of 100 ms.
    fn vegas(threshold: u64) -> Vegas {
        let mut vegas = Vegas::new(&Profile::Linux6.config(), SIZE as u32);
        vegas.reno.set(20 * SIZE, threshold);
        vegas.base = Some(Span::from_millis(100));
        vegas.round.end = Some(0);
        vegas
    }

    /// The window after a round of three acknowledgements with a round trip of `millis`.
    fn round(vegas: &mut Vegas, millis: u64) -> u64 {
        let end = vegas.round.end.unwrap_or(0);
        for acknowledged in [end.saturating_sub(2), end.saturating_sub(1), end] {
            vegas.on_ack(&Acknowledged {
                now: Instant::ZERO,
                bytes: SIZE,
                round_trip: Some(Span::from_millis(millis)),
                smoothed_round_trip: None,
                acknowledged,
                sent: end + 20 * SIZE,
                limited: true,
            });
        }
        vegas.congestion_window() / SIZE
    }

    #[test]
    fn the_window_keeps_two_to_four_segments_in_the_queue() {
        // Of 20 segments, a round trip of (100 + x) ms keeps x/5 in queues.
        for (millis, window) in [(100, 21), (109, 21), (110, 20), (120, 20), (124, 20), (125, 19), (300, 19)] {
            let mut vegas = vegas(10 * SIZE);
            vegas.round.end = Some(100 * SIZE);
            assert_eq!(round(&mut vegas, millis), window, "{millis}");
        }
    }

    #[test]
    fn slow_start_ends_with_more_than_one_segment_in_the_queue() {
        let mut vegas = vegas(u64::MAX);
        vegas.round.end = Some(100 * SIZE);
        assert_eq!(round(&mut vegas, 104), 23, "each acknowledgement adds a segment");
        assert!(vegas.is_slow_start());
        // At 125 ms a fifth of the window is in the queue: the window becomes the rest, and one.
        assert_eq!(round(&mut vegas, 125), 21);
        assert!(!vegas.is_slow_start());
    }
}
