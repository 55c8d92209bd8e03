//! The IPv6 header (RFC 8200 §3).

use std::net::Ipv6Addr;

use airpath_core::Ecn;

use crate::error::{ParseError, leading};
use crate::protocol::Protocol;

const NAME: &str = "IPv6";

/// An IPv6 header. Extension headers are part of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// Differentiated services code point, six bits.
    pub dscp: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Bytes that follow this header.
    pub payload_length: u16,
    /// Type of the next header: a transport or an extension header.
    pub next_header: Protocol,
    /// Remaining hops.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Ipv6Header {
    /// Bytes of the header.
    pub const LENGTH: usize = 40;

    /// Writes the header into the first [`Self::LENGTH`] bytes of `buffer`. Bits beyond the width
    /// of a field are not sent.
    ///
    /// # Panics
    /// If `buffer` is shorter than that.
    pub fn emit(&self, buffer: &mut [u8]) {
        let header = buffer.first_chunk_mut::<{ Self::LENGTH }>().expect("the buffer has room for an IPv6 header");
        let traffic_class = self.dscp << 2 | self.ecn.bits();
        let first = 6 << 28 | u32::from(traffic_class) << 20 | self.flow_label & 0x000F_FFFF;
        header[..4].copy_from_slice(&first.to_be_bytes());
        header[4..6].copy_from_slice(&self.payload_length.to_be_bytes());
        header[6] = self.next_header.0;
        header[7] = self.hop_limit;
        header[8..24].copy_from_slice(&self.source.octets());
        header[24..].copy_from_slice(&self.destination.octets());
    }

    /// Reads the header at the start of `packet`, and returns it with the payload: what follows up
    /// to the payload length, or up to the end of `packet` where a capture kept less.
    ///
    /// # Errors
    /// Where the header is cut short or its version is not 6.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let bytes: &[u8; Self::LENGTH] = leading(NAME, packet)?;
        let first = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if first >> 28 != 6 {
            return Err(ParseError::Malformed { header: NAME, field: "version", value: first >> 28 });
        }
        let traffic_class = (first >> 20) as u8;
        let address = |at: usize| {
            let octets: [u8; 16] = bytes[at..at + 16].try_into().expect("sixteen bytes are an address");
            Ipv6Addr::from(octets)
        };
        let payload_length = u16::from_be_bytes([bytes[4], bytes[5]]);
        let rest = &packet[Self::LENGTH..];
        let header = Self {
            dscp: traffic_class >> 2,
            ecn: Ecn::from_bits(traffic_class),
            flow_label: first & 0x000F_FFFF,
            payload_length,
            next_header: Protocol(bytes[6]),
            hop_limit: bytes[7],
            source: address(8),
            destination: address(24),
        };
        Ok((header, &rest[..rest.len().min(usize::from(payload_length))]))
    }
}
