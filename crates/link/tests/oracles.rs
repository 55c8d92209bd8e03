//! Links compared with queueing theory and the specifications.

use crate::common::{arrival, mean_and_error};
use airpath_core::{
    Bitrate, Bytes, ComponentId, Context, DropCause, Ecn, Event, FlowId, Instant, Memory, PacketStep, Seed, Slot, Span,
};
use airpath_link::delay::{Delay, Distribution};
use airpath_link::policer::Policer;
use airpath_link::queue::{Discipline, Queue, cake, codel, dual_pi2, fq_codel, pie};
use airpath_link::testing::{Arrival, OneWay, Outcome, Polling, drive};
use airpath_link::{Change, Config, Departure, Link, Pipe};

fn run(config: &Config, arrivals: &[Arrival]) -> Outcome {
    let horizon = Instant::ZERO + Span::from_secs(1_000_000);
    let path = Pipe::new(config, Seed::new(1), "link").expect("a sound configuration");
    drive(&mut OneWay(path), arrivals, Polling::OnTime, horizon)
}

/// Time inside of each packet that left, in seconds, in the order of departures.
fn times_inside(arrivals: &[Arrival], outcome: &Outcome) -> Vec<f64> {
    let inside = |departure: &Departure| departure.due.since(arrivals[departure.packet.id as usize].at).as_secs_f64();
    outcome.departures.iter().map(|(_, departure)| inside(departure)).collect()
}

/// Packets of 125 bytes, 1 ms each at 1 Mbit/s, at the times of a Poisson process.
fn poisson(load: f64, packets: usize, seed: u64) -> Vec<Arrival> {
    let mut stream = Seed::new(seed).stream("poisson");
    let mut seconds = 0.0;
    (0..packets)
        .map(|id| {
            seconds -= libm::log(1.0 - stream.uniform()) * 1e-3 / load;
            arrival(id, Instant::ZERO + Span::from_secs_f64(seconds), 125)
        })
        .collect()
}

/// M/D/1: the mean wait is ρ/(2μ(1−ρ)).
///
/// The waits of successive packets are correlated, so the error of their mean is computed from 50
/// batches, each far longer than a busy period. The mean must lie within four of these errors of
/// theory (by chance once in 16,000 seeds it does not); a second bound keeps the errors small.
#[test]
fn waiting_at_a_serialiser_is_that_of_m_d_1() {
    let config = Config { rate: Some(Bitrate::from_bps(1_000_000)), ..Config::default() };
    for (load, packets) in [(0.2, 50_000), (0.5, 100_000), (0.8, 200_000), (0.9, 400_000)] {
        let arrivals = poisson(load, packets, 1);
        let waits: Vec<f64> =
            times_inside(&arrivals, &run(&config, &arrivals)).iter().map(|time| time - 1e-3).collect();
        let (mean, error) = mean_and_error(&waits, 50);
        let theory = load * 1e-3 / (2.0 * (1.0 - load));
        assert!((mean - theory).abs() < 4.0 * error, "load {load}: {mean} s, theory {theory} s, error {error} s");
        assert!(error < 0.04 * theory, "load {load}: the error of {error} s is too large to test with");
    }
}

/// M/D/1/2, one waiting and one in transmission. A departing packet leaves the system empty if none
/// arrived in its millisecond, with probability π₀ = e^−ρ; the loss is 1 − 1/(ρ + π₀).
#[test]
fn a_queue_of_one_packet_loses_as_in_theory() {
    let config =
        Config { rate: Some(Bitrate::from_bps(1_000_000)), queue: Some(Queue::of_packets(1)), ..Config::default() };
    for load in [0.5, 1.0, 2.0] {
        let packets = 200_000;
        let outcome = run(&config, &poisson(load, packets, 2));
        let ours = outcome.lost(DropCause::QueueFull).packets as f64 / packets as f64;
        let theory = 1.0 - 1.0 / (load + libm::exp(-load));
        // Independent losses would have a standard deviation below 0.0012; bursts of them, twice
        // that: the bound is four of these.
        assert!((ours - theory).abs() < 0.01, "load {load}: {ours}, theory {theory}");
    }
}

