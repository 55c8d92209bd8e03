//! The table `states`.

use airpath_core::{Aspect, Direction, StateEvent, StateValue};

use super::{Components, Origin, columns, components, counts, direction};
use crate::batch::Row;
use crate::column::{Coded, Column, Dictionary, Floats, Levels, Numbers, Texts};
use crate::fields::{self, Field};
use crate::table::Rows;

/// Rows of `states`.
#[derive(Debug)]
pub struct StateRows {
    origin: Origin,
    component: Components,
    direction: Coded,
    user: Numbers,
    aspect: Coded,
    name: Texts,
    number: Floats,
    present: Levels,
}

impl StateRows {
    /// No rows.
    pub fn new(repetition: u32, names: &[String]) -> Self {
        Self {
            origin: Origin::new(repetition),
            component: components(names),
            direction: Coded::optional(Dictionary::texts(Direction::BOTH.map(Direction::name))),
            user: counts(),
            aspect: Coded::required(Dictionary::texts(Aspect::ALL.map(Aspect::name))),
            name: Texts::optional(),
            number: Floats::optional(),
            present: Levels::default(),
        }
    }
}

impl Rows for StateRows {
    type Batch = Vec<Row<StateEvent>>;
    const FIELDS: &'static [Field] = fields::STATES;

    fn begin(&mut self, repetition: u32) {
        self.origin.begin(repetition);
    }

    fn add(&mut self, rows: &Vec<Row<StateEvent>>) {
        self.origin.add(rows);
        self.component.add(rows.iter().map(|row| row.at.0));
        let events = || rows.iter().map(|row| &row.event);
        self.present.set(events().map(|event| event.direction.is_some()));
        self.direction.add_some(&self.present, events().filter_map(|event| event.direction.map(direction)));
        self.user.add(events().map(|event| event.user.number().into()));
        self.aspect.add(events().map(|event| event.aspect as u16));
        self.present.set(events().map(|event| matches!(event.value, StateValue::Name(_))));
        self.name.add_some(
            &self.present,
            events().filter_map(|event| match event.value {
                StateValue::Name(name) => Some(name),
                StateValue::Number(_) => None,
            }),
        );
        self.present.set(events().map(|event| matches!(event.value, StateValue::Number(_))));
        self.number.add_some(
            &self.present,
            events().filter_map(|event| match event.value {
                StateValue::Number(number) => Some(number),
                StateValue::Name(_) => None,
            }),
        );
    }

    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        columns![self: component, direction, user, aspect, name, number]
    }
}
