//! Segments of one shard, and the result of processing them.

use crate::analysis::json_lines::JsonLines;
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
