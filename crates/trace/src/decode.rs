//! Out of frames: the TCP segments and UDP datagrams in them.
//!
//! A frame goes down through its layers, and each hands the next a [`Part`](part::Part): the bytes that were captured of
//! it, and how many it had. Nothing is copied but fragments, and nothing allocated but for them.

mod fragments;
mod gtp;
mod link;
mod network;
mod part;
mod transport;

use std::net::IpAddr;

use airpath_core::{Ecn, Instant};
use airpath_wire::ip::Protocol;
use airpath_wire::tcp::{Flags, Options};

use crate::capture::Record;
use crate::passed_over::{Cause, Counts};
use fragments::Fragments;
use part::Part;

/// IP packets in each other that are looked into.
const DEPTH: usize = 4;

/// Finds the segment or datagram in each frame.
#[derive(Debug)]
pub struct Decoder {
    /// Those of each depth of wrapping.
    fragments: [Fragments; DEPTH],
    gtp_ports: Vec<u16>,
    passed_over: Counts,
}

/// What a frame had in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A TCP segment.
    Segment(Segment<'a>),
    /// A UDP datagram, other than a tunnel's.
    Datagram(Datagram<'a>),
    /// Neither; the decoder counts these.
    PassedOver(Cause),
}

/// A TCP segment as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The frame that it was in; of several fragments, the last that was missing.
    pub frame: u64,
    /// When it was captured.
    pub time: Instant,
    /// Who sent it to whom, and inside which tunnel.
    pub route: Route,
    /// Identification of the IP packet (IPv4 only).
    pub identification: Option<u16>,
    /// Hops that it may still make.
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
    /// Options, as far as they were captured and well formed.
    pub options: Options,
    /// Whether options were cut off or malformed.
    pub options_cut: bool,
    /// Bytes of payload that the segment had. More than a packet can carry where the capturing host offloads the cutting
    /// into packets to its interface.
    pub length: u32,
    /// How many of them were captured.
    pub captured: u32,
    /// Those, where they are handed on with the rest; else nothing.
    pub payload: &'a [u8],
    /// Whether the checksum holds; `None` where not all of the segment was captured. A host that leaves checksums to its
    /// interface captures what it sends before they are made.
    pub checksum: Option<bool>,
}

/// A UDP datagram as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The frame that it was in; of several fragments, the last that was missing.
    pub frame: u64,
    /// When it was captured.
    pub time: Instant,
    /// Who sent it to whom, and inside which tunnel.
    pub route: Route,
    /// Hops that it may still make.
    pub time_to_live: u8,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// Bytes of payload that the datagram had.
    pub length: u32,
    /// Those of them that were captured.
    pub payload: &'a [u8],
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// Where it comes from.
    pub source: Endpoint,
    /// Where it goes.
    pub destination: Endpoint,
    /// What the packet was wrapped in: packets of one connection have the same.
    pub tunnel: Tunnel,
}

impl Route {
    /// The way back.
    pub const fn reversed(&self) -> Self {
        Self { source: self.destination, destination: self.source, tunnel: self.tunnel }
    }
}

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

/// What an IP packet was wrapped in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tunnel {
    /// Nothing.
    #[default]
    None,
    /// IPv6 in IPv4 (RFC 4213 §3), or any IP in IP.
    Ip,
    /// A GTP-U tunnel of a mobile (TS 29.281). The two directions have tunnel end points of their own; a mobile is known
    /// by its inner address.
    Gtp,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { fragments: Default::default(), gtp_ports: vec![gtp::PORT], passed_over: Counts::default() }
    }
}

impl Decoder {
    /// Looks for the packets of mobiles in datagrams of this UDP port, too: GTP-U is looked for on its own port, 2152.
    #[must_use]
    pub fn with_gtp_port(mut self, port: u16) -> Self {
        self.gtp_ports.push(port);
        self
    }

    /// What the frame has in it.
    #[inline]
    pub fn decode<'a>(&'a mut self, record: &Record<'a>) -> Decoded<'a> {
        let Self { fragments, gtp_ports, passed_over } = self;
        decode(record, fragments, gtp_ports, passed_over).unwrap_or_else(|cause| {
            passed_over.add(cause);
            Decoded::PassedOver(cause)
        })
    }

    /// What was passed over so far.
    pub const fn passed_over(&self) -> &Counts {
        &self.passed_over
    }

    /// Packets whose fragments are still waited for: at the end of a capture, packets that are incomplete.
    pub fn incomplete(&self) -> usize {
        self.fragments.iter().map(Fragments::waiting).sum()
    }
}

#[inline(always)]
fn decode<'a>(
    record: &Record<'a>,
    fragments: &'a mut [Fragments; DEPTH],
    gtp_ports: &[u16],
    passed_over: &mut Counts,
) -> Result<Decoded<'a>, Cause> {
    let frame = Part::new(record.bytes, record.original_length as usize);
    let mut content = link::content(record.link_type, frame)?;
    let mut tunnel = Tunnel::None;
    for fragments in fragments {
        let packet = network::packet(record.time, content, fragments, passed_over)?;
        (content, tunnel) = match packet.protocol {
            Protocol::TCP => {
                return transport::segment(record, &packet, tunnel).map(Decoded::Segment);
            }
            Protocol::UDP => {
                let (datagram, whole) = transport::datagram(record, &packet, tunnel)?;
                let ports = [datagram.route.source.port, datagram.route.destination.port];
                let is_tunnel = ports.iter().any(|port| gtp_ports.contains(port));
                match gtp::content(whole).filter(|_| is_tunnel) {
                    Some(inner) => (inner?, Tunnel::Gtp),
                    None => return Ok(Decoded::Datagram(datagram)),
                }
            }
            // A mobile's packet stays one, whatever it is wrapped in besides.
            network::IPV4_IN_IP | network::IPV6_IN_IP => (packet.payload, tunnel.max(Tunnel::Ip)),
            _ => return Err(Cause::OtherTransport),
        };
    }
    Err(Cause::TooDeep)
}

#[cfg(test)]
mod tests;
