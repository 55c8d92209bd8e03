//! A TCP socket as a transport of the workloads, and the loop that runs one of their ends over it.

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use airpath_app::{StreamEnd, Transport};
use airpath_core::Instant;
use nix::poll::PollFlags;
use socket2::Socket;

use crate::clock::{now, wait};

/// Upper bound of the bytes of one system call.
const CHUNK: usize = 256 * 1024;

/// Bytes of the stream from the peer that are kept.
#[derive(Default)]
struct Head {
    /// Position of the first one.
    at: u64,
    /// Their number.
    length: usize,
    /// Those that have arrived.
    bytes: Vec<u8>,
}

impl Head {
    /// Keeps its part of `bytes`, whose first one has the position `at`.
    fn receive(&mut self, at: u64, bytes: &[u8]) {
        let missing = self.length - self.bytes.len();
        if let Some(skip) = (self.at + self.bytes.len() as u64).checked_sub(at)
            && let Some(rest) = bytes.get(skip.min(CHUNK as u64) as usize..)
        {
            self.bytes.extend_from_slice(&rest[..rest.len().min(missing)]);
        }
    }
}

/// A connection. The bytes of a workload are meaningless and incompressible, except given ones.
pub struct Stream {
    socket: Socket,
    /// The workload's view of the connection.
    pub end: StreamEnd,
    /// Bytes with a meaning, and their position in the stream to the peer.
    preface: Vec<u8>,
    preface_at: u64,
    head: Head,
    shut: bool,
    scratch: Box<[u8]>,
}

impl Stream {
    /// Starts to connect a non-blocking socket to `peer`.
    pub fn connect(socket: Socket, peer: SocketAddr) -> io::Result<Self> {
        begin_to_connect(&socket, peer)?;
        Ok(Self::new(socket, StreamEnd::default()))
    }

