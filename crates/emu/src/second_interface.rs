//! The second interface of a mobile with two bearers: its addresses, its routes, and MPTCP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Output};

use netlink_packet_route::AddressFamily;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};

use crate::LinkError;
use crate::netlink::Netlink;
use crate::observe::addresses;
use crate::offload::Frame;
use crate::port::Port;

/// Its name, as programs see it.
pub const NAME: &str = "air1";

/// The routing table of packets from its addresses, and the priority of the rules for it.
const TABLE: u32 = 2;
const RULE_PRIORITY: u32 = 1000;
/// Metric of its route to the server in the main table, for programs that are bound to the
/// interface and not to an address. The first interface has lower ones.
const METRIC: u32 = 2000;

/// The second interface of a mobile.
#[derive(Debug)]
pub struct SecondInterface {
    /// The port at the mobile.
    pub port: Port,
    /// Its addresses.
    pub addresses: SecondAddresses,
}

/// The addresses of a second interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondAddresses {
    /// That of IPv4.
    pub v4: Ipv4Addr,
    /// That of IPv6.
    pub v6: Ipv6Addr,
}

impl SecondAddresses {
    /// The address of the same IP version as `other`.
    pub const fn like(self, other: IpAddr) -> IpAddr {
        match other {
            IpAddr::V4(_) => IpAddr::V4(self.v4),
            IpAddr::V6(_) => IpAddr::V6(self.v6),
        }
    }

    /// Both, each as a prefix of one address.
    pub fn prefixes(self) -> Vec<(IpAddr, u8)> {
        vec![(self.v4.into(), 32), (self.v6.into(), 128)]
    }
}

impl SecondInterface {
    /// Whether a packet goes to one of its addresses.
    pub fn is_destination(&self, frame: &Frame, bytes: &[u8]) -> bool {
        let (_, destination) = addresses(frame, bytes);
        destination == self.addresses.like(destination)
    }
}

/// Routes packets from the second interface through it, in the mobile's namespace; `server` is a
/// prefix of the server's.
///
/// # Errors
/// Those of the kernel.
pub fn route_at_mobile(addresses: SecondAddresses, server: (IpAddr, u8)) -> io::Result<()> {
    let source = addresses.like(server.0);
    let mut netlink = Netlink::open()?;
    let index = netlink.index_of(NAME)?;
    netlink.add_default_route_to(TABLE, index, source)?;
    netlink.add_fallback_route(index, server, source, METRIC)?;
    let mut rule = RuleMessage::default();
    rule.header.family = if source.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    rule.header.action = RuleAction::ToTable;
    rule.header.src_len = if source.is_ipv4() { 32 } else { 128 };
    rule.attributes =
        vec![RuleAttribute::Priority(RULE_PRIORITY), RuleAttribute::Table(TABLE), RuleAttribute::Source(source)];
    netlink.add_rule(rule)
}

/// Lets the kernel at either end use a second subflow, in the namespace of the calling thread. At
/// the mobile, whose second interface has these `addresses`, it opens one from there.
///
/// # Errors
/// If the kernel or the host has no MPTCP.
pub fn enable_mptcp(addresses: Option<(SecondAddresses, bool)>) -> Result<(), LinkError> {
    ip_mptcp(&["limits", "set", "subflows", "1", "add_addr_accepted", "0"])?;
    let Some((SecondAddresses { v4, v6 }, has_v6)) = addresses else { return Ok(()) };
    ip_mptcp(&["endpoint", "add", &v4.to_string(), "dev", NAME, "subflow"])?;
    if has_v6 {
        ip_mptcp(&["endpoint", "add", &v6.to_string(), "dev", NAME, "subflow"])?;
    }
    Ok(())
}

/// Runs `ip mptcp`, of iproute2.
fn ip_mptcp(arguments: &[&str]) -> Result<(), LinkError> {
    let outcome = Command::new("ip").arg("mptcp").args(arguments).output();
    let failed = |reason: String| LinkError::Mptcp { command: arguments.join(" "), reason };
    let Output { status, stderr, .. } = outcome.map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(String::from_utf8_lossy(&stderr).trim().to_owned())) }
}
