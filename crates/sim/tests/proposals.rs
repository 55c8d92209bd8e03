//! Proposals for TCP over radio links, in whole downloads: what each gains where it should.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::Seed;
use airpath_scenario::Scenario;
use airpath_sim::Setup;
use airpath_sim::flow::Flow;

/// A fast radio link behind a long fixed one; one packet in fifty is lost on the radio link.
const LOSSY: &str = r#"
format = 1
duration = "600 s"
[fixed]
rate = "10 Mbit/s"
delay = "100 ms"
[bearer]
model = "wired"
downlink = { rate = "2 Mbit/s", delay = "10 ms", loss = 0.02 }
uplink = { rate = "2 Mbit/s", delay = "10 ms" }
[tcp]
profile = "linux-2.4"
selective_acknowledgement = false
[[flow]]
kind = "download"
bytes = "2 MB"
"#;

#[derive(Debug)]
struct Download {
    seconds: f64,
    /// Retransmissions of the server by duplicates, and timeouts.
    retransmits: u64,
    timeouts: u64,
    /// Smoothed round trip of the server at the end, and the mean, in seconds.
    round_trip: f64,
    mean_round_trip: f64,
}

/// Runs `text` with these tables appended.
fn download(text: &str, tables: &str, sets: &[(&str, &str)]) -> Download {
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let text = format!("{text}{tables}");
    let scenario = Scenario::read(&text, "test", Path::new("."), &sets).unwrap_or_else(|error| panic!("{error}"));
    let mut simulation = Setup::new(&scenario, Seed::new(1)).expect("it can be built").start(None, None);
    simulation.run(&AtomicBool::new(false));
    let Flow::Transfer(flow) = &simulation.flows()[0] else { panic!("the flow is a download") };
    let finished = flow.milestones.finished.expect("it has finished");
    let sender = flow.sender().statistics();
    let seconds = finished.since(flow.identity.start).as_secs_f64();
    let round_trip = flow.sender().smoothed_round_trip().expect("data were acknowledged").as_secs_f64();
    let mean_round_trip = sender.rtt_mean_s().expect("data were acknowledged");
    Download { seconds, retransmits: sender.fast_retransmits, timeouts: sender.timeouts, round_trip, mean_round_trip }
}

#[test]
fn snoop_hides_losses_of_the_radio_link_from_the_sender() {
    let plain = download(LOSSY, "", &[]);
    let snoop = download(LOSSY, "[middlebox]\nkind = \"snoop\"\n", &[]);
    println!("plain {plain:?}\nsnoop {snoop:?}");
    assert!(snoop.seconds < 0.5 * plain.seconds, "{snoop:?}, {plain:?}");
    assert!(5 * (snoop.retransmits + snoop.timeouts) < plain.retransmits, "{snoop:?}, {plain:?}");
}

#[test]
fn snoop_changes_nothing_without_losses() {
    let without = [("bearer.downlink.loss", "0")];
    let plain = download(LOSSY, "", &without);
    let snoop = download(LOSSY, "[middlebox]\nkind = \"snoop\"\n", &without);
    println!("plain {plain:?}\nsnoop {snoop:?}");
    assert!((snoop.seconds - plain.seconds).abs() < 1e-9, "{snoop:?}, {plain:?}");
}

#[test]
fn snoop_does_not_repair_losses_of_the_fixed_network() {
    let fixed = [("bearer.downlink.loss", "0"), ("fixed.down.loss", "0.02")];
    let plain = download(LOSSY, "", &fixed);
    let snoop = download(LOSSY, "[middlebox]\nkind = \"snoop\"\n", &fixed);
    println!("plain {plain:?}\nsnoop {snoop:?}");
    assert!((snoop.seconds / plain.seconds - 1.0).abs() < 0.3, "{snoop:?}, {plain:?}");
}

