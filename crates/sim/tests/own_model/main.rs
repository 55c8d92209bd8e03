//! A bearer model of another crate: its file, and its registration in one line here. A scenario
//! with it is parsed and run, and verified by the contracts.

mod satellite;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{Direction, Instant, Seed, Sink, Span};
use airpath_link::testing::{Script, Traffic, contracts, idle_sleeps, order_kept};
use airpath_radio::Models;
use airpath_scenario::{Scenario, ScenarioError};
use airpath_sim::{Ended, Setup};

fn models() -> Models {
    Models::shipped().with::<satellite::Config>()
}

const SCENARIO: &str = r#"format = 1
[fixed]
delay = "10 ms"
[bearer]
model = "satellite"
rate = "2 Mbit/s"
orbit.delay = "250 ms"
uplink.rate = "256 kbit/s"
[[mobile]]
count = 2
[[flow]]
kind = "download"
bytes = "100 kB"
"#;

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::read_with(text, "s.toml", Path::new(""), &[], &models())
}

fn error(from: &str, to: &str) -> String {
    assert!(SCENARIO.contains(from), "{from}");
    read(&SCENARIO.replace(from, to)).expect_err("it is wrong").to_string()
}

#[test]
fn a_scenario_names_it_and_is_run() {
    let scenario = read(SCENARIO).expect("a model of the list");
    let resolved = scenario.to_toml();
    assert_eq!(read(&resolved).expect("it was written by us").to_toml(), resolved);
    let mut log = airpath_core::Memory::default();
    let setup = Setup::new(&scenario, Seed::new(1)).expect("a scenario that can be built");
    let mut simulation = setup.start(Some(&mut log as &mut dyn Sink), None);
    assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
    let (name, cell) = simulation.hops().nth(1).expect("the bearer follows the fixed network");
    assert_eq!(name, "cell");
    assert!(cell.counters(Direction::Down).delivered.bytes >= 200_000);
}

#[test]
fn its_keys_are_held_to_what_it_declares() {
    assert!(Scenario::read(SCENARIO, "s.toml", Path::new(""), &[]).is_err(), "airpath itself has no such model");
    let wrong = error("orbit.delay", "obrit.delay");
    assert!(wrong.starts_with("s.toml:7: bearer.obrit: unknown key; did you mean `orbit`?"), "{wrong}");
    let wrong = error("\nrate", "\nrtae");
    assert!(wrong.starts_with("s.toml:6: bearer.rtae: unknown key; did you mean `rate`?"), "{wrong}");
    let wrong = error("250 ms", "0 ms");
    assert!(wrong.starts_with("s.toml:7: bearer.orbit.delay: this must be above zero"), "{wrong}");
    let wrong = error("\"satellite\"", "\"sputnik\"");
    assert!(wrong.ends_with("there is no bearer model `sputnik`; it is called `satellite` now"), "{wrong}");
}

#[test]
fn it_keeps_the_contracts() {
    let horizon = Instant::ZERO + Span::from_secs(600);
    let arrivals = Traffic {
        packets: 150,
        gap: Span::from_millis(20),
        users: 2,
        directions: &Direction::BOTH,
        ..Traffic::default()
    }
    .arrivals(3);
    let scenario = read(SCENARIO).expect("a model of the list");
    let make = || scenario.build_cells(Seed::new(5)).expect("sound parameters").bearers.remove(0).1;
    let script = Script { arrivals: &arrivals, commands: &[] };
    contracts(make, script, horizon);
    order_kept(make, script, horizon);
    idle_sleeps(make, &arrivals[..], horizon);
}
