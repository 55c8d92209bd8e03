//! Joins TCP packets that a proxy created one after the other into a super-segment, which the
//! kernel takes with one write.

use airpath_wire::ip::Protocol;
use airpath_wire::tcp::Flags;

use crate::offload::{Frame, VirtioHeader};
use crate::packet_buffer::SuperSegment;

/// Bytes of a TCP header without options (RFC 9293 §3.1).
const TCP_HEADER: usize = 20;

/// The beginning of the timestamps option, aligned as in RFC 7323 appendix A.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// The largest IP packet.
const LARGEST: usize = 65_535;

/// Parts of a packet that is a TCP segment with data.
struct Parts<'a> {
    network: &'a [u8],
    transport: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(packet: &'a SuperSegment) -> Option<Self> {
        let SuperSegment { frame, bytes, .. } = packet;
        if frame.protocol() != Protocol::TCP || frame.is_fragment() || frame.segments() > 1 {
            return None;
        }
        let (network, rest) = bytes.get(..frame.bytes() as usize)?.split_at_checked(frame.transport()?)?;
        let header_bytes = usize::from(*rest.get(12)? >> 4) * 4;
        let (transport, payload) = rest.split_at_checked(header_bytes)?;
        (transport.len() >= TCP_HEADER).then_some(Self { network, transport, payload })
    }

    fn acknowledgment(&self) -> u32 {
        u32::from_be_bytes([self.transport[8], self.transport[9], self.transport[10], self.transport[11]])
    }

    /// Whether it is an acknowledgement without data, and without options other than timestamps.
    fn is_bare(&self) -> bool {
        self.payload.is_empty()
            && self.flags() == Flags::ACK
            && (self.transport.len() == TCP_HEADER
                || (self.transport.len() == TCP_HEADER + TIMESTAMPS.len() + 8 && self.transport[20..24] == TIMESTAMPS))
    }

    fn sequence(&self) -> u32 {
        u32::from_be_bytes([self.transport[4], self.transport[5], self.transport[6], self.transport[7]])
    }

    fn flags(&self) -> Flags {
        Flags(self.transport[13])
    }

    /// Whether the IP headers differ only in length, identification and checksum.
    fn same_network(&self, other: &Self) -> bool {
        let fixed = |network: &'a [u8]| match network[0] >> 4 {
            4 => [&network[..2], &network[6..10], &network[12..]],
            _ => [&network[..4], &network[6..], &[]],
        };
        self.network.len() == other.network.len() && fixed(self.network) == fixed(other.network)
    }

    /// Whether the TCP headers differ only in sequence number, flags and checksum.
    fn same_transport(&self, other: &Self) -> bool {
        let fixed = |transport: &'a [u8]| [&transport[..4], &transport[8..13], &transport[14..16], &transport[18..]];
        self.transport.len() == other.transport.len() && fixed(self.transport) == fixed(other.transport)
    }
}

/// Bytes of the headers of a packet that continues another.
pub fn header_bytes(packet: &SuperSegment) -> usize {
    Parts::of(packet).map_or(0, |parts| parts.network.len() + parts.transport.len())
}

/// Whether this is an acknowledgement without data, and without options other than timestamps.
pub fn is_acknowledgement(packet: &SuperSegment) -> bool {
    Parts::of(packet).is_some_and(|parts| parts.is_bare())
}

/// Whether an `earlier` acknowledgement need not be sent if a `later` one of the connection leaves
/// with it: the later one acknowledges more. Duplicate acknowledgements are all sent.
pub fn supersedes(later: &SuperSegment, earlier: &SuperSegment) -> bool {
    let (Some(later), Some(earlier)) = (Parts::of(later), Parts::of(earlier)) else { return false };
    let advance = later.acknowledgment().wrapping_sub(earlier.acknowledgment());
    later.is_bare()
        && earlier.is_bare()
        && later.same_network(&earlier)
        && later.transport[..8] == earlier.transport[..8]
        && (1..1 << 31).contains(&advance)
}

/// Whether `next` continues a super-segment of `bytes` bytes that begins with `first` and ends with
/// `last`.
pub fn continues(first: &SuperSegment, last: &SuperSegment, next: &SuperSegment, bytes: usize) -> bool {
    let (Some(first), Some(last), Some(next)) = (Parts::of(first), Parts::of(last), Parts::of(next)) else {
        return false;
    };
    let size = first.payload.len();
    // The kernel sets PSH and FIN on the last segment only.
    let without_push = |flags: Flags| flags.0 & !Flags::PSH.0;
    let fits = match next.payload.len() {
        // The last segment then has the FIN.
        0 => next.flags().contains(Flags::FIN) && !last.payload.is_empty(),
        length => last.payload.len() == size && length <= size,
    };
    fits && size > 0
        && without_push(last.flags()) == Flags::ACK.0
        && without_push(next.flags()) & !Flags::FIN.0 == Flags::ACK.0
        && next.sequence() == last.sequence().wrapping_add(last.payload.len() as u32)
        && first.same_network(&next)
        && first.same_transport(&next)
        && bytes + next.payload.len() <= LARGEST
}

