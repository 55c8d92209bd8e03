//! The context of one flow at the decompressor.

use super::packets::Fields;
use super::validity::Validity;
use crate::crc::Crc;
use crate::error::DecompressError;
use crate::framework::Mode;
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::lsb::{Shift, Width, decode};
use crate::profile::Profile;
use crate::reader::Reader;

/// The context.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The last header that was decompressed.
    pub(super) header: Header,
    /// Its sequence number.
    pub(super) sequence: u16,
    stride: u32,
    pub(super) id: IdBehavior,
    id_offset: u16,
    /// Whether packets carry a UDP checksum.
    has_checksum: bool,
    pub(super) validity: Validity,
    /// The mode of the packets that come (D_MODE of RFC 3095 §5.6.1).
    pub(super) mode: Mode,
    /// Updates in a row, the last packet included; 0 if it was none.
    pub(super) updates: u32,
}

impl Context {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            header: Header::empty(profile, 4),
            sequence: 0,
            stride: 0,
            id: IdBehavior::Sequential,
            id_offset: 0,
            has_checksum: false,
            validity: Validity::default(),
            mode: Mode::Unidirectional,
            updates: 0,
        }
    }

    /// Whether a decompressor in reliable mode acknowledges the last packet (RFC 3095 §5.5.2.2):
    /// the first two updates in a row, and then one in four, as "Sparse ACK" allows. Until the
    /// transition to this mode has ended, it acknowledges each packet (§5.6.1).
    pub(super) const fn is_acknowledged(&self) -> bool {
        !matches!(self.mode, Mode::Reliable)
            || matches!(self.updates, 1 | 2)
            || self.updates > 0 && self.updates % 4 == 0
    }

    /// The static chain.
    pub(super) fn read_static(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let profile = self.header.profile;
        let first = reader.octet()?;
        self.header = Header::empty(profile, first >> 4);
        match first >> 4 {
            4 => {
                self.header.set_protocol(reader.octet()?);
                self.header.set_addresses(reader.take(8)?);
            }
            6 => {
                let label = reader.take(2)?;
                self.header.set_flow_label(&[first & 0x0f, label[0], label[1]]);
                self.header.set_protocol(reader.octet()?);
                self.header.set_addresses(reader.take(32)?);
            }
            _ => return Err(DecompressError::Unsupported { feature: "a version of IP other than 4 and 6" }),
        }
        if !self.header.ends_chain() {
            return Err(DecompressError::Unsupported { feature: "a chain of IP or extension headers" });
        }
        if profile != Profile::Ip {
            self.header.set_ports(reader.take(4)?);
        }
        if profile == Profile::Rtp {
            self.header.set_ssrc(reader.take(4)?);
        }
        // Without RTP an IR packet has no mode: both ends begin again.
        (self.stride, self.mode) = (0, Mode::Unidirectional);
        self.validity.receive_static();
        Ok(())
    }

    /// The dynamic chain.
    pub(super) fn read_dynamic(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        self.header.set_tos(reader.octet()?);
        self.header.set_ttl(reader.octet()?);
        if self.header.is_v4() {
            self.header.set_id(reader.word()?);
            let flags = reader.octet()?;
            self.header.set_dont_fragment(flags & 0x80 != 0);
            self.id = IdBehavior::from_flags(flags);
        }
        read_empty_list(reader, "a list of extension headers")?;
        let profile = self.header.profile;
        if profile != Profile::Ip {
            let checksum = reader.word()?;
            self.header.set_udp_checksum(checksum);
            self.has_checksum = checksum != 0;
        }
        if profile == Profile::Rtp {
            self.read_rtp(reader)?;
            self.sequence = self.header.sequence();
        } else {
            self.sequence = reader.word()?;
        }
        self.id_offset = self.id.offset(self.header.id(), self.sequence);
        self.validity.receive_dynamic();
        Ok(())
    }

    fn read_rtp(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let flags = reader.octet()?;
        let marked = reader.octet()?;
        self.header.set_sequence(reader.word()?);
        let timestamp = reader.take(4)?.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        self.header.set_timestamp(timestamp);
        self.header.set_payload_type(marked & 0x7f);
        self.header.set_marker(marked & 0x80 != 0);
        if flags & 0x0f != 0 {
            return Err(DecompressError::Unsupported { feature: "a list of contributing sources" });
        }
        read_empty_list(reader, "a list of contributing sources")?;
        let mut extension = self.header.rtp_flags() & 0x10;
        if flags & 0x10 != 0 {
            let more = reader.octet()?;
            extension = more & 0x10;
            self.mode = Mode::of(more >> 2 & 0x03).unwrap_or(self.mode);
            if more & 0x01 != 0 {
                self.stride = reader.sdvl()?.0;
            }
            if more & 0x02 != 0 {
                // TIME_STRIDE matters only to a decompressor that has offered a clock.
                reader.sdvl()?;
            }
        }
        self.header.set_rtp_flags(flags & 0xe0 | extension);
        Ok(())
    }

    /// Completes the header by the length of the payload, and appends it.
    pub(super) fn complete(&mut self, payload: usize, out: &mut Vec<u8>) -> Result<(), DecompressError> {
        let length = self.header.length() + payload;
        if length > usize::from(u16::MAX) {
            return Err(DecompressError::Unsupported { feature: "a packet of more than 65535 bytes" });
        }
        self.header.infer(length);
        out.extend_from_slice(self.header.as_bytes());
        Ok(())
    }

    /// A compressed packet.
    pub(super) fn receive(
        &mut self,
        length: usize,
        cid: u16,
        first: u8,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        if !self.validity.has_static {
            return Err(DecompressError::NoContext { cid });
        }
        let result = self.try_receive(length, first, reader, out);
        // The failure of a packet without a CRC is that of its last update.
        if result != Err(DecompressError::Repair) && (result.is_err() || self.updates > 0) {
            self.validity.count(result.is_err());
        }
        result
    }

    fn try_receive(
        &mut self,
        length: usize,
        first: u8,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        let fields = Fields::read(&self.header, self.id, self.mode, first, reader)?;
        if !self.validity.has_dynamic && fields.crc.is_none_or(|(crc, _)| crc == Crc::Three) {
            return Err(DecompressError::Repair);
        }
        let mut next = self.clone();
        next.apply(&fields);
        if next.header.is_v4() && next.id == IdBehavior::Random {
            next.header.set_id(reader.word()?);
        }
        if next.has_checksum {
            next.header.set_udp_checksum(reader.word()?);
        }
        let start = out.len();
        next.complete(length - reader.position(), out)?;
        let Some((crc, value)) = fields.crc else {
            // It updates nothing.
            self.updates = 0;
            return Ok(reader.position());
        };
        if next.header.crc(crc) != value {
            out.truncate(start);
            return Err(DecompressError::Crc);
        }
        next.mode = fields.mode.unwrap_or(self.mode);
        next.updates += 1;
        next.validity.has_dynamic = true;
        *self = next;
        Ok(reader.position())
    }

    /// Derives the header from what was received of it.
    fn apply(&mut self, fields: &Fields) {
        let is_rtp = self.header.profile == Profile::Rtp;
        let shift = if is_rtp { Shift::RtpSequence } else { Shift::Counted };
        let (bits, count) = fields.sequence;
        let sequence = decode(u32::from(self.sequence), bits, count, shift, Width::Sixteen) as u16;
        let last_sequence = std::mem::replace(&mut self.sequence, sequence);
        let step = sequence.wrapping_sub(last_sequence) as i16;
        if is_rtp {
            if let Some(stride) = fields.stride {
                self.stride = stride;
            }
            let last = self.header.timestamp();
            let stride = self.stride;
            let timestamp = match fields.timestamp {
                None => last.wrapping_add((i32::from(step) as u32).wrapping_mul(stride)),
                Some((bits, count)) if fields.is_scaled && stride > 0 => {
                    let scaled = decode(last / stride, bits, count, Shift::Timestamp, Width::ThirtyTwo);
                    scaled.wrapping_mul(stride).wrapping_add(last % stride)
                }
                Some((bits, count)) => decode(last, bits, count, Shift::Timestamp, Width::ThirtyTwo),
            };
            self.header.set_timestamp(timestamp);
            self.header.set_sequence(sequence);
            self.header.set_marker(fields.marker);
            let flags = self.header.rtp_flags();
            if let Some(extension) = fields.extension {
                self.header.set_rtp_flags(flags & !0x10 | u8::from(extension) << 4);
            }
            if let Some((padding, payload_type)) = fields.payload_type {
                let flags = self.header.rtp_flags();
                self.header.set_rtp_flags(flags & !0x20 | u8::from(padding) << 5);
                self.header.set_payload_type(payload_type);
            }
        }
        if let Some(tos) = fields.tos {
            self.header.set_tos(tos);
        }
        if let Some(ttl) = fields.ttl {
            self.header.set_ttl(ttl);
        }
        if let Some(is_set) = fields.dont_fragment {
            self.header.set_dont_fragment(is_set);
        }
        // Extension 3 has no flag for a constant IP-ID: it stays so unless it becomes random.
        let stays = |id| id == self.id || (self.id == IdBehavior::Constant && id != IdBehavior::Random);
        if let Some(id) = fields.id_behavior.filter(|id| !stays(*id)) {
            self.id = id;
            self.id_offset = id.offset(self.header.id(), last_sequence);
        }
        if self.header.is_v4() && matches!(self.id, IdBehavior::Sequential | IdBehavior::Swapped) {
            if let Some((bits, count)) = fields.id {
                self.id_offset = decode(u32::from(self.id_offset), bits, count, Shift::IpId, Width::Sixteen) as u16;
            }
            self.header.set_id(self.id.id(self.id_offset, sequence));
        }
    }
}

/// A list without elements, in the form that lists all of them (type 0, RFC 3095 §5.8.6.1).
fn read_empty_list(reader: &mut Reader<'_>, feature: &'static str) -> Result<(), DecompressError> {
    match reader.octet()? {
        0 => Ok(()),
        // The number of the list, for later references to it.
        0x20 => reader.octet().map(drop),
        _ => Err(DecompressError::Unsupported { feature }),
    }
}
