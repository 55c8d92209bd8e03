//! The UDP header (RFC 768).

use crate::checksum::Sum;
use crate::error::{ParseError, leading};

const NAME: &str = "UDP";

/// A UDP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Bytes of header and payload.
    pub length: u16,
}

impl UdpHeader {
    /// Bytes of the header.
    pub const LENGTH: usize = 8;

    /// Writes the header into the first [`Self::LENGTH`] bytes of `buffer`. `partial_sum` is the
    /// sum of the pseudo header and the payload; the checksum adds the header.
    ///
    /// # Panics
    /// If `buffer` is shorter than that.
    pub fn emit(&self, buffer: &mut [u8], partial_sum: Sum) {
        let header = buffer.first_chunk_mut::<{ Self::LENGTH }>().expect("the buffer has room for a UDP header");
        header[..2].copy_from_slice(&self.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        header[4..6].copy_from_slice(&self.length.to_be_bytes());
        header[6..].fill(0);
        // Zero means that there is none, so a checksum of zero is sent as all ones (RFC 768).
        let checksum = match partial_sum.and(header).checksum() {
            0 => 0xFFFF,
            checksum => checksum,
        };
        header[6..].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Reads the header at the start of `datagram`, and returns it with the payload: what follows
    /// up to its length, or up to the end of `datagram` where a capture kept less.
    ///
    /// # Errors
    /// Where the header is cut short, or the length is smaller than the header.
    pub fn parse(datagram: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let bytes: &[u8; Self::LENGTH] = leading(NAME, datagram)?;
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let header = Self { source_port: word(0), destination_port: word(2), length: word(4) };
        let rest = &datagram[Self::LENGTH..];
        let Some(length) = usize::from(header.length).checked_sub(Self::LENGTH) else {
            return Err(ParseError::Malformed { header: NAME, field: "length", value: header.length.into() });
        };
        Ok((header, &rest[..rest.len().min(length)]))
    }
}
