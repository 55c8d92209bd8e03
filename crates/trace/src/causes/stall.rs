//! Stalls: times without progress, and a sentence for each.

use core::fmt;

use airpath_core::{Instant, Span};

/// A time without delivery of new data though data was outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The last progress before.
    pub begin: Instant,
    /// The first progress after; the last retransmission if there was none.
    pub end: Instant,
    /// The frame of the last progress before.
    pub first_frame: u64,
    /// The frame of the first progress after; of the last retransmission if there was none.
    pub last_frame: u64,
    /// Bytes outstanding.
    pub outstanding: u64,
    /// Retransmission time-outs in it; with a closed window, probes of the window.
    pub timeouts: u32,
    /// Retransmissions of tail loss probes in it.
    pub tail_probes: u32,
    /// The fate of the outstanding data.
    pub fate: Fate,
    /// The part of its length in which the path delivered nothing, as far as that is known.
    pub path_gap: Span,
}

/// The fate of the data that was outstanding in a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was delayed, and arrived.
    Held,
    /// It waited while the path carried other connections of the same host.
    Behind,
    /// A part of it was delayed and arrived; the rest was lost, and was retransmitted.
    PartlyLost,
    /// It was lost, and was retransmitted.
    Lost,
    /// Nothing was outstanding, and the receive window was closed.
    WindowClosed,
    /// Nagle's algorithm held a sub-MSS segment until the delayed acknowledgement of the one before
    /// (RFC 9293 §3.7.4, §3.8.6.3).
    Nagle,
    /// The SYN was lost, and was retransmitted.
    SynLost,
    /// Datagrams of a QUIC flow had no answer. Which of them arrived is encrypted.
    Unanswered,
    /// The connection ended before that was known.
    Unknown,
}

impl Stall {
    /// From the last progress to the next.
    pub fn length(&self) -> Span {
        self.end.since(self.begin)
    }
}

impl fmt::Display for Stall {
    /// Describes the stall in one sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = Rounded(self.length());
        let (first, last) = (self.first_frame, self.last_frame);
        let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let probes =
            |count: u32| if count == 1 { "a tail loss probe".to_owned() } else { format!("{count} tail loss probes") };
        if self.outstanding > 0 && self.fate != Fate::Unanswered {
            write!(f, "nothing got through for {length} (frames {first} to {last})")?;
            write!(f, " with {} bytes outstanding: ", self.outstanding)?;
        }
        match (self.fate, self.timeouts) {
            (Fate::WindowClosed, probes) => {
                write!(f, "the receive window was closed for {length} (frames {first} to {last})")?;
                if probes > 0 {
                    write!(f, ", and was probed {}", times(probes))?;
                }
                write!(f, ": the receiving application did not read")
            }
            (Fate::Nagle, _) => write!(
                f,
                "Nagle's algorithm held a small segment for {length} (frames {first} to {last}), until the delayed \
                 acknowledgement of the one before"
            ),
            (Fate::SynLost, again) => write!(
                f,
                "the SYN was not answered for {length} (frames {first} to {last}), and was retransmitted {}",
                times(again)
            ),
            (Fate::Unanswered, _) => {
                write!(f, "nothing came for {length} (frames {first} to {last})")?;
                match self.tail_probes {
                    0 => Ok(()),
                    1 => write!(f, ", although one more datagram was sent"),
                    probes => write!(f, ", although {probes} more datagrams were sent, after pauses"),
                }
            }
            // In a capture at the receiver, the outstanding data is not observable.
            (Fate::Lost, _) if self.outstanding == 0 => {
                write!(f, "nothing came for {length} (frames {first} to {last}), and then what had been lost")
            }
            (Fate::Behind, _) if self.outstanding == 0 => write!(
                f,
                "nothing came for {length} (frames {first} to {last}): the path carried other connections of the same \
                 host"
            ),
            _ if self.outstanding == 0 => {
                write!(f, "nothing came for {length} (frames {first} to {last}), though there was more to come")
            }
            (Fate::Behind, _) => write!(f, "the path carried other connections of the same host first"),
            (Fate::PartlyLost, _) => write!(f, "the path lost a part of them, and delivered the rest late"),
            (Fate::Held, 0) if self.tail_probes > 0 => {
                write!(f, "the path held them back, and {} sent data again spuriously", probes(self.tail_probes))
            }
            (Fate::Held, 0) => write!(f, "the path held them back and then delivered them"),
            (Fate::Held, timeouts) => {
                write!(
                    f,
                    "the path held them back, and the retransmission timer went off {} spuriously",
                    times(timeouts)
                )
            }
            (Fate::Lost, timeouts) if timeouts + self.tail_probes == 1 => {
                write!(
                    f,
                    "they were lost, and only {} noticed, after {}",
                    if timeouts == 1 { "the retransmission timer".to_owned() } else { probes(1) },
                    Rounded(self.length().saturating_sub(self.path_gap))
                )
            }
            (Fate::Lost, 0) => write!(
                f,
                "they were lost, and so was what {} sent; after about {} the path was back",
                probes(self.tail_probes),
                Rounded(self.path_gap)
            ),
            (Fate::Lost, timeouts) => write!(
                f,
                "they were lost, and so was what the timer sent; it went off {}, and after about {} the path was back",
                times(timeouts),
                Rounded(self.path_gap)
            ),
            (Fate::Unknown, 0) if self.tail_probes > 0 => {
                write!(f, "{} sent data again, and nothing more was heard", probes(self.tail_probes))
            }
            (Fate::Unknown, timeouts) => {
                write!(f, "the timer went off {}, and nothing more was heard", times(timeouts))
            }
        }
    }
}

/// A length of time with three significant digits, in milliseconds below a second.
struct Rounded(Span);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let (value, unit) = if seconds < 1.0 { (seconds * 1e3, "ms") } else { (seconds, "s") };
        let digits = match value {
            ..10.0 => 2,
            10.0..100.0 => 1,
            _ => 0,
        };
        write!(f, "{value:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the connection count the same retransmissions.
    #[test]
    fn a_tail_loss_probe_is_no_time_out() {
        let story = |fate, timeouts, tail_probes| {
            let stall = Stall {
                begin: Instant::ZERO,
                end: Instant::ZERO + Span::from_secs(2),
                first_frame: 1,
                last_frame: 9,
                outstanding: 100,
                timeouts,
                tail_probes,
                fate,
                path_gap: Span::from_secs(1),
            };
            stall.to_string().split_once("outstanding: ").unwrap().1.to_owned()
        };
        assert!(story(Fate::Held, 1, 0).ends_with("the retransmission timer went off once spuriously"));
        assert!(story(Fate::Held, 0, 1).ends_with("a tail loss probe sent data again spuriously"));
        assert!(story(Fate::Lost, 0, 1).ends_with("only a tail loss probe noticed, after 1.00 s"));
        assert!(story(Fate::Lost, 1, 0).ends_with("only the retransmission timer noticed, after 1.00 s"));
        assert!(story(Fate::Lost, 1, 1).contains("it went off once, and after about 1.00 s"));
        assert!(story(Fate::Lost, 0, 2).contains("so was what 2 tail loss probes sent"));
    }

    #[test]
    fn lengths_have_three_digits() {
        for (micros, words) in [
            (3_003_873, "3.00 s"),
            (12_345_678, "12.3 s"),
            (245_000_000, "245 s"),
            (1_496_000, "1.50 s"),
            (428_499, "428 ms"),
            (7_512, "7.51 ms"),
            (0, "0.00 ms"),
        ] {
            assert_eq!(Rounded(Span::from_micros(micros)).to_string(), words);
        }
    }
}
