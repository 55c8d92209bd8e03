//! The UMTS packet bearer: the contracts, whatever its parameters; RLC against what can be
//! calculated; its states.

use crate::common;
use airpath_core::{
    Aspect, Direction, DropCause, Event, Instant, PacketStep, Probability, Seed, Span, StateValue, UserId,
};
use airpath_link::Bearer;
use airpath_link::command::{BearerCommand, Buffer, Change};
use airpath_link::testing::{
    Arrival, Commanded, Commands, Polling, Script, Traffic, contracts, drive, idle_sleeps, order_kept,
};
use airpath_radio::ModelError;
use airpath_radio::umts::r99::{Config, Umts};
use proptest::prelude::*;

const HORIZON: Instant = Instant::from_nanos(20_000_000_000_000);

/// A preset with the values of dotted keys replaced.
fn preset(name: &str, set: &[(&str, toml::Value)]) -> Config {
    let file = format!("{}/../../presets/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let preset: toml::Table = std::fs::read_to_string(file).expect("a preset").parse().expect("a table");
    let mut bearer = preset["bearer"].clone();
    bearer.as_table_mut().expect("a table").remove("model");
    for (path, value) in set {
        let (parents, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut table = bearer.as_table_mut().expect("a table");
        for parent in parents.split('.').filter(|parent| !parent.is_empty()) {
            table = table.entry(parent).or_insert(toml::Table::new().into()).as_table_mut().expect("a table");
        }
        table.insert((*key).to_owned(), value.clone());
    }
    airpath_radio::model::read(bearer).expect("parameters")
}

fn umts(config: &Config, users: usize) -> Umts {
    Umts::new(config, users, Seed::new(5), "cell").expect("sound parameters")
}

fn traffic(packets: usize, size: u32, gap: Span) -> Vec<Arrival> {
    let mut arrivals = Traffic { packets, sizes: (size, size), ..Traffic::default() }.arrivals(1);
    for (index, arrival) in arrivals.iter_mut().enumerate() {
        arrival.at = Instant::ZERO + gap * index as u64;
    }
    arrivals
}

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// What it reports while it carries this.
fn events(bearer: &mut Umts, arrivals: &[Arrival], commands: &[Commanded], until: Instant) -> Vec<(Instant, Event)> {
    use airpath_core::{ComponentId, Context, Memory};
    let (mut log, mut lost) = (Memory::default(), Vec::new());
    let mut cx = Context::new(Some(&mut log), &mut lost, ComponentId(0));
    let mut all: Vec<(Instant, Option<&Arrival>, Option<&Commanded>)> =
        arrivals.iter().map(|arrival| (arrival.at, Some(arrival), None)).collect();
    all.extend(commands.iter().map(|command| (command.at, None, Some(command))));
    all.sort_by_key(|(at, ..)| *at);
    for (at, arrival, command) in all {
        while bearer.pop(at, &mut cx).is_some() {}
        if let Some(arrival) = arrival {
            bearer.push(at, arrival.direction, arrival.packet, &mut cx);
        }
        if let Some(command) = command {
            bearer.command(at, &command.command, &mut cx).expect("it can do that");
        }
    }
    while bearer.pop(until, &mut cx).is_some() {}
    log.events.into_iter().map(|(time, _, event)| (time, event)).collect()
}

fn states(events: &[(Instant, Event)], aspect: Aspect) -> Vec<(Instant, StateValue)> {
    let mut found = Vec::new();
    for (time, event) in events {
        if let Event::State(state) = event
            && state.aspect == aspect
        {
            found.push((*time, state.value));
        }
    }
    found
}

fn config() -> impl Strategy<Value = Config> {
    let link = || {
        (
            prop::sample::select(vec![0.0, 0.01, 0.2, 0.6]),
            prop::option::of(4.0f64..8.0),
            (8u64..200, prop::sample::select(vec![10i64, 64, 512, 2047]), 2i64..12),
            (0u64..60_000, 0u64..60_000, any::<bool>(), any::<bool>()),
            prop::sample::select(vec![
                None,
                Some("packets = 10"),
                Some("discipline = \"codel\""),
                Some("discipline = \"fq-codel\"\npackets = 12"),
                Some("discipline = \"pie\""),
                Some("discipline = \"dualpi2\""),
                Some("discipline = \"cake\"\npackets = 12"),
                Some("bytes = \"20 kB\""),
            ]),
            (
                prop::option::of(1i64..40),
                prop::option::of(1i64..4),
                prop::option::of(1u64..300),
                prop::option::of(1u64..300),
            ),
        )
    };
    (
        prop::sample::select(vec!["umts-r99-384", "umts-r99-64", "umts-r99-states"]),
        link(),
        link(),
        any::<bool>(),
        0u64..200,
    )
        .prop_map(|(name, down, up, pch, hold)| {
            let mut set: Vec<(String, toml::Value)> = Vec::new();
            for (link, (bler, burst, (pdu, window, max_dat), (radio, delay, last, missing), queue, polls)) in
                [("downlink", down), ("uplink", up)]
            {
                let mut put = |key: &str, value: toml::Value| set.push((format!("{link}.{key}"), value));
                put("bler", bler.into());
                if let Some(burst) = burst {
                    put("burst", burst.into());
                }
                put("pdu", format!("{pdu} B").into());
                put("radio_delay", format!("{radio} us").into());
                put("delay", format!("{delay} us").into());
                put("rlc.window", window.into());
                put("rlc.max_dat", max_dat.into());
                put("rlc.max_rst", 3.into());
                put("rlc.timer_rst", "300 ms".into());
                put("rlc.status_missing", missing.into());
                if let Some(queue) = queue {
                    put("queue", toml::Value::Table(queue.parse().expect("a queue")));
                }
                let (pdus, packets, prohibit, periodic) = polls;
                if let Some(pdus) = pdus {
                    put("rlc.poll_pdus", pdus.into());
                }
                if let Some(packets) = packets {
                    put("rlc.poll_packets", packets.into());
                    put("rlc.concatenation", (packets % 2 == 0).into());
                    if packets > 1 {
                        put("rlc.discard.timer_mrw", "150 ms".into());
                        put("rlc.discard.max_mrw", packets.into());
                        if let Some(prohibit) = prohibit {
                            put("rlc.discard.timer_discard", format!("{} ms", 10 * prohibit).into());
                        }
                    }
                }
                if let Some(prohibit) = prohibit {
                    put("rlc.timer_poll_prohibit", format!("{prohibit} ms").into());
                }
                // Only with a periodic poll may the others be left out.
                put("rlc.poll_last", (last || periodic.is_none()).into());
                if let Some(periodic) = periodic {
                    put("rlc.timer_poll_periodic", format!("{periodic} ms").into());
                }
                put("rlc.poll_window", 50.into());
            }
            if name == "umts-r99-states" {
                set.push(("rrc.dch_inactivity".into(), "300 ms".into()));
                set.push(("rrc.fach_inactivity".into(), "400 ms".into()));
                set.push(("switching.down_after".into(), "200 ms".into()));
                if pch {
                    let table = "inactivity = \"2 s\"\npromotion = \"300 ms\"";
                    set.push(("rrc.pch".into(), toml::Value::Table(table.parse().expect("a table"))));
                }
            }
            set.push(("mobility.driver_hold".into(), format!("{hold} ms").into()));
            set.push(("mobility.link_release".into(), format!("{} s", hold % 4).into()));
            let set: Vec<(&str, toml::Value)> = set.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
            preset(name, &set)
        })
}

#[test]
fn the_slowest_format_is_used_even_if_c_over_i_is_not_enough() {
    // The slowest format needs -7.8 dB. A reconfiguration to it in each TTI would leave no time to
    // send.
    let config = preset("umts-r99-states", &[("conditions.ci", "-8.3 dB".into())]);
    let result = common::saturate(&mut umts(&config, 1), 1, Span::from_secs(30));
    let rate = result.bytes[0] as f64 * 8.0 / 30.0;
    assert!(rate > 10_000.0, "{rate} bit/s");
}

/// The table `mobility.reconnection`, with this share of lost connections, and a need of C/I.
fn reconnection(failures: f64, needs: &str) -> toml::Value {
    let text = format!(
        r#"
        failures = {failures:?}
        needs = "{needs}"
        cell_selection = "1.44 s"
        rrc_setup = "500 ms"
        t300 = "1 s"
        n300 = 3
        registration = "2 s"
        t3311 = "15 s"
        attempts = 5
        t3302 = "720 s"
        "#
    );
    toml::Value::Table(text.parse().expect("a table"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    #[test]
    fn packet_bearers_keep_the_contracts(config in config(), users in 1u16..4, gap in 1u64..200, seed: u64) {
        let traffic = Traffic {
            packets: 120, gap: Span::from_millis(gap), users, directions: &Direction::BOTH, ..Traffic::default()
        };
        let arrivals = traffic.arrivals(seed);
        let middle = arrivals[80].at;
        let commands = Commands { commands: 12, until: middle, users, classes: &[], reorder: false };
        let commands = commands.draw(seed);
        let make = || umts(&config, usize::from(users));
        for script in [Script { arrivals: &arrivals, commands: &[] }, Script { arrivals: &arrivals, commands: &commands }] {
            contracts(make, script, HORIZON);
            contracts(make, script, middle);
            let queues = [config.downlink.queue.as_ref(), config.uplink.queue.as_ref()];
            if queues.into_iter().flatten().all(|queue| queue.discipline.keeps_order()) {
                order_kept(make, script, HORIZON);
            }
        }
        idle_sleeps(make, &arrivals[..], HORIZON);
    }

    #[test]
    fn a_mobile_that_is_handed_over_keeps_the_contracts(
        buffer in prop::sample::select(vec!["keep", "forward", "discard"]),
        failures in prop::sample::select(vec![0.0, 0.5, 1.0]),
        speed in 60u64..300,
        gap in 20u64..200,
        seed: u64,
    ) {
        let conditions = format!(r#"
            network = {{ frequency = "2.1 GHz", reuse = 1, load = 0.3, power_over_noise = "157 dB", lowest = "-5 dB", period = "200 ms", hysteresis = "3 dB", time_to_trigger = "400 ms", change = "hard-handover", gap = "100 ms" }}
            cells = {{ count = 3, spacing = "200 m", setback = "30 m", antenna = "30 m", penetration = "0 dB" }}
            shadowing = {{ deviation = "6 dB", correlation_distance = "20 m" }}
            movement = {{ speed = "{speed} km/h", from = "0 m", to = "400 m", path = "to-and-fro" }}
        "#);
        let conditions: toml::Table = conditions.parse().expect("a table");
        let set = [
            ("conditions", toml::Value::Table(conditions)),
            ("mobility.buffer", buffer.into()),
            ("mobility.reconnection", reconnection(failures, "3 dB")),
        ];
        let config = preset("umts-r99-384", &set);
        let traffic = Traffic { packets: 150, gap: Span::from_millis(gap), directions: &Direction::BOTH, ..Traffic::default() };
        let arrivals = traffic.arrivals(seed);
        let make = || umts(&config, 1);
        contracts(make, &arrivals[..], HORIZON);
        contracts(make, &arrivals[..], arrivals[100].at);
        order_kept(make, &arrivals[..], HORIZON);
    }
}

/// How many bytes arrive in a time when twenty packets of 1500 bytes are always inside.
fn saturated(config: &Config, time: Span) -> u64 {
    use airpath_core::Context;
    let (mut bearer, mut lost) = (umts(config, 1), Vec::new());
    let mut cx = Context::new(None, &mut lost, airpath_core::ComponentId(0));
    let packet = traffic(1, 1500, Span::ZERO)[0].packet;
    (0..20).for_each(|_| _ = bearer.push(Instant::ZERO, Direction::Down, packet, &mut cx));
    let mut delivered = 0;
    while let Some(now) = bearer.next_wakeup().filter(|now| *now <= Instant::ZERO + time) {
        while bearer.pop(now, &mut cx).is_some() {
            delivered += 1500;
            bearer.push(now, Direction::Down, packet, &mut cx);
        }
    }
    assert!(lost.is_empty());
    delivered
}

#[test]
fn goodput_is_what_errors_and_length_indicators_leave() {
    for bler in [0.0, 0.01, 0.1, 0.2] {
        let config = preset("umts-r99-384", &[("downlink.bler", bler.into()), ("downlink.rlc.max_dat", 40.into())]);
        let share = saturated(&config, Span::from_secs(300)) as f64 / (48_000.0 * 300.0);
        // A packet takes 1501 of the bytes that get through. 30000 TTIs: five standard deviations
        // of √(p·(1−p)/30000) are at most 0.012; the beginning and the repeats that are still to
        // come take a little.
        let expected = (1.0 - bler) * 1500.0 / 1501.0;
        assert!((share - expected).abs() < 0.012, "BLER {bler}: {share} instead of {expected}");
    }
}

#[test]
fn a_window_that_limits_stalls_the_link() {
    // 24 PDUs are two TTIs of 10 ms; their report takes far longer. The stall begins with the TTI
    // that takes the last PDU.
    let time = Span::from_secs(20);
    let stalled = |window: i64| {
        let config = preset("umts-r99-384", &[("downlink.rlc.window", window.into()), ("downlink.bler", 0.0.into())]);
        let limited = common::saturate(&mut umts(&config, 1), 1, time);
        let missing = 1.0 - limited.bytes[0] as f64 / time.as_secs_f64() / 48_000.0;
        (limited.stalled(time), missing)
    };
    let (share, missing) = stalled(24);
    assert!(missing > 0.5 && (share - missing).abs() < 0.07, "{share} of {missing}");
    assert_eq!(stalled(2047).0, 0.0);
}

#[test]
fn a_lone_packet_waits_for_the_poll_timer_at_each_loss() {
    let (bler, packets) = (0.2, 4000);
    let set = [("downlink.bler", bler.into()), ("uplink.bler", 0.0.into()), ("downlink.rlc.max_dat", 40.into())];
    // One PDU; the next packet comes long after.
    let arrivals = traffic(packets, 39, Span::from_secs(20));
    let config = preset("umts-r99-384", &set);
    let outcome = drive(&mut umts(&config, 1), &arrivals, Polling::OnTime, Instant::ZERO + Span::from_secs(100_000));
    let delays =
        outcome.departures.iter().map(|(_, departure)| departure.due.since(arrivals[departure.packet.id as usize].at));
    let mean = delays.map(Span::as_secs_f64).sum::<f64>() / packets as f64;
    // TTI (10 ms after it came), TTI, 27 ms and 20 ms; Timer_Poll, 200 ms from the poll, and the
    // next TTI for each loss.
    let expected = 0.067 + 0.210 * bler / (1.0 - bler);
    // The standard deviation of the number of losses is √p / (1 − p) = 0.56: five of the mean's are
    // 0.044 of 0.21 s.
    assert!((mean - expected).abs() < 0.0094, "{mean} instead of {expected}");
}

#[test]
fn a_reported_loss_is_repeated_after_a_round_trip_of_the_rlc() {
    // The first TTI of two is lost: bursts of errors that end at once would be drawn, so it is
    // commanded.
    let config = preset("umts-r99-384", &[("downlink.bler", 0.0.into()), ("uplink.bler", 0.0.into())]);
    let arrivals = traffic(1, 800, Span::ZERO);
    let bler = |at, share| Commanded { at, command: Change::Bler(Probability::new(share).expect("a share")).into() };
    let commands = [bler(ms(5), 1.0), bler(ms(15), 0.0)];
    let only_down = |mut command: Commanded| {
        command.command.direction = Some(Direction::Down);
        command
    };
    let commands = commands.map(only_down);
    let script = Script { arrivals: &arrivals, commands: &commands };
    let outcome = drive(&mut umts(&config, 1), script, Polling::OnTime, ms(5000));
    // TTIs at 10 (lost) and 20 ms. The gap is seen at 57 ms, the report goes in the TTI of 60 ms,
    // is there at 107 ms, and the repeat goes in the TTI of 110 ms: there at 147 ms, with IP 20 ms
    // later.
    assert_eq!(outcome.departures[0].1.due, ms(167));
}

#[test]
fn the_connection_comes_and_goes_with_traffic() {
    let set = [("downlink.bler", 0.0.into()), ("uplink.bler", 0.0.into()), ("rrc.paging_cycle", "0 s".into())];
    let config = preset("umts-r99-states", &set);
    let mut arrivals = traffic(3, 40, Span::from_secs(9));
    // Changes of a mobile without traffic are reported when it has traffic again.
    arrivals[2].at = ms(60_000);
    let events = events(&mut umts(&config, 1), &arrivals, &[], ms(60_000));
    let names: Vec<_> = states(&events, Aspect::Rrc);
    let (idle, fach, dch) = ("idle", "cell-fach", "cell-dch");
    // Two seconds for the connection; the packet goes in the next TTI of 20 ms, and five seconds
    // after its last transmission the channel is given back. The next packet goes in two TTIs of
    // the common channel, which is left 12 s after them.
    let expected = [(ms(2000), dch), (ms(7020), fach), (ms(21_020), idle)];
    let expected = expected.map(|(time, name)| (time, StateValue::Name(name)));
    assert_eq!(names, expected);
}

#[test]
fn more_than_the_threshold_gets_a_channel_and_more_still_a_faster_one() {
    let set = [("downlink.bler", 0.0.into()), ("uplink.bler", 0.0.into()), ("rrc.connects_to", "cell-fach".into())];
    let mut config = preset("umts-r99-states", &set);
    let arrivals = traffic(40, 1500, Span::ZERO);
    let pdus = |config: &Config| {
        let events = events(&mut umts(config, 1), &arrivals, &[], ms(30_000));
        let rrc: Vec<_> = states(&events, Aspect::Rrc).into_iter().map(|(_, value)| value).collect();
        assert_eq!(rrc[..2], [StateValue::Name("cell-fach"), StateValue::Name("cell-dch")]);
        states(&events, Aspect::Slots).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    let fast = pdus(&config);
    assert!([4.0, 8.0, 12.0].iter().all(|pdus| fast.contains(&StateValue::Number(*pdus))), "{fast:?}");
    // 1 dB is enough for 128 kbit/s and its margin, and not for 384.
    config.conditions = toml::from_str("ci = \"1 dB\"\nfading = \"static\"").expect("conditions");
    let slow = pdus(&config);
    assert!(slow.contains(&StateValue::Number(8.0)) && !slow.contains(&StateValue::Number(12.0)), "{slow:?}");
}

#[test]
fn a_handover_keeps_or_loses_the_buffer_and_the_driver_makes_a_burst_of_it() {
    let arrivals = traffic(30, 500, Span::from_millis(100));
    let change =
        |buffer| Commanded { at: ms(1010), command: Change::Handover { gap: Span::from_millis(900), buffer }.into() };
    let run = |buffer, hold: &str| {
        let set = [("downlink.bler", 0.0.into()), ("uplink.bler", 0.0.into()), ("mobility.driver_hold", hold.into())];
        let commands = [change(buffer)];
        let script = Script { arrivals: &arrivals, commands: &commands };
        drive(&mut umts(&preset("umts-r99-384", &set), 1), script, Polling::OnTime, ms(60_000))
    };
    let kept = run(Buffer::Keep, "0 s");
    assert_eq!(kept.departures.len(), 30);
    let times: Vec<Instant> = kept.departures.iter().map(|(_, departure)| departure.due).collect();
    let gap = times.windows(2).map(|pair| pair[1].since(pair[0])).max().expect("pairs");
    assert!(gap > Span::from_millis(850) && gap < Span::from_millis(1000), "{gap}");
    // What waited comes at the rate of the channel, 500 bytes in a little more than 10 ms.
    let close = times.windows(2).filter(|pair| pair[1].since(pair[0]) < Span::from_millis(30)).count();
    assert!((8..=10).contains(&close), "{close}");
    let held = run(Buffer::Keep, "400 ms");
    let at_once = held.departures.iter().filter(|(_, departure)| departure.due == ms(1010 + 900 + 400)).count();
    assert!((10..=13).contains(&at_once), "what waited and what came meanwhile comes at once: {at_once}");
    let lost = run(Buffer::Discard, "0 s");
    // Of what came before 1010 ms, that of 1000 ms has not arrived; the rest comes later and is
    // kept.
    assert_eq!(lost.lost(DropCause::Handover).packets, 1);
    assert_eq!(lost.departures.len(), 29);
}

/// From one cell to the next, once, after some 18 s.
fn between_two_cells() -> toml::Value {
    let conditions = r#"
        network = { frequency = "2.1 GHz", reuse = 1, load = 0.0, power_over_noise = "157 dB", lowest = "-5 dB", period = "200 ms", hysteresis = "3 dB", time_to_trigger = "640 ms", change = "hard-handover", gap = "100 ms" }
        cells = { count = 2, spacing = "1 km", setback = "100 m", antenna = "30 m", penetration = "0 dB" }
        shadowing = { deviation = "0 dB", correlation_distance = "20 m" }
        movement = { speed = "100 km/h", from = "0 m", to = "1 km", start = "0 m", path = "once" }
        fading = "static"
    "#;
    toml::Value::Table(conditions.parse().expect("a table"))
}

#[test]
fn another_controller_gets_what_waits_and_not_what_was_begun() {
    // From one cell to the next, once, with more traffic than the channel carries.
    let arrivals = traffic(1900, 1000, Span::from_millis(18));
    let lost = |buffer: &str| {
        let set = [
            ("conditions", between_two_cells()),
            ("mobility.buffer", buffer.into()),
            ("downlink.bler", 0.0.into()),
            ("downlink.queue.packets", 1000.into()),
        ];
        let done = drive(&mut umts(&preset("umts-r99-384", &set), 1), &arrivals, Polling::OnTime, ms(60_000));
        let lost = done.lost(DropCause::Handover).packets;
        assert_eq!(done.departures.len() + lost as usize, arrivals.len());
        lost
    };
    assert_eq!(lost("keep"), 0);
    // What was begun and not acknowledged: some 110 ms, until the report to the poll of a packet is
    // back, at 384 kbit/s.
    let begun = lost("forward");
    assert!((2..=12).contains(&begun), "{begun}");
    // What waits besides: at the border, after some 18 s, a seventh of what came.
    let all = lost("discard");
    assert!((50..=250).contains(&all), "{all}");
}

#[test]
fn a_handover_loses_no_packet_that_comes_after_it() {
    // From one cell to the next, once, after some 18 s, while nothing is inside.
    let mut arrivals = traffic(2, 500, Span::from_secs(40));
    arrivals.iter_mut().for_each(|arrival| arrival.at += Span::from_secs(1));
    for (key, value) in [("mobility.buffer", "discard".into()), ("mobility.reconnection", reconnection(1.0, "-30 dB"))]
    {
        let set = [
            ("conditions", between_two_cells()),
            (key, value),
            ("downlink.bler", 0.0.into()),
            ("uplink.bler", 0.0.into()),
        ];
        let done = drive(&mut umts(&preset("umts-r99-384", &set), 1), &arrivals, Polling::OnTime, ms(60_000));
        let times: Vec<f64> = done.departures.iter().map(|(_, left)| left.due.as_secs_f64()).collect();
        assert!(times.len() == 2 && times[1] < 41.1, "{key}: {times:?}");
    }
}

#[test]
fn a_connection_lost_in_a_handover_comes_back_after_its_timers() {
    // From one cell to the next, once, with a packet each 100 ms.
    let arrivals = traffic(350, 1000, Span::from_millis(100));
    let run = |failures: f64| {
        let set = [
            ("conditions", between_two_cells()),
            ("mobility.reconnection", reconnection(failures, "-30 dB")),
            ("downlink.bler", 0.0.into()),
            ("uplink.bler", 0.0.into()),
        ];
        let done = drive(&mut umts(&preset("umts-r99-384", &set), 1), &arrivals, Polling::OnTime, ms(60_000));
        let times: Vec<Instant> = done.departures.iter().map(|(_, departure)| departure.due).collect();
        let gap = times.windows(2).map(|pair| pair[1].since(pair[0])).max().expect("pairs");
        assert_eq!(done.departures.len() + done.lost(DropCause::Handover).packets as usize, arrivals.len());
        (gap.as_secs_f64(), done.lost(DropCause::Handover).packets)
    };
    let (gap, lost) = run(0.0);
    assert!(lost == 0 && gap < 0.3, "{gap} {lost}");
    // T313, cell selection, RRC connection and registration take 6.94 s; one of three messages is
    // lost with 3 % and costs at least a second more. What came before T313 expired is lost.
    let (gap, lost) = run(1.0);
    assert!((6.9..7.2).contains(&gap), "{gap}");
    assert!((30..=33).contains(&lost), "{lost}");
}

#[test]
fn what_cannot_be_repeated_resets_the_rlc_and_what_cannot_be_reset_fails() {
    let set = [("downlink.bler", 1.0.into()), ("downlink.rlc.max_rst", 3.into())];
    let config = preset("umts-r99-384", &set);
    let arrivals = traffic(3, 1000, Span::ZERO);
    let reports = events(&mut umts(&config, 1), &arrivals, &[], ms(30_000));
    let link: Vec<_> = states(&reports, Aspect::Link).into_iter().map(|(_, value)| value).collect();
    let names = ["connected", "reset", "disconnected"].map(StateValue::Name);
    assert_eq!(link, names);
    let outcome = drive(&mut umts(&config, 1), &arrivals, Polling::OnTime, ms(30_000));
    assert_eq!(outcome.lost(DropCause::AttemptsExhausted).packets, 3);
    // With an uplink that works and a downlink that is good again, the RESET gets through. All are
    // lost by then; what the mobile has done since is reported when it has traffic again.
    let arrivals = [&arrivals[..], &[Arrival { at: ms(20_000), ..arrivals[0] }]].concat();
    let better = Commanded { at: ms(2500), command: BearerCommand::from(Change::Bler(Probability::NEVER)) };
    let events = events(&mut umts(&config, 1), &arrivals, &[better], ms(30_000));
    let link: Vec<_> = states(&events, Aspect::Link).into_iter().map(|(_, value)| value).collect();
    assert_eq!(link, ["connected", "reset", "connected"].map(StateValue::Name));
}

#[test]
fn a_repeated_reset_is_answered_and_destroys_nothing() {
    // Many RESETs upwards and their answers are lost, so that RESETs are repeated.
    let set = [
        ("downlink.bler", 0.3.into()),
        ("downlink.rlc.max_dat", 2.into()),
        ("uplink.bler", 0.6.into()),
        ("uplink.rlc.max_dat", 40.into()),
    ];
    let mut arrivals = traffic(1000, 472, Span::from_millis(90));
    arrivals.iter_mut().step_by(3).for_each(|arrival| arrival.direction = Direction::Up);
    let config = preset("umts-r99-384", &set);
    let reports = events(&mut umts(&config, 1), &arrivals, &[], ms(200_000));
    let (resets, losses) = common::resets_and_losses(reports.iter().map(|(at, event)| (*at, event)));
    assert!(resets > 20 && losses <= resets, "{losses} times of losses by {resets} resets");
}

#[test]
fn a_link_that_failed_keeps_what_it_has_until_the_bearers_are_released() {
    // Out of the only cell, for some three minutes, and back.
    let conditions = r#"
        network = { frequency = "2.1 GHz", reuse = 1, load = 0.5, power_over_noise = "157 dB", lowest = "-5 dB", period = "200 ms", hysteresis = "3 dB", time_to_trigger = "640 ms", change = "hard-handover", gap = "100 ms" }
        cells = { count = 1, spacing = "1 km", setback = "100 m", antenna = "30 m", penetration = "0 dB" }
        shadowing = { deviation = "0 dB", correlation_distance = "20 m" }
        movement = { speed = "100 km/h", from = "0 m", to = "7 km", path = "to-and-fro" }
    "#;
    let conditions = || toml::Value::Table(conditions.parse().expect("a table"));
    let format = || toml::from_str::<toml::Table>("formats = [{ tti = \"10 ms\", pdus = 12 }]").expect("a table");
    let run = |release: &str| {
        let config = preset(
            "umts-r99-384",
            &[
                ("conditions", conditions()),
                ("mobility.link_release", release.into()),
                ("downlink.formats", format()["formats"].clone()),
                ("downlink.bler", 0.0.into()),
                ("uplink.bler", 0.0.into()),
                ("downlink.queue.packets", 1000.into()),
            ],
        );
        let arrivals = traffic(500, 1000, Span::from_secs(1));
        let done = drive(&mut umts(&config, 1), &arrivals, Polling::OnTime, HORIZON);
        let late = done.departures.iter().map(|(_, left)| left.due.since(arrivals[left.packet.id as usize].at)).max();
        (done.counters[0].dropped_total().packets, late.expect("packets arrive"))
    };
    let (lost, late) = run("0 s");
    assert!((90..200).contains(&lost) && late < Span::from_secs(6), "{lost} {late}");
    let (kept, longer) = run("600 s");
    assert!(kept == 0 && longer > Span::from_secs(90), "{kept} {longer}");
    let (some, _) = run("30 s");
    assert!(0 < some && some < lost + 30, "{some}");
}

#[test]
fn coverage_is_known_at_the_beginning_and_after_a_long_silence() {
    // Out of the only cell, and back.
    let departures = |start: &str, seconds: &[u64]| {
        let conditions = format!(
            r#"
            network = {{ frequency = "2.1 GHz", reuse = 1, load = 0.5, power_over_noise = "157 dB", lowest = "-5 dB", period = "200 ms", hysteresis = "3 dB", time_to_trigger = "640 ms", change = "hard-handover", gap = "100 ms" }}
            cells = {{ count = 1, spacing = "1 km", setback = "100 m", antenna = "30 m", penetration = "0 dB" }}
            shadowing = {{ deviation = "0 dB", correlation_distance = "20 m" }}
            movement = {{ speed = "100 km/h", from = "0 m", to = "7 km", start = "{start}", path = "to-and-fro" }}
            "#
        );
        let config = preset(
            "umts-r99-384",
            &[
                ("conditions", toml::Value::Table(conditions.parse().expect("a table"))),
                ("mobility.link_failure", "3 s".into()),
                ("downlink.bler", 0.0.into()),
                ("uplink.bler", 0.0.into()),
            ],
        );
        let mut arrivals = traffic(seconds.len(), 500, Span::ZERO);
        for (arrival, second) in arrivals.iter_mut().zip(seconds) {
            arrival.at = ms(second * 1000);
        }
        let done = drive(&mut umts(&config, 1), &arrivals, Polling::OnTime, HORIZON);
        done.departures.iter().map(|(_, departure)| departure.due.as_secs_f64()).collect::<Vec<_>>()
    };
    // Without coverage from 168 s to 368 s: a packet finds it, and the next one comes later.
    let left = departures("0 m", &[1, 170, 480]);
    assert!(left.len() == 2 && (480.0..480.2).contains(&left[1]), "{left:?}");
    // The same without a packet that finds it, and at a beginning out of coverage.
    let left = departures("0 m", &[1, 250, 480]);
    assert!(left.len() == 2 && (480.0..480.2).contains(&left[1]), "{left:?}");
    let left = departures("7 km", &[0, 200]);
    assert!(left.len() == 1 && (200.0..200.2).contains(&left[0]), "{left:?}");
}

#[test]
fn wrong_parameters_are_refused_with_their_key() {
    for (key, value, at, text) in [
        ("downlink.pdu", toml::Value::from("2 B"), "downlink.pdu", "above zero"),
        ("downlink.formats", toml::Value::Array(vec![]), "downlink.formats", "above zero"),
        ("uplink.rlc.window", 4096.into(), "uplink.rlc.window", "at most 4095"),
        ("uplink.rlc.max_dat", 1.into(), "uplink.rlc.max_dat", "above zero"),
        ("downlink.burst", 0.5.into(), "downlink.burst", "at least 1.010 TTIs"),
        ("downlink.rlc.poll_last", false.into(), "downlink.rlc", "timer_poll_periodic"),
        ("downlink.delay", "2 h".into(), "downlink.delay", "an hour"),
        ("mobility.link_failure", "2 h".into(), "mobility.link_failure", "an hour"),
    ] {
        let config = preset("umts-r99-384", &[(key, value)]);
        let error = Umts::new(&config, 1, Seed::new(1), "cell").expect_err(key);
        assert_eq!(error.field(), at, "{error}");
        assert!(error.to_string().contains(text), "{key}: {error}");
    }
}

#[test]
fn a_reconnection_needs_handovers_and_an_answer_before_t300() {
    let cells = r#"
        network = { frequency = "2.1 GHz", reuse = 1, load = 0.0, power_over_noise = "157 dB", lowest = "-5 dB", period = "200 ms", hysteresis = "3 dB", time_to_trigger = "640 ms", change = "hard-handover", gap = "100 ms" }
        cells = { count = 2, spacing = "1 km", setback = "100 m", antenna = "30 m", penetration = "0 dB" }
        shadowing = { deviation = "0 dB", correlation_distance = "20 m" }
        movement = { speed = "100 km/h", from = "0 m", to = "1 km", start = "0 m", path = "once" }
    "#;
    let soft =
        cells.replace(r#"change = "hard-handover", gap = "100 ms""#, r#"change = "soft-handover", window = "3 dB""#);
    let error = |conditions: &str, setup: &str| {
        let mut reconnection = reconnection(0.5, "-3 dB");
        reconnection.as_table_mut().expect("a table").insert("rrc_setup".into(), setup.into());
        let conditions = toml::Value::Table(conditions.parse().expect("a table"));
        let config = preset("umts-r99-384", &[("conditions", conditions), ("mobility.reconnection", reconnection)]);
        Umts::new(&config, 1, Seed::new(1), "cell").err().map(|error| (error.field(), error.to_string()))
    };
    assert_eq!(error(cells, "1 s"), None);
    for conditions in ["ci = \"12 dB\"", "level = \"12 dB\"", &soft] {
        let (at, text) = error(conditions, "500 ms").expect("no handover can fail");
        assert_eq!(at, "mobility.reconnection");
        assert!(text.contains("hard-handover"), "{text}");
    }
    let (at, text) = error(cells, "1001 ms").expect("T300 is 1 s");
    assert_eq!(at, "mobility.reconnection.t300");
    assert!(text.contains("`rrc_setup`"), "{text}");
}

#[test]
fn fast_fading_costs_its_margin() {
    let share = |fading: &str, ci: &str| {
        let conditions: toml::Table = format!("ci = \"{ci}\"\nfading = \"{fading}\"").parse().expect("a table");
        let set = [("conditions", toml::Value::Table(conditions)), ("downlink.rlc.max_dat", 40.into())];
        let mut bearer = umts(&preset("umts-r99-384", &set), 1);
        let arrivals = traffic(3000, 400, Span::from_millis(20));
        drive(&mut bearer, &arrivals, Polling::OnTime, ms(60_000));
        let totals = bearer.radio_totals(Direction::Down, UserId::new(0)).expect("the mobile");
        totals.errored as f64 / totals.pdus as f64
    };
    // Power control keeps its target of 1 % where there is power; some 3000 TTIs are drawn.
    for (fading, ci) in [("static", "0 dB"), ("tu3", "12 dB"), ("tu50", "6.1 dB")] {
        assert!((0.004..0.018).contains(&share(fading, ci)), "{fading}: {}", share(fading, ci));
    }
    // Ten times the odds, 1/99, at so much less: 10/109 of TTIs.
    for (fading, ci) in [("static", "-2 dB"), ("tu3", "8.1 dB"), ("tu50", "4.3 dB")] {
        assert!((0.07..0.115).contains(&share(fading, ci)), "{fading}: {}", share(fading, ci));
    }
}

#[test]
fn the_uplink_depends_on_the_level_of_the_cell_and_not_on_its_interference() {
    // A mobile between three cells, and one may serve it: much interference, and far more
    // level than it needs.
    let conditions = r#"
        network = { frequency = "2.1 GHz", reuse = 1, load = 1.0, power_over_noise = "157 dB", lowest = "-5 dB", period = "200 ms", hysteresis = "3 dB", time_to_trigger = "640 ms", change = "hard-handover", gap = "100 ms" }
        cells = { count = 1, spacing = "400 m", setback = "0 m", antenna = "30 m", penetration = "0 dB" }
        shadowing = { deviation = "0 dB", correlation_distance = "20 m" }
        movement = { speed = "0 m/s", from = "320 m", to = "320 m" }
        fading = "static"
    "#;
    let table: toml::Table = conditions.parse().expect("a table");
    let mut bearer = umts(&preset("umts-r99-64", &[("conditions", toml::Value::Table(table))]), 1);
    let arrivals: Vec<_> = traffic(600, 400, Span::from_millis(100))
        .into_iter()
        .enumerate()
        .map(|(n, arrival)| Arrival { direction: Direction::BOTH[n % 2], ..arrival })
        .collect();
    drive(&mut bearer, &arrivals, Polling::OnTime, ms(60_000));
    let errors = |direction| {
        let totals = bearer.radio_totals(direction, UserId::new(0)).expect("the mobile");
        totals.errored as f64 / totals.pdus as f64
    };
    assert!(
        errors(Direction::Down) > 0.3 && errors(Direction::Up) < 0.03,
        "{} {}",
        errors(Direction::Down),
        errors(Direction::Up)
    );
}

#[test]
fn a_discard_loses_what_cannot_be_repeated_and_nothing_else() {
    // Five packets at once: nothing arrives downwards for 3.5 s, and ten when it
    // does again.
    let mut arrivals = traffic(15, 500, Span::ZERO);
    arrivals[5..].iter_mut().for_each(|arrival| arrival.at = ms(4000));
    let better = [Commanded { at: ms(3500), command: BearerCommand::from(Change::Bler(Probability::NEVER)) }];
    let run = |discard: Option<i64>| {
        let mut set = vec![("downlink.bler", 1.0.into()), ("uplink.bler", 0.0.into())];
        set.push(("downlink.rlc.concatenation", false.into()));
        if let Some(max_mrw) = discard {
            set.push(("downlink.rlc.discard.timer_mrw", "200 ms".into()));
            set.push(("downlink.rlc.discard.max_mrw", max_mrw.into()));
        }
        let config = preset("umts-r99-384", &set);
        let script = Script { arrivals: &arrivals, commands: &better };
        let done = drive(&mut umts(&config, 1), script, Polling::OnTime, ms(30_000));
        let reports = events(&mut umts(&config, 1), &arrivals, &better, ms(30_000));
        let link = states(&reports, Aspect::Link);
        (done, link.iter().any(|(_, value)| *value == StateValue::Name("reset")))
    };
    let (discarding, has_reset) = run(Some(12));
    assert!(!has_reset);
    // The poll is repeated every 200 ms; the ninth time was the last. What comes later does not
    // wait for what is gone.
    assert_eq!(discarding.lost(DropCause::AttemptsExhausted).packets, 5);
    let ids: Vec<_> = discarding.departures.iter().map(|(_, departure)| departure.packet.id).collect();
    assert_eq!(ids, (5..15).collect::<Vec<_>>());
    // When the MRW finds no answer, either, the RLC resets after all.
    assert!(run(Some(2)).1 && run(None).1);
}

#[test]
fn a_packet_is_discarded_by_the_time_of_its_own_arrival() {
    // The packets of a flow wait up to 0.8 s, those of another pass them.
    let mut arrivals = traffic(1000, 500, Span::from_millis(10));
    for (index, arrival) in arrivals.iter_mut().enumerate() {
        arrival.packet.flow = airpath_core::FlowId(u32::from(index % 20 == 7));
    }
    let set = [
        ("downlink.bler", 0.0.into()),
        ("uplink.bler", 0.0.into()),
        (
            "downlink.queue",
            "discipline = \"fq-codel\"\ntarget = \"10 s\"".parse::<toml::Table>().expect("a queue").into(),
        ),
        ("downlink.rlc.discard.timer_mrw", "200 ms".into()),
        ("downlink.rlc.discard.max_mrw", 32.into()),
        ("downlink.rlc.discard.timer_discard", "800 ms".into()),
    ];
    let done = drive(&mut umts(&preset("umts-r99-64", &set), 1), &arrivals, Polling::OnTime, ms(60_000));
    let passed = |flow: u32| done.departures.iter().filter(|(_, left)| left.packet.flow.0 == flow).count();
    assert!(done.lost(DropCause::Discarded).packets > 100, "the first flow has too much");
    assert_eq!(passed(1), 50);
}

#[test]
fn a_packet_is_discarded_when_its_time_is_over() {
    // Nothing arrives downwards for 3.5 s. Of eight packets at once the window of 20 PDUs lets two
    // be cut; one comes half a second later.
    let mut arrivals = traffic(10, 500, Span::ZERO);
    arrivals[8].at = ms(500);
    arrivals[9].at = ms(4000);
    let better = [Commanded { at: ms(3500), command: BearerCommand::from(Change::Bler(Probability::NEVER)) }];
    let mut set = vec![("downlink.bler", 1.0.into()), ("uplink.bler", 0.0.into())];
    set.push(("downlink.rlc.window", 20.into()));
    set.push(("downlink.rlc.max_dat", 40.into()));
    set.push(("downlink.rlc.discard.timer_mrw", "200 ms".into()));
    set.push(("downlink.rlc.discard.max_mrw", 32.into()));
    set.push(("downlink.rlc.discard.timer_discard", "1.25 s".into()));
    let config = preset("umts-r99-384", &set);
    let script = Script { arrivals: &arrivals, commands: &better };
    let done = drive(&mut umts(&config, 1), script, Polling::OnTime, ms(30_000));
    assert_eq!(done.lost(DropCause::Discarded).packets, 9);
    let ids: Vec<_> = done.departures.iter().map(|(_, departure)| departure.packet.id).collect();
    assert_eq!(ids, [9]);
    let reports = events(&mut umts(&config, 1), &arrivals, &better, ms(30_000));
    let drops: Vec<_> = reports
        .iter()
        .filter(|(_, event)| matches!(event, Event::Packet(packet) if matches!(packet.step, PacketStep::Dropped(_))))
        .map(|(at, _)| *at)
        .collect();
    // The last is not cut, or would wait for the end of the discard before.
    assert_eq!(drops, [vec![ms(1250); 8], vec![ms(1750)]].concat());
    let is_reset = |(_, value): &(Instant, StateValue)| *value == StateValue::Name("reset");
    assert!(!states(&reports, Aspect::Link).iter().any(is_reset));
}
