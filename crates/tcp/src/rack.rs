//! RACK: loss detection by time (RFC 8985 §6). A segment is lost if another, sent enough later, has
//! arrived.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use crate::rtt::RoundTrip;
use crate::scoreboard::{Delivery, Newest, Scoreboard};
use crate::sequence::Sequence;
use crate::timers::after;

/// Number of recoveries that keep a wider reordering window (RFC 8985 §6.2 step 4).
const PERSISTENCE: u32 = 16;

/// The state of RFC 8985 §5.3.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Rack {
    /// The most recently sent segment that has arrived.
    newest: Newest,
    /// The most recent retransmission that has arrived.
    newest_repeated: Newest,
    /// The round trip of the last segment that arrived, whichever it is (`RACK.rtt`).
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
            newest: Newest::NONE,
            newest_repeated: Newest::NONE,
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
        if let Some(sent) = delivery.last_delivered {
            self.round_trip = delivery.now.since(sent);
        }
        if let Some(newest) = delivery.newest {
            self.newest = self.newest.max(newest);
        }
        if let Some(repeated) = delivery.newest_repeated {
            self.newest_repeated = self.newest_repeated.max(repeated);
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

    /// Whether reordering was observed.
    pub const fn has_seen_reordering(&self) -> bool {
        self.reordering_seen
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
        let newest = [self.newest, self.newest_repeated];
        let (found, open) = scoreboard.find_losses_by_time(&mut self.examined, newest, is_late);
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

#[cfg(test)]
mod tests {
    use airpath_core::range_set::Range;

    use super::*;
    use crate::Profile;

    /// The reordering window in milliseconds, with round trips of 100 ms.
    fn window(rack: &Rack, loss_evident: bool) -> u64 {
        let mut rtt = RoundTrip::new();
        let now = Instant::ZERO + Span::from_millis(100);
        rtt.measure(Instant::ZERO, now, Range::new(0, 0), &Profile::Linux6.config().retransmission_timeout);
        let window = rack.reordering_window(&DetectionState { now, rtt: &rtt, loss_evident });
        window.as_nanos() / 1_000_000
    }

    fn delivered(rack: &mut Rack, original: Option<Sequence>, highest: Sequence) {
        let delivery = Delivery { lowest_original: original, ..Delivery::new(Instant::ZERO, None, None) };
        rack.on_delivery(&delivery, 0, Some(highest));
    }

    #[test]
    fn the_reordering_window_is_zero_while_losses_are_evident() {
        // RFC 8985 §6.2 step 4: unless reordering was observed.
        let mut rack = Rack::new();
        assert_eq!((window(&rack, false), window(&rack, true)), (25, 0));
        delivered(&mut rack, Some(1), 1000);
        delivered(&mut rack, Some(1000), 2000);
        assert_eq!(window(&rack, true), 0, "all came in order");
        delivered(&mut rack, Some(1999), 2000);
        assert_eq!((window(&rack, false), window(&rack, true)), (25, 25));
    }

    #[test]
    fn reported_duplicates_widen_the_window_for_sixteen_recoveries() {
        // RFC 8985 §6.2 step 4: by a quarter of the least round trip in each round with a report.
        let mut rack = Rack::new();
        rack.on_duplicate_report(1, 1000);
        assert_eq!(window(&rack, false), 50);
        rack.on_duplicate_report(999, 2000);
        assert_eq!(window(&rack, false), 50, "once a round");
        rack.on_duplicate_report(1000, 2000);
        assert_eq!(window(&rack, false), 75);
        rack.on_duplicate_report(2000, 3000);
        rack.on_duplicate_report(3000, 4000);
        assert_eq!(window(&rack, false), 100, "at most the smoothed round trip");
        (0..15).for_each(|_| rack.on_recovery_end());
        assert_eq!(window(&rack, false), 100);
        rack.on_recovery_end();
        assert_eq!(window(&rack, false), 25);
        rack.on_recovery_end();
        assert_eq!(window(&rack, false), 25);
    }
}
