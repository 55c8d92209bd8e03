//! Scripted exchanges of segments, and their expected interpretation.

use airpath_core::{Instant, Span};

use crate::testing::play;
use crate::{Connection, Detector, End, Events, Observation, Phase, Trigger};

const OPENING: &str = "
    0   > syn scale 7 permitted
    100 < syn ack 0 scale 8 permitted
    100 > ack 0 win 500
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
fn a_fast_retransmission_is_no_out_of_order_segment() {
    let (_, seen) = opened(
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
        ",
    );
    let again = &seen[7];
    assert_eq!(again.events, Events::RETRANSMISSION | Events::FAST_RETRANSMISSION);
    let retransmission = again.retransmission.unwrap();
    assert_eq!((retransmission.of_frame, retransmission.trigger), (Some(4), Trigger::Fast));
    assert_eq!(seen[6].delivered, 3000);
    assert_eq!(seen[8].round_trip, None, "Karn's rule");
    assert_eq!(seen[8].spurious, None);
}

#[test]
fn a_timeout_and_what_follows_it() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        201 > data 1000..2000 ack 0
        700 > data 0..1000 ack 0
        800 < ack 1000
        800 > data 1000..2000 ack 0
        900 < ack 2000
        ",
    );
    let triggers: Vec<_> = seen.iter().filter_map(|seen| Some(seen.retransmission?.trigger)).collect();
    assert_eq!(triggers, [Trigger::Timeout, Trigger::Timeout]);
}

#[test]
fn a_tail_probe() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        201 > data 1000..2000 ack 0
        300 < ack 1000
        410 > data 1000..2000 ack 0
        510 < ack 2000
        ",
    );
    assert_eq!(seen[3].retransmission.unwrap().trigger, Trigger::TailProbe);
}

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
fn a_spurious_retransmission_without_timestamps() {
    let (_, seen) = opened(
        "
        200  > data 0..1000 ack 0
        201  > data 1000..2000 ack 0
        202  > data 2000..3000 ack 0
        700  > data 0..1000 ack 0
        3200 < ack 1000
        3201 < ack 2000
        ",
    );
    let spurious = seen[5].spurious.unwrap();
    assert_eq!((spurious.frame, spurious.detector), (7, Detector::ForwardAcknowledgement));
}

#[test]
fn a_receiver_reports_what_came_twice() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        700 > data 0..1000 ack 0
        850 < ack 1000
        851 < ack 1000 sack 0..1000
        ",
    );
    assert!(seen[3].events.contains(Events::DSACK | Events::SHOWS_SPURIOUS));
    assert!(!seen[2].events.contains(Events::SHOWS_SPURIOUS));
    let spurious = seen[3].spurious.unwrap();
    assert_eq!((spurious.frame, spurious.detector), (5, Detector::Dsack));
}

#[test]
fn an_acknowledgement_sooner_than_any_round_trip() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        700 > data 0..1000 ack 0
        740 < ack 1000
        ",
    );
    let spurious = seen[2].spurious.unwrap();
    assert_eq!((spurious.frame, spurious.detector), (5, Detector::TooSoon));
}

/// Without selective acknowledgements and timestamps.
const PLAIN: &str = "
    0   > syn
    100 < syn ack 0
    100 > ack 0
    200 > data 0..1000 ack 0
    201 > data 1000..2000 ack 0
    202 > data 2000..3000 ack 0
";

#[test]
fn one_acknowledgement_too_many_shows_what_had_arrived() {
    // The first segment was lost; the second had arrived.
    let (connection, seen) = play(&format!(
        "{PLAIN}
        301 < ack 0
        302 < ack 0
        800 > data 0..1000 ack 0
        801 > data 1000..2000 ack 0
        900 < ack 3000
        900 > data 3000..4000 ack 0
        901 < ack 3000
        "
    ));
    let spurious = seen[12].spurious.unwrap();
    assert_eq!((spurious.frame, spurious.detector), (10, Detector::ExtraAcknowledgement));
    assert_eq!(connection.spurious(End::Client).collect::<Vec<_>>(), [spurious]);
}

