//! Mobiles with two bearers: flows on each, steering between them, migration of QUIC.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{AppStep, Direction, Event, Instant, Memory, PacketStep, Seed};
use airpath_scenario::Scenario;
use airpath_sim::{Ended, Setup, rows};

/// Two links with 8 Mbit/s; the first one has an outage of 20 s.
const TWO: &str = r#"
format = 1
duration = "120 s"
[bearer]
model = "wired"
downlink = { rate = "8 Mbit/s", delay = "20 ms", queue = { bytes = "100 kB" } }
uplink = { rate = "8 Mbit/s", delay = "20 ms" }
[second_bearer]
model = "wired"
downlink = { rate = "8 Mbit/s", delay = "40 ms", queue = { bytes = "100 kB" } }
uplink = { rate = "8 Mbit/s", delay = "40 ms" }
"#;
const OUTAGE: &str = "[[change]]\nat = \"2 s\"\noutage = \"20 s\"\n";

fn read(more: &str) -> Result<Scenario, String> {
    read_with(more, &[])
}

fn read_with(more: &str, sets: &[(String, String)]) -> Result<Scenario, String> {
    Scenario::read(&format!("{TWO}{more}"), "two.toml", Path::new(""), sets).map_err(|error| error.to_string())
}

struct Run {
    memory: Memory,
    rows: airpath_result::Rows,
    names: Vec<String>,
}

fn run(more: &str) -> Run {
    run_scenario(&read(more).unwrap_or_else(|error| panic!("{error}")))
}

fn run_scenario(scenario: &Scenario) -> Run {
    let mut memory = Memory::default();
    let setup = Setup::new(scenario, Seed::new(scenario.seed)).expect("it can be built");
    let names = setup.names();
    let mut simulation = setup.start(Some(&mut memory), None);
    assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
    let rows = rows::of(&simulation, 0, Ended::Finished, &scenario.user_names());
    drop(simulation);
    Run { memory, rows, names }
}

impl Run {
    /// The interfaces that carried packets of a flow in a direction.
    fn users(&self, flow: u32, direction: Direction) -> BTreeSet<u32> {
        let packets = self.memory.events.iter().filter_map(|(.., event)| match event {
            Event::Packet(event) if event.step == PacketStep::Received => Some(event),
            _ => None,
        });
        let own = packets.filter(|event| event.packet.flow.0 == flow && event.direction == direction);
        own.map(|event| event.packet.user.number()).collect()
    }

    /// When a flow was finished, in seconds.
    fn finished(&self, flow: u32) -> f64 {
        let finished = self.memory.events.iter().find_map(|(at, _, event)| match event {
            Event::App(event) if event.flow.0 == flow && event.step == AppStep::Finished => Some(*at),
            _ => None,
        });
        finished.expect("it finished").since(Instant::ZERO).as_secs_f64()
    }
}

const DOWNLOAD: &str = "[[flow]]\nkind = \"download\"\nbytes = \"5 MB\"\n";

#[test]
fn flows_name_their_bearer() {
    let second = format!("{DOWNLOAD}bearer = \"second\"\n");
    let run = run(&format!("{DOWNLOAD}{second}"));
    assert_eq!(run.users(0, Direction::Down), BTreeSet::from([0]));
    assert_eq!(run.users(1, Direction::Down), BTreeSet::from([1]));
    let mobiles: Vec<&str> = run.rows.flows.iter().map(|row| row.mobile.as_str()).collect();
    assert_eq!(mobiles, ["mobile", "mobile-second"]);
    assert_eq!(run.names, ["fixed", "bearer-mobile", "second-bearer-mobile", "server", "mobile", "mobile-second"]);
    // Each has the rate of its own bearer: 5 MB are 5 s.
    assert!(run.finished(0) < 6.5 && run.finished(1) < 6.5, "{} {}", run.finished(0), run.finished(1));
    // A resolved scenario gives the same run.
    let resolved = read(&format!("{DOWNLOAD}{second}")).expect("it is sound").to_toml();
    let again = Scenario::read(&resolved, "resolved.toml", Path::new(""), &[]).expect("it is sound");
    assert_eq!(again.to_toml(), resolved);
}

