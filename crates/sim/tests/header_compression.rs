//! Header compression on the headers of simulated packets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::{Direction, PacketCounters, Seed};
use airpath_scenario::Scenario;
use airpath_sim::Setup;

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

/// Counters of the bearer, downlink first, and its statistics.
fn run(traffic: &str, preset: &str, compression: &str) -> ([PacketCounters; 2], BTreeMap<&'static str, u64>) {
    let text = format!("{traffic}\n[bearer]\npreset = \"{preset}\"\n{compression}");
    let scenario = Scenario::read(&text, "test", Path::new(""), &[]).expect("a valid scenario");
    let setup = Setup::new(&scenario, Seed::new(1)).expect("a network");
    let mut simulation = setup.start(None, None);
    simulation.run(&AtomicBool::new(false));
    let (_, cell) = simulation.hops().find(|(name, _)| *name == "cell").expect("the bearer");
    (Direction::BOTH.map(|direction| cell.counters(direction)), cell.statistics().into_iter().collect())
}

#[test]
fn the_same_packets_arrive_with_smaller_headers() {
    let (plain, none) = run(TRAFFIC, "umts-r99-64", "");
    assert!(none.is_empty(), "{none:?}");
    let cases = ["unidirectional", "optimistic"].map(|mode| [(mode, "v1"), (mode, "v2")]);
    for (mode, version) in cases.into_iter().flatten() {
        let compression = format!("header_compression = {{ mode = \"{mode}\", version = \"{version}\" }}");
        let (compressed, statistics) = run(TRAFFIC, "umts-r99-64", &compression);
        println!("{mode} {version} {statistics:?}");
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

/// A download over a dedicated channel: bytes of a header of 52 bytes with timestamps, in both
/// directions, with the profiles of RFC 3095 and with that of RFC 6846.
#[test]
fn headers_of_tcp_shrink_to_a_fifth() {
    const DOWNLOAD: &str = "format = 1\nduration = \"120 s\"\n[[flow]]\nkind = \"download\"\nbytes = \"500 kB\"\n";
    let run = |compression: &str| {
        let (counters, statistics) = run(DOWNLOAD, "umts-r99-384", compression);
        Direction::BOTH.map(|direction| {
            let name = if direction == Direction::Down { "down" } else { "up" };
            let of = |key: &str| statistics[format!("rohc_{name}_{key}").as_str()];
            assert_eq!((of("failures"), of("undetected"), of("contexts")), (0, 0, 1), "{statistics:?}");
            // Feedback of the opposite direction is no packet of the flow.
            let packets = counters[direction as usize].offered.packets as f64;
            (of("header_bytes") as f64 / packets, of("compressed_header_bytes") as f64 / packets)
        })
    };
    let ip = run("header_compression.mode = \"optimistic\"");
    let tcp = run("header_compression = { mode = \"optimistic\", profiles = [\"tcp\", \"udp\", \"ip\"] }");
    println!("bytes of headers for a packet, before and after: with IP {ip:.1?}, with TCP {tcp:.1?}");
    for (direction, ((ip_before, _), (before, after))) in ip.into_iter().zip(tcp).enumerate() {
        assert_eq!(ip_before, 20.0, "without the profile, the IP header is compressed");
        assert!(before >= 40.0, "{direction}: {before}");
        assert!(after < 0.25 * before, "{direction}: {after} of {before}");
    }
}

/// RTP over UDP and IPv4 with a checksum, which has two octets; the rest has one, and more after a
/// pause, when the timestamp jumps. The voice bearer of LTE has contexts of its own: beside other
/// traffic, the call needs no octet for the identifier of its context.
#[test]
fn a_voice_header_has_one_to_four_octets() {
    const CALL: &str =
        "format = 1\nduration = \"120 s\"\n[[flow]]\nkind = \"voice\"\nduration = \"60 s\"\nstart = \"3 s\"\n";
    const PING: &str = "[[flow]]\nkind = \"ping\"\nrequests = 2\n";
    let cases = [("umts-r99-64", ""), ("lte-10mhz-volte", PING)];
    for ((preset, other), version) in cases.into_iter().flat_map(|case| [(case, "v1"), (case, "v2")]) {
        let compression = format!("header_compression = {{ mode = \"optimistic\", version = \"{version}\" }}");
        for (dtx, buffer, most) in [(false, "fixed", 3.1), (true, "adaptive", 4.0)] {
            let traffic = format!("{CALL}dtx = {dtx}\njitter_buffer = \"{buffer}\"\n{other}");
            let (counters, statistics) = run(&traffic, preset, &compression);
            for (direction, name) in Direction::BOTH.into_iter().zip(["down", "up"]) {
                let of = |key: &str| statistics[format!("rohc_{name}_{key}").as_str()] as f64;
                let packets = counters[direction as usize].offered.packets as f64;
                let octets = of("compressed_header_bytes") / packets;
                println!("{preset}, {version}, dtx = {dtx}, {name}: {octets:.2}");
                assert!(of("header_bytes") / packets > 39.9 && octets < most, "{preset}: {statistics:?}");
            }
        }
    }
}

/// The three probes of a streaming server have an SSRC of their own (study umts-live, §VI.C).
#[test]
fn probes_of_a_stream_have_a_context_of_their_own() {
    const STREAM: &str = "format = 1\nduration = \"60 s\"\n[[flow]]\nkind = \"stream\"\nvideo.duration = \"10 s\"\nspeed = 4\nahead = \"5 s\"\n";
    let contexts = |probes: bool| {
        let traffic = format!("{STREAM}probes = {probes}\n");
        let (_, statistics) = run(&traffic, "umts-r99-384", "header_compression.mode = \"optimistic\"");
        statistics["rohc_down_contexts"]
    };
    assert_eq!(contexts(true), contexts(false) + 1);
}
