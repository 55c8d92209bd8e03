//! The headers that a profile compresses: their bytes, the fields in them, and which of them follow
//! from the packet's length.

mod tcp;

use airpath_wire::checksum::Sum;

use crate::crc::Crc;
use crate::profile::Profile;

/// Bytes of IPv4 without options (RFC 791 §3.1).
const IPV4: usize = 20;
/// Bytes of IPv6 (RFC 8200 §3).
const IPV6: usize = 40;
/// Bytes of UDP (RFC 768).
const UDP: usize = 8;
/// Bytes of RTP without contributing sources (RFC 3550 §5.1).
const RTP: usize = 12;
/// Bytes of TCP without options (RFC 9293 §3.1), and the most bytes of its options.
const TCP: usize = 20;
const TCP_OPTIONS: usize = 40;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_TCP: u8 = 6;

/// Next headers that a chain of IP headers would have to describe, and no profile here does:
/// hop-by-hop options, IPv4, IPv6, routing, fragment, AH, minimal encapsulation, destination
/// options, GRE.
const CHAINED: [u8; 9] = [0, 4, 41, 43, 44, 47, 51, 55, 60];

/// The headers of one packet, as they are sent: IP, and TCP, or UDP and RTP, if the profile
/// compresses them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    bytes: [u8; Self::MOST],
    /// Bytes of the options of TCP.
    options: u8,
    pub(crate) profile: Profile,
}

impl PartialEq for Header {
    fn eq(&self, other: &Self) -> bool {
        self.profile == other.profile && self.as_bytes() == other.as_bytes()
    }
}

impl Header {
    /// Bytes of the longest.
    pub(crate) const MOST: usize = IPV6 + TCP + TCP_OPTIONS;

    /// The headers of a packet of `length` bytes that begins with `packet`; `None` if the profile
    /// cannot restore each of their bits.
    pub(crate) fn parse(profile: Profile, packet: &[u8], length: usize) -> Option<Self> {
        let ip = match packet.first()? >> 4 {
            4 => IPV4,
            6 => IPV6,
            _ => return None,
        };
        let options = if profile == Profile::Tcp { tcp::options_length(packet.get(ip..)?)? } else { 0 };
        let mut header = Self { bytes: [0; Self::MOST], options, profile };
        let wire = packet.get(..ip + profile.transport_length() + usize::from(options))?;
        header.bytes[..wire.len()].copy_from_slice(wire);
        let matches = match profile {
            Profile::Uncompressed => false,
            Profile::Rtp => header.ends_chain() && header.is_rtp(),
            Profile::Udp | Profile::Ip | Profile::Tcp => header.ends_chain(),
        };
        if !matches || length > usize::from(u16::MAX) || length < wire.len() {
            return None;
        }
        header.infer(length);
        (header.as_bytes() == wire).then_some(header)
    }

    /// Whether the profile describes what follows the IP header.
    pub(crate) fn ends_chain(&self) -> bool {
        match self.profile {
            Profile::Uncompressed => false,
            Profile::Ip => !CHAINED.contains(&self.protocol()),
            Profile::Udp | Profile::Rtp => self.protocol() == PROTOCOL_UDP,
            Profile::Tcp => self.protocol() == PROTOCOL_TCP,
        }
    }

    /// A header with these static fields: zero elsewhere.
    pub(crate) const fn empty(profile: Profile, version: u8) -> Self {
        let mut bytes = [0; Self::MOST];
        bytes[0] = if version == 4 { 0x45 } else { 0x60 };
        Self { bytes, options: 0, profile }
    }

