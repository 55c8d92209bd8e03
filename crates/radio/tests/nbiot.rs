//! The NB-IoT carrier: rates, times, coverage levels, sleep.

use crate::common;
use crate::common::cells::{Pushed, at_millis, parameters, run_bearer, statistics};
use crate::common::contracts::{keeps_contracts, traffic};
use airpath_core::{
    Aspect, ComponentId, Context, Direction, Event, Instant, Memory, RadioEvent, Seed, Span, StateEvent, StateValue,
};
use airpath_link::command::Change;
use airpath_link::testing::Traffic;
use airpath_link::{Bearer, BearerCommand, Departure};
use airpath_radio::ModelError;
use airpath_radio::nbiot::{Config, NbIot};
use proptest::prelude::*;

/// The preset with what `more` has, without errors and delays beside the radio's.
fn config(more: &str) -> Config {
    try_config("nb-iot", more).expect("parameters of the right types")
}

fn try_config(name: &str, more: &str) -> Result<Config, toml::de::Error> {
    let mut bearer = parameters(name);
    bearer.remove("queue");
    let plain = "carrier.delay = \"0 ms\"\nmobile.processing = \"0 ms\"\ndownlink.bler = 0.0\nuplink.bler = 0.0";
    common::overlay(&mut bearer, &plain.parse().expect("TOML"));
    common::overlay(&mut bearer, &more.parse().expect("TOML"));
    bearer.try_into()
}

struct Outcome {
    departures: Vec<(Direction, Departure)>,
    radio: Vec<(Instant, RadioEvent)>,
    states: Vec<(Instant, StateEvent)>,
    wakeups: usize,
}

impl Outcome {
    fn delays(&self, packets: &[Pushed]) -> Vec<f64> {
        let delay = |(id, (at, ..)): (usize, &Pushed)| {
            let (_, out) = self.departures.iter().find(|(_, out)| out.packet.id == id as u64).expect("it came");
            out.due.since(*at).as_secs_f64() * 1e3
        };
        packets.iter().enumerate().map(delay).collect()
    }
}

/// Pushes packets at their times, and runs until `end`, from wake-up to wake-up.
fn run(config: &Config, users: usize, packets: &[Pushed], end: Span) -> Outcome {
    let mut bearer = NbIot::new(config, users, Seed::new(3), "cell").expect("sound parameters");
    let (mut log, mut dropped) = (Memory::default(), Vec::new());
    let mut cx = Context::new(Some(&mut log), &mut dropped, ComponentId(0));
    let (mut departures, mut wakeups) = (Vec::new(), 0);
    let mut until = |bearer: &mut NbIot, end: Instant, cx: &mut Context<'_>| {
        while let Some(at) = bearer.next_wakeup().filter(|at| *at <= end) {
            wakeups += 1;
            while let Some(departure) = bearer.pop(at, cx) {
                departures.push(departure);
            }
        }
    };
    for (id, (at, direction, user, size)) in (0..).zip(packets) {
        until(&mut bearer, *at, &mut cx);
        bearer.push(*at, *direction, common::packet(id, *user, *size), &mut cx);
    }
    until(&mut bearer, Instant::ZERO + end, &mut cx);
    let radio = log.events.iter().filter_map(|(at, _, event)| match event {
        Event::Radio(event) => Some((*at, *event)),
        _ => None,
    });
    let states = log.events.iter().filter_map(|(at, _, event)| match event {
        Event::State(state) => Some((*at, *state)),
        _ => None,
    });
    assert!(dropped.is_empty(), "{dropped:?}");
    Outcome { departures, radio: radio.collect(), states: states.collect(), wakeups }
}

fn burst(packets: usize, direction: Direction, size: u32) -> Vec<Pushed> {
    vec![(Instant::ZERO, direction, 0, size); packets]
}

/// The rate of the blocks of a direction between the tenth and the last but ten, in bit/s.
fn mac_rate(outcome: &Outcome, direction: Direction) -> f64 {
    let blocks: Vec<_> = outcome.radio.iter().filter(|(_, event)| event.direction == direction).collect();
    let blocks = &blocks[10..blocks.len() - 10];
    let bits: f64 = blocks[1..].iter().map(|(_, event)| f64::from(event.bytes) * 8.0).sum();
    bits / blocks[blocks.len() - 1].0.since(blocks[0].0).as_secs_f64()
}

