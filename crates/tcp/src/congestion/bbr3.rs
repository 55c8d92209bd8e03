//! BBR, version 3: a model of the path with bounds from losses.
//!
//! As version 1 it has the bandwidth, here the greatest delivery rate of two cycles, and the least
//! round trip. In addition it has two bounds. The long-term bound is the most data in flight
//! without excessive loss, found by probes. The short-term bounds fall with losses outside of
//! probes, until the next probe. Source: the behaviour of Google's branch of Linux (`v3` of
//! google/bbr, `tcp_bbr.c`), whose names are in the comments. Its terms are those of
//! draft-ietf-ccwg-bbr. Where the draft has other constants, `constants` has both; its sections are
//! those of draft-ietf-ccwg-bbr-06. The rules are those of Linux in both cases, except the end of
//! the drain.
//!
//! Left out: the reaction to ECN, which that branch has only for routes that are marked for it; the
//! fast path, which saves processor time. A loss that a tail loss probe repairs counts as a loss of
//! its round, but not as the overshoot of a probe for bandwidth.

mod constants;
mod cycle;
mod signals;
#[cfg(test)]
mod tests;

use airpath_core::{Bitrate, Instant, Span};
use serde::{Deserialize, Serialize};

use super::bbr::aggregation::{self, Aggregation};
use super::bbr::pacing::{Pacing, product, segments_in};
use super::bbr::{
    INITIAL_WINDOW, LARGEST_AGGREGATE, LEAST_ROUND_TRIP_WINDOW, LEAST_WINDOW, PROBE_RTT, UNIT, jiffies, jiffies_in,
    micros,
};
use super::{Acknowledged, Congested, CongestionControl, LostSegment, RateSample, Signal};
use crate::config::{Bbr3Constants, Config};

use constants::Constants;
use cycle::{Cycle, Phase};
use signals::Signals;

/// Pacing gain of startup, 4 ln 2 (`bbr_startup_pacing_gain`; §2.5).
const STARTUP_GAIN: u64 = UNIT * 277 / 100 + 1;
/// Gain of the window (`bbr_startup_cwnd_gain`, `bbr_cwnd_gain`; §2.6).
const WINDOW_GAIN: u64 = UNIT * 2;
/// The same in a probe for bandwidth (`bbr_bw_probe_cwnd_gain`; §5.3.3.5).
const PROBE_WINDOW_GAIN: u64 = WINDOW_GAIN + UNIT / 4;
/// Pacing gain of a probe for bandwidth (`bbr_pacing_gain`; §5.3.3.5).
const UP_GAIN: u64 = UNIT * 5 / 4;
/// ProbeRTT after this time without a lower round trip (`bbr_probe_rtt_win_ms`; §2.16.2).
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
/// The window of ProbeRTT, as a gain (`bbr_probe_rtt_cwnd_gain`; §2.16.2).
const PROBE_RTT_GAIN: u64 = UNIT / 2;
/// An aggregate grows by 64 KiB, halved with each 512 µs of the least round trip
/// (`bbr_tso_rtt_shift`).
const NEAR_AGGREGATE: u64 = 65_536;
const AGGREGATE_SHIFT: u32 = 9;
/// Segments of an aggregate, at least (`tcp_min_tso_segs`).
const LEAST_AGGREGATE: u64 = 2;
/// No bound.
const NONE: u64 = u64::MAX;

/// BBR, version 3.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bbr3 {
    constants: Bbr3Constants,
    mode: Mode,
    /// Rounds of the drain so far.
    drain_rounds: u64,
    /// The greatest bandwidth of the last and of the current cycle (`bw_hi`), in segments per
    /// microsecond, times `BANDWIDTH_UNIT`.
    bandwidths: [u64; 2],
    /// Long-term bound of the segments in flight (`inflight_hi`).
    long_term: u64,
    /// Short-term bounds (`bw_lo`, `inflight_lo`).
    short_term: Bounds,
    /// The bounds before the last episode of congestion.
    undo: (u64, Bounds),
    signals: Signals,
    cycle: Cycle,
    aggregation: Aggregation,
    /// The least round trip in microseconds, and its jiffy.
    least: Option<(u64, u64)>,
    /// The same of the last five seconds.
    recent_least: Option<(u64, u64)>,
    /// Jiffy at which ProbeRTT may end.
    probe_rtt_end: Option<u64>,
    probe_rtt_round: bool,
    limits_itself: bool,
    idle_restart: bool,
    /// A round ends when a segment is acknowledged that was sent with this number of segments
    /// delivered.
    round_end: u64,
    round_start: bool,
    pacing_gain: u64,
    window_gain: u64,
    pacing: Pacing,
    /// In segments.
    window: u64,
    initial_window: u64,
    /// The window before a recovery or ProbeRTT.
    prior_window: u64,
    threshold: Option<u64>,
    /// Whether the window was full in this window of data, and where that ends
    /// (`is_cwnd_limited`).
    limited: bool,
    limited_end: u64,
    /// State of the last acknowledgement.
    recovers: bool,
    timed_out: bool,
    delivered: u64,
    random: u64,
}

