//! The values that a standard has for a parameter: other values are no setting of a network.

use std::fmt;

use airpath_core::{Bytes, Span};

/// The values of an enumeration of a standard, and where it is.
#[derive(Debug)]
pub struct Enumeration {
    /// The lowest, the highest, and the distance of values that are equally spaced.
    runs: &'static [[u64; 3]],
    /// All other values, in rising order.
    values: &'static [u64],
    /// The unit of the values; empty for numbers.
    unit: &'static str,
    /// Whether the parameter may be left out, which the standard calls infinity.
    has_infinity: bool,
    /// The name of the enumeration and the clause that has it.
    source: &'static str,
}

impl Enumeration {
    /// An enumeration of numbers.
    pub const fn numbers(values: &'static [u64], source: &'static str) -> Self {
        Self { runs: &[], values, unit: "", has_infinity: false, source }
    }

    /// An enumeration of times in milliseconds.
    pub const fn millis(values: &'static [u64], source: &'static str) -> Self {
        Self { unit: "ms", ..Self::numbers(values, source) }
    }

    /// An enumeration of sizes in kilobytes.
    pub const fn kilobytes(values: &'static [u64], source: &'static str) -> Self {
        Self { unit: "kB", ..Self::numbers(values, source) }
    }

    /// The same with equally spaced values: the lowest, the highest, their distance.
    pub const fn and_runs(self, runs: &'static [[u64; 3]]) -> Self {
        Self { runs, ..self }
    }

    /// The same for a parameter that may be left out, which the standard calls infinity.
    pub const fn or_infinity(self) -> Self {
        Self { has_infinity: true, ..self }
    }

    /// Whether it has a number.
    pub fn has(&self, number: u64) -> bool {
        let is_in = |[first, last, step]: &[u64; 3]| {
            (first..=last).contains(&&number) && (number - first).is_multiple_of(*step)
        };
        self.values.contains(&number) || self.runs.iter().any(is_in)
    }

    /// Whether it has a time.
    pub fn has_span(&self, span: Span) -> bool {
        self.has_multiple(span.as_nanos(), Span::from_millis(1).as_nanos())
    }

    /// Whether it has a size.
    pub fn has_bytes(&self, bytes: Bytes) -> bool {
        self.has_multiple(bytes.get(), 1000)
    }

    fn has_multiple(&self, amount: u64, unit: u64) -> bool {
        amount.is_multiple_of(unit) && self.has(amount / unit)
    }
}

impl fmt::Display for Enumeration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.runs.iter().map(|[first, last, step]| match step {
            1 => format!("{first} to {last}"),
            _ => format!("{first} to {last} in steps of {step}"),
        });
        let mut parts: Vec<String> = runs.chain(self.values.iter().map(u64::to_string)).collect();
        let last = parts.pop().unwrap_or_default();
        if !parts.is_empty() {
            write!(f, "{} or ", parts.join(", "))?;
        }
        f.write_str(&last)?;
        if !self.unit.is_empty() {
            write!(f, " {}", self.unit)?;
        }
        if self.has_infinity {
            f.write_str(", or left out for infinity")?;
        }
        write!(f, " ({})", self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TIMES: Enumeration =
        Enumeration::millis(&[300, 500], "T-Example, TS 0 §1").and_runs(&[[0, 10, 5], [20, 40, 10]]);
    static SIZES: Enumeration = Enumeration::kilobytes(&[1, 25], "Example, TS 0 §2").or_infinity();
    static COUNTS: Enumeration = Enumeration::numbers(&[8], "TS 0 §4").and_runs(&[[1, 3, 1]]);
    static ONE: Enumeration = Enumeration::numbers(&[7], "TS 0 §3");

    #[test]
    fn it_is_written_with_all_values_and_its_source() {
        let expected = "0 to 10 in steps of 5, 20 to 40 in steps of 10, 300 or 500 ms (T-Example, TS 0 §1)";
        assert_eq!(TIMES.to_string(), expected);
        assert_eq!(SIZES.to_string(), "1 or 25 kB, or left out for infinity (Example, TS 0 §2)");
        assert_eq!(COUNTS.to_string(), "1 to 3 or 8 (TS 0 §4)");
        assert_eq!(ONE.to_string(), "7 (TS 0 §3)");
    }

    #[test]
    fn values_are_those_of_the_runs_and_the_others() {
        let has = (0..=600).filter(|millis| TIMES.has_span(Span::from_millis(*millis)));
        assert_eq!(has.collect::<Vec<_>>(), [0, 5, 10, 20, 30, 40, 300, 500]);
        assert!(!TIMES.has_span(Span::from_micros(5500)) && !SIZES.has_bytes(Bytes::new(1500)));
        assert!(SIZES.has_bytes(Bytes::new(25_000)) && ONE.has(7) && !ONE.has(8));
    }
}
