//! Causes of scripted exchanges: what captures have that one bulk transfer has not.

use std::fmt::Write;
use std::sync::Arc;

use airpath_core::Span;
use airpath_observe::End;
use airpath_observe::testing::{play, segment};

use crate::causes::{Account, Cause, Causes, Confidence, Fate, Piece};
use crate::shared_path::{Recorder, SharedPaths};

pub(super) fn account(exchange: &str) -> Account {
    let (_, observations) = play(exchange);
    let mut causes = Causes::new(None);
    for observation in &observations {
        causes.observe(observation, &mut |_| {});
    }
    causes.finish(&mut |_| {})
}

pub(super) fn millis(account: &Account, cause: Cause) -> u64 {
    account.of(cause).as_nanos() / 1_000_000
}

/// The time in which the applications have no data to send, or the last is in transit.
fn without_data(account: &Account) -> u64 {
    millis(account, Cause::Application) + millis(account, Cause::Latency)
}

/// The handshake and a request, from a capture at the client; the round trip is 100 ms.
const AT_CLIENT: &str = "
    0 > syn mss 1460
    100 < syn ack 0 mss 1460
    100 > ack 0
    100 > psh data 0..100 ack 0
";

/// The same from a capture at the server.
const AT_SERVER: &str = "
    0 > syn mss 1460
    0 < syn ack 0 mss 1460
    100 > ack 0
    100 > psh data 0..100 ack 0
";

/// Data that arrives at the client every millisecond; the segments that end at `merged` are in one
/// frame with those before.
fn steady_arrivals(merged: &[u64]) -> String {
    let mut exchange = AT_CLIENT.to_owned();
    let mut begin = 0;
    for segment in 1..=900 {
        if merged.contains(&(segment + 1)) {
            continue;
        }
        let (at, end) = (200 + segment, segment * 1460);
        writeln!(exchange, "{at} < data {begin}..{end} ack 100").unwrap();
        writeln!(exchange, "{at} > ack {end}").unwrap();
        begin = end;
    }
    exchange
}

#[test]
fn a_super_segment_does_not_change_the_causes_at_the_receiver() {
    let [whole, one, many] = [&[][..], &[20], &[20, 30, 31, 40, 41, 50, 51, 52, 80]].map(|merged| {
        let account = account(&steady_arrivals(merged));
        millis(&account, Cause::PathRate)
    });
    assert!(whole > 850, "{whole}");
    assert!(whole.abs_diff(one) <= 30, "{whole} {one}");
    assert!(whole.abs_diff(many) <= 30, "{whole} {many}");
}

#[test]
fn super_segments_do_not_make_the_sender_wait_for_its_application() {
    // Flights of ten segments, with which the sender fills its congestion window; as single
    // segments, and as TSO shows them.
    let flights = |lengths: &[u64]| {
        let mut exchange = AT_SERVER.to_owned();
        let (mut begin, mut acknowledged) = (0, 0);
        for flight in 0..20 {
            for (at, length) in (110 + flight * 100..).zip(lengths) {
                if flight > 0 {
                    acknowledged += length * 1460;
                    writeln!(exchange, "{at} > ack {acknowledged}").unwrap();
                }
                writeln!(exchange, "{at} < data {begin}..{} ack 100", begin + length * 1460).unwrap();
                begin += length * 1460;
            }
        }
        account(&exchange)
    };
    for lengths in [&[1; 10][..], &[3, 1, 4, 2]] {
        let account = flights(lengths);
        assert!(millis(&account, Cause::Application) < 50, "{account}");
        assert!(millis(&account, Cause::CongestionWindow) > 1500, "{account}");
    }
}

#[test]
fn an_exchange_of_small_messages_waits_for_no_window() {
    for handshake in [AT_CLIENT, AT_SERVER] {
        let at_client = handshake == AT_CLIENT;
        let mut exchange = handshake.to_owned();
        for message in 1..20_u64 {
            let (at, answer) = (100 + message * 200, 100 + message * 200 + 100);
            let (low, high) = ((message - 1) * 50, message * 50);
            let shift = u64::from(!at_client) * 100;
            writeln!(exchange, "{} < psh data {low}..{high} ack {}", at - shift, message * 100).unwrap();
            writeln!(exchange, "{} > psh data {}..{} ack {high}", answer - 100, message * 100, message * 100 + 100)
                .unwrap();
        }
        let account = account(&exchange);
        assert_eq!(millis(&account, Cause::SlowStart), 0, "{account}");
        assert_eq!(millis(&account, Cause::CongestionWindow), 0, "{account}");
        assert!(without_data(&account) > 3500, "{account}");
    }
}

