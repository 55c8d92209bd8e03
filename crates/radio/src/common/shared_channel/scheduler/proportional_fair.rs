//! Proportional fair: the backlogged user with the highest ratio of its rate now to the rate that
//! it got on average.

use airpath_core::Span;

use super::{Candidate, Scheduler, first};

/// Serves whoever's rate is highest in proportion to its average; among equals in turn.
///
/// The average is exponential: each TTI that passes, whether the user has something to send or not,
/// takes away a share of TTI / averaging time, and what is sent adds the same share of its rate. As
/// all averages shrink alike, only their ratios matter, so instead of shrinking them all, what is
/// added grows: a TTI costs the same for any number of idle users.
#[derive(Clone, Debug)]
pub struct ProportionalFair {
    /// By how much the weight of what is added grows in a TTI.
    growth: f64,
    /// The weight in TTI number `at`.
    weight: f64,
    at: u64,
    /// The averages, multiplied by a common factor.
    averages: Vec<f64>,
    /// How often they were scaled down.
    revision: u64,
}

/// Where all numbers are scaled down again.
const LARGE: f64 = 1e150;

impl ProportionalFair {
    /// For `users` that got nothing yet; `averaging_time` is longer than `tti`.
    pub fn new(users: usize, tti: Span, averaging_time: Span) -> Self {
        let growth = 1.0 / (1.0 - tti.as_secs_f64() / averaging_time.as_secs_f64());
        Self { growth, weight: 1.0, at: 0, averages: vec![0.0; users], revision: 0 }
    }

    /// The rate of a candidate now to its average, in a unit that all share; infinite without an
    /// average.
    pub(super) fn ratio(&self, candidate: &Candidate) -> f64 {
        f64::from(candidate.pdus) / self.averages[candidate.user as usize]
    }

    fn advance(&mut self, tti: u64) {
        match tti - self.at {
            0 => return,
            1 => self.weight *= self.growth,
            ttis => self.weight *= libm::pow(self.growth, ttis as f64),
        }
        self.at = tti;
        if self.weight > LARGE {
            // An infinite weight makes the averages zero, as they are after a pause of that length.
            self.averages.iter_mut().for_each(|average| *average /= self.weight);
            self.weight = 1.0;
            self.revision += 1;
        }
    }
}

impl Scheduler for ProportionalFair {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        let ratio = |candidate: &Candidate| self.ratio(candidate);
        first(candidates, |a, b| ratio(b).total_cmp(&ratio(a)).then_with(|| a.by_turn(b)))
    }

    fn served(&mut self, tti: u64, user: u32, pdus: u32) {
        self.advance(tti);
        self.averages[user as usize] += f64::from(pdus) * self.weight;
    }

    fn rank(&self, candidate: &Candidate) -> Option<f64> {
        Some(self.ratio(candidate))
    }

    fn revision(&self) -> u64 {
        self.revision
    }
}
