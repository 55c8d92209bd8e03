//! tcptrace's figures equal ours, except for the differences in `differences.toml`: each has the
//! reason why tcptrace is wrong, and a packet that shows it.
//!
//! There are two references: the installed tcptrace, on the captures of the repository and the
//! shared ones, and the expected outputs of tcptrace's own tests, in `tcptrace_expected` beside the
//! shared captures.

mod differences;
mod reckoning;
mod rows;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

use airpath_observe::End;
use airpath_observe::columns::{COLUMNS, Column, Value};
use differences::{Difference, Differences};
use reckoning::{Reckoning, reckon};
use rows::Row;
use support::{Seen, captures, frames, listed, seen, shared_captures};

#[test]
fn tcptrace_agrees_on_the_repositorys_captures_where_it_is_right() {
    if rows::is_installed() {
        compare(&captures(), false);
    }
}

#[test]
fn tcptrace_agrees_on_the_shared_captures_where_it_is_right() {
    let Some(shared) = shared_captures() else { return };
    if rows::is_installed() {
        compare(&shared, true);
    }
}

/// Compares these captures. `all`: they include the proof of every known difference.
fn compare(captures: &[PathBuf], all: bool) {
    let mut comparison = Comparison::new(false);
    for path in captures {
        comparison.capture(path, rows::installed(path));
    }
    comparison.assert_known(captures, all);
}

#[test]
fn the_outputs_that_tcptraces_own_tests_expect_agree_where_they_are_right() {
    let (Some(folder), Some(shared)) = (airpath_testing::shared_captures(), shared_captures()) else { return };
    let mut comparison = Comparison::new(true);
    let mut compared = 0;
    for output in listed(&folder.join("tcptrace_expected")) {
        let name = output.file_stem().expect("a file has a name").to_string_lossy();
        let captures = ["dmp", "dump"].map(|ending| folder.join(format!("tcptrace__{name}.{ending}")));
        let Some(capture) = captures.iter().find(|path| path.is_file()) else {
            println!("{} belongs to a capture that is not in the collection", output.display());
            continue;
        };
        let text = std::fs::read_to_string(&output).expect("the expected output can be read");
        comparison.capture(capture, rows::expected(&text));
        compared += 1;
    }
    assert!(compared >= 3, "only {compared} of the expected outputs have their capture beside them");
    comparison.assert_known(&shared, true);
}

/// Compared figures, and their known differences.
struct Comparison {
    known: Differences,
    /// Whether the expected outputs are compared.
    expected_outputs: bool,
    /// Number of occurrences of each difference, and the listed lines that occurred.
    met: Vec<u32>,
    stated: Vec<Vec<bool>>,
    compared: u32,
    unexplained: Vec<String>,
}

impl Comparison {
    fn new(expected_outputs: bool) -> Self {
        let known = Differences::known();
        let met = vec![0; known.difference.len()];
        let stated = known.stated.iter().map(|stated| vec![false; stated.lines().count()]).collect();
        Self { known, expected_outputs, met, stated, compared: 0, unexplained: Vec::new() }
    }

    fn capture(&mut self, path: &Path, mut theirs: Vec<Row>) {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let unmatched = self.known.unmatched.iter().any(|unmatched| unmatched.capture == name);
        for seen in &seen(path) {
            match rows::take(&seen.connection, &mut theirs) {
                Some((row, from_client)) => self.connection(&name, seen, &row, from_client),
                None if unmatched => {}
                None => self.unexplained.push(format!("{name}: tcptrace does not have {}", seen.port())),
            }
        }
        if !unmatched {
            self.unexplained.extend(theirs.iter().map(|row| format!("{name}: only tcptrace has {}", row.number)));
        }
    }

    fn connection(&mut self, name: &str, seen: &Seen, row: &Row, from_client: bool) {
        let reckonings = reckon(&seen.connection, &seen.observations);
        for (end, there) in [(End::Client, from_client), (End::Server, !from_client)] {
            let direction = if there { "a2b" } else { "b2a" };
            for column in COLUMNS {
                for theirs in column.tcptrace.split_whitespace() {
                    let (column_name, part) = theirs.split_once(':').unwrap_or((theirs, "1"));
                    let part: usize = part.parse().expect("the table has the number of the part");
                    let cell = row.cell(column_name, direction).split('/').nth(part - 1).unwrap_or_default().trim();
                    let value = (column.value)(&seen.connection, end);
                    let reckoned = reckoned(column_name, &reckonings[end as usize]);
                    let figure = Figure { capture: name, row, direction, theirs, cell, column, value, reckoned };
                    self.figure(&figure, seen.port());
                }
            }
        }
    }

    fn figure(&mut self, figure: &Figure<'_>, port: u16) {
        self.compared += 1;
        let (ours, (theirs, places)) = (figure.ours(), number(figure.cell));
        if equal(ours, &figure.value, theirs, places) {
            return;
        }
        let line = format!(
            "{} {} {} {ours:.*} {}",
            figure.row.number,
            figure.direction,
            figure.theirs,
            places as usize,
            if figure.cell.is_empty() { "0" } else { figure.cell }
        );
        for (stated, met) in self.known.stated.iter().zip(&mut self.stated) {
            if let Some(place) = stated.line(&line).filter(|_| stated.capture == figure.capture) {
                met[place] = true;
                return;
            }
        }
        let expected_outputs = self.expected_outputs;
        let explains = |known: &Difference| {
            let column = figure.theirs.split(':').next().unwrap_or_default();
            known.columns.iter().any(|known| known == column)
                && (known.captures.is_empty() || known.captures.iter().any(|known| known == figure.capture))
                && (expected_outputs || !known.expected_outputs_only)
                && known.relation.holds(ours, theirs, figure.reckoned)
        };
        match self.known.difference.iter().position(explains) {
            Some(index) => self.met[index] += 1,
            None => {
                let reckoned =
                    figure.reckoned.map(|(reckoned, _)| format!(", reckoned {reckoned:.1}")).unwrap_or_default();
                let name = figure.column.name;
                self.unexplained.push(format!("{}: {line} ({name} of {port}{reckoned})", figure.capture));
            }
        }
    }

