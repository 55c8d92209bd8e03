//! RTP sessions over real sockets: what calls and videos share.
//!
//! RTP packets have no room for the header of [`crate::probe`], so a session has UDP ports of its
//! own. The client requests the responder's ports on the control connection, with the time at which
//! the session starts, and sends to each from one port. The responder sends to the addresses from
//! which the first datagrams of the client came.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

use airpath_core::{Instant, Span};
use nix::poll::{PollFd, PollFlags};

use crate::clock::{now, wait_for_any};
use crate::control::Control;
use crate::datagram_socket;
use crate::error::MeasureError;
use crate::offset::Offset;
use crate::ping::is_loss;
use crate::serve::Session;
use crate::stream::noise;
use crate::work::LARGEST_DATAGRAM;

/// From the request of a session to its start, so that both ends are ready; and two round trips.
const LEAD: Span = Span::from_millis(500);
/// Latest start that a responder accepts.
const LATEST: Span = Span::from_secs(60);
/// Interval of the client's datagrams before the start, which open the path to it.
const OPENING: Span = Span::from_millis(100);
/// Attempts to find two ports that follow one another.
const PAIR_ATTEMPTS: usize = 50;
/// Datagrams that are sent, or received from a port, before the end of the session is checked.
const BATCH: usize = 64;

/// One end of a session, without I/O.
pub trait End {
    /// Writes the next datagram to `buffer`, if one is due. The caller repeats it until it returns
    /// `None`.
    fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Datagram>;
    /// Receives a datagram on port number `port`.
    fn receive(&mut self, now: Instant, port: usize, bytes: &[u8]);
    /// When to call [`Self::poll`] next.
    fn next_wakeup(&self, now: Instant) -> Option<Instant>;
    /// Whether the end has left the session.
    fn is_over(&self, now: Instant) -> bool;
    /// The peer has closed the connection that carries the session.
    fn closed(&mut self, _: Instant) {}
    /// Whether the last datagram showed who the peer of a [listening](Port::listening) port is.
    fn has_peer(&self) -> bool {
        false
    }
}

/// A datagram to send.
pub struct Datagram {
    /// Number of the port from which it is sent.
    pub port: usize,
    /// Its bytes in the buffer.
    pub length: usize,
}

impl Datagram {
    /// Writes `head` and `media` bytes without meaning to `buffer`.
    pub fn write(port: usize, head: &[u8], media: u32, buffer: &mut [u8]) -> Self {
        let length = head.len() + media as usize;
        buffer[..head.len()].copy_from_slice(head);
        buffer[head.len()..length].copy_from_slice(&noise()[..media as usize]);
        Self { port, length }
    }
}

/// A UDP port of a session.
pub struct Port {
    socket: UdpSocket,
    /// The only address that it receives from; a listening port has none at first.
    peer: Option<IpAddr>,
    /// Whether it has a peer to send to.
    is_connected: bool,
    /// Where the peer probably is, before it is connected.
    probably: Option<SocketAddr>,
}

impl Port {
    /// A port whose `socket` is connected to `peer`.
    pub fn connected(socket: UdpSocket, peer: IpAddr) -> Self {
        Self { socket, peer: Some(peer.to_canonical()), is_connected: true, probably: None }
    }

    /// A port that waits for the first datagram of `peer`.
    fn accepting(socket: UdpSocket, peer: IpAddr) -> Self {
        Self { socket, peer: Some(peer), is_connected: false, probably: None }
    }

    /// A port that receives from all hosts, until the end has found its peer.
    pub const fn listening(socket: UdpSocket) -> Self {
        Self { socket, peer: None, is_connected: false, probably: None }
    }

