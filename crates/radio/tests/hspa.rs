//! HSPA and HSPA+ in the HSDPA cell: 64QAM, two carriers, PDUs of flexible size, and the E-DCH,
//! against the contracts and what can be calculated.

use crate::common;
use std::collections::BTreeMap;

use crate::common::contracts::{keeps_contracts_of_hsdpa, keeps_contracts_with_commands};
use crate::common::{overlay, saturate_towards};
use airpath_core::{
    Aspect, ComponentId, Context, Direction, Event, Instant, Memory, Probability, RadioEvent, Seed, Span, StateValue,
};
use airpath_link::{Bearer, Departure};
use airpath_radio::ModelError;
use airpath_radio::umts::hsdpa::{Config, Hsdpa};
use proptest::prelude::*;

const HORIZON: Instant = Instant::from_nanos(2_000_000_000_000);

/// The parameters of a preset and what differs from it, as TOML.
fn config(preset: &str, more: &str) -> Config {
    let path = format!("{}/../../presets/{preset}.toml", env!("CARGO_MANIFEST_DIR"));
    let mut preset: toml::Table = std::fs::read_to_string(path).expect("the preset").parse().expect("TOML");
    let mut bearer = preset.remove("bearer").and_then(|it| it.as_table().cloned()).expect("a table");
    bearer.remove("model");
    overlay(&mut bearer, &more.parse().expect("TOML"));
    bearer.try_into().expect("a config")
}

fn cell(config: &Config, users: u16) -> Hsdpa {
    Hsdpa::new(config, usize::from(users), Seed::new(5), "cell").expect("sound parameters")
}

fn any_config() -> impl Strategy<Value = Config> {
    let presets = ["hspa-plus-21", "hspa-plus-42", "hspa-cat10-eul", "hspa-cat10-eul-2m"];
    (
        (prop::sample::select(presets.to_vec()), -25.0..30.0f64, 1u8..5, 5u8..16, 1u8..3),
        (1u8..9, 5u8..10, 1u8..9, 1u8..33, 1u32..100),
        (100u32..1504, 0u32..40, 1u32..50, 1u32..20, prop::option::of(1u8..31)),
        (prop::sample::select(vec![0.0, 0.1, 0.5, 0.9]), 1u8..6, any::<bool>(), 1u8..5, 0u32..40),
        (400u32..3000, 5u32..60, 1u32..40, 300u32..3000, 2u32..12),
        prop::sample::select(vec![None, Some(0.0), Some(0.3), Some(0.9)]),
    )
        .prop_map(|((preset, ci, users, codes, carriers), harq, down, up, grants, bler)| {
            let (processes, trip, max, window, timer) = harq;
            let (pdu, delay, interval, room, cqi) = down;
            let (up_bler, attempts, chase, step, up_delay) = up;
            let (first, answer, happy, inactivity, max_dat) = grants;
            let is_plus = preset.starts_with("hspa-plus");
            let carriers = if preset == "hspa-plus-42" { carriers } else { 1 };
            let pdu = if is_plus { pdu } else { 40 };
            let buffer = (room + 1) * (pdu + 2);
            let combining = if chase { "chase" } else { "none" };
            let mut config = config(
                preset,
                &format!(
                    r#"
                    cell = {{ codes = {codes}, carriers = {carriers}, users_per_tti = {users} }}
                    mobile = {{ reordering_window = {window}, reordering_timer = "{timer} ms" }}
                    conditions.ci = "{ci} dB"
                    [downlink]
                    pdu = "{pdu} B"
                    harq = {{ processes = {processes}, round_trip = {trip}, max_transmissions = {max} }}
                    iub = {{ delay = "{delay} ms", interval = "{interval} ms", buffer = "{buffer} B" }}
                    rlc = {{ max_dat = {max_dat}, max_rst = 3 }}
                    [e_dch]
                    bler = {up_bler:?}
                    max_transmissions = {attempts}
                    combining = "{combining}"
                    radio_delay = "{up_delay} ms"
                    rlc = {{ max_dat = {max_dat}, max_rst = 3 }}
                    [e_dch.grants]
                    first = "{first} kbit/s"
                    step = "{step} dB"
                    delay = "{answer} ms"
                    happy_delay = "{happy} ms"
                    inactivity = "{inactivity} ms"
                    "#
                ),
            );
            if first > 1900 && !is_plus {
                config.e_dch.as_mut().expect("an E-DCH").grants.first = "1900 kbit/s".parse().expect("a rate");
            }
            config.downlink.bler = bler.map(|bler| Probability::new(bler).expect("a share"));
            config.downlink.cqi = cqi;
            config
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(8)))]

    #[test]
    fn cells_keep_the_contracts(config in any_config(), users in 1u16..6, gap in 1u64..100, seed: u64) {
        keeps_contracts_of_hsdpa(|| cell(&config, users), users, Span::from_millis(gap), seed, HORIZON);
    }

    #[test]
    fn so_they_do_when_conditions_change(config in any_config(), users in 1u16..4, seed: u64) {
        keeps_contracts_with_commands(|| cell(&config, users), users, seed, HORIZON);
    }
}

