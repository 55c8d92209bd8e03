//! EN-DC: the NR cell is added and released, and no packet is lost.

use crate::common::cells::{Outcome, Pushed, at_millis, parameters, run_bearer};
use crate::common::contracts::{keeps_contracts, traffic};
use crate::common::overlay;
use airpath_core::{Aspect, CellGroupState, Direction, Instant, LteRrcState, Seed, Span, StateValue};
use airpath_link::BearerCommand;
use airpath_link::command::{Buffer, Change};
use airpath_radio::ModelError;
use airpath_radio::endc::{Config, ConfigError, EnDc};
use proptest::prelude::*;

const PRESETS: [&str; 2] = ["nr-n78-100mhz-nsa", "nr-n71-fdd-20mhz-nsa"];

/// The preset `name` with what `more` has, and without the keys `less` of its tables.
fn config(name: &str, more: &str, less: &[(&str, &str)]) -> Config {
    let mut bearer = parameters(name);
    for (cell, key) in less {
        bearer[*cell].as_table_mut().expect("a table").remove(*key);
    }
    overlay(&mut bearer, &more.parse().expect("TOML"));
    bearer.try_into().expect("parameters of the right types")
}

/// Cells with 1 km between them, as a part of the table of conditions.
const CELLS: &str = "cells = { count = 3, spacing = \"1 km\", setback = \"100 m\", antenna = \"30 m\" }";

fn try_bearer(config: &Config, users: usize) -> Result<EnDc, ConfigError> {
    EnDc::new(config, users, Seed::new(3), "cell")
}

fn run(config: &Config, packets: &[Pushed], commands: &[(Instant, BearerCommand)], end: Span) -> Outcome {
    run_bearer(try_bearer(config, 1).expect("sound parameters"), packets, commands, end)
}

/// Packets of 1400 bytes, one each `gap` milliseconds from `from` to `to`.
fn stream(direction: Direction, from: f64, to: f64, gap: f64) -> Vec<Pushed> {
    let count = ((to - from) / gap) as u32;
    (0..count).map(|n| (at_millis(from + gap * f64::from(n)), direction, 0, 1400)).collect()
}

/// When the cell group of the downlink changed, in milliseconds.
fn groups(outcome: &Outcome) -> Vec<(f64, StateValue)> {
    let groups = outcome.states.iter().filter(|(_, state)| state.aspect == Aspect::CellGroup);
    groups.map(|(at, state)| (at.as_secs_f64() * 1e3, state.value)).collect()
}

/// When the state of the RRC connection was reached first, in milliseconds.
fn reached(outcome: &Outcome, rrc: LteRrcState) -> f64 {
    let found = outcome.states.iter().find(|(_, state)| state.value == rrc.into());
    found.expect("it is reached").0.as_secs_f64() * 1e3
}

/// Packets that left in an interval, in milliseconds.
fn left(outcome: &Outcome, from: f64, to: f64) -> usize {
    let within = |due: Instant| (from..to).contains(&(due.as_secs_f64() * 1e3));
    outcome.departures.iter().filter(|(_, departure)| within(departure.due)).count()
}

fn assert_all_in_order(outcome: &Outcome, packets: usize) {
    assert_eq!((outcome.departures.len(), outcome.dropped.len()), (packets, 0));
    let ids: Vec<u64> = outcome.departures.iter().map(|(_, departure)| departure.packet.id).collect();
    assert!(ids.is_sorted(), "each once, in order");
}

const fn for_all(change: Change) -> BearerCommand {
    BearerCommand { direction: None, user: None, change }
}

