//! TCP (RFC 9293) and UDP (RFC 768).

use std::net::IpAddr;

use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::tcp::{Flags, Options};

use super::network::Packet;
use super::part::Part;
use crate::read::Record;
use crate::skipped::Cause;
use airpath_wire::segment::{Datagram, Endpoint, Route, Segment, Tunnel};

const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

#[inline(always)]
pub(super) fn segment<'a>(record: &Record<'_>, packet: &Packet<'a>, tunnel: Tunnel) -> Result<Segment<'a>, Cause> {
    // By reference: a copy would be read in other widths than the parts were written, which stalls
    // the processor. So would options that two paths write into one place.
    let whole = &packet.payload;
    let header: &[u8; TCP_HEADER] = whole.leading()?;
    let header_length = usize::from(header[12] >> 4) * 4;
    if header_length < TCP_HEADER || header_length > whole.length {
        return Err(Cause::Malformed);
    }
    let captured = whole.bytes.len().min(header_length);
    let is_cut = captured < header_length;
    let bytes = &whole.bytes[TCP_HEADER..captured];
    let mut segment = without_options(record, packet, tunnel, header, whole.beyond(header_length));
    segment.options_cut = is_cut;
    match Options::parse_usual(bytes) {
        Some(timestamps) => segment.options = timestamps.into(),
        None => {
            let (options, malformed) = Options::parse_leading(bytes);
            segment.options = options;
            segment.options_cut |= malformed.is_some();
        }
    }
    Ok(segment)
}

/// The segment without its options.
#[inline(always)]
fn without_options<'a>(
    record: &Record<'_>,
    packet: &Packet<'a>,
    tunnel: Tunnel,
    header: &[u8; TCP_HEADER],
    payload: Part<'a>,
) -> Segment<'a> {
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let whole = &packet.payload;
    Segment {
        frame: record.frame,
        time: record.time,
        route: route(packet, short(0), short(2), tunnel),
        identification: packet.identification,
        time_to_live: packet.time_to_live,
        ecn: packet.ecn,
        sequence: word(4),
        acknowledgment: word(8),
        flags: Flags(header[13]),
        window: short(14),
        urgent: short(18),
        options: Options::default(),
        options_cut: false,
        length: payload.length as u32,
        captured: payload.bytes.len() as u32,
        payload: payload.bytes,
        checksum: whole.is_whole().then(|| pseudo_header(packet, Protocol::TCP).and(whole.bytes).holds()),
    }
}

/// The datagram, and its payload as a part of the frame.
#[inline]
pub(super) fn datagram<'a>(
    record: &Record<'_>,
    packet: &Packet<'a>,
    tunnel: Tunnel,
) -> Result<(Datagram<'a>, Part<'a>), Cause> {
    let header: &[u8; UDP_HEADER] = packet.payload.leading()?;
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let whole = match usize::from(short(4)) {
        // A packet that the interface will segment, or a jumbogram (RFC 2675 §4).
        0 => packet.payload,
        length if (UDP_HEADER..=packet.payload.length).contains(&length) => packet.payload.with_length(length),
        _ => return Err(Cause::Malformed),
    };
    let payload = whole.after(UDP_HEADER)?;
    let datagram = Datagram {
        frame: record.frame,
        time: record.time,
        route: route(packet, short(0), short(2), tunnel),
        time_to_live: packet.time_to_live,
        ecn: packet.ecn,
        length: payload.length as u32,
        payload: payload.bytes,
    };
    Ok((datagram, payload))
}

#[inline]
const fn route(packet: &Packet<'_>, source: u16, destination: u16, tunnel: Tunnel) -> Route {
    Route { source: endpoint(&packet.source, source), destination: endpoint(&packet.destination, destination), tunnel }
}

/// Copies an address version by version, in the widths in which it was written.
#[inline]
const fn endpoint(address: &IpAddr, port: u16) -> Endpoint {
    match address {
        IpAddr::V4(address) => Endpoint { address: IpAddr::V4(*address), port },
        IpAddr::V6(address) => Endpoint { address: IpAddr::V6(*address), port },
    }
}

fn pseudo_header(packet: &Packet<'_>, protocol: Protocol) -> Sum {
    let length = packet.payload.length as u32;
    match (packet.source, packet.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Sum::pseudo_v4(source, destination, protocol, length),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Sum::pseudo_v6(source, destination, protocol, length),
        _ => unreachable!("one packet has addresses of one version"),
    }
}