#[test]
fn cells_have_the_interfaces_of_all_mobiles() {
    let text = "format = 1\n[bearer]\npreset = \"lte-20mhz\"\n[second_bearer]\npreset = \"wifi-n\"\n\
                [[mobile]]\nname = \"phone\"\ncount = 3\n[[flow]]\nkind = \"download\"\nbytes = \"100 kB\"\n\
                bearer = \"second\"\n[[change]]\nat = \"1 s\"\nto = \"second-bearer\"\nmobile = \"phone-1\"\noutage = \"1 s\"";
    let scenario = Scenario::read(text, "two.toml", Path::new(""), &[]).expect("it is sound");
    let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
    assert_eq!(simulation.run(&AtomicBool::new(false)), Ended::Finished);
    let rows = rows::of(&simulation, 0, Ended::Finished, &scenario.user_names());
    let radio: Vec<_> = rows.radio.iter().map(|row| (row.component.as_str(), row.user)).collect();
    let expected = [("cell", [0, 1, 2]), ("second-cell", [3, 4, 5])];
    let expected =
        expected.iter().flat_map(|(cell, users)| [*users, *users].concat().into_iter().map(|user| (*cell, user)));
    assert_eq!(radio, expected.collect::<Vec<_>>());
    assert!(rows.flows.iter().all(|row| row.mobile.ends_with("-second")));
}

#[test]
fn with_one_address_a_flow_moves_to_the_standby_and_back() {
    let run = run(&format!("[steering]\nmode = \"active-standby\"\n{OUTAGE}{DOWNLOAD}"));
    assert_eq!(run.users(0, Direction::Down), BTreeSet::from([0, 1]));
    assert_eq!(run.users(0, Direction::Up), BTreeSet::from([0, 1]));
    // 5 s at the rate; the outage costs the time until it is noticed, and a recovery.
    assert!(run.finished(0) < 9.0, "{}", run.finished(0));
    let names: Vec<&str> = run.rows.flows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names[1..], ["steering-mobile-first", "steering-mobile-second"]);
}

#[test]
fn with_two_addresses_quic_migrates_and_tcp_waits() {
    let steering = "[steering]\nmode = \"active-standby\"\naddresses = \"two\"\n";
    let quic = format!("{DOWNLOAD}transport = \"quic-quinn\"\n");
    let upload = "[[flow]]\nkind = \"upload\"\nbytes = \"5 MB\"\ntransport = \"quic-quinn\"\n";
    let migrated = run(&format!("{steering}{OUTAGE}{quic}"));
    assert_eq!(migrated.users(0, Direction::Down), BTreeSet::from([0, 1]));
    assert!(migrated.finished(0) < 12.0, "{}", migrated.finished(0));
    let migrated = run(&format!("{steering}{OUTAGE}{upload}"));
    assert_eq!(migrated.users(0, Direction::Up), BTreeSet::from([0, 1]));
    assert!(migrated.finished(0) < 12.0, "{}", migrated.finished(0));
    let waited = run(&format!("{steering}{OUTAGE}{DOWNLOAD}"));
    assert_eq!(waited.users(0, Direction::Down), BTreeSet::from([0]));
    assert!(waited.finished(0) > 22.0, "{}", waited.finished(0));
}

#[test]
fn a_closed_connection_does_not_migrate() {
    let steering = "[steering]\nmode = \"active-standby\"\naddresses = \"two\"\n";
    let short = "[[flow]]\nkind = \"download\"\nbytes = \"1 MB\"\ntransport = \"quic-quinn\"\n";
    // The run goes on after the outage, at which the mobile takes the other interface.
    let ping = "[[flow]]\nkind = \"ping\"\nbearer = \"second\"\nrequests = 5\n";
    let run = run(&format!("{steering}{OUTAGE}{short}{ping}"));
    let end = run.memory.events.last().expect("it has events").0.since(Instant::ZERO).as_secs_f64();
    assert!(run.finished(0) < 2.0 && end > 4.0, "{} {end}", run.finished(0));
    assert_eq!(run.users(0, Direction::Up), BTreeSet::from([0]));
}

#[test]
fn quic_goes_on_after_packets_that_were_delayed_by_an_outage() {
    // Packets that waited on the first bearer arrive when the flow returns. Their numbers decode to
    // others, so they are dropped.
    let long = "[[flow]]\nkind = \"download\"\nbytes = \"30 MB\"\ntransport = \"quic-quinn\"\n";
    let run = run(&format!("[steering]\nmode = \"active-standby\"\n{OUTAGE}{long}"));
    // 30 s at the rate.
    assert!(run.finished(0) < 40.0, "{}", run.finished(0));
}

