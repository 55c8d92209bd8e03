//! Detection and repair of losses.

use airpath_core::Span;
use airpath_tcp::{Config, Limit, PartialAcks};

use crate::script::Script;
use crate::{cumulative, plain};

/// An open connection with a round trip of 100 ms that has sent ten segments.
pub fn ten_segments(config: &Config) -> Script {
    let mut script = Script::connect(config);
    let stamps = |value, echo| if config.timestamps { format!(",ts {value}:{echo}") } else { String::new() };
    script.run(&format!(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 <mss 1000,sackOK{}>
        > . 1:1(0) ack 1
        ! write 100000",
        stamps(1, 0)
    ));
    let size = script.connection.negotiated().segment_size;
    for n in 0..10 {
        let start = 1 + n * size;
        script.run(&format!("> . {start}:{}({size}) ack 1", start + size));
    }
    script
}

#[test]
fn fast_retransmit_after_three_duplicate_acks() {
    // RFC 6582: the first segment is lost; the window falls from 10 to 5.
    ten_segments(&cumulative()).run(
        "+0.1 < . 1:1(0) ack 1
        // RFC 3042 (limited transmit): two duplicates release two new segments.
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1
        > . 1:1001(1000) ack 1
        ? fast_retransmits 1
        // 12 outstanding; the window of 5 inflated by 3, then by one for each further duplicate.
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        > -
        < . 1:1(0) ack 1
        > . 12001:13001(1000) ack 1
        < . 1:1(0) ack 1
        > . 13001:14001(1000) ack 1
        +0.1 < . 1:1(0) ack 12001
        ? duplicate_acks 9
        // Recovery is over: 2 outstanding, and the window is 5 and a fifth.
        > . 14001:15001(1000) ack 1
        > . 15001:16001(1000) ack 1
        > . 16001:17001(1000) ack 1
        > -",
    );
}

#[test]
fn without_limited_transmit_duplicate_acks_release_nothing() {
    let mut config = cumulative();
    config.recovery.limited_transmit = false;
    ten_segments(&config).run(
        "< . 1:1(0) ack 1
        < . 1:1(0) ack 1
        > -
        < . 1:1(0) ack 1
        > . 1:1001(1000) ack 1",
    );
    let mut config = plain();
    config.recovery.limited_transmit = false;
    ten_segments(&config).run(
        "< . 1:1(0) ack 1 <sack 1001:2001>
        < . 1:1(0) ack 1 <sack 1001:3001>
        > -
        < . 1:1(0) ack 1 <sack 1001:4001>
        > . 1:1001(1000) ack 1",
    );
}

#[test]
fn a_partial_acknowledgement_reveals_the_next_loss() {
    // The first and the fourth are lost.
    let script = "< . 1:1(0) ack 1
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1
        > . 1:1001(1000) ack 1
        +0.5 < . 1:1(0) ack 3001
        > . 3001:4001(1000) ack 1
        +0.9 < . 1:1(0) ack 3001
        > -";
    // RFC 6582 §4: the timer, of 1 s, restarts with the first partial acknowledgement ...
    let impatient = Config {
        recovery: airpath_tcp::Recovery { partial_acks: PartialAcks::Impatient, ..cumulative().recovery },
        ..cumulative()
    };
    ten_segments(&impatient).run(script).run("+0.1 > . 3001:4001(1000) ack 1\n? timeouts 1");
    // ... in the other variant with each; here there is only one.
    ten_segments(&cumulative()).run(script).run("+0.1 > . 3001:4001(1000) ack 1\n? timeouts 1");
}

#[test]
fn a_burst_may_be_limited() {
    let mut config = cumulative();
    config.recovery.burst = Limit::at_most(1);
    ten_segments(&config).run(
        "< . 1:1(0) ack 1
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1
        > . 1:1001(1000) ack 1
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        > . 12001:13001(1000) ack 1
        > -",
    );
}

