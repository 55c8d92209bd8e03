//! The timers of a middlebox: one time for each connection, in the order of time.

use std::collections::BTreeSet;

use airpath_core::Instant;

/// The times at which timers expire. The owner of a timer stores its time, so that the timer is
/// found without a search by key.
#[derive(Debug)]
pub struct DeadlineSet<K>(BTreeSet<(Instant, K)>);

impl<K> Default for DeadlineSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> DeadlineSet<K> {
    /// A set without timers.
    pub const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// The earliest time.
    pub fn first(&self) -> Option<Instant> {
        self.0.iter().next().map(|(time, _)| *time)
    }
}

impl<K: Ord + Copy> DeadlineSet<K> {
    /// Sets the timer of `key` from `current`, the time that its owner stores, to `deadline`;
    /// `None` stops it.
    pub fn set(&mut self, key: K, current: &mut Option<Instant>, deadline: Option<Instant>) {
        if *current == deadline {
            return;
        }
        if let Some(old) = std::mem::replace(current, deadline) {
            self.0.remove(&(old, key));
        }
        self.0.extend(deadline.map(|new| (new, key)));
    }

    /// The earliest timer that expires up to `now`. It stays until it is set again.
    pub fn due(&self, now: Instant) -> Option<(Instant, K)> {
        self.0.first().copied().filter(|(time, _)| *time <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_timer() {
        let at = Instant::from_nanos;
        let mut timers = DeadlineSet::new();
        let (mut one, mut two) = (None, None);
        timers.set(1, &mut one, Some(at(30)));
        timers.set(2, &mut two, Some(at(20)));
        timers.set(1, &mut one, Some(at(10)));
        assert_eq!((timers.first(), timers.due(at(9)), timers.due(at(10))), (Some(at(10)), None, Some((at(10), 1))));
        timers.set(1, &mut one, None);
        assert_eq!((timers.due(at(50)), one), (Some((at(20), 2)), None));
        timers.set(2, &mut two, None);
        assert_eq!(timers.first(), None);
    }
}
