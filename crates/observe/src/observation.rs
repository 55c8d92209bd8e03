//! The interpretation of one segment of a connection.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::{Flags, Timestamps};

use crate::events::Events;
use crate::figures::MAXIMUM_SHIFT;
use crate::outstanding::Sending;
use crate::spurious::Spurious;
use crate::trigger::Trigger;

/// The largest receive window (RFC 7323 §2.3).
const LARGEST_WINDOW: u64 = (u16::MAX as u64) << MAXIMUM_SHIFT;

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// The end that opened the connection: the sender of the SYN, or else of the first segment.
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

/// A segment and its interpretation at its time.
///
/// Sequence numbers are unwrapped to offsets of a stream of bytes: its first byte of data is 0, the
/// SYN is -1.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The frame.
    pub frame: u64,
    /// Its time at the capture point.
    pub time: Instant,
    /// Its sender.
    pub from: End,
    /// Stream offset of its first byte.
    pub offset: i64,
    /// Bytes of payload.
    pub length: u32,
    /// Bytes of payload of a full-sized segment of its sender; longer ones are super-segments.
    pub full_segment: u32,
    /// Control bits.
    pub flags: Flags,
    /// Acknowledged stream offset of the other direction.
    pub acknowledged: Option<i64>,
    /// Bytes of the other direction that its sender has acknowledged so far, cumulatively (RFC
    /// 9293) and selectively (RFC 2018) together.
    pub delivered: u64,
    /// When the data that this segment acknowledges for the first time was sent.
    pub newly_acknowledged: Option<Sending>,
    /// When the oldest data that remains unacknowledged was sent.
    pub unacknowledged_since: Option<Instant>,
    /// Receive window in bytes, scaled.
    pub window: u64,
    /// Whether the scale of the window is unknown: the capture lacks the handshake, and the other
    /// end has sent more than the window without a scale allows.
    pub scale_is_unknown: bool,
    /// Its events.
    pub events: Events,
    /// The trigger and the earlier copy of a retransmission; `None` for new data.
    pub retransmission: Option<Retransmission>,
    /// Bytes that its sender has sent and that are not acknowledged at the capture point, this
    /// segment included.
    pub outstanding: u64,
    /// The timestamps option.
    pub timestamps: Option<Timestamps>,
    /// The round trip that this acknowledgement measures, of a segment that was sent once (Karn's
    /// rule), and the frame of that segment.
    pub round_trip: Option<(Span, u64)>,
    /// The round trip that the echo of a timestamp measures (RFC 7323 §4.3), of the copy that
    /// arrived, and its frame. It includes outages that held packets back, which Karn's rule
    /// excludes.
    pub echo_round_trip: Option<(Span, u64)>,
    /// Its number and first frame if it is a duplicate acknowledgement.
    pub duplicate: Option<Duplicate>,
    /// Bytes that its sender has sent since the last segment with PSH, this one included; 0 for a
    /// segment without data. Retransmitted bytes count again.
    pub since_push: u64,
    /// The spurious retransmission that this segment shows: itself, if it repeats acknowledged
    /// data, or else the last of those of the other end.
    pub spurious: Option<Spurious>,
}

impl Observation {
    /// Bytes that its sender is ready to receive at most. A window of unknown scale limits nothing
    /// unless it is closed.
    pub fn most_receivable(&self) -> u64 {
        if self.scale_is_unknown && self.window > 0 { LARGEST_WINDOW } else { self.window }
    }
}

/// A segment with bytes that were seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// The frame with the previous transmission; `None` where that was acknowledged since and is no
    /// longer stored.
    pub of_frame: Option<u64>,
    /// Time of that frame.
    pub of_time: Option<Instant>,
    /// Why the sender retransmitted it.
    pub trigger: Trigger,
}

/// A duplicate acknowledgement (RFC 5681 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Its number in a series of duplicates, from 1: after the third the sender retransmits.
    pub number: u32,
    /// The frame with the first acknowledgement of the same offset.
    pub of_frame: u64,
}
