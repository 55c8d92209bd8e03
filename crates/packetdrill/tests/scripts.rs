//! Scripts of this repository, and the results and messages of others.

use std::path::{Path, PathBuf};
use std::process::Command;

use airpath_packetdrill::{Outcome, run_file, run_text};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// A connection that a listening socket has accepted, with segments of 1000 bytes.
const OPEN: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 30000 <mss 1000,sackOK,nop,wscale 6>
   +0 > S. 0:0(0) ack 1 <...>
  +.1 < . 1:1(0) ack 1 win 2000
   +0 accept(3, ..., ...) = 4
";

/// The result of `lines` after [`OPEN`], with the line counted in `lines`.
fn result(lines: &str) -> String {
    let text = format!("{OPEN}{lines}");
    let before = OPEN.lines().count() as u32;
    match run_text(&text, None) {
        Outcome::Passed => "pass".into(),
        Outcome::Failed(finding) => format!("fail {}: {}", finding.line - before, finding.what),
        Outcome::NotApplicable(finding) => format!("not applicable {}: {}", finding.line - before, finding.what),
        Outcome::Invalid(error) => format!("invalid {}:{}: {}", error.at.line - before, error.at.column, error.problem),
    }
}

#[test]
fn the_scripts_of_this_repository_pass() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).expect("the folder exists") {
        let path = entry.expect("it is readable").path();
        assert_eq!(run_file(&path).expect("it is readable"), Outcome::Passed, "{}", path.display());
        count += 1;
    }
    assert!(count >= 3);
}

#[test]
fn a_file_that_is_not_utf_8_is_invalid_at_its_place() {
    let path = std::env::temp_dir().join(format!("packetdrill-{}.pkt", std::process::id()));
    std::fs::write(&path, b"0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n// \xff\n").expect("it is writable");
    let outcome = run_file(&path).expect("it is readable");
    std::fs::remove_file(&path).expect("it exists");
    let Outcome::Invalid(error) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.to_string(), "2:4: this is not UTF-8");
}

#[test]
fn differences_fail_with_the_line_and_both_sides() {
    assert_eq!(
        result("+0 write(4, ..., 1000) = 1000\n+0 > . 1:1002(1001) ack 1"),
        "fail 2: nothing is sent after 1000 bytes of it until 0.104000 s, expected . 1:1002(1001) ack 1"
    );
    assert_eq!(
        result("+0 write(4, ..., 1000) = 1000\n+0 > . 2:1002(1000) ack 1"),
        "fail 2: the sequence number differs: sent P. 1:1001(1000) ack 1 win 511, expected . 2:1002(1000) ack 1"
            .replace("511", "1003")
    );
    assert_eq!(
        result("+0 write(4, ..., 1000) = 1000\n+.1 > . 1:1001(1000) ack 1"),
        "fail 2: sent at 0.100000 s, expected at 0.200000 s: P. 1:1001(1000) ack 1 win 1003"
    );
    assert_eq!(
        result("+0 %{ \nassert tcpi_snd_cwnd > 10, 'window %d' % tcpi_snd_cwnd }%"),
        "fail 2: assert tcpi_snd_cwnd > 10: window 10"
    );
    assert_eq!(result("+0 read(4, ..., 10) = 10"), "fail 1: read returns -1 EAGAIN");
    assert_eq!(result("+0 read(7, ..., 10) = 10"), "fail 1: read: there is no socket 7");
    assert_eq!(result("+0...1 read(4, ..., 10) = 10\n+0 close(4) = 0"), "fail 2: the call of line 8 still blocks");
}

#[test]
fn what_the_end_point_lacks_is_not_applicable() {
    for (line, reason) in [
        ("+0 epoll_create(1) = 5", "the call epoll_create"),
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "the option TCP_CORK of a socket"),
        ("+0 sendto(4, ..., 10, MSG_FASTOPEN, ..., ...) = 10", "flags of the call sendto"),
        ("+0 < icmp unreachable host_unreachable [1:1(0)]", "packets of icmp"),
        ("+0 > . 1:1(0) ack 1 <FO aabb,nop>", "TCP Fast Open"),
        ("+0 %{ assert tcpi_busy_time > 5 }%", "the field tcpi_busy_time"),
        ("+0 %{ import os }%", "the statement `import` of Python"),
        ("+0 `ip link set tun0 down`", "the command `ip link set tun0 down` within a script"),
        ("+0...1 write(4, ..., 10) = 10", "a write that blocks: this end point has no limit of its send buffer"),
        ("+0...0.1 close(4) = 0", "a call of close that blocks"),
        ("+0 %{ assert tcpi_options & TCPI_OPT_ECN_SEEN }%", "the field TCPI_OPT_ECN_SEEN"),
        ("+0 %{ x = 'abc' }%", "a variable with `abc`, which is not a number"),
        ("+0 write(4, ..., 10) = 5", "a write is cut: this end point has no limit of its send buffer"),
    ] {
        assert_eq!(result(line), format!("not applicable 1: {reason}"), "{line}");
    }
}

