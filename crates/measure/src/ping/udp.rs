//! Echo requests as datagrams to a responder.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use airpath_app::Ping;
use airpath_core::Instant;
use nix::poll::PollFlags;

use super::Echo;
use crate::clock::wait;
use crate::probe::{Kind, Probe};
use crate::stream::noise;
use crate::work::LARGEST_DATAGRAM;

/// Echo requests as datagrams to a responder.
pub struct UdpEcho {
    socket: UdpSocket,
    session: u64,
    datagram: Vec<u8>,
    buffer: Vec<u8>,
}

impl UdpEcho {
    /// Over this non-blocking socket, connected to the responder, for that session.
    pub fn new(socket: UdpSocket, session: u64, ping: &Ping) -> Self {
        let datagram = noise()[..ping.size as usize].to_vec();
        Self { socket, session, datagram, buffer: vec![0; LARGEST_DATAGRAM as usize] }
    }
}

impl Echo for UdpEcho {
    fn send(&mut self, sequence: u32, sent: Instant) -> io::Result<()> {
        Probe { kind: Kind::Echo, session: self.session, flow: 0, sequence, sent: sent.as_nanos() }
            .emit(&mut self.datagram);
        self.socket.send(&self.datagram).map(drop)
    }

    fn receive(&mut self) -> io::Result<Option<u32>> {
        loop {
            let length = match self.socket.recv(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            let probe = Probe::parse(&self.buffer[..length]);
            if let Some(probe) = probe.filter(|each| each.kind == Kind::EchoReply && each.session == self.session) {
                return Ok(Some(probe.sequence));
            }
        }
    }

    fn wait(&self, until: Option<Instant>) {
        wait(self.socket.as_fd(), PollFlags::POLLIN, until);
    }
}
