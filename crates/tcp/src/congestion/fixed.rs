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
    fn on_idle(&mut self, _: Instant, _: u64) {}
    fn congestion_window(&self) -> u64 {
        self.window
    }
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }
}
