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
    /// The last report, and the slot in which its block was sent first.
    reported: u64,
    reported_at: Instant,
    /// Bytes of the grants for slots after that of the last report, with those slots.
    granted: VecDeque<(Instant, u64)>,
    sum: u64,
    /// Reports in transit: when they can be used, the slot of the report, its bytes, and whether
    /// some are voice.
    heard: VecDeque<(Instant, Instant, u64, bool)>,
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

    /// A report was received that can be used from `usable` on. Its block was sent first at
    /// `sent`, which may be some retransmissions before: reports can be received out of order.
    pub fn hear(&mut self, usable: Instant, sent: Instant, bytes: u64, has_voice: bool) {
        self.heard.push_back((usable, sent, bytes, has_voice));
    }

    /// Whether voice waits for a grant.
    #[inline]
    pub const fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// When a report can be used next.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        self.heard.front().map(|(usable, ..)| *usable)
    }

    /// Takes the reports that can be used at `now`.
    pub fn advance(&mut self, now: Instant) {
        while let Some((_, sent, bytes, has_voice)) = self.heard.front().copied().filter(|(usable, ..)| *usable <= now)
        {
            self.heard.pop_front();
            if sent < self.reported_at {
                continue;
            }
            (self.reported, self.reported_at, self.is_urgent) = (bytes, sent, has_voice);
            while let Some((_, granted)) = self.granted.front().copied().filter(|(at, _)| *at <= sent) {
                self.granted.pop_front();
                self.sum -= granted;
            }
        }
    }

    /// Bytes that the base station would grant now; `first` is what it grants for a request,
    /// without a report. It continues with grants of that size, one at a time, until a report is
    /// zero.
    #[inline]
    pub fn wanted(&self, first: u64, is_granted: bool) -> u64 {
        match self.reported.saturating_sub(self.sum) {
            0 if self.is_requested || (self.reported > 0 && !is_granted && self.heard.is_empty()) => first,
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
        knowledge.hear(at(8), at(4), 1000, false);
        assert_eq!(knowledge.next_event(), Some(at(8)));
        knowledge.advance(at(8));
        assert_eq!(knowledge.wanted(100, true), 700);
    }

    #[test]
    fn a_report_in_a_retransmission_does_not_replace_a_newer_one() {
        let mut knowledge = Knowledge::default();
        // The block of slot 0 reports 0 bytes and is decoded in slot 8. Meanwhile that of
        // slot 2 reports 100 kB, and grants for slots 10 and 11 follow.
        knowledge.hear(at(6), at(2), 100_000, false);
        knowledge.advance(at(6));
        knowledge.granted(at(10), 1000);
        knowledge.granted(at(11), 1000);
        knowledge.hear(at(12), at(0), 0, false);
        knowledge.advance(at(12));
        assert_eq!(knowledge.wanted(100, true), 98_000);
    }
}
