//! A radio log on the time axis of a capture: the gaps in which the radio carried nothing, and the
//! times in which it delayed data that waited, each with the name of the state.
//!
//! Logs are CSV files. [`Columns`] maps their columns. Either each row is an interval (`begin`,
//! `end`, a name), or each row is a new state, which holds until the next row of the same
//! direction, and some states carry nothing. Exports of drive-test tools have the second form.
//!
//! ```
//! use airpath_core::Instant;
//! use airpath_trace::radio::{Columns, RadioLog};
//! let csv = "time,state\n1.0,transfer\n4.5,reselection\n6.0,transfer\n";
//! let columns = Columns { silent: vec!["reselection".into()], ..Columns::states("time", "state") };
//! let log = RadioLog::read(csv, &columns)?;
//! assert_eq!(log.gaps()[0].begin, Instant::from_nanos(4_500_000_000));
//! # Ok::<(), airpath_trace::radio::RadioError>(())
//! ```

use std::sync::Arc;

use airpath_core::state::{self, Effect};
use airpath_core::{Direction, Instant};
use thiserror::Error;

/// A time in which the radio carried nothing, or delayed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioGap {
    /// Begin, by the capture's clock.
    pub begin: Instant,
    /// End.
    pub end: Instant,
    /// The direction; `None` for both.
    pub direction: Option<Direction>,
    /// The kind: `outage`, `handover`, `reselection`, `establishment`, `drx` …
    pub name: Arc<str>,
    /// Whether the gap itself implies that data waited, as the set-up of a radio bearer does.
    pub wanted: bool,
}

/// The columns of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// Column with the begin of a row, in units of [`Self::unit`].
    pub begin: String,
    /// Column with the end of a row; without it, a state holds until the next row.
    pub end: Option<String>,
    /// Column with the name of the interval, or the state.
    pub name: String,
    /// Column with the direction, `down`, `up` or empty for both; `None` without such a column.
    pub direction: Option<String>,
    /// The states in which the radio carries nothing; all states if empty.
    pub silent: Vec<String>,
    /// The names that imply that data waited.
    pub wanted: Vec<String>,
    /// The states in which data that waits is delayed, while other data may be carried.
    pub delays: Vec<String>,
    /// Length of the unit of times, in seconds.
    pub unit: f64,
    /// Seconds to add to the times of the log.
    pub offset: f64,
}

impl Columns {
    /// Rows that are intervals: columns `begin`, `end`, `direction` and `name`, in nanoseconds, as
    /// airpath's own tools write them.
    pub fn intervals() -> Self {
        Self {
            end: Some("end".to_owned()),
            direction: Some("direction".to_owned()),
            unit: 1e-9,
            wanted: ["access", "establishment", "paging", "promotion"].map(str::to_owned).to_vec(),
            delays: state::all()
                .filter(|(_, _, effect)| *effect == Effect::Delays)
                .map(|(_, name, _)| name.to_owned())
                .collect(),
            ..Self::states("begin", "name")
        }
    }

    /// Rows that are states which hold until the next, in seconds.
    pub fn states(time: &str, state: &str) -> Self {
        Self {
            begin: time.to_owned(),
            end: None,
            name: state.to_owned(),
            direction: None,
            silent: Vec::new(),
            wanted: Vec::new(),
            delays: Vec::new(),
            unit: 1.0,
            offset: 0.0,
        }
    }
}

/// Why a radio log cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RadioError {
    /// The log is empty.
    #[error("the radio log is empty: its first line names the columns")]
    Empty,
    /// A column is missing.
    #[error("the radio log has no column `{column}`: it has {}", .there.join(", "))]
    Column {
        /// The missing column.
        column: String,
        /// The columns of the log.
        there: Vec<String>,
    },
    /// A row has fewer fields than columns are used.
    #[error("line {line} of the radio log ends before its column `{column}`")]
    Short {
        /// Its line.
        line: usize,
        /// The first column that is missing.
        column: String,
    },
    /// A field is not a time.
    #[error("line {line} of the radio log, column `{column}`: `{value}` is no time")]
    Time {
        /// Its line.
        line: usize,
        /// Its column.
        column: String,
        /// The field.
        value: String,
    },
    /// A field is not a direction.
    #[error("line {line} of the radio log, column `{column}`: `{value}` is neither `down` nor `up` nor empty")]
    Direction {
        /// Its line.
        line: usize,
        /// Its column.
        column: String,
        /// The field.
        value: String,
    },
}

