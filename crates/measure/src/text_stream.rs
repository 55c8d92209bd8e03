//! A TCP socket that carries text.

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags};
use socket2::Socket;

use crate::stream::{begin_to_connect, is_connected, is_for_later};

/// Upper bound of the bytes of one receiving system call.
const CHUNK: usize = 64 * 1024;

/// A connection whose bytes have a meaning, in contrast to [`crate::stream::Stream`].
pub struct TextStream {
    socket: Socket,
    is_established: bool,
    /// Bytes to send; the first `sent` of them were sent.
    outgoing: Vec<u8>,
    sent: usize,
    /// Whether the stream ends after them.
    is_closed: bool,
    is_shut: bool,
    has_ended: bool,
    scratch: Box<[u8]>,
}

impl TextStream {
    /// Starts to connect `socket` to `peer`.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub fn connect(socket: Socket, peer: SocketAddr) -> io::Result<Self> {
        begin_to_connect(&socket, peer)?;
        Ok(Self::new(socket, false))
    }

    /// Takes over an open connection.
    ///
    /// # Errors
    /// The socket cannot be made non-blocking.
    pub fn accepted(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self::new(socket, true))
    }

    fn new(socket: Socket, is_established: bool) -> Self {
        Self {
            socket,
            is_established,
            outgoing: Vec::new(),
            sent: 0,
            is_closed: false,
            is_shut: false,
            has_ended: false,
            scratch: vec![0; CHUNK].into_boxed_slice(),
        }
    }

    /// The socket.
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether data may flow.
    pub const fn is_established(&self) -> bool {
        self.is_established
    }

    /// Whether the other end has ended its stream.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether both ends have closed and all bytes are transferred.
    pub const fn is_over(&self) -> bool {
        self.is_shut && self.has_ended
    }

    /// Bytes that were written and not accepted by the kernel.
    pub const fn unsent(&self) -> usize {
        self.outgoing.len() - self.sent
    }

    /// The bytes to send; append to them.
    pub const fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// Ends the stream after the bytes written so far.
    pub const fn close(&mut self) {
        self.is_closed = true;
    }

    /// Sends to the kernel what it accepts now. Returns whether that was anything.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send(&mut self) -> io::Result<bool> {
        if !self.is_established || self.is_shut {
            return Ok(false);
        }
        let before = self.sent;
        while self.unsent() > 0 {
            match self.socket.send(&self.outgoing[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if is_for_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        let moved = self.sent > before;
        // A peer that always leaves some bytes unread must not make the buffer grow.
        if self.sent >= self.unsent() {
            self.outgoing.drain(..self.sent);
            self.sent = 0;
        }
        if self.unsent() == 0 && self.is_closed {
            self.socket.shutdown(Shutdown::Write)?;
            self.is_shut = true;
        }
        Ok(moved || self.is_shut)
    }

    /// Receives what has arrived, at most one buffer of it; `None` if nothing changed: the
    /// connection opened, bytes arrived or the other end closed. Bytes of an opening are none.
    ///
    /// # Errors
    /// The connection is lost or refused.
    pub fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        if !self.is_established {
            self.is_established = is_connected(&self.socket)?;
            return Ok(self.is_established.then_some(&[]));
        }
        if self.has_ended {
            return Ok(None);
        }
        match (&self.socket).read(&mut self.scratch) {
            Ok(0) => {
                self.has_ended = true;
                Ok(Some(&[]))
            }
            Ok(length) => Ok(Some(&self.scratch[..length])),
            Err(error) if is_for_later(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The events to wait for; those of arriving data only if `reads`.
    pub fn events(&self, reads: bool) -> PollFd<'_> {
        let mut events = PollFlags::empty();
        events.set(PollFlags::POLLOUT, !self.is_established || self.unsent() > 0);
        events.set(PollFlags::POLLIN, reads && self.is_established && !self.has_ended);
        PollFd::new(self.socket.as_fd(), events)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn sent_bytes_are_freed_while_others_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let mut peer = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (accepted, _) = listener.accept().expect("it is connected");
        let mut stream = TextStream::accepted(accepted.into()).expect("it can be non-blocking");
        let mut received = vec![0; 1 << 20];
        let mut largest = 0;
        for _ in 0..200 {
            // More than the kernel's buffers keep, so that some bytes always wait.
            while stream.unsent() < 8 << 20 {
                stream.outgoing().extend([0; 1 << 16]);
            }
            stream.send().expect("the peer is there");
            assert!(stream.unsent() > 0);
            peer.read_exact(&mut received).expect("more than this waits");
            largest = largest.max(stream.outgoing().len());
        }
        assert!(largest < 32 << 20, "{largest} bytes are kept");
    }
}
