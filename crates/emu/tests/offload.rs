//! Splitting and joining, compared with an oracle: every segment built by etherparse.

use airpath_core::Ecn;
use airpath_emu::offload::{EntryDropCause, Frame, MAX_HEADER, VirtioHeader, complete_checksum};
use etherparse::{IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader, UdpHeader};
use proptest::prelude::*;

/// Hop-by-hop options of eight bytes of padding, before TCP.
const PADDING: [u8; 8] = [6, 0, 1, 4, 0, 0, 0, 0];

#[derive(Clone, Debug)]
enum Network {
    V4(Ipv4Header),
    /// And whether hop-by-hop options follow.
    V6(Ipv6Header, bool),
}

#[derive(Clone, Debug)]
enum Transport {
    Tcp(TcpHeader),
    Udp(UdpHeader),
}

/// A super-segment in parts.
#[derive(Clone, Debug)]
struct Super {
    network: Network,
    transport: Transport,
    payload: Vec<u8>,
    segment_size: u16,
}

impl Super {
    fn segments(&self) -> u32 {
        self.payload.len().div_ceil(self.segment_size.into()).max(1) as u32
    }

    fn gso_type(&self) -> u8 {
        match (&self.transport, &self.network) {
            (Transport::Udp(_), _) => VirtioHeader::UDP,
            (Transport::Tcp(tcp), network) => {
                let kind = match network {
                    Network::V4(_) => VirtioHeader::TCP_OVER_IPV4,
                    Network::V6(..) => VirtioHeader::TCP_OVER_IPV6,
                };
                kind | if tcp.cwr { VirtioHeader::HAS_CWR } else { 0 }
            }
        }
    }

    fn virtio(&self) -> VirtioHeader {
        // The other fields are untrusted, and so are left out.
        VirtioHeader { gso_type: self.gso_type(), segment_size: self.segment_size, ..VirtioHeader::default() }
    }

    /// The whole, its checksum complete.
    fn packet(&self) -> Vec<u8> {
        self.segment(0, &self.payload, true, true, None)
    }

    /// Segment `index`, its checksum complete, with `ecn`.
    fn cut(&self, index: u32, ecn: Ecn) -> Vec<u8> {
        let size = usize::from(self.segment_size);
        let start = index as usize * size;
        let payload = &self.payload[start..self.payload.len().min(start + size)];
        self.segment(index, payload, index == 0, index + 1 == self.segments(), Some(ecn))
    }

    fn segment(&self, index: u32, payload: &[u8], first: bool, last: bool, ecn: Option<Ecn>) -> Vec<u8> {
        let mut transport = self.transport.clone();
        match &mut transport {
            Transport::Tcp(tcp) => {
                tcp.sequence_number = tcp.sequence_number.wrapping_add(index * u32::from(self.segment_size));
                tcp.fin &= last;
                tcp.psh &= last;
                tcp.cwr &= first;
                tcp.checksum = match &self.network {
                    Network::V4(ip) => tcp.calc_checksum_ipv4_raw(ip.source, ip.destination, payload),
                    Network::V6(ip, _) => tcp.calc_checksum_ipv6_raw(ip.source, ip.destination, payload),
                }
                .expect("it is short enough");
                if tcp.checksum == 0 {
                    tcp.checksum = 0xFFFF;
                }
            }
            Transport::Udp(udp) => {
                udp.length = 8 + payload.len() as u16;
                udp.checksum = match &self.network {
                    Network::V4(ip) => udp.calc_checksum_ipv4_raw(ip.source, ip.destination, payload),
                    Network::V6(ip, _) => udp.calc_checksum_ipv6_raw(ip.source, ip.destination, payload),
                }
                .expect("it is short enough");
            }
        }
        let transport = match transport {
            Transport::Tcp(tcp) => tcp.to_bytes().to_vec(),
            Transport::Udp(udp) => udp.to_bytes().to_vec(),
        };
        let network = match &self.network {
            Network::V4(ip) => {
                let mut ip = ip.clone();
                ip.identification = ip.identification.wrapping_add(index as u16);
                ip.set_payload_len(transport.len() + payload.len()).expect("it is short enough");
                ip.ecn = ecn.map_or(ip.ecn, |ecn| IpEcn::try_new(ecn.bits()).expect("it has two bits"));
                ip.header_checksum = ip.calc_header_checksum();
                ip.to_bytes().to_vec()
            }
            Network::V6(ip, has_options) => {
                let mut ip = ip.clone();
                let options = if *has_options { &PADDING[..] } else { &[] };
                ip.payload_length = (options.len() + transport.len() + payload.len()) as u16;
                if *has_options {
                    ip.next_header = IpNumber(0);
                }
                ip.traffic_class = ecn.map_or(ip.traffic_class, |ecn| ip.traffic_class & !3 | ecn.bits());
                [&ip.to_bytes()[..], options].concat()
            }
        };
        [&network[..], &transport, payload].concat()
    }
}

