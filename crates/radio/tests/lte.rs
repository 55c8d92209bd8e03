//! The LTE cell: rates, delays, retransmissions, states.

use std::collections::BTreeMap;

use crate::common;
use crate::common::cells::{at_millis, burst, config, first_errors, gaps, mean_down, run, statistics, try_config};
use crate::common::contracts::{keeps_contracts, traffic};
use airpath_core::{ComponentId, Context, Direction, DropCause, Instant, RadioEvent, Seed, Span};
use airpath_link::command::{Buffer, Change};
use airpath_link::{Bearer, BearerCommand};
use airpath_radio::ModelError;
use airpath_radio::lte::{Config, Lte};
use proptest::prelude::*;

/// What makes a mobile sleep or drops packets.
const STATES: [&str; 3] = ["drx", "rrc", "pdcp"];

fn plain(more: &str) -> Config {
    config("lte-20mhz", more, &STATES)
}

#[test]
fn the_mac_rate_of_20_mhz_is_that_of_the_largest_block() {
    // I_TBS 26 with 100 resource blocks: 75376 bits a subframe (TS 36.213 Table 7.1.7.2.1-1).
    let config = plain("mobile.layers = 1\nconditions.ci = \"40 dB\"");
    let outcome = run(&config, 1, &burst(20_000, Direction::Down, 1500), Span::from_secs(2));
    let down: Vec<_> = outcome.radio.iter().filter(|(_, event)| event.direction == Direction::Down).collect();
    assert!(down.len() > 1990 && down.iter().all(|(_, event)| event.bytes == 75_376 / 8));
    let seconds = outcome.departures.last().expect("a packet").1.due.as_secs_f64();
    let goodput = outcome.departures.len() as f64 * 1500.0 * 8.0 / seconds;
    assert!((0.985..1.0).contains(&(goodput / 75.376e6)), "{goodput}");
}

#[test]
fn each_carrier_has_the_rate_of_a_cell() {
    // Blocks of a subframe, all of the largest size, and the share of the rate of one carrier.
    let run = |carriers: u8, users: u16| {
        let config = plain(&format!("mobile.layers = 1\nconditions.ci = \"40 dB\"\ncell.carriers = {carriers}"));
        let packets: Vec<_> =
            (0..4000).flat_map(|_| (0..users).map(|user| (Instant::ZERO, Direction::Down, user, 1500))).collect();
        let outcome = run(&config, users.into(), &packets, Span::from_secs(60));
        assert_eq!(outcome.departures.len(), 4000 * usize::from(users));
        outcome
    };
    for users in [1, 3] {
        let seconds = |carriers| run(carriers, users).departures.last().expect("a packet").1.due.as_secs_f64();
        let gain = seconds(1) / seconds(5);
        assert!((4.7..5.0).contains(&gain), "{users} mobiles: {gain}");
    }
    let mut blocks = BTreeMap::<Instant, u32>::new();
    for (at, event) in run(2, 1).radio.iter().filter(|(_, event)| event.direction == Direction::Down) {
        assert!(event.bytes <= 75_376 / 8);
        *blocks.entry(*at).or_default() += 1;
    }
    assert_eq!(blocks.values().max(), Some(&2));
}

#[test]
fn delays_of_isolated_packets_are_those_of_the_timeline() {
    // shared `timeline_oracle.csv`, FDD-15kHz: downlink 1.5 ms, uplink with a request every 10 ms
    // 9.5, 14.0 and 18.5 ms, for packets that come uniformly in a subframe: less or more by half a
    // subframe.
    let config = plain("uplink.sr_period = \"10 ms\"\nuplink.first_grant = \"1000 B\"\nconditions.ci = \"40 dB\"");
    for (direction, expected) in [(Direction::Down, [1.5; 3]), (Direction::Up, [9.5, 14.0, 18.5])] {
        let packets: Vec<_> = (0..2000).map(|n| (at_millis(500.377 * f64::from(n)), direction, 0, 100)).collect();
        let outcome = run(&config, 1, &packets, Span::from_secs(1100));
        assert_eq!(outcome.departures.len(), 2000);
        let [least, mean, most] = statistics(&outcome.delays(&packets));
        assert!((mean - expected[1]).abs() < 0.15, "{direction:?}: mean {mean}");
        assert!((least - expected[0] + 0.5).abs() < 0.1 && (most - expected[2] - 0.5).abs() < 0.1, "{least} {most}");
    }
}

