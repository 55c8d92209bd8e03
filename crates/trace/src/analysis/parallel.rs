//! Connections in shards, which two threads share, or which one thread processes in turns.
//!
//! The reader thread reads, decodes and puts the segments into batches, one for each of the
//! [`SHARDS`] of the connections; one batch of each shard makes an epoch. The merger thread
//! processes batches, and so does the reader when it is some epochs ahead: both stay busy, whatever
//! reading costs.
//!
//! One thread at a time processes a shard, and its batches come in order, so that the output does
//! not depend on which thread processed the shard. When all shards are done with an epoch,
//! [`FlowOrder`] merges their results: it numbers connections by their first frames, and sorts
//! lines by the frames at which connections ended. Rows of tables are stamped with such frames,
//! too, and are sorted at the end ([`merged`]).
//!
//! A capture with few connections fills few of the shards: with one connection the reader reads and
//! decodes, and the merger does the rest.
//!
//! With [`Options::one_thread`] the calling thread has both roles: it reads an epoch, processes its
//! batches and merges the results. The state of one shard stays in the cache of the processor core
//! meanwhile, which costs less than to change the connection at each segment.

mod batch;
mod epoch;
mod flow_order;
mod merge;
mod shard;

use std::array;
use std::collections::VecDeque;
use std::iter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::collect::Collector;
use super::inputs::Inputs;
use super::json_lines::JsonLines;
use super::quic::QuicCollector;
use super::reading::{Reading, captured};
use super::{Options, TraceError};
use crate::shared_path::{Recorder, SharedPaths};
use airpath_capture::decode::Decoded;
use airpath_observe::flows::{FlowNumber, SHARDS, hash, shard_of};
use airpath_wire::segment::Segment;
use batch::{Batch, BatchResult};
use epoch::Epoch;
use flow_order::FlowOrder;
use shard::{ShardSlot, Work};

pub use merge::merged;

/// Segments of a batch, at most: a full batch closes the epoch. Batches keep the state of a shard's
/// connections in the cache of the processor core.
const SEGMENTS: usize = 1 << 9;

/// Connections still open at the end of the capture are reported in batches of this size.
const CONNECTIONS: usize = 1 << 6;

/// Epochs that are read and not merged, at most.
const EPOCHS_AHEAD: usize = 4;

/// The result of both threads.
pub struct Outcome<'a> {
    /// How the captures were read.
    pub reading: Reading,
    /// The collector of each shard.
    pub collectors: Vec<Collector<'a>>,
    /// The numbers of the connections.
    pub flow_order: FlowOrder,
    /// The QUIC flows.
    pub quic: QuicCollector,
}

/// Analyses captures. Stops reading when `line` returns `false` or `stop` is set.
///
/// # Errors
/// As [`captured`].
pub fn analyse<'a>(
    files: &[PathBuf],
    options: &Options,
    stop: &AtomicBool,
    line: &mut dyn FnMut(&str) -> bool,
) -> Result<Outcome<'a>, TraceError> {
    let paths = Arc::default();
    let mut quic = QuicCollector::new(options, Inputs::new(options, Arc::clone(&paths)));
    let mut recorder = options.causes.then(|| Recorder::new(Arc::clone(&paths)));
    let queue = WorkQueue::new(options, &paths);
    let mut merger =
        Merger { queue: &queue, flow_order: FlowOrder::new(!options.stream), line, goes_on: true, open: None };
    let reading = if options.one_thread {
        queue.read(files, &mut recorder, &mut quic, stop, || merger.work(Role::Both))?
    } else {
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let _guard = PanicGuard(&queue);
                queue.read(files, &mut recorder, &mut quic, stop, || queue.process())
            });
            let _guard = PanicGuard(&queue);
            merger.work(Role::Merger);
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?
    };
    let flow_order = merger.flow_order;
    let shards = queue.state.into_inner().unwrap_or_else(PoisonError::into_inner).shards;
    let workers = shards.into_iter().map(|slot| slot.worker.expect("all work is put back"));
    Ok(Outcome { reading, collectors: workers.map(|worker| worker.collector).collect(), flow_order, quic })
}

/// Merges the results of epochs, and processes batches in between.
struct Merger<'q, 'a> {
    queue: &'q WorkQueue<'a>,
    flow_order: FlowOrder,
    line: &'q mut dyn FnMut(&str) -> bool,
    /// Whether `line` accepts further lines.
    goes_on: bool,
    /// The connections open at the end of the capture that are not ended, by number.
    open: Option<std::vec::IntoIter<(FlowNumber, usize)>>,
}

