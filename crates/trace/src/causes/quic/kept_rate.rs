//! The rate that the data of a QUIC flow keeps over round trips, and whether it is that of the
//! path.
//!
//! A queue that an AQM keeps short hardly lengthens round trips. What shows a full link then is
//! that more data in flight gives no higher rate: a sender that is limited by a window has the same
//! data in each round trip, and one that has not filled the link yet is faster with more.

use std::collections::VecDeque;

use airpath_core::Span;

/// Round trips that are stored.
const STORED: usize = 32;

/// Round trips in a row that have a rate which is kept.
const KEPT_FOR: usize = 4;

/// A rate is equal to another one within this part of it.
const EQUAL_WITHIN: f64 = 0.1;

/// The data of round trips with an equal rate differs by this factor, if the link is full. It is
/// less than this if the round trips are equal, too.
const FLIGHTS_DIFFER: f64 = 1.2;

/// At most this part of the round trips is faster than the rate of a link.
const FASTER: usize = 8;

/// The data of a round trip.
#[derive(Clone, Copy, Debug)]
struct Turn {
    bytes: f64,
    nanos: f64,
}

impl Turn {
    fn rate(&self) -> f64 {
        self.bytes / self.nanos
    }
}

/// The data of the last round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptRate {
    turns: VecDeque<Turn>,
    /// Bytes since the last turn, and those of the turn before it.
    bytes: u64,
    before: u64,
    /// Whether the last turn has the rate of the path.
    has_path_rate: bool,
}

impl KeptRate {
    /// A datagram with data passed the capture.
    pub(super) const fn carried(&mut self, length: u32) {
        self.bytes = self.bytes.saturating_add(length as u64);
    }

    /// A round trip is over. What the near end sent in one arrives in the next.
    pub(super) fn turn(&mut self, round_trip: Span, is_sent: bool) {
        let passed = std::mem::take(&mut self.bytes);
        let before = std::mem::replace(&mut self.before, passed);
        let bytes = if is_sent { before } else { passed } as f64;
        self.has_path_rate = false;
        if bytes == 0.0 || round_trip.is_zero() {
            return;
        }
        if self.turns.len() == STORED {
            self.turns.pop_front();
        }
        self.turns.push_back(Turn { bytes, nanos: round_trip.as_nanos() as f64 });
        self.has_path_rate = self.judge();
    }

    /// A pause: the present turn shows no rate.
    pub(super) const fn skip_turn(&mut self) {
        (self.bytes, self.before, self.has_path_rate) = (0, 0, false);
    }

    /// The other end sends from now on.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Whether the last round trip has the rate of the path.
    pub(super) const fn has_path_rate(&self) -> bool {
        self.has_path_rate
    }

    fn judge(&mut self) -> bool {
        let turns = self.turns.make_contiguous();
        let Some((_, last)) = turns.split_last_chunk::<KEPT_FOR>() else { return false };
        let kept = turns.windows(KEPT_FOR).map(|turns| turns.iter().map(Turn::rate).fold(f64::MAX, f64::min));
        let highest = kept.fold(0.0, f64::max);
        let is_kept = |rate: f64| (rate - highest).abs() <= highest * EQUAL_WITHIN;
        let mean = |turns: &[Turn]| {
            turns.iter().map(|turn| turn.bytes).sum::<f64>() / turns.iter().map(|turn| turn.nanos).sum::<f64>()
        };
        let faster = turns.iter().filter(|turn| turn.rate() > highest * (1.0 + EQUAL_WITHIN)).count();
        let flights = || turns.iter().filter(|turn| is_kept(turn.rate())).map(|turn| turn.bytes);
        let differ = flights().fold(0.0, f64::max) >= flights().fold(f64::MAX, f64::min) * FLIGHTS_DIFFER;
        (0..KEPT_FOR).any(|from| is_kept(mean(&last[from..]))) && faster * FASTER <= turns.len() && differ
    }
}