/// The receiver fills its window of 2,920 bytes, does not read for 4 s, and is probed once.
fn closed_window(handshake: &str, delay: u64) -> String {
    let handshake = handshake.replace("100 > ack 0\n", "100 > ack 0 win 2920\n");
    let handshake = handshake.replace("data 0..100 ack 0", "data 0..100 ack 0 win 2920");
    format!(
        "{handshake}
        {send} < data 0..1460 ack 100
        {send} < data 1460..2920 ack 100
        {back} > ack 2920 win 0
        {probe} < data 2920..2921 ack 100
        {answer} > ack 2920 win 0
        {open} > ack 2920 win 2920
        {last} < data 2920..4380 ack 100
        {over} > ack 4380 win 2920
        ",
        send = 110 + 100 - delay,
        back = 210 + delay - 100 + 100 - delay + delay,
        probe = 1210 + 100 - delay,
        answer = 1310,
        open = 4310,
        last = 4410 - delay,
        over = 4510,
    )
}

#[test]
fn a_closed_window_is_the_receivers_at_both_ends() {
    for (handshake, delay) in [(AT_CLIENT, 0), (AT_SERVER, 100)] {
        let account = account(&closed_window(handshake, delay));
        assert!(millis(&account, Cause::ReceiveWindow) >= 3900, "{account}");
        assert_eq!(account.of(Cause::Radio), Span::ZERO, "{account}");
        let stall = account.stalls.first().expect("a stall is reported");
        assert_eq!((stall.fate, stall.timeouts), (Fate::WindowClosed, 1), "{stall}");
    }
}

#[test]
fn what_the_capture_lacks_is_no_loss() {
    // A segment is not captured; its receiver acknowledges it with the others.
    let exchange = format!(
        "{AT_CLIENT}
        210 < data 0..1460 ack 100
        210 > ack 1460
        220 < psh data 2920..3500 ack 100
        220 > ack 3500
        30000 > psh data 100..200 ack 3500
        30100 < psh data 3500..3600 ack 200
        "
    );
    let account = account(&exchange);
    assert_eq!(account.of(Cause::Recovery), Span::ZERO, "{account}");
    assert!(millis(&account, Cause::Application) > 29_000, "{account}");
}

#[test]
fn nagle_against_delayed_acknowledgements_has_a_story() {
    let exchange = format!(
        "{AT_CLIENT}
        200 < psh data 0..50 ack 100
        200 > psh data 100..200 ack 50
        300 < ack 200
        300 > psh data 200..300 ack 50
        440 < ack 300
        440 > psh data 300..400 ack 50
        540 < psh data 50..150 ack 400
        "
    );
    let stalls = account(&exchange).stalls;
    let nagle: Vec<_> = stalls.iter().filter(|stall| stall.fate == Fate::Nagle).collect();
    assert_eq!(nagle.len(), 1, "{stalls:?}");
    assert_eq!(nagle[0].length(), Span::from_millis(140));
}

#[test]
fn a_syn_that_is_lost_has_a_story_and_is_no_round_trip() {
    let exchange = "
        0 > syn mss 1460
        1000 > syn mss 1460
        3000 > syn mss 1460
        3100 < syn ack 0 mss 1460
        3100 > ack 0
        3100 > psh data 0..100 ack 0
        3200 < psh data 0..100 ack 100
    ";
    let account = account(exchange);
    assert_eq!(millis(&account, Cause::SetUp), 3100);
    assert_eq!(millis(&account, Cause::Latency), 100, "{account}");
    assert_eq!((account.stalls[0].fate, account.stalls[0].timeouts), (Fate::SynLost, 2));
}

#[test]
fn data_that_a_gap_discarded_is_not_reported_as_delivered() {
    // Ten segments; the path loses all but the first and the last, which arrive after a second.
    let mut exchange = AT_SERVER.replace("mss 1460", "mss 1460 permitted");
    for segment in 0..10 {
        writeln!(exchange, "110 < data {}..{} ack 100", segment * 1460, segment * 1460 + 1460).unwrap();
    }
    exchange += "210 > ack 1460\n1210 > ack 2920 sack 13140..14600\n";
    for segment in 2..9 {
        writeln!(exchange, "1211 < data {}..{} ack 100", segment * 1460, segment * 1460 + 1460).unwrap();
    }
    exchange += "1320 > ack 14600\n";
    let account = account(&exchange);
    assert_eq!(account.stalls[0].fate, Fate::PartlyLost, "{}", account.stalls[0]);
}

#[test]
fn a_lost_last_segment_with_the_fin_waits_for_the_timer() {
    let exchange = AT_SERVER.replace("mss 1460", "mss 1460 permitted")
        + "
        110 < data 0..1460 ack 100
        110 < data 1460..2920 ack 100
        110 < psh data 2920..3400 fin ack 100
        210 > ack 1460
        3210 < psh data 2920..3400 fin ack 100
        3310 > ack 1460 sack 2920..3401
        3310 < data 1460..2920 ack 100
        3410 > ack 3401
        ";
    let account = account(&exchange);
    assert!(millis(&account, Cause::Timer) >= 2900, "{account}");
    assert_eq!(account.stalls[0].fate, Fate::Lost);
}

