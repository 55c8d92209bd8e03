//! NewReno's window: slow start and congestion avoidance (RFC 5681).

use airpath_core::Instant;
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Congested, CongestionControl, Signal};
use crate::config::{Config, Counting, Halving};

/// Fractional bits of the window in bytes: congestion avoidance adds less than one byte at a time.
const FRACTION: u32 = 12;

/// NewReno.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewReno {
    segment_size: u64,
    counting: Counting,
    slow_start_limit: u64,
    halving: Halving,
    whole: bool,
    least: u64,
    /// In 2⁻¹² bytes.
    window: u64,
    threshold: u64,
    before: Option<Before>,
}

/// The window before the last episode of congestion.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Before {
    window: u64,
    threshold: u64,
}

impl NewReno {
    /// The configured controller, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        let congestion = &config.congestion;
        Self {
            segment_size: u64::from(size),
            counting: congestion.counting,
            slow_start_limit: congestion.slow_start_limit.bytes(size),
            halving: congestion.halving,
            whole: congestion.halve_to_whole_segments,
            least: u64::from(congestion.least_window) * u64::from(size),
            window: config.initial_window.bytes(size) << FRACTION,
            threshold: config.initial_slow_start_threshold.bytes(size),
            before: None,
        }
    }

    /// Growth by one acknowledgement in slow start (RFC 5681 §3.1, RFC 3465 §2.2).
    fn slow_start(&self, ack: &Acknowledged) -> u64 {
        match self.counting {
            Counting::Bytes => ack.bytes.min(self.slow_start_limit),
            Counting::Acknowledgements => self.segment_size,
        }
    }

    /// Growth by one acknowledgement in congestion avoidance, in fractions of a byte: one segment
    /// per window (RFC 5681 §3.1 equation 3; RFC 3465 §2.1).
    fn avoidance(&self, ack: &Acknowledged) -> u64 {
        let counted = match self.counting {
            Counting::Bytes => ack.bytes,
            Counting::Acknowledgements => self.segment_size,
        };
        ((counted * self.segment_size) << (2 * FRACTION)) / self.window
    }

    /// Sets window and slow-start threshold, in bytes.
    pub(super) const fn set(&mut self, window: u64, threshold: u64) {
        self.window = window << FRACTION;
        self.threshold = threshold;
    }

    /// Changes the window for an acknowledgement of `bytes`: it grows by `1 / divisor` segment per
    /// window, and shrinks by `less` bytes, to `least` at the least.
    pub(super) fn adjust(&mut self, bytes: u64, segment: u64, divisor: u64, less: u64, least: u64) {
        let more = ((bytes * segment) << (2 * FRACTION)) / (self.window * divisor);
        self.window = (self.window + more).saturating_sub(less << FRACTION).max(least << FRACTION);
    }

    /// Whether the window is below the slow-start threshold.
    pub(super) const fn is_slow_start(&self) -> bool {
        self.window >> FRACTION < self.threshold
    }

    /// Congestion reduces the window and the slow-start threshold to `reduced`; a timeout reduces
    /// the window to one segment.
    pub(super) fn reduce(&mut self, congested: &Congested, mut reduced: u64) {
        if congested.again {
            reduced = self.threshold;
        } else {
            self.before = Some(Before { window: self.window, threshold: self.threshold });
            if self.whole {
                reduced -= reduced % self.segment_size;
            }
            // RFC 5681 §3.1 equation 4.
            self.threshold = reduced.max(2 * self.segment_size);
        }
        self.window = match congested.signal {
            Signal::Loss | Signal::Mark => reduced.max(self.least),
            // The loss window (RFC 5681 §3.1).
            Signal::Timeout => self.segment_size,
        } << FRACTION;
    }
}

impl CongestionControl for NewReno {
    fn name(&self) -> &'static str {
        "new-reno"
    }

    #[inline]
    fn on_ack(&mut self, ack: &Acknowledged) {
        if !ack.limited {
            return;
        }
        if self.window >> FRACTION < self.threshold {
            self.window += self.slow_start(ack) << FRACTION;
            if self.counting == Counting::Bytes && self.threshold < self.window >> FRACTION {
                // One acknowledgement of many bytes, as after a timeout, does not pass the
                // threshold.
                self.window = self.threshold << FRACTION;
            }
        } else {
            self.window += self.avoidance(ack);
        }
    }

    fn on_congestion(&mut self, congested: &Congested) {
        let reduced = match self.halving {
            Halving::FlightSize => congested.flight_size,
            Halving::Window => (self.window >> FRACTION).min(congested.window_limit),
        };
        self.reduce(congested, reduced / 2);
    }

    fn undo(&mut self, _: Instant) {
        if let Some(before) = self.before.take() {
            self.window = self.window.max(before.window);
            self.threshold = before.threshold;
        }
    }

    fn on_idle(&mut self, _: Instant, window: u64, threshold: u64) {
        self.window = self.window.min(window << FRACTION);
        self.threshold = self.threshold.max(threshold);
    }

    #[inline]
    fn congestion_window(&self) -> u64 {
        self.window >> FRACTION
    }

    #[inline]
    fn slow_start_threshold(&self) -> Option<u64> {
        (self.threshold != u64::MAX).then_some(self.threshold)
    }
}
