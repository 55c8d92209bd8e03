//! The payload of one direction of a TCP connection, from its arrival until the receiver has
//! acknowledged it.

use std::collections::VecDeque;

use airpath_tcp::Segment;
use serde::{Deserialize, Serialize};

use crate::store::Payload;

/// Payload by stream offset. Where payload is counted only, it stores nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StreamBuffer {
    /// Offset of the first stored byte.
    start: u64,
    /// What has not arrived yet between others is zero.
    #[serde(with = "in_one_piece")]
    bytes: VecDeque<u8>,
}

/// Bytes as a whole, not as a sequence of numbers.
mod in_one_piece {
    use std::collections::VecDeque;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &VecDeque<u8>, serializer: S) -> Result<S::Ok, S::Error> {
        let (first, second) = bytes.as_slices();
        serializer.serialize_bytes(&[first, second].concat())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VecDeque<u8>, D::Error> {
        Ok(<&[u8]>::deserialize(deserializer)?.to_vec().into())
    }
}

impl StreamBuffer {
    /// Stores `payload` at `offset`, which is not below the last [`Self::discard_below`].
    pub fn write(&mut self, offset: u64, payload: Payload<'_>) {
        let Payload::Bytes(parts) = payload else { return };
        let mut at = (offset - self.start) as usize;
        for part in parts {
            if self.bytes.len() < at {
                self.bytes.resize(at, 0);
            }
            // What arrives in order is appended, and written once.
            let (stored, new) = part.split_at(part.len().min(self.bytes.len() - at));
            self.overwrite(at, stored);
            self.bytes.extend(new);
            at += part.len();
        }
    }

    /// Replaces bytes from index `at` on.
    fn overwrite(&mut self, at: usize, part: &[u8]) {
        let end = at + part.len();
        let (first, second) = self.bytes.as_mut_slices();
        let split = first.len().clamp(at, end) - at;
        let boundary = first.len();
        if split > 0 {
            first[at..at + split].copy_from_slice(&part[..split]);
        }
        if split < part.len() {
            second[at + split - boundary..end - boundary].copy_from_slice(&part[split..]);
        }
    }

    /// The `length` bytes from `offset` on. All of them have arrived.
    ///
    /// # Panics
    /// If they are not stored, and others are.
    pub fn range(&self, offset: u64, length: u32) -> Payload<'_> {
        if self.bytes.is_empty() {
            return Payload::Counted;
        }
        let (first, second) = self.bytes.as_slices();
        Payload::Bytes([first, second]).part((offset - self.start) as usize, length as usize)
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
        &self.bytes.make_contiguous()[..length]
    }

    /// Everything below `offset` has been acknowledged.
    pub fn discard_below(&mut self, offset: u64) {
        let count = (offset - self.start) as usize;
        self.bytes.drain(..count.min(self.bytes.len()));
        self.start = offset;
    }
}

#[cfg(test)]
mod tests {
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
            buffer.discard_below(at as u64 + 50);
            let Payload::Bytes([first, second]) = buffer.range(at as u64 + 60, 30) else { panic!("bytes are stored") };
            assert_eq!([first, second].concat(), stream[at + 60..at + 90]);
        }
    }

    #[test]
    fn counted_payload_is_not_stored() {
        let mut buffer = StreamBuffer::default();
        buffer.write(0, Payload::Counted);
        assert_eq!(buffer.range(0, 10), Payload::Counted);
        buffer.discard_below(10);
        assert_eq!(buffer.bytes.capacity(), 0);
    }
}
