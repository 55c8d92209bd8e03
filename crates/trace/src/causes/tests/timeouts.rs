//! Time-outs: whether what was outstanding was lost or delayed.

use std::fmt::Write;

use super::exchanges::{account, millis};
use crate::causes::{Cause, Fate};

/// The handshake and a request, from a capture at the server; the round trip is 100 ms.
const AT_SERVER: &str = "
    0 > syn mss 1460
    0 < syn ack 0 mss 1460
    100 > ack 0
    100 > psh data 0..100 ack 0
";

#[test]
fn duplicate_acknowledgements_show_that_a_time_out_was_needed() {
    // The first of three segments is lost. Two duplicates do not make the sender retransmit.
    let account = account(&format!(
        "{AT_SERVER}
        110 < data 0..1460 ack 100
        110 < data 1460..2920 ack 100
        110 < data 2920..4380 ack 100
        210 > at 100 ack 0 id 2
        210 > at 100 ack 0 id 3
        1110 < data 0..1460 ack 100
        1210 > at 100 ack 4380 id 4
        1220 < data 4380..5840 ack 100
        1320 > at 100 ack 5840 id 5
        "
    ));
    assert!((890..=900).contains(&millis(&account, Cause::Timer)), "{account}");
    assert_eq!(millis(&account, Cause::Radio), 0, "{account}");
    assert_eq!(account.stalls[0].fate, Fate::Lost);
}

#[test]
fn a_fast_retransmission_that_is_lost_waits_for_the_timer() {
    let mut exchange = AT_SERVER.to_owned();
    for segment in 0..8 {
        writeln!(exchange, "110 < data {}..{} ack 100", segment * 1460, (segment + 1) * 1460).unwrap();
    }
    for duplicate in 0..7 {
        writeln!(exchange, "{} > at 100 ack 0 id {}", 210 + duplicate, 2 + duplicate).unwrap();
        if duplicate == 2 {
            exchange += "212 < data 0..1460 ack 100\n";
        }
    }
    exchange += "1110 < data 0..1460 ack 100\n1210 > at 100 ack 11680 id 20\n";
    exchange += "1220 < data 11680..13140 ack 100\n1320 > at 100 ack 13140 id 21\n";
    let account = account(&exchange);
    assert!((880..=900).contains(&millis(&account, Cause::Timer)), "{account}");
    assert_eq!(millis(&account, Cause::Radio), 0, "{account}");
}

#[test]
fn copies_of_what_had_arrived_show_no_hole() {
    // An outage holds a flight, and the timer sends it again: three duplicates. Then an outage
    // holds the next flight.
    let account = account(&format!(
        "{AT_SERVER}
        110 < data 0..1460 ack 100
        110 < data 1460..2920 ack 100
        110 < data 2920..4380 ack 100
        1110 < data 0..1460 ack 100
        1120 > at 100 ack 1460 id 2
        1120 < data 1460..2920 ack 100
        1121 > at 100 ack 2920 id 3
        1121 < data 2920..4380 ack 100
        1122 > at 100 ack 4380 id 4
        1122 < data 4380..5840 ack 100
        1122 < data 5840..7300 ack 100
        1122 < data 7300..8760 ack 100
        1210 > at 100 ack 4380 id 5
        1220 > at 100 ack 4380 id 6
        1221 > at 100 ack 4380 id 7
        2300 < data 4380..5840 ack 100
        3300 > at 100 ack 8760 id 8
        3310 < data 8760..10220 ack 100
        3410 > at 100 ack 10220 id 9
        "
    ));
    assert_eq!(millis(&account, Cause::Timer), 0, "{account}");
    assert!(millis(&account, Cause::Radio) > 2500, "{account}");
}

#[test]
fn an_acknowledgement_as_soon_as_that_of_a_full_segment_is_for_the_retransmission() {
    // A full segment needs 105 ms. Later the receiver acknowledges one every 40 ms.
    let mut exchange = format!("{AT_SERVER}110 < data 0..1460 ack 100\n215 > at 100 ack 1460 id 2\n");
    for segment in 1..20 {
        writeln!(exchange, "215 < data {}..{} ack 100", segment * 1460, (segment + 1) * 1460).unwrap();
    }
    for segment in 1..19 {
        writeln!(exchange, "{} > at 100 ack {} id {}", 290 + segment * 40, (segment + 1) * 1460, 2 + segment).unwrap();
    }
    // The last one is lost, and with it what follows.
    exchange += "1100 < data 29200..30660 ack 100\n2100 < data 27740..29200 ack 100\n";
    exchange += "2205 > at 100 ack 29200 id 40\n2205 < data 29200..30660 ack 100\n2310 > at 100 ack 30660 id 41\n";
    let account = account(&exchange);
    assert!(millis(&account, Cause::Timer) > 950, "{account}");
    assert_eq!(millis(&account, Cause::Radio), 0, "{account}");
}
