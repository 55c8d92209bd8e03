//! The responder: the other end of measurements, on one port over TCP and UDP.
//!
//! It runs the tests that clients request, within bounds: see [`crate::work`] for those of a
//! session, and the constants here for those of a client and of all. It sends only to the address
//! of a control connection, whose owner has proven to receive there; datagrams from other addresses
//! are ignored. A session ends with its control connection.

mod connection;
mod page;
mod probes;
mod sessions;

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
pub(crate) use sessions::Session;
use sessions::Sessions;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Attempts to find a port that is free for both TCP and UDP.
const ATTEMPTS: usize = 20;

/// A listening responder.
pub struct Responder {
    listeners: Vec<Listener>,
}

/// A listening address.
struct Listener {
    address: SocketAddr,
    connections: Socket,
    datagrams: UdpSocket,
}

impl Responder {
    /// Listens on `listen`, an address with or without a port; by default on the loopback addresses
    /// of IPv4 and IPv6.
    ///
    /// # Errors
    /// The address is invalid, or cannot be listened on.
    pub fn bind(listen: Option<&str>) -> Result<Self, MeasureError> {
        let Some(text) = listen else {
            let first = Listener::open(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT))?;
            // A host without IPv6 listens on IPv4 only.
            let second = Listener::open(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), PORT));
            return Ok(Self { listeners: [Some(first), second.ok()].into_iter().flatten().collect() });
        };
        let address = split(text, PORT).and_then(|(ip, port)| Some(SocketAddr::new(ip.parse::<IpAddr>().ok()?, port)));
        let address = match address {
            Some(address) => address,
            None => crate::control::resolve(text, PORT, crate::control::Family::Any)?,
        };
        Ok(Self { listeners: vec![Listener::open(address)?] })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|listener| listener.address).collect()
    }

    /// Serves until `stop` is set.
    pub fn run(&self, stop: &AtomicBool) {
        let sessions = Sessions::default();
        thread::scope(|scope| {
            for listener in &self.listeners {
                scope.spawn(|| probes::serve(&listener.datagrams, &sessions, stop));
                let (sessions, connections) = (&sessions, &listener.connections);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        wait(connections.as_fd(), PollFlags::POLLIN, None);
                        while let Ok((socket, peer)) = connections.accept() {
                            let Some(peer) = peer.as_socket() else { continue };
                            // A client that violates the protocol or disconnects is dropped.
                            match sessions.connection_slot(peer.ip().to_canonical()) {
                                Ok(slot) => drop(scope.spawn(move || {
                                    let _ = connection::serve(socket, peer, sessions, stop);
                                    drop(slot);
                                })),
                                Err(why) => drop(sessions.refusal_slot().map(|slot| {
                                    scope.spawn(move || {
                                        let _ = connection::refuse(socket, why, stop);
                                        drop(slot);
                                    })
                                })),
                            }
                        }
                    }
                });
            }
        });
    }
}

impl Listener {
    fn open(address: SocketAddr) -> Result<Self, MeasureError> {
        let mut last = None;
        for _ in 0..if address.port() == 0 { ATTEMPTS } else { 1 } {
            match Self::try_open(address) {
                Ok(listener) => return Ok(listener),
                Err(source) => last = Some(source),
            }
        }
        Err(MeasureError::Listen { address, source: last.expect("at least one attempt was made") })
    }

    fn try_open(mut address: SocketAddr) -> std::io::Result<Self> {
        let domain = Domain::for_address(address);
        let connections = Socket::new(domain, Type::STREAM.cloexec().nonblocking(), Some(Protocol::TCP))?;
        // A responder can then restart while old connections are in TIME-WAIT.
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
