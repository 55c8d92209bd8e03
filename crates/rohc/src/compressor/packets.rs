//! The packets that a compressor sends: IR, IR-DYN, and the smallest compressed one that fits.

use super::context::Context;
use crate::crc::Crc;
use crate::framework::{Config, IR, IR_DYN};
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::lsb::{SDVL_BITS, Shift, Width, low, push_sdvl, sdvl_bits};
use crate::profile::Profile;

/// The dynamic part is in the IR packet (RFC 3095 §5.7.7.1).
const WITH_DYNAMIC: u8 = 0x01;
/// An extension follows the base header.
const EXTENDED: u8 = 0x80;

/// What the packet types of RTP carry of a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtpFields {
    /// The offset of a sequential IP-ID from the sequence number.
    pub(super) offset: u32,
    pub(super) has_id: bool,
    pub(super) is_id_constant: bool,
    /// The timestamp follows from the sequence number.
    pub(super) is_timestamp_inferred: bool,
    /// The scaled timestamp.
    pub(super) scaled: u32,
    pub(super) marker: bool,
}

impl Context {
    /// An IR packet (RFC 3095 §5.7.7.1).
    pub(super) fn push_ir(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) {
        self.push_context(config, cid, IR | WITH_DYNAMIC, header, out);
    }

    /// An IR-DYN packet (RFC 3095 §5.7.7.2).
    pub(super) fn push_ir_dyn(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) {
        self.push_context(config, cid, IR_DYN, header, out);
    }

    fn push_context(&self, config: &Config, cid: u16, first: u8, header: &Header, out: &mut Vec<u8>) {
        let start = out.len();
        config.begin(out, cid, first);
        out.push(header.profile.octet());
        let crc = out.len();
        out.push(0);
        if first != IR_DYN {
            push_static(header, out);
        }
        self.push_dynamic(header, out);
        out[crc] = Crc::Eight.of(&out[start..]);
    }

    /// The dynamic chain (RFC 3095 §5.7.7.3 to §5.7.7.6; RFC 3843 §3.3).
    fn push_dynamic(&self, header: &Header, out: &mut Vec<u8>) {
        out.extend_from_slice(&[header.tos(), header.ttl()]);
        if header.is_v4() {
            out.extend_from_slice(&header.id().to_be_bytes());
            out.push(u8::from(header.dont_fragment()) << 7 | self.id.behavior.flags());
        }
        // No extension headers.
        out.push(0);
        if header.profile != Profile::Ip {
            out.extend_from_slice(&header.udp_checksum().to_be_bytes());
        }
        if header.profile != Profile::Rtp {
            out.extend_from_slice(&(self.sequence as u16).to_be_bytes());
            return;
        }
        // Version, padding, whether the last fields follow, and no contributing sources.
        let flags = header.rtp_flags();
        out.push(flags & 0xe0 | 0x10);
        out.push(u8::from(header.marker()) << 7 | header.payload_type());
        out.extend_from_slice(&header.sequence().to_be_bytes());
        out.extend_from_slice(&header.timestamp().to_be_bytes());
        out.push(0);
        out.push(flags & 0x10 | self.refresh.mode.number() << 2 | u8::from(self.stride.value > 0));
        if self.stride.value > 0 {
            push_sdvl(out, self.stride.value, sdvl_bits(self.stride.value).expect("a stride has at most 29 bits"));
        }
    }

    /// Appends the smallest compressed header that every reference of the decompressor restores;
    /// `false` if none does.
    pub(super) fn push_compressed(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let is_pushed = match header.profile {
            Profile::Rtp => self.push_rtp(config, cid, header, out),
            _ => self.push_counted(config, cid, header, out),
        };
        if !is_pushed {
            out.truncate(start);
            return false;
        }
        self.push_tail(header, out);
        true
    }

    /// What follows the base header and its extension: fields that are sent as they are.
    pub(super) fn push_tail(&self, header: &Header, out: &mut Vec<u8>) {
        if header.is_v4() && self.id.behavior == IdBehavior::Random {
            out.extend_from_slice(&header.id().to_be_bytes());
        }
        if header.udp_checksum() != 0 {
            out.extend_from_slice(&header.udp_checksum().to_be_bytes());
        }
    }

    pub(super) fn fits_sequence(&self, bits: u32, shift: Shift) -> bool {
        self.sequences.fits(self.sequence & 0xffff, bits, shift, Width::Sixteen)
    }

    /// Without a stride, a timestamp that changes needs an IR-DYN.
    pub(super) fn fits_time(&self, scaled: u32, bits: u32) -> bool {
        self.stride.value > 0 && self.scaled.fits(scaled, bits, Shift::Timestamp, Width::ThirtyTwo)
    }

    pub(super) fn fits_id(&self, offset: u32, bits: u32) -> bool {
        self.offsets.fits(offset, bits, Shift::IpId, Width::Sixteen)
    }

