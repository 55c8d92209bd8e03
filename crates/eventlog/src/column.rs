//! Columns: the values of one batch become a page, and pages are buffered until the part is
//! complete.

mod booleans;
mod chunk;
mod coded;
mod floats;
mod numbers;
mod texts;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{ColumnDescPtr, Type};

pub use booleans::Booleans;
pub use chunk::Levels;
pub use coded::{Coded, Dictionary};
pub use floats::Floats;
pub use numbers::{Encoding, Numbers};
pub use texts::Texts;

/// The row group of a file, to which columns are written in sequence.
pub type RowGroup<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut Vec<u8>>;

/// A column of any type.
pub trait Column {
    /// The Parquet type, with this name.
    fn schema(&self, name: &str) -> Type;
    /// Writes the buffered pages as the next column, described by `descriptor`, and clears them.
    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError>;
}

/// Whether all rows have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// All rows.
    Required,
    /// Some rows are null.
    Optional,
}

/// The Parquet type of a column of single values.
fn primitive(name: &str, physical: PhysicalType, logical: Option<LogicalType>, presence: Presence) -> Type {
    let repetition = match presence {
        Presence::Required => Repetition::REQUIRED,
        Presence::Optional => Repetition::OPTIONAL,
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
        .expect("the logical types of this crate fit their physical types")
}
