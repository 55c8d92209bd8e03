//! TCP packets as a middlebox reads and creates them.

use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};

use airpath_path::Payload;
use airpath_tcp::Segment;
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::ipv6::Ipv6Header;
use airpath_wire::segment::Route;
use airpath_wire::tcp::{Flags, Options, SackBlocks, TcpHeader};

use crate::offload::{Frame, VirtioHeader};

/// Hops that a created packet may pass.
const TIME_TO_LIVE: u8 = 64;

/// Bytes of an IPv6 header without extensions, and of the longest TCP header.
pub const MOST_HEADER: usize = Ipv6Header::LENGTH + 60;

/// Payload that fits into the largest IP packet.
pub const MOST_PAYLOAD: u32 = 65_535 - MOST_HEADER as u32;

/// Offset of the checksum in a TCP header (RFC 9293 §3.1).
const CHECKSUM: usize = 16;

/// Where TCP segments lie in their super-segment.
struct Place<'a> {
    /// The bytes of the header.
    header: &'a [u8],
    /// Payload bytes of the super-segment before them.
    before: u32,
    payload: Range<usize>,
}

fn place<'a>(frame: &Frame, packet: &'a [u8], run: &RangeInclusive<u32>) -> Option<Place<'a>> {
    if frame.protocol() != Protocol::TCP || frame.is_fragment() {
        return None;
    }
    let (first, last) = (*run.start(), *run.end());
    let start = frame.transport()?;
    let transport = packet.get(start..frame.bytes() as usize)?;
    let header_bytes = usize::from(transport.get(12)? >> 4) * 4;
    let header = transport.get(..header_bytes).filter(|header| header.len() >= TcpHeader::MIN_LENGTH)?;
    let (before, length) = match frame.segments() {
        1 => (0, (transport.len() - header_bytes) as u32),
        _ => frame.payload_of(first, last),
    };
    let first = start + header_bytes + before as usize;
    Some(Place { header, before, payload: first..first + length as usize })
}

/// Where the payload of the segments `run` of a super-segment lies in `packet`, as by [`parse`].
pub fn payload(frame: &Frame, packet: &[u8], run: &RangeInclusive<u32>) -> Option<Range<usize>> {
    place(frame, packet, run).map(|place| place.payload)
}

/// The TCP header of the segments `run` of a super-segment, as that of one segment, and where its
/// payload lies in `packet`; `None` if it is not TCP or its header is cut short. Malformed options
/// are left out, as by the flow observer.
pub fn parse(frame: &Frame, packet: &[u8], run: &RangeInclusive<u32>) -> Option<(TcpHeader, Range<usize>)> {
    let Place { header, before, payload } = place(frame, packet, run)?;
    let (fixed, options) = header.split_first_chunk::<{ TcpHeader::MIN_LENGTH }>()?;
    let (mut options, _) = Options::parse_leading(options);
    let short = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    if options.wire_length() > Options::MAX_LENGTH {
        // Blocks on a SYN have no meaning, and with the padding of airpath they would not fit.
        options.sack = SackBlocks::default();
    }
    let header = TcpHeader {
        source_port: short(0),
        destination_port: short(2),
        sequence: word(4).wrapping_add(before),
        acknowledgment: word(8),
        flags: Flags(frame.flags_of(fixed[13], *run.start(), *run.end())),
        loss_notification: fixed[12] & TcpHeader::LOSS_NOTIFICATION != 0,
        accurate_ecn: fixed[12] & TcpHeader::ACCURATE_ECN != 0,
        window: short(14),
        options,
    };
    Some((header, payload))
}

/// Writes the IP packet of a segment between the end points of `route` into `packet`, which it
/// empties first.
///
/// Returns `None` if the payload is not there, the addresses have different versions, or the packet
/// would be too large.
pub fn write(route: &Route, segment: &Segment, payload: Payload<'_>, packet: &mut Vec<u8>) -> Option<()> {
    let (tcp, pseudo_header) = write_network(route, segment, packet)?;
    let data = packet.len();
    append(segment, payload, packet)?;
    let (headers, payload) = packet.split_at_mut(data);
    segment.header.emit(&mut headers[tcp..], pseudo_header.and(payload));
    Some(())
}

