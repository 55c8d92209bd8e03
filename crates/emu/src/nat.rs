//! Address translation towards the host's network, and the settings of the host that it needs.
//!
//! The kernel translates: one nftables table with one rule for each IP version. The netlink socket
//! that created the table owns it, so the table disappears with this process (Linux 5.12,
//! `NFT_TABLE_F_OWNER`).

mod answer;
mod forwarding;
mod message;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use netlink_sys::{Socket, SocketAddr};

use crate::LinkError;
use answer::answers;
pub use forwarding::{Forwarding, closed_chains, has_older_filters};
use message::{Attributes, Batch, Expressions};

/// Translation of the source addresses of one mobile, until it is dropped.
#[derive(Debug)]
pub struct Masquerade {
    _owner: Socket,
}

// <linux/netfilter/nf_tables.h>, <linux/netfilter/nfnetlink.h>
const NETLINK_NETFILTER: isize = 12;
const NEW_TABLE: u16 = 0;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const TABLE_IS_OWNED: u32 = 2;
const HOOK_POSTROUTING: u32 = 4;
/// The priority that nft(8) calls `srcnat`.
const PRIORITY_SOURCE: u32 = 100;
const PROTOCOL_IPV4: u8 = 2;
const PROTOCOL_IPV6: u8 = 10;

impl Masquerade {
    /// Translates these source addresses, in the network namespace of the calling thread, to the
    /// address of the outgoing interface. The table is called `name`.
    ///
    /// # Errors
    /// If the kernel does not permit or support it.
    pub fn install(name: &str, v4: Ipv4Addr, v6: Ipv6Addr) -> Result<Self, LinkError> {
        let failed = "addresses cannot be translated (that needs nftables and Linux 5.12)";
        Self::try_install(name, v4, v6).map_err(LinkError::host(failed))
    }

    fn try_install(name: &str, v4: Ipv4Addr, v6: Ipv6Addr) -> io::Result<Self> {
        let chain = "postrouting";
        let mut batch = Batch::new();
        batch.add(NEW_TABLE, Attributes::new().text(1, name).number(2, TABLE_IS_OWNED));
        let hook = Attributes::new().number(1, HOOK_POSTROUTING).number(2, PRIORITY_SOURCE);
        batch.add(NEW_CHAIN, Attributes::new().text(1, name).text(3, chain).nested(4, hook).text(7, "nat"));
        // Offsets of the source address: RFC 791 §3.1, RFC 8200 §3.
        for (protocol, offset, address) in
            [(PROTOCOL_IPV4, 12, v4.octets().to_vec()), (PROTOCOL_IPV6, 8, v6.octets().to_vec())]
        {
            let expressions =
                Expressions::new().protocol_is(protocol).header_has(offset, &address).masquerade().attributes();
            batch.add(NEW_RULE, Attributes::new().text(1, name).text(2, chain).nested(4, expressions));
        }
        let socket = connect()?;
        let (bytes, expected) = batch.finish();
        socket.send(&bytes, 0)?;
        let mut received = 0;
        while received < expected {
            let (datagram, _) = socket.recv_from_full()?;
            for answer in answers(&datagram) {
                answer.check()?;
                received += 1;
            }
        }
        Ok(Self { _owner: socket })
    }
}

/// A netlink socket to the firewall of the calling thread's network namespace.
fn connect() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}