#[test]
fn hybrid_arq_makes_gaps_of_its_round_trip() {
    // Row F1 of the design input: a block in error holds up what comes after it for 8 ms.
    let packets = burst(12_000, Direction::Down, 1400);
    let with = run(&plain("mobile.layers = 1\ndownlink.bler = 0.1"), 1, &packets, Span::from_secs(60));
    assert_eq!((with.departures.len(), with.dropped.len()), (12_000, 0));
    let shares = gaps(&with);
    let share = |gap| shares.get(&gap).copied().unwrap_or(0.0);
    let around: f64 = (8..=10).map(share).sum();
    assert!(around > 0.01 && share(9).max(share(8)) > 2.0 * share(6), "{shares:?}");
    let without = run(&plain("mobile.layers = 1\ndownlink.bler = 0.0"), 1, &packets, Span::from_secs(60));
    assert_eq!(gaps(&without).keys().copied().collect::<Vec<_>>(), [1]);
}

#[test]
fn what_hybrid_arq_gives_up_the_rlc_repairs_in_the_acknowledged_mode_only() {
    let lossy = "mobile.layers = 1\ndownlink.bler = 0.3\nharq.nack_to_ack = 0.2\nharq.dtx_missed = 0.05\n";
    let packets = burst(6000, Direction::Down, 1400);
    let acknowledged = run(&plain(lossy), 1, &packets, Span::from_secs(100));
    let ids: Vec<u64> = acknowledged.departures.iter().map(|(_, out)| out.packet.id).collect();
    assert!(acknowledged.dropped.is_empty() && ids.iter().copied().eq(0..6000), "{} came", ids.len());
    let unacknowledged: Config = config(
        "lte-20mhz",
        &format!("{lossy}\nrlc = {{ mode = \"unacknowledged\", t_reordering = \"50 ms\" }}"),
        &["drx", "rrc", "pdcp", "rlc"],
    );
    let outcome = run(&unacknowledged, 1, &packets, Span::from_secs(100));
    let ids: Vec<u64> = outcome.departures.iter().map(|(_, out)| out.packet.id).collect();
    assert!(ids.is_sorted() && ids.len() + outcome.dropped.len() == 6000, "{} {}", ids.len(), outcome.dropped.len());
    assert!(outcome.dropped.len() > 100 && outcome.dropped.iter().all(|it| it.cause == DropCause::AttemptsExhausted));
}

#[test]
fn packets_that_wait_too_long_are_discarded() {
    let config: Config =
        config("lte-20mhz", "mobile.layers = 1\npdcp.discard = \"150 ms\"\nconditions.ci = \"40 dB\"", &["drx", "rrc"]);
    let outcome = run(&config, 1, &burst(2000, Direction::Down, 1500), Span::from_secs(10));
    // In the 150 ms of the discard timer 75 Mbit/s carry about 940 packets.
    assert!((900..1000).contains(&outcome.departures.len()), "{}", outcome.departures.len());
    assert!(outcome.dropped.iter().all(|it| it.cause == DropCause::Discarded && it.time == at_millis(150.0)));
}

#[test]
fn uplink_grants_follow_the_buffer_status() {
    let config = plain("conditions.ci = \"40 dB\"");
    let outcome = run(&config, 1, &burst(6000, Direction::Up, 1500), Span::from_secs(30));
    assert_eq!(outcome.departures.len(), 6000);
    let seconds = outcome.departures.last().expect("a packet").1.due.as_secs_f64();
    let rate = 6000.0 * 12_000.0 / seconds;
    // 16QAM in 96 resource blocks: I_TBS 19, 43816 bits at 100.
    assert!((35e6..44e6).contains(&rate), "{rate}");
}

