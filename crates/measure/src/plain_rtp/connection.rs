//! A session within a TCP connection (RFC 4571). The receiver listens, and the sender connects.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::fd::AsFd;

use airpath_app::streaming::Channel;
use airpath_app::streaming::framing::{self, Frames, FramingError};
use airpath_core::{Instant, Span};
use nix::poll::PollFlags;
use socket2::Socket;

use crate::clock::{now, wait, wait_for_any};
use crate::control;
use crate::rtp::End;
use crate::stream::is_for_later;
use crate::tcp_info::is_acknowledged;
use crate::work::LARGEST_DATAGRAM;

/// Longest wait for the response to a SYN.
const CONNECT_TIMEOUT: Span = Span::from_secs(20);
/// From an attempt that was refused to the next one.
const PAUSE: Span = Span::from_millis(50);
/// Most bytes of a system call.
const CHUNK: usize = 64 * 1024;

/// Why a connection carries no more packets.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The kernel reports an error.
    #[error("the connection was lost: {0}")]
    Lost(#[from] io::Error),
    /// The peer does not send packets.
    #[error(transparent)]
    Framing(#[from] FramingError),
    /// The peer closed it within a packet.
    #[error("the connection was closed in the middle of a packet, after {0} bytes of its frame")]
    Partial(usize),
}

/// A connection with packets of RTP and RTCP.
pub struct Connection {
    socket: Socket,
    frames: Frames,
    /// Bytes that the kernel has not accepted yet.
    output: Vec<u8>,
    /// Whether the peer has closed its direction.
    is_closed: bool,
    packet: Box<[u8]>,
    input: Box<[u8]>,
}

/// Connects to `peer`, which has to listen at `until`. Returns `None` if it is stopped.
///
/// # Errors
/// The peer does not accept the connection.
pub fn connect(peer: SocketAddr, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<Option<Connection>> {
    loop {
        let result = control::connect(peer, now() + CONNECT_TIMEOUT, stop);
        // Two ends of the same port of this host connect to each other without a listener.
        let to_itself = |socket: &Socket| socket.local_addr().is_ok_and(|local| local.as_socket() == Some(peer));
        match result {
            Ok(Some(socket)) if !to_itself(&socket) => return Connection::new(socket).map(Some),
            Ok(None) => return Ok(None),
            Err(error) if now() >= until => return Err(error),
            _ if stop() => return Ok(None),
            Ok(Some(_)) | Err(_) => wait_for_any(&mut [], Some(now() + PAUSE)),
        }
    }
}

/// Accepts the first connection and closes the port. Returns `None` if there is none until `until`,
/// or if it is stopped.
///
/// # Errors
/// The socket fails.
pub fn accept(listener: TcpListener, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<Option<Connection>> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((socket, _)) => return Connection::new(socket.into()).map(Some),
            Err(error) if !is_for_later(&error) => return Err(error),
            Err(_) if stop() || now() >= until => return Ok(None),
            Err(_) => wait(listener.as_fd(), PollFlags::POLLIN, Some(until)),
        }
    }
}

impl Connection {
    fn new(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        Ok(Self {
            socket,
            frames: Frames::default(),
            output: Vec::new(),
            is_closed: false,
            packet: vec![0; LARGEST_DATAGRAM as usize].into_boxed_slice(),
            input: vec![0; CHUNK].into_boxed_slice(),
        })
    }

    /// The port of this end.
    pub fn port(&self) -> Option<u16> {
        self.socket.local_addr().ok()?.as_socket().map(|address| address.port())
    }

    /// Runs an end of a session until it is over, or `stop` is true. Returns whether it is over.
    /// A packet leaves the end when the kernel has accepted the packets before it.
    ///
    /// # Errors
    /// The connection carries no more packets.
    pub fn run(&mut self, end: &mut impl End, stop: &dyn Fn() -> bool) -> Result<bool, ConnectionError> {
        loop {
            let received = self.receive(end)?;
            let time = now();
            if end.is_over(time) || stop() {
                return Ok(end.is_over(time));
            }
            self.send(time, end)?;
            if !received {
                self.wait(end.next_wakeup(time));
            }
        }
    }

