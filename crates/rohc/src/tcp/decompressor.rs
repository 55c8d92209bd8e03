//! The context of one flow at the decompressor (RFC 6846 §5.3).

use super::formats::{
    CO_COMMON, Field, Lsb, MSN, SCALED_ACKNOWLEDGMENT, SCALED_SEQUENCE, SHORT_IP_ID, TTL, VARIABLE, WINDOW, formats,
};
use super::option_reader::{OptionReader, Present};
use super::replication::{PORT, PortPresence};
use super::reset_syn_fin_flags;
use crate::crc::Crc;
use crate::error::DecompressError;
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::lsb::decode;
use crate::profile::Profile;
use crate::reader::Reader;
use crate::scaling::scale;
use crate::validity::Validity;

/// Packets whose headers are remembered for those that they have overtaken: as many as the interval
/// of the master sequence number, lsb(4, 4), covers.
const OVERTAKING: usize = 4;

/// The context.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// What the last packet has established.
    last: Reference,
    /// What the packets before it have established, the latest last.
    earlier: Vec<Reference>,
    pub(crate) validity: Validity,
}

/// A header that was decompressed, and what packets after it refer to.
#[derive(Clone, Copy, Debug)]
struct Reference {
    header: Header,
    /// Bytes of the payload.
    payload: u32,
    msn: u16,
    id: IdBehavior,
    id_offset: u16,
    ecn_used: bool,
    stride: u16,
    options: OptionReader,
}

/// What a compressed packet shows of itself.
#[derive(Clone, Copy, Debug)]
struct Received {
    crc: Crc,
    msn: u16,
    /// A packet that was sent after it has already come.
    is_late: bool,
}

/// What the base header has beyond the fields of the header itself.
struct Base {
    crc: (Crc, u8),
    /// Lowest bits of the scaled sequence number. The length of the payload, by which it is scaled,
    /// follows from that of the rest.
    scaled_sequence: Option<u32>,
    present: Present,
}

impl Context {
    pub(crate) fn new() -> Self {
        let last = Reference {
            header: Header::empty(Profile::Tcp, 4),
            payload: 0,
            msn: 0,
            id: IdBehavior::Sequential,
            id_offset: 0,
            ecn_used: false,
            stride: 0,
            options: OptionReader::default(),
        };
        Self { last, earlier: Vec::new(), validity: Validity::default() }
    }

    /// The master sequence number of the last packet.
    pub(crate) const fn msn(&self) -> u16 {
        self.last.msn
    }

    /// The static chain.
    pub(crate) fn read_static(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        self.last.read_static(reader)?;
        self.earlier.clear();
        self.validity.receive_static();
        Ok(())
    }

    /// The dynamic chain.
    pub(crate) fn read_dynamic(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        self.last.read_dynamic(reader)?;
        self.validity.receive_dynamic();
        Ok(())
    }

    /// Completes the header of an IR or IR-DYN packet, and appends it.
    pub(crate) fn finish(&mut self, payload: usize, out: &mut Vec<u8>) -> Result<(), DecompressError> {
        self.last.complete(payload)?;
        out.extend_from_slice(self.last.header.as_bytes());
        Ok(())
    }

    /// The context of a new flow that is derived from this one.
    pub(crate) fn replicated(&self) -> Self {
        let mut validity = self.validity;
        validity.receive_dynamic();
        Self { last: self.last, earlier: Vec::new(), validity }
    }

    /// The replicate chain.
    pub(crate) fn read_replicate(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        self.last.read_replicate(reader)
    }

    /// Completes the header of an IR-CR packet, and appends it if the CRC is that of the header.
    pub(crate) fn finish_replicated(
        &mut self,
        payload: usize,
        crc: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), DecompressError> {
        self.last.complete(payload)?;
        if self.last.header.crc(Crc::Seven) != crc {
            return Err(DecompressError::Crc);
        }
        out.extend_from_slice(self.last.header.as_bytes());
        Ok(())
    }

