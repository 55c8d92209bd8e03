//! Recorded links: the delivery opportunities of a real link, in the format of mahimahi's
//! `mm-link`.
//!
//! A file has one line per opportunity to deliver 1500 bytes: its time in whole milliseconds from
//! the beginning, never less than the line before. The file repeats at its end: the opportunities
//! of the next pass count from the time of the last line.

mod opportunities;

use std::fmt;
use std::path::{Path, PathBuf};

use airpath_core::{Bytes, Instant, Span};

pub(crate) use opportunities::Opportunities;

/// Bytes per line of the file. mahimahi itself counts 1504, since it sees each packet with 4 bytes
/// of its TUN device in front; these are 1500 of an IP packet of full size.
pub const OPPORTUNITY: Bytes = Bytes::new(1500);

/// The opportunities of a recorded link: at least one, in order, within 584 years, the last after
/// the origin.
///
/// ```
/// use airpath_link::Recording;
///
/// let recording = Recording::parse("3\n7\n7\n10\n", "example.down")?;
/// assert_eq!(recording.opportunities(), 4);
/// assert_eq!(recording.rate_bps(), 4.8e6);
/// assert_eq!(recording.to_string(), "3\n7\n7\n10\n");
///
/// let error = Recording::parse("3\n7\nseven\n", "example.down").unwrap_err();
/// assert!(error.to_string().starts_with("example.down:3: time of the delivery opportunity: `seven`"));
/// # Ok::<(), airpath_link::RecordingError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    millis: Vec<u64>,
}

/// An invalid recorded link.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read or written.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// No opportunities.
    #[error("{file}: there is no delivery opportunity: expected a time in milliseconds on each line")]
    Empty {
        /// The file.
        file: String,
    },
    /// An invalid line.
    #[error("{file}:{line}: time of the delivery opportunity: {fault}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The error.
        fault: LineFault,
    },
}

/// An error of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// An empty line.
    #[error("the line is empty: remove it")]
    Empty,
    /// Not a number.
    #[error("`{0}` is not a whole number of milliseconds")]
    NotANumber(String),
    /// Out of range.
    #[error("{0} ms is more than 584 years")]
    TooLate(String),
    /// Earlier than the line before.
    #[error(
        "{millis} ms come before the {before} ms of the line above: times must not decrease; was a line cut short?"
    )]
    Decreasing {
        /// The time.
        millis: u64,
        /// The time of the line before.
        before: u64,
    },
    /// The last line is not terminated.
    #[error("the file ends in the middle of a line, after `{0}`: get the complete file, or add the line break")]
    Truncated(String),
    /// A file of zero duration.
    #[error("the last opportunity is at 0 ms, but a recorded link must have a duration")]
    NoTime,
}

impl Recording {
    /// The link with opportunities at these milliseconds.
    pub fn new(millis: &[u64]) -> Result<Self, RecordingError> {
        Self::collect(millis.iter().map(|millis| Ok(*millis)), "recorded link")
    }

    /// Parses the text of a file; `file` is its name for messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, RecordingError> {
        Self::collect(text.split_inclusive('\n').map(parse_line), file)
    }

    fn collect(lines: impl Iterator<Item = Result<u64, LineFault>>, file: &str) -> Result<Self, RecordingError> {
        let fault = |line, fault| RecordingError::Line { file: file.to_owned(), line, fault };
        let mut times = Vec::new();
        let mut before = 0;
        for (line, millis) in (1..).zip(lines) {
            before = millis.and_then(|millis| follows(millis, before)).map_err(|error| fault(line, error))?;
            times.push(before);
        }
        match times.last() {
            None => Err(RecordingError::Empty { file: file.to_owned() }),
            Some(0) => Err(fault(times.len(), LineFault::NoTime)),
            Some(_) => Ok(Self { millis: times }),
        }
    }

    /// Reads a file.
    pub fn read(file: &Path) -> Result<Self, RecordingError> {
        let text = std::fs::read(file).map_err(|error| RecordingError::Io { file: file.to_owned(), error })?;
        // Bytes that are not text are not a number either: the error names their line.
        Self::parse(&String::from_utf8_lossy(&text), &file.display().to_string())
    }

    /// Writes a file.
    pub fn write(&self, file: &Path) -> Result<(), RecordingError> {
        std::fs::write(file, self.to_string()).map_err(|error| RecordingError::Io { file: file.to_owned(), error })
    }

    /// Number of opportunities in one pass.
    pub fn opportunities(&self) -> usize {
        self.millis.len()
    }

    /// The milliseconds of the opportunities.
    pub fn millis(&self) -> &[u64] {
        &self.millis
    }

    /// Duration of one pass.
    pub fn period(&self) -> Span {
        Span::from_millis(*self.millis.last().expect("there is at least one opportunity"))
    }

    /// Delivery rate of a saturated link, in bits per second.
    pub fn rate_bps(&self) -> f64 {
        let bytes = Bytes::new(OPPORTUNITY.get() * self.millis.len() as u64);
        bytes.rate_over(self.period()).expect("the last opportunity is after the origin")
    }

    /// Time of the opportunity `index` from the start of a pass.
    fn offset(&self, index: usize) -> Span {
        Span::from_millis(self.millis[index])
    }
}

