//! Columns of free text.

use parquet::basic::{Encoding, LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescPtr, Type};

use super::chunk::Chunk;
use super::{Column, Presence, RowGroup, primitive};

/// A column of texts, all there, each as it is: for tables of few rows.
#[derive(Debug)]
pub struct Texts {
    chunk: Chunk,
}

impl Texts {
    /// An empty column.
    pub fn required() -> Self {
        Self { chunk: Chunk::new(Presence::Required) }
    }

    /// Adds the values of a batch.
    pub fn add<'a>(&mut self, values: impl ExactSizeIterator<Item = &'a str>) {
        self.chunk.add(values.len(), None, Encoding::PLAIN, |out| {
            for text in values {
                let length = u32::try_from(text.len()).expect("no text of an event has 4 GiB");
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        });
    }
}

impl Column for Texts {
    fn schema(&self, name: &str) -> Type {
        primitive(name, PhysicalType::BYTE_ARRAY, Some(LogicalType::String), self.chunk.presence())
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError> {
        self.chunk.write(None, row_group, descriptor)
    }
}
