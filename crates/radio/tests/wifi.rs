//! The Wi-Fi bearer: times of exchanges, rates, shares of the channel, retransmissions, coverage.

use crate::common;
use crate::common::contracts::{keeps_contracts, traffic};
use crate::common::{packet, saturate, saturate_towards};
use airpath_core::{ComponentId, Context, Direction, Dropped, Event, Instant, Memory, RadioEvent, Seed, Span, UserId};
use airpath_link::command::{Buffer, Change};
use airpath_link::{Bearer, BearerCommand};
use airpath_radio::wifi::{Config, Wifi};
use proptest::prelude::*;

/// The preset with what `more` has, without errors, delay and bounds of queues.
fn config(more: &str) -> Config {
    try_config(more).expect("parameters of the right types")
}

fn try_config(more: &str) -> Result<Config, toml::de::Error> {
    let path = format!("{}/../../presets/wifi-n.toml", env!("CARGO_MANIFEST_DIR"));
    let mut preset: toml::Table = std::fs::read_to_string(path).expect("the preset").parse().expect("TOML");
    let mut bearer = match preset.remove("bearer") {
        Some(toml::Value::Table(bearer)) => bearer,
        _ => panic!("a preset has a bearer"),
    };
    bearer.remove("model");
    for direction in ["downlink", "uplink"] {
        bearer[direction].as_table_mut().expect("a table").remove("queue");
    }
    let plain = "delay = \"0 ms\"\ndownlink.bler = 0.0\nuplink.bler = 0.0";
    common::overlay(&mut bearer, &plain.parse().expect("TOML"));
    common::overlay(&mut bearer, &more.parse().expect("TOML"));
    bearer.try_into()
}

fn wifi(more: &str, users: usize) -> Wifi {
    Wifi::new(&config(more), users, Seed::new(1), "cell").expect("sound parameters")
}

const fn at_micros(micros: u64) -> Instant {
    Instant::from_nanos(1_000 * micros)
}

struct Outcome {
    departures: Vec<(Instant, Direction, u64)>,
    dropped: Vec<Dropped>,
    radio: Vec<(Instant, RadioEvent)>,
}

/// Pushes packets (time in µs, direction, user, size), gives a command, and runs to the end.
fn run(bearer: &mut Wifi, packets: &[(u64, Direction, u16, u32)], command: Option<(u64, BearerCommand)>) -> Outcome {
    let (mut log, mut dropped, mut departures) = (Memory::default(), Vec::new(), Vec::new());
    let mut cx = Context::new(Some(&mut log), &mut dropped, ComponentId(0));
    let mut command = command;
    let mut pop = |bearer: &mut Wifi, now, cx: &mut Context<'_>| {
        while let Some((direction, departure)) = bearer.pop(now, cx) {
            departures.push((departure.due, direction, departure.packet.id));
        }
    };
    for (id, (at, direction, user, size)) in (0..).zip(packets) {
        if let Some((time, command)) = command.take_if(|(time, _)| *time <= *at) {
            bearer.command(at_micros(time), &command, &mut cx).expect("it can");
        }
        pop(bearer, at_micros(*at), &mut cx);
        bearer.push(at_micros(*at), *direction, packet(id, *user, *size), &mut cx);
    }
    if let Some((time, command)) = command {
        pop(bearer, at_micros(time), &mut cx);
        bearer.command(at_micros(time), &command, &mut cx).expect("it can");
    }
    pop(bearer, Instant::ZERO + Span::from_secs(100), &mut cx);
    assert_eq!(bearer.next_wakeup(), None, "an idle channel sleeps");
    let radio = log.events.iter().filter_map(|(at, _, event)| match event {
        Event::Radio(event) => Some((*at, *event)),
        _ => None,
    });
    Outcome { departures, radio: radio.collect(), dropped }
}

