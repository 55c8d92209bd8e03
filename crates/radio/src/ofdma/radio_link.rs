//! Radio link failure (TS 36.331 §5.3.11, §5.3.7; TS 38.331 §5.3.10, §5.3.7): what happens to the
//! connection of a mobile that no cell serves.
//!
//! T310 begins when the physical layer has reported the loss. At its end the link has failed, and
//! the mobile looks for a cell while T311 runs. In a cell it establishes the connection again; at
//! the end of T311 it is idle.

use airpath_core::{Instant, Span};

/// The time after which the physical layer reports that it is out of sync (T_Evaluate_Qout, TS
/// 36.133 §7.6.2.1, TS 38.133 §8.1.2.2), without DRX. N310 is one such report.
const EVALUATION: Span = Span::from_millis(200);

/// The timers of a failing radio link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    /// T310: from the report of the loss to the failure.
    pub t310: Span,
    /// T311: from the failure to the state idle.
    pub t311: Span,
}

/// The radio link of a mobile without coverage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostLink {
    since: Instant,
    failed_at: Option<Instant>,
}

/// What happens next to a link that stays lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// T310 ends: the link fails.
    Failure(Instant),
    /// T311 ends: the mobile is idle.
    Release(Instant),
}

impl Timer {
    /// When that is.
    pub const fn at(self) -> Instant {
        match self {
            Self::Failure(at) | Self::Release(at) => at,
        }
    }
}

impl LostLink {
    /// A link that is lost at `since`.
    pub const fn new(since: Instant) -> Self {
        Self { since, failed_at: None }
    }

    /// The timer that runs.
    pub fn timer(&self, timers: Timers) -> Timer {
        match self.failed_at {
            None => Timer::Failure(self.since + EVALUATION + timers.t310),
            Some(failed_at) => Timer::Release(failed_at + timers.t311),
        }
    }

    /// The link has failed, by T310 or by the RLC.
    pub fn fail(&mut self, at: Instant) {
        self.failed_at.get_or_insert(at);
    }

    /// Whether it has failed.
    pub const fn has_failed(&self) -> bool {
        self.failed_at.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_link_fails_after_t310_and_is_released_after_t311() {
        let timers = Timers { t310: Span::from_secs(1), t311: Span::from_secs(3) };
        let mut link = LostLink::new(at(500));
        assert_eq!(link.timer(timers), Timer::Failure(at(1700)));
        assert!(!link.has_failed());
        link.fail(at(1700));
        assert_eq!(link.timer(timers), Timer::Release(at(4700)));
        assert!(link.has_failed());
    }

    #[test]
    fn a_failure_of_the_rlc_comes_before_the_end_of_t310() {
        let timers = Timers { t310: Span::from_secs(1), t311: Span::from_secs(30) };
        let mut link = LostLink::new(at(500));
        link.fail(at(900));
        link.fail(at(1700));
        assert_eq!(link.timer(timers), Timer::Release(at(30_900)));
    }
}
