//! Congestion controllers of quinn that report what they are called with.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::clock::span;
use crate::statistics::SharedFigures;

type Make = Arc<dyn Fn(Instant, u16) -> Box<dyn Controller> + Send + Sync>;

/// Makes observed controllers.
pub struct ObservedFactory {
    make: Make,
    figures: SharedFigures,
}

impl ObservedFactory {
    pub fn new(make: Make, figures: SharedFigures) -> Self {
        Self { make, figures }
    }
}

impl ControllerFactory for ObservedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = (self.make)(now, current_mtu);
        Box::new(Observed { inner, figures: self.figures.clone(), latest: None, reduced: None })
    }
}

/// A controller, and where its inputs are counted.
struct Observed {
    inner: Box<dyn Controller>,
    figures: SharedFigures,
    /// Of the packets that the current ACK frame acknowledges: when the latest was sent, and the
    /// smoothed round trip before it.
    latest: Option<(Instant, std::time::Duration)>,
    /// When the window was reduced, during the recovery.
    reduced: Option<Instant>,
}

impl Controller for Observed {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        if self.latest.is_none_or(|(latest, _)| sent > latest) {
            self.latest = Some((sent, rtt.get()));
        }
        // A packet that was sent after the reduction ends the recovery (RFC 9002 §7.3.2).
        let is_over = self.reduced.take_if(|reduced| sent > *reduced).is_some();
        self.figures.with(|figures| {
            figures.acknowledged_bytes += bytes;
            figures.recoveries += u64::from(is_over);
        });
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest_packet_num_acked: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        let latest = self.latest.take();
        self.figures.with(|figures| {
            figures.in_flight = in_flight;
            figures.acks += 1;
            if let Some((sent, smoothed)) = latest {
                figures.measure(span(now.saturating_duration_since(sent)), span(smoothed));
            }
        });
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        // quinn calls this for each ACK frame that shows a loss or a mark; controllers ignore those
        // of a recovery (RFC 9002 §7.3.2).
        let before = self.inner.window();
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        if self.inner.window() >= before {
            return;
        }
        self.reduced = Some(now);
        self.figures.with(|figures| {
            figures.congestion_events += 1;
            figures.persistent_congestion += u64::from(is_persistent_congestion);
            figures.marks += u64::from(lost_bytes == 0);
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let Self { inner, figures, latest, reduced } = self;
        Box::new(Self { inner: inner.clone_box(), figures: figures.clone(), latest: *latest, reduced: *reduced })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
