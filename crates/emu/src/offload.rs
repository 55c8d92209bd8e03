//! Segmentation and checksum offload: splits super-segments of the kernel into packets for the
//! path, and joins them again.
//!
//! A TUN with `IFF_VNET_HDR`, or a packet socket with `PACKET_VNET_HDR`, has a [`VirtioHeader`]
//! with each packet. The packet may then be a *super-segment*: up to 64 KiB of one TCP or UDP flow
//! under one header, which a network card would split. A bearer carries packets of at most the MTU.
//! So [`Frame::inspect`] finds the segments of a super-segment, the bearer carries them one by one,
//! and [`Frame::write_segments`] writes the headers of those that leave together. No payload byte
//! is read, copied or summed.
//!
//! ```
//! use airpath_emu::offload::{Frame, MAX_HEADER, VirtioHeader};
//!
//! # let mut packet = vec![0; 40 + 3000];
//! # packet[..4].copy_from_slice(&[0x45, 0, (3040_u16 >> 8) as u8, 3040_u16 as u8]);
//! # packet[8..20].copy_from_slice(&[64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
//! # let checksum = airpath_wire::checksum::Sum::of(&packet[..20]).checksum();
//! # packet[10..12].copy_from_slice(&checksum.to_be_bytes());
//! # packet[32] = 0x50;
//! // `packet` is a TCP segment with 3,000 bytes of payload under 40 bytes of headers.
//! let header = VirtioHeader { gso_type: VirtioHeader::TCP_OVER_IPV4, segment_size: 1448, ..VirtioHeader::default() };
//! let frame = Frame::inspect(&header, &packet)?;
//! assert_eq!(frame.segments(), 3);
//! assert_eq!(frame.segment_bytes(2), 40 + 3000 - 2 * 1448);
//!
//! // The last two leave together.
//! let mut buffer = [0; MAX_HEADER];
//! let written = frame.write_segments(&packet, 1..=2, frame.ecn(), &mut buffer);
//! assert_eq!((written.bytes.len(), written.payload), (40, 40 + 1448..40 + 3000));
//! assert_eq!(written.header.segment_size, 1448);
//! # Ok::<(), airpath_emu::offload::EntryDropCause>(())
//! ```

mod forwarding;
mod network;
mod segments;
mod virtio;

use airpath_core::Ecn;
use airpath_wire::ip::Protocol;

pub use forwarding::EntryDropCause;
use network::Network;
pub use segments::Written;
use virtio::Segmentation;
pub use virtio::{VirtioHeader, complete_checksum};

/// Buffer size for the headers of any segment: the longest IPv4 and TCP headers are 120 bytes; the
/// remainder is for IPv6 extension headers.
pub const MAX_HEADER: usize = 256;

/// Bytes of a TCP header without options (RFC 9293 §3.1).
const TCP_HEADER: usize = 20;
/// Bytes of a UDP header (RFC 768).
const UDP_HEADER: usize = 8;

/// The structure of a valid packet from the kernel: its headers and segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    network: Network,
    /// The offload header of the kernel.
    virtio: VirtioHeader,
    segmentation: Segmentation,
    /// Bytes of headers before the payload of each segment.
    header_bytes: u32,
    /// Payload bytes of each segment but the last.
    segment_payload: u32,
    segments: u32,
}

impl Frame {
    /// Inspects an IP packet with the offload header `header`. Bytes after the packet's own end are
    /// ignored.
    ///
    /// # Errors
    /// If it is malformed, or a router would not forward it.
    pub fn inspect(header: &VirtioHeader, packet: &[u8]) -> Result<Self, EntryDropCause> {
        Self::inspect_headers(header, packet, 0)
    }

    /// As [`Self::inspect`], of a TCP packet whose last `elsewhere` bytes, of its payload, are not
    /// in `packet`.
    ///
    /// # Errors
    /// Those of [`Self::inspect`].
    pub fn inspect_headers(header: &VirtioHeader, packet: &[u8], elsewhere: usize) -> Result<Self, EntryDropCause> {
        let network = Network::parse(packet, elsewhere)?;
        let packet = &packet[..packet.len().min(network.length as usize)];
        forwarding::check(&network, packet)?;
        let segmentation = header.segmentation()?;
        if segmentation == Segmentation::None {
            header.check_checksum(&network)?;
            return Ok(Self {
                network,
                virtio: *header,
                segmentation,
                header_bytes: u32::from(network.header_bytes),
                segment_payload: network.length - u32::from(network.header_bytes),
                segments: 1,
            });
        }
        let header_bytes = super_header(segmentation, &network, packet)?;
        let segment_payload = u32::from(header.segment_size);
        if segment_payload == 0 {
            return Err(EntryDropCause::Offload);
        }
        Ok(Self {
            network,
            virtio: *header,
            segmentation,
            header_bytes,
            segment_payload,
            segments: (network.length - header_bytes).div_ceil(segment_payload).max(1),
        })
    }

