//! Congestion windows, behind one trait.

use airpath_core::{Instant, Span};

use crate::config::{Algorithm, Config};

/// What an acknowledgement says to a congestion window.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When.
    pub now: Instant,
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// The smoothed round trip.
    pub round_trip: Span,
    /// Segment size.
    pub segment: u64,
    /// Whether the window was in full use.
    pub limited: bool,
}

/// A congestion window.
#[derive(Clone, Debug)]
pub struct Window {
    /// Bytes.
    pub size: u64,
    /// Slow-start threshold; `u64::MAX` while unlimited.
    pub threshold: u64,
    algorithm: Algorithm,
    count_acks: bool,
    whole: bool,
    credit: u64,
    cubic: Cubic,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cubic {
    epoch: Option<Instant>,
    w_max: f64,
    k: f64,
    w_est: f64,
    start: f64,
}

impl Window {
    /// The initial window.
    pub fn new(config: &Config) -> Self {
        let segment = config.maximum_segment_size.get();
        Self {
            size: match config.congestion_control {
                Algorithm::Fixed => config.maximum_window.map_or(u64::MAX >> 1, |bytes| bytes.get()),
                _ => u64::from(config.initial_window) * segment,
            },
            threshold: config.initial_slow_start_threshold.map_or(u64::MAX, |bytes| bytes.get()),
            algorithm: config.congestion_control,
            count_acks: config.count_acknowledgements,
            whole: config.whole_segment_window,
            credit: 0,
            cubic: Cubic::default(),
        }
    }

    /// Grows it.
    pub fn on_ack(&mut self, acked: Acked) {
        if self.algorithm == Algorithm::Fixed {
            return;
        }
        let segment = acked.segment;
        if self.size < self.threshold {
            self.size += if self.count_acks { segment } else { acked.bytes.min(2 * segment) };
            return;
        }
        match self.algorithm {
            Algorithm::Cubic => self.cubic_ack(acked),
            _ => {
                // One segment for each window acknowledged.
                self.credit += if self.count_acks { segment } else { acked.bytes };
                let window = self.size;
                if self.credit * segment >= window {
                    let add = self.credit * segment / window;
                    self.size += add;
                    self.credit -= (add * window).div_ceil(segment).min(self.credit);
                }
            }
        }
    }

    fn cubic_ack(&mut self, acked: Acked) {
        const C: f64 = 0.4;
        const BETA: f64 = 0.7;
        let segment = acked.segment as f64;
        let window = self.size as f64 / segment;
        let cubic = &mut self.cubic;
        let epoch = *cubic.epoch.get_or_insert_with(|| {
            cubic.start = window;
            cubic.w_est = window;
            if cubic.w_max < window {
                cubic.w_max = window;
                cubic.k = 0.0;
            } else {
                cubic.k = libm::cbrt((cubic.w_max - window) / C);
            }
            acked.now
        });
        let t = acked.now.since(epoch).as_secs_f64() + acked.round_trip.as_secs_f64();
        let d = t - cubic.k;
        let target = (C * d * d * d + cubic.w_max).clamp(window, 1.5 * window);
        let acked_segments = acked.bytes as f64 / segment;
        let alpha = if cubic.w_est >= cubic.w_max { 1.0 } else { 3.0 * (1.0 - BETA) / (1.0 + BETA) };
        cubic.w_est += alpha * acked_segments / window;
        let next = (window + (target - window) / window * acked_segments).max(cubic.w_est);
        self.size = (next * segment) as u64;
    }

    /// Loss: halves it, or what the algorithm does.
    pub fn on_congestion(&mut self, in_flight: u64, segment: u64) {
        let least = 2 * segment;
        self.credit = 0;
        match self.algorithm {
            Algorithm::Fixed => return,
            Algorithm::NewReno => {
                let half = in_flight / 2;
                let half = if self.whole { half / segment * segment } else { half };
                self.threshold = half.max(least);
            }
            Algorithm::Cubic => {
                let window = self.size as f64 / segment as f64;
                self.cubic.epoch = None;
                self.cubic.w_max = if window < self.cubic.w_max { window * 0.85 } else { window };
                self.threshold = ((in_flight as f64 * 0.7) as u64).max(least);
            }
        }
        self.size = self.threshold;
    }

    /// A time-out: back to one segment.
    pub fn on_timeout(&mut self, segment: u64) {
        if self.algorithm != Algorithm::Fixed {
            self.size = segment;
        }
    }
}
