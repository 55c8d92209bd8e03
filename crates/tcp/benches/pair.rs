//! Cost of both ends of a bulk flow, per data packet. The path is two queues of segments with delay
//! only, so that nearly all of the cost is TCP.
//!
//! `pair`: 1 Gbit/s, 44 ms, CUBIC, selective and delayed acknowledgements, with a queue that
//! overflows (`lossy`) or not. `window`: one packet in a hundred is lost, and the window is fixed:
//! the cost must not depend on its size.

use std::collections::VecDeque;
use std::hint::black_box;

use airpath_core::{Bitrate, Bytes, ComponentId, Context, Direction, FlowId, Instant, Span};
use airpath_tcp::{Algorithm, Config, Connection, Identity, Profile, Segment};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const RATE: Bitrate = Bitrate::from_bps(1_000_000_000);
const DELAY: Span = Span::from_millis(22);
const BYTES: u64 = 200_000_000;
/// A queue that does not overflow.
const UNBOUNDED: u64 = 1_000_000;

/// A path with a rate, a delay, a bounded queue, and periodic loss.
struct Path {
    segments: VecDeque<(Instant, Segment)>,
    free: Instant,
    queue: Span,
    period: u64,
    count: u64,
}

impl Path {
    fn new(queue: u64, period: u64) -> Self {
        let queue = RATE.time_for(Bytes::new(1500)) * queue;
        Self { segments: VecDeque::new(), free: Instant::ZERO, queue, period, count: 0 }
    }

    fn send(&mut self, now: Instant, segment: Segment) {
        let start = self.free.max(now);
        self.count += 1;
        if start.since(now) > self.queue || self.count.is_multiple_of(self.period) {
            return;
        }
        self.free = start + RATE.time_for(Bytes::new(u64::from(segment.wire_size(20))));
        self.segments.push_back((self.free + DELAY, segment));
    }

    fn next(&self) -> Instant {
        self.segments.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }
}

/// Moves [`BYTES`], and returns the number of data packets.
fn transfer(config: &Config, queue: u64, period: u64) -> u64 {
    let id = |direction, local_port, remote_port| Identity {
        flow: FlowId(0),
        direction,
        local_port,
        remote_port,
        initial_sequence: 0,
    };
    let mut ends = [
        Connection::connect(config, id(Direction::Up, 1, 2), Instant::ZERO),
        Connection::listen(config, id(Direction::Down, 2, 1)),
    ];
    let mut paths = [Path::new(queue, period), Path::new(queue, u64::MAX)];
    let mut dropped = Vec::new();
    let mut cx = Context::new(None, &mut dropped, ComponentId(0));
    let mut wakeups = [Instant::ZERO, Instant::FAR_FUTURE];
    ends[0].write(BYTES);
    while ends[1].received() < BYTES {
        let arrivals = [paths[1].next(), paths[0].next()];
        let (end, now) = [arrivals[0].min(wakeups[0]), arrivals[1].min(wakeups[1])]
            .into_iter()
            .enumerate()
            .min_by_key(|(_, at)| *at)
            .expect("there are two ends");
        if arrivals[end] <= now {
            let (_, segment) = paths[1 - end].segments.pop_front().expect("it is what comes next");
            ends[end].handle_segment(now, &segment, &mut cx);
        } else {
            ends[end].handle_timeout(now, &mut cx);
        }
        let readable = ends[end].readable();
        if readable > 0 {
            ends[end].read(readable);
        }
        while let Some(segment) = ends[end].poll_transmit(now, &mut cx) {
            paths[end].send(now, segment);
        }
        wakeups[end] = ends[end].next_wakeup().unwrap_or(Instant::FAR_FUTURE);
    }
    ends[0].statistics().data_segments
}

fn pair(criterion: &mut Criterion) {
    let mut config = Profile::Linux6.config();
    config.receive_buffer.maximum = Bytes::new(64 << 20);
    let mut group = criterion.benchmark_group("pair");
    for (name, queue) in [("clean", UNBOUNDED), ("lossy", 1_000)] {
        group.throughput(Throughput::Elements(transfer(&config, queue, u64::MAX)));
        group.bench_function(name, |bencher| bencher.iter(|| transfer(black_box(&config), queue, u64::MAX)));
    }
    group.finish();
}

fn window(criterion: &mut Criterion) {
    let mut config = Profile::Linux6.config();
    config.receive_buffer.initial = Bytes::new(1 << 30);
    config.receive_buffer.maximum = config.receive_buffer.initial;
    config.congestion.algorithm = Algorithm::Fixed;
    let mut group = criterion.benchmark_group("window");
    for segments in [100, 1_000, 10_000, 100_000] {
        config.congestion.fixed_window = segments;
        group.throughput(Throughput::Elements(transfer(&config, UNBOUNDED, 100)));
        group.bench_function(segments.to_string(), |bencher| {
            bencher.iter(|| transfer(black_box(&config), UNBOUNDED, 100));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = pair, window
}
criterion_main!(benches);