    /// Closes this direction, and receives until the peer closes the other one. A peer that does
    /// not has `patience` after its last acknowledgement. Returns whether it has acknowledged all
    /// bytes; not if `stop` is true before.
    ///
    /// # Errors
    /// The connection was lost before.
    pub fn finish(
        &mut self,
        end: &mut impl End,
        patience: Span,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, ConnectionError> {
        let mut is_shut = false;
        loop {
            let received = self.receive(end)?;
            self.flush()?;
            if self.output.is_empty() && !is_shut {
                self.socket.shutdown(Shutdown::Write)?;
                is_shut = true;
            }
            // In this order: a reset leaves nothing to acknowledge, but an error.
            let is_done = is_shut && is_acknowledged(&self.socket).unwrap_or(true);
            if let Some(error) = self.socket.take_error()? {
                return Err(error.into());
            }
            if is_done {
                self.receive_last(end, now() + patience, stop);
                return Ok(true);
            }
            if stop() {
                return Ok(false);
            }
            if !received {
                self.wait(None);
            }
        }
    }

    /// Receives until the peer closes its direction, but at most until `until`.
    fn receive_last(&mut self, end: &mut impl End, until: Instant, stop: &dyn Fn() -> bool) {
        while !self.is_closed && now() < until && !stop() {
            match self.receive(end) {
                Ok(true) => {}
                Ok(false) => self.wait(Some(until)),
                // The peer has all packets.
                Err(_) => return,
            }
        }
    }

    /// Sends the packets that are due, as far as the kernel accepts them.
    fn send(&mut self, time: Instant, end: &mut impl End) -> Result<(), ConnectionError> {
        self.flush()?;
        while self.output.is_empty()
            && let Some(datagram) = end.poll(time, &mut self.packet)
        {
            framing::write(&self.packet[..datagram.length], &mut self.output);
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ConnectionError> {
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(length) => drop(self.output.drain(..length)),
                Err(error) if is_for_later(&error) => break,
                // The peer has gone, and the last report has no reader.
                Err(_) if self.is_closed => self.output.clear(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives the packets that have arrived. Returns whether there were bytes, or the end.
    fn receive(&mut self, end: &mut impl End) -> Result<bool, ConnectionError> {
        if self.is_closed {
            return Ok(false);
        }
        let length = match self.socket.read(&mut self.input) {
            Ok(length) => length,
            Err(error) if is_for_later(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if length == 0 {
            self.is_closed = true;
            let partial = self.frames.partial();
            if partial > 0 {
                return Err(ConnectionError::Partial(partial));
            }
            end.closed(now());
        }
        self.frames.push(&self.input[..length]);
        while let Some(packet) = self.frames.next_packet()? {
            end.receive(now(), Channel::of_packet(packet) as usize, packet);
        }
        Ok(true)
    }

    /// Waits for the peer, or until `until` if the end can send then.
    fn wait(&self, until: Option<Instant>) {
        match (self.is_closed, self.output.is_empty()) {
            // Its end would be reported again.
            (true, _) => wait_for_any(&mut [], until),
            (false, true) => wait(self.socket.as_fd(), PollFlags::POLLIN, until),
            (false, false) => wait(self.socket.as_fd(), PollFlags::POLLIN | PollFlags::POLLOUT, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::Datagram;
    use std::net::TcpStream;
    use std::thread;

    /// Sends packets of 60,000 bytes at once, and counts those that it receives.
    struct Burst {
        unsent: usize,
        received: usize,
        is_closed: bool,
    }

    impl Burst {
        const fn new(unsent: usize) -> Self {
            Self { unsent, received: 0, is_closed: false }
        }
    }

    impl End for Burst {
        fn poll(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Datagram> {
            self.unsent = self.unsent.checked_sub(1)?;
            buffer[..60_000].fill(self.unsent as u8);
            buffer[0] = 0x80;
            Some(Datagram { port: 0, length: 60_000 })
        }

        fn receive(&mut self, _: Instant, port: usize, bytes: &[u8]) {
            assert_eq!((port, bytes), (Channel::Reports as usize, &REPORT[2..]));
            self.received += 1;
        }

        fn next_wakeup(&self, _: Instant) -> Option<Instant> {
            None
        }

        fn is_over(&self, _: Instant) -> bool {
            self.unsent == 0 || self.is_closed
        }

        fn closed(&mut self, _: Instant) {
            self.is_closed = true;
        }
    }

    const REPORT: [u8; 10] = [0, 8, 0x80, 201, 0, 1, 0, 0, 0, 1];
    const PATIENCE: Span = Span::from_millis(200);

    /// Sends `packets` to `peer`, which runs in another thread. Returns the result, the end, and
    /// what the peer returns.
    fn sent<T: Send + 'static>(
        packets: usize,
        peer: impl FnOnce(TcpStream) -> T + Send + 'static,
    ) -> (Result<bool, ConnectionError>, Burst, T) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peer = thread::spawn(move || peer(listener.accept().unwrap().0));
        let mut end = Burst::new(packets);
        let mut connection = connect(address, now(), &|| false).unwrap().unwrap();
        let over = connection.run(&mut end, &|| false);
        let result = over.and_then(|over| Ok(over && connection.finish(&mut end, PATIENCE, &|| false)?));
        (result, end, peer.join().unwrap())
    }

    #[test]
    fn a_peer_that_reads_late_and_sends_reports_receives_all_packets() {
        // More than the buffers of both ends.
        const PACKETS: usize = 400;
        let (result, end, packets) = sent(PACKETS, |mut socket| {
            (0..4).for_each(|_| wait_for_any(&mut [], Some(now() + PAUSE)));
            let (mut frames, mut packets, mut bytes) = (Frames::default(), Vec::new(), vec![0; 100_000]);
            loop {
                let length = socket.read(&mut bytes).unwrap();
                frames.push(&bytes[..length]);
                while let Some(packet) = frames.next_packet().unwrap() {
                    packets.push((packet[1], packet.len()));
                }
                if length == 0 {
                    return packets;
                }
                socket.write_all(&REPORT).unwrap();
            }
        });
        assert!(result.unwrap());
        assert_eq!(packets, (0..PACKETS).rev().map(|number| (number as u8, 60_000)).collect::<Vec<_>>());
        assert!(end.received > 0 && end.is_closed);
    }

    #[test]
    fn a_peer_that_does_not_close_is_left_after_the_patience() {
        let (result, end, socket) = sent(2, |mut socket| {
            socket.read_exact(&mut [0; 2 * 60_002]).unwrap();
            socket.write_all(&REPORT).unwrap();
            socket
        });
        assert!(result.unwrap() && !end.is_closed && end.received == 1);
        drop(socket);
    }

    #[test]
    fn a_peer_that_leaves_early_has_not_acknowledged_all() {
        let (result, ..) = sent(400, |mut socket| socket.read_exact(&mut [0; 100]).unwrap());
        assert!(matches!(result, Err(ConnectionError::Lost(_))), "{result:?}");
    }

    #[test]
    fn a_refused_connection_and_a_missing_one_are_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(accept(listener, now() + PAUSE, &|| false).unwrap().is_none());
        let refused = connect(address, now() + PAUSE, &|| false).err().map(|error| error.kind());
        assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
        assert!(connect(address, Instant::FAR_FUTURE, &|| true).unwrap().is_none());
    }
}
