use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airpath_core::{Ecn, Instant, Span};
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::ipv6::Ipv6Header;
use airpath_wire::segment::{Endpoint, Route};
use airpath_wire::tcp::{Flags, TcpHeader, Timestamps};
use airpath_wire::udp::UdpHeader;

use super::*;
use crate::read::LinkType;

mod fragments;
mod links;
mod properties;
mod tunnels;

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SOURCE_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1);
const DESTINATION_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 2);

fn header() -> TcpHeader {
    let mut header = TcpHeader { source_port: 80, destination_port: 1024, sequence: 1, ..TcpHeader::default() };
    header.flags = Flags::ACK | Flags::PSH;
    header.options.timestamps = Some(Timestamps { value: 3, echo: 4 });
    header
}

/// A TCP segment, for IPv4.
fn segment(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; header().wire_length()];
    let length = bytes.len() + payload.len();
    let pseudo = Sum::pseudo_v4(SOURCE, DESTINATION, Protocol::TCP, length as u32);
    header().emit(&mut bytes, pseudo.and(payload));
    [&bytes, payload].concat()
}

/// The same for IPv6.
fn segment_6(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; header().wire_length()];
    let length = bytes.len() + payload.len();
    let pseudo = Sum::pseudo_v6(SOURCE_6, DESTINATION_6, Protocol::TCP, length as u32);
    header().emit(&mut bytes, pseudo.and(payload));
    [&bytes, payload].concat()
}

fn ipv4(protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    fragment(protocol, payload, 0, false)
}

/// A fragment at `offset` bytes.
fn fragment(protocol: Protocol, payload: &[u8], offset: usize, more_fragments: bool) -> Vec<u8> {
    let mut bytes = vec![0; Ipv4Header::LENGTH];
    Ipv4Header {
        dscp: 0,
        ecn: Ecn::Ect0,
        total_length: (Ipv4Header::LENGTH + payload.len()) as u16,
        identification: 7,
        dont_fragment: false,
        more_fragments,
        fragment_offset: (offset / 8) as u16,
        time_to_live: 64,
        protocol,
        source: SOURCE,
        destination: DESTINATION,
    }
    .emit(&mut bytes);
    [&bytes, payload].concat()
}

fn ipv6(next_header: Protocol, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; Ipv6Header::LENGTH];
    Ipv6Header {
        dscp: 0,
        ecn: Ecn::Ce,
        flow_label: 0x12345,
        payload_length: payload.len() as u16,
        next_header,
        hop_limit: 63,
        source: SOURCE_6,
        destination: DESTINATION_6,
    }
    .emit(&mut bytes);
    [&bytes, payload].concat()
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; UdpHeader::LENGTH];
    let length = (UdpHeader::LENGTH + payload.len()) as u16;
    UdpHeader { source_port: 5000, destination_port: port, length }.emit(&mut bytes, Sum::default());
    [&bytes, payload].concat()
}

/// A segment in a packet, which is what all the link layers carry here.
fn packet(payload: &[u8]) -> Vec<u8> {
    ipv4(Protocol::TCP, &segment(payload))
}

/// Decodes `bytes`, the first of a frame of `original` bytes, to the segment and its payload.
fn decode_cut(
    decoder: &mut Decoder,
    time: Instant,
    link_type: LinkType,
    bytes: &[u8],
    original: usize,
) -> Result<(Segment<'static>, Vec<u8>), Cause> {
    let original_length = original as u32;
    let record = Record { frame: 9, time, link_type, interface: 0, bytes, original_length };
    match decoder.decode(&record) {
        Decoded::Segment(segment) => Ok((Segment { payload: &[], ..segment }, segment.payload.to_vec())),
        Decoded::Skipped(cause) => Err(cause),
        Decoded::Datagram(datagram) => panic!("{datagram:?} is no segment"),
    }
}

fn decode(link_type: LinkType, bytes: &[u8]) -> Result<(Segment<'static>, Vec<u8>), Cause> {
    decode_cut(&mut Decoder::default(), Instant::from_nanos(5), link_type, bytes, bytes.len())
}