/// Plays exchanges of one client as connections of one host; the lines of the second have other
/// ports, and only share the path. Returns the causes of the first.
pub(super) fn beside(first: &str, second: &str) -> Account {
    let paths = Arc::new(SharedPaths::default());
    let mut recorder = Recorder::new(Arc::clone(&paths));
    let lines = |exchange: &str| -> Vec<_> {
        exchange.lines().filter(|line| !line.trim().is_empty()).map(|line| segment(line, 0).0).collect()
    };
    let (own, mut other) = (lines(first), lines(second));
    for segment in &mut other {
        segment.route.source.port += 1000;
        segment.route.destination.port += 1000;
    }
    let mut all: Vec<_> = own.iter().chain(&other).collect();
    all.sort_by_key(|segment| segment.time);
    all.iter().for_each(|segment| recorder.segment(segment));
    let (connection, observations) = play(first);
    let route = connection.route();
    let host = paths.host(route.source.address).unwrap();
    let round_trip = host.round_trip(route.destination.address, connection.first());
    let mut causes = Causes::new(None).with_host(host, round_trip);
    for observation in &observations {
        causes.observe(observation, &mut |_| {});
    }
    causes.finish(&mut |_| {})
}

/// The path of both connections is silent for four seconds. The time before the capture shows no
/// silence that is as long.
#[test]
fn the_first_silence_of_a_capture_is_not_usual() {
    let mut first = "
        0    > syn mss 1460
        0    < syn ack 0 mss 1460
        100  > ack 0
        100  > psh data 0..100 ack 0
        "
    .to_owned();
    let mut second = first.clone();
    for number in 0..8 {
        let (begin, end) = (100 + number * 1460, 100 + (number + 1) * 1460);
        second += &format!("{} > data {begin}..{end} ack 0\n", 120 + number * 10);
        let (begin, end) = (number * 1460, (number + 1) * 1460);
        first += &format!("{} < data {begin}..{end} ack 100\n", 110 + number);
    }
    first += "210 > ack 2920\n";
    second += "4200 > data 11780..13240 ack 0\n4205 > data 13240..14700 ack 0\n";
    first += "4230 > ack 11680\n";
    let account = beside(&first, &second);
    assert!(millis(&account, Cause::Radio) > 3500, "{account}");
}

#[test]
fn a_gap_in_which_another_connection_passed_is_no_silence_of_the_radio() {
    let first = format!(
        "{AT_CLIENT}
        210 < data 0..1460 ack 100
        210 > ack 1460
        220 < data 1460..2920 ack 100
        220 > ack 2920
        2220 < data 2920..4380 ack 100
        2220 > ack 4380
        2230 < psh data 4380..4480 ack 100
        "
    );
    let busy: String = (230..2220).step_by(30).map(|at| format!("{at} < data 0..1460 ack 100\n")).collect();
    let alone = beside(&first, "");
    assert!(millis(&alone, Cause::Radio) > 1900, "{alone}");
    let shared = beside(&first, &busy);
    assert_eq!(shared.of(Cause::Radio), Span::ZERO, "{shared}");
    assert!(millis(&shared, Cause::Sharing) > 1900, "{shared}");
    assert_eq!(shared.stalls[0].fate, Fate::Behind);
    // An outage of a second in it is the radio's.
    let interrupted: String =
        busy.lines().filter(|line| !line.starts_with("1")).map(|line| format!("{line}\n")).collect();
    let outage = beside(&first, &interrupted);
    assert!((950..1100).contains(&millis(&outage, Cause::Radio)), "{outage}");
}

#[test]
fn a_short_segment_that_filled_an_earlier_window_is_not_the_applications_last() {
    let mut exchange = "
        0 > syn mss 1460 win 6000
        100 < syn ack 0 mss 1460
        100 > ack 0 win 6000
        100 > data 0..100 ack 0 win 6000
        "
    .to_owned();
    for flight in 0..10 {
        let (at, begin) = (200 + 100 * flight, 6000 * flight);
        for (from, to) in [(0, 1460), (1460, 2920)] {
            writeln!(exchange, "{at} < data {}..{} ack 100", begin + from, begin + to).unwrap();
        }
        // The receiver moves its window before the rest of the flight has arrived.
        writeln!(exchange, "{at} > ack {} win 6000", begin + 2920).unwrap();
        for (flags, from, to) in [("", 2920, 4380), ("", 4380, 5840), ("psh", 5840, 6000)] {
            writeln!(exchange, "{} < {flags} data {}..{} ack 100", at + 1, begin + from, begin + to).unwrap();
        }
        writeln!(exchange, "{} > ack {} win 6000", at + 1, begin + 6000).unwrap();
    }
    let account = account(&exchange);
    assert!(millis(&account, Cause::ReceiveWindow) > 650, "{account}");
    assert!(millis(&account, Cause::Application) <= 110, "{account}");
}

/// The same with timestamps: the SYN-ACK takes 50 ms, the one-way delay of the empty path.
const AT_CLIENT_TS: &str = "
    0 > syn mss 1460 ts 0,0
    100 < syn ack 0 mss 1460 ts 50,0
    100 > ack 0 ts 100,50
    100 > psh data 0..100 ack 0 ts 100,50
