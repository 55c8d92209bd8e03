//! Events of a segment, as a set of bits.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// Events of a segment, as a set of bits. The names are those of Wireshark's `tcp.analysis.*` where
/// the meanings are equal.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Events(pub u32);

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $name:ident = $bit:literal, $text:literal;)+) => {
        impl Events {
            $($(#[doc = $doc])+ pub const $name: Self = Self(1 << $bit);)+

            /// Every event with its name, in the order of their bits.
            pub const NAMES: &[(Self, &str)] = &[$((Self::$name, $text),)+];
        }
    };
}

events! {
    /// Contains bytes that were seen before, and is no keep-alive, zero-window probe or duplicate
    /// of the capture.
    RETRANSMISSION = 0, "retransmission";
    /// A retransmission requested by duplicate or selective acknowledgements (RFC 5681 §3.2, RFC
    /// 6675).
    FAST_RETRANSMISSION = 1, "fast_retransmission";
    /// A retransmission of data that the other end had already acknowledged at the capture point.
    ACKNOWLEDGED_RETRANSMISSION = 2, "acknowledged_retransmission";
    /// Contains bytes that were not seen before, below others that were.
    OUT_OF_ORDER = 3, "out_of_order";
    /// Bytes before this segment were not seen (yet).
    LOST_SEGMENT = 4, "lost_segment";
    /// Acknowledges bytes that were not seen, for the first time: the capture has a hole.
    ACK_LOST_SEGMENT = 5, "ack_lost_segment";
    /// A duplicate acknowledgement (RFC 5681 §2): nothing new, while data is outstanding.
    DUPLICATE_ACK = 6, "duplicate_ack";
    /// A segment with no byte, or one byte, just below the expected offset (RFC 9293 §3.8.4).
    KEEP_ALIVE = 7, "keep_alive";
    /// The answer to a keep-alive.
    KEEP_ALIVE_ACK = 8, "keep_alive_ack";
    /// Changes the receive window and nothing else.
    WINDOW_UPDATE = 9, "window_update";
    /// Reaches the end of the receive window.
    WINDOW_FULL = 10, "window_full";
    /// Closes the receive window. A reset, which offers none, does not.
    ZERO_WINDOW = 11, "zero_window";
    /// Sent into a closed window (RFC 9293 §3.8.6.1).
    ZERO_WINDOW_PROBE = 12, "zero_window_probe";
    /// The answer to such a probe: still closed.
    ZERO_WINDOW_PROBE_ACK = 13, "zero_window_probe_ack";
    /// A SYN on the addresses and ports of an earlier connection.
    REUSED_PORTS = 14, "reused_ports";
    /// A SYN with data (Fast Open, RFC 7413).
    TFO_SYN = 15, "tfo_syn";
    /// Acknowledges the data of a SYN.
    TFO_ACK = 16, "tfo_ack";
    /// Acknowledges a SYN, but not its data.
    TFO_IGNORED = 17, "tfo_ignored";
    /// Fills a hole later than reordering explains: the first copy was lost before the capture
    /// point.
    LOST_BEFORE_CAPTURE = 18, "lost_before_capture";
    /// Its first selective acknowledgement reports bytes that arrived twice (RFC 2883).
    DSACK = 19, "dsack";
    /// The same packet again: a fault of the capture or of a link, not of the sender. It is
    /// detected by its identification. Without one, it must follow its copy within a millisecond,
    /// with no segment of the other end between.
    HARDWARE_DUPLICATE = 20, "hardware_duplicate";
    /// The checksum is wrong. This is usual at a sender that computes checksums in hardware.
    BAD_CHECKSUM = 21, "bad_checksum";
    /// A router marked it (RFC 3168).
    CONGESTION_EXPERIENCED = 22, "congestion_experienced";
    /// It shows a retransmission of the other end to have been spurious.
    SHOWS_SPURIOUS = 23, "shows_spurious";
    /// Its options are cut off by the snap length, or malformed: their content is unknown.
    OPTIONS_CUT = 24, "options_cut";
    /// Longer than the MSS of the other end: the capturing host's interface splits or joins
    /// segments.
    SUPER_SEGMENT = 25, "super_segment";
}

impl Events {
    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no event is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names of the set events, in the order of their bits.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().filter(move |(event, _)| self.contains(*event)).map(|(_, name)| *name)
    }

    /// Adds `other` where `condition` holds.
    pub(crate) fn set(&mut self, other: Self, condition: bool) {
        self.0 |= if condition { other.0 } else { 0 };
    }
}

impl BitOr for Events {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Events {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
