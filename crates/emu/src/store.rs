//! The bytes of the packets on their way, while bearers carry their handles.
//!
//! What is read at once may be a TCP segment of up to 64 KiB, which the bearer sees as packets of the size that the link
//! allows. Their bytes stay together; each packet knows which part is its own.

use airpath_core::{Direction, Instant, Slot};

use crate::offload::Frame;

/// A packet of those that were read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of what was read.
    pub whole: u32,
    /// Which of its segments this is.
    pub segment: u32,
    /// Which way it goes.
    pub direction: Direction,
    /// When it came in.
    pub entered: Instant,
}

/// What was read at once.
#[derive(Debug)]
pub struct Whole {
    /// What it is.
    pub frame: Frame,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Parts that are still on their way.
    parts: u32,
}

/// All that is on its way. Places and memory are used again.
#[derive(Debug, Default)]
pub struct Store {
    parts: Vec<Part>,
    free_parts: Vec<Slot>,
    wholes: Vec<Whole>,
    free_wholes: Vec<u32>,
}

/// Buffers that are larger than a packet of an ordinary link are not kept for such ones.
const SMALL: usize = 2048;

impl Store {
    /// Keeps what was read, and calls `part` with a place for each of its segments, in order.
    pub fn put(
        &mut self,
        now: Instant,
        direction: Direction,
        frame: Frame,
        bytes: &[u8],
        mut part: impl FnMut(u32, Slot),
    ) {
        let segments = frame.segments();
        let whole = match self.free_wholes.pop() {
            Some(whole) => {
                let kept = &mut self.wholes[whole as usize];
                kept.bytes.clear();
                kept.bytes.extend_from_slice(bytes);
                (kept.frame, kept.parts) = (frame, segments);
                whole
            }
            None => {
                self.wholes.push(Whole { frame, bytes: bytes.to_vec(), parts: segments });
                self.wholes.len() as u32 - 1
            }
        };
        for segment in 0..segments {
            let kept = Part { whole, segment, direction, entered: now };
            let slot = match self.free_parts.pop() {
                Some(slot) => {
                    self.parts[slot.0 as usize] = kept;
                    slot
                }
                None => {
                    self.parts.push(kept);
                    Slot(self.parts.len() as u32 - 1)
                }
            };
            part(segment, slot);
        }
    }

    /// The packet at `slot`.
    #[inline]
    pub fn part(&self, slot: Slot) -> Part {
        self.parts[slot.0 as usize]
    }

    /// What was read at once.
    #[inline]
    pub fn whole(&self, whole: u32) -> &Whole {
        &self.wholes[whole as usize]
    }

    /// The packet at `slot` is no longer on its way.
    #[inline]
    pub fn release(&mut self, slot: Slot) {
        let whole = self.parts[slot.0 as usize].whole;
        self.free_parts.push(slot);
        let kept = &mut self.wholes[whole as usize];
        kept.parts -= 1;
        if kept.parts == 0 {
            if kept.bytes.capacity() > SMALL {
                kept.bytes = Vec::new();
            }
            self.free_wholes.push(whole);
        }
    }

    /// Packets that are on their way.
    pub fn kept(&self) -> usize {
        self.parts.len() - self.free_parts.len()
    }
}