/// As [`write()`], but the kernel completes the checksum, and divides the packet if there is more
/// payload than `segment_size`. Returns the offload header.
pub fn write_offloaded(
    route: &Route,
    segment: &Segment,
    segment_size: u32,
    payload: Payload<'_>,
    packet: &mut Vec<u8>,
) -> Option<VirtioHeader> {
    let virtio = write_headers(route, segment, segment_size, packet)?;
    append(segment, payload, packet)?;
    Some(virtio)
}

/// As [`write_offloaded`], without the payload.
pub fn write_headers(
    route: &Route,
    segment: &Segment,
    segment_size: u32,
    packet: &mut Vec<u8>,
) -> Option<VirtioHeader> {
    let (tcp, pseudo_header) = write_network(route, segment, packet)?;
    segment.header.emit(&mut packet[tcp..], pseudo_header);
    packet[tcp + CHECKSUM..][..2].copy_from_slice(&(!pseudo_header.checksum()).to_be_bytes());
    let mut virtio = VirtioHeader {
        flags: VirtioHeader::NEEDS_CHECKSUM,
        checksum_start: tcp as u16,
        checksum_offset: CHECKSUM as u16,
        ..VirtioHeader::default()
    };
    if segment.length > segment_size {
        let is_ipv4 = route.source.address.is_ipv4();
        virtio.gso_type = if is_ipv4 { VirtioHeader::TCP_OVER_IPV4 } else { VirtioHeader::TCP_OVER_IPV6 };
        virtio.segment_size = u16::try_from(segment_size).ok()?;
    }
    Some(virtio)
}

/// Appends the payload, if it has the length of the segment.
fn append(segment: &Segment, payload: Payload<'_>, packet: &mut Vec<u8>) -> Option<()> {
    let parts: [&[u8]; 2] = match payload {
        Payload::Bytes(parts) => parts,
        Payload::Counted => Default::default(),
    };
    let is_whole = parts[0].len() + parts[1].len() == segment.length as usize;
    is_whole.then(|| parts.iter().for_each(|part| packet.extend_from_slice(part)))
}