impl Merger<'_, '_> {
    /// Does all tasks of a role until it must read, or no task is left.
    fn work(&mut self, role: Role) {
        let queue = self.queue;
        loop {
            match queue.next(role) {
                Task::Process(work) => queue.put_back(work.process()),
                Task::Merge(results, quic) => {
                    self.flow_order.merge(&results, &quic, |text| self.goes_on = self.goes_on && (self.line)(text));
                    queue.recycle(results, self.goes_on);
                }
                Task::EndConnections if self.goes_on => {
                    let open = self.open.get_or_insert_with(|| self.flow_order.open().into_iter());
                    queue.end_connections(open.take(CONNECTIONS).map(|(_, shard)| shard));
                }
                Task::EndConnections => queue.end_connections(iter::empty()),
                Task::Read | Task::Stop => return,
            }
        }
    }
}

/// Batches and shards that wait for a thread.
struct WorkQueue<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
}

struct State<'a> {
    shards: [ShardSlot<'a>; SHARDS],
    /// Epochs that are read and not merged.
    epochs: VecDeque<Epoch>,
    /// Number of epochs merged before those.
    merged: u64,
    /// Empty batches and results, for reuse.
    spare_batches: Vec<Batch>,
    spare_results: Vec<BatchResult>,
    stage: Stage,
    /// The receiver of the lines has stopped the analysis.
    cancelled: bool,
    /// A thread panicked: the work that it took will not come back.
    panicked: bool,
}

/// Stage of the analysis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    /// All is read: open connections must still end.
    EndingConnections,
    /// No epoch follows.
    Over,
}

/// The role of the thread that takes a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Reader,
    Merger,
    /// No other thread works.
    Both,
}

impl Role {
    /// Epochs that are read and not merged when this thread stops reading; `None` if it does not
    /// read.
    const fn epochs_ahead(self) -> Option<usize> {
        match self {
            Self::Reader => Some(EPOCHS_AHEAD),
            Self::Merger => None,
            Self::Both => Some(1),
        }
    }

    const fn merges(self) -> bool {
        matches!(self, Self::Merger | Self::Both)
    }
}

/// The next task of a thread.
enum Task<'a> {
    /// Read an epoch.
    Read,
    /// Process a batch.
    Process(Work<'a>),
    /// Merge the results of an epoch.
    Merge(Box<[BatchResult; SHARDS]>, JsonLines),
    /// End the next connections that the capture leaves open.
    EndConnections,
    /// No task is left.
    Stop,
}