#[test]
fn the_tolerance_grows_with_the_time_since_the_last_event() {
    // The first time-out is 300 ms after the data: three times the round trip of 100 ms.
    let lines = |expected: &str| format!("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n{expected}");
    let sent = |time: &str| result(&lines(&format!("+{time} > P. 1:1001(1000) ack 1")));
    let exact = sent("5");
    assert!(exact.contains("sent at 0."), "{exact}");
    let at: f64 = exact.split("sent at ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    let wait = at - 0.1;
    // 12.5 % of the expected time, or --tolerance_percent of it.
    assert_eq!(sent(&format!("{:.6}", wait / 0.88)), "pass");
    assert!(sent(&format!("{:.6}", wait / 0.87)).starts_with("fail 3: sent at"));
    let strict =
        format!("--tolerance_percent=0\n{OPEN}{}", lines(&format!("+{:.6} > P. 1:1001(1000) ack 1", wait / 0.9)));
    assert!(matches!(run_text(&strict, None), Outcome::Failed(_)));
}

#[test]
fn times_do_not_go_back() {
    assert_eq!(
        result("1 write(4, ..., 10) = 10\n.5 write(4, ..., 10) = 10"),
        "invalid 2:1: 0.5 s is before the last event, 1 s"
    );
    let Outcome::Invalid(error) = run_text("1 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", None) else { panic!() };
    assert_eq!(error.to_string(), "1:1: the first event is at time 0");
}

#[test]
fn the_largest_packet_sets_the_segments() {
    for (options, size) in
        [("", 1460), ("--mtu=1520", 1480), ("--ip_version=ipv6", 1440), ("--mtu=1520\n--ip_version=ipv6", 1460)]
    {
        let text = format!(
            "{options}\n0 socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3
            +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
            +0 > S 0:0(0) <mss {size},sackOK,TS val 0 ecr 0,nop,wscale 6>"
        );
        assert_eq!(run_text(&text, None), Outcome::Passed, "{options}");
    }
}

#[test]
fn fields_of_tcp_info_are_those_of_linux() {
    // The server without timestamps: the option of the SYN-ACK, and no byte acknowledged.
    assert_eq!(result("+0 %{ assert tcpi_advmss == 1460 and tcpi_bytes_acked == 0, tcpi_bytes_acked }%"), "pass");
    // A client counts its SYN, and each segment has 12 bytes of timestamps.
    let text = "0 socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3
        +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
        +0 > S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 6>
       +.1 < S. 0:0(0) ack 1 win 30000 <mss 1460,sackOK,TS val 700 ecr 100,nop,wscale 6>
        +0 > . 1:1(0) ack 1 <...>
        +0 %{ assert tcpi_advmss == 1448, tcpi_advmss; assert tcpi_bytes_acked == 1, tcpi_bytes_acked }%
        +0 write(3, ..., 100) = 100
        +0 > P. 1:101(100) ack 1 <...>
       +.1 < . 1:1(0) ack 101 win 2000 <nop,nop,TS val 800 ecr 200>
        +0 shutdown(3, SHUT_WR) = 0
        +0 > F. 101:101(0) ack 1 <...>
       +.1 < . 1:1(0) ack 102 win 2000 <nop,nop,TS val 900 ecr 300>
        +0 %{ assert tcpi_bytes_acked == 102, tcpi_bytes_acked }%";
    assert_eq!(run_text(text, None), Outcome::Passed);
}

#[test]
fn a_setting_before_the_connection_is_that_of_the_connection() {
    let script = |command: &str| {
        let text = format!(
            "`sysctl -q net.ipv4.tcp_ecn=3 net.ipv4.tcp_ecn_option=2`
            0 socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3
            {command}
            +0 bind(3, ..., ...) = 0
            +0 listen(3, 1) = 0
            +0 < [noecn] SEWA 0:0(0) win 32792 <mss 1060,sackOK,nop,wscale 8>
            +0 > [noecn] SW. 0:0(0) ack 1 <mss 1460,ECN e1b 1 ceb 0 e0b 1,nop,nop,nop,sackOK,nop,wscale 6>"
        );
        run_text(&text, None)
    };
    assert_eq!(script(""), Outcome::Passed);
    let without = script("+0 `sysctl -q net.ipv4.tcp_ecn_option=0`");
    assert!(matches!(&without, Outcome::Failed(finding) if finding.what.starts_with("options differ")), "{without:?}");
}

#[test]
fn the_receive_buffer_of_a_socket_sets_the_window() {
    // Half of what the kernel allocates, in whole segments; the shift is that of all of it.
    for (bytes, answer) in
        [(20_000, "win 18980 <mss 1460,nop,wscale 0>"), (1_000_000, "win 65535 <mss 1460,nop,wscale 4>")]
    {
        let text = format!(
            "--mss=1000\n0 socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3
            +0 setsockopt(3, SOL_SOCKET, SO_RCVBUF, [{bytes}], 4) = 0
            +0 bind(3, ..., ...) = 0
            +0 listen(3, 1) = 0
            +0 < S 0:0(0) win 30000 <mss 1000,nop,wscale 6>
            +0 > S. 0:0(0) ack 1 {answer}"
        );
        assert_eq!(run_text(&text, None), Outcome::Passed, "{bytes}");
    }
    assert_eq!(
        result("+0 setsockopt(4, SOL_SOCKET, SO_RCVBUF, [9000], 4) = 0"),
        "not applicable 1: SO_RCVBUF of an open connection: its window does not shrink"
    );
}

#[test]
fn calls_with_a_null_pointer_and_sendfile() {
    assert_eq!(
        result(
            "+0 write(4, NULL, 1000) = -1 EFAULT (Bad address)
            +0 read(4, NULL, 1000) = -1 EAGAIN
            +0 < . 1:1001(1000) ack 1 win 2000
            +0 > . 1:1(0) ack 1001
            +0 recv(4, NULL, 1000, 0) = -1 EFAULT (Bad address)
            +0 open(\"/tmp/file\", O_RDONLY) = 5
            +0 sendfile(4, 5, [0], 700) = 700
            +0 > P. 1:701(700) ack 1001"
        ),
        "pass"
    );
}

#[test]
fn options_of_sockets_have_the_limits_of_linux() {
    let set = |option: &str, value: i64, result: &str| {
        run_text(
            &format!(
                "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
                +0 setsockopt(3, SOL_SOCKET, SO_RCVBUF, [9223372036854775807], 4) = 0
                +0 setsockopt(3, SOL_TCP, {option}, [{value}], 4) = {result}
                +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
                +0 > S 0:0(0) <...>"
            ),
            None,
        )
    };
    for (option, values) in [
        (
            "TCP_MAXSEG",
            [(0, "0"), (87, "-1 EINVAL"), (88, "0"), (32_767, "0"), (32_768, "-1 EINVAL"), (-1, "-1 EINVAL")],
        ),
        ("TCP_SYNCNT", [(0, "-1 EINVAL"), (1, "0"), (127, "0"), (128, "-1 EINVAL"), (1 << 40, "-1 EINVAL"), (3, "0")]),
    ] {
        for (value, result) in values {
            assert_eq!(set(option, value, result), Outcome::Passed, "{option} {value}");
        }
    }
}

#[test]
fn bytes_of_a_call_have_the_limits_of_linux() {
    assert_eq!(
        result(
            "+0 write(4, ..., -1) = -1 EINVAL
            +0 read(4, ..., -1) = -1 EINVAL
            +0 sendfile(4, 5, [0], 9223372036854775807) = 2147479552
            +0 > P. 1:10001(10000) ack 1
            +0 < . 1:1073741825(1073741824) ack 1 win 2000"
        ),
        "pass"
    );
}

#[test]
fn syntax_errors_name_line_and_column() {
    assert_eq!(result("+0 write(4 ..., 10) = 10"), "invalid 1:12: expected `,` or `)`, not `...`");
    assert_eq!(
        result("+0 > . 1:1(0) ack"),
        "invalid 1:18: expected the acknowledgment number, not the end of the script"
    );
    assert_eq!(
        result("+0 %{ assert tcpi_snd_cwnd == }%"),
        "invalid 1:31: expected a number, a name, a string or `(`, not the end"
    );
}

#[test]
fn the_program_lists_scripts_with_their_results() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_packetdrill")).args(arguments).current_dir(folder()).output();
        let output = output.expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, _) = run(&["slow_start.pkt", "client.pkt"]);
    assert_eq!(
        (code, out.as_str()),
        (
            Some(0),
            "pass           slow_start.pkt\npass           client.pkt\n2 pass, 0 fail, 0 not applicable, 0 invalid\n"
        )
    );
    assert_eq!(run(&["--failures", "."]).1.lines().count(), 1);
    let (code, _, message) = run(&["missing.pkt"]);
    assert_eq!(code, Some(2));
    assert!(message.starts_with("packetdrill: missing.pkt: No such file"), "{message}");
    assert_eq!(run(&["--fast"]).0, Some(2));
}
