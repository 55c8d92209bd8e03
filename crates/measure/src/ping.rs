//! Ping over real sockets: UDP to a responder.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use airpath_app::Ping;
use airpath_app::ping::Pinger;
use airpath_core::{AppStep, Instant};
use nix::poll::PollFlags;

use crate::clock::{now, wait};
use crate::order::LARGEST_DATAGRAM;
use crate::probe::{Kind, Probe};
use crate::record::Record;
use crate::stream::noise;

/// What carries echo requests and brings their replies back.
pub trait Echo {
    /// Sends request `sequence`, `sent` at this time.
    fn send(&mut self, sequence: u32, sent: Instant) -> io::Result<()>;
    /// The number of the next reply that is there, and when its request was sent as far as it carries that.
    fn receive(&mut self) -> io::Result<Option<(u32, Option<Instant>)>>;
    /// Waits for a reply until `until`, and not for long.
    fn wait(&self, until: Option<Instant>);
}

/// Pings until all replies have come or are given up, or `stop` says so.
///
/// # Errors
/// Where the socket fails. That a request cannot be sent or is refused by a host on the way loses it, and is no error.
pub fn ping(ping: &Ping, echo: &mut dyn Echo, record: &mut Record<'_>) -> io::Result<Pinger> {
    let start = now();
    let mut pinger = Pinger::new(*ping, start);
    let mut sent = Vec::with_capacity(ping.count as usize);
    record.note(start, AppStep::Started, 0);
    while !pinger.is_over(now()) && !record.is_stopped() {
        while let Some(sequence) = pinger.poll(now()) {
            let time = now();
            sent.push(time);
            if let Err(error) = echo.send(sequence, time)
                && !is_loss(&error)
            {
                return Err(error);
            }
        }
        loop {
            match echo.receive() {
                Ok(Some((sequence, at))) => {
                    let time = now();
                    let Some(at) = at.or_else(|| sent.get(sequence as usize).copied()) else { continue };
                    if let Some(delay) = pinger.reply(time, sequence, at) {
                        let answered = pinger.round_trips().count();
                        record.note(time, AppStep::Arrived { sequence, delay }, answered * u64::from(ping.size));
                        record.progress(answered, ping.count.into());
                    }
                }
                Ok(None) => break,
                Err(error) if is_loss(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if !pinger.is_over(now()) {
            echo.wait(pinger.next_wakeup());
        }
    }
    Ok(pinger)
}

/// Whether this is what a network does to a packet, not a fault of the socket: a queue that is full, a host or a port on
/// the way that is not there.
pub fn is_loss(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable, WouldBlock};
    matches!(error.kind(), WouldBlock | ConnectionRefused | HostUnreachable | NetworkUnreachable | NetworkDown)
        || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Echo requests as datagrams to a responder.
pub struct UdpEcho {
    socket: UdpSocket,
    order: u64,
    datagram: Vec<u8>,
    buffer: Vec<u8>,
}

impl UdpEcho {
    /// Over this socket, which is connected to the responder and does not block, for that order.
    pub fn new(socket: UdpSocket, order: u64, ping: &Ping) -> Self {
        let datagram = noise()[..ping.size as usize].to_vec();
        Self { socket, order, datagram, buffer: vec![0; LARGEST_DATAGRAM as usize] }
    }
}

impl Echo for UdpEcho {
    fn send(&mut self, sequence: u32, sent: Instant) -> io::Result<()> {
        Probe { kind: Kind::Echo, order: self.order, flow: 0, sequence, sent: sent.as_nanos() }
            .emit(&mut self.datagram);
        self.socket.send(&self.datagram).map(drop)
    }

    fn receive(&mut self) -> io::Result<Option<(u32, Option<Instant>)>> {
        loop {
            let length = match self.socket.recv(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            let probe = Probe::parse(&self.buffer[..length]);
            if let Some(probe) = probe.filter(|each| each.kind == Kind::EchoReply && each.order == self.order) {
                return Ok(Some((probe.sequence, None)));
            }
        }
    }

    fn wait(&self, until: Option<Instant>) {
        wait(self.socket.as_fd(), PollFlags::POLLIN, until);
    }
}
