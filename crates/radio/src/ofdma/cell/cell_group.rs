//! The cell as a cell group of mobiles with dual connectivity.

use airpath_core::{Context, DropCause, Instant};

use super::Cell;
use crate::conditions::Sample;

impl Cell {
    /// Calls `each` for the mobiles whose layers below PDCP have started again since the last call,
    /// and why.
    pub(crate) fn re_established(&mut self, mut each: impl FnMut(usize, DropCause)) {
        if !std::mem::take(&mut self.has_re_established) {
            return;
        }
        for (index, user) in self.users.iter_mut().enumerate() {
            if let Some(cause) = user.take_re_establishment() {
                each(index, cause);
            }
        }
    }

    /// The radio of a mobile.
    pub(crate) fn measure(&mut self, index: usize, now: Instant, cx: &mut Context<'_>) -> Sample {
        self.advance(now, cx);
        let sample = self.users[index].measure(now, &self.plan, cx);
        self.update(index, now);
        sample
    }
}
