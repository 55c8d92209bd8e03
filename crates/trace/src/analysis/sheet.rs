//! A table in the making, and one made out of several.

use super::table::{CONNECTION, Column, Record, Table, Values};

/// Rows of a table, and at which frame each was told.
#[derive(Default)]
pub struct Sheet {
    /// None without a row.
    table: Option<Table>,
    frames: Vec<u64>,
}

/// Where a row lies.
#[derive(Clone, Copy)]
struct Place {
    sheet: usize,
    row: usize,
}

impl Sheet {
    /// Adds a row, which is told at that frame: no earlier than those before it.
    pub fn push(&mut self, frame: u64, row: &impl Record) {
        self.table.get_or_insert_with(|| Table::of(row)).push(row);
        self.frames.push(frame);
    }

    /// The rows as a table; without any there is none.
    pub fn into_table(self) -> Option<Table> {
        self.table
    }
}

/// The rows of several sheets in the order in which they were told: by their frames, those of the same frame as they are, and those of
/// [`END_OF_CAPTURE`](super::collect::END_OF_CAPTURE) by connection. `number` is that of a connection which has another in one of the sheets.
pub fn merged(sheets: Vec<Sheet>, last: u64, number: impl Fn(usize, i64) -> i64) -> Option<Table> {
    let mut frames = Vec::new();
    let mut columns: Vec<Vec<Column>> = Vec::new();
    for (sheet, rows) in sheets.into_iter().enumerate() {
        let mut own = rows.table.map(Table::into_columns).unwrap_or_default();
        own.iter_mut().filter(|column| column.name == CONNECTION).for_each(|column| {
            if let Values::Whole(values) = &mut column.values {
                values.iter_mut().flatten().for_each(|value| *value = number(sheet, *value));
            }
        });
        columns.push(own);
        frames.push(rows.frames);
    }
    let connection = |place: Place| match columns[place.sheet].first().map(|column| &column.values) {
        Some(Values::Whole(values)) => values[place.row],
        _ => None,
    };
    let mut order: Vec<_> = frames
        .iter()
        .enumerate()
        .flat_map(|(sheet, frames)| (0..frames.len()).map(move |row| Place { sheet, row }))
        .collect();
    // The sheets are in order by themselves, which this sort makes use of.
    order.sort_by_key(|&place| {
        let frame = frames[place.sheet][place.row];
        (frame, if frame == last { connection(place) } else { None })
    });
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let mut whole = Vec::new();
    loop {
        let next: Vec<_> = columns.iter_mut().map(Iterator::next).collect();
        let Some(name) = next.iter().flatten().map(|column| column.name).next() else { break };
        let values = next.into_iter().map(|column| column.map(|column| column.values)).collect();
        whole.push(Column { name, values: picked(values, &order) });
    }
    (!order.is_empty()).then(|| Table::of_columns(whole, order.len()))
}

/// The values of one column in that order; a sheet without rows has none.
fn picked(sheets: Vec<Option<Values>>, order: &[Place]) -> Values {
    match sheets.iter().flatten().next() {
        Some(Values::Real(_)) => Values::Real(taken(sheets, order, |values| match values {
            Values::Real(values) => Some(values),
            _ => None,
        })),
        Some(Values::Flag(_)) => Values::Flag(taken(sheets, order, |values| match values {
            Values::Flag(values) => Some(values),
            _ => None,
        })),
        Some(Values::Text(_)) => Values::Text(taken(sheets, order, |values| match values {
            Values::Text(values) => Some(values),
            _ => None,
        })),
        Some(Values::Whole(_)) | None => Values::Whole(taken(sheets, order, |values| match values {
            Values::Whole(values) => Some(values),
            _ => None,
        })),
    }
}

fn taken<T>(
    sheets: Vec<Option<Values>>,
    order: &[Place],
    of_kind: fn(Values) -> Option<Vec<Option<T>>>,
) -> Vec<Option<T>> {
    let mut sheets: Vec<_> = sheets.into_iter().map(|values| values.and_then(of_kind).unwrap_or_default()).collect();
    order.iter().map(|place| sheets[place.sheet][place.row].take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::collect::END_OF_CAPTURE;
    use crate::analysis::table::Fields;
    use airpath_observe::flows::FlowNumber;

    struct Row(u64, &'static str);

    impl Record for Row {
        fn tell(&self, fields: &mut impl Fields) {
            fields.connection(FlowNumber(self.0));
            fields.text("word", Some(self.1));
        }
    }

    #[test]
    fn rows_are_put_in_the_order_in_which_they_were_told() {
        let mut sheets = [Sheet::default(), Sheet::default(), Sheet::default()];
        for (sheet, frame, row) in [
            (0, 2, Row(1, "second")),
            (0, 2, Row(1, "third")),
            (0, END_OF_CAPTURE, Row(2, "sixth")),
            (2, 1, Row(1, "first")),
            (2, 7, Row(2, "fourth")),
            (2, END_OF_CAPTURE, Row(1, "fifth")),
        ] {
            sheets[sheet].push(frame, &row);
        }
        let number = |sheet, flow| flow * 10 + sheet as i64;
        let table = merged(sheets.into(), END_OF_CAPTURE, number).expect("there are rows");
        let words = ["first", "second", "third", "fourth", "fifth", "sixth"].map(|word| Some(word.to_owned()));
        assert_eq!(table.columns()[0].values, Values::Whole([12, 10, 10, 22, 12, 20].map(Some).into()));
        assert_eq!(table.columns()[1].values, Values::Text(words.into()));
        assert_eq!(table.rows(), 6);
        assert!(merged(vec![Sheet::default()], END_OF_CAPTURE, number).is_none());
    }
}