#[test]
fn the_first_packets_come_by_lte_and_the_rate_rises_when_nr_is_added() {
    // Row F6: promotions of 210 ms to 4G and 1440 ms to 5G in the network of the preset.
    let config = config("nr-n71-fdd-20mhz-nsa", "secondary.pdcp.queue.bytes = \"100 MB\"", &[]);
    // 400 Mbit/s: more than both cells carry.
    let packets = stream(Direction::Down, 0.0, 4000.0, 0.028);
    let outcome = run(&config, &packets, &[], Span::from_secs(60));
    assert_all_in_order(&outcome, packets.len());
    let connected = reached(&outcome, LteRrcState::Connected);
    let groups = groups(&outcome);
    let [(first, CELL_GROUP_MASTER), (added, CELL_GROUP_SECONDARY)] = groups[..2] else { panic!("{groups:?}") };
    assert!((first - connected).abs() < 1e-6);
    assert!((1215.0..1245.0).contains(&(added - connected)), "{}", added - connected);
    let rate = |from: f64, to: f64| left(&outcome, from, to) as f64 * 11.2e3 / (to - from) / 1e3;
    let [before, after] = [rate(connected + 200.0, added), rate(added + 200.0, added + 1200.0)];
    assert!((40.0..75.0).contains(&before) && after > 1.5 * before, "{before} and {after} Mbit/s");
}

const CELL_GROUP_MASTER: StateValue = StateValue::Name(CellGroupState::Master.name());
const CELL_GROUP_SECONDARY: StateValue = StateValue::Name(CellGroupState::Secondary.name());

#[test]
fn nr_is_released_with_the_connection_and_a_single_packet_costs_its_promotion() {
    let config = config("nr-n71-fdd-20mhz-nsa", "", &[]);
    let at = [0.0, 30_000.0, 32_000.0].map(|at| (at_millis(at), Direction::Up, 0, 100));
    let outcome = run(&config, &at, &[], Span::from_secs(100));
    assert_all_in_order(&outcome, 3);
    let delays = outcome.delays(&at);
    assert!(delays[0] > 210.0 && delays[1] > 210.0 && delays[2] < 60.0, "{delays:?}");
    // Added after both; the second connection is there when the run ends.
    let names: Vec<StateValue> = groups(&outcome).into_iter().map(|(_, group)| group).collect();
    let added = [CELL_GROUP_MASTER, CELL_GROUP_SECONDARY];
    assert_eq!(names[..4], [added, added].concat());
}

#[test]
fn a_handover_of_lte_releases_nr_and_loses_nothing() {
    for name in PRESETS {
        let config = config(name, "secondary.pdcp.queue.bytes = \"100 MB\"", &[]);
        for direction in Direction::BOTH {
            let packets = stream(direction, 0.0, 8000.0, 0.5);
            let handover = for_all(Change::Handover { gap: Span::from_millis(40), buffer: Buffer::Keep });
            let outcome = run(&config, &packets, &[(at_millis(4000.0), handover)], Span::from_secs(60));
            assert_all_in_order(&outcome, packets.len());
            let groups = groups(&outcome);
            assert_eq!(groups[2], (4000.0, CELL_GROUP_MASTER));
            let again = groups[3].0 - groups[2].0;
            let expected = 40.0 + config.addition.measurement.as_secs_f64() * 1e3 + 40.0 + 36.0;
            assert!((expected..expected + 21.0).contains(&again), "{name}: {again} of {expected}");
            assert_eq!(left(&outcome, 4006.0, 4040.0), 0, "nothing leaves during the interruption");
        }
    }
}

#[test]
fn a_weak_nr_cell_is_released_after_t310_and_added_again_when_it_is_good() {
    let config = config("nr-n78-100mhz-nsa", "secondary.pdcp.queue.bytes = \"100 MB\"", &[]);
    let packets = stream(Direction::Down, 0.0, 9000.0, 1.0);
    let weak = for_all(Change::CarrierToInterference("-9 dB".parse().expect("decibels")));
    let good = for_all(Change::CarrierToInterference("15 dB".parse().expect("decibels")));
    let commands = [(at_millis(3000.0), weak), (at_millis(6000.0), good)];
    let outcome = run(&config, &packets, &commands, Span::from_secs(200));
    assert_all_in_order(&outcome, packets.len());
    let groups = groups(&outcome);
    let [_, _, (released, CELL_GROUP_MASTER), (again, CELL_GROUP_SECONDARY)] = groups[..4] else {
        panic!("{groups:?}")
    };
    assert!((4000.0..4090.0).contains(&released) && (6000.0..6200.0).contains(&again), "{groups:?}");
}

