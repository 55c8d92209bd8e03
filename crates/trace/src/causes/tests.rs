mod both_ends;
mod closed;
mod copies;
mod exchanges;
mod handshake;
mod held;
mod latency;
mod timeouts;

use airpath_core::{Direction, Instant, Span};
use airpath_wire::tcp::Flags;
use std::sync::Arc;

use super::*;
use crate::radio::{RadioGap, RadioLog};
use airpath_observe::{Events, Retransmission, Sending, Trigger};

/// Payload of a segment.
const SEGMENT: i64 = 1000;

/// The round trip of the path when it is empty.
const ROUND_TRIP: u64 = 100;

/// A connection as the capture at its server sees it; times are in milliseconds.
struct Script {
    observations: Vec<Observation>,
    frame: u64,
    /// When each segment was sent first.
    sent: Vec<u64>,
    delivered: u64,
}

impl Script {
    /// After the handshake, which took a round trip, and a request.
    fn new() -> Self {
        let mut script = Self { observations: Vec::new(), frame: 0, sent: Vec::new(), delivered: 0 };
        script.add(0, End::Client, Flags::SYN, |_| {});
        script.add(0, End::Server, Flags::SYN | Flags::ACK, |_| {});
        script.add(ROUND_TRIP, End::Client, Flags::ACK, |_| {});
        script.add(ROUND_TRIP, End::Client, Flags::ACK | Flags::PSH, |observation| observation.length = 100);
        script.add(ROUND_TRIP, End::Server, Flags::ACK, |observation| {
            observation.acknowledged = Some(100);
            observation.delivered = 100;
        });
        script
    }

    fn add(&mut self, at: u64, from: End, flags: Flags, change: impl FnOnce(&mut Observation)) {
        self.frame += 1;
        let mut observation = Observation {
            frame: self.frame,
            time: Instant::from_nanos(at * 1_000_000),
            from,
            offset: 0,
            length: 0,
            full_segment: SEGMENT as u32,
            flags,
            acknowledged: flags.contains(Flags::ACK).then_some(0),
            delivered: 0,
            window: 1 << 20,
            scale_is_unknown: false,
            events: Events::default(),
            retransmission: None,
            outstanding: 0,
            newly_acknowledged: None,
            unacknowledged_since: None,
            timestamps: None,
            round_trip: None,
            echo_round_trip: None,
            duplicate: None,
            since_push: 0,
            spurious: None,
        };
        change(&mut observation);
        self.observations.push(observation);
    }

    /// The server sends `segments` new segments.
    fn send(&mut self, at: u64, segments: usize) {
        for _ in 0..segments {
            let offset = self.sent.len() as i64 * SEGMENT;
            self.sent.push(at);
            self.add(at, End::Server, Flags::ACK, |observation| {
                (observation.offset, observation.length) = (offset, SEGMENT as u32);
            });
        }
    }

    /// It sends one again.
    fn again(&mut self, at: u64, segment: usize, trigger: Trigger) {
        self.add(at, End::Server, Flags::ACK, |observation| {
            (observation.offset, observation.length) = (segment as i64 * SEGMENT, SEGMENT as u32);
            observation.retransmission = Some(Retransmission { of_frame: None, of_time: None, trigger });
        });
    }

    /// The client acknowledges the first `segments` segments, with this window.
    fn acknowledge_with(&mut self, at: u64, segments: usize, window: u64) {
        let sample = at - self.sent[segments - 1];
        let first = self.sent[(self.delivered / SEGMENT as u64) as usize];
        let [first, last] = [first, self.sent[segments - 1]].map(|time| Instant::from_nanos(time * 1_000_000));
        let sending = Sending { original: first, first, last };
        let next = self.sent.get(segments).map(|time| Instant::from_nanos(time * 1_000_000));
        self.delivered = segments as u64 * SEGMENT as u64;
        let delivered = self.delivered;
        self.add(at, End::Client, Flags::ACK, |observation| {
            (observation.acknowledged, observation.delivered) = (Some(delivered as i64), delivered);
            observation.round_trip = Some((Span::from_millis(sample), 0));
            observation.newly_acknowledged = Some(sending);
            observation.unacknowledged_since = next;
            observation.window = window;
        });
    }

    fn acknowledge(&mut self, at: u64, segments: usize) {
        self.acknowledge_with(at, segments, 1 << 20);
    }