prop_compose! {
    fn ipv4(protocol: u8)(
        (dscp, ecn, identification, dont_fragment, time_to_live) in (0u8..64, 0u8..4, any::<u16>(), any::<bool>(), 1u8..),
        (mut source, mut destination) in any::<([u8; 4], [u8; 4])>(),
        options in prop::collection::vec(any::<[u8; 4]>(), 0..=10),
    ) -> Network {
        source[0] = 10;
        destination[0] = 10;
        Network::V4(Ipv4Header {
            dscp: IpDscp::try_new(dscp).expect("it has six bits"),
            ecn: IpEcn::try_new(ecn).expect("it has two bits"),
            identification,
            dont_fragment,
            more_fragments: false,
            fragment_offset: IpFragOffset::ZERO,
            time_to_live,
            protocol: IpNumber(protocol),
            source,
            destination,
            options: options.concat()[..].try_into().expect("they are whole words"),
            ..Ipv4Header::default()
        })
    }
}

prop_compose! {
    fn ipv6(protocol: u8)(
        (traffic_class, flow_label, hop_limit) in (any::<u8>(), 0u32..1 << 20, any::<u8>()),
        (mut source, mut destination, has_options) in any::<([u8; 16], [u8; 16], bool)>(),
    ) -> Network {
        source[0] = 0x20;
        destination[0] = 0x20;
        let header = Ipv6Header {
            traffic_class,
            flow_label: Ipv6FlowLabel::try_new(flow_label).expect("it has 20 bits"),
            payload_length: 0,
            next_header: IpNumber(protocol),
            hop_limit,
            source,
            destination,
        };
        // The next header of the options is TCP.
        Network::V6(header, has_options && protocol == 6)
    }
}

prop_compose! {
    fn tcp()(
        (source, destination, sequence, window, acknowledgment) in any::<(u16, u16, u32, u16, u32)>(),
        flags in any::<[bool; 8]>(),
        options in prop::collection::vec(any::<[u8; 4]>(), 0..=10),
    ) -> Transport {
        let mut tcp = TcpHeader::new(source, destination, sequence, window);
        tcp.acknowledgment_number = acknowledgment;
        [tcp.fin, tcp.syn, tcp.rst, tcp.psh, tcp.ack, tcp.urg, tcp.ece, tcp.cwr] = flags;
        tcp.set_options_raw(&options.concat()).expect("they fit");
        Transport::Tcp(tcp)
    }
}

prop_compose! {
    fn udp()((source_port, destination_port) in any::<(u16, u16)>()) -> Transport {
        Transport::Udp(UdpHeader { source_port, destination_port, length: 0, checksum: 0 })
    }
}

fn super_segment() -> impl Strategy<Value = Super> {
    let headers = prop_oneof![(ipv4(6), tcp()), (ipv6(6), tcp()), (ipv4(17), udp()), (ipv6(17), udp()),];
    // Up to the maximum for an IPv4 packet with the longest headers.
    let sizes = prop_oneof![(0usize..4000, 1u16..3000), (0usize..=65_535 - 120, 500u16..)];
    (headers, sizes, any::<u8>()).prop_map(|((network, transport), (length, segment_size), seed)| Super {
        network,
        transport,
        payload: (0..length).map(|index| (index * 7 / 3) as u8 ^ seed).collect(),
        segment_size,
    })
}

fn ecn() -> impl Strategy<Value = Ecn> {
    (0u8..4).prop_map(Ecn::from_bits)
}

