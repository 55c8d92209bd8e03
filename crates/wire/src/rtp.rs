//! The RTP header (RFC 3550 §5.1).

use crate::error::{ParseError, after, leading};

const NAME: &str = "RTP";

/// An RTP header. Contributing sources and header extensions are skipped when one is read, and
/// none is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtpHeader {
    /// The marker bit: for video, the last packet of a frame.
    pub marker: bool,
    /// The payload type, below 128.
    pub payload_type: u8,
    /// The sequence number.
    pub sequence: u16,
    /// The sampling time, in units of the payload's clock.
    pub timestamp: u32,
    /// The synchronisation source.
    pub ssrc: u32,
}

impl RtpHeader {
    /// Bytes of a header that is written.
    pub const LENGTH: usize = 12;

    /// The header as bytes.
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0] = 2 << 6;
        bytes[1] = u8::from(self.marker) << 7 | self.payload_type & 0x7F;
        bytes[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..].copy_from_slice(&self.ssrc.to_be_bytes());
        bytes
    }

    /// Reads the header at the start of `packet`, and returns it with the bytes that follow. The
    /// padding of a packet is among these bytes, because a capture may have cut off its length.
    ///
    /// # Errors
    /// If the header is cut short, or the version is not 2.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let bytes: &[u8; Self::LENGTH] = leading(NAME, packet)?;
        let version = bytes[0] >> 6;
        if version != 2 {
            return Err(ParseError::Malformed { header: NAME, field: "version", value: version.into() });
        }
        let mut length = Self::LENGTH + 4 * usize::from(bytes[0] & 0x0F);
        if bytes[0] & 0x10 != 0 {
            let extension: &[u8; 4] = leading(NAME, after(NAME, packet, length)?)?;
            length += 4 + 4 * usize::from(u16::from_be_bytes([extension[2], extension[3]]));
        }
        let header = Self {
            marker: bytes[1] & 0x80 != 0,
            payload_type: bytes[1] & 0x7F,
            sequence: u16::from_be_bytes([bytes[2], bytes[3]]),
            timestamp: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            ssrc: u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
        };
        Ok((header, after(NAME, packet, length)?))
    }

    /// Reads a whole packet: what follows the header is without the padding.
    ///
    /// # Errors
    /// As [`Self::parse`], and if the padding is longer than what follows the header.
    pub fn parse_all(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (header, rest) = Self::parse(packet)?;
        if packet[0] & 0x20 == 0 {
            return Ok((header, rest));
        }
        // The last byte of the padding is its length.
        let padding = rest.last().copied().unwrap_or_default();
        let length = rest.len().checked_sub(padding.into()).filter(|_| padding > 0);
        let malformed = ParseError::Malformed { header: NAME, field: "padding", value: padding.into() };
        length.map(|length| (header, &rest[..length])).ok_or(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let header = RtpHeader { marker: true, payload_type: 96, sequence: 513, timestamp: 90_000, ssrc: 0x0A0B_0C0D };
        let bytes = header.to_bytes();
        assert_eq!(bytes, [0x80, 0xE0, 2, 1, 0, 1, 0x5F, 0x90, 10, 11, 12, 13]);
        assert_eq!(RtpHeader::parse(&[&bytes[..], b"media"].concat()), Ok((header, &b"media"[..])));
    }

    #[test]
    fn contributing_sources_and_extensions_are_skipped() {
        let mut bytes = RtpHeader::default().to_bytes().to_vec();
        bytes[0] |= 0x10 | 2;
        bytes.extend([0; 8]);
        bytes.extend([0xBE, 0xDE, 0, 1, 1, 2, 3, 4, 7]);
        assert_eq!(RtpHeader::parse(&bytes), Ok((RtpHeader::default(), &[7][..])));
        bytes.truncate(22);
        assert!(matches!(RtpHeader::parse(&bytes), Err(ParseError::Truncated { .. })));
        bytes[0] = 0x40;
        assert!(matches!(RtpHeader::parse(&bytes), Err(ParseError::Malformed { field: "version", value: 1, .. })));
    }

    #[test]
    fn padding_of_a_whole_packet_is_no_content() {
        let mut bytes = [&RtpHeader::default().to_bytes()[..], &[7, 0, 0, 3]].concat();
        assert_eq!(RtpHeader::parse_all(&bytes), Ok((RtpHeader::default(), &[7, 0, 0, 3][..])));
        bytes[0] |= 0x20;
        assert_eq!(RtpHeader::parse_all(&bytes), Ok((RtpHeader::default(), &[7][..])));
        for padding in [0, 5] {
            bytes[15] = padding;
            assert!(matches!(RtpHeader::parse_all(&bytes), Err(ParseError::Malformed { field: "padding", .. })));
        }
    }
}
