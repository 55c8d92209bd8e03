//! The LTE cell with time division duplex: subframes, and the fixed times of feedback, repetitions
//! and grants.

use crate::common::cells::{at_millis, burst, config, run, statistics};
use airpath_core::{Direction, Seed, Span};
use airpath_radio::ModelError;
use airpath_radio::lte::{Config, Lte, tables, tdd};

/// Without what makes a mobile sleep or drops packets.
const STATES: [&str; 3] = ["drx", "rrc", "pdcp"];

fn plain(configuration: u8, special: u8, more: &str) -> Config {
    let processes = tdd::processes(configuration).expect("a configuration").downlink;
    let duplex = format!("cell.tdd = {{ configuration = {configuration}, special = {special} }}");
    let more = format!("{duplex}\nharq.processes = {processes}\nconditions.ci = \"40 dB\"\n{more}");
    config("lte-tdd-20mhz", &more, &STATES)
}

/// The number of a subframe within its frame.
fn subframe(at: airpath_core::Instant) -> u64 {
    at.as_nanos() / 1_000_000 % 10
}

#[test]
fn the_mac_rate_is_that_of_the_largest_blocks_of_the_subframes() {
    // TS 36.213 §7.1.7: a special subframe has the sizes of three quarters of its resource blocks,
    // with special configuration 9 those of three eighths, with 0 no data.
    for (configuration, special, blocks) in [(0, 7, 75), (1, 8, 75), (2, 9, 37), (3, 4, 75), (5, 0, 0), (6, 7, 75)] {
        let config = plain(configuration, special, "mobile.layers = 1\ndownlink.bler = 0.0");
        let outcome = run(&config, 1, &burst(16_000, Direction::Down, 1500), Span::from_secs(1));
        let pattern = tdd::pattern(configuration, special).expect("a pattern");
        let mut seen = [0; 10];
        for (at, event) in outcome.blocks(Direction::Down).filter(|(at, _)| at.as_nanos() < 1_000_000_000) {
            let slot = subframe(*at);
            seen[slot as usize] += 1;
            let is_special = pattern.symbols(slot).downlink < 14;
            assert!(pattern.carries_downlink(slot), "{configuration} {slot}");
            // In the 6 symbols of special configuration 9, the highest code rates do not fit.
            let size = |blocks| tables::transport_block_bits(26, blocks) / 8;
            match (is_special, blocks) {
                (true, 37) => assert!(event.bytes <= size(37) && event.bytes > size(37) / 2, "{}", event.bytes),
                (true, blocks) => assert_eq!(event.bytes, size(blocks), "{configuration} {slot}"),
                (false, _) => assert_eq!(event.bytes, size(100), "{configuration} {slot}"),
            }
        }
        // Each subframe of the downlink is used, except for the first, into which the packets come.
        let used = (0..10).filter(|slot| pattern.carries_downlink(*slot)).all(|slot| seen[slot as usize] >= 98);
        assert!(used, "{configuration}: {seen:?}");
    }
}

#[test]
fn downlink_blocks_are_repeated_by_the_table_of_feedback() {
    for configuration in 0..tdd::CONFIGURATIONS {
        let config = plain(configuration, 7, "downlink.bler = 0.5");
        let mut stream = Seed::new(11).stream("arrivals");
        let packets: Vec<_> = (0..400)
            .map(|n| (at_millis(500.0 * f64::from(n) + 80.0 * stream.uniform()), Direction::Down, 0, 100))
            .collect();
        let outcome = run(&config, 1, &packets, Span::from_secs(300));
        assert_eq!(outcome.departures.len(), 400);
        let timeline = tdd::timeline(configuration, 7, 4).expect("a timeline");
        let blocks: Vec<_> = outcome.blocks(Direction::Down).collect();
        let repeated = blocks.windows(2).filter(|pair| pair[0].1.repeated == 0 && pair[1].1.repeated > 0);
        let mut trips = 0;
        for pair in repeated {
            let millis = |index: usize| pair[index].0.as_nanos() / 1_000_000;
            assert_eq!(millis(1), timeline.next_attempt(timeline.feedback(millis(0))), "{configuration}");
            trips += 1;
        }
        assert!(trips > 120, "{configuration}: {trips}");
    }
}

#[test]
fn uplink_blocks_are_repeated_by_the_table_of_the_phich() {
    // TS 36.213 Tables 9.1.2-1 and 8-2: after 10 ms; with configurations 0 and 6 later.
    for configuration in 0..tdd::CONFIGURATIONS {
        let more = "uplink.bler = 0.5\nharq.max_transmissions = 28";
        let outcome = run(&plain(configuration, 7, more), 1, &burst(300, Direction::Up, 1500), Span::from_secs(20));
        assert_eq!(outcome.departures.len(), 300);
        let blocks: Vec<_> = outcome.blocks(Direction::Up).collect();
        let mut seen = [false; 10];
        for (at, _) in blocks.iter().filter(|(_, event)| event.errored > 0) {
            let trip = match (configuration, subframe(*at)) {
                (0, 4 | 9) | (6, 4) => 13,
                (6, 8) => 14,
                (0 | 6, _) => 11,
                _ => 10,
            };
            let again = *at + Span::from_millis(trip);
            let repeated = blocks.iter().any(|(other, event)| *other == again && event.repeated > 0);
            assert!(repeated, "{configuration}: {at}");
            seen[subframe(*at) as usize] = true;
        }
        let pattern = tdd::pattern(configuration, 7).expect("a pattern");
        assert!((0..10).all(|slot| seen[slot as usize] == pattern.carries_uplink(slot)), "{configuration}: {seen:?}");
    }
}

