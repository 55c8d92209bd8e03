//! Sending times at the receiver: from the timestamps of the sender (RFC 7323 §3).
//!
//! The clock of the timestamps has an unknown origin and rate. The rate is one of a few that
//! systems use; the segment with the shortest delay gives the origin.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Timestamps;

/// Time per tick of the usual clocks: 1000, 250 and 100 Hz. Slower ones show no queue.
const TICKS: [Span; 3] = [Span::from_millis(1), Span::from_millis(4), Span::from_millis(10)];

/// Ticks after which the rate of the clock is estimated.
const LEAST_TICKS: i64 = 10;

/// The part by which an estimate may be too short: the first timestamp may have been delayed.
const TOLERANCE: u64 = 4;

/// The shortest delay is that of the last one to two of these periods: clocks of two hosts drift by
/// up to 50 µs in a second.
const PERIOD: Span = Span::from_secs(300);

/// The clock of the other end's timestamps.
#[derive(Clone, Debug, Default)]
pub(super) struct SendTimes {
    /// The first timestamp, and when it arrived.
    first: Option<(u32, Instant)>,
    /// The shortest time per tick between the first timestamp and a later one. Delays lengthen it.
    per_tick: Option<Span>,
    tick: Option<Span>,
    /// The earliest arrival of tick 0 on the path as it is without a queue, in nanoseconds since
    /// 1970: of this period and of the one before.
    earliest: [Option<i64>; 2],
    period_begin: Instant,
}

impl SendTimes {
    /// A segment of the other end arrived. Returns when it had arrived without waiting for others
    /// and without a transmission time; `None` while the clock is not known.
    pub(super) fn arrived(&mut self, timestamps: Option<Timestamps>, now: Instant) -> Option<Instant> {
        let Timestamps { value, .. } = timestamps?;
        let (first, begin) = *self.first.get_or_insert((value, now));
        let ticks = i64::from(value.wrapping_sub(first) as i32);
        self.estimate_tick(ticks, now.since(begin));
        let tick = self.tick?;
        if now.since(self.period_begin) > PERIOD {
            self.earliest = [None, self.earliest[0].filter(|_| now.since(self.period_begin) < PERIOD * 2)];
            self.period_begin = now;
        }
        let elapsed = ticks.saturating_mul(tick.as_nanos() as i64);
        let origin = (now.as_nanos() as i64).saturating_sub(elapsed);
        self.earliest[0] = Some(self.earliest[0].map_or(origin, |earliest| earliest.min(origin)));
        let earliest = self.earliest.into_iter().flatten().min()?;
        // It was sent in the middle of its tick.
        let expected = earliest.saturating_add(elapsed).saturating_add(tick.as_nanos() as i64 / 2);
        Some(Instant::from_nanos(expected.max(0) as u64).min(now))
    }

    /// Estimates the time per tick.
    fn estimate_tick(&mut self, ticks: i64, time: Span) {
        if ticks < LEAST_TICKS {
            return;
        }
        let sample = time / ticks as u64;
        let shortest = self.per_tick.map_or(sample, |shortest| shortest.min(sample));
        self.per_tick = Some(shortest);
        // The slowest clock that the samples allow.
        let slower = TICKS[1..].iter().take_while(|tick| **tick <= shortest + shortest / TOLERANCE).count();
        if self.tick != Some(TICKS[slower]) {
            self.tick = Some(TICKS[slower]);
            // At tick 0 every clock has the same time.
            self.earliest = [self.first.map(|(_, begin)| begin.as_nanos() as i64), None];
            self.period_begin = self.first.map_or(Instant::ZERO, |(_, begin)| begin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    fn stamps(value: u32) -> Option<Timestamps> {
        Some(Timestamps { value, echo: 0 })
    }

    #[test]
    fn a_segment_that_waited_was_sent_earlier() {
        for (tick, name) in [(1, "1000 Hz"), (4, "250 Hz"), (10, "100 Hz")] {
            let mut times = SendTimes::default();
            // The clock wraps between the two.
            assert_eq!(times.arrived(stamps(u32::MAX - 9), at(50)), None, "{name}");
            assert_eq!(times.arrived(stamps(90), at(50 + 100 * tick)), Some(at(50 + 100 * tick)), "{name}");
            let expected = at(50 + 110 * tick) + Span::from_millis(tick) / 2;
            assert_eq!(times.arrived(stamps(100), at(150 + 110 * tick)), Some(expected), "{name}");
        }
    }

    #[test]
    fn data_that_an_outage_delays_does_not_change_the_clock() {
        let mut times = SendTimes::default();
        times.arrived(stamps(0), at(500));
        times.arrived(stamps(700), at(1400));
        // Sent before an outage of nine seconds, and during it.
        times.arrived(stamps(1500), at(11_100));
        assert_eq!(times.arrived(stamps(3000), at(11_500)), Some(at(3500) + Span::from_micros(500)));
    }
}
