//! Attained service: what each mobile got in its current flow.
//!
//! A base station sees no TCP connections. A flow is what comes for a mobile until nothing has
//! waited for it for a timeout; a router delimits flows in the same way.

use airpath_core::Span;

/// The attained service of all mobiles of a cell.
#[derive(Clone, Debug)]
pub struct AttainedService {
    mobiles: Vec<Mobile>,
    /// In TTIs.
    timeout: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mobile {
    attained: u64,
    /// The TTI in which it was last served.
    served: u64,
}

impl AttainedService {
    /// For `users` that got nothing yet. A flow ends with a pause of `timeout`.
    pub fn new(users: usize, tti: Span, timeout: Span) -> Self {
        Self { mobiles: vec![Mobile::default(); users], timeout: timeout.as_nanos().div_ceil(tti.as_nanos()) }
    }

    /// What the mobile got in its flow, in the unit of [`served`](super::Scheduler::served).
    pub fn of(&self, user: u32) -> u64 {
        self.mobiles[user as usize].attained
    }

    /// Begins a flow in TTI `tti` if nothing waited for the mobile for the timeout.
    pub fn backlogged(&mut self, tti: u64, user: u32) {
        let mobile = &mut self.mobiles[user as usize];
        // Nothing has waited since it was served.
        if tti.saturating_sub(mobile.served) >= self.timeout {
            mobile.attained = 0;
        }
    }

    /// Adds what a mobile got in TTI `tti`.
    pub fn served(&mut self, tti: u64, user: u32, amount: u32) {
        let mobile = &mut self.mobiles[user as usize];
        mobile.attained += u64::from(amount);
        mobile.served = tti;
    }
}
