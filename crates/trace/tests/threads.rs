//! One and two threads, and shards or none, give the same output: every line, table and number.

#[path = "../../observe/tests/support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_trace::analysis::table::{Column, Table, Values};
use airpath_trace::analysis::{Options, Report, Selection, Source, analyse};

/// The output of an analysis as text: its lines, and its report or error.
fn output(options: &Options, one_thread: bool) -> (Vec<String>, String) {
    let mut lines = Vec::new();
    let report = analyse(&Options { one_thread, ..options.clone() }, &AtomicBool::new(false), &mut |line| {
        lines.push(line.to_owned());
        true
    });
    (lines, report.map_or_else(|error| error.to_string(), |report| format!("{report:?}")))
}

/// Options of an analysis, each with a name.
fn variants(file: &Path) -> Vec<(&'static str, Options)> {
    let all = || Options { source: Source::Captures(vec![file.to_owned()]), ..Options::default() };
    let flow = |selectors: &[&str]| Selection::parse(selectors).expect("selectors");
    vec![
        ("lines", Options { stream: true, ..all() }),
        ("lines with causes", Options { stream: true, causes: true, ..all() }),
        ("tables", Options { causes: true, observations: true, ..all() }),
        ("one by its number", Options { select: flow(&["2"]), stream: true, ..all() }),
        ("those of a port", Options { select: flow(&[":80"]), causes: true, ..all() }),
        ("those of two ports", Options { select: flow(&[":80", ":443"]), causes: true, ..all() }),
        ("application data", Options { exchanges: true, ..all() }),
    ]
}

fn assert_same(file: &Path) {
    for (name, options) in variants(file) {
        let ((lines, report), (others, other)) = (output(&options, true), output(&options, false));
        assert_alike(&lines.join("\n"), &others.join("\n"), &format!("{}, lines, {name}", file.display()));
        assert_alike(&report, &other, &format!("{}, report, {name}", file.display()));
    }
    // Application data needs all connections in one place: they are not divided into shards.
    let [whole, divided] = [true, false].map(|exchanges| {
        let source = Source::Captures(vec![file.to_owned()]);
        let options = Options { source, causes: true, observations: true, exchanges, ..Options::default() };
        analyse(&options, &AtomicBool::new(false), &mut |_| true).map_or_else(|_| Vec::new(), |report| report.tables)
    });
    for (name, table) in divided {
        let same = whole.iter().find(|(other, _)| *other == name).map(|(_, table)| format!("{table:?}"));
        let what = format!("{}, {name} without shards", file.display());
        assert_alike(&same.unwrap_or_default(), &format!("{table:?}"), &what);
    }
}

fn assert_alike(one: &str, two: &str, what: &str) {
    if let Some(at) = one.bytes().zip(two.bytes()).position(|(one, two)| one != two) {
        let around = |text: &str| text.chars().skip(at.saturating_sub(300)).take(400).collect::<String>();
        panic!("{what}, from byte {at} on:\none: {}\nother: {}", around(one), around(two));
    }
    assert_eq!(one.len(), two.len(), "{what}: one goes on where the other ends");
}

#[test]
fn every_capture_of_the_repository_gives_the_same_output() {
    support::captures().iter().for_each(|file| assert_same(file));
}

#[test]
fn every_shared_capture_gives_the_same_output() {
    support::shared_captures().iter().flatten().for_each(|file| assert_same(file));
}

#[test]
fn many_interleaved_connections_give_the_same_output() {
    let file = Synthetic::default().written("interleaved.pcap", 6_000);
    assert_same(&file);
    // The capture contains the hard cases.
    let report = tables(&file);
    let connections = table(&report, "connections");
    let Values::Text(endings) = &column(connections, "ending").values else { panic!("endings are words") };
    for (ending, least) in [("closed", 100), ("ports-reused", 100), ("open", 1_200)] {
        let count = endings.iter().flatten().filter(|text| *text == ending).count();
        assert!(count > least, "{count} of {} connections end as {ending}", connections.rows());
    }
    let Values::Whole(numbers) = &column(connections, "connection").values else { panic!("numbers are whole") };
    assert!(!numbers.is_sorted(), "connections end in another order than they begin");
    assert!(report.reading.segments > 50_000, "{} segments are few epochs", report.reading.segments);
    std::fs::remove_file(file).expect("it was made here");
}

