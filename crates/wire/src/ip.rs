//! Common parts of both versions of IP.

use std::net::IpAddr;

use airpath_core::Ecn;

use crate::checksum::Sum;
use crate::error::{ParseError, leading};
use crate::ipv4::Ipv4Header;
use crate::ipv6::Ipv6Header;

pub use crate::protocol::Protocol;

/// An IP header of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpHeader {
    /// Version 4.
    V4(Ipv4Header),
    /// Version 6.
    V6(Ipv6Header),
}

impl IpHeader {
    /// Reads the header at the start of `packet`, and returns it with what follows up to the
    /// packet's own end.
    ///
    /// # Errors
    /// Where the version is neither 4 nor 6, and as [`Ipv4Header::parse`] and [`Ipv6Header::parse`]
    /// do.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let [first] = leading("IP", packet)?;
        match first >> 4 {
            4 => Ipv4Header::parse(packet).map(|(header, payload)| (Self::V4(header), payload)),
            6 => Ipv6Header::parse(packet).map(|(header, payload)| (Self::V6(header), payload)),
            version => Err(ParseError::Malformed { header: "IP", field: "version", value: version.into() }),
        }
    }

    /// Source address.
    pub const fn source(&self) -> IpAddr {
        match self {
            Self::V4(header) => IpAddr::V4(header.source),
            Self::V6(header) => IpAddr::V6(header.source),
        }
    }

    /// Destination address.
    pub const fn destination(&self) -> IpAddr {
        match self {
            Self::V4(header) => IpAddr::V4(header.destination),
            Self::V6(header) => IpAddr::V6(header.destination),
        }
    }

    /// Protocol of the payload; for IPv6 this may be an extension header.
    pub const fn protocol(&self) -> Protocol {
        match self {
            Self::V4(header) => header.protocol,
            Self::V6(header) => header.next_header,
        }
    }

    /// The ECN field.
    pub const fn ecn(&self) -> Ecn {
        match self {
            Self::V4(header) => header.ecn,
            Self::V6(header) => header.ecn,
        }
    }
}

/// Writes the ECN field (RFC 3168 §5) of the header at the start of `packet`, and the checksum of
/// an IPv4 header.
///
/// # Panics
/// If `packet` is shorter than its IP header.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    if packet[0] >> 4 == 6 {
        packet[1] = packet[1] & !0x30 | ecn.bits() << 4;
        return;
    }
    packet[1] = packet[1] & !0x03 | ecn.bits();
    let length = usize::from(packet[0] & 0x0F) * 4;
    let header = &mut packet[..length];
    header[10..12].fill(0);
    let checksum = Sum::of(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_ecn_field_is_replaced() {
        for version in [4, 6] {
            let mut packet = [0; 40];
            for (before, after) in [(Ecn::Ect0, Ecn::Ce), (Ecn::Ect1, Ecn::NotEct)] {
                let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
                let v4 = Ipv4Header {
                    dscp: 46,
                    ecn: before,
                    total_length: 40,
                    identification: 7,
                    dont_fragment: true,
                    more_fragments: false,
                    fragment_offset: 0,
                    time_to_live: 64,
                    protocol: Protocol::TCP,
                    source,
                    destination,
                };
                let v6 = Ipv6Header {
                    dscp: 46,
                    ecn: before,
                    flow_label: 0xF_1234,
                    payload_length: 0,
                    next_header: Protocol::TCP,
                    hop_limit: 64,
                    source: source.to_ipv6_mapped(),
                    destination: destination.to_ipv6_mapped(),
                };
                let mut expected = packet;
                if version == 4 {
                    v4.emit(&mut packet);
                    Ipv4Header { ecn: after, ..v4 }.emit(&mut expected);
                } else {
                    v6.emit(&mut packet);
                    Ipv6Header { ecn: after, ..v6 }.emit(&mut expected);
                }
                set_ecn(&mut packet, after);
                assert_eq!(packet, expected);
            }
        }
    }
}
