use std::net::{IpAddr, Ipv4Addr};

use airpath_core::{Ecn, Instant};
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::tcp::{Flags, TcpHeader, Timestamps};

use super::*;
use crate::capture::LinkType;

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// A segment in an IPv4 packet.
fn packet(header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    let length = header.wire_length() + payload.len();
    let mut bytes = vec![0; Ipv4Header::LENGTH + header.wire_length()];
    Ipv4Header {
        dscp: 0,
        ecn: Ecn::Ect0,
        total_length: (Ipv4Header::LENGTH + length) as u16,
        identification: 7,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        time_to_live: 64,
        protocol: Protocol::TCP,
        source: SOURCE,
        destination: DESTINATION,
    }
    .emit(&mut bytes);
    let pseudo = Sum::pseudo_v4(SOURCE, DESTINATION, Protocol::TCP, length as u32);
    header.emit(&mut bytes[Ipv4Header::LENGTH..], pseudo.and(payload));
    bytes.extend_from_slice(payload);
    bytes
}

fn header() -> TcpHeader {
    let mut header = TcpHeader { source_port: 80, destination_port: 1024, sequence: 1, ..TcpHeader::default() };
    header.flags = Flags::ACK | Flags::PSH;
    header.options.timestamps = Some(Timestamps { value: 3, echo: 4 });
    header
}

/// What is found in `bytes`, the first of a frame of `original` bytes.
fn decode(link_type: LinkType, bytes: &[u8], original: usize) -> Result<Segment<'_>, Cause> {
    let record = Record {
        frame: 9,
        time: Instant::from_nanos(5),
        link_type,
        interface: 0,
        bytes,
        original_length: original as u32,
    };
    match super::decode(&record)? {
        Decoded::Segment(segment) => Ok(segment),
        other => panic!("{other:?} is no segment"),
    }
}

#[test]
fn a_whole_segment() {
    let bytes = packet(&header(), b"hello");
    let segment = decode(LinkType::RAW, &bytes, bytes.len()).expect("it is a segment");
    let end = |address, port| Endpoint { address: IpAddr::V4(address), port };
    let route = Route { source: end(SOURCE, 80), destination: end(DESTINATION, 1024), tunnel: Tunnel::None };
    assert_eq!(segment.route, route);
    assert_eq!((segment.frame, segment.time, segment.identification), (9, Instant::from_nanos(5), Some(7)));
    assert_eq!((segment.sequence, segment.flags, segment.options), (1, Flags::ACK | Flags::PSH, header().options));
    assert_eq!((segment.length, segment.payload, segment.checksum), (5, &b"hello"[..], Some(true)));
    assert!(!segment.options_cut);
}

#[test]
fn a_checksum_that_does_not_hold_is_told() {
    let mut bytes = packet(&header(), b"hello");
    *bytes.last_mut().expect("there is a payload") ^= 1;
    let segment = decode(LinkType::RAW, &bytes, bytes.len()).expect("it is a segment");
    assert_eq!(segment.checksum, Some(false));
}

#[test]
fn a_snap_length_cuts_the_payload_then_options_then_headers() {
    let bytes = packet(&header(), b"hello");
    let cut = |kept: usize| decode(LinkType::RAW, &bytes[..kept], bytes.len());
    let segment = cut(54).expect("the headers are there");
    assert_eq!((segment.length, segment.payload, segment.checksum), (5, &b"he"[..], None));
    let segment = cut(51).expect("what counts is there");
    assert_eq!((segment.length, segment.payload, segment.options_cut), (5, &b""[..], true));
    assert_eq!(segment.options.timestamps, None);
    assert_eq!(cut(39), Err(Cause::CutShort));
    assert_eq!(cut(0), Err(Cause::CutShort));
}

#[test]
fn padding_of_ethernet_is_no_payload() {
    let mut frame = vec![0; 12];
    frame.extend_from_slice(&[0x08, 0x00]);
    frame.extend(packet(&header(), b""));
    frame.resize(80, 0xEE);
    let segment = decode(LinkType::ETHERNET, &frame, frame.len()).expect("it is a segment");
    assert_eq!((segment.length, segment.payload, segment.checksum), (0, &b""[..], Some(true)));
}

#[test]
fn what_an_interface_will_cut_has_no_length_yet() {
    let mut bytes = packet(&header(), b"hello");
    bytes[2..4].fill(0);
    let segment = decode(LinkType::RAW, &bytes, 70_052).expect("it is a segment");
    assert_eq!((segment.length, segment.payload), (70_000, &b"hello"[..]));
}
