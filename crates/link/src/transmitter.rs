//! Transmitters, which send packets in sequence.

use std::sync::Arc;

use airpath_core::{Bitrate, Instant, Span};

use crate::rate::Serialiser;
use crate::recorded::{Opportunities, Recording};

/// A transmitter.
#[derive(Clone, Debug)]
pub(crate) enum Transmitter {
    /// Infinitely fast, from a time on.
    Open(Instant),
    /// At a constant rate.
    Rate(Serialiser),
    /// At recorded opportunities.
    Recorded(Opportunities),
}

impl Transmitter {
    /// The transmitter of this rate, or of this recording, or an infinitely fast one.
    pub fn new(rate: Option<Bitrate>, recording: Option<&Arc<Recording>>) -> Self {
        match (rate, recording) {
            (Some(rate), _) => Self::Rate(Serialiser::new(rate)),
            (None, Some(recording)) => Self::Recorded(Opportunities::new(recording.clone())),
            (None, None) => Self::Open(Instant::ZERO),
        }
    }

    /// Whether a packet that arrives `now` need not wait.
    #[inline]
    pub fn is_free(&self, now: Instant) -> bool {
        match self {
            Self::Open(from) => *from <= now,
            Self::Rate(serialiser) => serialiser.free_at() <= now,
            // The next opportunity is always in the future.
            Self::Recorded(_) => false,
        }
    }

    /// Start of the transmission of a packet that is ready since `ready`, if it is next.
    #[inline]
    pub fn next_start(&self, ready: Instant) -> Instant {
        match self {
            Self::Open(from) => ready.max(*from),
            Self::Rate(serialiser) => serialiser.free_at().max(ready),
            Self::Recorded(opportunities) => opportunities.next_start(ready),
        }
    }

    /// Sends `size` bytes, from `ready` on or as soon as possible. Returns start and end of the
    /// transmission.
    #[inline]
    pub fn send(&mut self, ready: Instant, size: u32) -> (Instant, Instant) {
        match self {
            Self::Open(from) => (ready.max(*from), ready.max(*from)),
            Self::Rate(serialiser) => serialiser.send(ready, size),
            Self::Recorded(opportunities) => opportunities.send(ready, size),
        }
    }

    /// Whether a suspended transmission can resume where it stopped, instead of restarting.
    pub const fn can_go_on(&self) -> bool {
        !matches!(self, Self::Recorded(_))
    }

    /// Revokes what it was given: it is free from `at` on.
    pub fn restart(&mut self, at: Instant) {
        match self {
            Self::Open(from) => *from = at,
            Self::Rate(serialiser) => serialiser.restart(at),
            Self::Recorded(opportunities) => opportunities.restart(at),
        }
    }

    /// Sends at `rate` from now on. Returns the new time for what needed `left` before.
    pub fn set_rate(&mut self, rate: Bitrate, left: Span) -> Span {
        let before = match self {
            Self::Rate(serialiser) => serialiser.rate(),
            // An infinitely fast transmitter has nothing left to send; a recorded one has no rate.
            Self::Open(_) | Self::Recorded(_) => rate.as_bps(),
        };
        *self = Self::Rate(Serialiser::new(rate));
        let scaled = u128::from(left.as_nanos()) * u128::from(before);
        let nanos = scaled.div_ceil(u128::from(rate.as_bps()));
        Span::from_nanos(
            u64::try_from(nanos).expect("4 GiB at 1 bit/s take 3.4e19 ns, less than 2^65, and one packet is left"),
        )
    }
}
