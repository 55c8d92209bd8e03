//! Headers against etherparse, an independent implementation, and against themselves.

use std::net::{Ipv4Addr, Ipv6Addr};

use airpath_core::Ecn;
use airpath_wire::ParseError;
use airpath_wire::checksum::Sum;
use airpath_wire::icmp::{EchoTypes, IcmpEcho};
use airpath_wire::ip::{IpHeader, Protocol};
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::ipv6::Ipv6Header;
use airpath_wire::tcp::{EcnCounters, Flags, Options, SackBlocks, TcpHeader, Timestamps};
use airpath_wire::udp::UdpHeader;
use etherparse::{Icmpv4Type, Icmpv6Type, TcpOptionElement};
use proptest::prelude::*;

fn ecn() -> impl Strategy<Value = Ecn> {
    (0u8..4).prop_map(Ecn::from_bits)
}

prop_compose! {
    fn ipv4()(
        (dscp, ecn, total_length) in (0u8..64, ecn(), 20u16..),
        (identification, dont_fragment, more_fragments) in any::<(u16, bool, bool)>(),
        (fragment_offset, time_to_live, protocol) in (0u16..1 << 13, any::<u8>(), any::<u8>()),
        (source, destination) in any::<(Ipv4Addr, Ipv4Addr)>(),
    ) -> Ipv4Header {
        Ipv4Header {
            dscp, ecn, total_length, identification, dont_fragment, more_fragments, fragment_offset, time_to_live,
            protocol: Protocol(protocol), source, destination,
        }
    }
}

prop_compose! {
    fn ipv6()(
        (dscp, ecn, flow_label) in (0u8..64, ecn(), 0u32..1 << 20),
        (payload_length, next_header, hop_limit) in any::<(u16, u8, u8)>(),
        (source, destination) in any::<(Ipv6Addr, Ipv6Addr)>(),
    ) -> Ipv6Header {
        Ipv6Header {
            dscp, ecn, flow_label, payload_length, next_header: Protocol(next_header), hop_limit, source, destination,
        }
    }
}

prop_compose! {
    /// Options that fit into a header.
    fn options()(
        maximum_segment_size: Option<u16>,
        window_scale: Option<u8>,
        sack_permitted: bool,
        timestamps in prop::option::of(any::<(u32, u32)>()),
        blocks in prop::collection::vec(any::<(u32, u32)>(), 0..=4),
    ) -> Options {
        let timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
        let mut options =
            Options { maximum_segment_size, window_scale, sack_permitted, timestamps, sack: SackBlocks::default(), accurate_ecn: None };
        for (start, end) in blocks {
            let fewer = options;
            options.sack.push(start, end);
            if options.wire_length() > Options::MAX_LENGTH {
                return fewer;
            }
        }
        options
    }
}

prop_compose! {
    fn tcp()(
        (source_port, destination_port, sequence, acknowledgment) in any::<(u16, u16, u32, u32)>(),
        (flags, loss_notification, accurate_ecn, window) in any::<(u8, bool, bool, u16)>(),
        options in options(),
    ) -> TcpHeader {
        let flags = Flags(flags);
        TcpHeader {
            source_port,
            destination_port,
            sequence,
            acknowledgment,
            flags,
            loss_notification,
            accurate_ecn,
            window,
            options,
        }
    }
}

