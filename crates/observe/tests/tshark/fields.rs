//! tshark's fields of each frame.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use airpath_observe::Events;

/// The events that tshark also has: those of `tcp.analysis.*`.
pub fn events() -> &'static [(Events, &'static str)] {
    let own = Events::NAMES.iter().position(|(event, _)| *event == Events::LOST_BEFORE_CAPTURE);
    &Events::NAMES[..own.expect("it is the first event that tshark does not have")]
}

/// tshark's name of an event, below `tcp.analysis`.
fn field(event: &'static str) -> &'static str {
    if event == "acknowledged_retransmission" { "spurious_retransmission" } else { event }
}

/// tshark's values, by our names.
pub const VALUES: [(Value, &str); 9] = [
    (Value::RetransmissionAfter, "rto"),
    (Value::RetransmissionOf, "rto_frame"),
    (Value::Duplicate, "duplicate_ack_num"),
    (Value::DuplicateOf, "duplicate_ack_frame"),
    (Value::SincePush, "push_bytes_sent"),
    (Value::RoundTrip, "ack_rtt"),
    (Value::RoundTripOf, "acks_frame"),
    (Value::Outstanding, "bytes_in_flight"),
    (Value::HandshakeRoundTrip, "initial_rtt"),
];

/// A value of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    RetransmissionAfter,
    RetransmissionOf,
    Duplicate,
    DuplicateOf,
    SincePush,
    RoundTrip,
    RoundTripOf,
    Outstanding,
    HandshakeRoundTrip,
}

/// tshark's fields of a frame.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    pub events: Events,
    /// Whole numbers; times in nanoseconds.
    pub values: BTreeMap<Value, i64>,
}

/// Whether tshark is installed; the run reports if not.
pub fn is_installed() -> bool {
    let installed = Command::new("tshark").arg("--version").output().is_ok();
    if !installed {
        airpath_testing::skip("program", "tshark is not installed (as root: apt-get install tshark)");
    }
    installed
}

/// tshark's fields of the frames of a capture with TCP.
pub fn frames(capture: &Path) -> BTreeMap<u64, Frame> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture);
    command.args(["-T", "fields", "-E", "separator=|", "-E", "occurrence=f", "-e", "frame.number", "-e", "tcp.stream"]);
    for name in events().iter().map(|(_, name)| field(name)).chain(VALUES.iter().map(|(_, name)| *name)) {
        command.args(["-e", &format!("tcp.analysis.{name}")]);
    }
    let out = command.output().expect("it ran a moment ago");
    let problem = String::from_utf8_lossy(&out.stderr);
    assert!(!problem.contains("aren't valid"), "{problem}");
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().filter_map(frame).collect()
}

fn frame(line: &str) -> Option<(u64, Frame)> {
    let mut cells = line.split('|');
    let number = cells.next()?.parse().ok()?;
    cells.next().filter(|stream| !stream.is_empty())?;
    let mut frame = Frame::default();
    for (event, _) in events() {
        if !cells.next()?.is_empty() {
            frame.events |= *event;
        }
    }
    for (value, _) in VALUES {
        let cell = cells.next()?;
        if cell.is_empty() {
            continue;
        }
        frame.values.insert(value, whole(cell));
    }
    Some((number, frame))
}

/// A number, or seconds as nanoseconds.
fn whole(cell: &str) -> i64 {
    match cell.split_once('.') {
        None => cell.parse().expect("it prints numbers"),
        Some((seconds, rest)) => {
            let nanos: i64 = format!("{rest:0<9}")[..9].parse().expect("digits follow the point");
            seconds.parse::<i64>().expect("digits come before the point") * 1_000_000_000 + nanos
        }
    }
}
