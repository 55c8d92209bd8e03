//! The radio log's lanes of a mobile: each is reported when it has a new value.

use airpath_core::{Aspect, Classes, Context, Direction, Instant, StateEvent, StateValue, UserId};

/// The lanes of a mobile, in the order in which they are reported.
const LANES: [(Aspect, Option<Direction>); COUNT] = [
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

/// The values of all lanes at a time, in the order of the lanes.
pub type Values = [StateValue; COUNT];

/// What was reported last.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    last: Option<Values>,
}

impl Lanes {
    /// Reports those of `values` that are new, if anyone listens.
    pub fn report(&mut self, at: Instant, user: UserId, cx: &mut Context<'_>, values: impl FnOnce() -> Values) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let values = values();
        for (index, (aspect, direction)) in LANES.into_iter().enumerate() {
            let value = values[index];
            if self.last.as_ref().is_none_or(|last| last[index] != value) {
                cx.state(at, || StateEvent { user, direction, aspect, value });
            }
        }
        self.last = Some(values);
    }
}