/// The options as etherparse understands them.
fn options_of(header: &etherparse::TcpHeader) -> Options {
    let mut options = Options::default();
    for element in header.options.elements_iter() {
        match element.expect("etherparse reads the options") {
            TcpOptionElement::Noop => {}
            TcpOptionElement::MaximumSegmentSize(size) => options.maximum_segment_size = Some(size),
            TcpOptionElement::WindowScale(shift) => options.window_scale = Some(shift),
            TcpOptionElement::SelectiveAcknowledgementPermitted => options.sack_permitted = true,
            TcpOptionElement::Timestamp(value, echo) => options.timestamps = Some(Timestamps { value, echo }),
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                for (start, end) in std::iter::once(first).chain(rest.into_iter().flatten()) {
                    options.sack.push(start, end);
                }
            }
        }
    }
    options
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 2))]

    #[test]
    fn ipv4_is_what_etherparse_reads(header in ipv4(), payload in prop::collection::vec(any::<u8>(), 0..32)) {
        let mut packet = [0xAA; Ipv4Header::LENGTH];
        header.emit(&mut packet);
        let theirs = etherparse::Ipv4HeaderSlice::from_slice(&packet).expect("etherparse reads it").to_header();
        prop_assert_eq!(theirs.header_checksum, theirs.calc_header_checksum());
        prop_assert_eq!(theirs.dscp.value(), header.dscp);
        prop_assert_eq!(theirs.ecn.value(), header.ecn.bits());
        prop_assert_eq!(theirs.total_len, header.total_length);
        prop_assert_eq!(theirs.identification, header.identification);
        prop_assert_eq!((theirs.dont_fragment, theirs.more_fragments), (header.dont_fragment, header.more_fragments));
        prop_assert_eq!(theirs.fragment_offset.value(), header.fragment_offset);
        prop_assert_eq!((theirs.time_to_live, theirs.protocol.0), (header.time_to_live, header.protocol.0));
        prop_assert_eq!((theirs.source, theirs.destination), (header.source.octets(), header.destination.octets()));

        let packet = [&packet[..], &payload].concat();
        let inside = payload.len().min(usize::from(header.total_length) - Ipv4Header::LENGTH);
        prop_assert_eq!(IpHeader::parse(&packet), Ok((IpHeader::V4(header), &payload[..inside])));
    }

    #[test]
    fn ipv6_is_what_etherparse_reads(header in ipv6(), payload in prop::collection::vec(any::<u8>(), 0..32)) {
        let mut packet = [0xAA; Ipv6Header::LENGTH];
        header.emit(&mut packet);
        let theirs = etherparse::Ipv6HeaderSlice::from_slice(&packet).expect("etherparse reads it").to_header();
        prop_assert_eq!(theirs.traffic_class, header.dscp << 2 | header.ecn.bits());
        prop_assert_eq!(theirs.flow_label.value(), header.flow_label);
        prop_assert_eq!(theirs.payload_length, header.payload_length);
        prop_assert_eq!((theirs.next_header.0, theirs.hop_limit), (header.next_header.0, header.hop_limit));
        prop_assert_eq!((theirs.source, theirs.destination), (header.source.octets(), header.destination.octets()));

        let packet = [&packet[..], &payload].concat();
        let inside = payload.len().min(header.payload_length.into());
        prop_assert_eq!(IpHeader::parse(&packet), Ok((IpHeader::V6(header), &payload[..inside])));
    }

    #[test]
    fn tcp_is_what_etherparse_reads(
        header in tcp(), ip in ipv4(), ip6 in ipv6(), payload in prop::collection::vec(any::<u8>(), 0..32),
    ) {
        let length = header.wire_length() + payload.len();
        let mut bytes = [0xAA; TcpHeader::MAX_LENGTH];
        let bytes = &mut bytes[..header.wire_length()];
        let pseudo = Sum::pseudo_v4(ip.source, ip.destination, Protocol::TCP, length as u32);
        header.emit(bytes, pseudo.and(&payload));
        let (theirs, _) = etherparse::TcpHeader::from_slice(bytes).expect("etherparse reads it");
        let checksum = theirs.calc_checksum_ipv4_raw(ip.source.octets(), ip.destination.octets(), &payload);
        // etherparse does not have the reserved bit, which its checksum therefore omits.
        prop_assert!(header.loss_notification || Ok(theirs.checksum) == checksum);
        prop_assert!(pseudo.and(bytes).and(&payload).holds());
        let reserved = u8::from(header.loss_notification) << 3 | u8::from(header.accurate_ecn);
        prop_assert_eq!(bytes[12] & 0x0F, reserved);
        // The bit of AE was that of the nonce sum (RFC 3540).
        prop_assert_eq!(theirs.ns, header.accurate_ecn);
        prop_assert_eq!((theirs.source_port, theirs.destination_port), (header.source_port, header.destination_port));
        prop_assert_eq!((theirs.sequence_number, theirs.acknowledgment_number), (header.sequence, header.acknowledgment));
        let flags = [
            (theirs.fin, Flags::FIN), (theirs.syn, Flags::SYN), (theirs.rst, Flags::RST), (theirs.psh, Flags::PSH),
            (theirs.ack, Flags::ACK), (theirs.urg, Flags::URG), (theirs.ece, Flags::ECE), (theirs.cwr, Flags::CWR),
        ];
        for (theirs, flag) in flags {
            prop_assert_eq!(theirs, header.flags.contains(flag));
        }
        prop_assert_eq!((theirs.window_size, theirs.urgent_pointer), (header.window, 0));
        prop_assert_eq!(options_of(&theirs), header.options);

        let segment = [&*bytes, &payload].concat();
        prop_assert_eq!(TcpHeader::parse(&segment), Ok((header, &payload[..])));

        header.emit(bytes, Sum::pseudo_v6(ip6.source, ip6.destination, Protocol::TCP, length as u32).and(&payload));
        let (theirs, _) = etherparse::TcpHeader::from_slice(bytes).expect("etherparse reads it");
        let checksum = theirs.calc_checksum_ipv6_raw(ip6.source.octets(), ip6.destination.octets(), &payload);
        prop_assert!(header.loss_notification || Ok(theirs.checksum) == checksum);
    }

    #[test]
    fn udp_is_what_etherparse_reads(
        (source_port, destination_port) in any::<(u16, u16)>(), ip in ipv4(), ip6 in ipv6(),
        payload in prop::collection::vec(any::<u8>(), 0..32),
    ) {
        let length = UdpHeader::LENGTH as u16 + payload.len() as u16;
        let header = UdpHeader { source_port, destination_port, length };
        let mut bytes = [0xAA; UdpHeader::LENGTH];
        header.emit(&mut bytes, Sum::pseudo_v4(ip.source, ip.destination, Protocol::UDP, length.into()).and(&payload));
        let (theirs, _) = etherparse::UdpHeader::from_slice(&bytes).expect("etherparse reads it");
        prop_assert_eq!(theirs.length, length);
        prop_assert_eq!((theirs.source_port, theirs.destination_port), (source_port, destination_port));
        let checksum = theirs.calc_checksum_ipv4_raw(ip.source.octets(), ip.destination.octets(), &payload);
        prop_assert_eq!(Ok(theirs.checksum), checksum);

        let datagram = [&bytes[..], &payload].concat();
        prop_assert_eq!(UdpHeader::parse(&datagram), Ok((header, &payload[..])));

        header.emit(&mut bytes, Sum::pseudo_v6(ip6.source, ip6.destination, Protocol::UDP, length.into()).and(&payload));
        let (theirs, _) = etherparse::UdpHeader::from_slice(&bytes).expect("etherparse reads it");
        let checksum = theirs.calc_checksum_ipv6_raw(ip6.source.octets(), ip6.destination.octets(), &payload);
        prop_assert_eq!(Ok(theirs.checksum), checksum);
    }

    #[test]
    fn echoes_are_what_etherparse_reads(
        (reply, identifier, sequence) in any::<(bool, u16, u16)>(), ip6 in ipv6(),
        payload in prop::collection::vec(any::<u8>(), 0..32),
    ) {
        let header = IcmpEcho { reply, identifier, sequence };
        let echo = etherparse::IcmpEchoHeader { id: identifier, seq: sequence };
        let mut bytes = [0xAA; IcmpEcho::LENGTH];
        header.emit(EchoTypes::V4, &mut bytes, Sum::of(&payload));
        let (theirs, _) = etherparse::Icmpv4Header::from_slice(&bytes).expect("etherparse reads it");
        let kind = if reply { Icmpv4Type::EchoReply(echo) } else { Icmpv4Type::EchoRequest(echo) };
        prop_assert_eq!(&theirs.icmp_type, &kind);
        prop_assert_eq!(theirs.checksum, kind.calc_checksum(&payload));
        let message = [&bytes[..], &payload].concat();
        prop_assert_eq!(IcmpEcho::parse(EchoTypes::V4, &message), Ok((header, &payload[..])));

        let length = (IcmpEcho::LENGTH + payload.len()) as u32;
        let pseudo = Sum::pseudo_v6(ip6.source, ip6.destination, Protocol::ICMPV6, length);
        header.emit(EchoTypes::V6, &mut bytes, pseudo.and(&payload));
        let (theirs, _) = etherparse::Icmpv6Header::from_slice(&bytes).expect("etherparse reads it");
        let kind = if reply { Icmpv6Type::EchoReply(echo) } else { Icmpv6Type::EchoRequest(echo) };
        prop_assert_eq!(&theirs.icmp_type, &kind);
        prop_assert_eq!(Ok(theirs.checksum), kind.calc_checksum(ip6.source.octets(), ip6.destination.octets(), &payload));
        let message = [&bytes[..], &payload].concat();
        prop_assert_eq!(IcmpEcho::parse(EchoTypes::V6, &message), Ok((header, &payload[..])));
    }

    #[test]
    fn no_input_makes_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
        parse_all(&bytes);
    }

    #[test]
    fn no_option_makes_the_parser_panic(header in tcp(), noise in prop::collection::vec(any::<u8>(), 40), words in 5u8..) {
        let mut segment = [0; TcpHeader::MAX_LENGTH];
        header.emit(&mut segment, Sum::default());
        segment[12] = words << 4;
        parse_all(&segment);
        segment[TcpHeader::MIN_LENGTH..].copy_from_slice(&noise);
        parse_all(&segment);
    }

    #[test]
    fn what_is_cut_short_is_an_error(header in tcp(), keep in 0usize..60) {
        let mut segment = [0; TcpHeader::MAX_LENGTH];
        header.emit(&mut segment, Sum::default());
        let keep = keep.min(header.wire_length() - 1);
        let truncated = matches!(TcpHeader::parse(&segment[..keep]), Err(ParseError::Truncated { available, .. }) if available == keep);
        prop_assert!(truncated);
    }
}

