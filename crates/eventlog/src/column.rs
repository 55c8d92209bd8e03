//! Columns: values that wait in memory, and how they are encoded.
//!
//! A value is pushed without allocation, because a column has room for a whole part from the start. (The memory is
//! only claimed; it is taken when it is first used.)

mod coded;
mod number;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type};

pub use coded::{Coded, Counts, Dictionary, OptionalCoded};
pub use number::{Encoding, Numbers, OptionalNumbers};

/// The part of a file that columns are written to, one after the other.
pub type RowGroup<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut Vec<u8>>;

/// A column of any type.
pub trait Column {
    /// Its type, under a name.
    fn schema(&self, name: &str) -> Type;
    /// Sets how the column at `path` is encoded.
    fn configure(&self, properties: WriterPropertiesBuilder, path: ColumnPath) -> WriterPropertiesBuilder;
    /// Writes the values that wait as the next column, which `descriptor` describes. Then there are none.
    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError>;
}

/// The type of a column of single values.
fn primitive(name: &str, physical: PhysicalType, logical: Option<LogicalType>, repetition: Repetition) -> Type {
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
        .expect("the logical types of this crate fit their physical types")
}
