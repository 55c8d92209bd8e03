//! Causes of scripted QUIC flows.

use airpath_web::Mark;
use proptest::prelude::*;

use super::*;

/// A flow in a capture at one end; times are in milliseconds.
struct Flow {
    causes: QuicCauses,
    frame: u64,
    spin: [Option<bool>; 2],
    pieces: Vec<Piece>,
}

impl Flow {
    /// The handshake and a request; the round trip is 100 ms.
    fn at(near: End) -> Self {
        let mut flow = Self { causes: QuicCauses::new(), frame: 0, spin: [None; 2], pieces: Vec::new() };
        let (answered, confirmed) = if near == End::Client { (100, 100) } else { (0, 100) };
        flow.long(End::Client, 0, true);
        flow.long(End::Server, answered, true);
        flow.long(End::Client, confirmed, false);
        flow.send(End::Client, confirmed, 30);
        flow.send(End::Client, confirmed, 200);
        flow
    }

    fn take(&mut self, from: End, millis: u64, length: u32, has_initial: bool, is_short: bool) {
        self.frame += 1;
        let time = Instant::from_nanos(millis * 1_000_000);
        let spin = if is_short { Some(self.spin[from as usize].unwrap_or(false)) } else { None };
        let mark = Mark { time, frame: self.frame };
        let datagram = QuicDatagram { flow: 1, mark, from, length, has_initial, spin, is_established: is_short };
        let pieces = &mut self.pieces;
        self.causes.observe(&datagram, &mut |piece| pieces.push(*piece));
    }

    fn long(&mut self, from: End, millis: u64, has_initial: bool) {
        self.take(from, millis, 1200, has_initial, false);
    }

    fn send(&mut self, from: End, millis: u64, length: u32) {
        self.take(from, millis, length, false, true);
    }

    fn turn(&mut self, from: End) {
        let bit = &mut self.spin[from as usize];
        *bit = Some(!bit.unwrap_or(false));
    }

    fn account(self) -> (Account, Vec<Piece>) {
        let Self { causes, mut pieces, .. } = self;
        let account = causes.finish(&mut |piece| pieces.push(*piece));
        (account, pieces)
    }
}

fn millis(account: &Account, cause: Cause) -> u64 {
    account.of(cause).as_nanos() / 1_000_000
}

/// Whether a time in milliseconds is the expected one, within a tenth and 5 ms.
fn is_about(millis: u64, expected: u64) -> bool {
    millis.abs_diff(expected) <= expected / 10 + 5
}

#[test]
fn a_server_that_thinks_is_an_application() {
    let mut flow = Flow::at(End::Client);
    // The acknowledgement of the request; the response comes two seconds later.
    flow.send(End::Server, 205, 30);
    flow.send(End::Server, 2200, 300);
    let (account, _) = flow.account();
    assert_eq!(millis(&account, Cause::SetUp), 100);
    assert_eq!(millis(&account, Cause::Latency), 105);
    assert!(is_about(millis(&account, Cause::Application), 1995), "{account}");
}

#[test]
fn a_user_who_thinks_is_an_application() {
    let mut flow = Flow::at(End::Server);
    flow.send(End::Server, 101, 300);
    flow.send(End::Client, 202, 30);
    flow.send(End::Client, 5000, 200);
    flow.send(End::Server, 5001, 300);
    flow.send(End::Client, 5102, 30);
    let (account, _) = flow.account();
    assert!(is_about(millis(&account, Cause::Application), 4800), "{account}");
    assert!(is_about(millis(&account, Cause::Latency), 200), "{account}");
}

/// A close (RFC 9000 §10.2) is as short as an acknowledgement.
#[test]
fn a_short_datagram_after_a_pause_is_no_late_acknowledgement() {
    let mut flow = Flow::at(End::Server);
    flow.send(End::Server, 101, 300);
    flow.send(End::Client, 202, 30);
    flow.send(End::Client, 5000, 38);
    let (account, _) = flow.account();
    assert!(is_about(millis(&account, Cause::Application), 4800), "{account}");
    assert!(millis(&account, Cause::Latency) < 110, "{account}");
}

/// The last datagram before the pause is full, as if more followed; then the client sends one.
fn paused_stream(answered: Option<u64>) -> Account {
    let mut flow = Flow::at(End::Client);
    for at in 200..204 {
        flow.send(End::Server, at, 1200);
        flow.send(End::Client, at, 30);
    }
    flow.send(End::Client, 5000, 60);
    if let Some(at) = answered {
        flow.send(End::Server, at, 300);
    }
    flow.account().0
}