    /// The causes of the time, and the stalls; checks that the pieces are contiguous and add up.
    fn play(&self, radio: Option<RadioLog>) -> (Vec<Piece>, Account) {
        let mut causes = Causes::new(None);
        if let Some(log) = radio {
            causes = causes.with_radio(Arc::new(log), End::Client);
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for observation in &self.observations {
            causes.observe(observation, &mut |piece| pieces.push(*piece));
        }
        assert_eq!(causes.near(), Some(End::Server));
        let account = causes.finish(&mut |piece| pieces.push(*piece));
        for (one, next) in pieces.iter().zip(&pieces[1..]) {
            assert_eq!(one.end, next.begin, "{pieces:?}");
        }
        let elapsed = self.observations.last().unwrap().time.since(self.observations[0].time);
        assert_eq!(account.total(), elapsed);
        (pieces, account)
    }

    fn times(&self) -> Account {
        self.play(None).1
    }
}

fn milliseconds(account: &Account, cause: Cause) -> u64 {
    account.of(cause).as_nanos() / 1_000_000
}

#[test]
fn handshake_think_time_and_closing_are_exact() {
    let mut script = Script::new();
    script.send(1100, 1);
    script.acknowledge(1200, 1);
    script.add(1200, End::Server, Flags::ACK | Flags::FIN, |_| {});
    script.add(1300, End::Client, Flags::ACK | Flags::FIN, |_| {});
    let account = script.times();
    assert_eq!(milliseconds(&account, Cause::SetUp), 100);
    assert_eq!(milliseconds(&account, Cause::Application), 1000);
    assert_eq!(milliseconds(&account, Cause::Closing), 100);
}

#[test]
fn a_window_that_doubles_is_slow_start() {
    let mut script = Script::new();
    script.send(100, 2);
    let (mut acknowledged, mut now) = (0, 100);
    for flight in [2, 4, 8] {
        now += ROUND_TRIP;
        for _ in 0..flight {
            acknowledged += 1;
            script.acknowledge(now, acknowledged);
            script.send(now, 2);
        }
    }
    let account = script.times();
    assert_eq!(milliseconds(&account, Cause::SlowStart), 300);
}

#[test]
fn a_window_that_grows_by_a_segment_with_each_delayed_acknowledgement_is_slow_start() {
    let mut script = Script::new();
    script.send(100, 4);
    let (mut acknowledged, mut now) = (0, 100);
    for _ in 0..4 {
        now += ROUND_TRIP;
        // One for every two segments, and three more sent for it.
        for _ in 0..(script.sent.len() - acknowledged) / 2 {
            acknowledged += 2;
            script.acknowledge(now, acknowledged);
            script.send(now, 3);
        }
    }
    now += ROUND_TRIP;
    script.acknowledge(now, script.sent.len());
    let account = script.times();
    assert_eq!(milliseconds(&account, Cause::CongestionWindow), 0, "{account}");
    assert!(milliseconds(&account, Cause::SlowStart) >= 3 * ROUND_TRIP, "{account}");
}

#[test]
fn after_a_spurious_timeout_without_timestamps_slow_start_goes_up_to_half_of_the_window() {
    let mut script = Script::new();
    // Two, four, eight segments; the rest is repeated by the timer although it arrives.
    let mut now = 100;
    for flight in [2, 4, 8] {
        script.send(now, flight);
        now += ROUND_TRIP;
        script.acknowledge(now, script.sent.len());
    }
    script.send(now, 1);
    script.observations.last_mut().unwrap().length = SEGMENT as u32 / 2;
    script.again(now + 400, 14, Trigger::Timeout);
    script.observations.last_mut().unwrap().length = SEGMENT as u32 / 2;
    script.acknowledge(now + 410, 15);
    now += 2000;
    for flight in [2, 4, 5, 6] {
        script.send(now, flight);
        now += ROUND_TRIP;
        script.acknowledge(now, script.sent.len());
    }
    let (pieces, _) = script.play(None);
    let cause = |time: u64| {
        let time = Instant::from_nanos(time * 1_000_000);
        pieces.iter().find(|piece| piece.begin <= time && time < piece.end).map(|piece| piece.cause)
    };
    let begin = now - 4 * ROUND_TRIP;
    assert_eq!(cause(begin + 10), Some(Cause::SlowStart), "{pieces:#?}");
    assert_eq!(cause(begin + 2 * ROUND_TRIP + 10), Some(Cause::CongestionWindow), "{pieces:#?}");
}

/// A steady flight of `flight` segments, `rounds` times; each segment is acknowledged `gap`
/// milliseconds after the one before.
fn steady(flight: usize, gap: u64, rounds: u64, window: u64) -> Script {
    let mut script = Script::new();
    script.observations.iter_mut().for_each(|observation| observation.window = window);
    script.send(100, flight);
    let round = ROUND_TRIP.max(flight as u64 * gap);
    let mut acknowledged = 0;
    for number in 1..=rounds {
        for place in 0..flight as u64 {
            acknowledged += 1;
            let now = 100 + number * round + place * gap;
            script.acknowledge_with(now, acknowledged, window);
            script.send(now, 1);
        }
    }
    script
}

#[test]
fn a_flight_that_neither_grows_nor_queues_is_the_windows() {
    let account = steady(5, 2, 20, 1 << 20).times();
    assert!(milliseconds(&account, Cause::CongestionWindow) > 1700, "{account}");
}

#[test]
fn a_flight_as_large_as_the_offered_window_is_the_receivers() {
    let account = steady(5, 2, 20, 5 * SEGMENT as u64).times();
    assert!(milliseconds(&account, Cause::ReceiveWindow) > 1700, "{account}");
}

#[test]
fn a_short_segment_that_fills_the_offered_window_is_not_the_applications_last() {
    let mut script = Script::new();
    // Three segments and a half.
    let window = 7 * SEGMENT as u64 / 2;
    script.observations.iter_mut().for_each(|observation| observation.window = window);
    let mut now = ROUND_TRIP;
    for _ in 0..5 {
        script.send(now, 4);
        script.observations.last_mut().unwrap().length = SEGMENT as u32 / 2;
        now += ROUND_TRIP;
        script.acknowledge_with(now, script.sent.len(), window);
    }
    let account = script.times();
    assert!(milliseconds(&account, Cause::ReceiveWindow) >= 3 * ROUND_TRIP, "{account}");
}

#[test]
fn acknowledgements_at_the_paths_pace_are_the_path_rate_or_queueing() {
    // The first acknowledgement shows the empty path.
    let mut script = Script::new();
    script.send(100, 1);
    script.acknowledge(200, 1);
    script.send(200, 20);
    for place in 0..200_u64 {
        let now = 320 + place * 20;
        script.acknowledge(now, 2 + place as usize);
        script.send(now, 1);
    }
    let account = script.times();
    let full = milliseconds(&account, Cause::PathRate) + milliseconds(&account, Cause::Queueing);
    assert!(full > 3500, "{account}");
    assert!(
        milliseconds(&account, Cause::Queueing) > 3000,
        "round trips of 400 ms, 280 of them in the queue: {account}"
    );
}

#[test]
fn what_is_held_back_and_then_arrives_is_the_radios() {
    let mut script = steady(20, 10, 5, 1 << 20);
    let last = script.observations.last().unwrap().time.as_nanos() / 1_000_000;
    for place in 0..40_u64 {
        let now = last + 2000 + place * 10;
        script.acknowledge(now, 101 + place as usize);
        script.send(now, 1);
    }
    let (_, account) = script.play(None);
    let radio = milliseconds(&account, Cause::Radio);
    assert!((1850..=2000).contains(&radio), "{account}");
    assert_eq!(account.stalls.len(), 1);
    assert!(account.stalls[0].to_string().contains("held them back"), "{}", account.stalls[0]);
}

#[test]
fn a_link_that_is_somewhat_faster_after_a_gap_does_not_undo_it() {
    let mut script = Script::new();
    script.send(ROUND_TRIP, 40);
    (1..8).for_each(|segment| script.acknowledge(700 + 560 * segment, segment as usize));
    // Six seconds later, each takes two thirds of the time before.
    (8..40).for_each(|segment| script.acknowledge(7800 + 360 * segment, segment as usize));
    let account = script.times();
    assert!((5500..=6000).contains(&milliseconds(&account, Cause::Radio)), "{account}");
}

#[test]
fn while_the_other_ends_data_comes_the_radio_is_not_silent() {
    let mut script = steady(20, 10, 5, 1 << 20);
    let last = script.observations.last().unwrap().time.as_nanos() / 1_000_000;
    let delivered = script.delivered;
    for place in 1..40_i64 {
        // They were sent before what is outstanding had arrived, and waited in a queue.
        script.add(last + 50 * place as u64, End::Client, Flags::ACK, |observation| {
            (observation.offset, observation.length) = (place * SEGMENT, SEGMENT as u32);
            (observation.acknowledged, observation.delivered) = (Some(delivered as i64), delivered);
        });
    }
    script.acknowledge(last + 2000, 120);
    let account = script.times();
    assert!(milliseconds(&account, Cause::Radio) < 100, "{account}");
    assert!(account.stalls.is_empty(), "{}", account.stalls[0]);
}

#[test]
fn what_is_lost_waits_for_the_timer() {
    let mut script = steady(5, 2, 5, 1 << 20);
    let last = script.observations.last().unwrap().time.as_nanos() / 1_000_000;
    script.again(last + 1000, 25, Trigger::Timeout);
    script.sent[25] = last + 1000;
    script.acknowledge(last + 1100, 26);
    let account = script.times();
    let timer = milliseconds(&account, Cause::Timer);
    assert!((850..=1000).contains(&timer), "{account}");
    assert!(account.stalls[0].to_string().contains("only the retransmission timer noticed"));
}

#[test]
fn the_radios_log_parts_its_silence_from_the_timers_wait() {
    let mut script = steady(5, 2, 5, 1 << 20);
    let last = script.observations.last().unwrap().time.as_nanos() / 1_000_000;
    script.again(last + 1000, 25, Trigger::Timeout);
    script.sent[25] = last + 1000;
    script.acknowledge(last + 1100, 26);
    let at = |milliseconds: u64| Instant::from_nanos(milliseconds * 1_000_000);
    let gap = RadioGap {
        begin: at(last),
        end: at(last + 400),
        direction: Some(Direction::Down),
        name: "handover".into(),
        wanted: false,
    };
    let (pieces, account) = script.play(Some(RadioLog::new(vec![gap])));
    assert_eq!(milliseconds(&account, Cause::Radio), 400);
    assert_eq!(milliseconds(&account, Cause::Timer), 600);
    // The capture ends before an acknowledgement that shows whether the originals were lost.
    assert!(pieces.iter().any(|piece| piece.cause == Cause::Timer && piece.confidence == Confidence::Low));
}

/// The causes of a capture at the client: flights of `flight` segments, `gap` milliseconds apart,
/// arrive each `round` milliseconds.
fn arriving(flight: u64, gap: u64, round: u64) -> Account {
    let mut script = Script { observations: Vec::new(), frame: 0, sent: Vec::new(), delivered: 0 };
    script.add(0, End::Client, Flags::SYN, |_| {});
    script.add(ROUND_TRIP, End::Server, Flags::SYN | Flags::ACK, |_| {});
    script.add(ROUND_TRIP, End::Client, Flags::ACK, |_| {});
    for segment in 0..flight * 20 {
        let at = 2 * ROUND_TRIP + segment / flight * round + segment % flight * gap;
        script.add(at, End::Server, Flags::ACK, |observation| {
            (observation.offset, observation.length) = (segment as i64 * SEGMENT, SEGMENT as u32);
        });
    }
    let mut causes = Causes::new(None);
    for observation in &script.observations {
        causes.observe(observation, &mut |_| {});
    }
    assert_eq!(causes.near(), Some(End::Client));
    let account = causes.finish(&mut |_| {});
    assert_eq!(account.total(), script.observations.last().unwrap().time.since(Instant::ZERO));
    account
}

#[test]
fn odd_times_of_a_damaged_capture_do_no_harm() {
    let script = steady(20, 10, 5, 1 << 20);
    for odd in [0, 50_000_000, 1 << 62, u64::MAX - 1, u64::MAX] {
        for place in 1..script.observations.len() {
            let mut causes = Causes::new(None);
            let (mut ends, mut pieces) = (Instant::ZERO, 0);
            for (at, observation) in script.observations.iter().enumerate() {
                // From one of them on every other has an irregular time, and irregular times of
                // sending.
                let mut observation = observation.clone();
                if at >= place && at % 2 == 0 {
                    observation.time = Instant::from_nanos(odd);
                    observation.newly_acknowledged =
                        observation.newly_acknowledged.map(|sending| Sending { last: observation.time, ..sending });
                }
                causes.observe(&observation, &mut |piece| {
                    assert!(piece.begin >= ends && piece.begin < piece.end);
                    (ends, pieces) = (piece.end, pieces + 1);
                });
            }
            causes.finish(&mut |_| pieces += 1);
            assert!(pieces > 0);
        }
    }
}

#[test]
fn where_data_arrives_flights_with_pauses_are_a_windows_and_even_arrivals_a_full_links() {
    let account = arriving(10, 1, 100);
    assert!(milliseconds(&account, Cause::CongestionWindow) > 1500, "{account}");
    let account = arriving(10, 10, 100);
    assert!(milliseconds(&account, Cause::PathRate) > 1500, "{account}");
}

#[test]
fn retransmissions_of_any_length_at_the_time_of_a_timeout_are_added() {
    let mut script = steady(5, 2, 5, 1 << 20);
    let last = script.observations.last().unwrap().time.as_nanos() / 1_000_000;
    for trigger in [Trigger::Timeout, Trigger::Fast, Trigger::Fast] {
        script.again(last + 1000, 25, trigger);
        let observation = script.observations.last_mut().unwrap();
        (observation.length, observation.full_segment) = (u32::MAX / 2 + 1, u32::MAX);
    }
    script.times();
}
