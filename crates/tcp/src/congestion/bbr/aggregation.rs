//! Aggregation of acknowledgements: how much more is acknowledged at a time than the bandwidth
//! explains. Without additional data in flight the sender would pause until the next burst.

use airpath_core::Instant;
use serde::{Deserialize, Serialize};

use super::micros;
use super::pacing::segments_in;
use crate::congestion::RateSample;

/// Rounds of each of the two halves of the filter (`bbr_extra_acked_win_rtts`).
pub const ROUNDS: u32 = 5;
/// An epoch ends at the latest with this number of segments (`bbr_ack_epoch_acked_reset_thresh`).
const LARGEST_EPOCH: u64 = 1 << 20;
/// The estimate is at most the data of this time in microseconds (`bbr_extra_acked_max_us`).
const LONGEST: u64 = 100_000;

/// The estimator.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Aggregation {
    /// Start of the epoch.
    began: Instant,
    /// Segments acknowledged since.
    acknowledged: u64,
    /// The greatest excess of the current and of the last half.
    extra: [u64; 2],
    half: usize,
    rounds: u32,
}

impl Aggregation {
    pub const fn new() -> Self {
        Self { began: Instant::ZERO, acknowledged: 0, extra: [0; 2], half: 0, rounds: 0 }
    }

    /// Begins an epoch.
    pub const fn restart(&mut self, now: Instant) {
        self.began = now;
        self.acknowledged = 0;
    }

    /// Segments by which the window is larger.
    pub fn extra(&self, bandwidth: u64) -> u64 {
        segments_in(bandwidth, LONGEST).min(self.extra[0].max(self.extra[1]))
    }

    /// Takes a sample. At the start of a round, `round` is the number of rounds of a half.
    pub fn update(&mut self, sample: &RateSample, bandwidth: u64, round: Option<u32>, window: u64) {
        if sample.acknowledged == 0 || sample.interval.is_none() {
            return;
        }
        if let Some(length) = round {
            self.rounds += 1;
            if self.rounds >= length {
                self.rounds = 0;
                self.half = 1 - self.half;
                self.extra[self.half] = 0;
            }
        }
        let elapsed = micros(sample.delivered_at.since(self.began));
        let mut expected = segments_in(bandwidth, elapsed);
        // An epoch lasts while more arrives than expected.
        if self.acknowledged <= expected || self.acknowledged + sample.acknowledged >= LARGEST_EPOCH {
            self.restart(sample.delivered_at);
            expected = 0;
        }
        self.acknowledged = (self.acknowledged + sample.acknowledged).min(LARGEST_EPOCH - 1);
        let extra = (self.acknowledged - expected.min(self.acknowledged)).min(window);
        self.extra[self.half] = self.extra[self.half].max(extra);
    }
}
