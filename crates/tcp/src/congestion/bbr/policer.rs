//! Long-term estimate of the rate of a token bucket policer.
//!
//! A policer shows in intervals with many losses and the same throughput: after two of them BBR
//! sends at their mean rate for 48 rounds.

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::UNIT;
use super::pacing::BANDWIDTH_UNIT;

/// Rounds of an interval, at least (`bbr_lt_intvl_min_rtts`); at most four times as many.
const LEAST_ROUNDS: u64 = 4;
/// Lost segments per delivered one of a policed interval, in 256ths: 20 % (`bbr_lt_loss_thresh`).
const LOSSES: u64 = 50;
/// Two intervals are alike if their rates differ by at most this part (`bbr_lt_bw_ratio`) ...
const ALIKE: u64 = UNIT / 8;
/// ... or by this number of bytes per second (`bbr_lt_bw_diff`).
const ALIKE_BYTES: u64 = 4000 / 8;
/// Rounds for which the rate is used (`bbr_lt_bw_max_rtts`).
const USED_ROUNDS: u64 = 48;
/// Longer intervals are discarded: their microseconds exceed 32 bits.
const LONGEST: u64 = u32::MAX as u64 / 1000;

/// The estimator.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Policer {
    is_sampling: bool,
    is_used: bool,
    /// Rate of the last interval, as bandwidths of BBR; zero before the first.
    rate: u64,
    /// Millisecond at which the interval began.
    began: u64,
    /// Segments delivered and lost before the interval.
    delivered: u64,
    lost: u64,
    rounds: u64,
}

/// State of the connection at an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// It reports losses.
    pub losses: bool,
    pub app_limited: bool,
    pub round_start: bool,
    pub delivered_at: Instant,
    /// Segments so far.
    pub delivered: u64,
    /// Segments so far.
    pub lost: u64,
    /// Payload bytes of a segment.
    pub segment_size: u64,
}

impl Policer {
    pub const fn new() -> Self {
        Self { is_sampling: false, is_used: false, rate: 0, began: 0, delivered: 0, lost: 0, rounds: 0 }
    }

    /// The policed rate, once it is known.
    pub const fn rate(&self) -> Option<u64> {
        if self.is_used { Some(self.rate) } else { None }
    }

    /// Segments lost before the interval.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// A round has passed with the policed rate in use. Returns whether it was the last.
    pub const fn expires(&mut self) -> bool {
        self.rounds += 1;
        self.rounds >= USED_ROUNDS
    }

    /// Forgets the rate and the interval.
    pub const fn reset(&mut self, now: Instant, delivered: u64, lost: u64) {
        self.rate = 0;
        self.is_used = false;
        self.is_sampling = false;
        self.begin_interval(now, delivered, lost);
    }

    const fn begin_interval(&mut self, now: Instant, delivered: u64, lost: u64) {
        self.began = millis(now);
        self.delivered = delivered;
        self.lost = lost;
        self.rounds = 0;
    }

    /// Processes an acknowledgement. Returns whether the policed rate is used from now on.
    pub fn sample(&mut self, sample: &Sample) -> bool {
        let Sample { delivered_at, delivered, lost, .. } = *sample;
        if !self.is_sampling {
            // The bucket is empty from the first loss on.
            if !sample.losses {
                return false;
            }
            self.begin_interval(delivered_at, delivered, lost);
            self.is_sampling = true;
        }
        if sample.app_limited {
            self.reset(delivered_at, delivered, lost);
            return false;
        }
        self.rounds += u64::from(sample.round_start);
        if self.rounds < LEAST_ROUNDS {
            return false;
        }
        if self.rounds > 4 * LEAST_ROUNDS {
            self.reset(delivered_at, delivered, lost);
            return false;
        }
        // An interval ends with a loss, when the bucket is empty again.
        if !sample.losses {
            return false;
        }
        let lost_here = lost.saturating_sub(self.lost);
        let delivered_here = delivered.saturating_sub(self.delivered);
        if delivered_here == 0 || lost_here * UNIT < LOSSES * delivered_here {
            return false;
        }
        let elapsed = millis(delivered_at).saturating_sub(self.began);
        if elapsed < 1 {
            return false;
        }
        if elapsed >= LONGEST {
            self.reset(delivered_at, delivered, lost);
            return false;
        }
        self.end_interval(delivered_here * BANDWIDTH_UNIT / (elapsed * 1000), sample)
    }

    fn end_interval(&mut self, rate: u64, sample: &Sample) -> bool {
        if self.rate > 0 {
            let difference = rate.abs_diff(self.rate);
            let bytes = u128::from(difference) * u128::from(sample.segment_size) * 990_000 / u128::from(BANDWIDTH_UNIT);
            if difference * UNIT <= ALIKE * self.rate || bytes <= u128::from(ALIKE_BYTES) {
                self.rate = u64::midpoint(rate, self.rate);
                self.is_used = true;
                self.rounds = 0;
                return true;
            }
        }
        self.rate = rate;
        self.begin_interval(sample.delivered_at, sample.delivered, sample.lost);
        false
    }
}

const fn millis(at: Instant) -> u64 {
    at.as_nanos() / Span::from_millis(1).as_nanos()
}
