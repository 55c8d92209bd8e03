//! Known differences with their rules: `differences.toml`.

use airpath_observe::{End, Events, Observation};
use airpath_wire::tcp::Flags;
use serde::Deserialize;

use super::fields::{Frame, Value};
use super::passed::{Passed, range};

/// All known differences.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Differences {
    pub event: Vec<EventDifference>,
    pub value: Vec<ValueDifference>,
}

/// Frames with different events.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventDifference {
    /// Events of tshark alone: these, or some of these.
    #[serde(default)]
    theirs: Vec<String>,
    /// Our events alone: these, or some of these.
    #[serde(default)]
    ours: Vec<String>,
    /// Events of both, or without a counterpart in tshark.
    #[serde(default)]
    with: Vec<String>,
    /// The verified condition.
    check: Check,
    /// Which of the two is right, and why.
    pub reason: String,
    /// The rule behind it.
    pub rule: String,
    /// One of the frames.
    pub proof: (String, u64),
}

/// Different values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueDifference {
    values: Vec<Value>,
    /// The captures; all where it is left out.
    #[serde(default)]
    captures: Vec<String>,
    /// The verified condition.
    check: Check,
    /// Which of the two is right, and why.
    pub reason: String,
    /// The rule behind it.
    pub rule: String,
    /// One of the frames.
    pub proof: (String, u64),
}

/// A condition on a frame with a difference, verified against the frames before it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Our event explains it: tshark has no such event.
    Marked,
    /// Some of its data was sent before.
    SentBefore,
    /// None of its data was sent before.
    NeverSent,
    /// All that the other end sent is acknowledged.
    NothingOutstanding,
    /// The other end's window is closed.
    WindowClosed,
    /// The other end has just sent into the closed window of this one.
    Probed,
    /// It acknowledges sequence numbers for the first time that were not captured.
    AcknowledgesUnseen,
    /// All that it newly acknowledges was captured.
    AcknowledgesSeen,
    /// All data before it was captured, or is acknowledged.
    FollowsOn,
    /// Some data before it was neither captured nor acknowledged.
    FollowsAHole,
    /// It reaches the end of the other end's window.
    ReachesWindow,
    /// It is acknowledged as a whole.
    IsAcknowledged,
    /// Theirs is an earlier frame of the same sender, and the time since then.
    EarlierFrame,
    /// tshark has no value.
    NoneOfTheirs,
    /// We have no value, since none of its data was sent before.
    NoneOfOurs,
    /// Only tshark reports a duplicate acknowledgement.
    OnlyTheirDuplicate,
    /// Ours is a round trip of data sent once, with no retransmission below it.
    MeasuredOnce,
    /// Theirs is an earlier frame with a single byte: a probe of the closed window.
    FromProbe,
    /// Theirs is larger by the duplicates that only tshark counts.
    MoreDuplicates,
    /// Ours is the sum of the bytes sent since the last PSH.
    SumSincePush,
    /// Ours is zero.
    NoTime,
    /// The measured data was sent more than once, or arrived after retransmitted data.
    Ambiguous,
    /// Theirs is smaller, by at most the selectively acknowledged and the uncaptured bytes.
    LessSelective,
    /// Nothing is outstanding.
    AllAcknowledged,
    /// Theirs is larger, by at most the bytes from retransmitted acknowledged data up to the
    /// highest number.
    MoreLate,
    /// The same offset was acknowledged before.
    AcknowledgedBefore,
    /// Ours includes the SYN or the FIN, which have sequence numbers.
    WithControl,
    /// The capture has it twice.
    SamePacket,
    /// Ours is the first frame with this acknowledgement.
    FirstOfNumber,
    /// The handshake was not captured, or one of its SYNs was retransmitted.
    NoHandshake,
}

/// A value of both.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub value: Value,
    pub ours: Option<i64>,
    pub theirs: Option<i64>,
}

impl Differences {
    /// The differences in the file.
    pub fn known() -> Self {
        toml::from_str(include_str!("differences.toml")).expect("the file of differences is in order")
    }
}

impl EventDifference {
    /// Whether it explains the events of a frame.
    pub fn explains(&self, [ours, theirs]: [Events; 2], seen: &Observation, passed: &Passed) -> bool {
        let within =
            |names: &[String], events: Events| events.names().all(|name| names.iter().any(|known| known == name));
        within(&self.ours, ours)
            && within(&self.theirs, theirs)
            && self.ours.is_empty() == ours.is_empty()
            && self.theirs.is_empty() == theirs.is_empty()
            && self.with.iter().all(|name| seen.events.names().any(|own| own == name))
            && self.check.of_frame(seen, passed)
    }
}

impl ValueDifference {
    /// Whether it explains the values of a frame.
    pub fn explains(&self, capture: &str, pair: Pair, seen: &Observation, theirs: &Frame, passed: &Passed) -> bool {
        self.values.contains(&pair.value)
            && (self.captures.is_empty() || self.captures.iter().any(|known| known == capture))
            && self.check.of_value(pair, seen, theirs, passed)
    }
}

