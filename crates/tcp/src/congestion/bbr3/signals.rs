//! What the deliveries of a round trip show: bandwidth, losses, and whether the pipe is full.

use serde::{Deserialize, Serialize};

use super::{Bbr3, Bounds, Mode, NONE};
use crate::congestion::RateSample;
use crate::congestion::bbr::pacing::BANDWIDTH_UNIT;
use crate::congestion::bbr::{FULL_GROWTH, FULL_ROUNDS, UNIT, micros};

/// Acknowledgements with losses in a round that end startup (`bbr_full_loss_cnt`; §5.3.1.3).
const STARTUP_LOSSES: u32 = 6;
/// Lost segments per segment in flight that are too many, in 256ths (`bbr_loss_thresh`; §2.8).
pub const LOSS_THRESHOLD: u64 = UNIT * 2 / 100;

/// Signals of the current round trip.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Signals {
    /// The greatest bandwidth and the most segments delivered of a sample (`bw_latest`,
    /// `inflight_latest`).
    latest_bandwidth: u64,
    pub latest_delivered: u64,
    /// The round of losses ends when a segment is acknowledged that was sent with this number of
    /// segments delivered.
    loss_round_end: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    loss_events: u32,
    /// The bandwidth at the last growth by a quarter.
    full_bandwidth: u64,
    full_rounds: u32,
    /// The bandwidth does not grow (`full_bw_now`).
    pub is_full_now: bool,
    /// It has filled the pipe before (`full_bw_reached`).
    pub is_full: bool,
}

impl Signals {
    /// The first round of losses begins with this number of segments delivered.
    pub const fn start_after(&mut self, delivered: u64) {
        self.loss_round_end = delivered;
    }

    /// Forgets the signals of a probe (`bbr_reset_congestion_signals`).
    pub const fn reset(&mut self) {
        self.loss_in_round = false;
        self.latest_bandwidth = 0;
        self.latest_delivered = 0;
    }

    pub const fn note_loss(&mut self, delivered: u64) {
        // A full round trip shows what the path delivers.
        if !self.loss_in_round {
            self.loss_round_end = delivered;
        }
        self.loss_in_round = true;
    }

    /// The losses were spurious.
    pub const fn forget_losses(&mut self) {
        self.loss_in_round = false;
        self.reset_full();
    }

    pub const fn reset_full(&mut self) {
        self.restart_full(0);
    }

    /// The bandwidth is to grow from `bandwidth` on.
    pub const fn restart_full(&mut self, bandwidth: u64) {
        self.full_bandwidth = bandwidth;
        self.full_rounds = 0;
        self.is_full_now = false;
    }

    /// Whether the bandwidth grows no more (`bbr_check_full_bw_reached`).
    pub const fn check_full(&mut self, sample: &RateSample, bandwidth: u64, round_start: bool) {
        if self.is_full_now || sample.app_limited {
            return;
        }
        if bandwidth >= self.full_bandwidth * FULL_GROWTH / UNIT {
            self.restart_full(bandwidth);
            return;
        }
        if round_start {
            self.full_rounds += 1;
            self.is_full_now = self.full_rounds >= FULL_ROUNDS;
            self.is_full |= self.is_full_now;
        }
    }

    /// Begins the next round's signals, after the acknowledgement was processed.
    pub fn advance(&mut self, sample: &RateSample, bandwidth: u64) {
        if self.loss_round_start {
            self.latest_bandwidth = bandwidth;
            self.latest_delivered = sample.delivered.unwrap_or(0);
        }
    }
}

/// The bandwidth of a sample, rounded up; 0 without one.
pub fn bandwidth_of(sample: &RateSample) -> u64 {
    match (sample.delivered, sample.interval.map(micros)) {
        (Some(delivered), Some(interval)) if interval > 0 => (delivered * BANDWIDTH_UNIT).div_ceil(interval),
        _ => 0,
    }
}

/// Whether `lost` of `in_flight` segments are too many (`bbr_is_inflight_too_high`).
pub const fn is_too_much(lost: u64, in_flight: u64) -> bool {
    lost > 0 && in_flight > 0 && lost > in_flight * LOSS_THRESHOLD / UNIT
}

impl Bbr3 {
    pub(super) fn update_round(&mut self, sample: &RateSample) {
        self.round_start = bandwidth_of(sample) > 0 && sample.prior_delivered >= self.round_end;
        if self.round_start {
            self.round_end = sample.total_delivered;
            self.cycle.count_round();
        }
    }

    /// `bbr_update_latest_delivery_signals`, `bbr_update_congestion_signals`.
    pub(super) fn update_signals(&mut self, sample: &RateSample, bandwidth: u64) {
        self.signals.loss_round_start = false;
        if bandwidth == 0 || sample.acknowledged == 0 {
            return;
        }
        let signals = &mut self.signals;
        signals.latest_bandwidth = signals.latest_bandwidth.max(bandwidth);
        signals.latest_delivered = signals.latest_delivered.max(sample.delivered.unwrap_or(0));
        if sample.prior_delivered >= signals.loss_round_end {
            signals.loss_round_end = sample.total_delivered;
            signals.loss_round_start = true;
        }
        // Without enough data to send, a sample shows the application.
        if !sample.app_limited || bandwidth >= self.most_bandwidth() {
            self.bandwidths[1] = self.bandwidths[1].max(bandwidth);
        }
        self.signals.loss_in_round |= sample.losses > 0;
        if self.signals.loss_round_start {
            self.cut_short_term();
            self.signals.loss_in_round = false;
        }
    }

    /// Losses outside of probes cut the short-term bounds, but not below what is delivered
    /// (`bbr_adapt_lower_bounds`).
    fn cut_short_term(&mut self) {
        if self.is_probing() || !self.signals.loss_in_round {
            return;
        }
        let Bounds { bandwidth, in_flight } = self.short_term;
        let bandwidth = if bandwidth == NONE { self.most_bandwidth() } else { bandwidth };
        let in_flight = if in_flight == NONE { self.window } else { in_flight };
        let loss_cut = self.constants().loss_cut;
        let cut = |bound: u64| (u128::from(bound) * u128::from(loss_cut) / u128::from(UNIT)) as u64;
        self.short_term = Bounds {
            bandwidth: cut(bandwidth).max(self.signals.latest_bandwidth).max(1),
            in_flight: cut(in_flight).max(self.signals.latest_delivered),
        };
    }

    /// Many losses in a round end startup (`bbr_check_loss_too_high_in_startup`).
    pub(super) fn check_startup_losses(&mut self, sample: &RateSample) {
        if self.signals.is_full {
            return;
        }
        self.signals.loss_events += u32::from(sample.losses > 0);
        if self.signals.loss_round_start {
            if sample.recovery
                && self.signals.loss_events >= STARTUP_LOSSES
                && is_too_much(sample.lost, sample.sent_in_flight)
            {
                self.signals.is_full = true;
                self.long_term = self.full_path(self.most_bandwidth()).max(self.signals.latest_delivered);
                return;
            }
            self.signals.loss_events = 0;
        }
    }

    /// Whether losses are expected, because more is sent than the model allows.
    pub(super) const fn is_probing(&self) -> bool {
        match self.mode {
            Mode::Startup => true,
            Mode::ProbeBandwidth(phase) => phase.is_probe(),
            Mode::Drain | Mode::ProbeRoundTrip => false,
        }
    }
}
