//! A GPRS cell: the contracts of a bearer, and the times of its procedures.

use airpath_core::{Direction, Instant, Probability, Seed, Span};
use airpath_link::testing::{Arrival, Commands, Polling, Script, Traffic, contracts, drive, idle_sleeps, order_kept};
use airpath_radio::gprs::{Config, Gprs};
use proptest::prelude::*;

const HORIZON: Instant = Instant::from_nanos(300_000_000_000);

/// The preset with what differs from it, as TOML.
fn config(more: &str) -> Config {
    let mut preset: toml::Table = include_str!("../../../presets/gprs-3+1.toml").parse().expect("the preset");
    let mut bearer = preset.remove("bearer").and_then(|it| it.as_table().cloned()).expect("a table");
    bearer.remove("model");
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
        prop::sample::select(vec!["cs-1", "cs-2", "cs-3", "cs-4"]),
        prop::sample::select(vec!["0 s", "500 ms", "2 s"]),
        prop::sample::select(vec!["0 s", "500 ms", "2 s"]),
    )
        .prop_map(
            |((ci, slots, class, window, interval), (one_phase, frame, buffer), scheme, delayed, extended)| {
                let access = if one_phase { "one-phase" } else { "two-phase" };
                config(&format!(
                    r#"
                    cell.slots = {slots}
                    mobile.multislot_class = {class}
                    rlc = {{ window = {window}, poll_interval = {interval}, ack_interval = {interval}, base_station_buffer = "{buffer} B" }}
                    downlink = {{ scheme = "{scheme}", frame = "{frame} B" }}
                    uplink = {{ scheme = "{scheme}", frame = "{frame} B" }}
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
            order_kept(make, script, HORIZON);
        }
    }
}

fn lossless(more: &str, users: usize) -> Gprs {
    Gprs::new(&config(&format!("conditions.ci = \"60 dB\"\n{more}")), users, Seed::new(1), "cell").expect("sound")
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
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
    // 59 packets of 1510 bytes and an indicator in three blocks of 30 bytes in 20 ms; some blocks in a hundred are spent
    // on control and on repetition when the window is full.
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
