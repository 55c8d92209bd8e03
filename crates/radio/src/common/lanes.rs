//! What was told of a mobile's state, so that only changes are told.

use airpath_core::{Aspect, Direction, Instant, StateValue};

/// The values that were told last, of each aspect of the mobile and of its directions.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    told: [[Option<(Instant, StateValue)>; 3]; Aspect::ALL.len()],
}

impl Lanes {
    /// When an aspect is to be told to have a new value; `None` if it has that value already. That is at `time`, or, as times
    /// of one aspect never go back, when it was told last.
    pub fn change(
        &mut self,
        time: Instant,
        direction: Option<Direction>,
        aspect: Aspect,
        value: StateValue,
    ) -> Option<Instant> {
        let told = &mut self.told[aspect as usize][direction.map_or(0, |direction| 1 + direction as usize)];
        let time = match told {
            Some((_, last)) if *last == value => return None,
            Some((last, _)) => time.max(*last),
            None => time,
        };
        *told = Some((time, value));
        Some(time)
    }
}
