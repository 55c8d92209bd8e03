//! Bytes of a packet that may be captured in part.

use crate::skipped::Cause;

/// A part of a frame: its captured bytes and its original length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// At most `length` bytes.
    pub bytes: &'a [u8],
    /// Its original length in bytes.
    pub length: usize,
}

impl<'a> Part<'a> {
    /// `bytes` of a part that had `length`, or more where more are there.
    #[inline]
    pub fn new(bytes: &'a [u8], length: usize) -> Self {
        Self { bytes, length: length.max(bytes.len()) }
    }

    /// The first `N` bytes.
    #[inline]
    pub fn leading<const N: usize>(&self) -> Result<&'a [u8; N], Cause> {
        self.bytes.first_chunk().ok_or_else(|| self.missing(N))
    }

    /// The part after the first `length` bytes, which have to be captured.
    #[inline]
    pub fn after(&self, length: usize) -> Result<Self, Cause> {
        match self.bytes.get(length..) {
            Some(bytes) => Ok(Self { bytes, length: self.length - length }),
            None => Err(self.missing(length)),
        }
    }

    /// The part after the first `length` bytes, whether or not they were captured; empty if the
    /// part is shorter.
    #[inline]
    pub fn beyond(&self, length: usize) -> Self {
        Self { bytes: self.bytes.get(length..).unwrap_or(&[]), length: self.length.saturating_sub(length) }
    }

    /// The same with the length from a header. Padding is removed; missing bytes count as not
    /// captured.
    #[inline]
    pub fn with_length(&self, length: usize) -> Self {
        Self { bytes: &self.bytes[..self.bytes.len().min(length)], length }
    }

    /// The same without what exceeds `length`: padding.
    #[inline]
    pub fn at_most(&self, length: usize) -> Self {
        self.with_length(length.min(self.length))
    }

    /// Whether all of it was captured.
    #[inline]
    pub const fn is_whole(&self) -> bool {
        self.bytes.len() == self.length
    }

    /// Why `needed` bytes are missing: they were not captured, or never existed.
    #[cold]
    const fn missing(&self, needed: usize) -> Cause {
        if needed <= self.length { Cause::CutShort } else { Cause::Malformed }
    }
}