#[test]
fn new_flows_take_the_smaller_delay() {
    let late = format!("{DOWNLOAD}start = \"1 s\"\n");
    let run = run(&format!("[steering]\nmode = \"smallest-delay\"\n{late}{late}"));
    assert_eq!(run.users(0, Direction::Down), BTreeSet::from([0]));
    let both = self::run(&format!("[steering]\nmode = \"load-balancing\"\n{late}{late}"));
    assert_eq!(
        (both.users(0, Direction::Up), both.users(1, Direction::Up)),
        (BTreeSet::from([0]), BTreeSet::from([1]))
    );
}

#[test]
fn a_flow_changes_when_its_probes_are_answered() {
    let slow = ["downlink", "uplink"].map(|way| (format!("bearer.{way}.delay"), "\"80 ms\"".to_owned()));
    for (addresses, changes) in [("one", true), ("two", false)] {
        let text = format!("[steering]\nmode = \"smallest-delay\"\naddresses = \"{addresses}\"\n{DOWNLOAD}");
        let run = run_scenario(&read_with(&text, &slow).expect("it is valid"));
        let users = run.users(0, Direction::Down);
        assert_eq!(users.contains(&1), changes, "{addresses}: {users:?}");
    }
    let quic = format!("{DOWNLOAD}transport = \"quic-quinn\"\n");
    let text = format!("[steering]\nmode = \"smallest-delay\"\naddresses = \"two\"\n{quic}");
    let run = run_scenario(&read_with(&text, &slow).expect("it is valid"));
    assert!(run.users(0, Direction::Down).contains(&1), "it migrates");
}

#[test]
fn wrong_tables_are_refused() {
    let wrong = [
        ("[steering]\nmode = \"redundant\"", "steering.mode: `redundant` is not known"),
        ("[steering]\nmode = \"active-standby\"\nshare = 0.5", "steering.share: this mode has no such key"),
        ("[steering]\nmode = \"priority-based\"", "steering.max_round_trip: this mode needs"),
        ("[steering]\nmode = \"load-balancing\"\nshare = 2.0", "steering.share: this must be 0 to 1"),
        (
            "[steering]\nmode = \"smallest-delay\"\nprobe_interval = \"0 s\"",
            "steering.probe_interval: this must be above",
        ),
        (
            "[steering]\nmode = \"smallest-delay\"\nprobe_timeout = \"1 ms\"",
            "steering.probe_timeout: this must be at least",
        ),
        ("[proxy]\npreset = \"adaptive\"\n[steering]\nmode = \"smallest-delay\"", "steering: a proxy or middlebox"),
        ("[[mobile]]\nname = \"a\"\n[[mobile]]\nname = \"a-second\"", "the name `a-second`"),
    ];
    for (more, expected) in wrong {
        let error = read(&format!("{more}\n{DOWNLOAD}")).expect_err(more);
        assert!(error.contains(expected), "{error}");
    }
    let one = |more: &str| {
        let text = format!("format = 1\n[bearer]\npreset = \"wired\"\n{more}\n");
        Scenario::read(&text, "one.toml", Path::new(""), &[]).expect_err(more).to_string()
    };
    let error = one("[second_bearer]\npreset = \"wifi-m\"");
    assert!(error.contains("second_bearer.preset") && error.contains("wifi-n"), "{error}");
    let error = one("[second_bearer]\npreset = \"wifi-n\"\nmcs = 3");
    assert!(error.contains("second_bearer.mcs: unknown key"), "{error}");
    let error = one("[steering]\nmode = \"smallest-delay\"");
    assert!(error.contains("steering: steering needs two bearers"), "{error}");
    let error = one("[[flow]]\nkind = \"ping\"\nbearer = \"second\"");
    assert!(error.contains("flow.bearer: the mobiles have one bearer"), "{error}");
    let error = one("[[change]]\nat = \"1 s\"\noutage = \"1 s\"\nto = \"second-bearer\"");
    assert!(error.contains("change.0.to: the mobiles have one bearer"), "{error}");
}
