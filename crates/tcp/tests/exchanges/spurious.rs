//! Detection of spurious window reductions, and their undo.

use airpath_tcp::Config;

use crate::recovery::ten_segments;
use crate::script::Script;
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
fn after_an_undone_timeout_duplicate_acks_show_losses_of_its_data() {
    // As in Linux, where the undo ends the recovery (tcp_try_undo_loss).
    let mut config = cumulative();
    config.recovery.forward_rto = true;
    config.recovery.limited_transmit = false;
    ten_segments(&config).run(
        "+1 > . 1:1001(1000) ack 1
        +0.1 < . 1:1(0) ack 1001
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 3001
        ? undos 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        > . 14001:15001(1000) ack 1
        > -
        < . 1:1(0) ack 3001
        < . 1:1(0) ack 3001
        > -
        < . 1:1(0) ack 3001
        > . 3001:4001(1000) ack 1",
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

/// Segment numbers of a script: `@3` is the start of the fourth segment of `size` bytes.
fn numbered(script: &str, size: u32) -> String {
    let mut parts = script.split('@');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let number: u32 = part[..digits].parse().expect("a segment number");
        text += &format!("{}{}", 1 + number * size, &part[digits..]);
    }
    text
}

/// Segments 0, 12 and 15 are lost. The first recovery, from 0.2 s on, retransmits 0 and, at 0.25 s,
/// 12; the second begins at 0.3 s, and retransmits 15.
fn second_recovery(config: &Config) -> Script {
    let mut script = ten_segments(config);
    let size = script.connection.negotiated().segment_size;
    let ts = |echo: u32| if config.timestamps { format!(",ts 2:{echo}") } else { String::new() };
    let (first, second) = (ts(100), ts(200));
    script.run(&numbered(
        &format!(
            "+0.1 < . 1:1(0) ack @0 <sack @1:@2{first}>
            > . @10:@11({size}) ack 1
            < . 1:1(0) ack @0 <sack @1:@3{first}>
            > . @11:@12({size}) ack 1
            < . 1:1(0) ack @0 <sack @1:@4{first}>
            > . @0:@1({size}) ack 1
            < . 1:1(0) ack @0 <sack @1:@10{first}>
            > . @12:@13({size}) ack 1
            > . @13:@14({size}) ack 1
            +0.05 < . 1:1(0) ack @0 <sack @1:@12{first}>
            > . @14:@15({size}) ack 1
            > . @15:@16({size}) ack 1
            < . 1:1(0) ack @0 <sack @1:@12,sack @13:@15{first}>
            > . @16:@17({size}) ack 1
            > . @17:@18({size}) ack 1
            < . 1:1(0) ack @0 <sack @1:@12,sack @13:@15,sack @16:@17{first}>
            > . @12:@13({size}) ack 1
            > . @18:@19({size}) ack 1
            ? fast_retransmits 1
            +0.05 < . 1:1(0) ack @12 <sack @13:@15,sack @16:@17{second}>
            ? fast_retransmits 2
            > -
            < . 1:1(0) ack @12 <sack @13:@15,sack @16:@19{second}>
            > . @15:@16({size}) ack 1
            ? undos 0"
        ),
        size,
    ));
    script
}

#[test]
fn eifel_detection_counts_retransmissions_of_the_last_recovery() {
    let mut config = Config { timestamps: true, ..plain() };
    config.recovery.eifel = true;
    // The retransmission of 12 was needed; it is older than the first of this recovery.
    second_recovery(&config).run(&numbered(
        "+0.05 < . 1:1(0) ack @15 <sack @16:@19,ts 2:250>
        ? undos 0",
        988,
    ));
}

#[test]
fn dsack_counts_retransmissions_of_the_last_recovery() {
    let mut config = plain();
    config.recovery.duplicate_undo = true;
    second_recovery(&config).run(&numbered(
        // The original of 12 arrived late, but nothing shows that 15 did.
        "+0.05 < . 1:1(0) ack @15 <sack @12:@13,sack @16:@19>
        ? undos 0
        > . @19:@20(1000) ack 1
        +0.05 < . 1:1(0) ack @19 <sack @15:@16>
        ? undos 1",
        1000,
    ));
}
