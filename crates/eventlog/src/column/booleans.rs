//! Columns of booleans.

use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescPtr, Type};

use super::chunk::{Chunk, Levels};
use super::{Column, Presence, RowGroup, primitive};

/// A column of optional booleans, one bit each.
#[derive(Debug)]
pub struct Booleans {
    chunk: Chunk,
    values: Vec<bool>,
}

impl Booleans {
    /// An empty column.
    pub fn optional() -> Self {
        Self { chunk: Chunk::new(Presence::Optional), values: Vec::new() }
    }

    /// Adds the values of a batch, for the rows present in `levels`.
    pub fn add_some(&mut self, levels: &Levels, values: impl Iterator<Item = bool>) {
        self.values.clear();
        self.values.extend(values);
        self.chunk.add(self.values.len(), Some(levels), Encoding::PLAIN, |out| {
            // The first value in the lowest bit.
            let byte = |values: &[bool]| values.iter().rev().fold(0, |byte, value| byte << 1 | u8::from(*value));
            out.extend(self.values.chunks(8).map(byte));
        });
    }
}

impl Column for Booleans {
    fn schema(&self, name: &str) -> Type {
        primitive(name, PhysicalType::BOOLEAN, None, self.chunk.presence())
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError> {
        self.chunk.write(None, row_group, descriptor)
    }
}
