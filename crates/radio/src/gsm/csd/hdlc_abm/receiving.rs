//! The receiving side of a station: missing frames, and the supervision that it has to send.

use std::collections::VecDeque;

use airpath_core::Instant;

use super::{Information, Settings, Supervision};

/// Frames after a missing one, and the supervision that is to be sent.
#[derive(Clone, Debug, Default)]
pub struct Receiving {
    /// V(R): the first that is missing.
    next: u64,
    /// That one and those behind it, up to the last that came.
    slots: VecDeque<Slot>,
    /// How many of them are to be requested.
    missing: u32,
    /// An acknowledgement is due.
    acknowledgement: bool,
    /// An answer to a poll is due.
    answer: bool,
    /// REJ is due.
    reject: bool,
    /// When the frame that was requested by REJ is requested again.
    rejected: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    /// It is to be requested.
    Missing,
    /// It was requested, and is requested again then.
    Requested(Instant),
    /// It has arrived, with this number of octets.
    Here(u32),
}

impl Receiving {
    /// Whether it has supervision to send, or will have.
    pub fn wants_to_speak(&self) -> bool {
        self.acknowledgement || self.answer || self.reject || self.rejected.is_some() || !self.slots.is_empty()
    }

    /// Whether it has supervision to send at `now`.
    pub fn wants_to_speak_now(&self, now: Instant) -> bool {
        self.acknowledgement
            || self.answer
            || self.reject
            || self.missing > 0
            || self.next_repetition().is_some_and(|again| again <= now)
    }

    /// When it requests the longest missing frame again.
    pub fn next_repetition(&self) -> Option<Instant> {
        let requested = self.slots.iter().filter_map(|slot| match slot {
            Slot::Requested(again) => Some(*again),
            _ => None,
        });
        requested.chain(self.rejected).min()
    }

    /// The peer wants an answer. It will send again all that is missing, and all behind that.
    pub fn answer(&mut self) {
        self.answer = true;
        self.slots.clear();
        self.missing = 0;
        (self.reject, self.rejected) = (false, None);
    }

    /// Whether an answer is due, which the caller gives.
    pub fn take_answer(&mut self) -> bool {
        let due = std::mem::take(&mut self.answer);
        self.acknowledgement &= !due;
        due
    }

    /// RR.
    pub const fn ready(&self) -> Supervision {
        Supervision::Ready(self.next)
    }

    /// The supervision to send at `now`; it counts as sent.
    pub fn supervision(&mut self, now: Instant, settings: &Settings) -> Supervision {
        let again = now + settings.acknowledgement_timer;
        if let Some(number) = self.take_missing(now, again) {
            return Supervision::SelectiveReject(number);
        }
        self.acknowledgement = false;
        if self.reject || self.rejected.is_some_and(|again| again <= now) {
            (self.reject, self.rejected) = (false, Some(again));
            return Supervision::Reject(self.next);
        }
        self.ready()
    }

    /// The first frame to request.
    fn take_missing(&mut self, now: Instant, again: Instant) -> Option<u64> {
        let is_due = |slot: &Slot| match slot {
            Slot::Missing => true,
            Slot::Requested(again) => *again <= now,
            Slot::Here(_) => false,
        };
        let index = self.slots.iter().position(is_due)?;
        self.missing -= u32::from(matches!(self.slots[index], Slot::Missing));
        self.slots[index] = Slot::Requested(again);
        Some(self.next + index as u64)
    }

    /// Takes in the user data of a frame. Returns how many octets are now in sequence.
    pub fn take(&mut self, information: Information, settings: &Settings) -> u64 {
        let Information { number, octets, .. } = information;
        let Some(index) = number.checked_sub(self.next).map(|index| index as usize) else {
            // It is here already: the acknowledgement was lost.
            self.acknowledgement = true;
            return 0;
        };
        if index == 0 {
            return self.advance(octets);
        }
        if !settings.selective {
            self.reject |= self.rejected.is_none();
            return 0;
        }
        while self.slots.len() <= index {
            self.slots.push_back(Slot::Missing);
            self.missing += 1;
        }
        self.missing -= u32::from(matches!(self.slots[index], Slot::Missing));
        self.slots[index] = Slot::Here(octets);
        0
    }

    /// The first that was missing is there: it and those behind it leave.
    fn advance(&mut self, octets: u32) -> u64 {
        self.acknowledgement = true;
        (self.reject, self.rejected) = (false, None);
        self.next += 1;
        let mut delivered = u64::from(octets);
        if let Some(first) = self.slots.pop_front() {
            self.missing -= u32::from(matches!(first, Slot::Missing));
        }
        while let Some(Slot::Here(octets)) = self.slots.front() {
            delivered += u64::from(*octets);
            self.next += 1;
            self.slots.pop_front();
        }
        delivered
    }
}
