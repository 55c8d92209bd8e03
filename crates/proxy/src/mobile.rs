//! A mobile: the budget that its connections share, their order of service, and the pace of a first
//! burst.

use airpath_core::{Aspect, Context, Direction, Instant, Span, StateEvent, StateValue, UserId};
use airpath_tcp::Connection;
use serde::{Deserialize, Serialize};

use crate::adaptive::Adaptive;
use crate::budget::Budget;
use crate::config::{BudgetSource, Config};
use crate::fair_queue::FairQueue;
use crate::scheduler::Scheduler;

/// Two segments.
const LEAST_UPLOAD_WINDOW: u64 = 2 * 1460;

/// What is due within this time leaves at once: Linux, too, paces in portions of a millisecond
/// (`tcp_tso_autosize`). On a path with a shorter round trip there is no burst to spread.
const PACING_SLACK: Span = Span::from_millis(1);

/// Changes are reported at most this often: a packet changes most values.
const REPORT_INTERVAL: Span = Span::from_millis(20);

/// A mobile.
#[derive(Debug, Serialize, Deserialize)]
pub struct Mobile {
    /// The bytes that may be unacknowledged.
    pub budget: Budget,
    /// The connections that have data to send.
    pub scheduler: Scheduler,
    /// Bytes that are unacknowledged, over all connections.
    pub unacknowledged: u64,
    /// Bytes that wait, over all connections.
    pub queued: u64,
    /// What was reported last.
    #[serde(skip)]
    reported: [Report; 3],
    /// The connections.
    pub connections: u32,
    /// The connections that are open on one side only.
    pub half_open: u32,
    /// The connections that are uploads.
    pub uploads: u64,
    /// Packets that wait for their turn, with [`Config::queue`].
    #[serde(skip)]
    pub queue: FairQueue,
    /// The estimator of the budget, if it is not constant.
    adaptive: Option<Adaptive>,
    burst: Option<Burst>,
}

/// A burst after a time with nothing outstanding. Without acknowledgements that clock it, the
/// budget is spread over one round trip.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Burst {
    /// When the next segment may leave.
    release: Instant,
    /// When acknowledgements clock the sender.
    end: Instant,
    round_trip: Span,
}

/// A value that was reported, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Report(Option<(Instant, u64)>);

impl Report {
    /// Whether `value` is to be reported now. Zero and the first value always are.
    fn is_due(&mut self, now: Instant, value: u64) -> bool {
        let is_due =
            self.0.is_none_or(|(last, old)| value != old && (value == 0 || now.since(last) >= REPORT_INTERVAL));
        if is_due {
            self.0 = Some((now, value));
        }
        is_due
    }
}

/// Whether a segment may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may leave now.
    Now,
    /// Not before this time, if no acknowledgement arrives.
    At(Instant),
    /// When enough is acknowledged.
    Later,
}

impl Mobile {
    pub fn new(config: &Config) -> Self {
        let (budget, adaptive) = match config.budget {
            BudgetSource::Fixed(bytes) => (bytes.get(), None),
            BudgetSource::Adaptive => (Adaptive::initial(), Some(Adaptive::new())),
            BudgetSource::None => (u64::MAX, None),
        };
        Self {
            budget: Budget::new(budget),
            adaptive,
            scheduler: Scheduler::new(config.scheduler),
            unacknowledged: 0,
            queued: 0,
            reported: Default::default(),
            connections: 0,
            half_open: 0,
            uploads: 0,
            queue: FairQueue::new(),
            burst: None,
        }
    }

    /// Takes over changed settings. The connections keep their order of service. Whether there is a
    /// budget does not change.
    pub fn reconfigure(&mut self, config: &Config) {
        match config.budget {
            BudgetSource::Fixed(bytes) => {
                self.adaptive = None;
                self.budget.set(bytes.get());
            }
            BudgetSource::Adaptive if self.adaptive.is_none() => self.adaptive = Some(Adaptive::new()),
            BudgetSource::Adaptive | BudgetSource::None => {}
        }
    }

