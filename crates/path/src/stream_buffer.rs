//! The payload of one direction of a TCP connection, from its arrival until the receiver has
//! acknowledged it.
//!
//! The bytes are in chunks. Small payloads are appended to the last chunk. A large one stays in the
//! memory into which the interface was read, which becomes a chunk of its own. Packets that leave
//! can share this memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use airpath_tcp::Segment;
use serde::{Deserialize, Serialize};

use crate::payload::{Payload, SharedPayload};

/// Payload by stream offset. Where payload is counted only, it stores nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StreamBuffer {
    /// Offset of the first stored byte.
    start: u64,
    /// What has not arrived yet between others is zero.
    #[serde(with = "in_one_piece")]
    chunks: Chunks,
}

/// Payload bytes from which on the memory of a packet may become a chunk: at least half of the
/// memory of a read is then in use. A segment of this size is never in more than two chunks.
pub const LEAST_TAKEN: usize = 32 << 10;

/// Capacity in bytes up to which the memory of an empty buffer is kept.
const MOST_KEPT: usize = 2048;

/// Consecutive bytes.
#[derive(Debug, Default)]
struct Chunks {
    parts: VecDeque<Chunk>,
    /// Bytes of all parts.
    length: usize,
}

/// A part of the bytes.
#[derive(Debug)]
struct Chunk {
    memory: Memory,
    /// Where they are.
    range: Range<usize>,
}

/// The memory of a chunk.
#[derive(Debug)]
enum Memory {
    /// Bytes can be appended to it.
    Own(Vec<u8>),
    /// That of a packet that arrived. Packets that leave may share it.
    Taken(Arc<Vec<u8>>),
}

/// Bytes as a whole, not as a sequence of numbers.
mod in_one_piece {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Chunks;

    pub fn serialize<S: Serializer>(chunks: &Chunks, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&chunks.concat())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Chunks, D::Error> {
        let mut chunks = Chunks::default();
        chunks.append(<&[u8]>::deserialize(deserializer)?);
        Ok(chunks)
    }
}

impl Chunk {
    fn len(&self) -> usize {
        self.range.len()
    }

    fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[self.range.clone()]
    }
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Taken(bytes) => bytes,
        }
    }

    /// A packet that has a share keeps the bytes that it has.
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Taken(bytes) => Arc::make_mut(bytes).as_mut_slice(),
        }
    }
}

impl Chunks {
    fn concat(&self) -> Vec<u8> {
        self.parts.iter().flat_map(Chunk::bytes).copied().collect()
    }

    /// Memory and range of the last chunk, if bytes can be appended to it, or of a new one.
    fn appendable(&mut self) -> (&mut Vec<u8>, &mut Range<usize>) {
        let is_alone = self.parts.len() == 1;
        let fits = |last: &Chunk| matches!(last.memory, Memory::Own(_)) && (is_alone || last.len() < LEAST_TAKEN);
        if !self.parts.back().is_some_and(fits) {
            self.parts.push_back(Chunk { memory: Memory::Own(Vec::new()), range: 0..0 });
        }
        let Some(Chunk { memory: Memory::Own(memory), range }) = self.parts.back_mut() else {
            unreachable!("such a chunk was added if there was none")
        };
        if range.start > range.len() {
            // More is free in front than in use: the cost of moving it was paid by what was freed.
            memory.drain(..range.start);
            *range = 0..memory.len();
        }
        (memory, range)
    }

    fn append(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let (memory, range) = self.appendable();
            memory.extend_from_slice(bytes);
            range.end = memory.len();
            self.length += bytes.len();
        }
    }

    fn append_zeros(&mut self, count: usize) {
        if count > 0 {
            let (memory, range) = self.appendable();
            range.end += count;
            memory.resize(range.end, 0);
            self.length += count;
        }
    }

    /// Index of the chunk that has byte `at`, and the byte's index in its memory.
    fn find(&self, at: usize) -> Option<(usize, usize)> {
        let mut before = 0;
        for (index, part) in self.parts.iter().enumerate() {
            if at < before + part.len() {
                return Some((index, part.range.start + at - before));
            }
            before += part.len();
        }
        None
    }

    /// Replaces stored bytes from index `at` on.
    fn overwrite(&mut self, mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (index, from) = self.find(at).expect("they are stored");
            let part = &mut self.parts[index];
            let (here, further) = bytes.split_at(bytes.len().min(part.range.end - from));
            part.memory.bytes_mut()[from..from + here.len()].copy_from_slice(here);
            at += here.len();
            bytes = further;
        }
    }
}

