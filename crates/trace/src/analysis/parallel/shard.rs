//! A shard of the connections: its queue, its state, and the processing of a batch.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::{Batch, BatchResult};
use crate::analysis::Options;
use crate::analysis::collect::{Collector, END_OF_CAPTURE};
use crate::analysis::reporter::Reporter;
use crate::shared_path::SharedPaths;
use airpath_observe::flows::{FlowNumber, Limits, Shard};

/// A shard in the work queue.
pub struct ShardSlot<'a> {
    /// `None` while a thread processes a batch of the shard.
    pub worker: Option<Box<Worker<'a>>>,
    /// Batches that wait, each with the number of its epoch.
    pub batches: VecDeque<(u64, Batch)>,
}

/// The state of a shard, which moves to the thread that processes it.
pub struct Worker<'a> {
    pub flows: Shard,
    /// Connections that have begun.
    pub begun: u64,
    /// Connections open at the end of the capture that have not been ended yet, in order.
    pub open: Option<std::vec::IntoIter<(FlowNumber, u32)>>,
    pub collector: Collector<'a>,
}

impl ShardSlot<'_> {
    pub fn new(options: &Options, paths: &Arc<SharedPaths>) -> Self {
        let flows = Shard::new(Limits::default().of_a_shard());
        let worker =
            Worker { flows, begun: 0, open: None, collector: Collector::new(options, None, Arc::clone(paths)) };
        Self { worker: Some(Box::new(worker)), batches: VecDeque::new() }
    }
}

/// A batch with the state of its shard, and its result once it is processed.
pub struct Work<'a> {
    pub shard: usize,
    pub epoch: u64,
    pub worker: Box<Worker<'a>>,
    pub batch: Batch,
    pub result: BatchResult,
}

impl Work<'_> {
    /// Processes the batch, and empties it.
    pub fn process(mut self) -> Self {
        let Worker { flows, begun, open, collector } = &mut *self.worker;
        std::mem::swap(&mut self.result.lines, collector.lines());
        let ended = &mut self.result.ended;
        let mut reporter = Reporter { collector, on_end: |flow, _: &mut Collector<'_>| ended.push(flow) };
        for (hash, segment) in &self.batch.segments {
            reporter.collector.set_frame(segment.frame);
            let before = *begun;
            flows.segment(*hash, segment, begun, &mut reporter);
            if *begun > before {
                self.result.begun.push(segment.frame);
            }
        }
        if self.batch.ending > 0 {
            reporter.collector.set_frame(END_OF_CAPTURE);
            let open = open.get_or_insert_with(|| flows.held().into_iter());
            for (_, index) in open.take(self.batch.ending) {
                flows.finish_one(index, &mut reporter);
            }
        }
        std::mem::swap(&mut self.result.lines, reporter.collector.lines());
        self.batch.segments.clear();
        self.batch.ending = 0;
        self
    }
}