/// The kernel's input for segments `first..=last`.
fn written(frame: &Frame, packet: &[u8], first: u32, last: u32, ecn: Ecn) -> (VirtioHeader, Vec<u8>) {
    let mut buffer = [0xAA; MAX_HEADER];
    let written = frame.write_segments(packet, first..=last, ecn, &mut buffer);
    (written.header, [written.bytes, &packet[written.payload]].concat())
}

/// A single outgoing segment, with a complete checksum.
fn completed(frame: &Frame, packet: &[u8], index: u32, ecn: Ecn) -> Vec<u8> {
    let (header, mut segment) = written(frame, packet, index, index, ecn);
    assert_eq!(header.gso_type, 0);
    assert_eq!(segment.len(), frame.segment_bytes(index) as usize);
    complete_checksum(&header, &mut segment);
    segment
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn each_segment_is_the_one_that_the_oracle_builds(each in super_segment(), ecn in ecn()) {
        let packet = each.packet();
        let frame = Frame::inspect(&each.virtio(), &packet).unwrap();
        prop_assert_eq!(frame.segments(), each.segments());
        prop_assert_eq!(frame.bytes() as usize, packet.len());
        for index in 0..each.segments().min(300) {
            prop_assert_eq!(completed(&frame, &packet, index, ecn), each.cut(index, ecn));
        }
    }

    #[test]
    fn a_run_is_the_super_segment_of_its_segments(
        each in super_segment(), (a, b) in any::<(prop::sample::Index, prop::sample::Index)>(), ecn in ecn(),
    ) {
        let packet = each.packet();
        let frame = Frame::inspect(&each.virtio(), &packet).unwrap();
        let segments = each.segments() as usize;
        let (a, b) = (a.index(segments) as u32, b.index(segments) as u32);
        let (first, last) = (a.min(b), a.max(b));
        let (header, run) = written(&frame, &packet, first, last, ecn);
        if last > first {
            let has_cwr = first == 0 && each.gso_type() & VirtioHeader::HAS_CWR != 0;
            prop_assert_eq!(header.gso_type & VirtioHeader::HAS_CWR != 0, has_cwr);
        }
        let again = Frame::inspect(&header, &run).unwrap();
        prop_assert_eq!(again.segments(), last - first + 1);
        for index in first..=last.min(first + 100) {
            prop_assert_eq!(completed(&again, &run, index - first, ecn), each.cut(index, ecn));
        }
        // The open checksum contains the pseudo header: completed over the whole run it is correct.
        let mut whole = run;
        complete_checksum(&header, &mut whole);
        prop_assert_eq!(transport_checksum(&whole), Ok(()));
    }

    #[test]
    fn a_packet_that_is_not_cut_keeps_its_bytes_but_for_ecn(each in super_segment(), ecn in ecn(), is_open: bool) {
        let size = u16::MAX;
        let each = Super { segment_size: size, ..each };
        let packet = each.packet();
        let mut header = VirtioHeader::default();
        if is_open {
            let transport = match &each.network {
                Network::V4(ip) => ip.header_len() as u16,
                Network::V6(_, has_options) => if *has_options { 48 } else { 40 },
            };
            header.flags = VirtioHeader::NEEDS_CHECKSUM;
            header.checksum_start = transport;
            header.checksum_offset = if matches!(each.transport, Transport::Tcp(_)) { 16 } else { 6 };
        }
        // A packet socket may add padding at the end.
        let padded = [&packet[..], &[0; 6]].concat();
        let frame = Frame::inspect(&header, &padded).unwrap();
        prop_assert_eq!(frame.segments(), 1);
        let (header_out, same) = written(&frame, &padded, 0, 0, frame.ecn());
        prop_assert_eq!(&same, &packet);
        prop_assert_eq!(header_out, header);
        prop_assert_eq!(written(&frame, &padded, 0, 0, ecn).1, each.cut(0, ecn));
    }

    #[test]
    fn no_bytes_make_it_panic(
        header: [u8; 10], mut bytes in prop::collection::vec(any::<u8>(), 0..200), version in 0u8..3, kind in 0usize..6,
    ) {
        let mut header = VirtioHeader::from_bytes(&header);
        header.gso_type = [0, 1, 4, 5, 0x81, header.gso_type][kind];
        prop_assert_eq!(VirtioHeader::from_bytes(&header.to_bytes()), header);
        shape(&mut bytes, version);
        assert_offloads(&header, &bytes);
    }

    #[test]
    fn no_damage_makes_it_panic(
        each in super_segment(), damage in prop::collection::vec((0usize..120, any::<u8>()), 0..6), keep: prop::sample::Index,
        gso_size: u16,
    ) {
        let mut packet = each.packet();
        for (at, value) in damage {
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        }
        shape(&mut packet, 3);
        assert_offloads(&VirtioHeader { segment_size: gso_size, ..each.virtio() }, &packet);
        let keep = keep.index(packet.len() + 1);
        assert_offloads(&each.virtio(), &packet[..keep]);
    }
}

