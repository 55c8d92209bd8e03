//! The table `radio`.

use airpath_core::{ComponentId, Instant, RadioEvent};

use super::{Origin, components, direction, directions, nanos};
use crate::column::{Coded, Column, Counts, Encoding, Numbers};
use crate::table::Rows;

/// Rows of `radio`.
#[derive(Debug)]
pub struct RadioRows {
    origin: Origin,
    component: Coded,
    direction: Coded,
    user: Counts,
    duration: Numbers<i64>,
    pdus: Counts,
    repeated: Counts,
    errored: Counts,
    bytes: Numbers<i64>,
    level: Counts,
}

impl RadioRows {
    /// No rows.
    pub fn new(repetition: u32, names: &[String]) -> Self {
        Self {
            origin: Origin::new(repetition),
            component: components(names),
            direction: directions(),
            user: Counts::new(),
            duration: Numbers::new(Encoding::Dictionary),
            pdus: Counts::new(),
            repeated: Counts::new(),
            errored: Counts::new(),
            bytes: Numbers::new(Encoding::Dictionary),
            level: Counts::new(),
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, time: Instant, at: ComponentId, event: &RadioEvent) {
        self.origin.push(time);
        self.component.push(at.0);
        self.direction.push(direction(event.direction));
        self.user.push(event.user.0);
        self.duration.push(nanos(event.duration));
        self.pdus.push(event.pdus);
        self.repeated.push(event.repeated);
        self.errored.push(event.errored);
        self.bytes.push(event.bytes.into());
        self.level.push(event.level.into());
    }
}

impl Rows for RadioRows {
    fn columns(&mut self) -> Vec<(&'static str, &mut dyn Column)> {
        vec![
            ("time", &mut self.origin.time),
            ("repetition", &mut self.origin.repetition),
            ("component", &mut self.component),
            ("direction", &mut self.direction),
            ("user", &mut self.user),
            ("duration", &mut self.duration),
            ("pdus", &mut self.pdus),
            ("repeated", &mut self.repeated),
            ("errored", &mut self.errored),
            ("bytes", &mut self.bytes),
            ("level", &mut self.level),
        ]
    }
}
