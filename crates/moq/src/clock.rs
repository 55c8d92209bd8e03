//! A clock that publisher and subscriber share, and waiting.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant as QuinnInstant};

use airpath_core::{Instant, Span};
use quinn::Runtime;

/// A clock that counts from the same origin at both ends, so that a delay from one to the other can
/// be measured. It advances with that of a runtime of quinn.
#[derive(Clone, Debug)]
pub struct SharedClock {
    runtime: Arc<dyn Runtime>,
    started: QuinnInstant,
    /// The time at `started`.
    origin: Instant,
}

impl SharedClock {
    /// A clock that now has the time `now`.
    pub fn starting_at(now: Instant, runtime: Arc<dyn Runtime>) -> Self {
        Self { started: runtime.now(), runtime, origin: now }
    }

    /// The runtime.
    pub const fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// The time.
    pub fn now(&self) -> Instant {
        let elapsed = self.runtime.now().saturating_duration_since(self.started);
        self.origin + Span::from_nanos(elapsed.as_nanos() as u64)
    }

    /// Waits until `time`; without a time, forever.
    pub async fn sleep_until(&self, time: Option<Instant>) {
        let Some(time) = time else { return std::future::pending().await };
        let deadline = self.started + Duration::from_nanos(time.since(self.origin).as_nanos());
        let mut timer = self.runtime.new_timer(deadline);
        poll_fn(|cx| timer.as_mut().poll(cx)).await;
    }
}

/// The output of one of two futures.
pub enum Either<A, B> {
    /// That of the first.
    First(A),
    /// That of the second.
    Second(B),
}

/// Waits for one of two futures; for the first, if both are ready. So the choice does not depend on
/// chance, as that of `select!` does.
pub async fn either<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> Either<A, B> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Either::First(output)),
        Poll::Pending => second.as_mut().poll(cx).map(Either::Second),
    })
    .await
}
