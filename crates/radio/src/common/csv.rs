//! Reads the tables that are compiled into the crate.

use std::fmt::Debug;
use std::str::FromStr;

/// The rows of a table after its head, each as `N` fields. The last field takes the rest of the
/// line, so it may contain commas.
///
/// # Panics
/// If a row has fewer fields: the tables are part of the source.
pub(crate) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.lines().skip(1).map(|line| {
        let mut fields = line.splitn(N, ',');
        std::array::from_fn(|_| fields.next().unwrap_or_else(|| panic!("a row of {N} fields: {line}")))
    })
}

/// The value of a field.
///
/// # Panics
/// If it has another type: the tables are part of the source.
pub(crate) fn value<T: FromStr<Err: Debug>>(field: &str) -> T {
    field.parse().unwrap_or_else(|error| panic!("`{field}` in a table: {error:?}"))
}
