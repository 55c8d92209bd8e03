//! LEDBAT++: background traffic that yields to everything else on the path.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus-01, whose constants were compared with an
//! implementation of it for Linux. The window aims at a queueing delay of 60 ms, estimated from
//! round trips. It grows as NewReno's, times a gain of 1/16 to 1, below the target, and shrinks in
//! proportion to the excess above it. From time to time the window falls to two segments, so that
//! the flow measures the round trip without its own queue (a slowdown).
//!
//! Losses halve the window, as NewReno's. After an idle time or a timeout the window grows back to
//! the slow-start threshold in slow start.

use std::collections::VecDeque;

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Congested, CongestionControl, NewReno, Signal};
use crate::config::Config;

/// The queueing delay that the window aims at.
const TARGET: Span = Span::from_millis(60);
/// Queueing delay that ends the initial slow start: three quarters of the target.
const SLOW_START_DELAY: Span = Span::from_millis(45);
/// The gain is at least a `LEAST_GAIN`th.
const LEAST_GAIN: u64 = 16;
/// The base delay is the least of this number of intervals ...
const HISTORY: usize = 10;
/// ... of this length.
const INTERVAL: Span = Span::from_secs(60);
/// The current delay is the least of this number of round trips.
const SAMPLES: usize = 4;
/// Round trips from the initial slow start to the first slowdown, and of a slowdown.
const SLOWDOWN_ROUND_TRIPS: u64 = 2;
/// Time from a slowdown to the next, as a multiple of its duration: it costs at most a tenth.
const SLOWDOWN_INTERVAL: u64 = 9;
/// The window of a slowdown, and the least window, in segments.
const LEAST_WINDOW: u64 = 2;

/// LEDBAT++.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ledbat {
    reno: NewReno,
    segment_size: u64,
    phase: Phase,
    /// The least round trip of each interval; the last is current.
    base: VecDeque<Span>,
    /// Start of the current interval.
    interval: Instant,
    /// The last round trips.
    recent: VecDeque<Span>,
    smoothed: Span,
    round: Round,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// The initial slow start.
    SlowStart,
    /// Follows the delay, until the next slowdown.
    Follow { until: Instant },
    /// The window stays at its least. The slowdown began at this time.
    Slowdown { since: Instant },
    /// Slow start up to the threshold, after a slowdown that began at this time.
    Return { since: Instant },
}

/// A round trip in which the window shrinks.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Round {
    /// It ends when everything below is acknowledged.
    end: u64,
    /// Bytes by which the window may still shrink.
    left: u64,
}

