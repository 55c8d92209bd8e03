//! One connection: what each of its segments meant.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

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
/// Sequence numbers are unwrapped to offsets of a stream of bytes: its first byte of data is 0, the SYN lies at -1.
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
    /// Bytes of the other direction that its sender has by now told to have, cumulatively (RFC 9293) and selectively (RFC 2018) together.
    pub delivered: u64,
    /// Receive window in bytes, scaled.
    pub window: u64,
    /// What stands out.
    pub events: Events,
    /// How it came to be sent again; `None` for what is new.
    pub retransmission: Option<Retransmission>,
    /// An earlier retransmission of the other end that this segment proves to have been needless.
    pub needless: Option<Needless>,
    /// Bytes that its sender has sent and that are not acknowledged, this segment included, as seen where the capture was taken.
    pub outstanding: u64,
    /// The round trip that this acknowledgement measures, of a segment that was sent once (Karn's rule), and its frame.
    pub round_trip: Option<(Span, u64)>,
}

/// A segment that carries bytes which had been seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// The frame that carried its first byte the time before.
    pub of_frame: u64,
    /// When that was.
    pub of_time: Instant,
    /// What made the sender send it again.
    pub trigger: Trigger,
}

/// What made a sender send a segment again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// The retransmission timer (RFC 6298).
    Timeout,
    /// Duplicate or selective acknowledgements (RFC 5681 §3.2, RFC 6675), or what follows in the same recovery.
    Fast,
    /// A probe of the tail (RFC 8985 §7).
    TailProbe,
    /// Nothing that can be seen from here.
    Unknown,
}

/// A retransmission of what had arrived already, or was about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needless {
    /// The frame that was sent in vain.
    pub frame: u64,
    /// What tells.
    pub detector: Detector,
}

/// What tells that a retransmission was needless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detector {
    /// The receiver reported the duplicate (RFC 2883, RFC 3708).
    DuplicateReport,
    /// The acknowledgement echoes the time of the original (Eifel, RFC 3522).
    Timestamp,
    /// After a time-out, acknowledgements came for what had not been sent again (F-RTO, RFC 5682).
    ForwardAcknowledgement,
    /// An earlier copy passed the other end's capture.
    OtherEnd,
}

/// What stands out about a segment, as a set of bits. The names are those of Wireshark's `tcp.analysis.*` where they mean the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(pub u32);
