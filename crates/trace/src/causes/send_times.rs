//! Sending times at the receiver: from the timestamps of the sender (RFC 7323 §3).
//!
//! The clock of the timestamps has an unknown origin and rate. The rate is one of a few that
//! systems use; the segment with the shortest delay gives the origin.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Timestamps;

/// Time per tick of the clocks that show a queue: 1 MHz (`tcp_usec_ts` of Linux), 1000, 250 and
/// 100 Hz. Slower ones are too coarse.
const TICKS: [Span; 4] = [Span::from_micros(1), Span::from_millis(1), Span::from_millis(4), Span::from_millis(10)];

/// Ticks, and time, after which the rate of the clock is estimated.
const LEAST_TICKS: i64 = 10;
const LEAST_TIME: Span = Span::from_millis(10);

/// An estimate fits a clock if it is at least this percentage of its tick: the first timestamp may
/// have been delayed. 300 Hz must not fit 250 Hz.
const SHORTEST: u64 = 85;

/// And at most this percentage: later timestamps are delayed while a queue grows.
const LONGEST: u64 = 300;

/// A clock is rejected if all estimates exceed this percentage while the measurement doubles its
/// length, and no block shows its rate.
const REJECTED: u64 = 175;

/// Slow start into a long queue shows 200 %, too, but only after estimates up to this percentage.
/// It is over before the measurement lasts `LONGEST_FILL`.
const BEFORE_QUEUE: u64 = 125;
const LONGEST_FILL: Span = Span::from_secs(30);

/// A block lasts at least this time. It shows the rate of a clock within this percentage while a
/// queue is steady.
const BLOCK: Span = Span::from_millis(250);
const BLOCK_TOLERANCE: u64 = 15;

/// Consecutive blocks that reject a clock, and that confirm one after that.
const MISFITS: u32 = 4;
const FITS: u32 = 2;

/// The clocks of two hosts drift apart by up to 50 µs in a second, one part of this number: an
/// assumption, as quartz clocks have up to 50 ppm.
const DRIFT: u64 = 20_000;

/// After a longer pause the measurement starts again: at 1 MHz timestamps wrap within 2147 s.
const LONGEST_PAUSE: Span = Span::from_secs(1000);

/// The clock of the other end's timestamps.
#[derive(Clone, Debug, Default)]
pub(super) struct SendTimes {
    /// The last timestamp, and when it arrived.
    last: Option<(u32, Instant)>,
    /// Ticks from the first timestamp of the measurement to the last, and when the first arrived.
    ticks: i64,
    begin: Instant,
    tick: Option<Span>,
    /// The shortest time per tick between the first timestamp and a later one. Delays lengthen it.
    per_tick: Option<Span>,
    /// The shortest since the measurement lasted the time `half`, and for the time before.
    shortest: Option<Span>,
    half: Span,
    /// The ticks and the time at the begin of the block.
    block: (i64, Instant),
    /// The clock that the last blocks fit, and how many of them.
    fits: (Option<Span>, u32),
    rejected: bool,
    /// The earliest arrival of tick 0 on the path as it is without a queue, in nanoseconds since
    /// 1970, and when it was found.
    earliest: Option<(i64, Instant)>,
}

impl SendTimes {
    /// A segment of the other end arrived. Returns when it had arrived without waiting for others
    /// and without a transmission time; `None` while the clock is not known.
    pub(super) fn arrived(&mut self, timestamps: Option<Timestamps>, now: Instant) -> Option<Instant> {
        let Timestamps { value, .. } = timestamps?;
        match self.last {
            Some((last, time)) if now.since(time) <= LONGEST_PAUSE => {
                self.ticks = self.ticks.saturating_add(i64::from(value.wrapping_sub(last) as i32));
            }
            _ => *self = Self { begin: now, block: (0, now), ..Self::default() },
        }
        self.last = Some((value, now));
        self.estimate_tick(now);
        let tick = self.tick?.as_nanos() as i64;
        let elapsed = self.ticks.saturating_mul(tick);
        let origin = (now.as_nanos() as i64).saturating_sub(elapsed);
        let risen =
            self.earliest.map(|(earliest, at)| earliest.saturating_add_unsigned((now.since(at) / DRIFT).as_nanos()));
        let earliest = match risen {
            Some(risen) if risen <= origin => risen,
            _ => {
                self.earliest = Some((origin, now));
                origin
            }
        };
        // It was sent in the middle of its tick.
        let expected = earliest.saturating_add(elapsed).saturating_add(tick / 2);
        Some(Instant::from_nanos(expected.max(0) as u64).min(now))
    }

