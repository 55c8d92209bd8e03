//! Quantities with units. They parse from text, print text that parses to the same value, and
//! reject invalid values.

use std::fmt;
use std::str::FromStr;

mod motion;

use crate::quantity::{parse_quantity, print_quantity, serde_as_text};
use crate::time::Span;

pub use crate::quantity::{UnitError, examples};
pub use motion::{Frequency, Length, Speed};

/// A rate in bits per second. Written `"384 kbit/s"`, `"10 Mbit/s"`. Never zero: a link that sends
/// nothing has an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bitrate(u64);

const BITRATE_UNITS: &[(&str, u64)] =
    &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

impl Bitrate {
    /// A rate of `bits` bits per second.
    ///
    /// # Panics
    /// If `bits` is zero.
    pub const fn from_bps(bits: u64) -> Self {
        assert!(bits > 0, "a bit rate is not zero");
        Self(bits)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Transmission time of `bytes` at this rate, to the nearest nanosecond.
    pub const fn time_for(self, bytes: Bytes) -> Span {
        let bits = bytes.0 as u128 * 8 * 1_000_000_000;
        Span::from_nanos(((bits + self.0 as u128 / 2) / self.0 as u128) as u64)
    }

    /// Whole bytes transmitted in `span` at this rate.
    pub const fn bytes_in(self, span: Span) -> Bytes {
        Bytes((self.0 as u128 * span.as_nanos() as u128 / 8_000_000_000) as u64)
    }
}

impl FromStr for Bitrate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match parse_quantity("bit rate", text, BITRATE_UNITS)? {
            0 => Err(UnitError::OutOfRange { text: text.into(), what: "bit rate above zero", base: "bit/s" }),
            bits => Ok(Self(bits)),
        }
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_quantity(f, self.0, BITRATE_UNITS)
    }
}

serde_as_text!(Bitrate, "a bit rate such as \"384 kbit/s\"");

/// A number of bytes. Written `"1500 B"`, `"100 kB"` (100,000), `"64 KiB"` (65,536), `"16 MB"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

const BYTES_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

impl Bytes {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The rate of these bytes over `span`, in bits per second; `None` for a span of zero.
    pub fn rate_over(self, span: Span) -> Option<f64> {
        (!span.is_zero()).then(|| self.0 as f64 * 8.0 / span.as_secs_f64())
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_quantity("size", text, BYTES_UNITS).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.pad("0 B"),
            bytes => print_quantity(f, bytes, &BYTES_UNITS[..4]),
        }
    }
}

serde_as_text!(Bytes, "a size such as \"100 kB\"");

/// A probability from 0 to 1. Written as a number (`0.1`) or a percentage (`"10 %"`).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0.0);
    /// Always.
    pub const ALWAYS: Self = Self(1.0);
    /// One half.
    pub const HALF: Self = Self(0.5);

    /// The probability `p`; `None` outside 0 to 1.
    pub fn new(p: f64) -> Option<Self> {
        // `+ 0.0` turns -0.0 into 0.0, so that equal probabilities print the same.
        (0.0..=1.0).contains(&p).then_some(Self(p + 0.0))
    }

    /// The number, from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// 1 − p.
    pub fn complement(self) -> Self {
        Self(1.0 - self.0)
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError::NotAProbability { text: text.into() };
        let trimmed = text.trim();
        let number = match trimmed.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
            None => trimmed.parse(),
        };
        number.ok().and_then(Self::new).ok_or_else(error)
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}

impl serde::Serialize for Probability {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl schemars::JsonSchema for Probability {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Probability".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["number", "string"], "title": A_PROBABILITY })
    }
}

/// What the text of a [`Probability`] can be.
const A_PROBABILITY: &str = "a probability such as 0.1 or \"10 %\"";

impl<'de> serde::Deserialize<'de> for Probability {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl serde::de::Visitor<'_> for Number {
            type Value = Probability;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(A_PROBABILITY)
            }
            fn visit_f64<E: serde::de::Error>(self, p: f64) -> Result<Probability, E> {
                Probability::new(p).ok_or_else(|| E::custom(UnitError::NotAProbability { text: p.to_string() }))
            }
            fn visit_i64<E: serde::de::Error>(self, p: i64) -> Result<Probability, E> {
                self.visit_f64(p as f64)
            }
            fn visit_u64<E: serde::de::Error>(self, p: u64) -> Result<Probability, E> {
                self.visit_f64(p as f64)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Probability, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Number)
    }
}

/// A ratio in decibels. Written `"3 dB"`, `"-4.5 dB"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Decibel(f64);

impl Decibel {
    /// `decibels`; `None` if not finite.
    pub fn new(decibels: f64) -> Option<Self> {
        decibels.is_finite().then_some(Self(decibels + 0.0))
    }