/// The transmissions of a direction, with their times.
fn blocks(radio: &[(Instant, RadioEvent)], direction: Direction) -> Vec<(Instant, RadioEvent)> {
    radio.iter().filter(|(_, event)| event.direction == direction).copied().collect()
}

#[test]
fn peak_rates_are_those_of_the_block_sizes() {
    // TS 25.214 Tables 7D and 7G: octets of the block of the highest CQI of each category, on each
    // carrier.
    for (preset, category, cqi, octets, carriers) in [
        ("hspa-plus-21", 13, 29, 32_264 / 8, 1),
        ("hspa-plus-21", 14, 30, 38_576 / 8, 1),
        ("hspa-plus-42", 21, 26, 17_237 / 8, 2),
        ("hspa-plus-42", 22, 30, 25_558 / 8, 2),
        ("hspa-plus-42", 23, 29, 32_264 / 8, 2),
        ("hspa-plus-42", 24, 30, 38_576 / 8, 2),
    ] {
        let more = format!("mobile.category = {category}\ndownlink.bler = 0.0\nconditions.ci = \"40 dB\"");
        let time = Span::from_secs(4);
        let result = saturate_towards(&mut cell(&config(preset, &more), 1), Direction::Down, 1, 700, time);
        let down = blocks(&result.radio, Direction::Down);
        // A block is filled to the last octet: one of TSN and SI, two of each part, PDUs.
        let full = |event: &RadioEvent| event.level == cqi && event.bytes + 1 + 2 * u32::from(event.pdus) == octets;
        let shares = down.iter().filter(|(_, event)| full(event)).count() as f64 / down.len() as f64;
        assert!(shares > 0.9, "category {category}: {shares}");
        // A packet of 1500 B takes a header of 2 B, and 2 B for each part: one, and one more of
        // each block, which ends within a PDU.
        let goodput = f64::from(octets - 3) * f64::from(carriers) / 0.002 * 1500.0 / 1504.0;
        let measured = result.bytes[0] as f64 / time.as_secs_f64();
        assert!((measured / goodput - 1.0).abs() < 0.02, "category {category}: {measured} of {goodput}");
        let mut ttis = BTreeMap::new();
        down.iter().for_each(|(at, _)| *ttis.entry(*at).or_insert(0) += 1);
        assert_eq!(ttis.values().max(), Some(&carriers), "category {category}: blocks of one mobile in a TTI");
    }
}

#[test]
fn two_carriers_carry_twice_as_much_to_many() {
    let goodput = |carriers: u8, users: u16| {
        let more = format!("cell.carriers = {carriers}\nconditions.ci = \"12 dB\"");
        let time = Span::from_secs(4);
        let result =
            saturate_towards(&mut cell(&config("hspa-plus-42", &more), users), Direction::Down, users, 400, time);
        result.bytes.iter().sum::<u64>() as f64 / time.as_secs_f64()
    };
    for users in [1, 4] {
        let gain = goodput(2, users) / goodput(1, users);
        assert!((1.95..2.05).contains(&gain), "{users} mobiles: {gain}");
    }
}

