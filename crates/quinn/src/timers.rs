//! Virtual time and its timers.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant as QuinnInstant;

use airpath_core::Instant;
use airpath_quic::Clock;
use quinn::AsyncTimer;

/// Virtual time, and the timers that wait for it.
#[derive(Debug)]
pub struct Timers {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: Instant,
    /// Wakers by deadline; timers of the same deadline in the order of their creation.
    waiting: BTreeMap<(Instant, u64), Waker>,
    /// Number of timers that were created.
    created: u64,
}

impl Timers {
    pub fn new() -> Self {
        Self { clock: Clock::new(), state: Mutex::default() }
    }

    /// The current time, as quinn has it.
    pub fn now(&self) -> QuinnInstant {
        self.clock.to_quinn(self.state().now)
    }

    /// A timer that expires at `deadline`.
    pub fn timer(self: &Arc<Self>, deadline: QuinnInstant) -> Timer {
        let mut state = self.state();
        state.created += 1;
        let key = (self.clock.instant_of(deadline), state.created);
        Timer { timers: Arc::clone(self), key }
    }

    /// The earliest deadline that a task waits for.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.state().waiting.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    /// Sets the time and wakes the tasks whose timers have expired.
    pub fn advance(&self, now: Instant) {
        self.state().now = now;
        while let Some(waker) = self.take_expired() {
            waker.wake();
        }
    }

    fn take_expired(&self) -> Option<Waker> {
        let mut state = self.state();
        let now = state.now;
        let first = state.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A timer of a task.
#[derive(Debug)]
pub struct Timer {
    timers: Arc<Timers>,
    /// Its deadline and its number.
    key: (Instant, u64),
}

impl Timer {
    fn cancel(&self) {
        let waker = self.timers.state().waiting.remove(&self.key);
        // After the lock is released: a waker may own other timers.
        drop(waker);
    }
}

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, deadline: QuinnInstant) {
        self.cancel();
        self.key.0 = self.timers.clock.instant_of(deadline);
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.timers.state();
        if self.key.0 <= state.now {
            return Poll::Ready(());
        }
        let previous = state.waiting.insert(self.key, cx.waker().clone());
        drop(state);
        drop(previous);
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.cancel();
    }
}
