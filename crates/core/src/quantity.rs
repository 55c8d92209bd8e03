//! Text and serialised form of quantities with units, for [`crate::time`] and [`crate::units`].

use std::fmt;

/// A text that is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// No number at the start of the text.
    #[error("`{text}` is not a {what}: expected a number and a unit ({units})")]
    NoNumber {
        /// The text as given.
        text: String,
        /// The expected quantity.
        what: &'static str,
        /// The valid units.
        units: String,
    },
    /// A number without a unit.
    #[error("`{text}` has no unit: a {what} is written with one of {units}, as in {}", examples(.text, .unit, '`'))]
    NoUnit {
        /// The text as given.
        text: String,
        /// The expected quantity.
        what: &'static str,
        /// The valid units.
        units: String,
        /// One of them.
        unit: &'static str,
    },
    /// A unit of another quantity.
    #[error("`{unit}` is not a unit of a {what}: {}expected one of {units}", suggestion(.unit, .units))]
    WrongUnit {
        /// The unit as given.
        unit: String,
        /// The expected quantity.
        what: &'static str,
        /// The valid units.
        units: String,
    },
    /// A negative number.
    #[error("`{text}` is negative: a {what} is not")]
    Negative {
        /// The text as given.
        text: String,
        /// The expected quantity.
        what: &'static str,
    },
    /// Too large.
    #[error("`{text}` is out of range: a {what} is a whole number of {base}, at most {max} of them", max = u64::MAX)]
    OutOfRange {
        /// The text as given.
        text: String,
        /// The expected quantity.
        what: &'static str,
        /// The smallest unit.
        base: &'static str,
    },
    /// A length of time that is too long.
    #[error("`{text}` is out of range: a length of time is at most 8760 h, a year")]
    TooLong {
        /// The text as given.
        text: String,
    },
    /// A probability outside 0 to 1.
    #[error("`{text}` is not a probability: expected a number from 0 to 1, or a percentage such as `10 %`")]
    NotAProbability {
        /// The text as given.
        text: String,
    },
    /// Not a number of decibels.
    #[error("`{text}` is not a level: expected a number of decibels such as `3 dB`")]
    NotDecibels {
        /// The text as given.
        text: String,
    },
}

/// Names of the units of a rate in other tools, each with its unit here. Capitals count, as in all
/// units.
const OTHER_NAMES: [(&str, &str); 4] = [("bps", "bit/s"), ("kbps", "kbit/s"), ("Mbps", "Mbit/s"), ("Gbps", "Gbit/s")];

