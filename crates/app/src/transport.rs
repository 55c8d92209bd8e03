//! A connection as applications see it, whatever carries it: the TCP of the simulator, or a socket.

use airpath_tcp::{Connection, State};

/// What an application needs of its connection. Bytes are counted, not carried.
pub trait Transport {
    /// Whether data may flow.
    fn is_established(&self) -> bool;
    /// Queues bytes to send.
    fn write(&mut self, bytes: u64);
    /// Ends the stream after what was written.
    fn close(&mut self);
    /// Bytes that arrived in order and wait to be read.
    fn readable(&self) -> u64;
    /// Takes bytes that arrived.
    fn read(&mut self, bytes: u64);
    /// All bytes that arrived in order so far, read or not.
    fn received(&self) -> u64;
    /// Whether the other end has ended its stream.
    fn peer_closed(&self) -> bool;
}

impl Transport for Connection {
    fn is_established(&self) -> bool {
        !matches!(self.state(), State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }
    fn write(&mut self, bytes: u64) {
        self.write(bytes);
    }
    fn close(&mut self) {
        self.close();
    }
    fn readable(&self) -> u64 {
        self.readable()
    }
    fn read(&mut self, bytes: u64) {
        self.read(bytes);
    }
    fn received(&self) -> u64 {
        self.received()
    }
    fn peer_closed(&self) -> bool {
        self.peer_closed()
    }
}

/// One end of a connection between an application, for which it is a [`Transport`], and what
/// carries the bytes. It keeps count of both directions and of their ends.
#[derive(Clone, Debug, Default)]
pub struct StreamEnd {
    established: bool,
    written: u64,
    taken: u64,
    closed: bool,
    received: u64,
    read: u64,
    ended: bool,
}

impl StreamEnd {
    /// The end of an open connection, of which the first `received` bytes have arrived.
    pub fn opened(received: u64) -> Self {
        Self { established: true, received, ..Self::default() }
    }

    /// Data may flow from now on.
    pub const fn establish(&mut self) {
        self.established = true;
    }

    /// Bytes that were written and not taken yet.
    pub const fn unsent(&self) -> u64 {
        self.written - self.taken
    }

    /// So many of the unsent bytes are on their way.
    pub const fn take(&mut self, bytes: u64) {
        self.taken += bytes;
    }

    /// All bytes that were taken so far.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether the application has closed the stream.
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether nothing is left to send but the end of the stream.
    pub const fn is_drained(&self) -> bool {
        self.closed && self.unsent() == 0
    }

    /// So many more bytes have arrived in order.
    pub const fn receive(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// The end of the other end's stream has arrived.
    pub const fn end(&mut self) {
        self.ended = true;
    }
}

impl Transport for StreamEnd {
    fn is_established(&self) -> bool {
        self.established
    }
    fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }
    fn close(&mut self) {
        self.closed = true;
    }
    fn readable(&self) -> u64 {
        self.received - self.read
    }
    fn read(&mut self, bytes: u64) {
        self.read += bytes;
    }
    fn received(&self) -> u64 {
        self.received
    }
    fn peer_closed(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_counts_what_passes_between_its_two_sides() {
        let mut end = StreamEnd::default();
        assert!(!end.is_established());
        end.establish();
        end.write(100);
        end.take(60);
        end.close();
        assert_eq!((end.unsent(), end.taken(), end.is_closed(), end.is_drained()), (40, 60, true, false));
        end.take(40);
        assert!(end.is_drained());
        end.receive(30);
        end.read(10);
        assert_eq!((end.readable(), end.received(), end.peer_closed()), (20, 30, false));
        end.end();
        assert!(end.peer_closed());
        assert_eq!(StreamEnd::opened(16).readable(), 16);
    }
}
