//! ICMP echo messages, for IPv4 (RFC 792) and IPv6 (RFC 4443 §4).

use crate::checksum::Sum;
use crate::error::{ParseError, leading};

/// Message types of an echo request and an echo reply; they differ between IP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoTypes {
    request: u8,
    reply: u8,
}

impl EchoTypes {
    /// ICMP for IPv4; its checksum covers no pseudo header.
    pub const V4: Self = Self { request: 8, reply: 0 };
    /// ICMP for IPv6; its checksum covers a pseudo header (RFC 4443 §2.3).
    pub const V6: Self = Self { request: 128, reply: 129 };
}

/// The header of an echo request or reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IcmpEcho {
    /// Whether it is the reply.
    pub reply: bool,
    /// Identifier of the sending process.
    pub identifier: u16,
    /// Sequence number of the request.
    pub sequence: u16,
}

impl IcmpEcho {
    /// Bytes of the header.
    pub const LENGTH: usize = 8;

    /// Writes the header into the first [`Self::LENGTH`] bytes of `buffer`. `partial_sum` is the
    /// sum of the payload, with IPv6 also of the pseudo header; the checksum adds the header.
    ///
    /// # Panics
    /// If `buffer` is shorter than that.
    pub fn emit(&self, types: EchoTypes, buffer: &mut [u8], partial_sum: Sum) {
        let header = buffer.first_chunk_mut::<{ Self::LENGTH }>().expect("the buffer has room for an ICMP header");
        header[0] = if self.reply { types.reply } else { types.request };
        header[1..4].fill(0);
        header[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        header[6..].copy_from_slice(&self.sequence.to_be_bytes());
        let checksum = partial_sum.and(header).checksum();
        header[2..4].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Reads the header at the start of `message`, and returns it with the payload.
    ///
    /// # Errors
    /// Where the header is cut short, is that of another message, or its code is not 0.
    pub fn parse(types: EchoTypes, message: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let bytes: &[u8; Self::LENGTH] = leading("ICMP", message)?;
        let kind = bytes[0];
        if kind != types.request && kind != types.reply {
            return Err(ParseError::NotAnEcho { kind });
        }
        if bytes[1] != 0 {
            return Err(ParseError::Malformed { header: "ICMP", field: "code", value: bytes[1].into() });
        }
        let header = Self {
            reply: kind == types.reply,
            identifier: u16::from_be_bytes([bytes[4], bytes[5]]),
            sequence: u16::from_be_bytes([bytes[6], bytes[7]]),
        };
        Ok((header, &message[Self::LENGTH..]))
    }
}
