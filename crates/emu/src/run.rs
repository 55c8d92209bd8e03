//! Packets that leave with one write.

use airpath_core::{Direction, Ecn, FlowId, Slot, UserId};

use crate::join;
use crate::packet_buffer::PacketBuffer;

/// A run: consecutive segments of one super-segment (the kernel's GSO packet), or on a router
/// consecutive packets that can be joined to one. It is sent by one write.
#[derive(Debug, Default)]
pub struct Run {
    /// Its first packet; `None` if the run is empty.
    pub first: Option<SegmentKey>,
    /// Its packets, from the first segment on.
    pub slots: Vec<Slot>,
    /// Number of their segments.
    pub segments: u32,
    /// Bytes of the super-segment that is to be joined; zero if the packets belong to one already.
    pub joined_bytes: usize,
    /// The super-segment, to reuse its memory.
    pub joined: Vec<u8>,
}

/// What decides whether a packet continues a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentKey {
    pub flow: FlowId,
    pub user: UserId,
    pub direction: Direction,
    /// Index in the packet buffer.
    pub super_segment: u32,
    /// Its number in the super-segment.
    pub segment: u32,
    pub ecn: Ecn,
}

impl Run {
    /// Whether `next` is the segment that follows this run, so that they can leave together.
    pub fn continues(&self, next: SegmentKey) -> bool {
        let segments = self.segments;
        self.joined_bytes == 0
            && self.first.is_some_and(|first| SegmentKey { segment: first.segment + segments, ..first } == next)
    }

    /// Adds a packet to the super-segment that is to be joined, if it can be. Returns by how many
    /// segments that grows: none if it is a FIN only, which the last one then has.
    pub fn joins(&mut self, next: SegmentKey, packets: &PacketBuffer) -> Option<u32> {
        let (first, last) = (self.first?, self.slots.last()?);
        let last = packets.packet(*last);
        let is_marked = first.ecn != next.ecn;
        if !last.is_created_segment() || is_marked || (self.joined_bytes == 0 && self.slots.len() > 1) {
            return None;
        }
        let [first, last, next] =
            [first.super_segment, last.super_segment, next.super_segment].map(|index| packets.super_segment(index));
        let bytes = if self.joined_bytes == 0 { first.frame.bytes() as usize } else { self.joined_bytes };
        if !join::continues(first, last, next, bytes) {
            return None;
        }
        let payload = next.frame.bytes() as usize - join::header_bytes(next);
        self.joined_bytes = bytes + payload;
        Some(u32::from(payload > 0))
    }
}
