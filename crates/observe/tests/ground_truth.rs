//! Captures with a true result for each packet: those of `data/captures/own`, with the table in its
//! `INDEX.md`.

mod support;

use airpath_observe::{Connection, End, Spread};
use airpath_testing::shared_captures;
use support::connections;

/// From the captures of both ends: capture at the sender, retransmissions, spurious ones.
const TRUTH: [(&str, u64, u64); 5] =
    [("clean", 64, 0), ("loss1", 117, 0), ("loss1_nosack", 555, 322), ("loss1_plain", 431, 305), ("outage3", 24, 2)];

/// The connections of a capture.
#[track_caller]
fn of(name: &str) -> Option<Vec<Connection>> {
    Some(connections(&shared_captures()?.join("own").join(name)))
}

fn total(connections: &[Connection], figure: impl Fn(&Connection, End) -> u64) -> u64 {
    connections.iter().flat_map(|connection| End::BOTH.map(|end| figure(connection, end))).sum()
}

#[test]
fn retransmissions_are_counted_exactly_at_the_sender() {
    for (name, retransmissions, _) in TRUTH {
        let Some(seen) = of(&format!("{name}_snd.pcap")) else { return };
        assert_eq!(total(&seen, |connection, end| connection.figures(end).retransmissions), retransmissions, "{name}");
    }
}

#[test]
fn no_retransmission_is_called_spurious_that_was_needed() {
    for (name, _, spurious) in TRUTH {
        let Some(seen) = of(&format!("{name}_snd.pcap")) else { return };
        let found = total(&seen, |connection, end| connection.figures(end).spurious_retransmissions());
        assert!(found <= spurious, "{name}: {found} of {spurious}");
        // With selective acknowledgements all are detected: the receiver reports duplicates.
        let selective = seen.iter().all(|connection| connection.figures(End::Server).selective_permitted);
        assert!(!selective || found == spurious, "{name}: {found} of {spurious}");
        println!("{name}: {found} of {spurious} found from the sender's capture alone");
    }
}

#[test]
fn an_outage_does_not_vanish_from_the_round_trip() {
    let Some(seen) = of("outage3_snd.pcap") else { return };
    let longest =
        |spread: fn(&Connection) -> Spread| seen.iter().filter_map(|seen| spread(seen).maximum()).max().unwrap();
    // Packets were held for 3 s; the longest one-way delay that both ends' captures show is 3.146
    // s.
    let echo = longest(|connection| connection.figures(End::Client).echo_round_trip);
    assert!((3.1..3.2).contains(&echo.as_secs_f64()), "{echo}");
    let once = longest(|connection| connection.figures(End::Client).round_trip);
    assert!(once.as_secs_f64() < 0.5, "Karn's rule leaves it out: {once}");
}

#[test]
fn the_receivers_capture_shows_what_came_twice() {
    for (name, _, spurious) in TRUTH {
        let Some(seen) = of(&format!("{name}_rcv.pcap")) else { return };
        let found = total(&seen, |connection, end| connection.figures(end).spurious_retransmissions());
        let twice = total(&seen, |connection, end| connection.figures(end).retransmissions);
        assert_eq!(found, twice, "{name}: every segment that the receiver's host saw again had arrived before");
        assert!(found <= spurious, "{name}: {found} of {spurious}, some of them lost in transit");
    }
}
