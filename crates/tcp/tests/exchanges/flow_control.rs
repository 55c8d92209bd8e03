//! Windows, sub-MSS segments, and times of acknowledgements.

use airpath_core::Bytes;
use airpath_tcp::{Config, Limit, Nagle, ReceiveBuffer};

use crate::recovery::ten_segments;
use crate::script::Script;
use crate::{cumulative, plain};

/// An open connection whose peer offers `window`.
fn open(config: &Config, window: u32) -> Script {
    let mut script = Script::connect(config);
    script.run(&format!(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 win {window} <mss 1000,sackOK>
        > . 1:1(0) ack 1"
    ));
    script
}

#[test]
fn a_closed_window_is_probed() {
    open(&plain(), 2000).run(
        "! write 4000
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        > -
        +0.1 < . 1:1(0) ack 2001 win 0
        // An old number without payload, which the peer must answer.
        +1 > . 2000:2000(0) ack 1
        < . 1:1(0) ack 2001 win 0
        +2 > . 2000:2000(0) ack 1
        < . 1:1(0) ack 2001 win 0
        // RFC 9293 §3.8.6.1: at doubled intervals, though they are answered.
        +4 > . 2000:2000(0) ack 1
        ? window_probes 3
        // That of the handshake, and the probes, which carry nothing.
        ? pure_acks 4
        < . 1:1(0) ack 2001 win 1500
        > . 2001:3001(1000) ack 1
        +0.1 < . 1:1(0) ack 3001 win 1500
        > . 3001:4001(1000) ack 1",
    );
}

#[test]
fn a_sender_that_waits_for_the_window_is_not_idle() {
    // As in Linux (tcp_slow_start_after_idle_check): the data was written long before.
    let mut script = open(&plain(), 10_000);
    script.run("! write 100000");
    assert_eq!(script.take(), 10);
    script.run(
        "+0.1 < . 1:1(0) ack 10001 win 0
        +1 > . 10000:10000(0) ack 1
        < . 1:1(0) ack 10001 win 0
        +2 > . 10000:10000(0) ack 1
        < . 1:1(0) ack 10001 win 0
        +3.5 < . 1:1(0) ack 10001 win 60000",
    );
    assert_eq!(script.take(), 20, "slow start has doubled the window");
}

#[test]
fn a_closed_window_freezes_what_is_outstanding() {
    // BSD's tcp_output: with a window of zero the retransmission timer stops. When it opens,
    // everything is sent again, with the congestion window from before.
    let mut config = plain();
    config.recovery.zero_window_freezes = true;
    open(&config, 2000).run(
        "! write 4000
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        +0.1 < . 1:1(0) ack 1001 win 0
        // The timer of 1 s does not expire; a probe is sent then.
        +1 > . 1000:1000(0) ack 1
        ? timeouts 0
        +0.5 < . 1:1(0) ack 1001 win 2000
        > . 1001:2001(1000) ack 1
        > . 2001:3001(1000) ack 1
        ? timeouts 0
        ? fast_retransmits 0",
    );
    // Without the setting the timer expires.
    open(&plain(), 2000).run(
        "! write 4000
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        +0.1 < . 1:1(0) ack 1001 win 0
        +1 > . 1001:2001(1000) ack 1
        ? timeouts 1",
    );
}

#[test]
fn a_timeout_with_a_closed_window_halves_what_is_outstanding() {
    // RFC 5681 §3.1 equation 4.
    ten_segments(&plain()).run(
        "+0.1 < . 1:1(0) ack 1001 win 0
        +1 > . 1001:2001(1000) ack 1
        ? timeouts 1
        +0.1 < . 1:1(0) ack 10001 win 60000
        // Half of 9 segments, rounded down.
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        > -",
    );
}

