//! What entered a network once and is put on it again meets the same fate, to the nanosecond.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use airpath_capture::headers::{HeaderRecorder, file_name};
use airpath_core::{ComponentId, Event, Instant, Memory, Packet, PacketEvent, PacketStep, Seed, Sink, Slot, Span};
use airpath_scenario::{Preset, Scenario, preset};
use airpath_sim::Setup;
use airpath_sim::replay::{
    Arrival, Command, RecordedHeaders, Recording, ReplayError, component_names, replay_into, unplanned_commands,
};

const CHANGES: &str = r#"
[[change]]
at = "700 ms"
outage = "1.3 s"
[[change]]
at = "3 s"
handover = "350 ms"
buffer = "discard"
[[change]]
at = "4 s"
to = "fixed"
loss = 0.03
direction = "down"
[[change]]
at = "5 s"
to = "fixed"
delay = "20 ms"
"#;

/// The changes that the bearer of a preset can make. A call keeps what waits at a handover, as its
/// interworking function stays the same; without a radio link only the fixed network changes.
/// NB-IoT has no handovers.
fn changes_of(preset: &Preset) -> String {
    let is = |model: &str| preset.parameters.iter().any(|each| each.key == "model" && each.value.contains(model));
    let only = |keep: fn(&str) -> bool| -> String {
        let kept = CHANGES.split("[[change]]").skip(1).filter(|change| keep(change));
        kept.map(|change| format!("[[change]]{change}")).collect()
    };
    let radio = preset.parameters.iter().any(|each| each.key.starts_with("radio"));
    match (is("gsm-csd"), radio) {
        _ if is("nb-iot") => only(|change| !change.contains("handover")),
        (false, _) => CHANGES.to_owned(),
        (true, true) => CHANGES.replace("buffer = \"discard\"\n", ""),
        (true, false) => only(|change| change.contains("to = \"fixed\"")),
    }
}

/// Traffic of every kind over the bearer that `bearer` describes.
fn scenario(bearer: &str, class: &str, changes: &str) -> Scenario {
    let text = format!(
        "format = 1\nseed = 7\nduration = \"60 s\"\n\
         [fixed]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\nloss = 0.01\nqueue = {{ packets = 20 }}\n\
         [bearer]\n{bearer}\n\
         [[mobile]]\nname = \"m\"\ncount = 3\n{class}\n\
         [[flow]]\nkind = \"download\"\nbytes = \"100 kB\"\nrequest = \"300 B\"\nstagger = \"30 ms\"\n\
         [[flow]]\nkind = \"upload\"\nbytes = \"20 kB\"\n\
         [[flow]]\nkind = \"ping\"\ninterval = \"200 ms\"\nrequests = 20\n\
         [[flow]]\nkind = \"datagrams\"\ndirection = \"down\"\nrate = \"50 kbit/s\"\nsize = 200\nduration = \"5 s\"\n\
         {changes}"
    );
    Scenario::read(&text, "test", Path::new("../../examples"), &[]).unwrap_or_else(|error| panic!("{bearer}: {error}"))
}

/// The log of a run, and when it ended.
fn run(scenario: &Scenario) -> (Memory, Instant) {
    let mut log = Memory::default();
    let setup = Setup::new(scenario, Seed::new(scenario.seed)).expect("it can be built");
    let mut simulation = setup.start(Some(&mut log as &mut dyn Sink), None);
    let headers = || HeaderRecorder::create(&headers_of(scenario), 0).expect("there is space");
    simulation.record_headers(needs_headers(scenario).then(headers));
    simulation.run(&AtomicBool::new(false));
    simulation.finish_captures().expect("there is space");
    let end = simulation.now();
    drop(simulation);
    (log, end)
}

/// Whether a replay needs the headers of the packets.
fn needs_headers(scenario: &Scenario) -> bool {
    let setup = Setup::new(scenario, Seed::new(scenario.seed)).expect("it can be built");
    scenario.proxy.is_some() || setup.inspects_headers()
}

/// The folder for the headers of a run.
fn headers_of(scenario: &Scenario) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("headers").join(&scenario.name)
}