    /// Packets of profiles whose sequence numbers the compressor counts (RFC 3095 §5.11).
    fn push_counted(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) -> bool {
        let offset = self.id_offset(header);
        let is_constant = !self.has_sequential_id(header) || self.offsets.is_constant(offset);
        let sequence = |bits| low(self.sequence, bits) as u8;
        let fits = |bits| self.fits_sequence(bits, Shift::Counted);
        let crc3 = header.crc(Crc::Three);
        if is_constant && fits(4) {
            config.begin(out, cid, sequence(4) << 3 | crc3);
        } else if !is_constant && fits(5) && self.fits_id(offset, 6) {
            config.begin(out, cid, 0x80 | low(offset, 6) as u8);
            out.push(sequence(5) << 3 | crc3);
        } else {
            return self.push_counted_2(config, cid, header, out);
        }
        true
    }

    /// UOR-2 of these profiles, if need be with extension 0 or 1.
    pub(super) fn push_counted_2(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) -> bool {
        let offset = self.id_offset(header);
        let is_constant = !self.has_sequential_id(header) || self.offsets.is_constant(offset);
        let sequence = |bits| low(self.sequence, bits) as u8;
        let fits = |bits| self.fits_sequence(bits, Shift::Counted);
        let crc7 = header.crc(Crc::Seven);
        if is_constant && fits(5) {
            config.begin(out, cid, 0xc0 | sequence(5));
            out.push(crc7);
        } else if fits(8) && self.fits_id(offset, 3) {
            config.begin(out, cid, 0xc0 | low(self.sequence >> 3, 5) as u8);
            out.extend_from_slice(&[EXTENDED | crc7, sequence(3) << 3 | low(offset, 3) as u8]);
        } else if fits(8) && self.fits_id(offset, 11) {
            config.begin(out, cid, 0xc0 | low(self.sequence >> 3, 5) as u8);
            let high = 0x40 | sequence(3) << 3 | low(offset >> 8, 3) as u8;
            out.extend_from_slice(&[EXTENDED | crc7, high, offset as u8]);
        } else {
            return false;
        }
        true
    }

    /// The fields of `header` that select its packet type.
    pub(super) fn rtp_fields(&self, header: &Header) -> RtpFields {
        let (offset, has_id) = (self.id_offset(header), self.has_sequential_id(header));
        RtpFields {
            offset,
            has_id,
            is_id_constant: !has_id || self.offsets.is_constant(offset),
            is_timestamp_inferred: self.excess.is_constant(self.excess(header)),
            scaled: self.scaled_timestamp(header),
            marker: header.marker(),
        }
    }

    /// Packets of RTP (RFC 3095 §5.7.1 to §5.7.5).
    fn push_rtp(&self, config: &Config, cid: u16, header: &Header, out: &mut Vec<u8>) -> bool {
        let fields = &self.rtp_fields(header);
        let RtpFields { offset, has_id, is_id_constant, is_timestamp_inferred, scaled, marker } = *fields;
        let sequence = |bits| low(self.sequence, bits) as u8;
        let fits = |bits| self.fits_sequence(bits, Shift::RtpSequence);
        let fits_time = |bits| self.fits_time(scaled, bits);
        let fits_id = |bits| self.fits_id(offset, bits);
        let crc3 = header.crc(Crc::Three);
        let flagged = u8::from(marker) << 7;

        if fits(4) {
            if is_id_constant && is_timestamp_inferred && !marker {
                config.begin(out, cid, sequence(4) << 3 | crc3);
                return true;
            }
            if is_id_constant && fits_time(if has_id { 5 } else { 6 }) {
                // UO-1-TS with a sequential IP-ID, UO-1 without.
                let discriminator = if has_id { 0xa0 | low(scaled, 5) } else { 0x80 | low(scaled, 6) };
                config.begin(out, cid, discriminator as u8);
                out.push(flagged | sequence(4) << 3 | crc3);
                return true;
            }
            if has_id && is_timestamp_inferred && !marker && fits_id(5) {
                // UO-1-ID.
                config.begin(out, cid, 0x80 | low(offset, 5) as u8);
                out.push(sequence(4) << 3 | crc3);
                return true;
            }
        }
        self.push_rtp_2(config, cid, header, fields, out)
    }

