//! Connections that share a path, by captures of both ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_core::{Direction, Instant, Span};
use airpath_observe::flows::{Ending, FlowNumber, Flows, Listener};
use airpath_observe::testing::segment;
use airpath_observe::{Connection, End, Observation};
use airpath_wire::segment::Segment;

use super::exchanges::millis;
use crate::causes::{Account, Cause, Causes};
use crate::radio::{RadioGap, RadioLog};
use crate::shared_path::{Recorder, SharedPaths};
use crate::two_point::{CaptureDigest, Clock, JoinOptions, JoinedCaptures, join};

/// The ports of the two clients' ends.
const PORTS: [u16; 2] = [4000, 4001];

/// A packet: the connection, when it was sent and when it arrived in milliseconds, and the rest of
/// its line.
type Packet = (usize, u64, u64, String);

/// The handshake and the request of a connection; a round trip of the empty path takes 100 ms.
fn handshake(connection: usize, begin: u64) -> Vec<Packet> {
    [(0, "> syn mss 1460"), (50, "< syn ack 0 mss 1460"), (100, "> ack 0"), (101, "> psh data 0..100 ack 0")]
        .map(|(at, line)| (connection, begin + at, begin + at + 50, line.to_owned()))
        .into()
}

/// `count` segments of the server that are sent at `sent`, arrive from `first` on, and take
/// `each` on the link; their acknowledgements are sent at once and arrive `back` later.
fn reply(connection: usize, sent: u64, first: u64, count: u64, each: u64, back: u64) -> Vec<Packet> {
    let mut packets = Vec::new();
    for number in 0..count {
        let (begin, end, arrived) = (number * 1460, (number + 1) * 1460, first + number * each);
        let psh = if number + 1 == count { "psh " } else { "" };
        packets.push((connection, sent, arrived, format!("< {psh}data {begin}..{end} ack 100")));
        packets.push((connection, arrived, arrived + back, format!("> ack {end}")));
    }
    packets
}

/// Whether causes have this time, up to the resolution of the load of a link: a sixteenth of a
/// round trip of 100 ms at its begin and its end.
fn is_near(account: &Account, causes: &[Cause], expected: u64) -> bool {
    causes.iter().map(|cause| millis(account, *cause)).sum::<u64>().abs_diff(expected) <= 2 * 100 / 16
}

/// The segments of a capture at one end.
fn capture(packets: &[Packet], at: End) -> Vec<Segment<'static>> {
    let mut seen: Vec<_> = packets
        .iter()
        .map(|(connection, sent, arrived, line)| {
            let from = if line.starts_with('>') { End::Client } else { End::Server };
            (if from == at { *sent } else { *arrived }, *connection, from, line)
        })
        .collect();
    seen.sort_by_key(|(time, ..)| *time);
    let segments = seen.into_iter().zip(1..).map(|((time, connection, from, line), frame)| {
        let mut made = segment(&format!("{time} {line}"), frame).0;
        let client = if from == End::Client { &mut made.route.source } else { &mut made.route.destination };
        client.port = PORTS[connection];
        made
    });
    segments.collect()
}

fn at(millis: u64) -> Instant {
    segment(&format!("{millis} > ack 0"), 1).0.time
}

struct Accounts {
    joined: JoinedCaptures,
    paths: Arc<SharedPaths>,
    radio: Option<Arc<RadioLog>>,
    open: BTreeMap<FlowNumber, Causes>,
    done: BTreeMap<u16, Account>,
}

impl Listener for Accounts {
    fn observed(&mut self, flow: FlowNumber, observation: &Observation, _: &Segment<'_>, connection: &Connection) {
        let (joined, paths) = (&self.joined, &self.paths);
        let causes = self.open.entry(flow).or_insert_with(|| {
            let host = paths.host(connection.route().source.address).unwrap();
            let mut causes = Causes::new(None).with_host(host, None);
            if let Some(radio) = &self.radio {
                causes = causes.with_radio(Arc::clone(radio), End::Client);
            }
            causes.with_both_ends(joined.connection(flow).unwrap(), End::Client)
        });
        causes.observe(observation, &mut |_| {});
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, _: Ending) {
        let account = self.open.remove(&flow).unwrap().finish(&mut |_| {});
        self.done.insert(connection.route().source.port, account);
    }
}

