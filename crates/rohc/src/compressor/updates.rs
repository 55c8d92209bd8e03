//! The packets that update the context of a decompressor in reliable mode.

use crate::refresh::Due;

/// Packets since the acknowledged reference after which updates are sent: half of those that the
/// sequence number of R-0 covers, so that an acknowledgment has time to arrive.
const UPDATE_AFTER: u32 = 32;
/// Packets after which each one is an update.
const ALWAYS_AFTER: u32 = 48;
/// Packets from one update to the next while an acknowledgment is waited for.
pub(super) const UPDATE_INTERVAL: u32 = 4;
/// The last update that was acknowledged, and those since.
#[derive(Clone, Debug, Default)]
pub(super) struct Updates {
    pub(super) updates: Vec<Update>,
    /// Packets since the last one.
    pub(super) since: u32,
}

/// A packet that updates the context of the decompressor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    pub(super) sequence: u32,
    pub(super) parts: Due,
    pub(super) has_mode: bool,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It updates the context, and carries the mode or not.
    Update { has_mode: bool },
    /// It has no CRC, and updates nothing.
    Other,
}

impl Updates {
    fn distance(&self, sequence: u32) -> u32 {
        self.updates.first().map_or(u32::MAX, |first| sequence.wrapping_sub(first.sequence))
    }

    /// Whether the packet with this sequence number is to be an update although it need not be.
    pub(super) fn is_due(&self, sequence: u32) -> bool {
        let distance = self.distance(sequence);
        distance >= ALWAYS_AFTER || distance >= UPDATE_AFTER && self.since + 1 >= UPDATE_INTERVAL
    }
}