/// The arrivals of a log.
fn recording(scenario: &Scenario, log: &Memory, end: Instant) -> Recording {
    let names = component_names(scenario).expect("it can be built");
    let (mut arrivals, mut logged) = (Vec::new(), Vec::new());
    let (mut now, mut received) = (Instant::ZERO, 0);
    for (time, at, event) in &log.events {
        if let Event::Change(change) = event {
            let mut command: airpath_link::BearerCommand = serde_json::from_str(&change.change).expect("a command");
            command.user = change.user;
            logged.push(Command { at: *time, component: names[at.0 as usize].clone(), command });
        }
        let Event::Packet(PacketEvent { step, direction, packet }) = event else { continue };
        if *time > now && matches!(step, PacketStep::Sent(_) | PacketStep::Received) {
            (now, received) = (*time, 0);
        }
        match step {
            PacketStep::Received => received += 1,
            PacketStep::Sent(header) => arrivals.push(Arrival {
                time: *time,
                direction: *direction,
                id: packet.id,
                size: packet.size,
                ecn: packet.ecn,
                flow: packet.flow,
                user: packet.user,
                header: *header,
                after: received,
            }),
            _ => {}
        }
    }
    let commands = unplanned_commands(scenario, logged).expect("it can be built");
    let headers = headers_of(scenario).join(file_name(0));
    let headers = needs_headers(scenario).then(|| RecordedHeaders::read(&headers).expect("they were written"));
    Recording { repetition: 0, end, arrivals, commands, headers }
}

/// The steps of all packets, as texts, without slots and without events at the time of the end,
/// which depend on how the run ended.
fn steps(log: &Memory, end: Instant) -> BTreeSet<String> {
    let step = |(time, at, event): &(Instant, ComponentId, Event)| {
        let event = match event {
            Event::Packet(event) => {
                Event::Packet(PacketEvent { packet: Packet { slot: Slot(0), ..event.packet }, ..*event })
            }
            Event::Change(_) => event.clone(),
            Event::Tcp(_) | Event::Quic(_) | Event::Radio(_) | Event::App(_) | Event::State(_) => return None,
        };
        Some(format!("{} {at:?} {event:?}", time.as_nanos()))
    };
    log.events.iter().filter(|(time, ..)| *time < end).filter_map(step).collect()
}

fn assert_replays(name: &str, original: &Scenario) {
    let (log, end) = run(original);
    let recording = recording(original, &log, end);
    assert!(recording.arrivals.len() > 300, "{name}: {} packets", recording.arrivals.len());
    assert_eq!(recording.commands, [], "{name}: all changes are in the scenario");
    // As a result has it: from the resolved text.
    let resolved = Scenario::read(&original.to_toml(), "resolved", Path::new(""), &[]).expect("it reads back");
    let mut again = Memory::default();
    replay_into(&resolved, &recording, Some(&mut again), &AtomicBool::new(false)).expect("it fits");
    let (first, second) = (steps(&log, end), steps(&again, end));
    let missing: Vec<_> = first.difference(&second).take(3).collect();
    let added: Vec<_> = second.difference(&first).take(3).collect();
    assert!(missing.is_empty() && added.is_empty(), "{name}: missing {missing:#?}, added {added:#?}");
    assert!(first.iter().any(|step| step.contains("Dropped")), "{name}: nothing was lost, so that nothing is shown");
}

#[test]
fn every_preset_replays_to_the_nanosecond() {
    for preset in Preset::shipped().into_iter().filter(|preset| preset.kind == preset::Kind::Bearer) {
        let class = if preset.name == "hs-dsch-classes-abc" { "class = \"b\"" } else { "" };
        let bearer = match preset.name.as_str() {
            // It names no files of its own.
            "recorded" => {
                let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay.opportunities");
                std::fs::write(&file, "3\n4\n4\n19\n40\n").expect("there is room");
                format!("preset = \"recorded\"\ndownlink.recorded = {file:?}\nuplink.recorded = {file:?}")
            }
            name => format!("preset = \"{name}\""),
        };
        let changes = changes_of(&preset);
        for changes in ["", &changes] {
            assert_replays(&preset.name, &scenario(&bearer, class, changes));
        }
    }
}

#[test]
fn links_without_delay_replay_in_the_same_order() {
    let wired = "model = \"wired\"\ndownlink = { rate = \"1 Mbit/s\" }\nuplink = {}";
    for access in ["", "[access]\nrate = \"5 Mbit/s\"\n"] {
        assert_replays("no delay", &scenario(wired, "", &format!("{CHANGES}{access}")));
    }
}

#[test]
fn a_middlebox_replays_to_the_nanosecond() {
    let middlebox = "[middlebox]\nkind = \"ack-filter\"\nhold = \"60 ms\"\n";
    for access in ["", "[access]\nrate = \"5 Mbit/s\"\n"] {
        let original = scenario("preset = \"umts-dch-384\"", "", &format!("{CHANGES}{middlebox}{access}"));
        assert_replays("middlebox", &original);
        let (log, _) = run(&original);
        let absorbed = |event: &Event| matches!(event, Event::Packet(PacketEvent { step: PacketStep::Absorbed, .. }));
        let absorbed = log.events.iter().filter(|(.., event)| absorbed(event)).count();
        assert!(absorbed > 20, "{absorbed} acknowledgements were absorbed");
    }
}

