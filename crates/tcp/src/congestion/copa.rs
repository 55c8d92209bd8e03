//! Copa: the window follows the rate that is optimal for the queueing delay.
//!
//! Source: Arun and Balakrishnan, "Copa: practical delay-based congestion control for the
//! Internet", NSDI 2018. The target rate is 1 / (δ · queueing delay), in segments. The window moves
//! towards it by v / (δ · window) segments with each acknowledged segment. The velocity v doubles
//! in each round trip, once the direction was the same in three. The default mode has δ = 1/2. In
//! the competitive mode 1/δ grows by one in each round trip and halves after a loss: it is in force
//! while the queue has not been nearly empty for five round trips, so another flow fills it.
//!
//! Pacing is at two windows per standing round trip. In the default mode losses change nothing, and
//! marks of ECN never do; after a timeout the window is two segments. Departures from the paper: in
//! a round trip the window changes by its own size at most, whatever the velocity is. The mode is
//! judged once the queue of slow start has drained, or ten round trips later, because that queue is
//! its own. A queue of two segments counts as nearly empty, because the paper's receiver
//! acknowledges each packet.

use std::collections::VecDeque;

use airpath_core::{Bitrate, Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Congested, CongestionControl, RateSample, Signal};
use crate::config::Config;

/// Fractional bits of the window, which is in segments.
const FRACTION: u32 = 16;
/// 1/δ of the default mode.
const DEFAULT: u64 = 2;
/// The least round trip is that of the last ten seconds.
const LEAST_WINDOW_OF_TIME: Span = Span::from_secs(10);
/// Round trips without a nearly empty queue before the competitive mode.
const COMPETITIVE_ROUNDS: u32 = 5;
/// Round trips after slow start in which the mode is not judged: with the doubling velocity a queue
/// of 500 segments drains in this time.
const DRAIN_ROUNDS: u32 = 10;
/// Round trips over which the longest one is taken, to judge whether the queue is nearly empty.
const LONGEST_ROUNDS: usize = 4;
/// The queue is nearly empty below this part of its longest delay.
const NEARLY_EMPTY: u64 = 10;
/// Below this window, in segments, two segments of queue are more than a fifth of a round trip.
const SMALL_WINDOW: u64 = 10;
/// Rounds in the same direction before the velocity doubles.
const STEADY_ROUNDS: u32 = 3;
/// The least window, in segments.
const LEAST_WINDOW: u64 = 2;

/// Copa.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Copa {
    segment_size: u64,
    /// In segments.
    window: u64,
    slow_start: bool,
    least: LeastOf,
    standing: LeastOf,
    /// 1/δ.
    inverse_delta: u64,
    velocity: u64,
    direction: Direction,
    /// Rounds in this direction.
    steady: u32,
    round: Round,
    /// The longest round trip of each of the last rounds.
    longest: VecDeque<Span>,
    /// Rounds since the queue was nearly empty.
    queued_rounds: u32,
    /// Rounds that are left to drain the queue of slow start.
    drain_rounds: u32,
    /// A loss in this round has halved 1/δ.
    halved: bool,
    pacing_rate: u64,
    before: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Direction {
    Up,
    Down,
}

/// A round trip.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Round {
    /// It ends when a segment is acknowledged that was sent with this number delivered.
    end: u64,
    /// The window at its start.
    window: u64,
    longest: Span,
}

/// The least value of a sliding time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct LeastOf {
    /// Increasing values with their times; the first is the least.
    values: VecDeque<(Instant, Span)>,
}

impl LeastOf {
    fn update(&mut self, now: Instant, value: Span, time: Span) -> Span {
        while self.values.back().is_some_and(|(_, last)| *last >= value) {
            self.values.pop_back();
        }
        self.values.push_back((now, value));
        while self.values.front().is_some_and(|(at, _)| now.since(*at) > time) {
            self.values.pop_front();
        }
        self.values.front().map_or(value, |(_, least)| *least)
    }
}