#[test]
fn the_unit_of_window_scaling_is_at_most_the_first_window() {
    // With a shift of 14, for 1 GiB, a window of 10,000 bytes would be zero.
    let plain = plain();
    let receive_buffer = ReceiveBuffer { maximum: Bytes::new(1 << 30), ..plain.receive_buffer };
    Script::connect(&Config { window_scaling: true, receive_buffer, ..plain }).run(
        "> S 0:0(0) win 10000 <mss 1000,sackOK,ws 13>
        +0.1 < S 0:0(0) ack 1 <mss 1000,sackOK,ws 7>
        > . 1:1(0) ack 1 win 1",
    );
}

#[test]
fn a_closed_window_that_acknowledges_everything_opens_as_usual() {
    let mut config = plain();
    config.recovery.zero_window_freezes = true;
    open(&config, 2000).run(
        "! write 3000
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        +0.1 < . 1:1(0) ack 2001 win 0
        +0.5 < . 1:1(0) ack 2001 win 2000
        > . 2001:3001(1000) ack 1",
    );
}

#[test]
fn a_receiver_can_close_its_window() {
    // Freeze-TCP: acknowledgements have a window of zero, and three announce that it is open again.
    let mut script = open(&plain(), 1000);
    script.connection.close_window(true);
    script.run(
        "< . 1:101(100) ack 1
        +0.2 > . 1:1(0) ack 101 win 0
        // Data in the window offered before are accepted.
        < . 101:201(100) ack 1
        +0.2 > . 1:1(0) ack 201 win 0",
    );
    script.connection.close_window(false);
    script.run(
        "> . 1:1(0) ack 201 win 9800
        > . 1:1(0) ack 201 win 9800
        > . 1:1(0) ack 201 win 9800
        +1 > -",
    );
}

#[test]
fn a_connection_with_unanswered_window_probes_times_out() {
    let mut config = plain();
    config.retransmission_timeout.retries = 2;
    open(&config, 1000).run(
        "! write 2000
        > . 1:1001(1000) ack 1
        < . 1:1(0) ack 1001 win 0
        +1 > . 1000:1000(0) ack 1
        +2 > . 1000:1000(0) ack 1
        +4 ? outcome timed out: no answer to data, sent 2 times in 7 s",
    );
}

#[test]
fn a_probe_is_answered() {
    open(&plain(), 1000).run(
        "< . 1:101(100) ack 1
        +0.2 > . 1:1(0) ack 101
        < . 100:100(0) ack 1
        > . 1:1(0) ack 101",
    );
}

#[test]
fn a_silly_window_is_not_used_immediately() {
    open(&plain(), 4000).run(
        "! write 9000
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        > . 2001:3001(1000) ack 1
        > . 3001:4001(1000) ack 1
        +0.1 < . 1:1(0) ack 4001 win 300
        // RFC 9293 §3.8.6.2.1: less than a segment and less than half of the largest window. The
        // persist timer overrides.
        > -
        +1 > . 4001:4301(300) ack 1",
    );
}

#[test]
fn nagle_delays_sub_mss_segments() {
    open(&plain(), 10_000).run(
        "! write 100
        > . 1:101(100) ack 1
        ! write 100
        > -
        ! write 2000
        > . 101:1101(1000) ack 1
        > . 1101:2101(1000) ack 1
        > -
        +0.1 < . 1:1(0) ack 2101
        > . 2101:2201(100) ack 1",
    );
    let eager = Config { nagle: Nagle::Off, ..plain() };
    open(&eager, 10_000).run(
        "! write 100
        > . 1:101(100) ack 1
        ! write 100
        > . 101:201(100) ack 1",
    );
}

#[test]
fn minshall_delays_only_behind_another_sub_mss_segment() {
    let minshall = Config { nagle: Nagle::Minshall, ..plain() };
    open(&minshall, 10_000).run(
        "// The end of a message does not wait for its full segments.
        ! write 2500
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        > . 2001:2501(500) ack 1
        // The next sub-MSS segment does wait.
        ! write 1500
        > . 2501:3501(1000) ack 1
        > -
        +0.1 < . 1:1(0) ack 2001
        > -
        +0.1 < . 1:1(0) ack 2501
        > . 3501:4001(500) ack 1",
    );
}

