//! A shard of the connections, and its queue.

use std::collections::VecDeque;

use super::batch::Batch;
use crate::analysis::Options;
use crate::analysis::collect::Collector;
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
    pub fn new(options: &Options) -> Self {
        let flows = Shard::new(Limits::default().of_a_shard());
        let worker = Worker { flows, begun: 0, open: None, collector: Collector::new(options, None) };
        Self { worker: Some(Box::new(worker)), batches: VecDeque::new() }
    }
}
