//! The responder: the other end of measurements, on one port over TCP and UDP.
//!
//! It does what its clients order, within bounds: see [`crate::order`] for those of an order, and
//! the constants here for those of a client and of all. It sends only to the address that a control
//! connection comes from, which its owner has shown to have; datagrams with another sender's
//! address are not heeded. An order ends with its control connection.

mod connection;
mod desk;
mod probes;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::poll::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::wait;
use crate::control::split;
use crate::error::MeasureError;
use crate::protocol::PORT;
use desk::Desk;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// How often another free port is tried that must be free for TCP and UDP alike.
const ATTEMPTS: usize = 20;

/// A responder that listens.
pub struct Responder {
    doors: Vec<Door>,
}

/// One address on which it listens.
struct Door {
    address: SocketAddr,
    connections: Socket,
    datagrams: UdpSocket,
}

impl Responder {
    /// Listens on `listen`, an address with or without a port; by default on the loopback addresses
    /// of IPv4 and IPv6.
    ///
    /// # Errors
    /// Where the address is none, or cannot be listened on.
    pub fn bind(listen: Option<&str>) -> Result<Self, MeasureError> {
        let Some(text) = listen else {
            let first = Door::open(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT))?;
            // A host without IPv6 is served without it.
            let second = Door::open(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), PORT));
            return Ok(Self { doors: [Some(first), second.ok()].into_iter().flatten().collect() });
        };
        let address = split(text, PORT).and_then(|(ip, port)| Some(SocketAddr::new(ip.parse::<IpAddr>().ok()?, port)));
        let address = match address {
            Some(address) => address,
            None => crate::control::resolve(text, PORT, crate::control::Family::Any)?,
        };
        Ok(Self { doors: vec![Door::open(address)?] })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.doors.iter().map(|door| door.address).collect()
    }

    /// Serves until `stop` is set.
    pub fn run(&self, stop: &AtomicBool) {
        let desk = Desk::default();
        thread::scope(|scope| {
            for door in &self.doors {
                scope.spawn(|| probes::serve(&door.datagrams, &desk, stop));
                let (desk, connections) = (&desk, &door.connections);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        wait(connections.as_fd(), PollFlags::POLLIN, None);
                        while let Ok((socket, peer)) = connections.accept() {
                            let (Some(peer), Some(place)) = (peer.as_socket(), desk.place()) else { continue };
                            scope.spawn(move || {
                                // Who breaks the rules of the conversation, or off, hears no more
                                // of us.
                                let _ = connection::serve(socket, peer, desk, stop);
                                drop(place);
                            });
                        }
                    }
                });
            }
        });
    }
}

impl Door {
    fn open(address: SocketAddr) -> Result<Self, MeasureError> {
        let mut last = None;
        for _ in 0..if address.port() == 0 { ATTEMPTS } else { 1 } {
            match Self::try_open(address) {
                Ok(door) => return Ok(door),
                Err(source) => last = Some(source),
            }
        }
        Err(MeasureError::Listen { address, source: last.expect("at least one attempt was made") })
    }

    fn try_open(mut address: SocketAddr) -> std::io::Result<Self> {
        let domain = Domain::for_address(address);
        let connections = Socket::new(domain, Type::STREAM.cloexec().nonblocking(), Some(Protocol::TCP))?;
        // So that a responder can be started again while connections of the one before are in
        // TIME-WAIT.
        connections.set_reuse_address(true)?;
        if address.is_ipv6() {
            connections.set_only_v6(!address.ip().is_unspecified())?;
        }
        connections.bind(&address.into())?;
        connections.listen(BACKLOG)?;
        if let Some(bound) = connections.local_addr()?.as_socket() {
            address = bound;
        }
        let datagrams = Socket::new(domain, Type::DGRAM.cloexec().nonblocking(), Some(Protocol::UDP))?;
        if address.is_ipv6() {
            datagrams.set_only_v6(!address.ip().is_unspecified())?;
        }
        datagrams.bind(&address.into())?;
        Ok(Self { address, connections, datagrams: datagrams.into() })
    }
}
