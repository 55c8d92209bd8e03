//! Needless retransmissions found by counting acknowledgements: without selective ones, without timestamps, from one end.
//!
//! A receiver acknowledges at once what arrives out of order, what fills a hole (RFC 5681 §4.2) and what it has already
//! (RFC 9293 §3.10.7.4), and it acknowledges no arrival twice. So each acknowledgement that repeats another, or gets on, answers a
//! transmission of its own; and on a path that keeps the order, a later one than the acknowledgement before it. Of each is known
//! here the *latest* transmission that it can answer. When later acknowledgements take the later transmissions for themselves,
//! that moves back. All below an acknowledgement had arrived by the transmission that it answers: what was sent again after that
//! one was needless.
//!
//! Acknowledgements that are lost, delayed or left out only leave more possible. Reordering, or a network that duplicates
//! packets, can mislead it; receivers that combine arrivals cannot.

use std::collections::VecDeque;

use super::needless::{Resent, Retransmissions};
use super::outstanding::Outstanding;
use super::{Detector, Needless};

/// Transmissions, and answers, remembered at most; older ones are as good as unknown.
const REMEMBERED: usize = 512;

/// The latest transmissions of a direction and their answers, from its first retransmission until something new that was sent after
/// the last one is acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    transmissions: VecDeque<Transmitted>,
    answers: VecDeque<Answer>,
    /// Transmissions that were forgotten.
    forgotten: u64,
    /// Where the first new data ends that was sent after the last retransmission.
    fresh: Option<i64>,
}

/// A segment that makes the receiver answer.
#[derive(Clone, Copy, Debug)]
struct Transmitted {
    start: i64,
    end: i64,
    frame: u64,
    /// It is a retransmission without a verdict.
    undecided: bool,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// What was acknowledged before, and is now: the same if it is a repetition.
    from: i64,
    to: i64,
    /// The number of the latest transmission that it can answer, counted from 1; 0 if that is none of those remembered.
    latest: u64,
}

impl Arrivals {
    /// Begins with what is outstanding when something of it has just been sent again.
    pub(crate) fn begin(outstanding: &Outstanding, resent: &Resent) -> Self {
        let mut transmissions: Vec<Transmitted> = outstanding
            .first_transmissions()
            .map(|(start, end, first)| Transmitted { start, end, frame: first.frame, undecided: false })
            .collect();
        transmissions.sort_unstable_by_key(|sent| (sent.frame, sent.start));
        let mut arrivals = Self { transmissions: transmissions.into(), ..Self::default() };
        arrivals.again(resent);
        arrivals
    }

    /// A retransmission passed.
    pub(crate) fn again(&mut self, resent: &Resent) {
        let Resent { start, end, frame, .. } = *resent;
        self.fresh = None;
        self.transmitted(Transmitted { start, end, frame, undecided: resent.verdict.is_none() });
    }

    /// Anything else passed that the receiver answers, from `start` to before `end`; some of it is `new`.
    pub(crate) fn other(&mut self, start: i64, end: i64, frame: u64, new: bool) {
        if new {
            self.fresh.get_or_insert(end);
        }
        self.transmitted(Transmitted { start, end, frame, undecided: false });
    }

    fn transmitted(&mut self, sent: Transmitted) {
        self.transmissions.push_back(sent);
        while self.transmissions.len() > REMEMBERED {
            self.transmissions.pop_front();
            self.forgotten += 1;
        }
    }

    /// Whether nothing more can be learnt once everything below `acknowledged` is: whatever was sent again has been answered.
    pub(crate) fn is_over(&self, acknowledged: i64) -> bool {
        self.fresh.is_some_and(|fresh| acknowledged >= fresh)
    }

    /// An acknowledgement came: from what was acknowledged before to what is now. Gives the verdict to the retransmissions that this
    /// shows to have been needless; returns the last of them.
    pub(crate) fn answered(
        &mut self,
        from: i64,
        to: i64,
        retransmissions: &mut Retransmissions,
        counts: &mut [u64; Detector::ALL.len()],
    ) -> Option<Needless> {
        if self.answers.len() == REMEMBERED {
            self.answers.pop_front();
        }
        self.answers.push_back(Answer { from, to, latest: 0 });
        let mut before = self.forgotten + self.transmissions.len() as u64 + 1;
        let mut needless = None;
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
            needless = self.decide(&answer, retransmissions, counts).or(needless);
        }
        needless
    }

    /// The number of the latest transmission before the one numbered `before` that an acknowledgement can answer.
    fn latest(&self, answer: &Answer, before: u64) -> u64 {
        let below = usize::try_from(before - 1 - self.forgotten.min(before - 1)).unwrap_or(0);
        let possible = |sent: &Transmitted| {
            if answer.from == answer.to {
                // What carried the byte that is waited for would have made it get on.
                sent.start > answer.to || sent.end <= answer.to
            } else {
                sent.start < answer.to && sent.end > answer.from
            }
        };
        let place = self.transmissions.iter().take(below).rposition(possible);
        place.map_or(0, |place| self.forgotten + place as u64 + 1)
    }

    /// What was sent again after the transmission that an acknowledgement answers, though that covers it, was needless.
    fn decide(
        &mut self,
        answer: &Answer,
        retransmissions: &mut Retransmissions,
        counts: &mut [u64; Detector::ALL.len()],
    ) -> Option<Needless> {
        let after = usize::try_from(answer.latest - self.forgotten).unwrap_or(0);
        let mut last = None;
        for sent in self.transmissions.range_mut(after..).filter(|sent| sent.undecided && sent.end <= answer.to) {
            sent.undecided = false;
            last = retransmissions.verdict_of(sent.frame, Detector::ExtraAcknowledgement, counts).or(last);
        }
        last
    }
}
