//! Detection of spurious window reductions, to undo them: by timestamps (Eifel detection, RFC 3522)
//! and by DSACK (RFC 3708). F-RTO has its own file.

use airpath_core::Instant;

use crate::sequence::Sequence;

/// State of an episode of congestion, until it ends or is undone.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    /// Everything below was acknowledged at the start.
    pub begin: Sequence,
    /// Time of the first retransmission.
    first_repeat: Option<Instant>,
    /// Retransmitted segments, less those reported as duplicates.
    unexplained: u32,
    /// Whether every duplicate report so far was for a retransmitted segment.
    explicable: bool,
}

impl Episode {
    /// An episode that starts with everything below `begin` acknowledged.
    pub const fn new(begin: Sequence) -> Self {
        Self { begin, first_repeat: None, unexplained: 0, explicable: true }
    }

    /// A segment is retransmitted.
    pub fn on_repeat(&mut self, now: Instant) {
        self.first_repeat.get_or_insert(now);
        self.unexplained += 1;
    }

    /// The receiver reports that the segment at `start` arrived twice. Returns whether all
    /// retransmissions are now proven spurious (RFC 3708 §2).
    pub fn on_duplicate_report(&mut self, start: Sequence) -> bool {
        if start < self.begin {
            return false;
        }
        match self.unexplained.checked_sub(1) {
            Some(rest) => self.unexplained = rest,
            // More duplicates than retransmissions: the network duplicates, and nothing is proven.
            None => self.explicable = false,
        }
        self.explicable && self.unexplained == 0 && self.first_repeat.is_some()
    }

    /// An acknowledgement of new data echoes the timestamp of a segment sent before
    /// `echoed_before`. Returns whether that was before the first retransmission, so that the
    /// original arrived (RFC 3522 §3.2 step 5).
    pub fn is_answer_to_original(&self, echoed_before: Option<Instant>) -> bool {
        match (self.first_repeat, echoed_before) {
            (Some(repeat), Some(before)) => before <= repeat,
            _ => false,
        }
    }
}
