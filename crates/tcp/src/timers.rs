//! The timers of a connection. Setting one is a single store; no search.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Retransmit the oldest outstanding segment (RFC 6298), or the SYN.
    Retransmission,
    /// Probe for a loss at the tail (RFC 8985 §7).
    TailProbe,
    /// Mark segments that have not arrived by now as lost, not reordered (RFC 8985 §6.3).
    Reordering,
    /// Probe a closed window (RFC 9293 §3.8.6.1).
    Persist,
    /// Send a delayed acknowledgement.
    DelayedAck,
    /// Send the next paced segment.
    Pacing,
    /// End TIME-WAIT.
    TimeWait,
}

/// All timers; a stopped one is set to the far future.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Timers {
    at: [Instant; 7],
}

impl Default for Timers {
    fn default() -> Self {
        Self { at: [Instant::FAR_FUTURE; 7] }
    }
}

impl Timers {
    /// Sets the expiry of `timer`.
    #[inline]
    pub fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
    }

    /// Stops `timer`.
    #[inline]
    pub fn stop(&mut self, timer: Timer) {
        self.at[timer as usize] = Instant::FAR_FUTURE;
    }

    /// Stops all.
    pub fn stop_all(&mut self) {
        *self = Self::default();
    }

    /// Whether `timer` is running.
    #[inline]
    pub fn is_set(&self, timer: Timer) -> bool {
        self.at[timer as usize] != Instant::FAR_FUTURE
    }

    /// Expiry of `timer`; the far future if it is stopped.
    #[inline]
    pub fn at(&self, timer: Timer) -> Instant {
        self.at[timer as usize]
    }

    /// Stops `timer` if it has expired, and returns whether it had.
    #[inline]
    pub fn take_due(&mut self, timer: Timer, now: Instant) -> bool {
        let due = self.at[timer as usize] <= now && self.is_set(timer);
        if due {
            self.stop(timer);
        }
        due
    }

    /// The next expiry.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        let next = self.at.iter().fold(Instant::FAR_FUTURE, |next, at| next.min(*at));
        (next != Instant::FAR_FUTURE).then_some(next)
    }
}

/// `span` after `now`, or the far future where that overflows.
#[inline]
pub fn after(now: Instant, span: Span) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_add(span.as_nanos()))
}
