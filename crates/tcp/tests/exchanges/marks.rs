//! Explicit congestion notification (RFC 3168).

use airpath_tcp::Config;

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
