//! When which byte was first sent: a few marks are enough, between which one may interpolate.

use std::collections::VecDeque;

use airpath_core::Instant;

/// Marks that are kept.
const MARKS: usize = 64;

/// When bytes were first sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Sends {
    /// One past the last byte, and when it was sent.
    marks: VecDeque<(i64, Instant)>,
    /// Segments between two marks, and how many have passed since the last.
    stride: u32,
    since: u32,
}

impl Sends {
    /// New data up to `end` was sent.
    pub(super) fn sent(&mut self, end: i64, time: Instant) {
        self.since += 1;
        if self.since < self.stride {
            return;
        }
        self.since = 0;
        if self.marks.len() == MARKS {
            let mut keep = false;
            self.marks.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride = self.stride.max(1) * 2;
        }
        self.marks.push_back((end, time));
    }

    /// Everything below `offset` has been acknowledged.
    pub(super) fn acknowledged(&mut self, offset: i64) {
        while self.marks.front().is_some_and(|&(end, _)| end <= offset) {
            self.marks.pop_front();
        }
        if self.marks.len() <= MARKS / 4 {
            self.stride /= 2;
        }
    }

    /// When the first byte that is not acknowledged was sent, or one soon after it.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.marks.front().map(|&(_, time)| time)
    }
}
