//! Columns of numbers.

use parquet::basic::{Encoding as ParquetEncoding, LogicalType, Repetition};
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type};

use super::{Column, RowGroup, primitive};
use crate::ROWS_PER_PART;

/// How numbers are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Plain,
    /// As differences from one to the next: small where they rise steadily.
    Differences,
    /// As indices into a dictionary: small where there are few different ones.
    Dictionary,
}

/// What a column of numbers can hold.
pub trait Number: Copy {
    /// The type in the file.
    type Physical: DataType<T = Self>;
}

impl Number for i64 {
    type Physical = Int64Type;
}

impl Number for i32 {
    type Physical = Int32Type;
}

impl Number for bool {
    type Physical = BoolType;
}

/// A column of numbers.
#[derive(Debug)]
pub struct Numbers<T>(Values<T>);

impl<T: Number> Numbers<T> {
    /// An empty column.
    pub fn new(encoding: Encoding) -> Self {
        Self(Values::new(encoding))
    }

    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        self.0.values.push(value);
    }
}

impl<T: Number> Column for Numbers<T> {
    fn schema(&self, name: &str) -> Type {
        self.0.schema(name, Repetition::REQUIRED)
    }

    fn configure(&self, properties: WriterPropertiesBuilder, path: ColumnPath) -> WriterPropertiesBuilder {
        self.0.configure(properties, path)
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, _: &ColumnDescPtr) -> Result<(), ParquetError> {
        self.0.write(row_group, None)
    }
}

/// A column of numbers of which some are null.
#[derive(Debug)]
pub struct OptionalNumbers<T> {
    present: Values<T>,
    // For each row whether it has a value: Parquet's definition level.
    levels: Vec<i16>,
}

impl<T: Number> OptionalNumbers<T> {
    /// An empty column.
    pub fn new(encoding: Encoding) -> Self {
        Self { present: Values::new(encoding), levels: Vec::with_capacity(ROWS_PER_PART) }
    }

    /// The same column with numbers of `bits` bits.
    pub fn with_bits(mut self, bits: i8) -> Self {
        self.present.logical = Some(LogicalType::integer(bits, true));
        self
    }

    /// Adds a value, or none.
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        if let Some(value) = value {
            self.present.values.push(value);
        }
    }
}

impl<T: Number> Column for OptionalNumbers<T> {
    fn schema(&self, name: &str) -> Type {
        self.present.schema(name, Repetition::OPTIONAL)
    }

    fn configure(&self, properties: WriterPropertiesBuilder, path: ColumnPath) -> WriterPropertiesBuilder {
        self.present.configure(properties, path)
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, _: &ColumnDescPtr) -> Result<(), ParquetError> {
        self.present.write(row_group, Some(&self.levels))?;
        self.levels.clear();
        Ok(())
    }
}

/// Values that are not null.
#[derive(Debug)]
struct Values<T> {
    values: Vec<T>,
    encoding: Encoding,
    logical: Option<LogicalType>,
}

impl<T: Number> Values<T> {
    fn new(encoding: Encoding) -> Self {
        Self { values: Vec::with_capacity(ROWS_PER_PART), encoding, logical: None }
    }

    fn schema(&self, name: &str, repetition: Repetition) -> Type {
        primitive(name, T::Physical::get_physical_type(), self.logical.clone(), repetition)
    }

    fn configure(&self, properties: WriterPropertiesBuilder, path: ColumnPath) -> WriterPropertiesBuilder {
        match self.encoding {
            Encoding::Plain => properties,
            Encoding::Differences => properties.set_column_encoding(path, ParquetEncoding::DELTA_BINARY_PACKED),
            Encoding::Dictionary => properties.set_column_dictionary_enabled(path, true),
        }
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, levels: Option<&[i16]>) -> Result<(), ParquetError> {
        let mut column = row_group.next_column()?.expect("there are as many columns as the schema has");
        column.typed::<T::Physical>().write_batch(&self.values, levels, None)?;
        self.values.clear();
        column.close()
    }
}