    /// UOR-2, UOR-2-ID or UOR-2-TS, if need be with an extension.
    pub(super) fn push_rtp_2(
        &self,
        config: &Config,
        cid: u16,
        header: &Header,
        fields: &RtpFields,
        out: &mut Vec<u8>,
    ) -> bool {
        let RtpFields { offset, has_id, is_id_constant, is_timestamp_inferred, scaled, marker } = *fields;
        let sequence = |bits| low(self.sequence, bits) as u8;
        let fits = |bits| self.fits_sequence(bits, Shift::RtpSequence);
        let fits_time = |bits| self.fits_time(scaled, bits);
        let fits_id = |bits| self.fits_id(offset, bits);
        let crc7 = header.crc(Crc::Seven);
        let middle = |sequence: u32| u8::from(marker) << 6 | low(sequence, 6) as u8;
        let sn = self.sequence;
        if !has_id {
            // UOR-2, if need be with extension 3.
            if fits(6) && fits_time(6) {
                config.begin(out, cid, 0xc0 | low(scaled >> 1, 5) as u8);
                out.extend_from_slice(&[(low(scaled, 1) as u8) << 7 | middle(sn), crc7]);
                return true;
            }
            return self.push_extended(config, cid, header, 6, out);
        }
        if is_id_constant {
            // UOR-2-TS, if need be with extension 0 or 3.
            if fits(6) && fits_time(5) {
                config.begin(out, cid, 0xc0 | low(scaled, 5) as u8);
                out.extend_from_slice(&[0x80 | middle(sn), crc7]);
                return true;
            }
            if fits(9) && fits_time(8) {
                config.begin(out, cid, 0xc0 | low(scaled >> 3, 5) as u8);
                out.extend_from_slice(&[
                    0x80 | middle(sn >> 3),
                    EXTENDED | crc7,
                    sequence(3) << 3 | low(scaled, 3) as u8,
                ]);
                return true;
            }
            return self.push_extended(config, cid, header, 5, out);
        }
        if is_timestamp_inferred && fits(6) && fits_id(5) {
            // UOR-2-ID.
            config.begin(out, cid, 0xc0 | low(offset, 5) as u8);
            out.extend_from_slice(&[middle(sn), crc7]);
            return true;
        }
        if fits(9) && fits_time(8) && fits_id(8) {
            // UOR-2-TS with extension 1: eight bits of both.
            config.begin(out, cid, 0xc0 | low(scaled >> 3, 5) as u8);
            let extension = 0x40 | sequence(3) << 3 | low(scaled, 3) as u8;
            out.extend_from_slice(&[0x80 | middle(sn >> 3), EXTENDED | crc7, extension, offset as u8]);
            return true;
        }
        if fits(9) && fits_time(8) && fits_id(16) {
            // UOR-2-ID with extension 2: eight bits of the timestamp, sixteen of the offset.
            config.begin(out, cid, 0xc0 | low(offset >> 11, 5) as u8);
            let extension = 0x80 | sequence(3) << 3 | low(offset >> 8, 3) as u8;
            out.extend_from_slice(&[middle(sn >> 3), EXTENDED | crc7, extension, offset as u8, scaled as u8]);
            return true;
        }
        false
    }

    /// UOR-2 or UOR-2-TS with extension 3: 14 bits of the sequence number, and as many of the
    /// timestamp as it needs.
    fn push_extended(&self, config: &Config, cid: u16, header: &Header, base: u32, out: &mut Vec<u8>) -> bool {
        if !self.fits_sequence(14, Shift::RtpSequence) {
            return false;
        }
        let scaled = self.scaled_timestamp(header);
        let Some(more) = [0].into_iter().chain(SDVL_BITS).find(|more| self.fits_time(scaled, base + more)) else {
            return false;
        };
        let time = scaled >> more;
        let marked = u8::from(header.marker()) << 6;
        if base == 5 {
            config.begin(out, cid, 0xc0 | low(time, 5) as u8);
            out.push(0x80 | marked | low(self.sequence >> 8, 6) as u8);
        } else {
            config.begin(out, cid, 0xc0 | low(time >> 1, 5) as u8);
            out.push((low(time, 1) as u8) << 7 | marked | low(self.sequence >> 8, 6) as u8);
        }
        out.push(EXTENDED | header.crc(Crc::Seven));
        // S, R-TS if more bits follow, and Tsc: the timestamp is scaled.
        out.push(0xc0 | 0x20 | u8::from(more > 0) << 4 | 0x08);
        out.push(self.sequence as u8);
        if more > 0 {
            push_sdvl(out, low(scaled, more), more);
        }
        true
    }
}

/// The static chain (RFC 3095 §5.7.7.3 to §5.7.7.6).
fn push_static(header: &Header, out: &mut Vec<u8>) {
    if header.is_v4() {
        out.extend_from_slice(&[0x40, header.protocol()]);
    } else {
        let [high, middle, low] = header.flow_label();
        out.extend_from_slice(&[0x60 | high, middle, low, header.protocol()]);
    }
    out.extend_from_slice(header.addresses());
    if header.profile != Profile::Ip {
        out.extend_from_slice(header.ports());
    }
    if header.profile == Profile::Rtp {
        out.extend_from_slice(header.ssrc());
    }
}
