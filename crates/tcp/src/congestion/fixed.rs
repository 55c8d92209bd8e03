//! A constant window.

use airpath_core::Instant;
use serde::{Deserialize, Serialize};

use super::{Acknowledged, Congested, CongestionControl};

/// A window of a fixed number of segments, independent of losses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Fixed {
    window: u64,
}

impl Fixed {
    /// A window of `segments` segments of `size` bytes.
    pub fn new(segments: u32, size: u32) -> Self {
        Self { window: u64::from(segments) * u64::from(size) }
    }
}

impl CongestionControl for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn on_ack(&mut self, _: &Acknowledged) {}
    fn on_congestion(&mut self, _: &Congested) {}
    fn undo(&mut self, _: Instant) {}
    fn on_idle(&mut self, _: Instant, _: u64, _: u64) {}
    fn congestion_window(&self) -> u64 {
        self.window
    }
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Span;

    use super::*;
    use crate::congestion::Signal;

    #[test]
    fn neither_acknowledgements_nor_congestion_nor_idle_times_change_the_window() {
        let mut fixed = Fixed::new(7, 1460);
        let now = Instant::ZERO + Span::from_secs(1);
        let unchanged =
            |fixed: &Fixed| assert_eq!((fixed.congestion_window(), fixed.slow_start_threshold()), (10_220, None));
        unchanged(&fixed);
        fixed.on_ack(&Acknowledged {
            now,
            bytes: 1460,
            round_trip: None,
            smoothed_round_trip: None,
            acknowledged: 1461,
            sent: 10_221,
            limited: true,
        });
        unchanged(&fixed);
        for signal in [Signal::Loss, Signal::Timeout, Signal::Mark] {
            fixed.on_congestion(&Congested { now, signal, again: false, flight_size: 8_760, window_limit: 65_535 });
            unchanged(&fixed);
        }
        fixed.undo(now);
        fixed.on_idle(now, 1460, 0);
        unchanged(&fixed);
    }
}
