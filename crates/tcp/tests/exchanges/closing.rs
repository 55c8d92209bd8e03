//! Closing and losing a connection.

use airpath_core::Span;
use airpath_tcp::{Config, DelayedAck};

use crate::plain;
use crate::script::Script;

/// An open connection.
fn open(config: &Config) -> Script {
    let mut script = Script::connect(config);
    script.run(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 win 10000 <mss 1000,sackOK>
        > . 1:1(0) ack 1",
    );
    script
}

#[test]
fn active_close() {
    open(&plain()).run(
        "! write 1500
        ! close
        ? state FinWait1
        > . 1:1001(1000) ack 1
        > F 1001:1501(500) ack 1
        +0.1 < . 1:1(0) ack 1502
        ? state FinWait2
        ? acknowledged 1500
        // The other direction stays open.
        +1 < . 1:501(500) ack 1502
        +0.2 > . 1502:1502(0) ack 501
        ? readable 500
        < F 501:501(0) ack 1502
        ? state TimeWait
        > . 1502:1502(0) ack 502
        ? peer_closed true
        // The acknowledgement was lost: the FIN is retransmitted, and answered.
        +1 < F 501:501(0) ack 1502
        > . 1502:1502(0) ack 502 <sack 501:502>
        +59 ? state TimeWait
        +1 ? state Closed
        ? outcome closed",
    );
}

#[test]
fn passive_close() {
    open(&plain()).run(
        "< F 1:501(500) ack 1
        > . 1:1(0) ack 502
        ? state CloseWait
        ? received 500
        ! write 100
        > . 1:101(100) ack 502
        +0.1 < . 502:502(0) ack 101
        ! close
        ? state LastAck
        > F 101:101(0) ack 502
        +1 > F 101:101(0) ack 502
        < . 502:502(0) ack 102
        ? state Closed
        ? outcome closed",
    );
}

#[test]
fn simultaneous_close() {
    open(&plain()).run(
        "! close
        > F 1:1(0) ack 1
        ? pure_acks 1
        < F 1:1(0) ack 1
        ? state Closing
        > . 2:2(0) ack 2
        < . 2:2(0) ack 2
        ? state TimeWait",
    );
}

#[test]
fn a_fin_waits_for_what_is_missing() {
    open(&plain()).run(
        "< F 501:1001(500) ack 1
        > . 1:1(0) ack 1 <sack 501:1002>
        ? state Established
        ? peer_closed false
        < . 1:501(500) ack 1
        > . 1:1(0) ack 1002
        ? state CloseWait
        ? received 1000",
    );
}

/// An acknowledgement that waits as in Linux, 40 ms at first.
fn adaptive() -> Config {
    let base = plain();
    Config { delayed_ack: DelayedAck { minimum: Span::from_millis(40), ..base.delayed_ack }, ..base }
}

#[test]
fn the_acknowledgement_of_a_fin_waits_for_our_own() {
    // tcp_fin of Linux enters the mode in which acknowledgements wait for data.
    let after_data = "< . 1:501(500) ack 1
        ! read 500
        > . 1:1(0) ack 501
        +0.1 < F 501:501(0) ack 1
        ? state CloseWait";
    open(&adaptive()).run(after_data).run("+0.04 > . 1:1(0) ack 502");
    open(&adaptive()).run(after_data).run(
        "+0.01 ! close
        > F 1:1(0) ack 502
        ? pure_acks 2",
    );
    // The delay is that between arrivals, and there was none.
    open(&adaptive()).run(
        "< F 1:1(0) ack 1
        > . 1:1(0) ack 2",
    );
    // More than a full segment is unacknowledged.
    open(&adaptive()).run(
        "< F 1:1001(1000) ack 1
        > . 1:1(0) ack 1002",
    );
    // This end has closed its stream before.
    open(&adaptive()).run(
        "< . 1:501(500) ack 1
        ! read 500
        > . 1:1(0) ack 501
        ! close
        > F 1:1(0) ack 501
        +0.1 < F 501:501(0) ack 2
        > . 2:2(0) ack 502",
    );
}

#[test]
fn closing_before_it_is_open() {
    let mut script = Script::connect(&plain());
    script.run(
        "! write 10
        ! close
        > S 0:0(0)
        < S 0:0(0) ack 1 <mss 1000>
        > F 1:11(10) ack 1
        ? state FinWait1",
    );
}

