//! Why a segment was sent again.

use airpath_core::Span;

use super::{PLAIN, opened};
use crate::testing::play;
use crate::{End, Events, Phase, Trigger};

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
