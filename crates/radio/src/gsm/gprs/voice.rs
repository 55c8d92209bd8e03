//! Calls, which have strict priority: what they need of the packet data channels is gone for as
//! long as they last.
//!
//! Calls come at random and last exponentially long; one that finds no channel is lost. So the
//! number of calls is Erlang's loss system. It takes the channels that carry no data first.

use airpath_core::{Instant, RandomStream, Seed, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ValueError, above_zero, at_most, within_an_hour};
use crate::gsm::gprs::ConfigError;

/// Calls in the cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Voice {
    /// Channels that calls can have, those for data among them.
    pub channels: u16,
    /// The mean time between calls that are tried.
    pub interval: Span,
    /// How long a call lasts, on average.
    pub duration: Span,
}

impl Voice {
    pub(super) fn check(&self, slots: u8) -> Result<(), ConfigError> {
        let min = u64::from(slots);
        if u64::from(self.channels) < min {
            return Err(ValueError::OutOfRange { key: "cell.voice.channels".to_owned(), min, max: 1000 }.into());
        }
        at_most(u64::from(self.channels), 1000, "cell.voice", "channels")?;
        for (span, key) in [(self.interval, "interval"), (self.duration, "duration")] {
            above_zero(span >= Span::from_millis(1), "cell.voice", key)?;
            within_an_hour(span, "cell.voice", key)?;
        }
        Ok(())
    }
}

/// The number of calls in a cell over time.
#[derive(Debug)]
pub struct Calls {
    config: Voice,
    stream: RandomStream,
    calls: u16,
    /// When the next call begins or ends.
    next: Instant,
}

impl Calls {
    /// The calls of a cell that has had them for long.
    pub fn new(config: &Voice, seed: Seed, path: &str) -> Self {
        let mut stream = seed.stream(path);
        let load = config.duration.as_secs_f64() / config.interval.as_secs_f64();
        // The probability of n calls is proportional to loadⁿ/n! (Erlang).
        let weights = (1..=config.channels).scan(1.0, |weight, n| {
            *weight *= load / f64::from(n);
            Some(*weight)
        });
        let weights: Vec<f64> = std::iter::once(1.0).chain(weights).collect();
        let mut draw = stream.uniform() * weights.iter().sum::<f64>();
        let reached = |weight: &&f64| {
            draw -= **weight;
            draw >= 0.0
        };
        let calls = weights.iter().take_while(reached).count().min(config.channels.into()) as u16;
        let mut this = Self { config: config.clone(), stream, calls, next: Instant::ZERO };
        this.schedule(Instant::ZERO);
        this
    }

    /// How many of `slots` timeslots are left for data at `now`. Calls are monotone in `now`.
    #[inline]
    pub fn left(&mut self, now: Instant, slots: u8) -> u8 {
        while self.next <= now {
            let (begins, ends) = self.rates();
            let is_beginning = self.stream.uniform() * (begins + ends) < begins;
            self.calls = if is_beginning { self.calls + 1 } else { self.calls - 1 };
            self.schedule(self.next);
        }
        (self.config.channels - self.calls).min(slots.into()) as u8
    }

    /// Calls that begin and that end, by the second.
    fn rates(&self) -> (f64, f64) {
        let begins = if self.calls < self.config.channels { 1.0 / self.config.interval.as_secs_f64() } else { 0.0 };
        (begins, f64::from(self.calls) / self.config.duration.as_secs_f64())
    }

    fn schedule(&mut self, from: Instant) {
        let (begins, ends) = self.rates();
        let seconds = -libm::log1p(-self.stream.uniform()) / (begins + ends);
        self.next = from + Span::from_secs_f64(seconds) + Span::from_nanos(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_calls_follow_erlang_b() {
        let (interval, duration) = (Span::from_secs(20), Span::from_secs(60));
        let voice = Voice { channels: 5, interval, duration };
        let mut calls = Calls::new(&voice, Seed::new(1), "voice");
        let full = (0..200_000u64).filter(|second| calls.left(Instant::ZERO + Span::from_secs(*second), 3) == 0);
        let share = full.count() as f64 / 200_000.0;
        // Erlang B for 3 erlangs and 5 channels: 11.0 %. About 10000 calls, so the share is known
        // to some 5 % of itself.
        assert!((0.095..0.125).contains(&share), "{share}");
    }
}
