//! Columns: the values of one batch of rows become a page, and pages wait until the part of the
//! file is full.

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

/// The part of a file that columns are written to, one after the other.
pub type RowGroup<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut Vec<u8>>;

/// A column of any type.
pub trait Column {
    /// Its type, under a name.
    fn schema(&self, name: &str) -> Type;
    /// Writes the pages that wait as the next column, which `descriptor` describes. Then there are
    /// none.
    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError>;
}

/// Whether all rows have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Yes.
    Required,
    /// Some are null.
    Optional,
}

/// The type of a column of single values.
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