#[test]
fn a_response_of_three_segments_waits_only_under_rfc_896() {
    let answer = "< . 1:101(100) ack 1
        ! write 2500
        > . 1:1001(1000) ack 101
        > . 1001:2001(1000) ack 101";
    open(&plain(), 10_000).run(&format!("{answer}\n> -\n+0.1 < . 101:101(0) ack 2001\n> . 2001:2501(500) ack 101"));
    let minshall = Config { nagle: Nagle::Minshall, ..plain() };
    let second = "+0.1 < . 101:201(100) ack 2501
        ! write 2500
        > . 2501:3501(1000) ack 201
        > . 3501:4501(1000) ack 201
        > . 4501:5001(500) ack 201";
    open(&minshall, 10_000).run(&format!("{answer}\n> . 2001:2501(500) ack 101\n{second}"));
}

#[test]
fn the_end_of_the_stream_does_not_wait() {
    open(&plain(), 10_000).run(
        "! write 100
        > . 1:101(100) ack 1
        ! write 100
        ! close
        > F 101:201(100) ack 1",
    );
}

#[test]
fn delayed_ack_of_every_second_segment_or_on_timeout() {
    open(&plain(), 1000).run(
        "< . 1:1001(1000) ack 1
        > -
        +0.1 < . 1001:2001(1000) ack 1
        > . 1:1(0) ack 2001
        < . 2001:3001(1000) ack 1
        +0.2 > . 1:1(0) ack 3001",
    );
}

#[test]
fn data_piggybacks_the_acknowledgement() {
    open(&plain(), 10_000).run(
        "< . 1:1001(1000) ack 1
        ! write 500
        > . 1:501(500) ack 1001
        +0.3 > -",
    );
}

#[test]
fn out_of_order_segments_are_acknowledged_immediately() {
    open(&plain(), 1000).run(
        "< . 1001:2001(1000) ack 1
        > . 1:1(0) ack 1 <sack 1001:2001>
        < . 3001:4001(1000) ack 1
        > . 1:1(0) ack 1 <sack 3001:4001,sack 1001:2001>
        < . 2001:3001(1000) ack 1
        > . 1:1(0) ack 1 <sack 1001:4001>
        < . 1:1001(1000) ack 1
        > . 1:1(0) ack 4001
        ? readable 4000",
    );
}

#[test]
fn dsack_reports_duplicates() {
    open(&plain(), 1000).run(
        "< . 1:1001(1000) ack 1
        < . 1:1001(1000) ack 1
        > . 1:1(0) ack 1001 <sack 1:1001>
        < . 2001:3001(1000) ack 1
        > . 1:1(0) ack 1001 <sack 2001:3001>
        < . 2001:3001(1000) ack 1
        > . 1:1(0) ack 1001 <sack 2001:3001,sack 2001:3001>
        ? duplicate_segments 2",
    );
    open(&Config { duplicate_reports: false, ..plain() }, 1000).run(
        "< . 1:1001(1000) ack 1
        < . 1:1001(1000) ack 1
        > . 1:1(0) ack 1001",
    );
}

#[test]
fn a_segment_that_fills_a_gap_may_contain_what_has_arrived() {
    // RFC 2883 §4: the first range that has arrived before, also if it is in the middle.
    open(&plain(), 1000).run(
        "< . 1001:2001(1000) ack 1
        > . 1:1(0) ack 1 <sack 1001:2001>
        < . 3001:4001(1000) ack 1
        > . 1:1(0) ack 1 <sack 3001:4001,sack 1001:2001>
        < . 6001:7001(1000) ack 1
        > . 1:1(0) ack 1 <sack 6001:7001,sack 3001:4001,sack 1001:2001>
        < . 1:5001(5000) ack 1
        > . 1:1(0) ack 5001 <sack 1001:2001,sack 6001:7001>
        < . 5001:6501(1500) ack 1
        > . 1:1(0) ack 7001 <sack 6001:6501>",
    );
}

