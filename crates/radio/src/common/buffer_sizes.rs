//! Buffer size levels: how a mobile reports what waits in its uplink buffer (MAC of LTE and NR).

use airpath_core::Bytes;

use super::csv::{rows, value};

/// The levels of a buffer status report, from an empty buffer to "more than the last limit".
#[derive(Clone, Debug)]
pub struct BufferSizes {
    limits: Vec<Bytes>,
}

impl BufferSizes {
    /// Reads a table with a row for each level: its index and the most bytes it stands for. The
    /// last row is the level without limit.
    pub(crate) fn parse(table: &'static str) -> Self {
        let mut limits: Vec<&str> = rows(table).map(|[_, limit]: [&str; 2]| limit).collect();
        limits.pop();
        Self { limits: limits.into_iter().map(|limit| Bytes::new(value(limit))).collect() }
    }

    /// The index of the level that reports `waiting` bytes: the lowest whose limit is not below it.
    pub fn index(&self, waiting: Bytes) -> u8 {
        self.limits.partition_point(|limit| *limit < waiting) as u8
    }

    /// The most bytes that a level can stand for; `None` for the last, which has no limit.
    ///
    /// # Panics
    /// If there is no such level.
    pub fn limit(&self, index: u8) -> Option<Bytes> {
        assert!(usize::from(index) <= self.limits.len(), "levels end at {}, not {index}", self.limits.len());
        self.limits.get(usize::from(index)).copied()
    }
}
