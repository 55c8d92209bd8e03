//! The contracts of links and bearers, on random links, chains and bearers under random traffic.

use std::sync::Arc;

use airpath_core::{Bitrate, Bytes, ComponentId, Context, Direction, Instant, Memory, Probability, Seed, Span};
use airpath_link::delay::{Delay, Distribution};
use airpath_link::loss::{GilbertElliott, Loss};
use airpath_link::policer::Policer;
use airpath_link::queue::{Discipline, Queue, cake, codel, dual_pi2, fq_codel, pie};
use airpath_link::testing::{
    Arrival, Commands, OneWay, Polling, Script, Traffic, contracts, drive, idle_sleeps, order_kept,
};
use airpath_link::{Bearer, Chain, Config, Duplex, Link, Pipe, Plan, Recording};
use proptest::prelude::*;

const HORIZON: Instant = Instant::from_nanos(100_000 * 1_000_000_000);

/// A link, and whether it keeps the order of its packets.
fn any_plan() -> impl Strategy<Value = Plan> {
    (any_transmitter(), any_policer(), any_loss(), any_delay()).prop_map(|(transmitter, policer, loss, delay)| {
        let config = Config { policer, loss, delay, ..Config::default() };
        match transmitter {
            Transmitter::Open => config.prepare(),
            Transmitter::Rate(rate, queue) => Config { rate: Some(rate), queue, ..config }.prepare(),
            Transmitter::Recorded(millis, queue) => {
                let recording = Recording::new(&millis).expect("in order");
                Config { queue, ..config }.prepare_with(Arc::new(recording))
            }
        }
        .expect("a sound configuration")
    })
}

#[derive(Clone, Debug)]
enum Transmitter {
    Open,
    Rate(Bitrate, Option<Queue>),
    Recorded(Vec<u64>, Option<Queue>),
}

fn any_transmitter() -> impl Strategy<Value = Transmitter> {
    prop_oneof![
        1 => Just(Transmitter::Open),
        // The traffic is about 3 Mbit/s: from heavy overload to nearly no queue.
        4 => (100_000u64..20_000_000, any_queue()).prop_map(|(bps, queue)| Transmitter::Rate(Bitrate::from_bps(bps), queue)),
        2 => (prop::collection::vec(0u64..200, 1..100), any_queue()).prop_map(|(mut millis, queue)| {
            millis.sort_unstable();
            millis.push(200);
            Transmitter::Recorded(millis, queue)
        }),
    ]
}

fn any_policer() -> impl Strategy<Value = Option<Policer>> {
    // The traffic is about 3 Mbit/s, in bursts.
    prop::option::of(
        (100_000u64..10_000_000, 1_500u64..30_000)
            .prop_map(|(bps, bytes)| Policer { rate: Bitrate::from_bps(bps), burst: Bytes::new(bytes) }),
    )
}

fn any_queue() -> impl Strategy<Value = Option<Queue>> {
    let discipline = prop_oneof![
        Just(Discipline::DropTail),
        (1u64..20, 1u64..100, any::<bool>()).prop_map(|(target, interval, ecn)| {
            let (target, interval) = (Span::from_millis(target), Span::from_millis(interval));
            Discipline::CoDel(codel::Settings { target: Some(target), interval, ecn })
        }),
        (1u64..20, 1u64..100, any::<bool>(), 1u32..5, 256u32..2_000).prop_map(
            |(target, interval, ecn, flows, quantum)| {
                let (target, interval) = (Some(Span::from_millis(target)), Span::from_millis(interval));
                let codel = codel::Settings { target, interval, ecn };
                Discipline::FqCoDel(fq_codel::Settings { codel, flows, quantum })
            }
        ),
        (1u64..50, 1u64..100, 0u64..200, any::<bool>()).prop_map(|(target, update, burst, ecn)| {
            let (target, update) = (Some(Span::from_millis(target)), Span::from_millis(update));
            Discipline::Pie(pie::Settings { target, update, burst: Span::from_millis(burst), ecn })
        }),
        (1u64..50, 1u64..100, 1u64..10, 0.1..8.0, 0.0..0.9).prop_map(
            |(target, update, step, coupling, classic_share)| {
                let [target, update, step] = [target, update, step].map(Span::from_millis);
                let (target, step) = (Some(target), Some(step));
                Discipline::DualPi2(dual_pi2::Settings { target, update, step, coupling, classic_share })
            }
        ),
        (prop::option::of(1u64..20), prop::option::of(1u64..100), any::<bool>(), any::<bool>()).prop_map(
            |(target, interval, ecn, by_flow)| {
                let [target, interval] = [target, interval].map(|millis| millis.map(Span::from_millis));
                let isolation = if by_flow { cake::Isolation::Flows } else { cake::Isolation::Mobiles };
                Discipline::Cake(cake::Settings { target, interval, isolation, ecn })
            }
        ),
    ];
    let bytes = prop::option::of((1u64..60_000).prop_map(Bytes::new));
    prop::option::of((prop::option::of(1u32..50), bytes, discipline).prop_map(|(packets, bytes, discipline)| Queue {
        packets,
        bytes,
        discipline,
    }))
}

