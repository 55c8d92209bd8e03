//! Detects spurious retransmissions by counting acknowledgements, from a capture at one end and
//! without selective acknowledgements.
//!
//! A receiver acknowledges at once a segment that arrives out of order, fills a hole (RFC 5681
//! §4.2) or contains only received data (RFC 9293 §3.10.7.4). It acknowledges no arrival twice. So
//! each duplicate or advancing acknowledgement answers a transmission of its own. On a path without
//! reordering, this transmission is later than that of the previous acknowledgement. The state here
//! is the *latest* transmission that each acknowledgement can answer. When later acknowledgements
//! need the later transmissions, it moves back. All data below an acknowledgement had arrived by
//! the transmission that it answers: a retransmission of it after that one was spurious.
//!
//! Timestamps narrow it further. While the receiver certainly holds data beyond a hole, it
//! acknowledges every arrival at once. Then an advancing acknowledgement echoes the timestamp of
//! exactly the transmission that it answers (RFC 7323 §4.3).
//!
//! Acknowledgements that are lost, delayed or omitted only leave more candidates. Reordering, or a
//! network that duplicates packets, can mislead the method; receivers that combine arrivals cannot.

use std::collections::VecDeque;

use crate::outstanding::Outstanding;
use crate::spurious::{Detector, Resent, Retransmissions, Spurious, SpuriousCounts};

/// Maximum number of stored transmissions, and of stored answers; older ones count as unknown.
const REMEMBERED: usize = 512;

/// The latest transmissions of a direction and their answers. They are stored from its first
/// retransmission until new data that was sent after the last one is acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    transmissions: VecDeque<Transmitted>,
    answers: VecDeque<Answer>,
    /// Number of transmissions that are no longer stored.
    forgotten: u64,
    /// End of the first new data that was sent after the last retransmission.
    fresh: Option<i64>,
    /// Minimum number of segments that the receiver holds beyond the hole.
    held: usize,
    /// Start of the hole, if no other hole was retransmitted.
    hole: Option<i64>,
}

/// A segment that the receiver answers.
#[derive(Clone, Copy, Debug)]
struct Transmitted {
    start: i64,
    end: i64,
    frame: u64,
    /// The sender's clock in its timestamp; 0 without one.
    stamp: u32,
    /// Whether it is a retransmission.
    again: bool,
    /// Whether it is a retransmission without a verdict.
    undecided: bool,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// The acknowledged offset before, and now: equal for a duplicate.
    from: i64,
    to: i64,
    /// The timestamp of the transmission that it answers, if known.
    stamp: Option<u32>,
    /// Number of the latest transmission that it can answer, from 1; 0 if that is none of the
    /// stored ones.
    latest: u64,
}

impl Arrivals {
    /// Begins with the outstanding data when a part of it has just been retransmitted, after
    /// `duplicates` duplicate acknowledgements: each of them is for another segment beyond the
    /// hole.
    pub(crate) fn begin(outstanding: &Outstanding, resent: &Resent, stamp: u32, duplicates: u32) -> Self {
        let mut transmissions: Vec<Transmitted> = outstanding
            .first_transmissions()
            .map(|(start, end, first)| Transmitted {
                start,
                end,
                frame: first.frame,
                stamp: first.stamp,
                again: false,
                undecided: false,
            })
            .collect();
        transmissions.sort_unstable_by_key(|sent| (sent.frame, sent.start));
        let (held, hole) = (duplicates as usize, Some(resent.start));
        let mut arrivals = Self { transmissions: transmissions.into(), held, hole, ..Self::default() };
        arrivals.again(resent, stamp);
        arrivals
    }

    /// Adds a retransmission.
    pub(crate) fn again(&mut self, resent: &Resent, stamp: u32) {
        let Resent { start, end, frame, verdict, refused, .. } = *resent;
        let undecided = verdict.is_none() && !refused;
        self.fresh = None;
        self.hole = self.hole.filter(|hole| *hole == start);
        self.transmitted(Transmitted { start, end, frame, stamp, again: true, undecided });
    }

    /// Adds any other segment that the receiver answers, from `start` to before `end`; `new` if a
    /// part of it is new data.
    pub(crate) fn other(&mut self, (start, end): (i64, i64), frame: u64, stamp: u32, new: bool) {
        if new {
            self.fresh.get_or_insert(end);
        }
        self.transmitted(Transmitted { start, end, frame, stamp, again: false, undecided: false });
    }

    fn transmitted(&mut self, sent: Transmitted) {
        self.transmissions.push_back(sent);
        while self.transmissions.len() > REMEMBERED {
            self.transmissions.pop_front();
            self.forgotten += 1;
        }
    }

