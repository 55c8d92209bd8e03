//! Which packets of the TUN interface belong to a mobile, and in which direction they go.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use airpath_core::{Direction, FlowId, UserId};
use airpath_scenario::{LiveConfig, Prefix};
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::segment::Route;

use crate::observe::{ConnectionNumbers, addresses};
use crate::offload::{Frame, VirtioHeader};

/// The mobiles of a router, and the packets that do not enter its path.
#[derive(Debug)]
pub struct Router {
    listed: Vec<Prefix>,
    ipv6_mobile: u8,
    most_mobiles: usize,
    users: BTreeMap<IpAddr, UserId>,
    /// The address or prefix of each user.
    mobiles: Vec<Prefix>,
    connections: ConnectionNumbers,
    /// Packets that passed without entering the path, in the order of [`BypassCause::ALL`].
    pub bypassed: [u64; BypassCause::ALL.len()],
    /// Packets that were dropped, in the order of [`RefusalCause::ALL`].
    pub refused: [u64; RefusalCause::ALL.len()],
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It enters the path.
    Enter(Direction, UserId),
    /// It is sent back as it came.
    Bypass(BypassCause),
    /// It is dropped.
    Refuse(RefusalCause),
}

/// Why a packet of a mobile passes without entering the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BypassCause {
    /// Both ends are mobiles.
    BetweenMobiles,
    /// There are too many mobiles.
    MobileLimit,
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// Neither end is a listed mobile.
    NotListed,
    /// The other end has a link-local, multicast, broadcast or reserved address.
    Address,
    /// The checksum of its TCP header does not hold.
    Checksum,
}

impl BypassCause {
    /// All causes, in the order of their declaration.
    pub const ALL: [Self; 2] = [Self::BetweenMobiles, Self::MobileLimit];

    /// The name under which it is counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BetweenMobiles => "between-mobiles",
            Self::MobileLimit => "mobile-limit",
        }
    }
}

impl RefusalCause {
    /// All causes, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::NotListed, Self::Address, Self::Checksum];

    /// The name under which it is counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotListed => "not-listed",
            Self::Address => "address",
            Self::Checksum => "checksum",
        }
    }
}

impl Router {
    /// A router that has not seen a mobile. Its connections are numbered from `first_connection`
    /// on.
    pub fn new(config: &LiveConfig, first_connection: u32) -> Self {
        let mut router = Self {
            listed: Vec::new(),
            ipv6_mobile: 0,
            most_mobiles: 0,
            users: BTreeMap::new(),
            mobiles: Vec::new(),
            connections: ConnectionNumbers::new(first_connection),
            bypassed: Default::default(),
            refused: Default::default(),
        };
        router.reconfigure(config);
        router
    }

    /// Takes over changed settings. Mobiles that are no longer listed keep their number.
    pub fn reconfigure(&mut self, config: &LiveConfig) {
        self.listed.clone_from(&config.mobiles);
        self.ipv6_mobile = config.ipv6_mobile;
        self.most_mobiles = config.most_mobiles.into();
    }

    /// The address or prefix of each mobile that was seen, by user.
    pub fn mobiles(&self) -> &[Prefix] {
        &self.mobiles
    }

    /// Decides about a packet, and counts it if it does not enter.
    pub fn classify(&mut self, virtio: &VirtioHeader, frame: &Frame, bytes: &[u8]) -> Verdict {
        let verdict = self.verdict(virtio, frame, bytes);
        match verdict {
            Verdict::Enter(..) => {}
            Verdict::Bypass(cause) => self.bypassed[cause as usize] += u64::from(frame.segments()),
            Verdict::Refuse(cause) => self.refused[cause as usize] += u64::from(frame.segments()),
        }
        verdict
    }

    fn verdict(&mut self, virtio: &VirtioHeader, frame: &Frame, bytes: &[u8]) -> Verdict {
        let (source, destination) = addresses(frame, bytes);
        let is_listed = |address| self.listed.iter().any(|prefix| prefix.contains(address));
        let (direction, mobile, other) = match (is_listed(source), is_listed(destination)) {
            (true, true) => return Verdict::Bypass(BypassCause::BetweenMobiles),
            (true, false) => (Direction::Up, source, destination),
            (false, true) => (Direction::Down, destination, source),
            (false, false) => return Verdict::Refuse(RefusalCause::NotListed),
        };
        if is_reserved(other) {
            return Verdict::Refuse(RefusalCause::Address);
        }
        if !checksum_holds(virtio, frame, bytes) {
            return Verdict::Refuse(RefusalCause::Checksum);
        }
        match self.user(mobile) {
            Some(user) => Verdict::Enter(direction, user),
            None => Verdict::Bypass(BypassCause::MobileLimit),
        }
    }

