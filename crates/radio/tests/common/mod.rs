//! What the tests share: bearers from a few lines of TOML, and traffic.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod cells;
pub mod contracts;

use airpath_core::{
    Aspect, ComponentId, Context, Direction, DropCause, Dropped, Ecn, Event, FlowId, Instant, LinkState, Memory,
    Packet, PacketStep, RadioEvent, Seed, Slot, Span, StateEvent, UserId,
};
use airpath_link::testing::Arrival;
use airpath_link::{Bearer, Departure};
use airpath_radio::study::dch_simple::{self, DchSimple};
use airpath_radio::study::hs_dsch_simple::{self, HsDschSimple};

pub const UPLINK: &str = r#"
    [uplink.link]
    rate = "64 kbit/s"
    delay = "20 ms"
"#;

/// The 384 kbit/s channel of the study; `more` sets what is to be different.
pub fn dch_384(more: &str) -> dch_simple::Config {
    let text = r#"
        [downlink]
        tti = "10 ms"
        pdu = "40 B"
        channels = 12
        error_unit = "pdu"
        bler = 0.0
        retransmission_delay = "89 ms"
        delay = "20 ms"
    "#;
    airpath_radio::model::read(with(text, more).into()).expect("sound parameters")
}

/// The 384 kbit/s cell of the study; `more` sets what is to be different.
pub fn hs_dsch_384(more: &str) -> hs_dsch_simple::Config {
    let text = r#"
        [downlink]
        tti = "2 ms"
        pdu = "32 B"
        pdus_per_tti = 3
        bler = 0.0
        retransmission_delay = "9.5 ms"
        delay = "20 ms"
    "#;
    airpath_radio::model::read(with(text, more).into()).expect("sound parameters")
}

/// The cell of the study in which C/I levels are drawn; `more` sets what is to be different.
pub fn cell_abc(more: &str) -> hs_dsch_simple::Config {
    let text = r#"
        [downlink]
        tti = "2 ms"
        pdu = "30 B"
        bler = 0.0
        retransmission_delay = "9.5 ms"
        delay = "20 ms"
        [downlink.levels]
        rates = ["120 kbit/s", "240 kbit/s", "360 kbit/s", "480 kbit/s", "640 kbit/s"]
        rate_share = "per-user"
        classes.a = [9, 60, 24, 5, 2]
        classes.b = [4, 32, 43, 9, 12]
        classes.c = [2, 16, 23, 20, 37]
    "#;
    airpath_radio::model::read(with(text, more).into()).expect("sound parameters")
}

/// The parameters of the preset gsm-csd-9600 without errors; `more` has what is to be different.
pub fn csd_9600(more: &toml::Table) -> toml::Table {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../presets/gsm-csd-9600.toml"));
    let mut preset: toml::Table = text.expect("the preset").parse().expect("toml");
    let mut bearer = match preset.remove("bearer") {
        Some(toml::Value::Table(bearer)) => bearer,
        _ => panic!("a preset has a bearer"),
    };
    bearer.remove("model");
    bearer.remove("conditions");
    overlay(&mut bearer, &toml::from_str("radio.frame_errors = 0.0").expect("toml"));
    overlay(&mut bearer, more);
    bearer
}

pub fn overlay(table: &mut toml::Table, more: &toml::Table) {
    for (key, value) in more {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(more)) => overlay(inner, more),
            _ => drop(table.insert(key.clone(), value.clone())),
        }
    }
}

fn with(text: &str, more: &str) -> toml::Table {
    let mut table: toml::Table = format!("{text}\n{UPLINK}").parse().expect("toml");
    let downlink = table["downlink"].as_table_mut().expect("a table");
    downlink.extend(more.parse::<toml::Table>().expect("toml"));
    table
}

pub fn dch(config: &dch_simple::Config, users: usize) -> DchSimple {
    DchSimple::new(config, users, Seed::new(1), "cell").expect("sound parameters")
}

pub fn cell(config: &hs_dsch_simple::Config, classes: &[Option<&str>]) -> HsDschSimple {
    let classes: Vec<_> = classes.iter().map(|class| class.map(str::to_owned)).collect();
    HsDschSimple::new(config, &classes, Seed::new(1), "cell").expect("sound parameters")
}

pub fn packet(id: u64, user: u16, size: u32) -> Packet {
    Packet { id, size, flow: FlowId(0), user: UserId::new(user.into()), ecn: Ecn::NotEct, slot: Slot(0) }
}