    /// Its bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length()]
    }

    pub(crate) const fn is_v4(&self) -> bool {
        self.bytes[0] >> 4 == 4
    }

    const fn ip_length(&self) -> usize {
        if self.is_v4() { IPV4 } else { IPV6 }
    }

    /// Its bytes.
    pub(crate) const fn length(&self) -> usize {
        self.ip_length() + self.profile.transport_length() + self.options as usize
    }

    fn udp(&self) -> &[u8] {
        &self.bytes[self.ip_length()..]
    }

    fn rtp(&self) -> &[u8] {
        &self.udp()[UDP..]
    }

    fn at(&mut self, offset: usize, bytes: &[u8]) {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn rtp_offset(&self) -> usize {
        self.ip_length() + UDP
    }

    /// Sets what follows from the length of the packet: lengths and the IPv4 checksum. Bits that
    /// no profile sends become those that it assumes.
    pub(crate) fn infer(&mut self, length: usize) {
        let ip = self.ip_length();
        if self.is_v4() {
            self.bytes[0] = 0x45;
            // Neither the reserved bit, nor a fragment.
            self.bytes[6] &= 0x40;
            self.bytes[7] = 0;
            self.at(2, &(length as u16).to_be_bytes());
            self.at(10, &[0; 2]);
            let checksum = Sum::of(&self.bytes[..IPV4]).checksum();
            self.at(10, &checksum.to_be_bytes());
        } else {
            self.at(4, &((length - IPV6) as u16).to_be_bytes());
        }
        match self.profile {
            Profile::Udp | Profile::Rtp => self.at(ip + 4, &((length - ip) as u16).to_be_bytes()),
            Profile::Tcp => self.infer_tcp(),
            Profile::Uncompressed | Profile::Ip => {}
        }
    }

    /// Whether what follows UDP looks like RTP: version 2, no contributing sources, an even port
    /// (RFC 3550 §11) of a program, and no RTCP (RFC 5761 §4).
    fn is_rtp(&self) -> bool {
        let port = u16::from_be_bytes([self.udp()[2], self.udp()[3]]);
        let (first, second) = (self.rtp()[0], self.rtp()[1]);
        port >= 1024 && port & 1 == 0 && first & 0xcf == 0x80 && !(64..=95).contains(&(second & 0x7f))
    }

    /// Whether both belong to one context: all fields of the static chain are equal.
    pub(crate) fn is_same_flow(&self, other: &Self) -> bool {
        let is_equal = |from: usize, to: usize| self.bytes[from..to] == other.bytes[from..to];
        let ip = if self.is_v4() {
            is_equal(9, 10) && is_equal(12, 20)
        } else {
            (self.bytes[1] ^ other.bytes[1]) & 0x0f == 0 && is_equal(2, 4) && is_equal(6, 7) && is_equal(8, 40)
        };
        let (ports, ssrc) = (self.ip_length(), self.ip_length() + UDP + 8);
        self.profile == other.profile
            && self.bytes[0] >> 4 == other.bytes[0] >> 4
            && ip
            && match self.profile {
                Profile::Uncompressed | Profile::Ip => true,
                Profile::Udp | Profile::Tcp => is_equal(ports, ports + 4),
                Profile::Rtp => is_equal(ports, ports + 4) && is_equal(ssrc, ssrc + 4),
            }
    }

    /// Whether both belong to flows between the same hosts, in the same direction.
    pub(crate) fn is_same_path(&self, other: &Self) -> bool {
        self.is_v4() == other.is_v4() && self.protocol() == other.protocol() && self.addresses() == other.addresses()
    }

    /// The CRC of a compressed header. With TCP it covers the header as it is (RFC 6846 §8.2),
    /// otherwise first the fields that seldom change, then the others (RFC 3095 §5.9.2).
    pub(crate) fn crc(&self, crc: Crc) -> u8 {
        if self.profile == Profile::Tcp {
            return crc.of(self.as_bytes());
        }
        let bytes = &self.bytes;
        let mut value = crc.initial();
        let mut update = |from: usize, to: usize| value = crc.update(value, &bytes[from..to]);
        let ip = self.ip_length();
        if self.is_v4() {
            [(0, 2), (6, 10), (12, 20)].into_iter().for_each(|(from, to)| update(from, to));
        } else {
            [(0, 4), (6, 40)].into_iter().for_each(|(from, to)| update(from, to));
        }
        let (udp, rtp) = (self.profile != Profile::Ip, self.profile == Profile::Rtp);
        if udp {
            update(ip, ip + 4);
        }
        if rtp {
            update(ip + UDP, ip + UDP + 1);
            update(ip + UDP + 8, ip + UDP + RTP);
        }
        if self.is_v4() {
            update(2, 6);
            update(10, 12);
        } else {
            update(4, 6);
        }
        if udp {
            update(ip + 4, ip + 8);
        }
        if rtp {
            update(ip + UDP + 1, ip + UDP + 8);
        }
        value
    }

    /// Protocol or next header.
    pub(crate) const fn protocol(&self) -> u8 {
        if self.is_v4() { self.bytes[9] } else { self.bytes[6] }
    }

    pub(crate) fn set_protocol(&mut self, protocol: u8) {
        self.bytes[if self.is_v4() { 9 } else { 6 }] = protocol;
    }

    /// Type of service or traffic class: DSCP, and two bits of ECN.
    pub(crate) const fn tos(&self) -> u8 {
        if self.is_v4() { self.bytes[1] } else { self.bytes[0] << 4 | self.bytes[1] >> 4 }
    }

    pub(crate) fn set_tos(&mut self, tos: u8) {
        if self.is_v4() {
            self.bytes[1] = tos;
        } else {
            self.bytes[0] = 0x60 | tos >> 4;
            self.bytes[1] = tos << 4 | self.bytes[1] & 0x0f;
        }
    }

    /// Time to live or hop limit.
    pub(crate) const fn ttl(&self) -> u8 {
        if self.is_v4() { self.bytes[8] } else { self.bytes[7] }
    }

    pub(crate) fn set_ttl(&mut self, ttl: u8) {
        self.bytes[if self.is_v4() { 8 } else { 7 }] = ttl;
    }

    /// Don't fragment, of IPv4.
    pub(crate) const fn dont_fragment(&self) -> bool {
        self.is_v4() && self.bytes[6] & 0x40 != 0
    }

    pub(crate) fn set_dont_fragment(&mut self, is_set: bool) {
        if self.is_v4() {
            self.bytes[6] = if is_set { 0x40 } else { 0 };
        }
    }

    /// The IP-ID of IPv4.
    pub(crate) const fn id(&self) -> u16 {
        u16::from_be_bytes([self.bytes[4], self.bytes[5]])
    }

    pub(crate) fn set_id(&mut self, id: u16) {
        self.at(4, &id.to_be_bytes());
    }

    /// The flow label of IPv6.
    pub(crate) const fn flow_label(&self) -> [u8; 3] {
        [self.bytes[1] & 0x0f, self.bytes[2], self.bytes[3]]
    }

    pub(crate) fn set_flow_label(&mut self, label: &[u8]) {
        self.bytes[1] = self.bytes[1] & 0xf0 | label[0] & 0x0f;
        self.at(2, &label[1..3]);
    }

    /// Source and destination.
    pub(crate) fn addresses(&self) -> &[u8] {
        if self.is_v4() { &self.bytes[12..20] } else { &self.bytes[8..40] }
    }

    pub(crate) fn set_addresses(&mut self, addresses: &[u8]) {
        self.at(if self.is_v4() { 12 } else { 8 }, addresses);
    }

    pub(crate) fn ports(&self) -> &[u8] {
        &self.udp()[..4]
    }

    pub(crate) fn set_ports(&mut self, ports: &[u8]) {
        self.at(self.ip_length(), ports);
    }

    /// The checksum of UDP; 0 without UDP.
    pub(crate) fn udp_checksum(&self) -> u16 {
        if self.profile == Profile::Ip { 0 } else { u16::from_be_bytes([self.udp()[6], self.udp()[7]]) }
    }

    pub(crate) fn set_udp_checksum(&mut self, checksum: u16) {
        self.at(self.ip_length() + 6, &checksum.to_be_bytes());
    }

    pub(crate) fn ssrc(&self) -> &[u8] {
        &self.rtp()[8..12]
    }

    pub(crate) fn set_ssrc(&mut self, ssrc: &[u8]) {
        self.at(self.rtp_offset() + 8, ssrc);
    }

    /// The first octet of RTP: version, padding, extension, number of contributing sources.
    pub(crate) fn rtp_flags(&self) -> u8 {
        self.rtp()[0]
    }

    pub(crate) fn set_rtp_flags(&mut self, flags: u8) {
        let offset = self.rtp_offset();
        self.bytes[offset] = flags;
    }

    /// The marker of RTP.
    pub(crate) fn marker(&self) -> bool {
        self.rtp()[1] & 0x80 != 0
    }

    pub(crate) fn set_marker(&mut self, is_set: bool) {
        let (offset, payload_type) = (self.rtp_offset() + 1, self.payload_type());
        self.bytes[offset] = u8::from(is_set) << 7 | payload_type;
    }

    /// The payload type of RTP.
    pub(crate) fn payload_type(&self) -> u8 {
        self.rtp()[1] & 0x7f
    }

    pub(crate) fn set_payload_type(&mut self, payload_type: u8) {
        let (offset, marker) = (self.rtp_offset() + 1, self.marker());
        self.bytes[offset] = u8::from(marker) << 7 | payload_type & 0x7f;
    }

    /// The sequence number of RTP.
    pub(crate) fn sequence(&self) -> u16 {
        u16::from_be_bytes([self.rtp()[2], self.rtp()[3]])
    }

    pub(crate) fn set_sequence(&mut self, sequence: u16) {
        self.at(self.rtp_offset() + 2, &sequence.to_be_bytes());
    }

    /// The timestamp of RTP.
    pub(crate) fn timestamp(&self) -> u32 {
        let rtp = self.rtp();
        u32::from_be_bytes([rtp[4], rtp[5], rtp[6], rtp[7]])
    }

    pub(crate) fn set_timestamp(&mut self, timestamp: u32) {
        self.at(self.rtp_offset() + 4, &timestamp.to_be_bytes());
    }
}