    /// Takes over an open connection whose first `received` bytes were read before.
    pub fn accepted(socket: Socket, received: u64) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self::new(socket, StreamEnd::opened(received)))
    }

    fn new(socket: Socket, end: StreamEnd) -> Self {
        let scratch = vec![0; CHUNK].into_boxed_slice();
        Self { socket, end, preface: Vec::new(), preface_at: 0, head: Head::default(), shut: false, scratch }
    }

    /// What the workload writes next starts with these bytes; they count as written. The ones given
    /// before must have been sent.
    pub fn begin_with(&mut self, preface: &[u8]) {
        self.preface = preface.to_vec();
        self.preface_at = self.end.taken() + self.end.unsent();
    }

    /// Keeps `length` bytes from position `at` on of the stream from the peer, which have not
    /// arrived, instead of those kept before.
    pub fn keep(&mut self, at: u64, length: usize) {
        self.head = Head { at, length, bytes: Vec::with_capacity(length) };
    }

    /// The bytes kept that have arrived.
    pub fn kept(&self) -> &[u8] {
        &self.head.bytes
    }

    /// The socket.
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether both ends have closed and all bytes are transferred.
    pub fn is_over(&self) -> bool {
        self.shut && self.end.peer_closed()
    }

    /// Transfers data to and from the kernel without waiting. Returns whether there was any.
    pub fn exchange(&mut self) -> io::Result<bool> {
        if !self.end.is_established() {
            if !is_connected(&self.socket)? {
                return Ok(false);
            }
            self.end.establish();
            // The workload must see the open connection before its data.
            return Ok(true);
        }
        let mut moved = self.send()?;
        if self.end.is_drained() && !self.shut {
            self.socket.shutdown(Shutdown::Write)?;
            self.shut = true;
            moved = true;
        }
        Ok(self.receive()? || moved)
    }

    /// Waits until data can be transferred, for a bounded time.
    pub fn wait(&self, until: Option<Instant>) {
        let mut events = PollFlags::empty();
        if !self.end.is_established() || self.end.unsent() > 0 {
            events |= PollFlags::POLLOUT;
        }
        if self.end.is_established() && !self.end.peer_closed() {
            events |= PollFlags::POLLIN;
        }
        wait(self.socket.as_fd(), events, until);
    }

    fn send(&mut self) -> io::Result<bool> {
        let mut moved = false;
        while self.end.unsent() > 0 {
            let length = self.end.unsent().min(CHUNK as u64) as usize;
            let preface = self.end.taken().checked_sub(self.preface_at);
            let preface = preface.and_then(|taken| self.preface.get(taken as usize..));
            let sent = match preface.filter(|rest| !rest.is_empty()) {
                // The prefix and what follows are one system call, so that they share a segment.
                Some(rest) => {
                    let mut first = rest[..rest.len().min(length)].to_vec();
                    first.extend_from_slice(&noise()[..length - first.len()]);
                    self.socket.send(&first)
                }
                None => self.socket.send(&noise()[..length]),
            };
            match sent {
                Ok(sent) => {
                    self.end.take(sent as u64);
                    moved = true;
                }
                Err(error) if is_for_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }

    fn receive(&mut self) -> io::Result<bool> {
        if self.end.peer_closed() {
            return Ok(false);
        }
        match (&self.socket).read(&mut self.scratch) {
            Ok(0) => self.end.end(),
            Ok(length) => {
                self.head.receive(self.end.received(), &self.scratch[..length]);
                self.end.receive(length as u64);
            }
            Err(error) if is_for_later(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

/// Reason of the return of [`run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Both ends closed.
    Over,
    /// Stopped, or at the time limit.
    Stopped,
}

/// Runs one end of a workload over `stream`, until both ends have closed, or `stop` is true. `step`
/// lets the workload act; it is called with the time whenever the connection may have changed, and
/// returns whether it has acted.
///
/// # Errors
/// The connection is lost, or the other end closes it early.
pub fn run(
    stream: &mut Stream,
    stop: &dyn Fn() -> bool,
    step: &mut dyn FnMut(Instant, &mut StreamEnd) -> bool,
) -> io::Result<Ended> {
    loop {
        let moved = stream.exchange()?;
        let acted = step(now(), &mut stream.end);
        if stream.is_over() {
            return Ok(Ended::Over);
        }
        let end = &stream.end;
        if end.peer_closed() && (end.unsent() > 0 || !(acted || moved || end.is_closed())) {
            return Err(closed_early());
        }
        if stop() {
            return Ok(Ended::Stopped);
        }
        if !moved && !acted {
            stream.wait(None);
        }
    }
}

/// The error of a connection that the other end closes early.
pub fn closed_early() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the other end closed the connection early")
}

/// Starts to connect `socket` to `peer`; it becomes non-blocking.
///
/// # Errors
/// The kernel rejects it.
pub fn begin_to_connect(socket: &Socket, peer: SocketAddr) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    match socket.connect(&peer.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(()),
    }
}

/// Whether a socket that was to connect has done so.
///
/// # Errors
/// The connection has failed.
pub fn is_connected(socket: &Socket) -> io::Result<bool> {
    match socket.take_error()? {
        Some(error) => Err(error),
        None => Ok(socket.peer_addr().is_ok()),
    }
}

/// Whether a system call is to be repeated when the socket is ready.
pub fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::NotConnected)
}

/// Incompressible bytes: the outputs of SplitMix64 (Steele, Lea, Flood 2014) from zero on.
pub fn noise() -> &'static [u8; CHUNK] {
    static NOISE: OnceLock<Box<[u8; CHUNK]>> = OnceLock::new();
    NOISE.get_or_init(|| {
        let mut noise = Box::new([0; CHUNK]);
        let mut state = 0u64;
        for word in noise.as_chunks_mut::<8>().0 {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            *word = (mixed ^ (mixed >> 31)).to_be_bytes();
        }
        noise
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_kept_may_arrive_in_parts_or_with_others() {
        let kept = |parts: &[&[u8]]| {
            let mut head = Head { at: 3, length: 4, bytes: Vec::new() };
            let mut at = 0;
            for part in parts {
                head.receive(at, part);
                at += part.len() as u64;
            }
            head.bytes
        };
        for parts in [&[&b"0123456789"[..]][..], &[b"0123", b"4", b"56789"], &[b"012", b"3456", b"789"]] {
            assert_eq!(kept(parts), b"3456");
        }
        assert_eq!(kept(&[b"01234"]), b"34");
        let mut late = Head { at: 3, length: 4, bytes: Vec::new() };
        late.receive(5, b"56789");
        assert!(late.bytes.is_empty(), "its start has passed");
    }
}