";

#[test]
fn timestamps_show_a_queue_at_the_receiver() {
    // A radio that delivers in order: four segments together, every 120 ms.
    let bursts = |delay: Option<u64>| {
        let mut exchange = if delay.is_some() { AT_CLIENT_TS } else { AT_CLIENT }.to_owned();
        // The option takes 12 bytes.
        let size = if delay.is_some() { 1448 } else { 1460 };
        for burst in 0..50 {
            let at = 1200 + 120 * burst;
            let sent = delay.map_or(String::new(), |delay| format!("ts {},100", at - delay));
            for segment in 4 * burst..4 * burst + 4 {
                let (begin, end) = (segment * size, (segment + 1) * size);
                writeln!(exchange, "{at} < data {begin}..{end} ack 100 {sent}").unwrap();
            }
            writeln!(
                exchange,
                "{at} > ack {} {}",
                (4 * burst + 4) * size,
                if sent.is_empty() { "" } else { "ts 100,0" }
            )
            .unwrap();
        }
        account(&exchange)
    };
    let (unknown, queued) = (bursts(None), bursts(Some(960)));
    assert!(millis(&unknown, Cause::Queueing) == 0, "{unknown}");
    assert!(millis(&queued, Cause::Queueing) > 5000, "{queued}");
    // A link that delivers each burst at once is not full.
    let prompt = bursts(Some(50));
    assert_eq!(prompt.of(Cause::Queueing) + prompt.of(Cause::PathRate), Span::ZERO, "{prompt}");
}

#[test]
fn the_arrivals_of_a_slow_link_are_no_gaps() {
    // Each segment takes a second, ten times the round trip of the handshake. The first two may
    // come together.
    let arrivals = |first: u64, outage: u64| {
        let mut exchange = format!("{AT_CLIENT_TS}200 < ack 100 ts 150,100\n");
        let mut at = 1200;
        for segment in 0..30 {
            let (begin, end) = (1448 * segment, 1448 * (segment + 1));
            // The sender's window grows with each acknowledgement.
            let sent = if segment < 10 { 150 } else { at - 9000 };
            writeln!(exchange, "{at} < data {begin}..{end} ack 100 ts {sent},100").unwrap();
            writeln!(exchange, "{at} > ack {end} ts {at},{sent}").unwrap();
            at += match segment {
                0 => first,
                20 => 1000 + outage,
                _ => 1000,
            };
        }
        account(&exchange)
    };
    for first in [1000, 10] {
        let slow = arrivals(first, 0);
        let full = millis(&slow, Cause::Queueing) + millis(&slow, Cause::PathRate);
        assert!(full > 26_000, "{slow}");
        let silent = arrivals(first, 9000);
        assert!((9000..12_500).contains(&millis(&silent, Cause::Radio)), "{silent}");
    }
}

#[test]
fn data_that_waits_in_front_of_the_link_before_it_arrives_is_not_the_applications() {
    // The server answers at 150 ms, and the link, which others fill, delivers from 700 ms on.
    let mut exchange = format!("{AT_CLIENT_TS}200 < ack 100 ts 150,100\n");
    for segment in 0..10 {
        let (at, begin) = (700 + 20 * segment, 1448 * segment);
        let flags = if segment == 9 { "psh" } else { "" };
        let end = if segment == 9 { begin + 700 } else { begin + 1448 };
        writeln!(exchange, "{at} < {flags} data {begin}..{end} ack 100 ts 150,100").unwrap();
        writeln!(exchange, "{at} > ack {end} ts {at},150").unwrap();
    }
    writeln!(exchange, "2000 > fin at 100 ack {}", 1448 * 9 + 700).unwrap();
    let account = account(&exchange);
    let full = millis(&account, Cause::Queueing) + millis(&account, Cause::PathRate);
    assert!((600..=700).contains(&full), "{account}");
}

#[test]
fn a_flight_that_ends_at_the_edge_of_the_window_waits_for_the_receiver() {
    // Eight segments a round trip; the window is as large, or larger.
    let flights = |window: u64| {
        let mut exchange = AT_CLIENT_TS.replace("ack 0 ts", &format!("ack 0 win {window} ts"));
        for flight in 0..30 {
            let at = 200 + 100 * flight;
            for segment in 8 * flight..8 * flight + 8 {
                let (begin, end) = (segment * 1448, (segment + 1) * 1448);
                writeln!(exchange, "{at} < data {begin}..{end} ack 100 ts {},{}", at - 50, at - 100).unwrap();
            }
            writeln!(exchange, "{at} > ack {} win {window} ts {at},{}", (8 * flight + 8) * 1448, at - 50).unwrap();
        }
        account(&exchange)
    };
    let (filled, not) = (flights(8 * 1448), flights(60_000));
    assert!(millis(&filled, Cause::ReceiveWindow) > 2500, "{filled}");
    assert_eq!(not.of(Cause::ReceiveWindow), Span::ZERO, "{not}");
}

