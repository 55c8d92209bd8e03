//! Maximum C/I: the backlogged user whose channel carries most now. The cell's throughput is the
//! highest, and users with poor channels wait.

use super::{Candidate, Scheduler, first};

/// Serves the user with the highest rate; users with equal rates in turn.
#[derive(Clone, Debug, Default)]
pub struct MaximumCi;

impl Scheduler for MaximumCi {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        first(candidates, |a, b| b.pdus.cmp(&a.pdus).then_with(|| a.by_turn(b)))
    }

    fn rank(&self, candidate: &Candidate) -> Option<f64> {
        Some(f64::from(candidate.pdus))
    }
}
