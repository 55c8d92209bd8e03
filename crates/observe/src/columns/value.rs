//! A figure in a table.

use core::fmt;

use airpath_core::{Instant, Span};

/// A figure in a table, with its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Unknown or absent; the kind is that of a present value.
    None(Kind),
    /// A count.
    Count(u64),
    /// A difference, which may be negative.
    Difference(i64),
    /// A mean or a rate.
    Number(f64),
    /// True or false.
    Truth(bool),
    /// A duration, in seconds.
    Seconds(f64),
    /// A point in time.
    Time(Instant),
    /// A word.
    Text(String),
}

/// The kind of a figure's values. It never changes, so that a table's columns have a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers: counts, differences, times in nanoseconds.
    Whole,
    /// Other numbers: means, rates, seconds.
    Real,
    /// Yes or no.
    Truth,
    /// Words.
    Text,
}

/// Types that convert to a value of a fixed kind.
pub trait Figure: Into<Value> {
    /// Its kind.
    const KIND: Kind;
}

impl Figure for u64 {
    const KIND: Kind = Kind::Whole;
}

impl Figure for u32 {
    const KIND: Kind = Kind::Whole;
}

impl Figure for i64 {
    const KIND: Kind = Kind::Whole;
}

impl Figure for Instant {
    const KIND: Kind = Kind::Whole;
}

impl Figure for f64 {
    const KIND: Kind = Kind::Real;
}

impl Figure for Span {
    const KIND: Kind = Kind::Real;
}

impl Figure for bool {
    const KIND: Kind = Kind::Truth;
}

impl Value {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::None(kind) => *kind,
            Self::Count(_) | Self::Difference(_) | Self::Time(_) => Kind::Whole,
            Self::Number(_) | Self::Seconds(_) => Kind::Real,
            Self::Truth(_) => Kind::Truth,
            Self::Text(_) => Kind::Text,
        }
    }

    /// The value as a number; `None` if it is absent or not a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Difference(difference) => Some(*difference as f64),
            Self::Number(number) | Self::Seconds(number) => Some(*number),
            Self::Truth(truth) => Some(f64::from(u8::from(*truth))),
            Self::Time(time) => Some(time.as_secs_f64()),
            Self::None(_) | Self::Text(_) => None,
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

impl From<Span> for Value {
    fn from(span: Span) -> Self {
        Self::Seconds(span.as_secs_f64())
    }
}

impl From<Instant> for Value {
    fn from(time: Instant) -> Self {
        Self::Time(time)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<i64> for Value {
    fn from(difference: i64) -> Self {
        Self::Difference(difference)
    }
}

impl<T: Figure> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None(T::KIND), Into::into)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None(_) => Ok(()),
            Self::Count(count) => count.fmt(f),
            Self::Difference(difference) => difference.fmt(f),
            Self::Number(number) | Self::Seconds(number) => number.fmt(f),
            Self::Truth(truth) => truth.fmt(f),
            Self::Time(time) => write!(f, "{}.{:09}", time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000),
            Self::Text(text) => text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_printed_and_read_as_a_number() {
        let time = Instant::from_nanos(1_700_000_000_050_000_000);
        for (value, kind, text, number) in [
            (Value::from(7_u64), Kind::Whole, "7", Some(7.0)),
            (Value::from(8_u32), Kind::Whole, "8", Some(8.0)),
            (Value::from(-9_i64), Kind::Whole, "-9", Some(-9.0)),
            (Value::from(time), Kind::Whole, "1700000000.050000000", Some(1_700_000_000.05)),
            (Value::from(0.25), Kind::Real, "0.25", Some(0.25)),
            (Value::from(Span::from_millis(1500)), Kind::Real, "1.5", Some(1.5)),
            (Value::from(true), Kind::Truth, "true", Some(1.0)),
            (Value::from(false), Kind::Truth, "false", Some(0.0)),
            (Value::Text("10.0.0.1".into()), Kind::Text, "10.0.0.1", None),
            (Value::from(None::<u64>), Kind::Whole, "", None),
            (Value::from(None::<Span>), Kind::Real, "", None),
            (Value::from(Some(3_u64)), Kind::Whole, "3", Some(3.0)),
        ] {
            assert_eq!((value.kind(), value.to_string().as_str(), value.number()), (kind, text, number), "{value:?}");
        }
    }
}
