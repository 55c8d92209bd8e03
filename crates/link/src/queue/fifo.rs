//! Packets in the order of arrival, with the times at which they arrived.

use std::collections::VecDeque;

use airpath_core::{Instant, Packet, Span};

/// A first-in, first-out list of packets that counts their bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    entries: VecDeque<Entry>,
    bytes: u64,
    /// When the packet arrived that was removed last.
    last_entered: Instant,
}

/// A waiting packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Time of arrival.
    pub entered: Instant,
    pub packet: Packet,
}

impl Fifo {
    #[inline]
    pub fn push(&mut self, now: Instant, packet: Packet) {
        self.bytes += u64::from(packet.size);
        self.entries.push_back(Entry { entered: now, packet });
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.bytes -= u64::from(entry.packet.size);
        self.last_entered = entry.entered;
        Some(entry)
    }

    /// When the packet arrived that was removed last.
    pub const fn last_entered(&self) -> Instant {
        self.last_entered
    }

    #[inline]
    pub fn head_entered(&self) -> Option<Instant> {
        self.entries.front().map(|entry| entry.entered)
    }

    /// Time for which the packet at the head has waited; zero if none waits.
    #[inline]
    pub fn delay(&self, now: Instant) -> Span {
        self.head_entered().map_or(Span::ZERO, |entered| now.since(entered))
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes all packets.
    pub fn clear(&mut self, lost: impl FnMut(Packet)) {
        self.bytes = 0;
        self.entries.drain(..).map(|entry| entry.packet).for_each(lost);
    }
}
