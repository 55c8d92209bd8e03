//! Properties of any bytes.

use proptest::prelude::*;

use super::*;

/// Link types that are understood, and one that is not.
const LINK_TYPES: [LinkType; 14] = [
    LinkType::ETHERNET,
    LinkType::RAW,
    LinkType::NULL,
    LinkType::LOOP,
    LinkType::PPP,
    LinkType::PPP_HDLC,
    LinkType::PPP_ETHER,
    LinkType::PPP_WITH_DIRECTION,
    LinkType::CISCO_HDLC,
    LinkType::FDDI,
    LinkType::LINUX_COOKED,
    LinkType::LINUX_COOKED_2,
    LinkType::NETFILTER_LOG,
    LinkType(9999),
];

/// Decodes, and checks the properties of any result.
fn assert_decodes(decoder: &mut Decoder, link_type: LinkType, bytes: &[u8], original_length: u32) {
    let before = decoder.skipped().total();
    let record = Record { frame: 1, time: Instant::ZERO, link_type, interface: 0, bytes, original_length };
    let (length, payload) = match decoder.decode(&record) {
        Decoded::Segment(segment) => (segment.length, segment.payload.len()),
        Decoded::Datagram(datagram) => (datagram.length, datagram.payload.len()),
        Decoded::Skipped(_) => {
            assert!(decoder.skipped().total() > before, "it is counted");
            return;
        }
    };
    assert!(payload <= length as usize);
}

/// A segment with any header, to be wrapped.
fn any_segment() -> impl Strategy<Value = (TcpHeader, Vec<u8>)> {
    let numbers = any::<(u16, u16, u32, u32, u8, u16)>();
    let timestamps = proptest::option::of(any::<(u32, u32)>());
    let sack = prop::collection::vec(any::<(u32, u32)>(), 0..3);
    (numbers, timestamps, sack, prop::collection::vec(any::<u8>(), 0..64)).prop_map(
        |((source_port, destination_port, sequence, acknowledgment, flags, window), timestamps, sack, payload)| {
            let mut header = TcpHeader {
                source_port,
                destination_port,
                sequence,
                acknowledgment,
                flags: Flags(flags),
                window,
                ..TcpHeader::default()
            };
            header.options.timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
            for (start, end) in sack {
                header.options.sack.push(start, end);
            }
            (header, payload)
        },
    )
}

proptest! {
    #[test]
    fn random_bytes_never_panic(frames in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), any::<u32>()), 1..9)) {
        for link_type in LINK_TYPES {
            let mut decoder = Decoder::default();
            for (bytes, original_length) in &frames {
                assert_decodes(&mut decoder, link_type, bytes, *original_length);
            }
        }
    }

    #[test]
    fn damaged_and_cut_packets_never_panic(
        kept in 0usize..160, damage in prop::collection::vec((0usize..160, any::<u8>()), 0..5), which in 0usize..4,
    ) {
        let inner = ipv6(Protocol(44), &[&[6, 0, 0, 1, 0, 0, 0, 9][..], &segment_6(b"hello, world")].concat());
        let user = [&[0x30, 255, 0, inner.len() as u8, 0, 0, 0, 1][..], &inner].concat();
        let mut bytes = [
            packet(b"hello"),
            ipv6(Protocol(0), &[&[6, 0, 1, 4, 0, 0, 0, 0][..], &segment_6(b"hello")].concat()),
            ipv4(Protocol::UDP, &udp(gtp::PORT, &user)),
            ipv4(Protocol(41), &inner),
        ][which].clone();
        for (at, value) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= value;
            }
        }
        let original = bytes.len() as u32;
        bytes.truncate(kept);
        let mut decoder = Decoder::default();
        // Twice, so that fragments meet others.
        assert_decodes(&mut decoder, LinkType::RAW, &bytes, original);
        assert_decodes(&mut decoder, LinkType::RAW, &bytes, original);
    }

    #[test]
    fn what_wire_writes_is_read_back((header, payload) in any_segment(), kept in 40usize..160) {
        let length = header.wire_length() + payload.len();
        let mut bytes = vec![0; header.wire_length()];
        let pseudo = Sum::pseudo_v4(SOURCE, DESTINATION, Protocol::TCP, length as u32);
        header.emit(&mut bytes, pseudo.and(&payload));
        let whole = ipv4(Protocol::TCP, &[&bytes[..], &payload].concat());
        let (segment, found) = decode(LinkType::RAW, &whole).expect("it is a segment");
        prop_assert_eq!(
            (segment.route.source.port, segment.route.destination.port, segment.sequence, segment.acknowledgment),
            (header.source_port, header.destination_port, header.sequence, header.acknowledgment)
        );
        prop_assert_eq!((segment.flags, segment.window, segment.options), (header.flags, header.window, header.options));
        prop_assert_eq!((segment.checksum, found), (Some(true), payload));
        prop_assert!(!segment.options_cut);

        let kept = kept.min(whole.len());
        let cut = decode_cut(&mut Decoder::default(), Instant::ZERO, LinkType::RAW, &whole[..kept], whole.len());
        let (cut, _) = cut.expect("its header is there");
        prop_assert_eq!((cut.sequence, cut.length), (segment.sequence, segment.length));
        prop_assert_eq!(cut.options_cut, kept < 20 + header.wire_length());
    }
}
