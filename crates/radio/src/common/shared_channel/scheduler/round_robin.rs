//! Round robin: every backlogged user in turn, whatever its channel.

use super::{Candidate, Scheduler, first};

/// Serves the user that has waited longest.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin;

impl Scheduler for RoundRobin {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        first(candidates, Candidate::by_turn)
    }

    fn rank(&self, _: &Candidate) -> Option<f64> {
        Some(0.0)
    }
}