/// Makes random bytes more plausible as a packet: version 4 or 6 with the right length, and a
/// correct IPv4 checksum.
fn shape(bytes: &mut [u8], version: u8) {
    let length = bytes.len() as u16;
    match (version, bytes.len()) {
        (1, 20..) => {
            bytes[0] = 0x45 + (bytes[0] & 3);
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
            bytes[9] = if bytes[9] & 1 == 0 { 6 } else { 17 };
        }
        (2, 40..) => {
            bytes[0] = 0x60;
            bytes[4..6].copy_from_slice(&(length - 40).to_be_bytes());
            bytes[6] = [0, 6, 17, 43, 44, 51, 58, 60][usize::from(bytes[6] & 7)];
        }
        _ => {}
    }
    let header = usize::from(bytes.first().map_or(0, |first| first & 0x0F)) * 4;
    if bytes.first().is_some_and(|first| first >> 4 == 4) && (20..=bytes.len()).contains(&header) {
        bytes[10..12].fill(0);
        let checksum = airpath_wire::checksum::Sum::of(&bytes[..header]).checksum();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Any accepted packet can be split, and its parts add up.
fn assert_offloads(header: &VirtioHeader, packet: &[u8]) {
    let Ok(frame) = Frame::inspect(header, packet) else { return };
    assert!(frame.bytes() as usize <= packet.len());
    let mut payload = 0;
    let mut buffer = [0; MAX_HEADER];
    let all = frame.write_segments(packet, 0..=frame.segments() - 1, Ecn::Ce, &mut buffer).payload;
    for index in 0..frame.segments() {
        let written = frame.write_segments(packet, index..=index, Ecn::Ce, &mut buffer);
        assert_eq!((written.bytes.len() + written.payload.len()) as u32, frame.segment_bytes(index));
        assert_eq!(written.payload.start, all.start + payload, "segments follow each other");
        payload += written.payload.len();
        if index < 3 {
            let mut segment = [written.bytes, &packet[written.payload]].concat();
            complete_checksum(&written.header, &mut segment);
            let again = Frame::inspect(&VirtioHeader::default(), &segment).expect("a segment is a packet");
            assert_eq!((again.bytes(), again.ecn()), (frame.segment_bytes(index), Ecn::Ce));
        }
    }
    assert_eq!(payload, all.len(), "nothing is left over");
    let mut copy = packet.to_vec();
    complete_checksum(header, &mut copy);
}

/// Whether the transport checksum of `packet` is correct.
fn transport_checksum(packet: &[u8]) -> Result<(), String> {
    let sliced = etherparse::SlicedPacket::from_ip(packet).map_err(|error| error.to_string())?;
    let ip = sliced.net.ok_or("no network header")?;
    let (source, destination): (Vec<u8>, Vec<u8>) = match &ip {
        etherparse::NetSlice::Ipv4(ip) => (ip.header().source().to_vec(), ip.header().destination().to_vec()),
        etherparse::NetSlice::Ipv6(ip) => (ip.header().source().to_vec(), ip.header().destination().to_vec()),
        _ => return Err("no IP".to_owned()),
    };
    let payload = ip.ip_payload_ref().ok_or("no payload")?;
    let length = (payload.payload.len() as u32).to_be_bytes();
    let pseudo = [&source[..], &destination, &[0, payload.ip_number.0], &length].concat();
    let sum = airpath_wire::checksum::Sum::of(&pseudo).and(payload.payload);
    sum.holds().then_some(()).ok_or_else(|| "the checksum does not hold".to_owned())
}

#[test]
fn every_cause_has_a_name_of_its_own() {
    let mut names: Vec<_> = EntryDropCause::ALL.iter().map(|cause| cause.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), EntryDropCause::ALL.len());
}