    /// Whether nothing remains to be detected once all data below `acknowledged` is acknowledged:
    /// all retransmissions have been answered.
    pub(crate) fn is_over(&self, acknowledged: i64) -> bool {
        self.fresh.is_some_and(|fresh| acknowledged >= fresh)
    }

    /// Adds an acknowledgement from the previous offset to the current one, with the `echo` of a
    /// timestamp, or 0. Marks the retransmissions that it shows to be spurious; returns the last of
    /// them.
    pub(crate) fn answered(
        &mut self,
        (from, to): (i64, i64),
        echo: u32,
        retransmissions: &mut Retransmissions,
        counts: &mut SpuriousCounts,
    ) -> Option<Spurious> {
        if self.answers.len() == REMEMBERED {
            self.answers.pop_front();
        }
        let stamp = self.known_stamp(from, to, echo);
        self.answers.push_back(Answer { from, to, stamp, latest: 0 });
        let mut before = self.forgotten + self.transmissions.len() as u64 + 1;
        let mut spurious = None;
        for at in (0..self.answers.len()).rev() {
            let mut answer = self.answers[at];
            let is_new = at + 1 == self.answers.len();
            if !is_new && (answer.latest < before || answer.latest == 0) {
                break;
            }
            answer.latest = self.latest(&answer, before);
            self.answers[at] = answer;
            before = answer.latest;
            if answer.latest == 0 {
                break;
            }
            spurious = self.decide(&answer, retransmissions, counts).or(spurious);
        }
        spurious
    }

    /// Counts the segments that the receiver holds beyond the hole. Returns the echo if it is the
    /// timestamp of the transmission that the receiver answers: that of an advancing
    /// acknowledgement which leaves segments held.
    fn known_stamp(&mut self, from: i64, to: i64, echo: u32) -> Option<u32> {
        if from == to {
            // Without other retransmissions, it is for new data beyond the hole.
            self.held += usize::from(self.hole == Some(to));
            return None;
        }
        self.hole = None;
        let within =
            self.transmissions.iter().filter(|sent| !sent.again && sent.start > from && sent.start < to).count();
        self.held = if self.forgotten > 0 { 0 } else { self.held.saturating_sub(within) };
        (self.held > 0 && echo != 0).then_some(echo)
    }

    /// The number of the latest transmission before the one numbered `before` that an
    /// acknowledgement can answer.
    fn latest(&self, answer: &Answer, before: u64) -> u64 {
        let below = usize::try_from(before - 1 - self.forgotten).unwrap_or(0);
        let possible = |sent: &Transmitted| {
            if answer.from == answer.to {
                // A segment with the awaited byte would have advanced the acknowledgement.
                sent.start > answer.to || sent.end <= answer.to
            } else {
                let is_the_one = answer.stamp.is_none_or(|stamp| stamp == sent.stamp);
                sent.start < answer.to && sent.end > answer.from && is_the_one
            }
        };
        let place = self.transmissions.iter().take(below).rposition(possible);
        place.map_or(0, |place| self.forgotten + place as u64 + 1)
    }

    /// A retransmission after the answered transmission was spurious if the acknowledgement covers
    /// it.
    fn decide(
        &mut self,
        answer: &Answer,
        retransmissions: &mut Retransmissions,
        counts: &mut SpuriousCounts,
    ) -> Option<Spurious> {
        let after = usize::try_from(answer.latest - self.forgotten).unwrap_or(0);
        let mut last = None;
        for sent in self.transmissions.range_mut(after..).filter(|sent| sent.undecided && sent.end <= answer.to) {
            sent.undecided = false;
            last = retransmissions.verdict_of(sent.frame, Detector::ExtraAcknowledgement, counts).or(last);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};
    use std::fmt::Write;

    use proptest::prelude::*;

    use crate::testing::play;
    use crate::{Detector, End};

    /// Bytes of a segment.
    const SEGMENT: i64 = 1000;

    /// A step of a transfer over a path without reordering. Lost segments never arrive.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// The sender sends new data.
        New { lost: bool },
        /// It retransmits an unacknowledged segment: the one at this share of them.
        Again { share: u8, lost: bool },
        /// The next segment arrives; its acknowledgement may be lost.
        Arrives { lost: bool },
        /// The next acknowledgement arrives.
        Answered,
    }

    fn step() -> impl Strategy<Value = Step> {
        let lost = || prop::bool::weighted(0.2);
        prop_oneof![
            3 => lost().prop_map(|lost| Step::New { lost }),
            2 => (any::<u8>(), lost()).prop_map(|(share, lost)| Step::Again { share, lost }),
            5 => prop::bool::weighted(0.1).prop_map(|lost| Step::Arrives { lost }),
            5 => Just(Step::Answered),
        ]
    }