#[test]
fn the_window_closes_and_opens_with_what_is_read() {
    let mut config = plain();
    config.receive_buffer.initial = Bytes::new(4000);
    config.receive_buffer.maximum = Bytes::new(4000);
    open(&config, 1000).run(
        "< . 1:1001(1000) ack 1
        < . 1001:2001(1000) ack 1
        > . 1:1(0) ack 2001 win 2000
        < . 2001:3001(1000) ack 1
        < . 3001:4001(1000) ack 1
        > . 1:1(0) ack 4001 win 0
        // Data beyond the window is not accepted.
        < . 4001:5001(1000) ack 1
        > . 1:1(0) ack 4001 win 0
        ? readable 4000
        ! read 900
        > -
        ! read 100
        > . 1:1(0) ack 4001 win 1000
        ! read 3000
        > . 1:1(0) ack 4001 win 4000",
    );
}

#[test]
fn the_window_moves_by_segments_as_they_come() {
    let mut config = Config { timestamps: true, ..plain() };
    config.receive_buffer.initial = Bytes::new(2000);
    config.receive_buffer.maximum = Bytes::new(2000);
    let mut script = Script::connect(&config);
    // Twelve bytes of each segment are timestamps: reading one frees space for another, though not
    // for 1000 bytes.
    script.run(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 win 1000 <mss 1000,sackOK,ts 5:0>
        > . 1:1(0) ack 1
        < . 1:989(988) ack 1 <ts 6:0>
        ! read 988
        +0.2 > . 1:1(0) ack 989 win 2000",
    );
}

#[test]
fn a_segment_beyond_the_window_is_cut() {
    let mut config = plain();
    config.receive_buffer.initial = Bytes::new(1500);
    config.receive_buffer.maximum = Bytes::new(1500);
    open(&config, 1000).run(
        "< . 1:1001(1000) ack 1
        < . 1001:2001(1000) ack 1
        > . 1:1(0) ack 1501 win 0
        ? readable 1500",
    );
}

#[test]
fn a_limit_on_the_window_is_in_segments() {
    let config = Config { window_limit: Limit::at_most(2), ..cumulative() };
    open(&config, 60_000).run(
        "! write 5000
        > . 1:1001(1000) ack 1
        > . 1001:2001(1000) ack 1
        > -
        +0.1 < . 1:1(0) ack 1001
        > . 2001:3001(1000) ack 1
        > -",
    );
}

#[test]
fn idle_restart_reduces_the_congestion_window() {
    let mut config = cumulative();
    config.initial_window = airpath_tcp::InitialWindow::Segments(1);
    config.idle_restart = airpath_tcp::IdleRestart::Rfc5681;
    open(&config, 60_000).run(
        "! write 3000
        > . 1:1001(1000) ack 1
        +0.1 < . 1:1(0) ack 1001
        > . 1001:2001(1000) ack 1
        > . 2001:3001(1000) ack 1
        +0.1 < . 1:1(0) ack 3001
        // RFC 5681 §4.1: after one timeout, 1 s, the window is the initial one.
        +1.1 ! write 3000
        > . 3001:4001(1000) ack 1
        > -",
    );
}

/// A window of eight segments after three round trips, all of it used.
fn grown(config: &Config) -> Script {
    let mut script = open(config, 60_000);
    script.run(
        "! write 7000
        > . 1:1001(1000) ack 1
        +0.1 < . 1:1(0) ack 1001
        > . 1001:2001(1000) ack 1
        > . 2001:3001(1000) ack 1
        +0.1 < . 1:1(0) ack 3001
        > . 3001:4001(1000) ack 1
        > . 4001:5001(1000) ack 1
        > . 5001:6001(1000) ack 1
        > P. 6001:7001(1000) ack 1
        +0.1 < . 1:1(0) ack 7001",
    );
    assert_eq!(window(&script), 8);
    script
}

