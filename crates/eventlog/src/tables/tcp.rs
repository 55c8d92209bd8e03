//! The table `tcp`.

use airpath_core::{Instant, TcpEvent, TcpTrigger};

use super::{Origin, direction, directions, nanos, short, signed};
use crate::column::{Coded, Column, Dictionary, Encoding, Numbers, OptionalNumbers};
use crate::table::Rows;

/// Rows of `tcp`.
#[derive(Debug)]
pub struct TcpRows {
    origin: Origin,
    flow: Numbers<i32>,
    direction: Coded,
    trigger: Coded,
    congestion_window: Numbers<i64>,
    slow_start_threshold: OptionalNumbers<i64>,
    in_flight: Numbers<i64>,
    outstanding: Numbers<i64>,
    peer_window: Numbers<i64>,
    acknowledged: Numbers<i64>,
    round_trip: OptionalNumbers<i64>,
    smoothed_round_trip: OptionalNumbers<i64>,
    retransmission_timeout: Numbers<i64>,
}

impl TcpRows {
    /// No rows.
    pub fn new(repetition: u32) -> Self {
        Self {
            origin: Origin::new(repetition),
            flow: Numbers::new(Encoding::Dictionary),
            direction: directions(),
            trigger: Coded::new(Dictionary::texts(TcpTrigger::ALL.map(TcpTrigger::name))),
            congestion_window: Numbers::new(Encoding::Differences),
            slow_start_threshold: OptionalNumbers::new(Encoding::Dictionary),
            in_flight: Numbers::new(Encoding::Differences),
            outstanding: Numbers::new(Encoding::Differences),
            peer_window: Numbers::new(Encoding::Differences),
            acknowledged: Numbers::new(Encoding::Differences),
            round_trip: OptionalNumbers::new(Encoding::Differences),
            smoothed_round_trip: OptionalNumbers::new(Encoding::Differences),
            retransmission_timeout: Numbers::new(Encoding::Differences),
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, time: Instant, event: &TcpEvent) {
        self.origin.push(time);
        self.flow.push(short(event.flow.0));
        self.direction.push(direction(event.direction));
        self.trigger.push(event.trigger as u16);
        self.congestion_window.push(signed(event.congestion_window));
        self.slow_start_threshold.push(event.slow_start_threshold.map(signed));
        self.in_flight.push(signed(event.in_flight));
        self.outstanding.push(signed(event.outstanding));
        self.peer_window.push(signed(event.peer_window));
        self.acknowledged.push(event.acknowledged);
        self.round_trip.push(event.round_trip.map(nanos));
        self.smoothed_round_trip.push(event.smoothed_round_trip.map(nanos));
        self.retransmission_timeout.push(nanos(event.retransmission_timeout));
    }
}

impl Rows for TcpRows {
    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        vec![
            ("time", &mut self.origin.time),
            ("repetition", &mut self.origin.repetition),
            ("flow", &mut self.flow),
            ("direction", &mut self.direction),
            ("trigger", &mut self.trigger),
            ("congestion_window", &mut self.congestion_window),
            ("slow_start_threshold", &mut self.slow_start_threshold),
            ("in_flight", &mut self.in_flight),
            ("outstanding", &mut self.outstanding),
            ("peer_window", &mut self.peer_window),
            ("acknowledged", &mut self.acknowledged),
            ("round_trip", &mut self.round_trip),
            ("smoothed_round_trip", &mut self.smoothed_round_trip),
            ("retransmission_timeout", &mut self.retransmission_timeout),
        ]
    }
}
