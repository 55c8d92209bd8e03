//! Retransmissions of data that had arrived.

use super::{PLAIN, opened};
use crate::testing::play;
use crate::{Detector, End, Events};

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

/// The capture is ten milliseconds from the receiver; the first copy is lost behind it.
#[test]
fn a_capture_close_to_the_receiver_sees_prompt_acknowledgements() {
    let (connection, _) = play(
        "
        0   > syn
        10  < syn ack 0
        100 > ack 0
        200 > data 0..1000 ack 0
        700 > data 0..1000 ack 0
        712 < ack 1000
        ",
    );
    assert_eq!(connection.spurious(End::Client).count(), 0);
}

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

/// A request that is captured at the server, which acknowledges it at once, and its copy.
#[test]
fn a_copy_that_no_acknowledgement_requested_is_from_a_timer() {
    let exchange = |between: &str| {
        let (connection, _) = play(&format!(
            "
            0   > syn mss 1460
            0   < syn ack 0 mss 1460
            100 > ack 0
            100 > psh data 0..400 ack 0
            100 < ack 400
            101 < data 0..1460 ack 400
            {between}
            500 > psh data 0..400 ack 0
            500 < ack 400
            "
        ));
        let figures = connection.figures(End::Client);
        assert_eq!(figures.spurious.by_detector[Detector::Acknowledged as usize], 1);
        figures.spurious.by_early_timer
    };
    assert_eq!(exchange(""), 1);
    let requested = "300 > psh data 400..500 ack 0\n301 < ack 400\n302 < ack 400\n303 < ack 400";
    assert_eq!(exchange(requested), 0, "acknowledgements may have requested it");
}