/// The state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Mode {
    /// Doubles the rate per round trip until the pipe is full.
    Startup,
    /// Drains the queue that startup has built.
    Drain,
    /// Cycles through probes for bandwidth.
    ProbeBandwidth(Phase),
    /// Half a bandwidth-delay product in flight, to measure the least round trip.
    ProbeRoundTrip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Bounds {
    bandwidth: u64,
    in_flight: u64,
}

impl Bounds {
    const NONE: Self = Self { bandwidth: NONE, in_flight: NONE };
}

impl Bbr3 {
    /// A controller with the configured initial window, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        let segment_size = u64::from(size.max(1));
        let window = (config.initial_window.bytes(size) / segment_size).max(1);
        Self {
            constants: config.congestion.bbr3_constants,
            mode: Mode::Startup,
            drain_rounds: 0,
            bandwidths: [0; 2],
            long_term: NONE,
            short_term: Bounds::NONE,
            undo: (NONE, Bounds::NONE),
            signals: Signals::default(),
            cycle: Cycle::default(),
            aggregation: Aggregation::new(),
            least: None,
            recent_least: None,
            probe_rtt_end: None,
            probe_rtt_round: false,
            limits_itself: false,
            idle_restart: false,
            round_end: 0,
            round_start: false,
            pacing_gain: STARTUP_GAIN,
            window_gain: WINDOW_GAIN,
            pacing: Pacing::new(segment_size, window, STARTUP_GAIN),
            window,
            initial_window: window,
            prior_window: 0,
            threshold: None,
            limited: false,
            limited_end: 0,
            recovers: false,
            timed_out: false,
            delivered: 0,
            random: 0,
        }
    }

    const fn constants(&self) -> &'static Constants {
        Constants::of(self.constants)
    }

    /// `bbr_max_bw`.
    fn most_bandwidth(&self) -> u64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    /// The bandwidth of the model (`bbr_bw`).
    fn bandwidth(&self) -> u64 {
        self.most_bandwidth().min(self.short_term.bandwidth)
    }

    fn set_pacing_rate(&mut self, gain: u64, smoothed: Option<Span>) {
        self.pacing.note_round_trip(self.window, STARTUP_GAIN, smoothed);
        self.pacing.set(self.bandwidth(), gain, self.signals.is_full);
    }

    /// Segments of an aggregate (`bbr_tso_segs_goal`).
    fn aggregate(&self) -> u64 {
        let halvings = self.least.map_or(u64::MAX, |(least, _)| least >> AGGREGATE_SHIFT);
        let near = if halvings < 32 { NEAR_AGGREGATE >> halvings } else { 0 };
        let bytes = ((self.pacing.rate >> 10) + near).min(LARGEST_AGGREGATE);
        (bytes / self.pacing.segment_size).max(LEAST_AGGREGATE)
    }

    /// The bandwidth-delay product times `gain`, in segments, rounded up (`bbr_bdp`).
    fn product(&self, bandwidth: u64, gain: u64) -> u64 {
        let Some((least, _)) = self.least else { return self.initial_window.min(INITIAL_WINDOW) };
        product(bandwidth, least, gain)
    }

    /// Room for aggregates at both ends (`bbr_quantization_budget`).
    fn with_aggregates(&self, window: u64) -> u64 {
        let window = window.max(3 * self.aggregate()).max(LEAST_WINDOW);
        // A probe must exceed the product even if that is small.
        window + if self.mode == Mode::ProbeBandwidth(Phase::Up) { 2 } else { 0 }
    }

    /// Segments in flight that fill the path at `bandwidth` (`bbr_inflight`).
    fn full_path(&self, bandwidth: u64) -> u64 {
        self.with_aggregates(self.product(bandwidth, UNIT))
    }

    /// The bandwidth-delay product, unless congestion has cut the window (`bbr_target_inflight`).
    fn target(&self) -> u64 {
        self.full_path(self.bandwidth()).min(self.window)
    }

    /// Of `in_flight` segments, those still in the network at the next departure
    /// (`bbr_packets_in_net_at_edt`).
    fn in_network(&self, in_flight: u64, sample: &RateSample) -> u64 {
        let waiting = micros(sample.departure.since(sample.now));
        let delivered = segments_in(self.bandwidth(), waiting);
        let joining = if self.pacing_gain > UNIT { self.aggregate() } else { 0 };
        (in_flight + joining).saturating_sub(delivered)
    }

    fn check_drain(&mut self, sample: &RateSample) {
        let full = self.full_path(self.most_bandwidth());
        if self.mode == Mode::Startup && self.signals.is_full {
            self.mode = Mode::Drain;
            self.threshold = Some(full);
            self.signals.reset();
            self.drain_rounds = 0;
        } else if self.mode == Mode::Drain {
            self.drain_rounds += u64::from(self.round_start);
        }
        let is_late = self.constants().drain_rounds.is_some_and(|most| self.drain_rounds > most);
        if self.mode == Mode::Drain && (is_late || self.in_network(sample.in_flight, sample) <= full) {
            self.begin_down(sample.now);
        }
    }

    /// `bbr_update_min_rtt`.
    fn update_least_round_trip(&mut self, sample: &RateSample) {
        let now = jiffies(sample.now);
        let expires = |least: Option<(u64, u64)>, window| least.is_none_or(|(_, at)| now > at + jiffies_in(window));
        let is_due = expires(self.recent_least, PROBE_RTT_INTERVAL);
        if let Some(round_trip) = sample.round_trip.map(micros)
            && (self.recent_least.is_none_or(|(least, _)| round_trip < least) || (is_due && !sample.ack_delayed))
        {
            self.recent_least = Some((round_trip, now));
        }
        let is_lower = |(recent, _): (u64, u64)| self.least.is_none_or(|(least, _)| recent <= least);
        if self.recent_least.is_some_and(is_lower) || expires(self.least, LEAST_ROUND_TRIP_WINDOW) {
            self.least = self.recent_least;
        }
        if is_due && !self.idle_restart && self.mode != Mode::ProbeRoundTrip && self.recent_least.is_some() {
            self.mode = Mode::ProbeRoundTrip;
            self.save_window();
            self.probe_rtt_end = None;
            self.cycle.stop_feedback();
            self.round_end = sample.total_delivered;
        }
        self.limits_itself = self.mode == Mode::ProbeRoundTrip;
        if self.mode == Mode::ProbeRoundTrip {
            if self.probe_rtt_end.is_none() && sample.in_flight <= self.probe_rtt_window() {
                self.probe_rtt_end = Some(now + jiffies_in(PROBE_RTT));
                self.probe_rtt_round = false;
                self.round_end = sample.total_delivered;
            } else if self.probe_rtt_end.is_some() {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round {
                    self.end_probe_round_trip(sample.now);
                }
            }
        }
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    /// Ends ProbeRTT if it has lasted long enough.
    fn end_probe_round_trip(&mut self, now: Instant) {
        let jiffy = jiffies(now);
        if self.probe_rtt_end.is_none_or(|end| jiffy <= end) {
            return;
        }
        self.recent_least = self.recent_least.map(|(least, _)| (least, jiffy));
        self.window = self.window.max(self.prior_window);
        self.short_term = Bounds::NONE;
        if self.signals.is_full {
            // What is in flight is below the product: cruise.
            self.begin_down(now);
            self.begin_cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn probe_rtt_window(&self) -> u64 {
        self.product(self.bandwidth(), PROBE_RTT_GAIN).max(LEAST_WINDOW)
    }

    const fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, WINDOW_GAIN),
            Mode::Drain => (self.constants().drain_gain, WINDOW_GAIN),
            Mode::ProbeBandwidth(Phase::Up) => (UP_GAIN, PROBE_WINDOW_GAIN),
            Mode::ProbeBandwidth(Phase::Down) => (self.constants().down_gain, WINDOW_GAIN),
            Mode::ProbeBandwidth(Phase::Cruise | Phase::Refill) => (UNIT, WINDOW_GAIN),
            Mode::ProbeRoundTrip => (UNIT, UNIT),
        };
    }

    fn save_window(&mut self) {
        let is_whole = !self.recovers && !self.timed_out && self.mode != Mode::ProbeRoundTrip;
        self.prior_window = if is_whole { self.window } else { self.prior_window.max(self.window) };
    }

    /// `bbr_set_cwnd`, `bbr_bound_cwnd_for_inflight_model`.
    fn set_window(&mut self, sample: &RateSample) {
        if sample.acknowledged > 0 {
            let extra = self.aggregation.extra(self.bandwidth());
            let target = self.with_aggregates(self.product(self.bandwidth(), self.window_gain) + extra);
            let grown = self.window + sample.acknowledged;
            if self.signals.is_full {
                self.window = grown.min(target);
            } else if self.window < target || self.window < 2 * self.initial_window {
                self.window = grown;
            }
            self.window = self.window.max(LEAST_WINDOW);
        }
        let bound = match self.mode {
            Mode::ProbeRoundTrip => self.with_headroom().min(self.probe_rtt_window()),
            Mode::ProbeBandwidth(Phase::Cruise) => self.with_headroom(),
            Mode::ProbeBandwidth(_) => self.long_term,
            Mode::Startup | Mode::Drain => NONE,
        };
        self.window = self.window.min(bound.min(self.short_term.in_flight).max(LEAST_WINDOW));
    }

    /// Notes whether the window was full before the acknowledgement (`tcp_cwnd_validate`).
    fn note_limit(&mut self, sample: &RateSample) {
        if sample.prior_in_flight >= self.window {
            self.limited = true;
            self.limited_end = sample.total_delivered + sample.in_flight;
        } else if sample.total_delivered >= self.limited_end {
            self.limited = false;
        }
    }
}