    /// A compressed packet.
    pub(crate) fn receive(
        &mut self,
        length: usize,
        cid: u16,
        first: u8,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        self.validity.require_static(cid)?;
        let start = *reader;
        let mut received = Received { crc: Crc::Three, msn: self.last.msn, is_late: false };
        let mut result = self.last.decompress(length, first, reader, &mut received);
        if !self.validity.has_dynamic && received.crc == Crc::Three {
            return Err(DecompressError::Repair);
        }
        if received.is_late {
            // It was compressed when those that have overtaken it were no reference yet.
            let is_before = |reference: &&Reference| is_late(reference.msn, received.msn);
            if let Some(reference) = self.earlier.iter().rev().find(is_before) {
                *reader = start;
                result = reference.decompress(length, first, reader, &mut received);
            }
        }
        // The failure of a late packet is no sign of a damaged context.
        if !received.is_late || result.is_ok() {
            self.validity.count(result.is_err());
        }
        let next = result?;
        out.extend_from_slice(next.header.as_bytes());
        // A packet that was overtaken is no reference for later ones (§5.3.1.1).
        if !received.is_late || !self.validity.has_dynamic {
            if self.earlier.len() == OVERTAKING {
                self.earlier.remove(0);
            }
            self.earlier.push(self.last);
            self.last = next;
            self.validity.has_dynamic = true;
        }
        Ok(reader.position())
    }
}

impl Reference {
    /// The static chain: `ipv4_static` or `ipv6_static`, and `tcp_static`.
    fn read_static(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let first = reader.octet()?;
        let reserved = DecompressError::Reserved { field: "the static chain of IP" };
        let mut label = [0; 3];
        let is_v4 = first & 0x80 == 0;
        match first {
            0 | 0x80 => {}
            0x90..=0x9f => {
                let rest = reader.take(2)?;
                label = [first & 0x0f, rest[0], rest[1]];
            }
            _ => return Err(reserved),
        }
        self.header = Header::empty(Profile::Tcp, if is_v4 { 4 } else { 6 });
        self.header.set_protocol(reader.octet()?);
        if !self.header.ends_chain() {
            return Err(DecompressError::Unsupported { feature: "a chain of IP or extension headers" });
        }
        if !is_v4 {
            self.header.set_flow_label(&label);
        }
        self.header.set_addresses(reader.take(if is_v4 { 8 } else { 32 })?);
        self.header.set_ports(reader.take(4)?);
        // A new flow has no options and no stride yet.
        (self.options, self.stride) = (OptionReader::default(), 0);
        Ok(())
    }

    /// The dynamic chain: `ipv4_innermost_dynamic` or `ipv6_dynamic`, and `tcp_dynamic`.
    fn read_dynamic(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let header = &mut self.header;
        self.id = IdBehavior::Random;
        if header.is_v4() {
            let flags = reader.octet()?;
            if flags & 0xf8 != 0 {
                return Err(DecompressError::Reserved { field: "the dynamic chain of IPv4" });
            }
            header.set_dont_fragment(flags & 0x04 != 0);
            self.id = IdBehavior::from_number(flags);
        }
        header.set_tos(reader.octet()?);
        header.set_ttl(reader.octet()?);
        if header.is_v4() {
            header.set_id(if self.id == IdBehavior::Constant { 0 } else { reader.word()? });
        }
        let (first, flags) = (reader.octet()?, reader.octet()?);
        self.ecn_used = first & 0x80 != 0;
        header.set_tcp_reserved(first & 0x0f);
        header.set_tcp_ecn(flags >> 6);
        header.set_urgent(flags & 0x20 != 0);
        header.set_has_acknowledgment(flags & 0x10 != 0);
        header.set_push(flags & 0x08 != 0);
        header.set_reset_syn_fin(flags & 0x07);
        self.msn = reader.word()?;
        header.set_tcp_sequence(read_number(reader)?);
        header.set_acknowledgment(if first & 0x20 != 0 { 0 } else { read_number(reader)? });
        header.set_tcp_window(reader.word()?);
        header.set_tcp_checksum(reader.word()?);
        header.set_urgent_pointer(if first & 0x10 != 0 { 0 } else { reader.word()? });
        if first & 0x40 != 0 {
            self.stride = reader.word()?;
        }
        self.id_offset = self.id.offset(self.header.id(), self.msn);
        let acknowledgment = self.header.acknowledgment();
        let present = self.options.read_list(acknowledgment, reader)?;
        // All items have to be present (§6.3.5); one that is not is read as in a compressed packet.
        self.options.read_irregular(present, acknowledgment, reader)
    }

