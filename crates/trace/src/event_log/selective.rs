//! Selective acknowledgements (RFC 2018), which the log does not tell: how many blocks a segment had follows from its size, and what they
//! were from what had arrived by then at the end that sent it.

use std::collections::BTreeMap;

use airpath_core::{Direction, Instant};
use airpath_wire::tcp::{Flags, SackBlocks};

use super::{Logged, LoggedFlow, sequence};

/// Bytes of the option's kind and length, with the padding that commonly precedes them (RFC 2018 §3, RFC 7323 appendix A).
const OPTION: u32 = 4;

/// Bytes of a block.
const BLOCK: u32 = 8;

/// The most blocks that fit beside the options that a segment has anyway, with timestamps and without.
const MOST: usize = 4;

/// The blocks of each segment. `segments` are in the order in which they were sent.
pub(super) fn blocks(flows: &[LoggedFlow], segments: &[Logged], connections: &[u32]) -> Vec<SackBlocks> {
    let numbers = numbers_of_blocks(flows, segments);
    let mut blocks = vec![SackBlocks::default(); segments.len()];
    let mut receivers: BTreeMap<(u32, u32, bool), Receiver> = BTreeMap::new();
    for (_, _, index, arrives) in order(segments) {
        let Logged { flow, direction, header, .. } = &segments[index];
        // What goes down arrives at the mobile, and what goes up is sent there.
        let is_mobile = (*direction == Direction::Down) == arrives;
        let receiver = receivers.entry((*flow, connections[index], is_mobile)).or_default();
        if arrives {
            receiver.arrived(header.offset, header.offset.saturating_add(i64::from(header.length)));
        } else if let Some(acknowledged) = header.ack {
            blocks[index] = receiver.tell(acknowledged, numbers[index]);
        }
    }
    blocks
}

/// All that happened to segments, in its order: when, the row, which segment, and whether it arrived or was sent.
fn order(segments: &[Logged]) -> Vec<(Instant, u64, usize, bool)> {
    let sent = segments.iter().enumerate().map(|(index, segment)| (segment.sent.time, segment.sent.row, index, false));
    let arrived = segments.iter().enumerate();
    let arrived =
        arrived.filter_map(|(index, segment)| segment.received.map(|event| (event.time, event.row, index, true)));
    let mut all: Vec<_> = sent.chain(arrived).collect();
    all.sort_unstable();
    all
}

/// How many blocks each segment had: those for which it is longer than its flow's shortest headers.
fn numbers_of_blocks(flows: &[LoggedFlow], segments: &[Logged]) -> Vec<usize> {
    let headers = |segment: &Logged| segment.size.saturating_sub(segment.header.length);
    // A SYN has options that no other segment has, a RST often none.
    let counts = |segment: &&Logged| segment.header.flags & (Flags::SYN.0 | Flags::RST.0) == 0;
    let mut shortest = vec![u32::MAX; flows.len()];
    for segment in segments.iter().filter(counts) {
        let least = &mut shortest[segment.flow as usize];
        *least = headers(segment).min(*least);
    }
    let number = |segment: &Logged| {
        let room = headers(segment).saturating_sub(shortest[segment.flow as usize]);
        let blocks = room.saturating_sub(OPTION) / BLOCK;
        if counts(&segment) && room == OPTION + blocks * BLOCK { (blocks as usize).min(MOST) } else { 0 }
    };
    segments.iter().map(number).collect()
}

/// What has arrived at an end.
#[derive(Debug, Default)]
struct Receiver {
    /// All below has arrived.
    next: i64,
    /// What has arrived beyond: the block that grew last first, as it is told first (RFC 2018 §4).
    held: Vec<(i64, i64)>,
    /// What arrived last, if it had been there before (RFC 2883).
    duplicate: Option<(i64, i64)>,
}

impl Receiver {
    fn arrived(&mut self, start: i64, end: i64) {
        if end <= start {
            return;
        }
        let within = self.held.iter().position(|(left, right)| *left <= start && end <= *right);
        if end <= self.next || within.is_some() {
            self.duplicate = Some((start, end));
            // Told behind the duplicate (RFC 2883 §4).
            if let Some(at) = within {
                self.held[..=at].rotate_right(1);
            }
            return;
        }
        let mut block = (start.max(self.next), end);
        self.held.retain(|(left, right)| {
            let touches = *left <= block.1 && block.0 <= *right;
            if touches {
                block = (block.0.min(*left), block.1.max(*right));
            }
            !touches
        });
        if block.0 <= self.next {
            self.next = block.1;
        } else {
            self.held.insert(0, block);
        }
    }

    /// The `number` blocks that go with an acknowledgement.
    fn tell(&mut self, acknowledged: i64, number: usize) -> SackBlocks {
        self.next = self.next.max(acknowledged);
        self.held.retain(|(_, right)| *right > acknowledged);
        let mut blocks = SackBlocks::default();
        // An end that does not report duplicates has no room left for one.
        let duplicate = self.duplicate.take().filter(|_| number > self.held.len());
        for (left, right) in duplicate.into_iter().chain(self.held.iter().copied()).take(number) {
            blocks.push(sequence(left), sequence(right));
        }
        blocks
    }
}
