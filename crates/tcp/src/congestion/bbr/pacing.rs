//! The unit of BBR's bandwidths, the segments that a bandwidth carries, and the pacing rate.

use airpath_core::Span;
use serde::{Deserialize, Serialize};

use super::{NOMINAL_ROUND_TRIP, UNIT, micros};

/// Bandwidths are in segments per microsecond, times this (`BW_UNIT`).
pub const BANDWIDTH_UNIT: u64 = 1 << 24;
/// Paced below the estimated bandwidth, in per cent (`bbr_pacing_margin_percent`).
const MARGIN: u64 = 1;

/// The segments that `bandwidth` carries in `time` microseconds, rounded down.
pub fn segments_in(bandwidth: u64, time: u64) -> u64 {
    (u128::from(bandwidth) * u128::from(time) / u128::from(BANDWIDTH_UNIT)) as u64
}

/// The segments that `bandwidth` times `gain` carries in `time` microseconds, rounded up.
pub fn product(bandwidth: u64, time: u64, gain: u64) -> u64 {
    let segments = u128::from(bandwidth) * u128::from(time) * u128::from(gain) / u128::from(UNIT);
    u64::try_from(segments.div_ceil(u128::from(BANDWIDTH_UNIT))).unwrap_or(u64::MAX / 4)
}

/// The pacing rate of a sender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pacing {
    /// Payload bytes of a full segment.
    pub segment_size: u64,
    /// Bytes per second.
    pub rate: u64,
    has_round_trip: bool,
}

impl Pacing {
    /// A sender that has measured no round trip.
    pub fn new(segment_size: u64, window: u64, gain: u64) -> Self {
        let mut pacing = Self { segment_size, rate: 0, has_round_trip: false };
        pacing.start(window, gain, None);
        pacing
    }

    /// Bytes per second at `bandwidth` and `gain`, less the margin.
    pub fn rate_of(&self, bandwidth: u64, gain: u64) -> u64 {
        let bytes = u128::from(bandwidth) * u128::from(self.segment_size) * u128::from(gain) / u128::from(UNIT);
        let rate = bytes * u128::from(1_000_000 / 100 * (100 - MARGIN)) / u128::from(BANDWIDTH_UNIT);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// The rate before the first bandwidth sample: a window per round trip, times the gain.
    pub fn start(&mut self, window: u64, gain: u64, round_trip: Option<Span>) {
        self.has_round_trip = round_trip.is_some();
        let round_trip = micros(round_trip.unwrap_or(NOMINAL_ROUND_TRIP));
        self.rate = self.rate_of(window * BANDWIDTH_UNIT / round_trip.max(1), gain);
    }

    /// Starts again with the first round trip, if none was measured before.
    pub fn note_round_trip(&mut self, window: u64, gain: u64, smoothed: Option<Span>) {
        if !self.has_round_trip && smoothed.is_some() {
            self.start(window, gain, smoothed);
        }
    }

    /// The rate of `bandwidth` and `gain`. Until the pipe `is_full`, a lower one does not slow the
    /// sender down.
    pub fn set(&mut self, bandwidth: u64, gain: u64, is_full: bool) {
        let rate = self.rate_of(bandwidth, gain);
        if is_full || rate > self.rate {
            self.rate = rate.max(1);
        }
    }
}
