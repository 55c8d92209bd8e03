//! Cost of a packet on a link: push, pop and next wake-up, without a listener. The load is a full
//! transmitter behind a standing queue: one packet in, one out.

use std::hint::black_box;
use std::sync::Arc;

use airpath_core::{
    Bitrate, ComponentId, Context, Direction, Ecn, FlowId, Instant, Packet, Probability, Seed, Slot, Span, UserId,
};
use airpath_link::delay::{Delay, Distribution};
use airpath_link::loss::Loss;
use airpath_link::queue::{Discipline, Queue, cake, codel, fq_codel};
use airpath_link::{Bearer, Config, Duplex, Link, Plan, Recording};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PACKETS: u64 = 10_000;
/// Transmission time of 1500 bytes at 1 Gbit/s.
const GAP: Span = Span::from_micros(12);

fn packet(id: u64) -> Packet {
    packet_of(FlowId(0), id)
}

fn packet_of(flow: FlowId, id: u64) -> Packet {
    Packet { id, size: 1500, flow, user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(id as u32) }
}

/// Packets through the link at its rate, after 1000 that fill the queue and the delay line.
fn one_way(criterion: &mut Criterion, name: &str, plan: &Plan) {
    flows_one_way(criterion, name, plan, 1);
}

/// As [`one_way`], with packets of this number of flows in turn.
fn flows_one_way(criterion: &mut Criterion, name: &str, plan: &Plan, flows: u32) {
    let mut link = plan.pipe(Seed::new(1), name);
    let mut lost = Vec::new();
    let mut now = Instant::ZERO;
    let mut id = 0;
    let mut step = |link: &mut airpath_link::Pipe, lost: &mut Vec<_>| {
        let mut cx = Context::new(None, lost, ComponentId(0));
        // Two packets for each flow wait.
        now += if flows > 1 && id < 2 * u64::from(flows) { Span::ZERO } else { GAP };
        link.push(now, packet_of(FlowId(id as u32 % flows), id), &mut cx);
        id += 1;
        while let Some(departure) = link.pop(now, &mut cx) {
            black_box(departure);
        }
        black_box(link.next_wakeup());
        lost.clear();
    };
    (0..1000 + 2 * flows).for_each(|_| step(&mut link, &mut lost));
    let mut group = criterion.benchmark_group("link");
    group.throughput(Throughput::Elements(PACKETS));
    group.bench_function(name, |bencher| bencher.iter(|| (0..PACKETS).for_each(|_| step(&mut link, &mut lost))));
    group.finish();
}

fn two_ways(criterion: &mut Criterion, plan: &Plan) {
    let mut bearer: Box<dyn Bearer> = Box::new(Duplex::from_plans(plan, plan, Seed::new(1), "duplex"));
    let mut lost = Vec::new();
    let mut now = Instant::ZERO;
    let mut id = 0;
    let mut step = |bearer: &mut dyn Bearer| {
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        now += GAP;
        for direction in Direction::BOTH {
            bearer.push(now, direction, packet(id), &mut cx);
            id += 1;
        }
        while let Some(departure) = bearer.pop(now, &mut cx) {
            black_box(departure);
        }
        black_box(bearer.next_wakeup());
        lost.clear();
    };
    (0..1000).for_each(|_| step(bearer.as_mut()));
    let mut group = criterion.benchmark_group("link");
    group.throughput(Throughput::Elements(2 * PACKETS));
    group.bench_function("duplex", |bencher| bencher.iter(|| (0..PACKETS).for_each(|_| step(bearer.as_mut()))));
    group.finish();
}

fn links(criterion: &mut Criterion) {
    let plan = |config: &Config| config.prepare().expect("a sound configuration");
    let plain = Config {
        rate: Some(Bitrate::from_bps(1_000_000_000)),
        queue: Some(Queue::of_packets(1000)),
        delay: Span::from_millis(5).into(),
        ..Config::default()
    };
    one_way(criterion, "rate-delay", &plan(&plain));
    let access = Config { delay: plain.delay, ..Config::default() };
    one_way(criterion, "delay", &plan(&access));
    let lossy = Config { loss: Loss::Bernoulli(Probability::new(0.01).expect("one percent")), ..plain.clone() };
    one_way(criterion, "rate-loss-delay", &plan(&lossy));
    let distribution =
        Distribution::Normal { mean: Span::from_millis(5), deviation: Span::from_millis(1), minimum: Span::ZERO };
    let jittery = Config { delay: Delay { distribution, reorder: true }, ..plain.clone() };
    one_way(criterion, "rate-jitter-reordering", &plan(&jittery));
    for discipline in [
        Discipline::CoDel(Default::default()),
        Discipline::FqCoDel(Default::default()),
        Discipline::Pie(Default::default()),
        Discipline::DualPi2(Default::default()),
        Discipline::Cake(Default::default()),
    ] {
        let name = format!("{}-rate-delay", discipline.name());
        let managed = Queue { discipline, ..Queue::of_packets(1000) };
        one_way(criterion, &name, &plan(&Config { queue: Some(managed), ..plain.clone() }));
    }
    for flows in [10, 1000] {
        // Nothing is dropped, and all flows have packets.
        let codel = codel::Settings { target: Some(Span::from_secs(1_000)), ..codel::Settings::default() };
        let discipline = Discipline::FqCoDel(fq_codel::Settings { codel, ..fq_codel::Settings::default() });
        let config = Config { queue: Some(Queue { discipline, ..Queue::default() }), ..plain.clone() };
        flows_one_way(criterion, &format!("fq-codel-{flows}-flows"), &plan(&config), flows);
        let discipline =
            Discipline::Cake(cake::Settings { target: Some(Span::from_secs(1_000)), ..cake::Settings::default() });
        let config = Config { queue: Some(Queue { discipline, ..Queue::default() }), ..plain.clone() };
        flows_one_way(criterion, &format!("cake-{flows}-flows"), &plan(&config), flows);
    }
    let millis: Vec<u64> = (0..=1000).flat_map(|millis| [millis; 83]).collect();
    let recording = Arc::new(Recording::new(&millis).expect("in order"));
    let recorded = Config { rate: None, ..plain.clone() }.prepare_with(recording).expect("a sound configuration");
    one_way(criterion, "recorded-delay", &recorded);
    two_ways(criterion, &plan(&plain));
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1))
        .warm_up_time(std::time::Duration::from_millis(300));
    targets = links
}
criterion_main!(benches);
