//! The times of quinn and of airpath.

use std::time::{Duration, Instant as QuinnInstant};

use airpath_core::{Instant, Span};

/// Converts between airpath's time and quinn's, which is `std::time::Instant`.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Quinn's time of [`Instant::ZERO`].
    origin: QuinnInstant,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock. Nothing observable depends on its origin: quinn only adds to and subtracts from it.
    #[expect(clippy::disallowed_methods, reason = "no other function makes a `std::time::Instant`")]
    pub fn new() -> Self {
        Self { origin: QuinnInstant::now() }
    }

    /// The same time in quinn.
    pub fn to_quinn(self, time: Instant) -> QuinnInstant {
        self.origin + Duration::from_nanos(time.as_nanos())
    }

    /// The same time in airpath; times before the origin are [`Instant::ZERO`].
    pub fn instant_of(self, time: QuinnInstant) -> Instant {
        Instant::ZERO + span(time.saturating_duration_since(self.origin))
    }
}

/// The same length of time; the longest span for more than 584 years.
pub fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
