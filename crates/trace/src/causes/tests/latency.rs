//! Latency of the path, and the application: data in transit, and none to send.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use airpath_observe::testing::{play, segment};

use super::exchanges::{account, beside, millis};
use crate::causes::{Account, Cause, Causes, Piece};
use crate::shared_path::{Recorder, SharedPaths};

/// The handshake and a request, from a capture at the server, with the client's timestamps; the
/// round trip is 100 ms.
const AT_SERVER: &str = "
    0 > syn mss 1460 ts 0,0
    0 < syn ack 0 mss 1460 ts 500,0
    100 > ack 0 ts 100,500
    100 > psh data 0..100 ack 0 ts 100,500
";

#[test]
fn a_reply_in_transit_is_latency_and_not_the_application() {
    let account = account(&format!(
        "{AT_SERVER}
        150 < psh data 0..1000 ack 100 ts 650,100
        250 > ack 1000 ts 250,650
        1250 > psh data 100..200 ack 1000 ts 1250,650
        1300 < psh data 1000..2000 ack 200 ts 1800,1250
        1400 > ack 2000 ts 1400,1800
        1500 > fin ack 2000 ts 1500,1800
        "
    ));
    // Two replies, and the part of half a round trip that the second request needed after its
    // arrival at the link.
    let latency = millis(&account, Cause::Latency);
    assert!((200..=250).contains(&latency), "{account}");
    assert_eq!(millis(&account, Cause::Application) + latency, 1400, "{account}");
}

#[test]
fn a_server_that_sends_in_pieces_waits_for_its_application() {
    let mut exchange = AT_SERVER.to_owned();
    for piece in 0..5 {
        let (at, begin) = (200 + 500 * piece, 500 * piece);
        writeln!(exchange, "{at} < psh data {begin}..{} ack 100 ts {},100", begin + 500, 500 + at).unwrap();
        writeln!(exchange, "{} > ack {} ts {},{}", at + 100, begin + 500, at + 100, 500 + at).unwrap();
    }
    let pieces = account(&exchange);
    // Only the last piece may be the end of a reply.
    assert_eq!(millis(&pieces, Cause::Latency), 100, "{pieces}");
    assert_eq!(millis(&pieces, Cause::Application), 2100, "{pieces}");
}

/// A connection whose handshake waited in a queue for 700 ms, and that has a reply after it, which
/// waits as long; and, if `is_known`, an earlier handshake of the client with another server.
fn behind_a_queue(is_known: bool) -> (Account, Vec<Piece>) {
    let mut reply = String::new();
    for segment in 0..8_u64 {
        let begin = segment * 1460;
        writeln!(reply, "1801 < data {begin}..{} ack 100", begin + 1460).unwrap();
    }
    reply += "1801 < psh data 11680..12000 ack 100\n";
    for segment in 1..=8_u64 {
        writeln!(reply, "{} > ack {}", 2400 + 30 * segment, segment * 1460).unwrap();
    }
    reply += "2670 > ack 12000\n5000 > fin ack 12000\n";
    reply_behind_a_queue(is_known, &reply)
}

fn reply_behind_a_queue(is_known: bool, reply: &str) -> (Account, Vec<Piece>) {
    let paths = Arc::new(SharedPaths::default());
    let mut recorder = Recorder::new(Arc::clone(&paths));
    let mut record = |lines: &str, server: u8| {
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let mut packet = segment(line, 0).0;
            let other = IpAddr::V4(Ipv4Addr::new(10, 0, 0, server));
            let is_sent = line.contains('>');
            let end = if is_sent { &mut packet.route.destination } else { &mut packet.route.source };
            end.address = other;
            end.port += u16::from(server);
            recorder.segment(&packet);
        }
    };
    if is_known {
        record("0 > syn mss 1460\n0 < syn ack 0 mss 1460\n50 > ack 0\n", 9);
    }
    let exchange = format!(
        "
        1000 > syn mss 1460
        1000 < syn ack 0 mss 1460
        1800 > ack 0
        1800 > psh data 0..100 ack 0
        {reply}"
    );
    record(&exchange, 2);
    let (connection, observations) = play(&exchange);
    let host = paths.host(connection.route().source.address).unwrap();
    let mut causes = Causes::new(None).with_host(host, None);
    let mut pieces = Vec::new();
    for observation in &observations {
        causes.observe(observation, &mut |piece| pieces.push(*piece));
    }
    let account = causes.finish(&mut |piece| pieces.push(*piece));
    (account, pieces)
}

#[test]
fn handshakes_with_other_servers_show_the_empty_path_from_the_servers_to_the_client() {
    let full = |account: &Account| [Cause::PathRate, Cause::Queueing, Cause::Sharing].map(|each| millis(account, each));
    let (alone, _) = behind_a_queue(false);
    assert_eq!(full(&alone).iter().sum::<u64>(), 0, "{alone}");
    let (known, _) = behind_a_queue(true);
    assert!(full(&known).iter().sum::<u64>() > 700, "{known}");
    assert!(millis(&known, Cause::Latency) < 100, "{known}");
}