/// A constant overload of 2 packets a millisecond into 1, from the origin on.
fn overload(packets: usize, ecn: Ecn) -> Vec<Arrival> {
    (0..packets)
        .map(|id| {
            let mut arrival = arrival(id, Instant::ZERO + Span::from_micros(500 * id as u64), 125);
            arrival.packet.ecn = ecn;
            arrival
        })
        .collect()
}

fn codel(ecn: bool) -> Config {
    managed(Discipline::CoDel(codel::Settings { ecn, ..codel::Settings::default() }))
}

/// 1 Mbit/s behind a queue with this discipline.
fn managed(discipline: Discipline) -> Config {
    let queue = Some(Queue { discipline, ..Queue::default() });
    Config { rate: Some(Bitrate::from_bps(1_000_000)), queue, ..Config::default() }
}

/// Packets of one flow, one in each `interval` from `from` on until `until`.
fn flow(number: u32, ecn: Ecn, size: u32, interval: Span, (from, until): (Span, Span)) -> Vec<Arrival> {
    let mut at = Instant::ZERO + from;
    std::iter::from_fn(|| {
        let mut next = arrival(0, at, size);
        (next.packet.flow, next.packet.ecn) = (FlowId(number), ecn);
        at += interval;
        (next.at < Instant::ZERO + until).then_some(next)
    })
    .collect()
}

/// Flows in the order of arrival, with packet numbers.
fn merge(flows: impl IntoIterator<Item = Vec<Arrival>>) -> Vec<Arrival> {
    let mut all: Vec<Arrival> = flows.into_iter().flatten().collect();
    all.sort_by_key(|arrival| arrival.at);
    for (id, arrival) in all.iter_mut().enumerate() {
        (arrival.packet.id, arrival.packet.slot) = (id as u64, Slot(id as u32));
    }
    all
}

/// Bytes of a flow that left up to `until`, and the longest time inside of one of its packets, in
/// milliseconds.
fn service(arrivals: &[Arrival], outcome: &Outcome, number: u32, until: Span) -> (u64, f64) {
    let (mut bytes, mut longest) = (0, 0.0f64);
    for (_, departure) in &outcome.departures {
        let (packet, due) = (departure.packet, departure.due);
        if packet.flow == FlowId(number) && due <= Instant::ZERO + until {
            bytes += u64::from(packet.size);
            longest = longest.max(due.since(arrivals[packet.id as usize].at).as_secs_f64() * 1e3);
        }
    }
    (bytes, longest)
}

/// RFC 8290 §4.2: backlogged flows get the same bytes whatever they offer, and whatever the sizes
/// of their packets.
#[test]
fn fq_codel_gives_backlogged_flows_the_same_bytes() {
    let second = Span::from_secs(1);
    let long = (Span::ZERO, Span::from_secs(10));
    let arrivals = merge([
        flow(0, Ecn::NotEct, 1250, Span::from_millis(5), long),
        flow(1, Ecn::NotEct, 250, Span::from_millis(2), long),
        flow(2, Ecn::NotEct, 625, Span::from_millis(7), long),
    ]);
    let outcome = run(&managed(Discipline::FqCoDel(fq_codel::Settings::default())), &arrivals);
    let bytes = [0, 1, 2].map(|number| service(&arrivals, &outcome, number, second.saturating_mul(10)).0 as f64);
    let mean = bytes.iter().sum::<f64>() / 3.0;
    for each in bytes {
        assert!((each / mean - 1.0).abs() < 0.02, "{bytes:?}");
    }
}

