//! Which user a shared channel serves in a TTI.

mod attained_service;
pub mod least_attained_service;
pub mod maximum_ci;
pub mod proportional_fair;
pub mod round_robin;
pub mod run2c;

use std::cmp::Ordering;
use std::fmt;

use airpath_core::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ValueError, above_zero};
use least_attained_service::LeastAttainedService;
use maximum_ci::MaximumCi;
use proportional_fair::ProportionalFair;
use round_robin::RoundRobin;
use run2c::Run2c;

/// The schedulers by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerName {
    /// Every user in turn.
    #[default]
    RoundRobin,
    /// The user whose channel is best now.
    MaximumCi,
    /// The user whose channel is best now compared with what it got on average.
    ProportionalFair,
    /// The user that got least in its current flow.
    LeastAttainedService,
    /// Users whose flow is short so far before the others, each by proportional fair.
    Run2c,
}

/// The averaging time of proportional fair unless another is given: 500 TTIs of 2 ms, of the 100 to
/// 1000 that `hsdpa-sim` §7.3 names.
const AVERAGING_TIME: Span = Span::from_secs(1);

/// The pause that ends a flow unless another is given: the shortest retransmission timeout (RFC
/// 6298 §2.4). After such a pause TCP begins with slow start again (RFC 5681 §4.1).
const FLOW_TIMEOUT: Span = Span::from_secs(1);

/// The bytes with which a flow is short unless another number is given: a choice, the longest of
/// the short files of `hsdpa-sim` §9.2.
const SHORT_FLOW: Bytes = Bytes::new(100_000);

/// What a scheduler takes beside its name: each for some of them only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub averaging_time: Option<Span>,
    pub flow_timeout: Option<Span>,
    pub short_flow: Option<Bytes>,
}

/// The [`Options`] of a table that has these keys.
macro_rules! options {
    ($table:expr) => {
        $crate::common::shared_channel::scheduler::Options {
            averaging_time: $table.averaging_time,
            flow_timeout: $table.flow_timeout,
            short_flow: $table.short_flow,
        }
    };
}
pub(crate) use options;

impl SchedulerName {
    /// Makes the scheduler of a cell, which hears of amounts in a `unit` of this many bits. `table`
    /// has the keys, for errors.
    pub(crate) fn build(
        self,
        users: usize,
        tti: Span,
        unit: u64,
        options: Options,
        table: &str,
    ) -> Result<Box<dyn Scheduler>, ValueError> {
        let foreign = |key, needs| Err(ValueError::Needs { key: format!("{table}.{key}"), needs });
        let is_fair = matches!(self, Self::ProportionalFair | Self::Run2c);
        let has_flows = matches!(self, Self::LeastAttainedService | Self::Run2c);
        if options.averaging_time.is_some() && !is_fair {
            return foreign("averaging_time", "scheduler = \"proportional-fair\" or \"run2c\"");
        }
        if options.flow_timeout.is_some() && !has_flows {
            return foreign("flow_timeout", "scheduler = \"least-attained-service\" or \"run2c\"");
        }
        if options.short_flow.is_some() && self != Self::Run2c {
            return foreign("short_flow", "scheduler = \"run2c\"");
        }
        let averaging_time = options.averaging_time.unwrap_or(AVERAGING_TIME);
        let flow_timeout = options.flow_timeout.unwrap_or(FLOW_TIMEOUT);
        for (is_used, key, time) in
            [(is_fair, "averaging_time", averaging_time), (has_flows, "flow_timeout", flow_timeout)]
        {
            if is_used && time <= tti {
                let expected = "longer than a TTI";
                return Err(ValueError::Range { key: format!("{table}.{key}"), expected });
            }
        }
        let short_flow = options.short_flow.unwrap_or(SHORT_FLOW).get();
        above_zero(short_flow > 0, table, "short_flow")?;
        let threshold = short_flow.saturating_mul(8).div_ceil(unit);
        let fair = || ProportionalFair::new(users, tti, averaging_time);
        Ok(match self {
            Self::RoundRobin => Box::new(RoundRobin),
            Self::MaximumCi => Box::new(MaximumCi),
            Self::ProportionalFair => Box::new(fair()),
            Self::LeastAttainedService => Box::new(LeastAttainedService::new(users, tti, flow_timeout)),
            Self::Run2c => Box::new(Run2c::new(users, tti, flow_timeout, threshold, fair())),
        })
    }
}

/// A user that could be served in a TTI.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its index in the cell.
    pub user: u32,
    /// Its C/I level or the CQI that it reported; 0 where there are none.
    pub level: u8,
    /// PDUs that the TTI could carry to it, whatever waits: its instantaneous rate.
    pub pdus: u32,
    /// The TTI after the one in which it was served last; 0 if it never was.
    pub waiting_since: u64,
}

impl Candidate {
    /// Orders those that are otherwise equal: first who has waited longest, then by index. So ties
    /// are broken without a draw and without favour.
    pub fn by_turn(&self, other: &Self) -> Ordering {
        (self.waiting_since, self.user).cmp(&(other.waiting_since, other.user))
    }
}

/// Chooses among the users that have something to send.
pub trait Scheduler: fmt::Debug {
    /// The index of the candidate that is served. There is at least one.
    fn choose(&mut self, candidates: &[Candidate]) -> usize;

    /// Hears in TTI `tti` that something waits for `user`, for whom nothing waited before.
    fn backlogged(&mut self, tti: u64, user: u32) {
        let _ = (tti, user);
    }

    /// Hears that TTI `tti` carried `pdus` new PDUs to `user`. Retransmissions are not reported:
    /// they are not the scheduler's choice.
    fn served(&mut self, tti: u64, user: u32, pdus: u32) {
        let _ = (tti, user, pdus);
    }

    /// The rank of a candidate, if [`choose`](Self::choose) always returns the candidate with the
    /// highest rank, ties [by turn](Candidate::by_turn), and if [`served`](Self::served) and
    /// [`backlogged`](Self::backlogged) change no rank but that of their user. A cell then finds it
    /// without a look at all candidates.
    fn rank(&self, candidate: &Candidate) -> Option<f64> {
        let _ = candidate;
        None
    }

    /// How often the ranks of all users have changed at once.
    fn revision(&self) -> u64 {
        0
    }
}

/// The index of the candidate that comes first in this order.
fn first(candidates: &[Candidate], order: impl Fn(&Candidate, &Candidate) -> Ordering) -> usize {
    (1..candidates.len()).fold(0, |best, index| match order(&candidates[index], &candidates[best]) {
        Ordering::Less => index,
        Ordering::Equal | Ordering::Greater => best,
    })
}
