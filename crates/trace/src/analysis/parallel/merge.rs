//! One table from the rows of all shards.

use crate::analysis::table::{CONNECTION, Column, Table, Values};
use crate::analysis::table_builder::TableBuilder;

/// A row of one of the builders.
#[derive(Clone, Copy)]
struct RowIndex {
    builder: usize,
    row: usize,
}

/// Merges the rows of several builders by frame. Rows of one frame keep their order, and rows of
/// the frame `last` are sorted by connection.
///
/// `number` maps a builder and its number of a connection to the number in the capture.
pub fn merged(builders: Vec<TableBuilder>, last: u64, number: impl Fn(usize, i64) -> i64) -> Option<Table> {
    let mut frames = Vec::new();
    let mut columns: Vec<Vec<Column>> = Vec::new();
    for (builder, rows) in builders.into_iter().enumerate() {
        let mut own = rows.table.map(Table::into_columns).unwrap_or_default();
        own.iter_mut().filter(|column| column.name == CONNECTION).for_each(|column| {
            if let Values::Whole(values) = &mut column.values {
                values.iter_mut().flatten().for_each(|value| *value = number(builder, *value));
            }
        });
        columns.push(own);
        frames.push(rows.frames);
    }
    let connection = |row_index: RowIndex| match columns[row_index.builder].first().map(|column| &column.values) {
        Some(Values::Whole(values)) => values[row_index.row],
        _ => None,
    };
    let mut order: Vec<_> = frames
        .iter()
        .enumerate()
        .flat_map(|(builder, frames)| (0..frames.len()).map(move |row| RowIndex { builder, row }))
        .collect();
    // Each builder is sorted already: the sort is adaptive and takes advantage of that.
    order.sort_by_key(|&row_index| {
        let frame = frames[row_index.builder][row_index.row];
        (frame, if frame == last { connection(row_index) } else { None })
    });
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let mut whole = Vec::new();
    loop {
        let next: Vec<_> = columns.iter_mut().map(Iterator::next).collect();
        let Some(name) = next.iter().flatten().map(|column| column.name).next() else { break };
        let values = next.into_iter().map(|column| column.map(|column| column.values)).collect();
        whole.push(Column { name, values: reordered(values, &order) });
    }
    (!order.is_empty()).then(|| Table::of_columns(whole, order.len()))
}

/// Returns the values of one column in the order of the rows. A builder without rows has none.
fn reordered(builders: Vec<Option<Values>>, order: &[RowIndex]) -> Values {
    match builders.iter().flatten().next() {
        Some(Values::Real(_)) => Values::Real(taken(builders, order, |values| match values {
            Values::Real(values) => Some(values),
            _ => None,
        })),
        Some(Values::Flag(_)) => Values::Flag(taken(builders, order, |values| match values {
            Values::Flag(values) => Some(values),
            _ => None,
        })),
        Some(Values::Text(_)) => Values::Text(taken(builders, order, |values| match values {
            Values::Text(values) => Some(values),
            _ => None,
        })),
        Some(Values::Whole(_)) | None => Values::Whole(taken(builders, order, |values| match values {
            Values::Whole(values) => Some(values),
            _ => None,
        })),
    }
}

fn taken<T>(
    builders: Vec<Option<Values>>,
    order: &[RowIndex],
    of_kind: fn(Values) -> Option<Vec<Option<T>>>,
) -> Vec<Option<T>> {
    let mut builders: Vec<_> =
        builders.into_iter().map(|values| values.and_then(of_kind).unwrap_or_default()).collect();
    order.iter().map(|row_index| builders[row_index.builder][row_index.row].take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::collect::END_OF_CAPTURE;
    use crate::analysis::table::{Fields, Record};
    use airpath_observe::flows::FlowNumber;

    struct Row(u64, &'static str);

    impl Record for Row {
        fn write(&self, fields: &mut impl Fields) {
            fields.connection(FlowNumber(self.0));
            fields.text("word", Some(self.1));
        }
    }

    #[test]
    fn rows_are_sorted_by_frame() {
        let mut builders = [TableBuilder::default(), TableBuilder::default(), TableBuilder::default()];
        for (builder, frame, row) in [
            (0, 2, Row(1, "second")),
            (0, 2, Row(1, "third")),
            (0, END_OF_CAPTURE, Row(2, "sixth")),
            (2, 1, Row(1, "first")),
            (2, 7, Row(2, "fourth")),
            (2, END_OF_CAPTURE, Row(1, "fifth")),
        ] {
            builders[builder].push(frame, &row);
        }
        let number = |builder, flow| flow * 10 + builder as i64;
        let table = merged(builders.into(), END_OF_CAPTURE, number).expect("there are rows");
        let words = ["first", "second", "third", "fourth", "fifth", "sixth"].map(|word| Some(word.to_owned()));
        assert_eq!(table.columns()[0].values, Values::Whole([12, 10, 10, 22, 12, 20].map(Some).into()));
        assert_eq!(table.columns()[1].values, Values::Text(words.into()));
        assert_eq!(table.rows(), 6);
        assert!(merged(vec![TableBuilder::default()], END_OF_CAPTURE, number).is_none());
    }
}
