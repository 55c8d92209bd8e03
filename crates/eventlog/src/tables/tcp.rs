//! The table `tcp`.

use airpath_core::{TcpEvent, TcpTrigger};

use super::{Components, Origin, columns, components, direction, directions, nanos, short, steady};
use crate::batch::{Row, signed};
use crate::column::{Coded, Column, Dictionary, Encoding, Levels, Numbers, Presence};
use crate::fields::{self, Field};
use crate::table::Rows;

/// Rows of `tcp`.
#[derive(Debug)]
pub struct TcpRows {
    origin: Origin,
    component: Components,
    flow: Numbers,
    direction: Coded,
    trigger: Coded,
    congestion_window: Numbers,
    slow_start_threshold: Numbers,
    in_flight: Numbers,
    outstanding: Numbers,
    peer_window: Numbers,
    acknowledged: Numbers,
    round_trip: Numbers,
    smoothed_round_trip: Numbers,
    retransmission_timeout: Numbers,
    pacing_rate: Numbers,
    pacing_gain: Numbers,
    present: Levels,
}

impl TcpRows {
    /// No rows.
    pub fn new(repetition: u32, names: &[String]) -> Self {
        Self {
            origin: Origin::new(repetition),
            component: components(names),
            flow: Numbers::short(Presence::Required, Encoding::Dictionary),
            direction: directions(),
            trigger: Coded::required(Dictionary::texts(TcpTrigger::ALL.map(TcpTrigger::name))),
            congestion_window: steady(),
            slow_start_threshold: Numbers::long(Presence::Optional, Encoding::Dictionary),
            in_flight: steady(),
            outstanding: steady(),
            peer_window: steady(),
            acknowledged: steady(),
            round_trip: Numbers::long(Presence::Optional, Encoding::Differences),
            smoothed_round_trip: Numbers::long(Presence::Optional, Encoding::Differences),
            retransmission_timeout: steady(),
            pacing_rate: Numbers::long(Presence::Optional, Encoding::Dictionary),
            pacing_gain: Numbers::short(Presence::Optional, Encoding::Dictionary),
            present: Levels::default(),
        }
    }
}

impl Rows for TcpRows {
    type Batch = Vec<Row<TcpEvent>>;
    const FIELDS: &'static [Field] = fields::TCP;

    fn begin(&mut self, repetition: u32) {
        self.origin.begin(repetition);
    }

    fn add(&mut self, rows: &Vec<Row<TcpEvent>>) {
        self.origin.add(rows);
        self.component.add(rows.iter().map(|row| row.at.0));
        let events = || rows.iter().map(|row| &row.event);
        self.flow.add(events().map(|event| short(event.flow.0)));
        self.direction.add(events().map(|event| direction(event.direction)));
        self.trigger.add(events().map(|event| event.trigger as u16));
        self.congestion_window.add(events().map(|event| signed(event.congestion_window)));
        self.in_flight.add(events().map(|event| signed(event.in_flight)));
        self.outstanding.add(events().map(|event| signed(event.outstanding)));
        self.peer_window.add(events().map(|event| signed(event.peer_window)));
        self.acknowledged.add(events().map(|event| event.acknowledged));
        self.retransmission_timeout.add(events().map(|event| nanos(event.retransmission_timeout)));
        let mut optional = |column: &mut Numbers, value: fn(&TcpEvent) -> Option<i64>| {
            self.present.set(events().map(|event| value(event).is_some()));
            column.add_some(&self.present, events().filter_map(value));
        };
        optional(&mut self.slow_start_threshold, |event| event.slow_start_threshold.map(signed));
        optional(&mut self.round_trip, |event| event.round_trip.map(nanos));
        optional(&mut self.smoothed_round_trip, |event| event.smoothed_round_trip.map(nanos));
        optional(&mut self.pacing_rate, |event| event.pacing_rate.map(signed));
        optional(&mut self.pacing_gain, |event| event.pacing_gain.map(short));
    }

    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        columns![self: component, flow, direction, trigger, congestion_window, slow_start_threshold, in_flight, outstanding, peer_window, acknowledged, round_trip, smoothed_round_trip, retransmission_timeout, pacing_rate, pacing_gain]
    }
}
