//! Whole downloads: how often the window is reduced, and how losses are repaired.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{Classes, ComponentId, Event, Instant, Seed, Sink, TcpTrigger};
use airpath_scenario::Scenario;
use airpath_sim::Setup;
use airpath_sim::flow::Flow;
use airpath_tcp::Statistics;

/// One download through CoDel, which marks where the sender uses ECN, and else drops.
const CODEL: &str = r#"
format = 1
duration = "60 s"
[fixed]
rate = "10 Mbit/s"
[fixed.down]
queue = { discipline = "codel", packets = 1000, ecn = true }
[bearer]
model = "wired"
[bearer.downlink]
delay = "0 s"
[bearer.uplink]
delay = "0 s"
[tcp]
profile = "linux-6"
[[flow]]
kind = "download"
bytes = "10 GB"
"#;

/// One download of an agent of ns-2 over a lossy path.
const LOSSY: &str = r#"
format = 1
duration = "200 s"
[fixed]
rate = "10 Mbit/s"
delay = "25 ms"
[fixed.down]
loss = 0.003
[bearer]
preset = "wired"
[tcp]
profile = "ns2-newreno"
selective_acknowledgement = true
[[flow]]
kind = "download"
bytes = "5 MB"
"#;

/// Reductions by ECN: the oldest unacknowledged byte of each, and one past the newest sent.
#[derive(Default)]
struct Reductions(Vec<(i64, i64)>);

impl Sink for Reductions {
    fn wants(&self) -> Classes {
        Classes::TCP
    }

    fn record(&mut self, _: Instant, _: ComponentId, event: &Event) {
        if let Event::Tcp(event) = event
            && event.trigger == TcpTrigger::CongestionExperienced
        {
            self.0.push((event.acknowledged, event.acknowledged + event.outstanding.cast_signed()));
        }
    }
}

#[derive(Debug)]
struct Download {
    seconds: f64,
    /// Goodput in Mbit/s.
    goodput: f64,
    sender: Statistics,
    reductions: Vec<(i64, i64)>,
}

fn download(text: &str, sets: &[(&str, &str)]) -> Download {
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Scenario::read(text, "test", Path::new(""), &sets).expect("a valid scenario");
    let mut reductions = Reductions::default();
    let setup = Setup::new(&scenario, Seed::new(scenario.seed)).expect("a scenario that can be built");
    let mut simulation = setup.start(Some(&mut reductions as &mut dyn Sink), None);
    simulation.run(&AtomicBool::new(false));
    let seconds = simulation.now().as_secs_f64();
    let Flow::Transfer(flow) = &simulation.flows()[0] else { panic!("the flow is a download") };
    let goodput = flow.receiver().received() as f64 * 8.0 / seconds / 1e6;
    let sender = *flow.sender().statistics();
    drop(simulation);
    Download { seconds, goodput, sender, reductions: reductions.0 }
}

#[test]
fn marks_cost_no_more_goodput_than_drops() {
    let paths = [
        ("new-reno", "10 ms"),
        ("new-reno", "25 ms"),
        ("new-reno", "50 ms"),
        ("new-reno", "100 ms"),
        ("cubic", "10 ms"),
        ("cubic", "25 ms"),
        ("cubic", "50 ms"),
    ];
    for (algorithm, delay) in paths {
        let path = [("fixed.delay", delay), ("tcp.congestion.algorithm", algorithm)];
        let drops = download(CODEL, &path);
        let marks = download(CODEL, &[path[0], path[1], ("tcp.ecn", "true")]);
        let ratio = marks.goodput / drops.goodput;
        assert!((0.97..1.03).contains(&ratio), "{algorithm}, {delay}: {ratio:.3}, {marks:?} {drops:?}");
    }
}

#[test]
fn marks_reduce_the_window_once_for_each_window_of_data() {
    // RFC 3168 §6.1.2.
    for algorithm in ["new-reno", "cubic"] {
        for delay in ["10 ms", "25 ms", "50 ms", "100 ms"] {
            let path = [("fixed.delay", delay), ("tcp.congestion.algorithm", algorithm), ("tcp.ecn", "true")];
            let marks = download(CODEL, &path);
            assert_eq!(marks.reductions.len() as u64, marks.sender.ecn_reductions);
            for pair in marks.reductions.windows(2) {
                assert!(pair[0].1 < pair[1].0, "{algorithm}, {delay}: again at {} of {:?}", pair[1].0, pair[0]);
            }
        }
    }
}

#[test]
fn without_reordering_no_reduction_is_undone() {
    for algorithm in ["new-reno", "cubic"] {
        for delay in ["10 ms", "25 ms", "50 ms", "100 ms"] {
            let path = [("fixed.delay", delay), ("tcp.congestion.algorithm", algorithm)];
            let detection = download(CODEL, &path).sender;
            let none = download(CODEL, &[path[0], path[1], ("tcp.recovery.eifel", "false")]).sender;
            assert_eq!(detection.undos, 0, "{algorithm}, {delay}: {detection:?}");
            assert_eq!(detection, none, "{algorithm}, {delay}");
        }
    }
}

#[test]
fn an_opening_segment_keeps_selective_acknowledgement() {
    let plain = download(LOSSY, &[]);
    let opened = download(LOSSY, &[("tcp.opening_segment", "true")]);
    assert_eq!(opened.sender.timeouts, 0, "{opened:?}");
    assert!(opened.sender.fast_retransmits >= 8, "{opened:?}");
    let ratio = opened.seconds / plain.seconds;
    assert!((0.9..1.1).contains(&ratio), "{:.2} s, and {:.2} s without", opened.seconds, plain.seconds);
}

#[test]
fn the_longest_times_do_not_overflow() {
    // A sum of times beyond 584 years would panic.
    const SLOW: &str = r#"
format = 1
duration = "60 s"
[fixed]
rate = "100 kbit/s"
delay = "10 ms"
queue = { discipline = "cake", target = "8760 h", bytes = "100 kB" }
[bearer]
model = "wired"
downlink = { rate = "1 Mbit/s", delay = "10 ms", loss = 0.01 }
uplink = { rate = "1 Mbit/s", delay = "10 ms", loss = 0.01 }
[[flow]]
kind = "download"
bytes = "100 kB"
"#;
    let longest = ("tcp.retransmission_timeout.maximum", "8760 h");
    for key in ["minimum", "granularity", "initial", "maximum"] {
        let key = format!("tcp.retransmission_timeout.{key}");
        let run = download(SLOW, &[longest, (&key, "8760 h")]);
        assert!(run.sender.unique_bytes > 0 && run.seconds <= 60.0, "{key}: {run:?}");
    }
}
