//! Counters and round trips of a connection.

use std::sync::{Arc, Mutex, PoisonError};

use airpath_core::Span;
use serde::{Deserialize, Serialize};

/// Counters of one end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// UDP datagrams sent.
    pub datagrams: u64,
    /// Bytes of their UDP payload.
    pub datagram_bytes: u64,
    /// STREAM frames sent.
    pub stream_frames: u64,
    /// ACK frames sent.
    pub ack_frames: u64,
    /// UDP datagrams received with a CE mark.
    pub marked_datagrams: u64,
    /// Packets declared lost (RFC 9002 §6), without probes of the path MTU.
    pub lost_packets: u64,
    /// Bytes of these packets.
    pub lost_bytes: u64,
    /// Reductions of the congestion window by loss or CE marks. BBR has none.
    pub congestion_events: u64,
    /// Of these, persistent congestion (RFC 9002 §7.6).
    pub persistent_congestion: u64,
    /// Of these, by CE marks.
    pub marks: u64,
    /// Least round trip.
    pub rtt_min: Option<Span>,
    /// Greatest round trip.
    pub rtt_max: Option<Span>,
    /// Sum of the round trips.
    pub rtt_sum: Span,
    /// Number of round trips: one for each ACK frame that acknowledges a new packet.
    pub rtt_samples: u64,
}

impl Statistics {
    /// Mean of the round trips in seconds.
    pub fn rtt_mean_s(&self) -> Option<f64> {
        (self.rtt_samples > 0).then(|| self.rtt_sum.as_secs_f64() / self.rtt_samples as f64)
    }
}

/// What a controller observed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub acknowledged_bytes: u64,
    pub in_flight: u64,
    pub acks: u64,
    pub congestion_events: u64,
    pub persistent_congestion: u64,
    pub marks: u64,
    /// Recoveries that are over.
    pub recoveries: u64,
    pub rtt_min: Option<Span>,
    pub rtt_max: Option<Span>,
    pub rtt_sum: Span,
    pub rtt_samples: u64,
    /// The latest round trip, from the sending of a packet to the ACK frame.
    pub latest: Option<Span>,
    /// Variation of the round trip (RFC 9002 §5.3).
    pub variation: Span,
}

impl Figures {
    /// Adds a round trip, before which the smoothed one was `smoothed`.
    pub fn measure(&mut self, round_trip: Span, smoothed: Span) {
        // RFC 9002 §5.3. The first sample sets it to a half of the round trip.
        self.variation = match self.latest {
            None => round_trip / 2,
            Some(_) => (self.variation * 3 + smoothed.abs_diff(round_trip)) / 4,
        };
        self.latest = Some(round_trip);
        self.rtt_min = Some(self.rtt_min.map_or(round_trip, |least| least.min(round_trip)));
        self.rtt_max = Some(self.rtt_max.map_or(round_trip, |greatest| greatest.max(round_trip)));
        self.rtt_sum += round_trip;
        self.rtt_samples += 1;
    }
}

/// Figures that a controller inside quinn shares with the connection. Quinn requires controllers
/// to be `Send` and `Sync`; the lock is never contended.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedFigures(Arc<Mutex<Figures>>);

impl SharedFigures {
    pub fn with(&self, change: impl FnOnce(&mut Figures)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn get(&self) -> Figures {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
