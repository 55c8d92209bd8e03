//! The table `quic`.

use airpath_core::{QuicEvent, QuicPacketType, QuicStep};

use super::{Components, Origin, columns, components, direction, directions, short, steady};
use crate::batch::{Row, signed};
use crate::column::{Coded, Column, Dictionary, Encoding, Levels, Numbers, Presence, Texts};
use crate::fields::{self, Field};
use crate::table::Rows;

const STEPS: [QuicStep; 2] = [QuicStep::Sent { packet: 0, size: 0, frames: None }, QuicStep::Lost];

/// Rows of `quic`.
#[derive(Debug)]
pub struct QuicRows {
    origin: Origin,
    component: Components,
    flow: Numbers,
    connection: Numbers,
    direction: Coded,
    step: Coded,
    packet: Numbers,
    size: Numbers,
    packet_type: Coded,
    packet_number: Numbers,
    frames: Texts,
    present: Levels,
}

impl QuicRows {
    /// No rows.
    pub fn new(repetition: u32, names: &[String]) -> Self {
        Self {
            origin: Origin::new(repetition),
            component: components(names),
            flow: Numbers::short(Presence::Required, Encoding::Dictionary),
            connection: Numbers::short(Presence::Required, Encoding::Dictionary),
            direction: directions(),
            step: Coded::required(Dictionary::texts(STEPS.iter().map(QuicStep::name))),
            packet: Numbers::long(Presence::Optional, Encoding::Differences),
            size: Numbers::short(Presence::Optional, Encoding::Dictionary),
            packet_type: Coded::required(Dictionary::texts(QuicPacketType::ALL.map(QuicPacketType::name))),
            packet_number: steady(),
            frames: Texts::optional(),
            present: Levels::default(),
        }
    }
}

/// Index of a step in [`STEPS`].
const fn code(step: &QuicStep) -> u16 {
    match step {
        QuicStep::Sent { .. } => 0,
        QuicStep::Lost => 1,
    }
}

/// Data of rows of `sent` only: datagram, size, frames.
fn sent(row: &Row<QuicEvent>) -> Option<(i64, i64, Option<&str>)> {
    match &row.event.step {
        QuicStep::Sent { packet, size, frames } => Some((signed(*packet), short(*size), frames.as_deref())),
        QuicStep::Lost => None,
    }
}

impl Rows for QuicRows {
    type Batch = Vec<Row<QuicEvent>>;
    const FIELDS: &'static [Field] = fields::QUIC;

    fn begin(&mut self, repetition: u32) {
        self.origin.begin(repetition);
    }

    fn add(&mut self, rows: &Vec<Row<QuicEvent>>) {
        self.origin.add(rows);
        self.component.add(rows.iter().map(|row| row.at.0));
        let events = || rows.iter().map(|row| &row.event);
        self.flow.add(events().map(|event| short(event.flow.0)));
        self.connection.add(events().map(|event| short(event.connection)));
        self.direction.add(events().map(|event| direction(event.direction)));
        self.step.add(events().map(|event| code(&event.step)));
        self.packet_type.add(events().map(|event| event.packet_type as u16));
        self.packet_number.add(events().map(|event| signed(event.number)));
        let all_sent = || rows.iter().filter_map(sent);
        self.present.set(rows.iter().map(|row| sent(row).is_some()));
        self.packet.add_some(&self.present, all_sent().map(|(packet, ..)| packet));
        self.size.add_some(&self.present, all_sent().map(|(_, size, _)| size));
        self.present.set(rows.iter().map(|row| sent(row).is_some_and(|(.., frames)| frames.is_some())));
        self.frames.add_some(&self.present, all_sent().filter_map(|(.., frames)| frames));
    }

    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        columns![self: component, flow, connection, direction, step, packet, size, packet_type, packet_number, frames]
    }
}
