//! Batches: the rows of one table in the order in which they were recorded, as the run hands them
//! over.

mod packets;

use std::fmt::Debug;

use airpath_core::{ComponentId, Instant};

use crate::ROWS_PER_PART;

pub use packets::{PacketBatch, Step};

/// Rows of a table.
pub trait Batch: Default + Debug + Send + 'static {
    /// What a row comes from.
    type Event;
    /// Rows of a full batch, which becomes a page of each column. A part takes a whole number of
    /// them.
    const FULL: usize;
    /// Adds a row: when, where, what.
    fn add(&mut self, time: Instant, at: ComponentId, event: &Self::Event);
    /// How many there are.
    fn rows(&self) -> usize;
    /// Takes all out, and keeps their room.
    fn clear(&mut self);
}

const _: () =
    assert!(ROWS_PER_PART.is_multiple_of(PacketBatch::FULL) && ROWS_PER_PART.is_multiple_of(Vec::<Row<()>>::FULL));

/// An event, when and where it was.
#[derive(Clone, Debug)]
pub struct Row<E> {
    /// When.
    pub time: Instant,
    /// Where.
    pub at: ComponentId,
    /// What.
    pub event: E,
}

/// The number, or the largest that the file can hold: 2⁶³ bytes or nanoseconds mean without end.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Events as they are.
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
