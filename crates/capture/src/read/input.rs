//! The bytes of a file, in blocks.

use std::io::{self, BufRead, Read};

/// Bytes requested in one read: a small part of a cache of 2 MB, as the reader may share it with
/// the state of the connections.
const BLOCK: usize = 1 << 16;

/// A window on a stream of bytes that moves forward.
pub(super) struct Input<'a> {
    source: Box<dyn Read + Send + 'a>,
    /// Initialised; `start..end` contains data that was read and not used.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    error: Option<io::Error>,
}

impl<'a> Input<'a> {
    pub fn new(source: Box<dyn Read + Send + 'a>) -> Self {
        Self { source, buffer: vec![0; BLOCK], start: 0, end: 0, ended: false, error: None }
    }

    /// Reads until `length` bytes are in the window; returns whether they are.
    #[inline]
    pub fn fill(&mut self, length: usize) -> bool {
        self.end - self.start >= length || self.read(length)
    }

    /// The bytes of the window.
    #[inline]
    pub fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The first `N` bytes of the window, which stay there; `None` where the stream ends before.
    #[inline]
    pub fn peek<const N: usize>(&mut self) -> Option<[u8; N]> {
        if self.fill(N) { self.available().first_chunk().copied() } else { None }
    }

    /// Consumes `length` bytes of the window, if it has them.
    #[inline]
    pub fn take(&mut self, length: usize) -> &[u8] {
        let start = self.start;
        self.start += length;
        &self.buffer[start..self.start]
    }

    /// The error that ended the stream, if any.
    pub const fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Takes the error that ended the stream.
    pub const fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Capacity of the window.
    #[cfg(test)]
    pub const fn window(&self) -> usize {
        self.buffer.len()
    }

    #[cold]
    fn read(&mut self, length: usize) -> bool {
        while self.end - self.start < length && !self.ended {
            if self.start > 0 && self.start + length > self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.end == self.buffer.len() {
                // The window grows with what has been read, not with what a header claims.
                self.buffer.resize(length.min(2 * self.buffer.len()), 0);
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.error = Some(error);
                }
            }
        }
        self.end - self.start >= length
    }
}

/// The window and the following bytes, as the input of a decoder.
impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.fill(1)
            && let Some(error) = self.take_error()
        {
            return Err(error);
        }
        Ok(self.available())
    }

    fn consume(&mut self, count: usize) {
        let _ = self.take(count);
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}
