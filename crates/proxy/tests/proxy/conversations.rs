//! Conversations through the proxy arrive byte for byte, whatever the network does, and the proxy
//! keeps the contracts of a middlebox.

use crate::support::{Line, Network, Script, Talk};
use airpath_core::{Bitrate, Bytes, Direction, Instant, Seed, Span};
use airpath_path::testing::contracts;
use airpath_path::{Hop, Side};
use airpath_proxy::{Accept, BudgetSource, Config, Discipline, PassCause, Proxy, QueueConfig};
use airpath_tcp::Outcome;
use proptest::prelude::*;

pub fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

pub fn proxy(config: Config) -> Proxy {
    Proxy::new(config, Seed::new(1).stream("proxy"))
}

pub fn lines(delay: u64) -> [Line; 2] {
    [Line::new(Span::from_millis(delay)), Line::new(Span::from_millis(delay))]
}

/// A line that loses, reorders and, as often as it loses, duplicates.
pub fn unreliable(loss: f64, jitter: u64, seed: u64, name: &str) -> Line {
    let mut line = Line::new(Span::from_millis(40));
    line.rate = Some(airpath_core::Bitrate::from_bps(2_000_000));
    line.queue = 64_000;
    (line.loss, line.duplication) = (loss, loss);
    line.jitter = Span::from_millis(jitter);
    line.stream = Seed::new(seed).stream(name);
    line
}

fn script() -> impl Strategy<Value = Script> {
    (0_u64..60_000, 0_u64..2, any::<bool>(), proptest::option::weighted(0.1, 0_u64..20_000), 0_u64..3).prop_map(
        |(sends, waits, closes_last, aborts_at, reads)| Script {
            sends,
            after: waits,
            closes_last,
            aborts_at,
            reads_from: at(reads * 1500),
        },
    )
}

pub fn talk() -> impl Strategy<Value = Talk> {
    let opening = prop_oneof![8 => Just((false, false)), 1 => Just((true, false)), 1 => Just((false, true))];
    (0_u64..3000, any::<[bool; 2]>(), script(), script(), opening).prop_map(
        |(start, [from_mobile, ecn], mobile, server, (refused, simultaneous))| {
            let client = if from_mobile { Side::Mobile } else { Side::Server };
            let (mut mobile, mut server) = (mobile, server);
            // The client speaks first, and one end closes by itself: otherwise both may wait.
            let first = if from_mobile { &mut mobile } else { &mut server };
            first.after = 0;
            first.sends = first.sends.max(1);
            first.closes_last = false;
            Talk { start: at(start), client, mobile, server, refused, ecn, simultaneous }
        },
    )
}

pub fn config() -> impl Strategy<Value = Config> {
    let discipline = prop_oneof![
        Just(Discipline::DeficitRoundRobin),
        Just(Discipline::RoundRobin),
        Just(Discipline::Fifo),
        Just(Discipline::ShortestRemaining)
    ];
    let budget = prop_oneof![
        4 => (1_000_u64..40_000).prop_map(|bytes| BudgetSource::Fixed(Bytes::new(bytes))),
        1 => Just(BudgetSource::Adaptive),
        1 => Just(BudgetSource::None),
    ];
    let queue = proptest::option::weighted(0.3, 200_000_u64..4_000_000);
    (budget, discipline, any::<bool>(), 4_000_u64..100_000, queue).prop_map(
        |(budget, scheduler, defers, buffer, queue)| Config {
            budget,
            scheduler,
            accept: if defers { Accept::Deferred } else { Accept::Early },
            buffer: Bytes::new(buffer),
            queue: queue.map(|rate| QueueConfig::new(Bitrate::from_bps(rate))),
            ..Config::new(Bytes::ZERO)
        },
    )
}

