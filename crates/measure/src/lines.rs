//! Lines over a TCP connection: the framing of the control connection.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::AsFd;

use airpath_core::{Bitrate, Bytes, Instant, Span};
use nix::poll::PollFlags;
use serde::Serialize;
use socket2::Socket;

use crate::clock::{now, wait};

/// Time limit for the other end to receive a line.
const SEND_TIMEOUT: Span = Span::from_secs(10);

/// Longest time for `length` bytes besides the time limits: at 8 kbit/s, the rate of a slow bearer.
/// A list of arrivals has megabytes.
pub fn transfer_time(length: usize) -> Span {
    Bitrate::from_bps(8_000).time_for(Bytes::new(length as u64))
}

/// A connection with line framing.
pub struct Lines {
    socket: Socket,
    pending: Vec<u8>,
    ended: bool,
}

impl Lines {
    /// Wraps this socket, which becomes non-blocking; `begun` was read from it before.
    pub fn new(socket: Socket, begun: Vec<u8>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        Ok(Self { socket, pending: begun, ended: false })
    }

    /// The socket.
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The next line without its end; `None` when the other end has closed, or `stop` is true.
    ///
    /// # Errors
    /// The connection is lost, the line is longer than `limit` bytes, or did not arrive by `until`.
    pub fn read(&mut self, limit: usize, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<Option<Vec<u8>>> {
        self.read_line(limit, until, None, stop)
    }

    /// As [`Self::read`], but a time of `pause` in which no byte arrives is an error, too.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_without_pause(
        &mut self,
        limit: usize,
        until: Instant,
        pause: Span,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<Option<Vec<u8>>> {
        self.read_line(limit, until, Some(pause), stop)
    }

    fn read_line(
        &mut self,
        limit: usize,
        until: Instant,
        pause: Option<Span>,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<Option<Vec<u8>>> {
        let next = || pause.map_or(until, |pause| until.min(now() + pause));
        let mut wakeup = next();
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let rest = self.pending.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                line.pop();
                return Ok(Some(line));
            }
            if self.ended || stop() {
                return Ok(None);
            }
            if self.pending.len() > limit {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than the protocol allows"));
            }
            if now() >= wakeup {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
            }
            let mut buffer = [0; 4096];
            match (&self.socket).read(&mut buffer) {
                Ok(0) => self.ended = true,
                Ok(length) => {
                    self.pending.extend_from_slice(&buffer[..length]);
                    wakeup = next();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.socket.as_fd(), PollFlags::POLLIN, Some(wakeup));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// The connection is lost or ends before, or they did not arrive by `until`, or before `stop`
    /// was true.
    pub fn read_exact(&mut self, length: usize, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<Vec<u8>> {
        let mut buffer = [0; 4096];
        while self.pending.len() < length {
            if now() >= until || stop() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
            }
            match (&self.socket).read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.pending.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.socket.as_fd(), PollFlags::POLLIN, Some(until));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let rest = self.pending.split_off(length);
        Ok(std::mem::replace(&mut self.pending, rest))
    }

    /// Sends `value` as a line of JSON.
    ///
    /// # Errors
    /// The connection is lost, or the other end does not receive it.
    pub fn write(&self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
        line.push(b'\n');
        self.write_bytes(&line)
    }

    /// Sends `bytes`.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_bytes(&self, mut bytes: &[u8]) -> io::Result<()> {
        let until = now() + SEND_TIMEOUT + transfer_time(bytes.len());
        while !bytes.is_empty() {
            match self.socket.send(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && now() < until => {
                    wait(self.socket.as_fd(), PollFlags::POLLOUT, Some(until));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the stream, and discards what arrives until the other end has closed, at the latest at
    /// `until`. Without that, unread bytes reset the connection, and what was written may be lost.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn close(self, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        let mut buffer = [0; 4096];
        while !stop() && now() < until {
            match (&self.socket).read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.socket.as_fd(), PollFlags::POLLIN, Some(until));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