/// Checks that a frame holds the segment of [`packet`] with this payload.
fn assert_holds(link_type: LinkType, frame: &[u8], payload: &[u8]) {
    let (segment, found) = decode(link_type, frame).expect("it holds a segment");
    assert_eq!((segment.length as usize, &found[..]), (payload.len(), payload));
    assert_eq!((segment.checksum, segment.options), (Some(true), header().options));
}

#[test]
fn a_whole_segment() {
    let (segment, payload) = decode(LinkType::RAW, &packet(b"hello")).expect("it is a segment");
    let end = |address, port| Endpoint { address: IpAddr::V4(address), port };
    let route = Route { source: end(SOURCE, 80), destination: end(DESTINATION, 1024), tunnel: Tunnel::None };
    assert_eq!(segment.route, route);
    assert_eq!((segment.frame, segment.time, segment.identification), (9, Instant::from_nanos(5), Some(7)));
    assert_eq!((segment.time_to_live, segment.ecn), (64, Ecn::Ect0));
    assert_eq!((segment.sequence, segment.flags, segment.options), (1, Flags::ACK | Flags::PSH, header().options));
    assert_eq!((segment.length, &payload[..], segment.checksum), (5, &b"hello"[..], Some(true)));
    assert!(!segment.options_cut);
}

#[test]
fn a_whole_segment_over_ipv6() {
    let bytes = ipv6(Protocol::TCP, &segment_6(b"hello"));
    let (segment, payload) = decode(LinkType::IPV6, &bytes).expect("it is a segment");
    assert_eq!(segment.route.source, Endpoint { address: IpAddr::V6(SOURCE_6), port: 80 });
    assert_eq!((segment.identification, segment.time_to_live, segment.ecn), (None, 63, Ecn::Ce));
    assert_eq!((segment.length, &payload[..], segment.checksum), (5, &b"hello"[..], Some(true)));
}

#[test]
fn extension_headers_are_skipped() {
    let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let destination_options = [[51, 1, 1, 12, 0, 0, 0, 0], [0; 8]].concat();
    let authentication = [[6, 4, 0, 0], [0; 4], [0; 4], [0; 4], [0; 4], [0; 4]].concat();
    let headers = [&hop_by_hop[..], &destination_options, &authentication].concat();
    let bytes = ipv6(Protocol(0), &[headers, segment_6(b"hello")].concat());
    assert_holds(LinkType::RAW, &bytes, b"hello");
    assert_eq!(decode(LinkType::RAW, &ipv6(Protocol(0), &hop_by_hop)), Err(Cause::Malformed), "nothing follows");
    assert_eq!(decode(LinkType::RAW, &ipv6(Protocol(59), b"")), Err(Cause::OtherTransport), "no next header");
    let authentication = [[6, 4, 0, 0], [0; 4], [0; 4], [0; 4], [0; 4], [0; 4]].concat();
    let bytes = ipv4(Protocol(51), &[authentication, segment(b"hello")].concat());
    assert_holds(LinkType::RAW, &bytes, b"hello");
}

#[test]
fn options_of_ipv4_are_skipped() {
    let mut bytes = packet(b"hello");
    bytes.splice(20..20, [1, 1, 1, 0]);
    bytes[0] = 0x46;
    bytes[3] += 4;
    assert_holds(LinkType::RAW, &bytes, b"hello");
}

#[test]
fn a_wrong_checksum_is_reported() {
    let mut bytes = packet(b"hello");
    *bytes.last_mut().expect("there is a payload") ^= 1;
    let (segment, _) = decode(LinkType::RAW, &bytes).expect("it is a segment");
    assert_eq!(segment.checksum, Some(false));
}