    /// The window that each connection may offer the mobile, of `budget` bytes for all uploads. The
    /// least is two segments, so that delayed acknowledgements do not stall the sender.
    pub fn upload_window(&self, budget: u64) -> u64 {
        (budget / self.uploads.max(1)).max(LEAST_UPLOAD_WINDOW)
    }

    /// Whether a segment of `length` bytes may leave at `now`, over a connection with this smoothed
    /// round trip. A single segment may always be outstanding.
    pub fn admit(&mut self, now: Instant, length: u32, round_trip: Option<Span>) -> Admission {
        let length = u64::from(length);
        if self.unacknowledged > 0 && self.unacknowledged + length > self.budget.get() {
            self.adaptive.iter_mut().for_each(Adaptive::on_limited);
            return Admission::Later;
        }
        self.burst = self.burst.filter(|burst| now < burst.end);
        if self.burst.is_none()
            && self.unacknowledged < length
            && let Some(round_trip) = round_trip
        {
            self.burst = Some(Burst { release: now, end: now + round_trip, round_trip });
        }
        match self.burst {
            Some(burst) if now + PACING_SLACK < burst.release => Admission::At(burst.release),
            _ => Admission::Now,
        }
    }

    /// Payload bytes that may leave over the connection `end` as one super-segment of at most
    /// `most` bytes, while `backlog` bytes wait for it; at least the next segment of `length`
    /// bytes.
    ///
    /// What the budget lets through in [`PACING_SLACK`] leaves together, as in Linux
    /// (`tcp_tso_autosize`). So on a slow path each segment leaves by itself.
    pub fn super_segment(&self, length: u32, end: &Connection, backlog: u64, most: u32) -> u32 {
        let Some(round_trip) = end.smoothed_round_trip() else { return length };
        let rate = u128::from(self.budget.get()) * u128::from(PACING_SLACK.as_nanos());
        let paced = u64::try_from(rate / u128::from(round_trip.as_nanos().max(1))).unwrap_or(u64::MAX);
        let room = self.budget.get().saturating_sub(self.unacknowledged);
        let fitting = paced.min(room).min(end.usable_window()).min(most.into());
        // A partial segment may only end what waits.
        let whole = fitting - fitting % u64::from(end.segment_size());
        length.max((if backlog <= fitting { backlog } else { whole }) as u32)
    }

    /// `bytes` more were delivered; [`Self::unacknowledged`] has been updated.
    pub fn on_delivered(&mut self, now: Instant, bytes: u64) {
        let Some(adaptive) = &mut self.adaptive else { return };
        let round_trip = self.budget.take_round_trip();
        if let Some(budget) = adaptive.on_delivered(now, bytes, self.unacknowledged, round_trip) {
            self.budget.set(budget);
        }
    }

    /// Reports the budget, and what is outstanding and waits.
    pub fn report(&mut self, now: Instant, user: UserId, cx: &mut Context<'_>) {
        // Without a budget there is no bound.
        let budget = Some(self.budget.get()).filter(|budget| *budget != u64::MAX);
        let values = [
            (Aspect::Budget, budget),
            (Aspect::Outstanding, Some(self.unacknowledged)),
            (Aspect::Queue, Some(self.queued)),
        ];
        for ((aspect, value), reported) in values.into_iter().zip(&mut self.reported) {
            if let Some(value) = value.filter(|value| reported.is_due(now, *value)) {
                let (direction, value) = (Some(Direction::Down), StateValue::Number(value as f64));
                cx.state(now, || StateEvent { user, direction, aspect, value });
            }
        }
    }

    /// A segment of `length` bytes leaves at `now`.
    pub fn on_sent(&mut self, now: Instant, length: u32) {
        if let Some(adaptive) = &mut self.adaptive
            && self.unacknowledged < u64::from(length)
        {
            adaptive.on_restart(now, length.into());
        }
        if let Some(burst) = &mut self.burst {
            let interval = burst.round_trip.saturating_mul(length.into()) / self.budget.get().max(1);
            burst.release = burst.release.max(now) + interval;
        }
    }
}