/// RFC 8290 §4.2, §6.2: a flow that sends less than its share is new with each packet. It waits at
/// most for the packet in transmission and for the quantum of another new flow.
#[test]
fn fq_codel_and_cake_serve_a_sparse_flow_first() {
    let until = Span::from_secs(10);
    let arrivals = merge([
        flow(0, Ecn::NotEct, 1250, Span::from_millis(5), (Span::ZERO, until)),
        flow(1, Ecn::NotEct, 125, Span::from_millis(40), (Span::from_secs(1), until)),
    ]);
    for discipline in [fq_codel(), Discipline::Cake(cake::Settings::default())] {
        let (_, longest) = service(&arrivals, &run(&managed(discipline), &arrivals), 1, until);
        // 10 ms for the packet in transmission, and 1 ms for its own.
        assert!(longest <= 11.0 + 1e-6, "{longest} ms");
    }
}

fn fq_codel() -> Discipline {
    Discipline::FqCoDel(fq_codel::Settings::default())
}

/// RFC 8290 §4.1: a full queue takes from the longest flow, from its head, half of it at once.
#[test]
fn a_full_fq_codel_shortens_the_longest_flow() {
    let mut config = managed(fq_codel());
    config.queue = Some(Queue { discipline: fq_codel(), ..Queue::of_packets(10) });
    let burst = (Span::ZERO, Span::from_micros(13));
    let arrivals = merge([
        flow(0, Ecn::NotEct, 1250, Span::from_micros(1), burst),
        flow(1, Ecn::NotEct, 1250, Span::from_micros(10), (Span::from_micros(5), Span::from_micros(6))),
    ]);
    let outcome = run(&config, &arrivals);
    let lost: Vec<(u64, u32)> = outcome.drops.iter().map(|lost| (lost.packet.id, lost.packet.flow.0)).collect();
    // The first packet is in transmission. Eleven more of flow 0 and one of flow 1 arrive at a
    // queue for ten: the eleventh drops the first five of nine.
    assert_eq!(lost, [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]);
    assert!(outcome.drops.iter().all(|lost| lost.cause == DropCause::QueueFull));
}

/// RFC 8290 §4.1: the packet is enqueued before the longest flow is determined.
#[test]
fn a_full_fq_codel_counts_the_new_packet() {
    let mut config = managed(fq_codel());
    config.queue = Some(Queue { discipline: fq_codel(), ..Queue::of_packets(10) });
    // After the packet in transmission five of each flow wait. The sixth of a flow makes that flow
    // the longest, and half of its bytes are dropped.
    for last in [0, 1] {
        let micros = Span::from_micros;
        let arrivals = merge([
            flow(0, Ecn::NotEct, 1250, micros(1), (Span::ZERO, micros(6))),
            flow(1, Ecn::NotEct, 1250, micros(1), (micros(10), micros(15))),
            flow(last, Ecn::NotEct, 1250, micros(1), (micros(20), micros(21))),
        ]);
        let lost: Vec<u32> = run(&config, &arrivals).drops.iter().map(|lost| lost.packet.flow.0).collect();
        assert_eq!(lost, [last; 3]);
    }
}

/// COBALT signals after 113.168 ms above its target, which is 48.448 ms at 1 Mbit/s, the time of
/// four packets of 1,514 bytes. Each key changes that.
#[test]
fn cake_drops_by_its_control_law() {
    let first = |settings: cake::Settings| {
        let outcome = run(&managed(Discipline::Cake(settings)), &overload(4_000, Ecn::Ect0));
        let marked = outcome.departures.iter().find(|(_, departure)| departure.packet.ecn == Ecn::Ce);
        let marked = marked.map(|(_, departure)| departure.due.as_secs_f64() * 1e3);
        (marked, outcome.drops.first().map(|lost| (lost.time.as_secs_f64() * 1e3, lost.cause)))
    };
    let default = cake::Settings::default();
    let near = |time: Option<f64>, due: f64| time.is_some_and(|time| (due..due + 3.0).contains(&time));
    // Packet n arrives at n/2 ms and would be dequeued at n ms: the first to have waited for more
    // than 48.448 ms is number 97.
    let (marked, dropped) = first(default.clone());
    assert!(near(marked, 97.0 + 113.2) && dropped.is_none(), "{marked:?}, {dropped:?}");
    let (marked, dropped) = first(cake::Settings { ecn: false, ..default.clone() });
    assert!(marked.is_none() && near(dropped.map(|(time, _)| time), 97.0 + 113.2), "{marked:?}, {dropped:?}");
    assert_eq!(dropped.map(|(_, cause)| cause), Some(DropCause::QueueManagement));
    let (marked, _) = first(cake::Settings { interval: Some(Span::from_millis(20)), ..default.clone() });
    assert!(near(marked, 97.0 + 20.0), "{marked:?}");
    let (marked, _) = first(cake::Settings { target: Some(Span::from_millis(100)), ..default });
    assert!(near(marked, 201.0 + 200.0), "{marked:?}");
}