#[test]
fn the_lines_before_an_unreadable_file_are_the_same() {
    let file = Synthetic::default().written("before.pcap", 300);
    let missing = file.with_extension("missing");
    let options = Options { source: Source::Captures(vec![file.clone(), missing]), stream: true, ..Options::default() };
    let (lines, error) = output(&options, false);
    assert!(!lines.is_empty() && error.contains("before.missing: No such file"), "{} lines, {error}", lines.len());
    assert_eq!((lines, error), output(&options, true));
    std::fs::remove_file(file).expect("it was made here");
}

#[test]
fn a_receiver_that_stops_gets_no_more_lines() {
    let file = Synthetic::default().written("refused.pcap", 1_000);
    let options = Options { source: Source::Captures(vec![file.clone()]), stream: true, ..Options::default() };
    let first = |one_thread| {
        let mut lines = Vec::new();
        let report = analyse(&Options { one_thread, ..options.clone() }, &AtomicBool::new(false), &mut |line| {
            lines.push(line.to_owned());
            lines.len() < 7
        });
        assert!(report.is_ok_and(|report| !report.stopped));
        lines
    };
    let lines = first(false);
    assert_eq!(lines.len(), 7);
    assert_eq!(lines, first(true));

    // A stopped analysis reports its results so far.
    for one_thread in [true, false] {
        let stop = AtomicBool::new(false);
        let report = analyse(&Options { one_thread, ..options.clone() }, &stop, &mut |_| {
            stop.store(true, Ordering::Relaxed);
            true
        });
        let report = report.expect("what there is until then");
        assert!(report.stopped && report.reading.segments > 0);
    }
    std::fs::remove_file(file).expect("it was made here");
}

#[test]
fn a_thread_does_not_wait_for_one_that_panicked() {
    let file = Synthetic::default().written("broken.pcap", 1_000);
    let options = Options { source: Source::Captures(vec![file.clone()]), stream: true, ..Options::default() };
    let broken = catch_unwind(AssertUnwindSafe(|| {
        analyse(&options, &AtomicBool::new(false), &mut |_| panic!("who listens breaks down"))
    }));
    assert!(broken.is_err());
    std::fs::remove_file(file).expect("it was made here");
}

fn tables(file: &Path) -> Report {
    let options = Options { source: Source::Captures(vec![file.to_owned()]), ..Options::default() };
    analyse(&options, &AtomicBool::new(false), &mut |_| true).expect("there is TCP in it")
}

fn table<'a>(report: &'a Report, name: &str) -> &'a Table {
    &report.tables.iter().find(|(known, _)| *known == name).expect("there is such a table").1
}

fn column<'a>(table: &'a Table, name: &str) -> &'a Column {
    table.columns().iter().find(|column| column.name == name).expect("there is such a column")
}

/// A capture (pcap, raw IP) of many connections at once, which end out of order, or not at all, and
/// whose ports are reused.
#[derive(Default)]
struct Synthetic {
    bytes: Vec<u8>,
    packets: u64,
    random: u64,
}

/// One connection of it.
struct Flow {
    client: u16,
    /// What each end sends next.
    next: [u32; 2],
    /// Turns left, and turns at first.
    left: u64,
    begun: bool,
    ending: u64,
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

impl Synthetic {
    /// Writes the file, with `connections` connections.
    fn written(mut self, name: &str, connections: u64) -> PathBuf {
        for word in [0xA1B2_3C4D_u32, 4 << 16 | 2, 0, 0, 65_535, 101] {
            self.bytes.extend(word.to_le_bytes());
        }
        let (mut open, mut begun) = (Vec::new(), 0);
        while begun < connections || !open.is_empty() {
            if begun < connections && (open.is_empty() || self.below(12) == 0) {
                begun += 1;
                open.push(self.flow());
            }
            let which = self.below(open.len() as u64) as usize;
            if !self.turn(&mut open[which]) {
                open.swap_remove(which);
            }
        }
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, &self.bytes).expect("the folder for tests can be written to");
        file
    }

