//! Segments of one shard, and the result of processing them.

use super::shard::Worker;
use crate::analysis::collect::{Collector, END_OF_CAPTURE};
use crate::analysis::json_lines::JsonLines;
use crate::analysis::reporter::Reporter;
use airpath_observe::flows::FlowNumber;
use airpath_wire::segment::Segment;

/// Segments of a shard in the order of the capture; after the last one, connections to end.
#[derive(Default)]
pub struct Batch {
    /// Each segment with the hash of its route.
    pub segments: Vec<(u32, Segment<'static>)>,
    /// Number of connections, open at the end of the capture, that are to end, in the order of
    /// their numbers.
    pub ending: usize,
}

/// What the connections of a shard did in one epoch.
#[derive(Default)]
pub struct BatchResult {
    /// The first frames of connections that began.
    pub begun: Vec<u64>,
    /// The connections that ended.
    pub ended: Vec<FlowNumber>,
    /// The lines of JSON of those that are reported.
    pub lines: JsonLines,
}

impl BatchResult {
    /// Returns it empty, with its memory for reuse.
    pub fn cleared(mut self) -> Self {
        self.begun.clear();
        self.ended.clear();
        self.lines.clear();
        self
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