#[test]
fn a_window_of_pdus_of_flexible_size_does_not_limit() {
    // 2047 PDUs of a packet each: the rate is that of the blocks, where PDUs of 80 B stall.
    let time = Span::from_secs(5);
    let stalled = |preset: &str, more: &str| {
        let more = format!("downlink.bler = 0.0\ndownlink.rlc.window = 2047\n{more}");
        saturate_towards(&mut cell(&config(preset, &more), 1), Direction::Down, 1, 400, time).stalled(time)
    };
    assert_eq!(stalled("hspa-plus-21", ""), 0.0);
    assert!(stalled("hspa-cat10-eul", "") > 0.02);
}

#[test]
fn a_lost_block_costs_the_pdus_that_it_has_parts_of() {
    // Each block is sent once and half of them are lost: the RLC repairs all.
    let more = "downlink.bler = 0.5\ndownlink.harq.max_transmissions = 1\ndownlink.rlc.max_dat = 40";
    let time = Span::from_secs(20);
    for preset in ["hspa-plus-21", "hspa-plus-42"] {
        let result = saturate_towards(&mut cell(&config(preset, more), 1), Direction::Down, 1, 100, time);
        assert!(result.dropped.is_empty(), "{preset}");
        let ids: Vec<u64> = result.departures.iter().map(|departure| departure.packet.id).collect();
        assert!(ids.len() > 1000 && ids.iter().copied().eq(0..ids.len() as u64), "{preset}: {}", ids.len());
    }
}

/// What comes out of uplink packets, each with its time and size, and the uplink's transmissions.
fn send_up(config: &Config, packets: &[(u64, u32)]) -> (Vec<Departure>, Vec<(Instant, RadioEvent)>) {
    let (out, log) = log_of(config, packets);
    let radio = log.events.iter().filter_map(|(at, _, event)| match event {
        Event::Radio(event) => Some((*at, *event)),
        _ => None,
    });
    (out, blocks(&radio.collect::<Vec<_>>(), Direction::Up))
}

/// What comes out of uplink packets, and all events.
fn log_of(config: &Config, packets: &[(u64, u32)]) -> (Vec<Departure>, Memory) {
    let mut bearer = cell(config, 1);
    let (mut log, mut lost) = (Memory::default(), Vec::new());
    let mut cx = Context::new(Some(&mut log), &mut lost, ComponentId(0));
    let mut out = Vec::new();
    for (id, (micros, size)) in (0..).zip(packets) {
        let now = Instant::ZERO + Span::from_micros(*micros);
        out.extend(std::iter::from_fn(|| bearer.pop(now, &mut cx)));
        bearer.push(now, Direction::Up, common::packet(id, 0, *size), &mut cx);
    }
    out.extend(std::iter::from_fn(|| bearer.pop(Instant::from_nanos(60_000_000_000), &mut cx)));
    let out = out.into_iter().filter(|(way, _)| *way == Direction::Up).map(|(_, departure)| departure);
    (out.collect(), log)
}

/// The values of an aspect of the uplink, in milliseconds.
fn states_up(log: &Memory, aspect: Aspect) -> Vec<(f64, StateValue)> {
    let states = log.events.iter().filter_map(|(at, _, event)| match event {
        Event::State(state) if state.aspect == aspect && state.direction == Some(Direction::Up) => {
            Some((at.as_secs_f64() * 1e3, state.value))
        }
        _ => None,
    });
    states.collect()
}

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

#[test]
fn the_first_packet_waits_for_a_grant_and_the_next_does_not() {
    // A packet at 1 ms. 2 ms: scheduling information from 2 to 4 ms, the grant 14 ms later, data
    // from the next TTI on. 10 ms: from 10 to 20 ms, the grant at 50 ms.
    for (preset, tti, granted) in [("hspa-cat10-eul", 2, 20), ("hspa-cat10-eul-2m", 10, 60)] {
        let config = config(preset, "e_dch.bler = 0.0");
        let (out, blocks) = send_up(&config, &[(1000, 40), (201_000, 40), (900_000, 40)]);
        // The grant has come at 18 or 50 ms, where a TTI begins: it goes in the next one.
        let starts: Vec<Instant> = blocks.iter().map(|(at, _)| *at).collect();
        assert_eq!(starts[0], ms(granted), "{preset}");
        let next = Instant::ZERO + Span::from_micros(201_000);
        assert_eq!(starts[1], next.round_up_to(Span::from_millis(tti)), "{preset}: it has a grant");
        // It was withdrawn after half a second: the third waits again.
        let third = starts.iter().find(|at| **at > ms(850)).expect("a block");
        assert!(third.since(ms(900)) >= Span::from_millis(granted - tti - 2), "{preset}: {third:?}");
        let e_dch = config.e_dch.as_ref().expect("an E-DCH");
        let due = starts[0] + e_dch.tti + e_dch.radio_delay + e_dch.delay;
        assert_eq!(out[0].due, due, "{preset}");
    }
}

