//! Captures as the tools of others read them: tshark and tcptrace, where they are installed.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use airpath_capture::simulated::{Capture, Envelope, Ports};
use airpath_capture::write::{CapturedPacket, Interface, Writer};
use airpath_core::{Ecn, Instant};
use airpath_wire::icmp::IcmpEcho;
use airpath_wire::tcp::{Flags, Options, TcpHeader, Timestamps};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);
const PAYLOAD: u32 = 1448;

#[test]
fn tshark_reads_every_field() {
    let path = transfer("tshark.pcapng");
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "frame.cap_len",
        "ip.src",
        "ip.dsfield.ecn",
        "tcp.seq",
        "tcp.len",
        "tcp.ack",
        "tcp.options.sack_le",
        "tcp.options.timestamp.tsval",
    ];
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    // The header's checksum of IPv4 can be verified without the payload.
    arguments.extend(["-e", "ip.checksum.status", "-o", "ip.check_checksum:TRUE"]);
    let Some(text) = tshark(&path, &arguments) else { return };
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "1000000000.000000000|server|60|60|10.128.0.1|0|0|0|0||1|1");
    assert_eq!(
        lines[3], "1000000000.200000001|server|1500|52|10.0.0.1|2|1|1448|1||200|1",
        "a data segment, to the nanosecond"
    );
    assert_eq!(lines[6], "1000000000.300000000|server|64|64|10.128.0.1|0|1|0|1449|2897|300|1", "an ACK with a block");
    assert_eq!(lines.len(), 12);
}

#[test]
fn tshark_follows_the_connection() {
    let path = transfer("analysis.pcapng");
    let problems = "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || tcp.analysis.out_of_order \
                    || _ws.malformed || _ws.expert.severity >= error";
    let Some(text) = tshark(&path, &["-Y", problems]) else { return };
    assert_eq!(text, "", "tshark finds fault with these packets");
    let retransmissions = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission";
    let text = tshark(&path, &["-Y", retransmissions, "-T", "fields", "-e", "tcp.seq"]).expect("it was there just now");
    assert_eq!(text.trim(), "1449");
}