/// The mean round trip of pings of 32 bytes over a core of 1 ms and a mobile that takes 1 ms beside
/// the decoder, in milliseconds.
fn ping(more: &str) -> f64 {
    let config = plain(&format!(
        "mobile.processing = \"3 ms\"\nuplink.sr_period = \"10 ms\"\nconditions.ci = \"40 dB\"\n{more}"
    ));
    let mut bearer = Lte::new(&config, 1, Seed::new(3), "cell").expect("sound parameters");
    let mut dropped = Vec::new();
    let mut cx = Context::new(None, &mut dropped, ComponentId(0));
    let mut sum = 0.0;
    for n in 0..2000 {
        let start = at_millis(1000.0 * f64::from(n) + 0.377 * f64::from(n));
        bearer.push(start, Direction::Up, common::packet(2 * n as u64, 0, 60), &mut cx);
        let end = start + Span::from_millis(900);
        let (_, up) = bearer.pop(end, &mut cx).expect("the request");
        let turned = up.due + Span::from_millis(2);
        bearer.push(end.max(turned), Direction::Down, common::packet(2 * n as u64 + 1, 0, 60), &mut cx);
        let (_, down) = bearer.pop(end + Span::from_millis(90), &mut cx).expect("the answer");
        sum += turned.since(start).as_secs_f64() * 1e3 + down.due.since(end.max(turned)).as_secs_f64() * 1e3;
    }
    sum / 2000.0
}

#[test]
fn pings_take_20_ms_and_10_percent_of_block_errors_cost_1_6_ms() {
    // Row M1: H. Holma and A. Toskala, LTE for UMTS, §11.11.
    let clean = ping("uplink.bler = 0.0\ndownlink.bler = 0.0");
    assert!((18.0..22.0).contains(&clean), "{clean}");
    let errors = ping("uplink.bler = 0.1\ndownlink.bler = 0.1") - clean;
    assert!((1.2..2.0).contains(&errors), "{errors}");
    // 3 ms on average to the next of the grants, in place of 5 ms to the occasion of a request and
    // 8 ms to what it is answered with.
    let prescheduled = ping(
        "uplink.bler = 0.0\ndownlink.bler = 0.0\nuplink.prescheduling = { interval = \"5 ms\", bytes = \"100 B\" }",
    );
    assert!((clean - prescheduled - 10.5).abs() < 1.0, "{clean} {prescheduled}");
}

#[test]
fn two_mobiles_share_the_cell() {
    for scheduler in ["round-robin", "proportional-fair", "least-attained-service", "run2c"] {
        let config = plain(&format!("cell.scheduler = \"{scheduler}\"\nmobile.layers = 1\nconditions.ci = \"15 dB\""));
        let packets: Vec<_> = (0..8000).map(|n| (Instant::ZERO, Direction::Down, n % 2, 1500)).collect();
        let outcome = run(&config, 2, &packets, Span::from_secs(1));
        let count = |user| outcome.departures.iter().filter(|(_, out)| out.packet.user.number() == user).count() as f64;
        assert!((count(0) / count(1) - 1.0).abs() < 0.05, "{} {}", count(0), count(1));
    }
}

#[test]
fn a_missed_assignment_waits_for_the_mobile_to_listen_again() {
    // An inactivity timer that has not started cannot keep the mobile awake: the retransmission
    // waits for the next cycle, each time with the probability of one half.
    let drx = "drx = { on = \"1 ms\", inactivity = \"1 ms\", long = \"320 ms\" }\nharq.max_transmissions = 28";
    let wait = |missed: f64| {
        let config: Config =
            config("lte-20mhz", &format!("conditions.ci = \"40 dB\"\nharq.dtx_missed = {missed}\n{drx}"), &STATES);
        mean_down(&config, 500, 8000.0, 640.0)
    };
    let cost = wait(0.5) - wait(0.0);
    // The standard deviation of the number of cycles is 1.4: 4.5 standard errors of 500 draws.
    assert!((cost - 320.0).abs() < 90.0, "{cost}");
}

