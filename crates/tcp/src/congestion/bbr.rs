//! BBR, version 1: a model of the path instead of a reaction to losses.
//!
//! The model has the bandwidth, as the greatest delivery rate of ten round trips, and the least
//! round trip of ten seconds. Sources: draft-cardwell-iccrg-bbr-congestion-control-00, and the
//! behaviour of Linux (`tcp_bbr.c`), whose names of constants are in the comments. As there,
//! windows are in segments, and the clock of ProbeRTT has ticks of 4 ms (`CONFIG_HZ` 250).
//!
//! Limit: here the window bounds the bytes in flight, and `in_flight` is these bytes in full
//! segments, rounded up; Linux counts segments of any size. Deliveries are counted as there. So an
//! application that sends many sub-MSS segments has more of them in flight than with Linux.

pub(super) mod aggregation;
mod filter;
pub(super) mod pacing;
mod policer;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

use airpath_core::{Bitrate, Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Congested, CongestionControl, RateSample, Signal};
use crate::config::Config;

use aggregation::Aggregation;
use filter::WindowedMax;
use pacing::{BANDWIDTH_UNIT, Pacing, segments_in};
use policer::Policer;

/// Gains are in 256ths (`BBR_UNIT`).
pub(super) const UNIT: u64 = 256;
/// Gain of pacing rate and window in startup, 2/ln 2 (`bbr_high_gain`).
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Pacing gain that drains the queue of startup in one round trip (`bbr_drain_gain`).
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Gain of the window in ProbeBW, for delayed and aggregated acknowledgements (`bbr_cwnd_gain`).
const WINDOW_GAIN: u64 = UNIT * 2;
/// Pacing gains of the phases of ProbeBW: probe, drain, cruise (`bbr_pacing_gain`).
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// ProbeBW begins in a random phase among all but the draining one (`bbr_cycle_rand`).
const FIRST_PHASES: u64 = 7;
/// Rounds of the bandwidth filter (`bbr_bw_rtts`).
const BANDWIDTH_ROUNDS: u64 = 10;
/// The least round trip is measured again after this time (`bbr_min_rtt_win_sec`).
pub(super) const LEAST_ROUND_TRIP_WINDOW: Span = Span::from_secs(10);
/// Least duration of ProbeRTT (`bbr_probe_rtt_mode_ms`).
pub(super) const PROBE_RTT: Span = Span::from_millis(200);
/// A tick of the kernel's coarse clock at `CONFIG_HZ` 250.
const JIFFY: Span = Span::from_millis(4);
/// The least window (`bbr_cwnd_min_target`).
pub(super) const LEAST_WINDOW: u64 = 4;
/// The window grows freely until this number of segments is delivered, and is this large without a
/// round-trip measurement (`TCP_INIT_CWND`).
pub(super) const INITIAL_WINDOW: u64 = 10;
/// The pipe is full if the bandwidth grows by less than a quarter (`bbr_full_bw_thresh`) ...
pub(super) const FULL_GROWTH: u64 = UNIT * 5 / 4;
/// ... in each of this number of rounds (`bbr_full_bw_cnt`).
pub(super) const FULL_ROUNDS: u32 = 3;
/// Below this pacing rate in bit/s, segments leave one by one (`bbr_min_tso_rate`).
const SINGLE_SEGMENTS_BELOW: u64 = 1_200_000;
/// The round trip assumed for the first pacing rate, if none was measured.
pub(super) const NOMINAL_ROUND_TRIP: Span = Span::from_millis(1);
/// Largest aggregate that the model allows for, in bytes: 64 KiB less headers
/// (`bbr_tso_segs_goal`).
pub(super) const LARGEST_AGGREGATE: u64 = 65_215;

/// BBR, version 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bbr {
    mode: Mode,
    /// Segments per microsecond, in `BANDWIDTH_UNIT`.
    bandwidth: WindowedMax,
    /// In microseconds; `None` before the first measurement.
    least_round_trip: Option<u64>,
    /// Jiffy of that measurement.
    least_round_trip_at: u64,
    /// Round trips so far.
    rounds: u64,
    /// A round ends when a segment is acknowledged that was sent with this number of segments
    /// delivered.
    round_end: u64,
    round_start: bool,
    /// The phase of ProbeBW.
    phase: usize,
    /// When it began.
    phase_at: Instant,
    pacing_gain: u64,
    window_gain: u64,
    pacing: Pacing,
    /// In segments.
    window: u64,
    /// The window before a recovery or ProbeRTT.
    prior_window: u64,
    threshold: Option<u64>,
    /// The bandwidth at the last growth by a quarter.
    full_bandwidth: u64,
    full_rounds: u32,
    is_full: bool,
    /// Jiffy at which ProbeRTT may end.
    probe_rtt_end: Option<u64>,
    probe_rtt_round: bool,
    /// The last acknowledgement was processed in ProbeRTT.
    limits_itself: bool,
    /// The application had nothing to send, and nothing was acknowledged since it has.
    idle_restart: bool,
    repair: Repair,
    /// First round of a recovery: as much is sent as was delivered.
    conserves: bool,
    policer: Policer,
    aggregation: Aggregation,
    /// State of the generator of the first phases.
    random: u64,
    /// Totals and departure time of the last acknowledgement.
    delivered: u64,
    delivered_at: Instant,
}

