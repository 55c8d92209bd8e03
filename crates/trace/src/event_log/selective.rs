//! SACK blocks (RFC 2018), which the log does not record: the number of blocks of a segment follows
//! from its size, and their edges from the arrivals at the end that sent it.

use std::collections::BTreeMap;

use airpath_core::{Direction, Instant};
use airpath_wire::tcp::{Flags, SackBlocks};

use super::{Logged, LoggedFlow, sequence};

/// Bytes of the option's kind and length, with the usual padding before (RFC 2018 §3, RFC 7323
/// appendix A).
const OPTION: u32 = 4;

/// Bytes of a block.
const BLOCK: u32 = 8;

/// The most blocks that fit beside the options that a segment has anyway, with timestamps and
/// without.
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
        } else if let Some(acknowledged) = header.ack.get() {
            blocks[index] = receiver.sack_blocks(acknowledged, numbers[index]);
        }
    }
    blocks
}

/// The events of segments, in order: time, row, segment, and whether it arrived (else it was sent).
fn order(segments: &[Logged]) -> Vec<(Instant, u64, usize, bool)> {
    let sent = segments.iter().enumerate().map(|(index, segment)| (segment.sent.time, segment.sent.row, index, false));
    let arrived = segments.iter().enumerate();
    let arrived =
        arrived.filter_map(|(index, segment)| segment.received.map(|event| (event.time, event.row, index, true)));
    let mut all: Vec<_> = sent.chain(arrived).collect();
    all.sort_unstable();
    all
}

/// The number of blocks of each segment, by the length of its headers above the shortest of its
/// flow.
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

/// The data that arrived at an end.
#[derive(Debug, Default)]
struct Receiver {
    /// All below has arrived.
    next: i64,
    /// Blocks beyond: the most recently received first, the order of the option (RFC 2018 §4).
    held: Vec<(i64, i64)>,
    /// The last arrival, if it was a duplicate (RFC 2883).
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
            // Its block follows the duplicate in the option (RFC 2883 §4).
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

    /// The `number` blocks of an acknowledgement.
    fn sack_blocks(&mut self, acknowledged: i64, number: usize) -> SackBlocks {
        self.next = self.next.max(acknowledged);
        self.held.retain(|(_, right)| *right > acknowledged);
        let mut blocks = SackBlocks::default();
        // Without D-SACK the option has no room for the duplicate.
        let duplicate = self.duplicate.take().filter(|_| number > self.held.len());
        for (left, right) in duplicate.into_iter().chain(self.held.iter().copied()).take(number) {
            blocks.push(sequence(left), sequence(right));
        }
        blocks
    }
}
