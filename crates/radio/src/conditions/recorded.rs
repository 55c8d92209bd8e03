//! C/I as it was recorded: a series of times and values.
//!
//! A file is CSV with the columns `time` (seconds from the beginning) and `ci` (decibels), in the
//! order of time. A value holds until the next; the series repeats when it ends, at the time of its
//! last line, whose value is not used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpath_core::{Instant, Span};

/// A recorded series: at least one value that holds for some time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// When each value begins, from 0.
    points: Arc<[(Span, f64)]>,
    /// When it repeats.
    period: Span,
    /// The value that held last, where the search begins.
    last: usize,
}

/// What is wrong with a recorded series.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// The file cannot be read.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// A line is wrong.
    #[error("{file}:{line}: {fault}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// Less than one value that holds for some time.
    #[error("{file}: there is no series: after the head `time,ci`, expected at least two lines such as `0.48,12.5`")]
    Empty {
        /// The file.
        file: String,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LineFault {
    /// The first line is not the head.
    #[error("the first line is `{0}`, not the head `time,ci` (seconds, decibels)")]
    Head(String),
    /// Not two numbers.
    #[error("`{0}` is not a time in seconds and a ratio in decibels, with a comma between them")]
    Numbers(String),
    /// The first time is not the beginning.
    #[error("the first time is {0} s: a series begins at 0")]
    Beginning(f64),
    /// Not after the line above.
    #[error("{time} s is not after the {before} s of the line above")]
    Order {
        /// The time.
        time: f64,
        /// The time of the line above.
        before: f64,
    },
}

/// The longest series, in seconds: a year.
const LONGEST: f64 = 365.0 * 24.0 * 3600.0;

impl Series {
    /// Reads a file.
    pub fn read(file: &Path) -> Result<Self, SeriesError> {
        let text = std::fs::read(file).map_err(|error| SeriesError::Io { file: file.to_owned(), error })?;
        // What is not text is no number either: its line will be named.
        Self::parse(&String::from_utf8_lossy(&text), &file.display().to_string())
    }

    /// Reads the text of a file; `file` is its name for messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, SeriesError> {
        let fault = |line, fault| SeriesError::Line { file: file.to_owned(), line, fault };
        let mut lines = (1..).zip(text.lines());
        match lines.next() {
            None => return Err(SeriesError::Empty { file: file.to_owned() }),
            Some((_, head)) if head.replace(' ', "") == "time,ci" => {}
            Some((line, head)) => return Err(fault(line, LineFault::Head(excerpt(head)))),
        }
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (line, text) in lines {
            let (time, ratio) = numbers(text).ok_or_else(|| fault(line, LineFault::Numbers(excerpt(text))))?;
            match points.last() {
                None if time > 0.0 => return Err(fault(line, LineFault::Beginning(time))),
                // Spans count nanoseconds: two times must differ by at least one.
                Some((before, _)) if time - before < 1e-9 => {
                    return Err(fault(line, LineFault::Order { time, before: *before }));
                }
                None | Some(_) => points.push((time, ratio)),
            }
        }
        match points.pop() {
            Some((end, _)) if !points.is_empty() => {
                let points = points.into_iter().map(|(time, ratio)| (Span::from_secs_f64(time), ratio));
                Ok(Self { points: points.collect(), period: Span::from_secs_f64(end), last: 0 })
            }
            _ => Err(SeriesError::Empty { file: file.to_owned() }),
        }
    }

    /// The value at `now`.
    #[inline]
    pub(super) fn at(&mut self, now: Instant) -> f64 {
        let time = Span::from_nanos(now.as_nanos() % self.period.as_nanos());
        let holds = |index: usize| self.points.get(index).is_some_and(|(begin, _)| *begin <= time);
        if !holds(self.last) || holds(self.last + 1) {
            self.last = self.points.partition_point(|(begin, _)| *begin <= time) - 1;
        }
        self.points[self.last].1
    }
}

fn numbers(text: &str) -> Option<(f64, f64)> {
    let (time, ratio) = text.split_once(',')?;
    let (time, ratio): (f64, f64) = (time.trim().parse().ok()?, ratio.trim().parse().ok()?);
    ((0.0..=LONGEST).contains(&time) && ratio.is_finite()).then_some((time, ratio))
}

/// So much of a line as suits a message.
fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next_and_the_series_repeats() {
        let mut series = Series::parse("time,ci\n0,10\n1.5,4\n2,0\n", "drive.csv").expect("a series");
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        let mut values = |times: &[u64]| times.iter().map(|time| series.at(at(*time))).collect::<Vec<_>>();
        assert_eq!(values(&[0, 1499, 1500, 1999, 2000, 3499, 3500]), [10.0, 10.0, 4.0, 4.0, 10.0, 10.0, 4.0]);
        assert_eq!(values(&[9_000_000, 9_001_700]), [10.0, 4.0], "far jumps");
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |text: &str| Series::parse(text, "drive.csv").expect_err(text).to_string();
        assert!(error("").starts_with("drive.csv: there is no series"));
        assert!(error("time,ci\n0,1\n").starts_with("drive.csv: there is no series"));
        assert!(error("0,1\n1,1\n").starts_with("drive.csv:1: the first line is `0,1`, not the head `time,ci`"));
        assert!(error("time,ci\n0,x\n").starts_with("drive.csv:2: `0,x` is not a time in seconds"));
        assert!(error("time,ci\n0,inf\n").contains(":2: "));
        assert!(error("time,ci\n1,1\n").contains("begins at 0"));
        assert!(error("time,ci\n0,1\n2,1\n2,1\n").contains("drive.csv:4: 2 s is not after the 2 s"));
    }
}
