//! A mobile among cells: its position, serving cell and C/I.
//!
//! Measurements are at multiples of their period. The serving cell changes at measurements only;
//! C/I is interpolated linearly between two of them. Levels follow from the seed and the number of
//! the measurement. The serving cell also depends on the previous ones, because of the hysteresis.
//! After a long gap between calls it is found by coupling from the past (J. G. Propp and D. B.
//! Wilson, Random Structures and Algorithms 9, 1996): the measurements of the last `past` steps are
//! processed for every possible serving cell at their beginning. If all end in the same cell, that
//! is the serving cell; otherwise the number of steps is doubled.

use std::collections::VecDeque;

use airpath_core::{Instant, Span};

use super::cell_selection::{Measurements, ServingCell};
use super::movement::Motion;
use super::site::Sites;
use super::{Sample, Transition};

/// How a mobile changes cells.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// By itself, with a gap.
    Reselection(Span),
    /// By the network's command, with a gap.
    Handover(Span),
    /// All cells within this window below the strongest serve it together, in decibels.
    Soft(f64),
}

/// The correlation of the shadowing.
#[derive(Clone, Copy, Debug)]
pub enum Correlation {
    /// Correlation distance in metres.
    Distance(f64),
    /// Correlation time in seconds.
    Time(f64),
}

impl Correlation {
    /// The position, or the time, in units of the correlation distance or time.
    pub fn reached(self, position: f64, seconds: f64) -> f64 {
        match self {
            Self::Distance(distance) => position / distance,
            Self::Time(time) => seconds / time,
        }
    }
}

/// If not polled for long, only the changes of this last span are returned one by one.
pub const REPORTED: Span = Span::from_secs(60);

/// A cell at a measurement and at the next.
#[derive(Clone, Copy, Debug)]
struct Line {
    step: u64,
    cell: u16,
    begin: Point,
    end: Point,
}

/// A cell at a measurement, in decibels.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// C/I; of all serving cells together in soft handover.
    ratio: f64,
    /// The level over noise.
    level: f64,
}

/// Limit of stored changes, for a caller that never takes them.
const MAX_STORED: usize = 64;

/// Lower limit of reported C/I, in decibels: no block is received there.
const LOWEST: f64 = -40.0;

/// A mobile among cells.
#[derive(Clone, Debug)]
pub struct Mobility {
    motion: Motion,
    correlation: Correlation,
    sites: Sites,
    period: Span,
    manner: Manner,
    /// From this measurement on, nothing changes.
    last: u64,
    /// Measurements for which coupling from the past looks back at first.
    past: u64,
    /// The measurement up to which the serving cell is known.
    step: u64,
    measurements: Measurements,
    serving: ServingCell,
    /// The cell that served last, where there is no coverage.
    cell: u16,
    changes: VecDeque<(Instant, Transition)>,
    /// Whether a cell serves the mobile after the changes that were returned.
    was_covered: bool,
    /// From the last measurement to the next.
    line: Option<Line>,
}

impl Mobility {
    /// A mobile whose serving cell follows the rule of `measurements`, with a time to trigger of
    /// `window` measurements.
    pub fn new(
        (motion, correlation): (Motion, Correlation),
        sites: Sites,
        (period, window): (Span, u32),
        manner: Manner,
        measurements: Measurements,
    ) -> Self {
        let last = match (correlation, motion.settles()) {
            // The window is added, so that its counters reach their final values.
            (Correlation::Distance(_), Some(seconds)) => {
                (seconds / period.as_secs_f64()).ceil() as u64 + u64::from(window)
            }
            _ => u64::MAX,
        };
        let mut mobility = Self {
            motion,
            correlation,
            sites,
            period,
            manner,
            last,
            past: u64::from(window).saturating_mul(4).max(64),
            step: 0,
            measurements,
            serving: None,
            cell: 0,
            changes: VecDeque::new(),
            was_covered: true,
            line: None,
        };
        mobility.measure(0);
        mobility.serving = mobility.measurements.first();
        mobility.cell = mobility.serving.unwrap_or(0);
        mobility.report_coverage();
        mobility
    }

    /// The conditions at `now`.
    pub fn at(&mut self, now: Instant) -> Sample {
        let step = self.advance(now);
        let Some(cell) = self.serving else {
            let (carrier_to_interference, level) = (LOWEST, Some(LOWEST));
            return Sample { carrier_to_interference, level, cell: self.cell, covered: false };
        };
        let line = match self.line {
            Some(line) if line.step == step && line.cell == cell => line,
            Some(line) if line.step + 1 == step && line.cell == cell => {
                Line { step, begin: line.end, end: self.point(cell, step + 1), ..line }
            }
            _ => Line { step, cell, begin: self.point(cell, step), end: self.point(cell, step + 1) },
        };
        self.line = Some(line);
        let period = self.period.as_nanos();
        let part = if step == self.last { 0.0 } else { (now.as_nanos() % period) as f64 / period as f64 };
        let Line { begin, end, .. } = line;
        Sample {
            carrier_to_interference: begin.ratio + (end.ratio - begin.ratio) * part,
            level: Some(begin.level + (end.level - begin.level) * part),
            cell,
            covered: true,
        }
    }