    /// The number of decibels.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Decibel {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        text.trim()
            .strip_suffix("dB")
            .and_then(|number| number.trim().parse().ok())
            .and_then(Self::new)
            .ok_or_else(|| UnitError::NotDecibels { text: text.into() })
    }
}

impl fmt::Display for Decibel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} dB", self.0))
    }
}

serde_as_text!(Decibel, "a level such as \"3 dB\"");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error<T: FromStr<Err = UnitError> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().expect_err(text).to_string()
    }

    #[test]
    fn invalid_texts_give_errors_with_a_next_step() {
        assert_eq!(
            error::<Bitrate>("384 ms"),
            "`ms` is not a unit of a bit rate: expected one of bit/s, kbit/s, Mbit/s, Gbit/s"
        );
        let spellings =
            [("mbps", "Mbit/s"), ("mbit", "Mbit/s"), ("Kbps", "kbit/s"), ("KBIT/S", "kbit/s"), ("M", "Mbit/s")];
        for (wrong, right) in spellings {
            let error = error::<Bitrate>(&format!("10 {wrong}"));
            assert!(error.contains(&format!("bit rate: did you mean `{right}`? expected one of")), "{error}");
        }
        assert!(!error::<Bytes>("10 Mbps").contains("did you mean"));
        assert!(error::<Bytes>("10 KB").contains("did you mean `kB`?"));
        assert!(error::<Bytes>("10 M").contains("did you mean `MB`?"));
        assert!(!error::<Span>("10 m").contains("did you mean"));
        assert!(!error::<Bitrate>("10 MB/s").contains("did you mean"));
        assert_eq!(error::<Bitrate>("-1 kbit/s"), "`-1 kbit/s` is negative: a bit rate is not");
        assert!(error::<Bitrate>("384").ends_with("as in `384 kbit/s`"));
        assert!(error::<Bitrate>("9600").ends_with("as in `9600 bit/s`"));
        assert!(error::<Bytes>("1000000").ends_with("as in `1000000 B`"));
        assert!(error::<Span>("2").ends_with("as in `2 s` or `2 ms`"));
        assert!(error::<Bitrate>("0 bit/s").contains("above zero"));
        assert!(error::<Span>("fast").contains("expected a number and a unit"));
        assert!(error::<Bytes>("99999999999 GB").contains("out of range"));
        assert!(error::<Bytes>("1.2.3 kB").contains("not a size"));
        assert!(error::<Probability>("1.1").contains("from 0 to 1"));
        assert!(error::<Probability>("NaN").contains("from 0 to 1"));
        assert!(error::<Decibel>("3").contains("decibels"));
        assert!(error::<Decibel>("inf dB").contains("decibels"));
    }

    #[test]
    fn rates_and_times_are_exact() {
        let rate: Bitrate = "384 kbit/s".parse().expect("a rate");
        assert_eq!(rate.time_for(Bytes::new(1500)).to_string(), "31.25 ms");
        assert_eq!(rate.bytes_in(Span::from_millis(10)), Bytes::new(480));
        assert_eq!(Bytes::new(480).rate_over(Span::from_millis(10)), Some(384_000.0));
        assert_eq!(Bytes::new(1).rate_over(Span::ZERO), None);
    }

    #[test]
    fn percentages_are_probabilities() {
        assert_eq!("10 %".parse::<Probability>().map(Probability::get), Ok(0.1));
        assert_eq!("0.25".parse::<Probability>().map(Probability::get), Ok(0.25));
    }

    #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
    struct All {
        rate: Bitrate,
        span: Span,
        size: Bytes,
        loss: Probability,
        level: Decibel,
    }

    proptest! {
        #[test]
        fn every_value_prints_to_what_it_parses_from(
            bits in 1u64.., nanos in 0..=Span::YEAR.as_nanos(), bytes: u64, p in 0.0f64..=1.0, db in -1e6f64..1e6,
        ) {
            let all = All {
                rate: Bitrate::from_bps(bits),
                span: Span::from_nanos(nanos),
                size: Bytes::new(bytes),
                loss: Probability::new(p).expect("within range"),
                level: Decibel::new(db).expect("finite"),
            };
            prop_assert_eq!(all.rate.to_string().parse(), Ok(all.rate));
            prop_assert_eq!(all.span.to_string().parse(), Ok(all.span));
            prop_assert_eq!(all.size.to_string().parse(), Ok(all.size));
            prop_assert_eq!(all.loss.to_string().parse(), Ok(all.loss));
            prop_assert_eq!(all.level.to_string().parse(), Ok(all.level));
            let text = toml::to_string(&all).expect("serialises");
            prop_assert_eq!(toml::from_str::<All>(&text).expect("reads back"), all);
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,24}") {
            let _ = text.parse::<Bitrate>();
            let _ = text.parse::<Span>();
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Probability>();
            let _ = text.parse::<Decibel>();
        }
    }
}
