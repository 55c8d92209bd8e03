//! The packet buffer: bytes of the packets in the network, while the hops carry their handles.
//!
//! One read may return a TCP segment of up to 64 KiB, a super-segment, which the hops carry as
//! packets of the link's size. Its bytes stay together; each packet has the number of its segment.

use airpath_core::{Direction, Instant, SegmentInfo, SegmentLookup, Slot};

use crate::observe::Sighting;
use crate::offload::Frame;

/// A packet in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferedPacket {
    /// Index of its super-segment.
    pub super_segment: u32,
    /// Number of the segment in it.
    pub segment: u32,
    /// Its direction.
    pub direction: Direction,
    /// When it entered.
    pub entered: Instant,
    /// Its number among the packets of its flow and direction, from zero, if flows are observed.
    pub number: Option<u64>,
    /// Its TCP header, if it was parsed.
    pub header: Option<SegmentInfo>,
}

impl BufferedPacket {
    /// Whether a middlebox created it as a TCP segment.
    pub const fn is_created_segment(&self) -> bool {
        // The observer numbers those that entered, and without it they have no header.
        self.number.is_none() && self.header.is_some()
    }
}

/// What one read returned.
#[derive(Debug)]
pub struct SuperSegment {
    /// Its structure.
    pub frame: Frame,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Packets of it in the network.
    packets: u32,
}

/// The packets in the network. Slots and memory are reused.
#[derive(Debug, Default)]
pub struct PacketBuffer {
    packets: Vec<BufferedPacket>,
    free_packets: Vec<Slot>,
    super_segments: Vec<SuperSegment>,
    free_super_segments: Vec<u32>,
}

/// Capacity in bytes up to which the memory of a super-segment is kept for reuse.
const SMALL: usize = 2048;

impl PacketBuffer {
    /// Stores a super-segment. The caller adds one packet for each of its segments.
    pub fn insert(&mut self, frame: Frame, bytes: &[u8]) -> u32 {
        let packets = frame.segments();
        match self.free_super_segments.pop() {
            Some(index) => {
                let kept = &mut self.super_segments[index as usize];
                kept.bytes.clear();
                kept.bytes.extend_from_slice(bytes);
                (kept.frame, kept.packets) = (frame, packets);
                index
            }
            None => {
                self.super_segments.push(SuperSegment { frame, bytes: bytes.to_vec(), packets });
                self.super_segments.len() as u32 - 1
            }
        }
    }

    /// Adds a packet of a super-segment and returns its slot.
    pub fn add(&mut self, packet: BufferedPacket) -> Slot {
        match self.free_packets.pop() {
            Some(slot) => {
                self.packets[slot.0 as usize] = packet;
                slot
            }
            None => {
                self.packets.push(packet);
                Slot(self.packets.len() as u32 - 1)
            }
        }
    }

    /// Adds another packet with the bytes of the one at `slot`.
    pub fn copy(&mut self, slot: Slot) -> Slot {
        let packet = self.packet(slot);
        self.super_segments[packet.super_segment as usize].packets += 1;
        self.add(packet)
    }

    /// Sets what the flow observer found of the packet at `slot`.
    #[inline]
    pub fn set_sighting(&mut self, slot: Slot, sighting: Sighting) {
        let packet = &mut self.packets[slot.0 as usize];
        (packet.number, packet.header) = (Some(sighting.number), sighting.segment);
    }

    /// The packet at `slot`.
    #[inline]
    pub fn packet(&self, slot: Slot) -> BufferedPacket {
        self.packets[slot.0 as usize]
    }

    /// A super-segment.
    #[inline]
    pub fn super_segment(&self, index: u32) -> &SuperSegment {
        &self.super_segments[index as usize]
    }

    /// Frees the slot of a packet that has left the network.
    #[inline]
    pub fn release(&mut self, slot: Slot) {
        let index = self.packets[slot.0 as usize].super_segment;
        self.free_packets.push(slot);
        let kept = &mut self.super_segments[index as usize];
        kept.packets -= 1;
        if kept.packets == 0 {
            if kept.bytes.capacity() > SMALL {
                kept.bytes = Vec::new();
            }
            self.free_super_segments.push(index);
        }
    }

    /// Number of packets in the network.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free_packets.len()
    }

    /// Whether no packet is in the network.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl SegmentLookup for PacketBuffer {
    fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
        self.packet(slot).header
    }
}