#[test]
fn a_large_window_of_the_receiver_is_recognised_by_its_echoes() {
    // A flight of many segments each round trip; this end's clock has some ticks in a millisecond,
    // and stamps each acknowledgement with the next. The sender's clock has 1000 Hz.
    let flights = |segments: u64, ticks: u64, window: u64| {
        let mut exchange = AT_CLIENT_TS.to_owned();
        for flight in 0..12 {
            let at = 200 + 100 * flight;
            let stamp = |at: u64, segment: u64| 100 + (at - 100) * ticks + segment % ticks;
            for segment in 0..segments {
                let begin = (segments * flight + segment) * 1448;
                let end = begin + 1448;
                let (sent, echo) = (at - 50, stamp(at - 100, segment));
                writeln!(exchange, "{at} < data {begin}..{end} ack 100 ts {sent},{echo}").unwrap();
                writeln!(exchange, "{at} > ack {end} ts {},{sent}", stamp(at, segment)).unwrap();
            }
        }
        let (_, mut observations) = play(&exchange);
        let mut causes = Causes::new(None);
        for observation in &mut observations {
            observation.window = window;
            causes.observe(observation, &mut |_| {});
        }
        causes.finish(&mut |_| {})
    };
    for (segments, ticks) in [(600, 1), (600, 1000), (1500, 2000)] {
        let filled = flights(segments, ticks, segments * 1448);
        assert!(millis(&filled, Cause::ReceiveWindow) > 900, "{segments} segments, {ticks} ticks: {filled}");
        let not = flights(segments, ticks, segments * 2000);
        // Without known echoes the first round, of two flights, has more than the window.
        assert!(millis(&not, Cause::ReceiveWindow) < 150, "{segments} segments, {ticks} ticks: {not}");
    }
}

#[test]
fn a_segment_without_a_timestamp_does_not_keep_the_link_busy() {
    // A full link until 1200 ms, whose last segment lacks its timestamp. Then the sender thinks.
    let mut exchange = AT_CLIENT_TS.to_owned();
    for segment in 0..50 {
        let (at, begin) = (200 + 20 * segment, 1448 * segment);
        let end = begin + if segment == 49 { 700 } else { 1448 };
        let flags = if segment == 49 { "psh" } else { "" };
        let stamps = if segment == 49 { String::new() } else { format!("ts {},100", 150 + 8 * segment) };
        writeln!(exchange, "{at} < {flags} data {begin}..{end} ack 100 {stamps}").unwrap();
        writeln!(exchange, "{at} > ack {end} ts {at},150").unwrap();
    }
    writeln!(exchange, "5000 > fin at 100 ack {}", 1448 * 49 + 700).unwrap();
    let account = account(&exchange);
    assert!(millis(&account, Cause::Application) > 3700, "{account}");
    let full = millis(&account, Cause::Queueing) + millis(&account, Cause::PathRate);
    assert!((700..1100).contains(&full), "{account}");
}

#[test]
fn data_of_others_against_the_direction_is_no_sharing() {
    let mut first = AT_SERVER.to_owned();
    for segment in 0..200 {
        writeln!(first, "110 < data {}..{} ack 100", segment * 1460, (segment + 1) * 1460).unwrap();
    }
    for segment in 0..200 {
        writeln!(first, "{} > ack {}", 220 + 12 * segment, (segment + 1) * 1460).unwrap();
    }
    let uploads: String = (0..240).map(|at| format!("{} > data 0..1460 ack 100\n", 200 + at * 10)).collect();
    let upload = beside(&first, &uploads);
    assert_eq!(upload.of(Cause::Sharing), Span::ZERO, "{upload}");
    // Acknowledgements of others show that the path carried their data.
    let downloads: String = (0..240).map(|at| format!("{} > ack 100\n", 200 + at * 10)).collect();
    let download = beside(&first, &downloads);
    assert!((1000..1500).contains(&millis(&download, Cause::Sharing)), "{download}");
}

#[test]
fn parts_of_super_segments_that_arrive_are_no_silence() {
    let mut exchange = AT_SERVER.to_owned();
    for segment in 0..60 {
        writeln!(exchange, "110 < data {}..{} ack 100", segment * 2920, (segment + 1) * 2920).unwrap();
    }
    // The queue dropped each second packet.
    for segment in 0..60 {
        let end = (segment + 1) * 2920;
        writeln!(exchange, "{} > ack 0 sack {}..{end}", 220 + 12 * segment, end - 1460).unwrap();
    }
    writeln!(exchange, "250 < data 0..1460 ack 100").unwrap();
    writeln!(exchange, "950 > ack 2920").unwrap();
    let mut lines: Vec<_> = exchange.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.sort_by_key(|line| line.split_whitespace().next().unwrap().parse::<u64>().unwrap());
    let account = beside(&lines.join("\n"), "");
    assert_eq!(account.of(Cause::Radio) + account.of(Cause::Sharing), Span::ZERO, "{account}");
}

