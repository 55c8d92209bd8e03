//! The offload header of each packet (Virtual I/O Device version 1.2 §5.1.6), and completion of
//! partial checksums.

use airpath_wire::checksum::Sum;

use super::EntryDropCause;
use super::network::Network;

/// `struct virtio_net_hdr`: work that the sender left to the device. In native byte order, the
/// kernel's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioHeader {
    /// [`Self::NEEDS_CHECKSUM`] and bits that a link ignores.
    pub flags: u8,
    /// Type of the segments: [`Self::TCP_OVER_IPV4`] and the others, optionally with
    /// [`Self::HAS_CWR`]; 0 if not segmented.
    pub gso_type: u8,
    /// Bytes of all headers. A hint only: Linux sets it to the length of the first buffer.
    pub header_length: u16,
    /// Payload bytes of each segment.
    pub segment_size: u16,
    /// Offset at which the checksum starts.
    pub checksum_start: u16,
    /// Offset of the checksum field, from that start.
    pub checksum_offset: u16,
}

/// The type of a super-segment's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segmentation {
    /// A single packet.
    None,
    TcpOverIpv4,
    TcpOverIpv6,
    /// Datagrams of one flow, over either version.
    Udp,
}

impl VirtioHeader {
    /// Bytes of the header.
    pub const LENGTH: usize = 10;

    /// Flag: the checksum's field holds the sum of the pseudo header only.
    pub const NEEDS_CHECKSUM: u8 = 1;
    /// Flag: the receiving device has verified the checksum (`VIRTIO_NET_HDR_F_DATA_VALID`).
    pub const CHECKSUM_VERIFIED: u8 = 2;
    /// Type: TCP segments over IPv4.
    pub const TCP_OVER_IPV4: u8 = 1;
    /// Type: TCP segments over IPv6.
    pub const TCP_OVER_IPV6: u8 = 4;
    /// Type: UDP datagrams, over either version (`VIRTIO_NET_HDR_GSO_UDP_L4`).
    pub const UDP: u8 = 5;
    /// With a type of TCP: the CWR flag is set, and belongs to the first segment only.
    pub const HAS_CWR: u8 = 0x80;

    /// Parses the header.
    #[must_use]
    pub const fn from_bytes(bytes: &[u8; Self::LENGTH]) -> Self {
        let [flags, gso_type, h0, h1, s0, s1, c0, c1, o0, o1] = *bytes;
        Self {
            flags,
            gso_type,
            header_length: u16::from_ne_bytes([h0, h1]),
            segment_size: u16::from_ne_bytes([s0, s1]),
            checksum_start: u16::from_ne_bytes([c0, c1]),
            checksum_offset: u16::from_ne_bytes([o0, o1]),
        }
    }

    /// Serialises the header.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let [h0, h1] = self.header_length.to_ne_bytes();
        let [s0, s1] = self.segment_size.to_ne_bytes();
        let [c0, c1] = self.checksum_start.to_ne_bytes();
        let [o0, o1] = self.checksum_offset.to_ne_bytes();
        [self.flags, self.gso_type, h0, h1, s0, s1, c0, c1, o0, o1]
    }

    /// Whether the next sender must complete the checksum.
    #[must_use]
    pub const fn needs_checksum(&self) -> bool {
        self.flags & Self::NEEDS_CHECKSUM != 0
    }

    /// The header that fits once `bytes` are taken from the packet's start, as the Ethernet header
    /// is from what a packet socket gives.
    ///
    /// # Errors
    /// [`EntryDropCause::Offload`] where the checksum would begin within these.
    pub const fn without_prefix(mut self, bytes: u16) -> Result<Self, EntryDropCause> {
        if self.needs_checksum() {
            let Some(start) = self.checksum_start.checked_sub(bytes) else { return Err(EntryDropCause::Offload) };
            self.checksum_start = start;
        }
        // Only a hint, and recomputed when the packet is written.
        self.header_length = self.header_length.saturating_sub(bytes);
        Ok(self)
    }

    /// The header that fits once `bytes` are put before a packet that [`Frame::write_segments`]
    /// wrote.
    ///
    /// [`Frame::write_segments`]: super::Frame::write_segments
    #[must_use]
    pub const fn with_prefix(mut self, bytes: u16) -> Self {
        if self.needs_checksum() {
            self.checksum_start = self.checksum_start.saturating_add(bytes);
        }
        if self.gso_type != 0 {
            self.header_length = self.header_length.saturating_add(bytes);
        }
        self
    }

    pub(super) const fn segmentation(&self) -> Result<Segmentation, EntryDropCause> {
        match self.gso_type & !Self::HAS_CWR {
            0 => Ok(Segmentation::None),
            Self::TCP_OVER_IPV4 => Ok(Segmentation::TcpOverIpv4),
            Self::TCP_OVER_IPV6 => Ok(Segmentation::TcpOverIpv6),
            Self::UDP => Ok(Segmentation::Udp),
            _ => Err(EntryDropCause::Offload),
        }
    }

    /// Whether an open checksum lies behind the IP header and inside the packet.
    pub(super) fn check_checksum(&self, network: &Network) -> Result<(), EntryDropCause> {
        let start = u32::from(self.checksum_start);
        let end = start + u32::from(self.checksum_offset) + 2;
        let fits = start >= u32::from(network.header_bytes) && end <= network.length;
        if self.needs_checksum() && !fits { Err(EntryDropCause::Offload) } else { Ok(()) }
    }
}

/// Completes the checksum of `packet` if `header` leaves it partial, for captures and for ports
/// without checksum offload. `packet` ends where the IP packet ends and is no super-segment;
/// [`Frame::inspect`] has accepted it, or [`Frame::write_segments`] has written it. A checksum
/// outside of the packet is not written.
///
/// [`Frame::inspect`]: super::Frame::inspect
/// [`Frame::write_segments`]: super::Frame::write_segments
pub fn complete_checksum(header: &VirtioHeader, packet: &mut [u8]) {
    if !header.needs_checksum() {
        return;
    }
    let field = usize::from(header.checksum_offset);
    let Some(covered) = packet.get_mut(header.checksum_start.into()..) else { return };
    if covered.len() < field + 2 {
        return;
    }
    // In UDP zero means "no checksum" (RFC 768); in one's complement, all ones are zero as well.
    let checksum = match Sum::of(covered).checksum() {
        0 => 0xFFFF,
        checksum => checksum,
    };
    covered[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
}
