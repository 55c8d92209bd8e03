//! Buffer status reports (TS 36.321 and TS 38.321 §5.4.5): when a mobile sends one, and what the
//! base station makes of it.

use std::collections::VecDeque;

use airpath_core::{Bytes, Instant, Span};

use super::config;
use crate::common::buffer_sizes::BufferSizes;

/// Bytes of a short report with its subheader (TS 36.321 and TS 38.321 §6.1.3.1).
pub const SHORT_REPORT: u32 = 2;

/// What the base station takes the highest level for, which has no limit: more than it can grant
/// before the next report.
const UNLIMITED: u64 = 1 << 40;

/// A buffer status report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStatus {
    /// The slot in which its block was sent first. The base station may receive the block some
    /// retransmissions later, after newer reports.
    pub at: Instant,
    /// Bytes that waited then at the mobile: at the base station, the limit of their level.
    pub bytes: u64,
    /// Some of them are voice.
    pub has_voice: bool,
    /// The block had no room for data beside it.
    pub is_alone: bool,
}

/// The reports of a mobile.
#[derive(Clone, Debug)]
pub struct Reporting {
    periodic: Span,
    retransmission: Span,
    /// A regular report is triggered: new data came to an empty buffer, or retxBSR-Timer expired.
    is_triggered: bool,
    periodic_at: Instant,
    retransmission_at: Option<Instant>,
}

impl Reporting {
    /// No report is due.
    pub const fn new(config: &config::Uplink) -> Self {
        Self {
            periodic: config.periodic_bsr,
            retransmission: config.retx_bsr,
            is_triggered: false,
            periodic_at: Instant::ZERO,
            retransmission_at: None,
        }
    }

    /// New data came to an empty buffer.
    pub const fn trigger(&mut self) {
        self.is_triggered = true;
    }

    /// Whether a scheduling request is needed unless there is a grant.
    #[inline]
    pub const fn is_triggered(&self) -> bool {
        self.is_triggered
    }

    /// When retxBSR-Timer expires.
    #[inline]
    pub const fn next_timer(&self) -> Option<Instant> {
        self.retransmission_at
    }

    /// retxBSR-Timer may have expired, with this number of bytes in the buffer.
    pub fn expire(&mut self, now: Instant, waiting: u64) {
        if self.retransmission_at.take_if(|at| *at <= now).is_some() && waiting > 0 {
            self.is_triggered = true;
        }
    }

    /// Whether a report goes before the data of a block: a triggered one, or a periodic one.
    #[inline]
    pub fn comes_first(&self, now: Instant) -> bool {
        self.is_triggered || self.periodic_at <= now
    }

    /// The mobile uses a grant.
    pub fn granted(&mut self, now: Instant) {
        self.retransmission_at = Some(now + self.retransmission);
    }

    /// A report goes in a block.
    pub fn sent(&mut self, now: Instant, waiting: u64) {
        self.is_triggered = false;
        self.periodic_at = now + self.periodic;
        self.retransmission_at = (waiting > 0).then_some(now + self.retransmission);
    }

    /// The connection is new.
    pub fn clear(&mut self) {
        (self.is_triggered, self.periodic_at, self.retransmission_at) = (false, Instant::ZERO, None);
    }
}

/// What is reported of this number of bytes: the limit of its level.
pub fn reported(waiting: u64, levels: &BufferSizes) -> u64 {
    levels.limit(levels.index(Bytes::new(waiting))).map_or(UNLIMITED, Bytes::get)
}

/// The base station's view of the buffer of a mobile.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// The last report.
    last: BufferStatus,
    /// Bytes of the grants for slots after that of the last report, with those slots.
    granted: VecDeque<(Instant, u64)>,
    sum: u64,
    /// Reports in transit, with the time from which they can be used.
    heard: VecDeque<(Instant, BufferStatus)>,
    /// The last report had voice, and no grant has followed.
    is_urgent: bool,
    /// A scheduling request that was not granted yet.
    is_requested: bool,
}

