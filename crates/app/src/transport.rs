//! A connection as applications see it, independent of its carrier: the simulator's TCP, or a
//! socket.

use airpath_quic::Connection as QuicConnection;
use airpath_tcp::{Connection, State};

/// The connection of an application. Bytes are counted, not carried.
pub trait Transport {
    /// Whether data may flow.
    fn is_established(&self) -> bool;
    /// Queues bytes to send.
    fn write(&mut self, bytes: u64);
    /// Ends the stream after the written data.
    fn close(&mut self);
    /// Bytes that were written and not sent.
    fn unsent(&self) -> u64;
    /// Bytes that arrived in order and are unread.
    fn readable(&self) -> u64;
    /// Reads bytes that arrived.
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
    fn unsent(&self) -> u64 {
        self.unsent()
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

/// The first stream of a QUIC connection: the end that writes first opens it.
impl Transport for QuicConnection {
    fn is_established(&self) -> bool {
        self.is_established()
    }
    fn write(&mut self, bytes: u64) {
        if bytes > 0 && first_stream(self) {
            self.stream(0).write(bytes);
        }
    }
    fn close(&mut self) {
        if first_stream(self) {
            self.stream(0).close();
        }
    }
    fn unsent(&self) -> u64 {
        self.unsent()
    }
    fn readable(&self) -> u64 {
        self.readable()
    }
    fn read(&mut self, bytes: u64) {
        if bytes > 0 {
            self.stream(0).read(bytes);
        }
    }
    fn received(&self) -> u64 {
        self.received()
    }
    fn peer_closed(&self) -> bool {
        self.peer_closed()
    }
}

/// Opens the first stream if there is none. Returns whether there is one: a lost connection opens
/// none.
fn first_stream(connection: &mut QuicConnection) -> bool {
    connection.stream_count() > 0 || connection.open_stream().is_some()
}

/// One end of a connection between an application, for which it is a [`Transport`], and the carrier
/// of the bytes. It counts both directions and their ends.
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
    /// The end of an open connection whose first `received` bytes have arrived.
    pub fn opened(received: u64) -> Self {
        Self { established: true, received, ..Self::default() }
    }

    /// Data may flow from now on.
    pub const fn establish(&mut self) {
        self.established = true;
    }

    /// Written bytes that are not taken for sending yet.
    pub const fn unsent(&self) -> u64 {
        self.written - self.taken
    }

    /// Takes this number of unsent bytes for sending.
    pub const fn take(&mut self, bytes: u64) {
        self.taken += bytes;
    }

    /// All bytes taken for sending so far.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether the application has closed the stream.
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether only the end of the stream is left to send.
    pub const fn is_drained(&self) -> bool {
        self.closed && self.unsent() == 0
    }

    /// This number of bytes has arrived in order.
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
    fn unsent(&self) -> u64 {
        self.unsent()
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