/// The state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Mode {
    /// Doubles the rate per round trip until the pipe is full.
    Startup,
    /// Drains the queue that startup has built.
    Drain,
    /// Cycles the pacing gain around the bandwidth.
    ProbeBandwidth,
    /// Few segments in flight, to measure the least round trip.
    ProbeRoundTrip,
}

/// Phase of loss repair at the last acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Repair {
    None,
    FastRecovery,
    Timeout,
}

impl Bbr {
    /// A controller with the configured initial window, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        let segment_size = u64::from(size.max(1));
        let window = (config.initial_window.bytes(size) / segment_size).max(1);
        Self {
            mode: Mode::Startup,
            bandwidth: WindowedMax::new(),
            least_round_trip: None,
            least_round_trip_at: 0,
            rounds: 0,
            round_end: 0,
            round_start: false,
            phase: 0,
            phase_at: Instant::ZERO,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            pacing: Pacing::new(segment_size, window, HIGH_GAIN),
            window,
            prior_window: 0,
            threshold: None,
            full_bandwidth: 0,
            full_rounds: 0,
            is_full: false,
            probe_rtt_end: None,
            probe_rtt_round: false,
            limits_itself: false,
            idle_restart: false,
            repair: Repair::None,
            conserves: false,
            policer: Policer::new(),
            aggregation: Aggregation::new(),
            random: 0,
            delivered: 0,
            delivered_at: Instant::ZERO,
        }
    }

    /// The bandwidth of the model: the policed rate if there is one.
    fn bandwidth(&self) -> u64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    fn set_pacing_rate(&mut self, bandwidth: u64, gain: u64, smoothed: Option<Span>) {
        self.pacing.note_round_trip(self.window, HIGH_GAIN, smoothed);
        self.pacing.set(bandwidth, gain, self.is_full);
    }

    /// Segments of an aggregate (`bbr_tso_segs_goal`).
    fn aggregate(&self) -> u64 {
        let bytes = (self.pacing.rate >> 10).min(LARGEST_AGGREGATE);
        (bytes / self.pacing.segment_size).max(u64::from(least_aggregate(self.pacing.rate * 8))).min(127)
    }

    /// The bandwidth-delay product times `gain`, in segments, rounded up.
    fn product(&self, bandwidth: u64, gain: u64) -> u64 {
        let Some(least) = self.least_round_trip else { return INITIAL_WINDOW };
        pacing::product(bandwidth, least, gain)
    }

    /// Room for aggregates at both ends, and for acknowledgements of every second segment
    /// (`bbr_quantization_budget`).
    fn with_aggregates(&self, window: u64) -> u64 {
        let even = (window + 3 * self.aggregate() + 1) & !1;
        // A probe must exceed the product even if that is small.
        even + if self.mode == Mode::ProbeBandwidth && self.phase == 0 { 2 } else { 0 }
    }

    /// The target for the segments in flight.
    fn target(&self, bandwidth: u64, gain: u64) -> u64 {
        self.with_aggregates(self.product(bandwidth, gain))
    }

    /// Of `in_flight` segments, those still in the network at the next departure.
    fn in_network(&self, in_flight: u64, sample: &RateSample) -> u64 {
        let waiting = micros(sample.departure.since(sample.now));
        let delivered = segments_in(self.bandwidth(), waiting);
        let joining = if self.pacing_gain > UNIT { self.aggregate() } else { 0 };
        (in_flight + joining).saturating_sub(delivered)
    }

    fn update_bandwidth(&mut self, sample: &RateSample) {
        self.round_start = false;
        let (Some(delivered), Some(interval)) = (sample.delivered, sample.interval.map(micros)) else { return };
        if interval == 0 {
            return;
        }
        if sample.prior_delivered >= self.round_end {
            self.round_end = sample.total_delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserves = false;
        }
        self.sample_policer(sample.losses > 0, sample.app_limited, sample.total_lost);
        let bandwidth = delivered * BANDWIDTH_UNIT / interval;
        // Without enough data to send, a sample shows the application.
        if !sample.app_limited || bandwidth >= self.bandwidth.get() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.rounds, bandwidth);
        }
    }

    /// The long-term estimate of a policed rate.
    fn sample_policer(&mut self, losses: bool, app_limited: bool, lost: u64) {
        if self.policer.rate().is_some() {
            if self.mode == Mode::ProbeBandwidth && self.round_start && self.policer.expires() {
                self.policer.reset(self.delivered_at, self.delivered, lost);
                self.begin_probe_bandwidth();
            }
            return;
        }
        let sample = policer::Sample {
            losses,
            app_limited,
            round_start: self.round_start,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost,
            segment_size: self.pacing.segment_size,
        };
        if self.policer.sample(&sample) {
            self.pacing_gain = UNIT;
        }
    }

    fn update_phase(&mut self, sample: &RateSample) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let elapsed = micros(sample.delivered_at.since(self.phase_at));
        let is_full_length = self.least_round_trip.is_some_and(|least| elapsed > least);
        let in_network = || self.in_network(sample.prior_in_flight, sample);
        let bandwidth = self.bandwidth.get();
        let is_over = match self.pacing_gain {
            UNIT => is_full_length,
            gain if gain > UNIT => {
                is_full_length && (sample.losses > 0 || in_network() >= self.target(bandwidth, gain))
            }
            _ => is_full_length || in_network() <= self.target(bandwidth, UNIT),
        };
        if is_over {
            self.advance_phase();
        }
    }

    fn advance_phase(&mut self) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_at = self.delivered_at;
    }

    fn begin_probe_bandwidth(&mut self) {
        self.mode = Mode::ProbeBandwidth;
        self.phase = CYCLE.len() - 1 - draw(&mut self.random, FIRST_PHASES) as usize;
        self.advance_phase();
    }

    /// Whether startup has filled the pipe.
    fn check_full(&mut self, sample: &RateSample) {
        if self.is_full || !self.round_start || sample.app_limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth >= self.full_bandwidth * FULL_GROWTH / UNIT {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, sample: &RateSample) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            self.threshold = Some(self.target(self.bandwidth.get(), UNIT));
        }
        if self.mode == Mode::Drain
            && self.in_network(sample.in_flight, sample) <= self.target(self.bandwidth.get(), UNIT)
        {
            self.begin_probe_bandwidth();
        }
    }

    fn update_least_round_trip(&mut self, sample: &RateSample) {
        let now = jiffies(sample.now);
        let expired = now > self.least_round_trip_at + jiffies_in(LEAST_ROUND_TRIP_WINDOW);
        if let Some(round_trip) = sample.round_trip.map(micros)
            && (self.least_round_trip.is_none_or(|least| round_trip < least) || (expired && !sample.ack_delayed))
        {
            self.least_round_trip = Some(round_trip);
            self.least_round_trip_at = now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRoundTrip {
            self.mode = Mode::ProbeRoundTrip;
            self.save_window();
            self.probe_rtt_end = None;
        }
        self.limits_itself = self.mode == Mode::ProbeRoundTrip;
        if self.mode == Mode::ProbeRoundTrip {
            if self.probe_rtt_end.is_none() && sample.in_flight <= LEAST_WINDOW {
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
        let now = jiffies(now);
        if self.probe_rtt_end.is_none_or(|end| now <= end) {
            return;
        }
        self.least_round_trip_at = now;
        self.window = self.window.max(self.prior_window);
        if self.is_full {
            self.begin_probe_bandwidth();
        } else {
            self.mode = Mode::Startup;
        }
    }

    const fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => (UNIT, WINDOW_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.phase], WINDOW_GAIN),
            Mode::ProbeRoundTrip => (UNIT, UNIT),
        };
    }

    fn save_window(&mut self) {
        let is_whole = self.repair == Repair::None && self.mode != Mode::ProbeRoundTrip;
        self.prior_window = if is_whole { self.window } else { self.prior_window.max(self.window) };
    }

    /// The window during and right after a recovery. Returns whether packet conservation sets it.
    fn recover_or_restore(&mut self, sample: &RateSample) -> bool {
        if sample.losses > 0 {
            self.window = self.window.saturating_sub(sample.losses).max(1);
        }
        let repair = match (sample.recovery, sample.timed_out) {
            (true, _) => Repair::FastRecovery,
            (_, true) => Repair::Timeout,
            _ => Repair::None,
        };
        let conserved = sample.in_flight + sample.acknowledged;
        if repair == Repair::FastRecovery && self.repair != Repair::FastRecovery {
            self.conserves = true;
            self.round_end = sample.total_delivered;
            self.window = conserved;
        } else if repair == Repair::None && self.repair != Repair::None {
            self.window = self.window.max(self.prior_window);
            self.conserves = false;
        }
        self.repair = repair;
        if self.conserves {
            self.window = self.window.max(conserved);
        }
        self.conserves
    }

    fn set_window(&mut self, sample: &RateSample) {
        if sample.acknowledged > 0 && !self.recover_or_restore(sample) {
            let bandwidth = self.bandwidth();
            let extra = if self.is_full { self.aggregation.extra(bandwidth) } else { 0 };
            let target = self.with_aggregates(self.product(bandwidth, self.window_gain) + extra);
            let grown = self.window + sample.acknowledged;
            if self.is_full {
                self.window = grown.min(target);
            } else if self.window < target || sample.total_delivered < INITIAL_WINDOW {
                self.window = grown;
            }
            self.window = self.window.max(LEAST_WINDOW);
        }
        if self.mode == Mode::ProbeRoundTrip {
            self.window = self.window.min(LEAST_WINDOW);
        }
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn takes_over(&self) -> bool {
        true
    }

    fn on_established(&mut self, now: Instant, round_trip: Option<Span>, seed: u64) {
        self.random = seed;
        self.least_round_trip = round_trip.map(micros);
        self.least_round_trip_at = jiffies(now);
        self.pacing.start(self.window, HIGH_GAIN, round_trip);
        self.aggregation.restart(now);
        // The SYN.
        self.round_end = 1;
        self.delivered = 1;
        self.delivered_at = now;
    }

    fn on_ack(&mut self, _: &Acknowledged) {}

    fn on_rate_sample(&mut self, sample: &RateSample) {
        self.delivered = sample.total_delivered;
        self.delivered_at = sample.delivered_at;
        self.update_bandwidth(sample);
        self.aggregation.update(sample, self.bandwidth(), self.round_start.then_some(aggregation::ROUNDS), self.window);
        self.update_phase(sample);
        self.check_full(sample);
        self.check_drain(sample);
        self.update_least_round_trip(sample);
        self.update_gains();
        self.set_pacing_rate(self.bandwidth(), self.pacing_gain, sample.smoothed_round_trip);
        self.set_window(sample);
    }

    fn on_congestion(&mut self, congested: &Congested) {
        if !congested.again {
            self.save_window();
        }
        if congested.signal == Signal::Timeout {
            self.window = 1;
        }
    }

    /// Window and bandwidth are in segments, so both fall with their size, as in Linux.
    fn on_segment_size(&mut self, size: u32) {
        self.pacing.segment_size = u64::from(size.max(1));
    }

    fn on_timeout_losses(&mut self, lost: u64) {
        self.repair = Repair::Timeout;
        self.full_bandwidth = 0;
        self.round_start = true;
        self.sample_policer(true, false, lost);
    }

    fn on_transmission_start(&mut self, now: Instant, _: Span, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            // A queue has drained: continue at the bandwidth.
            Mode::ProbeBandwidth => self.set_pacing_rate(self.bandwidth(), UNIT, None),
            Mode::ProbeRoundTrip => self.end_probe_round_trip(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn limits_itself(&self) -> bool {
        self.limits_itself
    }

    fn pacing_aggregate(&self, segments: u32, rate: u64) -> u32 {
        segments.max(least_aggregate(rate))
    }

    /// The losses were spurious, so they do not bound the bandwidth. The window is restored with
    /// the next acknowledgement.
    fn undo(&mut self, _: Instant) {
        self.full_bandwidth = 0;
        self.full_rounds = 0;
        self.policer.reset(self.delivered_at, self.delivered, self.policer.lost());
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

/// The least segments of an aggregate at a pacing rate in bit/s (`bbr_min_tso_segs`).
const fn least_aggregate(rate: u64) -> u32 {
    if rate < SINGLE_SEGMENTS_BELOW { 1 } else { 2 }
}

/// A random number below `bound`, by SplitMix64 (Steele, Lea and Flood 2014).
pub(super) fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

pub(super) const fn micros(span: Span) -> u64 {
    span.as_nanos() / 1000
}

pub(super) const fn jiffies(at: Instant) -> u64 {
    at.as_nanos() / JIFFY.as_nanos()
}

pub(super) const fn jiffies_in(span: Span) -> u64 {
    span.as_nanos().div_ceil(JIFFY.as_nanos())
}
