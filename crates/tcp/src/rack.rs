//! RACK: losses are told by time (RFC 8985 §6). A segment is lost if one that was sent enough later
//! has arrived.

use airpath_core::{Instant, Span};

use crate::rtt::RoundTrip;
use crate::scoreboard::{Delivery, Newest, Scoreboard};
use crate::sequence::Sequence;
use crate::timers::after;

/// How long a wider reordering window is kept, in recoveries (RFC 8985 §6.2 step 4).
const PERSISTENCE: u32 = 16;

/// The state of RFC 8985 §5.3.
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    /// Of all that arrived, the segment sent last.
    newest: Newest,
    /// The round trip of that segment.
    round_trip: Span,
    /// Originals below were looked at.
    examined: Sequence,
    /// One past the highest byte that arrived.
    highest: Sequence,
    reordering_seen: bool,
    /// The reordering window, in quarters of the least round trip.
    quarters: u32,
    /// Recoveries until that falls back to one.
    persistence: u32,
    /// Duplicates reported below this have widened the window already.
    duplicate_round: Option<Sequence>,
}

/// What an acknowledgement leaves to RACK.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    pub now: Instant,
    pub rtt: &'a RoundTrip,
    /// Whether losses are being repaired, or as many segments arrived out of order as tell of a
    /// loss without RACK: then nothing is waited for unless reordering was seen (RFC 8985 §6.2 step
    /// 4).
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

    /// Steps 1 to 3: takes note of what arrived.
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

    /// The receiver reported a duplicate: what was taken for lost was late (step 4).
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

    /// All that was taken for lost is not.
    pub const fn look_again(&mut self) {
        self.examined = 0;
    }

    /// Step 5: finds what is lost by now. Returns whether anything is, and when to look again if
    /// nothing else happens.
    pub fn find_losses(&mut self, scoreboard: &mut Scoreboard, around: &Surroundings<'_>) -> (bool, Option<Instant>) {
        let patience = self.round_trip + self.reordering_window(around);
        let is_late = |sent: Instant| after(sent, patience) <= around.now;
        let (found, open) = scoreboard.find_losses_by_time(&mut self.examined, self.newest, is_late);
        // Everything open was sent before the newest that arrived, and is late when that one would
        // be.
        (found, open.then(|| after(self.newest.at, patience)))
    }

    fn reordering_window(&self, around: &Surroundings<'_>) -> Span {
        if !self.reordering_seen && around.loss_evident {
            return Span::ZERO;
        }
        let least = around.rtt.least().unwrap_or(Span::ZERO);
        let smoothed = around.rtt.smoothed().unwrap_or(Span::ZERO);
        Span::from_nanos(least.as_nanos().saturating_mul(u64::from(self.quarters)) / 4).min(smoothed)
    }
}
