//! How late packets left, as the emulator measures it.

use airpath_core::Span;
use hdrhistogram::Histogram;
use serde::Serialize;

/// How much later than due packets left.
#[derive(Clone, Debug)]
pub struct Lateness {
    nanoseconds: Histogram<u64>,
}

/// The lateness of a run.
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
    /// Whether they did not exceed it.
    pub within_budget: bool,
    /// Whether the run is valid: 99 % of the packets left within the budget, and the kernel dropped
    /// no packet because the emulator did not read it in time.
    pub valid: bool,
}

/// The budget of a link without slots: a tenth of a round trip of 20 ms, the shortest of mobile
/// networks.
const LEAST_BUDGET: Span = Span::from_millis(2);

/// The budget of a link whose bearer transmits in this period: half of it. A packet waits for the
/// next period that long on average anyway.
pub fn default_budget(transmission_period: Option<Span>) -> Span {
    transmission_period.map_or(LEAST_BUDGET, |period| LEAST_BUDGET.max(Span::from_nanos(period.as_nanos() / 2)))
}

/// Anything longer is counted as this.
const LONGEST: u64 = 3_600_000_000_000;

impl Lateness {
    /// No packet has left yet.
    pub fn new() -> Self {
        let nanoseconds = Histogram::new_with_bounds(1, LONGEST, 3).expect("these bounds and digits are in order");
        Self { nanoseconds }
    }

    /// A packet left `late` after its due time.
    #[inline]
    pub fn record(&mut self, late: Span) {
        self.nanoseconds.saturating_record(late.as_nanos());
    }

    /// The lateness that this percentage of the packets does not exceed.
    pub fn percentile(&self, per_cent: f64) -> Span {
        Span::from_nanos(self.nanoseconds.value_at_percentile(per_cent))
    }

    /// The row of the summary, for this budget and number of overruns.
    pub fn row(&self, budget: Span, overruns: u64) -> LatenessRow {
        let seconds = |per_cent| self.percentile(per_cent).as_secs_f64();
        let within_budget = self.percentile(99.0) <= budget;
        LatenessRow {
            packets: self.nanoseconds.len(),
            p50_s: seconds(50.0),
            p99_s: seconds(99.0),
            p99_9_s: seconds(99.9),
            max_s: Span::from_nanos(self.nanoseconds.max()).as_secs_f64(),
            budget_s: budget.as_secs_f64(),
            within_budget,
            valid: within_budget && overruns == 0,
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
        assert!(lateness.row(Span::from_micros(500), 0).valid);
        (0..2).for_each(|_| lateness.record(Span::from_millis(2)));
        let row = lateness.row(Span::from_micros(500), 0);
        assert!(!row.valid, "two in a hundred were too late");
        assert_eq!(row.packets, 100);
        assert!((row.p50_s - 10e-6).abs() < 0.1e-6 && (row.max_s - 2e-3).abs() < 0.01e-3, "{row:?}");
        assert!(lateness.row(Span::from_millis(3), 0).valid);
    }

    #[test]
    fn a_run_with_overruns_is_not_valid() {
        let mut lateness = Lateness::new();
        lateness.record(Span::from_micros(10));
        assert!(lateness.row(Span::from_micros(500), 0).valid);
        let row = lateness.row(Span::from_micros(500), 1);
        assert!(row.within_budget && !row.valid);
    }

    #[test]
    fn the_default_budget_grows_with_the_period() {
        let budget = |period: Option<u64>| default_budget(period.map(Span::from_millis));
        assert_eq!(budget(None), Span::from_millis(2));
        assert_eq!(budget(Some(2)), Span::from_millis(2), "HSDPA");
        assert_eq!(budget(Some(20)), Span::from_millis(10), "GPRS");
    }

    #[test]
    fn nothing_is_not_late() {
        assert!(Lateness::new().row(Span::ZERO, 0).valid);
    }
}