#[test]
fn the_last_segment_of_a_reply_shows_the_service_time() {
    let full = |length: u64| {
        let (account, _) = reply_behind_a_queue(
            true,
            &format!(
                "1801 < data 0..1460 ack 100
                1801 < psh data 1460..{0} ack 100
                2470 > ack 1460
                2480 > ack {0}
                5000 > fin ack {0}
                ",
                1460 + length
            ),
        );
        [Cause::PathRate, Cause::Queueing, Cause::Sharing].iter().map(|each| millis(&account, *each)).sum::<u64>()
    };
    assert!(full(1200) > 500);
    // The time of a shorter segment is not measured exactly enough.
    assert_eq!(full(100), 0);
}

/// Acknowledgements that wait in the uplink behind data of another connection: their timestamps
/// show when they were sent.
#[test]
fn acknowledgements_that_wait_are_no_queue_in_front_of_the_data() {
    let mut exchange = AT_SERVER.to_owned();
    let segments = 20_u64;
    for segment in 0..segments {
        let begin = segment * 1460;
        writeln!(exchange, "150 < data {begin}..{} ack 100 ts 650,100", begin + 1460).unwrap();
    }
    for segment in 1..=segments {
        let (at, end) = (1200 + segment, segment * 1460);
        writeln!(exchange, "{at} > ack {end} ts {},650", 200 + segment).unwrap();
        writeln!(exchange, "{at} < data {}..{} ack 100 ts 1700,200", end + 27740, end + 29200).unwrap();
    }
    let uploads: String = (200..1200).step_by(20).map(|at| format!("{at} > data 0..1460 ack 0\n")).collect();
    let account = beside(&exchange, &uploads);
    assert!(millis(&account, Cause::Queueing) < 100, "{account}");
    assert!(millis(&account, Cause::Sharing) > 800, "{account}");
}

/// At the receiver a hole opens when the next segment arrives; the sender learns of it half a round
/// trip later, and as late that it is filled.
#[test]
fn recovery_at_the_receiver_is_that_of_the_sender() {
    let mut exchange = "
        0 > syn mss 1460 ts 0,0
        100 < syn ack 0 mss 1460 ts 550,0
        100 > ack 0 ts 100,550
        100 > psh data 0..100 ack 0 ts 100,550
        "
    .to_owned();
    // Flights of four segments; the first of the third flight is lost, and the next one fills the
    // hole.
    for flight in 0..6_u64 {
        let at = 200 + 100 * flight;
        for segment in 0..4 {
            let begin = (flight * 4 + segment) * 1460;
            if (flight, segment) == (2, 0) {
                continue;
            }
            let (sent, echo) = (500 + at - 50, at - 100);
            writeln!(exchange, "{} < data {begin}..{} ack 100 ts {sent},{echo}", at + segment, begin + 1460).unwrap();
            let acknowledged = if flight == 2 { 11680 } else { begin + 1460 };
            writeln!(exchange, "{} > ack {acknowledged} ts {},{sent}", at + segment, at + segment).unwrap();
        }
        if flight == 2 {
            writeln!(exchange, "{} < data 11680..13140 ack 100 ts {},{at}", at + 98, 500 + at + 48).unwrap();
            writeln!(exchange, "{} > ack 17520 ts {},{}", at + 98, at + 98, 500 + at + 48).unwrap();
        }
    }
    let (_, observations) = play(&exchange);
    let mut causes = Causes::new(None);
    let mut pieces = Vec::new();
    for observation in &observations {
        causes.observe(observation, &mut |piece| pieces.push(*piece));
    }
    causes.finish(&mut |piece| pieces.push(*piece));
    let begin = segment("0 > syn", 1).0.time;
    let recovery: Vec<_> = pieces
        .iter()
        .filter(|piece| piece.cause == Cause::Recovery)
        .map(|piece| [piece.begin, piece.end].map(|time| time.since(begin).as_nanos() / 1_000_000))
        .collect();
    // The hole is seen from 401 to 498 ms.
    assert_eq!(recovery, [[451, 548]], "{pieces:?}");
}

#[test]
fn pieces_have_the_bytes_that_were_delivered_meanwhile() {
    let (_, pieces) = behind_a_queue(true);
    let sum = pieces.iter().fold([0, 0], |[one, other], piece| {
        let [from_client, from_server] = piece.delivered;
        [one + from_client, other + from_server]
    });
    assert_eq!(sum, [100, 12000]);
    let full = pieces.iter().filter(|piece| matches!(piece.cause, Cause::PathRate | Cause::Queueing | Cause::Sharing));
    assert!(full.map(|piece| piece.delivered[1]).sum::<u64>() > 8000, "{pieces:?}");
}
