//! The radio log of a mobile: the states of its tracks, each reported when it changes.

use airpath_core::{Aspect, Classes, Context, Direction, Instant, StateEvent, StateValue, UserId};

/// The tracks of a mobile, in the order in which they are reported.
const TRACKS: [(Aspect, Option<Direction>); COUNT] = [
    (Aspect::Mode, None),
    (Aspect::Cell, None),
    (Aspect::CarrierToInterference, None),
    (Aspect::Tbf, Some(Direction::Down)),
    (Aspect::Tbf, Some(Direction::Up)),
    (Aspect::Scheme, Some(Direction::Down)),
    (Aspect::Scheme, Some(Direction::Up)),
    (Aspect::Slots, Some(Direction::Down)),
    (Aspect::Slots, Some(Direction::Up)),
    (Aspect::Link, None),
];

const COUNT: usize = 10;

/// The values of all tracks at a time, in the order of [`TRACKS`].
pub type Values = [StateValue; COUNT];

/// The values that were reported last.
#[derive(Clone, Debug, Default)]
pub struct Tracks {
    last: Option<Values>,
}

impl Tracks {
    /// Reports the `values` that have changed, if the sink wants them.
    pub fn report(&mut self, at: Instant, user: UserId, cx: &mut Context<'_>, values: impl FnOnce() -> Values) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let values = values();
        for (index, (aspect, direction)) in TRACKS.into_iter().enumerate() {
            let value = values[index];
            if self.last.as_ref().is_none_or(|last| last[index] != value) {
                cx.state(at, || StateEvent { user, direction, aspect, value });
            }
        }
        self.last = Some(values);
    }
}
