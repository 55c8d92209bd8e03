//! Packets made by hand, byte by byte.

use std::net::{Ipv4Addr, Ipv6Addr};

use airpath_wire::checksum::Sum;

use super::*;

/// An IPv4 packet without options.
fn ipv4(protocol: u8, source: [u8; 4], destination: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0];
    packet.extend(source.into_iter().chain(destination).chain(payload.iter().copied()));
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    sum(&mut packet);
    packet
}

fn sum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let checksum = Sum::of(&packet[..20]).checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn ipv6(next: u8, source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
    let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
    let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
    packet.extend(address(source).into_iter().chain(address(destination)).chain(payload.iter().copied()));
    packet
}

/// A TCP header of 20 bytes with these flags, and a payload of `length` bytes.
fn tcp(flags: u8, length: usize) -> Vec<u8> {
    let mut segment = vec![0, 80, 0, 81, 0xFF, 0xFF, 0xFF, 0xF0, 0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0];
    segment.resize(20 + length, 7);
    segment
}

fn inspect(packet: &[u8]) -> Result<Frame, EntryDropCause> {
    Frame::inspect(&VirtioHeader::default(), packet)
}

const TSO4: VirtioHeader = VirtioHeader {
    flags: 0,
    gso_type: VirtioHeader::TCP_OVER_IPV4,
    header_length: 0,
    segment_size: 100,
    checksum_start: 0,
    checksum_offset: 0,
};

#[test]
fn a_super_segment_is_cut_as_linux_cuts_it() {
    // CWR, PSH, ACK and FIN; 250 bytes in segments of 100.
    let packet = ipv4(6, [10, 0, 0, 1], [10, 0, 0, 2], &tcp(0x99, 250));
    let frame = Frame::inspect(&TSO4, &packet).unwrap();
    assert_eq!((frame.segments(), frame.bytes(), frame.protocol()), (3, 290, Protocol::TCP));
    assert_eq!([0, 1, 2].map(|index| frame.segment_bytes(index)), [140, 140, 90]);

    let mut buffer = [0; MAX_HEADER];
    let mut segment = |index: u32| {
        let written = frame.write_segments(&packet, index..=index, Ecn::Ect0, &mut buffer);
        assert_eq!(written.header.gso_type, 0, "one segment is an ordinary packet");
        assert!(Sum::of(&written.bytes[..20]).holds());
        let bytes = written.bytes;
        let sequence = u32::from_be_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]);
        (bytes[1], u16::from_be_bytes([bytes[4], bytes[5]]), sequence, bytes[33])
    };
    // The sequence number begins 16 before its end.
    assert_eq!(segment(0), (0b10, 0x1234, 0xFFFF_FFF0, 0x90), "CWR and ACK");
    assert_eq!(segment(1), (0b10, 0x1235, 84, 0x10), "ACK");
    assert_eq!(segment(2), (0b10, 0x1236, 184, 0x19), "PSH, ACK and FIN");

    let run = frame.write_segments(&packet, 0..=1, Ecn::NotEct, &mut buffer);
    let expected = VirtioHeader {
        flags: VirtioHeader::NEEDS_CHECKSUM,
        gso_type: VirtioHeader::TCP_OVER_IPV4 | VirtioHeader::HAS_CWR,
        header_length: 40,
        segment_size: 100,
        checksum_start: 20,
        checksum_offset: 16,
    };
    assert_eq!((run.header, run.payload), (expected, 40..240));
}

#[test]
#[should_panic(expected = "segments 2 to 3 of 3")]
fn a_segment_that_is_not_there_is_a_mistake_of_the_caller() {
    let packet = ipv4(6, [10, 0, 0, 1], [10, 0, 0, 2], &tcp(0x10, 250));
    let frame = Frame::inspect(&TSO4, &packet).unwrap();
    frame.write_segments(&packet, 2..=3, Ecn::NotEct, &mut [0; MAX_HEADER]);
}

#[test]
fn the_payload_may_be_elsewhere() {
    let v4 = ipv4(6, [10, 0, 0, 1], [10, 0, 0, 2], &tcp(0x18, 250));
    let v6 = ipv6(6, "fd00::1", "fd00::2", &tcp(0x18, 200));
    let tso6 = VirtioHeader { gso_type: VirtioHeader::TCP_OVER_IPV6, ..TSO4 };
    for (virtio, packet, headers) in [(TSO4, v4, 40), (tso6, v6, 60)] {
        let whole = Frame::inspect(&virtio, &packet).unwrap();
        let elsewhere = packet.len() - headers;
        assert_eq!(Frame::inspect_headers(&virtio, &packet[..headers], elsewhere), Ok(whole));
        let last = whole.segments() - 1;
        let mut buffers = [[0; MAX_HEADER]; 2];
        let [first, second] = &mut buffers;
        let written = whole.write_segments(&packet[..headers], 0..=last, whole.ecn(), first);
        assert_eq!(written, whole.write_segments(&packet, 0..=last, whole.ecn(), second));
        let short = Frame::inspect_headers(&virtio, &packet[..headers], elsewhere - 1);
        assert_eq!(short, Err(EntryDropCause::Malformed));
        let cut = Frame::inspect_headers(&virtio, &packet[..headers - 1], elsewhere + 1);
        assert_eq!(cut, Err(EntryDropCause::Malformed));
    }
}

