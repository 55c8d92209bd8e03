//! Settings that name one of several algorithms, and read `true` and `false` as well.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

/// Whether a segment that is not full waits while data is outstanding. Written `"off"`, `"rfc896"`
/// or `"minshall"`; `false` and `true` are read as the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// It never waits (`TCP_NODELAY`).
    Off,
    /// It waits until everything is acknowledged (RFC 896; RFC 9293 §3.7.4).
    Rfc896,
    /// It waits only for another that is not full: the end of a long message does not wait for the
    /// segments before it (Minshall, Saito, Mogul and Verghese 2000; `tcp_minshall_check` in
    /// Linux).
    Minshall,
}

/// What ends slow start before a loss does. Written `"off"`, `"rfc9406"` or `"linux"`; `false` and
/// `true` are read as the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyExit {
    /// Nothing.
    Off,
    /// HyStart++ (RFC 9406): round trips that grow slow it down, and end it if they stay so.
    Rfc9406,
    /// HyStart (Ha and Rhee 2011), as the CUBIC of Linux has it: it ends at once when round trips
    /// grow, or when a train of acknowledgements is as long as half of one.
    Linux,
}

impl<'de> Deserialize<'de> for Nagle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const WORDS: Choice<Nagle> =
            Choice { words: &[("off", Nagle::Off), ("rfc896", Nagle::Rfc896), ("minshall", Nagle::Minshall)] };
        deserializer.deserialize_any(WORDS)
    }
}

impl<'de> Deserialize<'de> for EarlyExit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const WORDS: Choice<EarlyExit> =
            Choice { words: &[("off", EarlyExit::Off), ("rfc9406", EarlyExit::Rfc9406), ("linux", EarlyExit::Linux)] };
        deserializer.deserialize_any(WORDS)
    }
}

/// Reads one of some words: `false` is the first, `true` the second.
struct Choice<T: 'static> {
    words: &'static [(&'static str, T)],
}

impl<T: Copy> de::Visitor<'_> for Choice<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (word, _)) in self.words.iter().enumerate() {
            write!(f, "{}\"{word}\"", if index == 0 { "" } else { " or " })?;
        }
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<T, E> {
        Ok(self.words[usize::from(on)].1)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        match self.words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(*value),
            None => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::Error;

    fn nagle<'de>(from: impl IntoDeserializer<'de, Error>) -> Result<Nagle, Error> {
        Nagle::deserialize(from.into_deserializer())
    }

    fn exit<'de>(from: impl IntoDeserializer<'de, Error>) -> Result<EarlyExit, Error> {
        EarlyExit::deserialize(from.into_deserializer())
    }

    #[test]
    fn words_name_them() {
        assert_eq!(nagle("off"), Ok(Nagle::Off));
        assert_eq!(nagle("rfc896"), Ok(Nagle::Rfc896));
        assert_eq!(nagle("minshall"), Ok(Nagle::Minshall));
        assert_eq!(exit("off"), Ok(EarlyExit::Off));
        assert_eq!(exit("rfc9406"), Ok(EarlyExit::Rfc9406));
        assert_eq!(exit("linux"), Ok(EarlyExit::Linux));
    }

    #[test]
    fn true_and_false_are_what_they_were_before_there_was_a_choice() {
        assert_eq!((nagle(false), nagle(true)), (Ok(Nagle::Off), Ok(Nagle::Rfc896)));
        assert_eq!((exit(false), exit(true)), (Ok(EarlyExit::Off), Ok(EarlyExit::Rfc9406)));
    }

    #[test]
    fn another_word_is_told_the_right_ones() {
        let error = nagle("minshal").unwrap_err().to_string();
        assert_eq!(error, "invalid value: string \"minshal\", expected \"off\" or \"rfc896\" or \"minshall\"");
    }
}
