//! Header compression on the headers of simulated packets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{Direction, PacketCounters, Seed};
use airpath_scenario::Scenario;
use airpath_sim::Setup;
use airpath_sim::replay::{Recording, ReplayError, replay_into};

const TRAFFIC: &str = r#"
format = 1
name = "compressed"
duration = "60 s"
[[flow]]
kind = "download"
bytes = "50 kB"
[[flow]]
kind = "datagrams"
direction = "up"
rate = "10 kbit/s"
size = 32
duration = "10 s"
[[flow]]
kind = "ping"
requests = 5
"#;

fn scenario(compression: &str) -> Scenario {
    let text = format!("{TRAFFIC}\n[bearer]\npreset = \"umts-r99-64\"\n{compression}");
    Scenario::read(&text, "test", Path::new(""), &[]).expect("a valid scenario")
}

/// Counters of the bearer, downlink first, and its statistics.
fn run(compression: &str) -> ([PacketCounters; 2], BTreeMap<&'static str, u64>) {
    let setup = Setup::new(&scenario(compression), Seed::new(1)).expect("a network");
    let mut simulation = setup.start(None, None);
    simulation.run(&AtomicBool::new(false));
    let (_, cell) = simulation.hops().find(|(name, _)| *name == "cell").expect("the bearer");
    (Direction::BOTH.map(|direction| cell.counters(direction)), cell.statistics().into_iter().collect())
}

#[test]
fn the_same_packets_arrive_with_smaller_headers() {
    let (plain, none) = run("");
    assert!(none.is_empty(), "{none:?}");
    for mode in ["unidirectional", "optimistic"] {
        let (compressed, statistics) = run(&format!("header_compression.mode = \"{mode}\""));
        println!("{mode} {statistics:?}");
        assert_eq!(compressed[1].offered.bytes, compressed[1].delivered.bytes);
        assert!(compressed[0].delivered.packets >= plain[0].delivered.packets * 9 / 10);
        for direction in ["down", "up"] {
            let of = |name: &str| statistics[format!("rohc_{direction}_{name}").as_str()];
            assert!(of("compressed_header_bytes") * 3 < of("header_bytes"), "{direction}: {statistics:?}");
            assert_eq!((of("failures"), of("undetected")), (0, 0), "{direction}: {statistics:?}");
            assert_eq!(of("feedback_bytes") > 0, mode == "optimistic", "{direction}: {statistics:?}");
            // TCP, UDP and ICMP between the same addresses differ in their protocol.
            assert!((2..=3).contains(&of("contexts")), "{direction}: {statistics:?}");
        }
    }
}

#[test]
fn a_recording_has_no_headers_for_it() {
    let with = scenario("header_compression.mode = \"optimistic\"");
    let error = replay_into(&with, &Recording::default(), None, &AtomicBool::new(false)).expect_err("no headers");
    assert!(matches!(error, ReplayError::HeaderCompression), "{error}");
}