/// W-TCP repairs as Snoop does, and the sender does not see the time that this takes.
#[test]
fn w_tcp_hides_losses_and_their_repair_from_the_sender() {
    let plain = download(LOSSY, "", &[]);
    let w_tcp = download(LOSSY, "[middlebox]\nkind = \"w-tcp\"\n", &[]);
    println!("plain {plain:?}\nw-tcp {w_tcp:?}");
    assert!(w_tcp.seconds < 0.5 * plain.seconds, "{w_tcp:?}, {plain:?}");
    assert!(5 * (w_tcp.retransmits + w_tcp.timeouts) < plain.retransmits, "{w_tcp:?}, {plain:?}");
}

/// Losses of one packet in five, so that timers repair most of them.
#[test]
fn w_tcp_hides_the_time_of_retransmissions_from_the_sender() {
    let often = [("bearer.downlink.loss", "0.2"), ("flow.0.bytes", "1 MB"), ("duration", "3600 s")];
    let w_tcp = download(LOSSY, "[middlebox]\nkind = \"w-tcp\"\n", &often);
    let snoop = download(LOSSY, "[middlebox]\nkind = \"snoop\"\n", &often);
    println!("w-tcp {w_tcp:?}\nsnoop {snoop:?}");
    // Without losses the round trip is 220 ms.
    assert!(w_tcp.mean_round_trip - 0.22 < 0.7 * (snoop.mean_round_trip - 0.22), "{w_tcp:?}, {snoop:?}");
}

#[test]
fn delayed_dup_acks_only_delay_the_repair_of_a_link_that_does_not_retransmit() {
    let plain = download(LOSSY, "", &[]);
    let delayed = download(LOSSY, "[middlebox]\nkind = \"delayed-dup-acks\"\nhold = \"100 ms\"\n", &[]);
    println!("plain {plain:?}\ndelayed {delayed:?}");
    assert!(delayed.seconds > plain.seconds, "{delayed:?}, {plain:?}");
}

/// The filter of Westwood+ needs some 16 round trips, so the download is long.
#[test]
fn westwood_keeps_its_rate_under_random_loss() {
    let long = [("bearer.downlink.loss", "0.005"), ("flow.0.bytes", "20 MB")];
    let reno = download(LOSSY, "", &long);
    let westwood = download(LOSSY, "", &[long[0], long[1], ("tcp.congestion.algorithm", "westwood")]);
    println!("reno {reno:?}\nwestwood+ {westwood:?}");
    assert!(westwood.seconds < 0.8 * reno.seconds, "{westwood:?}, {reno:?}");
}

#[test]
fn wtcp_keeps_its_rate_under_random_loss() {
    let reno = download(LOSSY, "", &[]);
    let wtcp = download(LOSSY, "", &[("tcp.congestion.algorithm", "wtcp"), ("tcp.pacing", "true")]);
    println!("reno {reno:?}\nwtcp {wtcp:?}");
    assert!(wtcp.seconds < 0.5 * reno.seconds, "{wtcp:?}, {reno:?}");
    // Its queue is short: without one the round trip is 220 ms.
    assert!(wtcp.round_trip < 0.4, "{wtcp:?}");
}

/// I-TCP: the proxy repairs over the short round trip of the radio link, with its own slow start.
#[test]
fn split_connections_repair_losses_of_the_radio_link_fast() {
    let plain = download(LOSSY, "", &[]);
    let split = download(LOSSY, "[proxy]\nbudget = \"none\"\nprofile = \"linux-2.4\"\n", &[]);
    let sender = [("bearer.downlink.loss", "0")];
    let clean = download(LOSSY, "[proxy]\nbudget = \"none\"\nprofile = \"linux-2.4\"\n", &sender);
    println!("plain {plain:?}\nsplit {split:?}\nclean {clean:?}");
    assert!(split.seconds < 0.5 * plain.seconds, "{split:?}, {plain:?}");
    assert!(split.seconds > 1.02 * clean.seconds, "losses still reduce the window: {split:?}, {clean:?}");
}

