//! Captures that have each packet twice, as before and after a router, have the same causes.

use std::fmt::Write;

use airpath_core::Span;
use airpath_observe::Events;
use airpath_observe::testing::play;

use super::exchanges::{account, beside};
use crate::causes::{Account, Cause, Fate};

/// Each packet twice, with the same time to live and the same identification, or with a lower time
/// to live and no identification; the copy is this number of milliseconds later.
fn twice(exchange: &str, delay: u64, identified: bool) -> String {
    let lines = exchange.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut copies: Vec<(u64, String)> = Vec::new();
    for (number, line) in lines.enumerate() {
        let (time, fields) = line.split_once(' ').unwrap();
        let time: u64 = time.parse().unwrap();
        let id = number + 1;
        let [first, second] =
            if identified { [format!("id {id}"), format!("id {id}")] } else { ["".into(), "ttl 63".into()] };
        copies.push((time, format!("{time} {fields} {first}")));
        copies.push((time + delay, format!("{} {fields} {second}", time + delay)));
    }
    copies.sort_by_key(|(time, _)| *time);
    copies.into_iter().map(|(_, line)| line + "\n").collect()
}

fn assert_copies_change_nothing(exchange: &str) {
    let once = account(exchange);
    for (delay, identified) in [(0, true), (2, true), (0, false), (2, false)] {
        let doubled = twice(exchange, delay, identified);
        let (connection, observations) = play(&doubled);
        let copies = observations.iter().filter(|each| each.events.contains(Events::HARDWARE_DUPLICATE)).count();
        assert_eq!(2 * copies as u64, connection.segments(), "{delay} ms, identified: {identified}");
        let found = account(&doubled);
        let differs = |cause: &Cause| once.of(*cause).abs_diff(found.of(*cause)) > Span::from_millis(delay);
        let different: Vec<Cause> = Cause::ALL.into_iter().filter(differs).collect();
        assert!(different.is_empty(), "{delay} ms, identified: {identified}\n{once}\n{found}");
        assert_eq!(fates(&once), fates(&found));
    }
}

fn fates(account: &Account) -> Vec<Fate> {
    account.stalls.iter().map(|stall| stall.fate).collect()
}

/// Three responses of 30 segments over a link that takes 20 ms for each, with think time between.
/// The sender has fifteen segments in flight, so that they queue.
fn responses(at_client: bool) -> String {
    let answered = if at_client { 100 } else { 0 };
    let mut exchange = format!("0 > syn mss 1460\n{answered} < syn ack 0 mss 1460\n100 > ack 0\n");
    let mut lines: Vec<(u64, String)> = Vec::new();
    for response in 0..3_u64 {
        let at = 200 + 3000 * response;
        let requested = (response + 1) * 100;
        lines.push((at, format!("> psh data {}..{requested} ack {}", requested - 100, response * 30 * 1460)));
        for segment in 0..30 {
            let begin = (response * 30 + segment) * 1460;
            let left = at + 20 * (segment + 1);
            let sent = if segment < 15 { at + segment } else { left + 100 - 300 };
            let flags = if segment == 29 { "psh " } else { "" };
            let at_capture = if at_client { left + 100 } else { sent };
            lines.push((at_capture, format!("< {flags}data {begin}..{} ack {requested}", begin + 1460)));
            lines.push((left + 100, format!("> ack {}", begin + 1460)));
        }
    }
    lines.sort_by_key(|(time, _)| *time);
    for (time, line) in lines {
        writeln!(exchange, "{time} {line}").unwrap();
    }
    exchange
}

#[test]
fn responses_with_pauses() {
    for at_client in [false, true] {
        assert_copies_change_nothing(&responses(at_client));
    }
}

/// Two requests with think time before an outage. Two data packets of the client do not show that
/// its silences are usual, and their copies must not count.
#[test]
fn an_outage_on_the_path_of_one_host() {
    let mut exchange = "
        0    > syn mss 1460
        0    < syn ack 0 mss 1460
        100  > ack 0
        100  > psh data 0..100 ack 0
        110  < psh data 0..500 ack 100
        210  > ack 500
        1900 > psh data 100..200 ack 500
        "
    .to_owned();
    for segment in 0..40_u64 {
        let (begin, end) = (500 + segment * 1460, 500 + (segment + 1) * 1460);
        let at = 1910 + 25 * segment + if segment >= 20 { 2000 } else { 0 };
        writeln!(exchange, "{at} < data {begin}..{end} ack 200").unwrap();
        writeln!(exchange, "{} > ack {end}", at + 20 + if segment == 19 { 1990 } else { 0 }).unwrap();
    }
    let once = beside(&exchange, "");
    assert!(once.of(Cause::Radio) > Span::from_millis(1500), "{once}");
    for identified in [true, false] {
        let found = beside(&twice(&exchange, 1, identified), "");
        assert_eq!(found.of(Cause::Radio), once.of(Cause::Radio), "{once}\n{found}");
    }
}

#[test]
fn a_handshake_and_a_lost_segment() {
    assert_copies_change_nothing(
        "
        0   > syn mss 1460 permitted
        0   < syn ack 0 mss 1460 permitted
        100 > ack 0
        100 > psh data 0..100 ack 0
        110 < data 0..1460 ack 100
        111 < data 1460..2920 ack 100
        112 < data 2920..4380 ack 100
        113 < data 4380..5840 ack 100
        210 > ack 1460
        215 > ack 1460 sack 2920..4380
        220 > ack 1460 sack 2920..5840
        3210 < data 1460..2920 ack 100
        3320 > ack 5840
        9000 < fin at 5840 ack 100
        9100 > fin at 100 ack 5841
        9100 < at 5841 ack 101
        ",
    );
}

#[test]
fn a_closed_window() {
    assert_copies_change_nothing(
        "
        0    > syn mss 1460
        0    < syn ack 0 mss 1460
        100  > ack 0 win 2920
        100  > psh data 0..100 ack 0 win 2920
        110  < data 0..1460 ack 100
        112  < data 1460..2920 ack 100
        212  > ack 2920 win 0
        1212 < data 2920..2921 ack 100
        1312 > ack 2920 win 0
        4312 > ack 2920 win 2920
        4313 < data 2920..4380 ack 100
        4413 > ack 4380 win 2920
        ",
    );
}
