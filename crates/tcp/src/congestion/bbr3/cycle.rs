//! ProbeBW: probes for bandwidth, and the long-term bound that they find.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::signals::{LOSS_THRESHOLD, is_too_much};
use super::{Bbr3, Bounds, Mode, NONE};
use crate::congestion::bbr::{LEAST_WINDOW, UNIT, draw};
use crate::congestion::{LostSegment, RateSample};

/// Time between two probes: `PROBE_WAIT` and a random part of `PROBE_SPREAD`
/// (`bbr_bw_probe_base_us`, `bbr_bw_probe_rand_us`; §5.3.3.8.2).
const PROBE_WAIT: Span = Span::from_secs(2);
const PROBE_SPREAD_MICROS: u64 = 1_000_000;
/// Rounds between two probes at most, less 0 or 1 (`bbr_bw_probe_max_rounds`,
/// `bbr_bw_probe_rand_rounds`; §5.3.3.8.2): so a flow is fair to Reno at 25 Mbit/s and 30 ms.
const MOST_ROUNDS: u64 = 63;
const ROUND_SPREAD: u64 = 2;
/// Part of the long-term bound that stays free while cruising, in 256ths
/// (`bbr_inflight_headroom`; §2.8).
const HEADROOM: u64 = UNIT * 15 / 100;
/// The growth of the long-term bound doubles in this number of rounds at most.
const MOST_DOUBLINGS: u32 = 30;

/// The phases of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Drains the queue of the probe.
    Down,
    /// Sends at the bandwidth, below the long-term bound.
    Cruise,
    /// Fills the path, so that the probe does not cause losses at once.
    Refill,
    /// Sends more, to find more bandwidth.
    Up,
}

impl Phase {
    pub const fn is_probe(self) -> bool {
        matches!(self, Self::Refill | Self::Up)
    }
}

/// What acknowledgements show of a probe (`ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Feedback {
    /// Nothing.
    #[default]
    None,
    /// Data of the refill.
    Refill,
    /// A probe has begun; data from before it.
    Starting,
    /// Data of the probe.
    Probe,
    /// The probe is over; its last data.
    Stopping,
}

/// The cycle.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Cycle {
    /// Start of the wait for the next probe.
    since: Instant,
    wait: Span,
    /// Rounds since the last probe, with a random first.
    rounds: u64,
    feedback: Feedback,
    /// Samples show what a probe causes (`bw_probe_samples`).
    is_sampled: bool,
    /// Rounds of a probe at the long-term bound, acknowledged segments in it, and those that raise
    /// the bound by one (`bw_probe_up_rounds`, `bw_probe_up_acks`, `bw_probe_up_cnt`).
    doublings: u32,
    acknowledged: u64,
    per_segment: u64,
    /// The last probe caused too many losses (`prev_probe_too_high`).
    was_too_much: bool,
    /// A probe was stopped at the long-term bound (`stopped_risky_probe`).
    was_stopped: bool,
}

impl Cycle {
    pub const fn stop_feedback(&mut self) {
        self.feedback = Feedback::Stopping;
    }

    pub fn count_round(&mut self) {
        self.rounds = (self.rounds + 1).min(255);
    }
}

impl Bbr3 {
    pub(super) fn begin_down(&mut self, now: Instant) {
        self.signals.reset();
        self.cycle.per_segment = NONE;
        self.cycle.rounds = draw(&mut self.random, ROUND_SPREAD);
        self.cycle.wait = PROBE_WAIT + Span::from_micros(draw(&mut self.random, PROBE_SPREAD_MICROS));
        self.cycle.since = now;
        self.cycle.feedback = Feedback::Stopping;
        self.round_end = self.delivered;
        self.mode = Mode::ProbeBandwidth(Phase::Down);
    }

    pub(super) fn begin_cruise(&mut self) {
        if self.short_term.in_flight != NONE {
            self.short_term.in_flight = self.short_term.in_flight.min(self.long_term);
        }
        self.mode = Mode::ProbeBandwidth(Phase::Cruise);
    }

    fn begin_refill(&mut self) {
        self.short_term = Bounds::NONE;
        self.cycle.doublings = 0;
        self.cycle.acknowledged = 0;
        self.cycle.was_stopped = false;
        self.cycle.feedback = Feedback::Refill;
        self.round_end = self.delivered;
        self.mode = Mode::ProbeBandwidth(Phase::Refill);
    }

    fn begin_up(&mut self, now: Instant, bandwidth: u64) {
        self.cycle.feedback = Feedback::Starting;
        self.round_end = self.delivered;
        self.cycle.since = now;
        self.signals.restart_full(bandwidth);
        self.mode = Mode::ProbeBandwidth(Phase::Up);
        self.raise_slope();
    }

    /// Each round of a probe doubles the growth of the long-term bound
    /// (`bbr_raise_inflight_hi_slope`).
    fn raise_slope(&mut self) {
        let growth = 1 << self.cycle.doublings;
        self.cycle.doublings = (self.cycle.doublings + 1).min(MOST_DOUBLINGS);
        self.cycle.per_segment = (self.window / growth).max(1);
    }