fn any_probability() -> impl Strategy<Value = Probability> {
    (0.0..=1.0).prop_map(|p| Probability::new(p).expect("within range"))
}

fn any_loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::default()),
        (0.0..0.3).prop_map(|p| Loss::Bernoulli(Probability::new(p).expect("within range"))),
        (any_probability(), 0.01..=1.0, any_probability(), any_probability()).prop_map(|(enter, leave, bad, good)| {
            Loss::GilbertElliott(GilbertElliott {
                good_to_bad: enter,
                bad_to_good: Probability::new(leave).expect("within range"),
                loss_in_bad: bad,
                loss_in_good: good,
            })
        }),
    ]
}

fn any_delay() -> impl Strategy<Value = Delay> {
    let micros = || (0u64..50_000).prop_map(Span::from_micros);
    let distribution = prop_oneof![
        micros().prop_map(Distribution::Fixed),
        (micros(), micros()).prop_map(|(minimum, more)| Distribution::Uniform { minimum, maximum: minimum + more }),
        (micros(), micros(), micros()).prop_map(|(minimum, more, deviation)| Distribution::Normal {
            mean: minimum + more,
            deviation,
            minimum
        }),
        (micros(), micros()).prop_map(|(minimum, more)| Distribution::Exponential { mean: minimum + more, minimum }),
        (micros(), micros()).prop_map(|(minimum, more)| {
            let minimum = minimum + Span::from_nanos(1);
            Distribution::Pareto { mean: minimum + more + Span::from_nanos(1), minimum }
        }),
    ];
    (distribution, any::<bool>()).prop_map(|(distribution, reorder)| Delay { distribution, reorder })
}

fn traffic(seed: u64, directions: &'static [Direction]) -> Vec<Arrival> {
    Traffic { users: 2, directions, ..Traffic::default() }.arrivals(seed)
}

fn check<B: Bearer>(make: impl Fn() -> B + Copy, arrivals: &[Arrival], keeps_order: bool) {
    contracts(make, arrivals, HORIZON);
    idle_sleeps(make, arrivals, HORIZON);
    if keeps_order {
        order_kept(make, arrivals, HORIZON);
    }
    let until = arrivals.last().map_or(Instant::ZERO, |last| last.at) + Span::from_millis(100);
    let commands = Commands { commands: 12, until, users: 2, classes: &[], reorder: !keeps_order };
    let commands = commands.draw(arrivals.len() as u64 + until.as_nanos());
    let script = Script { arrivals, commands: &commands };
    contracts(make, script, HORIZON);
    contracts(make, script, until);
    idle_sleeps(make, script, HORIZON);
    if keeps_order {
        order_kept(make, script, HORIZON);
    }
}