#[test]
fn sack_reveals_all_losses_at_once() {
    // The first, third and fifth are lost.
    ten_segments(&plain()).run(
        "< . 1:1(0) ack 1 <sack 1001:2001>
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1 <sack 3001:4001,sack 1001:2001>
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1 <sack 5001:6001,sack 3001:4001,sack 1001:2001>
        // RFC 6675: three separate ranges lie above the first segment. The window is 5; 9 are in
        // flight.
        > . 1:1001(1000) ack 1
        < . 1:1(0) ack 1 <sack 5001:7001,sack 3001:4001,sack 1001:2001>
        < . 1:1(0) ack 1 <sack 5001:8001,sack 3001:4001,sack 1001:2001>
        // More than two segments lie above the two others: they are lost as well. The
        // retransmission, 8001, 9001, 10001 and 11001 are in flight.
        < . 1:1(0) ack 1 <sack 5001:9001,sack 3001:4001,sack 1001:2001>
        > . 2001:3001(1000) ack 1
        < . 1:1(0) ack 1 <sack 5001:10001,sack 3001:4001,sack 1001:2001>
        > . 4001:5001(1000) ack 1
        ? retransmitted 3
        +0.1 < . 1:1(0) ack 2001 <sack 5001:10001,sack 3001:4001>
        > . 12001:13001(1000) ack 1",
    );
}

#[test]
fn a_loss_during_recovery_starts_the_next_recovery() {
    ten_segments(&plain()).run(
        "+0.1 < . 1:1(0) ack 1 <sack 1001:2001>
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:3001>
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:4001>
        > . 1:1001(1000) ack 1
        // The window falls from 10 to 5: the retransmission, the last two and two new ones.
        < . 1:1(0) ack 1 <sack 1001:10001>
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        +0.05 < . 1:1(0) ack 1 <sack 1001:12001>
        > . 14001:15001(1000) ack 1
        > . 15001:16001(1000) ack 1
        // The first of the new ones is lost, and retransmitted immediately.
        < . 1:1(0) ack 1 <sack 1001:12001,sack 13001:16001>
        > . 12001:13001(1000) ack 1
        > . 16001:17001(1000) ack 1
        > . 17001:18001(1000) ack 1
        > . 18001:19001(1000) ack 1
        ? fast_retransmits 1
        // Everything that was outstanding when this recovery began has arrived, but not that one:
        // the next recovery begins, with a window of 2.
        +0.05 < . 1:1(0) ack 12001 <sack 13001:16001>
        ? fast_retransmits 2
        > -
        < . 1:1(0) ack 19001
        > . 19001:20001(1000) ack 1
        > . 20001:21001(1000) ack 1
        > -",
    );
}

#[test]
fn fack_detects_losses_earlier() {
    let mut config = plain();
    config.recovery.forward_acknowledgement = true;
    ten_segments(&config).run(
        "< . 1:1(0) ack 1 <sack 4001:5001>
        ? fast_retransmits 1
        > . 1:1001(1000) ack 1",
    );
}

#[test]
fn reordering_raises_the_duplicate_threshold() {
    let mut config = plain();
    config.recovery.adaptive_threshold = true;
    ten_segments(&config).run(
        "< . 1:1(0) ack 1 <sack 1001:2001>
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:3001>
        > . 11001:12001(1000) ack 1
        // The first was four places late.
        < . 1:1(0) ack 5001
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        > . 14001:15001(1000) ack 1
        > . 15001:16001(1000) ack 1
        ? fast_retransmits 0",
    );
}

#[test]
fn a_timeout_after_progress_lowers_the_threshold_again() {
    // RFC 5681 §3.1: it is held constant only for a segment that the timer has sent again before.
    let open = "+0.1 < . 1:1(0) ack 10001
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1";
    ten_segments(&plain())
        .run(
            "+1 > . 1:1001(1000) ack 1
            +0.1 < . 1:1(0) ack 1001
            > . 1001:2001(1000) ack 1
            > . 2001:3001(1000) ack 1
            +2 > . 1001:2001(1000) ack 1
            ? timeouts 2",
        )
        // Half of the window of two, at least two.
        .run(open)
        .run("> -");
    ten_segments(&plain())
        .run(
            "+1 > . 1:1001(1000) ack 1
            +2 > . 1:1001(1000) ack 1
            ? timeouts 2",
        )
        // Half of what was outstanding at the first timeout.
        .run(open)
        .run(
            "> . 12001:13001(1000) ack 1
            > . 13001:14001(1000) ack 1
            > . 14001:15001(1000) ack 1
            > -",
        );
}