/// The congestion window, in segments.
fn window(script: &Script) -> u64 {
    script.connection.info().congestion_window
}

fn validating() -> Config {
    Config {
        initial_window: airpath_tcp::InitialWindow::Segments(1),
        idle_restart: airpath_tcp::IdleRestart::Rfc2861,
        window_validation: true,
        ..cumulative()
    }
}

#[test]
fn each_timeout_of_an_idle_time_halves_the_window() {
    // The timer is at its least, 1 s.
    for (idle, window) in [("0.9", 8), ("1.5", 4), ("2.5", 2), ("9", 1)] {
        let mut script = grown(&validating());
        script.run(&format!("+{idle} ! write 1000\n> P. 7001:8001(1000) ack 1"));
        assert_eq!(self::window(&script), window, "after {idle} s");
    }
}

#[test]
fn an_application_that_uses_less_moves_the_window_towards_what_it_uses() {
    let mut script = grown(&validating());
    // Two segments every 600 ms, so no idle time of a timeout.
    let mut end = 7001;
    let mut windows = Vec::new();
    for _ in 0..4 {
        let (middle, last) = (end + 1000, end + 2000);
        script.run(&format!(
            "+0.5 ! write 2000
            > . {end}:{middle}(1000) ack 1
            > P. {middle}:{last}(1000) ack 1
            > -",
        ));
        windows.push(window(&script));
        script.run(&format!("+0.1 < . 1:1(0) ack {last}"));
        end = last;
    }
    // (8 + 2) / 2 after a second, and (5 + 2) / 2 after another, in whole segments.
    assert_eq!(windows, [8, 5, 5, 3]);
}

#[test]
fn pacing_spreads_a_window_over_the_round_trip() {
    let config = Config { pacing: true, ..cumulative() };
    let mut script = open(&config, 60_000);
    script.run("! write 30000");
    // As in Linux, the first ten segments are not paced.
    for start in (1..10_000).step_by(1000) {
        script.run(&format!("> . {start}:{}(1000) ack 1", start + 1000));
    }
    script.run(
        "+0.1 < . 1:1(0) ack 2001
        > . 10001:11001(1000) ack 1
        > . 11001:12001(1000) ack 1
        > -",
    );
    // Twelve segments in half of the round trip of 100 ms, two at a time: slow start sends at twice
    // the rate. These two were late, so half of their gap is left.
    let gap = script.connection.next_wakeup().map(|at| at.since(script.now).as_nanos() / 1000);
    assert_eq!(gap, Some(4_166));
    script.run(
        "+0.004166667 > . 12001:13001(1000) ack 1
        > . 13001:14001(1000) ack 1
        > -",
    );
}

#[test]
fn paws_rejects_old_timestamps() {
    let config = Config { timestamps: true, ..plain() };
    let mut script = Script::connect(&config);
    script.run(
        "> S 0:0(0) <ts 0:0>
        +0.1 < S 0:0(0) ack 1 <mss 1000,sackOK,ts 500:0>
        > . 1:1(0) ack 1 <ts 100:500>
        < . 1:501(500) ack 1 <ts 510:100>
        +0.2 > . 1:1(0) ack 501 <ts 300:510>
        // RFC 7323 §5: in the window, but older than the last.
        < . 501:1001(500) ack 1 <ts 400:100>
        > . 1:1(0) ack 501
        ? received 500",
    );
}

#[test]
fn paws_accepts_any_timestamp_after_24_days_without_one() {
    let config = Config { timestamps: true, ..plain() };
    let run = |rest: &str| {
        let mut script = Script::connect(&config);
        script.run(
            "> S 0:0(0) <ts 0:0>
            +0.1 < S 0:0(0) ack 1 <mss 1000,sackOK,ts 500:0>
            > . 1:1(0) ack 1 <ts 100:500>
            < . 1:501(500) ack 1 <ts 510:100>
            +0.2 > . 1:1(0) ack 501",
        );
        script.run(rest);
    };
    // RFC 7323 §5.5: the clock of the peer, of 1 ms, has passed half of its range ...
    run("+2200000 < . 501:1001(500) ack 1 <ts 2200000710:100>\n? received 1000");
    // ... as here, but the last timestamp is younger than 24 days.
    run("+2000000 < . 501:1001(500) ack 1 <ts 2200000710:100>\n? received 500");
}

