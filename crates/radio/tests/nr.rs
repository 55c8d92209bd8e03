//! The NR cell: rates, delays, retransmissions, states.

use std::collections::BTreeMap;

use crate::common::cells::{Outcome, at_millis, burst, config, first_errors, mean_down, run, statistics, try_config};
use crate::common::contracts::{keeps_contracts, traffic};
use airpath_core::{Aspect, Direction, DropCause, Instant, LteRrcState, Seed, Span, StateValue};
use airpath_link::testing::idle_sleeps;
use airpath_radio::ModelError;
use airpath_radio::common::slots::{Offsets, SlotPattern, Timeline};
use airpath_radio::lte;
use airpath_radio::nr::tables::{self, FormatTable, Link, Numerology, Range};
use airpath_radio::nr::{Config, Nr, tdd};
use proptest::prelude::*;

/// What makes a mobile sleep.
const STATES: [&str; 2] = ["drx", "rrc"];

fn plain(name: &str, more: &str) -> Config {
    config(name, more, &STATES)
}

/// The rate of the blocks of the downlink from the first packet to the last, in bit/s.
fn mac_rate(outcome: &Outcome) -> f64 {
    let bits: f64 = outcome.blocks(Direction::Down).map(|(_, event)| f64::from(event.bytes) * 8.0).sum();
    bits / outcome.blocks(Direction::Down).last().expect("a block").0.as_secs_f64()
}

#[test]
fn the_peak_rate_is_that_of_the_standard_less_control_and_reference_signals() {
    // Row I3 of the design input: 2337.0 Mbit/s (TS 38.306 §4.1.2) times the share of downlink
    // symbols; 5 to 12 % less.
    let config = plain("nr-n41-100mhz", "conditions.ci = \"45 dB\"\npdcp.queue.bytes = \"100 MB\"");
    let outcome = run(&config, 1, &burst(40_000, Direction::Down, 1500), Span::from_secs(1));
    assert_eq!((outcome.departures.len(), outcome.dropped.len()), (40_000, 0));
    let mu = Numerology::new(1).expect("30 kHz");
    let peak =
        tables::peak_rate(Range::Fr1, Link::Down, mu, 273, 4, tables::schemes(FormatTable::Qam256)[27].modulation);
    assert_eq!((peak.as_bps() as f64 / 1e5).round(), 23_370.0);
    let share = tdd::named("DDDSU").expect("a pattern").pattern().downlink_share();
    let measured = mac_rate(&outcome) / (peak.as_bps() as f64 * share);
    assert!((0.88..0.95).contains(&measured), "{measured}");
    let goodput = 40_000.0 * 12_000.0 / outcome.departures.last().expect("a packet").1.due.as_secs_f64();
    assert!((0.985..1.0).contains(&(goodput / mac_rate(&outcome))), "{goodput}");
}

const ORACLE: &str = include_str!("../data/3gpp/timeline_oracle.csv");

#[test]
fn delays_of_isolated_packets_are_those_of_the_timeline() {
    // Least, mean and largest delay of `timeline_oracle.csv`, for packets in the middle of a slot.
    // These come anywhere in one: less or more by half a slot. An S slot carries data from 8
    // symbols on in the table, and from 5 on in the bearer.
    let mut rows = 0;
    for line in ORACLE.lines().skip(1) {
        let (pattern, numbers) = line.split_once(',').expect("a name");
        let numbers: Vec<f64> = numbers.split(',').map(|number| number.parse().expect("a number")).collect();
        let [k1, k2, to_grant, to_repeat, sr_period, expected @ ..] = &numbers[..] else { panic!("{line}") };
        assert_eq!(to_grant, to_repeat);
        let slot = if pattern == "FDD-15kHz" { 1.0 } else { 0.5 };
        let (bandwidth, tdd) = match (pattern, tdd::named(pattern)) {
            ("FDD-15kHz", _) => ("20 MHz\"\ncell.spacing = \"15 kHz".to_owned(), String::new()),
            ("FDD-30kHz", _) => ("20 MHz\"\ncell.spacing = \"30 kHz".to_owned(), String::new()),
            (_, Some(named)) => {
                let down = Some(named.periods[0].downlink_symbols).filter(|symbols| *symbols >= 8).unwrap_or_default();
                let tdd = format!("{{ pattern = \"{pattern}\", special_downlink = {down} }}");
                ("100 MHz\"\ncell.spacing = \"30 kHz".to_owned(), format!("cell.tdd = {tdd}\n"))
            }
            _ => panic!("{line}"),
        };
        let more = format!(
            "conditions.ci = \"45 dB\"\ncell.bandwidth = \"{bandwidth}\"\n{tdd}cell.k1 = {k1}\ncell.k2 = {k2}
            cell.processing = \"{} us\"\nuplink.sr_period = \"{} us\"\nuplink.first_grant = \"1000 B\"
            uplink.retx_bsr = \"80 ms\"\nuplink.periodic_bsr = \"10 ms\"",
            (to_grant - 1.0) * slot * 1000.0,
            sr_period * 1000.0
        );
        let config: Config = config("nr-n41-100mhz", &more, &["drx", "rrc", "cell.tdd"]);
        let packets = |direction| -> Vec<_> {
            let mut stream = Seed::new(11).stream("arrivals");
            (0..2000).map(|n| (at_millis(500.0 * f64::from(n) + 80.0 * stream.uniform()), direction, 0, 100)).collect()
        };
        // Where the occasion of a mobile lies among several U slots decides on the uplink.
        let has_one_uplink_slot = pattern.starts_with("FDD") || pattern.matches('U').count() == 1;
        let uplink = has_one_uplink_slot.then_some((Direction::Up, &expected[6..9]));
        for (direction, expected) in [(Direction::Down, &expected[..3])].into_iter().chain(uplink) {
            let packets = packets(direction);
            let outcome = run(&config, 1, &packets, Span::from_secs(1100));
            assert_eq!(outcome.departures.len(), 2000);
            let [least, mean, most] = statistics(&outcome.delays(&packets));
            let spread = (expected[2] - expected[0]).max(slot);
            assert!((mean - expected[1]).abs() < 0.04 * spread, "{line}: {direction:?} {mean}");
            assert!(least >= expected[0] - slot / 2.0 && least < expected[0] + 0.02 * spread, "{line}: {least}");
            assert!(most <= expected[2] + slot / 2.0 && most > expected[2] - 0.02 * spread, "{line}: {most}");
            rows += 1;
        }
        // From a block to its repetition. Half of the blocks that are sent first are in error.
        let mut lossy = config;
        lossy.downlink.bler = "0.5".parse().ok();
        let outcome = run(&lossy, 1, &packets(Direction::Down), Span::from_secs(1100));
        let blocks: Vec<_> = outcome.blocks(Direction::Down).collect();
        let trips = blocks.windows(2).filter(|pair| pair[0].1.repeated == 0 && pair[1].1.repeated > 0);
        let trips: Vec<f64> = trips.map(|pair| pair[1].0.since(pair[0].0).as_secs_f64() * 1e3).collect();
        let [least, mean, most] = statistics(&trips);
        assert!(trips.len() > 800 && [least, most] == [expected[3], expected[5]], "{line}: {least} {most}");
        assert!((mean - expected[4]).abs() < 0.06 * (expected[5] - expected[3]) + 1e-9, "{line}: {mean}");
    }
    assert_eq!(rows, 13 + 8);
}

