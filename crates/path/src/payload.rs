//! Payload of TCP segments, as bytes or as a count.

use std::ops::Range;
use std::sync::Arc;

/// The payload of a TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Only its length is known, which the segment has.
    #[default]
    Counted,
    /// Its bytes, in two parts: those of a buffer may be in two chunks.
    Bytes([&'a [u8]; 2]),
}

/// Payload in memory that a buffer and packets share, in one or two parts.
#[derive(Clone, Debug)]
pub struct SharedPayload(pub [Option<SharedBytes>; 2]);

/// Memory, and where the bytes are in it.
pub type SharedBytes = (Arc<Vec<u8>>, Range<usize>);

impl SharedPayload {
    /// The bytes.
    pub fn parts(&self) -> [&[u8]; 2] {
        self.0.each_ref().map(|part| part.as_ref().map_or(&[][..], |(memory, range)| &memory[range.clone()]))
    }

    /// Gives back the memory, if nothing else has a share of it.
    pub fn into_memory(self) -> impl Iterator<Item = Vec<u8>> {
        self.0.into_iter().flatten().filter_map(|(memory, _)| Arc::into_inner(memory))
    }
}

impl<'a> Payload<'a> {
    /// `length` bytes after the first `skip`.
    ///
    /// # Panics
    /// If it has fewer bytes.
    #[must_use]
    pub fn part(self, skip: usize, length: usize) -> Self {
        let Self::Bytes([first, second]) = self else { return self };
        let cut = |part: &'a [u8], before: usize| {
            let start = skip.saturating_sub(before).min(part.len());
            let end = (skip + length).saturating_sub(before).min(part.len());
            &part[start..end]
        };
        let parts = [cut(first, 0), cut(second, first.len())];
        assert_eq!(parts[0].len() + parts[1].len(), length, "the payload has fewer bytes");
        Self::Bytes(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_may_be_in_two_chunks() {
        let payload = Payload::Bytes([b"abc", b"defg"]);
        assert_eq!(payload.part(0, 3), Payload::Bytes([b"abc", b""]));
        assert_eq!(payload.part(2, 3), Payload::Bytes([b"c", b"de"]));
        assert_eq!(payload.part(4, 3), Payload::Bytes([b"", b"efg"]));
        assert_eq!(Payload::Counted.part(2, 3), Payload::Counted);
    }
}