/// A rate that changes while the link runs changes the targets of CAKE: a standing queue of 10 ms
/// is below that at 1 Mbit/s and above that at 10 Mbit/s, whatever the rate was before.
#[test]
fn the_targets_of_cake_follow_the_rate() {
    let marks = |before, after: u64| {
        let discipline = Discipline::Cake(cake::Settings::default());
        let rate = Some(Bitrate::from_bps(before));
        let config = Config { rate, ..managed(discipline) };
        let mut link = Pipe::new(&config, Seed::new(1), "link").expect("sound");
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        link.command(Instant::ZERO, &Change::Rate(Bitrate::from_bps(after)), &mut cx).expect("a rate");
        let each = Bitrate::from_bps(after).time_for(Bytes::new(125));
        let together = Span::from_millis(10).as_nanos() / each.as_nanos();
        let mut marks = 0;
        for id in 0..together + Span::from_secs(1).as_nanos() / each.as_nanos() {
            let at = Instant::ZERO + each.saturating_mul(id.saturating_sub(together));
            while let Some(departure) = link.pop(at, &mut cx) {
                marks += u32::from(departure.packet.ecn == Ecn::Ce);
            }
            let mut arrival = arrival(id as usize, at, 125);
            arrival.packet.ecn = Ecn::Ect0;
            link.push(at, arrival.packet, &mut cx);
        }
        marks
    };
    assert_eq!(marks(10_000_000, 1_000_000), 0);
    assert!(marks(1_000_000, 10_000_000) > 10);
}

/// RFC 8033 §4.4: no packet of a burst shorter than the allowance is dropped, and later ones are.
#[test]
fn pie_drops_after_the_burst_allowance() {
    let first = |burst| {
        let pie = pie::Settings { burst, ..pie::Settings::default() };
        let drops = run(&managed(Discipline::Pie(pie)), &overload(4_000, Ecn::NotEct)).drops;
        drops.first().expect("a long overload").time.as_secs_f64()
    };
    let (without, with) = (first(Span::ZERO), first(Span::from_secs(1)));
    assert!(without < 0.9, "without an allowance the first drop is at {without} s");
    // The allowance ends with an update of the controller, and there is one in each 15 ms.
    assert!((1.0..1.1).contains(&with), "with an allowance of 1 s the first drop is at {with} s");
}

/// RFC 8033 §5.1, and that drops are those of the discipline.
#[test]
fn pie_marks_up_to_ten_percent() {
    let pie = |ecn| managed(Discipline::Pie(pie::Settings { ecn, ..pie::Settings::default() }));
    let drops = run(&pie(false), &overload(4_000, Ecn::NotEct)).drops;
    let first = drops.first().expect("a long overload").time.as_secs_f64();
    assert!(drops.iter().all(|lost| lost.cause == DropCause::QueueManagement));
    // RFC 8033 §5.1: marks up to 10 %, drops above.
    let outcome = run(&pie(true), &overload(4_000, Ecn::Ect0));
    let marked = outcome.departures.iter().filter(|(_, departure)| departure.packet.ecn == Ecn::Ce).count();
    let later = outcome.drops.first().expect("above 10 %").time.as_secs_f64();
    assert!(marked > 0 && later > first, "{marked} marks, dropped at {later} s, without ECN at {first} s");
}