impl StreamBuffer {
    /// Stores `payload` at `offset`, which is not below the last [`Self::discard_below`].
    pub fn write(&mut self, offset: u64, payload: Payload<'_>) {
        let Payload::Bytes(parts) = payload else { return };
        let mut at = (offset - self.start) as usize;
        for part in parts {
            self.chunks.append_zeros(at.saturating_sub(self.chunks.length));
            // What arrives in order is appended, and written once.
            let (stored, new) = part.split_at(part.len().min(self.chunks.length - at));
            self.chunks.overwrite(at, stored);
            self.chunks.append(new);
            at += part.len();
        }
    }

    /// Whether [`Self::take`] may store `length` bytes at `offset`: they follow what is stored, and
    /// they and all chunks but the first are large.
    pub fn takes(&self, offset: u64, length: u32) -> bool {
        let last = self.chunks.parts.back();
        length as usize >= LEAST_TAKEN
            && offset == self.start + self.chunks.length as u64
            && last.is_none_or(|last| last.len() >= LEAST_TAKEN)
    }

    /// Stores the bytes `range` of `memory` after those that are stored, without a copy.
    ///
    /// # Panics
    /// If `memory` has fewer bytes.
    pub fn take(&mut self, memory: Vec<u8>, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= memory.len(), "the memory has fewer bytes");
        self.chunks.length += range.len();
        self.chunks.parts.push_back(Chunk { memory: Memory::Taken(Arc::new(memory)), range });
    }

    /// The `length` bytes from `offset` on, which are in at most two chunks. All of them have
    /// arrived.
    ///
    /// # Panics
    /// If they are not stored, and others are.
    pub fn range(&self, offset: u64, length: u32) -> Payload<'_> {
        if self.chunks.length == 0 {
            return Payload::Counted;
        }
        let (index, from) = self.chunks.find((offset - self.start) as usize).expect("the bytes are stored");
        let part = &self.chunks.parts[index];
        let next = self.chunks.parts.get(index + 1).map_or(&[][..], Chunk::bytes);
        Payload::Bytes([&part.memory.bytes()[from..part.range.end], next]).part(0, length as usize)
    }

    /// The `length` bytes from `offset` on as [`Self::range`] returns them, with a share of their
    /// memory; `None` if the buffer may still append to it.
    pub fn share(&self, offset: u64, length: u32) -> Option<SharedPayload> {
        let (index, mut start) = self.chunks.find(offset.checked_sub(self.start)? as usize)?;
        let mut left = length as usize;
        let mut parts = [None, None];
        for (part, chunk) in parts.iter_mut().zip(self.chunks.parts.range(index..)) {
            if left == 0 {
                break;
            }
            let Memory::Taken(memory) = &chunk.memory else { return None };
            start = start.max(chunk.range.start);
            let end = chunk.range.end.min(start + left);
            *part = Some((Arc::clone(memory), start..end));
            left -= end - start;
            start = 0;
        }
        (left == 0).then_some(SharedPayload(parts))
    }

    /// Number of bytes from `offset` on that [`Self::range`] can return at once. Not limited where
    /// payload is counted only.
    pub fn most_in_range(&self, offset: u64) -> u32 {
        let Some((index, from)) = self.chunks.find(offset.saturating_sub(self.start) as usize) else { return u32::MAX };
        let next = self.chunks.parts.get(index + 1).map_or(0, Chunk::len);
        u32::try_from(self.chunks.parts[index].range.end - from + next).unwrap_or(u32::MAX)
    }

    /// The payload of a segment that carries a part of the stream.
    ///
    /// # Panics
    /// As [`Self::range`].
    pub fn payload_of(&self, segment: &Segment) -> Payload<'_> {
        match segment.length {
            0 => Payload::Counted,
            length => self.range(segment.info.offset.cast_unsigned(), length),
        }
    }

    /// The first `length` stored bytes, in one piece. All of them have arrived.
    ///
    /// # Panics
    /// If fewer are stored.
    pub fn contiguous(&mut self, length: usize) -> &[u8] {
        if self.chunks.parts.front().is_some_and(|first| first.len() < length) {
            let bytes = self.chunks.concat();
            self.chunks = Chunks::default();
            self.chunks.append(&bytes);
        }
        &self.chunks.parts.front().map_or(&[][..], Chunk::bytes)[..length]
    }

    /// Everything below `offset` has been acknowledged. Gives back the memory of chunks that
    /// [`Self::take`] has stored.
    pub fn discard_below(&mut self, offset: u64, mut give_back: impl FnMut(Vec<u8>)) {
        let mut count = ((offset - self.start) as usize).min(self.chunks.length);
        self.start = offset;
        self.chunks.length -= count;
        while let Some(first) = self.chunks.parts.front_mut() {
            if count < first.len() {
                first.range.start += count;
                return;
            }
            count -= first.len();
            let is_last = self.chunks.parts.len() == 1;
            let Some(first) = self.chunks.parts.pop_front() else { return };
            match first.memory {
                // A packet that has a share of it gives it back.
                Memory::Taken(memory) => Arc::into_inner(memory).into_iter().for_each(&mut give_back),
                Memory::Own(mut memory) if is_last && memory.capacity() <= MOST_KEPT => {
                    memory.clear();
                    self.chunks.parts.push_back(Chunk { memory: Memory::Own(memory), range: 0..0 });
                    return;
                }
                Memory::Own(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn payload_is_returned_by_offset_however_it_arrived() {
        let stream: Vec<u8> = (0..2000_u32).map(|index| (index % 251) as u8).collect();
        let piece = |at: usize| Payload::Bytes([&stream[at..at + 30], &stream[at + 30..at + 100]]);
        let mut buffer = StreamBuffer::default();
        // Out of order, and around the end of the ring.
        for at in (0..1900).step_by(100) {
            if at > 0 {
                buffer.write(at as u64 + 100, piece(at + 100));
            }
            buffer.write(at as u64, piece(at));
            buffer.discard_below(at as u64 + 50, drop);
            let Payload::Bytes([first, second]) = buffer.range(at as u64 + 60, 30) else { panic!("bytes are stored") };
            assert_eq!([first, second].concat(), stream[at + 60..at + 90]);
        }
    }

    #[test]
    fn counted_payload_is_not_stored() {
        let mut buffer = StreamBuffer::default();
        buffer.write(0, Payload::Counted);
        assert_eq!(buffer.range(0, 10), Payload::Counted);
        buffer.discard_below(10, drop);
        assert!(buffer.chunks.parts.is_empty());
    }

    /// The byte at a stream offset.
    fn byte(offset: u64) -> u8 {
        (offset % 251) as u8
    }

    fn bytes(offset: u64, length: usize) -> Vec<u8> {
        (offset..offset + length as u64).map(byte).collect()
    }

    proptest! {
        /// Payloads of all sizes, in order, again and with holes. The buffer takes what it may.
        #[test]
        fn any_arrival_gives_the_stream(
            arrivals in proptest::collection::vec((0_u64..80_000, 1_usize..70_000, any::<bool>()), 1..40),
        ) {
            let mut buffer = StreamBuffer::default();
            let (mut end, mut discarded, mut returned) = (0_u64, 0_u64, 0);
            let (mut taken, mut shares) = (0, Vec::new());
            for (distance, length, in_order) in arrivals {
                let offset = if in_order { end } else { end.saturating_sub(distance).max(discarded) };
                if buffer.takes(offset, length as u32) {
                    let mut memory = vec![255; 40];
                    memory.extend(bytes(offset, length));
                    memory.extend([255; 9]);
                    buffer.take(memory, 40..40 + length);
                    taken += 1;
                } else if !in_order && distance < 100 {
                    // Beyond a hole, which is then closed.
                    buffer.write(end + distance, Payload::Bytes([&bytes(end + distance, length), &[]]));
                    buffer.write(end, Payload::Bytes([&bytes(end, distance as usize), &[]]));
                    end += distance;
                } else {
                    buffer.write(offset, Payload::Bytes([&bytes(offset, length / 2), &bytes(offset + length as u64 / 2, length - length / 2)]));
                }
                end = end.max(offset + length as u64);
                end = end.max(buffer.start + buffer.chunks.length as u64);
                prop_assert_eq!(end, buffer.start + buffer.chunks.length as u64);
                for at in [discarded, discarded + (end - discarded) / 2, end - 1] {
                    let most = buffer.most_in_range(at);
                    prop_assert!(u64::from(most) >= (end - at).min(LEAST_TAKEN as u64));
                    let length = u64::from(most).min(end - at);
                    let Payload::Bytes(parts) = buffer.range(at, length as u32) else { panic!("bytes are stored") };
                    prop_assert!(parts.concat() == bytes(at, length as usize));
                    if let Some(shared) = buffer.share(at, length as u32) {
                        prop_assert!(shared.parts().concat() == bytes(at, length as usize));
                        shares.push((at, shared));
                    }
                }
                discarded += (end - discarded) * distance / 80_000;
                buffer.discard_below(discarded, |_| returned += 1);
            }
            let saved = postcard::to_stdvec(&buffer).unwrap();
            let mut restored: StreamBuffer = postcard::from_bytes(&saved).unwrap();
            let stored = (end - discarded) as usize;
            prop_assert!(restored.contiguous(stored) == bytes(discarded, stored));
            prop_assert!(buffer.contiguous(stored) == bytes(discarded, stored));
            buffer.discard_below(end, |_| returned += 1);
            prop_assert_eq!(buffer.chunks.length, 0);
            for (at, shared) in shares {
                let length = shared.parts().concat().len();
                prop_assert!(shared.parts().concat() == bytes(at, length));
            }
            prop_assert!(returned <= taken);
        }
    }

    #[test]
    fn memory_of_a_share_comes_back_with_the_last_share() {
        let mut buffer = StreamBuffer::default();
        buffer.take(vec![1; 65_536], 100..65_100);
        let share = buffer.share(64_000, 1000).expect("the memory was taken");
        assert_eq!(share.parts(), [&[1; 1000][..], &[][..]]);
        let again = share.clone();
        buffer.discard_below(65_000, |_| panic!("it is shared"));
        assert_eq!(share.into_memory().count(), 0);
        assert_eq!(Vec::from_iter(again.into_memory()), [vec![1; 65_536]]);
        buffer.write(65_000, Payload::Bytes([&[2; 100], &[]]));
        assert!(buffer.share(65_000, 10).is_none(), "it may be appended to");
    }

    #[test]
    fn memory_that_was_taken_comes_back() {
        let mut buffer = StreamBuffer::default();
        assert!(!buffer.takes(0, LEAST_TAKEN as u32 - 1) && !buffer.takes(1, 65_000) && buffer.takes(0, 65_000));
        buffer.take(vec![1; 65_536], 100..65_100);
        buffer.write(65_000, Payload::Bytes([&[2; 100], &[]]));
        assert!(!buffer.takes(65_100, 65_000), "a small chunk precedes");
        let mut returned = Vec::new();
        buffer.discard_below(64_999, |memory| returned.push(memory));
        assert!(returned.is_empty());
        buffer.discard_below(65_001, |memory| returned.push(memory));
        assert_eq!(returned, [vec![1; 65_536]]);
        assert_eq!(buffer.range(65_001, 99), Payload::Bytes([&[2; 99], &[]]));
    }
}