#[test]
fn a_capture_in_the_middle_has_the_view_of_the_server() {
    for (third, near) in [(200, End::Server), (191, End::Server), (150, End::Client)] {
        let (_, observations) = play(&format!("0 > syn\n100 < syn ack 0\n{third} > ack 0"));
        let mut causes = Causes::new(None);
        for observation in &observations {
            causes.observe(observation, &mut |_| {});
        }
        assert_eq!(causes.near(), Some(near), "{third}");
    }
}

#[test]
fn only_the_application_at_the_capture_is_known() {
    let exchange = format!(
        "{AT_CLIENT}
        200 < ack 100
        1200 < psh data 0..400 ack 100
        1200 > ack 400
        3200 > psh data 100..200 ack 400
        3300 < psh data 400..800 ack 200
        3300 > ack 800
        6300 < psh data 800..1200 ack 200
        6300 > ack 1200
        "
    );
    let (_, observations) = play(&exchange);
    let mut causes = Causes::new(None);
    let mut known = Span::ZERO;
    let mut count = |piece: &Piece| {
        if piece.cause == Cause::Application && piece.confidence == Confidence::High {
            known += piece.end.since(piece.begin);
        }
    };
    for observation in &observations {
        causes.observe(observation, &mut count);
    }
    causes.finish(&mut count);
    // The client's pause from 1200 to 3200. What the server sends on may have been on the path.
    assert_eq!(known, Span::from_millis(2000));
}

/// The pieces of an exchange in a capture at an end.
fn pieces_at(end: End, exchange: &str) -> Vec<Piece> {
    let (_, observations) = play(exchange);
    let mut causes = Causes::new(Some(end));
    let mut pieces = Vec::new();
    for observation in &observations {
        causes.observe(observation, &mut |piece| pieces.push(*piece));
    }
    causes.finish(&mut |piece| pieces.push(*piece));
    pieces
}

#[test]
fn without_a_handshake_echoes_show_no_queue() {
    let mut exchange = "0 > psh data 0..100 ack 0 ts 0,0\n".to_owned();
    // Data follows its acknowledgement after the round trip of an empty path.
    for flight in 0..40 {
        let (at, begin) = (120 + 120 * flight, flight * 4 * 1448);
        for segment in 0..4 {
            let from = begin + segment * 1448;
            writeln!(exchange, "{at} < data {from}..{} ack 100 ts {at},{}", from + 1448, at - 120).unwrap();
        }
        writeln!(exchange, "{at} > ack {} ts {at},{at}", begin + 4 * 1448).unwrap();
    }
    let pieces = pieces_at(End::Client, &exchange);
    assert!(pieces.iter().all(|piece| piece.cause != Cause::Queueing), "{pieces:#?}");
}

#[test]
fn the_time_after_the_last_round_is_judged_at_the_fin() {
    let mut exchange = AT_CLIENT.replace("100 > ack 0\n", "100 > ack 0 win 8760\n");
    exchange = exchange.replace("data 0..100 ack 0", "data 0..100 ack 0 win 8760");
    // Six segments fill the window in a round trip.
    for segment in 0..6 {
        writeln!(exchange, "{} < data {}..{} ack 100", 200 + 20 * segment, segment * 1460, (segment + 1) * 1460)
            .unwrap();
    }
    writeln!(exchange, "301 > ack 8760 win 0").unwrap();
    writeln!(exchange, "3000 < fin ack 100 at 8760").unwrap();
    writeln!(exchange, "3000 > fin ack 8761 at 100").unwrap();
    let pieces = pieces_at(End::Client, &exchange);
    let closed: Vec<_> = pieces.iter().filter(|piece| piece.cause == Cause::ReceiveWindow).collect();
    let length = closed.iter().fold(Span::ZERO, |sum, piece| sum + piece.end.since(piece.begin));
    assert!(length > Span::from_secs(2), "{pieces:#?}");
    assert!(closed.iter().all(|piece| piece.confidence == Confidence::Medium), "{pieces:#?}");
}

#[test]
fn at_the_client_a_connection_that_begins_with_its_syn_ack_is_in_doubt() {
    let exchange = "
        100 < syn ack 0 mss 1460
        100 > ack 0
        100 > psh data 0..100 ack 0
        300 < psh data 0..100 ack 100
        300 > ack 100
        1300 > psh data 100..200 ack 100
        1400 < psh data 100..200 ack 200
    ";
    let pieces = pieces_at(End::Client, exchange);
    assert!(pieces.iter().all(|piece| piece.confidence == Confidence::Low), "{pieces:#?}");
}