/// RFC 8033 §4: the delay is held near the target, and the link is used.
#[test]
fn pie_and_the_classic_queue_of_dualpi2_hold_the_delay_at_their_target() {
    for discipline in [Discipline::Pie(pie::Settings::default()), Discipline::DualPi2(dual_pi2::Settings::default())] {
        let rate = Some(Bitrate::from_bps(100_000_000));
        let config = Config { rate, delay: Span::from_millis(25).into(), ..managed(discipline.clone()) };
        let greedy = Greedy::run(&config);
        assert!((7.5..22.5).contains(&greedy.wait), "{discipline:?}: the mean wait is {} ms", greedy.wait);
        assert!(greedy.utilisation > 0.95, "{discipline:?}: {} of the link is idle", 1.0 - greedy.utilisation);
    }
}

/// RFC 9332 §2.4: the L queue does not wait for a long C queue, and a C queue under a full L queue
/// has its share.
#[test]
fn dualpi2_serves_the_l_queue_first_and_protects_the_c_queue() {
    let until = Span::from_secs(10);
    let long = (Span::ZERO, until);
    let dual = managed(Discipline::DualPi2(dual_pi2::Settings::default()));
    let arrivals = merge([
        flow(0, Ecn::NotEct, 1250, Span::from_millis(8), long),
        flow(1, Ecn::Ect1, 125, Span::from_millis(10), (Span::from_millis(1), until)),
    ]);
    let outcome = run(&dual, &arrivals);
    let (_, longest) = service(&arrivals, &outcome, 1, until);
    // 10 ms for the packet in transmission, 10 ms for one of the C queue's share, and its own.
    assert!(longest <= 22.0, "{longest} ms");
    // Before the first update of the controller nothing is dropped: in overload it drops from both
    // queues alike.
    let second = Span::from_secs(1);
    let dual = managed(Discipline::DualPi2(dual_pi2::Settings { update: second, ..dual_pi2::Settings::default() }));
    let arrivals = merge([
        flow(0, Ecn::NotEct, 125, Span::from_micros(500), (Span::ZERO, second)),
        flow(1, Ecn::Ect1, 125, Span::from_micros(500), (Span::ZERO, second)),
    ]);
    let outcome = run(&dual, &arrivals);
    let [classic, scalable] = [0, 1].map(|number| service(&arrivals, &outcome, number, second).0 as f64);
    let share = classic / (classic + scalable);
    assert!((0.09..0.11).contains(&share), "the C queue has {share} of the link");
    // Also if the C queue is empty in between: its traffic is smooth, and twice its share.
    let arrivals = merge([
        flow(0, Ecn::NotEct, 125, Span::from_millis(5), (Span::ZERO, second)),
        flow(1, Ecn::Ect1, 125, Span::from_micros(500), (Span::ZERO, second)),
    ]);
    let (bytes, _) = service(&arrivals, &run(&dual, &arrivals), 0, second);
    let share = bytes as f64 / 125_000.0;
    assert!((0.09..0.11).contains(&share), "the C queue has {share} of the link");
}

/// The L queue is marked by its sojourn time, and not below the step.
#[test]
fn dualpi2_marks_above_the_step() {
    let dual = managed(Discipline::DualPi2(dual_pi2::Settings::default()));
    // A packet of 125 bytes takes 1 ms.
    let count = |together: usize| {
        let burst = (Span::ZERO, Span::from_micros(together as u64));
        let outcome = run(&dual, &merge([flow(0, Ecn::Ect1, 125, Span::from_micros(1), burst)]));
        assert_eq!(outcome.departures.len(), together);
        outcome.departures.iter().filter(|(_, departure)| departure.packet.ecn == Ecn::Ce).count()
    };
    // The first does not wait; the second waits for 1 ms less a microsecond, the third for 2 ms
    // less two. Whether packets wait behind them does not matter, as with `min_qlen_step` 0 in
    // Linux.
    assert_eq!([1, 2, 3, 4, 10].map(count), [0, 0, 1, 2, 8]);
}