#[test]
fn a_split_uplink_carries_more_than_either_cell_and_keeps_the_order() {
    let rate = |uplink: &str| {
        let more = format!("secondary.pdcp.queue.bytes = \"400 MB\"\nconditions.ci = \"40 dB\"\n{uplink}");
        let config = config("nr-n71-fdd-20mhz-nsa", &more, &[]);
        // 200 Mbit/s: more than both cells carry.
        let packets = stream(Direction::Up, 0.0, 6000.0, 0.056);
        let outcome = run(&config, &packets, &[], Span::from_secs(90));
        assert_all_in_order(&outcome, packets.len());
        left(&outcome, 3000.0, 6000.0) as f64 * 11.2e3 / 3e6
    };
    let master = rate("uplink.primary_path = \"master\"");
    let secondary = rate("uplink.primary_path = \"secondary\"");
    let split = rate("uplink.ul_data_split_threshold = \"6400 B\"");
    assert!(split > 0.9 * (master + secondary), "{split} of {master} and {secondary} Mbit/s");
    assert!(master > 15.0 && secondary > 30.0, "{master} and {secondary} Mbit/s");
}

#[test]
fn what_makes_no_sense_is_refused_with_the_key_and_the_clause() {
    let among_mmwaves = format!(
        "secondary.conditions.network.frequency = \"28 GHz\"\nsecondary.conditions.movement = {{ speed = \"0 km/h\", \
         from = \"0 m\", to = \"1 km\", path = \"once\" }}\nsecondary.conditions.shadowing = {{ deviation = \"8 dB\", \
         correlation_distance = \"20 m\" }}\nsecondary.conditions.{CELLS}"
    );
    let network = "conditions.network = { frequency = \"1 GHz\", reuse = 1, load = 0.5, power_over_noise = \"150 dB\", \
                   lowest = \"-7 dB\", period = \"200 ms\", hysteresis = \"3 dB\", time_to_trigger = \"480 ms\", \
                   change = \"hard-handover\", gap = \"40 ms\" }";
    let cases = [
        ("master.cell.bandwidth = \"7 MHz\"", "master.cell.bandwidth", "1.4"),
        ("secondary.cell.k1 = 90", "secondary.cell.k1", "1 to 15"),
        ("master.pdcp.discard = \"500 ms\"", "master.pdcp", "secondary.pdcp"),
        (
            "secondary.rrc = { inactivity = \"10 s\", promotion = \"1 s\", paging = \"1 s\", re_establishment = \"1 s\" }",
            "secondary.rrc",
            "master.rrc",
        ),
        ("conditions.level = \"5 dB\"", "conditions", "one way"),
        ("master.conditions.rayleigh = \"3 km/h\"", "master.conditions", "one way"),
        ("conditions.fading = \"tu3\"", "conditions.fading", "rayleigh"),
        (network, "conditions.network", "master.conditions.network"),
        (among_mmwaves.as_str(), "secondary.conditions.network.frequency", "7.125 GHz"),
        ("secondary.pdcp.discard = \"300 ms\"", "secondary.pdcp.discard", "drx.long"),
        ("master.rrc.inactivity = \"150 ms\"", "master.drx.inactivity", "shorter than `rrc.inactivity`"),
        (
            "secondary.drx.inactivity = \"2560 ms\"\nmaster.rrc.inactivity = \"2 s\"",
            "secondary.drx.inactivity",
            "shorter than `master.rrc.inactivity`",
        ),
        ("addition.threshold = \"41 dB\"", "addition.threshold", "SINR-Range"),
        ("addition.time_to_trigger = \"50 ms\"", "addition.time_to_trigger", "TimeToTrigger, TS 36.331 §6.3.5"),
        ("addition.measurement_period = \"1500 us\"", "addition.measurement_period", "whole milliseconds"),
        ("release.threshold = \"1 dB\"", "release.threshold", "addition.threshold"),
        ("release.t310 = \"300 ms\"", "release.t310", "TS 38.331 §6.3.2"),
        ("uplink.ul_data_split_threshold = \"6 kB\"", "uplink.ul_data_split_threshold", "UL-DataSplitThreshold"),
        ("master.mobile.duplex = \"half\"", "master.mobile.duplex", "TS 38.306 §4.2.21"),
        ("secondary.mobile.duplex = \"half\"", "secondary.mobile.duplex", "TS 38.306 §4.2.21"),
    ];
    for (more, key, text) in cases {
        let error = try_bearer(&config("nr-n78-100mhz-nsa", more, &[]), 1).expect_err(more);
        assert_eq!(error.field(), key);
        assert!(error.to_string().contains(text), "{more}: {error}");
    }
    let error = try_bearer(&config("nr-n78-100mhz-nsa", "", &[("master", "rrc")]), 1).expect_err("no connection");
    assert_eq!(error.field(), "master.rrc");
    let mut swapped = parameters("nr-n78-100mhz-nsa");
    swapped.insert("secondary".to_owned(), swapped["master"].clone());
    let error = airpath_radio::model::read::<Config>(swapped.into()).expect_err("two LTE cells");
    assert!(error.to_string().starts_with("secondary.cell"), "{error}");
}

