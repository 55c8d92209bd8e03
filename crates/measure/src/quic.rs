//! The ends of a QUIC connection on UDP sockets: the adapter that the simulator runs in virtual
//! time, with the clock and the network of this host.
//!
//! Each flow has a UDP socket of its own at both ends. The handshake is that of the simulator,
//! without encryption (`airpath_quic::null_crypto`).

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use airpath_core::{Direction, Ecn, FlowId, Instant, Seed};
use airpath_quic::{Config, Connection, Identity};
use nix::poll::PollFlags;

use crate::clock::{now, wait};
use crate::stream::{Ended, closed_early};

/// Most bytes of a UDP payload.
const MOST_PAYLOAD: usize = 65_535;

/// One end of a connection, and its socket.
pub struct QuicEnd {
    socket: UdpSocket,
    /// The connection, as the workload uses it.
    pub connection: Connection,
    /// The address from which the first datagram must come, while the peer's port is unknown.
    awaits: Option<IpAddr>,
    received: Box<[u8]>,
    sent: Vec<u8>,
}

impl QuicEnd {
    /// A client of `peer`.
    ///
    /// # Errors
    /// The socket cannot be made, or the kernel gives no random number.
    pub fn connect(peer: SocketAddr, config: &Config) -> io::Result<Self> {
        let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        socket.connect(peer)?;
        let connection = Connection::connect(Arc::new(config.clone()), identity(Direction::Up)?, now());
        Self::new(socket, connection, None)
    }

    /// A server on a bound socket, for one client with the address `client`.
    ///
    /// # Errors
    /// The kernel gives no random number.
    pub fn listen(socket: UdpSocket, client: IpAddr, config: &Config) -> io::Result<Self> {
        let connection = Connection::listen(Arc::new(config.clone()), identity(Direction::Down)?);
        Self::new(socket, connection, Some(client))
    }

    fn new(socket: UdpSocket, connection: Connection, awaits: Option<IpAddr>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let received = vec![0; MOST_PAYLOAD].into_boxed_slice();
        Ok(Self { socket, connection, awaits, received, sent: Vec::new() })
    }

    /// Runs one end of a workload, until the connection is closed or `stop` is true. `step` lets
    /// the workload act, as in [`crate::stream::run`]. The client closes the connection when all
    /// streams are done.
    ///
    /// # Errors
    /// The connection is lost, or closed early.
    pub fn run(
        &mut self,
        stop: &dyn Fn() -> bool,
        step: &mut dyn FnMut(Instant, &mut Connection) -> bool,
    ) -> io::Result<Ended> {
        loop {
            // One datagram at a time, as in the simulator: an acknowledgement follows the second
            // datagram, not the last of a batch.
            let moved = self.receive()?;
            self.connection.handle_timeout(now());
            let acted = step(now(), &mut self.connection);
            let is_done = self.connection.streams_done();
            if is_done && self.connection.is_client() && self.connection.outcome().is_none() {
                self.connection.close(now());
            }
            self.send()?;
            match self.connection.outcome() {
                // The last datagram, which closes the connection, may be lost.
                Some(_) if is_done => return Ok(Ended::Over),
                Some(outcome) if !outcome.is_orderly() => return Err(io::Error::other(outcome.to_string())),
                Some(_) => return Err(closed_early()),
                None => {}
            }
            if stop() {
                self.connection.close(now());
                self.send()?;
                return Ok(Ended::Stopped);
            }
            if !moved && !acted {
                let until = self.connection.next_wakeup();
                wait(self.socket.as_fd(), PollFlags::POLLIN, until);
            }
        }
    }

    /// Receives one datagram. Returns whether there was one.
    fn receive(&mut self) -> io::Result<bool> {
        let (length, from) = match self.socket.recv_from(&mut self.received) {
            Ok(received) => received,
            Err(error) if is_for_later(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        if let Some(client) = self.awaits {
            if from.ip().to_canonical() != client {
                return Ok(true);
            }
            self.socket.connect(from)?;
            self.awaits = None;
        }
        self.connection.handle_datagram(now(), Ecn::NotEct, &self.received[..length]);
        Ok(true)
    }

    fn send(&mut self) -> io::Result<()> {
        if self.awaits.is_some() {
            return Ok(());
        }
        while self.connection.poll_transmit(now(), &mut self.sent).is_some() {
            loop {
                match self.socket.send(&self.sent) {
                    Ok(_) => break,
                    Err(error) if is_for_later(&error) => wait(self.socket.as_fd(), PollFlags::POLLOUT, None),
                    // The other end has closed its socket, after the end of the connection.
                    Err(error) if self.connection.outcome().is_some() && is_refused(&error) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// An identity with random numbers of the kernel.
fn identity(direction: Direction) -> io::Result<Identity> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    let seed = Seed::new(u64::from_be_bytes(seed));
    Ok(Identity::new(FlowId(0), direction, |part| seed.stream(part)))
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}
