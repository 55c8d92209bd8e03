//! Records as rows: one definition of a record's fields gives its columns, and its line of JSON.

use std::fmt::Write;
use std::ops::Range;

use airpath_observe::flows::FlowNumber;

/// The name of the field with the number of a record's connection.
pub(super) const CONNECTION: &str = "connection";

/// A record with a fixed sequence of fields.
pub trait Record {
    /// Writes each field, in order.
    fn write(&self, fields: &mut impl Fields);
}

/// Receives the fields of a record. `None` is a missing value.
pub trait Fields {
    /// A whole number.
    fn whole(&mut self, name: &'static str, value: Option<i64>);
    /// A number.
    fn real(&mut self, name: &'static str, value: Option<f64>);
    /// A truth value.
    fn flag(&mut self, name: &'static str, value: Option<bool>);
    /// A text.
    fn text(&mut self, name: &'static str, value: Option<&str>);
    /// The connection of the record.
    fn connection(&mut self, flow: FlowNumber) {
        self.whole(CONNECTION, i64::try_from(flow.0).ok());
    }
}

/// Records as columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    rows: usize,
    next: usize,
}

/// Collects a column for each field.
#[derive(Default)]
struct Columns(Vec<Column>);

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its values, one a row.
    pub values: Values,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Real(Vec<Option<f64>>),
    /// Truth values.
    Flag(Vec<Option<bool>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl Table {
    /// A table without rows for records that have the fields of `example`.
    pub fn of(example: &impl Record) -> Self {
        let mut columns = Columns::default();
        example.write(&mut columns);
        Self { columns: columns.0, rows: 0, next: 0 }
    }

    /// Adds a record.
    ///
    /// # Panics
    /// If its fields differ from those of the records before.
    pub fn push(&mut self, record: &impl Record) {
        record.write(self);
        assert_eq!(self.next, self.columns.len(), "every record of a table has the same fields");
        self.next = 0;
        self.rows += 1;
    }

    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The number of its rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// A table from columns with a value for each row.
    pub(super) fn of_columns(columns: Vec<Column>, rows: usize) -> Self {
        Self { columns, rows, next: 0 }
    }

    pub(super) fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// The next column of a record.
    fn column(&mut self, name: &'static str) -> &mut Values {
        let column = self.columns.get_mut(self.next).expect("every record of a table has the same fields");
        debug_assert_eq!(column.name, name, "every record of a table has the same fields");
        self.next += 1;
        &mut column.values
    }
}

/// The table of some rows; without any there is none.
pub fn table<R: Record>(rows: impl Iterator<Item = R>) -> Option<Table> {
    rows.fold(None, |table, row| {
        let mut table = table.unwrap_or_else(|| Table::of(&row));
        table.push(&row);
        Some(table)
    })
}

impl Fields for Columns {
    fn whole(&mut self, name: &'static str, _: Option<i64>) {
        self.0.push(Column { name, values: Values::Whole(Vec::new()) });
    }

    fn real(&mut self, name: &'static str, _: Option<f64>) {
        self.0.push(Column { name, values: Values::Real(Vec::new()) });
    }

    fn flag(&mut self, name: &'static str, _: Option<bool>) {
        self.0.push(Column { name, values: Values::Flag(Vec::new()) });
    }

    fn text(&mut self, name: &'static str, _: Option<&str>) {
        self.0.push(Column { name, values: Values::Text(Vec::new()) });
    }
}

impl Fields for Table {
    fn whole(&mut self, name: &'static str, value: Option<i64>) {
        if let Values::Whole(values) = self.column(name) {
            values.push(value);
        }
    }

    fn real(&mut self, name: &'static str, value: Option<f64>) {
        if let Values::Real(values) = self.column(name) {
            values.push(value);
        }
    }

    fn flag(&mut self, name: &'static str, value: Option<bool>) {
        if let Values::Flag(values) = self.column(name) {
            values.push(value);
        }
    }

    fn text(&mut self, name: &'static str, value: Option<&str>) {
        if let Values::Text(values) = self.column(name) {
            values.push(value.map(str::to_owned));
        }
    }
}

/// An object of JSON (RFC 8259) out of records.
#[derive(Debug)]
pub struct Object {
    text: String,
    /// The positions of connection numbers in it.
    numbers: Vec<Range<usize>>,
}

impl Object {
    /// An object with the member `type` alone.
    pub fn of_type(kind: &str) -> Self {
        let mut object = Self::after(String::new(), Vec::new());
        object.text("type", Some(kind));
        object
    }

    /// An empty object after `text`, which has connection numbers at the positions `numbers`.
    pub(super) fn after(mut text: String, numbers: Vec<Range<usize>>) -> Self {
        text.push('{');
        Self { text, numbers }
    }

    /// Adds the fields of a record.
    pub fn with(mut self, record: &impl Record) -> Self {
        record.write(&mut self);
        self
    }

    /// Adds a record as an object in this one.
    pub fn nested(mut self, name: &str, record: &impl Record) -> Self {
        self.name(name);
        self.inner(record);
        self
    }

    /// Adds a list of records.
    pub fn list<'a, R: Record + 'a>(mut self, name: &str, records: impl Iterator<Item = &'a R>) -> Self {
        self.name(name);
        self.text.push('[');
        for (index, record) in records.enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.inner(record);
        }
        self.text.push(']');
        self
    }

    /// The object as text.
    pub fn end(mut self) -> String {
        self.text.push('}');
        self.text
    }

    /// The text with the object at its end, and the positions of connection numbers in it.
    pub(super) fn end_with_numbers(mut self) -> (String, Vec<Range<usize>>) {
        let numbers = std::mem::take(&mut self.numbers);
        (self.end(), numbers)
    }

    /// Adds a record as an object without a name.
    fn inner(&mut self, record: &impl Record) {
        self.text.push('{');
        record.write(self);
        self.text.push('}');
    }

    fn name(&mut self, name: &str) {
        if !self.text.ends_with('{') {
            self.text.push(',');
        }
        // Names have no characters to escape.
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    fn quote(&mut self, text: &str) {
        self.text.push('"');
        let mut rest = text;
        // Each of these is one byte long.
        while let Some(at) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            self.text.push_str(&rest[..at]);
            match rest.as_bytes()[at] {
                control if control < b' ' => {
                    write!(self.text, "\\u{control:04x}").expect("writing to a string does not fail");
                }
                other => self.text.extend(['\\', other.into()]),
            }
            rest = &rest[at + 1..];
        }
        self.text.push_str(rest);
        self.text.push('"');
    }

    fn value(&mut self, name: &'static str, value: Option<&str>) {
        self.name(name);
        self.text.push_str(value.unwrap_or("null"));
    }
}

impl Fields for Object {
    fn whole(&mut self, name: &'static str, value: Option<i64>) {
        let mut buffer = itoa::Buffer::new();
        self.value(name, value.map(|value| buffer.format(value)));
    }

    fn real(&mut self, name: &'static str, value: Option<f64>) {
        // JSON has neither infinity nor NaN (RFC 8259 §6).
        let mut buffer = zmij::Buffer::new();
        self.value(name, value.filter(|value| value.is_finite()).map(|value| buffer.format_finite(value)));
    }

    fn flag(&mut self, name: &'static str, value: Option<bool>) {
        self.value(name, value.map(|value| if value { "true" } else { "false" }));
    }

    fn text(&mut self, name: &'static str, value: Option<&str>) {
        self.name(name);
        match value {
            Some(text) => self.quote(text),
            None => self.text.push_str("null"),
        }
    }

    fn connection(&mut self, flow: FlowNumber) {
        self.name(CONNECTION);
        let start = self.text.len();
        self.text.push_str(itoa::Buffer::new().format(flow.0));
        self.numbers.push(start..self.text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair(Option<i64>, &'static str);

    impl Record for Pair {
        fn write(&self, fields: &mut impl Fields) {
            fields.whole("number", self.0);
            fields.text("word", Some(self.1));
            fields.real("half", self.0.map(|number| number as f64 / 2.0));
            fields.flag("odd", self.0.map(|number| number % 2 == 1));
        }
    }

    #[test]
    fn records_become_columns() {
        let mut table = Table::of(&Pair(None, ""));
        assert_eq!((table.columns().len(), table.rows()), (4, 0));
        table.push(&Pair(Some(3), "three"));
        table.push(&Pair(None, "none"));
        assert_eq!(table.rows(), 2);
        assert_eq!(table.columns()[0], Column { name: "number", values: Values::Whole(vec![Some(3), None]) });
        assert_eq!(table.columns()[2].values, Values::Real(vec![Some(1.5), None]));
        assert_eq!(table.columns()[3].values, Values::Flag(vec![Some(true), None]));
    }

    #[test]
    fn a_record_becomes_an_object() {
        let pair = Pair(Some(1), "a \"quote\"\n");
        let line = Object::of_type("pair").with(&pair).nested("none", &Pair(None, "")).end();
        assert_eq!(
            line,
            concat!(
                r#"{"type":"pair","number":1,"word":"a \"quote\"\u000a","half":0.5,"odd":true,"#,
                r#""none":{"number":null,"word":"","half":null,"odd":null}}"#
            )
        );
        let list = Object::of_type("list").list("pairs", [pair].iter()).end();
        assert!(list.ends_with(r#""half":0.5,"odd":true}]}"#), "{list}");
    }
}
