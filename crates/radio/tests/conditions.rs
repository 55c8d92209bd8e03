//! Radio conditions: a sample depends on the seed and its time only, and the
//! places are as they are meant to be.

use airpath_core::{Instant, Seed, Span};
use airpath_link::Change;
use airpath_radio::ModelError;
use airpath_radio::conditions::Profile;
use airpath_radio::conditions::{Conditions, Config, Sample, Transition, environments};
use proptest::prelude::*;

const NETWORK: &str = r#"
[network]
frequency = "900 MHz"
reuse = 12
load = 0.5
power_over_noise = "165 dB"
lowest = "9 dB"
period = "480 ms"
hysteresis = "4 dB"
time_to_trigger = "5 s"
change = "reselection"
gap = "1 s"
"#;

/// A car between cells, with what differs from it.
fn driving(over: &str) -> Config {
    let text = r#"
        movement = { speed = "50 km/h", from = "0 m", to = "6 km" }
        shadowing = { deviation = "8 dB", correlation_distance = "100 m" }
        cells = { count = 3, spacing = "3 km", setback = "200 m", antenna = "30 m" }
    "#;
    let mut table: toml::Table = toml::from_str(&format!("{text}{NETWORK}")).expect("a table");
    let over: toml::Table = toml::from_str(over).expect("a table");
    for (key, value) in over {
        match (table.get_mut(&key).and_then(toml::Value::as_table_mut), value) {
            (Some(table), toml::Value::Table(values)) => table.extend(values),
            (_, value) => drop(table.insert(key, value)),
        }
    }
    table.try_into().expect("conditions")
}

/// Someone among cells who stays where he is while others move around him.
fn sitting() -> Config {
    let mut config = driving("movement.speed = \"0 km/h\"");
    let shadowing = config.shadowing.as_mut().expect("shadowing");
    (shadowing.correlation_distance, shadowing.correlation_time) = (None, Some(Span::from_secs(5)));
    config
}