/// M-TCP stops a sender that, as in BSD, keeps its window when it is stopped. One as in Linux backs
/// off all the same.
#[test]
fn m_tcp_continues_at_full_speed_after_a_disconnection() {
    let away = "[[change]]\nat = \"5 s\"\nloss = 1.0\n[[change]]\nat = \"25 s\"\nloss = 0.0\n";
    let m_tcp = format!("[middlebox]\nkind = \"m-tcp\"\nfreeze_after = \"300 ms\"\n{away}");
    let long = [("bearer.downlink.loss", "0"), ("flow.0.bytes", "4 MB"), ("tcp.recovery.zero_window_freezes", "true")];
    let plain = download(LOSSY, away, &long);
    let stopped = download(LOSSY, &m_tcp, &long);
    let linux = download(LOSSY, &m_tcp, &long[..2]);
    let connected = download(LOSSY, "", &long);
    println!("plain {plain:?}\nm-tcp {stopped:?}\nlinux {linux:?}\nconnected {connected:?}");
    assert_eq!(stopped.timeouts, 0, "{stopped:?}");
    // 20 s, a probe within a second, and what was in flight.
    assert!(stopped.seconds < connected.seconds + 22.0, "{stopped:?}, {connected:?}");
    assert!(stopped.seconds + 2.0 < plain.seconds, "{stopped:?}, {plain:?}");
    assert!(linux.timeouts > 1, "{linux:?}");
}

/// Freeze-TCP: the mobile closes the window 0.4 s before the same disconnection.
#[test]
fn freeze_tcp_continues_at_full_speed_after_a_disconnection() {
    let away = "[[change]]\nat = \"5 s\"\nloss = 1.0\n[[change]]\nat = \"25 s\"\nloss = 0.0\n";
    let long = [("bearer.downlink.loss", "0"), ("flow.0.bytes", "4 MB"), ("tcp.recovery.zero_window_freezes", "true")];
    let freeze = |from| ("flow.0.freeze", format!("[{{ from = \"{from} s\", until = \"25 s\" }}]"));
    let frozen = |from| {
        let (key, value) = freeze(from);
        download(LOSSY, away, &[long[0], long[1], long[2], (key, value.as_str())])
    };
    let connected = download(LOSSY, "", &long);
    let (early, late) = (frozen(4.6), frozen(5.1));
    println!("connected {connected:?}\nearly {early:?}\nlate {late:?}");
    assert_eq!(early.timeouts, 0, "{early:?}");
    assert!(early.seconds < connected.seconds + 21.5, "{early:?}, {connected:?}");
    assert!(late.timeouts > 1, "the warning does not arrive: {late:?}");
}

const ELN: (&str, &str) = ("tcp.recovery.loss_notification", "true");

#[test]
fn eln_keeps_the_window_at_losses_of_the_radio_link() {
    let plain = download(LOSSY, "", &[]);
    let eln = download(LOSSY, "[middlebox]\nkind = \"eln\"\n", &[ELN]);
    let ignored = download(LOSSY, "[middlebox]\nkind = \"eln\"\n", &[]);
    println!("plain {plain:?}\neln {eln:?}\nignored {ignored:?}");
    assert!(eln.seconds < 0.7 * plain.seconds, "{eln:?}, {plain:?}");
    // The sender still repairs what is lost; nothing else does.
    assert!(eln.retransmits > 10, "{eln:?}");
    assert!((ignored.seconds - plain.seconds).abs() < 1e-9, "{ignored:?}, {plain:?}");
}

#[test]
fn eln_reduces_the_window_for_losses_of_the_fixed_network() {
    let fixed = [("bearer.downlink.loss", "0"), ("fixed.down.loss", "0.02")];
    let plain = download(LOSSY, "", &fixed);
    let eln = download(LOSSY, "[middlebox]\nkind = \"eln\"\n", &[fixed[0], fixed[1], ELN]);
    println!("plain {plain:?}\neln {eln:?}");
    assert!((eln.seconds - plain.seconds).abs() < 1e-9, "{eln:?}, {plain:?}");
}