#[test]
fn pings_in_step_with_the_requests_see_a_sawtooth() {
    // Row F3: pings 101 ms apart over a period of 20 ms, in srsRAN_Project issue 501.
    let up = |more: &str| {
        let config =
            plain("nr-n78-100mhz-sa", &format!("conditions.ci = \"45 dB\"\nuplink.first_grant = \"1000 B\"\n{more}"));
        let packets: Vec<_> =
            (0..200).map(|n| (at_millis(1000.3 + 101.0 * f64::from(n)), Direction::Up, 0, 60)).collect();
        let outcome = run(&config, 1, &packets, Span::from_secs(30));
        let delays = outcome.delays(&packets);
        delays.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<f64>>()
    };
    let default = "cell.tdd = { pattern = \"DDDDDDSUUU\", special_downlink = 8 }";
    let steps = up(default);
    let falls = steps.iter().filter(|step| (**step + 1.0).abs() < 1e-6).count();
    let jumps: Vec<usize> = (0..steps.len()).filter(|index| steps[*index] > 0.0).collect();
    assert!(jumps.iter().all(|index| (15.0..=20.0).contains(&steps[*index])), "{steps:?}");
    assert!(falls + jumps.len() == steps.len(), "{steps:?}");
    assert!(jumps.windows(2).all(|pair| (15..=20).contains(&(pair[1] - pair[0]))), "{jumps:?}");
    let often = "cell.tdd = { pattern = \"DDDSU\", special_downlink = 10 }\nuplink.sr_period = \"2.5 ms\"";
    assert!(up(often).iter().all(|step| step.abs() < 3.0));
}

#[test]
fn what_hybrid_arq_gives_up_the_rlc_repairs_in_the_acknowledged_mode_only() {
    let lossy = "downlink.bler = 0.3\nharq.nack_to_ack = 0.2\nharq.dtx_missed = 0.05\nconditions.ci = \"20 dB\"
        pdcp.queue.bytes = \"100 MB\"\n";
    let packets = burst(6000, Direction::Down, 1400);
    for bits in [12, 18] {
        let config = plain("nr-n28-fdd-20mhz", &format!("{lossy}rlc.sequence_bits = {bits}"));
        let outcome = run(&config, 1, &packets, Span::from_secs(100));
        let ids: Vec<u64> = outcome.departures.iter().map(|(_, out)| out.packet.id).collect();
        assert!(outcome.dropped.is_empty() && ids.iter().copied().eq(0..6000), "{} came", ids.len());
    }
    let more = format!(
        "{lossy}rlc = {{ mode = \"unacknowledged\", sequence_bits = 12, t_reassembly = \"40 ms\" }}
        pdcp.t_reordering = \"60 ms\""
    );
    let unacknowledged: Config = config("nr-n28-fdd-20mhz", &more, &["drx", "rrc", "rlc"]);
    let outcome = run(&unacknowledged, 1, &packets, Span::from_secs(100));
    let ids: Vec<u64> = outcome.departures.iter().map(|(_, out)| out.packet.id).collect();
    assert!(ids.is_sorted() && ids.len() + outcome.dropped.len() == 6000, "{} {}", ids.len(), outcome.dropped.len());
    assert!(outcome.dropped.len() > 100 && outcome.dropped.iter().all(|it| it.cause == DropCause::AttemptsExhausted));
}

