//! Drop-tail: first in, first out; a packet that does not fit is dropped.
//!
//! Later packets never change when a packet is sent, so its transmission time is determined on
//! entry. The queue stores times instead of packets.

use std::collections::VecDeque;

use airpath_core::Instant;

use super::Limits;

/// Times and sizes of the waiting packets.
#[derive(Clone, Debug)]
pub(crate) struct DropTail {
    limits: Limits,
    waiting: VecDeque<Entry>,
    waiting_bytes: u64,
    /// The packet sent last, or in transmission.
    last: Entry,
}

/// One packet in the queue or in transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Start of its transmission.
    pub start: Instant,
    /// End of its transmission.
    pub end: Instant,
    /// Size in bytes.
    pub size: u32,
    /// Whether it is lost at the end.
    pub lost: bool,
}

impl DropTail {
    pub fn new(limits: Limits) -> Self {
        let last = Entry { start: Instant::ZERO, end: Instant::ZERO, size: 0, lost: false };
        Self { limits, waiting: VecDeque::new(), waiting_bytes: 0, last }
    }

    /// Removes the packets whose transmission has begun.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        while let Some(entry) = self.waiting.front()
            && entry.start <= now
        {
            self.last = *entry;
            self.waiting_bytes -= u64::from(entry.size);
            self.waiting.pop_front();
        }
    }

    /// Whether a packet of `size` bytes fits.
    #[inline]
    pub fn has_room(&self, size: u32) -> bool {
        self.limits.admit(self.waiting.len(), self.waiting_bytes, size)
    }

    /// Enqueues a packet.
    #[inline]
    pub fn enter(&mut self, now: Instant, entry: Entry) {
        if entry.start <= now {
            self.last = entry;
        } else {
            self.waiting_bytes += u64::from(entry.size);
            self.waiting.push_back(entry);
        }
    }

    /// Records that the last packet will be lost.
    pub fn lose_last(&mut self) {
        self.waiting.back_mut().unwrap_or(&mut self.last).lost = true;
    }

    /// Removes what is not completely sent at `now`, the packet in transmission first.
    pub fn take_unsent(&mut self, now: Instant) -> Vec<Entry> {
        self.advance(now);
        let sending = (self.last.end > now).then_some(self.last);
        self.last.end = self.last.end.min(now);
        self.waiting_bytes = 0;
        sending.into_iter().chain(self.waiting.drain(..)).collect()
    }

    /// Packets and bytes that are not completely sent.
    #[inline]
    pub fn backlog(&self, now: Instant) -> (u32, u64) {
        let sending = self.last.end > now;
        let size = if sending { u64::from(self.last.size) } else { 0 };
        (self.waiting.len() as u32 + u32::from(sending), self.waiting_bytes + size)
    }
}