    /// Fails for an unknown difference; if `all` captures were compared, also for a known
    /// difference that did not occur.
    fn assert_known(mut self, captures: &[PathBuf], all: bool) {
        let lacks = |capture: &str, frame, reason: &str| all.then(|| lacks(captures, capture, frame, reason)).flatten();
        for (difference, met) in self.known.difference.iter().zip(&self.met) {
            // There are expected outputs for few captures, so not every difference occurs in them.
            if all && *met == 0 && difference.expected_outputs_only == self.expected_outputs {
                self.unexplained.push(format!("a known difference did not occur: {:?}", difference.columns));
            }
            let (capture, frame) = &difference.proof;
            self.unexplained.extend(lacks(capture, *frame, &difference.reason));
            println!("{met:6} {:?} {}", difference.columns, difference.reason);
        }
        for (stated, met) in self.known.stated.iter().zip(&self.stated) {
            let gone = stated.lines().zip(met).filter(|(_, met)| all && !**met && !self.expected_outputs);
            self.unexplained
                .extend(gone.map(|(line, _)| format!("{}: this difference did not occur: {line}", stated.capture)));
            self.unexplained.extend(lacks(&stated.capture, stated.proof, &stated.reason));
            println!("{:6} {} {}", met.iter().filter(|met| **met).count(), stated.capture, stated.reason);
        }
        for unmatched in &self.known.unmatched {
            self.unexplained.extend(lacks(&unmatched.capture, 1, &unmatched.reason));
        }
        let Self { compared, unexplained, .. } = &self;
        assert!(
            unexplained.is_empty(),
            "{} of {compared} figures differ:\n{}",
            unexplained.len(),
            unexplained.join("\n")
        );
        println!("{compared} figures compared, {} of them explained differences", self.explained());
    }

    fn explained(&self) -> usize {
        self.met.iter().sum::<u32>() as usize + self.stated.iter().flatten().filter(|met| **met).count()
    }
}

/// A figure in both results.
struct Figure<'a> {
    capture: &'a str,
    row: &'a Row,
    direction: &'a str,
    /// Their column, with the part if it has two.
    theirs: &'a str,
    cell: &'a str,
    column: &'a Column,
    value: Value,
    reckoned: Option<(f64, f64)>,
}

impl Figure<'_> {
    /// Our value in their unit: bytes/s, and milliseconds, but seconds for the data time.
    fn ours(&self) -> f64 {
        let number = self.value.number().unwrap_or(0.0);
        match self.column.unit {
            "bit/s" => number / 8.0,
            "s" if self.column.name != "data_time_s" => number * 1e3,
            _ => number,
        }
    }
}

/// The result of tcptrace's method for a figure, in milliseconds for a time, and its tolerance: it
/// prints tenths of milliseconds, divides by slightly more than the number of samples, and measures
/// times in microseconds.
fn reckoned(column: &str, reckoning: &Reckoning) -> Option<(f64, f64)> {
    let spread = &reckoning.full_size;
    let millis = |seconds: Option<f64>| seconds.unwrap_or(0.0) * 1e3;
    let tenths = |millis: f64| Some((millis, millis * 1e-3 + 0.1));
    match column {
        "wavg_owin" => Some((reckoning.weighted_outstanding, 1.0)),
        "RTT_full_sz_smpls" => Some((spread.count as f64, 0.0)),
        "RTT_full_sz_min" => tenths(millis(spread.minimum().map(|span| span.as_secs_f64()))),
        "RTT_full_sz_max" => tenths(millis(spread.maximum().map(|span| span.as_secs_f64()))),
        "RTT_full_sz_avg" => tenths(millis(spread.mean())),
        // It has no deviation for two samples.
        "RTT_full_sz_stdev" => tenths(millis(spread.deviation().filter(|_| spread.count > 2))),
        _ => None,
    }
}

/// Their cell as a number, and its decimal places. An empty cell is 0.
fn number(cell: &str) -> (f64, u32) {
    match cell {
        "NA" | "" | "N" => (0.0, 0),
        "Y" => (1.0, 0),
        _ => (cell.parse().unwrap_or(f64::NAN), cell.split_once('.').map_or(0, |(_, places)| places.len() as u32)),
    }
}

fn equal(ours: f64, value: &Value, theirs: f64, places: u32) -> bool {
    // Ours are exact; theirs are truncated to integers, and to microseconds before that.
    let tolerance = if places == 0 && matches!(value, Value::Number(_)) {
        1.0
    } else {
        0.5001 / [1.0, 10.0, 100.0, 1000.0][places as usize] + 0.001
    };
    (ours - theirs).abs() < tolerance
}

/// Errors in the proof of a difference: no reason, no such capture, no such frame.
fn lacks(captures: &[PathBuf], capture: &str, frame: u64, reason: &str) -> Option<String> {
    let path = captures.iter().find(|path| path.ends_with(capture));
    let proven = !reason.is_empty() && frame > 0 && path.is_some_and(|path| frame <= frames(path));
    (!proven).then(|| format!("no proof in frame {frame} of {capture}: {reason:?}"))
}