#[test]
fn the_log_has_the_waits_for_a_grant() {
    for (preset, sent, granted) in [("hspa-cat10-eul", 2.0, 18.0), ("hspa-cat10-eul-2m", 10.0, 50.0)] {
        let (_, log) = log_of(&config(preset, "e_dch.bler = 0.0"), &[(1000, 40)]);
        let waits = [(1.0, "scheduling-request"), (sent, "grant"), (granted, "none")];
        assert_eq!(
            states_up(&log, Aspect::Wait)[..3],
            waits.map(|(at, name)| (at, StateValue::Name(name))),
            "{preset}"
        );
        assert_eq!(states_up(&log, Aspect::Harq), [(1.0, StateValue::Name("none"))], "{preset}");
    }
}

#[test]
fn the_log_has_the_blocks_that_are_sent_again() {
    let config = config_with_late_errors("hspa-cat10-eul");
    let packets: Vec<_> = (0..100).map(|index| (1000 + 100_000 * index, 40)).collect();
    let (_, log) = log_of(&config, &packets);
    let states = states_up(&log, Aspect::Harq);
    let repeats = states.windows(2).filter(|pair| pair[0].1 == StateValue::Name("harq-repeat"));
    let lengths: Vec<f64> = repeats.map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(lengths.len() > 10, "{states:?}");
    // Whole turns of the eight processes of 2 ms, while one block at a time is in error.
    assert!(lengths.iter().all(|length| *length >= 16.0 - 1e-6), "{lengths:?}");
}

#[test]
fn blocks_in_error_are_sent_again_in_the_turn_of_their_process() {
    for (preset, round_trip) in [("hspa-cat10-eul", 16), ("hspa-cat10-eul-2m", 40)] {
        let config = config(preset, "e_dch.bler = 1.0\ne_dch.max_transmissions = 3\ne_dch.rlc.max_dat = 3");
        // Not even scheduling information gets through: no data is ever sent.
        let (out, blocks) = send_up(&config, &[(1000, 40)]);
        assert!(out.is_empty() && blocks.is_empty(), "{preset}");
        let config = config_with_late_errors(preset);
        let time = Span::from_secs(20);
        let result = saturate_towards(&mut cell(&config, 1), Direction::Up, 1, 40, time);
        let up = self::blocks(&result.radio, Direction::Up);
        let mut repeats = 0;
        for (at, event) in up.iter().filter(|(at, event)| event.errored > 0 && *at < ms(15_000)) {
            let again = up.iter().find(|(later, _)| *later == *at + Span::from_millis(round_trip));
            repeats += u32::from(again.is_some_and(|(_, again)| again.repeated == event.pdus));
        }
        let errors = up.iter().filter(|(at, event)| event.errored > 0 && *at < ms(15_000)).count() as u32;
        assert_eq!(repeats, errors, "{preset}");
        assert!(errors > 50, "{preset}: {errors}");
    }
}

/// A third of the transmissions fail, and none is given up.
fn config_with_late_errors(preset: &str) -> Config {
    config(preset, "e_dch.bler = 0.3\ne_dch.max_transmissions = 16\ne_dch.combining = \"none\"")
}