#[test]
fn exchanges_take_the_times_of_the_standard() {
    // 1,500 bytes are 1,560 in an A-MPDU: delimiter 4, QoS data header 26, CCMP 16, LLC and SNAP 8,
    // FCS 4, padding 2. With two streams at 130 Mbit/s a symbol of 4 µs has 520 bits, so with 22
    // bits of service field and tail they take 25 symbols, after a preamble of 40 µs: 140 µs.
    let one = |at| (at, Direction::Down, 0, 1500);
    let Outcome { departures, radio, .. } = run(&mut wifi("", 1), &[one(1000), one(1000), one(1000)], None);
    // The channel is idle: the first packet goes at once, alone.
    assert_eq!(departures[0].0, at_micros(1140));
    // SIFS 16 µs, Block Ack 32 µs; AIFS 43 µs and 7.5 slots of 9 µs; the other two together take 49
    // symbols.
    assert_eq!(radio[1].0, Instant::from_nanos(1_000 * (1140 + 16 + 32 + 43) + 67_500));
    assert_eq!(departures[1].0, radio[1].0 + Span::from_micros(40 + 4 * 49));
    assert_eq!((departures[2].0, radio.len()), (departures[1].0, 2));
    // A short guard interval: 25 symbols of 3.6 µs are 90 µs, of whole long symbols 92 µs.
    let short = run(&mut wifi("channel.guard_interval = \"400 ns\"", 1), &[one(1000)], None);
    assert_eq!(short.departures[0].0, at_micros(1000 + 40 + 92));
}

/// Mbit/s of IP packets of user 0 to `users` − 1.
fn rates(bearer: &mut Wifi, direction: Direction, users: u16) -> Vec<f64> {
    let saturated = saturate_towards(bearer, direction, users, 200, Span::from_secs(16));
    saturated.bytes.iter().map(|bytes| *bytes as f64 * 8.0 / 16e6).collect()
}

#[test]
fn aggregation_gives_most_of_the_data_rate_and_a_frame_at_a_time_little() {
    // 32 frames: 49,920 bytes, 769 symbols, 3,116 µs; with 158.5 µs beside them.
    let rate = rates(&mut wifi("", 1), Direction::Down, 1)[0];
    let expected = 32.0 * 12_000.0 / (40.0 + 4.0 * 769.0 + 48.0 + 43.0 + 67.5);
    assert!((rate / expected - 1.0).abs() < 0.005, "{rate} of {expected}");
    let rate = rates(&mut wifi("aggregation.frames = 1", 1), Direction::Down, 1)[0];
    let expected = 12_000.0 / (140.0 + 48.0 + 43.0 + 67.5);
    assert!((rate / expected - 1.0).abs() < 0.005, "{rate} of {expected}");
    // 64 frames would take longer than an A-MPDU of 802.11n may be in bytes.
    let most = saturate(&mut wifi("aggregation = { frames = 64, time = \"10 ms\" }", 1), 1, Span::from_secs(1));
    assert_eq!(most.radio.iter().map(|(_, event)| event.pdus).max(), Some(42));
}

#[test]
fn stations_share_the_channel_by_exchanges() {
    let alone = rates(&mut wifi("", 1), Direction::Down, 1)[0];
    // Three other stations with exchanges as long as those of the access point: a quarter is left.
    let others = "others = { stations = 3, airtime = \"3164 us\" }";
    let shared = rates(&mut wifi(others, 1), Direction::Down, 1)[0];
    assert!((0.235..0.27).contains(&(shared / alone)), "{shared} of {alone}");
    // The access point has one share for all mobiles, each mobile one of its own.
    let down = rates(&mut wifi(others, 3), Direction::Down, 3);
    let up = rates(&mut wifi(others, 3), Direction::Up, 3);
    assert!((down.iter().sum::<f64>() / shared - 1.0).abs() < 0.1, "{down:?}");
    assert!(down.iter().all(|rate| (rate / down[0] - 1.0).abs() < 0.05), "{down:?}");
    assert!((up.iter().sum::<f64>() / alone - 0.5).abs() < 0.05, "{up:?}");
}

#[test]
fn frames_in_error_are_sent_again_and_hold_up_those_after_them() {
    let lossy = saturate(&mut wifi("downlink.bler = 0.3", 1), 1, Span::from_secs(2));
    let sum = |part: fn(&RadioEvent) -> u16| lossy.radio.iter().map(|(_, event)| f64::from(part(event))).sum::<f64>();
    let errored = sum(|event| event.errored) / sum(|event| event.pdus);
    assert!((errored - 0.3).abs() < 0.01, "{errored}");
    assert!((sum(|event| event.repeated) / sum(|event| event.pdus) - 0.3).abs() < 0.01);
    let ids: Vec<u64> = lossy.departures.iter().map(|departure| departure.packet.id).collect();
    assert!(ids.is_sorted(), "the receiver delivers in order");
    // 0.3 to the power of 7 is one frame in 4,573.
    let share = lossy.dropped.len() as f64 / ids.len() as f64;
    assert!((0.00005..0.001).contains(&share), "{share}");
    let never = run(&mut wifi("downlink.bler = 1.0", 1), &[(0, Direction::Down, 0, 100)], None);
    assert_eq!((never.radio.len(), never.dropped.len(), never.departures.len()), (7, 1, 0));
}

