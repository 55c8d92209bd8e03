//! The narrowband of LTE-M: peak rates, times, half duplex, coverage modes, sleep.

use crate::common;
use crate::common::cells::{Outcome, at_millis, burst, config, run, run_bearer, statistics, try_config};
use crate::common::contracts::{keeps_contracts, traffic};
use airpath_core::{ComponentId, Context, Direction, Instant, Seed, Span};
use airpath_link::command::Change;
use airpath_link::testing::Traffic;
use airpath_link::{Bearer, BearerCommand};
use airpath_radio::ModelError;
use airpath_radio::ltem::{Config, LteM};
use proptest::prelude::*;

/// Always awake while connected, and without errors.
fn plain(more: &str) -> Config {
    let plain = [("conditions.ci", "\"40 dB\""), ("downlink.bler", "0.0"), ("uplink.bler", "0.0")];
    let others = plain.iter().filter(|(key, _)| !more.contains(key));
    let lines: String = others.map(|(key, value)| format!("{key} = {value}\n")).collect();
    config("lte-cat-m1", &format!("{lines}{more}"), &["drx", "pdcp"])
}

/// Bits a second of this number of blocks in sequence, the fastest in the run.
fn fastest(outcome: &Outcome, direction: Direction, count: usize) -> f64 {
    let blocks: Vec<_> = outcome.blocks(direction).collect();
    let rate = |run: &[&(Instant, airpath_core::RadioEvent)]| {
        let bits: u32 = run[..count].iter().map(|(_, event)| event.bytes * 8).sum();
        f64::from(bits) / run[count].0.since(run[0].0).as_secs_f64()
    };
    blocks.windows(count + 1).map(rate).fold(0.0, f64::max)
}

#[test]
fn the_peak_rates_of_category_m1_follow_from_the_times() {
    // Three blocks of 1000 bits in 10 ms downwards and in 8 ms upwards; with full duplex, eight in
    // 10 ms and one in each subframe.
    let peaks = [
        ("half", Direction::Down, 300e3),
        ("half", Direction::Up, 375e3),
        ("full", Direction::Down, 800e3),
        ("full", Direction::Up, 1000e3),
    ];
    for (duplex, direction, peak) in peaks {
        let config = plain(&format!("mobile.duplex = \"{duplex}\""));
        let outcome = run(&config, 1, &burst(400, direction, 1000), Span::from_secs(60));
        assert_eq!(outcome.departures.len(), 400);
        // Whole cycles of three blocks, or of eight processes.
        let rate = fastest(&outcome, direction, if duplex == "half" { 18 } else { 16 });
        assert!((rate / peak - 1.0).abs() < 1e-9, "{duplex} {direction:?}: {rate} of {peak}");
        let first = outcome.blocks(direction).next().expect("a block").0;
        let seconds = outcome.departures.last().expect("a packet").1.due.since(first).as_secs_f64();
        let goodput = 400.0 * 8000.0 / seconds;
        assert!((0.7 * peak..peak).contains(&goodput), "{duplex} {direction:?}: {goodput} of {peak}");
    }
}

#[test]
fn no_transport_block_is_larger_than_1000_bits() {
    for (ci, direction) in [(-3, Direction::Down), (5, Direction::Up), (40, Direction::Down), (40, Direction::Up)] {
        let config = plain(&format!("conditions.ci = \"{ci} dB\""));
        let outcome = run(&config, 1, &burst(100, direction, 1000), Span::from_secs(120));
        assert_eq!(outcome.departures.len(), 100);
        assert!(outcome.radio.iter().all(|(_, event)| event.bytes <= 125 && event.level <= 15), "at {ci} dB");
    }
}

#[test]
fn delays_of_isolated_packets_are_those_of_the_timeline() {
    // Up to a subframe, MPDCCH, one subframe between, PDSCH. Upwards: up to 80 ms to the occasion
    // of a request, MPDCCH 4 ms after it, PUSCH 4 ms after that.
    let config = plain("mobile.duplex = \"full\"\nuplink.first_grant = \"125 B\"");
    for (direction, expected, most) in
        [(Direction::Down, [3.0, 3.5, 4.0], 0.1), (Direction::Up, [9.0, 49.5, 90.0], 2.0)]
    {
        let packets: Vec<_> = (0..2000).map(|n| (at_millis(501.377 * f64::from(n)), direction, 0, 80)).collect();
        let outcome = run(&config, 1, &packets, Span::from_secs(1100));
        assert_eq!(outcome.departures.len(), 2000);
        // The first ones wait for the connection.
        let delays = statistics(&outcome.delays(&packets)[8..]);
        for (delay, expected) in delays.iter().zip(expected) {
            assert!((delay - expected).abs() < most, "{direction:?}: {delays:?}");
        }
    }
}

