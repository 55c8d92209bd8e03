use std::net::{IpAddr, Ipv4Addr};

use super::*;

fn mark(frame: u64, milliseconds: u64) -> Mark {
    Mark { time: Instant::from_nanos(milliseconds * 1_000_000), frame }
}

fn endpoint(last: u8, port: u16) -> Endpoint {
    Endpoint { address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), port }
}

/// A packet with a long header and `length` bytes behind it, in version 1.
fn long(kind: u8, destination: &[u8], source: &[u8], length: u16) -> Vec<u8> {
    let mut bytes = vec![0xc0 | kind << 4, 0, 0, 0, 1, destination.len() as u8];
    bytes.extend(destination);
    bytes.push(source.len() as u8);
    bytes.extend(source);
    if kind == 0 {
        bytes.push(0);
    }
    bytes.extend((0x4000 | length).to_be_bytes());
    bytes.resize(bytes.len() + usize::from(length), 0xaa);
    bytes
}

fn short(destination: &[u8], spin: bool) -> Vec<u8> {
    let mut bytes = vec![0x40 | u8::from(spin) << 5];
    bytes.extend(destination);
    bytes.extend([0x55; 30]);
    bytes
}

struct Wire {
    flows: QuicFlows,
    frame: u64,
}

impl Wire {
    fn send(&mut self, from: End, milliseconds: u64, bytes: &[u8]) {
        self.frame += 1;
        let (client, server) = (endpoint(1, 40_000), endpoint(2, 443));
        let (source, destination) = if from == End::Client { (client, server) } else { (server, client) };
        self.flows.datagram(mark(self.frame, milliseconds), source, destination, bytes.len() as u32, bytes);
    }
}

fn handshake() -> Wire {
    let mut wire = Wire { flows: QuicFlows::default(), frame: 0 };
    wire.send(End::Client, 0, &long(0, b"original", b"cc", 1200));
    wire.send(End::Server, 100, &[long(0, b"cc", b"sss", 100), long(2, b"cc", b"sss", 900)].concat());
    wire.send(End::Client, 110, &[long(2, b"sss", b"cc", 60), short(b"sss", false)].concat());
    wire
}

#[test]
fn a_handshake_ends_with_the_clients_first_short_header() {
    let quic = &handshake().flows.finish()[0];
    assert_eq!(quic.version, 1);
    assert_eq!(&*quic.original_connection_id, b"original");
    assert_eq!(quic.answered, Some(mark(2, 100)));
    assert_eq!(quic.handshake_time(), Some(Span::from_millis(110)));
    assert_eq!(quic.datagrams, [2, 1]);
    assert_eq!(quic.spin, Spin::Still);
}

#[test]
fn a_bit_that_spins_shows_the_round_trips() {
    let mut wire = handshake();
    for turn in 0..6 {
        for packet in 0..4 {
            wire.send(End::Server, 200 + turn * 120 + packet * 10, &short(b"cc", turn % 2 == 1));
        }
    }
    let Spin::Spinning(samples) = wire.flows.finish()[0].spin.clone() else { panic!("it spins") };
    assert_eq!(samples.len(), 4);
    assert!(samples.iter().all(|sample| sample.round_trip == Span::from_millis(120)));
}

#[test]
fn a_bit_that_turns_over_within_a_flight_is_random() {
    let mut wire = handshake();
    for packet in 0..60 {
        wire.send(End::Server, 200 + packet * 10, &short(b"cc", packet % 3 == 1));
    }
    assert_eq!(wire.flows.finish()[0].spin, Spin::Random);
}

/// A handshake with IDs of eight bytes, and a datagram with a short header from another port of the
/// client.
fn moved(id: &[u8], to: Endpoint) -> (QuicFlows, Option<QuicDatagram>) {
    let mut wire = Wire { flows: QuicFlows::default(), frame: 0 };
    wire.send(End::Client, 0, &long(0, b"original", b"clientid", 1200));
    wire.send(End::Server, 100, &long(0, b"clientid", b"serverid", 1000));
    wire.send(End::Client, 110, &short(b"serverid", false));
    wire.send(End::Server, 120, &short(b"clientid", false));
    let bytes = short(id, false);
    let datagram = wire.flows.datagram(mark(5, 500), endpoint(1, 50_000), to, bytes.len() as u32, &bytes);
    (wire.flows, datagram)
}

#[test]
fn a_client_with_another_port_keeps_its_flow_by_the_connection_id() {
    let (mut flows, datagram) = moved(b"serverid", endpoint(2, 443));
    assert_eq!(datagram.map(|datagram| (datagram.flow, datagram.from)), Some((1, End::Client)));
    // The server answers with another ID of the client.
    let bytes = short(b"newclien", true);
    let answer = flows.datagram(mark(6, 520), endpoint(2, 443), endpoint(1, 50_000), 39, &bytes);
    assert_eq!(answer.map(|datagram| (datagram.flow, datagram.from)), Some((1, End::Server)));
    // Another connection may have the port afterwards.
    let begin = long(0, b"originax", b"clientix", 1200);
    let other = flows.datagram(mark(7, 600), endpoint(1, 50_000), endpoint(2, 443), 1300, &begin);
    assert_eq!(other.map(|datagram| datagram.flow), Some(2));
    let [quic, _] = flows.finish().try_into().expect("two flows");
    assert_eq!((quic.client, quic.address_changes, quic.datagrams), (endpoint(1, 40_000), 1, [3, 3]));
}

#[test]
fn a_flow_with_another_connection_id_or_server_is_not_joined() {
    assert_eq!(moved(b"serveri2", endpoint(2, 443)).1, None);
    assert_eq!(moved(b"serverid", endpoint(3, 443)).1, None);
    // An ID of three bytes does not identify a connection.
    let mut wire = handshake();
    let bytes = short(b"sss", false);
    assert_eq!(wire.flows.datagram(mark(9, 500), endpoint(1, 50_000), endpoint(2, 443), 34, &bytes), None);
}

#[test]
fn other_datagrams_are_skipped() {
    let mut wire = Wire { flows: QuicFlows::default(), frame: 0 };
    for bytes in [&b""[..], b"\x40", b"\xc0\0\0\0\x01\xff", &[0; 1300], &[0xff; 1300], &long(0, b"x", b"y", 40)] {
        wire.send(End::Client, 0, bytes);
    }
    assert!(wire.flows.finish().is_empty());
}

#[test]
fn idle_flows_are_over() {
    let mut flows = QuicFlows::default();
    for number in 0..3 * SWEEP {
        // The port is below 65536 by the remainder.
        let source = endpoint(1, (number % 60_000) as u16);
        flows.datagram(mark(number, number * 1_000), source, endpoint(2, 443), 1250, &long(0, b"x", b"y", 1200));
    }
    assert!(flows.open.len() <= 4096 + 121, "{} are open", flows.open.len());
    assert_eq!(flows.finish().len(), 3 * SWEEP as usize);
}
