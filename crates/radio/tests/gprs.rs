//! A GPRS cell: the contracts of a bearer, and the times of its procedures.

use crate::common;
use airpath_core::{Direction, DropCause, Instant, Packet, Probability, Seed, Span, UserId};
use airpath_link::Bearer;
use airpath_link::command::{Buffer, Change};
use airpath_link::testing::{
    Arrival, Commanded, Commands, Polling, Script, Traffic, contracts, drive, idle_sleeps, order_kept,
};
use airpath_radio::ModelError;
use airpath_radio::conditions::Profile;
use airpath_radio::gsm::block_errors::Curve;
use airpath_radio::gsm::gprs::{Config, Gprs};
use proptest::prelude::*;

const HORIZON: Instant = Instant::from_nanos(300_000_000_000);

/// The preset with what differs from it, as TOML.
fn config(more: &str) -> Config {
    let mut preset: toml::Table = include_str!("../../../presets/gprs-3+1.toml").parse().expect("the preset");
    let mut bearer = preset.remove("bearer").and_then(|it| it.as_table().cloned()).expect("a table");
    bearer.remove("model");
    // Schemes change only where a test changes them.
    for way in ["downlink", "uplink"] {
        let way = bearer[way].as_table_mut().expect("a table");
        way.remove("adaptation");
        way.insert("scheme".to_owned(), "cs-2".into());
    }
    let more: toml::Table = more.parse().expect("TOML");
    for (table, values) in more {
        let base = bearer.entry(table).or_insert_with(|| toml::Table::new().into());
        for (key, value) in values.as_table().expect("tables of keys") {
            base.as_table_mut().expect("a table").insert(key.clone(), value.clone());
        }
    }
    bearer.try_into().expect("a config")
}

