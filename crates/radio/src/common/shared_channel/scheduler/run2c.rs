//! `RuN2C` with proportional fair: mobiles whose flow got less than a threshold come before all
//! others; within each of the two classes the order is that of proportional fair. So the begin of
//! each flow, the slow start of TCP, passes long transfers, and both use the variations of the
//! channel.
//!
//! - K. Avrachenkov, U. Ayesta, P. Brown, E. Nyberg, "Differentiation between short and long TCP
//!   flows: predictability of the response time", INFOCOM 2004: a connection has high priority
//!   until it got a threshold of service, then low priority; within a class the link is shared
//!   equally (PS+PS). On a shared radio channel the equal sharing is that of proportional fair.
//! - M. C. Chan, R. Ramjee, "Improving TCP/IP performance over third generation wireless networks",
//!   INFOCOM 2004: a scheduler for TCP that prefers short flows and keeps the gain of user
//!   diversity. Its exact rule was not available; this one has the same two aims.
//!
//! With xᵢ for the bytes that flow i got, the threshold θ, the rate rᵢ(t) now and its average Rᵢ,
//! the rule is the lexicographic argmax of ([xᵢ < θ], rᵢ(t) / Rᵢ).

use airpath_core::Span;

use super::attained_service::AttainedService;
use super::proportional_fair::ProportionalFair;
use super::{Candidate, Scheduler, first};

/// Serves short flows before long ones, each by proportional fair.
#[derive(Clone, Debug)]
pub struct Run2c {
    service: AttainedService,
    /// In the unit of [`Scheduler::served`].
    threshold: u64,
    fair: ProportionalFair,
}

impl Run2c {
    /// For `users` that got nothing yet. A flow is short until it got `threshold`, and ends with a
    /// pause of `flow_timeout`; `fair` has as many users.
    pub fn new(users: usize, tti: Span, flow_timeout: Span, threshold: u64, fair: ProportionalFair) -> Self {
        Self { service: AttainedService::new(users, tti, flow_timeout), threshold, fair }
    }

    /// Not negative for a short flow, negative for a long one, and rises with rᵢ(t) / Rᵢ.
    fn priority(&self, candidate: &Candidate) -> f64 {
        let ratio = self.fair.ratio(candidate);
        if self.service.of(candidate.user) < self.threshold { ratio } else { -1.0 / ratio }
    }
}

impl Scheduler for Run2c {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        let priority = |candidate: &Candidate| self.priority(candidate);
        first(candidates, |a, b| priority(b).total_cmp(&priority(a)).then_with(|| a.by_turn(b)))
    }

    fn backlogged(&mut self, tti: u64, user: u32) {
        self.service.backlogged(tti, user);
    }

    fn served(&mut self, tti: u64, user: u32, pdus: u32) {
        self.service.served(tti, user, pdus);
        self.fair.served(tti, user, pdus);
    }

    fn rank(&self, candidate: &Candidate) -> Option<f64> {
        Some(self.priority(candidate))
    }

    fn revision(&self) -> u64 {
        self.fair.revision()
    }
}