/// Writes the IP header, and leaves space for the TCP header. Returns where that begins, and the
/// sum of the pseudo header.
fn write_network(route: &Route, segment: &Segment, packet: &mut Vec<u8>) -> Option<(usize, Sum)> {
    let length = segment.header.wire_length() as u32 + segment.length;
    let length = u16::try_from(length).ok()?;
    packet.clear();
    let pseudo_header = match (route.source.address, route.destination.address) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            packet.resize(Ipv4Header::LENGTH, 0);
            let header = Ipv4Header {
                dscp: 0,
                ecn: segment.ecn,
                total_length: length.checked_add(Ipv4Header::LENGTH as u16)?,
                // Never fragmented, so any identification will do (RFC 6864 §4.1).
                identification: 0,
                dont_fragment: true,
                more_fragments: false,
                fragment_offset: 0,
                time_to_live: TIME_TO_LIVE,
                protocol: Protocol::TCP,
                source,
                destination,
            };
            header.emit(packet);
            Sum::pseudo_v4(source, destination, Protocol::TCP, length.into())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet.resize(Ipv6Header::LENGTH, 0);
            let header = Ipv6Header {
                dscp: 0,
                ecn: segment.ecn,
                flow_label: 0,
                payload_length: length,
                next_header: Protocol::TCP,
                hop_limit: TIME_TO_LIVE,
                source,
                destination,
            };
            header.emit(packet);
            Sum::pseudo_v6(source, destination, Protocol::TCP, length.into())
        }
        _ => return None,
    };
    let tcp = packet.len();
    packet.resize(tcp + segment.header.wire_length(), 0);
    Some((tcp, pseudo_header))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use airpath_core::{Ecn, SegmentInfo};
    use airpath_wire::segment::{Endpoint, Tunnel};
    use airpath_wire::tcp::Timestamps;

    use super::*;
    use crate::offload::{MAX_HEADER, VirtioHeader, complete_checksum};

    #[test]
    fn an_offloaded_segment_is_divided_into_those_that_it_stands_for() {
        let options = Options { timestamps: Some(Timestamps { value: 7, echo: 8 }), ..Options::default() };
        let header = TcpHeader { source_port: 80, destination_port: 50_000, options, ..TcpHeader::default() };
        let last = Flags::ACK | Flags::PSH;
        let segment = |sequence, length, flags| {
            let header = TcpHeader { sequence, flags, ..header };
            Segment { header, length, ecn: Ecn::NotEct, info: SegmentInfo::default() }
        };
        let payload: Vec<u8> = (0..2500_u32).map(|at| (at % 251) as u8).collect();
        let v4 = [Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into()];
        let v6 = [Ipv6Addr::new(0xFC00, 0, 0, 0, 0, 0, 0, 1).into(), Ipv6Addr::new(0xFC00, 0, 0, 0, 0, 0, 0, 2).into()];
        for [source, destination] in [v4, v6] {
            let [source, destination] = [source, destination].map(|address: IpAddr| Endpoint { address, port: 0 });
            let route = Route { source, destination, tunnel: Tunnel::None };
            let parts = Payload::Bytes(payload.split_at(1100).into());
            let mut packet = Vec::new();
            let whole = segment(5, 2500, last);
            let virtio = write_offloaded(&route, &whole, 1000, parts, &mut packet).expect("it can be written");
            let frame = Frame::inspect(&virtio, &packet).expect("a valid packet");
            assert_eq!(frame.segments(), 3);
            let parsed = parse(&frame, &packet, &(0..=2)).expect("it is TCP");
            assert_eq!((parsed.0, &packet[parsed.1]), (whole.header, &payload[..]));
            for (index, length, flags) in [(0, 1000, Flags::ACK), (1, 1000, Flags::ACK), (2, 500, last)] {
                let start = index * 1000;
                let part = Payload::Bytes([&payload[start as usize..(start + length) as usize], &[]]);
                let mut alone = Vec::new();
                write(&route, &segment(5 + start, length, flags), part, &mut alone).expect("it can be written");
                let mut buffer = [0; MAX_HEADER];
                let written = frame.write_segments(&packet, index..=index, Ecn::NotEct, &mut buffer);
                let mut divided = [written.bytes, &packet[written.payload]].concat();
                complete_checksum(&written.header, &mut divided);
                if source.address.is_ipv4() {
                    // The packets have increasing identifications.
                    divided[4..6].copy_from_slice(&alone[4..6]);
                    divided[10..12].copy_from_slice(&alone[10..12]);
                }
                assert_eq!(divided, alone, "segment {index}");
            }
        }
    }

    #[test]
    fn what_is_written_is_parsed_and_has_valid_checksums() {
        let options = Options { timestamps: Some(Timestamps { value: 7, echo: 8 }), ..Options::default() };
        let header = TcpHeader { source_port: 80, destination_port: 50_000, sequence: 5, ..TcpHeader::default() };
        let header = TcpHeader { options, loss_notification: true, ..header };
        let v4 = [Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into()];
        let v6 = [Ipv6Addr::new(0xFC00, 0, 0, 0, 0, 0, 0, 1).into(), Ipv6Addr::new(0xFC00, 0, 0, 0, 0, 0, 0, 2).into()];
        for ([source, destination], size) in [(v4, 20), (v6, 40)] {
            let [source, destination] = [source, destination].map(|address: IpAddr| Endpoint { address, port: 0 });
            let route = Route { source, destination, tunnel: Tunnel::None };
            let segment = Segment { header, length: 5, ecn: Ecn::Ect0, info: SegmentInfo::default() };
            let mut packet = Vec::new();
            write(&route, &segment, Payload::Bytes([b"abc", b"de"]), &mut packet).expect("it can be written");
            let frame = Frame::inspect(&VirtioHeader::default(), &packet).expect("a valid packet");
            assert_eq!((frame.ecn(), frame.bytes()), (Ecn::Ect0, segment.wire_size(size)));
            let (parsed, payload) = parse(&frame, &packet, &(0..=0)).expect("it is TCP");
            assert_eq!((parsed, &packet[payload]), (header, &b"abcde"[..]));
            let transport = &packet[size as usize..];
            let length = transport.len() as u32;
            let sum = match (source.address, destination.address) {
                (IpAddr::V4(source), IpAddr::V4(destination)) => {
                    Sum::pseudo_v4(source, destination, Protocol::TCP, length)
                }
                (IpAddr::V6(source), IpAddr::V6(destination)) => {
                    Sum::pseudo_v6(source, destination, Protocol::TCP, length)
                }
                _ => panic!("one version"),
            };
            assert!(sum.and(transport).holds());
            assert_eq!(write(&route, &segment, Payload::Counted, &mut packet), None, "the payload is not there");
        }
    }
}
