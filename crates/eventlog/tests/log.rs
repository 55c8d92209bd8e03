//! The files as a reader finds them: after a run, during one, after one that was killed, and on a
//! full disk.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airpath_core::{
    AppEvent, AppStep, Aspect, Bytes, ChangeEvent, ChangeKind, Classes, ComponentId, Direction, DropCause, Ecn, Event,
    FlowId, Instant, Packet, PacketEvent, PacketStep, QuicEvent, QuicPacketType, QuicStep, RadioEvent, SegmentInfo,
    Sink, Slot, Span, StateEvent, StateValue, TcpEvent, TcpTrigger, UserId,
};
use airpath_eventlog::{EventLog, ROWS_PER_PART, SCHEMA, Summary};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::printer::print_schema;

/// An empty folder for one test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("eventlog").join(test);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("{}: {error}", folder.display()),
        _ => folder,
    }
}

fn create(folder: &Path, classes: Classes) -> EventLog {
    let names = ["fixed", "cell"].map(str::to_owned).to_vec();
    EventLog::create(folder, 3, names, classes).expect("the folder can be made")
}

fn open(path: &Path) -> SerializedFileReader<File> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    SerializedFileReader::new(file).expect("the file is complete")
}

/// The rows of a file, as text.
fn rows(path: &Path) -> Vec<String> {
    open(path).get_row_iter(None).expect("the schema is its own").map(|row| row.expect("a row").to_string()).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

fn packet(step: PacketStep, direction: Direction, ecn: Ecn) -> Event {
    let packet = Packet { id: 7, size: 1500, flow: FlowId(2), user: UserId::new(300), ecn, slot: Slot(9) };
    Event::Packet(PacketEvent { step, direction, packet })
}

fn app(step: AppStep) -> Event {
    Event::App(AppEvent { flow: FlowId(4), step, delivered: Bytes::new(1448) })
}

#[test]
fn packets_are_read_back() {
    let folder = folder("packets");
    let mut log = create(&folder, Classes::ALL);
    let data = SegmentInfo { offset: -1, length: 0, ack: None.into(), window: 65_535, flags: 2, retransmission: false };
    let again =
        SegmentInfo { offset: 1448, length: 1448, ack: 12.into(), window: 1 << 30, flags: 0x98, retransmission: true };
    let at = |nanos, component, event| (Instant::from_nanos(nanos), ComponentId(component), event);
    let events = [
        at(1, 0, packet(PacketStep::Sent(Some(data)), Direction::Down, Ecn::NotEct)),
        at(2, 0, packet(PacketStep::Sent(Some(again)), Direction::Up, Ecn::Ect0)),
        at(3, 1, packet(PacketStep::Sent(None), Direction::Down, Ecn::Ect1)),
        at(4, 1, packet(PacketStep::Queued { backlog_packets: 5, backlog_bytes: 7500 }, Direction::Down, Ecn::Ce)),
        at(5, 0, packet(PacketStep::Delivered, Direction::Down, Ecn::NotEct)),
        at(u64::MAX, 0, packet(PacketStep::Dropped(DropCause::AttemptsExhausted), Direction::Down, Ecn::NotEct)),
        at(7, 0, packet(PacketStep::Received, Direction::Down, Ecn::NotEct)),
    ];
    events.iter().for_each(|(time, at, event)| log.record(*time, *at, event));
    let summary = log.finish().expect("there is room");
    assert_eq!(summary, Summary { packets: 7, bytes: summary.bytes, ..Summary::default() });

    let path = folder.join("packets/0003-0000.parquet");
    assert_eq!(summary.bytes, fs::metadata(&path).expect("it is there").len());
    let no_header = "offset: null, length: null, ack: null, window: null, flags: null, retransmission: null";
    let common = "packet: 7, flow: 2, user: 300, size: 1500";
    let expected = [
        format!(
            r#"{{time: 1, repetition: 3, component: "fixed", step: "sent", direction: "down", {common}, ecn: 0, cause: null, backlog_packets: null, backlog_bytes: null, offset: -1, length: 0, ack: null, window: 65535, flags: 2, retransmission: false}}"#
        ),
        format!(
            r#"{{time: 2, repetition: 3, component: "fixed", step: "sent", direction: "up", {common}, ecn: 2, cause: null, backlog_packets: null, backlog_bytes: null, offset: 1448, length: 1448, ack: 12, window: 1073741824, flags: 152, retransmission: true}}"#
        ),
        format!(
            r#"{{time: 3, repetition: 3, component: "cell", step: "sent", direction: "down", {common}, ecn: 1, cause: null, backlog_packets: null, backlog_bytes: null, {no_header}}}"#
        ),
        format!(
            r#"{{time: 4, repetition: 3, component: "cell", step: "queued", direction: "down", {common}, ecn: 3, cause: null, backlog_packets: 5, backlog_bytes: 7500, {no_header}}}"#
        ),
        format!(
            r#"{{time: 5, repetition: 3, component: "fixed", step: "delivered", direction: "down", {common}, ecn: 0, cause: null, backlog_packets: null, backlog_bytes: null, {no_header}}}"#
        ),
        format!(
            r#"{{time: {}, repetition: 3, component: "fixed", step: "dropped", direction: "down", {common}, ecn: 0, cause: "attempts-exhausted", backlog_packets: null, backlog_bytes: null, {no_header}}}"#,
            i64::MAX
        ),
        format!(
            r#"{{time: 7, repetition: 3, component: "fixed", step: "received", direction: "down", {common}, ecn: 0, cause: null, backlog_packets: null, backlog_bytes: null, {no_header}}}"#
        ),
    ];
    assert_eq!(rows(&path), expected);
}

#[test]
fn every_cause_and_trigger_has_its_name() {
    let folder = folder("names");
    let mut log = create(&folder, Classes::ALL);
    for cause in DropCause::ALL {
        log.record(Instant::ZERO, ComponentId(0), &packet(PacketStep::Dropped(cause), Direction::Up, Ecn::NotEct));
    }
    for trigger in TcpTrigger::ALL {
        log.record(Instant::ZERO, ComponentId(0), &Event::Tcp(TcpEvent { trigger, ..sender() }));
    }
    log.finish().expect("there is room");
    let causes = rows(&folder.join("packets/0003-0000.parquet"));
    let triggers = rows(&folder.join("tcp/0003-0000.parquet"));
    assert_eq!((causes.len(), triggers.len()), (DropCause::ALL.len(), TcpTrigger::ALL.len()));
    for (row, cause) in causes.iter().zip(DropCause::ALL) {
        assert!(row.contains(&format!(r#"cause: "{}""#, cause.name())), "{row}");
    }
    for (row, trigger) in triggers.iter().zip(TcpTrigger::ALL) {
        assert!(row.contains(&format!(r#"trigger: "{}""#, trigger.name())), "{row}");
    }
}

#[test]
fn changes_are_kept_in_full() {
    let folder = folder("changes");
    let mut log = create(&folder, Classes::CHANGE);
    let outage = ChangeEvent {
        kind: ChangeKind::Outage,
        direction: None,
        user: Some(UserId::new(300)),
        duration: Some(Span::from_millis(5)),
        change: r#"{"outage":"5 ms"}"#.to_owned(),
    };
    let loss = ChangeEvent {
        kind: ChangeKind::Loss,
        direction: Some(Direction::Up),
        user: None,
        duration: None,
        change: r#"{"loss":0.02,"direction":"up"}"#.to_owned(),
    };
    log.record(Instant::from_nanos(1), ComponentId(1), &Event::Change(outage));
    log.record(Instant::from_nanos(2), ComponentId(0), &Event::Change(loss));
    let summary = log.finish().expect("there is room");
    assert_eq!(summary, Summary { changes: 2, bytes: summary.bytes, ..Summary::default() });
    let expected = [
        r#"{time: 1, repetition: 3, component: "cell", kind: "outage", direction: null, user: 300, duration: 5000000, change: "{"outage":"5 ms"}"}"#,
        r#"{time: 2, repetition: 3, component: "fixed", kind: "loss", direction: "up", user: null, duration: null, change: "{"loss":0.02,"direction":"up"}"}"#,
    ];
    assert_eq!(rows(&folder.join("changes/0003-0000.parquet")), expected);
}

#[test]
fn states_have_a_name_or_a_number() {
    let folder = folder("states");
    let mut log = create(&folder, Classes::STATE);
    let state = |direction, aspect, value| Event::State(StateEvent { user: UserId::new(1), direction, aspect, value });
    let events = [
        state(None, Aspect::Mode, StateValue::Name("reselection")),
        state(Some(Direction::Down), Aspect::CarrierToInterference, StateValue::Number(-1.5)),
        state(None, Aspect::Cell, StateValue::Number(2.0)),
    ];
    for (nanos, event) in (1..).zip(&events) {
        log.record(Instant::from_nanos(nanos), ComponentId(1), event);
    }
    for aspect in Aspect::ALL {
        log.record(Instant::from_nanos(9), ComponentId(1), &state(None, aspect, StateValue::Number(0.0)));
    }
    let summary = log.finish().expect("there is room");
    let count = (events.len() + Aspect::ALL.len()) as u64;
    assert_eq!(summary, Summary { states: count, bytes: summary.bytes, ..Summary::default() });
    let rows = rows(&folder.join("states/0003-0000.parquet"));
    let expected = [
        r#"{time: 1, repetition: 3, component: "cell", direction: null, user: 1, aspect: "mode", name: "reselection", number: null}"#,
        r#"{time: 2, repetition: 3, component: "cell", direction: "down", user: 1, aspect: "carrier-to-interference", name: null, number: -1.5E0}"#,
        r#"{time: 3, repetition: 3, component: "cell", direction: null, user: 1, aspect: "cell", name: null, number: 2.0}"#,
    ];
    assert_eq!(rows[..3], expected);
    for (row, aspect) in rows[3..].iter().zip(Aspect::ALL) {
        assert!(row.contains(&format!(r#"aspect: "{}""#, aspect.name())), "{row}");
    }
}

fn sender() -> TcpEvent {
    TcpEvent {
        flow: FlowId(1),
        direction: Direction::Down,
        trigger: TcpTrigger::Ack,
        congestion_window: u64::MAX,
        slow_start_threshold: None,
        in_flight: 2896,
        outstanding: 4344,
        peer_window: 65_535,
        acknowledged: -1,
        round_trip: Some(Span::from_millis(200)),
        smoothed_round_trip: None,
        retransmission_timeout: Span::from_secs(1),
        pacing_rate: Some(1_000_000),
        pacing_gain: Some(320),
    }
}

#[test]
fn senders_and_transmissions_are_read_back() {
    let folder = folder("tcp-radio");
    let mut log = create(&folder, Classes::ALL);
    log.record(Instant::from_nanos(8), ComponentId(0), &Event::Tcp(sender()));
    let radio = RadioEvent {
        direction: Direction::Up,
        user: UserId::new(2),
        duration: Span::from_millis(10),
        pdus: 12,
        repeated: 3,
        errored: 2,
        bytes: 480,
        level: 255,
        control: 1,
    };
    log.record(Instant::from_nanos(9), ComponentId(1), &Event::Radio(radio));
    let summary = log.finish().expect("there is room");
    assert_eq!((summary.packets, summary.tcp, summary.radio, summary.app), (0, 1, 1, 0));
    let window = i64::MAX;
    assert_eq!(
        rows(&folder.join("tcp/0003-0000.parquet")),
        [format!(
            r#"{{time: 8, repetition: 3, component: "fixed", flow: 1, direction: "down", trigger: "ack", congestion_window: {window}, slow_start_threshold: null, in_flight: 2896, outstanding: 4344, peer_window: 65535, acknowledged: -1, round_trip: 200000000, smoothed_round_trip: null, retransmission_timeout: 1000000000, pacing_rate: 1000000, pacing_gain: 320}}"#
        )]
    );
    assert_eq!(
        rows(&folder.join("radio/0003-0000.parquet")),
        [
            r#"{time: 9, repetition: 3, component: "cell", direction: "up", user: 2, duration: 10000000, pdus: 12, repeated: 3, errored: 2, bytes: 480, level: 255, control: 1}"#
        ]
    );
}

#[test]
fn packets_of_quic_are_read_back() {
    let folder = folder("quic");
    let mut log = create(&folder, Classes::ALL);
    let (connection, direction) = (1, Direction::Up);
    let frames = Some("ack 0-2; ping".to_owned());
    let steps = [
        QuicStep::Sent { packet: 9, size: 1200, frames },
        QuicStep::Lost,
        QuicStep::Sent { packet: 10, size: 60, frames: None },
        QuicStep::Lost,
    ];
    for (number, (step, packet_type)) in steps.into_iter().zip(QuicPacketType::ALL).enumerate() {
        let event = QuicEvent { flow: FlowId(2), connection, direction, step, packet_type, number: number as u64 };
        log.record(Instant::from_nanos(5), ComponentId(1), &Event::Quic(event));
    }
    let summary = log.finish().expect("there is room");
    assert_eq!(summary, Summary { quic: 4, bytes: summary.bytes, ..Summary::default() });
    let same = r#"time: 5, repetition: 3, component: "cell", flow: 2, connection: 1, direction: "up""#;
    let expected = [
        r#"step: "sent", packet: 9, size: 1200, packet_type: "initial", packet_number: 0, frames: "ack 0-2; ping""#,
        r#"step: "lost", packet: null, size: null, packet_type: "handshake", packet_number: 1, frames: null"#,
        r#"step: "sent", packet: 10, size: 60, packet_type: "0RTT", packet_number: 2, frames: null"#,
        r#"step: "lost", packet: null, size: null, packet_type: "1RTT", packet_number: 3, frames: null"#,
    ];
    assert_eq!(rows(&folder.join("quic/0003-0000.parquet")), expected.map(|row| format!("{{{same}, {row}}}")));
}

#[test]
fn applications_are_read_back() {
    let folder = folder("app");
    let mut log = create(&folder, Classes::ALL);
    let steps = [
        AppStep::Started,
        AppStep::Connected,
        AppStep::Requested,
        AppStep::FirstByte,
        AppStep::Finished,
        AppStep::Acknowledged,
        AppStep::Arrived { sequence: u32::MAX, delay: Span::from_micros(3) },
        AppStep::Playout { sequence: u32::MAX, delay: Span::from_micros(3) },
        AppStep::Aborted,
    ];
    steps.iter().for_each(|step| log.record(Instant::ZERO, ComponentId(0), &app(*step)));
    log.finish().expect("there is room");
    let rows = rows(&folder.join("app/0003-0000.parquet"));
    assert_eq!(rows.len(), steps.len());
    for (row, step) in rows.iter().zip(steps) {
        let numbers = match step {
            AppStep::Arrived { .. } | AppStep::Playout { .. } => "sequence: 4294967295, delay: 3000",
            _ => "sequence: null, delay: null",
        };
        let expected =
            format!(r#"{{time: 0, repetition: 3, flow: 4, step: "{}", delivered: 1448, {numbers}}}"#, step.name());
        assert_eq!(*row, expected);
    }
}

/// A changed schema needs a new number.
#[test]
fn the_schema_is_that_of_its_number() {
    let folder = folder("schema");
    let mut log = create(&folder, Classes::ALL);
    log.record(Instant::ZERO, ComponentId(0), &packet(PacketStep::Received, Direction::Up, Ecn::NotEct));
    log.record(Instant::ZERO, ComponentId(0), &app(AppStep::Started));
    log.finish().expect("there is room");

    let file = open(&folder.join("packets/0003-0000.parquet"));
    let metadata = file.metadata().file_metadata();
    let values = metadata.key_value_metadata().expect("there is metadata");
    let value = |key: &str| values.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
    assert_eq!(value("airpath.schema"), Some(SCHEMA.to_string().as_str()));
    assert_eq!(value("airpath.version"), Some(env!("CARGO_PKG_VERSION")));
    let mut schema = Vec::new();
    print_schema(&mut schema, metadata.schema());
    assert_eq!(SCHEMA, 1);
    assert_eq!(
        String::from_utf8(schema).expect("text"),
        "message schema {
  REQUIRED INT64 time;
  REQUIRED INT32 repetition (INTEGER(32,true));
  REQUIRED BYTE_ARRAY component (STRING);
  REQUIRED BYTE_ARRAY step (STRING);
  REQUIRED BYTE_ARRAY direction (STRING);
  REQUIRED INT64 packet;
  REQUIRED INT32 flow;
  REQUIRED INT32 user (INTEGER(32,true));
  REQUIRED INT32 size;
  REQUIRED INT32 ecn (INTEGER(8,true));
  OPTIONAL BYTE_ARRAY cause (STRING);
  OPTIONAL INT32 backlog_packets;
  OPTIONAL INT64 backlog_bytes;
  OPTIONAL INT64 offset;
  OPTIONAL INT32 length;
  OPTIONAL INT64 ack;
  OPTIONAL INT64 window;
  OPTIONAL INT32 flags (INTEGER(16,true));
  OPTIONAL BOOLEAN retransmission;
}
"
    );
}

#[test]
fn parts_are_written_as_the_run_goes() {
    let folder = folder("parts");
    let mut log = create(&folder, Classes::ALL);
    let event = |row: usize| app(AppStep::Arrived { sequence: row as u32, delay: Span::from_nanos(row as u64 % 1000) });
    let parts = folder.join("app");
    for row in 0..ROWS_PER_PART {
        assert!(row > 0 || files(&parts).is_empty());
        log.record(Instant::from_nanos(row as u64), ComponentId(0), &event(row));
    }
    // It exists before the end, as soon as the log's thread has written it.
    while files(&parts) != ["0003-0000.parquet"] {
        std::thread::yield_now();
    }
    for row in ROWS_PER_PART..ROWS_PER_PART + 2 {
        log.record(Instant::from_nanos(row as u64), ComponentId(0), &event(row));
    }
    let summary = log.finish().expect("there is room");
    assert_eq!(summary.app, ROWS_PER_PART as u64 + 2);
    assert_eq!(files(&parts), ["0003-0000.parquet", "0003-0001.parquet"]);
    let first = rows(&parts.join("0003-0000.parquet"));
    assert_eq!(first.len(), ROWS_PER_PART);
    for (row, text) in first.iter().enumerate() {
        let numbers = format!("delivered: 1448, sequence: {row}, delay: {}", row % 1000);
        assert!(text.starts_with(&format!("{{time: {row}, ")) && text.contains(&numbers), "{text}");
    }
    let second = rows(&parts.join("0003-0001.parquet"));
    assert_eq!(second.len(), 2);
    assert!(second[0].starts_with(&format!("{{time: {ROWS_PER_PART}, ")), "{}", second[0]);
}

#[test]
fn a_killed_run_keeps_its_parts() {
    let folder = folder("killed");
    let mut log = create(&folder, Classes::APP);
    for row in 0..ROWS_PER_PART + 100 {
        log.record(Instant::from_nanos(row as u64), ComponentId(0), &app(AppStep::Started));
    }
    drop(log);
    assert_eq!(files(&folder.join("app")), ["0003-0000.parquet"]);
    assert_eq!(rows(&folder.join("app/0003-0000.parquet")).len(), ROWS_PER_PART);
}

/// Nothing of one repetition remains in the next, neither rows nor dictionaries.
#[test]
fn a_repetition_after_another_is_as_by_itself() {
    let write = |log: &mut EventLog, flow| {
        for row in 0..ROWS_PER_PART as u64 + 10 {
            let delivered = Bytes::new(row % flow);
            let event = AppEvent { flow: FlowId(flow as u32), step: AppStep::Started, delivered };
            log.record(Instant::from_nanos(row), ComponentId(0), &Event::App(event));
            log.record(Instant::from_nanos(row), ComponentId(1), &packet(PacketStep::Received, Direction::Up, Ecn::Ce));
        }
    };
    let (one, other) = (folder("by-itself"), folder("after-another"));
    let mut log = create(&one, Classes::ALL);
    write(&mut log, 5);
    let alone = log.finish().expect("there is room");

    let names = ["fixed", "cell"].map(str::to_owned).to_vec();
    let mut log = EventLog::create(&other, 2, names, Classes::ALL).expect("the folder can be made");
    write(&mut log, 9);
    let (before, spare) = log.complete().expect("there is room");
    assert_eq!((before.app, before.packets), (alone.app, alone.packets));
    let mut log = spare.log(3);
    write(&mut log, 5);
    let (after, _) = log.complete().expect("there is room");
    assert_eq!(after, alone);
    for name in ["packets/0003-0000", "packets/0003-0001", "app/0003-0000", "app/0003-0001"] {
        let read = |folder: &Path| fs::read(folder.join(name).with_extension("parquet")).expect("it is there");
        assert!(read(&one) == read(&other), "{name}");
    }
    assert_eq!(files(&other.join("app")).len(), 4);
}

#[test]
fn the_same_events_make_the_same_files() {
    let made = ["same", "same-again"].map(|name| {
        let folder = folder(name);
        let mut log = create(&folder, Classes::ALL);
        for row in 0..ROWS_PER_PART as u64 * 3 / 2 {
            let time = Instant::from_nanos(row * row % 1_000_003);
            log.record(time, ComponentId(0), &packet(PacketStep::Delivered, Direction::Down, Ecn::NotEct));
            log.record(time, ComponentId(0), &app(AppStep::Started));
        }
        log.finish().expect("there is room");
        ["packets/0003-0000", "packets/0003-0001", "app/0003-0000", "app/0003-0001"]
            .map(|name| fs::read(folder.join(name).with_extension("parquet")).expect("it is there"))
    });
    assert!(made[0] == made[1], "how fast the log's thread was changes nothing");
}

#[test]
#[should_panic(expected = "has no name")]
fn a_component_without_a_name_is_a_mistake() {
    let mut log = create(&folder("nameless"), Classes::ALL);
    let event = packet(PacketStep::Delivered, Direction::Down, Ecn::NotEct);
    log.record(Instant::ZERO, ComponentId(2), &event);
}

#[test]
fn more_components_than_16_bits_can_number_have_their_names() {
    let folder = folder("many");
    let names = (0..70_000).map(|number| format!("device-{number}")).collect();
    let mut log = EventLog::create(&folder, 0, names, Classes::PACKET).expect("the folder can be made");
    // Numbers of 17 bits, in runs and in packed groups.
    let numbers: Vec<u32> = [65_535, 65_536, 4_463].into_iter().chain(69_980..70_000).chain([69_999; 20]).collect();
    for (nanos, number) in (0..).zip(&numbers) {
        let event = packet(PacketStep::Delivered, Direction::Down, Ecn::NotEct);
        log.record(Instant::from_nanos(nanos), ComponentId(*number), &event);
    }
    log.finish().expect("there is room");
    let found = rows(&folder.join("packets/0000-0000.parquet"));
    assert_eq!(found.len(), numbers.len());
    for (row, number) in found.iter().zip(&numbers) {
        assert!(row.contains(&format!("component: \"device-{number}\"")), "{row}");
    }
}

#[test]
fn only_wanted_tables_are_made() {
    let folder = folder("wanted");
    let mut log = create(&folder, Classes::TCP.with(Classes::APP));
    assert_eq!(log.wants(), Classes::TCP.with(Classes::APP));
    log.record(Instant::ZERO, ComponentId(0), &app(AppStep::Started));
    log.finish().expect("there is room");
    assert_eq!(files(&folder), ["app", "tcp"]);
    assert!(files(&folder.join("tcp")).is_empty(), "a table without rows has no parts");
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let folder = folder("in-the-way");
    fs::create_dir_all(&folder).expect("it can be made");
    fs::write(folder.join("packets"), "a file").expect("it can be written");
    let error = EventLog::create(&folder, 0, Vec::new(), Classes::ALL).expect_err("a file is in the way");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

/// The second part is written to a device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_loses_nothing_that_was_written() {
    let folder = folder("full");
    let mut log = create(&folder, Classes::APP);
    let draft = folder.join("app/0003-0001.parquet.tmp");
    std::os::unix::fs::symlink("/dev/full", draft).expect("a link can be made");
    let record = |log: &mut EventLog| log.record(Instant::ZERO, ComponentId(0), &app(AppStep::Started));
    for _ in 0..2 * ROWS_PER_PART - 1 {
        record(&mut log);
    }
    assert!(!log.has_failed());
    record(&mut log);
    while !log.has_failed() {
        std::thread::yield_now();
    }
    // A run that continues is not blocked by rows that are not processed.
    for _ in 0..2 * ROWS_PER_PART {
        record(&mut log);
    }
    assert_eq!(log.finish().expect_err("the disk was full").kind(), ErrorKind::StorageFull);
    assert_eq!(files(&folder.join("app")), ["0003-0000.parquet"], "nothing half written is left");
    assert_eq!(rows(&folder.join("app/0003-0000.parquet")).len(), ROWS_PER_PART);
}

/// Tables with columns of every kind of encoding: runs, few and many values, nulls.
#[test]
fn what_is_packed_is_unpacked() {
    let folder = folder("packed");
    let mut log = create(&folder, Classes::RADIO);
    let event = |row: u64| RadioEvent {
        direction: Direction::BOTH[(row * row % 7 % 2) as usize],
        user: UserId::new((row / 100 % 3) as u32),
        duration: Span::from_millis(2),
        pdus: (row * 7919 % 4096) as u16,
        repeated: if row % 50 < 20 { 0 } else { (row % 5) as u16 },
        errored: (row * row % 65_521) as u16,
        bytes: (row * 104_729 % 1_000_003) as u32,
        level: (row % 256) as u8,
        control: (row % 3) as u16,
    };
    for row in 0..20_001 {
        log.record(Instant::from_nanos(row * row), ComponentId((row / 999 % 2) as u32), &Event::Radio(event(row)));
    }
    log.finish().expect("there is room");
    for (row, text) in (0..).zip(rows(&folder.join("radio/0003-0000.parquet"))) {
        let RadioEvent { direction, user, duration, pdus, repeated, errored, bytes, level, control } = event(row);
        let expected = format!(
            r#"{{time: {}, repetition: 3, component: "{}", direction: "{}", user: {}, duration: {}, pdus: {pdus}, repeated: {repeated}, errored: {errored}, bytes: {bytes}, level: {level}, control: {control}}}"#,
            row * row,
            ["fixed", "cell"][(row / 999 % 2) as usize],
            direction.name(),
            user.number(),
            duration.as_nanos(),
        );
        assert_eq!(text, expected);
    }
}