    /// Number of packets on the path; at least one.
    pub const fn segments(&self) -> u32 {
        self.segments
    }

    /// Bytes of segment `index` as an IP packet, headers included.
    ///
    /// # Panics
    /// If there is no such segment.
    pub fn segment_bytes(&self, index: u32) -> u32 {
        self.run_bytes(index, index)
    }

    /// Bytes of the super-segment as one IP packet.
    pub const fn bytes(&self) -> u32 {
        self.network.length
    }

    /// The ECN field.
    pub const fn ecn(&self) -> Ecn {
        self.network.ecn
    }

    /// The differentiated services code point (RFC 2474), six bits.
    pub const fn dscp(&self) -> u8 {
        self.network.dscp
    }

    /// The transport protocol; over IPv6 the one after the extension headers.
    pub const fn protocol(&self) -> Protocol {
        self.network.protocol
    }

    /// Whether it is IPv6, not IPv4.
    pub const fn is_ipv6(&self) -> bool {
        self.network.is_ipv6
    }

    /// Whether a router may fragment it: IPv4 without the "don't fragment" bit.
    pub const fn may_fragment(&self) -> bool {
        self.network.may_fragment
    }

    /// Where the transport header begins; `None` in a fragment that is not the first, which has
    /// none.
    pub fn transport(&self) -> Option<usize> {
        (!self.network.is_later_fragment).then_some(self.network.transport.into())
    }

    /// Whether it is a fragment of a packet.
    pub const fn is_fragment(&self) -> bool {
        self.network.is_fragment
    }

    /// Payload bytes of a super-segment that come before segment `first`, and how many it and the
    /// others up to `last` have.
    pub(crate) fn payload_of(&self, first: u32, last: u32) -> (u32, u32) {
        (first * self.segment_payload, self.payload(first, last).len() as u32)
    }

    /// Bytes of segments `first..=last` as one IP packet.
    fn run_bytes(&self, first: u32, last: u32) -> u32 {
        let payload = self.payload(first, last);
        self.header_bytes + payload.len() as u32
    }

    /// Where the payload of segments `first..=last` lies in the packet.
    fn payload(&self, first: u32, last: u32) -> std::ops::Range<usize> {
        assert!(first <= last && last < self.segments, "segments {first} to {last} of {}", self.segments);
        // The products stay below the packet's length plus one segment: no more than 2¹⁷.
        let start = self.header_bytes + first * self.segment_payload;
        let end = (self.header_bytes + (last + 1) * self.segment_payload).min(self.network.length);
        start as usize..end as usize
    }
}

/// Bytes of IP and transport header of a super-segment.
fn super_header(segmentation: Segmentation, network: &Network, packet: &[u8]) -> Result<u32, EntryDropCause> {
    let (version_fits, protocol) = match segmentation {
        Segmentation::None => (false, network.protocol),
        Segmentation::TcpOverIpv4 => (!network.is_ipv6, Protocol::TCP),
        Segmentation::TcpOverIpv6 => (network.is_ipv6, Protocol::TCP),
        Segmentation::Udp => (true, Protocol::UDP),
    };
    // With segments left in a routing header, the pseudo header has the final destination, not the
    // address in the IP header (RFC 8200 §8.1).
    if !version_fits || network.protocol != protocol || network.is_fragment || network.is_source_routed {
        return Err(EntryDropCause::Offload);
    }
    let transport = &packet[usize::from(network.transport)..];
    let transport_bytes = match protocol {
        Protocol::TCP => {
            // The upper half of byte 12 is the header's length in words of four bytes (RFC 9293
            // §3.1).
            let words = transport.get(12).ok_or(EntryDropCause::Malformed)? >> 4;
            let bytes = usize::from(words) * 4;
            (bytes >= TCP_HEADER).then_some(bytes).ok_or(EntryDropCause::Malformed)?
        }
        _ => {
            let length = transport.get(4..6).ok_or(EntryDropCause::Malformed)?;
            if usize::from(u16::from_be_bytes([length[0], length[1]])) != transport.len() {
                return Err(EntryDropCause::Malformed);
            }
            UDP_HEADER
        }
    };
    let header_bytes = usize::from(network.transport) + transport_bytes;
    if transport.len() < transport_bytes || header_bytes > MAX_HEADER {
        return Err(EntryDropCause::Malformed);
    }
    Ok(header_bytes as u32)
}

#[cfg(test)]
mod tests;
