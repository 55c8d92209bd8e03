//! Cells of LTE and NR: from a preset to what comes out of a run.

use std::collections::BTreeMap;

use airpath_core::{
    ComponentId, Context, Direction, Dropped, Event, Instant, Memory, RadioEvent, Seed, Span, StateEvent,
};
use airpath_link::{Bearer, BearerCommand, Departure};
use airpath_radio::ofdma::{CellBearer, Technology};
use serde::de::DeserializeOwned;

/// The preset `name` with what `more` has, and without the tables in `less`.
pub fn config<T: DeserializeOwned>(name: &str, more: &str, less: &[&str]) -> T {
    try_config(name, more, less).expect("parameters of the right types")
}

/// The same, if the parameters have the right types.
pub fn try_config<T: DeserializeOwned>(name: &str, more: &str, less: &[&str]) -> Result<T, toml::de::Error> {
    let mut bearer = parameters(name);
    for table in less {
        match table.split_once('.') {
            Some((table, key)) => drop(bearer[table].as_table_mut().expect("a table").remove(key)),
            None => drop(bearer.remove(*table)),
        }
    }
    super::overlay(&mut bearer, &PLAIN.parse().expect("TOML"));
    super::overlay(&mut bearer, &more.parse().expect("TOML"));
    bearer.try_into()
}

/// The parameters of the preset `name`.
pub fn parameters(name: &str) -> toml::Table {
    let path = format!("{}/../../presets/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let mut preset: toml::Table = std::fs::read_to_string(path).expect("the preset").parse().expect("TOML");
    let mut bearer = match preset.remove("bearer") {
        Some(toml::Value::Table(bearer)) => bearer,
        _ => panic!("a preset has a bearer"),
    };
    bearer.remove("model");
    bearer
}

/// Without delays beside the radio's and without mistaken feedback, unless a test sets them.
const PLAIN: &str = "cell.delay = \"0 ms\"\nmobile.processing = \"0 ms\"\nharq.nack_to_ack = 0.0";

/// What came out of a run.
#[derive(Default)]
pub struct Outcome {
    pub departures: Vec<(Direction, Departure)>,
    pub dropped: Vec<Dropped>,
    pub radio: Vec<(Instant, RadioEvent)>,
    pub states: Vec<(Instant, StateEvent)>,
}

impl Outcome {
    /// The blocks of a direction, with their times.
    pub fn blocks(&self, direction: Direction) -> impl Iterator<Item = &(Instant, RadioEvent)> {
        self.radio.iter().filter(move |(_, event)| event.direction == direction)
    }

    /// Delays of packets that came out in the order in which they were pushed, in milliseconds.
    pub fn delays(&self, packets: &[Pushed]) -> Vec<f64> {
        let delays = self.departures.iter().zip(packets);
        delays.map(|((_, out), (at, ..))| out.due.since(*at).as_secs_f64() * 1e3).collect()
    }
}

/// When a packet comes, its direction, user and size.
pub type Pushed = (Instant, Direction, u16, u32);

/// Pushes packets, and runs until `end`.
pub fn run<T: Technology>(config: &T, users: usize, packets: &[Pushed], end: Span) -> Outcome {
    let bearer = CellBearer::new(config, users, Seed::new(3), "cell").expect("sound parameters");
    run_bearer(bearer, packets, &[], end)
}

/// Pushes packets into a bearer and changes its conditions, both in the order of time, and runs
/// until `end`.
pub fn run_bearer(
    mut bearer: impl Bearer,
    packets: &[Pushed],
    commands: &[(Instant, BearerCommand)],
    end: Span,
) -> Outcome {
    let mut commands = commands.iter().peekable();
    let (mut log, mut dropped) = (Memory::default(), Vec::new());
    let mut cx = Context::new(Some(&mut log), &mut dropped, ComponentId(0));
    let mut departures = Vec::new();
    for (id, (at, direction, user, size)) in (0..).zip(packets) {
        while let Some((time, command)) = commands.next_if(|(time, _)| time <= at) {
            while let Some(departure) = bearer.pop(*time, &mut cx) {
                departures.push(departure);
            }
            bearer.command(*time, command, &mut cx).expect("it can do that");
        }
        while let Some(departure) = bearer.pop(*at, &mut cx) {
            departures.push(departure);
        }
        bearer.push(*at, *direction, super::packet(id, *user, *size), &mut cx);
    }
    for (time, command) in commands {
        while let Some(departure) = bearer.pop(*time, &mut cx) {
            departures.push(departure);
        }
        bearer.command(*time, command, &mut cx).expect("it can do that");
    }
    while let Some(departure) = bearer.pop(Instant::ZERO + end, &mut cx) {
        departures.push(departure);
    }
    let radio = log.events.iter().filter_map(|(at, _, event)| match event {
        Event::Radio(event) => Some((*at, *event)),
        _ => None,
    });
    let states = log.events.iter().filter_map(|(at, _, event)| match event {
        Event::State(event) => Some((*at, *event)),
        _ => None,
    });
    Outcome { departures, radio: radio.collect(), states: states.collect(), dropped }
}

/// `packets` of `size` bytes at once.
pub fn burst(packets: usize, direction: Direction, size: u32) -> Vec<Pushed> {
    vec![(Instant::ZERO, direction, 0, size); packets]
}

pub fn at_millis(millis: f64) -> Instant {
    Instant::ZERO + Span::from_secs_f64(millis / 1e3)
}

/// Least, mean and largest.
pub fn statistics(delays: &[f64]) -> [f64; 3] {
    let (least, most) = delays.iter().fold((f64::MAX, 0.0f64), |(a, b), delay| (a.min(*delay), b.max(*delay)));
    [least, delays.iter().sum::<f64>() / delays.len() as f64, most]
}

/// The shares of the gaps between milliseconds with a delivery, by length in milliseconds.
pub fn gaps(outcome: &Outcome) -> BTreeMap<u64, f64> {
    let mut times: Vec<u64> = outcome.departures.iter().map(|(_, out)| out.due.as_nanos() / 1_000_000).collect();
    times.dedup();
    let mut shares = BTreeMap::new();
    let count = times.len() as f64 - 1.0;
    times.windows(2).for_each(|pair| *shares.entry(pair[1] - pair[0]).or_insert(0.0) += 1.0 / count);
    shares
}

/// The mean delay of `packets` isolated downlink packets, `apart` milliseconds each and a bit more.
pub fn mean_down<T: Technology>(config: &T, count: u32, apart: f64, jitter: f64) -> f64 {
    let mut stream = Seed::new(9).stream("arrivals");
    let packets: Vec<_> = (0..count)
        .map(|n| (at_millis(apart * f64::from(n + 1) + jitter * stream.uniform()), Direction::Down, 0, 100))
        .collect();
    let outcome = run(config, 1, &packets, Span::from_secs_f64(apart * f64::from(count + 20) / 1e3));
    assert_eq!(outcome.departures.len(), count as usize);
    outcome.delays(&packets).iter().sum::<f64>() / f64::from(count)
}

/// The share of blocks of a direction that were in error at their first transmission, after the
/// first `skip` of them.
pub fn first_errors(outcome: &Outcome, direction: Direction, skip: usize) -> f64 {
    let first = outcome.blocks(direction).filter(|(_, event)| event.repeated == 0).skip(skip);
    let (mut blocks, mut errors) = (0.0, 0.0);
    first.for_each(|(_, event)| (blocks, errors) = (blocks + 1.0, errors + f64::from(u8::from(event.errored > 0))));
    errors / blocks
}
