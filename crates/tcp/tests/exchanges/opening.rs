//! Opening a connection.

use airpath_core::Span;
use airpath_tcp::{Config, Profile};
use airpath_wire::tcp::Options;

use crate::plain;
use crate::script::Script;

#[test]
fn three_way_handshake() {
    Script::connect(&plain()).run(
        "> S 0:0(0) win 10000 <mss 1000,sackOK>
        ? state SynSent
        +0.1 < S 0:0(0) ack 1 win 5000 <mss 800,sackOK>
        > . 1:1(0) ack 1 win 10000
        ? state Established
        ! write 1000
        > . 1:801(800) ack 1",
    );
    Script::listen(&plain()).run(
        "< S 0:0(0) win 5000 <mss 1200,sackOK>
        ? state SynReceived
        > S 0:0(0) ack 1 win 10000 <mss 1000,sackOK>
        +0.1 < . 1:1(0) ack 1 win 5000
        ? state Established
        ! write 1500
        > . 1:1001(1000) ack 1
        +0.1 < . 1:1(0) ack 1001 win 5000
        > . 1001:1501(500) ack 1",
    );
}

#[test]
fn options_are_offered_and_agreed_on() {
    let mut script = Script::connect(&Profile::Linux6.config());
    script.run(
        "> S 0:0(0) win 64240 <mss 1460,sackOK,ts 0:0,ws 6>
        +0.05 < S 0:0(0) ack 1 win 5000 <mss 1400,sackOK,ts 700:0,ws 7>
        > . 1:1(0) ack 1 <ts 50:700>",
    );
    let negotiated = script.connection.negotiated();
    assert_eq!(negotiated.segment_size, 1388, "the smaller size, less twelve bytes of timestamps");
    assert_eq!((negotiated.window_scale, negotiated.peer_window_scale), (6, 7));
    assert!(negotiated.selective_acknowledgement && negotiated.timestamps && !negotiated.ecn);
    assert_eq!(negotiated.congestion_control, "cubic");
}

#[test]
fn options_without_the_peers_offer_are_off() {
    let mut script = Script::listen(&Profile::Linux6.config());
    script.run(
        "< S 0:0(0) win 5000
        > S 0:0(0) ack 1 win 64240 <mss 1460>
        < . 1:1(0) ack 1 win 5000",
    );
    let negotiated = script.connection.negotiated();
    assert_eq!(negotiated.segment_size, 536, "RFC 9293 §3.7.1");
    assert_eq!((negotiated.window_scale, negotiated.peer_window_scale), (0, 0));
    assert!(!negotiated.selective_acknowledgement && !negotiated.timestamps);
}

#[test]
fn a_lost_syn_is_retransmitted_and_limits_the_initial_window() {
    Script::connect(&plain()).run(
        "> S 0:0(0)
        +1 > S 0:0(0)
        +2 > S 0:0(0)
        ? timeouts 2
        +0.1 < S 0:0(0) ack 1 <mss 1000,sackOK>
        > . 1:1(0) ack 1
        ! write 5000
        // RFC 5681 §3.1: one segment; RFC 6298 §5.7: a timeout of 3 s.
        > . 1:1001(1000) ack 1
        +3 > . 1:1001(1000) ack 1",
    );
}

#[test]
fn a_profile_may_keep_the_initial_window_after_a_lost_syn_or_syn_ack() {
    // tcp_init_transfer of Linux: more than one retransmission reduces it.
    let window_after = |losses: u32, retries: u32| {
        let config = Config { initial_window_retries: retries, ..plain() };
        let mut client = Script::connect(&config);
        client.run("> S 0:0(0)");
        let mut server = Script::listen(&config);
        server.run("< S 0:0(0) <mss 1000,sackOK>\n> S 0:0(0) ack 1");
        for n in 0..losses {
            client.run(&format!("+{} > S 0:0(0)", 1 << n));
            server.run(&format!("+{} > S 0:0(0) ack 1", 1 << n));
        }
        client.run("+0.1 < S 0:0(0) ack 1 <mss 1000,sackOK>\n> . 1:1(0) ack 1");
        server.run("+0.1 < . 1:1(0) ack 1");
        [client, server].map(|script| script.connection.info().congestion_window)
    };
    assert_eq!([0, 1, 2].map(|losses| window_after(losses, 0)), [[10; 2], [1; 2], [1; 2]]);
    assert_eq!([0, 1, 2].map(|losses| window_after(losses, 1)), [[10; 2], [10; 2], [1; 2]]);
    assert_eq!(Profile::Linux6.config().initial_window_retries, 1);
}

