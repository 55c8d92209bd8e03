//! What an acknowledgement changes: cases that scripts of packetdrill have found.

use airpath_tcp::Config;

use crate::recovery::ten_segments;
use crate::script::Script;
use crate::{cumulative, plain};

#[test]
fn in_slow_start_the_window_grows_to_twice_what_was_outstanding() {
    // tcp_cwnd_validate and tcp_is_cwnd_limited of Linux: what was outstanding when data was last
    // sent counts, not what is left of it when an acknowledgement arrives.
    let grown = |bytes: u64| {
        let config = Config { window_validation: true, ..plain() };
        let mut script = Script::connect(&config);
        script.run(
            "> S 0:0(0)
            +0.1 < S 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
            > . 1:1(0) ack 1",
        );
        script.run(&format!("! write {bytes}"));
        script.take();
        for end in (1..=bytes / 1000).map(|segment| 1 + 1000 * segment) {
            script.run(&format!("< . 1:1(0) ack {end} win 60000"));
        }
        script.connection.info().congestion_window
    };
    assert_eq!([4000, 5000, 6000, 9000, 10_000].map(grown), [10, 10, 12, 18, 20]);
}

#[test]
fn a_segment_that_acknowledges_unsent_data_sets_no_timestamp() {
    let config = Config { timestamps: true, ..plain() };
    let mut script = Script::listen(&config);
    script.run(
        "< S 0:0(0) win 60000 <mss 1012,sackOK,ts 100:0>
        > S 0:0(0) ack 1
        +0.1 < . 1:1(0) ack 1 <ts 200:0>
        < F 1:1(0) ack 9999 <ts 200000:0>
        > . 1:1(0) ack 1 <ts 100:200>
        // It does not make this one old.
        < . 1:1001(1000) ack 1 <ts 201:0>
        < . 1001:2001(1000) ack 1 <ts 202:0>
        > . 1:1(0) ack 2001",
    );
}

#[test]
fn rack_takes_the_round_trip_of_the_last_segment_that_arrived() {
    // RFC 8985 section 6.2 step 2: not that of the most recently sent one. At 0.32 s an
    // acknowledgement covers the retransmission, of 0.2 s, and then the fourth segment, of 0.1 s.
    // Its round trip is 220 ms, so the tenth, sent at 0.1 s, is not lost.
    let recovery = airpath_tcp::Recovery { rack: true, proportional_reduction: true, ..plain().recovery };
    let config = Config { recovery, ..plain() };
    let mut script = ten_segments(&config);
    script.run(
        "+0.1 < . 1:1(0) ack 1 <sack 1001:2001>
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:3001>
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 1 <sack 1001:3001,sack 8001:9001>",
    );
    script.take();
    assert_eq!(script.connection.info().lost, 6);
    script.run("+0.12 < . 1:1(0) ack 4001 <sack 8001:9001>");
    assert_eq!(script.connection.info().lost, 4);
}

#[test]
fn an_overtaken_acknowledgement_reports_what_arrived() {
    let mut script = ten_segments(&plain());
    script.run("+0.1 < . 1:1(0) ack 3001");
    script.take();
    script.run("< . 1:1(0) ack 2001 <sack 5001:6001>");
    script.take();
    assert_eq!(script.connection.info().sacked, 1);
    // Neither its window nor a block below what is acknowledged counts.
    script.run("< . 1:1(0) ack 1 win 1 <sack 1001:4001>");
    assert_eq!(script.connection.info().sacked, 1);
    script.run("! write 1000\n< . 1:1(0) ack 4001");
    assert!(script.take() > 0);
}

#[test]
fn without_sack_the_window_grows_by_what_duplicates_have_not_reported() {
    // Two duplicates, then three segments are acknowledged: one of them is new. The window grows
    // from 10 to 11, nine are in flight.
    ten_segments(&cumulative()).run(
        "+0.1 < . 1:1(0) ack 1
        > . 10001:11001(1000) ack 1
        < . 1:1(0) ack 1
        > . 11001:12001(1000) ack 1
        < . 1:1(0) ack 3001
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        > -",
    );
}
