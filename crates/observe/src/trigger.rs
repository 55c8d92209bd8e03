//! Triggers of retransmissions.

use airpath_core::{Instant, Span};

use crate::outstanding::{Outstanding, Sent};
use crate::round_trip::Estimate;

/// The trigger of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// The retransmission timer (RFC 6298).
    Timeout,
    /// Duplicate or selective acknowledgements (RFC 5681 §3.2, RFC 6675), or a later segment of the
    /// same recovery.
    Fast,
    /// A probe of the tail (RFC 8985 §7).
    TailProbe,
    /// No trigger is visible in the capture.
    Unknown,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Timeout, Self::Fast, Self::TailProbe, Self::Unknown];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Fast => "fast",
            Self::TailProbe => "tail_probe",
            Self::Unknown => "unknown",
        }
    }
}

/// Duplicate acknowledgements after which a sender retransmits (RFC 5681 §3.2).
const DUPLICATES_FOR_FAST: u32 = 3;

/// Acknowledgements since the last advance, and the current recovery of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    /// Duplicate acknowledgements since the last new one.
    pub(crate) duplicates: u32,
    /// When an acknowledgement last had information: new, selective or duplicate.
    heard: Instant,
    episode: Option<Episode>,
}

/// A recovery: from the first retransmission until all data sent before it is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Episode {
    pub(crate) trigger: Trigger,
    /// One past the highest offset sent when it began.
    pub(crate) until: i64,
    pub(crate) begun: Instant,
    /// New acknowledgements since then.
    pub(crate) advances: u32,
}

impl Recovery {
    /// Adds an acknowledgement of new data up to `acknowledged`.
    pub(crate) fn advanced(&mut self, acknowledged: i64, time: Instant) {
        self.duplicates = 0;
        self.heard = time;
        if let Some(episode) = &mut self.episode {
            episode.advances += 1;
            if acknowledged >= episode.until {
                self.episode = None;
            }
        }
    }

    /// Adds a duplicate or selective acknowledgement.
    pub(crate) fn duplicate(&mut self, time: Instant) {
        self.duplicates += 1;
        self.heard = time;
    }

    /// The current recovery.
    pub(crate) const fn episode(&self) -> Option<&Episode> {
        self.episode.as_ref()
    }

    /// The trigger of a retransmission of `before` at `now`; `selective` where both ends permit
    /// selective acknowledgements.
    pub(crate) fn retransmitted(
        &mut self,
        before: &Sent,
        now: Instant,
        outstanding: &Outstanding,
        estimate: &Estimate,
        selective: bool,
    ) -> Trigger {
        let trigger = self.judge(before, now, outstanding, estimate, selective);
        let until = outstanding.highest();
        match (&mut self.episode, trigger) {
            (_, Trigger::Unknown) => {}
            // A timeout begins a recovery of its own, which covers all data sent so far (RFC 6582
            // §4).
            (Some(Episode { trigger: Trigger::Fast | Trigger::TailProbe, .. }), Trigger::Timeout) | (None, _) => {
                self.episode = Some(Episode { trigger, until, begun: now, advances: 0 });
            }
            (Some(episode), Trigger::Fast) if episode.trigger == Trigger::TailProbe => episode.trigger = trigger,
            _ => {}
        }
        trigger
    }

    fn judge(
        &self,
        before: &Sent,
        now: Instant,
        outstanding: &Outstanding,
        estimate: &Estimate,
        selective: bool,
    ) -> Trigger {
        let requested = self.duplicates >= DUPLICATES_FOR_FAST
            || outstanding.highest_selective().is_some_and(|highest| highest > before.start);
        let waited = now.since(before.last.time);
        let gap = now.since(self.heard);
        let timeout = tolerant(estimate.timeout());
        // Each sent segment and each acknowledgement restarts the timer (RFC 6298 §5).
        let timed_out = waited >= timeout && gap >= timeout;
        match self.episode.as_ref().map(|episode| episode.trigger) {
            Some(Trigger::Timeout) => return Trigger::Timeout,
            // A lost retransmission is sent again by the timer, if no acknowledgement arrived for
            // that long.
            Some(_) if timed_out => return Trigger::Timeout,
            Some(Trigger::Fast) => return Trigger::Fast,
            _ => {}
        }
        if timed_out {
            return Trigger::Timeout;
        }
        if requested {
            return Trigger::Fast;
        }
        let first = before.start <= outstanding.floor();
        let last = before.end == outstanding.highest();
        // RFC 8985 §7.2: the probe is sent after twice the smoothed round trip without an
        // acknowledgement, and repeats the last segment.
        let probe_due =
            waited >= tolerant(estimate.smoothed()) + tolerant(estimate.smoothed()) && !estimate.smoothed().is_zero();
        if selective && last && probe_due && gap >= tolerant(estimate.smoothed()) {
            return Trigger::TailProbe;
        }
        if first && self.duplicates > 0 {
            // Early retransmit (RFC 5827), or the reordering window of RFC 8985 §6.2.
            return Trigger::Fast;
        }
        Trigger::Unknown
    }
}

/// Nine tenths: a timer runs on the sender's clock and estimate, not on those of the capture.
fn tolerant(span: Span) -> Span {
    span / 10 * 9
}
