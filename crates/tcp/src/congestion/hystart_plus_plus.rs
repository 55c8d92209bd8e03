//! HyStart++ (RFC 9406): slow start slows down, then ends, when round trips rise.
//!
//! It is used in the initial slow start only (RFC 9406 §4.2). Linux has [`super::hystart`] instead.

use airpath_core::Span;
use serde::{Deserialize, Serialize};

use super::Acknowledged;

// RFC 9406 §4.3.
const MIN_RTT_THRESHOLD: Span = Span::from_millis(4);
const MAX_RTT_THRESHOLD: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: u64 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;

/// State of one slow start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct HyStartPlusPlus {
    phase: Phase,
    /// The round ends when everything below is acknowledged.
    round_end: u64,
    samples: u32,
    current: Span,
    last: Span,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Phase {
    Standard,
    Conservative { baseline: Span, rounds: u32 },
    Over,
}

impl HyStartPlusPlus {
    /// A new slow start.
    pub const fn new() -> Self {
        Self { phase: Phase::Standard, round_end: 0, samples: 0, current: Span::MAX, last: Span::MAX }
    }

    /// Whether slow start must end.
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Records the round trip of an acknowledgement. Returns the divisor of the window growth.
    pub fn on_ack(&mut self, ack: &Acknowledged) -> u64 {
        if ack.acknowledged >= self.round_end {
            self.next_round(ack);
        }
        if let Some(round_trip) = ack.round_trip {
            self.current = self.current.min(round_trip);
            self.samples += 1;
        }
        match self.phase {
            Phase::Standard => {
                if self.has_grown() {
                    self.phase = Phase::Conservative { baseline: self.current, rounds: 0 };
                }
                1
            }
            Phase::Conservative { baseline, .. } => {
                if self.samples >= SAMPLES && self.current < baseline {
                    // The rise was temporary.
                    self.phase = Phase::Standard;
                }
                GROWTH_DIVISOR
            }
            Phase::Over => 1,
        }
    }

    fn next_round(&mut self, ack: &Acknowledged) {
        self.round_end = ack.sent;
        self.last = self.current;
        self.current = Span::MAX;
        self.samples = 0;
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            if *rounds >= CONSERVATIVE_ROUNDS {
                self.phase = Phase::Over;
            }
        }
    }

    fn has_grown(&self) -> bool {
        if self.samples < SAMPLES || self.current == Span::MAX || self.last == Span::MAX {
            return false;
        }
        let threshold = (self.last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESHOLD, MAX_RTT_THRESHOLD);
        self.current >= self.last + threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Instant;

    fn ack(acknowledged: u64, sent: u64, millis: u64) -> Acknowledged {
        Acknowledged {
            now: Instant::ZERO,
            bytes: 1,
            round_trip: Some(Span::from_millis(millis)),
            smoothed_round_trip: None,
            acknowledged,
            sent,
            limited: true,
        }
    }

    #[test]
    fn longer_round_trips_end_slow_start_after_five_css_rounds() {
        let mut hystart = HyStartPlusPlus::new();
        let mut round = |number: u64, millis| {
            (0..8).fold(0, |_, n| hystart.on_ack(&ack(number * 100 + n, (number + 1) * 100, millis)))
        };
        assert_eq!(round(0, 40), 1);
        assert_eq!(round(1, 44), 1, "the threshold is an eighth, 5 ms");
        assert_eq!(round(2, 50), 1);
        for number in 3..7 {
            assert_eq!(round(number, 50), 4);
        }
        assert_eq!(round(7, 50), 1, "after five rounds");
        assert!(hystart.is_over());
    }

    #[test]
    fn a_temporary_delay_does_not_end_slow_start() {
        let mut hystart = HyStartPlusPlus::new();
        for (number, millis) in [(0, 40), (1, 60), (2, 41), (3, 41)] {
            (0..10).for_each(|n| {
                hystart.on_ack(&ack(number * 100 + n, (number + 1) * 100, millis));
            });
        }
        assert!(matches!(hystart.phase, Phase::Standard));
    }
}
