//! The packet buffer: bytes of the packets in the network, while the hops carry their handles.
//!
//! One read may return a TCP segment of up to 64 KiB, a super-segment, which the hops carry as
//! packets of the link's size. Its bytes stay together; each packet has the number of its segment.
//! Where no hop and no observer needs single packets, one packet stands for all of its segments.

use std::ops::RangeInclusive;

use airpath_core::{Direction, Ecn, Instant, Packet, SegmentInfo, SegmentLookup, Slot};
use airpath_path::SharedPayload;

use crate::observe::Sighting;
use crate::offload::{Frame, MAX_HEADER, Written};
use crate::port::MAX_READ;

/// A packet in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferedPacket {
    /// Index of its super-segment.
    pub super_segment: u32,
    /// Number of the first of its segments in it.
    pub segment: u32,
    /// Number of its segments.
    pub segments: u32,
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
    /// The packet of `segments` segments, from `segment` on, of a super-segment, not observed.
    pub const fn entering(
        super_segment: u32,
        segment: u32,
        segments: u32,
        direction: Direction,
        entered: Instant,
    ) -> Self {
        Self { super_segment, segment, segments, direction, entered, number: None, header: None }
    }

    /// Numbers of its segments.
    pub const fn run(&self) -> RangeInclusive<u32> {
        self.segment..=self.segment + self.segments - 1
    }

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
    /// Its bytes; others may follow. Only its headers, if the payload is shared.
    pub bytes: Vec<u8>,
    /// Its payload, in memory that it shares with the buffer of a connection.
    pub shared: Option<SharedPayload>,
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
    /// Memory for packets, and for larger super-segments.
    free_small: Vec<Vec<u8>>,
    free_large: Vec<Vec<u8>>,
    /// Memory to read into: `MAX_READ` initialised bytes.
    free_reads: Vec<Vec<u8>>,
}

/// Bytes behind a packet's headers that may be those of further protocols: UDP and RTP.
const UPPER_HEADERS: usize = 64;
/// Capacity in bytes up to which the memory of a super-segment is always kept for reuse.
const SMALL: usize = 2048;
/// Number of larger ones that are kept: 8 MB, about as much as several fast connections have stored
/// in total.
const MOST_LARGE: usize = 128;

impl PacketBuffer {
    /// Empty memory for a super-segment of about this many bytes.
    pub fn memory(&mut self, bytes: usize) -> Vec<u8> {
        let free = if bytes > SMALL { &mut self.free_large } else { &mut self.free_small };
        let mut memory = free.pop().unwrap_or_default();
        memory.reserve(bytes);
        memory
    }

    /// Stores a super-segment as [`Self::insert`] does, and replaces `read`, in which it is, by
    /// other memory of the same size. What is too small for that is copied.
    pub fn insert_read(&mut self, frame: Frame, read: &mut Vec<u8>, packets: u32) -> u32 {
        let bytes = frame.bytes() as usize;
        if bytes <= SMALL {
            return self.insert_copy(frame, &read[..bytes], packets);
        }
        let other = self.free_reads.pop().unwrap_or_else(|| vec![0; MAX_READ]);
        self.insert(frame, std::mem::replace(read, other), packets)
    }

    /// Stores a copy of a super-segment. The caller adds this number of packets of it.
    pub fn insert_copy(&mut self, frame: Frame, bytes: &[u8], packets: u32) -> u32 {
        let mut memory = self.memory(bytes.len());
        memory.extend_from_slice(bytes);
        self.insert(frame, memory, packets)
    }

    /// Stores a super-segment. The caller adds this number of packets of it.
    pub fn insert(&mut self, frame: Frame, bytes: Vec<u8>, packets: u32) -> u32 {
        self.insert_shared(frame, bytes, None, packets)
    }

    /// Stores a super-segment whose payload, if it is `shared`, does not follow the headers in
    /// `bytes`.
    pub fn insert_shared(&mut self, frame: Frame, bytes: Vec<u8>, shared: Option<SharedPayload>, packets: u32) -> u32 {
        let new = SuperSegment { frame, bytes, shared, packets };
        match self.free_super_segments.pop() {
            Some(index) => {
                self.super_segments[index as usize] = new;
                index
            }
            None => {
                self.super_segments.push(new);
                self.super_segments.len() as u32 - 1
            }
        }
    }

    /// Takes back memory that [`Self::memory`] has given out.
    pub fn free_memory(&mut self, mut memory: Vec<u8>) {
        // Nothing else is so long.
        if memory.len() == MAX_READ {
            if self.free_reads.len() < MOST_LARGE {
                self.free_reads.push(memory);
            }
            return;
        }
        memory.clear();
        if memory.capacity() == 0 {
            // It was taken out.
        } else if memory.capacity() <= SMALL {
            self.free_small.push(memory);
        } else if self.free_large.len() < MOST_LARGE {
            self.free_large.push(memory);
        }
    }

    /// Takes back shares of the memory of a payload, and that memory if nothing else has a share.
    pub fn free_shares(&mut self, shared: Option<SharedPayload>) {
        let memory = shared.into_iter().flat_map(SharedPayload::into_memory);
        memory.for_each(|memory| self.free_memory(memory));
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
            let (memory, shared) = (std::mem::take(&mut kept.bytes), kept.shared.take());
            self.free_super_segments.push(index);
            self.free_memory(memory);
            self.free_shares(shared);
        }
    }

    /// Takes out the bytes of a super-segment when `leaving` of its packets leave; a copy if it has
    /// others.
    pub fn take_bytes(&mut self, index: u32, leaving: u32) -> Vec<u8> {
        let stored = &mut self.super_segments[index as usize];
        if stored.packets == leaving { std::mem::take(&mut stored.bytes) } else { stored.bytes.clone() }
    }

    /// The shared payload of a super-segment, if it has one, when `leaving` of its packets leave.
    pub fn take_shared(&mut self, index: u32, leaving: u32) -> Option<SharedPayload> {
        let stored = &mut self.super_segments[index as usize];
        if stored.packets == leaving { stored.shared.take() } else { stored.shared.clone() }
    }

    /// Takes out the memory of a super-segment, if it was read into it ([`Self::insert_read`]) and
    /// is one packet.
    pub fn take_read(&mut self, index: u32) -> Option<Vec<u8>> {
        let stored = &mut self.super_segments[index as usize];
        (stored.packets == 1 && stored.bytes.len() == MAX_READ).then(|| std::mem::take(&mut stored.bytes))
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

    fn headers(&self, _: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let buffered = self.packet(packet.slot);
        let SuperSegment { frame, bytes, .. } = self.super_segment(buffered.super_segment);
        push_headers(frame, bytes, buffered.run(), packet.ecn, out);
        true
    }
}

/// Appends the headers of the segments `run` of a super-segment.
pub fn push_headers(frame: &Frame, bytes: &[u8], run: RangeInclusive<u32>, ecn: Ecn, out: &mut Vec<u8>) {
    let mut headers = [0; MAX_HEADER];
    let Written { bytes: headers, payload, .. } = frame.write_segments(bytes, run, ecn, &mut headers);
    out.extend_from_slice(headers);
    // A shared payload is not here, and has no further headers.
    let payload = bytes.get(payload).unwrap_or_default();
    out.extend_from_slice(&payload[..payload.len().min(UPPER_HEADERS)]);
}
