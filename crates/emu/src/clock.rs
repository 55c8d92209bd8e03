//! The real clock: the only module that reads the time.

use std::time::{SystemTime, UNIX_EPOCH};

use airpath_core::{Instant, Span};
use serde::{Deserialize, Serialize};

use crate::sys;

/// The time since the link began.
///
/// Serialised, it continues in another process of this host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock that starts at zero now.
    pub fn start() -> Self {
        Self { origin: sys::monotonic_nanoseconds() }
    }

    /// The time since the start.
    #[inline]
    pub fn now(self) -> Instant {
        Instant::from_nanos(sys::monotonic_nanoseconds() - self.origin)
    }
}

/// The host's time of day, since 1 January 1970, UTC.
pub fn time_of_day() -> Span {
    #[expect(clippy::disallowed_methods, reason = "this is the real clock")]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Span::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
