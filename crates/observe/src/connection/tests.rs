//! Scripted exchanges of segments, and their expected interpretation.

mod capture;
mod retransmission;
mod spurious;
mod timing;
mod window;

use airpath_core::Span;

use crate::testing::{play, segment};
use crate::{Connection, Observation};

const OPENING: &str = "
    0   > syn scale 7 permitted
    100 < syn ack 0 scale 8 permitted
    100 > ack 0 win 500
";

/// Without selective acknowledgements and timestamps.
const PLAIN: &str = "
    0   > syn
    100 < syn ack 0
    100 > ack 0
    200 > data 0..1000 ack 0
    201 > data 1000..2000 ack 0
    202 > data 2000..3000 ack 0
";

fn opened(rest: &str) -> (Connection, Vec<Observation>) {
    let (connection, observations) = play(&format!("{OPENING}{rest}"));
    (connection, observations.into_iter().skip(3).collect())
}

#[test]
fn a_clean_exchange() {
    let (_, seen) = play(&format!(
        "{OPENING}
        100 > data 0..1400 ack 0
        101 > data 1400..2800 ack 0
        201 < ack 2800 win 100
        "
    ));
    assert_eq!(seen.iter().map(|seen| seen.offset).collect::<Vec<_>>(), [-1, -1, 0, 0, 1400, 0]);
    assert_eq!(seen[1].round_trip, Some((Span::from_millis(100), 1)));
    // A window in a SYN is never scaled; later ones are by the shift of their sender.
    assert_eq!([seen[1].window, seen[2].window, seen[5].window], [60_000, 500 << 7, 100 << 8]);
    assert_eq!([seen[3].outstanding, seen[4].outstanding], [1400, 2800]);
    assert_eq!((seen[5].acknowledged, seen[5].delivered), (Some(2800), 2800));
    assert_eq!(seen[5].round_trip, Some((Span::from_millis(100), 5)));
    assert!(seen.iter().all(|seen| seen.events.is_empty()), "{seen:#?}");
}

#[test]
fn a_connection_is_complete_with_the_syns_and_fins_of_both_ends() {
    let lines = ["0 > syn", "1 < syn ack 0", "2 > fin ack 0", "3 < ack 1", "4 < fin ack 1", "5 > at 1 ack 1"];
    for (count, complete, closed) in [(4, false, false), (5, true, false), (6, true, true)] {
        let (connection, _) = play(&lines[..count].join("\n"));
        assert_eq!((connection.complete(), connection.closed()), (complete, closed), "{count} segments");
        assert_eq!((connection.segments(), connection.elapsed()), (count as u64, Span::from_millis(count as u64 - 1)));
    }
    let (connection, _) = play("0 > syn\n1 < rst ack 0");
    assert!(connection.closed() && !connection.complete(), "a reset closes both directions");
    let (connection, _) = play("0 > data 0..10 ack 0\n1 > fin at 10 ack 0\n2 < fin ack 11\n3 > at 11 ack 1");
    assert!(connection.closed() && !connection.complete(), "the capture begins after the SYNs");
}

#[test]
fn without_a_handshake_the_ports_show_the_server() {
    let (connection, _) = play("0 < data 0..1400 ack 0\n1 > ack 1400");
    assert_eq!(connection.route().destination.port, 80, "the first segment is the server's");
    let (mut first, _) = segment("0 > data 0..10 ack 0", 1);
    for (source, destination, server) in
        [(8080, 50_000, 8080), (50_000, 8080, 8080), (443, 8080, 443), (50_000, 50_001, 50_001)]
    {
        (first.route.source.port, first.route.destination.port) = (source, destination);
        assert_eq!(Connection::new(&first, false).route().destination.port, server, "{source} to {destination}");
    }
}