#[test]
fn a_pause_until_the_flow_is_closed_is_an_application() {
    let account = paused_stream(None);
    assert!(is_about(millis(&account, Cause::Application), 4800), "{account}");
    assert_eq!(millis(&account, Cause::Radio), 0, "{account}");
}

#[test]
fn a_late_answer_does_not_make_the_pause_before_the_request_a_gap() {
    let account = paused_stream(Some(5500));
    assert!(is_about(millis(&account, Cause::Application), 4800), "{account}");
    assert!((350..=500).contains(&millis(&account, Cause::Radio)), "{account}");
}

#[test]
fn a_turn_of_the_spin_bit_that_waits_for_data_is_no_round_trip() {
    let mut flow = Flow::at(End::Server);
    flow.send(End::Server, 101, 300);
    flow.turn(End::Client);
    flow.send(End::Client, 201, 200);
    // The acknowledgement needs no answer; the response comes 80 ms later.
    flow.turn(End::Server);
    flow.send(End::Server, 202, 30);
    flow.send(End::Server, 282, 300);
    flow.turn(End::Client);
    flow.send(End::Client, 382, 200);
    assert_eq!(flow.causes.spin.last_sample(), None);
    flow.turn(End::Server);
    flow.send(End::Server, 383, 300);
    flow.turn(End::Client);
    flow.send(End::Client, 483, 30);
    assert_eq!(flow.causes.spin.last_sample(), Some(Span::from_millis(100)));
}

/// The last acknowledgement comes before a round trip is over, as one of a part of the data.
#[test]
fn a_sender_without_probes_had_no_data_in_flight() {
    let mut flow = Flow::at(End::Server);
    for at in 101..110 {
        flow.send(End::Server, at, 1200);
    }
    flow.send(End::Client, 180, 30);
    flow.send(End::Client, 10_000, 200);
    let (account, _) = flow.account();
    assert!(is_about(millis(&account, Cause::Application), 9_820), "{account}");
    assert!(account.stalls.is_empty());
}

/// The acknowledgements of the last data were lost. The server acknowledges what the client sends
/// instead, and that needs no answer: the next request, which turns the spin bit, comes 9 s later.
#[test]
fn a_turn_of_the_spin_bit_does_not_hide_the_pause_that_it_contains() {
    let mut flow = Flow::at(End::Server);
    flow.turn(End::Client);
    flow.send(End::Client, 190, 200);
    let mut begin = 200;
    for _ in 0..4 {
        flow.turn(End::Server);
        for length in [1200, 1200, 1200, 700] {
            flow.send(End::Server, begin, length);
        }
        begin += 100;
        flow.turn(End::Client);
        flow.send(End::Client, begin, 30);
    }
    flow.turn(End::Server);
    flow.send(End::Server, begin, 700);
    flow.turn(End::Client);
    flow.send(End::Client, begin + 400, 60);
    flow.turn(End::Server);
    flow.send(End::Server, begin + 400, 120);
    flow.turn(End::Client);
    flow.send(End::Client, begin + 9400, 200);
    let (account, _) = flow.account();
    assert!(is_about(millis(&account, Cause::Application), 9_000), "{account}");
    assert!(millis(&account, Cause::Radio) < 500, "{account}");
}

#[test]
fn initials_without_an_answer_are_set_up() {
    let mut flow = Flow { causes: QuicCauses::new(), frame: 0, spin: [None; 2], pieces: Vec::new() };
    for at in [0, 1000, 3000] {
        flow.long(End::Client, at, true);
    }
    flow.long(End::Server, 3100, true);
    flow.long(End::Client, 3100, false);
    flow.send(End::Client, 3100, 30);
    let (account, _) = flow.account();
    assert_eq!(millis(&account, Cause::SetUp), 3100);
    assert_eq!(account.stalls.len(), 1);
    assert_eq!(
        account.stalls[0].to_string(),
        "nothing came for 3.10 s (frames 1 to 4), although 2 more datagrams were sent, after pauses"
    );
}

/// Data that arrives evenly; with `turns` the round trip is that, in milliseconds.
fn steady(turns: Option<u64>) -> Account {
    let mut flow = Flow::at(End::Client);
    let (mut next, mut far) = (200, None);
    for at in 200..3200 {
        if let Some(turns) = turns {
            if far == Some(at) {
                flow.turn(End::Server);
                far = None;
                next = at;
            }
            if next == at {
                flow.turn(End::Client);
                far = Some(at + turns);
            }
        }
        flow.send(End::Server, at, 1200);
        flow.send(End::Client, at, 30);
    }
    flow.send(End::Server, 3200, 400);
    flow.account().0
}