fn parse_all(bytes: &[u8]) {
    let _ = IpHeader::parse(bytes);
    let _ = Ipv4Header::parse(bytes);
    let _ = Ipv6Header::parse(bytes);
    let _ = TcpHeader::parse(bytes);
    let _ = UdpHeader::parse(bytes);
    let _ = IcmpEcho::parse(EchoTypes::V4, bytes);
    let _ = IcmpEcho::parse(EchoTypes::V6, bytes);
}

/// A TCP header with the given options, which take a multiple of four bytes.
fn with_options(options: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; TcpHeader::MIN_LENGTH];
    TcpHeader::default().emit(&mut segment, Sum::default());
    segment[12] = ((TcpHeader::MIN_LENGTH + options.len()) as u8 / 4) << 4;
    segment.extend_from_slice(options);
    segment
}

#[test]
fn unknown_options_are_skipped() {
    // Kind 254 with four bytes, a maximum segment size of 1460, end of list, then bytes that are
    // not parsed.
    let segment = with_options(&[254, 4, 9, 9, 1, 2, 4, 0x05, 0xB4, 0, 2, 99]);
    let (header, payload) = TcpHeader::parse(&segment).expect("all options are well formed");
    assert_eq!(header.options, Options { maximum_segment_size: Some(1460), ..Options::default() });
    assert!(payload.is_empty());
}