#[test]
fn a_reset_counts_with_the_exact_number_only() {
    open(&plain()).run(
        "< R 500:500(0)
        // RFC 5961 §3: within the window, it is challenged.
        > . 1:1(0) ack 1
        ? state Established
        < R 20000:20000(0)
        ? state Established
        < R 1:1(0)
        ? state Closed
        ? outcome reset by the peer",
    );
}

#[test]
fn aborting_sends_a_reset() {
    open(&plain()).run(
        "! write 1000
        > . 1:1001(1000) ack 1
        ! abort
        > R 1001:1001(0) ack 1
        ? state Closed
        ? outcome aborted by the application
        // A late segment is refused (RFC 9293 §3.10.7.1).
        < . 1:1001(1000) ack 1001
        > R 1001:1001(0)",
    );
}

#[test]
fn a_closed_connection_refuses_what_a_segment_occupies() {
    // RFC 9293 §3.10.7.1: number 0, and an acknowledgement of all that the segment occupies.
    let mut script = open(&plain());
    script.run(
        "! abort
        > R 1:1(0) ack 1
        < S 0:0(0)",
    );
    let reset = script.sent();
    assert_eq!((reset.sequence, script.relative(reset.acknowledgment)), (0, 1));
    script.run("< S 0:100(100)");
    let reset = script.sent();
    assert_eq!((reset.sequence, script.relative(reset.acknowledgment)), (0, 101));
}

#[test]
fn a_fin_needs_space_in_the_window() {
    let mut script = Script::connect(&plain());
    script.run(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 win 1000 <mss 1000>
        > . 1:1(0) ack 1
        ! write 1000
        > . 1:1001(1000) ack 1
        ! close
        > -
        +0.1 < . 1:1(0) ack 1001 win 1000
        > F 1001:1001(0) ack 1",
    );
}

#[test]
fn a_peer_that_does_not_answer() {
    let mut config = plain();
    config.retransmission_timeout.retries = 2;
    open(&config).run(
        "! write 1000
        > . 1:1001(1000) ack 1
        +1 > . 1:1001(1000) ack 1
        +2 > . 1:1001(1000) ack 1
        +4 ? state Closed
        ? outcome timed out: no answer to data, sent 3 times in 7 s",
    );
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_challenged() {
    open(&plain()).run(
        "! write 1000
        > . 1:1001(1000) ack 1
        < . 1:1(0) ack 5000
        > . 1001:1001(0) ack 1
        // At most once in half a second (RFC 5961 §7).
        +0.4 < . 1:1(0) ack 5000
        > -
        +0.1 < . 1:1(0) ack 5000
        > . 1001:1001(0) ack 1
        ? acknowledged 0",
    );
}

#[test]
fn a_segment_outside_of_the_window_is_answered() {
    // RFC 9293 §3.10.7.4, first check. The window is 1 to 10000.
    open(&plain()).run(
        "< . 1:501(500) ack 1
        +0.2 > . 1:1(0) ack 501
        // Without payload: old or at the right edge is acceptable, beyond it is not.
        < . 501:501(0) ack 1
        < . 10001:10001(0) ack 1
        > -
        +1 < . 10002:10002(0) ack 1
        > . 1:1(0) ack 501
        +1 < . 500:500(0) ack 1
        > . 1:1(0) ack 501
        // With payload: each is answered.
        < . 10002:10003(1) ack 1
        > . 1:1(0) ack 501
        < . 10001:10002(1) ack 1
        > . 1:1(0) ack 501
        ? received 500",
    );
}

#[test]
fn a_reset_of_a_connection_has_timestamps() {
    // RFC 7323 section 3.2; the answer to a segment without a connection has none.
    let config = Config { timestamps: true, ..plain() };
    let mut script = Script::listen(&config);
    script.run(
        "< S 0:0(0) win 60000 <mss 1012,sackOK,ts 100:0>
        > S 0:0(0) ack 1
        +0.1 < . 1:1(0) ack 1 <ts 200:0>
        +1 ! abort
        > R 1:1(0) ack 1 <ts 1100:200>
        < . 1:1(0) ack 1 <ts 300:0>
        > R 1:1(0)",
    );
}