impl Knowledge {
    /// A scheduling request has come.
    pub const fn request(&mut self) {
        self.is_requested = true;
    }

    /// A report was received that can be used from `usable` on.
    pub fn hear(&mut self, usable: Instant, status: BufferStatus) {
        self.heard.push_back((usable, status));
    }

    /// Whether voice waits for a grant.
    #[inline]
    pub const fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// When a report can be used next.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        self.heard.front().map(|(usable, _)| *usable)
    }

    /// Takes the reports that can be used at `now`.
    pub fn advance(&mut self, now: Instant) {
        while let Some((_, status)) = self.heard.front().copied().filter(|(usable, _)| *usable <= now) {
            self.heard.pop_front();
            if status.at < self.last.at {
                continue;
            }
            (self.last, self.is_urgent) = (status, status.has_voice);
            while let Some((_, granted)) = self.granted.front().copied().filter(|(at, _)| *at <= status.at) {
                self.granted.pop_front();
                self.sum -= granted;
            }
        }
    }

    /// Bytes that the base station would grant now; `first` is what it grants for a request,
    /// without a report. It continues with grants of that size, one at a time, until a report is
    /// zero. After a block without room for data a grant has at least that size: reports do not
    /// count headers (TS 36.321 and TS 38.321 §6.1.3.1).
    #[inline]
    pub fn wanted(&self, first: u64, is_granted: bool) -> u64 {
        match self.last.bytes.saturating_sub(self.sum) {
            0 if self.is_requested || (self.last.bytes > 0 && !is_granted && self.heard.is_empty()) => first,
            wanted if wanted > 0 && self.last.is_alone => wanted.max(first),
            wanted => wanted,
        }
    }

    /// A grant was sent for the slot that begins at `at`.
    pub fn granted(&mut self, at: Instant, bytes: u64) {
        (self.is_requested, self.is_urgent) = (false, false);
        self.granted.push_back((at, bytes));
        self.sum += bytes;
    }

    /// The connection is new.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn grants_after_the_slot_of_a_report_count_against_it() {
        let mut knowledge = Knowledge::default();
        knowledge.granted(at(4), 100);
        knowledge.granted(at(9), 300);
        knowledge.hear(at(8), BufferStatus { at: at(4), bytes: 1000, ..BufferStatus::default() });
        assert_eq!(knowledge.next_event(), Some(at(8)));
        knowledge.advance(at(8));
        assert_eq!(knowledge.wanted(100, true), 700);
    }

    #[test]
    fn a_report_in_a_retransmission_does_not_replace_a_newer_one() {
        let mut knowledge = Knowledge::default();
        // The block of slot 0 reports 0 bytes and is decoded in slot 8. Meanwhile that of
        // slot 2 reports 100 kB, and grants for slots 10 and 11 follow.
        knowledge.hear(at(6), BufferStatus { at: at(2), bytes: 100_000, ..BufferStatus::default() });
        knowledge.advance(at(6));
        knowledge.granted(at(10), 1000);
        knowledge.granted(at(11), 1000);
        knowledge.hear(at(12), BufferStatus::default());
        knowledge.advance(at(12));
        assert_eq!(knowledge.wanted(100, true), 98_000);
    }

    #[test]
    fn a_block_without_room_for_data_is_followed_by_a_larger_one() {
        let mut knowledge = Knowledge::default();
        let status = BufferStatus { at: at(2), bytes: 10, ..BufferStatus::default() };
        knowledge.hear(at(6), status);
        knowledge.advance(at(6));
        assert_eq!(knowledge.wanted(100, true), 10);
        knowledge.granted(at(8), 9);
        knowledge.hear(at(10), BufferStatus { at: at(8), is_alone: true, ..status });
        knowledge.advance(at(10));
        assert_eq!(knowledge.wanted(100, true), 100);
    }
}
