//! IPv4 (RFC 791) and IPv6 (RFC 8200).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airpath_core::Ecn;
use airpath_wire::ip::Protocol;

use super::part::Part;
use crate::passed_over::Cause;

/// IPv4 in IP (RFC 2003).
pub(super) const IPV4_IN_IP: Protocol = Protocol(4);
/// IPv6 in IP (RFC 4213 §3).
pub(super) const IPV6_IN_IP: Protocol = Protocol(41);

/// An IP packet.
#[derive(Debug)]
pub(super) struct Packet<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub identification: Option<u16>,
    pub time_to_live: u8,
    pub ecn: Ecn,
    pub protocol: Protocol,
    pub payload: Part<'a>,
}

/// The packet that begins here, of either version.
#[inline]
pub(super) fn packet(content: Part<'_>) -> Result<Packet<'_>, Cause> {
    let [first] = content.leading()?;
    match first >> 4 {
        4 => version_4(content),
        6 => version_6(content),
        _ => Err(Cause::Malformed),
    }
}

#[inline]
fn version_4(content: Part<'_>) -> Result<Packet<'_>, Cause> {
    let header: &[u8; 20] = content.leading()?;
    let header_length = usize::from(header[0] & 0x0F) * 4;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let content = match usize::from(word(2)) {
        // What a host hands to an interface that cuts it into packets may have no length yet.
        0 => content,
        total => content.told(total),
    };
    if header_length < 20 || header_length > content.length {
        return Err(Cause::Malformed);
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    Ok(Packet {
        source: address(12),
        destination: address(16),
        identification: Some(word(4)),
        time_to_live: header[8],
        ecn: Ecn::from_bits(header[1]),
        protocol: Protocol(header[9]),
        payload: content.after(header_length)?,
    })
}

fn version_6(content: Part<'_>) -> Result<Packet<'_>, Cause> {
    let header: &[u8; 40] = content.leading()?;
    let content = content.after(40)?;
    let payload = match u16::from_be_bytes([header[4], header[5]]) {
        // A jumbogram (RFC 2675), or what an interface will cut into packets.
        0 => content,
        length => content.told(length.into()),
    };
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes are an address");
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Ok(Packet {
        source: address(8),
        destination: address(24),
        identification: None,
        time_to_live: header[7],
        // The traffic class lies across the first two bytes.
        ecn: Ecn::from_bits(header[1] >> 4),
        protocol: Protocol(header[6]),
        payload,
    })
}