#[test]
fn the_retransmission_timer_doubles_and_restarts_from_one_segment() {
    ten_segments(&cumulative()).run(
        "+1 > . 1:1001(1000) ack 1
        > -
        +2 > . 1:1001(1000) ack 1
        > -
        +4 > . 1:1001(1000) ack 1
        ? timeouts 3
        // Slow start from one segment, up to half of what was outstanding.
        +0.1 < . 1:1(0) ack 1001
        > . 1001:2001(1000) ack 1
        > . 2001:3001(1000) ack 1
        > -
        // The other segments had arrived.
        +0.1 < . 1:1(0) ack 10001
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        > . 14001:15001(1000) ack 1
        > -",
    );
}

#[test]
fn reneged_sack_data_is_retransmitted() {
    // RFC 2018 §8: the first segment is reported as arrived, but not acknowledged.
    let mut script = ten_segments(&plain());
    script.run(
        "< . 1:1(0) ack 1 <sack 1001:10001>
        > . 1:1001(1000) ack 1
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        < . 1:1(0) ack 1001
        > . 14001:15001(1000) ack 1
        +1 > . 1001:2001(1000) ack 1",
    );
}

/// Three segments are outstanding, and a probe has retransmitted the last one.
fn probed() -> Script {
    let mut config = plain();
    config.recovery.rack = true;
    config.recovery.tail_loss_probe = true;
    let mut script = Script::connect(&config);
    script.run(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
        > . 1:1(0) ack 1
        ! write 3000
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        > . 2001:3001(1000) ack 1
        +0.2 > . 2001:3001(1000) ack 1",
    );
    script
}

#[test]
fn tail_loss_probe_retransmits_the_last_segment() {
    // RFC 8985 §7: 2 × SRTT after the last segment, that segment is retransmitted.
    let mut script = probed();
    script.run(
        "? tail_probes 1
        // It shows that the first two were lost: they were sent 200 ms before the data that
        // arrived.
        +0.1 < . 1:1(0) ack 1 <sack 2001:3001>
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        ? timeouts 0
        ? fast_retransmits 1",
    );
}

#[test]
fn a_recovery_ends_the_judgement_of_a_tail_probe() {
    // The probe shows losses, and their recovery ends exactly where the probe does.
    let mut script = probed();
    script.run(
        "+0.1 < . 1:1(0) ack 1 <sack 2001:3001>
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        +0.1 < . 1:1(0) ack 3001",
    );
    let window = script.connection.info().congestion_window;
    script.run(
        "! write 1000
        > . 3001:4001(1000) ack 1
        +0.1 < . 1:1(0) ack 4001",
    );
    assert!(script.connection.info().congestion_window >= window, "no further reduction");
}

#[test]
fn tail_loss_probe_prefers_new_data() {
    let mut config = plain();
    config.recovery.tail_loss_probe = true;
    config.initial_window = airpath_tcp::InitialWindow::Segments(2);
    Script::connect(&config).run(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
        > . 1:1(0) ack 1
        ! write 3000
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        +0.2 > . 2001:3001(1000) ack 1
        ? tail_probes 1
        ? retransmitted 0
        // Nothing was lost, so nothing is reduced.
        +0.1 < . 1:1(0) ack 3001
        ? fast_retransmits 0",
    );
}

#[test]
fn rack_distinguishes_loss_from_reordering() {
    let mut config = plain();
    config.recovery.rack = true;
    ten_segments(&config).run(
        "+0.1 < . 1:1(0) ack 1 <sack 1001:2001>
        // RFC 8985 §6.2: the reordering window is a quarter of the least round trip, 25 ms.
        > . 10001:11001(1000) ack 1
        +0.02 < . 1:1(0) ack 2001
        ? fast_retransmits 0
        > . 11001:12001(1000) ack 1
        > . 12001:13001(1000) ack 1
        < . 1:1(0) ack 2001 <sack 3001:4001>
        > . 13001:14001(1000) ack 1
        // Segments sent at the same time took 120 ms: the reordering window of 25 ms more expires.
        +0.025 > . 2001:3001(1000) ack 1
        ? fast_retransmits 1",
    );
}