#[test]
fn the_peak_rates_of_release_13_are_26_and_62_kilobits() {
    // Row I4 of the design input: 680 bits in 26 ms downwards, 1000 bits in 16 ms upwards. Reports
    // of the RLC take blocks of the other direction, so the rate is a little lower.
    for (direction, peak) in [(Direction::Down, 680.0 / 0.026), (Direction::Up, 1000.0 / 0.016)] {
        let outcome = run(&config(""), 1, &burst(60, direction, 1000), Span::from_secs(120));
        assert_eq!(outcome.departures.len(), 60);
        let largest = outcome.radio.iter().filter(|(_, event)| event.direction == direction);
        let gaps: Vec<f64> = largest
            .collect::<Vec<_>>()
            .windows(2)
            .map(|pair| f64::from(pair[0].1.bytes) * 8.0 / pair[1].0.since(pair[0].0).as_secs_f64())
            .collect();
        let fastest = gaps.iter().copied().fold(0.0, f64::max);
        assert!((fastest / peak - 1.0).abs() < 1e-9, "{direction:?}: {fastest} of {peak}");
        let rate = mac_rate(&outcome, direction);
        assert!((0.9 * peak..=peak).contains(&rate), "{direction:?}: {rate} of {peak}");
    }
}

#[test]
fn the_base_station_reacts_to_an_acknowledgement_after_its_processing() {
    // The acknowledgement of a block is followed by 3 ms without NPDCCH anyway.
    let rate = |processing: u32| {
        let config = config(&format!("conditions.ci = \"40 dB\"\ncarrier.processing = \"{processing} ms\""));
        mac_rate(&run(&config, 1, &burst(200, Direction::Down, 400), Span::from_secs(120)), Direction::Down)
    };
    assert_eq!(rate(1), rate(3));
    assert!(rate(30) < 0.8 * rate(3), "{} {}", rate(30), rate(3));
}

#[test]
fn a_report_takes_the_times_of_its_steps() {
    // Level 0, twelve tones, from the occasion of NPRACH: 11.2 ms of preambles, 4 ms, and from the
    // next subframe on NPDCCH, 4 ms, one subframe of the response (22 ms); NPDCCH, 8 ms, a unit of
    // the first message, 3 ms (35 ms); NPDCCH, 4 ms, two subframes of message 4, 12 ms, 2 ms of
    // acknowledgement, 3 ms (59 ms); NPDCCH, 8 ms, four units of message 5 with the data: 72 ms.
    let packets: Vec<_> = (0..200).map(|n| (at_millis(60_008.37 * f64::from(n)), Direction::Up, 0, 60)).collect();
    let outcome = run(&config(""), 1, &packets, Span::from_secs(20_000));
    let [least, mean, most] = statistics(&outcome.delays(&packets));
    assert!(most - least < 161.0 && most - least > 140.0, "{least} {most}");
    assert!((mean - (least + most) / 2.0).abs() < 10.0, "{least} {mean} {most}");
    assert!((72.0..73.0).contains(&least), "{least}");
}

#[test]
fn worse_coverage_takes_longer_and_gets_through() {
    let mean = |ci: &str| {
        let packets: Vec<_> = (0..40).map(|n| (at_millis(120_000.7 * f64::from(n)), Direction::Up, 0, 120)).collect();
        let mut config = config(&format!("conditions.ci = \"{ci}\""));
        (config.downlink.bler, config.uplink.bler) = (None, None);
        let outcome = run(&config, 1, &packets, Span::from_secs(10_000));
        assert_eq!(outcome.departures.len(), 40, "{ci}");
        statistics(&outcome.delays(&packets))[1]
    };
    let (good, fair, poor) = (mean("40 dB"), mean("20 dB"), mean("0 dB"));
    assert!(good < 400.0 && fair > 1.5 * good && poor > 4.0 * fair, "{good} {fair} {poor}");
    assert!(poor < 30_000.0, "{poor}");
}

