//! What the capture lacks, has twice or has damaged.

use super::opened;
use crate::testing::play;
use crate::{End, Events};

#[test]
fn a_segment_longer_than_the_other_end_takes() {
    let (connection, seen) = play(
        "
        0   > syn mss 1460
        100 < syn ack 0 mss 1460
        100 > ack 0
        200 > data 0..1460 ack 0
        200 > data 1460..4380 ack 0
        300 < ack 4380
        ",
    );
    assert_eq!([seen[3].events, seen[4].events], [Events::default(), Events::SUPER_SEGMENT]);
    assert_eq!(connection.figures(End::Client).event(Events::SUPER_SEGMENT), 1);
}

#[test]
fn acknowledged_but_never_captured() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        300 < ack 3000
        301 > data 3000..4000 ack 0
        302 > data 1000..2000 ack 0
        ",
    );
    assert_eq!(seen[1].events, Events::ACK_LOST_SEGMENT);
    assert!(seen[2].events.is_empty());
    assert_eq!(seen[3].events, Events::OUT_OF_ORDER, "late, but never seen before");
}

#[test]
fn the_capture_saw_the_same_packet_twice() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0 id 7
        200 > data 0..1000 ack 0 id 7
        ",
    );
    assert_eq!(seen[1].events, Events::HARDWARE_DUPLICATE);
    assert_eq!(seen[1].retransmission, None);
}

#[test]
fn without_identification_only_what_follows_at_once_is_the_same_packet() {
    let again = |second: &str| {
        let (_, seen) = opened(&format!("200 > data 0..1000 ack 0\n{second}"));
        seen.last().unwrap().events
    };
    assert_eq!(again("200 > data 0..1000 ack 0"), Events::HARDWARE_DUPLICATE);
    assert_eq!(again("201 > data 0..1000 ack 0"), Events::RETRANSMISSION, "a timer may be as short");
    assert_eq!(again("200 < ack 0\n200 > data 0..1000 ack 0"), Events::RETRANSMISSION, "something was heard");
    assert_eq!(again("200 < ack 0\n200 < ack 0"), Events::DUPLICATE_ACK, "acknowledgements repeat each other");
}

/// Captured before and after a router that decreases the time to live.
#[test]
fn without_identification_a_lower_time_to_live_shows_the_same_packet() {
    let again = |second: &str| {
        let (_, seen) = opened(&format!("200 > data 0..1000 ack 0 ts 5,1 ttl 64\n{second}"));
        seen.last().unwrap().events
    };
    assert_eq!(again("205 > data 0..1000 ack 0 ts 5,1 ttl 63"), Events::HARDWARE_DUPLICATE);
    assert_eq!(again("203 < ack 0 ts 1,5\n205 > data 0..1000 ack 0 ts 5,1 ttl 62"), Events::HARDWARE_DUPLICATE);
    assert_eq!(again("205 > data 0..1000 ack 0 ts 5,1 ttl 64"), Events::RETRANSMISSION, "no router between");
    assert_eq!(again("205 > data 0..1000 ack 0 ts 5,1 ttl 65"), Events::RETRANSMISSION, "no router increases it");
    assert_eq!(again("205 > data 0..1000 ack 0 ts 6,1 ttl 63"), Events::RETRANSMISSION, "sent later, on another path");
    assert_eq!(again("450 > data 0..1000 ack 0 ts 5,1 ttl 63"), Events::RETRANSMISSION, "too late");
    assert_eq!(again("205 > data 0..1000 ack 0 ts 5,1 win 9 ttl 63"), Events::RETRANSMISSION, "another window");
}

#[test]
fn copies_of_duplicate_acknowledgements_count_once() {
    let (connection, _) = opened(
        "
        200 > data 0..1000 ack 0
        201 > data 1000..2000 ack 0
        202 > data 2000..3000 ack 0
        300 < ack 0 ttl 53
        300 < ack 0 ttl 52
        301 < ack 0 ttl 53
        301 < ack 0 ttl 52
        ",
    );
    let server = connection.figures(End::Server);
    assert_eq!(server.event(Events::HARDWARE_DUPLICATE), 2);
    assert_eq!(connection.figures(End::Client).duplicate_acknowledgements, 1, "the first changes the window");
}

#[test]
fn what_was_lost_before_the_capture_was_sent_later() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0 ts 10,1
        201 > data 2000..3000 ack 0 ts 12,1
        202 > data 1000..2000 ack 0 ts 11,1
        203 > data 4000..5000 ack 0 ts 14,1
        204 > data 3000..4000 ack 0 ts 15,1
        ",
    );
    assert_eq!(seen[1].events, Events::LOST_SEGMENT);
    assert_eq!(seen[2].events, Events::OUT_OF_ORDER, "overtaken");
    assert_eq!(seen[4].events, Events::OUT_OF_ORDER | Events::LOST_BEFORE_CAPTURE);
}

#[test]
fn the_same_packet_is_found_among_the_last_sixteen() {
    let again = |others: u64| {
        let mut lines = "200 > data 0..100 ack 0 id 1\n".to_owned();
        for other in 1..=others {
            lines += &format!("200 > data {}00..{}00 ack 0 id {}\n", other, other + 1, other + 1);
        }
        let (_, seen) = opened(&format!("{lines}200 > data 0..100 ack 0 id 1"));
        seen.last().unwrap().events.contains(Events::HARDWARE_DUPLICATE)
    };
    assert_eq!([again(0), again(15), again(16)], [true, true, false]);
    let (_, seen) = opened("200 > data 0..100 ack 0 id 1\n200 > data 0..100 ack 0 id 2");
    assert_eq!(seen[1].events, Events::RETRANSMISSION, "another packet");
}

#[test]
fn a_keep_alive_at_the_beginning_of_a_capture_is_no_missing_byte() {
    let (connection, _) = play("0 > data 99..99 ack 50\n50 < ack 100\n60 > data 100..200 ack 50");
    assert_eq!(connection.figures(End::Client).unseen_bytes, 0);
}

#[test]
fn the_same_packet_long_after_is_a_retransmission() {
    let exchange = |again: u64| {
        format!("0 > syn\n10 < syn ack 0\n10 > ack 0\n20 > data 0..100 ack 0 id 7\n{again} > data 0..100 ack 0 id 7")
    };
    let retransmissions = |again: u64| play(&exchange(again)).0.figures(End::Client).retransmissions;
    assert_eq!(retransmissions(21), 0, "a duplicate by the capture");
    assert_eq!(retransmissions(300_000), 1);
}

#[test]
fn an_acknowledgement_far_beyond_the_window_is_damaged() {
    let exchange = "
        0 > syn
        0 < syn ack 0
        100 > ack 0
        100 < data 0..1000 ack 0
        200 > ack 1000
        200 < data 1000..2000 ack 0
        300 > ack 1000000000
        300 < data 2000..3000 ack 0
        400 > ack 3000
    ";
    let (connection, _) = play(exchange);
    assert_eq!(connection.figures(End::Server).unseen_bytes, 0);
    assert_eq!(connection.figures(End::Server).unique_bytes, 3000);
}
