//! Writes the headers of segments from those of their super-segment.

use std::ops::{Range, RangeInclusive};

use airpath_core::Ecn;
use airpath_wire::checksum::Sum;
use airpath_wire::ip::{Protocol, set_ecn};

use super::virtio::{Segmentation, VirtioHeader};
use super::{Frame, MAX_HEADER};

/// TCP flags that belong to the last segment only: FIN and PSH.
const LAST_ONLY: u8 = 0x01 | 0x08;
/// And to the first only: CWR (RFC 3168 §6.1.2).
const FIRST_ONLY: u8 = 0x80;

/// Offset of the checksum in a transport header.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;

/// One packet to be written to the kernel: `header`, then `bytes`, then the range `payload` of the
/// super-segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<'a> {
    /// The offload header.
    pub header: VirtioHeader,
    /// The packet's own headers.
    pub bytes: &'a [u8],
    /// The payload, as a range of the inspected packet.
    pub payload: Range<usize>,
}

impl Frame {
    /// Writes the headers of segments `run` into `buffer`, with `ecn` in the IP header. `packet` is
    /// the inspected packet. A run of more than one is a smaller super-segment, which the kernel
    /// accepts as one.
    ///
    /// The headers of a segment follow from those of the super-segment as in Linux: identification
    /// and sequence number advance, FIN and PSH are on the last segment only, CWR on the first
    /// only, and the kernel completes the checksum. A packet that is no super-segment keeps its
    /// bytes, but for `ecn`.
    ///
    /// # Panics
    /// If the frame has no such segments, or `packet` is shorter than the inspected one.
    pub fn write_segments<'a>(
        &self,
        packet: &[u8],
        run: RangeInclusive<u32>,
        ecn: Ecn,
        buffer: &'a mut [u8; MAX_HEADER],
    ) -> Written<'a> {
        let (first, last) = (*run.start(), *run.end());
        let payload = self.payload(first, last);
        let bytes = &mut buffer[..self.header_bytes as usize];
        bytes.copy_from_slice(&packet[..self.header_bytes as usize]);
        let header = if self.segmentation == Segmentation::None {
            if ecn != self.ecn() {
                set_ecn(bytes, ecn);
            }
            self.plain_header()
        } else {
            set_ecn(bytes, ecn);
            self.write_network(bytes, first, payload.len());
            self.sum_ipv4_header(bytes);
            self.write_transport(bytes, first, last, payload.len())
        };
        Written { header, bytes, payload }
    }

    /// The TCP flags of segments `first..=last`, from those of the super-segment.
    pub(crate) const fn flags_of(&self, mut flags: u8, first: u32, last: u32) -> u8 {
        if last + 1 < self.segments() {
            flags &= !LAST_ONLY;
        }
        if first > 0 {
            flags &= !FIRST_ONLY;
        }
        flags
    }

    /// The offload header of a packet that is no super-segment: a partial checksum stays partial.
    fn plain_header(&self) -> VirtioHeader {
        if !self.virtio.needs_checksum() {
            return VirtioHeader::default();
        }
        VirtioHeader {
            flags: VirtioHeader::NEEDS_CHECKSUM,
            checksum_start: self.virtio.checksum_start,
            checksum_offset: self.virtio.checksum_offset,
            ..VirtioHeader::default()
        }
    }

    /// Writes length and identification of the IP header of a run.
    fn write_network(&self, bytes: &mut [u8], first: u32, payload: usize) {
        let length = bytes.len() + payload;
        if self.is_ipv6() {
            let length = (length - usize::from(self.network.header_bytes)) as u16;
            bytes[4..6].copy_from_slice(&length.to_be_bytes());
        } else {
            bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            let identification = u16::from_be_bytes([bytes[4], bytes[5]]).wrapping_add(first as u16);
            bytes[4..6].copy_from_slice(&identification.to_be_bytes());
        }
    }

    fn sum_ipv4_header(&self, bytes: &mut [u8]) {
        if !self.is_ipv6() {
            bytes[10..12].fill(0);
            let checksum = Sum::of(&bytes[..usize::from(self.network.header_bytes)]).checksum();
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
    }

    /// Writes the transport header of a run and returns its offload header.
    fn write_transport(&self, bytes: &mut [u8], first: u32, last: u32, payload: usize) -> VirtioHeader {
        let header_length = bytes.len() as u16;
        let (network, transport) = bytes.split_at_mut(self.network.transport.into());
        let length = (transport.len() + payload) as u32;
        let (checksum_offset, has_cwr) = if self.protocol() == Protocol::TCP {
            let sequence = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            let sequence = sequence.wrapping_add(first * self.segment_payload);
            transport[4..8].copy_from_slice(&sequence.to_be_bytes());
            transport[13] = self.flags_of(transport[13], first, last);
            (TCP_CHECKSUM, transport[13] & FIRST_ONLY != 0)
        } else {
            transport[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            (UDP_CHECKSUM, false)
        };
        // The kernel continues from the sum of the pseudo header, folded and not inverted.
        let addresses = if self.is_ipv6() { &network[8..40] } else { &network[12..20] };
        let rest = [0, self.protocol().0];
        let partial = !Sum::of(addresses).and(&rest).and(&length.to_be_bytes()).checksum();
        transport[usize::from(checksum_offset)..][..2].copy_from_slice(&partial.to_be_bytes());

        let is_super = last > first;
        VirtioHeader {
            flags: VirtioHeader::NEEDS_CHECKSUM,
            gso_type: match (is_super, self.segmentation) {
                (false, _) | (_, Segmentation::None) => 0,
                (_, Segmentation::TcpOverIpv4) => VirtioHeader::TCP_OVER_IPV4,
                (_, Segmentation::TcpOverIpv6) => VirtioHeader::TCP_OVER_IPV6,
                (_, Segmentation::Udp) => VirtioHeader::UDP,
            } | if is_super && has_cwr { VirtioHeader::HAS_CWR } else { 0 },
            header_length: if is_super { header_length } else { 0 },
            segment_size: if is_super { self.segment_payload as u16 } else { 0 },
            checksum_start: self.network.transport,
            checksum_offset,
        }
    }
}