#[test]
fn samples_of_both_directions_are_counted_apart() {
    // Seven round trips of the server's data, one of the client's, whose acknowledgement the server
    // delays, and another of the server's.
    let flight = |at: u64, begin: u64, ack: u64| {
        format!("{at} < psh data {begin}..{} ack {ack}\n{} > ack {} at {ack}\n", begin + 50, at + 100, begin + 50)
    };
    let mut exchange: String = (0..7).map(|each| flight(200 * each, 50 * each, 0)).collect();
    exchange += "1400 > psh data 0..50 ack 350\n1440 < ack 50 at 350\n";
    let (_, observations) = play(&(exchange.clone() + &flight(1600, 350, 50)));
    let mut causes = Causes::new(None);
    for observation in &observations {
        causes.observe(observation, &mut |_| {});
    }
    assert_eq!(causes.near(), Some(End::Server));
}

#[test]
fn what_was_known_before_the_end_of_the_capture_is_kept() {
    // A capture at the client that begins with a request; the server is 100 ms away.
    let mut exchange = "0 > psh data 0..100 ack 0\n".to_owned();
    for burst in 0..5 {
        let (at, begin) = (100 + 100 * burst, 5840 * burst);
        for segment in 0..4 {
            let from = begin + segment * 1460;
            writeln!(exchange, "{at} < data {from}..{} ack 100", from + 1460).unwrap();
        }
        // The acknowledgements are delayed until the last.
        writeln!(exchange, "{} > ack {}", if burst < 4 { at + 20 } else { at }, begin + 5840).unwrap();
    }
    writeln!(exchange, "510 < psh data 29200..29300 ack 100").unwrap();
    writeln!(exchange, "1510 < psh data 29300..29400 ack 100").unwrap();
    writeln!(exchange, "2510 < psh data 29400..29500 ack 100").unwrap();
    let (connection, observations) = play(&exchange);
    let paths = Arc::new(SharedPaths::default());
    Recorder::new(Arc::clone(&paths)).segment(&segment("0 > ack 0", 0).0);
    let host = paths.host(connection.route().source.address).unwrap();
    let round_trip = Some(Span::from_millis(90));
    let mut causes = Causes::new(None).with_host(host, round_trip);
    let mut settled = None;
    for observation in &observations {
        causes.observe(observation, &mut |piece| settled = Some(piece.end));
    }
    assert_eq!(causes.near(), Some(End::Client));
    assert_eq!(causes.sender.bottleneck().path.base(), round_trip);
    // The time before the end was known does not wait.
    let known = segment("500 > ack 0", 0).0.time;
    assert!(settled >= Some(known), "{settled:?} {known:?}");
}

#[test]
fn data_that_had_ended_does_not_continue_after_a_hole_is_filled() {
    // Two segments are lost; the last segment has arrived before they are sent again.
    let exchange = format!(
        "{AT_CLIENT}
        200 < data 0..1460 ack 100
        200 > ack 1460
        201 < psh data 4380..4500 ack 100
        201 > ack 1460 sack 4380..4500
        300 < data 1460..2920 ack 100
        300 > ack 2920 sack 4380..4500
        400 < data 2920..4380 ack 100
        400 > ack 4500
        3000 < psh data 4500..4600 ack 100
        3000 > ack 4600
        "
    );
    let account = account(&exchange);
    assert_eq!(account.of(Cause::Radio), Span::ZERO, "{account}");
    assert_eq!(without_data(&account), 2700, "{account}");
}

/// The handshake and a request, from a capture at the server, with the client's timestamps.
const AT_SERVER_TS: &str = "
    0 > syn mss 1460 ts 0,0
    0 < syn ack 0 mss 1460 ts 500,0
    100 > ack 0 ts 100,500
    100 > psh data 0..100 ack 0 ts 100,500
    110 < psh data 0..1000 ack 100 ts 610,100
    210 > ack 1000 ts 210,610
";

#[test]
fn a_request_that_was_sent_long_before_waited_for_the_radio() {
    let request = |sent: u64, length: u64| {
        account(&format!(
            "{AT_SERVER_TS}
            5000 > psh data 100..{0} ack 1000 ts {sent},610
            5010 < psh data 1000..2000 ack {0} ts 5510,{sent}
            5110 > ack 2000 ts 5110,5510
            ",
            100 + length
        ))
    };
    let waited = request(3500, 100);
    assert!(millis(&waited, Cause::Radio).abs_diff(1500) <= 2, "{waited}");
    assert!((3300..3500).contains(&without_data(&waited)), "{waited}");
    assert_eq!(waited.stalls[0].fate, Fate::Held, "{waited}");
    let at_once = request(5000, 100);
    assert_eq!(at_once.of(Cause::Radio), Span::ZERO, "{at_once}");
    // A full segment may take so long on a slow link.
    let full = request(4700, 1460);
    assert_eq!(full.of(Cause::Radio), Span::ZERO, "{full}");
}

