//! Flow keys and segments from the headers of a packet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use airpath_core::{Direction, Ecn, Instant};
use airpath_wire::checksum::Sum;
use airpath_wire::icmp::{EchoTypes, IcmpEcho, IcmpError};
use airpath_wire::ip::Protocol;
use airpath_wire::segment::{Endpoint, Route, Segment, Tunnel};
use airpath_wire::tcp::{Flags, Options, TcpHeader};

use crate::offload::Frame;

/// Identifies a flow, equal for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    mobile: IpAddr,
    server: IpAddr,
    protocol: u8,
    ends: Ends,
}

/// Distinguishes the flows between two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Ends {
    /// Ports of TCP or UDP.
    Ports { mobile: u16, server: u16 },
    /// Identifier of ICMP echo requests and their replies.
    Echo(u16),
    /// Nothing: fragments and all other protocols are one flow.
    None,
}

impl Key {
    /// The key of a packet of this direction.
    pub fn of(direction: Direction, frame: &Frame, bytes: &[u8]) -> Self {
        let (source, destination) = addresses(frame, bytes);
        let (mobile, server) = oriented(direction, source, destination);
        Self { mobile, server, protocol: frame.protocol().0, ends: Ends::of(direction, frame, bytes) }
    }

    /// The key of a TCP segment of this direction.
    pub fn of_segment(direction: Direction, source: Endpoint, destination: Endpoint) -> Self {
        let (mobile, server) = oriented(direction, source, destination);
        let ends = Ends::Ports { mobile: mobile.port, server: server.port };
        Self { mobile: mobile.address, server: server.address, protocol: Protocol::TCP.0, ends }
    }

    /// The mobile's address.
    pub const fn mobile(&self) -> IpAddr {
        self.mobile
    }

    /// The mobile's and the server's endpoint of a TCP connection.
    pub const fn tcp_ends(&self) -> Option<(Endpoint, Endpoint)> {
        match self.ends {
            Ends::Ports { mobile, server } if self.protocol == Protocol::TCP.0 => {
                Some((Endpoint { address: self.mobile, port: mobile }, Endpoint { address: self.server, port: server }))
            }
            _ => None,
        }
    }

    /// The source and destination of packets of `direction`, if it is a TCP connection.
    pub fn route(&self, direction: Direction) -> Option<Route> {
        let (mobile, server) = self.tcp_ends()?;
        let (source, destination) = match direction {
            Direction::Up => (mobile, server),
            Direction::Down => (server, mobile),
        };
        Some(Route { source, destination, tunnel: Tunnel::None })
    }

    /// Whether it is a flow of echo requests and replies.
    pub const fn is_echo(&self) -> bool {
        matches!(self.ends, Ends::Echo(_))
    }

    /// The kind of the flow in the summary.
    pub const fn kind(&self) -> &'static str {
        match (Protocol(self.protocol), self.ends) {
            (Protocol::TCP, Ends::Ports { .. }) => "tcp",
            (Protocol::UDP, Ends::Ports { .. }) => "udp",
            (_, Ends::Echo(_)) => "ping",
            (Protocol::ICMP | Protocol::ICMPV6, _) => "icmp",
            _ => "ip",
        }
    }

    /// The mobile's address, with its port if there is one.
    pub fn local(&self) -> String {
        match self.ends {
            Ends::Ports { mobile, .. } => SocketAddr::new(self.mobile, mobile).to_string(),
            _ => self.mobile.to_string(),
        }
    }

    /// The server's address, with its port if there is one.
    pub fn remote(&self) -> String {
        match self.ends {
            Ends::Ports { server, .. } => SocketAddr::new(self.server, server).to_string(),
            _ => self.server.to_string(),
        }
    }
}

impl fmt::Display for Key {
    /// The protocol between the addresses, if it is neither TCP nor UDP.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ends {
            Ends::Ports { .. } => Ok(()),
            Ends::Echo(identifier) => write!(f, " (ping {identifier})"),
            Ends::None => write!(f, " (protocol {})", self.protocol),
        }
    }
}