    /// The replicate chain: `ipv4_innermost_replicate` or `ipv6_replicate`, and `tcp_replicate`.
    /// What it does not carry is that of the base context.
    fn read_replicate(&mut self, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let header = &mut self.header;
        let reserved = DecompressError::Reserved { field: "the replicate chain" };
        if header.is_v4() {
            let flags = reader.octet()?;
            if flags & 0xf0 != 0 {
                return Err(reserved);
            }
            self.id = IdBehavior::from_number(flags >> 2);
            header.set_dont_fragment(flags & 0x01 != 0);
            header.set_tos(reader.octet()?);
            header.set_id(if self.id == IdBehavior::Constant { 0 } else { reader.word()? });
            if flags & 0x02 != 0 {
                header.set_ttl(reader.octet()?);
            }
        } else {
            header.set_tos(reader.octet()?);
            let first = reader.octet()?;
            let label = match first {
                0 => [0; 3],
                0x10..=0x1f => {
                    let rest = reader.take(2)?;
                    [first & 0x0f, rest[0], rest[1]]
                }
                _ => return Err(reserved),
            };
            header.set_flow_label(&label);
        }
        let (first, flags) = (reader.octet()?, reader.octet()?);
        if first & 0x80 != 0 {
            return Err(reserved);
        }
        self.msn = reader.word()?;
        header.set_tcp_sequence(read_number(reader)?);
        let mut ports = [0; 4];
        for (port, (old, presence)) in ports.chunks_mut(2).zip(header.ports().chunks(2).zip([first >> 3, first >> 1])) {
            let old = u16::from_be_bytes([old[0], old[1]]);
            let new = match PortPresence::of(presence).ok_or(reserved)? {
                PortPresence::Static => old,
                PortPresence::Lowest => restore(u32::from(old), u32::from(reader.octet()?), PORT) as u16,
                PortPresence::Whole => reader.word()?,
            };
            port.copy_from_slice(&new.to_be_bytes());
        }
        header.set_ports(&ports);
        if first & 0x40 != 0 {
            header.set_tcp_window(reader.word()?);
        }
        if flags & 0x40 != 0 {
            header.set_urgent_pointer(reader.word()?);
        }
        if flags & 0x80 != 0 {
            header.set_acknowledgment(read_number(reader)?);
        }
        header.set_urgent(flags & 0x20 != 0);
        header.set_has_acknowledgment(flags & 0x10 != 0);
        header.set_push(flags & 0x08 != 0);
        header.set_reset_syn_fin(reset_syn_fin_flags(flags >> 1));
        self.ecn_used = flags & 0x01 != 0;
        if self.ecn_used {
            let bits = reader.octet()?;
            if bits & 0xc0 != 0 {
                return Err(reserved);
            }
            header.set_tcp_reserved(bits >> 2);
            header.set_tcp_ecn(bits & 0x03);
        }
        header.set_tcp_checksum(reader.word()?);
        if first & 0x01 != 0 {
            self.stride = reader.word()?;
        }
        self.id_offset = self.id.offset(self.header.id(), self.msn);
        if first & 0x20 != 0 {
            self.options.read_replicated(self.header.acknowledgment(), reader)?;
        }
        Ok(())
    }

    /// Completes the header by its options and the length of the payload.
    fn complete(&mut self, payload: usize) -> Result<(), DecompressError> {
        let mut options = [0; 40];
        let length = self.options.write(&mut options)?;
        if !self.header.set_tcp_options(&options[..length]) {
            return Err(DecompressError::Options);
        }
        let length = self.header.length() + payload;
        if length > usize::from(u16::MAX) {
            return Err(DecompressError::Unsupported { feature: "a packet of more than 65535 bytes" });
        }
        self.header.infer(length);
        self.payload = payload as u32;
        Ok(())
    }

    /// Restores the header of a compressed packet that refers to this one. `received` becomes what
    /// its base header shows even if the rest of it does not fit.
    fn decompress(
        &self,
        length: usize,
        first: u8,
        reader: &mut Reader<'_>,
        received: &mut Received,
    ) -> Result<Self, DecompressError> {
        let mut next = *self;
        let base =
            if first & 0xfe == CO_COMMON { next.read_common(first, reader)? } else { next.read_format(first, reader)? };
        let (crc, value) = base.crc;
        *received = Received { crc, msn: next.msn, is_late: is_late(next.msn, self.msn) || received.is_late };
        next.read_irregular(base.present, reader)?;
        let payload = length - reader.position();
        if let Some(bits) = base.scaled_sequence {
            next.header.set_tcp_sequence(self.unscale_sequence(bits, payload as u32)?);
        }
        next.complete(payload)?;
        if next.header.crc(crc) == value { Ok(next) } else { Err(DecompressError::Crc) }
    }