proptest! {
    /// One to four conversations at a time, half-closed, reset, opened and closed by both ends at
    /// once; losses, duplicates and reordering on both sides. `PROPTEST_CASES` sets their number.
    #[test]
    fn conversations_arrive_byte_for_byte(
        talks in proptest::collection::vec(talk(), 1..5),
        config in config(),
        losses in [prop_oneof![Just(0.0), 0.0..0.1], prop_oneof![Just(0.0), 0.0..0.1]],
        jitter in 0_u64..60,
        seed in any::<u64>(),
    ) {
        let line = |side: usize, name| unreliable(losses[side], jitter, seed, name);
        let wired = [line(0, "wired/down"), line(0, "wired/up")];
        let radio = [line(1, "radio/down"), line(1, "radio/up")];
        let mut network = Network::new(Some(Box::new(proxy(config.clone()))), talks.clone(), wired, radio, None);
        let end = at(1_000_000);
        network.run(end);
        network.check_bytes();
        for (flow, talk) in talks.iter().enumerate() {
            // An end that aborts may leave the other without a connection.
            let orderly = !talk.refused && talk.mobile.aborts_at.is_none() && talk.server.aborts_at.is_none();
            let outcomes = network.outcomes(flow);
            if orderly {
                let sides = [(Side::Mobile, talk.server.sends), (Side::Server, talk.mobile.sends)];
                for (side, sent) in sides {
                    let received = network.ends[flow][side as usize].connection.received();
                    prop_assert_eq!(received, sent, "flow {} at {:?}: {:?}", flow, side, outcomes);
                }
                prop_assert_eq!(outcomes, [Some(Outcome::Closed); 2], "flow {}", flow);
            } else if losses == [0.0; 2] {
                // A reset that is lost is not repeated.
                prop_assert!(outcomes[talk.client as usize].is_some(), "the client waits: {:?}", outcomes);
            }
        }
        // The contracts of a middlebox hold for what entered: polled at any time, and with payload
        // counted, the same packets leave at the same times.
        let outcome = contracts(|| proxy(config.clone()), &network.arrivals, end);
        let left = outcome.departures.iter().map(|(direction, left)| (*direction, left.due, left.packet.size));
        prop_assert_eq!(left.collect::<Vec<_>>(), network.departures);
    }
}

proptest! {
    #[test]
    fn super_segments_arrive_byte_for_byte(
        talks in proptest::collection::vec(talk(), 1..5),
        budget in 3_000_u64..1_000_000,
        loss in prop_oneof![Just(0.0), 0.0..0.1],
        seed in any::<u64>(),
    ) {
        let line = |name| {
            let mut line = Line::new(Span::from_micros(300));
            (line.loss, line.jitter) = (loss, Span::from_micros(300));
            line.stream = Seed::new(seed).stream(name);
            line
        };
        let wired = [line("wired/down"), line("wired/up")];
        let radio = [line("radio/down"), line("radio/up")];
        let proxy = proxy(Config::new(Bytes::new(budget)));
        let mut network = Network::new(Some(Box::new(proxy)), talks.clone(), wired, radio, None).offloads();
        network.run(at(1_000_000));
        network.check_bytes();
        for (flow, talk) in talks.iter().enumerate() {
            if !talk.refused && talk.mobile.aborts_at.is_none() && talk.server.aborts_at.is_none() {
                for (side, sent) in [(Side::Mobile, talk.server.sends), (Side::Server, talk.mobile.sends)] {
                    let received = network.ends[flow][side as usize].connection.received();
                    prop_assert_eq!(received, sent, "flow {} at {:?}", flow, side);
                }
                prop_assert_eq!(network.outcomes(flow), [Some(Outcome::Closed); 2], "flow {}", flow);
            }
        }
    }
}