/// A connection that began in the third level, with R_max of 256 and 64 repetitions of an
/// acknowledgement.
#[test]
fn transfers_follow_the_coverage_from_one_to_the_next() {
    let mut config = config("conditions.ci = \"0 dB\"\nrrc.inactivity = \"600 s\"");
    (config.downlink.bler, config.uplink.bler) = (None, None);
    let ci = |at, ci: &str| {
        (at_millis(at), BearerCommand::from(Change::CarrierToInterference(ci.parse().expect("a ratio"))))
    };
    let mut packets = vec![(Instant::ZERO, Direction::Up, 0, 60)];
    packets.extend([100e3, 300e3].iter().flat_map(|at| vec![(at_millis(*at), Direction::Down, 0, 200); 20]));
    let bearer = NbIot::new(&config, 1, Seed::new(3), "cell").expect("sound parameters");
    let outcome = run_bearer(bearer, &packets, &[ci(90e3, "40 dB"), ci(290e3, "0 dB")], Span::from_secs(900));
    assert_eq!(outcome.departures.len(), 41);
    let of_burst = |from: f64| {
        let blocks = outcome.blocks(Direction::Down).filter(|(at, _)| *at >= at_millis(from));
        let blocks: Vec<_> = blocks.take(8).collect();
        let millis = |span: Span| span.as_nanos() / 1_000_000;
        let lengths: Vec<u64> = blocks.iter().map(|(_, event)| millis(event.duration)).collect();
        let gaps: Vec<u64> =
            blocks.windows(2).map(|two| millis(two[1].0.since(two[0].0 + two[0].1.duration))).collect();
        (lengths, gaps)
    };
    // The base station learns it from the acknowledgement of the first block: then there are no
    // repetitions, and an eighth of R_max. 12 ms, 128 ms of acknowledgement, 3 ms, 32 ms of NPDCCH
    // and 4 ms are between two blocks.
    let (lengths, gaps) = of_burst(100e3);
    assert!(lengths[0] >= 128 && lengths[1..].iter().all(|length| *length <= 10), "{lengths:?}");
    assert!(gaps[1..].iter().all(|gap| *gap >= 179) && gaps[1..].contains(&179), "{gaps:?}");
    // A block keeps its repetitions when it is sent again; the next one has more.
    let (lengths, gaps) = of_burst(300e3);
    assert!(lengths[0] <= 10 && lengths[4..].iter().all(|length| *length >= 128), "{lengths:?}");
    assert!(gaps[5] >= 12 + 128 + 3 + 256 + 4, "{gaps:?}");
}

#[test]
fn release_assistance_ends_a_connection_at_once() {
    // The second packet, 5 s later, needs random access in both cases; one that has a connection
    // needs no messages of the set-up.
    let blocks = |more: &str| {
        let packets = [(at_millis(0.0), Direction::Up, 0, 60), (at_millis(5000.0), Direction::Up, 0, 60)];
        let outcome = run(&config(more), 1, &packets, Span::from_secs(60));
        outcome.radio.iter().filter(|(at, _)| *at >= at_millis(5000.0)).count()
    };
    let (kept, assisted) = (blocks(""), blocks("rrc.release_assistance = \"after-uplink\""));
    assert!(assisted > kept, "{kept} {assisted}");
    let answered = blocks("rrc.release_assistance = \"after-downlink\"");
    assert_eq!(answered, kept, "no answer came");
}

#[test]
fn the_log_has_the_random_access_of_a_connected_mobile() {
    let packets = [(at_millis(0.0), Direction::Up, 0, 60), (at_millis(5000.0), Direction::Up, 0, 60)];
    let outcome = run(&config(""), 1, &packets, Span::from_secs(12));
    let waits = outcome.states.iter().filter(|(_, state)| state.aspect == Aspect::Wait);
    let [begin, end] = waits.collect::<Vec<_>>()[..] else { panic!("{:?}", outcome.states) };
    assert_eq!([begin.1.value, end.1.value], ["random-access", "none"].map(StateValue::Name));
    assert_eq!(begin.0, at_millis(5001.0), "from the next subframe on");
    // The steps up to the first message, as in a report, and less than a period of NPRACH before.
    let lasts = end.0.since(begin.0).as_secs_f64() * 1e3;
    assert!((34.0..35.0 + 160.0).contains(&lasts), "{lasts}");
}