fn keeps_order(plan: &Plan) -> bool {
    let config = plan.config();
    !config.delay.reorder && config.queue.as_ref().is_none_or(|queue| queue.discipline.keeps_order())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 4))]

    #[test]
    fn every_link_keeps_the_contracts(plan in any_plan(), seed: u64) {
        let make = || OneWay(plan.pipe(Seed::new(seed), "link"));
        check(make, &traffic(seed, &[Direction::Down]), keeps_order(&plan));
    }

    #[test]
    fn every_chain_keeps_the_contracts(plans in prop::collection::vec(any_plan(), 1..5), seed: u64) {
        let make = || OneWay(chain(&plans, seed));
        check(make, &traffic(seed, &[Direction::Down]), plans.iter().all(keeps_order));
    }

    #[test]
    fn every_duplex_keeps_the_contracts(
        down in any_plan(),
        up in prop::collection::vec(any_plan(), 1..3),
        seed: u64,
    ) {
        let make = || Duplex::new(down.pipe(Seed::new(seed), "down"), chain(&up, seed));
        check(make, &traffic(seed, &Direction::BOTH), keeps_order(&down) && up.iter().all(keeps_order));
    }

    #[test]
    fn a_link_is_the_chain_of_its_parts(
        bps in 100_000u64..20_000_000,
        policer in any_policer(),
        queue in any_queue(),
        loss in any_loss(),
        micros in 0u64..50_000,
        seed: u64,
    ) {
        let sender = Config { rate: Some(Bitrate::from_bps(bps)), queue, ..Config::default() };
        let entry = Config { policer, ..Config::default() };
        let lossy = Config { loss, ..Config::default() };
        let wire = Config { delay: Span::from_micros(micros).into(), ..Config::default() };
        let whole = Config { policer, loss, delay: wire.delay, ..sender.clone() };
        let arrivals = traffic(seed, &[Direction::Down]);
        // With the same name they draw from the same streams.
        let path = |config: &Config| Pipe::new(config, Seed::new(seed), "link").expect("sound");
        let mut whole = OneWay(path(&whole));
        let mut parts = OneWay(Chain::new([&entry, &sender, &lossy, &wire].map(path).into()));
        prop_assert_eq!(
            drive(&mut whole, &arrivals, Polling::OnTime, HORIZON),
            drive(&mut parts, &arrivals, Polling::OnTime, HORIZON)
        );
    }

    #[test]
    fn an_inactive_codel_is_a_drop_tail_queue(transmitter in any_transmitter(), seed: u64) {
        let (config, recording) = match transmitter {
            Transmitter::Rate(rate, _) => (Config { rate: Some(rate), ..Config::default() }, None),
            Transmitter::Recorded(millis, _) => {
                (Config::default(), Some(Arc::new(Recording::new(&millis).expect("in order"))))
            }
            Transmitter::Open => return Ok(()),
        };
        let arrivals = traffic(seed, &[Direction::Down]);
        let run = |discipline| {
            let queue = Some(Queue { packets: Some(20), bytes: None, discipline });
            let config = Config { queue, ..config.clone() };
            let plan = match &recording {
                Some(recording) => config.prepare_with(recording.clone()),
                None => config.prepare(),
            };
            let mut link = OneWay(plan.expect("sound").pipe(Seed::new(seed), "link"));
            drive(&mut link, &arrivals, Polling::OnTime, HORIZON)
        };
        let never = codel::Settings { target: Some(Span::from_secs(1_000)), ..codel::Settings::default() };
        prop_assert_eq!(run(Discipline::CoDel(never)), run(Discipline::DropTail));
    }

    #[test]
    fn events_reported_late_are_in_order(plan in any_plan(), seed: u64) {
        let mut path = plan.pipe(Seed::new(seed), "link");
        let (mut log, mut lost) = (Memory::default(), Vec::new());
        for arrival in traffic(seed, &[Direction::Down]) {
            path.push(arrival.at, arrival.packet, &mut Context::new(Some(&mut log), &mut lost, ComponentId(0)));
        }
        let pushed = log.events.len();
        while path.pop(Instant::FAR_FUTURE, &mut Context::new(Some(&mut log), &mut lost, ComponentId(0))).is_some() {}
        prop_assert!(lost.is_sorted_by_key(|lost| lost.time));
        prop_assert!(log.events[pushed..].is_sorted_by_key(|(time, ..)| *time));
    }

    #[test]
    fn losses_do_not_shift_the_draws_of_delays(loss in any_loss(), delay in any_delay(), seed: u64) {
        // The delays are independent when packets may overtake each other.
        let delay = Delay { reorder: true, ..delay };
        let arrivals = traffic(seed, &[Direction::Down]);
        let run = |loss| {
            let path = Pipe::new(&Config { loss, delay, ..Config::default() }, Seed::new(seed), "link");
            drive(&mut OneWay(path.expect("sound")), &arrivals, Polling::OnTime, HORIZON).departures
        };
        let all = run(Loss::default());
        prop_assert!(run(loss).iter().all(|departure| all.contains(departure)));
    }
}

fn chain(plans: &[Plan], seed: u64) -> Chain<Pipe> {
    let links = plans.iter().enumerate().map(|(index, plan)| plan.pipe(Seed::new(seed), &format!("link-{index}")));
    Chain::new(links.collect())
}
