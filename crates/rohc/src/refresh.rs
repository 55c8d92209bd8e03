//! When a compressor sends its context as a whole: at the beginning, after a change or a report,
//! and in unidirectional mode from time to time.

use crate::feedback::{Acknowledgement, Feedback};
use crate::framework::Mode;
use crate::lsb::{Window, low};

/// Packets that carry each change, without feedback (optimistic approach, RFC 3095 §5.3.1.1.1).
pub(crate) const REPEATS: u32 = Window::SIZE as u32;
/// Packets between two IR packets, without feedback.
pub(crate) const IR_INTERVAL: u32 = 1024;
/// Packets between two that repeat the dynamic part, without feedback.
const DYNAMIC_INTERVAL: u32 = 256;

/// What a packet has to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The static and the dynamic part.
    Static,
    /// The dynamic part.
    Dynamic,
    /// What has changed.
    Changes,
}

/// The parts of a context that are still to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Refresh {
    pub(crate) mode: Mode,
    /// The decompressor has not yet acknowledged a packet with this mode (C_TRANS of RFC 3095
    /// §5.6.1).
    pub(crate) is_pending: bool,
    /// Packets that carry each change.
    repeats: u32,
    /// Packets that still have to carry the static part, and the dynamic part.
    static_due: u32,
    dynamic_due: u32,
    /// Sequence numbers of the first packets with the current static and dynamic part.
    static_since: u32,
    dynamic_since: u32,
    /// Packets since the last one with the static part, and with the dynamic part.
    since_static: u32,
    since_dynamic: u32,
}

impl Refresh {
    /// For a context whose first packet has this sequence number. `repeats` packets carry each
    /// change.
    pub(crate) const fn new(sequence: u32, repeats: u32) -> Self {
        Self {
            mode: Mode::Unidirectional,
            is_pending: false,
            repeats,
            static_due: repeats,
            dynamic_due: repeats,
            static_since: sequence,
            dynamic_since: sequence,
            since_static: 0,
            since_dynamic: 0,
        }
    }

    /// Whether the first packets of the context, which carry all of it, are still being sent.
    pub(crate) const fn is_static_due(&self) -> bool {
        self.static_due > 0
    }

    /// The dynamic part has changed with the packet of this sequence number.
    pub(crate) const fn change(&mut self, sequence: u32) {
        self.dynamic_due = self.repeats;
        self.dynamic_since = sequence;
    }

    /// What the next packet carries. Without feedback the context is repeated from time to time
    /// (RFC 3095 §5.3.1.1.2).
    pub(crate) fn next(&mut self) -> Due {
        self.since_static += 1;
        self.since_dynamic += 1;
        if self.mode == Mode::Unidirectional {
            self.static_due = self.static_due.max(u32::from(self.since_static >= IR_INTERVAL));
            self.dynamic_due = self.dynamic_due.max(u32::from(self.since_dynamic >= DYNAMIC_INTERVAL));
        }
        match (self.static_due, self.dynamic_due) {
            (0, 0) => Due::Changes,
            (0, _) => Due::Dynamic,
            _ => Due::Static,
        }
    }

    /// Whether parts are sent until they are acknowledged.
    pub(crate) fn waits(&self) -> bool {
        self.mode == Mode::Reliable || self.is_pending
    }

    /// Notes that a packet with these parts was sent.
    pub(crate) fn sent(&mut self, parts: Due) {
        if parts == Due::Changes || self.waits() {
            return;
        }
        if matches!(parts, Due::Static) {
            self.static_due = self.static_due.saturating_sub(1);
            self.since_static = 0;
        }
        self.dynamic_due = self.dynamic_due.saturating_sub(1);
        self.since_dynamic = 0;
    }

    /// Both parts are sent again, from the packet with this sequence number on.
    pub(crate) const fn change_all(&mut self, sequence: u32) {
        (self.static_due, self.dynamic_due) = (self.repeats, self.repeats);
        (self.static_since, self.dynamic_since) = (sequence, sequence);
    }

    /// The packet with this sequence number has arrived, and had these parts.
    pub(crate) fn acknowledge(&mut self, sequence: u32, parts: Due) {
        let has = |since: u32| sequence.wrapping_sub(since) < u32::MAX / 2;
        if parts == Due::Static && has(self.static_since) {
            self.static_due = 0;
        }
        if parts != Due::Changes && has(self.dynamic_since) {
            self.dynamic_due = 0;
        }
    }

    /// Receives feedback after the packet with this sequence number was sent. Returns how many
    /// packets ago the one that was acknowledged was sent, if one was.
    pub(crate) fn receive(&mut self, feedback: &Feedback, sequence: u32) -> Option<u32> {
        match feedback.acknowledgement {
            Acknowledgement::StaticNack => {
                self.change_all(sequence.wrapping_add(1));
                None
            }
            Acknowledgement::Nack => {
                self.change(sequence.wrapping_add(1));
                None
            }
            Acknowledgement::Ack => {
                let (value, bits) = feedback.sequence?;
                // The packet acknowledged is the latest with these bits.
                let age = low(sequence.wrapping_sub(value), bits);
                let has = |since: u32| age <= sequence.wrapping_sub(since) && since <= sequence;
                if has(self.static_since) {
                    self.static_due = 0;
                    if has(self.dynamic_since) {
                        self.dynamic_due = 0;
                        return Some(age);
                    }
                }
                None
            }
        }
    }
}