#[test]
fn peak_rates_upwards_are_those_of_the_categories() {
    // TS 25.306 Table 5.1g: PDUs of 656 bits in the largest block, after 36 bits of headers.
    for (preset, category, bits, tti) in [
        ("hspa-cat10-eul", 2, 2798, 0.002),
        ("hspa-cat10-eul", 4, 5772, 0.002),
        ("hspa-cat10-eul", 6, 11_484, 0.002),
        ("hspa-cat10-eul-2m", 1, 7110, 0.010),
        ("hspa-cat10-eul-2m", 3, 14_484, 0.010),
        ("hspa-cat10-eul-2m", 5, 20_000, 0.010),
    ] {
        let more = format!("e_dch.category = {category}\ne_dch.bler = 0.0");
        let time = Span::from_secs(10);
        let result = saturate_towards(&mut cell(&config(preset, &more), 1), Direction::Up, 1, 350, time);
        let pdus = (bits - 36) / 656;
        let up = blocks(&result.radio, Direction::Up);
        let late: Vec<u32> = up.iter().filter(|(at, _)| *at > ms(3000)).map(|(_, event)| event.pdus.into()).collect();
        assert_eq!(late.iter().max(), Some(&pdus), "category {category}");
        let goodput = f64::from(pdus) * 80.0 / tti * 1500.0 / 1501.0;
        let bytes: u64 =
            result.departures.iter().filter(|out| out.due > ms(3000)).map(|out| u64::from(out.packet.size)).sum();
        let measured = bytes as f64 / 7.0;
        assert!((measured / goodput - 1.0).abs() < 0.03, "category {category}: {measured} of {goodput}");
    }
}

#[test]
fn grants_grow_by_a_step_in_a_round_trip() {
    let result = saturate_towards(
        &mut cell(&config("hspa-cat10-eul", "e_dch.bler = 0.0"), 1),
        Direction::Up,
        1,
        350,
        Span::from_secs(1),
    );
    let up = blocks(&result.radio, Direction::Up);
    let mut changes = up.windows(2).filter(|pair| pair[0].1.level != pair[1].1.level);
    let first = changes.next().expect("a step")[1];
    assert_eq!(first.1.level, 2);
    let mut last = first;
    for pair in changes {
        assert_eq!(pair[1].1.level, last.1.level + 1);
        assert_eq!(pair[1].0.since(last.0), Span::from_millis(16));
        last = pair[1];
    }
    // From 400 kbit/s to 5.742 Mbit/s are 11.6 dB, with 1, 2, 3, 4, 6, 7, 9, 12, 15 and 17 PDUs.
    assert_eq!(last.1.level, 10);
}

#[test]
fn mobiles_share_the_noise_rise() {
    let rates = |users: u16, more: &str| {
        let more = format!("e_dch.bler = 0.0\n{more}");
        let time = Span::from_secs(20);
        let result =
            saturate_towards(&mut cell(&config("hspa-cat10-eul", &more), users), Direction::Up, users, 100, time);
        result.bytes.iter().map(|bytes| *bytes as f64 * 8.0 / time.as_secs_f64() / 1e6).collect::<Vec<_>>()
    };
    // Each of n mobiles with energy per chip x has a load of x / (1 + x); together they have at
    // most 1 - 10^-0.6 = 0.749. For two it is at most 0.374 each: x = 0.60, 0.60 / 10^0.17 of the
    // chip rate, 1.55 Mbit/s; steps of 1 dB and PDUs make that 1.2 to 1.6.
    let two = rates(2, "");
    assert!(two.iter().all(|rate| (0.9..1.7).contains(rate)), "{two:?}");
    let four = rates(4, "");
    assert!(four.iter().sum::<f64>() < two.iter().sum::<f64>() && four.iter().all(|rate| *rate > 0.3), "{four:?}");
    // Less noise rise is less for all.
    let less = rates(2, "e_dch.grants.noise_rise = \"3 dB\"");
    assert!(less[0] < two[0] && less[1] < two[1], "{less:?} {two:?}");
}

#[test]
fn power_limits_what_is_sent() {
    // At a C/I of 2.5 dB, with 7.5 dB for the fading of a walk and Eb/N0 of 1.7 dB: 3.84 Mbit/s -
    // 6.7 dB = 821 kbit/s, 1642 bits, two PDUs.
    let more = "e_dch.bler = 0.0\nconditions.ci = \"2.5 dB\"";
    let time = Span::from_secs(5);
    let result = saturate_towards(&mut cell(&config("hspa-cat10-eul", more), 1), Direction::Up, 1, 100, time);
    let most = blocks(&result.radio, Direction::Up).iter().map(|(_, event)| event.pdus).max();
    assert_eq!(most, Some(2));
}

