//! The table `changes`.

use airpath_core::{ChangeEvent, ChangeKind, Direction};

use super::{Components, Origin, columns, components, direction, nanos};
use crate::batch::Row;
use crate::column::{Coded, Column, Dictionary, Encoding, Levels, Numbers, Presence, Texts};
use crate::fields::{self, Field};
use crate::table::Rows;

/// Rows of `changes`.
#[derive(Debug)]
pub struct ChangeRows {
    origin: Origin,
    component: Components,
    kind: Coded,
    direction: Coded,
    user: Numbers,
    duration: Numbers,
    change: Texts,
    present: Levels,
}

impl ChangeRows {
    /// No rows.
    pub fn new(repetition: u32, names: &[String]) -> Self {
        Self {
            origin: Origin::new(repetition),
            component: components(names),
            kind: Coded::required(Dictionary::texts(ChangeKind::ALL.map(ChangeKind::name))),
            direction: Coded::optional(Dictionary::texts(Direction::BOTH.map(Direction::name))),
            user: Numbers::short(Presence::Optional, Encoding::Dictionary).with_bits(32),
            duration: Numbers::long(Presence::Optional, Encoding::Differences),
            change: Texts::required(),
            present: Levels::default(),
        }
    }
}

impl Rows for ChangeRows {
    type Batch = Vec<Row<ChangeEvent>>;
    const FIELDS: &'static [Field] = fields::CHANGES;

    fn begin(&mut self, repetition: u32) {
        self.origin.begin(repetition);
    }

    fn add(&mut self, rows: &Vec<Row<ChangeEvent>>) {
        self.origin.add(rows);
        self.component.add(rows.iter().map(|row| row.at.0));
        let events = || rows.iter().map(|row| &row.event);
        self.kind.add(events().map(|event| event.kind as u16));
        self.present.set(events().map(|event| event.direction.is_some()));
        self.direction.add_some(&self.present, events().filter_map(|event| event.direction.map(direction)));
        self.present.set(events().map(|event| event.user.is_some()));
        self.user.add_some(&self.present, events().filter_map(|event| event.user.map(|user| user.number().into())));
        self.present.set(events().map(|event| event.duration.is_some()));
        self.duration.add_some(&self.present, events().filter_map(|event| event.duration.map(nanos)));
        self.change.add(events().map(|event| event.change.as_str()));
    }

    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        columns![self: component, kind, direction, user, duration, change]
    }
}
