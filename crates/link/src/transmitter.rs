//! What sends one packet after the other, whatever sets its pace.

use std::sync::Arc;

use airpath_core::{Bitrate, Instant};

use crate::rate::Serialiser;
use crate::recorded::{Opportunities, Recording};

/// A transmitter.
#[derive(Clone, Debug)]
pub(crate) enum Transmitter {
    /// Infinitely fast.
    Open,
    /// Of constant rate.
    Rate(Serialiser),
    /// As it was recorded.
    Recorded(Opportunities),
}

impl Transmitter {
    /// The transmitter of this rate, or else of this recording, or else an infinitely fast one.
    pub fn new(rate: Option<Bitrate>, recording: Option<&Arc<Recording>>) -> Self {
        match (rate, recording) {
            (Some(rate), _) => Self::Rate(Serialiser::new(rate)),
            (None, Some(recording)) => Self::Recorded(Opportunities::new(recording.clone())),
            (None, None) => Self::Open,
        }
    }

    /// Whether a packet that comes `now` need not wait.
    #[inline]
    pub fn is_free(&self, now: Instant) -> bool {
        match self {
            Self::Open => true,
            Self::Rate(serialiser) => serialiser.free_at() <= now,
            // The next opportunity is always yet to come.
            Self::Recorded(_) => false,
        }
    }

    /// When the transmission begins of a packet that is ready since `ready`, if it is the next.
    #[inline]
    pub fn next_start(&self, ready: Instant) -> Instant {
        match self {
            Self::Open => ready,
            Self::Rate(serialiser) => serialiser.free_at().max(ready),
            Self::Recorded(opportunities) => opportunities.next_start(ready),
        }
    }

    /// Sends `size` bytes, from `ready` on or as soon as it can. Returns when the transmission begins
    /// and when it is over.
    #[inline]
    pub fn send(&mut self, ready: Instant, size: u32) -> (Instant, Instant) {
        match self {
            Self::Open => (ready, ready),
            Self::Rate(serialiser) => serialiser.send(ready, size),
            Self::Recorded(opportunities) => opportunities.send(ready, size),
        }
    }
}