#[test]
fn round_trips_show_whether_even_data_fills_the_link() {
    let even = steady(None);
    assert!(is_about(millis(&even, Cause::PathRate), 3000), "{even}");
    let queued = steady(Some(400));
    assert!(millis(&queued, Cause::Queueing) > 2000, "{queued}");
    let paced = steady(Some(100));
    assert!(millis(&paced, Cause::Sender) > 2500, "{paced}");
}

/// Data in flight of these numbers of datagrams, in turn, over a link that takes a millisecond for
/// each; the round trip of the empty path is 100 ms.
fn with_flights(flights: impl Iterator<Item = u64>) -> Account {
    let mut flow = Flow::at(End::Client);
    let mut begin = 200;
    for flight in flights {
        flow.turn(End::Client);
        flow.send(End::Client, begin, 30);
        let round_trip = flight.max(100);
        for number in 1..flight {
            flow.send(End::Server, begin + number * round_trip / flight, 1200);
        }
        begin += round_trip;
        flow.turn(End::Server);
        flow.send(End::Server, begin, 1200);
    }
    flow.send(End::Server, begin + 1, 400);
    flow.account().0
}

#[test]
fn more_data_in_flight_at_the_same_rate_shows_a_full_link_with_a_short_queue() {
    // The sender reduces its window at the AQM's drops.
    let full = with_flights((0..60).map(|number| 95 + number % 8 * 4));
    assert!(millis(&full, Cause::PathRate) * 4 > millis(&full, Cause::Sender) * 9, "{full}");
    // A window, on a link that is not full, and with a short queue.
    for window in [80, 120] {
        let limited = with_flights((0..60).map(|_| window));
        assert!(millis(&limited, Cause::Sender) > 5000, "{limited}");
    }
    // Losses on a link that is never full.
    let lossy = with_flights((0..60).map(|number| 60 + number % 8 * 5));
    assert!(millis(&lossy, Cause::Sender) > 5000, "{lossy}");
}

/// Flights of two full datagrams and a short one; each begins `after` the receiver's datagram.
fn flights_after_acknowledgements(after: u64) -> Account {
    let mut flow = Flow::at(End::Server);
    for at in (101..5000).step_by(100) {
        for length in [1452, 1452, 730] {
            flow.send(End::Server, at, length);
        }
        flow.send(End::Client, at + 100 - after, 44);
    }
    flow.account().0
}

#[test]
fn data_right_after_a_datagram_of_the_receiver_waited_for_it() {
    let limited = flights_after_acknowledgements(0);
    assert!(millis(&limited, Cause::Sender) > 4000, "{limited}");
    let thinking = flights_after_acknowledgements(2);
    assert_eq!(millis(&thinking, Cause::Sender), 0, "{thinking}");
}

/// Six silences of 5 s, each ended by ten acknowledgements, with `between` round trips of 100 ms
/// between two of them.
fn silences(between: u64) -> Account {
    let mut flow = Flow::at(End::Server);
    flow.turn(End::Client);
    flow.send(End::Client, 190, 200);
    let mut begin = 200;
    for _ in 0..6 {
        for number in 0..=between {
            let round_trip = if number == between { 5000 } else { 100 };
            flow.turn(End::Server);
            for _ in 0..10 {
                flow.send(End::Server, begin, 1200);
            }
            if number == between {
                // A probe.
                flow.send(End::Server, begin + 2000, 1200);
            }
            begin += round_trip;
            flow.turn(End::Client);
            for acknowledgement in 0..10 {
                flow.send(End::Client, begin + acknowledgement, 30);
            }
            begin += 10;
        }
    }
    flow.account().0
}

#[test]
fn silences_of_each_round_trip_are_a_half_duplex_mobiles() {
    let held = silences(0);
    assert!(millis(&held, Cause::Radio) < 5100, "{held}");
    assert!(millis(&held, Cause::PathRate) + millis(&held, Cause::Queueing) > 20_000, "{held}");
    let interrupted = silences(20);
    assert!(millis(&interrupted, Cause::Radio) > 28_000, "{interrupted}");
}

