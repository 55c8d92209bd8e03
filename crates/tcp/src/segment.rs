//! What two end points exchange.

use airpath_core::{Ecn, SegmentInfo};
use airpath_wire::tcp::TcpHeader;
use serde::{Deserialize, Serialize};

/// A TCP segment without its payload, which [`Segment::info`] refers to by stream offsets.
///
/// What a receiver reads of every segment is first, in one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Segment {
    /// Payload bytes.
    pub length: u32,
    /// The ECN field of the IP header; the network may change it.
    pub ecn: Ecn,
    /// The header.
    pub header: TcpHeader,
    /// The header in stream offsets, for logs and for the owner of the payload.
    pub info: SegmentInfo,
}

// Larger values are copied by a call of `memmove`.
const _: () = assert!(size_of::<Segment>() <= 128, "two cache lines");

impl Segment {
    /// Size of the IP packet in bytes, with an IP header of `ip_header` bytes.
    #[inline]
    pub fn wire_size(&self, ip_header: u32) -> u32 {
        // A TCP header has at most 60 bytes.
        ip_header + self.header.wire_length() as u32 + self.length
    }
}
