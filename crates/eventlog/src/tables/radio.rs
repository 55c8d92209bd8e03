//! The table `radio`.

use airpath_core::RadioEvent;

use super::{Components, Origin, columns, components, counts, direction, directions, nanos};
use crate::batch::Row;
use crate::column::{Coded, Column, Encoding, Numbers, Presence};
use crate::fields::{self, Field};
use crate::table::Rows;

/// Rows of `radio`.
#[derive(Debug)]
pub struct RadioRows {
    origin: Origin,
    component: Components,
    direction: Coded,
    user: Numbers,
    duration: Numbers,
    pdus: Numbers,
    repeated: Numbers,
    errored: Numbers,
    bytes: Numbers,
    level: Numbers,
    control: Numbers,
}

impl RadioRows {
    /// No rows.
    pub fn new(repetition: u32, names: &[String]) -> Self {
        Self {
            origin: Origin::new(repetition),
            component: components(names),
            direction: directions(),
            user: counts(),
            duration: Numbers::long(Presence::Required, Encoding::Dictionary),
            pdus: counts(),
            repeated: counts(),
            errored: counts(),
            bytes: Numbers::long(Presence::Required, Encoding::Dictionary),
            level: counts(),
            control: counts(),
        }
    }
}

impl Rows for RadioRows {
    type Batch = Vec<Row<RadioEvent>>;
    const FIELDS: &'static [Field] = fields::RADIO;

    fn begin(&mut self, repetition: u32) {
        self.origin.begin(repetition);
    }

    fn add(&mut self, rows: &Vec<Row<RadioEvent>>) {
        self.origin.add(rows);
        self.component.add(rows.iter().map(|row| row.at.0));
        let events = || rows.iter().map(|row| &row.event);
        self.direction.add(events().map(|event| direction(event.direction)));
        self.user.add(events().map(|event| event.user.number().into()));
        self.duration.add(events().map(|event| nanos(event.duration)));
        self.pdus.add(events().map(|event| event.pdus.into()));
        self.repeated.add(events().map(|event| event.repeated.into()));
        self.errored.add(events().map(|event| event.errored.into()));
        self.bytes.add(events().map(|event| event.bytes.into()));
        self.level.add(events().map(|event| event.level.into()));
        self.control.add(events().map(|event| event.control.into()));
    }

    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        columns![self: component, direction, user, duration, pdus, repeated, errored, bytes, level, control]
    }
}