    /// `bbr_probe_inflight_hi_upward`.
    fn raise_long_term(&mut self, sample: &RateSample) {
        if !self.limited || self.window < self.long_term {
            return;
        }
        self.cycle.acknowledged += sample.acknowledged;
        if self.cycle.acknowledged >= self.cycle.per_segment {
            let more = self.cycle.acknowledged / self.cycle.per_segment;
            self.cycle.acknowledged -= more * self.cycle.per_segment;
            self.long_term += more;
        }
        if self.round_start {
            self.raise_slope();
        }
    }

    /// The long-term bound with room for others (`bbr_inflight_with_headroom`).
    pub(super) fn with_headroom(&self) -> u64 {
        if self.long_term == NONE {
            return NONE;
        }
        let headroom = (self.long_term * HEADROOM / UNIT).max(1);
        self.long_term.saturating_sub(headroom).max(LEAST_WINDOW)
    }

    /// A probe has caused too many losses with this many segments in flight
    /// (`bbr_handle_inflight_too_high`).
    fn end_probe(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        self.cycle.was_too_much = true;
        // Once for each probe.
        self.cycle.is_sampled = false;
        if !app_limited {
            self.long_term = in_flight.max(self.target() * self.constants().loss_cut / UNIT);
        }
        if self.mode == Mode::ProbeBandwidth(Phase::Up) {
            self.begin_down(now);
        }
    }

    /// Whether the losses of the flight before a lost segment were too many, and from which segment
    /// on (`bbr_skb_marked_lost`, `bbr_inflight_hi_from_lost_skb`).
    pub(super) fn judge_lost_segment(&mut self, now: Instant, lost: &LostSegment) {
        if !self.cycle.is_sampled || !is_too_much(lost.lost, lost.in_flight) {
            return;
        }
        let (in_flight, before) = (lost.in_flight.saturating_sub(1), lost.lost.saturating_sub(1));
        let allowed = (in_flight * LOSS_THRESHOLD).div_ceil(UNIT);
        let prefix = allowed.saturating_sub(before) * UNIT / (UNIT - LOSS_THRESHOLD);
        self.end_probe(now, in_flight + prefix, lost.app_limited);
    }

    /// Adapts the long-term bound to the samples of a probe (`bbr_adapt_upper_bounds`). Returns
    /// whether the next probe begins.
    fn adapt_long_term(&mut self, sample: &RateSample) -> bool {
        let cycles = matches!(self.mode, Mode::ProbeBandwidth(_));
        match self.cycle.feedback {
            Feedback::Starting if self.round_start => self.cycle.feedback = Feedback::Probe,
            Feedback::Stopping if self.round_start => {
                self.cycle.is_sampled = false;
                self.cycle.feedback = Feedback::None;
                // The sample of the probe is the best one: forget those of the cycle before.
                if cycles && !sample.app_limited && self.bandwidths[1] > 0 {
                    self.bandwidths = [self.bandwidths[1], 0];
                }
                // The bound was reached without losses: probe beyond it.
                if cycles && self.cycle.was_stopped && !self.cycle.was_too_much {
                    self.begin_refill();
                    return true;
                }
            }
            _ => {}
        }
        if is_too_much(sample.lost, sample.sent_in_flight) {
            if self.cycle.is_sampled {
                self.end_probe(sample.now, sample.sent_in_flight, sample.app_limited);
            }
        } else if self.long_term != NONE {
            self.long_term = self.long_term.max(sample.sent_in_flight);
            if self.mode == Mode::ProbeBandwidth(Phase::Up) {
                self.raise_long_term(sample);
            }
        }
        false
    }

    /// `bbr_check_time_to_probe_bw`.
    fn is_time_to_probe(&self, now: Instant) -> bool {
        now.since(self.cycle.since) > self.cycle.wait || self.cycle.rounds >= self.target().min(MOST_ROUNDS)
    }

    /// `bbr_update_cycle_phase`.
    pub(super) fn update_cycle(&mut self, sample: &RateSample, bandwidth: u64) {
        if !self.signals.is_full || self.adapt_long_term(sample) {
            return;
        }
        let Mode::ProbeBandwidth(phase) = self.mode else { return };
        let in_network = self.in_network(sample.prior_in_flight, sample);
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(sample.now) => self.begin_refill(),
            Phase::Down if in_network <= self.with_headroom().min(self.full_path(self.most_bandwidth())) => {
                self.begin_cruise();
            }
            Phase::Refill if self.round_start => {
                self.cycle.is_sampled = true;
                self.begin_up(sample.now, bandwidth);
            }
            Phase::Up => {
                let is_risky = self.cycle.was_too_much && in_network >= self.long_term;
                let is_bound = self.limited && self.window >= self.long_term;
                if is_risky {
                    self.cycle.was_stopped = true;
                } else if is_bound {
                    self.signals.restart_full(bandwidth);
                }
                if is_risky || (!is_bound && self.signals.is_full_now) {
                    self.cycle.was_too_much = false;
                    self.begin_down(sample.now);
                }
            }
            Phase::Down | Phase::Cruise | Phase::Refill => {}
        }
    }
}
