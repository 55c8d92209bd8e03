//! Closed windows, probes and keep-alives.

use super::opened;
use crate::testing::{play, segment};
use crate::{Connection, Detector, End, Events};

#[test]
fn a_closed_window_and_its_probes() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        300 < ack 1000 win 0
        600 > data 1000..1001 ack 0
        700 < ack 1000 win 0
        800 < ack 1000 win 100
        800 > data 1000..2000 ack 0
        ",
    );
    let events: Vec<_> = seen.iter().map(|seen| seen.events).collect();
    assert_eq!(events[1], Events::ZERO_WINDOW);
    assert_eq!(events[2], Events::ZERO_WINDOW_PROBE);
    assert_eq!(events[3], Events::ZERO_WINDOW | Events::ZERO_WINDOW_PROBE_ACK);
    assert_eq!(events[4], Events::WINDOW_UPDATE);
}

#[test]
fn a_keep_alive_is_no_retransmission() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        300 < ack 1000
        9000 > at 999 ack 0
        9100 < ack 1000
        ",
    );
    assert_eq!(seen[2].events, Events::KEEP_ALIVE);
    assert_eq!(seen[3].events, Events::KEEP_ALIVE_ACK);
}

#[test]
fn a_probe_of_a_closed_window_is_no_data_until_it_is_acknowledged() {
    let exchange = "
        0 > syn
        0 < syn ack 0
        100 > ack 0 win 1000
        100 < data 0..1000 ack 0
        200 > ack 1000 win 0
        1200 < data 1000..1001 ack 0
        1300 > ack 1000 win 0
        2000 > ack 1000 win 1000
        2000 < data 1000..2000 ack 0
        2100 > ack 2000 win 0
        3100 < data 2000..2001 ack 0
        3200 > ack 2001 win 999
        3200 < data 2001..3000 ack 0
    ";
    let (connection, _) = play(exchange);
    let figures = connection.figures(End::Server);
    assert_eq!((figures.retransmissions, figures.unique_bytes, figures.unseen_bytes), (0, 3000, 0));
    assert_eq!((figures.window_probes, figures.window_probe_bytes), (2, 2));
}

/// As in `zeek__http_206_example_b.pcap`: the sender ignores the window.
#[test]
fn a_retransmission_of_data_that_a_closed_window_refused_is_not_spurious() {
    let exchange = |window: &str, after: &str| {
        let (connection, _) = play(&format!(
            "
            0   > syn
            0   < syn ack 0
            100 > ack 0
            100 < data 0..1000 ack 0
            200 > ack 1000 {window}
            201 < data 1000..2000 ack 0
            202 < data 2000..3000 ack 0
            301 > ack 1000 {window}
            302 > ack 1000 {window}
            500 > ack 1000
            600 < data 1000..2000 ack 0
            600 < data 2000..3000 ack 0
            601 > ack 2000
            602 > ack 3000
            {after}
            "
        ));
        connection.spurious(End::Server).map(|spurious| spurious.frame).collect::<Vec<_>>()
    };
    assert!(exchange("win 0", "").is_empty());
    assert_eq!(exchange("win 5000", ""), [11, 12], "without a closed window they came too soon");
    assert_eq!(exchange("win 0", "700 < data 1000..2000 ack 0"), [15], "only the refused copy was needed again");
    assert_eq!(exchange("win 0", "602 > ack 3000 sack 1000..2000"), [11], "the receiver reports a duplicate");
}

/// The capture is at the receiver, which answers each segment at once.
#[test]
fn data_that_the_receiver_at_the_capture_refused_was_not_there() {
    let exchange = |window: &str| {
        let (connection, _) = play(&format!(
            "
            0   > syn
            100 < syn ack 0
            100 > ack 0
            200 < data 0..1000 ack 0
            200 > ack 1000 {window}
            201 < data 1000..2000 ack 0
            201 > ack 1000 {window}
            300 > ack 1000
            400 < data 1000..2000 ack 0
            "
        ));
        connection.figures(End::Server).spurious.by_detector[Detector::OtherEnd as usize]
    };
    assert_eq!(exchange("win 0"), 0);
    assert_eq!(exchange("win 5000"), 1);
}

#[test]
fn the_scale_is_unknown_once_the_data_exceeds_a_window_without_handshake() {
    let lines = "
        0   > data 0..1000 ack 0 win 500
        1   < ack 1000 win 100
        2   > data 1000..1100 ack 0 win 500
        3   < ack 1100 win 100
        4   > data 1100..2100 ack 0 win 500
        5   < ack 2100 win 100
        6   < win 0 ack 2100
    ";
    let (connection, seen) = play(lines);
    let unknown: Vec<bool> = seen.iter().map(|seen| seen.scale_is_unknown).collect();
    assert_eq!(unknown, [false, false, false, false, false, true, true]);
    assert_eq!(End::BOTH.map(|end| connection.figures(end).window.scale_is_unknown), [false, true]);
    assert_eq!(seen[3].most_receivable(), 100);
    assert!(seen[5].most_receivable() > 1 << 29, "an open window limits nothing");
    assert_eq!(seen[6].most_receivable(), 0, "a closed window does");
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        201 < ack 1000 win 1
        202 > data 1000..2000 ack 0
        203 < ack 2000 win 1
        ",
    );
    assert!(seen.iter().all(|seen| !seen.scale_is_unknown), "the handshake has the scale");
}

#[test]
fn the_scale_is_unknown_where_the_options_of_a_syn_are_cut_off() {
    let unknown = |cut: &[usize]| {
        let lines = ["0 > syn win 5000", "1 < syn ack 0 win 5000", "2 > ack 0 win 40", "3 > data 0..1000 ack 0 win 40"];
        let more = ["4 < ack 1000 win 40", "5 > data 1000..2000 ack 0 win 40", "6 < ack 2000 win 40"];
        let last = ["7 > data 2000..8000 ack 0 win 40", "8 < ack 8000 win 40"];
        let mut connection = None;
        let mut seen = Vec::new();
        for (index, line) in lines.iter().chain(&more).chain(&last).enumerate() {
            let (mut segment, from) = segment(line, index as u64 + 1);
            segment.options_cut = cut.contains(&index);
            let connection = connection.get_or_insert_with(|| Connection::new(&segment, false));
            seen.push(connection.segment(&segment, from).scale_is_unknown);
        }
        seen.last().copied()
    };
    assert_eq!(unknown(&[]), Some(false), "neither end requested a scale");
    for cut in [&[0][..], &[1], &[0, 1]] {
        assert_eq!(unknown(cut), Some(true), "{cut:?}");
    }
    assert_eq!(unknown(&[2, 3]), Some(false), "only a SYN has the option");
}
