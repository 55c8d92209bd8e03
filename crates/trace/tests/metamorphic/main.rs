//! Changes that leave a capture's connections as they were leave their causes, too.
//!
//! The causes may move by 3 % of a connection's time. Where a change takes information away, they
//! may move further, but with less confidence.

#[path = "../../../observe/tests/support/mod.rs"]
mod support;

mod judge;
mod transform;

use std::env;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;
use airpath_core::rng::Seed;
use airpath_core::{Ecn, Instant, Span};
use airpath_wire::segment::{Datagram, Endpoint, Route, Segment, Tunnel};
use airpath_wire::tcp::{Flags, Options};
use judge::{Moved, judge};
use transform::{Change, Packets};

fn packets(path: &Path) -> Packets {
    let Ok(mut reader) = Reader::new(File::open(path).expect("the capture can be read")) else { return Vec::new() };
    let mut decoder = Decoder::default();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record() {
        match decoder.decode(&record) {
            Decoded::Segment(segment) => packets.push(Decoded::Segment(Segment { payload: &[], ..segment })),
            Decoded::Datagram(datagram) => packets.push(Decoded::Datagram(Datagram { payload: &[], ..datagram })),
            Decoded::Skipped(_) => {}
        }
    }
    packets
}

/// The share of a connection's time that may have another cause, in percent.
const TOLERANCE: u64 = 3;

/// Less is no change: two intervals in which the packets of a host are counted.
const LEAST: Span = Span::from_millis(40);

/// Changes that move the causes with the same confidence, and why.
const EXCEPTIONS: [(Change, &str, &str); 5] = [
    (
        Change::DropPureAcknowledgements,
        "loss1_plain_snd.pcap",
        "without selective acknowledgements and timestamps, F-RTO decides by the two acknowledgements after a \
         time-out; the capture lacks one of them, and nothing shows that",
    ),
    (
        Change::DropPureAcknowledgements,
        "variant_snap60.pcap",
        "at the receiver, an acknowledgement shows the window of the sender; those that closed it are dropped",
    ),
    (
        Change::DropAcknowledged,
        "loss1_nosack_rcv.pcap",
        "the receiver's window is closed between losses; the segments that show a hole or fill the window are dropped",
    ),
    (
        Change::DropRun,
        "loss1_nosack_rcv.pcap",
        "the end of a recovery is dropped; the first flight after it looks like slow start",
    ),
    (
        Change::DropPureAcknowledgements,
        "tcptrace__http.dmp",
        "the acknowledgement that ends the latency of a request is dropped; the reply with it comes 41 ms later",
    ),
];

/// The connections whose causes a change moves too far, each in a line.
fn moved_too_far(file: &str, packets: &[Decoded<'static>], change: Change, seed: u64) -> Vec<String> {
    let before = judge(packets);
    let after = judge(&change.apply(packets, &mut Seed::new(seed).stream("metamorphic")));
    let mut lines = Vec::new();
    for (index, one) in before.iter().enumerate() {
        let is_same = |route: Route| route == one.route || route.reversed() == one.route;
        // A route may have several connections, one after the other.
        let earlier = before[..index].iter().filter(|other| is_same(other.route)).count();
        let Some(other) = after.iter().filter(|other| is_same(change.original(&other.route))).nth(earlier) else {
            if !loses_information(change) {
                lines.push(format!("{file}, port {}, {change:?}, seed {seed}: missing", one.route.source.port));
            }
            continue;
        };
        let moved = Moved::between(&one.pieces, &other.pieces, change.shift());
        let counted = if loses_information(change) { moved.confident } else { moved.changed };
        let known = EXCEPTIONS.iter().any(|(known, name, _)| *known == change && *name == file);
        if counted > LEAST && counted * 100 > moved.total * TOLERANCE && !known {
            lines.push(format!("{file}, port {}, {change:?}, seed {seed}: {moved:?}", one.route.source.port));
        }
    }
    lines
}

/// Whether the changed capture lacks information: times or lengths of packets.
const fn loses_information(change: Change) -> bool {
    match change {
        Change::Offload
        | Change::MergeOne
        | Change::DropAcknowledged
        | Change::DropRun
        | Change::DropPureAcknowledgements
        | Change::CutEnd
        | Change::CutBegin => true,
        Change::Split
        | Change::ShiftClock
        | Change::RewriteAddresses
        | Change::AddStranger
        | Change::AddNeighbour
        | Change::SwapClients => false,
    }
}

/// The seeds of the changes: one, or more in the soak.
fn seeds() -> Range<u64> {
    let cases = env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256_u64);
    1..2 + cases / 512
}

/// With other seeds, at most one in this number of comparisons fails.
const SOAK: usize = 100;

fn assert_causes_stay(files: &[PathBuf]) {
    let (mut lines, mut compared) = (Vec::new(), 0);
    for file in files {
        let name = file.file_name().expect("a capture has a name").to_string_lossy();
        let packets = packets(file);
        for (change, seed) in Change::ALL.into_iter().flat_map(|change| seeds().map(move |seed| (change, seed))) {
            lines.extend(moved_too_far(&name, &packets, change, seed));
            compared += 1;
        }
    }
    let allowed = if seeds().count() > 1 { compared / SOAK } else { 0 };
    assert!(lines.len() <= allowed, "{} connections:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn a_capture_in_another_format_has_the_same_causes() {
    let Some(folder) = airpath_testing::shared_captures() else { return };
    let [pcap, others @ ..] = ["loss1_snd.pcap", "variant_nsec.pcap", "variant_pcapng.pcapng"]
        .map(|name| judge(&packets(&folder.join("own").join(name))));
    for other in others {
        assert_eq!(pcap.len(), other.len());
        for (one, other) in pcap.iter().zip(&other) {
            assert_eq!(one.pieces, other.pieces);
        }
    }
}

/// A segment with data on this route, without a handshake.
fn data(route: Route) -> Decoded<'static> {
    Decoded::Segment(Segment {
        frame: 1,
        time: Instant::from_nanos(1),
        route,
        identification: None,
        time_to_live: 64,
        ecn: Ecn::NotEct,
        sequence: 1,
        acknowledgment: 1,
        flags: Flags::ACK,
        window: 1000,
        urgent: 0,
        options: Options::default(),
        options_cut: false,
        length: 100,
        captured: 0,
        payload: &[],
        checksum: None,
    })
}

#[test]
fn rewritten_ports_show_the_same_server() {
    let end = |host: u8, port: u16| Endpoint { address: [192, 0, 2, host].into(), port };
    let ports = [0, 80, 443, 1023, 1024, 5000, 8080, 30_000, 32_767, 32_768, 40_000, 65_535];
    for (one, other) in ports.iter().flat_map(|one| ports.map(|other| (*one, other))) {
        let route = Route { source: end(1, one), destination: end(2, other), tunnel: Tunnel::None };
        let packets = [data(route)];
        let change = Change::RewriteAddresses;
        let after = judge(&change.apply(&packets, &mut Seed::new(1).stream("metamorphic")))[0].route;
        assert_eq!(judge(&packets)[0].route, change.original(&after), "{one} to {other}");
        assert_ne!(change.original(&route).source.port, one);
    }
}

#[test]
fn causes_stay_in_the_captures_of_the_repository() {
    assert_causes_stay(&support::captures());
}

#[test]
fn causes_stay_in_the_shared_captures() {
    support::shared_captures().iter().for_each(|files| assert_causes_stay(files));
}
