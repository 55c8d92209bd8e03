//! The decisions of the timeline, one at a time.

use super::*;

fn at(millis: u64) -> Stamp {
    Stamp { time: Instant::from_nanos(millis * 1_000_000), frame: millis }
}

/// With captures of both ends the link of the data is known to be free.
#[test]
fn data_of_the_other_end_in_front_of_the_acknowledgements_fills_the_link() {
    let causes = |limit: Limit, is_decided: bool| {
        let mut timeline = Timeline::default();
        timeline.push(at(0), at(300), Label::Limited(limit, 2), [0; 2]);
        timeline.push(at(300), at(310), Label::Known(Cause::Application, Confidence::High), [0; 2]);
        let free = |timeline: &mut Timeline| {
            timeline.set_load(at(300).time, Load::Free, Limit::SlowStart, View::Sender);
        };
        if is_decided {
            free(&mut timeline);
        }
        timeline.set_load(at(100).time, Load::Free, Limit::SlowStart, View::Receiver);
        for until in [150, 200] {
            timeline.set_load(at(until).time, Load::Queueing, Limit::SlowStart, View::Receiver);
        }
        free(&mut timeline);
        let mut pieces = Vec::new();
        timeline.finish(&mut |piece| pieces.push((piece.cause, piece.end.as_nanos() / 1_000_000)));
        pieces
    };
    let application = (Cause::Application, 310);
    let own = causes(Limit::OwnWindowUndecided, false);
    assert_eq!(own, [(Cause::SlowStart, 100), (Cause::Queueing, 200), (Cause::SlowStart, 300), application]);
    assert_eq!(causes(Limit::OwnWindowUndecided, true), own);
    // Acknowledgements do not open a window that the receiver closes.
    assert_eq!(causes(Limit::ReceiveWindow, false), [(Cause::ReceiveWindow, 300), application]);
}

fn cause_behind_others(label: Label, what: Waiting) -> Cause {
    let mut timeline = Timeline::default();
    timeline.push(at(0), at(100), label, [0; 2]);
    timeline.behind_others(at(0).time, at(100).time, what);
    timeline.set_load(at(100).time, Load::Free, Limit::SlowStart, View::Sender);
    let mut causes = Vec::new();
    timeline.finish(&mut |piece| causes.push(piece.cause));
    let [cause] = causes[..] else { panic!("{causes:?}") };
    cause
}

#[test]
fn only_a_sender_that_waits_for_packets_waits_behind_others() {
    use Waiting::{Acknowledgement, Data};
    for what in [Acknowledgement, Data] {
        for limit in [Limit::OwnWindowUndecided, Limit::SlowStart, Limit::CongestionWindow, Limit::Recovery] {
            assert_eq!(cause_behind_others(Label::Limited(limit, 2), what), Cause::Sharing);
        }
        for limit in [Limit::ReceiveWindow, Limit::ClosedWindow] {
            assert_eq!(cause_behind_others(Label::Limited(limit, 2), what), Cause::ReceiveWindow);
        }
    }
    let application = Label::Limited(Limit::Application, 2);
    assert_eq!(cause_behind_others(application, Acknowledgement), Cause::Application);
    assert_eq!(cause_behind_others(application, Data), Cause::Sharing);
}

#[test]
fn no_packet_waits_behind_others_in_a_gap_of_the_radio() {
    for what in [Waiting::Acknowledgement, Waiting::Data] {
        assert_eq!(cause_behind_others(Label::AcknowledgementGap(Confidence::High), what), Cause::Radio);
    }
}

/// A long queue leaves the load of the link undecided for seconds, while hybrid ARQ repeats a block
/// every few milliseconds.
#[test]
fn many_short_delays_do_not_replace_a_full_link() {
    let mut timeline = Timeline::default();
    let mut sums = std::collections::BTreeMap::new();
    let mut add =
        |piece: &Piece| *sums.entry(piece.cause).or_insert(0) += piece.end.since(piece.begin).as_nanos() / 1_000_000;
    for begin in (0..4000).step_by(10) {
        timeline.push(at(begin), at(begin + 10), Label::Limited(Limit::CongestionWindow, 2), [0; 2]);
        timeline.delayed(at(begin + 2).time, at(begin + 5).time, Waiting::Acknowledgement);
        timeline.delayed(at(begin + 3).time, at(begin + 6).time, Waiting::Data);
        timeline.settle(Instant::FAR_FUTURE, &mut add);
    }
    timeline.set_load(at(3000).time, Load::Queueing, Limit::SlowStart, View::Sender);
    timeline.set_load(at(4000).time, Load::Free, Limit::SlowStart, View::Sender);
    timeline.finish(&mut add);
    let expected = [(Cause::CongestionWindow, 600), (Cause::Queueing, 3000), (Cause::Radio, 400)];
    assert_eq!(sums.into_iter().collect::<Vec<_>>(), expected);
}
