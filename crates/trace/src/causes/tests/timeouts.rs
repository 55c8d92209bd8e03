//! Time-outs: whether what was outstanding was lost or delayed.

use std::fmt::Write;

use super::exchanges::{account, millis};
use crate::causes::{Account, Cause, Fate};

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

/// Twelve segments; eight are acknowledged while the sender sends nothing, as BBR with a window
/// that it has shrunk; then the `probe` and its `answer`.
fn tail_with_probe(probe: &str, answer: &str) -> Account {
    let mut exchange = "
        0 > syn mss 1460 permitted
        0 < syn ack 0 mss 1460 permitted
        100 > ack 0
        100 > psh data 0..100 ack 0
    "
    .to_owned();
    for segment in 0..12 {
        writeln!(exchange, "110 < data {}..{} ack 100", segment * 1460, (segment + 1) * 1460).unwrap();
    }
    for segment in 1..=8 {
        writeln!(exchange, "{} > at 100 ack {} id {}", 210 + segment, segment * 1460, 2 + segment).unwrap();
    }
    exchange += probe;
    exchange += answer;
    account(&exchange)
}

#[test]
fn new_data_of_a_tail_loss_probe_shows_that_the_sender_waited_for_its_timer() {
    let lost = tail_with_probe(
        "1000 < data 17520..18980 ack 100\n",
        "1100 > at 100 ack 11680 sack 17520..18980 id 20
        1100 < data 11680..13140 ack 100
        1200 > at 100 ack 13140 sack 17520..18980 id 21
        1200 < data 13140..14600 ack 100
        1200 < data 14600..16060 ack 100
        1200 < data 16060..17520 ack 100
        1300 > at 100 ack 18980 id 22
        ",
    );
    assert!((770..=790).contains(&millis(&lost, Cause::Timer)), "{lost}");
    // Only until the last acknowledgement, in which the sender seemed to have no data.
    assert!(millis(&lost, Cause::Application) <= 100, "{lost}");
    assert!(millis(&lost, Cause::Recovery) >= 180, "{lost}");
    let stall = &lost.stalls[0];
    assert_eq!((stall.fate, stall.timeouts, stall.tail_probes, stall.outstanding), (Fate::Lost, 0, 1, 5840));
}

#[test]
fn new_data_after_a_pause_is_no_probe_if_the_data_before_it_arrived() {
    // The acknowledgement of the last four segments was lost, and the application had no data.
    let arrived = tail_with_probe("1000 < data 17520..18980 ack 100\n", "1100 > at 100 ack 18980 id 20\n");
    assert_eq!(millis(&arrived, Cause::Timer), 0, "{arrived}");
    assert_eq!(millis(&arrived, Cause::Recovery), 0, "{arrived}");
}