#[test]
fn grants_wait_for_a_mobile_that_does_not_listen() {
    // Two blocks are needed. When the buffer status report of the first one has come, the mobile
    // sleeps again.
    let mean = |inactivity: u32| {
        let more = format!(
            "conditions.ci = \"40 dB\"\ndrx = {{ on = \"1 ms\", inactivity = \"{inactivity} ms\", long = \"320 ms\" }}"
        );
        let packets: Vec<_> =
            (0..200).map(|n| (at_millis(2000.0 * f64::from(n) + 3.7 * f64::from(n)), Direction::Up, 0, 1000)).collect();
        let outcome = run(&config::<Config>("lte-20mhz", &more, &STATES), 1, &packets, Span::from_secs(500));
        outcome.delays(&packets).iter().sum::<f64>() / 200.0
    };
    let (awake, asleep) = (mean(100), mean(1));
    assert!(awake < 40.0 && (120.0..200.0).contains(&(asleep - awake)), "{awake} {asleep}");
}

#[test]
fn prescheduled_grants_that_are_used_keep_a_mobile_awake() {
    let more = "conditions.ci = \"40 dB\"\nuplink.bler = 0.0
        drx = { on = \"1 ms\", inactivity = \"100 ms\", long = \"320 ms\" }
        uplink.prescheduling = { interval = \"5 ms\", bytes = \"200 B\" }";
    let packets: Vec<_> = (0..100).map(|n| (at_millis(20.3 * f64::from(n)), Direction::Up, 0, 100)).collect();
    let outcome = run(&config::<Config>("lte-20mhz", more, &STATES), 1, &packets, Span::from_secs(5));
    let delays = outcome.departures.iter().zip(&packets).skip(2);
    for ((_, out), (at, ..)) in delays {
        let delay = out.due.since(*at).as_secs_f64() * 1e3;
        assert!(delay < 7.0, "{delay} ms at {at:?}: more than the wait for the next of the grants");
    }
}

#[test]
fn a_mobile_sends_once_in_a_subframe_at_most() {
    // Retransmissions come first, whatever the interval of prescheduled grants.
    for interval in [3, 8, 16, 40] {
        let more = format!(
            "conditions.ci = \"20 dB\"\nuplink.bler = 0.5\nuplink.prescheduling = {{ interval = \"{interval} ms\", bytes = \"4000 B\" }}"
        );
        let packets: Vec<_> =
            (0..3000).map(|n| (at_millis(1.7 * f64::from(n)), Direction::Up, (n % 3) as u16, 900)).collect();
        let outcome = run(&plain(&more), 3, &packets, Span::from_secs(60));
        assert_eq!(outcome.departures.len(), 3000);
        let mut sent: Vec<_> = outcome.radio.iter().filter(|(_, event)| event.direction == Direction::Up).collect();
        sent.sort_by_key(|(at, event)| (*at, event.user.number()));
        let twice = |pair: &&[&(Instant, RadioEvent)]| (pair[0].0, pair[0].1.user) == (pair[1].0, pair[1].1.user);
        assert!(sent.windows(2).find(twice).is_none(), "with grants every {interval} ms");
    }
}

#[test]
fn other_users_take_their_share_of_the_resource_blocks() {
    let rate = |more: &str, direction| {
        let config = plain(&format!("mobile.layers = 1\nconditions.ci = \"40 dB\"\n{more}"));
        let outcome = run(&config, 1, &burst(6000, direction, 1500), Span::from_secs(60));
        assert_eq!(outcome.departures.len(), 6000, "{more}");
        6000.0 * 12_000.0 / outcome.departures.last().expect("a packet").1.due.as_secs_f64()
    };
    for direction in Direction::BOTH {
        let alone = rate("", direction);
        let share = |downlink: f64, uplink: f64, bursts: &str| {
            let more = format!("cell.background = {{ downlink = {downlink}, uplink = {uplink}{bursts} }}");
            rate(&more, direction) / alone
        };
        let other = |taken| if direction == Direction::Down { (taken, 0.0) } else { (0.0, taken) };
        let ((down, up), (unused_up, unused_down)) = (other(0.4), other(0.0));
        let constant = share(down, up, "");
        assert!((0.52..0.68).contains(&constant), "{direction:?}: {constant}");
        assert!((share(unused_down, unused_up, "") - 1.0).abs() < 1e-9);
        // 80 % in half of the time: as much on average.
        let (down, up) = other(0.8);
        let bursty = share(down, up, ", on = \"10 ms\", off = \"10 ms\"");
        assert!((0.45..0.75).contains(&bursty), "{direction:?}: {bursty}");
    }
    let cases = [
        ("cell.background = { downlink = 0.96, uplink = 0.1 }", "cell.background.downlink", "0.95"),
        ("cell.background = { downlink = 0.5, uplink = 0.1, on = \"1 s\" }", "cell.background.on", "background.off"),
        ("cell.background = { downlink = 0.5, uplink = 0.1, off = \"1 s\" }", "cell.background.off", "background.on"),
    ];
    for (more, key, text) in cases {
        let error = Lte::new(&plain(more), 1, Seed::new(1), "cell").expect_err(more);
        assert_eq!(error.field(), key);
        assert!(error.to_string().contains(text), "{more}: {error}");
    }
}

#[test]
fn bursts_of_other_users_make_delays() {
    let delays = |more: &str| {
        let config = plain(&format!("mobile.layers = 1\nconditions.ci = \"10 dB\"\ndownlink.bler = 0.0\n{more}"));
        let packets: Vec<_> =
            (0..2000).flat_map(|n| [(at_millis(10.3 * f64::from(n)), Direction::Down, 0, 1500); 10]).collect();
        let outcome = run(&config, 1, &packets, Span::from_secs(60));
        assert_eq!(outcome.departures.len(), 20_000);
        statistics(&outcome.delays(&packets))
    };
    let (constant, bursty) = (
        delays("cell.background = { downlink = 0.3, uplink = 0.0 }"),
        delays("cell.background = { downlink = 0.9, uplink = 0.0, on = \"100 ms\", off = \"200 ms\" }"),
    );
    assert!(constant[2] < 25.0 && bursty[2] > 60.0, "{constant:?} {bursty:?}");
}

#[test]
fn the_outer_loop_reaches_its_target() {
    for (target, ci) in [(0.1, "13 dB"), (0.02, "13 dB")] {
        let config = plain(&format!(
            "cell.target_bler = {target}\ncell.step = \"0.02 dB\"\nmobile.layers = 1\nconditions.ci = \"{ci}\""
        ));
        let outcome = run(&config, 1, &burst(60_000, Direction::Down, 1500), Span::from_secs(60));
        let measured = first_errors(&outcome, Direction::Down, 2000);
        assert!((measured / target - 1.0).abs() < 0.2, "{measured} for {target} at {ci}");
    }
}

#[test]
fn a_handover_concerns_both_directions() {
    let bearer = Lte::new(&plain(""), 1, Seed::new(3), "cell").expect("sound parameters");
    let change = Change::Handover { gap: Span::from_millis(50), buffer: Buffer::Keep };
    let command = |direction| BearerCommand { user: None, direction, change: change.clone() };
    assert!(bearer.check(&command(None)).is_ok());
    let error = bearer.check(&command(Some(Direction::Down))).expect_err("one direction").to_string();
    assert!(error.contains("leave out `direction`"), "{error}");
}

#[test]
fn drx_and_paging_wait_as_long_as_their_formulas_give() {
    let wait = |cycles: &str, apart: f64, jitter: f64| {
        let config: Config = config("lte-20mhz", &format!("conditions.ci = \"40 dB\"\n{cycles}"), &STATES);
        mean_down(&config, 10_000, apart, jitter)
    };
    let without = wait("", 2000.0, 640.0);
    // (C − o)² / 2C for times within a subframe (TS 36.321 §5.7); and what comes in the last
    // subframe of the on duration waits for the next cycle: (C − o) / C more, less the half
    // subframe to its beginning. Five standard errors of 10,000 draws.
    for (on, cycle, formula) in [(10.0, 320.0, 150.16), (1.0, 40.0, 19.01)] {
        let drx = format!("drx = {{ on = \"{on} ms\", inactivity = \"100 ms\", long = \"{cycle} ms\" }}");
        let waited = wait(&drx, 2000.0, 640.0) - without;
        let discrete = (cycle - on) * (cycle - on + 1.0) / (2.0 * cycle);
        assert!((waited - discrete).abs() < 5.0 * 0.29 * cycle / 100.0, "{waited} {discrete}");
        assert!((discrete - formula).abs() < 0.5);
    }
    let rrc =
        "rrc = { inactivity = \"5 s\", promotion = \"260 ms\", paging = \"1.28 s\", re_establishment = \"200 ms\" }";
    let paged = wait(rrc, 9000.0, 1280.0) - without - 260.0;
    assert!((paged - 640.0).abs() < 5.0 * 3.7, "{paged}");
}

#[test]
fn parameters_that_the_standard_does_not_have_are_refused() {
    let cases = [
        ("cell.bandwidth = \"7 MHz\"", "cell.bandwidth", "1.4, 3, 5, 10, 15 or 20 MHz"),
        ("uplink.sr_period = \"7 ms\"", "uplink.sr_period", "TS 36.213 Table 10.1.5-1"),
        ("uplink.periodic_bsr = \"640 ms\"", "uplink.retx_bsr", "uplink.periodic_bsr"),
        ("drx.on = \"400 ms\"", "drx.on", "drx.long"),
        ("drx.short = \"128 ms\"", "drx.short", "fraction of `drx.long`"),
        ("pdcp.discard = \"150 ms\"", "pdcp.discard", "drx.long"),
        ("rlc.max_retx = 5", "rlc.max_retx", "TS 36.331"),
        ("rrc.inactivity = \"50 ms\"", "rrc.inactivity", "rrc.promotion"),
        ("rrc.t310 = \"300 ms\"", "rrc.t310", "t310, TS 36.331 §6.3.2"),
        ("rrc.t311 = \"2 s\"", "rrc.t311", "1000, 3000, 5000"),
        ("cell.control_symbols = 4", "cell.control_symbols", "1 to 3"),
        ("cell.bandwidth = \"1.4 MHz\"\ncell.control_symbols = 1", "cell.control_symbols", "2 to 4"),
        ("conditions.network.change = \"soft-handover\"", "conditions.network.change", "TS 36.300 §10.1.2"),
        ("cell.processing = \"2500 us\"", "cell.processing", "whole milliseconds"),
        ("cell.processing = \"4 ms\"", "cell.processing", "TS 36.213 §9.1.2"),
        ("cell.carriers = 0", "cell.carriers", "1 to 5"),
        ("mobile.processing = \"100 ms\"", "mobile.processing", "TS 36.213 §10.2"),
        ("mobile.cqi_period = \"7 ms\"", "mobile.cqi_period", "2, 5, 10, 20, 32, 40, 64, 80, 128 or 160 ms"),
        ("mobile.layers = 3", "mobile.layers", "1 to 2 (UE categories 2 to 5, TS 36.306 Table 4.1-1)"),
        ("harq.processes = 9", "harq.processes", "1 to 8 (TS 36.213 §7)"),
        ("drx.on = \"7 ms\"", "drx.on", "1 to 6, 8, 10, 20"),
        ("drx.inactivity = \"7 ms\"", "drx.inactivity", "drx-InactivityTimer, TS 36.331"),
        ("drx.inactivity = \"2560 ms\"\nrrc.inactivity = \"1 s\"", "drx.inactivity", "shorter than `rrc.inactivity`"),
        ("drx.long = \"280 ms\"", "drx.long", "256, 320, 512"),
        ("drx.long = \"333 ms\"", "drx.long", "longDRX-CycleStartOffset"),
        ("drx.short = \"50 ms\"", "drx.short", "shortDRX-Cycle"),
        ("drx.short_count = 17", "drx.short_count", "drxShortCycleTimer"),
        ("rlc.t_status_prohibit = \"7 ms\"", "rlc.t_status_prohibit", "0 to 250 in steps of 5"),
        ("rlc.t_status_prohibit = \"200 ms\"", "rlc.t_status_prohibit", "at most `rlc.t_poll_retransmit`"),
        ("rlc.t_reordering = \"33 ms\"", "rlc.t_reordering", "110 to 200 in steps of 10 or 1600 ms"),
        ("rlc.t_poll_retransmit = \"121 ms\"", "rlc.t_poll_retransmit", "5 to 250 in steps of 5"),
        ("rlc.poll_byte = \"11 kB\"", "rlc.poll_byte", "pollByte, TS 36.331"),
        ("uplink.retx_bsr = \"100 ms\"", "uplink.retx_bsr", "320, 640, 1280, 2560, 5120 or 10240 ms"),
        ("uplink.periodic_bsr = \"7 ms\"", "uplink.periodic_bsr", "periodicBSR-Timer"),
        ("uplink.random_access.period = \"7 ms\"", "uplink.random_access.period", "1, 2, 5, 10 or 20 ms"),
        ("uplink.random_access.period = \"5 s\"", "uplink.random_access.period", "TS 36.211 Table 5.7.1-2"),
        ("pdcp.discard = \"600 ms\"", "pdcp.discard", "50, 100, 150, 300, 500, 750 or 1500 ms"),
        ("rrc.paging = \"1 s\"", "rrc.paging", "320, 640, 1280 or 2560 ms (defaultPagingCycle, TS 36.331 §6.3.2)"),
        ("cell.carriers = 6", "cell.carriers", "1 to 5 (TS 36.300 §5.5)"),
        ("cell.carriers = 2\nmobile.duplex = \"half\"", "cell.carriers", "TS 38.306 §4.2.21"),
    ];
    for (more, key, text) in cases {
        let error = Lte::new(&config::<Config>("lte-20mhz", more, &[]), 1, Seed::new(1), "cell").expect_err(more);
        assert_eq!(error.field(), key);
        assert!(error.to_string().contains(text), "{more}: {error}");
    }
    let error = try_config::<Config>("lte-20mhz", "downlink.pdu = \"40 B\"", &[]).expect_err("a key of HSDPA");
    assert!(error.to_string().contains("unknown field `pdu`"), "{error}");
}

fn any_config() -> impl Strategy<Value = Config> {
    let unacknowledged = "rlc = { mode = \"unacknowledged\", t_reordering = \"45 ms\" }\n";
    let tdd = |configuration, special, processes| {
        format!("cell.tdd = {{ configuration = {configuration}, special = {special} }}\nharq.processes = {processes}\n")
    };
    let variants = vec![
        ("lte-10mhz", String::new(), vec![]),
        ("lte-20mhz", String::new(), vec![]),
        ("lte-20mhz-prescheduled", String::new(), vec![]),
        ("lte-20mhz-prescheduled", "mobile.duplex = \"half\"\n".to_owned(), vec![]),
        ("lte-10mhz", unacknowledged.to_owned(), vec!["rlc"]),
        ("lte-10mhz", "rlc.max_retx = 1\nrlc.t_reordering = \"20 ms\"\n".to_owned(), vec!["rrc"]),
        (
            "lte-20mhz",
            "cell.bandwidth = \"1.4 MHz\"\ncell.pucch_blocks = 1\ncell.control_symbols = 2\n".to_owned(),
            vec!["drx"],
        ),
        ("lte-20mhz", "pdcp.queue = { discipline = \"codel\" }\n".to_owned(), vec!["drx", "rrc"]),
        ("lte-2x20mhz", String::new(), vec![]),
        ("lte-tdd-20mhz", "cell.carriers = 5\n".to_owned(), vec!["drx"]),
        ("lte-2x20mhz", unacknowledged.to_owned(), vec!["rlc"]),
        ("lte-10mhz", "pdcp.queue = { discipline = \"fq-codel\", packets = 12 }\n".to_owned(), vec![]),
        ("lte-10mhz", "pdcp.queue = { discipline = \"pie\" }\n".to_owned(), vec!["drx"]),
        ("lte-10mhz", "pdcp.queue = { discipline = \"dualpi2\" }\n".to_owned(), vec!["rrc"]),
        ("lte-10mhz", "pdcp.queue = { discipline = \"cake\", packets = 12 }\n".to_owned(), vec!["drx"]),
        (
            "lte-10mhz",
            "voice = { ports = [[5353, 5353]], discard = \"100 ms\", t_reordering = \"50 ms\" }\n".to_owned(),
            vec![],
        ),
        (
            "lte-10mhz",
            "cell.background = { downlink = 0.8, uplink = 0.5, on = \"20 ms\", off = \"50 ms\" }\n".to_owned(),
            vec!["drx"],
        ),
        ("lte-tdd-20mhz", String::new(), vec![]),
        ("lte-tdd-20mhz", tdd(0, 0, 4), vec!["drx"]),
        ("lte-tdd-20mhz", tdd(5, 9, 15), vec!["rrc"]),
        ("lte-tdd-20mhz", tdd(6, 5, 6), vec![]),
        ("lte-tdd-20mhz", format!("{unacknowledged}{}", tdd(3, 7, 9)), vec!["rlc"]),
    ];
    let moving = "conditions.movement = { speed = \"50 km/h\", from = \"0 m\", to = \"2 km\", path = \"to-and-fro\" }
        conditions.shadowing = { deviation = \"8 dB\", correlation_distance = \"20 m\" }\n";
    let leaving = "conditions.network.power_over_noise = \"130 dB\"
        conditions.cells = { count = 1, spacing = \"1 km\", setback = \"100 m\", antenna = \"30 m\" }
        conditions.shadowing = { deviation = \"0 dB\", correlation_distance = \"20 m\" }
        conditions.movement = { speed = \"360 km/h\", from = \"0 m\", to = \"3 km\", path = \"to-and-fro\" }\n";
    (
        prop::sample::select(variants),
        prop::sample::select(vec![0.0, 0.02, 0.3]),
        prop::sample::select(vec![0.0, 0.05]),
        prop::sample::select(vec![None, Some(0.0), Some(0.1), Some(0.6)]),
        prop::sample::select(vec!["2 dB", "12 dB", "30 dB"]),
        prop::sample::select(vec![None, Some(moving), Some(leaving)]),
    )
        .prop_map(move |((name, more, mut less), nack_to_ack, missed, bler, ci, path)| {
            let bler = bler.map_or(String::new(), |bler| format!("downlink.bler = {bler}\nuplink.bler = {bler}\n"));
            let errors = format!("mobile.processing = \"3 ms\"\ncell.delay = \"5 ms\"\nharq.nack_to_ack = {nack_to_ack}\nharq.dtx_missed = {missed}\n{bler}");
            let radio = if path == Some(leaving) {
                less.push("conditions.ci");
                leaving.to_owned()
            } else {
                format!("conditions.ci = \"{ci}\"\n{}", path.unwrap_or_default())
            };
            config(name, &format!("{more}{errors}{radio}"), &less)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn cells_keep_the_contracts(config in any_config(), users in 1u16..5, gap in 1u64..400, seed: u64) {
        // Packets without a UDP header do not use the voice bearer, and are overtaken.
        let keeps_order = config.voice.is_none() && config.pdcp.queue.as_ref().is_none_or(|queue| queue.discipline.keeps_order());
        let make = || Lte::new(&config, usize::from(users), Seed::new(5), "cell").expect("sound parameters");
        keeps_contracts(make, &traffic(120, users, Span::from_millis(gap)), seed, Span::from_secs(60), keeps_order);
    }
}