/// Spellings of units in other tools, in small letters, each with its unit here. A spelling may be
/// that of units of several quantities.
const SPELLINGS: [(&str, &str); 24] = [
    ("k", "kbit/s"),
    ("m", "Mbit/s"),
    ("g", "Gbit/s"),
    ("k", "kB"),
    ("m", "MB"),
    ("g", "GB"),
    ("bps", "bit/s"),
    ("bits/s", "bit/s"),
    ("kbps", "kbit/s"),
    ("kbit", "kbit/s"),
    ("kbits/s", "kbit/s"),
    ("mbps", "Mbit/s"),
    ("mbit", "Mbit/s"),
    ("mbits/s", "Mbit/s"),
    ("gbps", "Gbit/s"),
    ("gbit", "Gbit/s"),
    ("gbits/s", "Gbit/s"),
    ("sec", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
    ("usec", "us"),
    ("byte", "B"),
    ("bytes", "B"),
    ("minutes", "min"),
];

/// `did you mean …? ` with the one of `units` that `unit` stands for, or nothing.
fn suggestion(unit: &str, units: &str) -> String {
    let small = unit.to_ascii_lowercase();
    let spells = |name: &str| SPELLINGS.contains(&(small.as_str(), name));
    let meant = units.split(", ").find(|name| spells(name) || name.eq_ignore_ascii_case(unit));
    meant.map_or_else(String::new, |name| format!("did you mean `{name}`? "))
}

/// How a bare `number` may be meant, with its unit: `"60 s" or "60 ms"` between `quote`s.
///
/// `unit` is any unit of the quantity. Sizes and large rates are taken to be in their base unit.
pub fn examples(number: &str, unit: &str, quote: char) -> String {
    let number = number.trim();
    let digits = number.chars().take_while(char::is_ascii_digit).count();
    let units: &[&str] = match unit {
        "ns" | "us" | "ms" | "s" | "min" | "h" => &["s", "ms"],
        "bit/s" | "kbit/s" | "Mbit/s" | "Gbit/s" if digits > 3 => &["bit/s"],
        "bit/s" | "kbit/s" | "Mbit/s" | "Gbit/s" => &["kbit/s"],
        "B" | "kB" | "MB" | "GB" | "KiB" | "MiB" | "GiB" => &["B"],
        _ => &[unit],
    };
    units.iter().map(|unit| format!("{quote}{number} {unit}{quote}")).collect::<Vec<_>>().join(" or ")
}

/// Parses `number unit` into a whole number of the smallest unit, without floats: exact, or rounded
/// to the nearest if it has more decimals. So any number that a program prints is valid.
pub(crate) fn parse_quantity(what: &'static str, text: &str, units: &[(&'static str, u64)]) -> Result<u64, UnitError> {
    let names = || units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let trimmed = text.trim();
    let unsigned = trimmed.strip_prefix('-').unwrap_or(trimmed);
    let split = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(unsigned.len());
    let (number, unit) = unsigned.split_at(split);
    let unit = unit.trim();
    let number: String = number.chars().filter(|c| *c != '_').collect();
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(UnitError::NoNumber { text: text.into(), what, units: names() });
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit {
            text: text.into(),
            what,
            units: names(),
            unit: units[units.len().min(3) - 1].0,
        });
    }
    let name = OTHER_NAMES.iter().find(|(other, _)| *other == unit).map_or(unit, |(_, name)| name);
    let Some((_, scale)) = units.iter().find(|(each, _)| *each == name) else {
        return Err(UnitError::WrongUnit { unit: unit.into(), what, units: names() });
    };
    if trimmed.starts_with('-') {
        return Err(UnitError::Negative { text: text.into(), what });
    }
    nearest(whole, fraction, *scale).ok_or_else(|| UnitError::OutOfRange { text: text.into(), what, base: units[0].0 })
}

/// The whole number nearest to `whole.fraction × scale`, if it fits; a half is rounded up.
fn nearest(whole: &str, fraction: &str, scale: u64) -> Option<u64> {
    // 10⁻¹⁵ of the largest scale, 3.6·10¹², is far below a half.
    let fraction = &fraction[..fraction.len().min(15)];
    let power = 10u128.pow(fraction.len() as u32);
    let digits = format!("0{whole}{fraction}").parse::<u128>().ok()?;
    let scaled = digits.checked_mul(u128::from(scale))?;
    u64::try_from((scaled + power / 2) / power).ok()
}

/// Prints in the largest unit that does not exceed the value, with all decimals.
pub(crate) fn print_quantity(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&'static str, u64)]) -> fmt::Result {
    let (name, scale) = match value {
        0 => units[units.len() - 1],
        _ => *units.iter().rev().find(|(_, scale)| value >= *scale).unwrap_or(&units[0]),
    };
    let (whole, mut rest) = (value / scale, value % scale);
    if rest == 0 {
        return f.pad(&format!("{whole} {name}"));
    }
    let mut decimals = String::new();
    let mut scale = scale;
    while rest > 0 {
        scale /= 10;
        decimals.push(char::from(b'0' + u8::try_from(rest / scale).expect("a single digit")));
        rest %= scale;
    }
    f.pad(&format!("{whole}.{decimals} {name}"))
}

/// Serialises as the printed text, and deserialises by `FromStr`. In binary formats it is the
/// number.
macro_rules! serde_as_text {
    ($type:ident, $expecting:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if !serializer.is_human_readable() {
                    return self.0.serialize(serializer);
                }
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                if !deserializer.is_human_readable() {
                    return serde::Deserialize::deserialize(deserializer).map(Self);
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "title": $expecting })
            }
        }
    };
}
pub(crate) use serde_as_text;