#[test]
fn a_sleeping_mobile_is_reached_at_its_occasions_without_events_between() {
    let edrx = "rrc.power_saving.edrx = { cycle = \"81.92 s\", window = \"2.56 s\" }";
    let psm = "rrc.power_saving.psm = { active = \"10 s\", update = \"2 h\" }";
    // Means of uniform waits: half a paging cycle, half an extended cycle, half the time to the
    // update of the tracking area.
    for (more, wait, spread) in [("", 1.28, 2.56), (edrx, 40.96, 81.92), (psm, 3600.0, 7200.0)] {
        let apart = 20_000_000.0;
        let mut stream = Seed::new(7).stream("arrivals");
        let packets: Vec<_> = (0..300)
            .map(|n| (at_millis(apart * f64::from(n) + 8e6 * stream.uniform()), Direction::Down, 0, 60))
            .collect();
        let outcome = run(&config(more), 1, &packets, Span::from_secs(7_000_000));
        assert_eq!(outcome.departures.len(), 300);
        let mean = statistics(&outcome.delays(&packets))[1] / 1e3;
        // Five standard errors of a uniform distribution, and up to a second of set-up.
        let error = 5.0 * 0.29 * spread / 300f64.sqrt();
        assert!(mean > wait - error && mean < wait + error + 1.0, "{more}: {mean} s");
        assert!(outcome.wakeups < 300 * 20, "{more}: {} wake-ups", outcome.wakeups);
    }
}

#[test]
fn idle_mobiles_take_next_to_no_memory_and_no_time() {
    let mut bearer = NbIot::new(&config(""), 65_535, Seed::new(3), "cell").expect("sound parameters");
    assert_eq!(bearer.next_wakeup(), None);
    let mut dropped = Vec::new();
    let mut cx = Context::new(None, &mut dropped, ComponentId(0));
    bearer.push(at_millis(1.0), Direction::Up, common::packet(0, 60_000, 60), &mut cx);
    let mut count = 0;
    while let Some(at) = bearer.next_wakeup() {
        count += usize::from(bearer.pop(at, &mut cx).is_some());
    }
    assert_eq!(count, 1);
}

#[test]
fn many_mobiles_share_the_carrier() {
    // Twelve mobiles with single tones send at once, where one with all tones sends alone.
    let packets: Vec<_> = (0..120).map(|n| (Instant::ZERO, Direction::Up, n % 12, 100)).collect();
    let time = |tones: &str| {
        let outcome = run(
            &config(&format!("coverage.tones = [\"{tones}\", \"three\", \"one\"]")),
            12,
            &packets,
            Span::from_secs(600),
        );
        assert_eq!(outcome.departures.len(), 120);
        outcome.departures.iter().map(|(_, out)| out.due).max().expect("packets").as_secs_f64()
    };
    let (one, twelve) = (time("one"), time("twelve"));
    assert!(one < 60.0 && twelve < 60.0, "{one} {twelve}");
}

#[test]
fn parameters_that_the_standard_does_not_have_are_refused() {
    let cases = [
        ("coverage.lowest = [\"10 dB\", \"20 dB\", \"0 dB\"]", "coverage.lowest", "falling"),
        ("coverage.lowest = [\"10 dB\"]", "coverage.control_repetitions", "as many values"),
        ("coverage.control_repetitions = [1, 3, 8]", "coverage.control_repetitions", "2048"),
        ("coverage.downlink_repetitions = [1, 8, 100]", "coverage.downlink_repetitions", "TS 36.213 Table 16.4.1.3-2"),
        ("coverage.uplink_repetitions = [1, 8, 256]", "coverage.uplink_repetitions", "TS 36.213 Table 16.5.1.1-3"),
        ("coverage.preamble_repetitions = [1, 8, 3]", "coverage.preamble_repetitions", "NPRACH-ConfigSIB-NB"),
        ("coverage.preamble_repetitions = [128, 128, 128]", "coverage.random_access_period", "5.6 ms"),
        (
            "coverage.random_access_period = [\"50 ms\", \"80 ms\", \"80 ms\"]",
            "coverage.random_access_period",
            "2560 ms",
        ),
        ("rrc.setup = [\"30 B\"]", "rrc.setup", "even number"),
        ("rrc.release_assistance = \"after-uplink\"\nrrc.release = \"20 s\"", "rrc.release", "rrc.inactivity"),
        ("rlc.t_poll_retransmit = \"30 s\"", "rlc.t_poll_retransmit", "T-PollRetransmit-NB"),
        ("rlc.max_retx = 5", "rlc.max_retx", "TS 36.331"),
        ("mobile.processing = \"20 ms\"", "mobile.processing", "TS 36.213 §16.4.2"),
        ("rrc.paging = \"640 ms\"", "rrc.paging", "1280, 2560, 5120 or 10240 ms"),
        ("coverage.downlink_repetitions = [128, 8, 1]", "coverage.downlink_repetitions", "no fewer in a level"),
        ("coverage.uplink_repetitions = [1, 32, 16]", "coverage.uplink_repetitions", "TS 36.300 §23.7b"),
        ("carrier.target_bler = 0.7", "carrier.target_bler", "0.5"),
        ("rrc.power_saving.psm = { active = \"2 h\", update = \"1 h\" }", "rrc.power_saving.psm.update", "active"),
        ("rrc.power_saving.psm = { active = \"1.5 s\", update = \"1 h\" }", "rrc.power_saving.psm.active", "6 min"),
        ("rrc.power_saving.psm = { active = \"2 s\", update = \"61 s\" }", "rrc.power_saving.psm.update", "320 h"),
        (
            "rrc.power_saving.edrx = { cycle = \"81.92 s\", window = \"43.52 s\" }",
            "rrc.power_saving.edrx.window",
            "2.56 to 40.96 s",
        ),
    ];
    for (more, key, text) in cases {
        let error = NbIot::new(&config(more), 1, Seed::new(1), "cell").expect_err(more);
        assert_eq!(error.field(), key, "{more}: {error}");
        assert!(error.to_string().contains(text), "{more}: {error}");
    }
    let error = try_config("nb-iot", "coverage.tones = [\"two\", \"one\", \"one\"]").expect_err("no such tones");
    assert!(error.to_string().contains("unknown variant `two`"), "{error}");
    let error = try_config("nb-iot", "cell.bandwidth = \"20 MHz\"").expect_err("a key of LTE");
    assert!(error.to_string().contains("unknown field `cell`"), "{error}");
}