fn any_config() -> impl Strategy<Value = Config> {
    (
        (0.0..30.0f64, 1u8..7, prop::sample::select(vec![1u8, 4, 8, 10]), 1u32..65, 1u32..40),
        (any::<bool>(), prop::sample::select(vec![140, 500, 1520]), 1u64..8000),
        (prop::sample::select(vec!["cs-1", "cs-2", "cs-4", "mcs-1", "mcs-4", "mcs-8", "mcs-9"]), any::<bool>(), any::<bool>()),
        prop::sample::select(vec!["0 s", "500 ms", "2 s"]),
        prop::sample::select(vec!["0 s", "500 ms", "2 s"]),
        prop::sample::select(vec!["drop-tail", "codel", "fq-codel", "pie", "dualpi2", "cake"]),
    )
        .prop_map(
            |((ci, slots, class, window, interval), (one_phase, frame, buffer), (scheme, adapts, voice), delayed, extended, discipline)| {
                let access = if one_phase { "one-phase" } else { "two-phase" };
                let egprs = scheme.starts_with('m');
                let window = if egprs { 64 + 32 * (window % 5) } else { window };
                let schemes = if egprs {
                    r#"["mcs-1", "mcs-3", "mcs-4", "mcs-5", "mcs-6", "mcs-7", "mcs-8", "mcs-9"]"#
                } else {
                    r#"["cs-1", "cs-2", "cs-4"]"#
                };
                let adaptation = if adapts {
                    format!(r#", adaptation = {{ schemes = {schemes}, errors = {{ above = 0.3, below = 0.1, blocks = 30 }} }}"#)
                } else {
                    String::new()
                };
                let voice = if voice {
                    format!(r#"cell.voice = {{ channels = {slots}, interval = "2 s", duration = "1 s" }}"#)
                } else {
                    String::new()
                };
                config(&format!(
                    r#"
                    {voice}
                    cell.slots = {slots}
                    mobile.multislot_class = {class}
                    rlc = {{ window = {window}, poll_interval = {interval}, ack_interval = {interval}, base_station_buffer = "{buffer} B" }}
                    downlink = {{ scheme = "{scheme}", frame = "{frame} B"{adaptation}, queue = {{ discipline = "{discipline}", packets = 20 }} }}
                    uplink = {{ scheme = "{scheme}", frame = "{frame} B"{adaptation} }}
                    tbf = {{ access = "{access}", delayed_release = "{delayed}", extended_uplink = "{extended}" }}
                    conditions.ci = "{ci} dB"
                    "#
                ))
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(8)))]

    #[test]
    fn cells_keep_the_contracts(config in any_config(), users in 1u16..6, gap in 1u64..2000, seed: u64) {
        let make = || Gprs::new(&config, usize::from(users), Seed::new(5), "cell").expect("sound parameters");
        let traffic = Traffic {
            packets: 60, gap: Span::from_millis(gap), users, directions: &Direction::BOTH, ..Traffic::default()
        };
        let arrivals = traffic.arrivals(seed);
        let middle = arrivals[40].at;
        let commands = Commands { commands: 8, until: middle, users, classes: &[], reorder: false }.draw(seed);
        for script in [Script { arrivals: &arrivals, commands: &[] }, Script { arrivals: &arrivals, commands: &commands }] {
            contracts(make, script, HORIZON);
            contracts(make, script, middle);
            if config.downlink.queue.as_ref().is_none_or(|queue| queue.discipline.keeps_order()) {
                order_kept(make, script, HORIZON);
            }
        }
    }
}

fn lossless(more: &str, users: usize) -> Gprs {
    Gprs::new(&config(&format!("conditions.ci = \"60 dB\"\n{more}")), users, Seed::new(1), "cell").expect("sound")
}

#[test]
fn with_incremental_redundancy_errors_cost_less() {
    // At 8 dB a block of MCS-9 is hardly ever decoded at once, and a second transmission helps.
    let tail = r#"
        downlink = { scheme = "mcs-9", queue = { packets = 1000 } }
        uplink.scheme = "mcs-5"
        rlc.window = 192
        conditions = { ci = "8 dB", fading = "tu50" }
    "#;
    let mut cell = Gprs::new(&config(tail), 1, Seed::new(3), "cell").expect("sound");
    let burst = packets(Direction::Down, &[0; 100], 1500);
    let departures = drive(&mut cell, &burst, Polling::OnTime, HORIZON).departures;
    assert_eq!(departures.len(), 100);
    let time = departures[99].1.due.since(departures[0].1.due).as_secs_f64();
    let rate = 99.0 * 1500.0 * 8.0 / time;
    let first = Curve::of("mcs-9", Profile::Tu50, 1).at(8.0).get();
    // Without it, only what gets through at once would count.
    let without = 3.0 * 59_200.0 * (1.0 - first);
    assert!(first > 0.7 && rate > 1.3 * without, "{rate} bit/s, without {without}; first error rate {first}");
}

#[test]
fn mobiles_share_timeslots_alike() {
    let mut cell = lossless("", 5);
    let mut arrivals = Vec::new();
    for (id, user) in (0..5u16).cycle().take(200).enumerate() {
        let [arrival] = packets(Direction::Down, &[0], 1500)[..] else { panic!("one") };
        let packet = Packet { id: id as u64, user: UserId::new(user.into()), ..arrival.packet };
        arrivals.push(Arrival { packet, ..arrival });
    }
    let departures = drive(&mut cell, &arrivals, Polling::OnTime, HORIZON).departures;
    let last = |user: u16| {
        let of_user = departures.iter().filter(|(_, departure)| departure.packet.user == UserId::new(user.into()));
        of_user.map(|(_, departure)| departure.due).max().expect("all arrive").as_secs_f64()
    };
    let ends: Vec<f64> = (0..5).map(last).collect();
    let (first, last) = (ends.iter().copied().fold(f64::MAX, f64::min), ends.iter().copied().fold(0.0, f64::max));
    // 200 packets in three timeslots, and all are done at about the same time.
    let expected = 200.0 * 1511.0 / 30.0 / 3.0 * 0.020;
    assert!((1.0..1.08).contains(&(last / expected)) && first > 0.9 * last, "{ends:?}, expected {expected}");
}

#[test]
fn a_full_window_bounds_the_rate() {
    let bounded = |window: u32| {
        let mut cell = lossless(&format!("rlc = {{ window = {window}, poll_interval = 1000 }}"), 1);
        let burst = packets(Direction::Down, &[0; 40], 1500);
        let departures = drive(&mut cell, &burst, Polling::OnTime, HORIZON).departures;
        39.0 * 1511.0 * 8.0 / departures[39].1.due.since(departures[0].1.due).as_secs_f64()
    };
    // The poll goes with the last block of the window if that has the timeslot of control, or else
    // one period later. The answer comes 3 periods after the poll and takes one, and the network
    // needs two more.
    for window in [8u32, 16, 32] {
        let periods = window.div_ceil(3) - 1 + u32::from(window % 3 != 1) + 6;
        let bound = f64::from(window) * 30.0 * 8.0 / (f64::from(periods) * 0.020);
        let rate = bounded(window);
        assert!((0.95..1.05).contains(&(rate / bound)), "{window}: {rate} instead of {bound}");
    }
}

#[test]
fn a_full_window_stalls_the_link() {
    let time = Span::from_secs(60);
    let stalled = |direction: Direction, window: u32| {
        let mut cell = lossless(&format!("rlc = {{ window = {window}, poll_interval = 20 }}"), 1);
        common::saturate_towards(&mut cell, direction, 1, 50, time).stalled(time)
    };
    // 8 blocks take 3 of about 9 periods of 20 ms, as in the test before.
    assert!((0.4..0.8).contains(&stalled(Direction::Down, 8)), "{}", stalled(Direction::Down, 8));
    assert_eq!(stalled(Direction::Down, 64), 0.0);
    // On the uplink a smaller window waits longer for the same reports.
    let shares = [64, 8, 4].map(|window| stalled(Direction::Up, window));
    assert!(shares[0] == 0.0 && 0.2 < shares[1] && shares[1] < shares[2] && shares[2] < 0.8, "{shares:?}");
}

#[test]
fn a_change_of_cell_loses_what_the_old_base_station_had() {
    // A car that passes three cells while a download keeps the base station's buffer full.
    let network = toml::from_str::<toml::Table>(include_str!("../../../presets/gprs-3+1.toml")).expect("the preset")
        ["bearer"]["conditions"]["network"]
        .clone();
    let environment: toml::Table =
        include_str!("../../../presets/environments/driving.toml").parse().expect("the environment");
    let mut conditions = environment["conditions"].as_table().expect("a table").clone();
    conditions.insert("network".to_owned(), network);
    let mut config = config("downlink = { queue = { packets = 2000 } }");
    config.conditions = conditions.try_into().expect("conditions");
    let make = || Gprs::new(&config, 1, Seed::new(2), "cell").expect("sound");
    let burst = packets(Direction::Down, &[0; 600], 1500);
    contracts(make, &burst, HORIZON);
    let outcome = drive(&mut make(), &burst, Polling::OnTime, HORIZON);
    let lost = outcome.lost(DropCause::Handover).packets;
    assert!((1..=60).contains(&lost), "{lost}");
    assert!(outcome.departures.len() > 100, "{}", outcome.departures.len());
}

#[test]
fn a_handover_discards_all_that_was_not_delivered() {
    let queues = "downlink = { queue = { packets = 100 } }\nuplink = { queue = { packets = 100 } }";
    for direction in Direction::BOTH {
        let burst = packets(direction, &[0; 30], 1500);
        let run = |buffer| {
            let command = Change::Handover { gap: Span::from_secs(1), buffer }.into();
            let commands = [Commanded { at: at(5_000), command }];
            let script = Script { arrivals: &burst, commands: &commands };
            drive(&mut lossless(queues, 1), script, Polling::OnTime, HORIZON)
        };
        assert_eq!(run(Buffer::Keep).departures.len(), 30, "{direction:?}");
        let outcome = run(Buffer::Discard);
        let lost = outcome.lost(DropCause::Handover).packets;
        assert_eq!(outcome.departures.len() as u64 + lost, 30);
        assert!((10..30).contains(&lost), "{direction:?}: {lost}");
        assert!(outcome.departures.iter().all(|(_, departure)| departure.due < at(5_200)), "{direction:?}");
        assert!(outcome.drops.iter().all(|lost| (at(5_000)..at(5_100)).contains(&lost.time)), "{direction:?}");
    }
}

#[test]
fn a_stuck_mobile_waits_for_its_user() {
    let mut config = config("tbf.stuck = 1.0\ndownlink = { queue = { packets = 2000 } }\nconditions.ci = \"60 dB\"");
    config.uplink.queue = None;
    let burst = packets(Direction::Down, &[0; 30], 1500);
    let command = |at: Instant, change: Change| Commanded { at, command: change.into() };
    // Nothing gets through for so long that the network gives up; then the radio is fine again,
    // which helps nothing.
    let outage = [
        command(at(5_000), Change::Bler(Probability::ALWAYS)),
        command(at(20_000), Change::CarrierToInterference("60 dB".parse().expect("decibels"))),
        command(at(100_000), Change::Handover { gap: Span::from_secs(10), buffer: Buffer::Keep }),
    ];
    let mut cell = Gprs::new(&config, 1, Seed::new(2), "cell").expect("sound");
    let script = Script { arrivals: &burst, commands: &outage };
    let departures = drive(&mut cell, script, Polling::OnTime, HORIZON).departures;
    let between = departures.iter().filter(|(_, departure)| departure.due > at(20_000) && departure.due < at(110_000));
    assert_eq!(between.count(), 0);
    assert!(departures.last().is_some_and(|(_, departure)| departure.due > at(110_000)), "it went on");
}

#[test]
fn setting_up_a_flow_takes_its_time() {
    // Up from idle: one of 12 frames, the network, the next CCCH block, the mobile; then two blocks
    // of data. Down while the mobile still listens: an assignment, its acknowledgement 13 frames
    // later, the network, data.
    let mut cell = lossless("uplink = { delay = \"0 s\" }\ndownlink = { delay = \"0 s\" }", 1);
    let mut arrivals = packets(Direction::Up, &[100], 40);
    arrivals.extend(packets(Direction::Down, &[2000, 2150], 40).into_iter().map(|arrival| {
        let packet = Packet { id: arrival.packet.id + 1, ..arrival.packet };
        Arrival { packet, ..arrival }
    }));
    let departures = drive(&mut cell, &arrivals, Polling::OnTime, HORIZON).departures;
    let delay = |index: usize| {
        let departure = departures[index].1;
        departure.due.since(arrivals[departure.packet.id as usize].at).as_secs_f64()
    };
    let (up, first_down, second_down) = (delay(0), delay(1), delay(2));
    assert!((0.120..0.320).contains(&up), "{up}");
    // On the common channel: a CCCH block, 200 ms, and the assignment on the packet data channel.
    assert!((0.400..0.650).contains(&first_down), "{first_down}");
    assert!(second_down < first_down, "{second_down}: it comes while the first is set up or carried");
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// From this time on, this share of the blocks of a direction is lost.
fn errors(direction: Direction, millis: u64, share: Probability) -> Commanded {
    let command = airpath_link::BearerCommand { direction: Some(direction), ..Change::Bler(share).into() };
    Commanded { at: at(millis), command }
}

fn packets(direction: Direction, times: &[u64], size: u32) -> Vec<Arrival> {
    let traffic = Traffic { packets: times.len(), sizes: (size, size), ..Traffic::default() };
    let arrivals = traffic.arrivals(1).into_iter().zip(times);
    arrivals.map(|(arrival, time)| Arrival { at: at(*time), direction, ..arrival }).collect()
}

#[test]
fn an_idle_cell_sleeps_and_keeps_nothing() {
    let traffic = Traffic { gap: Span::from_millis(700), users: 3, directions: &Direction::BOTH, ..Traffic::default() };
    for more in ["", "tbf = { delayed_release = \"2 s\", extended_uplink = \"2 s\" }"] {
        idle_sleeps(|| lossless(more, 3), &traffic.arrivals(1), HORIZON);
    }
}

#[test]
fn a_long_burst_goes_at_the_rate_of_its_timeslots() {
    let burst = packets(Direction::Down, &[0; 60], 1500);
    let departures = drive(&mut lossless("", 1), &burst, Polling::OnTime, HORIZON).departures;
    let time = departures[59].1.due.since(departures[0].1.due).as_secs_f64();
    // 59 packets of 1510 bytes and an indicator in three blocks of 30 bytes in 20 ms; some blocks
    // in a hundred are spent on control and on repetition when the window is full.
    let blocks = 59.0 * 1511.0 / 30.0;
    let expected = blocks / 3.0 * 0.020;
    assert!((1.0..1.04).contains(&(time / expected)), "{time} s instead of {expected} s");
}

#[test]
fn errors_cost_their_share() {
    let mut config = config("conditions.ci = \"60 dB\"");
    config.downlink.queue = None;
    let burst = packets(Direction::Down, &[0; 200], 1500);
    let time = |bler: f64| {
        let mut cell = Gprs::new(&config, 1, Seed::new(3), "cell").expect("sound");
        let command = airpath_link::BearerCommand {
            direction: Some(Direction::Down),
            ..airpath_link::Change::Bler(Probability::new(bler).expect("within range")).into()
        };
        let commands = [airpath_link::testing::Commanded { at: at(0), command }];
        let departures =
            drive(&mut cell, Script { arrivals: &burst, commands: &commands }, Polling::OnTime, HORIZON).departures;
        assert_eq!(departures.len(), 200);
        departures[199].1.due.since(departures[0].1.due).as_secs_f64()
    };
    let (none, some) = (time(0.0), time(0.1));
    // Selective repetition: each block is sent 1/(1 − p) times on average.
    let ratio = some / none * 0.9;
    assert!((0.98..1.05).contains(&ratio), "{ratio}");
}

#[test]
fn new_data_wait_for_the_next_block_of_a_continued_tbf() {
    // Packets of one block, seconds apart, in a TBF that lasts. The network learns of each with its
    // block.
    let times: Vec<u64> = (0..20).map(|index| 1_000 + 2_130 * index).collect();
    let arrivals = packets(Direction::Up, &times, 12);
    let delays = |interval: &str| -> Vec<f64> {
        let tbf = format!("tbf = {{ extended_uplink = \"20 s\", keep_interval = \"{interval}\" }}");
        let mut cell = lossless(&format!("{tbf}\nuplink = {{ delay = \"0 s\" }}"), 1);
        let departures = drive(&mut cell, &arrivals, Polling::OnTime, HORIZON).departures;
        assert_eq!(departures.len(), arrivals.len());
        // The first sets the TBF up.
        let late = departures.iter().zip(&arrivals).skip(1);
        late.map(|((_, departure), arrival)| departure.due.since(arrival.at).as_secs_f64()).collect()
    };
    for (interval, longest) in [("100 ms", 0.1), ("1 s", 1.0)] {
        let delays = delays(interval);
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        // Half an interval, the end of the block before and the block itself.
        assert!((mean - 0.030 - longest / 2.0).abs() < 0.12 * longest + 0.010, "{interval}: {delays:?}");
        assert!(delays.iter().all(|delay| *delay < longest + 0.061), "{interval}: {delays:?}");
    }
}

#[test]
fn packets_that_come_during_the_countdown_wait_for_another_tbf() {
    // A packet of 1500 bytes takes 51 blocks of CS-2. The countdown begins with BS_CV_MAX·NTS
    // blocks after the current one: 15 with one timeslot, 30 with two (TS 44.060 §9.3.1.1).
    let delay = |class: u8, blocks_left: f64| {
        let more = format!("mobile.multislot_class = {class}\nuplink.delay = \"0 s\"");
        let alone = packets(Direction::Up, &[0], 1500);
        let end = drive(&mut lossless(&more, 1), &alone, Polling::OnTime, HORIZON).departures[0].1.due;
        let slots = if class == 10 { 2.0 } else { 1.0 };
        let late = Span::from_secs_f64(end.since(Instant::ZERO).as_secs_f64() - 0.020 * blocks_left / slots);
        let mut arrivals = alone;
        let [second] = packets(Direction::Up, &[0], 12)[..] else { panic!("one") };
        let packet = Packet { id: 1, ..second.packet };
        arrivals.push(Arrival { packet, at: Instant::ZERO + late, ..second });
        let departures = drive(&mut lossless(&more, 1), &arrivals, Polling::OnTime, HORIZON).departures;
        departures[1].1.due.since(end).as_secs_f64()
    };
    // Accepted, it comes with the last block of the first packet or one after.
    for (class, accepted, refused) in [(4, 19.0, 13.0), (10, 34.0, 26.0)] {
        assert!(delay(class, accepted) < 0.045, "{class}: {}", delay(class, accepted));
        assert!(delay(class, refused) > 0.200, "{class}: {}", delay(class, refused));
    }
}

#[test]
fn an_egprs_window_has_steps_and_fits_its_timeslots() {
    let refused = |window: u32, class: u8| {
        let egprs = "downlink.scheme = \"mcs-9\"\nuplink.scheme = \"mcs-9\"";
        let more = format!("{egprs}\ncell.slots = 8\nrlc.window = {window}\nmobile.multislot_class = {class}");
        Gprs::new(&config(&more), 1, Seed::new(1), "cell").err().map(|error| {
            assert_eq!(error.field(), "rlc.window");
            error.to_string()
        })
    };
    // Classes 1, 2, 8 and 32 receive in 1, 2, 4 and 5 timeslots.
    for (class, max) in [(1, 192), (2, 256), (8, 512), (32, 640)] {
        assert_eq!((refused(64, class), refused(max, class)), (None, None), "{class}");
        assert_eq!(refused(max + 32, class), Some(format!("this must be 64 to {max}")));
        assert!(refused(max - 1, class).is_some_and(|error| error.contains("a multiple of 32")));
    }
    assert!(refused(32, 8).is_some());
}

#[test]
fn a_mobile_that_is_not_heard_begins_again_after_t3180() {
    // N3101max blocks without data end the scheduling. The mobile waits for 5 s (T3180) for
    // another, and then begins with random access.
    let burst = packets(Direction::Up, &[0; 20], 500);
    let script = [errors(Direction::Up, 2_000, Probability::ALWAYS), errors(Direction::Up, 2_500, Probability::NEVER)];
    let outcome = drive(&mut lossless("", 1), Script { arrivals: &burst, commands: &script }, Polling::OnTime, HORIZON);
    assert_eq!(outcome.departures.len(), 20, "none is lost");
    let times: Vec<f64> = outcome.departures.iter().map(|(_, it)| it.due.as_secs_f64()).collect();
    let gap = times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    // 10 blocks of 20 ms, 5 s after the last of them, the access, and the packet from its
    // beginning.
    assert!((5.4..6.2).contains(&gap), "{gap}");
}

#[test]
fn assignments_that_are_not_acknowledged_end_with_t3195() {
    // The network repeats an assignment N3105max = 8 times, and then sets up no TBF for 5 s.
    let arrivals = packets(Direction::Down, &[0, 2_000], 40);
    // The mobile is heard again after two polls, or after the last.
    let delay = |millis| {
        let heard_again = errors(Direction::Up, millis, Probability::NEVER);
        let commands = [errors(Direction::Up, 1_900, Probability::ALWAYS), heard_again];
        let mut cell = lossless("tbf = { t3192 = \"0 s\" }", 1);
        let script = Script { arrivals: &arrivals, commands: &commands };
        let departures = drive(&mut cell, script, Polling::OnTime, HORIZON).departures;
        assert_eq!(departures.len(), 2);
        departures[1].1.due.as_secs_f64() - 2.0
    };
    let (few, many) = (delay(2_700), delay(5_000));
    assert!((0.7..1.1).contains(&few), "{few}");
    // 8 polls some 140 ms apart, the time before the first, T3195, and the assignment once more.
    assert!((6.3..7.2).contains(&many), "{many}");
}

#[test]
fn a_missed_assignment_on_the_common_channel_is_found_out_by_a_poll() {
    // The mobile misses the assignment on the CCCH. The network polls on the packet data channel,
    // gets no answer, and repeats the assignment on the CCCH.
    let arrivals = packets(Direction::Down, &[0, 2_000], 40);
    let arrivals: Vec<Arrival> =
        (0..).zip(arrivals).map(|(id, it)| Arrival { packet: Packet { id, ..it.packet }, ..it }).collect();
    let arrives = |commands: &[Commanded]| {
        let mut cell = lossless("tbf = { t3192 = \"0 s\" }", 1);
        let script = Script { arrivals: &arrivals, commands };
        drive(&mut cell, script, Polling::OnTime, HORIZON).departures[1].1.due.as_secs_f64() - 2.0
    };
    let heard = arrives(&[]);
    let missed = arrives(&[
        errors(Direction::Down, 1_990, Probability::ALWAYS),
        errors(Direction::Down, 2_050, Probability::NEVER),
    ]);
    // Once more the assignment with 200 ms, and the poll with its answer.
    assert!((0.33..0.6).contains(&(missed - heard)), "{heard}, {missed}");
}

#[test]
fn a_lost_resource_request_is_repeated_after_t3168() {
    // Two-phase access: the Packet Resource Request is lost, and the mobile waits for the
    // assignment.
    let delay = |t3168: &str, lost: bool| {
        let more = format!("tbf = {{ access = \"two-phase\", t3168 = \"{t3168}\" }}");
        let commands = if lost {
            vec![errors(Direction::Up, 0, Probability::ALWAYS), errors(Direction::Up, 450, Probability::NEVER)]
        } else {
            vec![]
        };
        let burst = packets(Direction::Up, &[0], 40);
        let script = Script { arrivals: &burst, commands: &commands };
        drive(&mut lossless(&more, 1), script, Polling::OnTime, HORIZON).departures[0].1.due.as_secs_f64()
    };
    let heard = delay("1 s", false);
    for (t3168, seconds) in [("1 s", 1.0), ("3 s", 3.0)] {
        let later = delay(t3168, true) - heard;
        // The request, T3168, and the access once more, which takes up to 200 ms.
        assert!((seconds..seconds + 0.5).contains(&later), "{t3168}: {later} after {heard}");
    }
}

#[test]
fn an_access_burst_without_an_answer_is_repeated_after_its_slots() {
    // With a Tx-integer of 12, the next burst comes 217 to 229 frames of 60/13 ms later, and after
    // max retrans repetitions T3146 = 12 + 2·217 frames (TS 44.018 §3.5.2.1.2).
    let delay = |max_retrans: u32, deaf_for: u64| {
        let commands =
            [errors(Direction::Down, 0, Probability::ALWAYS), errors(Direction::Down, deaf_for, Probability::NEVER)];
        let burst = packets(Direction::Up, &[0], 40);
        let script = Script { arrivals: &burst, commands: &commands };
        let mut cell = lossless(&format!("tbf.max_retrans = {max_retrans}"), 1);
        drive(&mut cell, script, Polling::OnTime, HORIZON).departures[0].1.due.as_secs_f64()
    };
    let at_once = delay(7, 0);
    let later = |max_retrans, deaf_for| delay(max_retrans, deaf_for) - at_once;
    assert!((0.9..1.2).contains(&later(7, 500)), "{}", later(7, 500));
    assert!((1.9..2.3).contains(&later(7, 1_500)), "{}", later(7, 1_500));
    assert!((2.9..3.4).contains(&later(7, 2_500)), "{}", later(7, 2_500));
    // Of two bursts the second waits for T3146, 2.06 s.
    assert!((2.9..3.3).contains(&later(1, 1_500)), "{}", later(1, 1_500));
}

#[test]
fn a_paged_mobile_responds_with_an_uplink_block() {
    // The network pages an idle mobile, and sends no data before it has an LLC frame of the mobile.
    let burst = packets(Direction::Down, &[100], 40);
    let run = |commands: &[Commanded]| {
        let mut cell = lossless("", 1);
        let script = Script { arrivals: &burst, commands };
        let arrived = drive(&mut cell, script, Polling::OnTime, HORIZON).departures[0].1.due.as_secs_f64();
        let totals = cell.radio_totals(Direction::Up, UserId::new(0)).expect("a mobile");
        (arrived, totals.pdus)
    };
    let (at_once, pdus) = run(&[]);
    assert_eq!(pdus, 1, "the response is an RLC block");
    // While the response is lost, it is repeated. The access and the assignment need no uplink
    // block.
    let lost = (2..60).map(|block| 100 + 20 * block).find(|until| {
        let commands =
            [errors(Direction::Up, 0, Probability::ALWAYS), errors(Direction::Up, *until, Probability::NEVER)];
        run(&commands).1 > 1
    });
    let until = lost.expect("a response that is lost");
    let commands = [errors(Direction::Up, 0, Probability::ALWAYS), errors(Direction::Up, until, Probability::NEVER)];
    let (later, pdus) = run(&commands);
    assert_eq!(pdus, 2, "it is repeated once");
    assert!((0.015..0.070).contains(&(later - at_once)), "{later} instead of {at_once}");
}

#[test]
fn mobiles_leave_the_timeslots_that_calls_take() {
    // Four mobiles with one timeslot each. Calls last for the whole run.
    let more = "cell.slots = 4\nmobile.multislot_class = 1\ndownlink = { queue = { packets = 1000 } }\n\
                cell.voice = { channels = 4, interval = \"1 h\", duration = \"1 h\" }";
    let config = config(&format!("conditions.ci = \"60 dB\"\n{more}"));
    let mut served = 0;
    for seed in 1..=8 {
        let mut cell = Gprs::new(&config, 4, Seed::new(seed), "cell").expect("sound");
        let burst = (0..400u64).map(|id| {
            let arrival = packets(Direction::Down, &[0], 500)[0];
            Arrival { packet: Packet { id, user: UserId::new(id as u32 % 4), ..arrival.packet }, ..arrival }
        });
        let burst: Vec<Arrival> = burst.collect();
        let departures = drive(&mut cell, &burst, Polling::OnTime, at(20_000)).departures;
        let of = |user| departures.iter().filter(|(_, it)| it.packet.user == UserId::new(user)).count();
        let counts = [0, 1, 2, 3].map(of);
        let (least, most) = (counts.iter().min().expect("four"), counts.iter().max().expect("four"));
        // With two or three timeslots one of them has two mobiles.
        assert!(*most <= 2 * least + 4, "seed {seed}: {counts:?}");
        served += usize::from((1..380).contains(&counts.iter().sum::<usize>()));
    }
    assert!(served > 2, "calls take timeslots in some of the runs");
}

#[test]
fn calls_that_come_and_go_lose_nothing() {
    let more = "cell.slots = 4\ndownlink = { queue = { packets = 2000 } }\nuplink = { queue = { packets = 2000 } }\n\
                cell.voice = { channels = 4, interval = \"500 ms\", duration = \"1 s\" }";
    let mut cell = lossless(more, 2);
    let mut arrivals = packets(Direction::Down, &[0; 100], 1500);
    arrivals.extend(packets(Direction::Up, &[0; 30], 1500));
    let arrivals = (0..)
        .zip(arrivals)
        .map(|(id, it)| Arrival { packet: Packet { id, user: UserId::new(id as u32 % 2), ..it.packet }, ..it });
    let outcome = drive(&mut cell, &arrivals.collect::<Vec<_>>(), Polling::OnTime, HORIZON);
    assert_eq!((outcome.departures.len(), outcome.drops.len()), (130, 0));
}

#[test]
fn a_mobile_has_room_for_all_its_uplink_timeslots() {
    // Class 7 with 3 timeslots to send in receives in one. The second mobile must not begin where
    // only two timeslots follow.
    let more = "cell.slots = 3\nmobile = { multislot_class = 7, uplink_slots = 3 }\nuplink.queue = { packets = 100 }";
    let mut cell = lossless(more, 2);
    let first = packets(Direction::Down, &[0], 40)[0];
    let mut arrivals = vec![first];
    arrivals.extend(
        (1..=40)
            .zip(packets(Direction::Up, &[0; 40], 1500))
            .map(|(id, it)| Arrival { packet: Packet { id, user: UserId::new(1), ..it.packet }, ..it }),
    );
    let departures = drive(&mut cell, &arrivals, Polling::OnTime, HORIZON).departures;
    let up: Vec<f64> =
        departures.iter().filter(|(way, _)| *way == Direction::Up).map(|(_, it)| it.due.as_secs_f64()).collect();
    let expected = 39.0 * 1511.0 / 30.0 / 3.0 * 0.020;
    assert!((0.95..1.15).contains(&((up[39] - up[0]) / expected)), "{} instead of {expected}", up[39] - up[0]);
}