#[test]
fn a_mobile_with_half_duplex_never_sends_and_receives_at_once() {
    // Of mode A without repetitions, by the rules of TS 36.213: MPDCCH, PDSCH 2 subframes later,
    // feedback 4 later; PUSCH 4 subframes after MPDCCH.
    let meets = |duplex: &str| {
        let more = format!("mobile.duplex = \"{duplex}\"\ndownlink.bler = 0.2\nuplink.bler = 0.2");
        let mut packets = burst(150, Direction::Down, 900);
        packets.extend(burst(150, Direction::Up, 900));
        let outcome = run(&plain(&more), 1, &packets, Span::from_secs(60));
        assert_eq!(outcome.departures.len(), 300);
        let (mut received, mut sent) = (Vec::new(), Vec::new());
        for (at, event) in &outcome.radio {
            let begin = (at.as_nanos() / 1_000_000) as i64;
            match event.direction {
                Direction::Down => {
                    received.extend([begin, begin + 2]);
                    sent.push(begin + 6);
                }
                Direction::Up => {
                    received.push(begin - 4);
                    sent.push(begin);
                }
            }
        }
        sent.iter().filter(|sent| received.iter().any(|received| (*sent - received).abs() <= 1)).count()
    };
    assert_eq!(meets("half"), 0);
    assert!(meets("full") > 100);
}

#[test]
fn repetitions_of_the_mode_multiply_the_times() {
    let durations = |ci: &str| {
        let packets = [(at_millis(0.0), Direction::Up, 0, 60), (at_millis(4000.0), Direction::Down, 0, 60)];
        let outcome = run(&plain(&format!("conditions.ci = \"{ci}\"")), 1, &packets, Span::from_secs(60));
        assert_eq!(outcome.departures.len(), 2, "{ci}");
        let first = |direction| outcome.blocks(direction).next().expect("a block").1.duration;
        Direction::BOTH.map(|direction| first(direction).as_nanos() / 1_000_000)
    };
    let up_and_down = |[down, up]: [u64; 2]| (down, up);
    assert_eq!(up_and_down(durations("20 dB")), (3, 1));
    // 32 of MPDCCH, one between, 32 of PDSCH; 32 of PUSCH.
    assert_eq!(up_and_down(durations("-10 dB")), (65, 32));
}

#[test]
fn worse_coverage_takes_longer_and_gets_through() {
    let mean = |ci: &str| {
        let packets: Vec<_> = (0..40).map(|n| (at_millis(30_000.7 * f64::from(n)), Direction::Up, 0, 300)).collect();
        let mut config = plain(&format!("conditions.ci = \"{ci}\""));
        (config.downlink.bler, config.uplink.bler) = (None, None);
        let outcome = run(&config, 1, &packets, Span::from_secs(2000));
        assert_eq!(outcome.departures.len(), 40, "{ci}");
        statistics(&outcome.delays(&packets))[1]
    };
    let (good, fair, poor) = (mean("30 dB"), mean("6 dB"), mean("-8 dB"));
    assert!(good < 450.0 && fair > good + 10.0 && poor > fair + 1500.0, "{good} {fair} {poor}");
    assert!(poor < 30_000.0, "{poor}");
}