impl<'a> WorkQueue<'a> {
    fn new(options: &Options, paths: &Arc<SharedPaths>) -> Self {
        let state = State {
            shards: array::from_fn(|_| ShardSlot::new(options, paths)),
            epochs: VecDeque::new(),
            merged: 0,
            spare_batches: Vec::new(),
            spare_results: Vec::new(),
            stage: Stage::Reading,
            cancelled: false,
            panicked: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        // A poisoned state is consistent: code that can panic runs without the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all epochs. `process` is called after each, and returns when the next must be read;
    /// the last call returns when no task is left.
    fn read(
        &self,
        files: &[PathBuf],
        recorder: &mut Option<Recorder>,
        quic: &mut QuicCollector,
        stop: &AtomicBool,
        mut process: impl FnMut(),
    ) -> Result<Reading, TraceError> {
        let mut batches: [Batch; SHARDS] = Default::default();
        let reading = captured(files, |packet| {
            if let Some(recorder) = recorder {
                recorder.packet(packet);
            }
            if let Decoded::Datagram(datagram) = packet
                && quic.datagram(datagram)
            {
                // Without segments no batch becomes full.
                self.hand_over(&mut batches, quic);
                process();
                self.refill(&mut batches);
                return !stop.load(Ordering::Relaxed) && !self.lock().cancelled;
            }
            let Decoded::Segment(segment) = packet else { return !stop.load(Ordering::Relaxed) };
            let hash = hash(&segment.route);
            let segments = &mut batches[shard_of(hash)].segments;
            segments.push((hash, Segment { payload: &[], ..*segment }));
            if segments.len() < SEGMENTS {
                return true;
            }
            self.hand_over(&mut batches, quic);
            process();
            self.refill(&mut batches);
            !stop.load(Ordering::Relaxed) && !self.lock().cancelled
        });
        quic.finish();
        self.hand_over(&mut batches, quic);
        // After an error no connection is reported.
        self.enter(if reading.is_ok() { Stage::EndingConnections } else { Stage::Over });
        process();
        reading
    }

    fn enter(&self, stage: Stage) {
        self.lock().stage = stage;
        self.changed.notify_one();
    }

    /// Ends the next connection of each of `shards`; without any the analysis is over.
    fn end_connections(&self, shards: impl Iterator<Item = usize>) {
        let mut batches: [Batch; SHARDS] = Default::default();
        shards.for_each(|shard| batches[shard].ending += 1);
        if batches.iter().all(|batch| batch.ending == 0) {
            self.enter(Stage::Over);
        } else {
            self.queue(&mut batches, JsonLines::default());
        }
    }

    /// Queues an epoch, and replaces its batches with new ones.
    fn hand_over(&self, batches: &mut [Batch; SHARDS], quic: &mut QuicCollector) {
        let mut lines = JsonLines::default();
        quic.take_lines(&mut lines);
        self.queue(batches, lines);
    }

    /// The same with the lines of QUIC flows that are over.
    fn queue(&self, batches: &mut [Batch; SHARDS], quic: JsonLines) {
        let mut state = self.lock();
        let number = state.merged + state.epochs.len() as u64;
        let mut pending = 0;
        for (shard, batch) in batches.iter_mut().enumerate() {
            if batch.ending > 0 || !batch.segments.is_empty() {
                pending += 1;
                state.shards[shard].batches.push_back((number, std::mem::take(batch)));
            }
        }
        state.epochs.push_back(Epoch { pending, results: Box::default(), quic });
        self.changed.notify_one();
    }

    /// Gives new batches the memory of processed ones.
    fn refill(&self, batches: &mut [Batch; SHARDS]) {
        let mut state = self.lock();
        for batch in batches.iter_mut().filter(|batch| batch.segments.capacity() == 0) {
            *batch = state.spare_batches.pop().unwrap_or_default();
        }
    }

    /// Processes batches in the reader thread until it must read, or no task is left.
    fn process(&self) {
        while let Task::Process(work) = self.next(Role::Reader) {
            self.put_back(work.process());
        }
    }

    /// Returns the next task; waits until there is one.
    fn next(&self, role: Role) -> Task<'a> {
        let mut state = self.lock();
        loop {
            if state.panicked {
                return Task::Stop;
            }
            if role.merges()
                && state.epochs.front().is_some_and(|epoch| epoch.pending == 0)
                && let Some(epoch) = state.epochs.pop_front()
            {
                state.merged += 1;
                self.changed.notify_one();
                return Task::Merge(epoch.results, epoch.quic);
            }
            if state.stage == Stage::Reading && role.epochs_ahead().is_some_and(|ahead| state.epochs.len() < ahead) {
                return Task::Read;
            }
            if let Some(work) = state.take(role) {
                return Task::Process(work);
            }
            match state.stage {
                Stage::EndingConnections if role.merges() && state.epochs.is_empty() => {
                    return Task::EndConnections;
                }
                // The other thread holds the rest.
                Stage::Over if role == Role::Reader || state.epochs.is_empty() => return Task::Stop,
                _ => {}
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Keeps the merged results for reuse. Without `goes_on` the analysis is cancelled.
    fn recycle(&self, results: Box<[BatchResult; SHARDS]>, goes_on: bool) {
        let mut state = self.lock();
        state.spare_results.extend((*results).into_iter().map(BatchResult::cleared));
        state.cancelled |= !goes_on;
    }

    /// Puts back processed work.
    fn put_back(&self, work: Work<'a>) {
        let Work { shard, epoch, worker, batch, result } = work;
        let mut state = self.lock();
        state.shards[shard].worker = Some(worker);
        let index = (epoch - state.merged) as usize;
        state.epochs[index].results[shard] = result;
        state.epochs[index].pending -= 1;
        state.spare_batches.push(batch);
        self.changed.notify_one();
    }
}

impl<'a> State<'a> {
    /// Takes the batch that has waited longest. The two threads search the shards from opposite
    /// ends: so each mostly takes the shards whose state is still in the cache of its processor
    /// core.
    fn take(&mut self, role: Role) -> Option<Work<'a>> {
        let ready = |shard: usize| {
            let slot = &self.shards[shard];
            slot.worker.as_ref().and(slot.batches.front()).map(|(epoch, _)| (*epoch, shard))
        };
        let (epoch, shard) = match role {
            Role::Merger | Role::Both => (0..SHARDS).filter_map(ready).min_by_key(|(epoch, _)| *epoch),
            Role::Reader => (0..SHARDS).rev().filter_map(ready).min_by_key(|(epoch, _)| *epoch),
        }?;
        let slot = &mut self.shards[shard];
        let worker = slot.worker.take()?;
        let (_, batch) = slot.batches.pop_front()?;
        let result = self.spare_results.pop().unwrap_or_default();
        Some(Work { shard, epoch, worker, batch, result })
    }
}

/// Wakes the other thread when this one panics, so that it does not wait for ever.
struct PanicGuard<'a, 'b>(&'a WorkQueue<'b>);

impl Drop for PanicGuard<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.lock();
            state.panicked = true;
            state.cancelled = true;
            self.0.changed.notify_one();
        }
    }
}