    /// Sends a datagram. It is lost if it cannot be sent, is refused on the path, or has no peer.
    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let sent = match (self.is_connected, self.probably) {
            (true, _) => self.socket.send(bytes),
            (false, Some(peer)) => self.socket.send_to(bytes, peer),
            (false, None) => return Ok(()),
        };
        match sent {
            Err(error) if !is_loss(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Receives a datagram of the peer, if one is there. The first one connects the port. Returns
    /// its length, zero for a datagram of another host, and where it came from.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        let (length, from) = match self.socket.recv_from(buffer) {
            Ok(received) => received,
            Err(error) if is_loss(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(peer) = self.peer else { return Ok(Some((length, from))) };
        if from.ip().to_canonical() != peer {
            return Ok(Some((0, from)));
        }
        if !self.is_connected {
            self.connect(from)?;
        }
        Ok(Some((length, from)))
    }

    fn connect(&mut self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(peer)?;
        self.is_connected = true;
        Ok(())
    }
}

/// Two sockets; the second one has the next port (RFC 3550 §11). Port zero is any pair that begins
/// with an even port.
///
/// # Errors
/// A port is not free.
pub fn bind_pair(address: SocketAddr) -> io::Result<[UdpSocket; 2]> {
    let mut attempts = if address.port() == 0 { PAIR_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        match try_bind_pair(address) {
            Err(_) if attempts > 0 => {}
            pair => return pair,
        }
    }
}

fn try_bind_pair(address: SocketAddr) -> io::Result<[UdpSocket; 2]> {
    let first = UdpSocket::bind(address)?;
    let port = first.local_addr()?.port();
    if address.port() == 0 && port % 2 == 1 {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let next = port.checked_add(1).ok_or(io::ErrorKind::AddrNotAvailable)?;
    let pair = [first, UdpSocket::bind(SocketAddr::new(address.ip(), next))?];
    pair.iter().try_for_each(|socket| socket.set_nonblocking(true))?;
    Ok(pair)
}

/// Requests the session of `control`. Returns its start and the client's `count` ports, each
/// connected to one of the responder at `peer`.
///
/// # Errors
/// The responder is lost or refuses, or there is no socket.
pub fn open(
    control: &mut Control<'_>,
    offset: Offset,
    peer: SocketAddr,
    count: usize,
) -> Result<(Instant, Vec<Port>), MeasureError> {
    let start = now() + LEAD + control.round_trip() * 2;
    let ports = control.start(offset.to_theirs(start), count)?;
    let open = |port| {
        let socket = datagram_socket(SocketAddr::new(peer.ip(), port))?;
        Ok(Port::connected(socket, peer.ip()))
    };
    let ports = ports.into_iter().map(open).collect::<io::Result<_>>();
    Ok((start, ports.map_err(MeasureError::socket("cannot make a socket for packets of RTP"))?))
}

/// Runs the client's end of a session that starts at `start` until it is over, or `stop` is true.
/// Returns whether it is over.
///
/// # Errors
/// A socket fails.
pub fn run_client(
    ports: &mut [Port],
    end: &mut impl End,
    start: Instant,
    stop: &dyn Fn() -> bool,
) -> Result<bool, MeasureError> {
    let ended = run(ports, end, start, Some(now()), stop);
    ended.map_err(MeasureError::socket("cannot send or receive packets of RTP"))
}

/// Runs an end of a session without a responder from `start` on. Returns whether it is over.
///
/// # Errors
/// A socket fails.
pub fn run_session(
    ports: &mut [Port],
    end: &mut impl End,
    start: Instant,
    stop: &dyn Fn() -> bool,
) -> Result<bool, MeasureError> {
    let ended = run(ports, end, start, None, stop);
    ended.map_err(MeasureError::socket("cannot send or receive packets of RTP"))
}

/// Runs the responder's end of a session that starts at `start` by this clock, in a thread. `end`
/// makes it from its start. Returns its `count` ports.
///
/// # Errors
/// The reason, as a message for the client.
pub fn respond<E: End>(
    session: &Arc<Session>,
    local: SocketAddr,
    count: usize,
    start: u64,
    end: impl FnOnce(Instant) -> E + Send + 'static,
) -> Result<Vec<u16>, String> {
    let start = Instant::from_nanos(start);
    if start > now() + LATEST {
        return Err(format!("the session would start in more than {LATEST}"));
    }
    if !session.begins_to_stream() {
        return Err("it has started before".into());
    }
    let bind = |_| {
        let socket = UdpSocket::bind(SocketAddr::new(local.ip(), 0))?;
        socket.set_nonblocking(true)?;
        let number = socket.local_addr()?.port();
        Ok((number, Port::accepting(socket, session.client)))
    };
    let ports = (0..count).map(bind).collect::<io::Result<Vec<_>>>();
    let ports = ports.map_err(|error| format!("it has no UDP port for RTP: {error}"))?;
    let (numbers, mut ports): (Vec<u16>, Vec<Port>) = ports.into_iter().unzip();
    let session = Arc::clone(session);
    thread::spawn(move || {
        // A socket error ends the session; the client detects how much of it arrived.
        let _ = run(&mut ports, &mut end(start), start, None, &|| session.is_cancelled());
    });
    Ok(numbers)
}

/// Sends and receives until the end is over, or `stop` is true. Returns whether it is over. From
/// `opening` to the start it sends datagrams that open the path.
fn run(
    ports: &mut [Port],
    end: &mut impl End,
    start: Instant,
    mut opening: Option<Instant>,
    stop: &dyn Fn() -> bool,
) -> io::Result<bool> {
    let mut buffer = vec![0; LARGEST_DATAGRAM as usize];
    loop {
        let time = now();
        if end.is_over(time) || stop() {
            return Ok(end.is_over(time));
        }
        opening = opening.filter(|_| time < start);
        if let Some(due) = opening.filter(|due| *due <= time) {
            ports.iter().try_for_each(|port| port.send(&[0]))?;
            opening = Some(due + OPENING);
        }
        if time >= start {
            for _ in 0..BATCH {
                let Some(datagram) = end.poll(time, &mut buffer) else { break };
                ports[datagram.port].send(&buffer[..datagram.length])?;
            }
        }
        for number in 0..ports.len() {
            for _ in 0..BATCH {
                let Some((length, from)) = ports[number].receive(&mut buffer)? else { break };
                end.receive(now(), number, &buffer[..length]);
                if ports[number].peer.is_none() && end.has_peer() {
                    adopt(ports, number, from)?;
                }
            }
        }
        let next = match time < start {
            true => opening.into_iter().chain([start]).min(),
            false => end.next_wakeup(time),
        };
        let each = |port| PollFd::new(AsFd::as_fd(port), PollFlags::POLLIN);
        let mut sockets: Vec<PollFd<'_>> = ports.iter().map(|port| &port.socket).map(each).collect();
        wait_for_any(&mut sockets, next);
    }
}

/// The peer is at `from`: a datagram came from there to port `number`. Its other ports probably are
/// those beside it (RFC 3550 §11).
fn adopt(ports: &mut [Port], number: usize, from: SocketAddr) -> io::Result<()> {
    for (other, port) in ports.iter_mut().enumerate() {
        port.peer = Some(from.ip().to_canonical());
        let beside = i32::from(from.port()) + other as i32 - number as i32;
        port.probably = u16::try_from(beside).ok().map(|port| SocketAddr::new(from.ip(), port));
    }
    ports[number].connect(from)
}