#[test]
fn a_snap_length_cuts_the_payload_then_options_then_headers() {
    let bytes = packet(b"hello");
    let cut =
        |kept: usize| decode_cut(&mut Decoder::default(), Instant::ZERO, LinkType::RAW, &bytes[..kept], bytes.len());
    let (segment, payload) = cut(54).expect("the headers are there");
    assert_eq!((segment.length, &payload[..], segment.checksum), (5, &b"he"[..], None));
    let (segment, payload) = cut(51).expect("what counts is there");
    assert_eq!((segment.length, &payload[..], segment.options_cut), (5, &b""[..], true));
    assert_eq!(segment.options.timestamps, None);
    assert_eq!(cut(39), Err(Cause::CutShort));
    assert_eq!(cut(0), Err(Cause::CutShort));
}

#[test]
fn options_before_a_malformed_one_are_kept() {
    let mut bytes = packet(b"");
    // The maximum segment size, then one that claims to go on beyond the header.
    bytes[40..52].copy_from_slice(&[2, 4, 0x05, 0xB4, 1, 1, 8, 99, 0, 0, 0, 0]);
    let (segment, _) = decode(LinkType::RAW, &bytes).expect("it is a segment");
    assert!(segment.options_cut);
    assert_eq!(segment.options.maximum_segment_size, Some(1460));
}

#[test]
fn headers_that_cannot_be() {
    let changed = |at: usize, value: u8| {
        let mut bytes = packet(b"hello");
        bytes[at] = value;
        decode(LinkType::RAW, &bytes)
    };
    assert_eq!(changed(0, 0x55), Err(Cause::Malformed), "version 5");
    assert_eq!(changed(0, 0x44), Err(Cause::Malformed), "a header of four words");
    assert_eq!(changed(3, 19), Err(Cause::Malformed), "a packet shorter than its header");
    assert_eq!(changed(32, 0x40), Err(Cause::Malformed), "a segment of four words");
    assert_eq!(changed(32, 0xF0), Err(Cause::Malformed), "a header longer than its segment");
    assert_eq!(changed(9, 1), Err(Cause::OtherTransport), "ICMP");
    assert_eq!(decode(LinkType(147), b""), Err(Cause::UnknownLinkType));
}

#[test]
fn what_an_interface_will_cut_has_no_length_yet() {
    let mut bytes = packet(b"hello");
    bytes[2..4].fill(0);
    let mut decoder = Decoder::default();
    let (segment, payload) =
        decode_cut(&mut decoder, Instant::ZERO, LinkType::RAW, &bytes, 70_052).expect("it is a segment");
    assert_eq!((segment.length, &payload[..]), (70_000, &b"hello"[..]));
    let mut bytes = ipv6(Protocol::TCP, &segment_6(b"hello"));
    bytes[4..6].fill(0);
    let (segment, _) = decode_cut(&mut decoder, Instant::ZERO, LinkType::RAW, &bytes, 80_072).expect("it is a segment");
    assert_eq!(segment.length, 80_000);
}

#[test]
fn datagrams_and_what_cannot_be_one() {
    let found = |payload: &[u8]| {
        let bytes = ipv4(Protocol::UDP, payload);
        let original_length = bytes.len() as u32;
        let record = Record {
            frame: 1,
            time: Instant::ZERO,
            link_type: LinkType::IPV4,
            interface: 0,
            bytes: &bytes,
            original_length,
        };
        match Decoder::default().decode(&record) {
            Decoded::Datagram(datagram) => {
                Ok((datagram.route.destination.port, datagram.length, datagram.payload.to_vec()))
            }
            Decoded::Skipped(cause) => Err(cause),
            Decoded::Segment(segment) => panic!("{segment:?} is no datagram"),
        }
    };
    assert_eq!(found(&udp(443, b"hello")), Ok((443, 5, b"hello".to_vec())));
    assert_eq!(found(&udp(gtp::PORT, b"hello")), Ok((gtp::PORT, 5, b"hello".to_vec())), "it is not of GTP");
    assert_eq!(found(&[udp(443, b"hello"), b"xx".to_vec()].concat()), Ok((443, 5, b"hello".to_vec())));
    assert_eq!(found(&udp(443, b"hello")[..10]), Err(Cause::Malformed), "longer than its packet");
    assert_eq!(found(&[0, 1, 0, 2, 0, 7, 0, 0]), Err(Cause::Malformed), "shorter than its header");
}
