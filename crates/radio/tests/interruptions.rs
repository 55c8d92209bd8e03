//! Handovers and outages of a cell: what they delay, and what they may not lose.

use airpath_core::{Direction, Seed, Span};
use airpath_link::BearerCommand;
use airpath_link::command::Change;
use airpath_radio::{lte, nr};

use crate::common::cells::{Outcome, Pushed, at_millis, config, run, run_bearer};

/// A road along cells, which all have another interferer.
const ROAD: &str = "conditions.cells = { count = 8, spacing = \"500 m\", setback = \"50 m\", antenna = \"30 m\" }
    conditions.shadowing = { deviation = \"4 dB\", correlation_distance = \"37 m\" }
    conditions.movement = { speed = \"200 km/h\", path = \"to-and-fro\", from = \"0 m\", to = \"3500 m\" }\n";
const PROMOTION: f64 = 0.26;

fn every(millis: f64, from: f64, to: f64) -> Vec<Pushed> {
    let count = ((to - from) * 1e3 / millis) as u32;
    (0..count).map(|n| (at_millis(from * 1e3 + millis * f64::from(n)), Direction::Up, 0, 100)).collect()
}

/// The longest delay of packets in seconds; all have come.
fn longest(outcome: &Outcome, packets: &[Pushed]) -> f64 {
    assert_eq!((outcome.departures.len(), outcome.dropped.len()), (packets.len(), 0));
    outcome.delays(packets).into_iter().fold(0.0, f64::max) / 1e3
}

#[test]
fn the_uplink_goes_on_after_handovers_that_the_base_station_finds() {
    let packets = every(20.0, 0.0, 60.0);
    let lte: lte::Config = config("lte-10mhz", ROAD, &["conditions.ci"]);
    let nr: nr::Config = config("nr-n28-fdd-20mhz", ROAD, &["conditions.ci"]);
    let outcomes = [run(&lte, 1, &packets, Span::from_secs(62)), run(&nr, 1, &packets, Span::from_secs(62))];
    for outcome in outcomes {
        let longest = longest(&outcome, &packets);
        assert!((0.03..2.0).contains(&longest), "{longest} s");
    }
}

#[test]
fn no_connection_is_set_up_in_an_outage() {
    let config: lte::Config = config("lte-10mhz", "conditions.ci = \"20 dB\"", &[]);
    let outage = |at: f64| [(at_millis(at * 1e3), BearerCommand::from(Change::Outage(Span::from_secs(5))))];
    let departs = |direction, at: f64| {
        let bearer = lte::Lte::new(&config, 1, Seed::new(3), "cell").expect("sound parameters");
        let packets = [(at_millis(2000.0), direction, 0, 100)];
        let outcome = run_bearer(bearer, &packets, &outage(at), Span::from_secs(20));
        outcome.departures[0].1.due.as_secs_f64()
    };
    // The set-up begins after it.
    let up = departs(Direction::Up, 1.0);
    assert!((6.0 + PROMOTION..6.0 + PROMOTION + 0.05).contains(&up), "{up}");
    let down = departs(Direction::Down, 1.0);
    assert!((6.0 + PROMOTION..6.0 + PROMOTION + 1.28 + 0.05).contains(&down), "{down}");
    // 100 ms of the set-up are before it, 160 ms after it.
    let up = departs(Direction::Up, 2.1);
    assert!((7.1 + PROMOTION - 0.1..7.1 + PROMOTION - 0.05).contains(&up), "{up}");
    // The mobile is paged in a cycle after it.
    let down = departs(Direction::Down, 2.0);
    assert!((7.0 + PROMOTION..7.0 + PROMOTION + 1.28 + 0.05).contains(&down), "{down}");
}

#[test]
fn blocks_of_the_unacknowledged_mode_wait_for_the_end_of_an_outage() {
    let unacknowledged = "conditions.ci = \"20 dB\"\nuplink.bler = 0.3\ndownlink.bler = 0.3\n\
                          rlc = { mode = \"unacknowledged\", t_reordering = \"100 ms\" }";
    let config: lte::Config = config("lte-10mhz", unacknowledged, &["rlc", "rrc", "drx", "pdcp"]);
    let packets = every(20.0, 0.0, 20.0);
    let outage = |n: u32| (at_millis(311.0 * f64::from(n)), Change::Outage(Span::from_millis(30)).into());
    let run = |outages: u32| {
        let bearer = lte::Lte::new(&config, 1, Seed::new(3), "cell").expect("sound parameters");
        let commands: Vec<_> = (1..=outages).map(outage).collect();
        run_bearer(bearer, &packets, &commands, Span::from_secs(21)).dropped.len()
    };
    assert_eq!((run(0), run(60)), (0, 0));
}

#[test]
fn the_uplink_reaches_as_far_as_the_downlink() {
    let rate = |ci: f64| {
        let config: nr::Config = config("nr-n78-100mhz-sa", &format!("conditions.ci = \"{ci} dB\""), &["rrc", "drx"]);
        let packets = vec![(at_millis(100.0), Direction::Up, 0, 1500); 20];
        let outcome = run(&config, 1, &packets, Span::from_secs(60));
        assert_eq!(outcome.departures.len(), packets.len(), "{ci} dB");
        8.0 * 1500.0 * 20.0 / (outcome.departures[19].1.due.as_secs_f64() - 0.1)
    };
    // In the last three it is short of power: half of it carries about half as much, and less where
    // headers fill the blocks.
    let rates = [-2.0, -4.0, -5.5, -7.0].map(rate);
    for pair in rates.windows(2) {
        assert!((0.02..0.95).contains(&(pair[1] / pair[0])), "{rates:?}");
    }
    assert!(rates[3] > 10_000.0, "{rates:?}");
}
