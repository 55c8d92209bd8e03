//! Capture files: what is common to their formats.

use airpath_core::Instant;

/// A frame as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number in the file, from 1 as Wireshark counts.
    pub frame: u64,
    /// When, in nanoseconds since 1 January 1970, UTC.
    pub time: Instant,
    /// What its first bytes are.
    pub link_type: LinkType,
    /// The interface, in the order in which the file describes them; 0 where the format has no interfaces.
    pub interface: u32,
    /// Its first bytes, as many as were kept.
    pub bytes: &'a [u8],
    /// Bytes that it had.
    pub original_length: u32,
}

/// What a frame begins with: a number of the registry of link types (the LINKTYPE values of tcpdump.org and of the pcapng draft).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub u16);
