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
    /// The only address that it receives from.
    peer: IpAddr,
    /// Whether it has a peer to send to.
    is_connected: bool,
}

impl Port {
    /// Sends a datagram. It is lost if it cannot be sent, is refused on the path, or has no peer.
    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_connected {
            return Ok(());
        }
        match self.socket.send(bytes) {
            Err(error) if !is_loss(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Receives a datagram of the peer, if one is there. The first one connects the port. Returns
    /// its length; zero for a datagram of another host.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let (length, from) = match self.socket.recv_from(buffer) {
            Ok(received) => received,
            Err(error) if is_loss(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if from.ip().to_canonical() != self.peer {
            return Ok(Some(0));
        }
        if !self.is_connected {
            self.socket.connect(from)?;
            self.is_connected = true;
        }
        Ok(Some(length))
    }
}

/// Requests the session of `control`. Returns its start and the client's `count` ports, each
/// connected to one of the responder at `peer`.
///
/// # Errors
/// The responder is lost or refuses, or there is no socket.
pub fn open(
    control: &mut Control,
    offset: Offset,
    peer: SocketAddr,
    count: usize,
) -> Result<(Instant, Vec<Port>), MeasureError> {
    let start = now() + LEAD + control.round_trip() * 2;
    let ports = control.start(offset.to_theirs(start), count)?;
    let open = |port| {
        let socket = datagram_socket(SocketAddr::new(peer.ip(), port))?;
        Ok(Port { socket, peer: peer.ip().to_canonical(), is_connected: true })
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
        Ok((number, Port { socket, peer: session.client, is_connected: false }))
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
        for (number, port) in ports.iter_mut().enumerate() {
            for _ in 0..BATCH {
                let Some(length) = port.receive(&mut buffer)? else { break };
                end.receive(now(), number, &buffer[..length]);
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
