//! Items in flight, in the order of their arrival.

use std::collections::VecDeque;

use airpath_core::Instant;

/// Takes the first of a queue if it is due by `now`.
#[inline]
pub fn pop_due<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<T> {
    queue.front().filter(|(at, _)| *at <= now)?;
    queue.pop_front().map(|(_, item)| item)
}
