//! Accurate feedback of ECN (RFC 9768).

use airpath_tcp::{Algorithm, Config, Congestion, EcnOption};

use crate::plain;
use crate::script::Script;

fn accurate() -> Config {
    Config { ecn: true, accurate_ecn: true, ..plain() }
}

fn prague() -> Config {
    let plain = accurate();
    Config { congestion: Congestion { algorithm: Algorithm::Prague, ..plain.congestion }, ..plain }
}

#[test]
fn the_client_offers_it_and_reports_the_syn_ack() {
    for (arrived, field) in [("noecn", "W"), ("ect1", "WE"), ("ect", "A"), ("ce", "AW")] {
        Script::connect(&accurate()).run(&format!(
            "> SEWA 0:0(0)
            +0.1 < SW 0:0(0) ack 1 win 60000 {arrived} <mss 1000,sackOK>
            > {field}. 1:1(0) ack 1"
        ));
    }
}

#[test]
fn the_server_reports_the_syn() {
    for (arrived, field) in [("noecn", "W"), ("ect1", "WE"), ("ect", "A"), ("ce", "AW")] {
        Script::listen(&accurate()).run(&format!(
            "< SEWA 0:0(0) win 60000 {arrived} <mss 1000,sackOK>
            > S{field} 0:0(0) ack 1 <e1b 1:0:1>"
        ));
    }
}

#[test]
fn a_server_without_it_gets_the_feedback_of_rfc_3168() {
    let mut script = Script::connect(&accurate());
    script.run(
        "> SEWA 0:0(0)
        +0.1 < SE 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
        > . 1:1(0) ack 1 noecn
        ! write 1000
        > . 1:1001(1000) ack 1 ect
        < . 1:1001(1000) ack 1001 ce
        +0.2 > E. 1001:1001(0) ack 1001",
    );
    let negotiated = script.connection.negotiated();
    assert!(negotiated.ecn && !negotiated.accurate_ecn);
}

#[test]
fn a_server_that_reflects_the_offer_has_no_ecn() {
    let mut script = Script::connect(&accurate());
    script.run(
        "> SEWA 0:0(0)
        +0.1 < SEWA 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
        > . 1:1(0) ack 1 noecn",
    );
    assert!(!script.connection.negotiated().ecn);
}

#[test]
fn the_second_retransmission_of_the_syn_has_no_offer() {
    Script::connect(&accurate()).run(
        "> SEWA 0:0(0)
        +1 > SEWA 0:0(0)
        +2 > S 0:0(0)
        +0.1 < SW 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
        > W. 1:1(0) ack 1
        ! write 1000
        // The client may still send ECN-capable segments (section 3.1.4.1).
        > AE. 1:1001(1000) ack 1 ect",
    );
}

#[test]
fn the_receiver_counts_marks_and_reports_the_first_and_each_second_at_once() {
    // The counter begins with 5: AE and ECE.
    Script::listen(&accurate()).run(
        "< SEWA 0:0(0) win 60000 <mss 1000,sackOK>
        > SW 0:0(0) ack 1 <e1b 1:0:1>
        < W 1:1(0) ack 1
        < AE 1:1001(1000) ack 1 ect1
        > -
        < AE 1001:2001(1000) ack 1 ce
        > AW. 1:1(0) ack 2001
        < AE 2001:3001(1000) ack 1 ce
        > -
        < AE 3001:4001(1000) ack 1 ce
        > . 1:1(0) ack 4001
        < AE 4001:5001(1000) ack 1 ect1
        < AE 5001:6001(1000) ack 1 ect1
        > . 1:1(0) ack 6001",
    );
}

#[test]
fn an_acknowledgement_with_cleared_bits_turns_ecn_off() {
    Script::listen(&accurate()).run(
        "< SEWA 0:0(0) win 60000 <mss 1000,sackOK>
        > SW 0:0(0) ack 1 <e1b 1:0:1>
        < . 1:1(0) ack 1
        ! write 1000
        > AE. 1:1001(1000) ack 1 noecn",
    );
}

#[test]
fn new_reno_halves_the_window_once_for_the_marks_of_a_round_trip() {
    Script::listen(&accurate())
        .run(
            "< SEWA 0:0(0) win 60000 <mss 1000,sackOK>
            > SW 0:0(0) ack 1 <e1b 1:0:1>
            +0.1 < W 1:1(0) ack 1
            ! write 30000",
        )
        .run(
            &(0..10)
                .map(|n| format!("> AE. {}:{}(1000) ack 1 ect\n", n * 1000 + 1, n * 1000 + 1001))
                .collect::<String>(),
        )
        .run(
            "+0.1 < AW 1:1(0) ack 1001
            ? ecn_reductions 1
            < AWE 1:1(0) ack 3001
            < AWE 1:1(0) ack 6001
            // No CWR.
            > AE. 10001:11001(1000) ack 1 ect
            ? ecn_reductions 1",
        );
}