fn play(segments: &[Segment<'_>], listener: &mut impl Listener) {
    let mut flows = Flows::default();
    segments.iter().for_each(|segment| flows.segment(segment, listener));
    flows.finish(listener);
}

/// The causes of the connections by the server's capture and that of the client.
fn accounts(packets: &[Packet]) -> Vec<Account> {
    accounts_with(packets, |_| true, None)
}

/// The same, where the client's capture has the frames with these numbers only, with a radio log.
fn accounts_with(packets: &[Packet], has: impl Fn(u64) -> bool, radio: Option<RadioLog>) -> Vec<Account> {
    let [mut client, server] = [End::Client, End::Server].map(|end| capture(packets, end));
    client.retain(|segment| has(segment.frame));
    accounts_of(&server, &client, radio)
}

/// The same, by captures of their own.
fn accounts_of(server: &[Segment<'_>], client: &[Segment<'_>], radio: Option<RadioLog>) -> Vec<Account> {
    let (mut here, mut there) = (CaptureDigest::default(), CaptureDigest::default());
    play(server, &mut here);
    play(client, &mut there);
    let options = JoinOptions { clock: Some(Clock::SAME), ..JoinOptions::default() };
    let joined = join(here, there, &options).unwrap();
    let paths = Arc::new(SharedPaths::default());
    let mut recorder = Recorder::new(Arc::clone(&paths));
    server.iter().for_each(|segment| recorder.segment(segment));
    let radio = radio.map(Arc::new);
    let mut accounts = Accounts { joined, paths, radio, open: BTreeMap::new(), done: BTreeMap::new() };
    play(server, &mut accounts);
    accounts.done.into_values().collect()
}

/// Two replies of 20 segments, 20 ms each, one after the other on the link: the second waits behind
/// the first for 400 ms.
fn two_replies(back: u64) -> Vec<Packet> {
    let mut packets = handshake(0, 0);
    packets.extend(handshake(1, 1));
    packets.extend(reply(0, 200, 270, 20, 20, back));
    packets.extend(reply(1, 205, 670, 20, 20, back));
    packets
}

#[test]
fn a_reply_that_waits_behind_another_is_shared_until_that_has_left() {
    let account = &accounts(&two_replies(50))[1];
    // Sent at 205 ms; the last packet of the first reply arrives at 650 ms. The path without the
    // link takes 50 ms. Then its own 20 segments take 20 ms each.
    assert_eq!(millis(account, Cause::Sharing), 395, "{account}");
    let full = account.of(Cause::Queueing) + account.of(Cause::PathRate);
    assert_eq!(full, Span::from_millis(400), "{account}");
    // Late acknowledgements do not change what the arrivals show.
    let late = &accounts(&two_replies(600))[1];
    assert_eq!(late.of(Cause::Radio).as_nanos(), 0, "{late}");
    assert_eq!(millis(late, Cause::Sharing), 395, "{late}");
}

#[test]
fn the_packets_of_others_lengthen_the_queue() {
    let alone = &accounts(&[handshake(0, 0), reply(0, 200, 270, 20, 20, 50)].concat())[0];
    let beside = &accounts(&two_replies(50))[0];
    // Its 20 segments take 400 ms. Alone, the wait of a packet behind them is no longer than the
    // round trip of 100 ms once that and the last segment's 20 ms are left of it.
    assert!(is_near(alone, &[Cause::Queueing], 280), "{alone}");
    // Beside another reply the queue is longer until the last of them has left.
    assert!(is_near(beside, &[Cause::Queueing], 400), "{beside}");
    assert_eq!(beside.of(Cause::Sharing).as_nanos(), 0, "{beside}");
}

#[test]
fn acknowledgements_that_wait_behind_others_are_sharing() {
    // The first connection's acknowledgement is sent at 270 ms, and waits for 20 segments that the
    // client sends on the second.
    let mut packets = [handshake(0, 0), handshake(1, 1)].concat();
    packets.push((0, 200, 270, "< psh data 0..1460 ack 100".to_owned()));
    for number in 0..20 {
        let (begin, end) = (100 + number * 1460, 100 + (number + 1) * 1460);
        packets.push((1, 260, 330 + number * 20, format!("> data {begin}..{end} ack 0")));
    }
    packets.push((0, 270, 712, "> ack 1460".to_owned()));
    let waits = &accounts(&packets)[0];
    // It arrives at 712 ms, and left the uplink 50 ms before.
    assert_eq!(millis(waits, Cause::Sharing), 392, "{waits}");
}

/// The client's packet `line` of the first connection is sent at 270 ms, and waits for 20 segments
/// of the second one. Their transmission is interrupted after the fifth for `outage`.
fn behind_an_upload(reply: u64, line: &str, outage: u64) -> Vec<Packet> {
    let mut packets = [handshake(0, 0), handshake(1, 1)].concat();
    packets.push((0, 200, 270, format!("< psh data 0..{reply} ack 100")));
    for number in 0..20 {
        let (begin, end) = (100 + number * 1460, 100 + (number + 1) * 1460);
        let arrived = 330 + number * 20 + if number < 5 { 0 } else { outage };
        packets.push((1, 260, arrived, format!("> data {begin}..{end} ack 0")));
    }
    packets.push((0, 270, 712 + outage, line.to_owned()));
    packets
}

#[test]
fn a_silence_of_the_uplink_is_the_radios_though_others_are_first_after_it() {
    let packets = behind_an_upload(1460, "> ack 1460", 1000);
    let whole = &accounts(&packets)[0];
    // The fifth segment leaves the uplink at 360 ms, and the sixth is transmitted from 1360 ms on.
    assert_eq!(millis(whole, Cause::Radio), 1000, "{whole}");
    assert_eq!(millis(whole, Cause::Sharing), 392, "{whole}");
    let gap = RadioGap {
        begin: at(360),
        end: at(1360),
        direction: Some(Direction::Up),
        name: "outage".into(),
        wanted: false,
    };
    let log = RadioLog::new(vec![gap]);
    let logged = &accounts_with(&packets, |_| true, Some(log))[0];
    assert_eq!(millis(logged, Cause::Radio), 1000, "{logged}");
}

#[test]
fn nothing_waits_behind_others_in_a_silence() {
    // The uplink carries nothing from 360 to 610 ms; the acknowledgement is sent at 400 ms, and
    // arrives after a segment that had been interrupted.
    let mut packets = [handshake(0, 0), handshake(1, 1)].concat();
    packets.push((0, 200, 400, "< psh data 0..1460 ack 100".to_owned()));
    for (number, arrived) in (0..).zip([330, 350, 370, 390, 410, 680]) {
        let (begin, end) = (100 + number * 1460, 100 + (number + 1) * 1460);
        packets.push((1, 260, arrived, format!("> data {begin}..{end} ack 0")));
    }
    packets.push((0, 400, 682, "> ack 1460".to_owned()));
    let account = &accounts(&packets)[0];
    assert_eq!(millis(account, Cause::Sharing), 20, "{account}");
}

#[test]
fn a_silence_of_the_downlink_is_the_radios_though_others_are_first_after_it() {
    // The first reply is interrupted for a second after ten segments.
    let mut packets = [handshake(0, 0), handshake(1, 1)].concat();
    let later = |(connection, sent, arrived, line): Packet| {
        let by = if arrived > 450 && line.starts_with('<') { 1000 } else { 0 };
        let acknowledged = if sent > 450 { 1000 } else { 0 };
        (connection, sent + acknowledged, arrived + by + acknowledged, line)
    };
    packets.extend(reply(0, 200, 270, 20, 20, 50).into_iter().map(later));
    packets.extend(reply(1, 205, 670, 20, 20, 50).into_iter().map(later));
    let account = &accounts(&packets)[1];
    assert_eq!(millis(account, Cause::Radio), 1000, "{account}");
    assert_eq!(millis(account, Cause::Sharing), 395, "{account}");
}

#[test]
fn an_application_waits_behind_others_for_data_only() {
    // The server has no more data; its reply has arrived.
    let reply = accounts(&behind_an_upload(100, "> ack 100", 0)).swap_remove(0);
    assert_eq!(millis(&reply, Cause::Sharing), 0, "{reply}");
    // The next request waits, and has the acknowledgement in it.
    let request = accounts(&behind_an_upload(100, "> psh data 100..101 ack 100", 0)).swap_remove(0);
    assert_eq!(millis(&request, Cause::Sharing), 390, "{request}");
}

#[test]
fn an_own_acknowledgement_does_not_end_the_wait_behind_others() {
    // Behind five segments, too short a time for a gap.
    let mut packets = [handshake(0, 0), handshake(1, 1)].concat();
    packets.extend(reply(0, 200, 270, 5, 20, 50));
    packets.push((1, 204, 351, "< ack 100".to_owned()));
    packets.extend(reply(1, 205, 370, 20, 20, 50));
    let account = &accounts(&packets)[1];
    assert_eq!(millis(account, Cause::Sharing), 95, "{account}");
}

#[test]
fn packets_that_the_other_capture_lacks_do_not_take_the_time_of_one_before() {
    // The client sends one segment each 500 ms; its capture lacks those from the second on.
    let mut packets = handshake(0, 0);
    for number in 1..20 {
        let (begin, end, at) = (number * 100, (number + 1) * 100, 101 + number * 500);
        packets.push((0, at, at + 50, format!("> psh data {begin}..{end} ack 0")));
        packets.push((0, at + 50, at + 100, format!("< ack {end}")));
    }
    let whole = &accounts(&packets)[0];
    for has in [|frame| frame <= 8, |frame| !(8..=35).contains(&frame)] {
        let cut = &accounts_with(&packets, has, None)[0];
        let [application, all] = [cut, whole].map(|account| millis(account, Cause::Application));
        assert_eq!(application, all, "{cut}\n{whole}");
        assert_eq!(millis(cut, Cause::Queueing), 0, "{cut}");
    }
}

#[test]
fn requests_of_others_do_not_share_the_link_of_the_data() {
    // Small requests of the second connection come while the first one's reply is transmitted.
    let mut packets = [handshake(0, 0), handshake(1, 1), reply(0, 200, 270, 40, 20, 50)].concat();
    for number in 0..40 {
        let (begin, end, at) = (100 + number * 100, 200 + number * 100, 250 + number * 20);
        packets.push((1, at, at + 50, format!("> psh data {begin}..{end} ack 0")));
    }
    // A reply's own requests.
    for number in 0..10 {
        let (begin, end, at) = (100 + number * 10, 110 + number * 10, 255 + number * 80);
        packets.push((0, at, at + 50, format!("> psh data {begin}..{end} ack 0")));
    }
    let account = &accounts(&packets)[0];
    assert_eq!(account.of(Cause::Sharing).as_nanos(), 0, "{account}");
}

#[test]
fn data_in_front_of_the_acknowledgements_counts_although_it_is_known_late() {
    // The client's 40 segments are all sent at 150 ms and fill the uplink until 1000 ms; the
    // acknowledgements of the server's data wait behind them, while its own link is free.
    let mut packets = handshake(0, 0);
    for number in 0..40 {
        let (begin, end) = (100 + number * 1460, 100 + (number + 1) * 1460);
        let arrived = 220 + number * 20;
        packets.push((0, 150, arrived, format!("> data {begin}..{end} ack 0")));
        packets.push((0, arrived, arrived + 50, format!("< ack {end}")));
    }
    for number in 0..10 {
        let (begin, end) = (number * 1460, (number + 1) * 1460);
        packets.push((0, 200, 251 + number, format!("< data {begin}..{end} ack 100")));
    }
    for number in 0..5 {
        let at = 1002 + number * 2;
        packets.push((0, 261, at, format!("> ack {}", (number + 1) * 2920)));
        for segment in 0..4 {
            let begin = 14600 + (number * 4 + segment) * 1460;
            packets.push((0, at, at + 51, format!("< data {begin}..{} ack 58500", begin + 1460)));
        }
    }
    packets.push((0, 1103, 1153, "> ack 43800".to_owned()));
    let account = &accounts(&packets)[0];
    // The 40 segments take 20 ms each.
    assert!(is_near(account, &[Cause::Queueing, Cause::PathRate], 800), "{account}");
}

#[test]
fn a_gap_in_the_arrivals_of_a_single_connection_is_not_shared() {
    // Acknowledgements of the first segments come while the next segments wait for 500 ms.
    let mut packets = handshake(0, 0);
    packets.extend(reply(0, 200, 270, 20, 20, 400));
    for number in 20..40 {
        let (begin, end, arrived) = (number * 1460, (number + 1) * 1460, 1150 + (number - 20) * 20);
        packets.push((0, 210, arrived, format!("< data {begin}..{end} ack 100")));
        packets.push((0, arrived, arrived + 50, format!("> ack {end}")));
    }
    let account = &accounts(&packets)[0];
    assert_eq!(account.of(Cause::Sharing).as_nanos(), 0, "{account}");
}

#[test]
fn a_copy_after_an_outage_takes_its_transmission_only() {
    // Nothing passes from 280 to 3300 ms: the acknowledgement, and the copy that the timer sends.
    let mut packets = [handshake(0, 0), reply(0, 150, 200, 3, 20, 50)].concat();
    packets.push((0, 260, 310, "< psh data 4380..5840 ack 100".to_owned()));
    packets.push((0, 310, 3350, "> ack 5840".to_owned()));
    packets.push((0, 660, 3355, "< psh data 4380..5840 ack 100".to_owned()));
    packets.push((0, 3355, 3405, "> ack 5840".to_owned()));
    let account = &accounts(&packets)[0];
    assert!(millis(account, Cause::Spurious) <= 20, "{account}");
    assert!(millis(account, Cause::Radio) > 2900, "{account}");
}

#[test]
fn acknowledgements_show_what_arrives_after_the_end_of_the_other_capture() {
    let packets = [handshake(0, 0), reply(0, 200, 270, 20, 20, 50)].concat();
    let full = [Cause::Queueing, Cause::PathRate];
    let whole = &accounts(&packets)[0];
    let cut = &accounts_with(&packets, |frame| frame < 20, None)[0];
    let [whole, part] = [whole, cut].map(|account| full.iter().map(|cause| millis(account, *cause)).sum::<u64>());
    assert!(whole.abs_diff(part) <= 25, "{whole} {cut}");
}

#[test]
fn what_is_in_the_link_at_the_end_of_a_capture_arrives_after_it() {
    let mut packets = [handshake(0, 0), reply(0, 200, 270, 20, 20, 50)].concat();
    packets.retain(|(_, sent, ..)| *sent <= 200);
    packets.push((0, 500, 700, "< rst at 29200 ack 100".to_owned()));
    let account = &accounts(&packets)[0];
    assert!(is_near(account, &[Cause::Queueing, Cause::PathRate], 280), "{account}");
}

#[test]
fn super_segments_take_as_long_as_their_packets() {
    let packets = [handshake(0, 0), reply(0, 200, 270, 40, 20, 50)].concat();
    let mut offloaded = packets.clone();
    offloaded.retain(|(.., line)| !line.starts_with("< data") && !line.starts_with("< psh"));
    for number in 0..10 {
        offloaded.push((0, 200, 0, format!("< psh data {}..{} ack 100", number * 5840, (number + 1) * 5840)));
    }
    let client = capture(&packets, End::Client);
    let [whole, cut] = [&packets, &offloaded].map(|sent| accounts_of(&capture(sent, End::Server), &client, None));
    let (whole, cut) = (&whole[0], &cut[0]);
    for cause in [Cause::Queueing, Cause::PathRate] {
        assert!(millis(whole, cause).abs_diff(millis(cut, cause)) <= 30, "{whole}; {cut}");
    }
}

#[test]
fn a_gap_in_which_other_connections_arrive_is_no_silence() {
    // Two requests of two segments fill the uplink, which delivers one of them after the other. A
    // copy of the end of the first waits behind the second.
    let mut packets = [handshake(0, 0), handshake(1, 20)].concat();
    for (connection, sent, arrived, line) in [
        (0, 140, 400, "> data 100..1560 ack 0"),
        (0, 140, 480, "> psh data 1560..2060 ack 0"),
        (1, 160, 680, "> data 100..1560 ack 0"),
        (1, 160, 760, "> psh data 1560..2060 ack 0"),
        (0, 384, 820, "> psh data 1560..2060 ack 0"),
        (1, 411, 900, "> psh data 1560..2060 ack 0"),
    ] {
        packets.push((connection, sent, arrived, line.to_owned()));
    }
    packets.push((0, 480, 520, "< psh data 0..600 ack 2060".to_owned()));
    packets.push((0, 520, 920, "> ack 600".to_owned()));
    // Later packets are 20 ms apart: the copy is due as soon after the first request.
    for number in 0..60 {
        let (begin, arrived) = (2060 + number * 10, 1070 + number * 20);
        packets.push((0, 1000, arrived, format!("> psh data {begin}..{} ack 600", begin + 10)));
    }
    packets.sort_by_key(|(_, sent, ..)| *sent);
    let account = &accounts(&packets)[0];
    assert_eq!(millis(account, Cause::Radio), 0, "{account}");
}

#[test]
fn acknowledgements_that_queue_in_front_of_their_link_show_that_it_is_full() {
    // The downlink takes nothing; the uplink takes 60 ms for each acknowledgement. A radio log has
    // a block that hybrid ARQ repeats in each of them.
    let mut packets = handshake(0, 0);
    let (mut free, mut gaps) = (250, Vec::new());
    for number in 0..40 {
        let (begin, end, sent) = (number * 1460, (number + 1) * 1460, 200 + number * 20);
        packets.push((0, sent, sent + 50, format!("< data {begin}..{end} ack 100")));
        let left = free.max(sent + 50);
        packets.push((0, sent + 50, left + 50, format!("> ack {end}")));
        gaps.push((left, left + 20));
        free = left + 60;
    }
    let gap = |(begin, end): (u64, u64)| RadioGap {
        begin: at(begin),
        end: at(end),
        direction: Some(Direction::Up),
        name: "harq-repeat".into(),
        wanted: false,
    };
    let log = RadioLog::default().with_delays(gaps.into_iter().map(gap).collect());
    let account = &accounts(&packets)[0];
    assert!(millis(account, Cause::Queueing) > 2000, "{account}");
    let logged = &accounts_with(&packets, |_| true, Some(log))[0];
    assert_eq!(millis(logged, Cause::Queueing), millis(account, Cause::Queueing), "{logged}");
}

#[test]
fn data_that_the_radio_delays_until_the_captures_end_waits_for_it() {
    // The last segment, and what the timer sends again, had not arrived when the captures ended.
    let mut packets = [handshake(0, 0), reply(0, 200, 270, 20, 20, 50)].concat();
    let arrived = packets.len() as u64;
    for sent in [800, 1400, 2600, 5000] {
        packets.push((0, sent, 90_000 + sent, "< data 29200..30660 ack 100".to_owned()));
    }
    let repeat = RadioGap {
        begin: at(850),
        end: at(10_000),
        direction: Some(Direction::Down),
        name: "harq-repeat".into(),
        wanted: false,
    };
    let log = RadioLog::default().with_delays(vec![repeat]);
    let account = &accounts_with(&packets, |frame| frame <= arrived, Some(log))[0];
    assert!(millis(account, Cause::Radio).abs_diff(5000 - 850) <= 10, "{account}");
}
