//! Generated packets at given times.

use airpath_core::{AppStep, Ecn, Span};
use airpath_wire::checksum::Sum;
use airpath_wire::icmp::{EchoTypes, IcmpEcho};
use airpath_wire::ip::Protocol;
use airpath_wire::ipv4::Ipv4Header;
use airpath_wire::tcp::{Flags, Options, TcpHeader};
use airpath_wire::udp::UdpHeader;

use super::*;
use crate::offload::VirtioHeader;

const UP: Direction = Direction::Up;
const DOWN: Direction = Direction::Down;
const ACK: Flags = Flags::ACK;

/// A link that delivers or loses each packet as the test requests.
#[derive(Default)]
struct Link {
    observer: Observer,
}

/// A packet that has entered, with its direction.
struct Entered {
    direction: Direction,
    frame: Frame,
    bytes: Vec<u8>,
    segment: u32,
    entered: Instant,
    seen: Sighting,
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

impl Link {
    fn enters(&mut self, millis: u64, direction: Direction, bytes: Vec<u8>) -> Entered {
        self.segments(millis, direction, bytes, VirtioHeader::default()).pop().expect("there is a segment")
    }

    fn segments(&mut self, millis: u64, direction: Direction, bytes: Vec<u8>, header: VirtioHeader) -> Vec<Entered> {
        let frame = Frame::inspect(&header, &bytes).expect("it is a packet");
        let enter = |segment| {
            let seen = self.observer.enters(at(millis), direction, &frame, &bytes, segment);
            Entered { direction, frame, bytes: bytes.clone(), segment, entered: at(millis), seen }
        };
        (0..frame.segments()).map(enter).collect()
    }

    fn leaves(&mut self, millis: u64, packet: &Entered) -> Option<AppEvent> {
        let &Entered { direction, ref frame, ref bytes, segment, entered, seen } = packet;
        let passage = Passage { entered, number: Some(seen.number), due: at(millis), now: at(millis) };
        self.observer.leaves(passage, direction, (seen.flow, Ecn::NotEct), frame, bytes, segment)
    }

    fn is_lost(&mut self, packet: &Entered) {
        self.observer.is_lost(packet.direction, packet.seen.flow, packet.frame.segment_bytes(packet.segment));
    }

    /// Carries a packet with a delay of ten milliseconds.
    fn carries(&mut self, millis: u64, direction: Direction, bytes: Vec<u8>) -> Sighting {
        let packet = self.enters(millis, direction, bytes);
        self.leaves(millis + 10, &packet);
        packet.seen
    }

