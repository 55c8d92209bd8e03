//! SNDCP and LLC: how many bytes of RLC data a packet is.
//!
//! SNDCP cuts a packet into segments that fit into an LLC frame (N201-U, 3GPP TS 44.064 §8.9.8) and
//! sends each in a frame of unacknowledged information. The RLC marks the end of each frame with a
//! length indicator (TS 44.060 §10.4.14).

use crate::common::arq::acknowledged::Framing;

/// Address, control field of a UI frame, and frame check sequence (TS 44.064 §5.5, §6.2, §6.3).
const LLC_BYTES: u32 = 1 + 2 + 3;

/// The header of the first segment of a packet that is sent unacknowledged: an octet of flags and
/// NSAPI, one of compression, two with the numbers of segment and packet (TS 44.065 §7.2).
const FIRST_SNDCP_BYTES: u32 = 4;

/// The header of the other segments, which lack the octet of compression (TS 44.065 §7.2).
const NEXT_SNDCP_BYTES: u32 = 3;

/// A length indicator in the RLC block in which a frame ends.
pub const LENGTH_INDICATOR: u32 = 1;

/// The smallest N201-U that TS 44.064 §8.9.8 allows.
pub const MIN_FRAME: u32 = 140;

/// The largest.
pub const MAX_FRAME: u32 = 1520;

/// How packets are framed, with frames that carry up to `frame` bytes (N201-U).
pub const fn framing(frame: u32) -> Framing {
    Framing {
        first_room: frame - FIRST_SNDCP_BYTES,
        first_overhead: LLC_BYTES + FIRST_SNDCP_BYTES,
        next_room: frame - NEXT_SNDCP_BYTES,
        // The length indicators are the RLC's affair at the end of a packet, and its at the end of
        // its other frames.
        next_overhead: LENGTH_INDICATOR + LLC_BYTES + NEXT_SNDCP_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_have_headers_of_their_own() {
        let bytes = |size, frame| framing(frame).bytes(size);
        assert_eq!(bytes(40, 500), 40 + 4 + 6);
        assert_eq!(bytes(496, 500), 496 + 4 + 6, "it just fits");
        assert_eq!(bytes(497, 500), 497 + 4 + 6 + 3 + 7);
        assert_eq!(bytes(1500, 1520), 1510);
        // 496 + 497 + 497 + 10
        assert_eq!(bytes(1500, 500), 1500 + 4 + 3 * 3 + 6 + 3 * 7);
    }
}