impl CongestionControl for Bbr3 {
    fn name(&self) -> &'static str {
        "bbr3"
    }

    fn takes_over(&self) -> bool {
        true
    }

    fn on_established(&mut self, now: Instant, round_trip: Option<Span>, seed: u64) {
        self.random = seed;
        self.least = round_trip.map(|round_trip| (micros(round_trip), jiffies(now)));
        self.recent_least = self.least;
        self.pacing.start(self.window, STARTUP_GAIN, round_trip);
        self.aggregation.restart(now);
        // The SYN.
        self.round_end = 1;
        self.delivered = 1;
        self.signals.start_after(2);
    }

    fn on_ack(&mut self, _: &Acknowledged) {}

    fn on_segment_lost(&mut self, now: Instant, lost: &LostSegment) {
        self.delivered = lost.delivered;
        self.signals.note_loss(lost.delivered);
        self.judge_lost_segment(now, lost);
    }

    fn on_rate_sample(&mut self, sample: &RateSample) {
        self.delivered = sample.total_delivered;
        self.note_limit(sample);
        self.update_round(sample);
        let bandwidth = signals::bandwidth_of(sample);
        self.update_signals(sample, bandwidth);
        let length = if self.signals.is_full { aggregation::ROUNDS } else { 1 };
        let round = self.round_start.then_some(length);
        self.aggregation.update(sample, self.bandwidth(), round, self.window);
        self.check_startup_losses(sample);
        self.signals.check_full(sample, bandwidth, self.round_start);
        self.check_drain(sample);
        self.update_cycle(sample, bandwidth);
        self.update_least_round_trip(sample);
        self.update_gains();
        self.set_pacing_rate(self.pacing_gain, sample.smoothed_round_trip);
        if self.timed_out && !sample.timed_out {
            self.window = self.window.max(self.prior_window);
        }
        self.set_window(sample);
        self.signals.advance(sample, bandwidth);
        (self.recovers, self.timed_out) = (sample.recovery, sample.timed_out);
    }

    fn on_congestion(&mut self, congested: &Congested) {
        if !congested.again {
            self.save_window();
            self.undo = (self.long_term, self.short_term);
        }
        match congested.signal {
            Signal::Timeout => self.window = 1,
            Signal::Loss => self.signals.note_loss(self.delivered),
            Signal::Mark => {}
        }
    }

    /// Window and bandwidth are in segments, so both fall with their size, as in Linux.
    fn on_segment_size(&mut self, size: u32) {
        self.pacing.segment_size = u64::from(size.max(1));
    }

    fn on_timeout_losses(&mut self, _: u64) {
        self.timed_out = true;
        self.signals.reset_full();
        if !self.is_probing() && self.short_term.in_flight == NONE {
            self.short_term.in_flight = self.window.max(self.prior_window);
        }
    }

    fn on_transmission_start(&mut self, now: Instant, _: Span, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            // A queue has drained: continue at the bandwidth.
            Mode::ProbeBandwidth(_) => self.set_pacing_rate(UNIT, None),
            Mode::ProbeRoundTrip => self.end_probe_round_trip(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn limits_itself(&self) -> bool {
        self.limits_itself
    }

    /// The losses were spurious: restores the bounds.
    fn undo(&mut self, _: Instant) {
        self.signals.forget_losses();
        let (long_term, short_term) = self.undo;
        self.long_term = self.long_term.max(long_term);
        self.short_term.bandwidth = self.short_term.bandwidth.max(short_term.bandwidth);
        self.short_term.in_flight = self.short_term.in_flight.max(short_term.in_flight);
        self.window = self.window.max(self.prior_window);
    }

    fn on_idle(&mut self, _: Instant, window: u64, _: u64) {
        self.window = self.window.min((window / self.pacing.segment_size).max(1));
    }

    fn congestion_window(&self) -> u64 {
        self.window.saturating_mul(self.pacing.segment_size)
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.threshold.map(|threshold| threshold * self.pacing.segment_size)
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        Some(Bitrate::from_bps(self.pacing.rate.saturating_mul(8).max(1)))
    }

    fn pacing_gain(&self) -> Option<u32> {
        Some(self.pacing_gain as u32)
    }
}
