//! What was sent and is not acknowledged, segment by segment.

use std::collections::VecDeque;

use airpath_core::Instant;

use crate::segment::Position;

/// A segment under way.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// First position.
    pub start: Position,
    /// One past the last.
    pub end: Position,
    /// When it was last sent.
    pub time: Instant,
    /// How often it was sent.
    pub transmissions: u8,
    /// Selectively acknowledged.
    pub sacked: bool,
    /// Thought to be lost.
    pub lost: bool,
    /// Sent again since it was thought lost.
    pub resent: bool,
}

/// The segments under way, oldest first, with their sums kept up to date.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Number of the front segment, counted from the first ever sent.
    front: u64,
    pipe: u64,
    sacked: u64,
    sacked_count: usize,
    /// Number of the segment up to which all lost ones were resent.
    next_lost: u64,
    /// All segments below this number were judged for loss by SACK.
    judged: u64,
    lost_count: usize,
    high_sacked: Position,
}

impl Scoreboard {
    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The oldest segment.
    pub fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// Bytes thought to be in the network.
    pub const fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Whether any segment is thought lost and was not sent again.
    pub const fn has_lost(&self) -> bool {
        self.lost_count > 0
    }

    /// Bytes selectively acknowledged.
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// The highest position selectively acknowledged.
    pub const fn high_sacked(&self) -> Position {
        self.high_sacked
    }

    /// Adds a new segment.
    pub fn push(&mut self, start: Position, end: Position, time: Instant) {
        self.pipe += end - start;
        self.segments.push_back(Sent { start, end, time, transmissions: 1, sacked: false, lost: false, resent: false });
    }

    /// Takes off what `ack` covers, each passed to `each`.
    pub fn acknowledge(&mut self, ack: Position, mut each: impl FnMut(&Sent)) {
        while let Some(first) = self.segments.front_mut() {
            if first.end > ack {
                if first.start < ack {
                    let part = ack - first.start;
                    if first.sacked {
                        self.sacked -= part;
                    } else if !first.lost || first.resent {
                        self.pipe -= part;
                    }
                    first.start = ack;
                }
                break;
            }
            let sent = self.segments.pop_front().expect("there is a first");
            self.front += 1;
            let length = sent.end - sent.start;
            if sent.sacked {
                self.sacked -= length;
                self.sacked_count -= 1;
            } else if !sent.lost || sent.resent {
                self.pipe -= length;
            } else {
                self.lost_count -= 1;
            }
            each(&sent);
        }
    }

    /// Marks what a block covers; each segment newly marked is passed to `each`.
    pub fn sack(&mut self, start: Position, end: Position, mut each: impl FnMut(&Sent)) {
        let Some(first) = self.segments.front() else { return };
        if end <= first.start {
            return;
        }
        let from = self.find(start.max(first.start));
        for sent in self.segments.range_mut(from..) {
            if sent.end > end {
                break;
            }
            if sent.sacked || sent.start < start {
                continue;
            }
            let length = sent.end - sent.start;
            if sent.lost && !sent.resent {
                self.lost_count -= 1;
            } else {
                self.pipe -= length;
            }
            sent.sacked = true;
            self.sacked += length;
            self.sacked_count += 1;
            self.high_sacked = self.high_sacked.max(sent.end);
            each(sent);
        }
    }

    fn find(&self, position: Position) -> usize {
        self.segments.partition_point(|sent| sent.end <= position)
    }

    /// Marks as lost what three segments sacked above say (RFC 6675 IsLost). Returns whether any was.
    pub fn judge(&mut self, segment: u64) -> bool {
        let limit = self.high_sacked.saturating_sub(3 * segment);
        let mut found = false;
        let mut at = self.judged.max(self.front) - self.front;
        while let Some(sent) = self.segments.get_mut(at as usize) {
            if sent.end > limit {
                break;
            }
            if !sent.sacked && !sent.lost {
                sent.lost = true;
                self.pipe -= sent.end - sent.start;
                self.lost_count += 1;
                found = true;
            }
            at += 1;
        }
        self.judged = self.front + at;
        found
    }

    /// Marks the oldest as lost.
    pub fn lose_first(&mut self) {
        if let Some(first) = self.segments.front_mut()
            && !first.sacked
            && (!first.lost || first.resent)
        {
            first.lost = true;
            first.resent = false;
            self.pipe -= first.end - first.start;
            self.lost_count += 1;
            self.next_lost = self.front;
        }
    }

    /// Marks all as lost, after a time-out.
    pub fn lose_all(&mut self) {
        self.next_lost = self.front;
        for sent in &mut self.segments {
            if !sent.sacked && (!sent.lost || sent.resent) {
                self.pipe -= sent.end - sent.start;
                sent.lost = true;
                sent.resent = false;
                self.lost_count += 1;
            }
        }
    }

    /// The next segment to send again, marked as sent again.
    pub fn resend(&mut self, now: Instant) -> Option<Sent> {
        if self.lost_count == 0 {
            return None;
        }
        let mut at = self.next_lost.max(self.front) - self.front;
        loop {
            let sent = self.segments.get_mut(at as usize)?;
            at += 1;
            if sent.lost && !sent.resent && !sent.sacked {
                sent.resent = true;
                sent.transmissions = sent.transmissions.saturating_add(1);
                sent.time = now;
                self.pipe += sent.end - sent.start;
                self.lost_count -= 1;
                self.next_lost = self.front + at;
                return Some(*sent);
            }
        }
    }
}