#[test]
fn a_fast_path_carries_super_segments_within_the_budget() {
    let budget = 100_000;
    for (delay, divides) in [(Span::from_micros(100), true), (Span::from_millis(100), false)] {
        let both = || [Line::new(delay), Line::new(delay)];
        let proxy = proxy(Config { buffer: Bytes::new(1_000_000), ..Config::new(Bytes::new(budget)) });
        let talks = vec![Talk::download(at(0), 2_000_000)];
        let mut network = Network::new(Some(Box::new(proxy)), talks, both(), both(), None).offloads();
        for tenth in 0..600_000 {
            network.run(Instant::ZERO + Span::from_micros(100 * tenth));
            let Some((_, Hop::Middlebox(hop))) = network.path.path().hops().nth(1) else { panic!("there is a proxy") };
            let states = hop.downcast_ref::<Proxy>().expect("the middlebox is a proxy").mobile_states();
            assert!(states.iter().all(|state| state.unacknowledged <= budget), "{states:?}");
        }
        network.check_bytes();
        assert_eq!(network.ends[0][Side::Mobile as usize].connection.received(), 2_000_000);
        assert_eq!(network.divided > 0, divides, "on a slow path each segment leaves by itself");
    }
}

#[test]
fn a_refused_connection_is_refused_to_the_client_that_waited() {
    let refused = |accept| {
        let talk = Talk { refused: true, ..Talk::download(at(0), 8000) };
        let config = Config { accept, ..Config::new(Bytes::new(20_000)) };
        let mut network = Network::new(Some(Box::new(proxy(config))), vec![talk], lines(10), lines(50), None);
        network.run(at(100_000));
        assert_eq!(network.packets_inside(), 0, "no packet is left");
        network.outcomes(0)[Side::Mobile as usize]
    };
    assert_eq!(refused(Accept::Deferred), Some(Outcome::Refused));
    assert_eq!(refused(Accept::Early), Some(Outcome::Reset), "it was open already");
}

/// Both connections use ECN if the client offers it, and a mark reduces the window of the proxy.
#[test]
fn ecn_is_negotiated_and_marks_count() {
    let run = |ecn, mark_every| {
        let mut radio = lines(50);
        radio[0].mark_every = mark_every;
        let talk = Talk { ecn, ..Talk::download(at(0), 300_000) };
        let config = Config::new(Bytes::new(40_000));
        let mut network = Network::new(Some(Box::new(proxy(config))), vec![talk], lines(10), radio, None);
        network.run(at(100_000));
        network.check_bytes();
        let ends = &network.ends[0];
        assert_eq!(ends.each_ref().map(|end| end.connection.negotiated().ecn), [ecn; 2]);
        (network.download_time(0), ends[Side::Mobile as usize].connection.statistics().marked_segments)
    };
    let (unmarked, marked, without) = (run(true, 0), run(true, 40), run(false, 40));
    assert!(unmarked.1 == 0 && without == (unmarked.0, 0), "{unmarked:?}, {without:?}");
    assert!(marked.1 > 2 && marked.0 > 1.3 * unmarked.0, "{unmarked:?}, {marked:?}");
}

#[test]
fn a_slow_mobile_closes_the_window_towards_the_server() {
    let mut talk = Talk::download(at(0), 1_000_000);
    talk.mobile.reads_from = at(30_000);
    let config = Config { buffer: Bytes::new(50_000), ..Config::new(Bytes::new(20_000)) };
    let mut network = Network::new(Some(Box::new(proxy(config))), vec![talk], lines(10), lines(50), None);
    network.run(at(29_000));
    let acknowledged = network.ends[0][Side::Server as usize].connection.acknowledged();
    let received = network.ends[0][Side::Mobile as usize].connection.received();
    assert!(acknowledged <= received + 50_000, "{acknowledged} acknowledged, {received} received");
    network.run(at(200_000));
    network.check_bytes();
    assert_eq!(network.ends[0][Side::Mobile as usize].connection.received(), 1_000_000);
}

#[test]
fn a_server_that_does_not_answer_times_out() {
    for (accept, outcome) in [(Accept::Early, Some(Outcome::Reset)), (Accept::Deferred, None)] {
        let mut wired = lines(10);
        wired[1].loss = 1.0;
        let config = Config { accept, open_timeout: Span::from_secs(5), ..Config::new(Bytes::new(20_000)) };
        let mut network =
            Network::new(Some(Box::new(proxy(config))), vec![Talk::download(at(0), 8000)], wired, lines(50), None);
        network.run(at(6000));
        assert_eq!(network.outcomes(0)[Side::Mobile as usize], outcome, "{accept:?}");
    }
}