/// As `tcp_try_undo_spurious_syn` of Linux, whose round trip is then that of the echo.
#[test]
fn the_echo_of_the_first_syn_shows_that_it_was_not_lost() {
    let config = Config { timestamps: true, ..plain() };
    let script = |echo: u32| {
        format!(
            "> S 0:0(0)
            +1 > S 0:0(0)
            +0.5 < S 0:0(0) ack 1 <mss 1000,sackOK,ts 7:{echo}>
            > . 1:1(0) ack 1
            ! write 4940
            > . 1:989(988) ack 1\n"
        )
    };
    let initial = "> . 989:1977(988) ack 1
        > . 1977:2965(988) ack 1
        > . 2965:3953(988) ack 1
        > . 3953:4941(988) ack 1\n";
    // 1.5 s, with a variation of half of that: 1.5 + 4 · 0.75 s.
    Script::connect(&config).run(&format!("{}{initial}+4.5 > . 1:989(988) ack 1", script(0)));
    // The second one was answered, after 0.5 s: the first may have been lost.
    Script::connect(&config).run(&format!("{}+1.5 > . 1:989(988) ack 1", script(1000)));
}

#[test]
fn an_unanswered_syn_times_out() {
    let config = Config { opening_retries: 2, ..plain() };
    Script::connect(&config).run(
        "> S 0:0(0)
        +1 > S 0:0(0)
        +2 > S 0:0(0)
        +4 ? state Closed
        ? outcome timed out: no answer to the SYN, sent 3 times in 7 s",
    );
}

/// The schedule 1, 1, 1, 2, … of `tcp_syn_linear_timeouts` = 2 in Linux's ip-sysctl.rst.
#[test]
fn the_first_timeouts_of_a_syn_may_be_equal() {
    let config = Config { opening_retries: 2, opening_linear_timeouts: 2, ..plain() };
    Script::connect(&config).run(
        "> S 0:0(0)
        +1 > S 0:0(0)
        +1 > S 0:0(0)
        +1 > S 0:0(0)
        +2 > S 0:0(0)
        +4 ? state Closed
        ? outcome timed out: no answer to the SYN, sent 5 times in 9 s",
    );
    // The answering end doubles its timeout at once.
    Script::listen(&config).run(
        "< S 0:0(0) <mss 1000,sackOK>
        > S 0:0(0) ack 1
        +1 > S 0:0(0) ack 1
        +2 > S 0:0(0) ack 1",
    );
}

/// As in Linux, where only time-outs count (`num_timeout` of a request socket).
#[test]
fn answers_to_a_repeated_syn_do_not_count_as_retries() {
    let config = Config { opening_retries: 1, ..plain() };
    let repeated = "+0.1 < S 0:0(0) <mss 1000,sackOK>
        > S 0:0(0) ack 1\n";
    Script::listen(&config).run(&format!(
        "< S 0:0(0) <mss 1000,sackOK>
        > S 0:0(0) ack 1
        {}+1 > S 0:0(0) ack 1
        ? state SynReceived
        +0.1 < . 1:1(0) ack 1
        ? state Established",
        repeated.repeat(5)
    ));
}

#[test]
fn a_refusal_needs_the_right_number() {
    Script::connect(&plain()).run(
        "> S 0:0(0)
        < R 0:0(0) ack 77
        ? state SynSent
        < R 0:0(0) ack 1
        ? state Closed
        ? outcome refused by the peer",
    );
}

#[test]
fn a_syn_ack_with_a_wrong_number_is_reset() {
    Script::connect(&plain()).run(
        "> S 0:0(0)
        < S 0:0(0) ack 77
        > R 77:77(0)
        ? state SynSent",
    );
    Script::listen(&plain()).run(
        "< . 5:5(0) ack 9
        > R 9:9(0)
        ? state Listen",
    );
}

#[test]
fn simultaneous_open() {
    Script::connect(&plain()).run(
        "> S 0:0(0)
        +0.1 < S 0:0(0) win 5000 <mss 1000,sackOK>
        ? state SynReceived
        > S 0:0(0) ack 1
        +0.1 < S 0:0(0) ack 1 win 5000 <mss 1000,sackOK>
        // The second SYN is a duplicate, but its acknowledgement counts (RFC 9293 §3.5 figure 7).
        > . 1:1(0) ack 1
        < . 1:1(0) ack 1
        ? state Established",
    );
}

#[test]
fn a_syn_on_an_open_connection_is_challenged() {
    Script::connect(&plain()).run(
        "> S 0:0(0)
        < S 0:0(0) ack 1 <mss 1000>
        > . 1:1(0) ack 1
        // RFC 5961 §4: whatever its number.
        < S 5:5(0)
        > . 1:1(0) ack 1
        ? state Established",
    );
}

#[test]
fn one_way_agents_are_open_from_the_start() {
    let mut script = Script::listen(&Profile::Ns2NewReno.config());
    script.run(
        "? state Established
        ! write 3000
        > . 1:1461(1460) ack ?
        > . 1461:2921(1460) ack ?",
    );
    let opening = Config { opening_segment: true, ..Profile::Ns2NewReno.config() };
    let mut script = Script::listen(&opening);
    script.run(
        "! write 3000
        > S 0:0(0)
        +6 > S 0:0(0)",
    );
    assert_eq!(script.connection.next_wakeup().map(|at| at.since(script.now)), Some(Span::from_secs(12)));
    // The agent's opening segment has no options.
    let mut script = Script::listen(&Config { timestamps: true, window_scaling: true, ..opening });
    script.run("! write 3000");
    assert_eq!(script.sent().options, Options::default());
}
