//! IPv4 (RFC 791) and IPv6 with its extension headers (RFC 8200).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airpath_core::{Ecn, Instant};
use airpath_wire::ip::Protocol;

use super::fragments::{Fragment, Fragments, Key};
use super::part::Part;
use crate::skipped::{Cause, Counts};

/// IPv4 in IP (RFC 2003).
pub(super) const IPV4_IN_IP: Protocol = Protocol(4);
/// IPv6 in IP (RFC 4213 §3).
pub(super) const IPV6_IN_IP: Protocol = Protocol(41);

// Extension headers (RFC 8200 §4.1), as IANA's registry has them.
const HOP_BY_HOP: Protocol = Protocol(0);
const ROUTING: Protocol = Protocol(43);
const FRAGMENT: Protocol = Protocol(44);
const AUTHENTICATION: Protocol = Protocol(51);
const DESTINATION_OPTIONS: Protocol = Protocol(60);
const MOBILITY: Protocol = Protocol(135);
const HOST_IDENTITY: Protocol = Protocol(139);
const SHIM6: Protocol = Protocol(140);

/// Bits of the word that holds IPv4's fragment offset.
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1FFF;

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

/// Decodes the packet that begins here, of either version, reassembled from its fragments.
#[inline]
pub(super) fn packet<'a>(
    now: Instant,
    content: Part<'a>,
    fragments: &'a mut Fragments,
    skipped: &mut Counts,
) -> Result<Packet<'a>, Cause> {
    let [first] = content.leading()?;
    match first >> 4 {
        4 => version_4(now, content, fragments, skipped),
        6 => version_6(now, content, fragments, skipped),
        _ => Err(Cause::Malformed),
    }
}

#[inline]
fn version_4<'a>(
    now: Instant,
    content: Part<'a>,
    fragments: &'a mut Fragments,
    skipped: &mut Counts,
) -> Result<Packet<'a>, Cause> {
    let header: &[u8; 20] = content.leading()?;
    let header_length = usize::from(header[0] & 0x0F) * 4;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let total_length = usize::from(word(2));
    let content = match total_length {
        // A packet that the host's interface will segment may have no length yet.
        0 => content,
        total => content.with_length(total),
    };
    if header_length < 20 || header_length > content.length {
        return Err(Cause::Malformed);
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    let mut packet = Packet {
        source: address(12),
        destination: address(16),
        identification: Some(word(4)),
        time_to_live: header[8],
        ecn: Ecn::from_bits(header[1]),
        protocol: Protocol(header[9]),
        payload: content.after(header_length)?,
    };
    if word(6) & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0 {
        let fragment = Fragment {
            offset: usize::from(word(6) & FRAGMENT_OFFSET) * 8,
            is_last: word(6) & MORE_FRAGMENTS == 0,
            protocol: packet.protocol,
            payload: packet.payload,
        };
        let key = Key {
            source: packet.source,
            destination: packet.destination,
            identification: word(4).into(),
            protocol: packet.protocol,
        };
        (packet.protocol, packet.payload) = fragments.add(now, key, fragment, skipped)?;
    }
    if packet.protocol == AUTHENTICATION {
        authenticated(&mut packet)?;
    }
    Ok(packet)
}

fn version_6<'a>(
    now: Instant,
    content: Part<'a>,
    fragments: &'a mut Fragments,
    skipped: &mut Counts,
) -> Result<Packet<'a>, Cause> {
    let header: &[u8; 40] = content.leading()?;
    let content = content.after(40)?;
    let payload_length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes are an address");
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let mut packet = Packet {
        source: address(8),
        destination: address(24),
        identification: None,
        time_to_live: header[7],
        // The traffic class lies across the first two bytes.
        ecn: Ecn::from_bits(header[1] >> 4),
        protocol: Protocol(header[6]),
        payload: match payload_length {
            // A jumbogram (RFC 2675), or a packet that the interface will segment.
            0 => content,
            length => content.with_length(length),
        },
    };
    if packet.protocol == Protocol::TCP || packet.protocol == Protocol::UDP {
        return Ok(packet);
    }
    extensions(&mut packet)?;
    if packet.protocol != FRAGMENT {
        return Ok(packet);
    }
    let header: &[u8; 8] = packet.payload.leading()?;
    let place = u16::from_be_bytes([header[2], header[3]]);
    let rest = packet.payload.after(8)?;
    // A packet in a single fragment is not reassembled with others (RFC 6946 §4).
    if place & 0xFFF9 == 0 {
        (packet.protocol, packet.payload) = (Protocol(header[0]), rest);
    } else {
        let fragment = Fragment {
            offset: usize::from(place & 0xFFF8),
            is_last: place & 1 == 0,
            protocol: Protocol(header[0]),
            payload: rest,
        };
        let key = Key {
            source: packet.source,
            destination: packet.destination,
            identification: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            protocol: Protocol::default(),
        };
        (packet.protocol, packet.payload) = fragments.add(now, key, fragment, skipped)?;
    }
    extensions(&mut packet)?;
    // No host sends a fragment inside a fragment.
    if packet.protocol == FRAGMENT { Err(Cause::Malformed) } else { Ok(packet) }
}

/// Skips extension headers, up to the fragment header. Each has eight bytes at least.
fn extensions(packet: &mut Packet<'_>) -> Result<(), Cause> {
    loop {
        match packet.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
                let [next, length] = *packet.payload.leading()?;
                // In units of eight bytes, without the first.
                let length = (usize::from(length) + 1) * 8;
                (packet.protocol, packet.payload) = (Protocol(next), packet.payload.after(length)?);
            }
            AUTHENTICATION => authenticated(packet)?,
            _ => return Ok(()),
        }
    }
}

/// Skips an authentication header (RFC 4302 §2).
fn authenticated(packet: &mut Packet<'_>) -> Result<(), Cause> {
    let [next, length] = *packet.payload.leading()?;
    // In units of four bytes, without the first two.
    let length = (usize::from(length) + 2) * 4;
    (packet.protocol, packet.payload) = (Protocol(next), packet.payload.after(length)?);
    Ok(())
}