#[test]
fn recoveries_by_the_timer_narrow_the_reordering_window() {
    // RFC 8985 §6.2 step 4: 16 recoveries after the last duplicate, whether fast or by the timer.
    let mut config = plain();
    config.recovery.rack = true;
    let mut script = Script::connect(&config);
    script.run(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 <mss 1000,sackOK>
        > . 1:1(0) ack 1
        ! write 1000
        > . 1:1001(1000) ack 1
        +0.1 < . 1:1(0) ack 1001 <sack 1:1001>",
    );
    for start in (0..16).map(|n| 1001 + 2000 * n) {
        let (middle, end) = (start + 1000, start + 2000);
        script.run(&format!(
            "! write 1000
            > . {start}:{middle}(1000) ack 1
            +1 > . {start}:{middle}(1000) ack 1
            +0.1 < . 1:1(0) ack {middle}
            ! write 1000
            > . {middle}:{end}(1000) ack 1
            +0.1 < . 1:1(0) ack {end}"
        ));
    }
    script.run(
        "! write 2000
        > . 33001:34001(1000) ack 1
        > . 34001:35001(1000) ack 1
        +0.1 < . 1:1(0) ack 33001 <sack 34001:35001>
        // A quarter of the least round trip again, not two.
        +0.025 > . 33001:34001(1000) ack 1",
    );
}

#[test]
fn rack_detects_a_lost_retransmission() {
    let mut config = plain();
    config.recovery.rack = true;
    ten_segments(&config).run(
        "+0.1 < . 1:1(0) ack 1 <sack 1001:4001>
        > . 1:1001(1000) ack 1
        +0.001 < . 1:1(0) ack 1 <sack 1001:10001>
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        // Segments sent after the retransmission arrive, and the retransmission does not.
        +0.1 < . 1:1(0) ack 1 <sack 1001:14001>
        +0 > . 1:1001(1000) ack 1
        ? timeouts 0
        ? retransmitted 2",
    );
}

/// The first five of ten segments are lost, then the retransmission of the first.
fn lose_a_retransmission(timestamps: bool, stamps: &str) {
    let mut config = Config { timestamps, ..plain() };
    config.recovery.rack = true;
    let mut script = ten_segments(&config);
    let size = script.connection.negotiated().segment_size;
    let start = |number: u32| 1 + number * size;
    script.run(&format!("+0.1 < . 1:1(0) ack 1 <sack {}:{}{stamps}>", start(5), start(10)));
    (0..5).for_each(|n| {
        script.run(&format!("> . {}:{}({size}) ack 1", start(n), start(n + 1)));
    });
    script.run(&format!(
        "+0.11 < . 1:1(0) ack 1 <sack {}:{}{stamps}>
        > . 1:{}({size}) ack 1
        ? timeouts 0
        ? retransmitted 6",
        start(1),
        start(10),
        start(1)
    ));
}

#[test]
fn rack_detects_a_lost_retransmission_among_those_of_one_instant() {
    // RFC 8985 §6.2: of the segments sent at one instant, that with the lower number is older.
    lose_a_retransmission(false, "");
}

#[test]
fn rack_detects_a_lost_retransmission_whatever_timestamp_is_echoed() {
    // RFC 7323 §4.3: above a hole, the timestamp of the last segment in order is echoed.
    lose_a_retransmission(true, ",ts 2:0");
}

#[test]
fn prr_shrinks_the_window_in_proportion() {
    // RFC 6937: the window falls from 10 to 5 segments.
    let mut config = plain();
    config.recovery.proportional_reduction = true;
    ten_segments(&config).run(
        "+0.1 < . 1:1(0) ack 1 <sack 1001:2001>
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:3001>
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:4001>
        > . 1:1001(1000) ack 1
        // While more than 5 are in flight, 5 are sent for the 12 that were outstanding: the
        // retransmission was early.
        < . 1:1(0) ack 1 <sack 1001:5001>
        < . 1:1(0) ack 1 <sack 1001:6001>
        < . 1:1(0) ack 1 <sack 1001:7001>
        < . 1:1(0) ack 1 <sack 1001:8001>
        > -
        // Then one is sent for each delivered.
        < . 1:1(0) ack 1 <sack 1001:9001>
        > . 12001:13001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:10001>
        > . 13001:14001(1000) ack 1
        +0.1 < . 1:1(0) ack 14001
        > . 14001:15001(1000) ack 1
        > . 15001:16001(1000) ack 1
        > . 16001:17001(1000) ack 1
        > . 17001:18001(1000) ack 1
        > . 18001:19001(1000) ack 1
        > -",
    );
}