#[test]
fn two_mobiles_with_half_duplex_use_the_times_of_each_other() {
    let direction = Direction::Down;
    let rate = |seed| {
        let packets: Vec<_> = (0..500).map(|n| (Instant::ZERO, direction, n % 2, 500)).collect();
        let bearer = LteM::new(&plain(""), 2, Seed::new(seed), "cell").expect("sound parameters");
        let outcome = run_bearer(bearer, &packets, &[], Span::from_secs(60));
        assert_eq!(outcome.departures.len(), packets.len());
        // From when both have blocks until one has all of its packets.
        let first = |user| {
            let blocks = outcome.blocks(direction).find(|(_, event)| event.user.index() == user);
            blocks.expect("a block").0
        };
        let last = |user| {
            let own = outcome.departures.iter().filter(|(_, out)| out.packet.user.index() == user);
            own.map(|(_, out)| out.due).max().expect("packets")
        };
        let (from, to) = (first(0).max(first(1)), last(0).min(last(1)));
        let both = outcome.blocks(direction).filter(|(at, _)| (from..to).contains(at));
        let bits: f64 = both.map(|(_, event)| f64::from(event.bytes) * 8.0).sum();
        bits / 2.0 / to.since(from).as_secs_f64()
    };
    // The peak rate of one is 300 kbit/s. Reports of the RLC and requests take a part of it.
    let rates: Vec<f64> = (1..9).map(rate).collect();
    assert!(rates.iter().all(|rate| *rate > 240e3), "{rates:.0?}");
}

/// A connection that began in mode B keeps QPSK, the repetitions of PUCCH and an eighth of those of
/// MPDCCH.
#[test]
fn transfers_follow_the_coverage_from_one_to_the_next() {
    let mut config = plain("conditions.ci = \"0 dB\"\nrrc.inactivity = \"100 s\"");
    (config.downlink.bler, config.uplink.bler) = (None, None);
    let ci = |at, ci: &str| {
        (at_millis(at), BearerCommand::from(Change::CarrierToInterference(ci.parse().expect("a ratio"))))
    };
    let bursts = [20e3, 40e3, 60e3];
    let mut packets = vec![(Instant::ZERO, Direction::Up, 0, 60)];
    for at in bursts {
        packets.extend(
            [Direction::Down, Direction::Up].map(|direction| vec![(at_millis(at), direction, 0, 200); 20]).concat(),
        );
    }
    let bearer = LteM::new(&config, 1, Seed::new(3), "cell").expect("sound parameters");
    let outcome = run_bearer(bearer, &packets, &[ci(39e3, "25 dB"), ci(59e3, "0 dB")], Span::from_secs(100));
    assert_eq!(outcome.departures.len(), packets.len());
    let blocks = |direction, from: f64| {
        let times = at_millis(from + 200.0)..at_millis(from + 10e3);
        let blocks: Vec<_> = outcome.blocks(direction).filter(|(at, _)| times.contains(at)).collect();
        assert!(blocks.len() > 10, "{direction:?}");
        blocks
    };
    // MPDCCH, one between, PDSCH: 32 and 32 repetitions, or 4 and 1; PUSCH 32 or 1.
    for (from, down, up) in [(20e3, 65, 32), (40e3, 6, 1), (60e3, 65, 32)] {
        for (direction, length) in [(Direction::Down, down), (Direction::Up, up)] {
            let blocks = blocks(direction, from);
            assert!(
                blocks.iter().all(|(_, event)| event.duration == Span::from_millis(length)),
                "{direction:?} {from}"
            );
            let last_qpsk = if direction == Direction::Down { 9 } else { 10 };
            assert!(blocks.iter().all(|(_, event)| event.level <= last_qpsk), "{direction:?} {from}");
        }
    }
    // The feedback takes 16 ms: 28 ms from a block to the next of a process. There are two.
    let fast = blocks(Direction::Down, 40e3);
    assert!(fast.windows(3).all(|three| three[2].0.since(three[0].0) >= Span::from_millis(28)));
}

/// An on duration that begins just before an occasion of scheduling requests is not left free for
/// it: the same comes in each cycle.
#[test]
fn a_mobile_is_served_in_an_on_duration_with_an_occasion_of_requests() {
    let repeated = "coverage.a.control = 4\ncoverage.a.downlink = 8\ncoverage.a.uplink = 16\n";
    let config: Config = config("lte-cat-m1", &format!("conditions.ci = \"30 dB\"\n{repeated}"), &[]);
    let users = 40;
    let packets: Vec<_> = (0..10 * users)
        .map(|n| {
            (at_millis(101.7 * f64::from(n)), if n < users { Direction::Up } else { Direction::Down }, n % users, 40)
        })
        .map(|(at, direction, user, size)| (at, direction, user as u16, size))
        .collect();
    let outcome = run(&config, users as usize, &packets, Span::from_secs(60));
    assert_eq!(outcome.departures.len(), packets.len());
}