fn make(config: &Config, seed: u64) -> Conditions {
    Conditions::new(config, 0, Seed::new(seed), "cell/user-0/conditions").expect("sound")
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn transitions(conditions: &mut Conditions, now: Instant) -> Vec<(Instant, Transition)> {
    std::iter::from_fn(|| conditions.next_transition(now)).collect()
}

/// All kinds, with what makes them vary.
fn kinds() -> Vec<Config> {
    let read = |text: &str| toml::from_str(text).expect(text);
    vec![
        read("ci = \"12 dB\"\nshadowing = { deviation = \"3 dB\", correlation_time = \"10 s\" }"),
        read("table = { hold = \"1 s\", values = [\"3 dB\", \"9 dB\"], weights = [1, 3] }"),
        driving(""),
        driving("rayleigh = \"3 km/h\""),
        sitting(),
        driving("movement.path = \"once\"\nnetwork.power_over_noise = \"140 dB\""),
        driving("network = { reuse = 1, change = \"hard-handover\", gap = \"300 ms\", time_to_trigger = \"0 s\" }"),
    ]
}

proptest! {
    // Each case goes through hours of many places.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 16))]

    /// Sampling less often gives the same conditions, over jumps of any length.
    #[test]
    fn samples_do_not_depend_on_the_times_of_queries(
        seed: u64,
        mut times in prop::collection::vec(0u64..4_000_000, 1..12),
        between in prop::collection::vec(0u64..4_000_000, 0..40),
    ) {
        times.sort_unstable();
        let mut all: Vec<u64> = times.iter().chain(&between).copied().collect();
        all.sort_unstable();
        for config in kinds() {
            let (mut seldom, mut often) = (make(&config, seed), make(&config, seed));
            let reported: Vec<(u64, Sample)> = all.iter().map(|millis| (*millis, often.at(at(*millis)))).collect();
            for millis in &times {
                let sample = seldom.at(at(*millis));
                let same = reported.iter().find(|(time, _)| time == millis).expect("it was sampled then, too");
                prop_assert_eq!(sample, same.1, "at {} ms", millis);
            }
        }
    }

    /// The changes of the last minute are returned, the same to all callers.
    #[test]
    fn the_last_minute_is_reported_to_all(seed: u64, minutes in 2u64..100) {
        for config in kinds() {
            let end = at(minutes * 60_000);
            let late = transitions(&mut make(&config, seed), end);
            let mut prompt = make(&config, seed);
            let mut all = Vec::new();
            for second in 0..=minutes * 60 {
                all.extend(transitions(&mut prompt, at(second * 1000)));
            }
            prop_assert!(all.iter().all(|(time, _)| *time <= end));
            let recent: Vec<_> = all.into_iter().filter(|(time, _)| end.since(*time) < Span::from_secs(59)).collect();
            let late: Vec<_> = late.into_iter().filter(|(time, _)| end.since(*time) < Span::from_secs(59)).collect();
            prop_assert_eq!(late, recent);
        }
    }
}

#[test]
fn a_car_between_cells_changes_to_the_next_and_back() {
    let mut conditions = make(&driving("shadowing.deviation = \"0 dB\"\nmovement.start = \"0 m\""), 1);
    // 6 km there and back at 50 km/h are 864 s.
    let changes: Vec<u16> = (0..864)
        .flat_map(|second| transitions(&mut conditions, at(second * 1000)))
        .map(|(_, transition)| match transition {
            Transition::Reselection { to, gap } if gap == Span::from_secs(1) => to,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(changes, [1, 2, 1, 0]);
}

#[test]
fn hysteresis_makes_changes_rarer_and_later() {
    let changes = |hysteresis: &str| {
        let mut conditions =
            make(&driving(&format!("network.hysteresis = \"{hysteresis}\"\nnetwork.time_to_trigger = \"0 s\"")), 1);
        (0..6000).flat_map(|second| transitions(&mut conditions, at(second * 1000))).count()
    };
    let (none, some, much) = (changes("0 dB"), changes("4 dB"), changes("12 dB"));
    assert!(none > 2 * some && some > much && much > 0, "{none}, {some}, {much}");
}

#[test]
fn shadows_around_a_median_belong_to_the_position() {
    let ratio = |path: &str, millis| {
        let text = format!(
            "ci = \"12 dB\"\nshadowing = {{ deviation = \"8 dB\", correlation_distance = \"20 m\" }}\n\
             movement = {{ speed = \"10 m/s\", from = \"0 m\", to = \"100 m\", start = \"0 m\", path = \"{path}\" }}"
        );
        make(&toml::from_str(&text).expect("conditions"), 1).at(at(millis)).carrier_to_interference
    };
    // 30 m from the start: after 3 s, on the return after 17 s, and again after 23 s.
    assert_eq!([17_000, 23_000].map(|millis| ratio("to-and-fro", millis)), [ratio("to-and-fro", 3_000); 2]);
    assert_ne!(ratio("to-and-fro", 3_000), ratio("to-and-fro", 4_000));
    assert_eq!(ratio("once", 17_000), ratio("once", 10_000));
    assert_eq!(ratio("once", 3_000), ratio("to-and-fro", 3_000));
}

#[test]
fn between_two_measurements_the_ratio_follows_a_line() {
    let mut conditions = make(&driving("cells.count = 1\nmovement.to = \"1 km\""), 1);
    let mut curved = 0;
    for step in (0..4000).step_by(7) {
        let [begin, early, middle, end] =
            [0, 120, 240, 480].map(|later| conditions.at(at(480 * step + later))).map(|sample| {
                assert!(sample.covered);
                [sample.carrier_to_interference, sample.level.expect("cells have a level")]
            });
        for index in 0..2 {
            let rise = end[index] - begin[index];
            assert!((early[index] - begin[index] - rise / 4.0).abs() < 1e-9, "a quarter of the way");
            assert!((middle[index] - begin[index] - rise / 2.0).abs() < 1e-9, "half of the way");
            curved += u32::from(rise.abs() > 0.1);
        }
    }
    assert!(curved > 500, "{curved}");
}

#[test]
fn who_has_arrived_has_the_same_conditions_for_good() {
    let there = "movement = { start = \"0 m\", to = \"100 m\", path = \"once\" }";
    let mut conditions = make(&driving(there), 1);
    // 100 m at 50 km/h are 7.2 s: the first measurement after that is at 7.68 s.
    let arrived = conditions.at(at(7_680));
    assert_ne!(make(&driving(there), 1).at(at(6_720)), arrived);
    for later in [7_681, 8_000, 20_000, 1_000_000_000] {
        assert_eq!(conditions.at(at(later)), arrived);
    }
    // With a correlation time, the shadowing of a mobile at rest changes.
    let mut sitting = make(&sitting(), 1);
    assert_ne!(sitting.at(at(480)).carrier_to_interference, sitting.at(at(4_800)).carrier_to_interference);
}

#[test]
fn a_cell_must_be_better_for_the_time_to_trigger() {
    // On the straight way between two cells, the second is better by the hysteresis from some
    // measurement on. With a time to trigger of n periods it serves n measurements later.
    let first = |time_to_trigger: u64| {
        let over = format!("network.time_to_trigger = \"{time_to_trigger} ms\"");
        let still = "shadowing.deviation = \"0 dB\"\nmovement.start = \"0 m\"";
        let mut conditions = make(&driving(&format!("{still}\n{over}")), 1);
        (0..300).find_map(|second| conditions.next_transition(at(second * 1000))).expect("another cell")
    };
    let (at_once, to) = first(0);
    assert_eq!(to, Transition::Reselection { to: 1, gap: Span::from_secs(1) });
    for periods in [1, 2, 10] {
        assert_eq!(first(480 * periods), (at_once + Span::from_millis(480 * periods), to));
        assert_eq!(first(480 * periods + 479), (at_once + Span::from_millis(480 * periods), to));
    }
}

#[test]
fn weak_signals_end_coverage_and_it_comes_back() {
    // A single cell whose edge the route crosses.
    let config = driving(
        "cells.count = 1\nnetwork.power_over_noise = \"150 dB\"\nmovement = { start = \"0 m\", to = \"10 km\" }",
    );
    let mut conditions = make(&config, 3);
    let mut uncovered = 0;
    let mut edges = Vec::new();
    for second in 0..1440 {
        edges.extend(transitions(&mut conditions, at(second * 1000)).into_iter().map(|(_, edge)| edge));
        let sample = conditions.at(at(second * 1000));
        uncovered += u32::from(!sample.covered);
        let lost = edges.last() == Some(&Transition::CoverageLost);
        assert_eq!(sample.covered, !lost, "after {second} s");
    }
    assert!((100..1400).contains(&uncovered), "{uncovered} s without coverage");
    assert!(edges.contains(&Transition::CoverageBack { to: 0 }));
}

#[test]
fn soft_handover_has_no_gap_and_is_never_worse() {
    let one = driving(
        "network = { reuse = 1, change = \"hard-handover\", time_to_trigger = \"0 s\", hysteresis = \"0 dB\" }",
    );
    let mut several = one.clone();
    let network = several.network.as_mut().expect("a network");
    network.change = airpath_radio::conditions::CellChange::SoftHandover;
    (network.gap, network.window) = (None, Some("4 dB".parse().expect("a level")));
    let (mut one, mut several) = (make(&one, 1), make(&several, 1));
    let mut gained = 0;
    for second in 0..3000 {
        let (hard, soft) = (one.at(at(second * 480)), several.at(at(second * 480)));
        assert!(soft.carrier_to_interference >= hard.carrier_to_interference - 1e-9);
        gained += u32::from(soft.carrier_to_interference > hard.carrier_to_interference + 1.0);
        for (_, transition) in transitions(&mut several, at(second * 480)) {
            assert!(matches!(transition, Transition::Handover { gap: Span::ZERO, .. }), "{transition:?}");
        }
    }
    assert!(gained > 100, "{gained}");
}

#[test]
fn shadowing_around_a_median_keeps_to_it() {
    let text = "ci = \"12 dB\"\nshadowing = { deviation = \"3 dB\", correlation_time = \"1 s\" }";
    let mut conditions = make(&toml::from_str(text).expect("conditions"), 1);
    let values: Vec<f64> = (0..4000).map(|index| conditions.at(at(index * 10_000)).carrier_to_interference).collect();
    let mean = values.iter().sum::<f64>() / 4000.0;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / 4000.0;
    // Deviations are 3/√4000 ≈ 0.047 and 9·√2/√4000 ≈ 0.2: five of each, and the straight lines
    // take 1 %.
    assert!((mean - 12.0).abs() < 0.24 && (variance - 9.0).abs() < 1.1, "{mean} dB, {variance} dB²");
}

#[test]
fn fading_counts_once() {
    assert_eq!(make(&driving(""), 1).profile(), Profile::Tu3);
    assert_eq!(make(&driving("fading = \"tu50\""), 1).profile(), Profile::Tu50);
    assert_eq!(make(&driving("rayleigh = \"3 km/h\""), 1).profile(), Profile::Static);
    let twice = driving("rayleigh = \"3 km/h\"\nfading = \"tu3\"");
    let error = Conditions::new(&twice, 0, Seed::new(1), "a").expect_err("twice");
    assert_eq!((error.field().as_str(), error.to_string().contains("static")), ("conditions.rayleigh", true));
}

#[test]
fn environments_and_ratios_can_be_commanded() {
    let ratio = Change::CarrierToInterference("7 dB".parse().expect("a level"));
    let environment = |name: &str| Change::Environment(name.to_owned());
    let mut conditions = make(&driving(""), 1);
    conditions.command(at(100_000), &ratio).expect("it can");
    assert_eq!(conditions.at(at(200_000)).carrier_to_interference, 7.0);
    conditions.command(at(300_000), &environment("walking")).expect("it can");
    // An environment begins when it is commanded.
    let mut walking =
        make(&Config { network: driving("").network, ..environments::environment("walking").expect("shipped") }, 1);
    assert_eq!(conditions.at(at(907_123)), walking.at(at(607_123)));
    let (later, earlier) = (conditions.next_transition(at(907_123)), walking.next_transition(at(607_123)));
    assert_eq!(later, earlier.map(|(time, transition)| (time + Span::from_secs(300), transition)));
    let error = conditions.command(at(908_000), &environment("running")).expect_err("no such environment").to_string();
    assert!(error.contains("the environments are cell-edge, driving, indoor, outdoor, train, walking"), "{error}");
    assert!(conditions.check(&Change::Level(1)).is_err());
    let error = Conditions::fixed(3.0).check(&environment("driving")).expect_err("no network").to_string();
    assert!(error.contains("network"), "{error}");
}

#[test]
fn changes_report_coverage_whatever_the_gaps() {
    // It begins beyond a cell, and comes and goes.
    let config = driving("cells.count = 1\nmovement = { speed = \"100 km/h\", to = \"20 km\", start = \"20 km\" }");
    for gap in [1, 30, 61, 100, 250, 700] {
        let (mut conditions, mut is_covered, mut covered) = (make(&config, 1), true, 0);
        let times = (0..8000).step_by(gap);
        let count = times.len();
        for second in times {
            for (_, transition) in transitions(&mut conditions, at(second as u64 * 1000)) {
                match transition {
                    Transition::CoverageLost => is_covered = false,
                    Transition::CoverageBack { .. } => is_covered = true,
                    Transition::Handover { .. } | Transition::Reselection { .. } => {}
                }
            }
            assert_eq!(conditions.at(at(second as u64 * 1000)).covered, is_covered, "{second} s, {gap} s");
            covered += usize::from(is_covered);
        }
        assert!(0 < covered && covered < count, "{covered} of {count}");
    }
}

#[test]
fn every_environment_makes_sense() {
    for name in environments::names() {
        let config = Config { network: driving("").network, ..environments::environment(name).expect(name) };
        let mut conditions = make(&config, 1);
        let covered = (0..600).filter(|second| conditions.at(at(second * 1000)).covered).count();
        assert!(covered > 500, "{name}: {covered}");
    }
}

#[test]
fn mobiles_may_differ() {
    let mut config: Config = toml::from_str("ci = \"12 dB\"").expect("conditions");
    config.of_mobiles = vec![None, Some(toml::from_str("ci = \"3 dB\"").expect("conditions"))];
    let of = |user| {
        let mut conditions = Conditions::new(&config, user, Seed::new(1), "a").expect("sound");
        conditions.at(Instant::ZERO).carrier_to_interference
    };
    assert_eq!([of(0), of(1), of(2)], [12.0, 3.0, 12.0]);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    let error = |config: &Config| Conditions::new(config, 0, Seed::new(1), "a").expect_err("wrong").field();
    let read = |text: &str| error(&toml::from_str(text).expect(text));
    assert_eq!(read(""), "conditions");
    assert_eq!(read("ci = \"1 dB\"\nrecorded = \"a.csv\""), "conditions");
    assert_eq!(read("ci = \"1 dB\"\nshadowing = { deviation = \"3 dB\" }"), "conditions.shadowing");
    assert_eq!(
        read("ci = \"1 dB\"\nshadowing = { deviation = \"3 dB\", correlation_distance = \"1 m\" }"),
        "conditions.shadowing.correlation_distance"
    );
    assert_eq!(read("recorded = \"nowhere.csv\""), "conditions.recorded");
    assert_eq!(read("ci = \"1 dB\"\nrayleigh = \"3 km/h\""), "conditions.rayleigh");
    assert_eq!(error(&driving("network.reuse = 5")), "conditions.network.reuse");
    assert_eq!(error(&driving("network.frequency = \"28 GHz\"")), "conditions.network.frequency");
    assert_eq!(error(&driving("network.period = \"1 ms\"")), "conditions.network.period");
    assert_eq!(error(&driving("network.window = \"3 dB\"")), "conditions.network.window");
    assert_eq!(error(&driving("network.change = \"soft-handover\"")), "conditions.network.gap");
    assert_eq!(error(&driving("cells.count = 0")), "conditions.cells.count");
    assert_eq!(error(&driving("cells.spacing = \"0 m\"")), "conditions.cells.spacing");
    assert_eq!(error(&driving("movement.to = \"0 m\"\nmovement.from = \"1 m\"")), "conditions.movement.to");
    let mut lacking = driving("");
    lacking.network = None;
    assert_eq!(error(&lacking), "conditions.cells");
    for (accepted, refused, key) in [
        ("network.period = \"10 ms\"", "network.period = \"9999 us\"", "network.period"),
        ("network.period = \"60 s\"", "network.period = \"60001 ms\"", "network.period"),
        ("network.time_to_trigger = \"60 s\"", "network.time_to_trigger = \"60001 ms\"", "network.time_to_trigger"),
        ("network.hysteresis = \"0 dB\"", "network.hysteresis = \"-0.1 dB\"", "network.hysteresis"),
        ("network.gap = \"60 s\"", "network.gap = \"60001 ms\"", "network.gap"),
        ("shadowing.deviation = \"40 dB\"", "shadowing.deviation = \"40.1 dB\"", "shadowing.deviation"),
        ("shadowing.deviation = \"0 dB\"", "shadowing.deviation = \"-1 dB\"", "shadowing.deviation"),
        ("movement.start = \"6 km\"", "movement.start = \"6001 m\"", "movement.start"),
        ("movement.from = \"6 km\"", "movement.from = \"6001 m\"", "movement.to"),
    ] {
        make(&driving(accepted), 1);
        assert_eq!(error(&driving(refused)), format!("conditions.{key}"), "{refused}");
    }
    let correlation = |distance, time| {
        let mut config = driving("");
        let shadowing = config.shadowing.as_mut().expect("shadowing");
        (shadowing.correlation_distance, shadowing.correlation_time) = (distance, time);
        error(&config)
    };
    let metre = "1 m".parse().expect("a length");
    let none = "0 m".parse().expect("a length");
    assert_eq!(correlation(Some(none), None), "conditions.shadowing.correlation_distance");
    assert_eq!(correlation(None, Some(Span::ZERO)), "conditions.shadowing.correlation_time");
    let one_of_both = [correlation(None, None), correlation(Some(metre), Some(Span::from_secs(1)))];
    assert_eq!(one_of_both, ["conditions.shadowing"; 2]);
}
