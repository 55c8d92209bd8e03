//! Columns of floating-point numbers.

use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescPtr, Type};

use super::chunk::{Chunk, Levels};
use super::{Column, Presence, RowGroup, primitive};

/// A column of optional numbers, in plain encoding: for tables of few rows.
#[derive(Debug)]
pub struct Floats {
    chunk: Chunk,
    values: Vec<f64>,
}

impl Floats {
    /// An empty column.
    pub fn optional() -> Self {
        Self { chunk: Chunk::new(Presence::Optional), values: Vec::new() }
    }

    /// Adds the values of a batch, for the rows present in `levels`.
    pub fn add_some(&mut self, levels: &Levels, values: impl Iterator<Item = f64>) {
        self.values.clear();
        self.values.extend(values);
        self.chunk.add(self.values.len(), Some(levels), Encoding::PLAIN, |out| {
            out.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        });
    }
}

impl Column for Floats {
    fn schema(&self, name: &str) -> Type {
        primitive(name, PhysicalType::DOUBLE, None, self.chunk.presence())
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError> {
        self.chunk.write(None, row_group, descriptor)
    }
}
