//! Captures of both ends, with known truth.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;
use airpath_core::Span;
use airpath_observe::flows::{FlowNumber, Flows, Listener};
use airpath_observe::{Connection, Detector, End, Observation};
use airpath_trace::two_point::{Clock, Direction, JoinOptions, JoinedCaptures, join};
use airpath_wire::segment::Segment;

/// The captures of iperf3 through a relay.
#[track_caller]
fn captures() -> Option<PathBuf> {
    Some(airpath_testing::shared_captures()?.join("own"))
}

/// What a listener makes of a capture.
fn heard<L: Listener + Default>(path: &Path) -> L {
    let mut reader = Reader::new(File::open(path).expect("the capture opens")).expect("it is a capture");
    let (mut decoder, mut flows, mut listener) = (Decoder::default(), Flows::default(), L::default());
    while let Some(record) = reader.next_record() {
        if let Decoded::Segment(segment) = decoder.decode(&record) {
            flows.segment(&segment, &mut listener);
        }
    }
    flows.finish(&mut listener);
    listener
}

fn both(folder: &Path, name: &str, options: &JoinOptions) -> JoinedCaptures {
    let file = |end: &str| folder.join(format!("{name}_{end}.pcap"));
    join(heard(&file("snd")), heard(&file("rcv")), options).expect("they share connections")
}

/// The data packets by INDEX.md: sent, lost (those included that were queued at the end),
/// retransmitted, and retransmitted spuriously.
const TRUTH: [(&str, u64, u64, u64, u64); 5] = [
    ("clean", 2632, 88, 64, 0),
    ("loss1", 2679, 146, 117, 0),
    ("loss1_nosack", 1589, 444, 555, 322),
    ("loss1_plain", 1183, 180, 431, 305),
    ("outage3", 722, 32, 24, 2),
];

/// The connection that carried the data: iperf3 has another for its own purposes.
fn bulk(ends: &JoinedCaptures) -> &Direction {
    assert_eq!(ends.connections.len(), 2);
    ends.connections[1].sent_by(End::Client)
}

#[test]
fn losses_and_spurious_retransmissions_are_exact() {
    let Some(folder) = captures() else { return };
    for (name, sent, lost, resent, spurious) in TRUTH {
        let ends = both(&folder, name, &JoinOptions::default());
        let data = bulk(&ends);
        assert_eq!(
            (data.data_packets, data.lost + data.unknown, data.retransmissions, data.spurious),
            (sent, lost, resent, spurious),
            "{name}"
        );
        assert_eq!(data.reordered, 0, "{name}: the relay keeps the order");
        for connection in &ends.connections {
            assert_eq!(connection.near, End::Client, "{name}: the client sends");
        }
    }
}

/// Retransmissions that must be found spurious from the sender's capture alone, of those of
/// `TRUTH`: all where the receiver reports them, and without SACK and timestamps those that the
/// count and times of acknowledgements show.
const FOUND: [(&str, usize); 5] =
    [("clean", 0), ("loss1", 0), ("loss1_nosack", 113), ("loss1_plain", 178), ("outage3", 2)];

/// The retransmissions of clients that were found spurious, and by what.
#[derive(Default)]
struct Found(BTreeMap<u64, Detector>);

impl Listener for Found {
    fn observed(&mut self, _: FlowNumber, _: &Observation, _: &Segment<'_>, connection: &Connection) {
        self.0.extend(connection.spurious(End::Client).map(|spurious| (spurious.frame, spurious.detector)));
    }
}

#[test]
fn what_the_sender_alone_finds_spurious_is_spurious() {
    let Some(folder) = captures() else { return };
    for (name, least) in FOUND {
        let ends = both(&folder, name, &JoinOptions::default());
        let Found(found) = heard(&folder.join(format!("{name}_snd.pcap")));
        for (frame, detector) in &found {
            let transit = bulk(&ends).transit(*frame).expect("the sender's capture has it");
            assert!(transit.spurious, "{name}: frame {frame} was needed, although {detector:?} found it");
        }
        assert!(found.len() >= least, "{name}: {} found", found.len());
    }
}

#[test]
fn the_fit_finds_the_one_clock_of_both_captures() {
    let Some(folder) = captures() else { return };
    for (name, ..) in TRUTH {
        let ends = both(&folder, name, &JoinOptions::default());
        let fit = ends.fit.expect("no clock was given");
        // The relay's delay is 50 ms each way; it does not keep it to the millisecond.
        assert!(fit.clock.offset.abs() < 1_000_000, "{name}: {} ns", fit.clock.offset);
        assert!(fit.uncertainty < Span::from_millis(52) && fit.uncertainty > Span::from_millis(50), "{name}");
        assert!(fit.clock.skew.abs() < 1e-4, "{name}: {}", fit.clock.skew);
    }
}

#[test]
fn an_outage_of_three_seconds_is_a_silence_both_ways_and_stays_in_the_delays() {
    let Some(folder) = captures() else { return };
    let ends = both(&folder, "outage3", &JoinOptions { clock: Some(Clock::SAME), ..JoinOptions::default() });
    let bulk = &ends.connections[1];
    for end in End::BOTH {
        let [gap] = bulk.sent_by(end).gaps[..] else { panic!("{end:?} has one gap") };
        let length = gap.length().as_secs_f64();
        assert!((2.9..3.1).contains(&length), "{end:?}: {length} s");
        assert_eq!(gap.burst.packets, 2, "{end:?}");
    }
    // What was sent meanwhile found the queue full; the acknowledgements of what had arrived were
    // only late.
    assert!(bulk.sent_by(End::Client).gaps[0].has_loss() && !bulk.sent_by(End::Server).gaps[0].has_loss());
    let delay = bulk.sent_by(End::Client).delay.expect("packets arrived");
    assert!((3.0..3.2).contains(&delay.maximum.as_secs_f64()), "{delay:?}");
}
