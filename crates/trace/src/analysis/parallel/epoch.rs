//! One batch of every shard: the unit in which results are merged.

use super::batch::BatchResult;
use crate::analysis::json_lines::JsonLines;
use airpath_observe::flows::SHARDS;

/// An epoch that is read and not merged.
pub struct Epoch {
    /// Batches that are not processed.
    pub pending: usize,
    pub results: Box<[BatchResult; SHARDS]>,
    /// The lines of QUIC flows that are over.
    pub quic: JsonLines,
}
