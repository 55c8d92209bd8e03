//! Radio link failure: what T310 and T311 do to the connection of a mobile without coverage.

use crate::common::cells::{Outcome, Pushed, at_millis, config, run, run_bearer};
use airpath_core::{Aspect, Direction, DropCause, Instant, LteRrcState, ModeState, Seed, Span, StateValue};
use airpath_link::BearerCommand;
use airpath_link::command::Change;
use airpath_radio::lte;

/// The mobile leaves a cell and comes back.
const EDGE: &str = "conditions.network.power_over_noise = \"130 dB\"
    conditions.cells = { count = 1, spacing = \"1 km\", setback = \"100 m\", antenna = \"30 m\" }
    conditions.shadowing = { deviation = \"0 dB\", correlation_distance = \"20 m\" }
    conditions.network.lowest = \"3 dB\"
    uplink.below_downlink = \"0 dB\"
    conditions.movement.speed = \"200 km/h\"
    conditions.movement.path = \"to-and-fro\"
    conditions.movement.start = \"0 m\"
    conditions.movement.from = \"0 m\"\n";
/// How far it goes.
const FAR: &str = "conditions.movement.to = \"1.2 km\"\n";
const NEAR: &str = "conditions.movement.to = \"600 m\"\n";
const PROMOTION: f64 = 0.26;
const RE_ESTABLISHMENT: f64 = 0.2;
const SEARCH: f64 = 0.2;

/// A run with an uplink packet each half second, numbered from 0.
struct Drive {
    packets: Vec<Pushed>,
    outcome: Outcome,
    /// When coverage was lost first, and came back, in seconds.
    lost: f64,
    back: f64,
}

impl Drive {
    fn new(route: &str, timers: &str) -> Self {
        let packets: Vec<_> = (0..80).map(|n| (at_millis(500.0 * f64::from(n)), Direction::Up, 0, 200)).collect();
        let drive = |more: &str, less: &[&str]| {
            let config: lte::Config = config("lte-10mhz", &format!("{EDGE}{route}{more}"), less);
            run(&config, 1, &packets, Span::from_secs(80))
        };
        // Without a connection that can be lost, the modes are those of coverage.
        let always = drive("", &["conditions.ci", "rrc"]);
        let lost = first(&always, 0.0, Aspect::Mode, ModeState::NoCoverage.into()).expect("the edge is crossed");
        let back = first(&always, lost, Aspect::Mode, ModeState::Connected.into()).expect("coverage comes back");
        let outcome = drive(timers, &["conditions.ci"]);
        assert_eq!(outcome.departures.len() + outcome.dropped.len(), packets.len());
        Self { packets, outcome, lost, back }
    }

    /// When an aspect had a value from `from` on, in seconds.
    fn first(&self, from: f64, aspect: Aspect, value: StateValue) -> Option<f64> {
        first(&self.outcome, from, aspect, value)
    }

    /// The first departure from `from` on.
    fn next_departure(&self, from: f64) -> f64 {
        let times = self.outcome.departures.iter().map(|(_, departure)| departure.due.as_secs_f64());
        times.filter(|at| *at >= from).fold(f64::MAX, f64::min)
    }

    fn pushed(&self, id: u64) -> Instant {
        self.packets[id as usize].0
    }
}

/// When an aspect had a value first from `from` on, in seconds.
fn first(outcome: &Outcome, from: f64, aspect: Aspect, value: StateValue) -> Option<f64> {
    let mut times = outcome.states.iter().map(|(at, state)| (at.as_secs_f64(), state));
    times.find(|(at, state)| *at >= from && state.aspect == aspect && state.value == value).map(|(at, _)| at)
}

#[test]
fn a_link_that_comes_back_before_the_end_of_t310_is_kept() {
    let drive = Drive::new(NEAR, "rrc.t310 = \"6 s\"\n");
    assert!((2.0..6.2).contains(&(drive.back - drive.lost)), "{} {}", drive.lost, drive.back);
    assert_eq!(drive.first(0.0, Aspect::Mode, ModeState::ReEstablishment.into()), None);
    assert_eq!(drive.first(drive.lost, Aspect::Mode, ModeState::Connected.into()), Some(drive.back));
    assert_eq!(drive.outcome.dropped.len(), 0);
    assert!(drive.next_departure(drive.back) < drive.back + SEARCH + 0.05);
}

#[test]
fn a_failed_link_is_established_again_and_the_acknowledged_mode_loses_nothing() {
    let drive = Drive::new(FAR, "rrc.t310 = \"1 s\"\nrrc.t311 = \"30 s\"\n");
    assert!((6.0..30.0).contains(&(drive.back - drive.lost)), "{} {}", drive.lost, drive.back);
    let failed = drive.first(0.0, Aspect::Mode, ModeState::ReEstablishment.into()).expect("it fails");
    assert!((failed - drive.lost - 1.2).abs() < 1e-6, "{} {failed}", drive.lost);
    assert_eq!(drive.outcome.dropped.len(), 0);
    let next = drive.next_departure(failed) - drive.back;
    assert!((RE_ESTABLISHMENT - 1e-6..RE_ESTABLISHMENT + 0.1).contains(&next), "{next}");
    assert_eq!(drive.first(0.0, Aspect::Rrc, LteRrcState::Idle.into()), None);
}

#[test]
fn at_the_end_of_t311_the_connection_is_lost_with_what_waits() {
    let drive = Drive::new(FAR, "rrc.t310 = \"1 s\"\nrrc.t311 = \"1 s\"\n");
    let idle = drive.first(0.0, Aspect::Rrc, LteRrcState::Idle.into()).expect("it is lost");
    assert!((idle - drive.lost - 2.2).abs() < 1e-6, "{} {idle}", drive.lost);
    // What came between the loss of coverage and that of the connection.
    let dropped = &drive.outcome.dropped;
    assert!((4..=6).contains(&dropped.len()), "{}", dropped.len());
    for drop in dropped {
        assert_eq!((drop.cause, drop.time.as_secs_f64()), (DropCause::AttemptsExhausted, idle));
        assert!((drive.lost - 0.5..idle).contains(&drive.pushed(drop.packet.id).as_secs_f64()));
    }
    // What came later waits for coverage, and for the set-up of a connection.
    let connected = drive.first(idle, Aspect::Rrc, LteRrcState::Connected.into()).expect("it connects again");
    let set_up = connected - drive.back;
    assert!((PROMOTION - 1e-6..PROMOTION + SEARCH + 0.01).contains(&set_up), "{set_up}");
    let next = drive.next_departure(idle) - connected;
    assert!((0.0..0.1).contains(&next), "{next}");
}

#[test]
fn a_command_brings_an_idle_mobile_back_into_coverage() {
    let more = format!("{EDGE}{FAR}rrc.t310 = \"1 s\"\nrrc.t311 = \"1 s\"\n");
    let config: lte::Config = config("lte-10mhz", &more, &["conditions.ci"]);
    let packets: Vec<_> = (0..30).map(|n| (at_millis(500.0 * f64::from(n)), Direction::Up, 0, 200)).collect();
    let bearer = lte::Lte::new(&config, 1, Seed::new(3), "cell").expect("sound parameters");
    let change = Change::CarrierToInterference("20 dB".parse().expect("a ratio"));
    let commands = [(at_millis(16_000.0), BearerCommand::from(change))];
    let outcome = run_bearer(bearer, &packets, &commands, Span::from_secs(20));
    assert_eq!(outcome.departures.len() + outcome.dropped.len(), packets.len());
    let last = outcome.departures.last().expect("a packet").1.due.as_secs_f64();
    assert!((16.0 + PROMOTION..16.5).contains(&last), "{last}");
}

#[test]
fn coverage_is_known_at_the_beginning_and_after_a_long_silence() {
    let departures = |start: &str, times: &[f64]| {
        let edge = EDGE.replace("start = \"0 m\"", &format!("start = \"{start}\""));
        let more = format!("{edge}{FAR}rrc.t310 = \"1 s\"\nrrc.t311 = \"1 s\"\n");
        let config: lte::Config = config("lte-10mhz", &more, &["conditions.ci"]);
        let packets: Vec<_> = times.iter().map(|at| (at_millis(at * 1e3), Direction::Up, 0, 200)).collect();
        let outcome = run(&config, 1, &packets, Span::from_secs(120));
        outcome.departures.iter().map(|(_, departure)| departure.due.as_secs_f64()).collect::<Vec<_>>()
    };
    // It begins 1.2 km away, and is in coverage after about 14 s.
    let [first] = departures("1.2 km", &[0.0])[..] else { panic!("one packet") };
    assert!((13.0..16.0).contains(&first), "{first}");
    // A packet finds the loss; the next one comes two ways to and fro later, where the first was.
    let left = departures("0 m", &[5.0, 11.0, 91.4]);
    assert!(left.len() == 2 && (91.4 + PROMOTION..91.9).contains(&left[1]), "{left:?}");
}