#[test]
fn short_sequence_numbers_of_the_unacknowledged_mode_lose_nothing() {
    // Only packets in segments have one (TS 38.322 §5.2.2.2.2): 32 of them are 16 blocks or more.
    let more = "downlink.bler = 0.1\nconditions.ci = \"30 dB\"\npdcp.queue.bytes = \"100 MB\"
        rlc = { mode = \"unacknowledged\", sequence_bits = 6, t_reassembly = \"40 ms\" }";
    let config: Config = config("nr-n41-100mhz", more, &["drx", "rrc", "rlc"]);
    let outcome = run(&config, 1, &burst(20_000, Direction::Down, 1400), Span::from_secs(100));
    assert_eq!((outcome.departures.len(), outcome.dropped.len()), (20_000, 0));
}

#[test]
fn negative_feedback_is_not_mistaken_in_the_uplink() {
    // A grant with the same NDI requests a block again (TS 38.321 §5.4.2.1).
    let more = "uplink.bler = 0.3\nharq.nack_to_ack = 0.5\nconditions.ci = \"30 dB\"
        pdcp.queue.bytes = \"100 MB\"\npdcp.t_reordering = \"220 ms\"
        rlc = { mode = \"unacknowledged\", sequence_bits = 12, t_reassembly = \"100 ms\" }";
    let config: Config = config("nr-n28-fdd-20mhz", more, &["drx", "rrc", "rlc"]);
    let outcome = run(&config, 1, &burst(3000, Direction::Up, 1400), Span::from_secs(100));
    assert_eq!((outcome.departures.len(), outcome.dropped.len()), (3000, 0));
}

#[test]
fn pdcp_gives_up_what_the_rlc_brings_too_late() {
    // A packet that is sent again after a status report takes longer than 1 ms of t-Reordering.
    let more = "downlink.bler = 0.3\nharq.nack_to_ack = 0.2\nrlc.t_reassembly = \"0 ms\"
        pdcp.t_reordering = \"1 ms\"\npdcp.queue.bytes = \"100 MB\"";
    let outcome = run(&plain("nr-n28-fdd-20mhz", more), 1, &burst(3000, Direction::Down, 1400), Span::from_secs(100));
    assert!(!outcome.dropped.is_empty() && outcome.dropped.len() + outcome.departures.len() == 3000);
    assert!(outcome.departures.iter().map(|(_, out)| out.packet.id).is_sorted());
}

#[test]
fn the_outer_loop_reaches_its_target() {
    // Row I6, whatever the gap of the decoder is.
    for (target, gap) in [(0.1, "0 dB"), (0.1, "2 dB"), (0.02, "1 dB")] {
        let more = format!(
            "cell.target_bler = {target}\ncell.step = \"0.02 dB\"\nconditions.ci = \"13 dB\"\nharq.gap = \"{gap}\"
            pdcp.queue.bytes = \"1 GB\"\nmobile.layers = 1"
        );
        let config = plain("nr-n28-fdd-20mhz", &more);
        let outcome = run(&config, 1, &burst(130_000, Direction::Down, 1500), Span::from_secs(40));
        let measured = first_errors(&outcome, Direction::Down, 2000);
        assert!((measured / target - 1.0).abs() < 0.2, "{measured} for {target} with {gap}");
    }
}

#[test]
fn uplink_grants_follow_the_buffer_status() {
    let config = plain("nr-n41-100mhz", "conditions.ci = \"45 dB\"\npdcp.queue.bytes = \"100 MB\"");
    let outcome = run(&config, 1, &burst(10_000, Direction::Up, 1500), Span::from_secs(30));
    assert_eq!(outcome.departures.len(), 10_000);
    let rate = 10_000.0 * 12_000.0 / outcome.departures.last().expect("a packet").1.due.as_secs_f64();
    // 269 resource blocks of one U slot in five, 156 elements, 64QAM with 948/1024: 93.2 Mbit/s.
    assert!((80e6..93.2e6).contains(&rate), "{rate}");
    let slots = tdd::named("DDDSU").expect("a pattern").pattern();
    assert!(outcome.blocks(Direction::Up).all(|(at, _)| slots.carries_uplink(slots.slot_at(*at))));
}

#[test]
fn mobiles_share_the_resource_blocks_of_a_slot() {
    let config =
        plain("nr-n41-100mhz", "conditions.ci = \"20 dB\"\ncell.scheduler = \"round-robin\"\ncell.users_per_slot = 2");
    let packets: Vec<_> =
        (0..2400).map(|n| (at_millis(f64::from(n / 6)), Direction::Down, (n % 6) as u16, 1200)).collect();
    let outcome = run(&config, 6, &packets, Span::from_secs(5));
    assert_eq!(outcome.departures.len(), 2400);
    // The track has the resource blocks of a mobile's blocks, when they change.
    let states = outcome.states.iter().filter(|(_, state)| state.aspect == Aspect::Slots);
    let states = states.filter(|(_, state)| state.direction == Some(Direction::Down));
    let mut changes = states.map(|(at, state)| match state.value {
        StateValue::Number(number) => (*at, state.user.index(), number),
        _ => panic!("a number"),
    });
    let mut by_slot = BTreeMap::<Instant, Vec<usize>>::new();
    for (at, event) in outcome.blocks(Direction::Down) {
        by_slot.entry(*at).or_default().push(event.user.index());
    }
    let (mut blocks, mut next) = ([0.0; 6], changes.next());
    for (at, users) in &by_slot {
        while let Some((changed, user, number)) = next.filter(|(changed, ..)| changed <= at) {
            (blocks[user], next) = (number, changes.next());
            assert!(changed <= *at);
        }
        let sum: f64 = users.iter().map(|user| blocks[*user]).sum();
        assert!(users.len() <= 2 && sum > 0.0 && sum <= 273.0, "{at}: {users:?} {blocks:?}");
    }
    assert!(by_slot.values().any(|users| users.len() == 2), "several in a slot");
}

#[test]
fn an_inactive_mobile_resumes_and_an_idle_one_connects() {
    let rrc = "rrc = { inactivity = \"1 s\", promotion = \"100 ms\", paging = \"1.28 s\", \
               re_establishment = \"200 ms\", inactive = { resume = \"30 ms\", release = \"5 s\" } }";
    let config: Config =
        config("nr-n28-fdd-20mhz", &format!("conditions.ci = \"45 dB\"\nuplink.sr_period = \"1 ms\"\n{rrc}"), &STATES);
    let packets = [0.0, 500.0, 2500.0, 20_000.0].map(|at| (at_millis(at), Direction::Up, 0, 60));
    let outcome = run(&config, 1, &packets, Span::from_secs(60));
    let delays = outcome.delays(&packets);
    let connected = delays[1];
    for (index, setup) in [(0, 100.0), (2, 30.0), (3, 100.0)] {
        assert!((delays[index] - connected - setup).abs() < 2.5, "{delays:?}");
    }
    let states = outcome.states.iter().filter(|(_, state)| state.aspect == Aspect::Rrc);
    let states: Vec<_> = states.map(|(at, state)| (at.as_nanos() / 1_000_000, state.value)).collect();
    let inactive = StateValue::from(LteRrcState::Inactive);
    let inactive = states.iter().filter(|(_, state)| *state == inactive).map(|(at, _)| *at).collect::<Vec<_>>();
    assert!(inactive.len() == 2 && (1500..1600).contains(&inactive[0]), "{states:?}");
    let idle = StateValue::from(LteRrcState::Idle);
    assert!(states.iter().any(|(at, state)| *state == idle && *at == inactive[1] + 5000), "{states:?}");
}

#[test]
fn drx_waits_as_long_as_its_formula_gives() {
    // Row I5: (C − o)² / 2C, as for LTE: half of a slot is the resolution.
    let wait = |cycles: &str| {
        let config: Config = config("nr-n28-fdd-20mhz", &format!("conditions.ci = \"45 dB\"\n{cycles}"), &STATES);
        mean_down(&config, 10_000, 2000.0, 640.0)
    };
    let without = wait("");
    for (on, cycle, formula) in [(10.0, 320.0, 150.16), (1.0, 40.0, 19.01)] {
        let waited =
            wait(&format!("drx = {{ on = \"{on} ms\", inactivity = \"100 ms\", long = \"{cycle} ms\" }}")) - without;
        let discrete = (cycle - on) * (cycle - on + 1.0) / (2.0 * cycle);
        assert!((waited - discrete).abs() < 5.0 * 0.29 * cycle / 100.0, "{waited} {discrete}");
        assert!((discrete - formula).abs() < 0.5);
    }
}

#[test]
fn one_way_delays_are_below_7_ms_and_round_trips_below_those_of_lte() {
    // Row M3: less than 7 ms at 100 kbit/s, without the fixed network.
    let packets: Vec<_> = (0..1000).map(|n| (at_millis(10.013 * f64::from(n)), Direction::Down, 0, 125)).collect();
    for name in ["nr-n28-fdd-20mhz", "nr-n41-100mhz", "nr-n78-100mhz-sa"] {
        let config = plain(name, "mobile.processing = \"571 us\"");
        let outcome = run(&config, 1, &packets, Span::from_secs(20));
        let [_, mean, _] = statistics(&outcome.delays(&packets));
        assert!(mean < 7.0, "{name}: {mean}");
    }
    // Row M7: 4 to 15 ms between NR with 15 kHz and LTE, from requests every 10 ms and every 20 ms.
    let rare: Vec<_> = (0..2000).map(|n| (at_millis(500.377 * f64::from(n)), Direction::Down, 0, 60)).collect();
    let up: Vec<_> = rare.iter().map(|(at, _, user, size)| (*at, Direction::Up, *user, *size)).collect();
    let end = Span::from_secs(1100);
    let nr = plain("nr-n28-fdd-20mhz", "mobile.processing = \"571 us\"");
    let lte: lte::Config = config("lte-20mhz", "mobile.processing = \"3 ms\"", &["drx", "rrc", "pdcp"]);
    let mean = |outcome: Outcome, packets| statistics(&outcome.delays(packets))[1];
    let of_nr = mean(run(&nr, 1, &rare, end), &rare) + mean(run(&nr, 1, &up, end), &up);
    let of_lte = mean(run(&lte, 1, &rare, end), &rare) + mean(run(&lte, 1, &up, end), &up);
    assert!((4.0..15.0).contains(&(of_lte - of_nr)), "{of_lte} {of_nr}");
}

#[test]
fn millimetre_waves_have_the_rate_and_the_slots_of_120_khz() {
    let name = "nr-n261-400mhz";
    let config = plain(name, "conditions = { ci = \"45 dB\" }\npdcp.queue.bytes = \"100 MB\"");
    let outcome = run(&config, 1, &burst(60_000, Direction::Down, 1500), Span::from_secs(1));
    assert_eq!((outcome.departures.len(), outcome.dropped.len()), (60_000, 0));
    let mu = Numerology::new(3).expect("120 kHz");
    let peak =
        tables::peak_rate(Range::Fr2, Link::Down, mu, 264, 2, tables::schemes(FormatTable::Qam64)[28].modulation);
    let share = tdd::named("DDDSU").expect("a pattern").pattern().downlink_share();
    // 5 to 12 % less, as in FR1.
    let measured = mac_rate(&outcome) / (peak.as_bps() as f64 * share);
    assert!((0.88..0.95).contains(&measured), "{measured}");
    // An isolated packet waits for a D slot of 0.125 ms, and takes one.
    let packets: Vec<_> = (0..2000).map(|n| (at_millis(10.017 * f64::from(n)), Direction::Down, 0, 125)).collect();
    let config = plain(name, "conditions = { ci = \"45 dB\" }\ncell.delay = \"0 ms\"");
    let [_, mean, largest] = statistics(&run(&config, 1, &packets, Span::from_secs(30)).delays(&packets));
    assert!((0.15..0.35).contains(&mean) && largest < 1.5, "{mean} {largest}");
}

#[test]
fn millimetre_waves_have_no_duplex_in_frequency_and_their_own_periods() {
    for (more, without, key, text) in [
        ("", &["cell.tdd"] as &[&str], "cell.tdd.pattern", "TS 38.101-2"),
        ("uplink.sr_period = \"1.25 ms\"", &[], "uplink.sr_period", "slots of 0.125 ms"),
        (&configured("period = \"5 ms\""), &[], "cell.spacing", "configured_grant"),
    ] {
        let error = Nr::new(&config("nr-n261-400mhz", more, without), 1, Seed::new(1), "cell").expect_err(more);
        assert!(error.field() == key && error.to_string().contains(text), "{}: {error}", error.field());
    }
}

#[test]
fn a_blocked_signal_has_a_lower_rate() {
    let rate = |blockage: &str| {
        let more = format!("conditions = {{ ci = \"22 dB\"{blockage} }}\npdcp.queue.bytes = \"1 GB\"");
        mac_rate(&run(&plain("nr-n261-400mhz", &more), 1, &burst(200_000, Direction::Down, 1500), Span::from_secs(9)))
    };
    let clear = rate("");
    let blocked = rate(", blockage = { attenuation = \"20 dB\", every = \"1 s\", lasting = \"100 ms\" }");
    assert!((0.6..0.97).contains(&(blocked / clear)), "{blocked} {clear}");
}

#[test]
fn parameters_that_the_standard_does_not_have_are_refused() {
    let pattern = |pattern: &str| format!("cell.tdd = {{ pattern = \"{pattern}\", special_downlink = 10 }}");
    let cases = [
        ("cell.bandwidth = \"7 MHz\"".to_owned(), "cell.bandwidth", "TS 38.101-1 Table 5.3.2-1"),
        ("cell.bandwidth = \"100 MHz\"\ncell.spacing = \"15 kHz\"".to_owned(), "cell.bandwidth", "or 50 MHz at 15 kHz"),
        ("cell.spacing = \"60 kHz\"".to_owned(), "cell.spacing", "15 or 30 kHz"),
        ("cell.spacing = \"120 kHz\"\ncell.bandwidth = \"40 MHz\"".to_owned(), "cell.bandwidth", "400 MHz at 120 kHz"),
        (pattern("DDDDD"), "cell.tdd.pattern", "a pattern with a U slot"),
        (pattern("DDDDS"), "cell.tdd.pattern", "a pattern with a U slot"),
        (pattern("DDUDU"), "cell.tdd.pattern", "TDD-UL-DL-Pattern"),
        (pattern("DDSSU"), "cell.tdd.pattern", "TDD-UL-DL-Pattern"),
        (pattern("DDDDDDDDDDDDDDDDDDSU"), "cell.tdd.pattern", "dl-DataToUL-ACK"),
        (pattern("DDDDSU"), "cell.tdd.pattern", "TS 38.213 §11.1"),
        ("cell.tdd = { pattern = \"DDDSU\", special_downlink = 200 }".to_owned(), "cell.tdd.special_downlink", "13"),
        (pattern("DDDUU"), "cell.tdd.special_downlink", "no S slot"),
        ("rlc.t_reassembly = \"210 ms\"".to_owned(), "rlc.t_reassembly", "110 to 200 in steps of 10 ms (T-Reassembly"),
        ("rlc.t_reassembly = \"21 ms\"".to_owned(), "rlc.t_reassembly", "0 to 100 in steps of 5"),
        ("rlc.t_poll_retransmit = \"7 ms\"".to_owned(), "rlc.t_poll_retransmit", "1 to 4, 5 to 250 in steps of 5"),
        ("rlc.t_status_prohibit = \"200 ms\"".to_owned(), "rlc.t_status_prohibit", "at most `rlc.t_poll_retransmit`"),
        ("rrc.paging = \"1.2 s\"".to_owned(), "rrc.paging", "320, 640, 1280 or 2560 ms"),
        ("drx.long = \"333 ms\"".to_owned(), "drx.long", "drx-LongCycleStartOffset, TS 38.331"),
        ("uplink.retx_bsr = \"21 ms\"".to_owned(), "uplink.retx_bsr", "retxBSR-Timer, TS 38.331"),
        ("mobile.cqi_period = \"7 ms\"".to_owned(), "mobile.cqi_period", "CSI-ReportPeriodicityAndOffset"),
        ("pdcp.discard = \"600 ms\"".to_owned(), "pdcp.discard", "discardTimer, TS 38.331"),
        ("pdcp.t_reordering = \"15 ms\"".to_owned(), "pdcp.t_reordering", "at least `rlc.t_reassembly`"),
        ("pdcp.t_reordering = \"210 ms\"".to_owned(), "pdcp.t_reordering", "100 to 300 in steps of 20"),
        ("cell.k1 = 1\nmobile.processing = \"30 ms\"".to_owned(), "mobile.processing", "`cell.k1`"),
        ("cell.k2 = 33".to_owned(), "cell.k2", "1 to 32 (with `cell.spacing = \"30 kHz\"`, k2 of TS 38.331"),
        ("rlc.t_status_prohibit = \"3 s\"".to_owned(), "rlc.t_status_prohibit", "or 2400 ms (T-StatusProhibit"),
        ("rlc.t_poll_retransmit = \"5 s\"".to_owned(), "rlc.t_poll_retransmit", "or 4000 ms (T-PollRetransmit"),
        ("pdcp.sequence_bits = 12".to_owned(), "pdcp.sequence_bits", "TS 38.323 §5.2.1"),
        ("cell.k1 = 0".to_owned(), "cell.k1", "1 to 15"),
        ("cell.processing = \"700 us\"".to_owned(), "cell.processing", "whole slots"),
        ("uplink.sr_period = \"7 ms\"".to_owned(), "uplink.sr_period", "SchedulingRequestResourceConfig"),
        ("uplink.sr_period = \"4 ms\"".to_owned(), "uplink.sr_period", "a multiple of the TDD pattern"),
        ("uplink.modulation = \"16qam\"".to_owned(), "uplink.modulation", "64qam or 256qam"),
        ("rlc.sequence_bits = 10".to_owned(), "rlc.sequence_bits", "12 or 18"),
        ("rlc.poll_pdu = 5".to_owned(), "rlc.poll_pdu", "TS 38.331"),
        ("pdcp.t_reordering = \"4 s\"".to_owned(), "pdcp.t_reordering", "1000 to 3000 in steps of 250"),
        ("pdcp.discard = \"150 ms\"".to_owned(), "pdcp.discard", "drx.long"),
        ("drx.on = \"1 ms\"".to_owned(), "drx.on", "TDD pattern"),
        ("rrc.inactive.resume = \"1 s\"".to_owned(), "rrc.inactive.resume", "rrc.promotion"),
        ("harq.processes = 7".to_owned(), "harq.processes", "2, 4, 6, 8, 10, 12 or 16"),
        ("mobile.layers = 5".to_owned(), "mobile.layers", "1 to 4"),
        (configured("period = \"7.5 ms\""), "uplink.configured_grant.period", "1280 slots of 0.5 ms"),
        (configured("period = \"4 ms\""), "uplink.configured_grant.period", "a multiple of the TDD pattern"),
        (
            configured("period = \"5 ms\"\noffset = \"1 ms\""),
            "uplink.configured_grant.offset",
            "a U slot of the period",
        ),
        (configured("period = \"5 ms\"\noffset = \"7 ms\""), "uplink.configured_grant.offset", "timeDomainOffset"),
        (configured("period = \"5 ms\"\nmcs = 29"), "uplink.configured_grant.mcs", "0 to 28"),
        (configured("period = \"5 ms\"\nbytes = \"0 B\""), "uplink.configured_grant.bytes", "above zero"),
        (configured("period = \"5 ms\"\nmcs = 0\nbytes = \"9000 B\""), "uplink.configured_grant.bytes", "the band"),
        (
            configured("period = \"2.5 ms\"\nmcs = 0\nbytes = \"1000 B\""),
            "uplink.configured_grant.period",
            "sent again",
        ),
        (
            configured("period = \"5 ms\"") + "uplink.prescheduling = { interval = \"5 ms\", bytes = \"100 B\" }",
            "uplink.prescheduling",
            "uplink.configured_grant",
        ),
    ];
    for (more, key, text) in cases {
        let error = Nr::new(&config("nr-n41-100mhz", &more, &[]), 1, Seed::new(1), "cell").expect_err(&more);
        assert_eq!(error.field(), key);
        assert!(error.to_string().contains(text), "{more}: {error}");
    }
    let error = try_config::<Config>("nr-n41-100mhz", "cell.control_symbols = 1", &[]).expect_err("a key of LTE");
    assert!(error.to_string().contains("unknown field `control_symbols`"), "{error}");
}

/// Configured grants with these keys; MCS 4 and 100 bytes unless they are among them.
fn configured(keys: &str) -> String {
    let has = |key: &str| keys.contains(&format!("{key} ="));
    let lines = keys.lines().map(str::to_owned);
    let more = [("mcs", "4"), ("bytes", "\"100 B\"")].into_iter().filter(|(key, _)| !has(key));
    let lines = lines.chain(more.map(|(key, value)| format!("{key} = {value}")));
    lines.map(|line| format!("uplink.configured_grant.{line}\n")).collect()
}

#[test]
fn a_configured_grant_takes_the_wait_for_request_and_grant_away() {
    // FDD with slots of 1 ms: the wait for a slot of the period, the slot itself, 5 ms of the cell.
    let mut stream = Seed::new(11).stream("arrivals");
    let packets: Vec<_> =
        (0..2000).map(|n| (at_millis(500.0 * f64::from(n) + 80.0 * stream.uniform()), Direction::Up, 0, 60)).collect();
    let delays = |more: &str| {
        let more = format!("conditions.ci = \"45 dB\"\nuplink.sr_period = \"10 ms\"\ncell.delay = \"5 ms\"\n{more}");
        let outcome = run(&plain("nr-n28-fdd-20mhz", &more), 1, &packets, Span::from_secs(1100));
        assert_eq!(outcome.departures.len(), packets.len());
        statistics(&outcome.delays(&packets))
    };
    let [least, mean, most] = delays(&configured("period = \"10 ms\""));
    assert!((6.0..6.1).contains(&least) && (15.9..=16.0).contains(&most), "{least} {most}");
    assert!((mean - 11.0).abs() < 0.2, "{mean}");
    // A request in one slot, 3 ms of the base station, K2 of four slots.
    let [_, dynamic, _] = delays("");
    assert!((dynamic - mean - 8.0).abs() < 0.3, "{dynamic} {mean}");
}

#[test]
fn a_mobile_that_sleeps_uses_its_configured_grants() {
    let wait = |more: &str| {
        let packets = [(at_millis(1000.0), Direction::Up, 0, 60), (at_millis(3000.0), Direction::Up, 0, 60)];
        let config: Config = config("nr-n28-fdd-20mhz", &format!("conditions.ci = \"45 dB\"\n{more}"), &["rrc"]);
        let outcome = run(&config, 1, &packets, Span::from_secs(5));
        (outcome.delays(&packets)[1], outcome.states)
    };
    let (delay, states) = wait(&configured("period = \"10 ms\"\noffset = \"3 ms\""));
    assert_eq!(delay, 3.0 + 1.0, "it waits for the slot at 3003 ms");
    let waits: Vec<_> = states.iter().filter(|(_, state)| state.aspect == Aspect::Wait).collect();
    let up =
        waits.iter().filter(|(_, state)| state.direction == Some(Direction::Up)).map(|(at, state)| (*at, state.value));
    let expected = [(1000.0, "grant"), (1003.0, "none"), (3000.0, "grant"), (3003.0, "none")];
    // A poll is repeated later: the report that answers it waits until the mobile listens.
    assert_eq!(up.take(4).collect::<Vec<_>>(), expected.map(|(at, name)| (at_millis(at), StateValue::Name(name))));
}

#[test]
fn configured_grants_are_reserved_for_a_mobile_that_sends_nothing() {
    let rate = |more: &str| {
        let more = format!("conditions.ci = \"45 dB\"\npdcp.queue = {{}}\n{more}");
        let outcome = run(&plain("nr-n28-fdd-20mhz", &more), 2, &burst(2000, Direction::Up, 1500), Span::from_secs(20));
        assert_eq!(outcome.departures.len(), 2000);
        1.0 / outcome.departures.last().expect("a packet").1.due.as_secs_f64()
    };
    let grants = configured("period = \"1 ms\"\nmcs = 9\nbytes = \"500 B\"");
    let share = rate(&grants) / rate("");
    assert!((0.3..0.9).contains(&share), "{share}");
    let many: Config = plain("nr-n28-fdd-20mhz", &grants);
    let error = Nr::new(&many, 50, Seed::new(1), "cell").expect_err("too many mobiles");
    assert_eq!(error.field(), "uplink.configured_grant.period");
    assert!(error.to_string().contains("fewer mobiles"), "{error}");
}

#[test]
fn a_redcap_device_has_one_layer_and_64qam() {
    // 106 resource blocks of 132 resource elements, 64QAM with 948/1024, one layer.
    let config = plain("nr-redcap", "conditions.ci = \"45 dB\"\npdcp.queue = {}");
    let outcome = run(&config, 1, &burst(4000, Direction::Down, 1500), Span::from_secs(5));
    assert_eq!(outcome.departures.len(), 4000);
    let most = 106.0 * 132.0 * 6.0 * 948.0 / 1024.0;
    let largest = outcome.blocks(Direction::Down).map(|(_, event)| event.bytes * 8).max().expect("a block");
    assert!((0.98 * most..1.02 * most).contains(&f64::from(largest)), "{largest} of {most}");
}

#[test]
fn a_mobile_with_half_duplex_does_not_receive_in_a_slot_in_which_it_sends() {
    // Four slots of data, then four of their feedback (K1).
    let rate = |duplex: &str| {
        let more = format!("conditions.ci = \"45 dB\"\npdcp.queue = {{}}\nmobile.duplex = \"{duplex}\"");
        let mut packets = burst(3000, Direction::Down, 1500);
        packets.extend(burst(300, Direction::Up, 1500));
        let outcome = run(&plain("nr-redcap", &more), 1, &packets, Span::from_secs(20));
        assert_eq!(outcome.departures.len(), 3300);
        let slot = |at: Instant| at.as_nanos() / 1_000_000;
        let received: Vec<u64> = outcome.blocks(Direction::Down).map(|(at, _)| slot(*at)).collect();
        let sent = outcome.blocks(Direction::Up).map(|(at, _)| slot(*at)).chain(received.iter().map(|slot| slot + 4));
        let meets = sent.filter(|slot| received.binary_search(slot).is_ok()).count();
        (mac_rate(&outcome), meets)
    };
    let ((half, never), (full, often)) = (rate("half"), rate("full"));
    assert_eq!(never, 0);
    assert!(often > 100 && (0.35..0.55).contains(&(half / full)), "{half} of {full}, {often}");
    let config: Config = config("nr-n41-100mhz", "mobile.duplex = \"half\"", &[]);
    let error = Nr::new(&config, 1, Seed::new(1), "cell").expect_err("with TDD");
    assert_eq!(error.field(), "mobile.duplex");
    assert!(error.to_string().contains("full with `cell.tdd`"), "{error}");
}

#[test]
fn a_weak_uplink_with_a_report_in_each_block_sends_all() {
    // Blocks of 4 and 9 bytes, all that was reported, had no room for data beside the report.
    let more = "conditions.ci = \"2 dB\"\nuplink.bler = 0.0\ndownlink.bler = 0.0\nharq.nack_to_ack = 0.0\n";
    let config: Config = config("nr-n78-low-latency", more, &[]);
    let arrivals = traffic(120, 1, Span::from_millis(46)).arrivals(10928432402939876614);
    let end = arrivals[arrivals.len() - 1].at + Span::from_secs(600);
    let make = || Nr::new(&config, 1, Seed::new(5), "cell").expect("sound parameters");
    idle_sleeps(make, &arrivals, end);
}

fn any_config() -> impl Strategy<Value = Config> {
    let unacknowledged = "rlc = { mode = \"unacknowledged\", sequence_bits = 6, t_reassembly = \"20 ms\" }
        pdcp.t_reordering = \"40 ms\"\n";
    let variants = vec![
        ("nr-n78-100mhz-sa", String::new(), vec![]),
        ("nr-n41-100mhz", String::new(), vec![]),
        ("nr-n28-fdd-20mhz", String::new(), vec![]),
        ("nr-redcap", "mobile.duplex = \"half\"\n".to_owned(), vec!["drx"]),
        ("nr-n41-100mhz", "cell.background = { downlink = 0.9, uplink = 0.5 }\n".to_owned(), vec![]),
        ("nr-redcap", "mobile.duplex = \"half\"\ncell.processing = \"0 ms\"\n".to_owned(), vec!["rrc"]),
        ("nr-n78-low-latency", String::new(), vec![]),
        ("nr-n28-fdd-20mhz", "cell.carriers = 3\n".to_owned(), vec!["drx"]),
        ("nr-n261-400mhz", String::new(), vec![]),
        ("nr-n41-100mhz", unacknowledged.to_owned(), vec!["rlc"]),
        ("nr-n28-fdd-20mhz", "rlc.max_retx = 1\nrlc.sequence_bits = 12\n".to_owned(), vec!["rrc"]),
        (
            "nr-n78-low-latency",
            "cell.bandwidth = \"5 MHz\"\nuplink.below_downlink = \"3 dB\"\nrlc.t_reassembly = \"5 ms\"\npdcp.t_reordering = \"5 ms\"\n".to_owned(),
            vec![],
        ),
        (
            "nr-n41-100mhz",
            "uplink.prescheduling = { interval = \"5 ms\", bytes = \"100 B\" }\n".to_owned(),
            vec!["drx", "rrc"],
        ),
        (
            "nr-n41-100mhz",
            "uplink.configured_grant = { period = \"10 ms\", mcs = 2, bytes = \"80 B\" }\n".to_owned(),
            vec!["drx", "rrc"],
        ),
        ("nr-n28-fdd-20mhz", "pdcp.queue = { discipline = \"codel\" }\n".to_owned(), vec!["pdcp.queue", "drx", "rrc"]),
    ];
    let moving = "conditions.movement = { speed = \"50 km/h\", from = \"0 m\", to = \"2 km\", path = \"to-and-fro\" }
        conditions.shadowing = { deviation = \"8 dB\", correlation_distance = \"20 m\" }\n";
    (
        prop::sample::select(variants),
        prop::sample::select(vec![0.0, 0.02, 0.3]),
        prop::sample::select(vec![0.0, 0.05]),
        prop::sample::select(vec![None, Some(0.0), Some(0.1), Some(0.6)]),
        prop::sample::select(vec!["2 dB", "12 dB", "30 dB"]),
        any::<bool>(),
    )
        .prop_map(move |((name, more, less), nack_to_ack, missed, bler, ci, moves)| {
            let bler = bler.map_or(String::new(), |bler| format!("downlink.bler = {bler}\nuplink.bler = {bler}\n"));
            let errors = format!(
                "mobile.processing = \"357 us\"\ncell.delay = \"5 ms\"\nharq.nack_to_ack = {nack_to_ack}
                harq.dtx_missed = {missed}\n{bler}"
            );
            let radio = format!("conditions.ci = \"{ci}\"\n{}", if moves { moving } else { "" });
            config(name, &format!("{more}{errors}{radio}"), &less)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn cells_keep_the_contracts(config in any_config(), users in 1u16..5, gap in 1u64..400, seed: u64) {
        let make = || Nr::new(&config, usize::from(users), Seed::new(5), "cell").expect("sound parameters");
        keeps_contracts(make, &traffic(120, users, Span::from_millis(gap)), seed, Span::from_secs(60), true);
    }

    /// Each slot with downlink data is answered in one U slot, which is late enough, and by no
    /// other.
    #[test]
    fn each_downlink_slot_is_answered_once(pattern in 0usize..7, k1 in 1u32..12, k2 in 1u32..12) {
        let pattern: SlotPattern = tdd::all_named()[pattern].pattern();
        let offsets = Offsets { data_to_feedback: k1, grant_to_data: k2, ..Offsets::LTE_FDD };
        let timeline = Timeline::new(pattern.clone(), offsets);
        let period = pattern.period();
        let slots = 100 * period..200 * period;
        let mut answered = BTreeMap::<u64, u32>::new();
        for uplink in slots.clone().filter(|slot| pattern.carries_uplink(*slot)) {
            // The slots that this one answers, by a search over all before it.
            let first = uplink.saturating_sub(u64::from(k1) + 2 * period);
            for data in (first..=uplink).filter(|data| pattern.carries_downlink(*data)) {
                if timeline.feedback(data) == uplink {
                    prop_assert!(data + u64::from(k1) <= uplink);
                    *answered.entry(data).or_default() += 1;
                }
            }
        }
        // At the ends, the slots of answers lie outside.
        let inside = slots.start + 3 * period..slots.end - u64::from(k1) - 3 * period;
        for data in inside.filter(|slot| pattern.carries_downlink(*slot)) {
            prop_assert_eq!(answered.get(&data), Some(&1), "slot {}", data);
        }
    }
}
