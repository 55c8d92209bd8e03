//! UDP sockets of the two hosts.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::mem;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use airpath_core::Ecn;
use airpath_path::Side;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

/// A UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub source: SocketAddrV4,
    pub destination: SocketAddrV4,
    pub ecn: Ecn,
    pub payload: Vec<u8>,
}

/// The address of a host. That of the server is one for documentation (RFC 5737), that of the
/// mobile one for private use (RFC 1918).
pub const fn address_of(side: Side) -> Ipv4Addr {
    match side {
        Side::Server => Ipv4Addr::new(192, 0, 2, 1),
        Side::Mobile => Ipv4Addr::new(10, 0, 0, 2),
    }
}

/// The first of the dynamic ports (RFC 6335 §6).
const FIRST_DYNAMIC_PORT: u16 = 49_152;

/// The sockets of both hosts, and what they have sent.
#[derive(Debug, Default)]
pub struct Sockets(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    sent: Vec<Datagram>,
    bound: BTreeMap<SocketAddrV4, Arc<Inbox>>,
}

impl Sockets {
    /// Binds a socket of a host to `port`; 0 selects a free dynamic port.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if the port is in use, or all dynamic ports are.
    pub fn bind(self: &Arc<Self>, side: Side, port: u16) -> io::Result<Socket> {
        let mut state = self.state();
        let address = |port| SocketAddrV4::new(address_of(side), port);
        let mut candidates = if port == 0 { FIRST_DYNAMIC_PORT..=u16::MAX } else { port..=port };
        let free = candidates.find(|port| !state.bound.contains_key(&address(*port)));
        let free = free.ok_or_else(|| {
            let message = format!("{} has another socket with UDP port {port}", address_of(side));
            io::Error::new(io::ErrorKind::AddrInUse, message)
        })?;
        let (local, inbox) = (address(free), Arc::new(Inbox::default()));
        state.bound.insert(local, Arc::clone(&inbox));
        Ok(Socket { local, inbox, sockets: Arc::clone(self) })
    }

    /// Takes the datagrams that were sent since the last call.
    pub fn take_sent(&self) -> Vec<Datagram> {
        mem::take(&mut self.state().sent)
    }

    /// Delivers a datagram to its socket, and wakes the task that waits for it. Without a socket it
    /// is dropped.
    pub fn deliver(&self, datagram: Datagram) {
        let inbox = self.state().bound.get(&datagram.destination).cloned();
        let Some(inbox) = inbox else { return };
        let mut state = inbox.state();
        state.datagrams.push_back(datagram);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Datagrams that a socket has received, before the application reads them.
#[derive(Debug, Default)]
struct Inbox(Mutex<InboxState>);

#[derive(Debug, Default)]
struct InboxState {
    datagrams: VecDeque<Datagram>,
    waker: Option<Waker>,
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, InboxState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A UDP socket. Its buffers have no limit, so sending never blocks.
#[derive(Debug)]
pub struct Socket {
    local: SocketAddrV4,
    inbox: Arc<Inbox>,
    sockets: Arc<Sockets>,
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        // The hosts have IPv4 addresses only: a datagram to an IPv6 address is lost.
        let SocketAddr::V4(destination) = transmit.destination else { return Ok(()) };
        let ecn = transmit.ecn.map_or(Ecn::NotEct, |codepoint| Ecn::from_bits(codepoint as u8));
        let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let datagrams = transmit.contents.chunks(size);
        let datagrams =
            datagrams.map(|payload| Datagram { source: self.local, destination, ecn, payload: payload.to_vec() });
        self.sockets.state().sent.extend(datagrams);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.inbox.state();
        if state.datagrams.is_empty() {
            let previous = state.waker.replace(cx.waker().clone());
            // After the lock is released: a waker may own sockets.
            drop(state);
            drop(previous);
            return Poll::Pending;
        }
        let most = bufs.len().min(meta.len()).min(state.datagrams.len());
        for ((datagram, buffer), meta) in state.datagrams.drain(..most).zip(bufs).zip(meta) {
            // As with `recvmsg`, a smaller buffer receives the beginning.
            let len = datagram.payload.len().min(buffer.len());
            buffer[..len].copy_from_slice(&datagram.payload[..len]);
            *meta = RecvMeta {
                addr: datagram.source.into(),
                len,
                stride: len,
                ecn: EcnCodepoint::from_bits(datagram.ecn.bits()),
                dst_ip: Some(IpAddr::V4(*datagram.destination.ip())),
            };
        }
        Poll::Ready(Ok(most))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local.into())
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.sockets.state().bound.remove(&self.local);
    }
}

#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_again_after_its_socket() {
        let sockets = Arc::new(Sockets::default());
        let first = sockets.bind(Side::Server, 443).expect("it is free");
        let error = sockets.bind(Side::Server, 443).expect_err("it is in use");
        assert_eq!(error.to_string(), "192.0.2.1 has another socket with UDP port 443");
        sockets.bind(Side::Mobile, 443).expect("the other host has its own ports");
        drop(first);
        sockets.bind(Side::Server, 443).expect("it is free again");
        let dynamic = [sockets.bind(Side::Mobile, 0), sockets.bind(Side::Mobile, 0)];
        assert_eq!(dynamic.map(|socket| socket.expect("one is free").local.port()), [49_152, 49_153]);
    }

    #[test]
    fn a_segmented_transmit_is_several_datagrams() {
        let sockets = Arc::new(Sockets::default());
        let socket = sockets.bind(Side::Mobile, 0).expect("one is free");
        let destination = SocketAddrV4::new(address_of(Side::Server), 443);
        let (ecn, contents) = (Some(EcnCodepoint::Ect0), [1, 1, 2]);
        let transmit =
            Transmit { destination: destination.into(), ecn, contents: &contents, segment_size: Some(2), src_ip: None };
        socket.try_send(&transmit).expect("it never blocks");
        let source = socket.local;
        let datagram = |payload: &[u8]| Datagram { source, destination, ecn: Ecn::Ect0, payload: payload.to_vec() };
        assert_eq!(sockets.take_sent(), [datagram(&[1, 1]), datagram(&[2])]);
        assert_eq!(sockets.take_sent(), []);
    }
}
