//! A table under construction, whose rows are stamped with frames.

use super::table::{Record, Table};

/// Rows of a table, each with the frame at which it was emitted.
#[derive(Default)]
pub struct TableBuilder {
    /// `None` without a row.
    pub(super) table: Option<Table>,
    pub(super) frames: Vec<u64>,
}

impl TableBuilder {
    /// Adds a row emitted at `frame`, which is no earlier than the frames of the rows before.
    pub fn push(&mut self, frame: u64, row: &impl Record) {
        self.table.get_or_insert_with(|| Table::of(row)).push(row);
        self.frames.push(frame);
    }

    /// The rows as a table; `None` without rows.
    pub fn into_table(self) -> Option<Table> {
        self.table
    }
}
