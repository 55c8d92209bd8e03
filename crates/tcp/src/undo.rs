//! Detection of spurious window reductions, to undo them: by timestamps (Eifel detection, RFC 3522)
//! and by DSACK (RFC 3708). F-RTO has its own file.

use airpath_core::Instant;
use serde::{Deserialize, Serialize};

use crate::sequence::Sequence;

/// State of an episode of congestion, until it ends or is undone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Episode {
    /// Everything below was acknowledged at the start.
    pub begin: Sequence,
    /// Retransmitted segments, less those reported as duplicates.
    unexplained: u32,
    /// Whether a segment was retransmitted.
    repeated: bool,
    /// Whether every duplicate report so far was for a retransmitted segment.
    explicable: bool,
}

impl Episode {
    /// An episode that starts with everything below `begin` acknowledged. `in_flight`
    /// retransmissions were sent before it, and may still be reported as duplicates
    /// (`tcp_init_undo` of Linux).
    pub const fn new(begin: Sequence, in_flight: u32) -> Self {
        Self { begin, unexplained: in_flight, repeated: false, explicable: true }
    }

    /// A segment is retransmitted.
    pub const fn on_repeat(&mut self) {
        self.repeated = true;
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
        self.explicable && self.unexplained == 0 && self.repeated
    }
}

/// An acknowledgement of new data echoes the timestamp of a segment sent before `echoed_before`.
/// Returns whether that was before the first retransmission, so that the original arrived (RFC 3522
/// §3.2 step 5).
pub fn is_answer_to_original(first_repeat: Option<Instant>, echoed_before: Option<Instant>) -> bool {
    match (first_repeat, echoed_before) {
        (Some(repeat), Some(before)) => before <= repeat,
        _ => false,
    }
}