    /// Estimates the time per tick.
    fn estimate_tick(&mut self, now: Instant) {
        let time = now.since(self.begin);
        if self.ticks < LEAST_TICKS || time < LEAST_TIME {
            return;
        }
        let sample = time / self.ticks as u64;
        let shortest = self.per_tick.map_or(sample, |shortest| shortest.min(sample));
        self.per_tick = Some(shortest);
        let [_, slower, ..] = TICKS;
        // No clock is between them: the first timestamp was delayed.
        let lengthened = if shortest >= slower / 2 { shortest.max(slower) } else { shortest };
        let fit = TICKS.into_iter().rfind(|tick| (*tick * SHORTEST..=*tick * LONGEST).contains(&(lengthened * 100)));
        if fit.is_none() && shortest < slower {
            self.restart(now);
            return;
        }
        let is_confirmed = self.fits.0.is_some() && self.fits.1 >= FITS;
        if !self.rejected && (fit.is_some() || !is_confirmed) {
            self.set_tick(fit);
        }
        self.add_to_block(sample, now);
        if time >= self.half * 2 {
            let exceeds = |estimate: Span, percentage| self.tick.is_some_and(|tick| estimate > tick * percentage / 100);
            let too_long =
                |latest| exceeds(latest, REJECTED) && (time > LONGEST_FILL || exceeds(shortest, BEFORE_QUEUE));
            if self.shortest.is_some_and(too_long) && self.fits.0 != self.tick && self.fits.1 >= MISFITS {
                self.rejected = true;
                self.set_tick(None);
            }
            (self.half, self.shortest) = (time, None);
        }
        self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
    }

    /// Compares the rate of the last block with the clocks.
    fn add_to_block(&mut self, sample: Span, now: Instant) {
        let (ticks, time) = (self.ticks - self.block.0, now.since(self.block.1));
        if ticks < LEAST_TICKS || time < BLOCK {
            return;
        }
        self.block = (self.ticks, now);
        let of_block = time / ticks as u64;
        let fit = TICKS.into_iter().find(|tick| of_block.abs_diff(*tick) <= *tick * BLOCK_TOLERANCE / 100);
        self.fits = (fit, if fit == self.fits.0 { self.fits.1 + 1 } else { 1 });
        let is_possible = fit.is_some_and(|tick| sample >= tick * SHORTEST / 100);
        if (self.rejected || self.tick.is_none()) && is_possible && self.fits.1 >= FITS {
            self.set_tick(fit);
        }
    }

    fn set_tick(&mut self, tick: Option<Span>) {
        if self.tick != tick {
            self.tick = tick;
            // At tick 0 every clock has the same time.
            self.earliest = Some((self.begin.as_nanos() as i64, self.begin));
        }
    }

    /// Starts the measurement again with the last timestamp.
    fn restart(&mut self, now: Instant) {
        *self = Self { last: self.last, begin: now, block: (0, now), ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    /// What the drift adds within some seconds.
    const DRIFTED: Span = Span::from_millis(1);

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
            let entered = times.arrived(stamps(100), at(150 + 110 * tick)).unwrap();
            assert!(entered.since(expected) < DRIFTED, "{name}: {entered:?}");
        }
    }

    #[test]
    fn only_a_clock_of_a_known_rate_is_used() {
        for (tick, is_known) in
            [(1, true), (1000, true), (2000, false), (3333, false), (4000, true), (20_000, false), (100_000, false)]
        {
            let mut times = SendTimes::default();
            let mut waits = 0;
            // 50 minutes with a segment each 100 ms, and a wait of 50 ms at each other.
            for segment in 0..30_000_u64 {
                let sent = segment * 100_000;
                let wait = Span::from_millis(segment % 2 * 50);
                let now = at(50) + Span::from_micros(sent) + wait;
                if let Some(entered) = times.arrived(stamps((sent / tick) as u32), now) {
                    waits += 1;
                    if !is_known {
                        // It takes some seconds to reject a clock.
                        assert!(segment < 50, "{tick} µs: {segment}");
                        continue;
                    }
                    let error = now.since(entered).abs_diff(wait);
                    // Half of a tick, and the drift that is allowed for between two minima.
                    assert!(error <= Span::from_micros(tick / 2 + 10), "{tick} µs: {error}");
                }
            }
            assert!(!is_known || waits > 29_900, "{tick} µs: {waits}");
        }
    }

    #[test]
    fn a_delayed_first_timestamp_does_not_spoil_the_clock() {
        for tick in [1, 4] {
            let mut times = SendTimes::default();
            times.arrived(stamps(0), at(2000));
            let mut known = 0;
            for segment in 21..60 {
                known += u32::from(times.arrived(stamps((segment * 100 / tick) as u32), at(segment * 100)).is_some());
            }
            assert!(known > 20, "{tick} ms: {known}");
            let entered = times.arrived(stamps((6000 / tick) as u32), at(7000)).unwrap();
            assert!(entered.since(at(6000)) < Span::from_millis(tick) + DRIFTED, "{tick} ms: {entered:?}");
        }
    }

    #[test]
    fn a_queue_of_half_an_hour_stays_a_queue() {
        let mut times = SendTimes::default();
        for segment in 0..10 {
            times.arrived(stamps(segment * 10), at(u64::from(segment) * 10));
        }
        for segment in 10..1800_u64 {
            let entered = times.arrived(stamps((segment * 1000) as u32), at(segment * 1000 + 800)).unwrap();
            assert!(at(segment * 1000 + 800).since(entered) > Span::from_millis(700), "{segment}");
        }
    }

    #[test]
    fn data_that_an_outage_delays_does_not_change_the_clock() {
        let mut times = SendTimes::default();
        times.arrived(stamps(0), at(500));
        times.arrived(stamps(700), at(1400));
        // Sent before an outage of nine seconds, and during it.
        times.arrived(stamps(1500), at(11_100));
        let entered = times.arrived(stamps(3000), at(11_500)).unwrap();
        assert!(entered.since(at(3500)) < Span::from_micros(500) + DRIFTED, "{entered:?}");
    }
}
