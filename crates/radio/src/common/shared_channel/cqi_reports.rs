//! CQI reports as the base station has them, with their delay (TS 25.214 §6A.1.2, TS 36.213 §7.2).

use std::collections::VecDeque;

use airpath_core::{Instant, Span};

use crate::common::multiplexing::due::pop_due;

/// The reports of one mobile. They are taken at multiples of the cycle, and heard a delay later.
/// Outdated reports are never computed: an idle mobile costs
/// nothing.
#[derive(Clone, Debug)]
pub struct Reports {
    cycle: Span,
    delay: Span,
    /// The number of the next report that may be taken.
    next: u64,
    /// Reports in flight, with the times of their arrival.
    in_flight: VecDeque<(Instant, u8)>,
    heard: u8,
}

impl Reports {
    /// None yet.
    pub const fn new(cycle: Span, delay: Span) -> Self {
        Self { cycle, delay, next: 0, in_flight: VecDeque::new(), heard: 0 }
    }

    /// The times up to `now` at which reports were taken that are not older than the one that is
    /// heard then, one after the other. Measurements must be [taken](Self::take) before the
    /// next call.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        let next = Instant::from_nanos(self.next * self.cycle.as_nanos());
        if next > now {
            return None;
        }
        let heard = now.as_nanos().saturating_sub(self.delay.as_nanos()) / self.cycle.as_nanos();
        self.next = self.next.max(heard);
        let at = Instant::from_nanos(self.next * self.cycle.as_nanos());
        (at <= now).then_some(at)
    }

    /// Takes the report that is due.
    pub fn take(&mut self, cqi: u8) {
        let at = Instant::from_nanos(self.next * self.cycle.as_nanos());
        // The connection was set up with one report.
        let heard = if self.next == 0 { at } else { at + self.delay };
        self.in_flight.push_back((heard, cqi));
        self.next += 1;
    }

    /// Whether the base station hears nothing else than `cqi` as long as that is measured.
    pub fn is_settled(&self, cqi: u8) -> bool {
        self.heard == cqi && self.in_flight.iter().all(|(_, reported)| *reported == cqi)
    }

    /// What was heard last at `now`.
    pub fn heard(&mut self, now: Instant) -> u8 {
        while let Some(cqi) = pop_due(&mut self.in_flight, now) {
            self.heard = cqi;
        }
        self.heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_heard_late_and_not_taken_in_vain() {
        let ms = |millis: u64| Instant::ZERO + Span::from_millis(millis);
        let mut reports = Reports::new(Span::from_millis(4), Span::from_millis(6));
        // What is reported is when.
        let mut at = |millis| {
            let mut taken = 0;
            while let Some(at) = reports.due(ms(millis)) {
                reports.take((at.as_nanos() / 1_000_000) as u8);
                taken += 1;
            }
            (taken, reports.heard(ms(millis)))
        };
        assert_eq!(at(0), (1, 0));
        assert_eq!(at(8), (2, 0));
        assert_eq!(at(10), (0, 4));
        assert_eq!(at(14), (1, 8));
        assert_eq!(at(200), (3, 192), "those of 192, 196 and 200 ms");
    }
}