impl RadioError {
    /// What to do about it, where that is known.
    pub fn next_step(&self) -> Option<&'static str> {
        matches!(self, Self::Time { .. }).then_some("give a number, and the unit with the column map")
    }
}

/// The gaps and the delays of a radio.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RadioLog {
    gaps: Vec<RadioGap>,
    delays: Vec<RadioGap>,
}

impl RadioLog {
    /// From gaps in any order.
    pub fn new(mut gaps: Vec<RadioGap>) -> Self {
        gaps.sort_by_key(|gap| (gap.begin, gap.end));
        Self { gaps, delays: Vec::new() }
    }

    /// The same with these times, in any order, in which data that waited was delayed.
    pub fn with_delays(self, mut delays: Vec<RadioGap>) -> Self {
        delays.sort_by_key(|delay| (delay.begin, delay.end));
        Self { delays, ..self }
    }

    /// Reads a log from the text of a CSV file.
    ///
    /// # Errors
    /// [`RadioError`] where a column is missing or a field makes no sense.
    pub fn read(text: &str, columns: &Columns) -> Result<Self, RadioError> {
        let mut lines =
            text.trim_start_matches('\u{feff}').lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, first) = lines.next().ok_or(RadioError::Empty)?;
        let names = fields(first);
        let place = |column: &str| {
            names
                .iter()
                .position(|name| name == column)
                .ok_or_else(|| RadioError::Column { column: column.to_owned(), there: names.clone() })
        };
        let begin = place(&columns.begin)?;
        let end = columns.end.as_deref().map(place).transpose()?;
        let name = place(&columns.name)?;
        let direction = columns.direction.as_deref().map(place).transpose()?;

        let mut gaps = Vec::new();
        // The present state: of both directions together, of the downlink and of the uplink.
        let mut holding: [Option<RadioGap>; 3] = [None, None, None];
        for (index, line) in lines {
            let row = Row { line: index + 1, fields: fields(line), names: &names };
            let from = row.time(begin, columns)?;
            let direction = direction.map_or(Ok(None), |column| row.direction(column))?;
            let state = row.field(name)?;
            let is_in = |names: &[String]| names.iter().any(|each| each == state);
            let silent = columns.silent.is_empty() || is_in(&columns.silent) || is_in(&columns.delays);
            let gap = |end| RadioGap {
                begin: from,
                end,
                direction,
                name: state.into(),
                wanted: columns.wanted.iter().any(|each| each == state),
            };
            if let Some(end) = end {
                let until = row.time(end, columns)?;
                gaps.extend(silent.then(|| gap(until)));
                continue;
            }
            let state = &mut holding[direction.map_or(0, |direction| 1 + direction as usize)];
            if let Some(before) = state.take() {
                gaps.push(RadioGap { end: from, ..before });
            }
            *state = silent.then(|| gap(Instant::FAR_FUTURE));
        }
        gaps.extend(holding.into_iter().flatten());
        gaps.retain(|gap| gap.begin < gap.end);
        let is_delay = |gap: &RadioGap| columns.delays.iter().any(|each| **each == *gap.name);
        let (delays, gaps) = gaps.into_iter().partition(is_delay);
        Ok(Self::new(gaps).with_delays(delays))
    }

    /// Returns this log with the parts of its gaps in which data waited, by `waits`, marked as
    /// wanted.
    pub(crate) fn and_waits(&self, waits: &Self) -> Self {
        let waits = waits.gaps.iter().filter(|wait| wait.wanted);
        let both = waits.flat_map(|wait| {
            self.gaps.iter().map(|gap| RadioGap {
                begin: wait.begin.max(gap.begin),
                end: wait.end.min(gap.end),
                direction: wait.direction,
                name: gap.name.clone(),
                wanted: true,
            })
        });
        let gaps = self.gaps.iter().cloned().chain(both.filter(|gap| gap.begin < gap.end)).collect();
        Self::new(gaps).with_delays(self.delays.clone())
    }

    /// The gaps, sorted by begin.
    pub fn gaps(&self) -> &[RadioGap] {
        &self.gaps
    }

    /// The times in which data that waited was delayed, sorted by begin.
    pub fn delays(&self) -> &[RadioGap] {
        &self.delays
    }
}

struct Row<'a> {
    line: usize,
    fields: Vec<String>,
    names: &'a [String],
}