#[test]
fn after_an_outage_the_station_associates_first() {
    let outage = BearerCommand::from(Change::Outage(Span::from_millis(500)));
    let packets = [(0, Direction::Down, 0, 100), (400_000, Direction::Up, 0, 100)];
    let Outcome { departures, .. } = run(&mut wifi("", 1), &packets, Some((100_000, outage)));
    // 100 ms, 500 ms of outage, 2 s of association.
    assert_eq!(departures.len(), 2);
    assert!((2_600..2_601).contains(&(departures[1].0.as_nanos() / 1_000_000)), "{:?}", departures[1]);
    let roam = Change::Handover { gap: Span::from_millis(50), buffer: Buffer::Discard };
    let packets = [(0, Direction::Down, 0, 1500), (0, Direction::Down, 0, 1500), (90, Direction::Down, 0, 1500)];
    let roamed = run(&mut wifi("", 1), &packets, Some((100, roam.into())));
    assert_eq!((roamed.departures.len(), roamed.dropped.len()), (0, 3), "nothing had arrived");
}

#[test]
fn wrong_parameters_are_refused() {
    let refused = [
        ("channel.bandwidth = \"80 MHz\"", "channel.bandwidth"),
        ("channel.streams = 5", "channel.streams"),
        ("channel.mcs = 8", "channel.mcs"),
        ("channel = { standard = \"802.11ac\", mcs = 9 }", "channel.mcs"),
        ("channel.max_transmissions = 0", "channel.max_transmissions"),
        ("aggregation.frames = 65", "aggregation.frames"),
        ("aggregation.time = \"0 ms\"", "aggregation.time"),
        ("aggregation.time = \"11 ms\"", "aggregation.time"),
        ("channel.standard = \"802.11ac\"\naggregation.time = \"5485 us\"", "aggregation.time"),
        ("others = { stations = 0, airtime = \"1 ms\" }", "others.stations"),
        ("others = { stations = 1, airtime = \"1 s\" }", "others.airtime"),
        ("association = \"2 h\"", "association"),
        ("delay = \"2 h\"", "delay"),
    ];
    for (more, key) in refused {
        use airpath_radio::ModelError;
        let error = Wifi::new(&config(more), 1, Seed::new(1), "cell").expect_err(more);
        assert_eq!(error.field(), key, "{more}");
    }
    assert!(try_config("channel.standard = \"802.11ax\"").is_err());
    // The longest PPDU of each standard.
    wifi("aggregation.time = \"10 ms\"", 1);
    wifi("channel.standard = \"802.11ac\"\naggregation.time = \"5484 us\"", 1);
    let mut bearer = wifi("", 1);
    let mut lost = Vec::new();
    let mut cx = Context::new(None, &mut lost, ComponentId(0));
    let rate: BearerCommand = toml::from_str("rate = \"1 Mbit/s\"").expect("a command");
    assert!(bearer.command(Instant::ZERO, &rate, &mut cx).is_err());
    let unknown = BearerCommand { user: Some(UserId::new(1)), ..Change::Outage(Span::from_secs(1)).into() };
    assert!(bearer.command(Instant::ZERO, &unknown, &mut cx).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn channels_keep_the_contracts(
        frames in 1u32..65, bler in prop::sample::select(vec![0.0, 0.1, 0.6]), others in 0u32..3,
        queue in prop::sample::select(vec!["packets = 5", "discipline = \"codel\"", "discipline = \"fq-codel\""]),
        users in 1u16..4, gap in 20u64..3_000, seed: u64,
    ) {
        let others = if others == 0 { String::new() } else {
            format!("others = {{ stations = {others}, airtime = \"2 ms\" }}")
        };
        let more = format!(
            "delay = \"3 ms\"\nassociation = \"30 ms\"\naggregation.frames = {frames}\ndownlink.bler = {bler}\n\
             uplink.bler = {bler}\nchannel.max_transmissions = 3\ndownlink.queue = {{ {queue} }}\n{others}"
        );
        let config = config(&more);
        let make = || Wifi::new(&config, usize::from(users), Seed::new(5), "cell").expect("sound parameters");
        let in_order = !queue.contains("fq");
        keeps_contracts(make, &traffic(150, users, Span::from_micros(gap)), seed, Span::from_secs(100_000), in_order);
    }
}