#[test]
fn the_echo_identifies_the_transmission_that_an_acknowledgement_answers() {
    // The first and the third of seven were lost; the second had arrived. Both are sent again after
    // a timeout.
    let exchange = |echo: u32| {
        let (connection, _) = play(&format!(
            "
            0   > syn ts 5000,0
            100 < syn ack 0 ts 1,5000
            100 > ack 0 ts 5100,1
            200 > data 0..1000 ack 0 ts 5200,1
            201 > data 1000..2000 ack 0 ts 5201,1
            202 > data 2000..3000 ack 0 ts 5202,1
            203 > data 3000..4000 ack 0 ts 5203,1
            204 > data 4000..5000 ack 0 ts 5204,1
            301 < ack 0 ts 9,5100
            303 < ack 0 ts 9,5100
            304 < ack 0 ts 9,5100
            800 > data 0..1000 ack 0 ts 5800,9
            801 > data 1000..2000 ack 0 ts 5801,9
            901 < ack 2000 ts 15,{echo}
            "
        ));
        connection.spurious(End::Client).map(|spurious| (spurious.frame, spurious.detector)).collect::<Vec<_>>()
    };
    assert_eq!(exchange(5800), [(13, Detector::ExtraAcknowledgement)]);
    assert_eq!(exchange(5801), [], "the answer to the first may be lost");
}

#[test]
fn where_the_path_does_not_keep_the_order_acknowledgements_are_not_counted() {
    let (connection, _) = play(&format!(
        "{PLAIN}
        301 < ack 0
        302 < ack 3000
        400 > data 3000..4000 ack 0
        401 > data 4000..5000 ack 0
        501 < ack 3000
        1000 > data 3000..4000 ack 0
        1001 > data 4000..5000 ack 0
        1100 < ack 5000
        1100 > data 5000..6000 ack 0
        1101 < ack 5000
        "
    ));
    assert_eq!(connection.spurious(End::Client).count(), 0);
}

#[test]
fn acknowledgements_that_can_all_be_for_what_was_needed_show_nothing() {
    // The first two were lost, and so was the acknowledgement of the first retransmission.
    let (connection, _) = play(&format!(
        "{PLAIN}
        301 < ack 0
        800 > data 0..1000 ack 0
        801 > data 1000..2000 ack 0
        901 < ack 3000
        901 > data 3000..4000 ack 0
        902 > data 4000..5000 ack 0
        1002 < ack 3000
        "
    ));
    assert_eq!(connection.spurious(End::Client).count(), 0, "the last may be for 4000..5000, if 3000..4000 was lost");
}

#[test]
fn of_super_segments_acknowledgements_are_not_counted() {
    let (connection, seen) = play(
        "
        0   > syn
        100 < syn ack 0
        100 > ack 0
        200 > data 0..9000 ack 0
        301 < ack 0
        302 < ack 0
        800 > data 0..9000 ack 0
        901 < ack 9000
        901 > data 9000..9999 ack 0
        902 < ack 9000
        903 < ack 9000
        ",
    );
    assert_eq!(connection.spurious(End::Client).count(), 0);
    assert!(!seen[3].events.contains(Events::SUPER_SEGMENT), "without an announced size, a jumbo frame");
}

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
fn which_duplicate_and_of_what() {
    let (_, seen) = opened(
        "
        200 > data 0..1000 ack 0
        201 > data 1000..2000 ack 0
        202 > data 2000..3000 ack 0
        300 < ack 1000
        301 < ack 1000 sack 2000..3000
        302 < ack 1000 sack 2000..3000
        ",
    );
    let duplicates: Vec<_> = seen.iter().filter_map(|seen| seen.duplicate).map(|it| (it.number, it.of_frame)).collect();
    assert_eq!(duplicates, [(1, 7), (2, 7)]);
}

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

/// The triggers of the retransmissions of an exchange after the handshake.
fn triggers(rest: &str) -> Vec<Trigger> {
    let (connection, seen) = opened(rest);
    let triggers: Vec<_> = seen.iter().filter_map(|seen| Some(seen.retransmission?.trigger)).collect();
    let counted = connection.figures(End::Client).triggers;
    for (trigger, count) in Trigger::ALL.into_iter().zip(counted) {
        assert_eq!(triggers.iter().filter(|found| **found == trigger).count() as u64, count, "{trigger:?}");
    }
    triggers
}

#[test]
fn a_lost_retransmission_is_sent_again_by_the_timer() {
    // The estimated timer is 100 ms and at least 200 ms more.
    let lost = |millis: u64| {
        triggers(&format!(
            "
            200 > data 0..1000 ack 0
            201 > data 1000..2000 ack 0
            202 > data 2000..3000 ack 0
            203 > data 3000..4000 ack 0
            301 < ack 0 sack 1000..2000
            302 < ack 0 sack 1000..3000
            303 < ack 0 sack 1000..4000
            303 > data 0..1000 ack 0
            {millis} > data 0..1000 ack 0
            "
        ))
    };
    assert_eq!(lost(560), [Trigger::Fast, Trigger::Fast], "too early for the timer");
    assert_eq!(lost(660), [Trigger::Fast, Trigger::Timeout]);
}