/// RFC 8289 §5: the wait exceeds 5 ms from some dequeue on; 100 ms later the first packet is
/// dropped, and the n-th drop is followed by the next after 100 ms/√n.
#[test]
fn codel_drops_by_its_control_law() {
    let drops = run(&codel(false), &overload(4_000, Ecn::NotEct)).drops;
    // Packet n arrives at n/2 ms and would be dequeued at n ms: the first to have waited 5 ms is
    // number 10.
    let mut due = 10.0 + 100.0;
    for (index, lost) in drops.iter().take(30).enumerate() {
        assert_eq!(lost.cause, DropCause::QueueManagement);
        let ours = lost.time.as_secs_f64() * 1e3;
        // A packet is dequeued every millisecond.
        assert!((due..due + 1.0 + 1e-6).contains(&ours), "drop {index} at {ours} ms instead of {due}");
        // The first sets the clock of the others.
        let from = if index == 0 { ours } else { due };
        due = from + 100.0 / ((index + 1) as f64).sqrt();
    }
}

#[test]
fn codel_marks_where_it_would_drop() {
    let arrivals = overload(2_000, Ecn::Ect0);
    let outcome = run(&codel(true), &arrivals);
    // While packets arrive: afterwards the queue that marking leaves takes longer to drain than
    // that of drops.
    let end = Instant::ZERO + Span::from_secs(1);
    let marks = |outcome: &Outcome| {
        let in_time = outcome.departures.iter().filter(|(_, departure)| departure.due <= end);
        in_time.filter(|(_, departure)| departure.packet.ecn == Ecn::Ce).count()
    };
    let marked = marks(&outcome);
    assert!(marked > 20 && outcome.drops.is_empty(), "{marked} marks, {} drops", outcome.drops.len());
    assert_eq!(marks(&run(&codel(false), &arrivals)), 0, "marking is off");
    let dropped = run(&codel(true), &overload(2_000, Ecn::NotEct)).drops;
    let dropped = dropped.iter().filter(|lost| lost.time <= end).count();
    assert!(dropped.abs_diff(marked) <= 2, "{dropped} drops of what cannot be marked, {marked} marks of what can");
}

/// Twenty greedy flows with additive increase and multiplicative decrease, over 100 Mbit/s and a
/// round trip of 50 ms: CoDel keeps the link busy and the wait near its target of 5 ms, where
/// drop-tail fills its queue.
#[test]
fn codel_holds_the_standing_queue_near_its_target() {
    let config =
        Config { rate: Some(Bitrate::from_bps(100_000_000)), delay: Span::from_millis(25).into(), ..codel(false) };
    let greedy = Greedy::run(&config);
    assert!((1.0..10.0).contains(&greedy.wait), "CoDel's mean wait is {} ms", greedy.wait);
    assert!(greedy.utilisation > 0.9, "CoDel leaves {} of the link idle", 1.0 - greedy.utilisation);
    // 1000 packets of 1250 bytes are 100 ms.
    let full = Greedy::run(&Config { queue: Some(Queue::of_packets(1000)), ..config });
    assert!(full.wait > 60.0, "drop-tail's mean wait is {} ms", full.wait);
}

/// Result of greedy flows between the fifth and the twentieth second.
struct Greedy {
    /// Mean time in the queue, in milliseconds.
    wait: f64,
    /// Share of the rate that was delivered.
    utilisation: f64,
}

impl Greedy {
    const FLOWS: usize = 20;
    const SIZE: u32 = 1250;
    const BACK: Span = Span::from_millis(25);

