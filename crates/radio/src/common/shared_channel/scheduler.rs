//! Which user a shared channel serves in a TTI.

pub mod maximum_ci;
pub mod proportional_fair;
pub mod round_robin;

use std::cmp::Ordering;
use std::fmt;

use airpath_core::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ValueError;
use maximum_ci::MaximumCi;
use proportional_fair::ProportionalFair;
use round_robin::RoundRobin;

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
}

/// The averaging time of the proportional fair scheduler unless another is given: 500 TTIs of 2 ms,
/// of the 100 to 1000 that `hsdpa-sim` §7.3 names.
const AVERAGING_TIME: Span = Span::from_secs(1);

impl SchedulerName {
    /// Makes the scheduler of a cell. `table` is where the keys are that are to blame.
    pub(crate) fn build(
        self,
        users: usize,
        tti: Span,
        averaging_time: Option<Span>,
        table: &str,
    ) -> Result<Box<dyn Scheduler>, ValueError> {
        match (self, averaging_time) {
            (Self::ProportionalFair, time) => {
                let time = time.unwrap_or(AVERAGING_TIME);
                if time <= tti {
                    return Err(ValueError::Range {
                        key: format!("{table}.averaging_time"),
                        expected: "longer than a TTI",
                    });
                }
                Ok(Box::new(ProportionalFair::new(users, tti, time)))
            }
            (_, Some(_)) => Err(ValueError::Needs {
                key: format!("{table}.averaging_time"),
                needs: "scheduler = \"proportional-fair\"",
            }),
            (Self::RoundRobin, None) => Ok(Box::new(RoundRobin)),
            (Self::MaximumCi, None) => Ok(Box::new(MaximumCi)),
        }
    }
}

/// A user that could be served in a TTI.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its index in the cell.
    pub user: u32,
    /// Its C/I level or the CQI that it reported; 0 where there are none.
    pub level: u8,
    /// PDUs that the TTI would carry to it: its instantaneous rate.
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

    /// Hears that TTI `tti` carried `pdus` new PDUs to `user`. Retransmissions are not reported:
    /// they are not the scheduler's choice.
    fn served(&mut self, tti: u64, user: u32, pdus: u32) {
        let _ = (tti, user, pdus);
    }

    /// The rank of a candidate, if [`choose`](Self::choose) always returns the candidate with the
    /// highest rank, ties [by turn](Candidate::by_turn), and if [`served`](Self::served) changes no
    /// rank but that of its user. A cell then finds it without a look at all candidates.
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
