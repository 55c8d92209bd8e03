//! Connections of several pairs of ports: which segment belongs to which, and when each ends.

use airpath_wire::segment::{Route, Tunnel};

use super::*;
use crate::events::Events;
use crate::observation::End;
use crate::testing;

/// Reported segments as connection and sender, and the ended connections.
#[derive(Default)]
struct Log {
    observed: Vec<(u64, End)>,
    ended: Vec<(u64, Ending)>,
    events: Events,
}

impl Listener for Log {
    fn observed(&mut self, flow: FlowNumber, observation: &Observation, _: &Segment<'_>, connection: &Connection) {
        assert_eq!(connection.last(), observation.time, "the connection includes the segment");
        self.observed.push((flow.0, observation.from));
        self.events = observation.events;
    }

    fn ended(&mut self, flow: FlowNumber, _: &Connection, why: Ending) {
        self.ended.push((flow.0, why));
    }
}

/// A segment of a connection with this port of the client.
fn segment(port: u16, line: &str) -> Segment<'static> {
    let (mut segment, from) = testing::segment(line, 1);
    match from {
        End::Client => segment.route.source.port = port,
        End::Server => segment.route.destination.port = port,
    }
    segment
}

/// Flows, with the log of their listener.
struct Capture {
    flows: Flows,
    log: Log,
}

impl Capture {
    fn new(limits: Limits) -> Self {
        Self { flows: Flows::new(limits), log: Log::default() }
    }

    fn segment(&mut self, port: u16, line: &str) {
        self.flows.segment(&segment(port, line), &mut self.log);
    }

    /// A connection that both ends close from this millisecond on; the last segment comes 5 ms
    /// later.
    fn closing(&mut self, port: u16, millis: u64) {
        for (later, line) in
            (0..).zip(["> syn", "< syn ack 0", "> fin ack 0", "< ack 1", "< fin ack 1", "> at 1 ack 1"])
        {
            self.segment(port, &format!("{} {line}", millis + later));
        }
    }

    fn finish(&mut self) -> &[(u64, Ending)] {
        self.flows.finish(&mut self.log);
        assert_eq!(self.flows.open(), 0);
        &self.log.ended
    }
}

/// Ports whose connections are in one shard.
fn ports() -> impl Iterator<Item = u16> {
    let shard = |port: &u16| shard_of(hash(&segment(*port, "0 > syn").route));
    let first = shard(&4000);
    (4000..).filter(move |port| shard(port) == first)
}

const LIMITS: Limits = Limits { idle: Span::from_secs(60), linger: Span::from_secs(10), lingering: 1000 };

#[test]
fn endings_have_the_names_of_the_tables() {
    let all = [Ending::Closed, Ending::Idle, Ending::Reused, Ending::EndOfCapture];
    assert_eq!(all.map(Ending::name), ["closed", "idle", "ports-reused", "open"]);
}

#[test]
fn both_directions_belong_to_one_connection() {
    let mut capture = Capture::new(LIMITS);
    for (port, line) in
        [(1, "0 > syn"), (1, "1 < syn ack 0"), (2, "2 > syn"), (1, "3 > ack 0"), (3, "4 < syn ack 0"), (3, "5 > ack 0")]
    {
        capture.segment(port, line);
    }
    use End::{Client, Server};
    // A SYN-ACK without a SYN shows which end is the server.
    assert_eq!(capture.log.observed, [(1, Client), (1, Server), (2, Client), (1, Client), (3, Server), (3, Client)]);
    assert_eq!((capture.flows.begun(), capture.flows.open()), (3, 3));
    assert_eq!(
        capture.finish(),
        [(1, Ending::EndOfCapture), (2, Ending::EndOfCapture), (3, Ending::EndOfCapture)],
        "in the order of their numbers"
    );
}

#[test]
fn a_closed_connection_is_stored_for_late_segments() {
    let mut ports = ports();
    let mut port = || ports.next().expect("a sixteenth of the ports");
    let (first, second, third) = (port(), port(), port());
    let mut capture = Capture::new(LIMITS);
    capture.closing(first, 0);
    // A late segment still belongs to it, and does not prolong it.
    capture.segment(first, "9000 > data 0..0 ack 1");
    assert_eq!(capture.log.observed.last(), Some(&(1, End::Client)));
    capture.closing(second, 10_000);
    assert!(capture.log.ended.is_empty(), "at 10.005 s it has lingered for 10 s, and not longer");
    capture.closing(third, 10_001);
    assert_eq!(capture.log.ended, [(1, Ending::Closed)]);
    assert_eq!(capture.finish(), [(1, Ending::Closed), (2, Ending::Closed), (3, Ending::Closed)]);
}

#[test]
fn a_connection_is_open_until_both_ends_have_closed_it() {
    let mut capture = Capture::new(LIMITS);
    for line in ["0 > syn", "1 < syn ack 0", "2 > fin ack 0", "3 < ack 1", "4 < fin ack 1"] {
        capture.segment(4000, line);
    }
    assert_eq!(capture.finish(), [(1, Ending::EndOfCapture)], "the second FIN is not acknowledged");
    let mut capture = Capture::new(LIMITS);
    capture.segment(4000, "0 > syn");
    capture.segment(4000, "1 < rst ack 0");
    assert_eq!(capture.finish(), [(1, Ending::Closed)], "a reset closes both directions");
}

#[test]
fn too_many_closed_connections_end_in_the_order_of_their_closing() {
    // Two for each of the sixteen shards; 17 to 32 give two as well.
    for lingering in [17, 32] {
        let mut capture = Capture::new(Limits { lingering, ..LIMITS });
        for (number, port) in (0..).zip(ports().take(4)) {
            capture.closing(port, 10 * number);
        }
        assert_eq!(capture.log.ended, [(1, Ending::Closed), (2, Ending::Closed)], "{lingering}");
        assert_eq!(capture.flows.open(), 2);
    }
}

