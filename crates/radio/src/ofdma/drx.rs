//! Discontinuous reception (TS 36.321 §5.7, TS 38.321 §5.7): when a connected mobile listens to the
//! PDCCH.
//!
//! Nothing is stepped: the next subframe in which the mobile listens follows from the last
//! activity. A mobile that waits for a retransmission of HARQ, or for the answer to a scheduling
//! request, listens; that is not handled here, because it never delays anything.

use airpath_core::{DrxState, Instant, Span};

use super::config;

/// The cycles of one mobile.
#[derive(Clone, Debug)]
pub struct Drx {
    config: config::Drx,
    /// drxStartOffset: where in the long cycle the on duration begins.
    offset: Span,
    /// When the inactivity timer expires.
    active_until: Instant,
    /// The state that was reported last, and since when.
    reported: Option<DrxState>,
}

impl Drx {
    /// The cycles of a mobile whose on durations begin `offset` after multiples of the cycle.
    pub const fn new(config: config::Drx, offset: Span) -> Self {
        Self { config, offset, active_until: Instant::ZERO, reported: None }
    }

    /// The mobile got an assignment or a grant of new data.
    pub fn active(&mut self, now: Instant) {
        self.active_until = self.active_until.max(now + self.config.inactivity);
    }

    /// The mobile begins with an active time: its connection is new.
    pub fn begin(&mut self, now: Instant) {
        self.active_until = now + self.config.inactivity;
    }

    /// When the short cycle ends.
    fn short_until(&self) -> Instant {
        match (self.config.short, self.config.short_count) {
            (Some(short), Some(count)) => self.active_until + short.saturating_mul(count.into()),
            _ => self.active_until,
        }
    }

    /// The first time from `from` on at which the mobile listens, if nothing happens before.
    #[inline]
    pub fn next_active(&self, from: Instant) -> Instant {
        if from < self.active_until {
            return from;
        }
        let short_until = self.short_until();
        if let Some(short) = self.config.short.filter(|_| from < short_until) {
            let at = self.in_cycle(from, short);
            if at < short_until {
                return at;
            }
            return self.in_cycle(short_until, self.config.long);
        }
        self.in_cycle(from, self.config.long)
    }

    /// The first time from `from` on within an on duration of this cycle.
    fn in_cycle(&self, from: Instant, cycle: Span) -> Instant {
        let offset = Span::from_nanos(self.offset.as_nanos() % cycle.as_nanos());
        let phase = (from.as_nanos() + cycle.as_nanos() - offset.as_nanos()) % cycle.as_nanos();
        if phase < self.config.on.as_nanos() { from } else { from + Span::from_nanos(cycle.as_nanos() - phase) }
    }

    /// The changes of its state up to `now` that were not reported yet, if it was not active in the
    /// meantime.
    pub fn report(&mut self, now: Instant, mut changed: impl FnMut(Instant, DrxState)) {
        let short_until = self.short_until();
        let mut step = |at: Instant, state: DrxState| {
            if at <= now && self.reported.is_none_or(|last| last < state) {
                self.reported = Some(state);
                changed(at, state);
            }
        };
        if short_until > self.active_until {
            step(self.active_until, DrxState::Short);
        }
        step(short_until, DrxState::Long);
    }

    /// Reports that it is active from `now` on.
    pub fn report_active(&mut self, now: Instant, mut changed: impl FnMut(Instant, DrxState)) {
        if self.reported != Some(DrxState::Active) {
            self.reported = Some(DrxState::Active);
            changed(now, DrxState::Active);
        }
    }

    /// It ends with the connection.
    pub const fn forget_report(&mut self) {
        self.reported = None;
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Seed;

    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn drx(text: &str, offset: u64) -> Drx {
        Drx::new(toml::from_str(text).expect("a configuration"), Span::from_millis(offset))
    }

    #[test]
    fn a_mobile_listens_in_the_short_cycle_and_then_in_the_long_one() {
        let text = r#"
            on = "2 ms"
            inactivity = "100 ms"
            short = "20 ms"
            short_count = 2
            long = "40 ms"
        "#;
        let mut drx = drx(text, 25);
        drx.active(at(1000));
        // Short cycles at 5 modulo 20 ms, until 1140; then the long one at 25 modulo 40 ms.
        let expected = [
            (1000, 1000),
            (1099, 1099),
            (1100, 1105),
            (1106, 1106),
            (1107, 1125),
            (1127, 1145),
            (1146, 1146),
            (1147, 1185),
        ];
        for (from, listens) in expected {
            assert_eq!(drx.next_active(at(from)), at(listens), "from {from} ms");
        }
        let mut reported = Vec::new();
        drx.report(at(2000), |at, state| reported.push((at, state)));
        assert_eq!(reported, [(at(1100), DrxState::Short), (at(1140), DrxState::Long)]);
    }

    #[test]
    fn the_mean_wait_is_that_of_the_formula() {
        // (C − o)² / 2C for times that are not bound to subframes.
        let mut stream = Seed::new(1).stream("arrivals");
        for (on, cycle, mean) in [(10.0, 320.0, 150.15625), (1.0, 40.0, 19.0125)] {
            let text = format!("on = \"{on} ms\"\ninactivity = \"100 ms\"\nlong = \"{cycle} ms\"");
            let drx = drx(&text, 7);
            let waits = (0..10_000).map(|_| {
                let from = at(200_000) + Span::from_secs_f64(stream.uniform() * 1000.0);
                drx.next_active(from).since(from).as_secs_f64() * 1e3
            });
            let measured = waits.sum::<f64>() / 10_000.0;
            assert!((measured / mean - 1.0).abs() < 0.02, "{measured} of {mean}");
        }
    }
}
