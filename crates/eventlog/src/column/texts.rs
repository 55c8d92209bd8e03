//! Columns of text.

use parquet::basic::{Encoding, LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescPtr, Type};

use super::chunk::{Chunk, Levels};
use super::{Column, Presence, RowGroup, primitive};

/// A column of texts in plain encoding: for tables of few rows.
#[derive(Debug)]
pub struct Texts {
    chunk: Chunk,
    plain: Vec<u8>,
}

impl Texts {
    /// An empty column in which all rows have a value.
    pub fn required() -> Self {
        Self { chunk: Chunk::new(Presence::Required), plain: Vec::new() }
    }

    /// An empty column in which some are null.
    pub fn optional() -> Self {
        Self { chunk: Chunk::new(Presence::Optional), plain: Vec::new() }
    }

    /// Adds the values of a batch.
    pub fn add<'a>(&mut self, values: impl Iterator<Item = &'a str>) {
        self.add_page(None, values);
    }

    /// Adds the values of a batch, for the rows present in `levels`.
    pub fn add_some<'a>(&mut self, levels: &Levels, values: impl Iterator<Item = &'a str>) {
        self.add_page(Some(levels), values);
    }

    fn add_page<'a>(&mut self, levels: Option<&Levels>, values: impl Iterator<Item = &'a str>) {
        self.plain.clear();
        let mut count = 0;
        for text in values {
            let length = u32::try_from(text.len()).expect("no text of an event has 4 GiB");
            self.plain.extend_from_slice(&length.to_le_bytes());
            self.plain.extend_from_slice(text.as_bytes());
            count += 1;
        }
        self.chunk.add(count, levels, Encoding::PLAIN, |out| out.extend_from_slice(&self.plain));
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