impl fmt::Display for Recording {
    /// The text of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.millis.iter().try_for_each(|millis| writeln!(f, "{millis}"))
    }
}

/// The last millisecond that an [`Instant`] reaches.
const LAST: u64 = Instant::FAR_FUTURE.as_nanos() / 1_000_000;

fn parse_line(line: &str) -> Result<u64, LineFault> {
    let Some(text) = line.strip_suffix('\n') else { return Err(LineFault::Truncated(excerpt(line))) };
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(LineFault::Empty);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(LineFault::NotANumber(excerpt(text)));
    }
    // All characters are digits, so the only possible error is overflow.
    text.parse().map_err(|_| LineFault::TooLate(excerpt(text)))
}

fn follows(millis: u64, before: u64) -> Result<u64, LineFault> {
    if millis < before {
        return Err(LineFault::Decreasing { millis, before });
    }
    if millis > LAST {
        return Err(LineFault::TooLate(millis.to_string()));
    }
    Ok(millis)
}

/// An excerpt of a line for a message.
fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        Recording::parse(text, "a.down").expect_err(text).to_string()
    }

    #[test]
    fn errors_name_file_line_and_field() {
        const FIELD: &str = "time of the delivery opportunity";
        assert_eq!(error(""), "a.down: there is no delivery opportunity: expected a time in milliseconds on each line");
        assert_eq!(error("1\n2x\n"), format!("a.down:2: {FIELD}: `2x` is not a whole number of milliseconds"));
        assert!(error("1\n-2\n").contains(":2: "));
        assert!(error("1\n2.5\n").contains("`2.5` is not a whole number"));
        assert_eq!(error("1\n\n3\n"), format!("a.down:2: {FIELD}: the line is empty: remove it"));
        assert!(error("5\n4\n").starts_with("a.down:2: time of the delivery opportunity: 4 ms come before the 5 ms"));
        assert!(error("5\n17").contains("a.down:2: ") && error("5\n17").contains("ends in the middle of a line"));
        assert!(error("0\n0\n").contains("a.down:2: ") && error("0\n0\n").contains("must have a duration"));
        assert!(error("99999999999999999999999\n").contains("more than 584 years"));
        assert!(error("18446744073710\n").contains("more than 584 years"));
    }

    #[test]
    fn a_file_that_is_no_text_is_refused_by_its_line() {
        let file = std::env::temp_dir().join(format!("airpath-recorded-{}", std::process::id()));
        std::fs::write(&file, b"1\n\xff\xfe\n").expect("a temporary file");
        let error = Recording::read(&file).expect_err("not text").to_string();
        assert!(error.contains(":2: "), "{error}");
        let recording = Recording::new(&[1, 5]).expect("in order");
        recording.write(&file).expect("a temporary file");
        assert_eq!(Recording::read(&file).expect("what was written"), recording);
        std::fs::remove_file(&file).expect("it was there");
        let error = Recording::read(&file).expect_err("it is gone").to_string();
        assert!(error.starts_with(&file.display().to_string()), "{error}");
    }

    #[test]
    fn line_ends_of_windows_are_read() {
        assert_eq!(Recording::parse("1\r\n2\r\n", "a").expect("two lines").millis(), [1, 2]);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(mut millis in prop::collection::vec(0u64..100_000, 1..300)) {
            millis.sort_unstable();
            millis.push(100_000);
            let recording = Recording::new(&millis).expect("in order");
            let text = recording.to_string();
            prop_assert_eq!(Recording::parse(&text, "a").expect("it was written"), recording);
        }

        #[test]
        fn a_cut_inside_a_line_is_always_noticed(
            mut millis in prop::collection::vec(10u64..100_000, 2..50),
            cut in 0.0f64..1.0,
        ) {
            millis.sort_unstable();
            let text = Recording::new(&millis).expect("in order").to_string();
            let cut = (cut * text.len() as f64) as usize;
            let whole_lines = cut == 0 || text.as_bytes()[cut - 1] == b'\n';
            prop_assert_eq!(Recording::parse(&text[..cut], "a").is_ok(), whole_lines && cut > 0);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9x\r\n -]{0,40}") {
            let _ = Recording::parse(&text, "a");
        }
    }
}
