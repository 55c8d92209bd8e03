//! A path with two clocks, made by hand: what was put in must come out.

use std::net::{IpAddr, Ipv4Addr};

use airpath_core::Instant;
use airpath_wire::tcp::Flags;
use proptest::prelude::*;

use super::digest::{ConnectionDigest, DirectionDigest};
use super::*;
use airpath_observe::End::{Client, Server};
use airpath_observe::flows::Flows;
use airpath_observe::testing::segment;
use airpath_wire::segment::{Endpoint, Tunnel};

/// One delay through the path.
#[derive(Clone, Copy, Debug)]
struct Delay {
    milliseconds: u64,
    /// How much queues add at most.
    jitter: u64,
}

/// A connection captured at both ends; the client's clock is the true one.
struct Path {
    delays: [Delay; 2],
    /// The server's clock.
    clock: Clock,
    /// Sent and received by client and server, by the clock at the place.
    taps: [[Vec<PacketDigest>; 2]; 2],
    /// One past the highest offset there, by who sent it.
    highest: [[i64; 2]; 2],
    frames: [u64; 2],
    draws: u64,
    identified: bool,
}

const ORIGIN: Instant = Instant::from_nanos(1_700_000_000_000_000_000);

impl Path {
    fn new(there: Delay, back: Delay, offset: i64, skew: f64) -> Self {
        Self {
            delays: [there, back],
            clock: Clock { origin: ORIGIN, offset, skew },
            taps: Default::default(),
            highest: [[0; 2]; 2],
            frames: [0; 2],
            draws: 1,
            identified: true,
        }
    }

    /// A number of a plain generator (Knuth's multiplier).
    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.draws >> 33
    }

    /// Sends a packet `milliseconds` after the beginning; it arrives unless it is lost. Returns the
    /// true time of arrival.
    fn send(&mut self, from: End, milliseconds: u64, offset: i64, length: u32, lost: bool) -> Instant {
        let delay = self.delays[from as usize];
        let sent = ORIGIN + Span::from_millis(milliseconds);
        // Squared, so that many packets meet hardly any queue.
        let share = (self.draw() % 1000) as f64 / 1000.0;
        let queue = Span::from_secs_f64(delay.jitter as f64 / 1000.0 * share * share);
        let arrival = sent + Span::from_millis(delay.milliseconds) + queue;
        self.note(from, from, sent, offset, length);
        if !lost {
            self.note(from.other(), from, arrival, offset, length);
            // The very same packet.
            let [client, server] = &mut self.taps;
            let (here, there) = if from == Client { (client, server) } else { (server, client) };
            let original = *here[from as usize].last().expect("it was sent just now");
            let copy = there[from as usize].last_mut().expect("it arrived just now");
            *copy = PacketDigest { time: copy.time, frame: copy.frame, ..original };
        }
        arrival
    }

    fn note(&mut self, at: End, from: End, time: Instant, offset: i64, length: u32) {
        let time = if at == Client { time } else { by_second(&self.clock, time) };
        self.frames[at as usize] += 1;
        let frame = self.frames[at as usize];
        let highest = &mut self.highest[at as usize][from as usize];
        let before = offset < *highest;
        *highest = (*highest).max(offset + i64::from(length));
        self.taps[at as usize][from as usize].push(PacketDigest {
            time,
            frame,
            offset,
            length,
            acknowledgment: 77,
            timestamp: None,
            // At most 65535 by the remainder.
            identification: self.identified.then_some((frame % 65_535 + 1) as u16),
            window: 1000,
            flags: Flags::ACK,
            resent: before && length > 0,
            refused: false,
        });
    }

    fn taps(self) -> (CaptureDigest, CaptureDigest) {
        let [client, server] = self.taps;
        (tap(client, 10, 40_000), tap(server, 20, 50_123))
    }

    fn join(self) -> JoinedCaptures {
        let (first, second) = self.taps();
        join(first, second, &JoinOptions::default()).unwrap()
    }
}

/// A time of the true clock by one that goes wrong.
fn by_second(clock: &Clock, time: Instant) -> Instant {
    let since = time.since(clock.origin).as_nanos();
    let shown = since as i64 + clock.offset + (since as f64 * clock.skew) as i64;
    Instant::from_nanos(clock.origin.as_nanos().checked_add_signed(shown).unwrap())
}

