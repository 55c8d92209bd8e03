//! ICMP echo messages, for IPv4 (RFC 792) and IPv6 (RFC 4443 §4), and errors about TCP segments.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::Sum;
use crate::error::{ParseError, leading};
use crate::protocol::Protocol;
use crate::segment::Endpoint;

/// An ICMP error about a TCP segment, which it quotes at least to the sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// What is wrong.
    pub kind: IcmpErrorKind,
    /// Source of the segment.
    pub source: Endpoint,
    /// Destination of the segment.
    pub destination: Endpoint,
    /// Sequence number of the segment.
    pub sequence: u32,
    /// Bytes of the IP header of the segment.
    pub ip_header: u32,
}

/// What an ICMP error reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpErrorKind {
    /// The packet is larger than the MTU of a link.
    TooBig {
        /// The MTU in bytes.
        mtu: u32,
    },
    /// The destination cannot be reached, or is prohibited.
    Unreachable,
}

impl IcmpError {
    /// The least MTU that a router may report: an IPv6 link has at least 1280 bytes (RFC 8200 §5).
    /// For IPv4 it is the value of Linux (`ip_rt_min_pmtu`), since forged errors report less.
    const LEAST_MTU: (u32, u32) = (552, 1280);

    /// Reads an ICMP message for IPv4 (RFC 792, RFC 1191 §4); `None` if it is no such error. The
    /// caller checks the checksum.
    pub fn parse_v4(message: &[u8]) -> Option<Self> {
        /// RFC 1191 §5: for routers that do not report the MTU.
        const UNKNOWN_MTU: u32 = 576;
        let (header, quoted) = message.split_first_chunk::<8>()?;
        let kind = match header[..2] {
            [3, 4] => {
                let mtu = u32::from(u16::from_be_bytes([header[6], header[7]]));
                IcmpErrorKind::TooBig { mtu: if mtu == 0 { UNKNOWN_MTU } else { mtu.max(Self::LEAST_MTU.0) } }
            }
            [3, _] => IcmpErrorKind::Unreachable,
            _ => return None,
        };
        let fixed = quoted.first_chunk::<20>()?;
        let length = usize::from(fixed[0] & 15) * 4;
        let is_first_fragment = fixed[6] & 0x1F == 0 && fixed[7] == 0;
        if fixed[0] >> 4 != 4 || length < 20 || !is_first_fragment || fixed[9] != Protocol::TCP.0 {
            return None;
        }
        let address = |at: usize| IpAddr::V4(Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]));
        Self::quoting(kind, (address(12), address(16)), quoted, length)
    }

    /// Reads an ICMPv6 message (RFC 4443 §3.1, §3.2), as [`Self::parse_v4`] does. Quoted packets
    /// with extension headers are not read.
    pub fn parse_v6(message: &[u8]) -> Option<Self> {
        let (header, quoted) = message.split_first_chunk::<8>()?;
        let kind = match header[0] {
            1 => IcmpErrorKind::Unreachable,
            2 => {
                let mtu = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
                IcmpErrorKind::TooBig { mtu: mtu.max(Self::LEAST_MTU.1) }
            }
            _ => return None,
        };
        let fixed = quoted.first_chunk::<40>()?;
        if fixed[0] >> 4 != 6 || fixed[6] != Protocol::TCP.0 {
            return None;
        }
        let address = |bytes: &[u8]| bytes.first_chunk::<16>().map(|bytes| IpAddr::V6(Ipv6Addr::from(*bytes)));
        Self::quoting(kind, (address(&fixed[8..])?, address(&fixed[24..])?), quoted, fixed.len())
    }

    fn quoting(kind: IcmpErrorKind, addresses: (IpAddr, IpAddr), quoted: &[u8], ip_header: usize) -> Option<Self> {
        let tcp = quoted.get(ip_header..)?.first_chunk::<8>()?;
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        Some(Self {
            kind,
            source: Endpoint { address: addresses.0, port: port(0) },
            destination: Endpoint { address: addresses.1, port: port(2) },
            sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            ip_header: ip_header as u32,
        })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// "Fragmentation needed" of 1,300 bytes about 10.0.0.1:49152 → 10.0.0.2:80, sequence number
    /// 0x01020304, as the kernel of a router sends it (the first bytes).
    const TOO_BIG: [u8; 36] = [
        3, 4, 0, 0, 0, 0, 5, 20, 0x45, 0, 5, 220, 0, 0, 0x40, 0, 63, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xC0, 0, 0, 80,
        1, 2, 3, 4,
    ];

    #[test]
    fn errors_about_segments_are_read() {
        let error = IcmpError::parse_v4(&TOO_BIG).expect("it is one");
        assert_eq!(error.kind, IcmpErrorKind::TooBig { mtu: 1300 });
        assert_eq!((error.source.port, error.destination.port), (49_152, 80));
        assert_eq!((error.source.address.to_string().as_str(), error.sequence), ("10.0.0.1", 0x0102_0304));
        let with = |at: usize, byte: u8| {
            let mut message = TOO_BIG;
            message[at] = byte;
            IcmpError::parse_v4(&message)
        };
        assert_eq!(with(1, 3).map(|error| error.kind), Some(IcmpErrorKind::Unreachable), "port unreachable");
        assert_eq!(
            with(6, 0).map(|error| error.kind),
            Some(IcmpErrorKind::TooBig { mtu: 552 }),
            "20 bytes are too few"
        );
        assert_eq!(with(0, 11), None, "time exceeded");
        assert_eq!(with(17, 17), None, "about UDP");
        assert_eq!(with(15, 1), None, "about a later fragment");
        assert_eq!(with(8, 0x4F), None, "the quoted header is cut short");
        for length in 0..TOO_BIG.len() {
            assert_eq!(IcmpError::parse_v4(&TOO_BIG[..length]), None);
        }
    }

    #[test]
    fn an_ipv6_path_has_at_least_1280_bytes() {
        let mut message = [0; 56];
        (message[0], message[8], message[14]) = (2, 0x60, 6);
        message[6..8].copy_from_slice(&[5, 0]);
        let error = IcmpError::parse_v6(&message).expect("it is one");
        assert_eq!((error.kind, error.ip_header), (IcmpErrorKind::TooBig { mtu: 1280 }, 40));
        message[6..8].copy_from_slice(&[0, 68]);
        assert_eq!(IcmpError::parse_v6(&message), Some(error));
        assert_eq!(IcmpError::parse_v6(&message[..55]), None);
    }
}