    fn run(config: &Config) -> Self {
        let (start, end) = (Instant::ZERO + Span::from_secs(5), Instant::ZERO + Span::from_secs(20));
        let mut link = Pipe::new(config, Seed::new(1), "link").expect("sound");
        let mut lost = Vec::new();
        // Per flow: window, packets inside, and the first packet sent since the last decrease.
        let mut flows = [(2.0f64, 0usize, 0usize); Self::FLOWS];
        // Feedback to the senders: time, packet, and whether it was lost.
        let mut feedback: std::collections::BTreeSet<(Instant, usize, bool)> =
            (0..Self::FLOWS).map(|flow| (Instant::ZERO + Span::from_millis(flow as u64), flow, false)).collect();
        let mut sent: Vec<Instant> = vec![Instant::ZERO; Self::FLOWS];
        flows.iter_mut().for_each(|flow| flow.1 = 1);
        let (mut waits, mut packets) = (0.0, 0u64);
        let fixed = Span::from_micros(100) + Self::BACK;
        loop {
            let first = feedback.first().map_or(Instant::FAR_FUTURE, |(time, ..)| *time);
            let now = link.next_wakeup().map_or(first, |wakeup| wakeup.min(first));
            if now > end {
                break;
            }
            let mut cx = Context::new(None, &mut lost, ComponentId(0));
            while let Some(Departure { due, packet }) = link.pop(now, &mut cx) {
                if due >= start {
                    waits += (due.since(sent[packet.id as usize]).saturating_sub(fixed)).as_secs_f64() * 1e3;
                    packets += 1;
                }
                feedback.insert((due + Self::BACK, packet.id as usize, false));
            }
            while let Some((time, id, was_lost)) = feedback.first().copied().filter(|(time, ..)| *time <= now) {
                feedback.pop_first();
                let (window, inside, since) = &mut flows[id % Self::FLOWS];
                *inside -= 1;
                if !was_lost {
                    *window += 1.0 / *window;
                } else if id >= *since {
                    *window = (*window / 2.0).max(2.0);
                    *since = sent.len();
                }
                while *inside < *window as usize {
                    // The id identifies the flow.
                    let next = sent.len().next_multiple_of(Self::FLOWS) + id % Self::FLOWS;
                    sent.resize(next + 1, time);
                    link.push(time, arrival(next, time, Self::SIZE).packet, &mut cx);
                    *inside += 1;
                }
            }
            for lost in lost.drain(..) {
                feedback.insert((lost.time + Self::BACK + Self::BACK, lost.packet.id as usize, true));
            }
        }
        let bits = packets as f64 * f64::from(Self::SIZE) * 8.0;
        let rate = config.rate.expect("it has one").as_bps() as f64;
        Self { wait: waits / packets as f64, utilisation: bits / rate / end.since(start).as_secs_f64() }
    }
}

/// What a policer drops never enters the queue, and what it passes is not delayed by it.
#[test]
fn a_policer_drops_on_entry_before_the_queue() {
    // A packet of 1,250 bytes each millisecond, at ten times the policed rate, for two seconds.
    let arrivals: Vec<Arrival> =
        (0..2_000).map(|id| arrival(id, Instant::ZERO + Span::from_millis(id as u64), 1_250)).collect();
    let policer = Some(Policer { rate: Bitrate::from_bps(1_000_000), burst: Bytes::new(12_500) });
    let rate = Some(Bitrate::from_bps(100_000_000));
    let outcome = run(&Config { policer, rate, queue: Some(Queue::of_packets(1)), ..Config::default() }, &arrivals);
    assert_eq!(outcome.lost(DropCause::Policer).packets as usize + outcome.departures.len(), arrivals.len());
    // The bucket of ten packets gains one each 10 ms: it is empty after 11 packets. From then on
    // one in ten passes.
    let passed: Vec<u64> = outcome.departures.iter().map(|(_, departure)| departure.packet.id).collect();
    assert_eq!(passed, [(0..=10).collect::<Vec<u64>>(), (20..2_000).step_by(10).collect()].concat());
    let sending = Span::from_micros(100).as_secs_f64();
    assert!(times_inside(&arrivals, &outcome).iter().all(|time| (time - sending).abs() < 1e-9));
    for lost in &outcome.drops {
        assert_eq!(lost.time, arrivals[lost.packet.id as usize].at);
    }
}