    fn rows(&self) -> Vec<serde_json::Value> {
        self.observer.rows(0, "mobile").iter().map(|row| serde_json::to_value(row).unwrap()).collect()
    }
}

fn ip(direction: Direction, protocol: Protocol, transport: &[u8]) -> Vec<u8> {
    let (mobile, server) = ([10, 0, 0, 2].into(), [192, 0, 2, 1].into());
    let (source, destination) = if direction == UP { (mobile, server) } else { (server, mobile) };
    let mut bytes = vec![0; Ipv4Header::LENGTH];
    Ipv4Header {
        dscp: 0,
        ecn: Ecn::NotEct,
        total_length: (Ipv4Header::LENGTH + transport.len()) as u16,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        time_to_live: 64,
        protocol,
        source,
        destination,
    }
    .emit(&mut bytes);
    bytes.extend_from_slice(transport);
    bytes
}

/// A segment between port 5000 of the mobile and port 80 of the server.
fn tcp(direction: Direction, sequence: u32, acknowledgment: u32, flags: Flags, length: usize) -> Vec<u8> {
    with_options(direction, sequence, acknowledgment, flags, length, Options::default())
}

fn with_options(
    direction: Direction,
    sequence: u32,
    acknowledgment: u32,
    flags: Flags,
    length: usize,
    options: Options,
) -> Vec<u8> {
    let (source_port, destination_port) = if direction == UP { (5000, 80) } else { (80, 5000) };
    let header = TcpHeader {
        source_port,
        destination_port,
        sequence,
        acknowledgment,
        flags,
        window: 1000,
        options,
        ..TcpHeader::default()
    };
    let mut bytes = vec![0; header.wire_length() + length];
    header.emit(&mut bytes, Sum::default());
    ip(direction, Protocol::TCP, &bytes)
}

fn scaled(shift: u8) -> Options {
    Options { window_scale: Some(shift), maximum_segment_size: Some(1460), sack_permitted: true, ..Options::default() }
}

/// The mobile's SYN at 0 ms, with the numbers 1000 and 2000; established at 20 ms.
fn established() -> Link {
    let mut link = Link::default();
    link.carries(0, UP, with_options(UP, 1000, 0, Flags::SYN, 0, scaled(7)));
    link.carries(10, DOWN, with_options(DOWN, 2000, 1001, Flags::SYN | ACK, 0, scaled(3)));
    link.carries(20, UP, tcp(UP, 1001, 2001, ACK, 0));
    link
}

#[test]
fn a_download_with_a_loss_has_the_row_of_a_download() {
    let mut link = established();
    link.carries(20, UP, tcp(UP, 1001, 2001, ACK, 100));
    let first = link.carries(40, DOWN, tcp(DOWN, 2001, 1101, ACK, 1000)).segment.unwrap();
    assert_eq!((first.offset, first.length, first.ack.get(), first.window), (0, 1000, Some(100), 8000));
    let lost = link.enters(41, DOWN, tcp(DOWN, 3001, 1101, ACK, 1000));
    link.is_lost(&lost);
    link.carries(42, DOWN, tcp(DOWN, 4001, 1101, ACK, 500));
    let ack = link.carries(50, UP, tcp(UP, 1101, 3001, ACK, 0)).segment.unwrap();
    assert_eq!((ack.offset, ack.ack.get(), ack.window), (100, Some(1000), 128_000));
    let again = link.carries(70, DOWN, tcp(DOWN, 3001, 1101, ACK, 1000)).segment.unwrap();
    assert_eq!((again.offset, again.retransmission), (1000, true));
    link.carries(80, UP, tcp(UP, 1101, 4501, ACK, 0));
    link.carries(90, DOWN, tcp(DOWN, 4501, 1101, ACK | Flags::FIN, 0));
    link.carries(100, UP, tcp(UP, 1101, 4502, ACK | Flags::FIN, 0));
    link.carries(110, DOWN, tcp(DOWN, 4502, 1102, ACK, 0));

    let rows = link.rows();
    let row = &rows[0];
    let expected = [
        ("name", "10.0.0.2:5000 → 192.0.2.1:80"),
        ("kind", "tcp"),
        ("local", "10.0.0.2:5000"),
        ("remote", "192.0.2.1:80"),
        ("direction", "down"),
        ("outcome", "finished"),
    ];
    for (field, value) in expected {
        assert_eq!(row[field], value, "{field}");
    }
    let numbers = [
        ("bytes", 2500.0),
        ("delivered_bytes", 2500.0),
        ("connect_s", 0.020),
        ("first_byte_s", 0.050),
        ("duration_s", 0.080),
        ("acknowledged_s", 0.090),
        ("throughput_bps", 250_000.0),
        ("data_packets", 4.0),
        ("data_bytes", 3500.0),
        ("unique_bytes", 2500.0),
        ("retransmitted_packets", 1.0),
        ("retransmitted_bytes", 1000.0),
        ("ack_packets", 3.0),
        // Those of the SYN, the first segment and the FIN; none is measurable after the
        // retransmission.
        ("rtt_samples", 3.0),
        ("rtt_min_s", 0.020),
        ("rtt_max_s", 0.020),
    ];
    for (field, value) in numbers {
        assert_eq!(row[field].as_f64(), Some(value), "{field}");
    }
    for unknown in ["timeouts", "fast_retransmits", "undone", "cause"] {
        assert!(row[unknown].is_null(), "{unknown}");
    }
    assert_eq!(row["down"]["offered_packets"], 7);
    assert_eq!(row["down"]["lost_packets"], 1);
    assert_eq!(row["up"]["delivered_packets"], 6);
    assert_eq!(row["tcp"]["negotiated"]["segment_size"], 1460);
    assert_eq!(row["tcp"]["negotiated"]["peer_window_scale"], 7);
}

#[test]
fn a_round_trip_over_a_retransmission_is_not_one() {
    let mut link = Link::default();
    let samples = |link: &Link| link.rows()[0]["rtt_samples"].as_u64().unwrap();
    let syn = link.enters(0, UP, tcp(UP, 1000, 0, Flags::SYN, 0));
    link.is_lost(&syn);
    link.carries(1000, UP, tcp(UP, 1000, 0, Flags::SYN, 0));
    link.carries(1010, DOWN, tcp(DOWN, 2000, 1001, Flags::SYN | ACK, 0));
    link.carries(1020, UP, tcp(UP, 1001, 2001, ACK, 100));
    link.carries(1030, UP, tcp(UP, 1101, 2001, ACK, 100));
    link.carries(1031, UP, tcp(UP, 1201, 2001, ACK, 100));
    assert_eq!(samples(&link), 0, "which SYN was answered?");
    // The second is retransmitted, which makes it and the third unusable; the first and the later
    // ones count.
    link.carries(1100, UP, tcp(UP, 1101, 2001, ACK, 100));
    link.carries(1101, UP, tcp(UP, 1301, 2001, ACK, 100));
    for (millis, acknowledged, count) in [(1110, 1101, 1), (1120, 1201, 1), (1130, 1301, 1), (1140, 1401, 2)] {
        link.carries(millis, DOWN, tcp(DOWN, 2001, acknowledged, ACK, 0));
        assert_eq!(samples(&link), count, "up to {acknowledged}");
    }
}

#[test]
fn a_super_segment_is_seen_as_its_segments() {
    let mut link = established();
    let header = VirtioHeader { gso_type: VirtioHeader::TCP_OVER_IPV4, segment_size: 1000, ..VirtioHeader::default() };
    let packets = link.segments(30, UP, tcp(UP, 1001, 2001, ACK | Flags::PSH | Flags::FIN, 2500), header);
    let seen: Vec<_> = packets.iter().map(|packet| packet.seen.segment.unwrap()).collect();
    assert_eq!(
        seen.iter().map(|info| (info.offset, info.length)).collect::<Vec<_>>(),
        [(0, 1000), (1000, 1000), (2000, 500)]
    );
    assert_eq!(seen.iter().map(|info| info.flags).collect::<Vec<_>>(), [0x10, 0x10, 0x19]);
    for (millis, packet) in (40..).zip(&packets) {
        link.leaves(millis, packet);
    }
    let row = &link.rows()[0];
    assert_eq!((&row["direction"], &row["outcome"]), (&"up".into(), &"finished".into()));
    assert_eq!(row["duration_s"].as_f64(), Some(0.042));
}

#[test]
fn sequence_numbers_go_on_beyond_4_gib() {
    let mut link = established();
    let mut sequence: u32 = 2001;
    // Five steps of a GiB, with one observed packet each.
    for step in 0..5_i64 {
        let info = link.carries(30, DOWN, tcp(DOWN, sequence, 1001, ACK, 10)).segment.unwrap();
        assert_eq!(info.offset, step << 30);
        sequence = sequence.wrapping_add(1 << 30);
    }
    let ack = link.carries(40, UP, tcp(UP, 1001, sequence.wrapping_sub(1 << 30), ACK, 0)).segment.unwrap();
    assert_eq!(ack.ack.get(), Some(4 << 30));
}

#[test]
fn resets_and_refused_connections_are_distinguished() {
    let mut refused = Link::default();
    refused.carries(0, UP, tcp(UP, 1000, 0, Flags::SYN, 0));
    refused.carries(10, DOWN, tcp(DOWN, 0, 1001, Flags::RST | ACK, 0));
    let row = &refused.rows()[0];
    assert_eq!((&row["outcome"], &row["cause"]), (&"aborted".into(), &"refused by the server".into()));
    assert!(row["connect_s"].is_null() && row["duration_s"].is_null());

    let mut reset = established();
    reset.carries(30, DOWN, tcp(DOWN, 2001, 1001, ACK, 500));
    reset.carries(40, UP, tcp(UP, 1001, 0, Flags::RST, 0));
    let row = &reset.rows()[0];
    assert_eq!((&row["outcome"], &row["cause"]), (&"aborted".into(), &"reset by the mobile".into()));
    assert_eq!(row["delivered_bytes"], 500);

    let mut open = established();
    open.carries(30, DOWN, tcp(DOWN, 2001, 1001, ACK, 500));
    let row = &open.rows()[0];
    assert_eq!((&row["outcome"], &row["duration_s"]), (&"unfinished".into(), &serde_json::Value::Null));
}

#[test]
fn a_port_that_is_used_again_is_another_flow() {
    let mut link = established();
    let again = link.carries(100, UP, tcp(UP, 1000, 0, Flags::SYN, 0));
    assert_eq!((again.flow, again.segment.map(|info| info.retransmission)), (FlowId(0), Some(true)), "sent again");
    let another = link.carries(200, UP, tcp(UP, 77_000, 0, Flags::SYN, 0));
    assert_eq!((another.flow, another.segment.map(|info| info.offset)), (FlowId(1), Some(-1)));
    assert_eq!(link.carries(210, DOWN, tcp(DOWN, 9000, 77_001, Flags::SYN | ACK, 0)).flow, FlowId(1));
    assert_eq!(link.rows().len(), 2);
}

/// The server still has an earlier connection of these ports (RFC 9293 §3.5.1, figure 9).
#[test]
fn the_syn_ack_after_the_reset_of_an_earlier_connection_has_the_same_flow() {
    let mut link = Link::default();
    link.carries(0, UP, tcp(UP, 77_000, 0, Flags::SYN, 0));
    let refused = link.carries(10, DOWN, tcp(DOWN, 9_000_000, 400_000, ACK, 0));
    link.carries(20, UP, tcp(UP, 400_000, 0, Flags::RST, 0));
    link.carries(1000, UP, tcp(UP, 77_000, 0, Flags::SYN, 0));
    let accepted = link.carries(1010, DOWN, tcp(DOWN, 500_000, 77_001, Flags::SYN | ACK, 0));
    assert_eq!([refused.flow, accepted.flow], [FlowId(0); 2]);
    assert_eq!(accepted.segment.map(|info| (info.offset, info.ack.get())), Some((-1, Some(0))));
    let data = link.carries(1020, DOWN, tcp(DOWN, 500_001, 77_001, ACK, 100));
    assert_eq!((data.flow, data.segment.map(|info| info.offset)), (FlowId(0), Some(0)));
}

#[test]
fn a_connection_whose_beginning_was_not_seen_begins_with_what_was() {
    let mut link = Link::default();
    let info = link.carries(0, DOWN, tcp(DOWN, 500_000, 9_000, ACK, 100)).segment.unwrap();
    assert_eq!((info.offset, info.ack.get(), info.window), (0, Some(0), 1000));
    let info = link.carries(10, UP, tcp(UP, 9_000, 500_100, ACK, 50)).segment.unwrap();
    assert_eq!((info.offset, info.ack.get()), (0, Some(100)));
}

fn udp(direction: Direction, length: usize) -> Vec<u8> {
    let (source_port, destination_port) = if direction == UP { (5000, 53) } else { (53, 5000) };
    let mut bytes = vec![0; UdpHeader::LENGTH + length];
    let length = bytes.len() as u16;
    UdpHeader { source_port, destination_port, length }.emit(&mut bytes, Sum::default());
    ip(direction, Protocol::UDP, &bytes)
}

#[test]
fn datagrams_are_counted_where_more_of_them_go() {
    let mut link = Link::default();
    link.carries(0, UP, udp(UP, 30));
    link.carries(20, DOWN, udp(DOWN, 100));
    let lost = link.enters(30, DOWN, udp(DOWN, 100));
    assert_eq!(link.rows()[0]["outcome"], "unfinished", "one is under way");
    link.is_lost(&lost);
    let row = &link.rows()[0];
    assert_eq!((&row["kind"], &row["direction"], &row["outcome"]), (&"udp".into(), &"down".into(), &"finished".into()));
    assert_eq!((&row["sent"], &row["received"], &row["lost"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!(row["up"]["delivered_bytes"], 58);
}

#[test]
fn datagrams_have_delays_gaps_and_inter_arrival_times() {
    let mut link = Link::default();
    // Sent every 20 ms; the fourth and fifth are lost, the seventh is late and overtaken.
    let sent: Vec<Entered> = (0..8).map(|number| link.enters(20 * number, DOWN, udp(DOWN, 100))).collect();
    for (number, left) in [(0, 30), (1, 50), (2, 80), (5, 130), (7, 175), (6, 300), (6, 310)] {
        link.leaves(left, &sent[number]);
    }
    link.is_lost(&sent[3]);
    link.is_lost(&sent[4]);
    let row = &link.rows()[0];
    assert_eq!((&row["sent"], &row["received"], &row["lost"]), (&8.into(), &6.into(), &2.into()));
    for (key, expected) in [
        ("delay_min_s", 0.030),
        ("delay_p50_s", 0.030),
        ("delay_mean_s", (30.0 + 30.0 + 40.0 + 30.0 + 35.0 + 180.0) / 6e3),
        ("delay_max_s", 0.180),
        ("inter_arrival_max_s", 0.125),
        ("gap_max_s", 0.050),
    ] {
        assert!((row[key].as_f64().unwrap() - expected).abs() < 1e-12, "{key}: {}", row[key]);
    }
    assert_eq!((&row["gaps"], &row["gap_most_lost"]), (&1.into(), &2.into()));
    assert_eq!((&row["late"], &row["late_threshold_s"]), (&1.into(), &0.15.into()));
    assert_eq!((&row["reordered"], &row["duplicates"]), (&1.into(), &1.into()));
}

fn echo(direction: Direction, reply: bool, sequence: u16) -> Vec<u8> {
    let mut bytes = vec![0; IcmpEcho::LENGTH + 56];
    IcmpEcho { reply, identifier: 7, sequence }.emit(EchoTypes::V4, &mut bytes, Sum::default());
    ip(direction, Protocol::ICMP, &bytes)
}

#[test]
fn an_echo_that_comes_back_is_a_round_trip() {
    let mut link = Link::default();
    link.carries(0, UP, echo(UP, false, 1));
    let reply = link.enters(11, DOWN, echo(DOWN, true, 1));
    let event = link.leaves(25, &reply).unwrap();
    assert_eq!(event.step, AppStep::Arrived { sequence: 1, delay: Span::from_millis(25) });
    assert_eq!(event.delivered.get(), 56);
    assert!(link.leaves(26, &reply).is_none(), "twice is once");
    link.carries(1000, UP, echo(UP, false, 2));
    let row = &link.rows()[0];
    assert_eq!((&row["kind"], &row["name"]), (&"ping".into(), &"10.0.0.2 → 192.0.2.1 (ping 7)".into()));
    assert_eq!((&row["sent"], &row["received"], &row["lost"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!(row["delay_mean_s"].as_f64(), Some(0.025));
}

#[test]
fn what_has_no_ports_is_a_flow_of_its_addresses() {
    let mut link = Link::default();
    let mut fragment = udp(UP, 8);
    fragment[6] = 0x20;
    fragment[10..12].fill(0);
    let checksum = Sum::of(&fragment[..20]).checksum();
    fragment[10..12].copy_from_slice(&checksum.to_be_bytes());
    link.carries(0, UP, fragment);
    link.carries(10, UP, ip(UP, Protocol(47), &[0; 20]));
    link.carries(20, DOWN, ip(DOWN, Protocol(47), &[0; 20]));
    link.carries(30, DOWN, ip(DOWN, Protocol::ICMP, &[3; 8]));
    let rows = link.rows();
    let found: Vec<_> = rows.iter().map(|row| (row["kind"].as_str().unwrap(), row["name"].as_str().unwrap())).collect();
    let expected = [
        ("ip", "10.0.0.2 → 192.0.2.1 (protocol 17)"),
        ("ip", "10.0.0.2 → 192.0.2.1 (protocol 47)"),
        ("icmp", "10.0.0.2 ← 192.0.2.1 (protocol 1)"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn flows_beyond_the_most_are_one() {
    let mut link = Link::default();
    let mut packet = udp(UP, 8);
    for port in 0..MOST_FLOWS as u32 + 10 {
        packet[20..22].copy_from_slice(&(port as u16).to_be_bytes());
        packet[23] = 53 + (port >> 16) as u8;
        link.carries(0, UP, packet.clone());
    }
    assert_eq!(link.carries(0, UP, udp(UP, 8)).flow, FlowId(5000), "those that are known stay so");
    let rows = link.rows();
    assert_eq!(rows.len(), MOST_FLOWS + 1);
    let rest = &rows[MOST_FLOWS];
    assert_eq!((&rest["name"], &rest["sent"]), (&"flows beyond the first 65536".into(), &10.into()));
    assert!(rest["local"].is_null());
}

#[test]
fn a_flow_of_a_middlebox_has_the_addresses_of_another() {
    let mut link = Link::default();
    let syn = link.enters(0, UP, tcp(UP, 99, 0, Flags::SYN, 0));
    let mobile = link.observer.route(syn.seen.flow, UP).expect("it is TCP");
    let end = |port| Endpoint { port, ..mobile.source };
    assert_eq!(link.observer.begin_on_path(at(1), end(5000), mobile.destination), None, "the mobile uses the port");
    let flow = link.observer.begin_on_path(at(1), end(61_000), mobile.destination).expect("it is free");
    let route = link.observer.route(flow, UP).expect("it is TCP");
    assert_eq!((route.source.address, route.source.port), (mobile.source.address, 61_000));
    assert_eq!(route.destination, mobile.destination);
    let mut answer = tcp(DOWN, 499, 1, Flags(Flags::SYN.0 | ACK.0), 0);
    answer[22..24].copy_from_slice(&61_000_u16.to_be_bytes());
    assert_eq!(link.enters(2, DOWN, answer).seen.flow, flow);
    let again = link.observer.begin_on_path(at(3), end(61_000), mobile.destination);
    let again = again.expect("only the middlebox uses it");
    assert_ne!(again, flow);
}
