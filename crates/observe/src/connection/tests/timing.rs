//! Round trips, sending times and the phases of congestion control.

use airpath_core::{Instant, Span};

use super::opened;
use crate::testing::play;
use crate::{Detector, End, Events, Phase};

#[test]
fn an_outage_stays_in_the_round_trip_by_timestamps() {
    let (_, seen) = opened(
        "
        200  > data 0..1000 ack 0 ts 5200,1
        201  > data 1000..2000 ack 0 ts 5201,1
        700  > data 0..1000 ack 0 ts 5700,1
        3200 < ack 1000 ts 9,5200
        3201 < ack 2000 ts 9,5201
        ",
    );
    assert_eq!(seen[3].echo_round_trip, Some((Span::from_millis(3000), 4)));
    assert_eq!(seen[3].round_trip, None);
    let spurious = seen[3].spurious.unwrap();
    assert_eq!((spurious.frame, spurious.detector), (6, Detector::Timestamp));
}

#[test]
fn a_syn_with_data_measures_the_handshake() {
    for acknowledged in [0, 100] {
        let (connection, seen) = play(&format!(
            "
            0  > syn data 0..100
            50 < syn ack {acknowledged}
            51 > ack 0
            "
        ));
        let accepted = if acknowledged == 100 { Events::TFO_ACK } else { Events::TFO_IGNORED };
        assert_eq!([seen[0].events, seen[1].events], [Events::TFO_SYN, accepted]);
        assert_eq!(connection.figures(End::Client).handshake, Some(Span::from_millis(50)));
    }
}

#[test]
fn phases_of_congestion_control() {
    let mut lines = String::new();
    let (mut at, mut time) = (0, 200);
    // Six rounds of 100 ms: 1, 2, 4, then 4 segments a round.
    for segments in [1, 2, 4, 4, 4, 4] {
        for _ in 0..segments {
            lines += &format!("{time} > data {at}..{} ack 0\n", at + 1000);
            at += 1000;
        }
        time += 100;
        lines += &format!("{time} < ack {at}\n");
    }
    let (connection, _) = opened(&lines);
    let figures = connection.figures(End::Client);
    assert_eq!(figures.phases.spent(Phase::SlowStart), Span::from_millis(500));
    assert_eq!(figures.phases.spent(Phase::Avoidance), Span::from_millis(100));
    assert_eq!(figures.phases.start_up(), Some(Span::from_millis(500)));
    assert_eq!(figures.outstanding.largest, 4000);
    assert_eq!(figures.initial_segments, 1);
    assert_eq!(figures.round_trip.count, 1 + 6);
}

#[test]
fn recoveries_end_slow_start_and_timeouts_restart_it() {
    let (connection, _) = opened(
        "
        200 > data 0..1000 ack 0
        201 > data 1000..2000 ack 0
        202 > data 2000..3000 ack 0
        203 > data 3000..4000 ack 0
        301 < ack 0 sack 1000..2000
        302 < ack 0 sack 1000..3000
        303 < ack 0 sack 1000..4000
        303 > data 0..1000 ack 0
        403 < ack 4000
        500 > data 4000..5000 ack 0
        1500 > data 4000..5000 ack 0
        1600 < ack 5000
        1600 > data 5000..6000 ack 0
        1700 < ack 6000
        ",
    );
    let phases = connection.figures(End::Client).phases;
    assert_eq!(phases.start_up(), Some(Span::from_millis(103)), "until the fast retransmission");
    assert_eq!(phases.spent(Phase::Recovery), Span::from_millis(100));
    // The time until the timer expires belongs to the phase before.
    assert_eq!(phases.spent(Phase::Avoidance), Span::from_millis(1000));
    assert_eq!(phases.spent(Phase::AfterTimeout), Span::from_millis(100));
    assert_eq!(phases.spent(Phase::SlowStart), Span::from_millis(103 + 100));
}

#[test]
fn when_the_newly_acknowledged_data_was_sent() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        210 > data 1000..2000 ack 0
        220 > data 2000..3000 ack 0
        230 > data 3000..4000 ack 0
        310 < ack 0 sack 1000..2000
        320 < ack 0 sack 1000..3000
        330 < ack 0 sack 1000..4000
        340 > data 0..1000 ack 0
        440 < ack 4000
        ",
    );
    let since_start = |time: Instant| time.since(seen[0].time).as_nanos() / 1_000_000;
    let newly = |index: usize| {
        let sending = seen[index].newly_acknowledged.unwrap();
        (since_start(sending.original), since_start(sending.first), since_start(sending.last))
    };
    assert_eq!([newly(4), newly(5), newly(6)], [(10, 10, 10), (20, 20, 20), (30, 30, 30)]);
    assert_eq!(newly(8), (0, 140, 140), "the others were acknowledged selectively before");
    assert_eq!(seen[6].unacknowledged_since.map(since_start), Some(0));
    assert_eq!(seen[7].unacknowledged_since, None, "it acknowledges nothing new");
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        210 > data 1000..2000 ack 0
        900 > data 0..1000 ack 0
        1000 < ack 2000
        ",
    );
    let sending = seen[3].newly_acknowledged.unwrap();
    let since_start = |time: Instant| time.since(seen[0].time).as_nanos() / 1_000_000;
    let times = [sending.original, sending.first, sending.last].map(since_start);
    assert_eq!(times, [0, 10, 700]);
}

#[test]
fn bunched_acknowledgements_follow_each_other_faster_than_their_segments() {
    let found = |second_sent: u64, second_acknowledged: u64| {
        let (connection, _) = opened(&format!(
            "
            200 > data 0..1000 ack 0
            {second_sent} > data 1000..2000 ack 0
            300 < ack 1000
            {second_acknowledged} < ack 2000
            "
        ));
        let figures = connection.figures(End::Client);
        (figures.paired_acknowledgements, figures.bunched_acknowledgements)
    };
    // The first pair is that of the SYN and the first segment.
    assert_eq!(found(200, 301), (1, 0), "the two were sent together");
    assert_eq!(found(201, 301), (2, 0));
    assert_eq!(found(208, 301), (2, 1));
    assert_eq!(found(208, 302), (2, 0), "a quarter of the time between the segments");
    assert_eq!(found(208, 308), (2, 0));
}

#[test]
fn slow_start_adds_a_quarter_in_a_round() {
    let left = |rounds: &[u64]| {
        let mut lines = String::new();
        let (mut at, mut time) = (0, 200);
        for bytes in rounds {
            lines += &format!("{time} > data {at}..{} ack 0\n", at + bytes);
            at += bytes;
            time += 100;
            lines += &format!("{time} < ack {at}\n");
        }
        opened(&lines).0.figures(End::Client).phases.start_up()
    };
    assert_eq!(left(&[400, 500, 625, 781]), None);
    // Two rounds with less, then slow start counts as left with the second of them.
    assert_eq!(left(&[400, 499, 623, 777]), None, "one round alone may lack data");
    assert_eq!(left(&[400, 499, 622, 777, 900]), Some(Span::from_millis(300)));
}