#[test]
fn limits_are_for_what_waits() {
    let rate = Some(Bitrate::from_bps(1_000_000));
    let burst: Vec<Arrival> = (0..20).map(|id| arrival(id, Instant::ZERO, 125)).collect();
    for discipline in [
        Discipline::DropTail,
        Discipline::CoDel(codel::Settings::default()),
        Discipline::Pie(pie::Settings::default()),
        Discipline::DualPi2(dual_pi2::Settings::default()),
    ] {
        let left = |packets, bytes: Option<u64>| {
            let queue = Queue { packets, bytes: bytes.map(Bytes::new), discipline: discipline.clone() };
            let outcome = run(&Config { rate, queue: Some(queue), ..Config::default() }, &burst);
            assert_eq!(outcome.lost(DropCause::QueueFull).packets as usize, 20 - outcome.departures.len());
            outcome.departures.len()
        };
        assert_eq!(left(None, None), 20);
        assert_eq!(left(Some(5), None), 6, "five wait, and one is being sent");
        assert_eq!(left(None, Some(500)), 5, "four wait, and one is being sent");
        assert_eq!(left(None, Some(499)), 4);
        assert_eq!(left(None, Some(1)), 1, "one that finds the transmitter idle need not wait");
        assert_eq!(left(Some(3), Some(250)), 3, "the tighter limit counts");
    }
}

#[test]
fn the_backlog_is_what_is_not_completely_sent() {
    for config in [Config { queue: None, ..codel(false) }, codel(false)] {
        let mut path = Pipe::new(&config, Seed::new(1), "link").expect("sound");
        let (mut log, mut lost) = (Memory::default(), Vec::new());
        for (id, millis) in [0, 0, 0, 1, 50].into_iter().enumerate() {
            let arrival = arrival(id, Instant::ZERO + Span::from_millis(millis), 125);
            path.push(arrival.at, arrival.packet, &mut Context::new(Some(&mut log), &mut lost, ComponentId(0)));
        }
        let backlogs: Vec<_> = log
            .events
            .iter()
            .map(|(_, _, event)| match event {
                Event::Packet(event) => match event.step {
                    PacketStep::Queued { backlog_packets, backlog_bytes } => (backlog_packets, backlog_bytes),
                    step => panic!("{step:?}"),
                },
                event => panic!("{event:?}"),
            })
            .collect();
        // At 1 ms the first is sent and the second begins.
        assert_eq!(backlogs, [(1, 125), (2, 250), (3, 375), (3, 375), (1, 125)]);
    }
}

/// Draws must be the same to the nanosecond on every machine: these are the values of one.
#[test]
fn random_delays_are_the_same_on_every_machine() {
    let (mean, minimum) = (Span::from_millis(50), Span::from_millis(20));
    let deviation = Span::from_millis(5);
    let arrivals: Vec<Arrival> = (0..200).map(|id| arrival(id, Instant::ZERO, 1500)).collect();
    let sums = [
        Distribution::Normal { mean, deviation, minimum },
        Distribution::Exponential { mean, minimum },
        Distribution::Pareto { mean, minimum },
    ]
    .map(|distribution| {
        let config = Config { delay: Delay { distribution, reorder: true }, ..Config::default() };
        let outcome = run(&config, &arrivals);
        outcome.departures.iter().map(|(_, departure)| departure.due.as_nanos()).sum::<u64>()
    });
    assert_eq!(sums, [9_996_736_529, 9_946_929_602, 9_268_945_622]);
}
