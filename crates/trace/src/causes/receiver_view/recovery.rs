//! The recovery of the sender, from holes in the data that arrives.

use airpath_core::{Instant, Span};

/// The time of a recovery that has no label yet. The sender learns of a hole, and that it is
/// filled, half a round trip after the receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SenderRecovery(Option<(Instant, Instant)>);

impl SenderRecovery {
    /// Whether there was a hole before and is one `now`; the sender learns of it after `delay`.
    pub(super) fn follow(&mut self, [before, present]: [bool; 2], now: Instant, delay: Span) {
        let later = now + delay;
        match (before, present, &mut self.0) {
            (false, true, Some((_, until))) if *until >= later => *until = Instant::FAR_FUTURE,
            (false, true, recovery) => *recovery = Some((later, Instant::FAR_FUTURE)),
            // The sender did not learn of it: reordering filled it, or only the capture lacked it.
            (true, false, Some((since, _))) if *since > now => self.0 = None,
            (true, false, Some((_, until))) => *until = later,
            _ => {}
        }
    }

    /// Takes the part until `now`.
    pub(super) fn take_until(&mut self, now: Instant) -> Option<(Instant, Instant)> {
        let (since, until) = self.0.filter(|(since, _)| *since < now)?;
        self.0 = (now < until).then_some((now, until));
        Some((since, until.min(now)))
    }
}
