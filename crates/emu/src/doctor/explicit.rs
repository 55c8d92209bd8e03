//! What an explicit proxy needs: an address that no host has, and a resolver. Nothing is changed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use airpath_proxy::HttpConfig;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};

use super::Check;

/// A resolver is waited for this long.
const PATIENCE: Duration = Duration::from_secs(2);

/// Checks the address and the resolver, if there are.
pub fn examine(config: &HttpConfig) -> Vec<Check> {
    let address = config.address.map(|address| own_address(address.ip()));
    address.into_iter().chain(config.resolver.map(resolver)).collect()
}

fn own_address(address: IpAddr) -> Check {
    let name = "proxy.http.address";
    if belongs_to_host(address) {
        let finding = format!("this host has the address {address}, and ends connections to it itself");
        let step = "change it to an address that no host has, and give the mobiles a route to it past this router";
        return Check::missing(name, finding, "no mobile reaches the explicit proxy", step);
    }
    Check::ok(name, format!("{address} is not an address of this host"), "mobiles reach the explicit proxy there")
}

fn resolver(address: SocketAddr) -> Check {
    let name = "proxy.http.resolver";
    let unnamed = "requests that name a server are answered with an error";
    if belongs_to_host(address.ip()) {
        let finding = format!("this host has the address {}, so its answers go past the proxy", address.ip());
        return Check::missing(name, finding, unnamed, "change it to a resolver on the servers' side");
    }
    if let Err(error) = route_to(address) {
        let step = "add a route to it, or change it";
        return Check::missing(name, format!("this host has no route to {address}: {error}"), unnamed, step);
    }
    match TcpStream::connect_timeout(&address, PATIENCE) {
        Ok(_) => Check::ok(name, format!("{address} accepts connections"), "queries go there by DNS over TCP"),
        Err(error) => {
            // It may answer the mobiles only, whose addresses the queries have.
            let finding = format!("{address} accepts no connection of this host: {error}");
            let step = "let it answer queries by TCP (RFC 7766), or change it";
            Check::limited(name, finding, format!("if it accepts none of the mobiles either, {unnamed}"), step)
        }
    }
}

/// Whether an interface of this host has the address. `bind` would accept any address where
/// `ip_nonlocal_bind` is set.
fn belongs_to_host(address: IpAddr) -> bool {
    let has = |interface: InterfaceAddress| {
        let own = interface.address.as_ref()?;
        let v4 = own.as_sockaddr_in().map(|own| IpAddr::V4(own.ip()));
        v4.or_else(|| own.as_sockaddr_in6().map(|own| IpAddr::V6(own.ip())))
    };
    address.is_loopback() || getifaddrs().is_ok_and(|mut all| all.any(|interface| has(interface) == Some(address)))
}

/// Whether there is a route; no packet is sent.
fn route_to(address: SocketAddr) -> io::Result<()> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind(SocketAddr::new(any, 0))?.connect(address)
}