    /// A sender with random behaviour, and a receiver that follows RFC 5681 §4.2.
    struct Transfer {
        exchange: String,
        millis: i64,
        frame: u64,
        timestamps: bool,
        /// Segments in flight, by number, and their timestamps; acknowledgements, and their echoes.
        forward: VecDeque<(i64, i64)>,
        back: VecDeque<(i64, i64)>,
        sent: i64,
        acknowledged: i64,
        /// Segments with a copy that has arrived or will arrive.
        through: BTreeSet<i64>,
        /// Frames that were sent although an earlier copy had arrived or would arrive.
        spurious: BTreeSet<u64>,
        /// The next segment that the receiver expects, and those that it has beyond it.
        next: i64,
        held: BTreeSet<i64>,
        recent: i64,
        last_answer: i64,
        pending: bool,
    }

    impl Transfer {
        fn new(timestamps: bool) -> Self {
            let stamps = |value, echo| if timestamps { format!(" ts {value},{echo}") } else { String::new() };
            let exchange = format!("0 > syn{}\n1 < syn ack 0{}\n2 > ack 0\n", stamps(5000, 0), stamps(1, 5000));
            Self {
                exchange,
                millis: 10,
                frame: 3,
                timestamps,
                forward: VecDeque::new(),
                back: VecDeque::new(),
                sent: 0,
                acknowledged: 0,
                through: BTreeSet::new(),
                spurious: BTreeSet::new(),
                next: 0,
                held: BTreeSet::new(),
                recent: 5000,
                last_answer: 0,
                pending: false,
            }
        }

        fn line(&mut self, what: &str, stamps: (i64, i64)) {
            self.frame += 1;
            write!(self.exchange, "{} {what}", self.millis).unwrap();
            if self.timestamps {
                write!(self.exchange, " ts {},{}", stamps.0, stamps.1).unwrap();
            }
            self.exchange.push('\n');
        }

        fn send(&mut self, number: i64, lost: bool) {
            // Several segments leave in one tick of the timestamp clock.
            let stamp = 5000 + self.millis / 3;
            self.line(&format!("> data {}..{} ack 0", number * SEGMENT, (number + 1) * SEGMENT), (stamp, 9));
            if self.through.contains(&number) {
                self.spurious.insert(self.frame);
            }
            if !lost {
                self.through.insert(number);
                self.forward.push_back((number, stamp));
            }
        }

        fn arrive(&mut self, lost: bool) {
            let Some((number, stamp)) = self.forward.pop_front() else { return };
            if number <= self.last_answer && stamp >= self.recent {
                self.recent = stamp;
            }
            let in_order = number == self.next && self.held.is_empty();
            if number == self.next {
                self.next += 1;
                while self.held.remove(&self.next) {
                    self.next += 1;
                }
            } else if number > self.next {
                self.held.insert(number);
            }
            // Only a segment in order, with no hole, may be acknowledged later together with
            // another one.
            self.pending = in_order && !self.pending;
            if !self.pending {
                self.last_answer = self.next;
                if !lost {
                    self.back.push_back((self.next, self.recent));
                }
            }
        }

        fn take(&mut self, step: Step) {
            self.millis += 1;
            match step {
                Step::New { lost } => {
                    self.send(self.sent, lost);
                    self.sent += 1;
                }
                Step::Again { share, lost } if self.acknowledged < self.sent => {
                    let outstanding = self.sent - self.acknowledged;
                    self.send(self.acknowledged + i64::from(share) * outstanding / 256, lost);
                }
                Step::Again { .. } => {}
                Step::Arrives { lost } => self.arrive(lost),
                Step::Answered => {
                    if let Some((next, echo)) = self.back.pop_front() {
                        self.line(&format!("< ack {}", next * SEGMENT), (20, echo));
                        self.acknowledged = self.acknowledged.max(next);
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 4))]

        /// On a path without reordering no necessary retransmission is reported as spurious,
        /// whatever is sent, lost and acknowledged.
        #[test]
        fn none_that_was_needed_is_called_spurious(
            steps in prop::collection::vec(step(), 1..160),
            timestamps in any::<bool>(),
        ) {
            let mut transfer = Transfer::new(timestamps);
            steps.into_iter().for_each(|step| transfer.take(step));
            let (connection, _) = play(&transfer.exchange);
            let counted = connection.spurious(End::Client).filter(|spurious| spurious.detector == Detector::ExtraAcknowledgement);
            for spurious in counted {
                prop_assert!(transfer.spurious.contains(&spurious.frame), "frame {}\n{}", spurious.frame, transfer.exchange);
            }
        }
    }
}