#[test]
fn each_key_of_its_own_changes_a_run() {
    let weak = "secondary.conditions = { ci = \"-2 dB\", rayleigh = \"10 km/h\" }\nrelease.t310 = \"50 ms\"\n\
                release.threshold = \"-6 dB\"\n";
    let split = "uplink.ul_data_split_threshold = \"6400 B\"\n";
    let cases = [
        ("", "addition.measurement = \"300 ms\""),
        ("", "addition.measurement_period = \"80 ms\""),
        ("", "addition.threshold = \"30 dB\""),
        ("", "addition.time_to_trigger = \"320 ms\""),
        ("", "addition.preparation = \"50 ms\""),
        ("", "addition.reconfiguration = \"60 ms\""),
        (weak, "release.threshold = \"-12 dB\""),
        (weak, "release.t310 = \"1 s\""),
        ("", "uplink.primary_path = \"master\""),
        ("", split),
        (split, "uplink.ul_data_split_threshold = \"204800 B\""),
    ];
    let mut packets = stream(Direction::Up, 0.0, 4000.0, 0.4);
    packets.extend(stream(Direction::Down, 0.1, 4000.0, 1.0));
    packets.sort();
    let departures = |more: &str| {
        let mut table = parameters("nr-n71-fdd-20mhz-nsa");
        for part in ["addition.measurement = \"100 ms\"", more] {
            overlay(&mut table, &part.parse().expect("TOML"));
        }
        let config: Config = table.try_into().expect("parameters of the right types");
        run(&config, &packets, &[], Span::from_secs(60)).departures
    };
    for (before, change) in cases {
        let mut changed: toml::Table = before.parse().expect("TOML");
        overlay(&mut changed, &change.parse().expect("TOML"));
        assert!(departures(before) != departures(&changed.to_string()), "{change} changes nothing");
    }
}

/// Where mobiles are: each cell has conditions of its own, or both have the same.
#[derive(Clone, Copy, Debug)]
enum Place {
    Still,
    Moving,
    AmongCells,
    /// The only site is out of reach at times.
    Leaving,
}