#[test]
fn karns_rule_ignores_round_trips_of_retransmissions() {
    let mut script = ten_segments(&cumulative());
    script.run(
        "+0.1 < . 1:1(0) ack 1001
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        +1 > . 1001:2001(1000) ack 1
        +0.3 < . 1:1(0) ack 3001
        > . 3001:4001(1000) ack 1",
    );
    let statistics = script.connection.statistics();
    // The samples of the SYN and of the first segment.
    assert_eq!((statistics.rtt_samples, statistics.rtt_max), (2, Some(Span::from_millis(100))));
}

#[test]
fn the_timer_restarts_when_data_sent_before_the_first_segment_arrives() {
    // tcp_clean_rtx_queue of Linux: the head was retransmitted at 0.1 s. An original that was sent
    // before and arrives later shows that the retransmission may still be in flight.
    ten_segments(&plain()).run(
        "+0.1 < . 1:1(0) ack 1 <sack 1001:4001>
        > . 1:1001(1000) ack 1
        +0.5 < . 1:1(0) ack 1 <sack 1001:5001>
        +0.999 > -
        ? timeouts 0
        +0.001 > . 1:1001(1000) ack 1
        ? timeouts 1",
    );
    // Data that was sent with the retransmission, or after it, shows nothing.
    ten_segments(&plain()).run(
        "+0.1 < . 1:1(0) ack 1 <sack 1001:10001>
        > . 1:1001(1000) ack 1
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        +0.5 < . 1:1(0) ack 1 <sack 1001:11001>
        > . 14001:15001(1000) ack 1
        +0.499 > -
        ? timeouts 0
        +0.001 > . 1:1001(1000) ack 1
        ? timeouts 1",
    );
}

#[test]
fn a_loss_that_a_tail_probe_repairs_reduces_the_window() {
    // RFC 8985 §7.4.2: the retransmission of the last segment is acknowledged, and no duplicate is
    // reported, so the original was lost.
    let window_after = |answer: &str| {
        let mut config = plain();
        config.recovery.tail_loss_probe = true;
        let mut script = Script::connect(&config);
        script.run(
            "> S 0:0(0)
            +0.1 < S 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
            > . 1:1(0) ack 1
            ! write 8000",
        );
        assert_eq!(script.take(), 8);
        // The last segment alone is outstanding: two round trips and the longest delay of an
        // acknowledgement, 200 ms.
        script.run(
            "+0.1 < . 1:1(0) ack 7001
            +0.4 > . 7001:8001(1000) ack 1",
        );
        script.run(&format!(
            "+0.1 {answer}
            ! write 1000
            > . 8001:9001(1000) ack 1
            +0.1 < . 1:1(0) ack 9001
            ? tail_probes 1
            ? timeouts 0
            ! write 30000"
        ));
        script.take()
    };
    assert_eq!(window_after("< . 1:1(0) ack 8001 <sack 7001:8001>"), 19, "ten, and one for each acknowledged");
    assert_eq!(window_after("< . 1:1(0) ack 8001\n+0.01 < . 1:1(0) ack 8001"), 19, "both copies are acknowledged");
    assert_eq!(window_after("< . 1:1(0) ack 8001"), 9, "half of that");
}

#[test]
fn reordering_raises_the_threshold_to_its_distance() {
    let recoveries = |duplicates: u32| {
        let mut config = plain();
        config.recovery.adaptive_threshold = true;
        let mut script = ten_segments(&config);
        // Four segments arrive after the fifth: the first of them is five places late.
        script.run("+0.1 < . 1:1(0) ack 1 <sack 4001:5001>");
        script.take();
        script.run("< . 1:1(0) ack 5001");
        script.take();
        for n in 1..=duplicates {
            script.run(&format!("< . 1:1(0) ack 5001 <sack 6001:{}>", 6001 + 1000 * n));
            script.take();
        }
        script.connection.statistics().fast_retransmits
    };
    assert_eq!([recoveries(4), recoveries(5)], [0, 1]);
}