/// A connection with Prague that has sent its first window.
fn prague_sends() -> Script {
    let mut script = Script::listen(&prague());
    script
        .run(
            "< SEWA 0:0(0) win 60000 <mss 1000,sackOK>
            > SW 0:0(0) ack 1 <e1b 1:0:1>
            +0.1 < W 1:1(0) ack 1
            ! write 30000
            > AE. 1:1001(1000) ack 1 ect1",
        )
        .take();
    script
}

#[test]
fn prague_sends_ect1_and_halves_the_window_at_the_first_mark() {
    let mut script = prague_sends();
    assert_eq!(script.connection.negotiated().congestion_control, "prague");
    script.run("+0.1 < AW 1:1(0) ack 1001");
    assert_eq!(script.connection.info().congestion_window, 5);
}

#[test]
fn prague_halves_the_window_for_a_loss_after_a_mark() {
    let mut script = prague_sends();
    script.run("+0.1 < AW 1:1(0) ack 1001\n? ecn_reductions 1").take();
    assert_eq!(script.connection.info().congestion_window, 5);
    // Within the round trip after the reduction for the mark: 2.5 segments.
    script.run("+0.05 < AW 1:1(0) ack 1001 <sack 2001:6001>\n? ecn_reductions 1");
    assert_eq!(script.connection.info().congestion_window, 3);
}

#[test]
fn prague_needs_accurate_feedback() {
    let mut script = Script::listen(&prague());
    script.run(
        "< SEW 0:0(0) win 60000 <mss 1000,sackOK>
        > SE 0:0(0) ack 1
        +0.1 < . 1:1(0) ack 1",
    );
    assert_eq!(script.connection.negotiated().congestion_control, "new-reno");
    let error = Config { accurate_ecn: false, ..prague() }.check().expect_err("it is refused");
    assert_eq!(
        error.to_string(),
        "tcp settings: `congestion.algorithm` needs `ecn` and `accurate_ecn` for prague: set both to true"
    );
    let error = Config { ecn: false, ..accurate() }.check().expect_err("it is refused");
    assert_eq!(error.to_string(), "tcp settings: `accurate_ecn` needs `ecn`: set both to true");
    let error = Config { ecn_option: EcnOption::Never, ..plain() }.check().expect_err("it is refused");
    let text = "tcp settings: `ecn_option` needs `accurate_ecn`: set it to true, or leave out the option";
    assert_eq!(error.to_string(), text);
    let error = Config { ecn_option_beacon: 1, ..accurate() }.check().expect_err("it is refused");
    assert_eq!(error.to_string(), "tcp settings: `ecn_option_beacon` needs `ecn_option` = \"minimum\"");
}

/// A server whose client's options arrive, 0.1 s after its SYN.
fn with_options(config: &Config) -> Script {
    let mut script = Script::listen(config);
    script.run(
        "< SEWA 0:0(0) win 60000 <mss 1012,sackOK>
        > SW 0:0(0) ack 1 <e1b 1:0:1>
        +0.1 < W 1:1(0) ack 1 <e0b 1:0:1>",
    );
    script
}

#[test]
fn each_segment_has_the_bytes_that_arrived_by_their_ecn_field() {
    with_options(&accurate()).run(
        "< AE 1:1001(1000) ack 1 ect1
        > AE. 1:1(0) ack 1001 <e1b 1001:0:1>
        < AE 1001:1501(500) ack 1 ce
        > AW. 1:1(0) ack 1501 <e1b 1001:500:1>
        < AE 1501:2501(1000) ack 1 noecn
        > AW. 1:1(0) ack 2501 <e1b 1001:500:1>
        < AE 2501:2601(100) ack 1 ect
        > AW. 1:1(0) ack 2601 <e1b 1001:500:101>
        ! write 1976
        // A full segment leaves room for it.
        > AW. 1:989(988) ack 2601 <e1b 1001:500:101>
        > AW. 989:1977(988) ack 2601 <e1b 1001:500:101>",
    );
}

