//! Telling spurious reductions of the window, to take them back: by timestamps (Eifel detection,
//! RFC 3522) and by reports of duplicates (RFC 3708). F-RTO has its own file.

use airpath_core::Instant;

use crate::sequence::Sequence;

/// What is remembered of an episode of congestion, until it is over or was undone.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    /// Everything below was acknowledged when it began.
    pub begin: Sequence,
    /// When the first segment was sent again.
    first_repeat: Option<Instant>,
    /// Segments sent again, less reports that one arrived twice.
    unexplained: u32,
    /// Whether the reports still can explain all: none was for something that was not sent again.
    explicable: bool,
}

impl Episode {
    /// An episode that begins with everything below `begin` acknowledged.
    pub const fn new(begin: Sequence) -> Self {
        Self { begin, first_repeat: None, unexplained: 0, explicable: true }
    }

    /// A segment is sent again.
    pub fn on_repeat(&mut self, now: Instant) {
        self.first_repeat.get_or_insert(now);
        self.unexplained += 1;
    }

    /// The receiver reports that what starts at `start` arrived twice. Says whether now all
    /// retransmissions are known to have been spurious (RFC 3708 §2).
    pub fn on_duplicate_report(&mut self, start: Sequence) -> bool {
        if start < self.begin {
            return false;
        }
        match self.unexplained.checked_sub(1) {
            Some(rest) => self.unexplained = rest,
            // More duplicates than were sent again: the network duplicates, and nothing can be
            // told.
            None => self.explicable = false,
        }
        self.explicable && self.unexplained == 0 && self.first_repeat.is_some()
    }

    /// An acknowledgement of new data echoes the timestamp of a segment sent before
    /// `echoed_before`. Says whether that was before anything was sent again, so that the original
    /// arrived (RFC 3522 §3.2 step 5).
    pub fn is_answer_to_original(&self, echoed_before: Option<Instant>) -> bool {
        match (self.first_repeat, echoed_before) {
            (Some(repeat), Some(before)) => before <= repeat,
            _ => false,
        }
    }
}