#[test]
fn accurate_ecn_has_counters_of_24_bits_in_two_orders() {
    let read = |options: &[u8]| TcpHeader::parse(&with_options(options)).expect("it is well formed").0.options;
    let counters = |ect1_first, values: &[u32]| {
        let mut counters = EcnCounters::new(ect1_first);
        values.iter().for_each(|value| counters.push(*value));
        Some(counters)
    };
    let all = [174, 11, 0, 0, 1, 0xff, 0xff, 0xff, 1, 2, 3, 1];
    assert_eq!(read(&all).accurate_ecn, counters(true, &[1, 0xff_ffff, 0x01_0203]));
    assert_eq!(read(&[172, 5, 0, 1, 0, 1, 1, 1]).accurate_ecn, counters(false, &[256]));
    assert_eq!(read(&[172, 2, 1, 1]).accurate_ecn, counters(false, &[]));
    // RFC 9768 section 3.2.3: whole counters are used, the rest is padding.
    assert_eq!(read(&[174, 7, 0, 0, 1, 9, 9, 1]).accurate_ecn, counters(true, &[1]));
    assert_eq!(read(&[174, 12, 0, 0, 1, 0, 0, 2, 0, 0, 3, 9]).accurate_ecn, counters(true, &[1, 2, 3]));
}

