//! The next segment to retransmit (`NextSeg`, RFC 6675 §4).

use airpath_core::Instant;

use super::{Scoreboard, Sent};
use crate::sequence::Sequence;

impl Scoreboard {
    /// Whether any segment is lost and not retransmitted yet.
    #[inline]
    pub const fn needs_repair(&self) -> bool {
        self.waiting > 0
    }

    /// The next lost segment (rule 1).
    pub fn next_lost(&mut self) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        // A segment whose retransmission was lost too has waited longest.
        while let Some(start) = self.lost_again.front().copied() {
            let index = self.index_of(start);
            if self.segments.get(index).is_some_and(|segment| segment.start == start && segment.needs_repair()) {
                return Some(index);
            }
            self.lost_again.pop_front();
        }
        let mut index = self.index_of(self.repair_from);
        while let Some(segment) = self.segments.get(index).filter(|segment| segment.start < self.repair_end) {
            self.repair_from = segment.start;
            if segment.needs_repair() {
                return Some(index);
            }
            index += 1;
        }
        None
    }

    /// The next segment that has not arrived and lies below one that has, though it is not marked
    /// as lost (rule 3).
    pub fn next_suspect(&mut self) -> Option<usize> {
        let highest = self.highest_sacked()?;
        let mut index = self.index_of(self.repair_from);
        while let Some(segment) = self.segments.get(index).filter(|segment| segment.end() <= highest) {
            self.repair_from = segment.start;
            if segment.state & (Sent::SACKED | Sent::REPEATING) == 0 {
                return Some(index);
            }
            index += 1;
        }
        None
    }

    /// Whether a retransmission may be unacknowledged, or the oldest segment was retransmitted
    /// (`tcp_any_retrans_done` of Linux).
    #[inline]
    pub fn has_repeats(&self) -> bool {
        !self.repeating.is_empty() || self.first().is_some_and(Sent::is_repeated)
    }

    /// Number of retransmissions in flight.
    pub fn repeats_in_flight(&self) -> u32 {
        let in_flight = |(start, at): &&(Sequence, Instant)| {
            self.segments.get(self.index_of(*start)).is_some_and(|segment| {
                (segment.start, segment.at) == (*start, *at) && segment.is(Sent::REPEATING) && !segment.is_sacked()
            })
        };
        self.repeating.iter().filter(in_flight).count() as u32
    }

    /// The highest segment that has not arrived (rule 4, and the probe of RFC 8985 §7.3).
    pub fn last_unacknowledged(&self) -> Option<usize> {
        let highest = self.highest_sacked();
        match self.segments.back() {
            None => None,
            Some(last) if highest.is_none_or(|highest| highest < last.end()) => Some(self.segments.len() - 1),
            Some(_) => self.segments.iter().rposition(|segment| !segment.is_sacked()),
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Scoreboard {
    /// Recomputes every count, and compares it with the stored one.
    ///
    /// # Panics
    /// If a count is wrong.
    pub fn verify(&self, acknowledged: Sequence) {
        let pipe: u64 = self.segments.iter().map(Sent::in_network).sum();
        let sacked: u64 = self.segments.iter().filter(|s| s.is_sacked()).map(|s| u64::from(s.length)).sum();
        let waiting = self.segments.iter().filter(|segment| segment.needs_repair()).count();
        assert!(self.rate.as_ref().is_none_or(|rate| rate.outstanding() == self.segments.len()), "{self:?}");
        assert_eq!((pipe, sacked, waiting), (self.pipe, self.sacked_bytes, self.waiting as usize), "{self:?}");
        assert!(self.segments.front().is_none_or(|first| first.start == acknowledged), "{acknowledged} {self:?}");
        for (index, segment) in self.segments.iter().enumerate() {
            let next = self.segments.get(index + 1);
            assert!(next.is_none_or(|next| next.start == segment.end()), "{self:?}");
            assert_eq!(
                segment.is_sacked(),
                self.sacked.containing(super::Range::new(segment.start, segment.end())).is_some(),
                "{self:?}"
            );
            let sought = self.repair_from <= segment.start && segment.start < self.repair_end;
            assert!(!segment.needs_repair() || sought || self.lost_again.contains(&segment.start), "{self:?}");
        }
    }
}
