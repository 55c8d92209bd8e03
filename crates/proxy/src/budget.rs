//! The budget of a mobile as the congestion window of each of its connections.
//!
//! No slow start, and the window is kept on loss: losses on a radio link are not congestion, and
//! the bearer's queue is never full, because the budget bounds it (Chakravorty and Pratt, GPRS,
//! TL-E). Timeouts retransmit as usual. An ECN mark is congestion: the window of its connection is
//! halved and grows back to the budget (RFC 3168 §6.1.2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airpath_core::{Instant, Span};
use airpath_tcp::{Acknowledged, Congested, CongestionControl, Signal};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The bytes that may be unacknowledged towards a mobile, shared by its connections.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Shared { bytes, round_trip } = &*self.0;
        [bytes, round_trip].map(|each| each.load(Ordering::Relaxed)).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [bytes, round_trip] = <[u64; 2]>::deserialize(deserializer)?.map(AtomicU64::new);
        Ok(Self(Arc::new(Shared { bytes, round_trip })))
    }
}

#[derive(Debug)]
struct Shared {
    bytes: AtomicU64,
    /// The least round trip that a connection has measured since the last
    /// [`Budget::take_round_trip`], in nanoseconds.
    round_trip: AtomicU64,
}

const NONE: u64 = u64::MAX;

impl Budget {
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Shared { bytes: AtomicU64::new(bytes), round_trip: AtomicU64::new(NONE) }))
    }

    pub fn get(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    pub fn set(&self, bytes: u64) {
        self.0.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The least round trip since the last call, if one was measured.
    pub fn take_round_trip(&self) -> Option<Span> {
        let nanos = self.0.round_trip.swap(NONE, Ordering::Relaxed);
        (nanos != NONE).then(|| Span::from_nanos(nanos))
    }
}

/// A congestion window that is the mobile's budget. The proxy writes into a connection only what
/// the budget permits, so the window limits nothing but retransmissions after a timeout, and the
/// connection after an ECN mark.
#[derive(Debug)]
pub struct BudgetWindow {
    budget: Budget,
    /// The window since a mark, while it is less than the budget.
    marked: Option<u64>,
}

/// Payload bytes of a full segment.
const SEGMENT: u64 = 1460;

impl BudgetWindow {
    pub const fn new(budget: Budget) -> Self {
        Self::restored(budget, None)
    }

    /// With the [state](CongestionControl::state) of another one.
    pub const fn restored(budget: Budget, marked: Option<u64>) -> Self {
        Self { budget, marked }
    }
}

impl CongestionControl for BudgetWindow {
    fn name(&self) -> &'static str {
        "mobile-budget"
    }
    fn on_ack(&mut self, ack: &Acknowledged) {
        if let Some(sample) = ack.round_trip {
            self.budget.0.round_trip.fetch_min(sample.as_nanos(), Ordering::Relaxed);
        }
        if let Some(window) = self.marked {
            // Congestion avoidance (RFC 5681 §3.1).
            let window = window + (ack.bytes * SEGMENT).div_ceil(window);
            self.marked = (window < self.budget.get()).then_some(window);
        }
    }
    fn on_congestion(&mut self, congested: &Congested) {
        if congested.signal == Signal::Mark {
            self.marked = Some((congested.flight_size / 2).max(2 * SEGMENT));
        }
    }
    fn undo(&mut self, _: Instant) {}
    fn on_idle(&mut self, _: Instant, _: u64, _: u64) {}
    fn congestion_window(&self) -> u64 {
        self.marked.map_or(self.budget.get(), |window| window.min(self.budget.get()))
    }
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }
    fn state(&self) -> Option<u64> {
        self.marked
    }
}
