//! Reads the octets of a ROHC packet from the front.

use crate::error::DecompressError;

/// What is left of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Octets read so far.
    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    /// Octets that are left.
    pub(crate) const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The next octet, without reading it.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], DecompressError> {
        let end = self.position + count;
        let taken = self.bytes.get(self.position..end).ok_or(DecompressError::Truncated)?;
        self.position = end;
        Ok(taken)
    }

    pub(crate) fn octet(&mut self) -> Result<u8, DecompressError> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn word(&mut self) -> Result<u16, DecompressError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A number of self-describing length: its value, and how many bits it has.
    pub(crate) fn sdvl(&mut self) -> Result<(u32, u32), DecompressError> {
        let first = self.octet()?;
        let (length, bits) = match first.leading_ones() {
            0 => (0, 7),
            1 => (1, 14),
            2 => (2, 21),
            _ => (3, 29),
        };
        let first = u32::from(first) & ((1 << (bits - 8 * length)) - 1);
        let value = self.take(length as usize)?.iter().fold(first, |value, byte| value << 8 | u32::from(*byte));
        Ok((value, bits))
    }
}