#[test]
fn a_partial_acknowledgement_continues_a_fast_recovery() {
    // RFC 6582 §3.2 step 5: the next segment is lost, too, and no duplicate requests it.
    let found = plain_triggers(
        "
        301 < ack 0
        302 < ack 0
        303 < ack 0
        303 > data 0..1000 ack 0
        403 < ack 1000
        403 > data 1000..2000 ack 0
        503 < ack 3000
        ",
    );
    assert_eq!(found, [Trigger::Fast, Trigger::Fast]);
}

/// The triggers of the retransmissions after three segments, without selective acknowledgements.
fn plain_triggers(rest: &str) -> Vec<Trigger> {
    let (_, seen) = play(&format!("{PLAIN}{rest}"));
    seen.iter().filter_map(|seen| Some(seen.retransmission?.trigger)).collect()
}

#[test]
fn each_acknowledgement_restarts_the_timer() {
    // RFC 6298 §5.3. After round trips of 100 and 400 ms the timer is 587 ms; nine tenths of it are
    // 528 ms.
    let again = |millis: u64| plain_triggers(&format!("600 < ack 1000\n{millis} > data 1000..2000 ack 0"));
    assert_eq!(again(750), [Trigger::Unknown], "549 ms after the segment, but 150 ms after an acknowledgement");
    assert_eq!(again(1130), [Trigger::Timeout]);
}

#[test]
fn an_early_retransmission_follows_a_duplicate() {
    // RFC 5827: with few segments outstanding, one duplicate is enough.
    assert_eq!(plain_triggers("301 < ack 0\n310 > data 0..1000 ack 0"), [Trigger::Fast]);
    assert_eq!(plain_triggers("301 < ack 0\n310 > data 1000..2000 ack 0"), [Trigger::Unknown], "not the awaited one");
    assert_eq!(plain_triggers("310 > data 0..1000 ack 0"), [Trigger::Unknown], "no duplicate");
}

#[test]
fn a_tail_probe_repeats_the_last_segment_after_two_round_trips() {
    let probe = |millis: u64, again: &str| {
        triggers(&format!(
            "
            200 > data 0..1000 ack 0
            201 > data 1000..2000 ack 0
            202 > data 2000..3000 ack 0
            300 < ack 1000
            {millis} > data {again} ack 0
            "
        ))
    };
    // RFC 8985 §7.2: 200 ms after the last segment, or nine tenths of that at the capture point.
    assert_eq!(probe(400, "2000..3000"), [Trigger::TailProbe]);
    assert_eq!(probe(380, "2000..3000"), [Trigger::Unknown]);
    assert_eq!(probe(400, "1000..2000"), [Trigger::Unknown], "not the last segment");
    let (_, seen) = play(
        "
        0   > syn
        100 < syn ack 0 permitted
        100 > ack 0
        200 > data 0..1000 ack 0
        400 > data 0..1000 ack 0
        ",
    );
    let trigger = seen[4].retransmission.map(|retransmission| retransmission.trigger);
    assert_eq!(trigger, Some(Trigger::Unknown), "without selective acknowledgements there are no probes");
}

#[test]
fn acknowledgements_after_a_tail_probe_begin_a_fast_recovery() {
    let (connection, seen) = opened(
        "
        200 > data 0..1000 ack 0
        201 > data 1000..2000 ack 0
        202 > data 2000..3000 ack 0
        410 > data 2000..3000 ack 0
        510 < ack 0 sack 2000..3000
        511 > data 0..1000 ack 0
        512 > data 1000..2000 ack 0
        612 < ack 3000
        ",
    );
    let triggers: Vec<_> = seen.iter().filter_map(|seen| Some(seen.retransmission?.trigger)).collect();
    assert_eq!(triggers, [Trigger::TailProbe, Trigger::Fast, Trigger::Fast]);
    assert_eq!(connection.figures(End::Client).phases.spent(Phase::Recovery), Span::from_millis(101));
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
fn the_same_packet_is_found_among_the_last_eight() {
    let again = |others: u64| {
        let mut lines = "200 > data 0..100 ack 0 id 1\n".to_owned();
        for other in 1..=others {
            lines += &format!("200 > data {}00..{}00 ack 0 id {}\n", other, other + 1, other + 1);
        }
        let (_, seen) = opened(&format!("{lines}200 > data 0..100 ack 0 id 1"));
        seen.last().unwrap().events.contains(Events::HARDWARE_DUPLICATE)
    };
    assert_eq!([again(0), again(7), again(8)], [true, true, false]);
    let (_, seen) = opened("200 > data 0..100 ack 0 id 1\n200 > data 0..100 ack 0 id 2");
    assert_eq!(seen[1].events, Events::RETRANSMISSION, "another packet");
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