impl Ends {
    fn of(direction: Direction, frame: &Frame, bytes: &[u8]) -> Self {
        if frame.is_fragment() {
            return Self::None;
        }
        let Some(header) = transport(frame, bytes) else { return Self::None };
        match frame.protocol() {
            Protocol::TCP | Protocol::UDP => match header.first_chunk() {
                Some(&[s0, s1, d0, d1]) => {
                    let (source, destination) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
                    let (mobile, server) = oriented(direction, source, destination);
                    Self::Ports { mobile, server }
                }
                None => Self::None,
            },
            Protocol::ICMP | Protocol::ICMPV6 => {
                echo(frame, bytes).map_or(Self::None, |echo| Self::Echo(echo.identifier))
            }
            _ => Self::None,
        }
    }
}

/// The echo request or reply that a packet is, if it is one.
pub(super) fn echo(frame: &Frame, bytes: &[u8]) -> Option<IcmpEcho> {
    let types = if frame.is_ipv6() { EchoTypes::V6 } else { EchoTypes::V4 };
    IcmpEcho::parse(types, transport(frame, bytes)?).ok().map(|(echo, _)| echo)
}

/// The error about a TCP segment that a packet is, if it is one and its checksum holds.
pub(crate) fn icmp_error(frame: &Frame, bytes: &[u8]) -> Option<IcmpError> {
    if !matches!(frame.protocol(), Protocol::ICMP | Protocol::ICMPV6) || frame.is_fragment() {
        return None;
    }
    let message = transport(frame, bytes)?;
    let length = message.len() as u32;
    let (pseudo_header, error) = match addresses(frame, bytes) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            (Sum::pseudo_v6(source, destination, Protocol::ICMPV6, length), IcmpError::parse_v6(message))
        }
        _ => (Sum::default(), IcmpError::parse_v4(message)),
    };
    error.filter(|_| pseudo_header.and(message).holds())
}

/// Where and when a packet is observed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub time: Instant,
    /// Its number among the packets that passed there, from 1.
    pub number: u64,
    /// Its ECN field there.
    pub ecn: Ecn,
}

/// Segment `index` of `frame` as a capture has it; `None` without a complete TCP header.
pub(super) fn segment(frame: &Frame, bytes: &[u8], index: u32, route: Route, sight: Sight) -> Option<Segment<'static>> {
    let transport = transport(frame, bytes)?;
    let fixed: &[u8; TcpHeader::MIN_LENGTH] = transport.first_chunk()?;
    let header_bytes = usize::from(fixed[12] >> 4) * 4;
    let options = transport.get(TcpHeader::MIN_LENGTH..header_bytes)?;
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let short = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let (before, length) = match frame.segments() {
        1 => (0, (transport.len() - header_bytes) as u32),
        _ => frame.payload_of(index, index),
    };
    let (options, malformed) = match Options::parse_usual(options) {
        Some(timestamps) => (timestamps.into(), None),
        None => Options::parse_leading(options),
    };
    // The packets of a super-segment have increasing identifications.
    let identification =
        (!frame.is_ipv6()).then(|| u16::from_be_bytes([bytes[4], bytes[5]]).wrapping_add(index as u16));
    Some(Segment {
        frame: sight.number,
        time: sight.time,
        route,
        identification,
        time_to_live: bytes[if frame.is_ipv6() { 7 } else { 8 }],
        ecn: sight.ecn,
        sequence: word(4).wrapping_add(before),
        acknowledgment: word(8),
        flags: Flags(frame.flags_of(fixed[13], index, index)),
        window: short(14),
        urgent: short(18),
        options,
        options_cut: malformed.is_some(),
        length,
        captured: length,
        payload: &[],
        checksum: None,
    })
}

/// The transport header and payload of a packet, if it has one.
pub(super) fn transport<'a>(frame: &Frame, bytes: &'a [u8]) -> Option<&'a [u8]> {
    bytes.get(frame.transport()?..frame.bytes() as usize)
}

/// The source and the destination.
pub(crate) fn addresses(frame: &Frame, bytes: &[u8]) -> (IpAddr, IpAddr) {
    fn at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        *bytes[at..].first_chunk().expect("the IP header was inspected")
    }
    if frame.is_ipv6() {
        (Ipv6Addr::from(at(bytes, 8)).into(), Ipv6Addr::from(at(bytes, 24)).into())
    } else {
        (Ipv4Addr::from(at(bytes, 12)).into(), Ipv4Addr::from(at(bytes, 16)).into())
    }
}

/// Orders values of the source and the destination as those of the mobile and the server.
fn oriented<T>(direction: Direction, source: T, destination: T) -> (T, T) {
    match direction {
        Direction::Up => (source, destination),
        Direction::Down => (destination, source),
    }
}
