//! Least attained service (LAS), also called foreground-background (FB): the backlogged mobile that
//! got least in its current flow. So a short transfer passes long ones, and its size need not be
//! known. The channel is not taken into account.
//!
//! - I. A. Rai, G. Urvoy-Keller, M. K. Vernon, E. W. Biersack, "Performance analysis of LAS-based
//!   scheduling disciplines in a packet switched network", SIGMETRICS 2004: LAS at the bottleneck
//!   of TCP flows.
//! - S. Aalto, P. Lassila, "Impact of size-based scheduling on flow level performance in wireless
//!   downlink data channels", ITC 20, 2007: FB at a base station.
//!
//! With xᵢ for the bytes that flow i got, the rule is argmin xᵢ; flows with equal xᵢ share.

use airpath_core::Span;

use super::attained_service::AttainedService;
use super::{Candidate, Scheduler, first};

/// Serves the mobile with the least attained service; mobiles with equal service in turn.
#[derive(Clone, Debug)]
pub struct LeastAttainedService {
    service: AttainedService,
}

impl LeastAttainedService {
    /// For `users` that got nothing yet. A flow ends with a pause of `flow_timeout`.
    pub fn new(users: usize, tti: Span, flow_timeout: Span) -> Self {
        Self { service: AttainedService::new(users, tti, flow_timeout) }
    }
}

impl Scheduler for LeastAttainedService {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        let attained = |candidate: &Candidate| self.service.of(candidate.user);
        first(candidates, |a, b| attained(a).cmp(&attained(b)).then_with(|| a.by_turn(b)))
    }

    fn backlogged(&mut self, tti: u64, user: u32) {
        self.service.backlogged(tti, user);
    }

    fn served(&mut self, tti: u64, user: u32, pdus: u32) {
        self.service.served(tti, user, pdus);
    }

    fn rank(&self, candidate: &Candidate) -> Option<f64> {
        // Exact up to 2⁵³.
        Some(-(self.service.of(candidate.user) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_ends_with_a_pause_and_ties_are_broken_by_turn() {
        let mut scheduler = LeastAttainedService::new(2, Span::from_millis(2), Span::from_secs(1));
        let candidate = |user, waiting_since| Candidate { user, level: 1, pdus: 9 - user, waiting_since };
        let candidates = [candidate(0, 1), candidate(1, 2)];
        scheduler.backlogged(0, 0);
        scheduler.backlogged(0, 1);
        assert_eq!(scheduler.choose(&candidates), 0, "by turn");
        scheduler.served(0, 0, 20);
        scheduler.served(1, 1, 10);
        assert_eq!(scheduler.choose(&candidates), 1);
        scheduler.backlogged(499, 0);
        assert_eq!(scheduler.choose(&candidates), 1, "a pause of 998 ms is part of the flow");
        scheduler.backlogged(500, 0);
        assert_eq!(scheduler.choose(&candidates), 0, "after 1 s a flow begins");
        scheduler.served(500, 0, 10);
        assert_eq!(scheduler.choose(&candidates), 0, "equal again: by turn");
    }
}