fn any_config() -> impl Strategy<Value = Config> {
    let moving = "movement = { speed = \"50 km/h\", from = \"0 m\", to = \"2 km\", path = \"to-and-fro\" }, \
                  shadowing = { deviation = \"8 dB\", correlation_distance = \"20 m\" }";
    let place = prop::sample::select(vec![Place::Still, Place::Moving, Place::AmongCells, Place::Leaving]);
    (
        (prop::sample::select(PRESETS.to_vec()), any::<bool>(), place),
        prop::sample::select(vec![None, Some(0.0), Some(0.1), Some(0.6)]),
        prop::sample::select(vec!["-4 dB", "2 dB", "12 dB", "30 dB"]),
        prop::sample::select(vec!["master", "secondary"]),
        prop::sample::select(vec!["", "ul_data_split_threshold = \"0 B\"", "ul_data_split_threshold = \"1600 B\""]),
        prop::sample::select(vec!["", "{ packets = 20 }", "{ discipline = \"codel\" }"]),
        (prop::sample::select(vec!["5 ms", "220 ms"]), any::<bool>()),
    )
        .prop_map(move |((name, sleeps, place), bler, ci, path, split, queue, (t_reordering, is_fragile))| {
            let bler = bler.map_or(String::new(), |bler| {
                format!(
                    "master.downlink.bler = {bler}\nmaster.uplink.bler = {bler}\nsecondary.downlink.bler = {bler}\n\
                     secondary.uplink.bler = {bler}\n"
                )
            });
            let conditions = match place {
                Place::Still => format!("secondary.conditions.ci = \"{ci}\"\nmaster.conditions.ci = \"10 dB\"\n"),
                Place::Moving => format!(
                    "secondary.conditions = {{ {moving}, ci = \"{ci}\" }}\nmaster.conditions = {{ {moving}, ci = \
                     \"10 dB\" }}\n"
                ),
                Place::AmongCells => format!("conditions = {{ {moving}, {CELLS} }}\n"),
                Place::Leaving => {
                    "conditions.cells = { count = 1, spacing = \"1 km\", setback = \"100 m\", antenna = \"30 m\" }
                    conditions.shadowing = { deviation = \"0 dB\", correlation_distance = \"20 m\" }
        conditions.movement = { speed = \"360 km/h\", from = \"0 m\", to = \"3 km\", path = \"to-and-fro\" }
                    master.conditions.network.power_over_noise = \"130 dB\"
                    secondary.conditions.network.power_over_noise = \"135 dB\"\nmaster.rrc.t311 = \"1 s\"\n"
                        .to_owned()
                }
            };
            let split = if split.is_empty() { String::new() } else { format!("uplink.{split}\n") };
            let queue = if queue.is_empty() { String::new() } else { format!("secondary.pdcp.queue = {queue}\n") };
            let fragile = if is_fragile { "secondary.rlc.max_retx = 1\nmaster.rlc.max_retx = 1\n" } else { "" };
            let more = format!(
                "{bler}{split}{queue}{fragile}{conditions}uplink.primary_path = \"{path}\"\n\
                 addition.measurement = \"100 ms\"\nrelease.t310 = \"100 ms\"\nmaster.rrc.inactivity = \"700 ms\"\n\
                 secondary.rlc.t_reassembly = \"5 ms\"\nsecondary.pdcp.t_reordering = \"{t_reordering}\"\n"
            );
            let mut less = if sleeps { vec![] } else { vec![("master", "drx"), ("secondary", "drx")] };
            less.extend(matches!(place, Place::AmongCells | Place::Leaving).then_some(("conditions", "ci")));
            config(name, &more, &less)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    #[test]
    fn cells_keep_the_contracts(config in any_config(), users in 1u16..4, gap in 1u64..400, seed: u64) {
        let make = || EnDc::new(&config, usize::from(users), Seed::new(5), "cell").expect("sound parameters");
        keeps_contracts(make, &traffic(120, users, Span::from_millis(gap)), seed, Span::from_secs(60), true);
    }
}
