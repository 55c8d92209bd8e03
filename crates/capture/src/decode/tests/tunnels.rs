//! Packets in packets.

use super::*;

/// A datagram of GTP-U with the segment of [`packet`], and `optional` before it.
fn gtp(flags: u8, kind: u8, optional: &[u8]) -> Vec<u8> {
    let inner = [optional, &packet(b"hello")].concat();
    let length = (inner.len() as u16).to_be_bytes();
    let header = [0x30 | flags, kind, length[0], length[1], 0, 0, 0, 1];
    udp(gtp::PORT, &[&header[..], &inner].concat())
}

#[test]
fn a_mobile_s_packet_in_gtp() {
    let holds = |datagram: &[u8]| {
        let frame = ipv4(Protocol::UDP, datagram);
        assert_holds(LinkType::RAW, &frame, b"hello");
        assert_eq!(decode(LinkType::RAW, &frame).expect("it is a segment").0.route.tunnel, Tunnel::Gtp);
    };
    holds(&gtp(0, 255, &[]));
    // A sequence number.
    holds(&gtp(2, 255, &[0, 9, 0, 0]));
    // Two extension headers: a PDCP number, and that of a PDU session.
    holds(&gtp(4, 255, &[0, 0, 0, 0xC0, 1, 0, 7, 0x85, 1, 0, 9, 0]));
}

#[test]
fn what_else_gtp_carries() {
    let cause = |datagram: &[u8]| decode(LinkType::RAW, &ipv4(Protocol::UDP, datagram)).expect_err("it is no segment");
    assert_eq!(cause(&gtp(0, 1, &[])), Cause::Signalling, "an echo request");
    assert_eq!(cause(&gtp(4, 255, &[0, 0, 0, 0xC0, 0])), Cause::Malformed, "an extension header of no length");
    assert_eq!(cause(&gtp(0, 255, &[0xAA])), Cause::NotIp, "a PDU of Ethernet");
}

#[test]
fn gtp_on_another_port_must_be_configured() {
    let mut datagram = gtp(0, 255, &[]);
    datagram[2..4].copy_from_slice(&3000u16.to_be_bytes());
    let bytes = ipv4(Protocol::UDP, &datagram);
    let mut decoder = Decoder::default().with_gtp_port(3000);
    let (segment, _) =
        decode_cut(&mut decoder, Instant::ZERO, LinkType::RAW, &bytes, bytes.len()).expect("it is a segment");
    assert_eq!(segment.route.tunnel, Tunnel::Gtp);
    let record = Record {
        frame: 1,
        time: Instant::ZERO,
        link_type: LinkType::RAW,
        interface: 0,
        bytes: &bytes,
        original_length: bytes.len() as u32,
    };
    assert!(matches!(Decoder::default().decode(&record), Decoded::Datagram(_)));
}

#[test]
fn ip_in_ip() {
    let tunnel = |frame: &[u8]| decode(LinkType::RAW, frame).expect("it is a segment").0.route.tunnel;
    let ipv6_in_ipv4 = ipv4(Protocol(41), &ipv6(Protocol::TCP, &segment_6(b"hello")));
    assert_holds(LinkType::RAW, &ipv6_in_ipv4, b"hello");
    assert_eq!(tunnel(&ipv6_in_ipv4), Tunnel::Ip);
    let ipv4_in_ipv6 = ipv6(Protocol(4), &packet(b"hello"));
    assert_holds(LinkType::RAW, &ipv4_in_ipv6, b"hello");
    let within_gtp = ipv4(Protocol(4), &ipv4(Protocol::UDP, &gtp(0, 255, &[])));
    assert_eq!(tunnel(&within_gtp), Tunnel::Gtp, "a mobile's packet stays one");
    let deep = (0..4).fold(packet(b"hello"), |inner, _| ipv4(Protocol(4), &inner));
    assert_eq!(decode(LinkType::RAW, &deep), Err(Cause::TooDeep));
}
