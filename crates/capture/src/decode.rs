//! Decodes frames: the TCP segments and UDP datagrams in them.
//!
//! Each layer of a frame passes the next a [`Part`](part::Part): its captured bytes and its
//! original length. Only fragments are copied, and only for them is memory allocated.

mod fragments;
mod gtp;
mod link;
mod network;
mod part;
mod transport;

use airpath_core::Instant;
use airpath_wire::ip::Protocol;
use airpath_wire::segment::{Datagram, Segment, Tunnel};
use airpath_wire::tcp::TcpHeader;

use crate::read::Record;
use crate::skipped::{Cause, Counts};
use fragments::Fragments;
use part::Part;

/// Maximum depth of IP packets inside each other.
const DEPTH: usize = 4;

/// Finds the segment or datagram in each frame.
#[derive(Debug)]
pub struct Decoder {
    /// Fragments, by depth of encapsulation.
    fragments: [Fragments; DEPTH],
    gtp_ports: Vec<u16>,
    skipped: Counts,
}

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A TCP segment.
    Segment(Segment<'a>),
    /// A UDP datagram, other than a tunnel's.
    Datagram(Datagram<'a>),
    /// Neither; the decoder counts these.
    Skipped(Cause),
}

impl Default for Decoder {
    fn default() -> Self {
        Self { fragments: Default::default(), gtp_ports: vec![gtp::PORT], skipped: Counts::default() }
    }
}

impl Decoder {
    /// Also decodes GTP-U in datagrams of this UDP port, besides its own port 2152.
    #[must_use]
    pub fn with_gtp_port(mut self, port: u16) -> Self {
        self.gtp_ports.push(port);
        self
    }

    /// Decodes a frame.
    #[inline]
    pub fn decode<'a>(&'a mut self, record: &Record<'a>) -> Decoded<'a> {
        let Self { fragments, gtp_ports, skipped } = self;
        decode(record, fragments, gtp_ports, skipped).unwrap_or_else(|cause| {
            skipped.add(cause);
            Decoded::Skipped(cause)
        })
    }

    /// What was skipped so far.
    pub const fn skipped(&self) -> &Counts {
        &self.skipped
    }

    /// The number of packets that wait for fragments; at the end of a capture, of incomplete
    /// packets.
    pub fn incomplete(&self) -> usize {
        self.fragments.iter().map(Fragments::waiting).sum()
    }
}

/// The TCP header in a whole IP packet of `size` bytes that begins with `bytes`, and the number of
/// bytes of its payload. `None` for any other packet, and for a fragment.
pub(crate) fn tcp_header(bytes: &[u8], size: u32) -> Option<(TcpHeader, u32)> {
    let (mut fragments, mut skipped) = (Fragments::default(), Counts::default());
    let content = Part::new(bytes, size as usize);
    let packet = network::packet(Instant::ZERO, content, &mut fragments, &mut skipped).ok()?;
    let segment = Some(packet.payload).filter(|_| packet.protocol == Protocol::TCP)?;
    let (header, payload) = TcpHeader::parse(segment.bytes).ok()?;
    let header_bytes = segment.bytes.len() - payload.len();
    Some((header, (segment.length - header_bytes) as u32))
}

#[inline(always)]
fn decode<'a>(
    record: &Record<'a>,
    fragments: &'a mut [Fragments; DEPTH],
    gtp_ports: &[u16],
    skipped: &mut Counts,
) -> Result<Decoded<'a>, Cause> {
    let frame = Part::new(record.bytes, record.original_length as usize);
    let mut content = link::content(record.link_type, frame)?;
    let mut tunnel = Tunnel::None;
    for fragments in fragments {
        let packet = network::packet(record.time, content, fragments, skipped)?;
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
            // The tunnel of a mobile's packet stays GTP in any further encapsulation.
            network::IPV4_IN_IP | network::IPV6_IN_IP => (packet.payload, tunnel.max(Tunnel::Ip)),
            _ => return Err(Cause::OtherTransport),
        };
    }
    Err(Cause::TooDeep)
}

#[cfg(test)]
mod tests;
