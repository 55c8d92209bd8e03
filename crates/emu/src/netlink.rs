//! Interfaces, addresses, routes and routing rules of the calling thread's network namespace, over
//! rtnetlink(7).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::RuleMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// An rtnetlink(7) socket of the network namespace in which it was opened.
///
/// Interfaces are identified by their index, which does not change when they are renamed. Errors
/// name the operation.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the namespace of the calling thread.
    ///
    /// # Errors
    /// If the kernel does not permit it.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// The index of the interface `name`.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn index_of(&mut self, name: &str) -> io::Result<u32> {
        let mut wanted = LinkMessage::default();
        wanted.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let link = self.link(wanted).map_err(during(|| format!("finding the interface `{name}`")))?;
        Ok(link.header.index)
    }

    /// The hardware address of an Ethernet interface.
    ///
    /// # Errors
    /// If there is no such interface, or it has no hardware address.
    pub fn hardware_address(&mut self, index: u32) -> io::Result<[u8; 6]> {
        let what = || format!("finding the hardware address of interface {index}");
        let link = self.link(of_index(index)).map_err(during(what))?;
        let address = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Address(bytes) => bytes.as_slice().try_into().ok(),
            _ => None,
        });
        address.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the interface has no hardware address"))
    }

    /// Sets an interface up.
    ///
    /// # Errors
    /// Those of the kernel; the same holds for the methods below.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        self.set_flag(index, LinkFlags::Up).map_err(during(|| format!("taking up interface {index}")))
    }

    /// Disables ARP and neighbour discovery on an interface.
    pub fn set_no_arp(&mut self, index: u32) -> io::Result<()> {
        self.set_flag(index, LinkFlags::Noarp).map_err(during(|| format!("taking ARP from interface {index}")))
    }

    /// Sets the MTU of an interface, in bytes.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> io::Result<()> {
        let mut link = of_index(index);
        link.attributes.push(LinkAttribute::Mtu(mtu));
        let what = || format!("letting interface {index} take packets of {mtu} bytes");
        self.change(RouteNetlinkMessage::SetLink(link), 0).map_err(during(what))
    }

    /// Sets the length in packets of an interface's transmit queue.
    pub fn set_queue_length(&mut self, index: u32, packets: u32) -> io::Result<()> {
        let mut link = of_index(index);
        link.attributes.push(LinkAttribute::TxQueueLen(packets));
        self.change(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Adds an address to an interface, without duplicate address detection.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix_length: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = prefix_length;
        message.header.family = family(address);
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        let what = || format!("giving interface {index} the address {address}/{prefix_length}");
        self.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL).map_err(during(what))
    }

    /// Adds a default route for the IP version of `version` through an interface.
    pub fn add_default_route(&mut self, index: u32, version: IpAddr) -> io::Result<()> {
        self.add_default_route_to(RouteHeader::RT_TABLE_MAIN.into(), index, version)
    }

    /// Adds a default route to a routing table.
    pub fn add_default_route_to(&mut self, table: u32, index: u32, version: IpAddr) -> io::Result<()> {
        let any = match version {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        self.add_route(table, index, (any, 0), &[])
    }

    /// Adds a route to one address through an interface.
    pub fn add_host_route(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let length = if address.is_ipv4() { 32 } else { 128 };
        self.add_route(RouteHeader::RT_TABLE_MAIN.into(), index, (address, length), &[])
    }

    /// Adds a route to the network of `destination`, which has a prefix length, for packets from
    /// `source` that no route with a lower metric takes.
    pub fn add_fallback_route(
        &mut self,
        index: u32,
        (destination, length): (IpAddr, u8),
        source: IpAddr,
        metric: u32,
    ) -> io::Result<()> {
        let network = match destination {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        let source = RouteAttribute::PrefSource(route_address(source));
        let more = [RouteAttribute::Priority(metric), source];
        self.add_route(RouteHeader::RT_TABLE_MAIN.into(), index, (network, length), &more)
    }

    fn add_route(
        &mut self,
        table: u32,
        index: u32,
        (address, length): (IpAddr, u8),
        more: &[RouteAttribute],
    ) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = length;
        if length > 0 {
            message.attributes.push(RouteAttribute::Destination(route_address(address)));
        }
        message.attributes.push(RouteAttribute::Table(table));
        message.header.protocol = RouteProtocol::Boot;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message.attributes.push(RouteAttribute::Oif(index));
        message.attributes.extend_from_slice(more);
        let what = || format!("leading {address}/{length} through interface {index}");
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL).map_err(during(what))
    }

    /// Adds a routing rule.
    pub fn add_rule(&mut self, rule: RuleMessage) -> io::Result<()> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewRule(rule), flags).map_err(during(|| "adding a routing rule".to_owned()))
    }

    /// Removes a routing rule.
    pub fn remove_rule(&mut self, rule: RuleMessage) -> io::Result<()> {
        self.change(RouteNetlinkMessage::DelRule(rule), 0).map_err(during(|| "removing a routing rule".to_owned()))
    }

    /// All routing rules of an address family.
    pub fn rules(&mut self, family: AddressFamily) -> io::Result<Vec<RuleMessage>> {
        let mut wanted = RuleMessage::default();
        wanted.header.family = family;
        self.send(RouteNetlinkMessage::GetRule(wanted), NLM_F_DUMP)?;
        let mut rules = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let answer = parse(rest)?;
                // Messages are padded to multiples of four bytes (netlink(7)).
                let length = (answer.header.length as usize).next_multiple_of(4).max(NETLINK_HEADER);
                rest = rest.get(length..).unwrap_or_default();
                match answer.payload {
                    NetlinkPayload::Done(_) => return Ok(rules),
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRule(rule)) => rules.push(rule),
                    _ => {}
                }
            }
        }
    }

    /// Creates a pair of connected virtual Ethernet interfaces.
    pub fn add_veth(&mut self, name: &str, peer_name: &str) -> io::Result<()> {
        let mut peer = LinkMessage::default();
        peer.attributes.push(LinkAttribute::IfName(peer_name.to_owned()));
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let what = || format!("making the virtual Ethernet pair of `{name}` and `{peer_name}`");
        self.change(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL).map_err(during(what))
    }

    /// Moves an interface to another namespace.
    pub fn move_to(&mut self, index: u32, namespace: BorrowedFd<'_>) -> io::Result<()> {
        let mut link = of_index(index);
        link.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let what = || format!("moving interface {index} to another namespace");
        self.change(RouteNetlinkMessage::SetLink(link), 0).map_err(during(what))
    }

    fn set_flag(&mut self, index: u32, flag: LinkFlags) -> io::Result<()> {
        let mut link = of_index(index);
        link.header.flags = flag;
        link.header.change_mask = flag;
        self.change(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// The interface that matches `wanted`.
    fn link(&mut self, wanted: LinkMessage) -> io::Result<LinkMessage> {
        match self.request(RouteNetlinkMessage::GetLink(wanted), 0)? {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.request(message, flags | NLM_F_ACK).map(drop)
    }

    /// Sends a request and returns the message of its response; `None` for an acknowledgement.
    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Option<RouteNetlinkMessage>> {
        self.send(message, flags)?;
        let (answer, _) = self.socket.recv_from_full()?;
        match parse(&answer)?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
            _ => Ok(None),
        }
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(drop)
    }
}

/// Bytes of the header of a message.
const NETLINK_HEADER: usize = 16;

/// The first message of a datagram.
fn parse(datagram: &[u8]) -> io::Result<NetlinkMessage<RouteNetlinkMessage>> {
    NetlinkMessage::deserialize(datagram).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

/// For `map_err`: names the operation that failed.
fn during(what: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> io::Error {
    |error| io::Error::new(error.kind(), format!("{}: {error}", what()))
}

fn of_index(index: u32) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link
}

const fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet }
}