    /// A base header of the set for the behaviour of the IP-ID.
    fn read_format(&mut self, first: u8, reader: &mut Reader<'_>) -> Result<Base, DecompressError> {
        let formats = formats(self.id.has_offset(&self.header));
        let format = formats.iter().find(|format| format.begins_with(first));
        let format = format.ok_or(DecompressError::Type { octet: first })?;
        let octets = format.octets();
        let bits = reader.take(octets - 1)?.iter().fold(u64::from(first), |bits, octet| bits << 8 | u64::from(*octet));
        let mut left = 8 * octets as u32 - format.discriminator_bits;
        let mut base = Base { crc: (Crc::Three, 0), scaled_sequence: None, present: Present::default() };
        let mut has_list = false;
        // Offsets of the IP-ID relate to the sequence number of this packet.
        let mut id_bits = None;
        let last = self.header;
        let header = &mut self.header;
        // What no format of the set carries.
        header.set_has_acknowledgment(true);
        header.set_urgent(false);
        header.set_reset_syn_fin(0);
        for field in format.fields {
            left -= field.bits();
            let value = (bits >> left & ((1 << field.bits()) - 1)) as u32;
            match field {
                Field::Sequence(lsb) => header.set_tcp_sequence(restore(last.tcp_sequence(), value, *lsb)),
                Field::ScaledSequence => base.scaled_sequence = Some(value),
                Field::Acknowledgment(lsb) => header.set_acknowledgment(restore(last.acknowledgment(), value, *lsb)),
                Field::ScaledAcknowledgment => {
                    let stride = u32::from(self.stride);
                    let (reference, residue) = scale(last.acknowledgment(), stride);
                    let scaled = restore(reference, value, SCALED_ACKNOWLEDGMENT);
                    header.set_acknowledgment(scaled.wrapping_mul(stride).wrapping_add(residue));
                }
                Field::Window => header.set_tcp_window(value as u16),
                Field::WindowLsb => {
                    header.set_tcp_window(restore(u32::from(last.tcp_window()), value, WINDOW) as u16);
                }
                Field::IpId(lsb) => id_bits = Some((value, *lsb)),
                Field::Msn => self.msn = restore(u32::from(self.msn), value, MSN) as u16,
                Field::Push => header.set_push(value != 0),
                Field::ResetSynFin => header.set_reset_syn_fin(reset_syn_fin_flags(value as u8)),
                Field::Ttl => header.set_ttl(restore(u32::from(last.ttl()), value, TTL) as u8),
                Field::EcnUsed => self.ecn_used = value != 0,
                Field::List => has_list = value != 0,
                Field::Crc(crc) => base.crc = (*crc, value as u8),
            }
        }
        if let Some((bits, lsb)) = id_bits {
            self.set_id_offset(restore(u32::from(self.id_offset), bits, lsb) as u16);
        }
        if has_list {
            base.present = self.options.read_list(self.header.acknowledgment(), reader)?;
        }
        Ok(base)
    }

    /// The base header `co_common`.
    fn read_common(&mut self, first: u8, reader: &mut Reader<'_>) -> Result<Base, DecompressError> {
        if first != CO_COMMON {
            // The time to live of an outer header, but there is only one header.
            return Err(DecompressError::Unsupported { feature: "a second IP header" });
        }
        let octets = reader.take(4)?;
        let (flags, numbers, more, last) = (octets[0], octets[1], octets[2], octets[3]);
        if more & 0x80 != 0 {
            return Err(DecompressError::Reserved { field: "the base header co_common" });
        }
        let has = |octet: u8, bit: u8| octet & bit != 0;
        let header = &mut self.header;
        header.set_has_acknowledgment(has(flags, 0x80));
        header.set_push(has(flags, 0x40));
        header.set_reset_syn_fin(reset_syn_fin_flags(flags >> 4));
        header.set_urgent(has(more, 0x01));
        header.set_dont_fragment(has(last, 0x80));
        self.msn = restore(u32::from(self.msn), u32::from(flags & 0x0f), MSN) as u16;
        self.ecn_used = has(more, 0x40);
        header.set_tcp_sequence(read_variable(header.tcp_sequence(), numbers >> 6, reader)?);
        header.set_acknowledgment(read_variable(header.acknowledgment(), numbers >> 4, reader)?);
        if has(numbers, 0x08) {
            self.stride = reader.word()?;
        }
        if has(numbers, 0x04) {
            header.set_tcp_window(reader.word()?);
        }
        self.read_id(IdBehavior::from_number(more >> 1), has(numbers, 0x02), reader)?;
        let header = &mut self.header;
        if has(numbers, 0x01) {
            header.set_urgent_pointer(reader.word()?);
        }
        if has(more, 0x20) {
            header.set_tos(reader.octet()? & 0xfc | header.tos() & 0x03);
        }
        if has(more, 0x10) {
            header.set_ttl(reader.octet()?);
        }
        let mut base = Base { crc: (Crc::Seven, last & 0x7f), scaled_sequence: None, present: Present::default() };
        if has(more, 0x08) {
            base.present = self.options.read_list(self.header.acknowledgment(), reader)?;
        }
        Ok(base)
    }