#[test]
fn blocks_beyond_two_and_the_option_give_way_to_each_other() {
    let config = Config { timestamps: true, ..accurate() };
    Script::listen(&config).run(
        "< SEWA 0:0(0) win 60000 <mss 1012,sackOK,ts 1:0>
        > SW 0:0(0) ack 1 <e1b 1:0:1>
        +0.1 < W 1:1(0) ack 1 <ts 2:0,e0b 1:0:1>
        < AE 1001:2001(1000) ack 1 ect1 <ts 3:0>
        > AE. 1:1(0) ack 1 <e1b 1001:0:1,sack 1001:2001>
        // Two blocks leave room for two counters.
        < AE 3001:4001(1000) ack 1 ce <ts 3:0>
        > AW. 1:1(0) ack 1 <e1b 1001:1000,sack 3001:4001,sack 1001:2001>
        // The third gives way to them.
        < AE 5001:6001(1000) ack 1 ect1 <ts 3:0>
        > AW. 1:1(0) ack 1 <e1b 2001:1000,sack 5001:6001,sack 3001:4001>
        // Three counters do not fit beside two blocks.
        < AE 7001:8001(1000) ack 1 ect <ts 3:0>
        > AW. 1:1(0) ack 1 <sack 7001:8001,sack 5001:6001,sack 3001:4001>",
    );
}

#[test]
fn an_end_sends_options_where_it_has_seen_one() {
    // The path strips the option of the SYN-ACK.
    let mut script = Script::connect(&accurate());
    script.run(
        "> SEWA 0:0(0)
        +0.1 < SW 0:0(0) ack 1 win 60000 <mss 1012,sackOK>
        > W. 1:1(0) ack 1
        ! write 100
        > AE. 1:101(100) ack 1 ect
        +0.1 < AE 1:1(0) ack 101 <e0b 101:0:1>
        ! write 100
        > AE. 101:201(100) ack 1 <e1b 1:0:1>",
    );
    assert_eq!(script.connection.info().ecn_bytes_delivered, [0, 0, 100]);
    let never = Config { ecn_option: EcnOption::Never, ..accurate() };
    Script::listen(&never).run(
        "< SEWA 0:0(0) win 60000 <mss 1012,sackOK>
        > SW 0:0(0) ack 1
        +0.1 < W 1:1(0) ack 1 <e0b 1:0:1>
        ! write 1000
        > AE. 1:1001(1000) ack 1",
    );
}

#[test]
fn a_syn_ack_that_is_sent_again_has_no_option() {
    Script::listen(&accurate()).run(
        "< SEWA 0:0(0) win 60000 <mss 1012,sackOK>
        > SW 0:0(0) ack 1 <e1b 1:0:1>
        +1 > SW 0:0(0) ack 1
        +2 > S 0:0(0) ack 1
        +0.1 < W 1:1(0) ack 1 <e0b 1:0:1>
        ! write 100
        > AE. 1:101(100) ack 1 noecn <e1b 1:0:1>",
    );
}

#[test]
fn the_first_data_is_sent_again_without_the_option() {
    with_options(&accurate()).run(
        "! write 100
        > AE. 1:101(100) ack 1 <e1b 1:0:1>
        +1 > AE. 1:101(100) ack 1
        +0.1 < AE 1:1(0) ack 101 <e0b 101:0:1>
        ! write 100
        > AE. 101:201(100) ack 1 <e1b 1:0:1>",
    );
}

#[test]
fn a_counter_that_was_cleared_is_not_used() {
    let mut script = Script::connect(&accurate());
    script.run(
        "> SEWA 0:0(0)
        +0.1 < SW 0:0(0) ack 1 win 60000 <mss 1012,sackOK,e0b 0:0:0>
        > W. 1:1(0) ack 1 <e1b 1:0:1>
        ! write 100
        > AE. 1:101(100) ack 1 <e1b 1:0:1>
        +0.1 < AE 1:1(0) ack 101 <e0b 101:0:1>",
    );
    assert_eq!(script.connection.info().ecn_bytes_delivered, [0; 3]);
}

#[test]
fn a_field_of_zero_in_the_first_acknowledgement_turns_ecn_off() {
    Script::connect(&accurate()).run(
        "> SEWA 0:0(0)
        +0.1 < SW 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
        > W. 1:1(0) ack 1
        ! write 100
        > AE. 1:101(100) ack 1 ect
        +0.1 < . 1:1(0) ack 101
        ! write 100
        > AE. 101:201(100) ack 1 noecn",
    );
}

#[test]
fn an_acknowledgement_without_progress_counts_no_marks() {
    let mut script = with_options(&accurate());
    script.run(
        "! write 100
        > AE. 1:101(100) ack 1 <e1b 1:0:1>
        < AW 1:1(0) ack 1 <e0b 1:100:1>",
    );
    assert_eq!(script.connection.info().marks_delivered, 0);
    script.run("< AW 1:1(0) ack 101 <e0b 1:100:1>");
    assert_eq!(script.connection.info().marks_delivered, 1);
    assert_eq!(script.connection.info().ecn_bytes_delivered, [0, 100, 0]);
}
