//! Links compared with queueing theory and the specifications.

mod common;

use airpath_core::{
    Bitrate, Bytes, ComponentId, Context, DropCause, Ecn, Event, Instant, Memory, PacketStep, Seed, Span,
};
use airpath_link::delay::{Delay, Distribution};
use airpath_link::queue::{Discipline, Queue, codel};
use airpath_link::testing::{Arrival, OneWay, Outcome, Polling, drive};
use airpath_link::{Config, Departure, Link, Pipe};
use common::{arrival, mean_and_error};

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
    let discipline = Discipline::CoDel(codel::Settings { ecn, ..codel::Settings::default() });
    let queue = Some(Queue { discipline, ..Queue::default() });
    Config { rate: Some(Bitrate::from_bps(1_000_000)), queue, ..Config::default() }
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

#[test]
fn limits_are_for_what_waits() {
    let rate = Some(Bitrate::from_bps(1_000_000));
    let burst: Vec<Arrival> = (0..20).map(|id| arrival(id, Instant::ZERO, 125)).collect();
    for discipline in [Discipline::DropTail, Discipline::CoDel(codel::Settings::default())] {
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