impl Row<'_> {
    fn field(&self, column: usize) -> Result<&str, RadioError> {
        self.fields
            .get(column)
            .map(String::as_str)
            .ok_or_else(|| RadioError::Short { line: self.line, column: self.names[column].clone() })
    }

    fn time(&self, column: usize, columns: &Columns) -> Result<Instant, RadioError> {
        let value = self.field(column)?;
        let wrong =
            || RadioError::Time { line: self.line, column: self.names[column].clone(), value: value.to_owned() };
        // Whole nanoseconds since 1970 do not fit a float.
        if columns.unit == 1e-9 && columns.offset == 0.0 {
            return value.parse().map(Instant::from_nanos).map_err(|_| wrong());
        }
        let seconds = value.parse::<f64>().map_err(|_| wrong())? * columns.unit + columns.offset;
        if (0.0..1e10).contains(&seconds) { Ok(Instant::from_nanos((seconds * 1e9) as u64)) } else { Err(wrong()) }
    }

    fn direction(&self, column: usize) -> Result<Option<Direction>, RadioError> {
        match self.field(column)? {
            "down" => Ok(Some(Direction::Down)),
            "up" => Ok(Some(Direction::Up)),
            "" => Ok(None),
            other => Err(RadioError::Direction {
                line: self.line,
                column: self.names[column].clone(),
                value: other.to_owned(),
            }),
        }
    }
}

/// The fields of a line of CSV (RFC 4180 §2; line breaks inside a field are not supported).
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                field.push('"');
                characters.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(core::mem::take(&mut field).trim().to_owned()),
            _ => field.push(character),
        }
    }
    fields.push(field.trim().to_owned());
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_as_they_stand() {
        let csv = "begin,end,direction,name\n2000000000,3000000000,,outage\n1000000001,1500000000,up,establishment\n";
        let log = RadioLog::read(csv, &Columns::intervals()).unwrap();
        let [first, second] = log.gaps() else { panic!("two gaps") };
        assert_eq!(first.begin, Instant::from_nanos(1_000_000_001));
        assert_eq!((first.direction, first.wanted), (Some(Direction::Up), true));
        assert_eq!((&*second.name, second.direction, second.wanted), ("outage", None, false));
    }

    #[test]
    fn states_that_delay_data_are_no_gaps() {
        let csv = "begin,end,direction,name\n1,2,up,grant\n2,4,,handover\n3,9,down,drx\n";
        let log = RadioLog::read(csv, &Columns::intervals()).unwrap();
        let names = |gaps: &[RadioGap]| gaps.iter().map(|gap| gap.name.to_string()).collect::<Vec<_>>();
        assert_eq!(
            (names(log.gaps()), names(log.delays())),
            (vec!["handover".into()], vec!["grant".into(), "drx".into()])
        );
    }

    #[test]
    fn a_state_holds_until_the_next_of_its_direction() {
        let csv = "t,what,way\n1,none,down\n1,none,up\n2,on,down\n5,on,up\n";
        let columns = Columns {
            direction: Some("way".to_owned()),
            silent: vec!["none".to_owned()],
            offset: 10.0,
            ..Columns::states("t", "what")
        };
        let log = RadioLog::read(csv, &columns).unwrap();
        let lengths: Vec<_> = log.gaps().iter().map(|gap| gap.end.since(gap.begin)).collect();
        assert_eq!(lengths, [airpath_core::Span::from_secs(1), airpath_core::Span::from_secs(4)]);
        assert_eq!(log.gaps()[0].begin, Instant::from_nanos(11_000_000_000));
    }

    #[test]
    fn errors_name_line_and_column() {
        let read = |csv: &str| RadioLog::read(csv, &Columns::intervals()).unwrap_err().to_string();
        assert_eq!(read(""), "the radio log is empty: its first line names the columns");
        assert_eq!(
            read("start,end,direction,name\n"),
            "the radio log has no column `begin`: it has start, end, direction, name"
        );
        assert_eq!(
            read("begin,end,direction,name\n1,2,sideways,x\n"),
            "line 2 of the radio log, column `direction`: `sideways` is neither `down` nor `up` nor empty"
        );
        assert_eq!(
            read("begin,end,direction,name\n\n1,soon,,x\n"),
            "line 3 of the radio log, column `end`: `soon` is no time"
        );
    }

    #[test]
    fn quotes_hold_commas() {
        assert_eq!(fields(r#"a, "b, ""c""" ,d"#), ["a", r#"b, "c""#, "d"]);
    }
}
