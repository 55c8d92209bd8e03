//! The phases of a sender's congestion control, inferred from its outstanding data.

use airpath_core::{Instant, Span};

use crate::trigger::{Recovery, Trigger};

/// A phase of congestion control (RFC 5681 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The outstanding data grows by a quarter or more per round.
    #[default]
    SlowStart,
    /// It grows more slowly, or not at all: congestion avoidance, or a limit other than congestion
    /// control.
    Avoidance,
    /// Lost segments are retransmitted, as acknowledgements request.
    Recovery,
    /// The timer expired, and the data sent before is not completely acknowledged.
    AfterTimeout,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::SlowStart, Self::Avoidance, Self::Recovery, Self::AfterTimeout];
}

/// Time of a direction in each phase, while data was outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// In the order of [`Phase::ALL`].
    spent: [Span; Phase::ALL.len()],
    phase: Phase,
    since: Option<Instant>,
    /// The round ends when this offset is acknowledged.
    round_ends: i64,
    /// The largest outstanding amount in this round, and in the previous one.
    most: u64,
    most_before: u64,
    /// Rounds in a row without growth.
    still: u8,
    first_data: Option<Instant>,
    /// When slow start was left for the first time.
    left: Option<Instant>,
}

/// Rounds without growth after which slow start counts as left: one may have been short of data.
const STILL_ROUNDS: u8 = 2;

impl Phases {
    /// The time spent in a phase.
    pub const fn spent(&self, phase: Phase) -> Span {
        self.spent[phase as usize]
    }

    /// From the first byte of data until slow start was left for the first time.
    pub fn start_up(&self) -> Option<Span> {
        Some(self.left?.since(self.first_data?))
    }

    /// Adds sent data up to `highest`; `outstanding` bytes are outstanding now.
    pub(crate) fn sent(&mut self, time: Instant, outstanding: u64, recovery: &Recovery) {
        self.pass(time);
        self.first_data.get_or_insert(time);
        self.most = self.most.max(outstanding);
        self.since = Some(time);
        self.enter(time, recovery);
    }

    /// Adds an acknowledgement up to `acknowledged`, of data sent up to `highest`.
    pub(crate) fn acknowledged(&mut self, time: Instant, acknowledged: i64, highest: i64, recovery: &Recovery) {
        self.pass(time);
        self.since = (acknowledged < highest).then_some(time);
        if acknowledged >= self.round_ends {
            // In slow start a round adds half a window at least, with delayed acknowledgements; in
            // avoidance a segment (RFC 5681 §3.1).
            let grew = self.most >= self.most_before + self.most_before / 4;
            self.still = if grew { 0 } else { self.still.saturating_add(1) };
            self.round_ends = highest;
            self.most_before = self.most;
            self.most = 0;
        }
        self.enter(time, recovery);
    }

    fn pass(&mut self, time: Instant) {
        if let Some(since) = self.since {
            self.spent[self.phase as usize] += time.since(since);
        }
    }

    fn enter(&mut self, time: Instant, recovery: &Recovery) {
        let next = match recovery.episode().map(|episode| episode.trigger) {
            Some(Trigger::Timeout) => Phase::AfterTimeout,
            Some(Trigger::Fast) => Phase::Recovery,
            // The window restarts from its initial size (RFC 5681 §3.1, equation 4 and below).
            _ if self.phase == Phase::AfterTimeout => {
                (self.still, self.most_before) = (0, 0);
                Phase::SlowStart
            }
            _ if self.phase == Phase::SlowStart && self.still < STILL_ROUNDS => Phase::SlowStart,
            _ => Phase::Avoidance,
        };
        if self.phase == Phase::SlowStart && next != Phase::SlowStart && self.first_data.is_some() {
            self.left.get_or_insert(time);
        }
        self.phase = next;
    }
}
