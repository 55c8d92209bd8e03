//! The timers of a connection. Setting one is a store, and none is ever searched for.

use airpath_core::{Instant, Span};

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Send the oldest outstanding segment again (RFC 6298), or the SYN.
    Retransmission,
    /// Probe for a loss at the tail (RFC 8985 §7).
    TailProbe,
    /// Take what has not arrived by now for lost, not reordered (RFC 8985 §6.3).
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

/// All timers; one that does not run lies in the far future.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    at: [Instant; 7],
}

impl Default for Timers {
    fn default() -> Self {
        Self { at: [Instant::FAR_FUTURE; 7] }
    }
}

impl Timers {
    /// Sets `timer` to go off at `at`.
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

    /// Whether `timer` runs.
    #[inline]
    pub fn is_set(&self, timer: Timer) -> bool {
        self.at[timer as usize] != Instant::FAR_FUTURE
    }

    /// When `timer` goes off; the far future if it does not run.
    #[inline]
    pub fn at(&self, timer: Timer) -> Instant {
        self.at[timer as usize]
    }

    /// Stops `timer` if it is due, and says whether it was.
    #[inline]
    pub fn take_due(&mut self, timer: Timer, now: Instant) -> bool {
        let due = self.at[timer as usize] <= now && self.is_set(timer);
        if due {
            self.stop(timer);
        }
        due
    }

    /// When the next timer goes off.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        let next = self.at.iter().fold(Instant::FAR_FUTURE, |next, at| next.min(*at));
        (next != Instant::FAR_FUTURE).then_some(next)
    }
}

/// `span` after `now`, or the far future where that is too far away to express.
#[inline]
pub fn after(now: Instant, span: Span) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_add(span.as_nanos()))
}