#[test]
fn accurate_ecn_shares_the_padding_of_blocks() {
    let stamps = Some(Timestamps { value: 1, echo: 2 });
    let length = |timestamps: Option<Timestamps>, fields: usize, blocks: u32| {
        let mut counters = EcnCounters::new(true);
        (0..fields).for_each(|_| counters.push(7));
        let mut options = Options { timestamps, accurate_ecn: Some(counters), ..Options::default() };
        (0..blocks).for_each(|block| assert!(options.sack.push(block * 10, block * 10 + 5)));
        let header = TcpHeader { options, ..TcpHeader::default() };
        if header.wire_length() <= TcpHeader::MAX_LENGTH {
            let mut segment = vec![0; header.wire_length()];
            header.emit(&mut segment, Sum::default());
            assert_eq!(TcpHeader::parse(&segment).expect("it was written").0, header);
        }
        options.wire_length()
    };
    // Without blocks padded by itself, with them together with their two bytes.
    assert_eq!([0, 1, 2, 3].map(|fields| length(None, fields, 0)), [4, 8, 8, 12]);
    assert_eq!([0, 1, 2, 3].map(|fields| length(None, fields, 1)), [12, 16, 20, 24]);
    assert_eq!((length(stamps, 3, 1), length(stamps, 2, 2), length(stamps, 3, 2)), (36, 40, 44));
}

#[test]
fn malformed_options_are_errors_with_their_position() {
    let error = |options: &[u8]| TcpHeader::parse(&with_options(options)).expect_err("it is malformed");
    assert_eq!(error(&[1, 1, 1, 2]), ParseError::Option { kind: 2, at: 3, length: 0 }, "the length is missing");
    assert_eq!(error(&[1, 254, 0, 0]), ParseError::Option { kind: 254, at: 1, length: 0 });
    assert_eq!(error(&[1, 254, 1, 0]), ParseError::Option { kind: 254, at: 1, length: 1 });
    assert_eq!(error(&[2, 3, 5, 0]), ParseError::Option { kind: 2, at: 0, length: 3 });
    assert_eq!(error(&[4, 3, 5, 0]), ParseError::Option { kind: 4, at: 0, length: 3 });
    assert_eq!(error(&[5, 2, 0, 0]), ParseError::Option { kind: 5, at: 0, length: 2 });
    assert_eq!(error(&[5, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), ParseError::Option { kind: 5, at: 0, length: 11 });
    let text = error(&[8, 10, 0, 0]).to_string();
    assert_eq!(text, "TCP option 8 at byte 0 of the options is malformed: its length is 10");
}

#[test]
fn malformed_headers_are_errors_with_their_field() {
    let mut packet = [0; 20];
    packet[0] = 0x54;
    assert_eq!(
        IpHeader::parse(&packet).expect_err("version 5").to_string(),
        "IP header is malformed: its version is 5"
    );
    packet[0] = 0x44;
    assert_eq!(
        IpHeader::parse(&packet).expect_err("four words").to_string(),
        "IPv4 header is malformed: its header length in words is 4"
    );
    packet[0] = 0x46;
    packet[3] = 24;
    assert_eq!(
        IpHeader::parse(&packet).expect_err("options are missing").to_string(),
        "IPv4 header is cut short: 24 bytes are needed, 20 are there"
    );
    packet[0] = 0x45;
    packet[3] = 19;
    assert_eq!(
        IpHeader::parse(&packet).expect_err("shorter than itself").to_string(),
        "IPv4 header is malformed: its total length is 19"
    );
    assert_eq!(
        UdpHeader::parse(&[0, 1, 0, 2, 0, 7, 0, 0]).expect_err("shorter than itself").to_string(),
        "UDP header is malformed: its length is 7"
    );
    assert_eq!(
        IcmpEcho::parse(EchoTypes::V4, &[3; 8]).expect_err("destination unreachable").to_string(),
        "ICMP message of type 3 is not an echo request or reply"
    );
}