#[test]
fn the_timeout_follows_the_round_trips_of_segments_sent_once() {
    let mut config = cumulative();
    config.retransmission_timeout.initial = Span::from_secs(10);
    Script::connect(&config).run(
        "> S 0:0(0)
        +2 < S 0:0(0) ack 1 win 60000 <mss 1000>
        > . 1:1(0) ack 1
        ! write 1000
        > . 1:1001(1000) ack 1
        +2 < . 1:1(0) ack 1001
        ! write 1000
        > . 1001:2001(1000) ack 1
        // RFC 6298 §2.3: SRTT is 2 s, RTTVAR 3/4 of 1 s: the timeout is 5 s.
        +5 > . 1001:2001(1000) ack 1
        +1 < . 1:1(0) ack 2001
        ! write 1000
        > . 2001:3001(1000) ack 1
        // §3, Karn's rule: that was no sample, and the timeout stays doubled.
        +10 > . 2001:3001(1000) ack 1",
    );
}

#[test]
fn only_bare_acknowledgements_with_the_same_window_are_duplicates() {
    // RFC 5681 §2.
    ten_segments(&cumulative()).run(
        "< . 1:1(0) ack 1 win 60000
        < . 1:101(100) ack 1 win 65535
        ? duplicate_acks 0
        < . 101:101(0) ack 1 win 65535
        ? duplicate_acks 1",
    );
}

/// Settings of a sender that reads explicit loss notifications.
fn notified(mut config: Config) -> Config {
    config.recovery.loss_notification = true;
    config
}

/// Three duplicates report a loss on the radio link, which is repaired.
const NOTIFIED_LOSS: &str = "+0.1 < . 1:1(0) ack 1 eln
    > . 10001:11001(1000) ack 1
    < . 1:1(0) ack 1 eln
    > . 11001:12001(1000) ack 1
    < . 1:1(0) ack 1 eln
    > . 1:1001(1000) ack 1";

#[test]
fn a_loss_that_was_not_congestion_leaves_the_window() {
    // As `fast_retransmit_after_three_duplicate_acks`, but the window stays at 10.
    ten_segments(&notified(cumulative())).run(NOTIFIED_LOSS).run(
        "        ? fast_retransmits 1
        // 12 outstanding; 3 have arrived.
        > . 12001:13001(1000) ack 1
        > -
        < . 1:1(0) ack 1 eln
        > . 13001:14001(1000) ack 1
        > -
        // Recovery is over: 1 outstanding, and the window is at least 10.
        +0.1 < . 1:1(0) ack 13001
        > . 14001:15001(1000) ack 1",
    );
}

#[test]
fn congestion_in_the_same_recovery_reduces_the_window() {
    // As before, but the fourth duplicate is for a loss by congestion: the window of 5 inflated by
    // 4, with 13 outstanding, sends again after 9 duplicates.
    ten_segments(&notified(cumulative())).run(NOTIFIED_LOSS).run(
        "> . 12001:13001(1000) ack 1
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        < . 1:1(0) ack 1
        > -",
    );
}

#[test]
fn a_notification_is_ignored_without_the_setting() {
    let script = "< . 1:1(0) ack 1 eln
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1 eln
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1 eln
        > . 1:1001(1000) ack 1
        < . 1:1(0) ack 1 eln
        > -";
    ten_segments(&cumulative()).run(script);
}

#[test]
fn a_timeout_after_a_notification_reduces_the_window() {
    ten_segments(&notified(cumulative())).run(
        "< . 1:1(0) ack 1 eln
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1 eln
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1 eln
        > . 1:1001(1000) ack 1
        > . 12001:13001(1000) ack 1
        +1 > . 1:1001(1000) ack 1
        ? timeouts 1
        > -",
    );
}

#[test]
fn sack_recoveries_keep_the_window_too() {
    let script = |eln: &str, config: &Config| {
        let mut script = ten_segments(config);
        for end in [2001, 3001] {
            script.run(&format!("< . 1:1(0) ack 1 {eln} <sack 1001:{end}>"));
            script.take();
        }
        script.run(&format!("< . 1:1(0) ack 1 {eln} <sack 1001:4001>\n> . 1:1001(1000) ack 1"));
        script.take()
    };
    // 12 outstanding; 3 have arrived and one was lost: a window of 10 has room.
    assert_eq!(script("eln", &notified(plain())), 1);
    assert_eq!(script("", &notified(plain())), 0);
    assert_eq!(script("eln", &plain()), 0);
}
