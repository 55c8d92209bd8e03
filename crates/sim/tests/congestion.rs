//! Whole downloads: how often the window is reduced, and how losses are repaired.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::Seed;
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

#[derive(Debug)]
struct Download {
    seconds: f64,
    sender: Statistics,
}

fn download(text: &str, sets: &[(&str, &str)]) -> Download {
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Scenario::read(text, "test", Path::new(""), &sets).expect("a valid scenario");
    let setup = Setup::new(&scenario, Seed::new(scenario.seed)).expect("a scenario that can be built");
    let mut simulation = setup.start(None, None);
    simulation.run(&AtomicBool::new(false));
    let seconds = simulation.now().as_secs_f64();
    let Flow::Transfer(flow) = &simulation.flows()[0] else { panic!("the flow is a download") };
    let sender = *flow.sender().statistics();
    Download { seconds, sender }
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