#[test]
fn probes_without_an_answer_show_a_silent_path() {
    let mut flow = Flow::at(End::Server);
    // A response, then an outage of six seconds. Probes follow at doubling intervals.
    for at in [101, 102, 103] {
        flow.send(End::Server, at, 1200);
    }
    flow.send(End::Client, 201, 30);
    for at in [202, 203, 500, 1000, 2000, 4000] {
        flow.send(End::Server, at, 1200);
    }
    flow.send(End::Client, 6500, 30);
    let (account, _) = flow.account();
    assert!(is_about(millis(&account, Cause::Radio), 6200), "{account}");
    assert_eq!(account.stalls[0].tail_probes, 4);
}

#[test]
fn an_answer_to_a_probe_shows_a_loss() {
    let mut flow = Flow::at(End::Server);
    flow.send(End::Server, 101, 300);
    flow.send(End::Server, 1000, 300);
    flow.send(End::Client, 1100, 30);
    let (account, pieces) = flow.account();
    assert!(is_about(millis(&account, Cause::Timer), 850), "{account}");
    assert!(pieces.iter().any(|piece| piece.cause == Cause::Timer && piece.confidence == Confidence::Low));
}

#[test]
fn a_radio_log_names_the_time_of_a_gap() {
    use crate::radio::{Columns, RadioLog};

    let log = "begin,end,direction,name\n1000000000,3000000000,,handover\n";
    let log = Arc::new(RadioLog::read(log, &Columns::intervals()).expect("the log is complete"));
    let mut flow = Flow::at(End::Server);
    flow.causes = flow.causes.with_radio(log, End::Client);
    for at in 101..1100 {
        flow.send(End::Server, at, 1200);
        if at > 200 && at < 1000 {
            flow.send(End::Client, at, 30);
        }
    }
    for at in 3000..3100 {
        flow.send(End::Client, at, 30);
    }
    let (account, _) = flow.account();
    assert!(is_about(millis(&account, Cause::Radio), 2000), "{account}");
    assert_eq!(account.radio_states.len(), 1);
    assert_eq!(&*account.radio_states[0].name, "handover");
}

proptest! {
    /// Any datagrams at any times: the pieces follow each other, and add up to the flow's time.
    #[test]
    fn the_pieces_add_up_to_the_time(
        near in prop::bool::ANY,
        datagrams in prop::collection::vec(
            (prop::bool::ANY, prop_oneof![0..3_u64, 0..200_u64, 0..5000_u64], 0..4_usize, prop::bool::ANY),
            0..300,
        ),
    ) {
        let mut flow = Flow::at(if near { End::Client } else { End::Server });
        let mut now = 100;
        for (is_client, step, size, turns) in datagrams {
            now += step;
            let from = if is_client { End::Client } else { End::Server };
            if turns {
                flow.turn(from);
            }
            flow.send(from, now, [30, 200, 1200, 9000][size]);
        }
        let (account, pieces) = flow.account();
        prop_assert_eq!(account.total(), Span::from_millis(now));
        let mut end = Instant::ZERO;
        for piece in pieces {
            prop_assert_eq!(piece.begin, end);
            prop_assert!(piece.cause != Cause::SlowStart && piece.cause != Cause::CongestionWindow);
            end = piece.end;
        }
        prop_assert_eq!(end, Instant::from_nanos(now * 1_000_000));
    }

    /// Times that step back, as in a damaged capture.
    #[test]
    fn any_times_are_counted_once(times in prop::collection::vec(prop::num::u64::ANY, 1..100)) {
        let mut flow = Flow { causes: QuicCauses::new(), frame: 0, spin: [None; 2], pieces: Vec::new() };
        for (index, time) in times.into_iter().enumerate() {
            flow.frame += 1;
            let mark = Mark { time: Instant::from_nanos(time), frame: flow.frame };
            let from = if time % 2 == 0 { End::Client } else { End::Server };
            let length = (time >> 8) as u32 % 2000;
            let is_established = index > 3;
            let datagram = QuicDatagram {
                flow: 1,
                mark,
                from,
                length,
                has_initial: index < 2,
                spin: is_established.then_some(time % 3 == 0),
                is_established,
            };
            let pieces = &mut flow.pieces;
            flow.causes.observe(&datagram, &mut |piece| pieces.push(*piece));
        }
        let (account, pieces) = flow.account();
        let sum = pieces.iter().fold(Span::ZERO, |sum, piece| sum + piece.end.since(piece.begin));
        prop_assert_eq!(account.total(), sum);
    }
}