/// Packets of `size` bytes down to user 0, one every `gap` from `first` on.
pub fn paced(packets: u64, first: Span, gap: Span, size: u32) -> Vec<Arrival> {
    (0..packets)
        .map(|id| Arrival {
            at: Instant::ZERO + first + gap * id,
            direction: Direction::Down,
            packet: packet(id, 0, size),
        })
        .collect()
}

/// How often an RLC began to reset or failed, and how many times there are at which packets were
/// lost by that.
pub fn resets_and_losses<'a>(events: impl Iterator<Item = (Instant, &'a Event)>) -> (usize, usize) {
    let (mut resets, mut losses) = (0, std::collections::BTreeSet::new());
    for (at, event) in events {
        match event {
            Event::State(state) if state.aspect == Aspect::Link => {
                resets += usize::from(
                    state.value == LinkState::Reset.into() || state.value == LinkState::Disconnected.into(),
                );
            }
            Event::Packet(packet) if packet.step == PacketStep::Dropped(DropCause::AttemptsExhausted) => {
                losses.insert(at);
            }
            _ => {}
        }
    }
    (resets, losses.len())
}

/// What a saturated bearer did.
#[derive(Default)]
pub struct Saturated {
    /// Departures, in their order.
    pub departures: Vec<Departure>,
    /// Losses, in their order.
    pub dropped: Vec<Dropped>,
    /// Bytes of the packets that left, by user.
    pub bytes: Vec<u64>,
    /// Transmissions.
    pub radio: Vec<(Instant, RadioEvent)>,
    /// States.
    pub states: Vec<(Instant, StateEvent)>,
}

impl Saturated {
    /// The share of `time` in which the link was stalled.
    pub fn stalled(&self, time: Span) -> f64 {
        let links = self.states.iter().filter(|(_, state)| state.aspect == Aspect::Link);
        let links: Vec<_> = links.map(|(at, state)| (*at, state.value == LinkState::Stalled.into())).collect();
        let ends = links.iter().skip(1).map(|(at, _)| *at).chain([Instant::ZERO + time]);
        let spans = links.iter().zip(ends).filter(|((_, is_stalled), _)| *is_stalled);
        spans.map(|((from, _), to)| to.since(*from).as_secs_f64()).sum::<f64>() / time.as_secs_f64()
    }
}

/// Keeps 50 packets of 1500 bytes inside the downlink for each of `users`, for `time`.
pub fn saturate(bearer: &mut impl Bearer, users: u16, time: Span) -> Saturated {
    saturate_with(bearer, users, 50, time)
}

/// Keeps this number of `packets` inside the downlink for each of `users`, for `time`.
pub fn saturate_with(bearer: &mut impl Bearer, users: u16, packets: u32, time: Span) -> Saturated {
    saturate_towards(bearer, Direction::Down, users, packets, time)
}

/// The same in either direction.
pub fn saturate_towards(
    bearer: &mut impl Bearer,
    direction: Direction,
    users: u16,
    packets: u32,
    time: Span,
) -> Saturated {
    let mut result = Saturated { bytes: vec![0; usize::from(users)], ..Saturated::default() };
    let mut log = Memory::default();
    let mut id = 0;
    let mut inside = vec![0_u32; usize::from(users)];
    let mut now = Instant::ZERO;
    while now <= Instant::ZERO + time {
        let drops = result.dropped.len();
        let mut cx = Context::new(Some(&mut log), &mut result.dropped, ComponentId(0));
        while let Some((_, departure)) = bearer.pop(now, &mut cx) {
            inside[departure.packet.user.index()] -= 1;
            result.bytes[departure.packet.user.index()] += u64::from(departure.packet.size);
            result.departures.push(departure);
        }
        for lost in &result.dropped[drops..] {
            inside[lost.packet.user.index()] -= 1;
        }
        for user in 0..users {
            while inside[usize::from(user)] < packets {
                let mut cx = Context::new(Some(&mut log), &mut result.dropped, ComponentId(0));
                bearer.push(now, direction, packet(id, user, 1500), &mut cx);
                inside[usize::from(user)] += 1;
                id += 1;
            }
        }
        now = bearer.next_wakeup().expect("it is saturated");
    }
    result.radio = log
        .events
        .iter()
        .filter_map(|(time, _, event)| match event {
            Event::Radio(event) => Some((*time, *event)),
            _ => None,
        })
        .collect();
    let state = |(time, _, event): &(_, _, Event)| match event {
        Event::State(event) => Some((*time, *event)),
        _ => None,
    };
    result.states = log.events.iter().filter_map(state).collect();
    result
}
