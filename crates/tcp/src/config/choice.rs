//! Settings that name one of several algorithms, and also accept `true` and `false`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

/// Whether a sub-MSS segment waits while data is outstanding. Written `"off"`, `"rfc896"` or
/// `"minshall"`; `false` and `true` are the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// Never (`TCP_NODELAY`).
    Off,
    /// Until everything is acknowledged (RFC 896; RFC 9293 §3.7.4).
    Rfc896,
    /// Only while another sub-MSS segment is outstanding: the end of a long message does not wait
    /// for the segments before it (Minshall, Saito, Mogul and Verghese 2000; `tcp_minshall_check`
    /// in Linux).
    Minshall,
}

/// Condition that ends slow start before a loss. Written `"off"`, `"rfc9406"` or `"linux"`; `false`
/// and `true` are the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HyStartVariant {
    /// None.
    Off,
    /// HyStart++ (RFC 9406): rising round trips slow it down, and end it if they stay high.
    Rfc9406,
    /// HyStart (Ha and Rhee 2011), as in the CUBIC of Linux: slow start ends immediately when round
    /// trips rise, or when an ACK train is as long as half a round trip.
    Linux,
}

/// What becomes of the congestion window while it is not used. Written `"off"`, `"rfc5681"` or
/// `"rfc2861"`; `false` and `true` are the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// It stays.
    Off,
    /// After an idle time of one retransmission timeout it is at most the initial window (RFC 5681
    /// §4.1).
    Rfc5681,
    /// It is halved for each timeout of an idle time, down to the initial window. After a timeout
    /// in which the application did not use all of it, it is the mean of itself and of what was
    /// used. The slow-start threshold keeps three quarters of it (RFC 2861 §3; `tcp_cwnd_restart`,
    /// `tcp_cwnd_application_limited` of Linux).
    Rfc2861,
}

/// The growth of CUBIC in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CubicGrowth {
    /// Towards the curve a smoothed round trip ahead; at once to NewReno's window, where that is
    /// larger (RFC 9438 §4.2, §4.3).
    #[default]
    Rfc9438,
    /// Towards the curve a least round trip ahead, or NewReno's window, by one segment for a
    /// whole number of acknowledged ones (`bictcp_update` of Linux).
    Linux,
}

impl<'de> Deserialize<'de> for Nagle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const KEYWORDS: Choice<Nagle> =
            Choice { keywords: &[("off", Nagle::Off), ("rfc896", Nagle::Rfc896), ("minshall", Nagle::Minshall)] };
        deserializer.deserialize_any(KEYWORDS)
    }
}

impl<'de> Deserialize<'de> for HyStartVariant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const KEYWORDS: Choice<HyStartVariant> = Choice {
            keywords: &[
                ("off", HyStartVariant::Off),
                ("rfc9406", HyStartVariant::Rfc9406),
                ("linux", HyStartVariant::Linux),
            ],
        };
        deserializer.deserialize_any(KEYWORDS)
    }
}

impl<'de> Deserialize<'de> for IdleRestart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const KEYWORDS: Choice<IdleRestart> = Choice {
            keywords: &[
                ("off", IdleRestart::Off),
                ("rfc5681", IdleRestart::Rfc5681),
                ("rfc2861", IdleRestart::Rfc2861),
            ],
        };
        deserializer.deserialize_any(KEYWORDS)
    }
}

/// Deserialises a keyword: `false` is the first, `true` the second.
struct Choice<T: 'static> {
    keywords: &'static [(&'static str, T)],
}

impl<T: Copy> de::Visitor<'_> for Choice<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (word, _)) in self.keywords.iter().enumerate() {
            write!(f, "{}\"{word}\"", if index == 0 { "" } else { " or " })?;
        }
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<T, E> {
        Ok(self.keywords[usize::from(on)].1)
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
    use serde::de::IntoDeserializer;
    use serde::de::value::Error;

    fn nagle<'de>(from: impl IntoDeserializer<'de, Error>) -> Result<Nagle, Error> {
        Nagle::deserialize(from.into_deserializer())
    }

    fn exit<'de>(from: impl IntoDeserializer<'de, Error>) -> Result<HyStartVariant, Error> {
        HyStartVariant::deserialize(from.into_deserializer())
    }

    #[test]
    fn keywords_select_a_variant() {
        assert_eq!(nagle("off"), Ok(Nagle::Off));
        assert_eq!(nagle("rfc896"), Ok(Nagle::Rfc896));
        assert_eq!(nagle("minshall"), Ok(Nagle::Minshall));
        assert_eq!(exit("off"), Ok(HyStartVariant::Off));
        assert_eq!(exit("rfc9406"), Ok(HyStartVariant::Rfc9406));
        assert_eq!(exit("linux"), Ok(HyStartVariant::Linux));
    }

    #[test]
    fn booleans_select_the_first_two_variants() {
        assert_eq!((nagle(false), nagle(true)), (Ok(Nagle::Off), Ok(Nagle::Rfc896)));
        assert_eq!((exit(false), exit(true)), (Ok(HyStartVariant::Off), Ok(HyStartVariant::Rfc9406)));
    }

    #[test]
    fn an_unknown_keyword_lists_the_valid_ones() {
        let error = nagle("minshal").unwrap_err().to_string();
        assert_eq!(error, "invalid value: string \"minshal\", expected \"off\" or \"rfc896\" or \"minshall\"");
    }
}