/// A capture with one connection, whose client has this address and port there: address translation
/// is between the two.
fn tap(packets: [Vec<PacketDigest>; 2], last: u8, port: u16) -> CaptureDigest {
    let endpoint = |last, port| Endpoint { address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), port };
    let route = Route { source: endpoint(last, port), destination: endpoint(99, 80), tunnel: Tunnel::None };
    let mut bases = [5_000, 4_294_967_000].into_iter();
    let directions = packets.map(|mut packets| {
        // They were noted in the order of sending.
        packets.sort_by_key(|packet| packet.time);
        DirectionDigest { packets, base: bases.next().unwrap(), has_syn: true }
    });
    let mut tap = CaptureDigest::default();
    tap.connections.insert(FlowNumber(1), ConnectionDigest { flow: FlowNumber(1), route, directions });
    tap
}

/// Data from the client every 20 ms and an acknowledgement for each, over `seconds`.
fn traffic(path: &mut Path, seconds: u64) {
    for number in 0..seconds * 50 {
        path.send(Client, number * 20, number as i64 * 100, 100, false);
        path.send(Server, number * 20 + 7, 0, 0, false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Offset and skew come out as they were put in, whatever they are.
    #[test]
    fn clocks_are_found(
        offset in -3_600_000_000_000_i64..3_600_000_000_000,
        millionths in prop::sample::select(vec![-200.0, -50.0, -20.0, 20.0, 50.0, 200.0]),
        jitter in 1_u64..60,
        draws in any::<u64>(),
    ) {
        let delay = Delay { milliseconds: 50, jitter };
        let mut path = Path::new(delay, delay, offset, millionths * 1e-6);
        path.draws = draws;
        traffic(&mut path, 120);
        let fit = path.join().fit.unwrap();
        prop_assert!(fit.skewed);
        prop_assert!((fit.clock.skew * 1e6 - millionths).abs() < 1.0, "{} of {millionths}", fit.clock.skew * 1e6);
        prop_assert!((fit.clock.offset - offset).abs() < 100_000, "{} ns of {offset}", fit.clock.offset);
        prop_assert!(fit.uncertainty.abs_diff(Span::from_millis(50)) < Span::from_micros(200));
    }
}

#[test]
fn asymmetric_delays_shift_the_offset_within_the_uncertainty() {
    let mut path =
        Path::new(Delay { milliseconds: 80, jitter: 5 }, Delay { milliseconds: 20, jitter: 5 }, 1_000_000_000, 0.0);
    traffic(&mut path, 20);
    let fit = path.join().fit.unwrap();
    let error = fit.clock.offset.abs_diff(1_000_000_000);
    // Half of the difference of the delays.
    assert!((29_000_000..31_000_000).contains(&error) && error <= fit.uncertainty.as_nanos(), "{error} ns");
}

#[test]
fn a_queue_that_grows_is_no_skew() {
    let delay = Delay { milliseconds: 50, jitter: 3 };
    let mut path = Path::new(delay, delay, 0, 0.0);
    for number in 0..1000 {
        // A millisecond longer with every second.
        path.delays[0].milliseconds = 50 + number * 20 / 1000;
        path.send(Client, number * 20, number as i64 * 100, 100, false);
        path.send(Server, number * 20 + 7, 0, 0, false);
    }
    let fit = path.join().fit.unwrap();
    assert!(!fit.skewed, "{fit:?}");
}

#[test]
fn times_turn_back_into_what_they_were() {
    let clock = Clock { origin: ORIGIN, offset: -12_345_678, skew: 40e-6 };
    for seconds in [0, 1, 3_600, 86_400] {
        let time = ORIGIN + Span::from_secs(seconds) + Span::from_millis(500);
        let back = clock.by_first(by_second(&clock, time));
        assert!(back.since(time).max(time.since(back)) < Span::from_nanos(10), "after {seconds} s");
    }
    assert_eq!(Clock::SAME.by_first(ORIGIN), ORIGIN);
}

/// The second packet is lost and sent again; then the third is sent again although it arrived.
fn losses(identified: bool) -> Path {
    let delay = Delay { milliseconds: 50, jitter: 0 };
    let mut path = Path::new(delay, delay, 0, 0.0);
    path.identified = identified;
    for (milliseconds, offset, lost) in
        [(0, 0, false), (10, 100, true), (20, 200, false), (200, 100, false), (210, 200, false), (300, 300, true)]
    {
        path.send(Client, milliseconds, offset, 100, lost);
    }
    path.send(Server, 75, 0, 0, false);
    path
}

#[test]
fn what_was_lost_and_what_was_sent_in_vain() {
    for identified in [true, false] {
        let ends = losses(identified).join();
        let [connection] = &ends.connections[..] else { panic!("one connection") };
        assert_eq!(
            (connection.near, connection.route.source.port, connection.peer_route.source.port),
            (Client, 40_000, 50_123)
        );
        let sent = connection.sent_by(Client);
        let fates: Vec<_> =
            sent.transits.iter().map(|transit| (transit.arrival().is_some(), transit.spurious)).collect();
        assert_eq!(
            fates,
            [(true, false), (false, false), (true, false), (true, false), (true, true), (false, false)],
            "identified: {identified}"
        );
        assert_eq!((sent.lost, sent.unknown, sent.retransmissions, sent.spurious), (1, 1, 2, 1));
        let frame = sent.transits[4].packet.frame;
        assert_eq!(sent.transit(frame).unwrap().delay(), Some(Span::from_millis(50)));
    }
}

/// The capture of an exchange.
fn captured(exchange: &str) -> CaptureDigest {
    let (mut flows, mut digest) = (Flows::default(), CaptureDigest::default());
    let lines = exchange.lines().filter(|line| !line.trim().is_empty());
    for (line, frame) in lines.zip(1..) {
        flows.segment(&segment(line, frame).0, &mut digest);
    }
    flows.finish(&mut digest);
    digest
}

#[test]
fn data_that_a_closed_window_refused_was_not_sent_in_vain() {
    for (window, spurious) in [("win 0", 0), ("win 5000", 1)] {
        let client = captured(&format!(
            "
            0   > syn
            100 < syn ack 0
            100 > ack 0
            250 < data 0..1000 ack 0
            250 > ack 1000 {window}
            252 < data 1000..2000 ack 0
            252 > ack 1000 {window}
            550 > ack 1000
            650 < data 1000..2000 ack 0
            650 > ack 2000
            "
        ));
        let server = captured(&format!(
            "
            50  > syn
            50  < syn ack 0
            150 > ack 0
            200 < data 0..1000 ack 0
            202 < data 1000..2000 ack 0
            300 > ack 1000 {window}
            302 > ack 1000 {window}
            600 > ack 1000
            600 < data 1000..2000 ack 0
            700 > ack 2000
            "
        ));
        let options = JoinOptions { clock: Some(Clock::SAME), ..JoinOptions::default() };
        let ends = join(server, client, &options).unwrap();
        let sent = ends.connections[0].sent_by(Server);
        assert_eq!((sent.lost, sent.retransmissions, sent.spurious), (0, 1, spurious), "{window}");
    }
}

#[test]
fn either_capture_may_come_first() {
    let (client, server) = losses(true).taps();
    let ends = join(server, client, &JoinOptions::default()).unwrap();
    let connection = &ends.connections[0];
    assert_eq!((connection.near, connection.sent_by(Client).spurious), (Server, 1));
}

#[test]
fn super_segments_are_found_in_their_packets() {
    let delay = Delay { milliseconds: 50, jitter: 0 };
    let mut path = Path::new(delay, delay, 0, 0.0);
    path.send(Server, 0, 0, 0, false);
    // A packet of 3000 bytes is captured before the interface splits it into three; the last is
    // lost.
    path.send(Client, 10, 0, 3000, true);
    let identification = path.taps[0][0][0].identification.unwrap();
    for (number, offset) in [(0, 0), (1, 1000)] {
        path.note(Server, Client, ORIGIN + Span::from_millis(60 + number), offset, 1000);
        path.taps[1][0].last_mut().unwrap().identification = Some(identification + number as u16);
    }
    path.send(Client, 300, 2000, 1000, false);
    let sent = path.join().connections.remove(0).directions[0].clone();
    assert_eq!(sent.transits[0].arrived_bytes, 2000);
    assert_eq!(sent.transits[0].delay(), Some(Span::from_millis(50)));
    assert_eq!((sent.lost, sent.spurious), (0, 0), "what was sent again had been lost");
}

#[test]
fn a_capture_that_began_later_does_not_make_what_was_before_lost() {
    let delay = Delay { milliseconds: 50, jitter: 2 };
    let mut path = Path::new(delay, delay, 0, 0.0);
    traffic(&mut path, 4);
    let (first, mut second) = path.taps();
    let late = second.connections.get_mut(&FlowNumber(1)).unwrap();
    for direction in &mut late.directions {
        direction.has_syn = false;
        direction.packets.drain(..50);
        // Its own offsets begin with what it saw first.
        let origin = direction.packets[0].offset;
        direction.base = direction.base.wrapping_add(origin as u32);
        for packet in &mut direction.packets {
            packet.offset -= origin;
        }
    }
    let ends = join(first, second, &JoinOptions::default()).unwrap();
    let sent = ends.connections[0].sent_by(Client);
    assert_eq!((sent.data_packets, sent.lost, sent.unknown), (200, 0, 50));
}

#[test]
fn delay_periods_gaps_and_the_burst_after() {
    let delay = Delay { milliseconds: 50, jitter: 0 };
    let mut path = Path::new(delay, delay, 0, 0.0);
    path.send(Server, 0, 0, 0, false);
    // Every 100 ms: an outage of 1.2 s from 1 s on holds packets back, one from 4 s on loses them.
    for number in 0..70_u64 {
        let milliseconds = number * 100;
        let held = (1_000..2_200).contains(&milliseconds);
        path.delays[0].milliseconds = if held { 50 + 2_200 - milliseconds } else { 50 };
        path.send(Client, milliseconds, number as i64 * 100, 100, (4_000..5_000).contains(&milliseconds));
    }
    let ends = path.join();
    let sent = ends.connections[0].sent_by(Client);
    let [delayed, lost] = sent.gaps[..] else { panic!("{:?}", sent.gaps) };
    assert_eq!((delayed.has_loss(), delayed.length()), (false, Span::from_millis(1_300)));
    // All that was held, and the packet that came just then, arrive at once.
    assert_eq!(delayed.burst, Burst { packets: 13, bytes: 1_300, time: Span::ZERO });
    assert_eq!((lost.has_loss(), lost.lost, lost.length()), (true, 10, Span::from_millis(1_100)));
    assert_eq!(lost.burst.packets, 1);
    // The client is the mobile: what arrived late had waited for the radio 50 ms before.
    let outages = |near: End| {
        let log = JoinedConnection { near, ..ends.connections[0].clone() }.path_log(Client);
        let since = |time: Instant| time.since(ORIGIN).as_nanos() / 1_000_000;
        log.gaps().iter().map(|gap| (since(gap.begin), since(gap.end))).collect::<Vec<_>>()
    };
    assert_eq!(outages(Server), [(1_000, 2_200), (4_000, 4_900)]);
    // The arrivals of its own data show the delay.
    assert_eq!(outages(Client), [(4_000, 4_900)]);
}

#[test]
fn acknowledgements_that_arrive_in_bunches() {
    let delay = Delay { milliseconds: 50, jitter: 0 };
    let mut path = Path::new(delay, delay, 0, 0.0);
    path.send(Client, 0, 0, 100, false);
    for number in 0..20_u64 {
        // Four at a time wait for the last of them.
        path.delays[1].milliseconds = 50 + (3 - number % 4) * 40;
        path.send(Server, number * 40, 0, 0, false);
    }
    let compression = path.join().connections[0].sent_by(Server).compression;
    assert_eq!(compression, Compression { pairs: 19, compressed: 15, bunches: 5, largest: 4 });
}

#[test]
fn captures_that_do_not_belong_together_are_refused() {
    let (first, _) = losses(true).taps();
    let (_, mut second) = losses(true).taps();
    let other = second.connections.get_mut(&FlowNumber(1)).unwrap();
    other.directions[0].base = 1;
    let refused = join(first, second, &JoinOptions::default()).unwrap_err();
    assert_eq!(refused, JoinError::NothingShared { first: 1, second: 1 });

    let delay = Delay { milliseconds: 50, jitter: 0 };
    let mut one_way = Path::new(delay, delay, 0, 0.0);
    one_way.send(Client, 0, 0, 100, false);
    let (first, second) = one_way.taps();
    assert_eq!(join(first, second, &JoinOptions::default()).unwrap_err(), JoinError::OneWay);
}

/// The last segment of a connection without identifications and timestamps, which the timer sends
/// again: the fates of the two, with the server's clock an hour ahead.
fn last_segment(first_is_lost: bool, again_is_lost: bool, milliseconds: u64) -> [Fate; 2] {
    let delay = |milliseconds| Delay { milliseconds, jitter: 0 };
    let mut path = Path::new(delay(30), delay(30), 3_600_000_000_000, 0.0);
    path.identified = false;
    traffic(&mut path, 1);
    let offset = path.highest[0][Client as usize];
    path.delays[Client as usize] = delay(milliseconds);
    path.send(Client, 2000, offset, 500, first_is_lost);
    path.delays[Client as usize] = delay(30);
    path.send(Client, 2400, offset, 500, again_is_lost);
    let joined = path.join();
    let transits = &joined.connections[0].sent_by(Client).transits;
    [1, 0].map(|back| transits[transits.len() - 1 - back].fate)
}

#[test]
fn a_segment_that_comes_as_soon_as_its_retransmission_is_the_retransmission() {
    assert!(matches!(last_segment(true, false, 30), [Fate::Lost, Fate::Arrived { .. }]));
    // It comes before a packet sent with the retransmission can come.
    assert!(matches!(last_segment(false, true, 30), [Fate::Arrived { .. }, Fate::Unknown]));
    assert!(matches!(last_segment(false, true, 425), [Fate::Arrived { .. }, Fate::Unknown]));
    // Both arrive, in their order.
    assert!(matches!(last_segment(false, false, 410), [Fate::Arrived { .. }, Fate::Arrived { .. }]));
}
