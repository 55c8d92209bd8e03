//! RACK: loss detection by time (RFC 8985 §6). A segment is lost if another, sent enough later, has
//! arrived.

use airpath_core::{Instant, Span};

use crate::rtt::RoundTrip;
use crate::scoreboard::{Delivery, Newest, Scoreboard};
use crate::sequence::Sequence;
use crate::timers::after;

/// Number of recoveries that keep a wider reordering window (RFC 8985 §6.2 step 4).
const PERSISTENCE: u32 = 16;

/// The state of RFC 8985 §5.3.
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    /// The most recently sent segment that has arrived.
    newest: Newest,
    /// The round trip of that segment.
    round_trip: Span,
    /// Originals below this were already checked.
    examined: Sequence,
    /// One past the highest byte that arrived.
    highest: Sequence,
    reordering_seen: bool,
    /// The reordering window, in quarters of the least round trip.
    quarters: u32,
    /// Recoveries until `quarters` falls back to one.
    persistence: u32,
    /// Duplicates reported below this have already widened the window.
    duplicate_round: Option<Sequence>,
}

/// State outside of RACK that loss detection uses.
#[derive(Clone, Copy, Debug)]
pub struct DetectionState<'a> {
    pub now: Instant,
    pub rtt: &'a RoundTrip,
    /// Whether losses are being repaired, or the duplicate threshold is reached: the reordering
    /// window is then zero unless reordering was observed (RFC 8985 §6.2 step 4).
    pub loss_evident: bool,
}

impl Rack {
    pub const fn new() -> Self {
        Self {
            newest: Newest { at: Instant::ZERO, end: 0 },
            round_trip: Span::ZERO,
            examined: 0,
            highest: 0,
            reordering_seen: false,
            quarters: 1,
            persistence: 0,
            duplicate_round: None,
        }
    }

    /// Steps 1 to 3: records the segments that arrived.
    #[inline]
    pub fn on_delivery(&mut self, delivery: &Delivery, acknowledged: Sequence, highest_sacked: Option<Sequence>) {
        if let Some(newest) = delivery.newest
            && newest > self.newest
        {
            self.newest = newest;
            self.round_trip = delivery.now.since(newest.at);
        }
        if delivery.lowest_original.is_some_and(|original| original < self.highest) {
            self.reordering_seen = true;
        }
        self.highest = self.highest.max(acknowledged).max(highest_sacked.unwrap_or(0));
    }

    /// The receiver reported a duplicate (DSACK): a segment considered lost was only late (step 4).
    pub fn on_duplicate_report(&mut self, acknowledged: Sequence, sent: Sequence) {
        if self.duplicate_round.is_some_and(|end| acknowledged < end) {
            return;
        }
        self.duplicate_round = Some(sent);
        self.quarters = self.quarters.saturating_add(1);
        self.persistence = PERSISTENCE;
    }

    /// A recovery is over.
    pub const fn on_recovery_end(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.quarters = 1;
        }
    }

    /// Nothing is considered lost any more: checks all segments again.
    pub const fn restart_search(&mut self) {
        self.examined = 0;
    }

    /// Step 5: marks the lost segments. Returns whether there are any, and when to check again if
    /// no acknowledgement arrives.
    pub fn find_losses(&mut self, scoreboard: &mut Scoreboard, state: &DetectionState<'_>) -> (bool, Option<Instant>) {
        let patience = self.round_trip + self.reordering_window(state);
        let is_late = |sent: Instant| after(sent, patience) <= state.now;
        let (found, open) = scoreboard.find_losses_by_time(&mut self.examined, self.newest, is_late);
        // Every unchecked segment was sent before the newest that arrived, so its deadline is at
        // most that segment's.
        (found, open.then(|| after(self.newest.at, patience)))
    }

    fn reordering_window(&self, state: &DetectionState<'_>) -> Span {
        if !self.reordering_seen && state.loss_evident {
            return Span::ZERO;
        }
        let least = state.rtt.least().unwrap_or(Span::ZERO);
        let smoothed = state.rtt.smoothed().unwrap_or(Span::ZERO);
        Span::from_nanos(least.as_nanos().saturating_mul(u64::from(self.quarters)) / 4).min(smoothed)
    }
}