impl Ledbat {
    /// The configured controller, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        Self {
            reno: NewReno::new(config, size),
            segment_size: u64::from(size),
            phase: Phase::SlowStart,
            base: VecDeque::new(),
            interval: Instant::ZERO,
            recent: VecDeque::new(),
            smoothed: Span::ZERO,
            round: Round::default(),
        }
    }

    fn measure(&mut self, now: Instant, round_trip: Span) {
        match self.base.back_mut() {
            Some(current) if now.since(self.interval) <= INTERVAL => *current = (*current).min(round_trip),
            _ => {
                self.interval = now;
                self.base.push_back(round_trip);
                if self.base.len() > HISTORY {
                    self.base.pop_front();
                }
            }
        }
        self.recent.push_back(round_trip);
        if self.recent.len() > SAMPLES {
            self.recent.pop_front();
        }
    }

    /// The base delay and the queueing delay above it; `None` before the first measurement.
    fn delays(&self) -> Option<(Span, Span)> {
        let (base, current) = (*self.base.iter().min()?, *self.recent.iter().min()?);
        Some((base, current.saturating_sub(base)))
    }

    /// Adds a share of the acknowledged bytes, `1 / divisor`.
    fn grow(&mut self, bytes: u64, divisor: u64) {
        let threshold = self.reno.slow_start_threshold().unwrap_or(u64::MAX);
        let grown = self.reno.congestion_window().saturating_add((bytes / divisor).max(1)).min(threshold);
        self.reno.set(grown.max(self.reno.congestion_window()), threshold);
    }

    /// Changes the window for one acknowledgement below or above the target.
    fn follow(&mut self, ack: &Acknowledged, divisor: u64, queued: Span) {
        let least = LEAST_WINDOW * self.segment_size;
        if queued <= TARGET {
            self.round = Round::default();
            if ack.limited {
                self.reno.adjust(ack.bytes, self.segment_size, divisor, 0, least);
            }
            return;
        }
        if ack.acknowledged >= self.round.end {
            self.round = Round { end: ack.sent, left: self.reno.congestion_window() / 2 };
        }
        // Per round trip the window shrinks by (delay / target - 1) times its size.
        let excess = u128::from((queued - TARGET).as_nanos());
        let less = (u128::from(ack.bytes) * excess / u128::from(TARGET.as_nanos())).min(u128::from(self.round.left));
        self.round.left -= less as u64;
        self.reno.adjust(ack.bytes, self.segment_size, divisor, less as u64, least);
    }

    /// The slowdown that began at `since` is over.
    fn end_slowdown(&mut self, now: Instant, since: Instant) {
        let duration = now.since(since).as_nanos();
        let wait = Span::from_nanos(duration.saturating_mul(SLOWDOWN_INTERVAL));
        self.phase = Phase::Follow { until: now + wait };
        self.round = Round::default();
    }

    /// The first slowdown is two round trips after the initial slow start.
    fn end_slow_start(&mut self, now: Instant) {
        self.phase = Phase::Follow { until: now + self.pause() };
    }

    const fn pause(&self) -> Span {
        Span::from_nanos(self.smoothed.as_nanos() * SLOWDOWN_ROUND_TRIPS)
    }

    const fn is_below_threshold(&self) -> bool {
        self.reno.is_slow_start()
    }
}

