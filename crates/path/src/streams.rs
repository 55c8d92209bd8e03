//! The payload of both streams of a TCP end.
//!
//! A [`Connection`] counts the bytes of its streams. An end that reads or writes contents keeps
//! them here.

use airpath_tcp::{Connection, Segment};

use crate::payload::Payload;
use crate::stream_buffer::StreamBuffer;

/// The payload of both streams of a TCP end.
#[derive(Debug, Default)]
pub struct Streams {
    /// What has arrived, from the first byte that was not consumed.
    arrived: StreamBuffer,
    consumed: u64,
    /// What was written, from the first byte that is not acknowledged.
    written: StreamBuffer,
    end: u64,
}

impl Streams {
    /// Stores what `connection` has accepted of the payload of its last segment. Returns whether
    /// that is bytes, or nothing.
    pub fn accept(&mut self, connection: &Connection, payload: Payload<'_>) -> bool {
        let Some(part) = connection.accepted_payload().filter(|part| part.length > 0) else { return true };
        let accepted = payload.part(part.skip as usize, part.length as usize);
        self.arrived.write(part.offset, accepted);
        accepted != Payload::Counted
    }

    /// The bytes that have arrived in order and were not consumed.
    pub fn unread(&mut self, connection: &Connection) -> &[u8] {
        let count = connection.received() - self.consumed;
        self.arrived.contiguous(count as usize)
    }

    /// The first `count` unread bytes are not needed any more, which opens the window.
    pub fn consume(&mut self, connection: &mut Connection, count: usize) {
        self.consumed += count as u64;
        self.arrived.discard_below(self.consumed, drop);
        connection.read(count as u64);
    }

    /// Appends bytes to the stream towards the peer, which has not ended.
    pub fn write(&mut self, connection: &mut Connection, bytes: &[u8]) {
        self.written.write(self.end, Payload::Bytes([bytes, &[]]));
        self.end += bytes.len() as u64;
        connection.write(bytes.len() as u64);
    }

    /// Bytes that were written and are not acknowledged.
    pub fn stored(&self, connection: &Connection) -> u64 {
        self.end - connection.acknowledged()
    }

    /// Frees what the peer has acknowledged.
    pub fn free_acknowledged(&mut self, connection: &Connection) {
        self.written.discard_below(connection.acknowledged(), drop);
    }

    /// The payload of a segment that the connection sends.
    pub fn payload(&self, segment: &Segment) -> Payload<'_> {
        self.written.payload_of(segment)
    }

    /// What was written and is not acknowledged.
    pub const fn written(&self) -> &StreamBuffer {
        &self.written
    }
}
