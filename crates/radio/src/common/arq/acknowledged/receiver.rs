//! The receiving end: which PDUs have come, and how far the stream is complete.

use std::collections::VecDeque;

use super::bits::Bits;
use super::{Pdu, Status};

/// What a PDU was to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// The next one, or one that was missing.
    New,
    /// One that shows others before it to be missing, which were not known to be.
    Gap,
    /// One that it has, or one outside its window.
    Useless,
}

/// The receiver of one direction.
#[derive(Clone, Debug)]
pub struct Receiver {
    window: u64,
    /// The lowest number that is missing.
    next_expected: u64,
    /// One more than the highest number that has come, at least `next_expected`.
    highest: u64,
    received: Bits,
    /// Where in the stream the PDUs from `next_expected` to `highest` end; unset for those that are
    /// missing.
    ends: VecDeque<u64>,
    /// The stream is complete up to here.
    complete: u64,
}

impl Receiver {
    /// A receiver that has nothing.
    pub fn new(window: u64) -> Self {
        Self { window, next_expected: 0, highest: 0, received: Bits::default(), ends: VecDeque::new(), complete: 0 }
    }

    /// Takes a PDU that was decoded.
    pub fn receive(&mut self, pdu: &Pdu) -> Reception {
        let sequence = pdu.sequence;
        if sequence < self.next_expected || sequence >= self.next_expected + self.window || self.received.has(sequence)
        {
            return Reception::Useless;
        }
        self.received.insert(sequence);
        let place = (sequence - self.next_expected) as usize;
        if self.ends.len() <= place {
            self.ends.resize(place + 1, 0);
        }
        self.ends[place] = pdu.offset + u64::from(pdu.length);
        let gap = sequence > self.highest;
        self.highest = self.highest.max(sequence + 1);
        if place == 0 {
            let next = self.received.first_gap_from(sequence);
            let mut in_sequence = self.ends.drain(..(next - self.next_expected) as usize);
            self.complete = in_sequence.next_back().expect("the PDU that was just received is among them");
            self.next_expected = next;
            self.received.forget_below(next);
        }
        if gap { Reception::Gap } else { Reception::New }
    }

    /// The sender has given up what comes before PDU `sequence`, and the packets that end in the
    /// stream up to `end`: nothing of that is waited for any more.
    pub fn skip(&mut self, sequence: u64, end: u64) {
        if sequence <= self.next_expected {
            return;
        }
        let gone = ((sequence - self.next_expected) as usize).min(self.ends.len());
        self.ends.drain(..gone);
        self.highest = self.highest.max(sequence);
        self.complete = self.complete.max(end);
        let next = self.received.first_gap_from(sequence);
        if let Some(complete) = self.ends.drain(..(next - sequence) as usize).next_back() {
            self.complete = complete;
        }
        self.next_expected = next;
        self.received.forget_below(next);
    }

    /// The stream is complete up to here: [`Sender::hand_over`](super::Sender::hand_over) delivers
    /// what ends before.
    #[inline]
    pub const fn complete(&self) -> u64 {
        self.complete
    }

    /// The lowest number that is missing: V(Q), VR(R).
    #[inline]
    pub const fn next_expected(&self) -> u64 {
        self.next_expected
    }

    /// One more than the highest number that has come: V(R), VR(H).
    #[inline]
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether a PDU below the highest one is missing.
    #[inline]
    pub const fn has_gap(&self) -> bool {
        self.next_expected < self.highest
    }

    /// Writes what it has into `status`, whose memory is used again: a bitmap of all from the first
    /// missing PDU to the highest that has come.
    pub fn report(&self, status: &mut Status) {
        self.report_from(self.next_expected, status);
    }

    /// As [`Self::report`], with a bitmap that begins with PDU `from` or, if that has moved on,
    /// with the first missing one.
    pub fn report_from(&self, from: u64, status: &mut Status) {
        status.next_expected = self.next_expected;
        status.from = from.clamp(self.next_expected, self.highest);
        status.to = self.highest;
        status.words.clear();
        let indexes = status.indexes();
        status.words.extend(indexes.map(|index| self.received.word(index)));
    }

    /// Changes the window: a larger one, as a smaller one would exclude PDUs in flight.
    pub fn grow(&mut self, window: u64) {
        self.window = self.window.max(window);
    }

    /// Forgets all, and expects what the sender sends after its reset or restart: PDU
    /// [`Sender::next_sequence`](super::Sender::next_sequence), from
    /// [`Sender::cut`](super::Sender::cut) on in the stream. What was sent before is useless then.
    pub fn restart(&mut self, sequence: u64, complete: u64) {
        self.next_expected = sequence;
        self.highest = sequence;
        self.complete = complete;
        self.ends.clear();
        self.received.restart(sequence);
    }
}