#[test]
fn paws_accepts_equal_timestamps_and_resets() {
    let config = Config { timestamps: true, ..plain() };
    let run = |rest: &str| {
        let mut script = Script::connect(&config);
        script.run(
            "> S 0:0(0) <ts 0:0>
            +0.1 < S 0:0(0) ack 1 <mss 1000,sackOK,ts 500:0>
            > . 1:1(0) ack 1 <ts 100:500>
            ! write 100
            > . 1:101(100) ack 1",
        );
        script.run(rest);
    };
    // Several segments are sent in one tick of the clock.
    run("< . 1:501(500) ack 1 <ts 500:100>\n? received 500");
    // RFC 7323 §5.3: an old segment without payload is dropped without an answer ...
    run("< . 1:1(0) ack 101 <ts 499:100>\n? acknowledged 0\n> -");
    // ... and a reset is never dropped for its timestamp.
    run("< R 1:1(0) ack 1 <ts 499:100>\n? state Closed");
}

#[test]
fn the_echoed_timestamp_is_that_of_the_segment_that_is_acknowledged() {
    // RFC 7323 §4.3: with a delayed acknowledgement the earliest, and with a gap the last before
    // it.
    let config = Config { timestamps: true, ..plain() };
    let mut script = Script::connect(&config);
    script.run(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 <mss 1000,sackOK,ts 500:0>
        > . 1:1(0) ack 1 <ts 100:500>
        < . 1:501(500) ack 1 <ts 510:100>
        < . 501:1001(500) ack 1 <ts 520:100>
        > . 1:1(0) ack 1001 <ts 100:510>
        < . 1501:2001(500) ack 1 <ts 530:100>
        > . 1:1(0) ack 1001 <ts 100:510,sack 1501:2001>
        < . 1001:1501(500) ack 1 <ts 540:100>
        > . 1:1(0) ack 2001 <ts 100:540>",
    );
}

#[test]
fn a_header_has_space_for_four_blocks_or_three_beside_timestamps() {
    let gaps = |stamp: &str| {
        [2001, 4001, 6001, 8001].map(|start: u32| format!("< . {start}:{}(500) ack 1 {stamp}", start + 500))
    };
    let mut script = open(&plain(), 10_000);
    for (line, blocks) in gaps("").into_iter().zip([
        "sack 2001:2501",
        "sack 4001:4501,sack 2001:2501",
        "sack 6001:6501,sack 4001:4501,sack 2001:2501",
        "sack 8001:8501,sack 6001:6501,sack 4001:4501,sack 2001:2501",
    ]) {
        script.run(&format!("{line}\n> . 1:1(0) ack 1 <{blocks}>"));
    }
    let mut script = Script::connect(&Config { timestamps: true, ..plain() });
    script.run(
        "> S 0:0(0)
        +0.1 < S 0:0(0) ack 1 win 10000 <mss 1000,sackOK,ts 5:0>
        > . 1:1(0) ack 1",
    );
    for (line, blocks) in gaps("<ts 6:100>").into_iter().zip([
        "sack 2001:2501",
        "sack 4001:4501,sack 2001:2501",
        "sack 6001:6501,sack 4001:4501,sack 2001:2501",
        "sack 8001:8501,sack 6001:6501,sack 4001:4501",
    ]) {
        script.run(&format!("{line}\n> . 1:1(0) ack 1 <{blocks}>"));
    }
}

