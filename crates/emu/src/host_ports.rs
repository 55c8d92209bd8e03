//! Ports of this host at the server's address: programs that listen at the host's loopback address
//! are reached over the link, without privileges.
//!
//! This process cannot return to the host's network without privileges. So it listens in the
//! namespace of the server, and passes the listening sockets to a process that has stayed in the
//! host's network (`airpath.sidecar.host_ports`). That one accepts the connections, and relays
//! each to the host's port.

use std::io::IoSlice;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use crate::LinkError;
use crate::namespace::NetworkNamespace;

/// Listens at these ports in `network`, and passes the sockets over `relay`: for each a message of
/// two bytes, the port in network byte order. The calling thread is in `network` afterwards.
///
/// # Errors
/// If a server of this link listens at one of the ports, or the process at `relay` has ended.
pub fn open(network: &NetworkNamespace, ports: &[u16], relay: RawFd) -> Result<(), LinkError> {
    if ports.is_empty() {
        return Ok(());
    }
    network.enter()?;
    for port in ports {
        // The IPv6 socket takes connections over IPv4, too; links may be without IPv6.
        let listener = TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port)))
            .or_else(|error| match error.raw_os_error() {
                Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) => {
                    TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port)))
                }
                _ => Err(error),
            })
            .map_err(|source| LinkError::HostPort { port: *port, source })?;
        let descriptors = [listener.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&descriptors)];
        sendmsg::<()>(relay, &[IoSlice::new(&port.to_be_bytes())], &rights, MsgFlags::MSG_NOSIGNAL, None)
            .map_err(|error| LinkError::Host("the relay of --host-port has ended", error.into()))?;
    }
    Ok(())
}
