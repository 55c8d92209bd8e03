//! Packets that do not cross the link, because a router would not forward them. The kernel sends
//! such packets on every interface; on the bearer they would keep an idle radio active.

use std::net::{Ipv4Addr, Ipv6Addr};

use airpath_wire::ip::Protocol;

use super::network::Network;

/// Why a packet is dropped before it enters the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum EntryDropCause {
    /// Neither IPv4 nor IPv6.
    #[error("it is neither IPv4 nor IPv6")]
    NotIp,
    /// A header is cut short, or lengths contradict each other.
    #[error("a header is cut short, or its lengths contradict each other")]
    Malformed,
    /// The checksum of the IPv4 header is wrong.
    #[error("the checksum of its IPv4 header does not hold")]
    HeaderChecksum,
    /// The offload header contradicts the packet, or requests an unsupported operation.
    #[error("its offload header does not fit the packet")]
    Offload,
    /// IGMP or multicast listener discovery.
    #[error("group membership is not forwarded")]
    GroupMembership,
    /// Neighbour and router discovery.
    #[error("neighbour discovery is not forwarded")]
    NeighbourDiscovery,
    /// To an address of this link only: link-local unicast and multicast, or the limited broadcast.
    #[error("its address is valid on this link only")]
    LinkLocal,
    /// From or to an address that is not valid on a wire.
    #[error("no packet on a wire has its address")]
    Martian,
}

impl EntryDropCause {
    /// All causes, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::NotIp,
        Self::Malformed,
        Self::HeaderChecksum,
        Self::Offload,
        Self::GroupMembership,
        Self::NeighbourDiscovery,
        Self::LinkLocal,
        Self::Martian,
    ];

    /// The name under which it is counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not-ip",
            Self::Malformed => "malformed",
            Self::HeaderChecksum => "header-checksum",
            Self::Offload => "offload",
            Self::GroupMembership => "group-membership",
            Self::NeighbourDiscovery => "neighbour-discovery",
            Self::LinkLocal => "link-local",
            Self::Martian => "martian",
        }
    }
}

/// The Internet Group Management Protocol (RFC 9776 §4).
const IGMP: Protocol = Protocol(2);

/// Whether a router would forward `packet`, whose lengths are valid.
pub(super) fn check(network: &Network, packet: &[u8]) -> Result<(), EntryDropCause> {
    if network.protocol == IGMP {
        return Err(EntryDropCause::GroupMembership);
    }
    if network.is_ipv6 {
        check_icmpv6(network, packet)?;
        check_ipv6(address(packet, 8).into(), address(packet, 24).into())
    } else {
        check_ipv4(address(packet, 12).into(), address(packet, 16).into())
    }
}

/// RFC 4890 §4.3.3: messages that end at the first router.
fn check_icmpv6(network: &Network, packet: &[u8]) -> Result<(), EntryDropCause> {
    if network.protocol != Protocol::ICMPV6 || network.is_later_fragment {
        return Ok(());
    }
    match packet.get(usize::from(network.transport)) {
        // Multicast listeners (RFC 2710, RFC 9777) and multicast routers (RFC 4286).
        Some(130..=132 | 143 | 151..=153) => Err(EntryDropCause::GroupMembership),
        // Neighbours, routers and redirects (RFC 4861), inverse (RFC 3122), and their certificates
        // (RFC 3971).
        Some(133..=137 | 141 | 142 | 148 | 149) => Err(EntryDropCause::NeighbourDiscovery),
        _ => Ok(()),
    }
}

/// RFC 1812 §5.3.7 for martians. Link-local unicast (169.254/16) is carried, though RFC 3927 §7
/// would not have it forwarded: Linux does, and the resolver of many a cloud is found there.
fn check_ipv4(source: Ipv4Addr, destination: Ipv4Addr) -> Result<(), EntryDropCause> {
    // The local network control block (RFC 5771 §4), and the limited broadcast (RFC 919 §7).
    if destination.octets()[..3] == [224, 0, 0] || destination.is_broadcast() {
        return Err(EntryDropCause::LinkLocal);
    }
    let martian = |address: Ipv4Addr| address.is_loopback() || address.is_unspecified();
    if martian(source) || martian(destination) || source.is_multicast() || source.is_broadcast() {
        return Err(EntryDropCause::Martian);
    }
    Ok(())
}

/// RFC 4291 §2.5.6 for link-local, §2.5.2, §2.5.3 and §2.7 for martians.
fn check_ipv6(source: Ipv6Addr, destination: Ipv6Addr) -> Result<(), EntryDropCause> {
    // The scope of a multicast address is the low half of its second byte: 1 is this interface, 2
    // this link.
    let confined = destination.is_multicast() && matches!(destination.octets()[1] & 0x0F, 1 | 2);
    if confined || source.is_unicast_link_local() || destination.is_unicast_link_local() {
        return Err(EntryDropCause::LinkLocal);
    }
    let martian = |address: Ipv6Addr| address.is_loopback() || address.is_unspecified();
    if martian(source) || martian(destination) || source.is_multicast() {
        return Err(EntryDropCause::Martian);
    }
    Ok(())
}

/// The address of `N` bytes at `at`.
fn address<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    *packet[at..].first_chunk().expect("the packet's header is complete")
}
