//! What one segment of a connection meant.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

use crate::events::Events;
use crate::outstanding::Sending;
use crate::spurious::Spurious;
use crate::trigger::Trigger;

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// The one that opened it: who sent the SYN, or else the sender of the first segment.
    Client,
    /// The other.
    Server,
}

impl End {
    /// Both, the client first.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A segment, and what it meant when it passed.
///
/// Sequence numbers are unwrapped to offsets of a stream of bytes: its first byte of data is 0, the
/// SYN lies at -1.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The frame.
    pub frame: u64,
    /// When it passed.
    pub time: Instant,
    /// Who sent it.
    pub from: End,
    /// Stream offset of its first byte.
    pub offset: i64,
    /// Bytes of payload.
    pub length: u32,
    /// Control bits.
    pub flags: Flags,
    /// Stream offset of the other direction that is acknowledged.
    pub acknowledged: Option<i64>,
    /// Bytes of the other direction that its sender has by now told to have, cumulatively (RFC
    /// 9293) and selectively (RFC 2018) together.
    pub delivered: u64,
    /// When what it tells to have arrived, and no earlier acknowledgement had told of, was sent.
    pub newly_acknowledged: Option<Sending>,
    /// When the oldest of what remains unacknowledged was sent.
    pub unacknowledged_since: Option<Instant>,
    /// Receive window in bytes, scaled.
    pub window: u64,
    /// What stands out.
    pub events: Events,
    /// How it came to be sent again; `None` for what is new.
    pub retransmission: Option<Retransmission>,
    /// Bytes that its sender has sent and that are not acknowledged, this segment included, as seen
    /// where the capture was taken.
    pub outstanding: u64,
    /// The round trip that this acknowledgement measures, of a segment that was sent once (Karn's
    /// rule), and its frame.
    pub round_trip: Option<(Span, u64)>,
    /// The round trip that the echo of a timestamp measures (RFC 7323 §4.3), of whichever copy
    /// arrived, and its frame. An outage that held packets back is in it, which Karn's rule throws
    /// away.
    pub echo_round_trip: Option<(Span, u64)>,
    /// Which duplicate acknowledgement it is, if it is one.
    pub duplicate: Option<Duplicate>,
    /// Bytes that its sender has sent since the last segment with PSH, this one included; 0 for a
    /// segment without data, and what is sent again counts again.
    pub since_push: u64,
    /// A retransmission that this segment shows to have been spurious: an earlier one of the other
    /// end, of several the last, or, if it repeats what is acknowledged already, itself.
    pub spurious: Option<Spurious>,
}

/// A segment that carries bytes which had been seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// The frame that carried it the time before; `None` where it has been acknowledged since, and
    /// is no longer remembered.
    pub of_frame: Option<u64>,
    /// When that was.
    pub of_time: Option<Instant>,
    /// What made the sender send it again.
    pub trigger: Trigger,
}

/// A duplicate acknowledgement (RFC 5681 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Its place in the row of duplicates, from 1: with the third the sender retransmits.
    pub number: u32,
    /// The frame that acknowledged the same first.
    pub of_frame: u64,
}
