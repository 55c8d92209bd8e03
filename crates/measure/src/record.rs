//! The recorded steps of a flow.

use std::sync::atomic::{AtomicBool, Ordering};

use airpath_core::{AppEvent, AppStep, Bytes, FlowId, Instant};

/// Records the steps of one flow, and checks whether to stop.
pub struct Record<'a> {
    flow: FlowId,
    until: Instant,
    stop: &'a AtomicBool,
    progress: &'a (dyn Fn(u64, u64) + Sync),
    steps: Vec<(Instant, AppEvent)>,
}

impl<'a> Record<'a> {
    /// An empty record of a flow that stops at `until` or when `stop` is set.
    pub const fn new(
        flow: FlowId,
        until: Instant,
        stop: &'a AtomicBool,
        progress: &'a (dyn Fn(u64, u64) + Sync),
    ) -> Self {
        Self { flow, until, stop, progress, steps: Vec::new() }
    }

    /// Adds a step; `delivered` are the bytes that the receiving application had by then.
    pub fn note(&mut self, time: Instant, step: AppStep, delivered: u64) {
        self.steps.push((time, AppEvent { flow: self.flow, step, delivered: Bytes::new(delivered) }));
    }

    /// Reports the progress: `done` of all.
    pub fn progress(&self, done: u64, all: u64) {
        (self.progress)(done, all);
    }

    /// Whether to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop_check()()
    }

    /// Checks whether to stop, without a borrow of the record.
    pub fn stop_check(&self) -> impl Fn() -> bool + use<'a> {
        let (stop, until) = (self.stop, self.until);
        move || stop.load(Ordering::Relaxed) || crate::clock::now() >= until
    }

    /// The steps.
    pub fn into_steps(self) -> Vec<(Instant, AppEvent)> {
        self.steps
    }
}