#[test]
fn a_mark_changes_the_ecn_field_only() {
    let packet = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &[0; 12]);
    let frame = inspect(&packet).unwrap();
    let mut buffer = [0; MAX_HEADER];
    let mut marked = packet.clone();
    marked[1] = 0b11;
    sum(&mut marked);
    assert_eq!(frame.write_segments(&packet, 0..=0, Ecn::Ce, &mut buffer).bytes, &marked[..20]);

    let packet = ipv6(17, "2001:db8::1", "2001:db8::2", &[0; 12]);
    let frame = inspect(&packet).unwrap();
    let mut marked = packet.clone();
    marked[1] = 0x30;
    assert_eq!(frame.write_segments(&packet, 0..=0, Ecn::Ce, &mut buffer).bytes, &marked[..40]);
}

#[test]
fn lengths_that_contradict_each_other_are_malformed() {
    let packet = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &[0; 12]);
    assert_eq!(inspect(&[]), Err(EntryDropCause::NotIp));
    assert_eq!(inspect(&[0x55; 40]), Err(EntryDropCause::NotIp));
    assert_eq!(inspect(&packet[..31]), Err(EntryDropCause::Malformed), "cut short");
    assert_eq!(inspect(&packet[..19]), Err(EntryDropCause::Malformed));
    let damaged = |at: usize, value: u8| {
        let mut packet = packet.clone();
        packet[at] = value;
        inspect(&packet)
    };
    assert_eq!(damaged(0, 0x44), Err(EntryDropCause::Malformed), "a header of four words");
    assert_eq!(damaged(3, 19), Err(EntryDropCause::Malformed), "shorter than its header");
    assert_eq!(damaged(8, 63), Err(EntryDropCause::HeaderChecksum));
    assert_eq!(damaged(31, 1).map(|frame| frame.bytes()), Ok(32), "a payload is its receiver's to check");

    let packet = ipv6(0, "2001:db8::1", "2001:db8::2", &[17, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(inspect(&packet), Err(EntryDropCause::Malformed), "16 bytes of hop-by-hop options are announced");
}

#[test]
fn an_offload_header_must_fit() {
    let packet = ipv4(6, [10, 0, 0, 1], [10, 0, 0, 2], &tcp(0x10, 250));
    let with = |header: VirtioHeader| Frame::inspect(&header, &packet).map(|frame| frame.segments());
    assert_eq!(with(VirtioHeader { segment_size: 1000, ..TSO4 }), Ok(1));
    assert_eq!(with(VirtioHeader { segment_size: 0, ..TSO4 }), Err(EntryDropCause::Offload));
    assert_eq!(with(VirtioHeader { gso_type: VirtioHeader::TCP_OVER_IPV6, ..TSO4 }), Err(EntryDropCause::Offload));
    assert_eq!(with(VirtioHeader { gso_type: VirtioHeader::UDP, ..TSO4 }), Err(EntryDropCause::Offload));
    assert_eq!(
        with(VirtioHeader { gso_type: 3, ..TSO4 }),
        Err(EntryDropCause::Offload),
        "fragmentation of UDP is not done"
    );

    let open = |checksum_start, checksum_offset| {
        let header =
            VirtioHeader { flags: VirtioHeader::NEEDS_CHECKSUM, checksum_start, checksum_offset, ..Default::default() };
        with(header)
    };
    assert_eq!(open(20, 16), Ok(1));
    assert_eq!(open(288, 0), Ok(1), "the very last bytes");
    assert_eq!(open(289, 0), Err(EntryDropCause::Offload));
    assert_eq!(open(20, u16::MAX), Err(EntryDropCause::Offload));
    assert_eq!(open(10, 0), Err(EntryDropCause::Offload), "in the IP header");

    let mut fragment = packet.clone();
    fragment[6] = 0x20;
    sum(&mut fragment);
    assert_eq!(Frame::inspect(&TSO4, &fragment), Err(EntryDropCause::Offload));
    let mut short = packet.clone();
    short[32] = 0x40;
    assert_eq!(Frame::inspect(&TSO4, &short), Err(EntryDropCause::Malformed), "a TCP header of four words");
}

#[test]
fn what_a_router_would_not_forward_is_refused() {
    let v4 = |protocol: u8, source: &str, destination: &str| {
        let octets = |text: &str| text.parse::<Ipv4Addr>().unwrap().octets();
        inspect(&ipv4(protocol, octets(source), octets(destination), &[0; 8])).map(|frame| frame.protocol().0)
    };
    assert_eq!(v4(17, "10.0.0.1", "10.0.0.2"), Ok(17));
    assert_eq!(v4(17, "10.0.0.1", "239.255.255.250"), Ok(17), "multicast of a wider scope");
    assert_eq!(v4(17, "10.0.0.1", "169.254.169.254"), Ok(17), "a cloud's resolver");
    assert_eq!(v4(17, "10.0.0.1", "224.0.0.251"), Err(EntryDropCause::LinkLocal), "multicast DNS");
    assert_eq!(v4(17, "0.0.0.0", "255.255.255.255"), Err(EntryDropCause::LinkLocal), "DHCP");
    assert_eq!(v4(2, "10.0.0.1", "224.0.0.22"), Err(EntryDropCause::GroupMembership));
    assert_eq!(v4(17, "10.0.0.1", "127.0.0.1"), Err(EntryDropCause::Martian));
    assert_eq!(v4(17, "224.1.1.1", "10.0.0.1"), Err(EntryDropCause::Martian));

    let v6 = |next: u8, source: &str, destination: &str, kind: u8| {
        inspect(&ipv6(next, source, destination, &[kind, 0, 0, 0, 0, 0, 0, 0])).map(|frame| frame.protocol().0)
    };
    assert_eq!(v6(58, "2001:db8::1", "2001:db8::2", 128), Ok(58), "an echo request");
    assert_eq!(v6(58, "2001:db8::1", "2001:db8::2", 2), Ok(58), "packet too big");
    assert_eq!(
        v6(58, "2001:db8::1", "2001:db8::2", 135),
        Err(EntryDropCause::NeighbourDiscovery),
        "is it still there?"
    );
    assert_eq!(v6(58, "fe80::1", "ff02::2", 133), Err(EntryDropCause::NeighbourDiscovery), "a router solicitation");
    assert_eq!(v6(58, "::", "ff02::16", 143), Err(EntryDropCause::GroupMembership));
    assert_eq!(v6(17, "2001:db8::1", "ff02::fb", 0), Err(EntryDropCause::LinkLocal), "multicast DNS");
    assert_eq!(v6(17, "2001:db8::1", "ff31::1", 0), Err(EntryDropCause::LinkLocal), "of this interface");
    assert_eq!(v6(17, "2001:db8::1", "ff0e::1", 0), Ok(17), "global");
    assert_eq!(v6(17, "fe80::1", "2001:db8::1", 0), Err(EntryDropCause::LinkLocal));
    assert_eq!(v6(17, "2001:db8::1", "::1", 0), Err(EntryDropCause::Martian));

    // Behind hop-by-hop options, as the kernel sends it: a router alert, then a report.
    let report = [58, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(inspect(&ipv6(0, "2001:db8::1", "ff05::16", &report)), Err(EntryDropCause::GroupMembership));
}

#[test]
fn a_first_fragment_has_a_transport_header() {
    let mut packet = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &[0; 8]);
    assert_eq!(inspect(&packet).map(|frame| (frame.is_fragment(), frame.transport())), Ok((false, Some(20))));
    packet[6] = 0x20;
    sum(&mut packet);
    assert_eq!(inspect(&packet).map(|frame| (frame.is_fragment(), frame.transport())), Ok((true, Some(20))));
    packet[7] = 1;
    sum(&mut packet);
    assert_eq!(inspect(&packet).map(|frame| (frame.is_fragment(), frame.transport())), Ok((true, None)));

    let first = [17, 0, 0, 1, 0, 0, 0, 9, 0, 0];
    let frame = inspect(&ipv6(44, "2001:db8::1", "2001:db8::2", &first)).unwrap();
    assert_eq!((frame.protocol(), frame.is_fragment(), frame.transport()), (Protocol::UDP, true, Some(48)));
    // What would be an extension header in a later fragment is data.
    let later = [0, 0, 0, 8, 0, 0, 0, 9, 255, 255];
    let frame = inspect(&ipv6(44, "2001:db8::1", "2001:db8::2", &later)).unwrap();
    assert_eq!((frame.protocol(), frame.transport()), (Protocol(0), None));
}

#[test]
fn a_link_header_moves_the_checksum() {
    let expected = VirtioHeader { flags: 1, checksum_start: 34, checksum_offset: 16, ..VirtioHeader::default() };
    let bare = expected.without_prefix(14).unwrap();
    assert_eq!(bare.checksum_start, 20);
    assert_eq!(bare.with_prefix(14), expected);
    assert_eq!(expected.without_prefix(35), Err(EntryDropCause::Offload));
    let closed = VirtioHeader { flags: 0, checksum_start: 0, ..expected };
    assert_eq!(closed.without_prefix(14), Ok(closed));
}
