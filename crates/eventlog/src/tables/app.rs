//! The table `app`.

use airpath_core::{AppEvent, AppStep, Instant, Span};

use super::{Origin, nanos, short, signed};
use crate::column::{Coded, Column, Dictionary, Encoding, Numbers, OptionalNumbers};
use crate::table::Rows;

const STEPS: [AppStep; 8] = [
    AppStep::Started,
    AppStep::Connected,
    AppStep::Requested,
    AppStep::FirstByte,
    AppStep::Finished,
    AppStep::Acknowledged,
    AppStep::Arrived { sequence: 0, delay: Span::ZERO },
    AppStep::Aborted,
];

/// Rows of `app`.
#[derive(Debug)]
pub struct AppRows {
    origin: Origin,
    flow: Numbers<i32>,
    step: Coded,
    delivered: Numbers<i64>,
    sequence: OptionalNumbers<i64>,
    delay: OptionalNumbers<i64>,
}

impl AppRows {
    /// No rows.
    pub fn new(repetition: u32) -> Self {
        Self {
            origin: Origin::new(repetition),
            flow: Numbers::new(Encoding::Dictionary),
            step: Coded::new(Dictionary::texts(STEPS.map(AppStep::name))),
            delivered: Numbers::new(Encoding::Differences),
            sequence: OptionalNumbers::new(Encoding::Differences),
            delay: OptionalNumbers::new(Encoding::Differences),
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, time: Instant, event: &AppEvent) {
        self.origin.push(time);
        self.flow.push(short(event.flow.0));
        self.delivered.push(signed(event.delivered.get()));
        let mut arrived = None;
        self.step.push(match event.step {
            AppStep::Started => 0,
            AppStep::Connected => 1,
            AppStep::Requested => 2,
            AppStep::FirstByte => 3,
            AppStep::Finished => 4,
            AppStep::Acknowledged => 5,
            AppStep::Arrived { sequence, delay } => {
                arrived = Some((i64::from(sequence), nanos(delay)));
                6
            }
            AppStep::Aborted => 7,
        });
        self.sequence.push(arrived.map(|(sequence, _)| sequence));
        self.delay.push(arrived.map(|(_, delay)| delay));
    }
}

impl Rows for AppRows {
    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        vec![
            ("time", &mut self.origin.time),
            ("repetition", &mut self.origin.repetition),
            ("flow", &mut self.flow),
            ("step", &mut self.step),
            ("delivered", &mut self.delivered),
            ("sequence", &mut self.sequence),
            ("delay", &mut self.delay),
        ]
    }
}