#[test]
fn mode_b_reaches_where_mode_a_does_not() {
    let late = |more: &str| {
        let mut config = plain(&format!("conditions.ci = \"-8 dB\"\n{more}"));
        (config.downlink.bler, config.uplink.bler) = (None, None);
        let packets: Vec<_> = (0..20).map(|n| (at_millis(15_000.7 * f64::from(n)), Direction::Down, 0, 100)).collect();
        let outcome = run(&config, 1, &packets, Span::from_secs(310));
        let errors = outcome.blocks(Direction::Down).filter(|(_, event)| event.errored > 0).count();
        (errors, outcome.departures.len())
    };
    let ((with, delivered), (without, _)) = (late(""), late("coverage.b.below = \"-60 dB\""));
    assert_eq!(delivered, 20);
    assert!(with < 20 && without > 5 * (with + 1), "{with} {without}");
}

#[test]
fn a_sleeping_mobile_is_reached_at_its_occasions_without_events_between() {
    let power_saving = |more: &str| format!("rrc.power_saving.{more}");
    let edrx = power_saving("edrx = { cycle = \"81.92 s\", window = \"5.12 s\" }");
    let psm = power_saving("psm = { active = \"10 s\", update = \"2 h\" }");
    for (more, wait, spread) in [(String::new(), 0.64, 1.28), (edrx, 40.96, 81.92), (psm, 3600.0, 7200.0)] {
        let mut bearer = LteM::new(&plain(&more), 1, Seed::new(3), "cell").expect("sound parameters");
        let mut dropped = Vec::new();
        let mut cx = Context::new(None, &mut dropped, ComponentId(0));
        let mut stream = Seed::new(7).stream("arrivals");
        let (mut sum, mut wakeups) = (0.0, 0);
        for n in 0..300u32 {
            let at = at_millis(20e6 * f64::from(n) + 8e6 * stream.uniform());
            bearer.push(at, Direction::Down, common::packet(n.into(), 0, 60), &mut cx);
            while let Some(now) = bearer.next_wakeup() {
                wakeups += 1;
                while let Some((_, out)) = bearer.pop(now, &mut cx) {
                    sum += out.due.since(at).as_secs_f64();
                }
            }
        }
        let mean = sum / 300.0;
        let error = 5.0 * 0.29 * spread / 300f64.sqrt();
        assert!(mean > wait - error && mean < wait + error + 1.0, "{more}: {mean} s");
        assert!(wakeups < 300 * 12, "{more}: {wakeups}");
        assert!(dropped.is_empty());
    }
}

#[test]
fn parameters_that_contradict_the_standard_are_refused() {
    let cases = [
        ("cell.control_symbols = 5", "cell.control_symbols", "1 to 4"),
        ("cell.control_blocks = 3", "cell.control_blocks", "2, 4 or 6"),
        ("cell.processing = \"2500 us\"", "cell.processing", "whole milliseconds"),
        ("coverage.a.control = 3", "coverage.a.control", "power of 2"),
        ("coverage.a.downlink = 64", "coverage.a.downlink", "TS 36.213"),
        ("coverage.a.uplink = 0", "coverage.a.uplink", "1, 2, 4, 8, 16 or 32"),
        ("coverage.a.feedback = 16", "coverage.a.feedback", "1, 2, 4 or 8"),
        ("coverage.b.control = 512", "coverage.b.control", "256"),
        ("coverage.b.downlink = 100", "coverage.b.downlink", "2048"),
        ("coverage.b.uplink = 2", "coverage.b.uplink", "2048"),
        ("coverage.b.feedback = 2", "coverage.b.feedback", "4, 8, 16 or 32"),
        ("coverage.b.promotion = \"20 s\"", "rrc.inactivity", "coverage.b.promotion"),
        ("coverage.repetition_loss = \"12 dB\"", "coverage.repetition_loss", "0 to 10 dB"),
        ("harq.processes = 9", "harq.processes", "1 to 8 (mode A, TS 36.213 §7)"),
        ("coverage.a.downlink = 32\ncoverage.b.downlink = 4", "coverage.b.downlink", "at least `coverage.a.downlink`"),
        ("coverage.a.control = 64", "coverage.b.control", "TS 36.300 §23.7b"),
        ("mobile.processing = \"4 ms\"", "mobile.processing", "TS 36.213 §10.2"),
        ("mobile.cqi_period = \"1 ms\"", "mobile.cqi_period", "TS 36.213 Table 7.2.2-1A"),
        ("uplink.sr_period = \"10 ms\"", "uplink.sr_period", "coverage.b"),
        ("uplink.sr_period = \"15 ms\"", "uplink.sr_period", "TS 36.213 Table 10.1.5-1"),
        ("uplink.modulation = \"64qam\"", "uplink.modulation", "16qam"),
        ("uplink.prescheduling = { interval = \"5 ms\", bytes = \"20 B\" }", "uplink.prescheduling", "left out"),
        ("rrc.power_saving.edrx = { cycle = \"1 s\", window = \"2 s\" }", "rrc.power_saving.edrx.cycle", "5.12, 10.24"),
        (
            "rrc.power_saving.edrx = { cycle = \"20.48 s\", window = \"7 s\" }",
            "rrc.power_saving.edrx.window",
            "1.28 to 20.48 s",
        ),
        ("conditions.network.change = \"soft-handover\"", "conditions.network.change", "TS 36.300 §10.1.2"),
    ];
    for (more, key, text) in cases {
        let config = config::<Config>("lte-cat-m1", more, &[]);
        let error = LteM::new(&config, 1, Seed::new(1), "cell").expect_err(more);
        assert_eq!(error.field(), key);
        assert!(error.to_string().contains(text), "{more}: {error}");
    }
    let error = try_config::<Config>("lte-cat-m1", "mobile.duplex = \"tdd\"", &[]).expect_err("no such duplex");
    assert!(error.to_string().contains("half"), "{error}");
}