    fn user(&mut self, address: IpAddr) -> Option<UserId> {
        let mobile = Prefix::around(address, if address.is_ipv6() { self.ipv6_mobile } else { 32 });
        if let Some(user) = self.users.get(&mobile.address) {
            return Some(*user);
        }
        if self.mobiles.len() >= self.most_mobiles {
            return None;
        }
        let user = UserId(self.mobiles.len() as u16);
        self.mobiles.push(mobile);
        self.users.insert(mobile.address, user);
        Some(user)
    }

    /// The connection of a packet that enters.
    pub fn flow(&mut self, direction: Direction, frame: &Frame, bytes: &[u8]) -> FlowId {
        self.connections.flow(direction, frame, bytes)
    }

    /// Source and destination of packets of `direction` of a connection.
    pub fn route(&self, flow: FlowId, direction: Direction) -> Option<Route> {
        self.connections.route(flow, direction)
    }

    /// Begins a connection of the proxy with the ends of `flow`, but with `port` at the mobile.
    pub fn open_flow(&mut self, flow: FlowId, port: u16) -> Option<FlowId> {
        self.connections.begin_with_port(flow, port)
    }

    /// A connection has ended.
    pub fn end_flow(&mut self, flow: FlowId) {
        self.connections.end(flow);
    }
}

/// Addresses that [`Frame::inspect`] accepts, and with which a mobile must not speak through the
/// proxy: link-local ones, among them the metadata services of clouds, multicast and 240.0.0.0/4.
fn is_reserved(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let is_high = address.octets()[0] >= Ipv4Addr::new(224, 0, 0, 0).octets()[0];
            address.is_link_local() || is_high || address.octets()[0] == 0
        }
        IpAddr::V6(address) => address.is_multicast() || address.to_ipv4_mapped().is_some(),
    }
}

/// Whether the checksum of a TCP packet holds. The proxy computes a new one, so an error would be
/// passed on as data. Checksums that the kernel has verified, or that are still to be completed,
/// are not computed.
fn checksum_holds(virtio: &VirtioHeader, frame: &Frame, bytes: &[u8]) -> bool {
    if frame.protocol() != Protocol::TCP
        || frame.is_fragment()
        || virtio.gso_type != 0
        || virtio.flags & (VirtioHeader::NEEDS_CHECKSUM | VirtioHeader::CHECKSUM_VERIFIED) != 0
    {
        return true;
    }
    let Some(segment) = frame.transport().and_then(|start| bytes.get(start..frame.bytes() as usize)) else {
        return true;
    };
    let length = segment.len() as u32;
    let pseudo_header = match addresses(frame, bytes) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Sum::pseudo_v4(source, destination, Protocol::TCP, length),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Sum::pseudo_v6(source, destination, Protocol::TCP, length),
        _ => return false,
    };
    pseudo_header.and(segment).holds()
}

#[cfg(test)]
mod tests {
    use airpath_wire::ipv4::Ipv4Header;

    use super::*;

    fn packet(source: [u8; 4], destination: [u8; 4], flags: u8) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        let (source, destination) = (Ipv4Addr::from(source), Ipv4Addr::from(destination));
        let header = Ipv4Header {
            dscp: 0,
            ecn: airpath_core::Ecn::NotEct,
            total_length: 40,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live: 64,
            protocol: Protocol::TCP,
            source,
            destination,
        };
        header.emit(&mut bytes);
        bytes[20..24].copy_from_slice(&[0, 80, 200, 1]);
        bytes[32] = 0x50;
        bytes[33] = flags;
        let sum = Sum::pseudo_v4(source, destination, Protocol::TCP, 20).and(&bytes[20..]).checksum();
        bytes[36..38].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    fn router(lines: &str) -> Router {
        let text = format!("format = 1\nmobiles = [\"10.1.0.0/16\", \"fd00:1::/48\"]\n{lines}");
        Router::new(&LiveConfig::read(&text, "proxy.toml").unwrap(), 0)
    }

    fn verdict(router: &mut Router, bytes: &[u8]) -> Verdict {
        let virtio = VirtioHeader::default();
        let frame = Frame::inspect(&virtio, bytes).expect("a valid packet");
        router.classify(&virtio, &frame, bytes)
    }

