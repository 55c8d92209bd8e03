//! Batches: rows of one table in the order of recording, as the run sends them to the log's thread.

mod packets;

use std::fmt::Debug;

use airpath_core::{ComponentId, Instant};

use crate::ROWS_PER_PART;

pub use packets::{PacketBatch, Step};

/// Rows of a table.
pub trait Batch: Default + Debug + Send + 'static {
    /// The source of a row.
    type Event;
    /// Rows of a full batch, which becomes a page of each column. A part is a whole number of
    /// batches.
    const FULL: usize;
    /// Adds a row.
    fn add(&mut self, time: Instant, at: ComponentId, event: &Self::Event);
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Removes all rows, and keeps the memory.
    fn clear(&mut self);
}

const _: () =
    assert!(ROWS_PER_PART.is_multiple_of(PacketBatch::FULL) && ROWS_PER_PART.is_multiple_of(Vec::<Row<()>>::FULL));

/// An event with its time and component.
#[derive(Clone, Debug)]
pub struct Row<E> {
    /// Time.
    pub time: Instant,
    /// Component.
    pub at: ComponentId,
    /// Event.
    pub event: E,
}

/// The number, clamped to the largest that the file can hold; 2⁶³ bytes or nanoseconds mean
/// unlimited.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Unconverted events.
impl<E: Clone + Debug + Send + 'static> Batch for Vec<Row<E>> {
    type Event = E;
    const FULL: usize = 1 << 11;

    #[inline]
    fn add(&mut self, time: Instant, at: ComponentId, event: &E) {
        self.push(Row { time, at, event: event.clone() });
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn clear(&mut self) {
        self.clear();
    }
}
