//! Needless retransmissions found by counting acknowledgements: without selective ones, from one end.
//!
//! A receiver acknowledges at once what arrives out of order, what fills a hole (RFC 5681 §4.2) and what it has already
//! (RFC 9293 §3.10.7.4), and it acknowledges no arrival twice. So each acknowledgement that repeats another, or gets on, answers a
//! transmission of its own; and on a path that keeps the order, a later one than the acknowledgement before it. Of each is known
//! here the *latest* transmission that it can answer. When later acknowledgements take the later transmissions for themselves,
//! that moves back. All below an acknowledgement had arrived by the transmission that it answers: what was sent again after that
//! one was needless.
//!
//! Timestamps narrow it further. While the receiver certainly holds something beyond a hole, it acknowledges every arrival at once, so that
//! an acknowledgement that gets on echoes the timestamp of the very transmission that it answers (RFC 7323 §4.3).
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
    /// Segments that the receiver holds beyond the hole, at least.
    held: usize,
    /// Where the one hole begins of which alone anything was sent again.
    hole: Option<i64>,
}

/// A segment that makes the receiver answer.
#[derive(Clone, Copy, Debug)]
struct Transmitted {
    start: i64,
    end: i64,
    frame: u64,
    /// The sender's clock in its timestamp; 0 without one.
    stamp: u32,
    /// It is a retransmission.
    again: bool,
    /// It is one without a verdict.
    undecided: bool,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// What was acknowledged before, and is now: the same if it is a repetition.
    from: i64,
    to: i64,
    /// The timestamp of what it answers, if that is known.
    stamp: Option<u32>,
    /// The number of the latest transmission that it can answer, counted from 1; 0 if that is none of those remembered.
    latest: u64,
}

impl Arrivals {
    /// Begins with what is outstanding when something of it has just been sent again, after so many duplicate acknowledgements: each of
    /// them is for another segment beyond the hole.
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

    /// A retransmission passed.
    pub(crate) fn again(&mut self, resent: &Resent, stamp: u32) {
        let Resent { start, end, frame, .. } = *resent;
        self.fresh = None;
        self.hole = self.hole.filter(|hole| *hole == start);
        self.transmitted(Transmitted { start, end, frame, stamp, again: true, undecided: resent.verdict.is_none() });
    }

    /// Anything else passed that the receiver answers, from `start` to before `end`; some of it is `new`.
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

    /// Whether nothing more can be learnt once everything below `acknowledged` is: whatever was sent again has been answered.
    pub(crate) fn is_over(&self, acknowledged: i64) -> bool {
        self.fresh.is_some_and(|fresh| acknowledged >= fresh)
    }

    /// An acknowledgement came: from what was acknowledged before to what is now, with the `echo` of a timestamp, or 0. Gives the verdict to the retransmissions that this
    /// shows to have been needless; returns the last of them.
    pub(crate) fn answered(
        &mut self,
        (from, to): (i64, i64),
        echo: u32,
        retransmissions: &mut Retransmissions,
        counts: &mut [u64; Detector::ALL.len()],
    ) -> Option<Needless> {
        if self.answers.len() == REMEMBERED {
            self.answers.pop_front();
        }
        let stamp = self.known_stamp(from, to, echo);
        self.answers.push_back(Answer { from, to, stamp, latest: 0 });
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

    /// Counts what the receiver holds beyond the hole. Returns the echo if it is the timestamp of what made the receiver answer: of an
    /// acknowledgement that gets on, and leaves something held.
    fn known_stamp(&mut self, from: i64, to: i64, echo: u32) -> Option<u32> {
        if from == to {
            // Without other retransmissions, it is for something new beyond the hole.
            self.held += usize::from(self.hole == Some(to));
            return None;
        }
        self.hole = None;
        let within =
            self.transmissions.iter().filter(|sent| !sent.again && sent.start > from && sent.start < to).count();
        self.held = if self.forgotten > 0 { 0 } else { self.held.saturating_sub(within) };
        (self.held > 0 && echo != 0).then_some(echo)
    }

    /// The number of the latest transmission before the one numbered `before` that an acknowledgement can answer.
    fn latest(&self, answer: &Answer, before: u64) -> u64 {
        let below = usize::try_from(before - 1 - self.forgotten.min(before - 1)).unwrap_or(0);
        let possible = |sent: &Transmitted| {
            if answer.from == answer.to {
                // What carried the byte that is waited for would have made it get on.
                sent.start > answer.to || sent.end <= answer.to
            } else {
                let is_the_one = answer.stamp.is_none_or(|stamp| stamp == sent.stamp);
                sent.start < answer.to && sent.end > answer.from && is_the_one
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
