//! Which packets of the TUN interface belong to a mobile, and in which direction they go.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use airpath_core::{Direction, FlowId, Instant, Span, UserId};
use airpath_scenario::{LiveConfig, Prefix};
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;
use airpath_wire::segment::{Endpoint, Route};
use serde::{Deserialize, Serialize};

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
    /// When the last packet of each user came.
    active: Vec<Instant>,
    /// Users whose numbers another mobile may have.
    idle: Vec<UserId>,
    /// Whether a mobile had no number since the last search for idle ones, and when that was.
    search: (bool, Instant),
    connections: ConnectionNumbers,
    /// Packets that passed without entering the path, in the order of [`BypassCause::ALL`].
    pub bypassed: [u64; BypassCause::ALL.len()],
    /// Packets that were dropped, in the order of [`RefusalCause::ALL`].
    pub refused: [u64; RefusalCause::ALL.len()],
}

/// What another process continues: the numbers of the mobiles, and the counters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedRouter {
    mobiles: Vec<Prefix>,
    bypassed: [u64; BypassCause::ALL.len()],
    refused: [u64; RefusalCause::ALL.len()],
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

/// A mobile without a packet for this time, and without connections, may lose its number.
const IDLE: Span = Span::from_secs(60);

/// Idle mobiles are searched for at most this often: there may be many.
const SEARCH_INTERVAL: Span = Span::from_secs(1);

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
            active: Vec::new(),
            idle: Vec::new(),
            search: (false, Instant::ZERO),
            connections: ConnectionNumbers::new(first_connection),
            bypassed: Default::default(),
            refused: Default::default(),
        };
        router.reconfigure(config);
        router
    }

    /// What another process continues.
    pub fn save(&self) -> SavedRouter {
        SavedRouter { mobiles: self.mobiles.clone(), bypassed: self.bypassed, refused: self.refused }
    }

    /// Continues from what another process has saved. Connections are numbered again.
    pub fn restore(config: &LiveConfig, first_connection: u32, saved: SavedRouter, now: Instant) -> Self {
        let SavedRouter { mobiles, bypassed, refused } = saved;
        let users = mobiles.iter().zip(0..).map(|(mobile, user)| (mobile.address, UserId::new(user))).collect();
        let active = vec![now; mobiles.len()];
        Self { users, mobiles, active, bypassed, refused, ..Self::new(config, first_connection) }
    }

    /// The number of a connection that another process has begun; `route` is that of the mobile's
    /// packets.
    pub fn adopt(&mut self, route: &Route) -> FlowId {
        self.connections.adopt(route)
    }

    /// Takes over changed settings. Mobiles that are no longer listed keep their number.
    pub fn reconfigure(&mut self, config: &LiveConfig) {
        self.listed.clone_from(&config.mobiles);
        self.ipv6_mobile = config.ipv6_mobile;
        self.most_mobiles = config.most_mobiles.into();
        self.connections.separates_others = config.proxy.queue.is_some();
    }

    /// The address or prefix of each mobile that was seen, by user.
    pub fn mobiles(&self) -> &[Prefix] {
        &self.mobiles
    }

    /// Decides about a packet, and counts it if it does not enter.
    pub fn classify(&mut self, now: Instant, virtio: &VirtioHeader, frame: &Frame, bytes: &[u8]) -> Verdict {
        let verdict = self.verdict(now, virtio, frame, bytes);
        match verdict {
            Verdict::Enter(..) => {}
            Verdict::Bypass(cause) => self.bypassed[cause as usize] += u64::from(frame.segments()),
            Verdict::Refuse(cause) => self.refused[cause as usize] += u64::from(frame.segments()),
        }
        verdict
    }

    fn verdict(&mut self, now: Instant, virtio: &VirtioHeader, frame: &Frame, bytes: &[u8]) -> Verdict {
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
        match self.user(now, mobile) {
            Some(user) => {
                self.active[user.index()] = now;
                Verdict::Enter(direction, user)
            }
            None => {
                self.search.0 = true;
                Verdict::Bypass(BypassCause::MobileLimit)
            }
        }
    }

    fn user(&mut self, now: Instant, address: IpAddr) -> Option<UserId> {
        let mobile = Prefix::around(address, if address.is_ipv6() { self.ipv6_mobile } else { 32 });
        if let Some(user) = self.users.get(&mobile.address) {
            return Some(*user);
        }
        let user = if self.mobiles.len() < self.most_mobiles {
            self.mobiles.push(mobile);
            self.active.push(Instant::ZERO);
            UserId::new(self.mobiles.len() as u32 - 1)
        } else {
            let user = self.take_idle(now)?;
            let former = std::mem::replace(&mut self.mobiles[user.index()], mobile);
            self.users.remove(&former.address);
            user
        };
        self.users.insert(mobile.address, user);
        Some(user)
    }

    /// Whether a mobile had no number, and idle ones are to be searched for again.
    pub fn searches(&self, now: Instant) -> bool {
        let (wanted, last) = self.search;
        wanted && now >= last + SEARCH_INTERVAL
    }

    /// The mobiles without a packet for some time.
    pub fn silent_mobiles(&self, now: Instant) -> Vec<UserId> {
        let silent = self.active.iter().zip(0..).filter(|(last, _)| now.since(**last) >= IDLE);
        silent.map(|(_, user)| UserId::new(user)).collect()
    }

    /// Others may have the numbers of these mobiles, which have no connections, unless a packet of
    /// them comes.
    pub fn set_idle(&mut self, now: Instant, idle: Vec<UserId>) {
        self.search = (false, now);
        self.idle = idle;
    }

    /// Takes a number that another mobile may have.
    fn take_idle(&mut self, now: Instant) -> Option<UserId> {
        loop {
            let user = self.idle.pop()?;
            if now.since(self.active[user.index()]) >= IDLE {
                return Some(user);
            }
        }
    }

    /// The connection of a packet that enters.
    pub fn flow(&mut self, direction: Direction, frame: &Frame, bytes: &[u8]) -> FlowId {
        self.connections.flow(direction, frame, bytes)
    }

    /// The connection of a segment of this direction.
    pub fn flow_of_segment(&self, direction: Direction, source: Endpoint, destination: Endpoint) -> Option<FlowId> {
        self.connections.flow_of_segment(direction, source, destination)
    }

    /// Source and destination of packets of `direction` of a connection.
    pub fn route(&self, flow: FlowId, direction: Direction) -> Option<Route> {
        self.connections.route(flow, direction)
    }

    /// Begins a connection of the proxy between these ends; `None` if it has begun already.
    pub fn open_flow(&mut self, mobile: Endpoint, server: Endpoint) -> Option<FlowId> {
        self.connections.begin_between(mobile, server)
    }

    /// Whether the proxy may open connections to an address: not to a mobile, whose answers would
    /// not come back to the proxy, nor where mobiles must not send to.
    pub fn permits_server(&self, address: IpAddr) -> bool {
        !is_reserved(address) && !self.listed.iter().any(|prefix| prefix.contains(address))
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
        router.classify(Instant::ZERO, &virtio, &frame, bytes)
    }

    const MOBILE: [u8; 4] = [10, 1, 0, 1];
    const SERVER: [u8; 4] = [192, 0, 2, 1];

    #[test]
    fn only_packets_of_listed_mobiles_enter() {
        let mut router = router("most_mobiles = 2");
        let up = verdict(&mut router, &packet(MOBILE, SERVER, 2));
        assert_eq!(up, Verdict::Enter(Direction::Up, UserId::new(0)));
        let down = verdict(&mut router, &packet(SERVER, [10, 1, 0, 2], 2));
        assert_eq!(down, Verdict::Enter(Direction::Down, UserId::new(1)));
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
    fn the_number_of_an_idle_mobile_is_used_again() {
        let mut router = router("most_mobiles = 2");
        let mut verdict = |seconds, mobile: u8, idle: &[u32]| {
            let (now, virtio) = (Instant::ZERO + Span::from_secs(seconds), VirtioHeader::default());
            let bytes = packet([10, 1, 0, mobile], SERVER, 2);
            let frame = Frame::inspect(&virtio, &bytes).unwrap();
            if router.searches(now) {
                let mut silent = router.silent_mobiles(now);
                silent.retain(|user| idle.contains(&user.number()));
                router.set_idle(now, silent);
            }
            router.classify(now, &virtio, &frame, &bytes)
        };
        let enters = |user| Verdict::Enter(Direction::Up, UserId::new(user));
        let no_number = Verdict::Bypass(BypassCause::MobileLimit);
        assert_eq!([verdict(1, 1, &[]), verdict(1, 2, &[])], [enters(0), enters(1)]);
        assert_eq!([verdict(30, 2, &[]), verdict(40, 3, &[0, 1])], [enters(1), no_number]);
        assert_eq!(verdict(50, 3, &[0, 1]), no_number, "none is idle for a minute");
        assert_eq!(verdict(70, 3, &[]), no_number, "mobile 0 has connections");
        assert_eq!(verdict(72, 3, &[0, 1]), enters(0), "mobile 1 has sent");
        assert_eq!(verdict(73, 1, &[0, 1]), no_number);
        assert_eq!(verdict(91, 1, &[0, 1]), enters(1), "and is another one now");
    }

    #[test]
    fn a_packet_with_a_wrong_checksum_is_dropped() {
        let mut router = router("");
        let mut bytes = packet(MOBILE, SERVER, 2);
        bytes[30] ^= 1;
        assert_eq!(verdict(&mut router, &bytes), Verdict::Refuse(RefusalCause::Checksum));
        let virtio = VirtioHeader { flags: VirtioHeader::CHECKSUM_VERIFIED, ..VirtioHeader::default() };
        let frame = Frame::inspect(&virtio, &bytes).unwrap();
        assert_eq!(
            router.classify(Instant::ZERO, &virtio, &frame, &bytes),
            Verdict::Enter(Direction::Up, UserId::new(0))
        );
    }

    #[test]
    fn packets_without_a_connection_are_separated_for_a_fair_queue() {
        let flows = |lines: &str| {
            let mut router = router(lines);
            [MOBILE, [10, 1, 0, 2], MOBILE].map(|mobile| {
                let bytes = packet(mobile, SERVER, 0x10);
                let frame = Frame::inspect(&VirtioHeader::default(), &bytes).unwrap();
                router.flow(Direction::Up, &frame, &bytes)
            })
        };
        let [first, second, again] = flows("[proxy.queue]\nrate = \"1 Mbit/s\"");
        assert!(first == again && first != second && first.0 >= 1 << 31);
        let [first, second, _] = flows("");
        assert_eq!(first, second);
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
        flow(&mut router, Direction::Up, &packet(MOBILE, SERVER, 2));
        let end = |address: [u8; 4], port| Endpoint { address: address.into(), port };
        let mut open = |port| router.open_flow(end(MOBILE, port), end(SERVER, 51_201));
        assert_eq!(open(80), None, "the mobile uses it");
        let opened = open(61_000).expect("the port is free");
        assert_eq!(open(61_000), None);
        let mut answer = packet(SERVER, MOBILE, 0x12);
        answer[20..24].copy_from_slice(&[200, 1, 0xEE, 0x48]);
        assert_eq!(flow(&mut router, Direction::Down, &answer), opened);
        router.end_flow(opened);
        assert!(router.open_flow(end(MOBILE, 61_000), end(SERVER, 51_201)).is_some());
        let permits = |address: [u8; 4]| router.permits_server(address.into());
        assert!(permits(SERVER) && !permits(MOBILE) && !permits([169, 254, 1, 1]));
    }
}