    /// The IP-ID in `co_common` (optional_ip_id_lsb). IPv6 has none.
    fn read_id(&mut self, behavior: IdBehavior, is_long: bool, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        if !self.header.is_v4() {
            return if behavior == IdBehavior::Random {
                Ok(())
            } else {
                Err(DecompressError::Reserved { field: "the behaviour of the IP-ID of IPv6" })
            };
        }
        self.id = behavior;
        match behavior {
            IdBehavior::Sequential | IdBehavior::Swapped if is_long => {
                self.header.set_id(reader.word()?);
                self.id_offset = behavior.offset(self.header.id(), self.msn);
            }
            IdBehavior::Sequential | IdBehavior::Swapped => {
                let bits = u32::from(reader.octet()?);
                self.set_id_offset(restore(u32::from(self.id_offset), bits, SHORT_IP_ID) as u16);
            }
            IdBehavior::Random => {}
            IdBehavior::Constant => self.header.set_id(0),
        }
        Ok(())
    }

    fn set_id_offset(&mut self, offset: u16) {
        self.id_offset = offset;
        self.header.set_id(self.id.id(offset, self.msn));
    }

    /// The irregular chain: `ipv4_innermost_irregular`, `tcp_irregular`, and the options.
    fn read_irregular(&mut self, present: Present, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
        let header = &mut self.header;
        if header.is_v4() && self.id == IdBehavior::Random {
            header.set_id(reader.word()?);
        }
        if self.ecn_used {
            let bits = reader.octet()?;
            header.set_tos(header.tos() & 0xfc | bits >> 6);
            header.set_tcp_reserved(bits >> 2 & 0x0f);
            header.set_tcp_ecn(bits & 0x03);
        }
        header.set_tcp_checksum(reader.word()?);
        let acknowledgment = header.acknowledgment();
        self.options.read_irregular(present, acknowledgment, reader)
    }

    /// The sequence number of a packet with this payload (field_scaling).
    fn unscale_sequence(&self, bits: u32, payload: u32) -> Result<u32, DecompressError> {
        if payload == 0 {
            return Err(DecompressError::Reserved { field: "a scaled sequence number without payload" });
        }
        let (reference, residue) = scale(self.header.tcp_sequence(), self.payload);
        let scaled = restore(reference, bits, SCALED_SEQUENCE);
        Ok(scaled.wrapping_mul(payload).wrapping_add(residue))
    }
}

/// Whether the packet with number `msn` was sent before the one with number `other`.
const fn is_late(msn: u16, other: u16) -> bool {
    msn.wrapping_sub(other) > u16::MAX / 2
}

/// The value whose lowest bits are `bits`, by the last value.
const fn restore(reference: u32, bits: u32, lsb: Lsb) -> u32 {
    decode(reference, bits, lsb.bits, lsb.shift, lsb.width)
}

fn read_number(reader: &mut Reader<'_>) -> Result<u32, DecompressError> {
    Ok(u32::from(reader.word()?) << 16 | u32::from(reader.word()?))
}

/// A number in none, one, two or four octets (variable_length_32_enc).
fn read_variable(reference: u32, indicator: u8, reader: &mut Reader<'_>) -> Result<u32, DecompressError> {
    let [short, long] = VARIABLE;
    Ok(match indicator & 0x03 {
        0 => reference,
        1 => restore(reference, u32::from(reader.octet()?), short),
        2 => restore(reference, u32::from(reader.word()?), long),
        _ => read_number(reader)?,
    })
}
