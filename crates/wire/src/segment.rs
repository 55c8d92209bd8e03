//! A captured TCP segment or UDP datagram: the output of capture decoders, the input of observers.

use std::net::IpAddr;

use airpath_core::{Ecn, Instant};
use serde::{Deserialize, Serialize};

use crate::tcp::{Flags, Options};

/// A TCP segment as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The frame that contains it; for a fragmented packet, the fragment that completed it.
    pub frame: u64,
    /// When it was captured.
    pub time: Instant,
    /// Source, destination and tunnel.
    pub route: Route,
    /// Identification of the IP packet (IPv4 only).
    pub identification: Option<u16>,
    /// Remaining hops.
    pub time_to_live: u8,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// Sequence number of the first byte, or of the SYN.
    pub sequence: u32,
    /// Next sequence number expected; meaningful with [`Flags::ACK`].
    pub acknowledgment: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window as sent, before scaling.
    pub window: u16,
    /// Urgent pointer; meaningful with [`Flags::URG`].
    pub urgent: u16,
    /// Options that were captured and are well formed.
    pub options: Options,
    /// Whether options were cut off or malformed.
    pub options_cut: bool,
    /// Bytes of payload that the segment had. More than a packet can carry where the capturing host
    /// offloads the cutting into packets to its interface.
    pub length: u32,
    /// Captured bytes of payload.
    pub captured: u32,
    /// The captured payload; empty where the decoder does not provide it.
    pub payload: &'a [u8],
    /// Whether the checksum holds; `None` where not all of the segment was captured. A host that
    /// leaves checksums to its interface captures what it sends before they are made.
    pub checksum: Option<bool>,
}

/// A UDP datagram as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The frame that contains it; for a fragmented packet, the fragment that completed it.
    pub frame: u64,
    /// When it was captured.
    pub time: Instant,
    /// Source, destination and tunnel.
    pub route: Route,
    /// Remaining hops.
    pub time_to_live: u8,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// Bytes of payload that the datagram had.
    pub length: u32,
    /// The captured bytes of the payload.
    pub payload: &'a [u8],
}

/// Source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// Source endpoint.
    pub source: Endpoint,
    /// Destination endpoint.
    pub destination: Endpoint,
    /// Encapsulation of the packet: equal for all packets of a connection.
    pub tunnel: Tunnel,
}

impl Route {
    /// The opposite direction.
    pub const fn reversed(&self) -> Self {
        Self { source: self.destination, destination: self.source, tunnel: self.tunnel }
    }
}

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Endpoint {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

/// Encapsulation of an IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Tunnel {
    /// Nothing.
    #[default]
    None,
    /// IPv6 in IPv4 (RFC 4213 §3), or any IP in IP.
    Ip,
    /// A GTP-U tunnel of a mobile (TS 29.281). The two directions have tunnel end points of their
    /// own; a mobile is known by its inner address.
    Gtp,
}

impl Tunnel {
    /// Its name in tables; `None` where there is no tunnel.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gtp => Some("gtp"),
            Self::Ip => Some("ip"),
        }
    }
}