#[test]
fn the_spacing_of_an_upload_is_no_gap_for_the_acknowledgements_in_it() {
    // Each segment takes 190 ms on the uplink, and acknowledges one of the downlink.
    let exchange = |outage: u64| {
        let mut exchange = AT_SERVER.to_owned();
        for segment in 0..40 {
            writeln!(exchange, "110 < data {}..{} ack 100", segment * 1460, (segment + 1) * 1460).unwrap();
        }
        for segment in 0..40 {
            let at = 290 + 190 * segment + if segment < 30 { 0 } else { outage };
            let (begin, end) = (100 + 1460 * segment, 1560 + 1460 * segment);
            writeln!(exchange, "{at} > data {begin}..{end} ack {}", (segment + 1) * 1460).unwrap();
            writeln!(exchange, "{at} < ack {end}").unwrap();
        }
        account(&exchange)
    };
    let steady = exchange(0);
    assert!(millis(&steady, Cause::Radio) < 500, "{steady}");
    let outage = exchange(3000);
    let more = millis(&outage, Cause::Radio) - millis(&steady, Cause::Radio);
    assert!((2700..3300).contains(&more), "{outage}");
}

#[test]
fn a_response_to_a_late_request_was_not_held_by_nagle() {
    let exchange = |request: &str, acknowledged: u64| {
        account(&format!(
            "{AT_SERVER}
            110 < psh data 0..400 ack 100
            510 > {request} ack 400
            511 < psh data 400..800 ack {acknowledged}
            611 > ack 800
            "
        ))
    };
    let is_held = |account: &Account| account.stalls.iter().any(|stall| stall.fate == Fate::Nagle);
    let request = exchange("psh data 100..200", 200);
    assert!(!is_held(&request), "{request}");
    let acknowledgement = exchange("", 100);
    assert!(is_held(&acknowledgement), "{acknowledgement}");
}

#[test]
fn a_copy_of_what_had_arrived_shows_no_loss() {
    // After an outage the copies that the sender's timer sent arrive first.
    let exchange = |first: &str| {
        account(&format!(
            "{AT_CLIENT}
            210 < data 0..1460 ack 100
            210 > ack 1460
            220 < data 1460..2920 ack 100
            220 > ack 2920
            3220 < data {first} ack 100
            3220 > ack 2920
            3230 < data 2920..4380 ack 100
            3230 > ack 4380
            3240 < psh data 4380..4480 ack 100
            "
        ))
    };
    let copy = exchange("1460..2920");
    assert!(millis(&copy, Cause::Radio) > 2800, "{copy}");
    assert_eq!(copy.of(Cause::Timer), Span::ZERO, "{copy}");
}

/// The pieces of a download from a capture at the server, after ten requests: 50 segments are
/// outstanding, and one is acknowledged each 12 ms. `wait` is the part of the round trip that the
/// acknowledgements queue in the uplink.
fn download_with_queue(wait: impl Fn(u64) -> u64) -> Vec<Piece> {
    let mut exchange = "
        0 > syn mss 1460 ts 0,0
        0 < syn ack 0 mss 1460 ts 0,0
        100 > ack 0 ts 50,0
        "
    .to_owned();
    for request in 0..10 {
        let at = 100 + 100 * request;
        writeln!(exchange, "{at} > psh data {}..{} ack 0 ts {},0", request * 10, request * 10 + 10, at - 50).unwrap();
        writeln!(exchange, "{at} < ack {} ts {at},{}", request * 10 + 10, at - 50).unwrap();
    }
    let (size, outstanding) = (1448, 50);
    let acknowledged = |segment: u64| 1120 + 12 * segment;
    for segment in 0..250_u64 + outstanding {
        if let Some(before) = segment.checked_sub(outstanding) {
            let (at, end) = (acknowledged(before), (before + 1) * size);
            let excess = (12 * before).min(12 * outstanding - 100);
            writeln!(exchange, "{at} > ack {end} ts {},1010", at - 50 - wait(excess)).unwrap();
        }
        if segment < 250 {
            let at = segment.checked_sub(outstanding).map_or(1010, acknowledged);
            writeln!(exchange, "{at} < data {}..{} ack 100 ts {at},950", segment * size, (segment + 1) * size).unwrap();
        }
    }
    pieces_at(End::Server, &exchange)
}

#[test]
fn the_end_whose_packets_fill_the_link_is_named() {
    let time = |pieces: &[Piece], full_by: Option<End>| -> u64 {
        let full = pieces.iter().filter(|piece| piece.cause.is_full_link() && piece.full_by == full_by);
        full.map(|piece| piece.end.since(piece.begin).as_nanos() / 1_000_000).sum()
    };
    let down = download_with_queue(|_| 0);
    assert!(time(&down, Some(End::Server)) > 2000, "{down:#?}");
    assert_eq!(time(&down, Some(End::Client)), 0, "{down:#?}");
    // The data arrives without a wait, and its acknowledgements queue in the uplink.
    let up = download_with_queue(|excess| excess);
    assert!(time(&up, Some(End::Client)) > 2000, "{up:#?}");
    assert!(time(&up, Some(End::Server)) < 300, "{up:#?}");
    assert!(up.iter().chain(&down).all(|piece| piece.cause.is_full_link() || piece.full_by.is_none()));
}