#[test]
fn a_connection_beyond_a_limit_passes_unchanged() {
    // The first two are half open when the third begins.
    let talks = || vec![Talk::download(at(0), 8000), Talk::download(at(1), 8000), Talk::download(at(2), 8000)];
    let limited = |half_open, connections| Config { half_open, connections, ..Config::new(Bytes::new(20_000)) };
    for (config, opened) in [(limited(2, 9), 2), (limited(9, 2), 2), (limited(3, 3), 3)] {
        let mut network = Network::new(Some(Box::new(proxy(config))), talks(), lines(10), lines(50), None);
        // Longer than TIME-WAIT.
        network.run(at(200_000));
        network.check_bytes();
        let Some((_, Hop::Middlebox(hop))) = network.path.path().hops().nth(1) else { panic!("there is a proxy") };
        let proxy: &Proxy = hop.downcast_ref().expect("it is the proxy");
        let totals = proxy.totals();
        assert_eq!(totals.opened, opened);
        let passed = totals.passed[PassCause::HalfOpen as usize] + totals.passed[PassCause::Connections as usize];
        assert_eq!(passed, 3 - opened);
        assert!((totals.passed[PassCause::Unknown as usize] > 0) == (passed > 0));
        let [mobile] = proxy.mobile_states()[..] else { panic!("there is one mobile") };
        assert_eq!((mobile.connections, mobile.half_open, mobile.unacknowledged, mobile.queued), (0, 0, 0, 0));
    }
}

#[test]
fn a_server_that_has_closed_does_not_limit_the_delivery() {
    let mut talk = Talk::download(at(0), 250_000);
    talk.mobile.closes_last = false;
    let mut radio = lines(50);
    radio[0].rate = Some(airpath_core::Bitrate::from_bps(20_000));
    let config = Config::new(Bytes::new(10_000));
    let mut network = Network::new(Some(Box::new(proxy(config))), vec![talk], lines(10), radio, None);
    network.run(at(30_000));
    assert_eq!(network.outcomes(0)[Side::Server as usize], Some(Outcome::Closed));
    network.run(at(200_000));
    network.check_bytes();
    assert_eq!(network.outcomes(0), [Some(Outcome::Closed); 2], "after more than the time-out for opening");
}

#[test]
fn an_idle_connection_is_aborted() {
    let mut talk = Talk::download(at(0), 8000);
    // The server waits for more than the request.
    talk.server.after = 1000;
    let config = Config { idle_timeout: Span::from_secs(20), ..Config::new(Bytes::new(20_000)) };
    let mut network = Network::new(Some(Box::new(proxy(config))), vec![talk], lines(10), lines(50), None);
    network.run(at(25_000));
    assert_eq!(network.outcomes(0), [Some(Outcome::Reset); 2]);
}

#[test]
fn the_first_burst_is_paced_over_a_round_trip() {
    let config = Config::new(Bytes::new(40_000));
    let mut network =
        Network::new(Some(Box::new(proxy(config))), vec![Talk::download(at(0), 100_000)], lines(1), lines(100), None);
    network.run(at(100_000));
    let full = network.departures.iter().filter(|(direction, _, size)| *direction == Direction::Down && *size > 1400);
    let times: Vec<f64> = full.map(|(_, time, _)| time.as_secs_f64()).collect();
    let first = times.iter().filter(|time| **time < times[0] + 0.2).count();
    assert!((25..=28).contains(&first), "{first} segments in the first round trip of 200 ms");
    let half = times.iter().filter(|time| **time < times[0] + 0.1).count();
    assert!((13..=15).contains(&half), "{half} segments in its first half");
}