#[test]
fn delays_of_isolated_packets_are_those_of_the_subframes() {
    for configuration in 0..tdd::CONFIGURATIONS {
        let config = plain(configuration, 7, "uplink.sr_period = \"10 ms\"\nuplink.first_grant = \"1000 B\"");
        let timeline = tdd::timeline(configuration, 7, 4).expect("a timeline");
        let pattern = timeline.pattern();
        // For packets that come anywhere in a subframe: to the end of their block.
        let down = |slot: u64| (pattern.downlink_from(slot + 1) + 1 - slot) as f64 - 0.5;
        // Each uplink subframe can have the occasion of a mobile.
        let up = |slot: u64, occasion: u64| {
            let request = occasion + (slot + 1).saturating_sub(occasion).next_multiple_of(10);
            let granted = timeline.granted(timeline.grant_after(request)).next().expect("a subframe");
            (granted + 1 - slot) as f64 - 0.5
        };
        let slots = 1000..1010;
        let occasions: Vec<u64> = (0..10).filter(|slot| pattern.carries_uplink(*slot)).collect();
        let expected_down: Vec<f64> = slots.clone().map(down).collect();
        let expected_up: Vec<f64> = slots
            .flat_map(|slot| occasions.iter().map(move |occasion| (slot, *occasion)))
            .map(|(a, b)| up(a, b))
            .collect();
        for (direction, expected, users) in [(Direction::Down, expected_down, 1), (Direction::Up, expected_up, 24)] {
            let mut stream = Seed::new(11).stream("arrivals");
            let packets: Vec<_> = (0..1200)
                .map(|n| {
                    (at_millis(300.0 * f64::from(n) + 80.0 * stream.uniform()), direction, (n % users) as u16, 100)
                })
                .collect();
            let outcome = run(&config, users as usize, &packets, Span::from_secs(400));
            assert_eq!(outcome.departures.len(), 1200);
            let [least, mean, most] = statistics(&outcome.delays(&packets));
            let [low, middle, high] = statistics(&expected);
            assert!(least >= low - 0.5 && most <= high + 0.5, "{configuration} {direction:?}: {least} {most}");
            assert!(
                (mean - middle).abs() < 0.06 * (high - low).max(4.0),
                "{configuration} {direction:?}: {mean} {middle}"
            );
        }
    }
}

#[test]
fn special_subframes_without_data_carry_grants() {
    // Special configuration 0 has 3 downlink symbols: a PDCCH and no PDSCH (TS 36.213 §7.1.7).
    for configuration in [0, 1, 6] {
        let config = plain(configuration, 0, "uplink.bler = 0.0\ndownlink.bler = 0.0");
        for direction in Direction::BOTH {
            let outcome = run(&config, 2, &burst(400, direction, 1000), Span::from_secs(10));
            assert_eq!(outcome.departures.len(), 400);
            assert!(outcome.blocks(Direction::Down).all(|(at, _)| ![1, 6].contains(&subframe(*at))));
        }
        let outcome = run(&config, 1, &burst(2000, Direction::Up, 1500), Span::from_secs(10));
        let used: std::collections::BTreeSet<u64> =
            outcome.blocks(Direction::Up).map(|(at, _)| subframe(*at)).collect();
        let pattern = tdd::pattern(configuration, 0).expect("a pattern");
        let expected: Vec<u64> = (0..10).filter(|slot| pattern.carries_uplink(*slot)).collect();
        assert_eq!(used.into_iter().collect::<Vec<_>>(), expected, "every uplink subframe is granted");
    }
}

#[test]
fn parameters_that_the_standard_does_not_have_are_refused() {
    let cases = [
        ("cell.tdd.configuration = 7", "cell.tdd.configuration", "TS 36.211 Table 4.2-2"),
        ("cell.tdd.special = 10", "cell.tdd.special", "TS 36.211 Table 4.2-1"),
        ("cell.tdd.configuration = 1", "harq.processes", "1 to 7"),
        (
            "cell.tdd.configuration = 3\nuplink.sr_period = \"5 ms\"\nharq.processes = 9",
            "uplink.sr_period",
            "U subframes",
        ),
        ("uplink.sr_period = \"2 ms\"", "uplink.sr_period", "U subframes"),
        ("drx.on = \"2 ms\"", "drx.on", "D subframe"),
    ];
    for (more, key, text) in cases {
        let error = Lte::new(&config::<Config>("lte-tdd-20mhz", more, &["pdcp"]), 1, Seed::new(1), "cell");
        let error = error.expect_err(more);
        assert_eq!(error.field(), key, "{more}: {error}");
        assert!(error.to_string().contains(text), "{more}: {error}");
    }
}