#[test]
fn values_that_make_no_sense_name_their_key() {
    for (preset, more, field, text) in [
        ("hspa-plus-21", "mobile.category = 15", "mobile.category", "21 to 24 (TS 25.306 Table 5.1a)"),
        ("hspa-plus-21", "mobile.category = 0", "mobile.category", "1 to 14"),
        ("hspa-cat10-eul", "mobile.category = 14", "mobile.category", "mac-ehs"),
        ("hspa-plus-21", "cell.carriers = 2", "cell.carriers", "21 to 24"),
        ("hspa-cat10-eul", "downlink.harq.processes = 9", "downlink.harq.processes", "1 to 8 (3 bits of HS-SCCH"),
        ("hspa-cat10-eul", "downlink.harq.round_trip = 1", "downlink.harq.round_trip", "TS 25.211 §7.7"),
        ("hspa-plus-42", "cell.carriers = 3", "cell.carriers", "at most 2"),
        ("hspa-plus-42", "cell.carriers = 0", "cell.carriers", "above zero"),
        ("hspa-plus-21", "downlink.pdu = \"1504 B\"", "downlink.pdu", "at most 1503 B"),
        ("hspa-plus-21", "downlink.iub.buffer = \"1501 B\"", "downlink.iub.buffer", "enough for a PDU"),
        ("hspa-plus-21", "downlink.rlc.concatenation = true", "downlink.rlc.concatenation", "one packet"),
        ("hspa-cat10-eul", "e_dch.category = 7", "e_dch.category", "TS 25.306 Table 5.1g"),
        ("hspa-cat10-eul", "e_dch.category = 5", "e_dch.category", "2, 4 or 6"),
        ("hspa-cat10-eul", "e_dch.tti = \"4 ms\"", "e_dch.tti", "2 ms or 10 ms"),
        ("hspa-cat10-eul", "e_dch.pdu = \"2 kB\"", "e_dch.pdu", "holds one"),
        ("hspa-cat10-eul", "e_dch.max_transmissions = 0", "e_dch.max_transmissions", "above zero"),
        ("hspa-cat10-eul", "e_dch.max_transmissions = 17", "e_dch.max_transmissions", "at most 16"),
        ("hspa-cat10-eul", "e_dch.combining = \"incremental-redundancy\"", "e_dch.combining", "chase"),
        ("hspa-cat10-eul", "e_dch.grants.step = \"0 dB\"", "e_dch.grants.step", "0.5 dB to 20 dB"),
        ("hspa-cat10-eul", "e_dch.grants.first = \"6 Mbit/s\"", "e_dch.grants.first", "largest block"),
        ("hspa-cat10-eul", "e_dch.grants.first = \"300 kbit/s\"", "e_dch.grants.first", "holds a PDU"),
        ("hspa-cat10-eul", "e_dch.grants.noise_rise = \"0.1 dB\"", "e_dch.grants.noise_rise", "first grant"),
        ("hspa-cat10-eul", "e_dch.grants.inactivity = \"20 ms\"", "e_dch.grants.inactivity", "round trip"),
        ("hspa-cat10-eul", "e_dch.reordering_timer = \"0 s\"", "e_dch.reordering_timer", "above zero"),
        ("hspa-cat10-eul", "e_dch.rlc.window = 4096", "e_dch.rlc.window", "at most 4095"),
    ] {
        let error = Hsdpa::new(&config(preset, more), 1, Seed::new(1), "cell").expect_err(more);
        assert_eq!(error.field(), field, "{more}: {error}");
        assert!(error.to_string().contains(text), "{more}: {error}");
    }
    let mut both = config("hspa-cat10-eul", "");
    both.uplink = config("hsdpa-cat10", "").uplink;
    let error = Hsdpa::new(&both, 1, Seed::new(1), "cell").expect_err("two uplinks");
    assert_eq!(error.field(), "e_dch");
    assert!(error.to_string().contains("two uplinks"), "{error}");
    (both.uplink, both.e_dch) = (None, None);
    let error = Hsdpa::new(&both, 1, Seed::new(1), "cell").expect_err("no uplink");
    assert!(error.to_string().contains("no uplink"), "{error}");
}
