//! The tables: their columns, and the conversion of events. Their meaning is in `fields`.

mod app;
mod changes;
mod packets;
mod quic;
mod radio;
mod states;
mod tcp;

pub use app::AppRows;
pub use changes::ChangeRows;
pub use packets::PacketRows;
pub use quic::QuicRows;
pub use radio::RadioRows;
pub use states::StateRows;
pub use tcp::TcpRows;

use airpath_core::{Direction, Span};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescPtr, Type};

use crate::batch::{Row, signed};
use crate::column::{Coded, Column, Dictionary, Encoding, Numbers, Presence, RowGroup};
use crate::fields::Field;
use crate::table::Rows;

/// The tables by name, with their columns in the order of the files.
pub const TABLES: [(&str, &[Field]); 7] = [
    ("packets", PacketRows::FIELDS),
    ("tcp", TcpRows::FIELDS),
    ("quic", QuicRows::FIELDS),
    ("radio", RadioRows::FIELDS),
    ("states", StateRows::FIELDS),
    ("app", AppRows::FIELDS),
    ("changes", ChangeRows::FIELDS),
];

/// The columns of a table under the names of its fields, after those of its [`Origin`].
macro_rules! columns {
    ($rows:ident: $($column:ident),+) => {{
        let columns: Vec<(&'static str, &mut dyn Column)> = vec![
            ("time", &mut $rows.origin.time),
            ("repetition", &mut $rows.origin.repetition),
            $((stringify!($column), &mut $rows.$column)),+
        ];
        columns
    }};
}
use columns;

/// The first columns of all tables.
#[derive(Debug)]
struct Origin {
    time: Numbers,
    repetition: Coded,
}

impl Origin {
    fn new(repetition: u32) -> Self {
        Self { time: steady(), repetition: Coded::required(repetitions(repetition)) }
    }

    fn begin(&mut self, repetition: u32) {
        self.repetition.set_dictionary(repetitions(repetition));
    }

    fn add<E>(&mut self, rows: &[Row<E>]) {
        self.repetition.add_same(0, rows.len());
        self.time.add(rows.iter().map(|row| signed(row.time.as_nanos())));
    }

    fn add_times(&mut self, times: &[i64]) {
        self.repetition.add_same(0, times.len());
        self.time.add_slice(times);
    }
}

/// The number of a repetition, clamped to 2³¹ - 1.
fn repetitions(repetition: u32) -> Dictionary {
    Dictionary::numbers([i32::try_from(repetition).unwrap_or(i32::MAX)], 32)
}

/// A column of directions; their codes are those of [`direction`].
fn directions() -> Coded {
    Coded::required(Dictionary::texts(Direction::BOTH.map(Direction::name)))
}

/// A column of component names; their codes are the numbers of the components.
fn components(names: &[String]) -> Components {
    let dictionary = Dictionary::texts(names.iter().map(String::as_str));
    match u16::try_from(names.len()) {
        Ok(_) => Components::Few(Coded::required(dictionary)),
        Err(_) => Components::Many(Coded::required(dictionary)),
    }
}

/// Names of components. Numbers of 16 bits, as most runs have, are encoded faster.
#[derive(Debug)]
enum Components {
    /// Fewer than 65,536.
    Few(Coded),
    /// More.
    Many(Coded<u32>),
}

impl Components {
    fn add(&mut self, numbers: impl Iterator<Item = u32>) {
        match self {
            Self::Few(column) => column.add(numbers.map(|number| number as u16)),
            Self::Many(column) => column.add(numbers),
        }
    }
}

impl Column for Components {
    fn schema(&self, name: &str) -> Type {
        match self {
            Self::Few(column) => column.schema(name),
            Self::Many(column) => column.schema(name),
        }
    }

    fn write(&mut self, row_group: &mut RowGroup<'_, '_>, descriptor: &ColumnDescPtr) -> Result<(), ParquetError> {
        match self {
            Self::Few(column) => column.write(row_group, descriptor),
            Self::Many(column) => column.write(row_group, descriptor),
        }
    }
}

/// A column of numbers of mobiles, or of other small counts.
fn counts() -> Numbers {
    Numbers::short(Presence::Required, Encoding::Dictionary).with_bits(32)
}

/// A column of 64-bit numbers without nulls that change little between rows.
fn steady() -> Numbers {
    Numbers::long(Presence::Required, Encoding::Differences)
}

const fn direction(direction: Direction) -> u16 {
    match direction {
        Direction::Down => 0,
        Direction::Up => 1,
    }
}

/// The number, clamped to the largest that the file can hold; no packet or TTI is as large.
fn short(number: u32) -> i64 {
    i64::from(number).min(i64::from(i32::MAX))
}

fn nanos(span: Span) -> i64 {
    signed(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::to_json;

    #[test]
    fn the_columns_are_those_of_the_tables() {
        fn names<R: Rows>(mut rows: R) -> Vec<&'static str> {
            rows.columns().into_iter().map(|(name, _)| name).collect()
        }
        let components = ["server".to_owned()];
        let columns = [
            names(PacketRows::new(0, &components)),
            names(TcpRows::new(0, &components)),
            names(QuicRows::new(0, &components)),
            names(RadioRows::new(0, &components)),
            names(StateRows::new(0, &components)),
            names(AppRows::new(0)),
            names(ChangeRows::new(0, &components)),
        ];
        for ((table, fields), columns) in TABLES.into_iter().zip(columns) {
            assert_eq!(fields.iter().map(|field| field.name).collect::<Vec<_>>(), columns, "{table}");
            assert!(!to_json(fields).contains('\\') && to_json(fields).chars().all(|each| !each.is_control()));
            assert!(fields.iter().all(|field| !field.description.contains('"')));
        }
    }
}
