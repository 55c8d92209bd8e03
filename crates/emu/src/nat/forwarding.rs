//! Forwarding settings and firewall of the host: read, never changed.

use std::fs;
use std::io;

use super::answer::answers;
use super::{connect, message};
use crate::namespace;

/// Which IP versions the host forwards between its interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// IPv4.
    pub v4: bool,
    /// IPv6.
    pub v6: bool,
}

impl Forwarding {
    /// The current settings.
    pub fn of_host() -> Self {
        let is_on = |key| namespace::parameter(key).is_ok_and(|value| value != "0");
        Self { v4: is_on(namespace::FORWARDING), v6: is_on("net.ipv6.conf.all.forwarding") }
    }
}

// <linux/netfilter/nf_tables.h>, <linux/netfilter.h>
const GET_CHAIN: u16 = 4;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const HOOK_NUMBER: u16 = 1;
const HOOK_FORWARD: u32 = 2;
const POLICY_DROP: u32 = 0;
const FAMILIES: [(u8, &str); 3] = [(1, "inet"), (2, "ip"), (10, "ip6")];

/// Chains of the host's firewall that drop forwarded packets unless a rule accepts them: family,
/// table and name, as nft(8) lists them. They include those of iptables where it uses nftables, as
/// on current systems.
///
/// # Errors
/// If this user may not list them; ordinary users may not.
pub fn closed_chains() -> io::Result<Vec<String>> {
    let socket = connect()?;
    socket.send(&message::listing(GET_CHAIN), 0)?;
    let mut closed = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        for answer in answers(&datagram) {
            answer.check()?;
            if answer.is_last() {
                return Ok(closed);
            }
            let chain = answer.attributes();
            let drops = chain.nested(CHAIN_HOOK).number(HOOK_NUMBER) == Some(HOOK_FORWARD)
                && chain.number(CHAIN_POLICY) == Some(POLICY_DROP);
            let family = FAMILIES.into_iter().find(|(number, _)| *number == answer.family());
            if let (true, Some((_, family))) = (drops, family) {
                let name = |attribute| chain.text(attribute).unwrap_or_default();
                closed.push(format!("{family} {} {}", name(CHAIN_TABLE), name(CHAIN_NAME)));
            }
        }
    }
}

/// Whether there are filters of legacy iptables, whose policy [`closed_chains`] does not return.
pub fn has_older_filters() -> bool {
    ["ip_tables_names", "ip6_tables_names"].into_iter().any(|tables| {
        let names = fs::read_to_string(format!("/proc/thread-self/net/{tables}")).unwrap_or_default();
        names.lines().any(|name| name == "filter")
    })
}
