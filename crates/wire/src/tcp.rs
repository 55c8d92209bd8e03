//! The TCP header (RFC 9293 §3.1) and the options that airpath uses.

mod options;

use core::ops::{BitOr, BitOrAssign};
use serde::{Deserialize, Serialize};

use crate::checksum::Sum;
use crate::error::{ParseError, after, leading};

pub use options::{EcnCounters, Options, SackBlocks, Timestamps};

const NAME: &str = "TCP";

/// A TCP header. What every segment has is first, so that it shares a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
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
    /// Explicit loss notification: the acknowledgement reports a loss that was not congestion
    /// ([`Self::LOSS_NOTIFICATION`]).
    pub loss_notification: bool,
    /// AE, the third bit of accurate ECN feedback (RFC 9768 §3.1.1) beside CWR and ECE.
    pub accurate_ecn: bool,
    /// Window as sent, before scaling.
    pub window: u16,
    /// Options.
    pub options: Options,
}

/// The control bits of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

impl TcpHeader {
    /// The bit of [`Self::loss_notification`] in the byte of the header length: the first reserved
    /// one (RFC 9293 §3.1). ELN has no standard; this bit is a choice.
    pub const LOSS_NOTIFICATION: u8 = 0x08;
    /// The bit of [`Self::accurate_ecn`] in the same byte (RFC 9768 §3.1.1).
    pub const ACCURATE_ECN: u8 = 0x01;
    /// Bytes of the header without options.
    pub const MIN_LENGTH: usize = 20;
    /// Bytes of the header with as many options as fit.
    pub const MAX_LENGTH: usize = Self::MIN_LENGTH + Options::MAX_LENGTH;

    /// Bytes of the header with its options.
    pub fn wire_length(&self) -> usize {
        Self::MIN_LENGTH + self.options.wire_length()
    }

    /// Writes the header into the first [`Self::wire_length`] bytes of `buffer`. `partial_sum` is
    /// the sum of the pseudo header and the payload; the checksum adds the header.
    ///
    /// # Panics
    /// If `buffer` is shorter than that, or the options take more than [`Options::MAX_LENGTH`]
    /// bytes.
    pub fn emit(&self, buffer: &mut [u8], partial_sum: Sum) {
        let length = self.wire_length();
        assert!(length <= Self::MAX_LENGTH, "the options of a TCP header take {} bytes, of 40", length - 20);
        let header = buffer.get_mut(..length).expect("the buffer has room for a TCP header");
        header[..2].copy_from_slice(&self.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        header[8..12].copy_from_slice(&self.acknowledgment.to_be_bytes());
        // The length in words, in the upper half of the byte: at most 15, as was seen to above.
        let reserved = if self.loss_notification { Self::LOSS_NOTIFICATION } else { 0 }
            | if self.accurate_ecn { Self::ACCURATE_ECN } else { 0 };
        header[12] = ((length / 4) << 4) as u8 | reserved;
        header[13] = self.flags.0;
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        // Checksum and urgent pointer.
        header[16..20].fill(0);
        self.options.emit(&mut header[Self::MIN_LENGTH..]);
        let checksum = partial_sum.and(header).checksum();
        header[16..18].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Reads the header at the start of `segment`, and returns it with the payload. The urgent
    /// pointer and options that [`Options`] does not have are skipped.
    ///
    /// # Errors
    /// Where the header is cut short, its length is less than 20 bytes, or an option is malformed.
    pub fn parse(segment: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let bytes: &[u8; Self::MIN_LENGTH] = leading(NAME, segment)?;
        let words = bytes[12] >> 4;
        let length = usize::from(words) * 4;
        if length < Self::MIN_LENGTH {
            return Err(ParseError::Malformed { header: NAME, field: "header length in words", value: words.into() });
        }
        let payload = after(NAME, segment, length)?;
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let header = Self {
            source_port: short(0),
            destination_port: short(2),
            sequence: word(4),
            acknowledgment: word(8),
            flags: Flags(bytes[13]),
            loss_notification: bytes[12] & Self::LOSS_NOTIFICATION != 0,
            accurate_ecn: bytes[12] & Self::ACCURATE_ECN != 0,
            window: short(14),
            options: Options::parse(&segment[Self::MIN_LENGTH..length])?,
        };
        Ok((header, payload))
    }
}
