//! Tests of the packets of a host.

use super::recorder::FORGOTTEN_AFTER;
use super::*;
use airpath_observe::testing::segment;

fn log(lines: &[&str]) -> Arc<HostLog> {
    let paths = Arc::new(SharedPaths::default());
    let mut recorder = Recorder::new(Arc::clone(&paths));
    let segments: Vec<_> = lines.iter().map(|line| segment(line, 1).0).collect();
    segments.iter().for_each(|segment| recorder.segment(segment));
    paths.host(segment("0 > ack 0", 1).0.route.source.address).unwrap()
}

fn at(millis: u64) -> Instant {
    segment(&format!("{millis} > ack 0"), 1).0.time
}

#[test]
fn silences_are_between_the_packets_of_a_direction() {
    let log = log(&["0 > ack 0", "100 < ack 0", "1000 > ack 0", "1200 < ack 0", "1400 > ack 0"]);
    let (from, to) = log.longest_silence(Passage::Received, at(100), at(1300));
    assert_eq!((from, to), (at(120), at(1200)));
    assert_eq!(log.packets(Passage::Received, at(0), at(1300)), 2);
    assert_eq!(log.packets(Passage::Received, at(0), at(1200)), 1);
}

/// A capture in which a host that opens a connection is followed by another host.
struct Hosts {
    paths: Arc<SharedPaths>,
    recorder: Recorder,
}

impl Hosts {
    const HOST: &str = "192.0.2.7";

    fn new() -> Self {
        let paths = Arc::new(SharedPaths::default());
        let mut hosts = Self { recorder: Recorder::new(Arc::clone(&paths)), paths };
        ["0 > syn", "100 < syn ack 0", "101 > ack 0"].iter().for_each(|line| hosts.host_passes(line));
        hosts
    }

    fn host_passes(&mut self, line: &str) {
        let (mut packet, host) = (segment(line, 1).0, Self::HOST.parse().unwrap());
        let is_sent = line.contains('>');
        if is_sent {
            packet.route.source.address = host
        } else {
            packet.route.destination.address = host
        }
        self.recorder.segment(&packet);
    }

    fn others_pass(&mut self, packets: u64) {
        let packet = segment("200 > ack 0", 1).0;
        (0..packets).for_each(|_| self.recorder.segment(&packet));
    }

    fn host(&self) -> Option<Arc<HostLog>> {
        self.paths.host(Self::HOST.parse().unwrap())
    }
}

#[test]
fn hosts_without_packets_are_forgotten() {
    let mut hosts = Hosts::new();
    hosts.others_pass(FORGOTTEN_AFTER);
    assert!(hosts.host().is_some());
    hosts.others_pass(FORGOTTEN_AFTER);
    assert!(hosts.host().is_none());
    assert!(hosts.paths.host(segment("0 > ack 0", 1).0.route.source.address).is_some());
}

#[test]
fn the_log_of_an_open_connection_is_not_replaced() {
    let mut hosts = Hosts::new();
    let held = hosts.host().unwrap();
    hosts.others_pass(2 * FORGOTTEN_AFTER);
    hosts.host_passes("300 > ack 0");
    assert!(hosts.host().is_some_and(|log| Arc::ptr_eq(&log, &held)));
    // The connection is over.
    drop(held);
    hosts.others_pass(2 * FORGOTTEN_AFTER);
    assert!(hosts.host().is_none());
}

/// A connection that ends by idling drops its log earlier or later, depending on how far the
/// analysis is.
#[test]
fn what_is_known_of_a_host_does_not_depend_on_who_holds_its_log() {
    let server = segment("0 < ack 0", 1).0.route.source.address;
    let known = |is_held: bool| {
        let mut hosts = Hosts::new();
        let held = hosts.host().filter(|_| is_held);
        hosts.others_pass(2 * FORGOTTEN_AFTER);
        hosts.host_passes("300 > ack 0");
        hosts.host_passes("500 > ack 0");
        assert_eq!(held.is_some(), is_held);
        let log = hosts.host().unwrap();
        (log.round_trip(server, at(400)), log.packets(Passage::Sent, at(0), at(400)))
    };
    assert_eq!(known(true), known(false));
}

#[test]
fn the_shortest_handshake_is_the_round_trip() {
    let log = log(&["0 > syn", "100 < syn ack 0", "101 > ack 0", "500 > syn at -1", "550 < syn ack 0", "550 > ack 0"]);
    let server = segment("0 < ack 0", 1).0.route.source.address;
    assert_eq!(log.round_trip(server, at(50)), None);
    assert_eq!(log.round_trip(server, at(200)), Some(Span::from_millis(100)));
    assert_eq!(log.round_trip(server, at(600)), Some(Span::from_millis(50)));
}

/// Before the first packet of a capture nothing is known.
#[test]
fn silences_after_a_packet_do_not_begin_before_the_capture() {
    let log = log(&["9000 > ack 0", "9100 < ack 0", "9400 < ack 0", "9500 > ack 0"]);
    assert_eq!(log.longest_silence(Passage::Received, at(0), at(9500)), (at(0), at(9100)));
    let after = log.longest_silence_after_packet(Passage::Received, at(0), at(9500));
    assert_eq!(after, Some((at(9120), at(9400))));
    assert_eq!(log.longest_silence_after_packet(Passage::Received, at(0), at(9000)), None);
}