/// Writes the super-segment of `packets` into `buffer`, which it empties first. Each of them but
/// the first must continue those before it.
pub fn join<'a>(packets: impl Iterator<Item = &'a SuperSegment>, buffer: &mut Vec<u8>) -> Option<Frame> {
    buffer.clear();
    let mut virtio = VirtioHeader::default();
    for packet in packets {
        let Parts { network, transport, payload } = Parts::of(packet)?;
        if buffer.is_empty() {
            let is_ipv4 = network[0] >> 4 == 4;
            virtio.gso_type = if is_ipv4 { VirtioHeader::TCP_OVER_IPV4 } else { VirtioHeader::TCP_OVER_IPV6 };
            virtio.segment_size = payload.len() as u16;
            buffer.extend_from_slice(network);
            buffer.extend_from_slice(transport);
        } else {
            buffer[network.len() + 13] |= transport[13];
        }
        buffer.extend_from_slice(payload);
    }
    let length = buffer.len();
    let is_ipv4 = virtio.gso_type == VirtioHeader::TCP_OVER_IPV4;
    if is_ipv4 {
        buffer[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        buffer[10..12].fill(0);
        let checksum = airpath_wire::checksum::Sum::of(&buffer[..usize::from(buffer[0] & 0xf) * 4]).checksum();
        buffer[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        let payload_length = length.checked_sub(IPV6_HEADER)?;
        buffer[4..6].copy_from_slice(&(payload_length as u16).to_be_bytes());
    }
    Frame::inspect(&virtio, buffer).ok()
}

/// Bytes of an IPv6 header without extensions (RFC 8200 §3).
const IPV6_HEADER: usize = 40;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use airpath_core::{Ecn, SegmentInfo};
    use airpath_path::Payload;
    use airpath_tcp::Segment;
    use airpath_wire::segment::{Endpoint, Route, Tunnel};
    use airpath_wire::tcp::{Options, TcpHeader, Timestamps};

    use super::*;
    use crate::offload::{MAX_HEADER, complete_checksum};
    use crate::packet_buffer::PacketBuffer;
    use crate::tcp_packet;

    const V4: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];
    const V6: [IpAddr; 2] = [
        IpAddr::V6(Ipv6Addr::new(0xFC00, 0, 0, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0xFC00, 0, 0, 0, 0, 0, 0, 2)),
    ];

    /// A packet of the stream at `sequence`.
    fn packet(addresses: [IpAddr; 2], sequence: u32, length: u32, flags: Flags, value: u32) -> Vec<u8> {
        let [source, destination] = addresses.map(|address| Endpoint { address, port: 0 });
        let options = Options { timestamps: Some(Timestamps { value, echo: 8 }), ..Options::default() };
        let header =
            TcpHeader { source_port: 80, destination_port: 50_000, sequence, flags, options, ..TcpHeader::default() };
        let segment = Segment { header, length, ecn: Ecn::Ect0, info: SegmentInfo::default() };
        let payload: Vec<u8> = (sequence..sequence + length).map(|at| (at % 251) as u8).collect();
        let (mut bytes, route) = (Vec::new(), Route { source, destination, tunnel: Tunnel::None });
        tcp_packet::write(&route, &segment, Payload::Bytes([&payload, &[]]), &mut bytes).expect("it can be written");
        bytes
    }

    #[test]
    fn what_is_joined_splits_into_the_same_packets() {
        for addresses in [V4, V6] {
            let packets = [(0, 1000), (1000, 1000), (2000, 400)].map(|(sequence, length)| {
                let flags = if length < 1000 { Flags::ACK | Flags::PSH } else { Flags::ACK };
                packet(addresses, sequence, length, flags, 7)
            });
            let mut buffer = PacketBuffer::default();
            let indices = packets.each_ref().map(|bytes| {
                let frame = Frame::inspect(&VirtioHeader::default(), bytes).unwrap();
                buffer.insert_copy(frame, bytes, 1)
            });
            let [first, second, third] = indices.map(|index| buffer.super_segment(index));
            assert!(continues(first, first, second, packets[0].len()));
            assert!(continues(first, second, third, packets[0].len() + 1000));
            assert!(!continues(first, first, third, packets[0].len()), "a gap");
            assert!(!continues(first, first, second, 65_000), "too large");
            let mut joined = Vec::new();
            let frame = join([first, second, third].into_iter(), &mut joined).expect("they continue each other");
            assert_eq!(frame.segments(), 3);
            for (index, expected) in packets.iter().enumerate() {
                let mut header = [0; MAX_HEADER];
                let index = index as u32;
                let written = frame.write_segments(&joined, index..=index, Ecn::Ect0, &mut header);
                let mut bytes = [written.bytes, &joined[written.payload]].concat();
                complete_checksum(&written.header, &mut bytes);
                if addresses == V4 {
                    // Only the identification, and with it the checksum of the header, may differ.
                    bytes[4..6].copy_from_slice(&expected[4..6]);
                    bytes[10..12].copy_from_slice(&expected[10..12]);
                }
                assert_eq!(&bytes, expected, "segment {index}");
            }
        }
    }

    #[test]
    fn a_fin_without_data_joins_the_last_segment() {
        for (addresses, last_length) in [(V4, 1000), (V4, 400), (V6, 400)] {
            let packets = [
                packet(addresses, 0, 1000, Flags::ACK, 7),
                packet(addresses, 1000, last_length, Flags::ACK | Flags::PSH, 7),
                packet(addresses, 1000 + last_length, 0, Flags::ACK | Flags::FIN, 7),
            ];
            let mut buffer = PacketBuffer::default();
            let indices = packets
                .each_ref()
                .map(|bytes| buffer.insert_copy(Frame::inspect(&VirtioHeader::default(), bytes).unwrap(), bytes, 1));
            let [first, second, fin] = indices.map(|index| buffer.super_segment(index));
            assert!(continues(first, second, fin, 2000) && continues(second, second, fin, 1000));
            assert!(!continues(first, first, fin, 1000), "data is between them");
            assert!(!continues(fin, fin, fin, 100));
            for (parts, segments) in [(&[first, second, fin][..], 2), (&[second, fin], 1)] {
                let mut joined = Vec::new();
                let frame = join(parts.iter().copied(), &mut joined).expect("they continue each other");
                assert_eq!(frame.segments(), segments);
                let mut header = [0; MAX_HEADER];
                let last = segments - 1;
                let written = frame.write_segments(&joined, last..=last, Ecn::Ect0, &mut header);
                let mut bytes = [written.bytes, &joined[written.payload]].concat();
                complete_checksum(&written.header, &mut bytes);
                let flags = Flags::ACK | Flags::PSH | Flags::FIN;
                let mut expected = packet(addresses, 1000, last_length, flags, 7);
                if addresses == V4 {
                    expected[4..6].copy_from_slice(&bytes[4..6]);
                    expected[10..12].copy_from_slice(&bytes[10..12]);
                }
                assert_eq!(bytes, expected);
                assert_eq!(written.header.gso_type, 0, "a single segment is none to be divided");
            }
        }
    }

    #[test]
    fn only_an_acknowledgement_of_more_supersedes() {
        let acknowledgement = |acknowledgment, flags, length| {
            let mut bytes = packet(V4, 5, length, flags, 7);
            bytes[28..32].copy_from_slice(&u32::to_be_bytes(acknowledgment));
            bytes
        };
        let mut buffer = PacketBuffer::default();
        let mut insert = |bytes: Vec<u8>| {
            let frame = Frame::inspect(&VirtioHeader::default(), &bytes).unwrap();
            buffer.insert_copy(frame, &bytes, 1)
        };
        let first = insert(acknowledgement(100, Flags::ACK, 0));
        let cases = [
            (acknowledgement(200, Flags::ACK, 0), true),
            (acknowledgement(100, Flags::ACK, 0), false),
            (acknowledgement(99, Flags::ACK, 0), false),
            (acknowledgement(200, Flags::ACK | Flags::FIN, 0), false),
            (acknowledgement(200, Flags::ACK, 10), false),
        ];
        let cases = cases.map(|(bytes, expected)| (insert(bytes), expected));
        for (later, expected) in cases {
            assert_eq!(supersedes(buffer.super_segment(later), buffer.super_segment(first)), expected);
        }
    }

    #[test]
    fn other_packets_do_not_continue() {
        let first = packet(V4, 0, 1000, Flags::ACK, 7);
        let others = [
            packet(V4, 1000, 1001, Flags::ACK, 7),
            packet(V4, 1000, 1000, Flags::ACK, 8),
            packet(V4, 1000, 1000, Flags::ACK | Flags::ECE, 7),
            packet(V4, 1000, 0, Flags::ACK, 7),
            packet([V4[0], V4[0]], 1000, 1000, Flags::ACK, 7),
            packet(V6, 1000, 1000, Flags::ACK, 7),
        ];
        let mut buffer = PacketBuffer::default();
        let mut insert =
            |bytes: &[u8]| buffer.insert_copy(Frame::inspect(&VirtioHeader::default(), bytes).unwrap(), bytes, 1);
        let (first, others) = (insert(&first), others.map(|other| insert(&other)));
        let first = buffer.super_segment(first);
        for (number, other) in others.into_iter().enumerate() {
            assert!(!continues(first, first, buffer.super_segment(other), 1052), "packet {number}");
        }
    }
}
