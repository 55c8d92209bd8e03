//! Explicit congestion notification (RFC 3168).

use airpath_tcp::{Config, Recovery};

use crate::plain;
use crate::script::Script;

#[test]
fn ecn_echo_reduces_the_window_once_a_round_trip() {
    let config = Config { ecn: true, ..plain() };
    Script::connect(&config).run(
        "> SEW 0:0(0)
        +0.1 < SE 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
        > . 1:1(0) ack 1 noecn
        ! write 30000
        > . 1:1001(1000) ack 1 ect
        > . 1001:2001(1000) ack 1
        > . 2001:3001(1000) ack 1
        > . 3001:4001(1000) ack 1
        > . 4001:5001(1000) ack 1
        > . 5001:6001(1000) ack 1
        > . 6001:7001(1000) ack 1
        > . 7001:8001(1000) ack 1
        > . 8001:9001(1000) ack 1
        > . 9001:10001(1000) ack 1
        // The window falls from 10 to 5 segments, and grows by one for the acknowledgement.
        +0.1 < E 1:1(0) ack 1001 win 60000
        ? ecn_reductions 1
        > -
        < E 1:1(0) ack 4001 win 60000
        > -
        < E 1:1(0) ack 6001 win 60000
        // The first new data sets CWR.
        > W 10001:11001(1000) ack 1 ect
        ? ecn_reductions 1
        ? fast_retransmits 0",
    );
}

#[test]
fn ecn_marks_are_echoed_until_cwr() {
    let config = Config { ecn: true, ..plain() };
    Script::listen(&config).run(
        "< SEW 0:0(0) win 60000 <mss 1000,sackOK>
        > SE 0:0(0) ack 1
        < . 1:1(0) ack 1
        < . 1:1001(1000) ack 1 ce
        < . 1001:2001(1000) ack 1 ect
        > E 1:1(0) ack 2001
        < . 2001:3001(1000) ack 1 ect
        < . 3001:4001(1000) ack 1 ect
        > E 1:1(0) ack 4001
        < W 4001:5001(1000) ack 1 ect
        < . 5001:6001(1000) ack 1 ect
        > . 1:1(0) ack 6001",
    );
}

#[test]
fn without_negotiation_there_is_no_ecn() {
    Script::connect(&plain()).run(
        "> S 0:0(0)
        < SE 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
        > . 1:1(0) ack 1
        ! write 1000
        > . 1:1001(1000) ack 1 noecn
        < . 1:1001(1000) ack 1001 ce
        +0.2 > . 1001:1001(0) ack 1001",
    );
}

#[test]
fn an_echo_for_the_last_of_a_reduced_window_does_not_reduce_it_again() {
    let config = Config { ecn: true, ..plain() };
    ten_segments_with_ecn(&config).run(
        "+0.1 < E 1:1(0) ack 1001 win 60000
        ? ecn_reductions 1
        < E 1:1(0) ack 6001 win 60000
        > W 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        // The receiver has not seen CWR yet (RFC 3168 §6.1.2).
        < E 1:1(0) ack 10001 win 60000
        ? ecn_reductions 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        > . 14001:15001(1000) ack 1
        > . 15001:16001(1000) ack 1
        // A mark of the next window.
        < E 1:1(0) ack 11001 win 60000
        ? ecn_reductions 2",
    );
}

/// The same with proportional rate reduction, as in Linux.
fn proportional() -> Config {
    let plain = plain();
    let recovery = Recovery { proportional_reduction: true, ..plain.recovery };
    Config { ecn: true, recovery, ..plain }
}

#[test]
fn after_a_mark_the_window_shrinks_in_proportion() {
    // From 10 to 5 segments: one is sent for about two that are acknowledged.
    ten_segments_with_ecn(&proportional()).run(
        "+0.1 < E 1:1(0) ack 1001 win 60000
        ? ecn_reductions 1
        > W 10001:11001(1000) ack 1
        < E 1:1(0) ack 2001 win 60000
        > -
        < E 1:1(0) ack 4001 win 60000
        > . 11001:12001(1000) ack 1
        < E 1:1(0) ack 6001 win 60000
        > . 12001:13001(1000) ack 1
        // Five are in flight.
        < . 1:1(0) ack 8001 win 60000
        > -
        < . 1:1(0) ack 10001 win 60000
        > . 13001:14001(1000) ack 1
        > . 14001:15001(1000) ack 1
        // The reduction ends above what was outstanding at its start; the window of 5 grows.
        < . 1:1(0) ack 11001 win 60000
        > . 15001:16001(1000) ack 1
        ? ecn_reductions 1",
    );
}

#[test]
fn a_loss_after_a_mark_does_not_reduce_the_window_again() {
    // The second segment is lost: a recovery begins, and the window still goes from 10 to 5.
    ten_segments_with_ecn(&proportional()).run(
        "+0.1 < E 1:1(0) ack 1001 win 60000
        > W 10001:11001(1000) ack 1
        < E 1:1(0) ack 1001 win 60000 <sack 2001:5001>
        ? ecn_reductions 1
        ? fast_retransmits 1
        > . 1001:2001(1000) ack 1
        < E 1:1(0) ack 1001 win 60000 <sack 2001:10001>
        > . 11001:12001(1000) ack 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        +0.1 < . 1:1(0) ack 11001 win 60000
        > . 14001:15001(1000) ack 1
        > . 15001:16001(1000) ack 1
        > -
        ? fast_retransmits 1",
    );
}

#[test]
fn a_reduction_by_a_mark_is_not_undone() {
    let mut config = proportional();
    config.recovery.duplicate_undo = true;
    ten_segments_with_ecn(&config).run(
        "+0.1 < E 1:1(0) ack 1001 win 60000
        > W 10001:11001(1000) ack 1
        < E 1:1(0) ack 1001 win 60000 <sack 2001:10001>
        > . 1001:2001(1000) ack 1
        > . 11001:12001(1000) ack 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        // The retransmission was spurious, but the mark required the reduction to 5 segments.
        +0.1 < . 1:1(0) ack 11001 win 60000 <sack 1001:2001>
        ? undos 1
        > . 14001:15001(1000) ack 1
        > . 15001:16001(1000) ack 1
        > -",
    );
}

#[test]
fn a_timeout_after_a_mark_does_not_lower_the_threshold_again() {
    ten_segments_with_ecn(&proportional()).run(
        "+0.1 < E 1:1(0) ack 1001 win 60000
        > W 10001:11001(1000) ack 1
        +1 > . 1001:2001(1000) ack 1
        ? timeouts 1
        // Slow start up to the threshold of 5 segments, from one.
        +0.1 < . 1:1(0) ack 11001 win 60000
        > W 11001:12001(1000) ack 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        > . 14001:15001(1000) ack 1
        > . 15001:16001(1000) ack 1
        > -",
    );
}

/// An open connection with ECN and a round trip of 100 ms that has sent ten segments.
fn ten_segments_with_ecn(config: &Config) -> Script {
    let mut script = Script::connect(config);
    script.run(
        "> SEW 0:0(0)
        +0.1 < SE 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
        > . 1:1(0) ack 1 noecn
        ! write 100000",
    );
    for start in (0..10).map(|n| 1 + n * 1000) {
        script.run(&format!("> . {start}:{}(1000) ack 1 ect", start + 1000));
    }
    script
}
