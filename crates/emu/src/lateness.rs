//! How late packets left: the emulator's own account of how well it kept the time.

use airpath_core::Span;
use hdrhistogram::Histogram;
use serde::Serialize;

/// How much later than due packets left.
#[derive(Clone, Debug)]
pub struct Lateness {
    nanoseconds: Histogram<u64>,
}

/// What is said of the lateness at the end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatenessRow {
    /// Packets that left.
    pub packets: u64,
    /// Median lateness, in seconds.
    pub p50_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// 99.9th percentile.
    pub p99_9_s: f64,
    /// Greatest.
    pub max_s: f64,
    /// The lateness that 99 % of the packets must not exceed.
    pub budget_s: f64,
    /// Whether they did not.
    pub valid: bool,
}

/// Anything longer is counted as this.
const LONGEST: u64 = 3_600_000_000_000;

impl Lateness {
    /// Nothing has left yet.
    pub fn new() -> Self {
        let nanoseconds = Histogram::new_with_bounds(1, LONGEST, 3).expect("these bounds and digits are in order");
        Self { nanoseconds }
    }

    /// A packet left so much later than due.
    #[inline]
    pub fn record(&mut self, late: Span) {
        self.nanoseconds.saturating_record(late.as_nanos());
    }

    /// The lateness of so many per cent of the packets is no more than this.
    pub fn percentile(&self, per_cent: f64) -> Span {
        Span::from_nanos(self.nanoseconds.value_at_percentile(per_cent))
    }

    /// What is to be said of it, where 99 % of the packets must not be later than `budget`.
    pub fn row(&self, budget: Span) -> LatenessRow {
        let seconds = |per_cent| self.percentile(per_cent).as_secs_f64();
        LatenessRow {
            packets: self.nanoseconds.len(),
            p50_s: seconds(50.0),
            p99_s: seconds(99.0),
            p99_9_s: seconds(99.9),
            max_s: Span::from_nanos(self.nanoseconds.max()).as_secs_f64(),
            budget_s: budget.as_secs_f64(),
            valid: self.percentile(99.0) <= budget,
        }
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_over_its_budget_is_not_valid() {
        let mut lateness = Lateness::new();
        (0..98).for_each(|_| lateness.record(Span::from_micros(10)));
        assert!(lateness.row(Span::from_micros(500)).valid);
        (0..2).for_each(|_| lateness.record(Span::from_millis(2)));
        let row = lateness.row(Span::from_micros(500));
        assert!(!row.valid, "two in a hundred were too late");
        assert_eq!(row.packets, 100);
        assert!((row.p50_s - 10e-6).abs() < 0.1e-6 && (row.max_s - 2e-3).abs() < 0.01e-3, "{row:?}");
        assert!(lateness.row(Span::from_millis(3)).valid);
    }

    #[test]
    fn nothing_is_not_late() {
        assert!(Lateness::new().row(Span::ZERO).valid);
    }
}
