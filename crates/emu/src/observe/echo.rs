//! Echo requests and their replies.

use std::collections::BTreeMap;

use airpath_app::Samples;
use airpath_core::{AppStep, Instant};
use airpath_result::summary::ProbesRow;
use airpath_wire::icmp::IcmpEcho;

/// The requests of one identifier from one end.
#[derive(Clone, Debug, Default)]
pub(super) struct Echoes {
    /// Entry times of unanswered requests, by sequence number: 65,536 at most.
    waiting: BTreeMap<u16, Instant>,
    sent: u64,
    /// Payload bytes of replies that arrived.
    pub bytes: u64,
    round_trips: Samples,
}

impl Echoes {
    /// Adds a request that enters the link.
    pub fn request_enters(&mut self, now: Instant, echo: IcmpEcho) {
        self.sent += 1;
        self.waiting.insert(echo.sequence, now);
    }

    /// Adds a reply with `payload` bytes of payload that leaves the link.
    pub fn is_answered(&mut self, due: Instant, echo: IcmpEcho, payload: u32) -> Option<AppStep> {
        let delay = due.since(self.waiting.remove(&echo.sequence)?);
        self.round_trips.add(delay);
        self.bytes += u64::from(payload);
        Some(AppStep::Arrived { sequence: echo.sequence.into(), delay })
    }

    pub fn row(&self) -> ProbesRow {
        ProbesRow::of(self.sent, self.round_trips.count(), &self.round_trips)
    }
}
