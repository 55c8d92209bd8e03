//! Requirements of links to the host's network besides privileges.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::Check;
use super::attempt::in_network;
use super::namespaces::{NO_NETWORK, NO_NETWORK_STEP};
use crate::nat::{Forwarding, Masquerade, closed_chains, has_older_filters};

/// Translation of addresses.
pub fn translation(has_networks: bool) -> Check {
    let name = "address translation";
    let tried = in_network(|| Masquerade::install(name, Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST).map(drop));
    let meaning = "links to the outside cannot be made; those with --serve can";
    match tried {
        Ok(_) => Check::ok(name, "can be set up", "links to the outside take the host's address there"),
        Err(_) if !has_networks => Check::missing(name, NO_NETWORK, meaning, NO_NETWORK_STEP),
        Err(error) => {
            let next_step = "as root: modprobe nft_masq nft_chain_nat (Linux 5.12 or newer)";
            Check::missing(name, error, meaning, next_step)
        }
    }
}

/// Whether the host forwards packets.
pub fn forwarding() -> Check {
    let (name, v6_step) = (
        "forwarding",
        "sysctl -w net.ipv6.conf.all.forwarding=1; where the host has its own route from a router's advertisements, \
         first accept_ra=2 for that interface, or it loses it",
    );
    match Forwarding::of_host() {
        Forwarding { v4: true, v6: true } => Check::ok(name, "IPv4 and IPv6", "links to the outside carry both"),
        Forwarding { v4: true, v6: false } => {
            Check::limited(name, "IPv4 only", "links to the outside carry IPv4 only", format!("as root: {v6_step}"))
        }
        Forwarding { v4: false, .. } => Check::missing(
            name,
            "off: net.ipv4.ip_forward is 0",
            "links to the outside are refused; those with --serve are not",
            "as root: sysctl -w net.ipv4.ip_forward=1",
        ),
    }
}

/// Whether the policy of the host's firewall accepts forwarded packets.
pub fn firewall() -> Check {
    let name = "firewall";
    let meaning = "if no rule accepts them, packets of links to the outside vanish; links with --serve never meet it";
    match closed_chains() {
        Ok(closed) if !closed.is_empty() => Check::limited(
            name,
            format!("drops what it forwards unless a rule accepts it: chain {}", closed.join(", chain ")),
            meaning,
            "accept what comes from and goes to the interfaces air0, air1, …; with iptables: \
             iptables -I FORWARD -i air+ -j ACCEPT; iptables -I FORWARD -o air+ -j ACCEPT",
        ),
        Ok(_) if has_older_filters() => Check::limited(
            name,
            "there are filters of iptables-legacy, whose policy is not looked at",
            meaning,
            "as root: iptables-legacy -S FORWARD; if it drops, accept there what comes from and goes to air+",
        ),
        Ok(_) => Check::ok(name, "no policy drops what is forwarded", "links to the outside are let through"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Check::limited(name, "only root can see it", meaning, "run airpath doctor as root")
        }
        // A kernel without nftables has no chains.
        Err(error) => Check::limited(name, error.to_string(), meaning, "look at the host's own firewall"),
    }
}
