//! Flows over QUIC: every preset, determinism, conservation, a deep queue, captures.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{AppStep, Direction, Event, Memory, PacketStep, QuicEvent, QuicPacketType, QuicStep, Seed};
use airpath_scenario::Scenario;
use airpath_scenario::preset::{Kind, Preset};
use airpath_sim::flow::{Flow, QuicTransferFlow};
use airpath_sim::{Ended, Setup, rows};

fn scenario(text: &str) -> Scenario {
    Scenario::read(text, "quic.toml", Path::new(""), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    Scenario::read(text, "quic.toml", Path::new(""), &[]).expect_err("it is wrong").to_string()
}

/// Runs a scenario; returns its events, how it ended, and what `read` takes from its flows.
fn run<T>(text: &str, read: impl FnOnce(&[Flow]) -> T) -> (Memory, Ended, T) {
    let scenario = scenario(text);
    let mut memory = Memory::default();
    let setup = Setup::new(&scenario, Seed::new(scenario.seed)).expect("it can be built");
    let mut simulation = setup.start(Some(&mut memory), None);
    let ended = simulation.run(&AtomicBool::new(false));
    let result = read(simulation.flows());
    drop(simulation);
    (memory, ended, result)
}

fn transfer(flow: &Flow) -> &QuicTransferFlow {
    let Flow::QuicTransfer(flow) = flow else { panic!("it is a transfer over QUIC") };
    flow
}

const WIRED: &str = r#"
    format = 1
    duration = "300 s"
    [bearer]
    model = "wired"
    downlink = { rate = "10 Mbit/s", delay = "20 ms", queue = { bytes = "100 kB" } }
    uplink = { rate = "10 Mbit/s", delay = "20 ms", queue = { bytes = "100 kB" } }
"#;

fn download(bearer: &str, bytes: &str, more: &str) -> String {
    format!("{bearer}\n[[flow]]\nkind = \"download\"\ntransport = \"quic-quinn\"\nbytes = \"{bytes}\"\n{more}")
}

#[test]
fn transfers_in_both_directions_and_with_a_request_finish() {
    for flow in [
        "kind = \"download\"\nbytes = \"2 MB\"",
        "kind = \"download\"\nbytes = \"2 MB\"\nrequest = \"200 B\"",
        "kind = \"upload\"\nbytes = \"2 MB\"",
    ] {
        let text = format!("{WIRED}\n[[flow]]\ntransport = \"quic-quinn\"\n{flow}");
        let (memory, ended, seconds) = run(&text, |flows| {
            let flow = transfer(&flows[0]);
            let milestones = flow.milestones;
            assert_eq!((milestones.outcome(), milestones.delivered), ("finished", 2_000_000));
            assert!(milestones.acknowledged >= milestones.finished, "{milestones:?}");
            let sent = flow.sender().statistics();
            assert!(sent.rtt_min.expect("it has round trips").as_secs_f64() > 0.04, "{sent:?}");
            milestones.finished.expect("it finished").as_secs_f64()
        });
        assert_eq!(ended, Ended::Finished);
        // The bytes at the rate, and at most a half more.
        assert!((1.6..2.4).contains(&seconds), "{flow}: {seconds} s");
        let windows: Vec<u64> = memory.events.iter().filter_map(|(.., event)| window(event)).collect();
        assert!(windows.len() > 100 && windows.iter().max() > windows.first(), "the window grows");
        conserves(&memory);
    }
}

fn window(event: &Event) -> Option<u64> {
    match event {
        Event::Tcp(event) => Some(event.congestion_window),
        _ => None,
    }
}

/// Every packet that was sent was received or dropped.
fn conserves(memory: &Memory) {
    let count = |wanted: fn(&PacketStep) -> bool| {
        let steps = memory.events.iter().filter(|(.., event)| match event {
            Event::Packet(event) => wanted(&event.step),
            _ => false,
        });
        steps.count()
    };
    let sent = count(|step| matches!(step, PacketStep::Sent(_)));
    let ended = count(|step| matches!(step, PacketStep::Received | PacketStep::Dropped(_)));
    // Those in flight when the flow ended.
    assert!(sent >= ended && sent - ended < 20, "{sent} sent, {ended} received or dropped");
}

#[test]
fn the_packets_in_datagrams_are_logged_with_their_losses() {
    let (memory, _, lost) = run(&download(WIRED, "4 MB", ""), |flows| {
        let flow = transfer(&flows[0]);
        [flow.sender(), flow.receiver()].map(|end| end.statistics().lost_packets)
    });
    let mut datagrams = BTreeMap::new();
    let mut counts = [0; 2];
    let mut logged = BTreeMap::<u64, Vec<(QuicPacketType, u32)>>::new();
    for (.., event) in &memory.events {
        match event {
            Event::Packet(event) if matches!(event.step, PacketStep::Sent(_)) => {
                datagrams.insert(event.packet.id, event.packet.size);
            }
            Event::Quic(QuicEvent {
                flow,
                connection,
                step: QuicStep::Sent { packet, size, frames },
                packet_type,
                ..
            }) => {
                assert_eq!((flow.0, *connection, frames.is_some()), (0, 0, true));
                logged.entry(*packet).or_default().push((*packet_type, *size));
            }
            Event::Quic(QuicEvent { direction, step: QuicStep::Lost, .. }) => counts[*direction as usize] += 1,
            _ => {}
        }
    }
    assert!(lost[0] > 0, "the queue overflows");
    assert_eq!(counts, lost, "of the server and of the mobile");
    // Each datagram is its packets, behind the headers of IP and UDP.
    let sizes = logged.iter().map(|(packet, each)| (*packet, each.iter().map(|(_, size)| size).sum::<u32>() + 28));
    assert_eq!(sizes.collect::<BTreeMap<_, _>>(), datagrams);
    let types = |each: &[(QuicPacketType, u32)]| each.iter().map(|(packet_type, _)| *packet_type).collect::<Vec<_>>();
    let coalesced = [QuicPacketType::Initial, QuicPacketType::Handshake];
    assert!(logged.values().any(|each| types(each) == coalesced), "the server's first flight");
}

#[test]
fn each_connection_has_a_number_in_the_log() {
    let text = format!(
        "{WIRED}\n[[flow]]\nkind = \"transactions\"\ntransport = \"quic-quinn\"\nresponse = \"500 B\"\n\
         connections = \"each\"\ntransactions = 3"
    );
    let (memory, ..) = run(&text, |_| ());
    let begun = memory.events.iter().filter_map(|(.., event)| match event {
        Event::Quic(QuicEvent { connection, direction: Direction::Up, packet_type, number: 0, .. }) => {
            (*packet_type == QuicPacketType::Initial).then_some(*connection)
        }
        _ => None,
    });
    assert_eq!(begun.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn equal_seeds_give_equal_events_and_another_flow_changes_no_identifiers() {
    let text = download(WIRED, "500 kB", "");
    let (first, ..) = run(&text, |_| ());
    let (second, ..) = run(&text, |_| ());
    assert_eq!(first, second);
    let (other, ..) = run(&format!("seed = 7\n{text}"), |_| ());
    assert_ne!(first, other);
}

#[test]
fn every_preset_carries_quic() {
    for name in Preset::names(Kind::Bearer) {
        let bearer = match name.as_str() {
            // It names no files of its own.
            "recorded" => {
                let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quic.opportunities");
                std::fs::write(&file, "3\n4\n4\n19\n40\n").expect("there is room");
                format!("downlink.recorded = {file:?}\nuplink.recorded = {file:?}\n")
            }
            "hs-dsch-classes-abc" => "[[mobile]]\nname = \"m\"\nclass = \"b\"\n".to_owned(),
            _ => String::new(),
        };
        let text = format!("format = 1\nduration = \"400 s\"\n[bearer]\npreset = \"{name}\"\n{bearer}");
        let read = |flows: &[Flow]| transfer(&flows[0]).milestones;
        let (first, _, milestones) = run(&download(&text, "20 kB", ""), read);
        assert_eq!(milestones.outcome(), "finished", "{name}: {milestones:?}");
        let (second, ..) = run(&download(&text, "20 kB", ""), read);
        assert_eq!(first, second, "{name}");
    }
}

#[test]
fn transactions_have_latencies_over_one_connection_and_over_one_for_each() {
    for (connections, least) in [("one", 0.04), ("each", 0.08)] {
        let text = format!(
            "{WIRED}\n[[flow]]\nkind = \"transactions\"\ntransport = \"quic-quinn\"\nresponse = \"500 B\"\n\
             connections = \"{connections}\"\nthink = \"100 ms\""
        );
        let (memory, ended, latencies) = run(&text, |flows| {
            let Flow::QuicTransactions(flow) = &flows[0] else { panic!("they are transactions over QUIC") };
            assert_eq!(flow.cause(), None);
            flow.client.latencies().clone()
        });
        assert_eq!((ended, latencies.count()), (Ended::Finished, 10), "{connections}");
        let mean = latencies.mean_s().expect("there are some");
        assert!((least..least + 0.02).contains(&mean), "{connections}: {mean} s");
        let arrived = memory
            .events
            .iter()
            .filter(|(.., event)| matches!(event, Event::App(event) if matches!(event.step, AppStep::Arrived { .. })));
        assert_eq!(arrived.count(), 10);
    }
}

/// CUBIC over a queue of 4 MB, with this receive window.
fn deep(window: &str) -> String {
    let bearer = r#"
        format = 1
        duration = "300 s"
        [bearer]
        model = "wired"
        downlink = { rate = "50 Mbit/s", delay = "20 ms", queue = { bytes = "4 MB" } }
        uplink = { rate = "50 Mbit/s", delay = "20 ms", queue = { bytes = "4 MB" } }
    "#;
    download(bearer, "64 MB", &format!("quic = {{ {window} }}"))
}

#[test]
fn the_end_of_a_connection_by_an_error_is_a_result() {
    let (_, ended, row) = run(&deep("receive_window = \"64 MB\", send_window = \"128 MB\""), |flows| {
        (transfer(&flows[0]).milestones, transfer(&flows[0]).cause())
    });
    let (milestones, cause) = row;
    assert_eq!((ended, milestones.outcome()), (Ended::Finished, "aborted"));
    let cause = cause.expect("it has a cause");
    assert!(cause.contains("too many gaps in stream buffer"), "{cause}");
    let (_, ended, milestones) = run(&deep(""), |flows| transfer(&flows[0]).milestones);
    assert_eq!((ended, milestones.outcome()), (Ended::Finished, "finished"), "with the default window");
}

#[test]
fn a_server_that_does_not_answer_ends_in_a_time_out() {
    let change = "[[change]]\nat = \"0 s\"\noutage = \"200 s\"";
    let text = format!("{}\n{change}", download(WIRED, "1 MB", "quic = { idle_timeout = \"10 s\" }"));
    let (_, ended, (milestones, cause)) =
        run(&text, |flows| (transfer(&flows[0]).milestones, transfer(&flows[0]).cause()));
    assert_eq!((ended, milestones.outcome()), (Ended::Finished, "aborted"));
    assert_eq!(cause.as_deref(), Some("idle time-out, reported by the mobile"));
    let aborted = milestones.aborted.expect("it was aborted").as_secs_f64();
    assert!((10.0..11.0).contains(&aborted), "{aborted} s");
}

#[test]
fn the_summary_has_the_columns_of_a_transfer() {
    let scenario = scenario(&download(WIRED, "2 MB", "quic.congestion = \"new-reno\""));
    let setup = Setup::new(&scenario, Seed::new(1)).expect("it can be built");
    let mut simulation = setup.start(None, None);
    let ended = simulation.run(&AtomicBool::new(false));
    let rows = rows::of(&simulation, 0, ended, &["mobile".to_owned()]);
    let row = rows.flows[0].transfer.as_ref().expect("it is a transfer");
    assert_eq!((row.tcp["profile"].as_str(), row.delivered_bytes), (Some("quic-quinn"), 2_000_000));
    assert_eq!(row.tcp["congestion"]["algorithm"], "new-reno");
    let dropped: u64 = rows
        .links
        .iter()
        .filter(|link| link.direction == Direction::Down.name())
        .flat_map(|link| link.dropped.values())
        .map(|count| count.packets)
        .sum();
    assert!(dropped > 0 && row.retransmitted_packets >= Some(dropped), "{dropped} {:?}", row.retransmitted_packets);
}

#[test]
fn wrong_settings_are_errors_with_a_place() {
    let flow = |more: &str| error(&download(WIRED, "1 MB", more));
    let message = flow("quic.congestion = \"bbr\"");
    assert!(
        message.contains("quic-quinn has no congestion controller `bbr`; it has cubic, new-reno, quinn-bbr"),
        "{message}"
    );
    assert!(message.starts_with("quic.toml:"), "{message}");
    assert!(flow("tcp = \"linux-6\"").contains("has no TCP"));
    assert!(flow("quic.datagram_size = 1000").contains("1200 to 1472"));
    assert!(flow("quic.window = 1").contains("unknown key"));
    let unknown = format!("{WIRED}\n[[flow]]\nkind = \"upload\"\nbytes = 1\ntransport = \"quick\"");
    assert!(error(&unknown).contains("there is no transport `quick`"));
    let without = format!("{WIRED}\n[[flow]]\nkind = \"upload\"\nbytes = 1\nquic = {{}}");
    assert!(error(&without).contains("the flow does not use QUIC"));
    let ping = format!("{WIRED}\n[[flow]]\nkind = \"ping\"\ntransport = \"quic-quinn\"");
    assert!(error(&ping).contains("unknown key"));
}

#[test]
fn the_resolved_scenario_gives_the_same_run() {
    let text =
        format!("[quic]\nreceive_window = \"1 MB\"\n{}", download(WIRED, "500 kB", "quic.congestion = \"new-reno\""));
    // Tables after the top level of the scenario.
    let text = text.replacen("[quic]\nreceive_window = \"1 MB\"\n", "", 1) + "\n[quic]\nreceive_window = \"1 MB\"";
    let resolved = scenario(&text).to_toml();
    assert!(resolved.contains("receive_window = \"1 MB\"") && resolved.contains("new-reno"), "{resolved}");
    assert_eq!(run(&text, |_| ()).0, run(&resolved, |_| ()).0);
}
