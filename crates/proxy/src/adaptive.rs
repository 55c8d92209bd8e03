//! A budget that follows the link: delivery rate × least round trip, and a little more.
//!
//! The estimators are those of BBR (draft-cardwell-iccrg-bbr-congestion-control): the greatest
//! delivery rate of the last rounds and the least round trip. A round is the time until everything
//! that was outstanding at its start is acknowledged, so bunched acknowledgements are averaged. In
//! contrast to BBR the gain is that of the study's clamp, not 2, and there is no pacing.
//!
//! A gain above 1 finds a link that has become faster: when the rate has grown by a quarter, the
//! budget grows by half in each round, as at the start. The gain also builds a small queue, which
//! would count as round trip. So one round in eight drains it, and both estimators forget after ten
//! rounds: a handover to a slower link or a longer path is followed.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

/// The initial window of RFC 6928: ten segments.
const INITIAL: u64 = 14_600;
/// Four segments: less would stall on delayed acknowledgements.
const LEAST: u64 = 5_840;
/// Payload bytes of a full segment.
const SEGMENT: u128 = 1460;
/// Rounds that the estimators keep: more than the cycle of gains.
const WINDOW: usize = 10;
/// Rounds in a cycle of gains.
const CYCLE: u64 = 8;
/// Gains in percent: when the link is being found (the budget grows by half in each round), in the
/// round that drains the queue, and otherwise.
const STARTUP: u64 = 150;
const DRAIN: u64 = 95;
const CRUISE: u64 = 115;
/// Hosts send and acknowledge in portions of up to this time (segmentation offload; Linux's
/// `tcp_tso_autosize`; BBR's offload budget), so a budget for less would leave the path idle.
const GRANULARITY: Span = Span::from_millis(1);
/// The link is found when the rate has not grown by a quarter in this number of rounds.
const FULL: u32 = 3;

/// The estimator of one mobile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Adaptive {
    /// Rate in bytes per second and least round trip of the last rounds; the newest at
    /// `rounds % WINDOW`.
    history: [Sample; WINDOW],
    rounds: u64,
    round: Round,
    /// Bytes delivered in all.
    delivered: u64,
    /// The rate with which growth is compared, and the rounds without growth by a quarter.
    reference: u64,
    stalled: u32,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Sample {
    rate: u64,
    /// Most bytes by which the acknowledgements were ahead of the rate.
    excess: u64,
    round_trip: Option<Span>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Round {
    start: Instant,
    /// Bytes delivered at the start.
    delivered: u64,
    /// It ends when this many bytes are delivered.
    until: u64,
    least: Option<Span>,
    excess: u64,
    /// Whether the budget limited the sender.
    limited: bool,
}

impl Adaptive {
    pub fn new() -> Self {
        Self {
            history: [Sample::default(); WINDOW],
            rounds: 0,
            round: Round::default(),
            delivered: 0,
            reference: 0,
            stalled: 0,
        }
    }

    /// The first budget.
    pub const fn initial() -> u64 {
        INITIAL
    }

    /// The budget keeps data back.
    pub const fn on_limited(&mut self) {
        self.round.limited = true;
    }

    /// Nothing was outstanding, and data are sent again: a round begins.
    pub const fn on_restart(&mut self, now: Instant, outstanding: u64) {
        self.begin_round(now, outstanding);
    }

    /// `bytes` were delivered and `outstanding` are left; a round trip may have been measured.
    /// Returns the new budget when a round ends.
    pub fn on_delivered(
        &mut self,
        now: Instant,
        bytes: u64,
        outstanding: u64,
        round_trip: Option<Span>,
    ) -> Option<u64> {
        self.delivered += bytes;
        if let Some(sample) = round_trip {
            self.round.least = Some(self.round.least.map_or(sample, |least| least.min(sample)));
        }
        let elapsed = now.since(self.round.start).as_nanos();
        let expected = u128::from(self.rate()) * u128::from(elapsed) / 1_000_000_000;
        let excess = u128::from(self.delivered - self.round.delivered).saturating_sub(expected);
        self.round.excess = self.round.excess.max(excess as u64);
        if self.delivered < self.round.until || elapsed == 0 {
            return None;
        }
        self.end_round(elapsed);
        self.begin_round(now, outstanding);
        self.budget()
    }

    fn end_round(&mut self, elapsed: u64) {
        let bytes = u128::from(self.delivered - self.round.delivered);
        let measured = u64::try_from(bytes * 1_000_000_000 / u128::from(elapsed)).unwrap_or(u64::MAX);
        // A sender without enough data does not measure the link.
        let rate = if self.round.limited || measured > self.rate() { measured } else { self.newest().rate };
        self.rounds += 1;
        let round_trip = self.round.least;
        // While the link is being found, data are ahead because the rate grows.
        let excess = if self.stalled < FULL { 0 } else { self.round.excess };
        self.history[self.rounds as usize % WINDOW] = Sample { rate, round_trip, excess };
        if self.rate() * 4 >= self.reference * 5 {
            // In a cruise, this is a link that has become faster.
            (self.reference, self.stalled) = (self.rate(), 0);
        } else if self.stalled < FULL && self.round.limited {
            self.stalled += 1;
        } else if self.rounds.is_multiple_of(CYCLE) {
            self.reference = self.rate();
        }
    }

    const fn begin_round(&mut self, now: Instant, outstanding: u64) {
        let (delivered, until) = (self.delivered, self.delivered + if outstanding > 0 { outstanding } else { 1 });
        self.round = Round { start: now, delivered, until, least: None, excess: 0, limited: false };
    }

    const fn newest(&self) -> Sample {
        self.history[self.rounds as usize % WINDOW]
    }

    /// The greatest rate of the last rounds.
    fn rate(&self) -> u64 {
        self.history.iter().map(|sample| sample.rate).max().unwrap_or(0)
    }

    fn budget(&self) -> Option<u64> {
        let round_trip = self.history.iter().filter_map(|sample| sample.round_trip).min()?.max(GRANULARITY);
        let gain = match self.rounds % CYCLE {
            _ if self.stalled < FULL => STARTUP,
            0 => DRAIN,
            _ => CRUISE,
        };
        let product = u128::from(self.rate()) * u128::from(round_trip.as_nanos()) / 1_000_000_000;
        let mut budget = product * u128::from(gain) / 100;
        if gain > 100 {
            // Less than a segment more would not be sent, and the mobile may delay the
            // acknowledgement of another one.
            budget = budget.max(product + 2 * SEGMENT);
        }
        // What would be sent between two bunches of acknowledgements (BBR's extra_acked).
        let excess = self.history.iter().map(|sample| sample.excess).max().unwrap_or(0);
        budget += u128::from(excess).min(product);
        // While the link is being found, the budget does not fall below the first one.
        let least = if self.stalled < FULL { INITIAL } else { LEAST };
        Some(u64::try_from(budget).unwrap_or(u64::MAX).max(least))
    }
}