fn any_config() -> impl Strategy<Value = Config> {
    let unacknowledged = "rlc = { mode = \"unacknowledged\", t_reordering = \"1600 ms\" }\n";
    let variants = vec![
        ("lte-cat-m1", "", vec![]),
        ("lte-cat-m1", "mobile.duplex = \"full\"\n", vec!["drx"]),
        ("lte-cat-m1", unacknowledged, vec!["rlc"]),
        ("lte-cat-m1", "coverage.a.control = 4\ncoverage.a.downlink = 8\ncoverage.a.uplink = 16\n", vec![]),
        ("lte-cat-m1", "harq.processes = 1\nrlc.max_retx = 1\nrlc.t_reordering = \"200 ms\"\n", vec!["drx"]),
        ("lte-cat-m1", "cell.control_blocks = 6\npdcp.queue = { discipline = \"codel\" }\n", vec![]),
        ("lte-cat-m1-psm", "", vec![]),
    ];
    let moving = "conditions.movement = { speed = \"50 km/h\", from = \"0 m\", to = \"2 km\", path = \"to-and-fro\" }
        conditions.shadowing = { deviation = \"8 dB\", correlation_distance = \"20 m\" }\n";
    (
        prop::sample::select(variants),
        prop::sample::select(vec![0.0, 0.05]),
        prop::sample::select(vec![0.0, 0.05]),
        prop::sample::select(vec![None, Some(0.0), Some(0.3)]),
        prop::sample::select(vec!["-8 dB", "2 dB", "30 dB"]),
        any::<bool>(),
    )
        .prop_map(move |((name, more, less), nack_to_ack, missed, bler, ci, moves)| {
            let bler = bler.map_or(String::new(), |bler| format!("downlink.bler = {bler}\nuplink.bler = {bler}\n"));
            let errors = format!("mobile.processing = \"3 ms\"\ncell.delay = \"5 ms\"\nharq.nack_to_ack = {nack_to_ack}\nharq.dtx_missed = {missed}\n{bler}");
            let radio = format!("conditions.ci = \"{ci}\"\n{}", if moves { moving } else { "" });
            config(name, &format!("{more}{errors}{radio}"), &less)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn narrowbands_keep_the_contracts(config in any_config(), users in 1u16..5, gap in 1u64..400, seed: u64) {
        let keeps_order = config.pdcp.queue.as_ref().is_none_or(|queue| queue.discipline.keeps_order());
        let make = || LteM::new(&config, usize::from(users), Seed::new(5), "cell").expect("sound parameters");
        keeps_contracts(make, &Traffic { sizes: (40, 600), ..traffic(60, users, Span::from_millis(gap)) }, seed, Span::from_secs(100_000), keeps_order);
    }
}