impl Copa {
    /// A controller with the configured initial window, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        let segment_size = u64::from(size.max(1));
        let window = (config.initial_window.bytes(size) / segment_size).max(LEAST_WINDOW) << FRACTION;
        Self {
            segment_size,
            window,
            slow_start: true,
            least: LeastOf::default(),
            standing: LeastOf::default(),
            inverse_delta: DEFAULT,
            velocity: 1,
            direction: Direction::Up,
            steady: 0,
            round: Round { end: 0, window, longest: Span::ZERO },
            longest: VecDeque::new(),
            queued_rounds: 0,
            drain_rounds: DRAIN_ROUNDS,
            halved: false,
            // Unpaced until a round trip is known.
            pacing_rate: u64::MAX / 8,
            before: None,
        }
    }

    /// Whether the window is below the target: the current rate, a window per standing round trip,
    /// is at most 1 / (δ · queueing delay).
    fn is_below_target(&self, standing: Span, queued: Span) -> bool {
        let window = u128::from(self.window) * u128::from(queued.as_nanos());
        window <= (u128::from(self.inverse_delta) * u128::from(standing.as_nanos())) << FRACTION
    }

    /// Sets the direction. A change resets the velocity.
    fn turn(&mut self, direction: Direction) {
        if self.direction != direction {
            self.direction = direction;
            self.velocity = 1;
            self.steady = 0;
        }
    }

    /// Ends a round: velocity, mode and 1/δ.
    fn end_round(&mut self, sample: &RateSample, least: Span) {
        let direction = if self.window > self.round.window { Direction::Up } else { Direction::Down };
        if !self.slow_start {
            if direction == self.direction {
                self.steady += 1;
                if self.steady >= STEADY_ROUNDS {
                    self.velocity = self.velocity.saturating_mul(2);
                }
            }
            self.turn(direction);
        }
        self.longest.push_back(self.round.longest);
        if self.longest.len() > LONGEST_ROUNDS {
            self.longest.pop_front();
        }
        if self.drain_rounds == 0 {
            self.queued_rounds = self.queued_rounds.saturating_add(1);
        } else if !self.slow_start {
            self.drain_rounds -= 1;
        }
        if self.queued_rounds > COMPETITIVE_ROUNDS && !self.slow_start {
            if !self.halved {
                self.inverse_delta += 1;
            }
        } else {
            self.inverse_delta = DEFAULT;
        }
        self.halved = false;
        self.round = Round { end: sample.total_delivered, window: self.window, longest: least };
    }

    /// Notes whether the queue is nearly empty: its delay is below a tenth of the longest, or below
    /// that of two segments at the own rate. With acknowledgements of two segments, one waits for
    /// the other, so the window of an empty queue has them in addition. A small window has a small
    /// rate, at which two segments are a full queue.
    fn watch_queue(&mut self, standing: Span, least: Span) {
        let queued = standing.saturating_sub(least).as_nanos();
        let longest = self.longest.iter().copied().chain([self.round.longest]).max().unwrap_or(least);
        let range = longest.saturating_sub(least).as_nanos();
        let pair = u128::from(2 * standing.as_nanos()) << FRACTION;
        let is_pair = self.window >= SMALL_WINDOW << FRACTION && u128::from(queued) * u128::from(self.window) <= pair;
        if queued * NEARLY_EMPTY <= range || is_pair {
            self.queued_rounds = 0;
        }
    }

    fn move_window(&mut self, acknowledged: u64, up: bool) {
        if self.slow_start && up {
            self.window += acknowledged << FRACTION;
            return;
        }
        if up {
            self.drain_rounds = 0;
        }
        self.slow_start = false;
        self.turn(if up { Direction::Up } else { Direction::Down });
        let step = u128::from(self.velocity) * u128::from(self.inverse_delta) * u128::from(acknowledged);
        let step =
            ((step << (2 * FRACTION)) / u128::from(self.window)).min(u128::from(acknowledged << FRACTION)) as u64;
        self.window = if up { self.window + step } else { self.window.saturating_sub(step) };
        self.window = self.window.max(LEAST_WINDOW << FRACTION);
    }

    fn set_pacing_rate(&mut self, standing: Span) {
        // Twice the window per standing round trip, in bytes per second.
        let bytes = (u128::from(self.window) * u128::from(self.segment_size) * 2) >> FRACTION;
        let rate = bytes * 1_000_000_000 / u128::from(standing.as_nanos().max(1));
        self.pacing_rate = u64::try_from(rate).unwrap_or(u64::MAX / 8).clamp(1, u64::MAX / 8);
    }
}

impl CongestionControl for Copa {
    fn name(&self) -> &'static str {
        "copa"
    }

    fn takes_over(&self) -> bool {
        true
    }

    fn on_ack(&mut self, _: &Acknowledged) {}

    fn on_rate_sample(&mut self, sample: &RateSample) {
        let Some(round_trip) = sample.round_trip else { return };
        let smoothed = sample.smoothed_round_trip.unwrap_or(round_trip);
        let least = self.least.update(sample.now, round_trip, LEAST_WINDOW_OF_TIME);
        let half = Span::from_nanos(smoothed.as_nanos() / 2);
        let standing = self.standing.update(sample.now, round_trip, half);
        let queued = standing.saturating_sub(least);
        self.round.longest = self.round.longest.max(round_trip);
        self.watch_queue(standing, least);
        let up = self.is_below_target(standing, queued);
        // A window that is half empty does not show that the path takes more (RFC 7661 §4.2).
        if !up || (2 * sample.prior_in_flight) << FRACTION >= self.window {
            self.move_window(sample.acknowledged, up);
        }
        if sample.delivered.is_some() && sample.prior_delivered >= self.round.end {
            self.end_round(sample, least);
        }
        self.set_pacing_rate(standing);
    }

    /// Segments leave one by one: a pair would queue behind itself, and the queue seem never empty.
    fn pacing_aggregate(&self, _: u32, _: u64) -> u32 {
        1
    }

    fn on_congestion(&mut self, congested: &Congested) {
        if !congested.again {
            self.before = Some(self.window);
        }
        match congested.signal {
            Signal::Timeout => {
                self.window = LEAST_WINDOW << FRACTION;
                self.velocity = 1;
                self.steady = 0;
                self.slow_start = false;
            }
            Signal::Loss if self.queued_rounds > COMPETITIVE_ROUNDS && !self.halved => {
                self.halved = true;
                self.inverse_delta = (self.inverse_delta / 2).max(DEFAULT);
            }
            Signal::Loss | Signal::Mark => {}
        }
    }

    fn undo(&mut self, _: Instant) {
        if let Some(before) = self.before.take() {
            self.window = self.window.max(before);
        }
    }

    fn on_idle(&mut self, _: Instant, window: u64, _: u64) {
        let window = (window / self.segment_size).max(LEAST_WINDOW) << FRACTION;
        self.window = self.window.min(window);
    }

    /// The window is in segments, so it falls with their size.
    fn on_segment_size(&mut self, size: u32) {
        self.segment_size = u64::from(size.max(1));
    }

    fn congestion_window(&self) -> u64 {
        ((u128::from(self.window) * u128::from(self.segment_size)) >> FRACTION) as u64
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        Some(Bitrate::from_bps(self.pacing_rate.saturating_mul(8)))
    }
}
