//! Address translation towards the outside, and what the host must allow for it.
//!
//! The kernel translates: one nftables table with one rule for each IP version. The table has an owner, the socket over which
//! it was made, and goes away with it, however this process ends (Linux 5.12, `NFT_TABLE_F_OWNER`).

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

/// Translation of the source addresses of one mobile, while it lives.
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
/// Where nft(8) puts `srcnat`.
const PRIORITY_SOURCE: u32 = 100;
const PROTOCOL_IPV4: u8 = 2;
const PROTOCOL_IPV6: u8 = 10;

impl Masquerade {
    /// Translates what comes from these addresses, in the network namespace of the calling thread, to the address of the
    /// interface through which it leaves. The table is called `name`.
    ///
    /// # Errors
    /// Where the kernel does not allow or know it.
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
        // Where each header has its source address: RFC 791 §3.1, RFC 8200 §3.
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

/// A connection to the kernel about the firewall of the calling thread's network namespace.
fn connect() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}
