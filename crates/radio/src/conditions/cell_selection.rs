//! Selection of the serving cell: the strongest one, with hysteresis and a time to trigger.

/// The rule of selection. Times are counted in measurements.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Decibels by which another cell must be better.
    pub hysteresis: f64,
    /// Consecutive measurements in which it must be better (time to trigger), at least one.
    pub measurements: u32,
    /// The lowest level at which a cell can serve, in decibels over noise.
    pub lowest: f64,
}

/// Counters over the measurements up to now, for every possible serving cell. The next serving cell
/// follows from these counters and the present one, so that it can be computed without the history
/// of serving cells.
#[derive(Clone, Debug)]
pub struct Measurements {
    rule: Rule,
    levels: Vec<f64>,
    /// Consecutive measurements in which cell c was better than cell s, at index c·cells + s.
    better: Vec<u32>,
    /// Consecutive measurements in which a cell was below the lowest level.
    weak: Vec<u32>,
}

/// The serving cell; none where there is no coverage.
pub type ServingCell = Option<u16>;

impl Measurements {
    /// No measurement yet, of `cells` cells.
    pub fn new(rule: Rule, cells: usize) -> Self {
        Self { rule, levels: Vec::new(), better: vec![0; cells * cells], weak: vec![0; cells] }
    }

    /// Resets all counters.
    pub fn clear(&mut self) {
        self.better.fill(0);
        self.weak.fill(0);
    }

    /// Adds a measurement: `measure` writes the levels of all cells into the vector.
    pub fn add(&mut self, measure: impl FnOnce(&mut Vec<f64>)) {
        let Self { rule, levels, better, weak } = self;
        measure(levels);
        let cells = levels.len();
        let count = |counter: &mut u32, goes_on: bool| *counter = if goes_on { counter.saturating_add(1) } else { 0 };
        for (cell, level) in levels.iter().enumerate() {
            count(&mut weak[cell], *level < rule.lowest);
            for (serving, other) in levels.iter().enumerate() {
                count(&mut better[cell * cells + serving], *level > other + rule.hysteresis);
            }
        }
    }

    /// The serving cell of a mobile at its beginning.
    pub fn first(&self) -> ServingCell {
        self.strongest(self.rule.lowest, |_| true)
    }

    /// The serving cell from the last measurement on, if it was `serving` before.
    pub fn next(&self, serving: ServingCell) -> ServingCell {
        let Rule { hysteresis, measurements, lowest } = self.rule;
        let Some(cell) = serving else { return self.strongest(lowest + hysteresis, |_| true) };
        let cells = self.levels.len();
        let is_better = |other: usize| self.better[other * cells + usize::from(cell)] >= measurements;
        if let Some(better) = self.strongest(lowest, is_better) {
            return Some(better);
        }
        if self.weak[usize::from(cell)] >= measurements { self.strongest(lowest, |_| true) } else { serving }
    }

    /// The strongest cell of at least `lowest` that `may` serve.
    fn strongest(&self, lowest: f64, may: impl Fn(usize) -> bool) -> ServingCell {
        let able = self.levels.iter().enumerate().filter(|(cell, level)| **level >= lowest && may(*cell));
        able.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(cell, _)| cell as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(series: &[[f64; 2]], mut serving: ServingCell) -> Vec<ServingCell> {
        let mut measurements = Measurements::new(Rule { hysteresis: 3.0, measurements: 2, lowest: 5.0 }, 2);
        let mut cells = Vec::new();
        for levels in series {
            measurements.add(|into| {
                into.clear();
                into.extend(levels);
            });
            serving = measurements.next(serving);
            cells.push(serving);
        }
        cells
    }

    #[test]
    fn another_cell_must_be_better_by_the_hysteresis_for_some_time() {
        let series = [[10.0, 12.0], [10.0, 14.0], [10.0, 12.0], [10.0, 14.0], [10.0, 14.0], [12.0, 11.0]];
        assert_eq!(follow(&series, Some(0)), [0, 0, 0, 0, 1, 1].map(Some));
    }

    #[test]
    fn coverage_is_lost_late_and_comes_back_with_a_margin() {
        let series = [[4.0, 4.0], [4.0, 4.0], [4.0, 6.0], [4.0, 8.0], [4.0, 4.0], [6.0, 4.0]];
        assert_eq!(follow(&series, Some(0)), [Some(0), None, None, Some(1), Some(1), Some(0)]);
        // One that is strong enough takes over although it is better by less than the hysteresis.
        assert_eq!(follow(&[[4.0, 6.0], [4.0, 6.0]], Some(0)), [Some(0), Some(1)]);
    }
}