    /// The next change up to `now` that was not returned.
    pub fn next_change(&mut self, now: Instant) -> Option<(Instant, Transition)> {
        self.advance(now);
        let change = self.changes.pop_front()?;
        match change.1 {
            Transition::CoverageLost => self.was_covered = false,
            Transition::CoverageBack { .. } => self.was_covered = true,
            Transition::Handover { .. } | Transition::Reselection { .. } => {}
        }
        Some(change)
    }

    /// Updates the serving cell up to `now`. Returns the number of the measurement.
    fn advance(&mut self, now: Instant) -> u64 {
        let step = (now.as_nanos() / self.period.as_nanos()).min(self.last);
        let reported = REPORTED.as_nanos() / self.period.as_nanos();
        if step > self.step && step - self.step > reported {
            self.jump(step - reported);
        }
        while self.step < step {
            self.step += 1;
            self.measure(self.step);
            let next = self.measurements.next(self.serving);
            if next != self.serving {
                self.change(next);
            }
        }
        step
    }

    /// Updates the serving cell up to the measurement `step`. Of the changes only coverage that is
    /// lost or back then is reported.
    fn jump(&mut self, step: u64) {
        self.changes.clear();
        let mut past = self.past;
        loop {
            let begin = step.saturating_sub(past);
            if begin <= self.step {
                for step in self.step + 1..=step {
                    self.measure(step);
                    self.serving = self.measurements.next(self.serving);
                    self.cell = self.serving.unwrap_or(self.cell);
                }
                break;
            }
            // The counters start at zero: half of the past is there to
            // fill them.
            self.measurements.clear();
            let mut possible: Vec<ServingCell> = (0..self.sites.cells() as u16).map(Some).chain([None]).collect();
            for step in begin..=step {
                self.measure(step);
                if step >= begin + past / 2 {
                    possible.iter_mut().for_each(|serving| *serving = self.measurements.next(*serving));
                }
            }
            if possible.iter().all(|serving| *serving == possible[0]) {
                self.serving = possible[0];
                self.cell = self.serving.unwrap_or(self.cell);
                break;
            }
            past *= 2;
        }
        self.step = step;
        self.report_coverage();
    }

    /// Reports that coverage is lost or back, if the caller has no such change yet.
    fn report_coverage(&mut self) {
        let transition = match (self.was_covered, self.serving) {
            (true, None) => Transition::CoverageLost,
            (false, Some(to)) => Transition::CoverageBack { to },
            _ => return,
        };
        self.changes.push_back((self.time(self.step), transition));
    }

    fn change(&mut self, serving: ServingCell) {
        let transition = match (self.serving, serving, self.manner) {
            (_, None, _) => Transition::CoverageLost,
            (None, Some(to), _) => Transition::CoverageBack { to },
            (Some(_), Some(to), Manner::Reselection(gap)) => Transition::Reselection { to, gap },
            (Some(_), Some(to), Manner::Handover(gap)) => Transition::Handover { to, gap },
            (Some(_), Some(to), Manner::Soft(_)) => Transition::Handover { to, gap: Span::ZERO },
        };
        self.serving = serving;
        self.cell = serving.unwrap_or(self.cell);
        if self.changes.len() == MAX_STORED {
            self.changes.pop_front();
        }
        self.changes.push_back((self.time(self.step), transition));
    }

    fn time(&self, step: u64) -> Instant {
        Instant::ZERO + self.period.saturating_mul(step)
    }

    /// Where the mobile is at a measurement, and where its shadowing.
    fn whereabouts(&self, step: u64) -> (f64, f64) {
        let seconds = self.time(step.min(self.last)).as_secs_f64();
        let position = self.motion.position(seconds);
        (position, self.correlation.reached(position, seconds))
    }

    fn measure(&mut self, step: u64) {
        let (position, shadow) = self.whereabouts(step);
        let Self { measurements, sites, .. } = self;
        measurements.add(|levels| sites.levels(position, shadow, levels));
    }

    /// What a cell is like at a measurement, with those that serve together with it.
    fn point(&mut self, cell: u16, step: u64) -> Point {
        let (position, shadow) = self.whereabouts(step);
        let level = self.sites.level(usize::from(cell), position, shadow);
        let ratio = match self.manner {
            Manner::Reselection(_) | Manner::Handover(_) => self.sites.ratio(usize::from(cell), position, shadow),
            Manner::Soft(window) => {
                let mut levels = Vec::with_capacity(self.sites.cells());
                self.sites.levels(position, shadow, &mut levels);
                let strongest = levels[usize::from(cell)];
                // The C/I of all serving cells is added, as in maximal-ratio combining.
                (0..levels.len())
                    .filter(|other| *other == usize::from(cell) || levels[*other] >= strongest - window)
                    .map(|other| self.sites.ratio(other, position, shadow))
                    .sum()
            }
        };
        Point { ratio: (10.0 * libm::log10(ratio)).max(LOWEST), level }
    }
}