impl Check {
    fn of_frame(self, seen: &Observation, passed: &Passed) -> bool {
        let (own, other) = (passed.by(seen.from), passed.by(seen.from.other()));
        let (start, end) = range(seen);
        let newly = || {
            let from = other.acknowledged.unwrap_or(seen.acknowledged?);
            let to = seen.acknowledged?;
            Some(other.count(from, to) - (to - from).max(0))
        };
        match self {
            Self::Marked => true,
            Self::SentBefore => own.has_any(start, end),
            Self::NeverSent => !own.has_any(start, end),
            Self::NothingOutstanding => seen.acknowledged.is_some_and(|acknowledged| acknowledged >= other.highest),
            Self::WindowClosed => other.window == Some(0),
            Self::Probed => other.probed(),
            Self::AcknowledgesUnseen => newly().is_some_and(|surplus| surplus < 0),
            Self::AcknowledgesSeen => newly() == Some(0),
            Self::FollowsOn => start <= own.highest,
            Self::FollowsAHole => start > own.highest,
            Self::ReachesWindow => {
                let allowed = own.acknowledged.zip(other.window).map(|(from, window)| from + window as i64);
                allowed == Some(end)
            }
            Self::IsAcknowledged => own.acknowledged.is_some_and(|acknowledged| acknowledged >= end),
            _ => false,
        }
    }

    fn of_value(self, pair: Pair, seen: &Observation, frame: &Frame, passed: &Passed) -> bool {
        let (own, other) = (passed.by(seen.from), passed.by(seen.from.other()));
        let Pair { ours, theirs, .. } = pair;
        match self {
            Self::EarlierFrame => {
                let of = frame.values.get(&Value::RetransmissionOf).map(|of| *of as u64);
                let since = of.and_then(|of| own.time(of)).map(|before| seen.time.since(before).as_nanos() as i64);
                let before = seen.retransmission.and_then(|again| again.of_frame);
                of.is_some() && of <= before && since == frame.values.get(&Value::RetransmissionAfter).copied()
            }
            Self::NoneOfTheirs => theirs.is_none(),
            Self::NoneOfOurs => ours.is_none() && self.never(seen, passed),
            Self::OnlyTheirDuplicate => {
                ours.is_none() && Events(frame.events.0 & !seen.events.0).contains(Events::DUPLICATE_ACK)
            }
            Self::MeasuredOnce => theirs.is_none() && seen.round_trip.is_some_and(|(_, of)| !other.is_ambiguous(of)),
            Self::FromProbe => {
                theirs.zip(ours).is_some_and(|(theirs, ours)| theirs < ours && other.is_byte(theirs as u64))
            }
            Self::MoreDuplicates => {
                theirs.zip(ours.or(Some(0))).is_some_and(|(theirs, ours)| theirs - ours <= other.more_duplicates + 1)
            }
            Self::SumSincePush => ours == Some(own.since_push(seen)),
            Self::NoTime => ours == Some(0),
            Self::Ambiguous => {
                let of = frame.values.get(&Value::RoundTripOf).map(|of| *of as u64);
                ours.is_none() && of.is_some_and(|of| other.is_ambiguous(of))
            }
            Self::LessSelective => {
                let (start, end) = range(seen);
                let from = own.acknowledged.unwrap_or(start);
                let mut with = own.clone();
                with.sent.push((seen.frame, seen.time, start, end));
                // tshark does not count the SYN and the FIN either.
                let control = i64::from(seen.flags.0 & (Flags::SYN | Flags::FIN).0 != 0);
                let least = with.count(from, own.highest.max(end)) - own.selective - control;
                theirs.zip(ours).is_some_and(|(theirs, ours)| (least..ours).contains(&theirs))
            }
            Self::MoreLate => {
                let (start, end) = range(seen);
                let flight = own.late_from(start).map(|from| own.highest.max(end) - from);
                theirs > ours && theirs <= flight
            }
            Self::AcknowledgedBefore => ours.is_none() && other.acknowledged >= seen.acknowledged,
            Self::WithControl => {
                let control = seen.flags.0 & (Flags::SYN | Flags::FIN).0 != 0;
                control && ours.zip(theirs).is_some_and(|(ours, theirs)| ours == theirs + 1)
            }
            Self::SamePacket => seen.events.contains(Events::HARDWARE_DUPLICATE),
            Self::FirstOfNumber => ours == Some(other.acknowledged_in as i64),
            Self::NoHandshake => ours.is_none() && End::BOTH.iter().any(|end| passed.by(*end).count_syns() != 1),
            Self::AllAcknowledged => ours == Some(0) && own.acknowledged >= Some(own.highest),
            Self::Marked => true,
            check => check.of_frame(seen, passed),
        }
    }

    fn never(self, seen: &Observation, passed: &Passed) -> bool {
        Self::NeverSent.of_frame(seen, passed)
    }
}