#[test]
fn there_is_no_handover() {
    let bearer = NbIot::new(&config(""), 1, Seed::new(3), "cell").expect("sound parameters");
    let change = Change::Handover { gap: Span::from_millis(50), buffer: Default::default() };
    let error = bearer.check(&BearerCommand { user: None, direction: None, change }).expect_err("a handover");
    assert!(error.to_string().contains("use `outage`"), "{error}");
}

fn any_config() -> impl Strategy<Value = Config> {
    (
        prop::sample::select(vec!["nb-iot", "nb-iot-psm"]),
        prop::sample::select(vec![None, Some(0.0), Some(0.1), Some(0.5)]),
        prop::sample::select(vec!["40 dB", "20 dB", "2 dB"]),
        prop::sample::select(vec!["off", "after-uplink", "after-downlink"]),
        prop::sample::select(vec![
            "",
            "mobile.category = \"nb2\"\ncarrier.operation = \"stand-alone\"\n",
            "rrc.setup = [\"100 B\", \"200 B\", \"30 B\", \"20 B\"]\nrlc.max_retx = 1\n",
            "coverage.tones = [\"six\", \"one\", \"one-of-3.75-khz\"]\nqueue = { packets = 5 }\n",
            "queue = { discipline = \"codel\" }\nrlc.t_poll_retransmit = \"500 ms\"\n",
        ]),
        any::<bool>(),
    )
        .prop_map(|(name, bler, ci, assistance, more, moves)| {
            let moving = "conditions.movement = { speed = \"50 km/h\", from = \"0 m\", to = \"2 km\", path = \"to-and-fro\" }
                conditions.shadowing = { deviation = \"8 dB\", correlation_distance = \"20 m\" }\n";
            let text = format!(
                "{more}conditions.ci = \"{ci}\"\nrrc.release_assistance = \"{assistance}\"\ncarrier.delay = \"5 ms\"\n{}",
                if moves { moving } else { "" }
            );
            let mut config = try_config(name, &text).expect("parameters");
            let bler = bler.map(|bler| airpath_core::Probability::new(bler).expect("within range"));
            (config.downlink.bler, config.uplink.bler) = (bler, bler);
            // Short times to an update, so that packets arrive within the run.
            if let Some(psm) = config.rrc.power_saving.as_mut().and_then(|saving| saving.psm.as_mut()) {
                (psm.active, psm.update) = (Span::from_secs(4), Span::from_secs(60));
            }
            config
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn carriers_keep_the_contracts(config in any_config(), users in 1u16..5, gap in 1u64..4000, seed: u64) {
        let make = || NbIot::new(&config, usize::from(users), Seed::new(5), "cell").expect("sound parameters");
        keeps_contracts(make, &Traffic { sizes: (40, 400), ..traffic(60, users, Span::from_millis(gap)) }, seed, Span::from_secs(4000), true);
    }
}