#[test]
fn a_proxy_replays_to_the_nanosecond() {
    for (name, accept) in [("early", "early"), ("deferred", "deferred")] {
        let proxy = format!("[proxy]\nbudget = \"20 kB\"\naccept = \"{accept}\"\n");
        let mut original = scenario("preset = \"umts-dch-384\"", "", &format!("{CHANGES}{proxy}"));
        name.clone_into(&mut original.name);
        assert_replays(name, &original);
    }
}

#[test]
fn header_compression_replays_to_the_nanosecond() {
    let profiles = ["[\"tcp\", \"udp\", \"ip\"]", "[\"udp\", \"ip\"]", "[\"ip\"], version = \"v2\""];
    let cases = [
        ("unidirectional", profiles[0]),
        ("optimistic", profiles[0]),
        ("reliable", profiles[1]),
        ("optimistic", profiles[2]),
    ];
    for (mode, profiles) in cases {
        let compression = format!("header_compression = {{ mode = \"{mode}\", profiles = {profiles} }}");
        for preset in ["umts-r99-384", "lte-10mhz-volte"] {
            let mut original = scenario(&format!("preset = \"{preset}\"\n{compression}"), "", CHANGES);
            original.name = format!("compressed {mode} {preset}");
            assert_replays(&original.name, &original);
        }
    }
}

#[test]
fn a_proxy_or_a_bearer_needs_headers() {
    let plain = scenario("preset = \"umts-dch-384\"", "", "");
    let (log, end) = run(&plain);
    let mut recording = recording(&plain, &log, end);
    assert!(recording.headers.is_none());
    let proxy = "[proxy]\nbudget = \"20 kB\"\n";
    let compressed = "preset = \"umts-r99-384\"\nheader_compression.mode = \"optimistic\"";
    let error = |recording: &Recording, bearer: &str, proxy: &str| {
        replay_into(&scenario(bearer, "", proxy), recording, None, &AtomicBool::new(false)).expect_err("no headers")
    };
    let with_proxy = error(&recording, "preset = \"umts-dch-384\"", proxy);
    assert!(matches!(with_proxy, ReplayError::NoHeaders { table: "`proxy`" }), "{with_proxy}");
    let with_bearer = error(&recording, compressed, "");
    assert!(with_bearer.to_string().contains("`bearer.header_compression`"), "{with_bearer}");
    let with_both = error(&recording, compressed, proxy);
    assert!(matches!(with_both, ReplayError::HeadersOfProxy { .. }), "{with_both}");
    recording.headers = Some(RecordedHeaders::default());
    let other = error(&recording, compressed, "");
    assert!(matches!(other, ReplayError::OtherHeaders { headers: 0, .. }), "{other}");
}

#[test]
fn another_scenario_gives_the_fate_of_the_same_packets_there() {
    let original = scenario("preset = \"umts-dch-384\"", "", "");
    let (log, end) = run(&original);
    let mut recording = recording(&original, &log, end);
    let lost = |recording: &Recording, scenario: &Scenario| {
        let mut again = Memory::default();
        replay_into(scenario, recording, Some(&mut again), &AtomicBool::new(false)).expect("it fits");
        let dropped = |event: &Event| matches!(event, Event::Packet(PacketEvent { step: PacketStep::Dropped(_), .. }));
        again.events.iter().filter(|(.., event)| dropped(event)).count()
    };
    let as_it_was = lost(&recording, &original);
    let more =
        Scenario::read(&original.to_toml(), "s", Path::new(""), &[("fixed.down.loss".to_owned(), "0.5".to_owned())]);
    let more = more.expect("a loss can be set");
    assert!(lost(&recording, &more) > as_it_was + 50);
    // And so does a command that was given by hand.
    let command = serde_json::from_str(r#"{"handover": "1 s", "buffer": "discard"}"#).expect("a command");
    let at = Instant::ZERO + Span::from_secs(1);
    recording.commands.push(Command { at, component: "cell".to_owned(), command });
    assert!(lost(&recording, &original) > as_it_was);
    recording.commands[0].component = "cellar".to_owned();
    let error = replay_into(&original, &recording, None, &AtomicBool::new(false)).expect_err("there is no cellar");
    assert!(error.to_string().contains("`cellar`, which the scenario does not have: its bearers are fixed, cell"));
}
