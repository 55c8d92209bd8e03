//! Time as integer nanoseconds: [`Instant`] since the origin of the run, [`Span`] between two of
//! them.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quantity::{UnitError, parse_quantity, print_quantity, serde_as_text};

/// A point in time: nanoseconds since the origin of the run, in virtual and in real time.
///
/// 64 bits cover 584 years. Arithmetic that exceeds that range panics, in every build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin, for reports and channel models; not for protocol arithmetic.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The first instant at or after this one that is a multiple of `step` from the origin: the
    /// next tick of a TTI clock.
    ///
    /// # Panics
    /// If `step` is zero.
    pub const fn round_up_to(self, step: Span) -> Self {
        Self(self.0.next_multiple_of(step.0))
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.checked_add(span.0).expect("an instant stays within 584 years of the origin"))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Instant {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.checked_sub(span.0).expect("an instant does not lie before the origin"))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A length of time: a whole, non-negative number of nanoseconds. Written `"89 ms"`, `"2 s"`, `"1.5
/// min"`; what is written is at most [`Self::YEAR`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);
    /// The longest span that is read from text: sums and small multiples of it are valid.
    pub const YEAR: Self = Self::from_secs(365 * 24 * 3600);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// The span nearest to `secs` seconds; zero for negative numbers and NaN.
    pub fn from_secs_f64(secs: f64) -> Self {
        // The cast saturates: below zero and NaN give 0, above the range gives the longest span.
        Self((secs * 1e9 + 0.5) as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds, for reports and channel models; not for protocol arithmetic.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product, or the longest span on overflow.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// The absolute difference.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// This span rounded up to a multiple of `step`: what a timer of that granularity measures.
    ///
    /// # Panics
    /// If `step` is zero.
    pub const fn round_up_to(self, step: Self) -> Self {
        Self(self.0.next_multiple_of(step.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("a span stays under 584 years"))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a span is not negative"))
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.checked_mul(factor).expect("a span stays under 584 years"))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let too_long = || UnitError::TooLong { text: text.into() };
        let span = match parse_quantity("length of time", text, UNITS) {
            Err(UnitError::OutOfRange { .. }) => Err(too_long()),
            parsed => parsed.map(Self),
        }?;
        if span > Self::YEAR { Err(too_long()) } else { Ok(span) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Minutes and hours are accepted, but seconds are printed: they are exact in decimals.
        print_quantity(f, self.0, &UNITS[..4])
    }
}

serde_as_text!(Span, "a length of time such as \"89 ms\"");

/// The earliest of some times that may be missing; `None` if all are. Of equal ones the first.
///
/// Written as a loop: the compiler keeps the times in registers, which it does not for
/// `into_iter().flatten().min()`.
#[inline]
pub fn earliest<T: Copy + PartialOrd, const N: usize>(times: [Option<T>; N]) -> Option<T> {
    let mut earliest = None;
    for time in times {
        earliest = match (earliest, time) {
            (Some(one), Some(other)) if other < one => Some(other),
            (None, time) => time,
            (one, _) => one,
        };
    }
    earliest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_of_times_that_may_be_missing() {
        let [one, two] = [1, 2].map(Instant::from_nanos);
        assert_eq!(earliest::<Instant, 0>([]), None);
        assert_eq!(earliest::<Instant, 2>([None, None]), None);
        assert_eq!(earliest([None, Some(two), None, Some(one), Some(two)]), Some(one));
        assert_eq!(earliest([Some(Instant::FAR_FUTURE), None]), Some(Instant::FAR_FUTURE));
    }

    #[test]
    fn ticks_of_a_tti_clock() {
        let tti = Span::from_millis(2);
        assert_eq!(Instant::ZERO.round_up_to(tti), Instant::ZERO);
        assert_eq!(Instant::from_nanos(1).round_up_to(tti), Instant::ZERO + tti);
        assert_eq!((Instant::ZERO + tti).round_up_to(tti), Instant::ZERO + tti);
    }

    #[test]
    fn reads_what_people_write() {
        for (text, nanos) in
            [("89 ms", 89_000_000), ("9.5ms", 9_500_000), ("2 min", 120_000_000_000), ("0 s", 0), ("7 us", 7_000)]
        {
            assert_eq!(text.parse::<Span>().expect(text).as_nanos(), nanos);
        }
    }

    #[test]
    fn rounds_further_decimals_to_the_nearest_nanosecond() {
        for (text, nanos) in [
            ("0.1234567894 s", 123_456_789),
            ("0.1234567895 s", 123_456_790),
            ("0.3333333333333333333333333 h", 1_200_000_000_000),
            ("1.9999999996 s", 2_000_000_000),
            (".5 us", 500),
            ("8760 h", Span::YEAR.as_nanos()),
        ] {
            assert_eq!(text.parse::<Span>().expect(text).as_nanos(), nanos, "{text}");
        }
        for text in ["31536000.000000001 s", "18446744073.7095516155 s", "99999999999999999999999999999999999999999 s"]
        {
            let error = text.parse::<Span>().expect_err(text).to_string();
            assert_eq!(error, format!("`{text}` is out of range: a length of time is at most 8760 h, a year"));
        }
    }

    #[test]
    fn prints_the_shortest_exact_form() {
        assert_eq!(Span::from_nanos(9_500_000).to_string(), "9.5 ms");
        assert_eq!(Span::from_nanos(0).to_string(), "0 s");
        assert_eq!(Span::from_secs(90).to_string(), "90 s");
        assert_eq!(Instant::from_nanos(1_000_000_007).to_string(), "1.000000007 s");
    }

    #[test]
    fn seconds_from_floats_do_not_wrap() {
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(0.1), Span::from_millis(100));
    }
}