    const MOBILE: [u8; 4] = [10, 1, 0, 1];
    const SERVER: [u8; 4] = [192, 0, 2, 1];

    #[test]
    fn only_packets_of_listed_mobiles_enter() {
        let mut router = router("most_mobiles = 2");
        let up = verdict(&mut router, &packet(MOBILE, SERVER, 2));
        assert_eq!(up, Verdict::Enter(Direction::Up, UserId(0)));
        let down = verdict(&mut router, &packet(SERVER, [10, 1, 0, 2], 2));
        assert_eq!(down, Verdict::Enter(Direction::Down, UserId(1)));
        let both = verdict(&mut router, &packet(MOBILE, [10, 1, 0, 2], 2));
        assert_eq!(both, Verdict::Bypass(BypassCause::BetweenMobiles));
        let third = verdict(&mut router, &packet([10, 1, 0, 3], SERVER, 2));
        assert_eq!(third, Verdict::Bypass(BypassCause::MobileLimit));
        let foreign = verdict(&mut router, &packet(SERVER, [192, 0, 2, 2], 2));
        assert_eq!(foreign, Verdict::Refuse(RefusalCause::NotListed));
        for reserved in [[169, 254, 169, 254], [239, 1, 2, 3], [250, 0, 0, 1], [0, 1, 2, 3]] {
            let refused = verdict(&mut router, &packet(MOBILE, reserved, 2));
            assert_eq!(refused, Verdict::Refuse(RefusalCause::Address), "{reserved:?}");
        }
        assert_eq!((router.bypassed, router.refused), ([1, 1], [1, 4, 0]));
    }

    #[test]
    fn a_packet_with_a_wrong_checksum_is_dropped() {
        let mut router = router("");
        let mut bytes = packet(MOBILE, SERVER, 2);
        bytes[30] ^= 1;
        assert_eq!(verdict(&mut router, &bytes), Verdict::Refuse(RefusalCause::Checksum));
        let virtio = VirtioHeader { flags: VirtioHeader::CHECKSUM_VERIFIED, ..VirtioHeader::default() };
        let frame = Frame::inspect(&virtio, &bytes).unwrap();
        assert_eq!(router.classify(&virtio, &frame, &bytes), Verdict::Enter(Direction::Up, UserId(0)));
    }

    #[test]
    fn numbers_of_ended_connections_are_used_again() {
        let mut router = router("");
        let mut flow = |direction, bytes: &[u8]| {
            let frame = Frame::inspect(&VirtioHeader::default(), bytes).unwrap();
            let flow = router.flow(direction, &frame, bytes);
            (flow, router.route(flow, direction).map(|route| route.destination.port))
        };
        let (unknown, no_route) = flow(Direction::Up, &packet(MOBILE, SERVER, 0x10));
        assert_eq!(no_route, None);
        let (first, port) = flow(Direction::Up, &packet(MOBILE, SERVER, 2));
        assert_eq!((first, port), (FlowId(0), Some(51_201)));
        assert_eq!(flow(Direction::Up, &packet(MOBILE, SERVER, 0x10)).0, first);
        router.end_flow(first);
        router.end_flow(unknown);
        let mut flow = |bytes: &[u8]| {
            let frame = Frame::inspect(&VirtioHeader::default(), bytes).unwrap();
            router.flow(Direction::Up, &frame, bytes)
        };
        assert_eq!(flow(&packet(MOBILE, SERVER, 0x10)), unknown);
        assert_eq!(flow(&packet([10, 1, 0, 9], SERVER, 2)), first);
    }

    #[test]
    fn the_proxy_opens_connections_with_ports_that_the_mobile_does_not_use() {
        let mut router = router("");
        let flow = |router: &mut Router, direction, bytes: &[u8]| {
            let frame = Frame::inspect(&VirtioHeader::default(), bytes).unwrap();
            router.flow(direction, &frame, bytes)
        };
        let first = flow(&mut router, Direction::Up, &packet(MOBILE, SERVER, 2));
        assert_eq!(router.open_flow(first, 80), None, "the mobile uses it");
        let opened = router.open_flow(first, 61_000).expect("the port is free");
        assert_eq!(router.open_flow(first, 61_000), None);
        let mut answer = packet(SERVER, MOBILE, 0x12);
        answer[20..24].copy_from_slice(&[200, 1, 0xEE, 0x48]);
        assert_eq!(flow(&mut router, Direction::Down, &answer), opened);
        router.end_flow(opened);
        assert!(router.open_flow(first, 61_000).is_some());
    }
}
