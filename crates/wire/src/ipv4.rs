//! The IPv4 header (RFC 791 §3.1), its second byte as RFC 2474 and RFC 3168 define it.

use std::net::Ipv4Addr;

use airpath_core::Ecn;

use crate::checksum::Sum;
use crate::error::{ParseError, after, leading};
use crate::protocol::Protocol;

const NAME: &str = "IPv4";

/// Bits of the word that holds the fragment offset.
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1FFF;

/// Version 4, and a header of five words.
const VERSION_AND_WORDS: u8 = 0x45;

/// An IPv4 header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// Differentiated services code point, six bits.
    pub dscp: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Bytes of header and payload. A header that is read keeps the number as sent, though its
    /// options are not kept.
    pub total_length: u16,
    /// Identification of the fragments of one packet.
    pub identification: u16,
    /// Routers may not fragment it.
    pub dont_fragment: bool,
    /// It is not the last fragment.
    pub more_fragments: bool,
    /// Place of this fragment's payload, in units of 8 bytes; 13 bits.
    pub fragment_offset: u16,
    /// Remaining hops.
    pub time_to_live: u8,
    /// Protocol of the payload.
    pub protocol: Protocol,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Ipv4Header {
    /// Bytes of the header.
    pub const LENGTH: usize = 20;

    /// Writes the header with its checksum into the first [`Self::LENGTH`] bytes of `buffer`. Bits
    /// beyond the width of a field are not sent.
    ///
    /// # Panics
    /// If `buffer` is shorter than that.
    pub fn emit(&self, buffer: &mut [u8]) {
        let header = buffer.first_chunk_mut::<{ Self::LENGTH }>().expect("the buffer has room for an IPv4 header");
        let mut fragment = self.fragment_offset & FRAGMENT_OFFSET;
        if self.dont_fragment {
            fragment |= DONT_FRAGMENT;
        }
        if self.more_fragments {
            fragment |= MORE_FRAGMENTS;
        }
        header[0] = VERSION_AND_WORDS;
        header[1] = self.dscp << 2 | self.ecn.bits();
        header[2..4].copy_from_slice(&self.total_length.to_be_bytes());
        header[4..6].copy_from_slice(&self.identification.to_be_bytes());
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
        header[8] = self.time_to_live;
        header[9] = self.protocol.0;
        header[10..12].fill(0);
        header[12..16].copy_from_slice(&self.source.octets());
        header[16..20].copy_from_slice(&self.destination.octets());
        let checksum = Sum::of(header).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Reads the header at the start of `packet`, and returns it with the payload: what follows up
    /// to the total length, or up to the end of `packet` where a capture kept less. Options are
    /// skipped.
    ///
    /// # Errors
    /// Where the header is cut short, its version is not 4, or a length is smaller than the header.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let malformed = |field, value| ParseError::Malformed { header: NAME, field, value };
        let bytes: &[u8; Self::LENGTH] = leading(NAME, packet)?;
        if bytes[0] >> 4 != 4 {
            return Err(malformed("version", u32::from(bytes[0] >> 4)));
        }
        let words = bytes[0] & 0x0F;
        let header_length = usize::from(words) * 4;
        if header_length < Self::LENGTH {
            return Err(malformed("header length in words", words.into()));
        }
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let address = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
        let total_length = word(2);
        if usize::from(total_length) < header_length {
            return Err(malformed("total length", total_length.into()));
        }
        let rest = after(NAME, packet, header_length)?;
        let payload = &rest[..rest.len().min(usize::from(total_length) - header_length)];
        let header = Self {
            dscp: bytes[1] >> 2,
            ecn: Ecn::from_bits(bytes[1]),
            total_length,
            identification: word(4),
            dont_fragment: word(6) & DONT_FRAGMENT != 0,
            more_fragments: word(6) & MORE_FRAGMENTS != 0,
            fragment_offset: word(6) & FRAGMENT_OFFSET,
            time_to_live: bytes[8],
            protocol: Protocol(bytes[9]),
            source: address(12),
            destination: address(16),
        };
        Ok((header, payload))
    }
}
