//! Which cell serves a mobile: the strongest, with hysteresis and a time for which another must be better.

/// The rule. Times are counted in measurements.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// By how many decibels another cell must be better.
    pub hysteresis: f64,
    /// At how many measurements in a row, at least one.
    pub measurements: u32,
    /// The lowest level at which a cell can serve, in decibels over noise.
    pub lowest: f64,
}

/// What the measurements up to now say. It does not depend on which cell serves: whatever that is, the next follows
/// from this, so that the serving cell can be found without going through all that happened.
#[derive(Clone, Debug)]
pub struct Measurements {
    rule: Rule,
    levels: Vec<f64>,
    /// At how many measurements in a row cell c was better than cell s, at c·cells + s.
    better: Vec<u32>,
    /// At how many measurements in a row a cell was too weak.
    weak: Vec<u32>,
}

/// The serving cell; none where there is no coverage.
pub type Serving = Option<u16>;

impl Measurements {
    /// None yet, of so many cells.
    pub fn new(rule: Rule, cells: usize) -> Self {
        Self { rule, levels: Vec::new(), better: vec![0; cells * cells], weak: vec![0; cells] }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.better.fill(0);
        self.weak.fill(0);
    }

    /// Measures once more: `measure` puts the levels of all cells into the vector.
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

    /// The cell with which a mobile begins.
    pub fn first(&self) -> Serving {
        self.strongest(self.rule.lowest, |_| true)
    }

    /// The cell that serves from the last measurement on, if `serving` did before it.
    pub fn next(&self, serving: Serving) -> Serving {
        let Rule { hysteresis, measurements, lowest } = self.rule;
        let Some(cell) = serving else { return self.strongest(lowest + hysteresis, |_| true) };
        let cells = self.levels.len();
        let is_better = |other: usize| self.better[other * cells + usize::from(cell)] >= measurements;
        if let Some(better) = self.strongest(lowest, is_better) {
            return Some(better);
        }
        if self.weak[usize::from(cell)] >= measurements { self.strongest(lowest, |_| true) } else { serving }
    }

    /// The strongest of those cells that are not below `lowest`.
    fn strongest(&self, lowest: f64, may: impl Fn(usize) -> bool) -> Serving {
        let able = self.levels.iter().enumerate().filter(|(cell, level)| **level >= lowest && may(*cell));
        able.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(cell, _)| cell as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(series: &[[f64; 2]], mut serving: Serving) -> Vec<Serving> {
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