    /// Ports are few, so that they come again: of those that ended, and of some that did not.
    fn flow(&mut self) -> Flow {
        Flow {
            client: 1_000 + self.below(9_000) as u16,
            next: [self.below(1 << 32) as u32, self.below(1 << 32) as u32],
            left: 1 + self.below(40),
            begun: false,
            ending: self.below(3),
        }
    }

    /// Adds the next segment of a connection. Returns whether more follow.
    fn turn(&mut self, flow: &mut Flow) -> bool {
        const CLIENT: usize = 0;
        const SERVER: usize = 1;
        if !flow.begun {
            flow.begun = true;
            self.packet(flow, CLIENT, SYN, 0);
            self.packet(flow, SERVER, SYN | ACK, 0);
            self.packet(flow, CLIENT, ACK, 0);
            return true;
        }
        if flow.left > 0 {
            flow.left -= 1;
            let length = self.below(400) as u16;
            if self.below(20) == 0 && length > 0 {
                // Sent again.
                self.packet(flow, SERVER, ACK, length);
                flow.next[SERVER] = flow.next[SERVER].wrapping_sub(length.into());
            }
            self.packet(flow, SERVER, ACK, length);
            self.packet(flow, CLIENT, ACK, 0);
            return true;
        }
        match flow.ending {
            // It stays open.
            0 => {}
            1 => self.packet(flow, CLIENT, RST | ACK, 0),
            _ => {
                self.packet(flow, SERVER, FIN | ACK, 0);
                self.packet(flow, CLIENT, FIN | ACK, 0);
                self.packet(flow, SERVER, ACK, 0);
            }
        }
        false
    }

    fn packet(&mut self, flow: &mut Flow, from: usize, flags: u8, length: u16) {
        let (own, other) = (flow.next[from], flow.next[1 - from]);
        let total = 40 + length;
        self.packets += 1;
        // A packet each 10 ms: those that have closed long ago are given up while others go on.
        let milliseconds = self.packets * 10;
        let nanoseconds = (milliseconds % 1_000 * 1_000_000) as u32;
        // Twenty bytes are kept of the payload.
        let kept = u32::from(total.min(60));
        for word in [1_000_000_000 + (milliseconds / 1_000) as u32, nanoseconds, kept, total.into()] {
            self.bytes.extend(word.to_le_bytes());
        }
        let mut packet = vec![0; kept as usize];
        let port = flow.client.to_be_bytes();
        let (client, server) = ([10, 0, port[0], port[1]], [192, 0, 2, 80]);
        let (source, destination) = if from == 0 { (client, server) } else { (server, client) };
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet[8..10].copy_from_slice(&[64, 6]);
        packet[12..16].copy_from_slice(&source);
        packet[16..20].copy_from_slice(&destination);
        let ports = if from == 0 { [flow.client, 80] } else { [80, flow.client] };
        packet[20..22].copy_from_slice(&ports[0].to_be_bytes());
        packet[22..24].copy_from_slice(&ports[1].to_be_bytes());
        packet[24..28].copy_from_slice(&own.to_be_bytes());
        packet[28..32].copy_from_slice(&if flags & ACK == 0 { 0 } else { other }.to_be_bytes());
        packet[32..36].copy_from_slice(&[0x50, flags, 0xFF, 0xFF]);
        self.bytes.extend(packet);
        let counted = u32::from(length) + u32::from(flags & (SYN | FIN) != 0);
        flow.next[from] = own.wrapping_add(counted);
    }

    /// A number below `bound`, of a linear congruential generator with Knuth's numbers for MMIX.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 32) % bound
    }
}
