//! The table `app`.

use airpath_core::{AppEvent, AppStep, Span};

use super::{Origin, columns, nanos, short, steady};
use crate::batch::{Row, signed};
use crate::column::{Coded, Column, Dictionary, Encoding, Levels, Numbers, Presence};
use crate::fields::{self, Field};
use crate::table::Rows;

const STEPS: [AppStep; 9] = [
    AppStep::Started,
    AppStep::Connected,
    AppStep::Requested,
    AppStep::FirstByte,
    AppStep::Finished,
    AppStep::Acknowledged,
    AppStep::Arrived { sequence: 0, delay: Span::ZERO },
    AppStep::Aborted,
    AppStep::Playout { sequence: 0, delay: Span::ZERO },
];

/// Rows of `app`.
#[derive(Debug)]
pub struct AppRows {
    origin: Origin,
    flow: Numbers,
    step: Coded,
    delivered: Numbers,
    sequence: Numbers,
    delay: Numbers,
    arrived: Levels,
}

impl AppRows {
    /// No rows.
    pub fn new(repetition: u32) -> Self {
        Self {
            origin: Origin::new(repetition),
            flow: Numbers::short(Presence::Required, Encoding::Dictionary),
            step: Coded::required(Dictionary::texts(STEPS.map(AppStep::name))),
            delivered: steady(),
            sequence: Numbers::long(Presence::Optional, Encoding::Differences),
            delay: Numbers::long(Presence::Optional, Encoding::Differences),
            arrived: Levels::default(),
        }
    }
}

/// Index of a step in [`STEPS`].
const fn code(step: &AppStep) -> u16 {
    match step {
        AppStep::Started => 0,
        AppStep::Connected => 1,
        AppStep::Requested => 2,
        AppStep::FirstByte => 3,
        AppStep::Finished => 4,
        AppStep::Acknowledged => 5,
        AppStep::Arrived { .. } => 6,
        AppStep::Aborted => 7,
        AppStep::Playout { .. } => 8,
    }
}

/// Data of rows of `arrived` and `playout` only: number and delay.
fn arrival(row: &Row<AppEvent>) -> Option<(i64, i64)> {
    match row.event.step {
        AppStep::Arrived { sequence, delay } | AppStep::Playout { sequence, delay } => {
            Some((sequence.into(), nanos(delay)))
        }
        _ => None,
    }
}

impl Rows for AppRows {
    type Batch = Vec<Row<AppEvent>>;
    const FIELDS: &'static [Field] = fields::APP;

    fn begin(&mut self, repetition: u32) {
        self.origin.begin(repetition);
    }

    fn add(&mut self, rows: &Vec<Row<AppEvent>>) {
        self.origin.add(rows);
        self.flow.add(rows.iter().map(|row| short(row.event.flow.0)));
        self.step.add(rows.iter().map(|row| code(&row.event.step)));
        self.delivered.add(rows.iter().map(|row| signed(row.event.delivered.get())));
        self.arrived.set(rows.iter().map(|row| arrival(row).is_some()));
        let arrivals = || rows.iter().filter_map(arrival);
        self.sequence.add_some(&self.arrived, arrivals().map(|(sequence, _)| sequence));
        self.delay.add_some(&self.arrived, arrivals().map(|(_, delay)| delay));
    }

    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        columns![self: flow, step, delivered, sequence, delay]
    }
}
