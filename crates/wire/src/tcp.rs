//! The TCP header (RFC 9293 §3.1) and the options that airpath uses.

use core::ops::{BitOr, BitOrAssign};

/// A TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number of the first byte (or of the SYN).
    pub sequence: u32,
    /// Next sequence number expected; meaningful with [`Flags::ACK`].
    pub acknowledgment: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window as sent, before scaling.
    pub window: u16,
    /// Options.
    pub options: Options,
}

/// The control bits of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// TCP options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size (RFC 9293 §3.7.1), on a SYN.
    pub maximum_segment_size: Option<u16>,
    /// Window scale shift (RFC 7323 §2), on a SYN.
    pub window_scale: Option<u8>,
    /// Selective acknowledgement is permitted (RFC 2018 §2), on a SYN.
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgement (RFC 2018 §3): first and one past the last sequence number of each block.
    pub sack: SackBlocks,
}

/// The timestamps option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the clock that is echoed.
    pub echo: u32,
}

/// Up to four blocks of a selective acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// The most that fit into a header without other options.
    pub const MAX: usize = 4;

    /// Adds a block; a fifth is refused with `false`.
    pub fn push(&mut self, start: u32, end: u32) -> bool {
        let free = usize::from(self.count) < Self::MAX;
        if free {
            self.blocks[usize::from(self.count)] = (start, end);
            self.count += 1;
        }
        free
    }

    /// The blocks, in the order in which they stand in the header.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Options {
    /// Bytes that these options take in a header, padded to a multiple of four.
    ///
    /// Timestamps and blocks are preceded by two bytes of padding each, as most stacks do (RFC 7323
    /// appendix A), so that their words are aligned.
    pub fn wire_length(&self) -> usize {
        let mut length = 0;
        if self.maximum_segment_size.is_some() {
            length += 4;
        }
        if self.sack_permitted {
            // Without timestamps to share a word with, two bytes of padding precede it.
            length += if self.timestamps.is_some() { 2 } else { 4 };
        }
        if self.timestamps.is_some() {
            length += if self.sack_permitted { 10 } else { 12 };
        }
        if self.window_scale.is_some() {
            length += 4;
        }
        if !self.sack.is_empty() {
            length += 4 + 8 * self.sack.as_slice().len();
        }
        length
    }
}

impl TcpHeader {
    /// Bytes of the header with its options.
    pub fn wire_length(&self) -> usize {
        20 + self.options.wire_length()
    }
}
