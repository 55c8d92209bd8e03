//! Acknowledgements that a path with one direction at a time holds back, as NB-IoT does.

use std::fmt::Write;

use airpath_observe::testing::play;

use super::exchanges::{beside, millis};
use crate::causes::{Account, Cause, Causes, Confidence};

/// The handshake and a request, from a capture at the server; the round trip is 100 ms. A timestamp
/// of the client comes 1000 ms before its value without a wait.
const AT_SERVER: &str = "
    0 > syn mss 1460 ts 1000,0
    0 < syn ack 0 mss 1460 ts 1,1000
    100 > ack 0 ts 1100,1
    100 > psh data 0..100 ack 0 ts 1100,1
";

/// Flights of ten segments. `sent` is when the acknowledgement of each was sent, after its flight;
/// all arrive from 1080 ms after it, with this spacing.
fn exchange(sent: impl Fn(u64) -> u64, spacing: u64) -> String {
    let mut exchange = AT_SERVER.to_owned();
    for flight in 0..4 {
        let begin = 110 + flight * (1090 + 10 * spacing);
        for segment in 0..10 {
            let from = (flight * 10 + segment) * 1460;
            writeln!(exchange, "{begin} < data {from}..{} ack 100 ts {begin},1", from + 1460).unwrap();
        }
        for segment in 0..10 {
            let (at, to) = (begin + 1080 + segment * spacing, (flight * 10 + segment + 1) * 1460);
            let value = 1000 + begin + sent(segment);
            writeln!(exchange, "{at} > at 100 ack {to} id {to} ts {value},{begin}").unwrap();
        }
    }
    exchange
}

fn flights(sent: impl Fn(u64) -> u64) -> Account {
    beside(&exchange(sent, 1), "")
}

#[test]
fn the_link_was_full_if_timestamps_show_that_the_data_arrived() {
    let account = flights(|segment| 170 + 100 * segment);
    let full = millis(&account, Cause::PathRate) + millis(&account, Cause::Queueing);
    assert!(full > 3600, "{account}");
    assert!(millis(&account, Cause::Radio) < 300, "{account}");
}

#[test]
fn acknowledgements_that_waited_after_all_data_had_arrived_waited_for_the_radio() {
    let account = flights(|segment| 110 + segment);
    assert!(millis(&account, Cause::Radio) > 3000, "{account}");
}

#[test]
fn data_that_came_after_the_silence_waited_for_the_radio() {
    let account = flights(|segment| 1080 + segment);
    assert!(millis(&account, Cause::Radio) > 2800, "{account}");
}

#[test]
fn without_timestamps_a_bunch_of_acknowledgements_after_a_silence_shows_little() {
    let confidences = |spacing: u64| {
        let exchange = exchange(|segment| 170 + 100 * segment, spacing);
        let (_, observations) = play(&exchange);
        let mut causes = Causes::new(None);
        let mut found = Vec::new();
        for mut observation in observations {
            observation.timestamps = None;
            causes.observe(&observation, &mut |piece| found.push(*piece));
        }
        causes.finish(&mut |piece| found.push(*piece));
        let gaps = found.iter().filter(|piece| piece.cause == Cause::Radio);
        gaps.map(|piece| piece.confidence).collect::<Vec<_>>()
    };
    let bunch = confidences(1);
    assert!(bunch.len() >= 3 && bunch.iter().all(|each| *each == Confidence::Low), "{bunch:?}");
    let steady = confidences(60);
    assert!(steady.contains(&Confidence::Medium), "{steady:?}");
}
