//! Common parts of both versions of IP.

use std::net::IpAddr;

use airpath_core::Ecn;

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