#[test]
fn data_carries_the_blocks_that_it_has_space_for() {
    // A block takes eight bytes, and the option four more.
    let blocks = |bytes: u32, blocks: &str| {
        let mut config = plain();
        config.nagle = Nagle::Off;
        open(&config, 10_000).run(&format!(
            "< . 2001:2501(500) ack 1
            > . 1:1(0) ack 1 <sack 2001:2501>
            < . 4001:4501(500) ack 1
            > . 1:1(0) ack 1 <sack 4001:4501,sack 2001:2501>
            ! write {bytes}
            > . 1:{}({bytes}) ack 1 {blocks}",
            bytes + 1
        ));
    };
    blocks(980, "<sack 4001:4501,sack 2001:2501>");
    blocks(981, "<sack 4001:4501>");
    blocks(988, "<sack 4001:4501>");
    blocks(989, "");
}

#[test]
fn an_idle_time_of_one_timeout_does_not_restart() {
    // RFC 5681 §4.1: an interval that exceeds the timeout, 1 s, without transmission.
    let window = |idle: &str| {
        let mut config = cumulative();
        config.initial_window = airpath_tcp::InitialWindow::Segments(1);
        let mut script = open(&config, 60_000);
        script.run(&format!(
            "! write 1000
            > . 1:1001(1000) ack 1
            +0.1 < . 1:1(0) ack 1001
            +{idle} ! write 3000
            > . 1001:2001(1000) ack 1"
        ));
        script
    };
    window("0.9").run("> . 2001:3001(1000) ack 1\n> -");
    window("0.901").run("> -");
}

#[test]
fn half_of_the_largest_window_is_not_silly() {
    // RFC 9293 §3.8.6.2.1 (3): at least half of the largest window that the peer ever offered.
    let script = |window: u32| {
        let mut script = open(&plain(), 1200);
        script.run(&format!(
            "! write 9000
            > . 1:1001(1000) ack 1
            +0.1 < . 1:1(0) ack 1001 win {window}"
        ));
        script
    };
    script(600).run("> . 1001:1601(600) ack 1");
    script(599).run("> -\n+1 > . 1001:1600(599) ack 1");
}

#[test]
fn the_newest_segment_sets_the_window() {
    // RFC 9293 §3.10.7.4: a higher sequence number, or the same one with a larger window.
    let mut config = plain();
    config.delayed_ack.every = 10;
    open(&config, 1000).run(
        "! write 9000
        > . 1:1001(1000) ack 1
        < . 1:101(100) ack 1001 win 1000
        > . 1001:2001(1000) ack 101
        < . 101:201(100) ack 1001 win 1000
        < . 201:301(100) ack 1001 win 1000
        // This one was overtaken by the last.
        < . 101:101(0) ack 1001 win 5000
        > -
        < . 301:301(0) ack 1001 win 2000
        > . 2001:3001(1000) ack 301
        < . 301:301(0) ack 1001 win 3000
        > . 3001:4001(1000) ack 301
        > -",
    );
}

#[test]
fn a_window_that_is_used_by_more_than_half_grows_in_slow_start_only() {
    // tcp_is_cwnd_limited of Linux; RFC 9293 §3.8.2 in congestion avoidance.
    let window = |threshold: u32, segments: u32| {
        let initial_slow_start_threshold = Limit::at_most(threshold);
        let mut script =
            open(&Config { window_validation: true, initial_slow_start_threshold, ..cumulative() }, 60_000);
        for round in 1..=20 {
            script.run(&format!("! write {}", 1000 * segments));
            assert_eq!(script.take(), segments as usize);
            script.run(&format!("+0.1 < . 1:1(0) ack {}", 1 + 1000 * segments * round));
        }
        script.run("! write 60000");
        script.take()
    };
    assert_eq!(window(30, 4), 10, "less than half of ten segments");
    assert_eq!(window(11, 5), 10, "ten are twice five");
    assert_eq!(window(11, 6), 11);
    assert_eq!(window(10, 5), 10, "slow start is over");
    assert_eq!(window(10, 9), 10);
}