impl CongestionControl for Ledbat {
    fn name(&self) -> &'static str {
        "ledbat++"
    }

    fn on_ack(&mut self, ack: &Acknowledged) {
        if let Some(round_trip) = ack.round_trip {
            self.measure(ack.now, round_trip);
        }
        self.smoothed = ack.smoothed_round_trip.unwrap_or(self.smoothed);
        let Some((base, queued)) = self.delays() else { return };
        // The gain is 1 / min(16, ⌈2 × target / base⌉).
        let divisor = (2 * TARGET.as_nanos()).div_ceil(base.as_nanos().max(1)).clamp(1, LEAST_GAIN);
        match self.phase {
            Phase::SlowStart if queued > SLOW_START_DELAY => {
                let window = self.reno.congestion_window();
                self.reno.set(window, window);
                self.end_slow_start(ack.now);
            }
            Phase::SlowStart if !self.is_below_threshold() => self.end_slow_start(ack.now),
            Phase::SlowStart if ack.limited => self.grow(ack.bytes, divisor),
            Phase::SlowStart => {}
            Phase::Follow { until } if ack.now >= until => {
                self.reno.set(LEAST_WINDOW * self.segment_size, self.reno.congestion_window());
                self.phase = Phase::Slowdown { since: ack.now };
            }
            Phase::Follow { .. } => self.follow(ack, divisor, queued),
            Phase::Slowdown { since } if ack.now.since(since) > self.pause() => self.phase = Phase::Return { since },
            Phase::Slowdown { .. } => {}
            Phase::Return { since } if !self.is_below_threshold() => self.end_slowdown(ack.now, since),
            Phase::Return { .. } if ack.limited => self.grow(ack.bytes, divisor),
            Phase::Return { .. } => {}
        }
    }

    fn on_congestion(&mut self, congested: &Congested) {
        self.reno.on_congestion(congested);
        self.round = Round::default();
        match self.phase {
            _ if congested.signal == Signal::Timeout => self.phase = Phase::Return { since: congested.now },
            Phase::SlowStart => self.end_slow_start(congested.now),
            Phase::Follow { .. } | Phase::Slowdown { .. } | Phase::Return { .. } => {}
        }
    }

    fn undo(&mut self, now: Instant) {
        self.reno.undo(now);
    }

    fn on_idle(&mut self, now: Instant, window: u64, threshold: u64) {
        self.reno.on_idle(now, window, threshold);
        if self.phase != Phase::SlowStart && self.is_below_threshold() {
            self.phase = Phase::Return { since: now };
        }
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

    /// A controller with a window of 100 segments that follows the delay, with a base of 60 ms: its
    /// gain is 1/2.
    fn following() -> Ledbat {
        let mut ledbat = Ledbat::new(&Profile::Linux6.config(), SIZE as u32);
        ledbat.reno.set(100 * SIZE, 100 * SIZE);
        ledbat.phase = Phase::Follow { until: at(1_000_000) };
        ledbat.measure(Instant::ZERO, Span::from_millis(60));
        ledbat
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// Acknowledges `segments` one by one, from byte `from` on, with a round trip of `millis`.
    fn acknowledge(ledbat: &mut Ledbat, now: Instant, from: u64, segments: u64, millis: u64) {
        for number in 1..=segments {
            let acknowledged = from + number * SIZE;
            ledbat.on_ack(&Acknowledged {
                now,
                bytes: SIZE,
                round_trip: Some(Span::from_millis(millis)),
                smoothed_round_trip: Some(Span::from_millis(millis)),
                acknowledged,
                sent: acknowledged + 100 * SIZE,
                limited: true,
            });
        }
    }

    #[test]
    fn the_window_grows_by_the_gain_below_the_target_and_shrinks_with_the_excess() {
        for (millis, expected) in [(60, 100.5), (120, 100.5), (135, 75.6)] {
            let mut ledbat = following();
            // Fills the filter of the current delay, whose least is taken.
            (0..4).for_each(|_| ledbat.measure(at(1), Span::from_millis(millis)));
            acknowledge(&mut ledbat, at(1), 0, 100, millis);
            let window = ledbat.congestion_window() as f64 / SIZE as f64;
            assert!((window - expected).abs() < 0.6, "{millis} ms: {window}");
        }
    }

    #[test]
    fn a_round_trip_halves_the_window_at_most() {
        let mut ledbat = following();
        (0..4).for_each(|_| ledbat.measure(at(1), Span::from_millis(600)));
        acknowledge(&mut ledbat, at(1), 0, 100, 600);
        let window = ledbat.congestion_window() / SIZE;
        assert!((50..=51).contains(&window), "{window}");
    }

    #[test]
    fn a_slowdown_lasts_two_round_trips_and_recurs_after_nine_times_its_duration() {
        let mut ledbat = following();
        ledbat.phase = Phase::Follow { until: at(100) };
        acknowledge(&mut ledbat, at(100), 0, 1, 60);
        assert_eq!((ledbat.congestion_window(), ledbat.slow_start_threshold()), (2 * SIZE, Some(100 * SIZE)));
        acknowledge(&mut ledbat, at(220), 1000, 2, 60);
        assert_eq!(ledbat.congestion_window(), 2 * SIZE, "two round trips are not over");
        acknowledge(&mut ledbat, at(221), 3000, 1, 60);
        // Slow start with a gain of 1/2: 98 segments need 196 acknowledgements.
        acknowledge(&mut ledbat, at(400), 4000, 195, 60);
        assert_eq!(ledbat.phase, Phase::Return { since: at(100) });
        acknowledge(&mut ledbat, at(500), 200_000, 2, 60);
        assert_eq!(ledbat.phase, Phase::Follow { until: at(500 + 9 * 400) });
    }

    #[test]
    fn the_initial_slow_start_ends_at_three_quarters_of_the_target() {
        let mut ledbat = Ledbat::new(&Profile::Linux6.config(), SIZE as u32);
        ledbat.reno.set(10 * SIZE, u64::MAX);
        acknowledge(&mut ledbat, at(1), 0, 4, 120);
        assert_eq!(ledbat.congestion_window(), 14 * SIZE, "the gain is 1");
        acknowledge(&mut ledbat, at(2), 4000, 4, 160);
        assert_eq!(ledbat.slow_start_threshold(), None);
        acknowledge(&mut ledbat, at(3), 8000, 4, 166);
        let window = ledbat.congestion_window();
        assert!(ledbat.slow_start_threshold().is_some_and(|threshold| threshold <= window), "{ledbat:?}");
        assert_eq!(ledbat.phase, Phase::Follow { until: at(3 + 2 * 166) });
    }
}
