//! Wall time per row of each table: until it is in a file, over a log of two parts and a half
//! (`written`), and the share of the run itself while the log's thread is not the bottleneck
//! (`recorded`).
//!
//! The packets are those of a download: for each data packet and each ACK the rows of two links
//! between two ends.

use std::hint::black_box;

use airpath_core::{
    AppEvent, AppStep, Bytes, Classes, ComponentId, Direction, Ecn, Event, FlowId, Instant, Packet, PacketEvent,
    PacketStep, RadioEvent, SegmentInfo, Sink, Slot, Span, TcpEvent, TcpTrigger, UserId,
};
use airpath_eventlog::{EventLog, ROWS_PER_PART};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const ROWS: u64 = ROWS_PER_PART as u64 * 5 / 2;

/// Small enough that the run need not wait for the log's thread.
const FEW: usize = 1 << 13;

type Recorded = (Instant, ComponentId, Event);

fn packets() -> Vec<Recorded> {
    (0..ROWS).map(packet).collect()
}

fn packet(row: u64) -> Recorded {
    let (number, stage) = (row / 6, row % 6);
    let down = number % 3 != 2;
    let (direction, size) = if down { (Direction::Down, 1500) } else { (Direction::Up, 52) };
    let step = match stage {
        0 => PacketStep::Sent(Some(SegmentInfo {
            offset: (number * 1448) as i64,
            length: size - 52,
            ack: ((number * 7 % 1000) as i64).into(),
            window: 65_535,
            flags: 16,
            retransmission: number % 100 == 0,
        })),
        1 | 3 => PacketStep::Queued { backlog_packets: (number % 40) as u32, backlog_bytes: number % 40 * 1500 },
        5 => PacketStep::Received,
        _ => PacketStep::Delivered,
    };
    let packet =
        Packet { id: number, size, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(number as u32) };
    let time = Instant::from_nanos(row * 1_000_003 + row * row % 777);
    (time, ComponentId((stage / 2) as u32), Event::Packet(PacketEvent { step, direction, packet }))
}

fn tcp() -> Vec<Recorded> {
    let event = |row: u64| TcpEvent {
        flow: FlowId(0),
        direction: Direction::Down,
        trigger: TcpTrigger::Ack,
        congestion_window: 14_480 + row * 13,
        slow_start_threshold: (row > 5000).then_some(70_000),
        in_flight: 14_480 + row % 9 * 1448,
        outstanding: 14_480 + row % 8 * 1448,
        peer_window: 65_535,
        acknowledged: (row * 2896) as i64,
        round_trip: Some(Span::from_nanos(200_000_000 + row * row % 9_999_991)),
        smoothed_round_trip: Some(Span::from_nanos(200_000_000 + row * 17 % 999_983)),
        retransmission_timeout: Span::from_nanos(400_000_000 + row * 31 % 999_983),
        pacing_rate: None,
        pacing_gain: None,
    };
    (0..ROWS).map(|row| (Instant::from_nanos(row * 20_000_003), ComponentId(0), Event::Tcp(event(row)))).collect()
}

fn radio() -> Vec<Recorded> {
    let event = |row: u64| RadioEvent {
        direction: Direction::Down,
        user: UserId::new(0),
        duration: Span::from_millis(2),
        pdus: 21,
        repeated: (row % 7) as u16,
        errored: (row % 5) as u16,
        bytes: 840,
        level: (row % 3) as u8,
        control: (row % 2) as u16,
    };
    (0..ROWS).map(|row| (Instant::from_nanos(row * 2_000_000), ComponentId(1), Event::Radio(event(row)))).collect()
}

fn app() -> Vec<Recorded> {
    let step = |row: u64| AppStep::Arrived { sequence: row as u32, delay: Span::from_nanos(row * row % 999_983) };
    let event = |row| AppEvent { flow: FlowId(0), step: step(row), delivered: Bytes::new(row * 56) };
    (0..ROWS).map(|row| (Instant::from_nanos(row * 20_000_003), ComponentId(0), Event::App(event(row)))).collect()
}

fn rows(criterion: &mut Criterion) {
    let folder = std::env::temp_dir().join(format!("airpath-eventlog-bench-{}", std::process::id()));
    let names = vec!["fixed".to_owned(), "cell".to_owned(), "mobile".to_owned()];
    let create = || EventLog::create(&folder, 0, names.clone(), Classes::ALL).expect("the folder can be made");
    let record = |log: &mut EventLog, events: &[Recorded]| {
        for (time, at, event) in events {
            log.record(*time, *at, black_box(event));
        }
    };
    for (table, events) in [("packets", packets()), ("tcp", tcp()), ("radio", radio()), ("app", app())] {
        let mut group = criterion.benchmark_group(table);
        group.sample_size(20).throughput(Throughput::Elements(ROWS)).bench_function("written", |bencher| {
            let write = |mut log: EventLog| {
                record(&mut log, &events);
                log.finish().expect("there is room for the log")
            };
            bencher.iter_batched(create, write, BatchSize::PerIteration);
        });
        group.throughput(Throughput::Elements(FEW as u64)).bench_function("recorded", |bencher| {
            let write = |mut log: EventLog| {
                record(&mut log, &events[..FEW]);
                // The remaining work is not timed.
                log
            };
            bencher.iter_batched(create, write, BatchSize::PerIteration);
        });
        group.finish();
    }
    std::fs::remove_dir_all(&folder).expect("the folder is there");
}

criterion_group!(benches, rows);
criterion_main!(benches);
