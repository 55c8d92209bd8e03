//! The IP header and, over IPv6, the extension headers behind it.

use airpath_core::Ecn;
use airpath_wire::checksum::Sum;
use airpath_wire::ip::Protocol;

use super::EntryDropCause;

/// Bytes of an IPv4 header without options (RFC 791 §3.1).
const IPV4_HEADER: usize = 20;
/// Bytes of the IPv6 header (RFC 8200 §3).
const IPV6_HEADER: usize = 40;

/// Most extension headers of a packet: each of those of RFC 8200 §4.1 once, and destination options
/// twice.
const MAX_EXTENSIONS: usize = 8;

/// The network layer of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    pub is_ipv6: bool,
    /// Bytes of the IP packet.
    pub length: u32,
    /// Bytes of the IP header: with options in IPv4, without extension headers in IPv6.
    pub header_bytes: u16,
    /// Offset of the transport header.
    pub transport: u16,
    /// The protocol of the transport header.
    pub protocol: Protocol,
    pub ecn: Ecn,
    pub dscp: u8,
    pub may_fragment: bool,
    pub is_fragment: bool,
    /// Whether it is a fragment other than the first, which has no transport header.
    pub is_later_fragment: bool,
    /// Whether a routing header has segments left: the destination is not the final one (RFC 8200
    /// §4.4).
    pub is_source_routed: bool,
}

impl Network {
    /// Reads the header at the start of `packet`. The last `elsewhere` bytes of the packet are not
    /// there. Every length in it then lies within the packet.
    pub fn parse(packet: &[u8], elsewhere: usize) -> Result<Self, EntryDropCause> {
        match packet.first().map(|first| first >> 4) {
            Some(4) => Self::ipv4(packet, elsewhere),
            Some(6) => Self::ipv6(packet, elsewhere),
            _ => Err(EntryDropCause::NotIp),
        }
    }

    fn ipv4(packet: &[u8], elsewhere: usize) -> Result<Self, EntryDropCause> {
        let fixed: &[u8; IPV4_HEADER] = packet.first_chunk().ok_or(EntryDropCause::Malformed)?;
        let header_bytes = usize::from(fixed[0] & 0x0F) * 4;
        let length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if header_bytes < IPV4_HEADER || length < header_bytes || packet.len() + elsewhere < length {
            return Err(EntryDropCause::Malformed);
        }
        // RFC 1812 §5.2.2: a router discards a packet that fails these checks.
        if !Sum::of(&packet[..header_bytes]).holds() {
            return Err(EntryDropCause::HeaderChecksum);
        }
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        let offset = fragment & 0x1FFF;
        Ok(Self {
            is_ipv6: false,
            length: length as u32,
            header_bytes: header_bytes as u16,
            transport: header_bytes as u16,
            protocol: Protocol(fixed[9]),
            ecn: Ecn::from_bits(fixed[1]),
            dscp: fixed[1] >> 2,
            may_fragment: fragment & 0x4000 == 0,
            is_fragment: fragment & 0x2000 != 0 || offset != 0,
            is_later_fragment: offset != 0,
            is_source_routed: false,
        })
    }

    fn ipv6(packet: &[u8], elsewhere: usize) -> Result<Self, EntryDropCause> {
        let fixed: &[u8; IPV6_HEADER] = packet.first_chunk().ok_or(EntryDropCause::Malformed)?;
        let length = IPV6_HEADER + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        if packet.len() + elsewhere < length {
            return Err(EntryDropCause::Malformed);
        }
        let packet = &packet[..length.min(packet.len())];
        let traffic_class = fixed[0] << 4 | fixed[1] >> 4;
        let mut network = Self {
            is_ipv6: true,
            length: length as u32,
            header_bytes: IPV6_HEADER as u16,
            transport: IPV6_HEADER as u16,
            protocol: Protocol(fixed[6]),
            ecn: Ecn::from_bits(traffic_class),
            dscp: traffic_class >> 2,
            may_fragment: false,
            is_fragment: false,
            is_later_fragment: false,
            is_source_routed: false,
        };
        for _ in 0..MAX_EXTENSIONS {
            if network.is_later_fragment || !network.skip_extension(packet)? {
                return Ok(network);
            }
        }
        Err(EntryDropCause::Malformed)
    }

    /// Skips an extension header at the offset of the transport header; `false` if there is none.
    fn skip_extension(&mut self, packet: &[u8]) -> Result<bool, EntryDropCause> {
        let extension = &packet[usize::from(self.transport)..];
        // The length is in units of eight bytes, the first not counted (RFC 8200 §4.3), but for
        // that of the authentication header, which is in units of four without the first two (RFC
        // 4302 §2.2).
        let unit = |scale: usize, uncounted: usize| {
            extension.get(1).map(|length| (usize::from(*length) + uncounted) * scale).ok_or(EntryDropCause::Malformed)
        };
        let bytes = match self.protocol {
            Protocol(HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS) => unit(8, 1)?,
            Protocol(AUTHENTICATION) => unit(4, 2)?,
            Protocol(FRAGMENT) => {
                let offset = extension.get(2..4).ok_or(EntryDropCause::Malformed)?;
                self.is_fragment = true;
                self.is_later_fragment = u16::from_be_bytes([offset[0], offset[1]]) >> 3 != 0;
                8
            }
            _ => return Ok(false),
        };
        if extension.len() < bytes {
            return Err(EntryDropCause::Malformed);
        }
        // The fourth byte of a routing header is the number of segments left.
        self.is_source_routed |= self.protocol == Protocol(ROUTING) && extension[3] != 0;
        self.protocol = Protocol(extension[0]);
        self.transport = u16::try_from(usize::from(self.transport) + bytes).map_err(|_| EntryDropCause::Malformed)?;
        Ok(true)
    }
}

/// Extension headers, as IANA's protocol registry numbers them.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
