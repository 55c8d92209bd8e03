//! A path with one segment per millisecond and a round trip of 100 ms, for the tests of both
//! versions.

use airpath_core::{Instant, Span};

use crate::congestion::{CongestionControl, RateSample};

/// Payload bytes of a segment.
pub const SIZE: u64 = 1448;

/// A controller and the samples that the path gives it.
pub struct Driver<B> {
    pub bbr: B,
    pub now: Instant,
    pub delivered: u64,
    pub lost: u64,
    pub in_flight: u64,
}

impl<B: CongestionControl> Driver<B> {
    /// After the handshake.
    pub fn new(mut bbr: B) -> Self {
        let now = Instant::ZERO + Span::from_millis(100);
        bbr.on_established(now, Some(Span::from_millis(100)), 1);
        Self { bbr, now, delivered: 1, lost: 0, in_flight: 10 }
    }

    /// An acknowledgement of `segments` segments after `millis`, with a sample of `bandwidth`
    /// segments per second over a round trip.
    pub fn sample(&mut self, millis: u64, segments: u64, bandwidth: u64) -> RateSample {
        self.now += Span::from_millis(millis);
        self.delivered += segments;
        RateSample {
            now: self.now,
            total_delivered: self.delivered,
            total_lost: self.lost,
            delivered_at: self.now,
            delivered: Some(bandwidth / 10),
            interval: Some(Span::from_millis(100)),
            prior_delivered: self.delivered.saturating_sub(bandwidth / 10),
            lost: 0,
            sent_in_flight: self.in_flight,
            app_limited: false,
            round_trip: Some(Span::from_millis(100)),
            ack_delayed: false,
            acknowledged: segments,
            marked: 0,
            losses: 0,
            in_flight: self.in_flight,
            prior_in_flight: self.in_flight + segments,
            least_round_trip: Some(Span::from_millis(100)),
            smoothed_round_trip: Some(Span::from_millis(100)),
            departure: self.now,
            recovery: false,
            timed_out: false,
        }
    }

    /// The controller gets that sample.
    pub fn acknowledge(&mut self, millis: u64, segments: u64, bandwidth: u64) {
        let sample = self.sample(millis, segments, bandwidth);
        self.bbr.on_rate_sample(&sample);
    }
}