#[test]
fn tshark_verifies_checksums_over_zeros() {
    // Without payload the whole packet is in the file, and tshark verifies what a receiver would.
    let path = file("checksums.pcapng");
    let mut capture = create(&path);
    let ports = Ports { source: 40_000, destination: 5001 };
    capture.tcp(down(1), &header(0, 0, Flags::SYN), 0).expect("the file can be written");
    capture.udp(down(2), ports, &[], 0).expect("the file can be written");
    capture.udp(down(3), ports, &[], 1000).expect("the file can be written");
    capture
        .icmp_echo(up(4), IcmpEcho { reply: false, identifier: 7, sequence: 1 }, 0)
        .expect("the file can be written");
    capture
        .icmp_echo(down(5), IcmpEcho { reply: true, identifier: 7, sequence: 1 }, 0)
        .expect("the file can be written");
    capture.finish().expect("the file can be written");
    let fields = ["tcp.checksum.status", "udp.checksum.status", "udp.length", "icmp.checksum.status", "icmp.resptime"];
    let mut arguments =
        vec!["-T", "fields", "-E", "separator=|", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let Some(text) = tshark(&path, &arguments) else { return };
    // Status 1 is good, 2 is not verified: the payload is not in the file.
    assert_eq!(text.lines().collect::<Vec<_>>(), ["1||||", "|1|8||", "|2|1008||", "|||1|", "|||1|1e-06"]);
}

#[test]
fn tshark_reads_comments_and_interfaces() {
    let path = file("comments.pcapng");
    let mut writer =
        Writer::new(File::create(&path).expect("the folder is there"), "").expect("the file can be written");
    let texts = [("server", "the fixed end"), ("mobile", "")];
    let [server, mobile] = texts.map(|(name, description)| {
        writer.add_interface(Interface { name, description }).expect("the file can be written")
    });
    let mut header = [0; 20];
    header[0] = 0x45;
    header[3] = 20;
    let packet = CapturedPacket { timestamp: 5_000_000_001, bytes: &header, original_length: 20, comment: "" };
    for (interface, comment) in [(mobile, "the first"), (server, "")] {
        writer.packet(interface, CapturedPacket { comment, ..packet }).expect("the file can be written");
    }
    writer.finish().expect("the file can be written");
    let fields = ["frame.time_epoch", "frame.interface_name", "frame.interface_description", "frame.comment"];
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let Some(text) = tshark(&path, &arguments) else { return };
    let expected = ["5.000000001|mobile||the first", "5.000000001|server|the fixed end|"];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn tcptrace_agrees() {
    let path = transfer("tcptrace.pcapng");
    let Some(text) = output("tcptrace", &["-l", "-r", "-n", "--csv", path.to_str().expect("the path is text")]) else {
        return;
    };
    // Comments begin with `#`; then come the names, then one connection.
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split(',').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 2, "the names and one connection");
    let field = |name: &str| rows[1][rows[0].iter().position(|column| *column == name).expect(name)];
    let expected = [
        ("host_a", "10.128.0.1"),
        ("host_b", "10.0.0.1"),
        ("total_packets_a2b", "5"),
        ("total_packets_b2a", "7"),
        ("sack_pkts_sent_a2b", "1"),
        ("unique_bytes_sent_b2a", "5792"),
        ("actual_data_pkts_b2a", "5"),
        ("actual_data_bytes_b2a", "7240"),
        ("rexmt_data_pkts_b2a", "1"),
        ("rexmt_data_bytes_b2a", "1448"),
        ("SYN/FIN_pkts_sent_b2a", "1/1"),
        ("req_sack_a2b", "Y"),
        ("adv_wind_scale_b2a", "7"),
        ("mss_requested_b2a", "1460"),
        ("max_win_adv_a2b", "8388480"),
        ("ttl_stream_length_b2a", "5792"),
        ("data_xmit_time_b2a", "0.300"),
        // The SYN, the first and the last segment: what was sent twice measures nothing.
        ("RTT_samples_a2b", "2"),
        ("RTT_samples_b2a", "3"),
        ("RTT_max_b2a", "100.0"),
    ];
    for (name, value) in expected {
        assert_eq!(field(name), value, "{name}");
    }
    assert!(text.contains("#trace file elapsed time: 0:00:00.600000"), "the first packet's time is not lost");
}

#[test]
fn a_killed_run_leaves_a_readable_file() {
    let path = file("killed.pcapng");
    let mut capture = create(&path);
    for sequence in 0..2000u32 {
        capture
            .tcp(down(sequence.into()), &header(sequence * PAYLOAD, 0, Flags::ACK), PAYLOAD)
            .expect("the file can be written");
    }
    // As after a killed run: the writer neither finishes nor is dropped.
    std::mem::forget(capture);
    let Some(text) = tshark(&path, &["-T", "fields", "-e", "tcp.seq_raw"]) else { return };
    let sequences: Vec<u32> = text.lines().map(|line| line.parse().expect("a number")).collect();
    let expected: Vec<u32> = (0..sequences.len() as u32).map(|number| number * PAYLOAD).collect();
    assert_eq!(sequences, expected);
    assert!(sequences.len() > 1000, "only {} of 2000 packets were written", sequences.len());
}

/// A short download at the server: handshake, four segments with the second lost and retransmitted,
/// FINs.
fn transfer(name: &str) -> PathBuf {
    let path = file(name);
    let mut capture = create(&path);
    let ack = Flags::ACK;
    let syn = |timestamp, echo| Options {
        maximum_segment_size: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: timestamp, echo }),
        ..Options::default()
    };
    let from_mobile = |header: TcpHeader| TcpHeader { source_port: 40_000, destination_port: 80, ..header };
    let mut packet =
        |envelope, header: TcpHeader, length| capture.tcp(envelope, &header, length).expect("the file can be written");
    let connect = from_mobile(header(0, 0, Flags::SYN));
    packet(up(0), TcpHeader { options: syn(1, 1), ..connect }, 0);
    packet(down(1_000), TcpHeader { options: syn(100, 1), ..header(0, 1, Flags::SYN | ack) }, 0);
    let acknowledge = |millis: u32, acknowledgment, sacked: Option<(u32, u32)>| {
        let mut header = from_mobile(header(1, acknowledgment, ack));
        header.options.timestamps = Some(Timestamps { value: millis, echo: 1 });
        sacked.into_iter().for_each(|(start, end)| assert!(header.options.sack.push(start, end)));
        header
    };
    let data = |number: u32, flags| {
        let mut header = header(1 + number * PAYLOAD, 1, ack | flags);
        header.options.timestamps = Some(Timestamps { value: 200, echo: 1 });
        header
    };
    packet(up(100_000_000), acknowledge(100, 1, None), 0);
    packet(Envelope { ecn: Ecn::Ect0, ..down(200_000_001) }, data(0, Flags::default()), PAYLOAD);
    packet(down(201_000_000), data(1, Flags::default()), PAYLOAD);
    packet(down(202_000_000), data(2, Flags::default()), PAYLOAD);
    packet(up(300_000_000), acknowledge(300, 1 + PAYLOAD, Some((1 + 2 * PAYLOAD, 1 + 3 * PAYLOAD))), 0);
    packet(down(400_000_000), data(1, Flags::default()), PAYLOAD);
    packet(up(500_000_000), acknowledge(500, 1 + 3 * PAYLOAD, None), 0);
    packet(down(500_000_500), data(3, Flags::PSH | Flags::FIN), PAYLOAD);
    let mut last = acknowledge(600, 2 + 4 * PAYLOAD, None);
    last.flags |= Flags::FIN;
    packet(up(600_000_000), last, 0);
    packet(down(600_000_001), TcpHeader { acknowledgment: 2, ..header(2 + 4 * PAYLOAD, 2, ack) }, 0);
    capture.finish().expect("the file can be written");
    path
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn create(path: &Path) -> Capture<File> {
    let interface = Interface { name: "server", description: "the fixed end" };
    Capture::create(File::create(path).expect("the folder is there"), "a test", interface)
        .expect("the file can be written")
}

fn down(nanos: u64) -> Envelope {
    Envelope {
        time: Instant::from_nanos(nanos),
        source: SERVER,
        destination: MOBILE,
        ecn: Ecn::NotEct,
        identification: 0,
    }
}

fn up(nanos: u64) -> Envelope {
    Envelope { source: MOBILE, destination: SERVER, ..down(nanos) }
}

fn header(sequence: u32, acknowledgment: u32, flags: Flags) -> TcpHeader {
    let (source_port, destination_port) = (80, 40_000);
    let header = TcpHeader { source_port, destination_port, window: 65_535, ..TcpHeader::default() };
    TcpHeader { sequence, acknowledgment, flags, ..header }
}

fn tshark(path: &Path, arguments: &[&str]) -> Option<String> {
    let path = path.to_str().expect("the path is text");
    output("tshark", &[&["-n", "-r", path], arguments].concat())
}

/// The output of a tool; `None`, with a report, if it is not installed.
fn output(tool: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(tool).args(arguments).output() {
        Ok(output) => {
            assert!(output.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            airpath_testing::skip("program", &format!("{tool}: {error} (as root: apt-get install {tool})"));
            None
        }
    }
}