#[test]
fn an_idle_connection_is_removed() {
    let mut ports = ports();
    let (idle, busy) = (ports.next().expect("some"), ports.next().expect("some"));
    let mut capture = Capture::new(LIMITS);
    capture.segment(idle, "0 > syn");
    // Every 256 segments of a shard its connections are examined.
    (0..254).for_each(|_| capture.segment(busy, "59000 > syn"));
    capture.segment(busy, "60000 > syn");
    (0..255).for_each(|_| capture.segment(busy, "60001 > syn"));
    assert!(capture.log.ended.is_empty(), "at the first examination it was idle for 60 s, and not longer");
    assert_eq!(capture.flows.open(), 2);
    capture.segment(busy, "60001 > syn");
    assert_eq!(capture.log.ended, [(1, Ending::Idle)]);
    assert_eq!(capture.flows.open(), 1);
    capture.segment(idle, "60002 > ack 0");
    assert_eq!(capture.log.observed.last(), Some(&(3, End::Client)), "another connection on the same ports");
    assert!(!capture.log.events.contains(Events::REUSED_PORTS));
}

#[test]
fn all_connections_of_a_shard_are_examined_in_turn() {
    let mut capture = Capture::new(LIMITS);
    let ports: Vec<u16> = ports().take(41).collect();
    let (busy, idle) = ports.split_first().expect("41 ports");
    idle.iter().for_each(|port| capture.segment(*port, "0 > syn"));
    // Sixteen of the 41 at each of the three times.
    (0..3 * 256).for_each(|_| capture.segment(*busy, "61000 > syn"));
    let mut ended: Vec<u64> = capture.log.ended.iter().map(|(number, _)| *number).collect();
    ended.sort_unstable();
    assert_eq!(ended, (1..=40).collect::<Vec<u64>>());
    assert!(capture.log.ended.iter().all(|(_, why)| *why == Ending::Idle));
}

#[test]
fn a_syn_with_another_number_begins_another_connection() {
    let again = |lines: &[&str], line: &str, other_number: bool| {
        let mut capture = Capture::new(LIMITS);
        lines.iter().for_each(|line| capture.segment(4000, line));
        let mut syn = segment(4000, line);
        syn.sequence = syn.sequence.wrapping_add(u32::from(other_number) * 500_000);
        capture.flows.segment(&syn, &mut capture.log);
        let reused = capture.log.events.contains(Events::REUSED_PORTS);
        assert_eq!(capture.log.ended, if reused { vec![(1, Ending::Reused)] } else { vec![] });
        assert_eq!(capture.flows.open(), 1);
        reused
    };
    let open = ["0 > syn", "1 < syn ack 0", "2 > ack 0", "3 > data 0..100 ack 0", "4 < ack 100"];
    assert!(!again(&open, "9 > syn", false), "a retransmission");
    assert!(again(&open, "9 > syn", true), "RFC 6528: a new initial sequence number");
    assert!(!again(&open, "9 < syn ack 100", true), "of a SYN cookie, for example");
    let reset = [&open[..], &["5 > rst"]].concat();
    assert!(again(&reset, "9 < syn ack 100", true), "the connection was over");
    assert!(!again(&["3 > data 0..100 ack 0"], "9 > syn", true), "its own SYN was not captured, and it is not over");
}

/// The server still has an earlier connection of these ports, whose reset was lost (RFC 9293
/// §3.5.1, figure 9).
#[test]
fn a_half_open_connection_that_is_discovered_is_not_this_one() {
    let mut capture = Capture::new(LIMITS);
    let earlier = |line: &str| {
        let mut earlier = segment(4000, line);
        earlier.sequence = earlier.sequence.wrapping_add(900_000);
        earlier.acknowledgment = earlier.acknowledgment.wrapping_sub(700_000);
        earlier
    };
    capture.segment(4000, "0 > syn");
    capture.flows.segment(&earlier("1 < ack 0"), &mut capture.log);
    let mut reset = segment(4000, "2 > rst");
    reset.sequence = earlier("1 < ack 0").acknowledgment;
    capture.flows.segment(&reset, &mut capture.log);
    let this =
        ["1000 > syn", "1001 < syn ack 0", "1002 > ack 0", "1003 > data 0..100 ack 0", "1004 < data 0..50 ack 100"];
    this.iter().for_each(|line| capture.segment(4000, line));
    assert!(!capture.log.events.contains(Events::REUSED_PORTS));
    assert_eq!(capture.flows.begun(), 1);
    let numbers: Vec<u64> = capture.log.observed.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1; 8]);
    assert_eq!(capture.finish(), [(1, Ending::EndOfCapture)]);
}

#[test]
fn the_hash_is_the_same_in_both_directions() {
    let route = segment(4000, "0 > syn").route;
    assert_eq!(hash(&route), hash(&route.reversed()));
    let tunnels = [Tunnel::None, Tunnel::Gtp, Tunnel::Ip].map(|tunnel| hash(&Route { tunnel, ..route }));
    assert!(tunnels[0] != tunnels[1] && tunnels[1] != tunnels[2] && tunnels[2] != tunnels[0]);
    assert_eq!([0, 0x0fff_ffff, 0x1000_0000, 0xffff_ffff].map(shard_of), [0, 0, 1, 15]);
    // 3200 connections: 200 for each shard on average, with a standard deviation of 14.
    let mut shards = [0_u32; SHARDS];
    (4000..7200).for_each(|port| shards[shard_of(hash(&segment(port, "0 > syn").route))] += 1);
    assert!(shards.iter().all(|count| (130..270).contains(count)), "{shards:?}");
}
