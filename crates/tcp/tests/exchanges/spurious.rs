//! Detection of spurious window reductions, and their undo.

use airpath_tcp::Config;

use crate::recovery::ten_segments;
use crate::{cumulative, plain};

#[test]
fn frto_two_advancing_acks_undo_a_spurious_timeout() {
    // RFC 5682 §2.1: all ten segments were only late.
    let mut config = cumulative();
    config.recovery.forward_rto = true;
    ten_segments(&config).run(
        "+1 > . 1:1001(1000) ack 1
        ? timeouts 1
        +0.1 < . 1:1(0) ack 1001
        // Instead of the next retransmission: new data.
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        > -
        < . 1:1(0) ack 2001
        ? undos 1
        ? retransmitted 1
        // The window is restored to 10, plus one for this acknowledgement and one for the one
        // before.
        > . 12001:13001(1000) ack 1",
    );
}

#[test]
fn frto_a_duplicate_ack_confirms_the_timeout() {
    let mut config = cumulative();
    config.recovery.forward_rto = true;
    ten_segments(&config).run(
        "+1 > . 1:1001(1000) ack 1
        +0.1 < . 1:1(0) ack 1001
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1001
        > . 1001:2001(1000) ack 1
        ? undos 0",
    );
}

#[test]
fn frto_with_sack_an_original_that_arrives_undoes_the_timeout() {
    let mut config = plain();
    config.recovery.forward_rto = true;
    ten_segments(&config).run(
        "+1 > . 1:1001(1000) ack 1
        +0.1 < . 1:1(0) ack 2001
        ? undos 1
        ? retransmitted 1",
    );
}

#[test]
fn eifel_detection_by_timestamps() {
    // RFC 3522: the timeout was at 1.1 s and later; the echoed segment was sent at 100 ms.
    let config = Config { timestamps: true, ..cumulative() };
    let eifel = Config { recovery: airpath_tcp::Recovery { eifel: true, ..config.recovery }, ..config.clone() };
    let script = "+1 > . 1:989(988) ack 1
        +0.1 < . 1:1(0) ack 989 <ts 2:100>";
    ten_segments(&eifel).run(script).run("? undos 1\n> . 9881:10869(988) ack 1");
    ten_segments(&config).run(script).run("? undos 0\n> . 989:1977(988) ack 1");
    // The retransmission itself is echoed.
    ten_segments(&eifel).run(
        "+1 > . 1:989(988) ack 1
        +0.1 < . 1:1(0) ack 989 <ts 2:1100>
        ? undos 0",
    );
}

#[test]
fn dsack_undoes_a_spurious_retransmission() {
    // RFC 3708: the first segment was overtaken by three others, and its retransmission was
    // spurious.
    let mut config = plain();
    config.recovery.duplicate_undo = true;
    ten_segments(&config).run(
        "+0.1 < . 1:1(0) ack 1 <sack 1001:4001>
        > . 1:1001(1000) ack 1
        ? fast_retransmits 1
        +0.01 < . 1:1(0) ack 4001
        +0.1 < . 1:1(0) ack 10001 <sack 1:1001>
        ? undos 1",
    );
}

#[test]
fn dsack_of_a_duplicating_network_undoes_nothing() {
    let mut config = plain();
    config.recovery.duplicate_undo = true;
    ten_segments(&config).run(
        "+0.1 < . 1:1(0) ack 1 <sack 1001:4001>
        > . 1:1001(1000) ack 1
        // Two reports for one retransmission; the second arrives first here, for another segment.
        < . 1:1(0) ack 10001 <sack 1001:2001>
        ? undos 1",
    );
}
