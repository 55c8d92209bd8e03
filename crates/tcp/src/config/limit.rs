//! Numbers of segments that also accept keywords.

use std::fmt;

use airpath_core::Bytes;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A positive number of segments, or none: written `42` or `"unlimited"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit(Option<u32>);

impl Limit {
    /// No limit.
    pub const UNLIMITED: Self = Self(None);
    const WORD: &str = "unlimited";

    /// A limit of `segments`; at least one.
    pub const fn at_most(segments: u32) -> Self {
        Self(Some(if segments == 0 { 1 } else { segments }))
    }

    /// The number, if there is one.
    pub const fn get(self) -> Option<u32> {
        self.0
    }

    /// The limit in bytes, for segments of `size`; the maximum value without a limit.
    pub(crate) fn bytes(self, size: u32) -> u64 {
        self.0.map_or(u64::MAX, |segments| u64::from(segments) * u64::from(size))
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(segments) => serializer.serialize_u32(segments),
            None => serializer.serialize_str(Self::WORD),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Keywords { keywords: &[(Self::WORD, Self::UNLIMITED)], number: Self::at_most })
    }
}

/// A number of bytes, or none: written `"10 kB"` or `"unlimited"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowClamp(Option<Bytes>);

impl WindowClamp {
    /// No clamp.
    pub const UNLIMITED: Self = Self(None);
    const WORD: &str = "unlimited";

    /// A clamp at `bytes`.
    pub const fn at(bytes: Bytes) -> Self {
        Self(Some(bytes))
    }

    /// The number, if there is one.
    pub const fn get(self) -> Option<Bytes> {
        self.0
    }
}

impl Serialize for WindowClamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(bytes) => bytes.serialize(serializer),
            None => serializer.serialize_str(Self::WORD),
        }
    }
}

impl<'de> Deserialize<'de> for WindowClamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Clamp;
        impl de::Visitor<'_> for Clamp {
            type Value = WindowClamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes such as \"10 kB\" or \"unlimited\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<WindowClamp, E> {
                if text == WindowClamp::WORD {
                    return Ok(WindowClamp::UNLIMITED);
                }
                let bytes = Bytes::deserialize(text.into_deserializer());
                let or_word = |error: E| E::custom(format_args!("{error}, or \"{}\"", WindowClamp::WORD));
                bytes.map(WindowClamp::at).map_err(or_word)
            }
        }
        deserializer.deserialize_any(Clamp)
    }
}

/// The initial congestion window: a number of segments, or a rule that depends on their size.
/// Written `10`, `"rfc3390"` or `"rfc6928"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// A number of segments.
    Segments(u32),
    /// Two to four segments, about 4 kB (RFC 3390 §1).
    Rfc3390,
    /// Ten segments, about 14 kB (RFC 6928 §2).
    Rfc6928,
}

impl InitialWindow {
    const WORDS: &[(&str, Self)] = &[("rfc3390", Self::Rfc3390), ("rfc6928", Self::Rfc6928)];

    const fn segments(count: u32) -> Self {
        Self::Segments(if count == 0 { 1 } else { count })
    }

    /// In bytes, for segments of `size`.
    pub(crate) fn bytes(self, size: u32) -> u64 {
        let size = u64::from(size);
        match self {
            Self::Segments(count) => u64::from(count) * size,
            Self::Rfc3390 => (4 * size).min((2 * size).max(4380)),
            Self::Rfc6928 => (10 * size).min((2 * size).max(14_600)),
        }
    }
}

impl Serialize for InitialWindow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Segments(count) => serializer.serialize_u32(*count),
            Self::Rfc3390 => serializer.serialize_str("rfc3390"),
            Self::Rfc6928 => serializer.serialize_str("rfc6928"),
        }
    }
}

impl<'de> Deserialize<'de> for InitialWindow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Keywords { keywords: Self::WORDS, number: Self::segments })
    }
}

/// Deserialises a positive number of segments, or a keyword.
struct Keywords<T: 'static> {
    keywords: &'static [(&'static str, T)],
    number: fn(u32) -> T,
}

impl<T: Copy> de::Visitor<'_> for Keywords<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of segments above zero")?;
        self.keywords.iter().try_for_each(|(word, _)| write!(f, " or \"{word}\""))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        match u32::try_from(number) {
            Ok(segments @ 1..) => Ok((self.number)(segments)),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        match self.keywords.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(*value),
            None => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_by_rule() {
        assert_eq!(InitialWindow::Rfc3390.bytes(1460), 4380);
        assert_eq!(InitialWindow::Rfc3390.bytes(536), 4 * 536);
        assert_eq!(InitialWindow::Rfc3390.bytes(4000), 8000);
        assert_eq!(InitialWindow::Rfc6928.bytes(1460), 14_600);
        assert_eq!(InitialWindow::Segments(3).bytes(1000), 3000);
        assert_eq!(Limit::at_most(42).bytes(1460), 61_320);
        assert_eq!(Limit::UNLIMITED.bytes(1460), u64::MAX);
    }

    #[test]
    fn a_clamp_is_a_number_of_bytes_or_a_word() {
        let read = |text: &str| {
            let from: de::value::StrDeserializer<'_, de::value::Error> = text.into_deserializer();
            WindowClamp::deserialize(from).map(WindowClamp::get).map_err(|error| error.to_string())
        };
        assert_eq!(read("10 kB"), Ok(Some(Bytes::new(10_000))));
        assert_eq!(read("unlimited"), Ok(None));
        assert!(read("none").is_err_and(|error| error.ends_with(", or \"unlimited\"")));
    }
}
