//! The packets that a compressor sends (RFC 6846 §7): IR, IR-DYN, and the smallest compressed one
//! that fits.

use super::compressor::Context;
use super::formats::{
    CO_COMMON, Field, Format, Lsb, MSN, SCALED_ACKNOWLEDGMENT, SCALED_SEQUENCE, SHORT_IP_ID, TTL, VARIABLE, WINDOW,
    formats,
};
use super::item_table::Encoded;
use super::options::List;
use super::reset_syn_fin_index;
use crate::crc::Crc;
use crate::framework::{Config, IR, IR_DYN};
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::lsb::{Window, low};
use crate::scaling::scale;

/// An IR packet, not IR-CR (RFC 6846 §7.1).
const IR_TCP: u8 = IR | 0x01;
/// Formats of this size may be larger than `co_common`.
const LARGE: usize = 6;

/// What a compressed packet is about.
struct Next<'a> {
    header: &'a Header,
    payload: u32,
    encoded: &'a Encoded,
    has_sequential_id: bool,
}

impl Context {
    /// An IR packet (RFC 6846 §7.1).
    pub(super) fn push_ir(&self, config: &Config, cid: u16, header: &Header, list: &List, out: &mut Vec<u8>) {
        self.push_context(config, cid, IR_TCP, header, list, out);
    }

    /// An IR-DYN packet (RFC 6846 §7.1).
    pub(super) fn push_ir_dyn(&self, config: &Config, cid: u16, header: &Header, list: &List, out: &mut Vec<u8>) {
        self.push_context(config, cid, IR_DYN, header, list, out);
    }

    fn push_context(&self, config: &Config, cid: u16, first: u8, header: &Header, list: &List, out: &mut Vec<u8>) {
        let start = out.len();
        config.begin(out, cid, first);
        out.push(header.profile.octet());
        let crc = out.len();
        out.push(0);
        if first == IR_TCP {
            push_static(header, out);
        }
        self.push_dynamic(header, list, out);
        out[crc] = Crc::Eight.of(&out[start..]);
    }

    /// The dynamic chain: `ipv4_innermost_dynamic` or `ipv6_dynamic`, and `tcp_dynamic`.
    fn push_dynamic(&self, header: &Header, list: &List, out: &mut Vec<u8>) {
        let id = self.id.behavior;
        if header.is_v4() {
            out.push(u8::from(header.dont_fragment()) << 2 | id.number(header));
        }
        out.extend_from_slice(&[header.tos(), header.ttl()]);
        if header.is_v4() && id != IdBehavior::Constant {
            out.extend_from_slice(&header.id().to_be_bytes());
        }
        let (acknowledgment, urgent, stride) = (header.acknowledgment(), header.urgent_pointer(), self.stride.value);
        out.push(
            u8::from(self.ecn_used) << 7
                | u8::from(stride > 0) << 6
                | u8::from(acknowledgment == 0) << 5
                | u8::from(urgent == 0) << 4
                | header.tcp_reserved(),
        );
        out.push(
            header.tcp_ecn() << 6
                | u8::from(header.urgent()) << 5
                | u8::from(header.has_acknowledgment()) << 4
                | u8::from(header.push()) << 3
                | header.reset_syn_fin(),
        );
        out.extend_from_slice(&(self.msn as u16).to_be_bytes());
        out.extend_from_slice(&header.tcp_sequence().to_be_bytes());
        if acknowledgment != 0 {
            out.extend_from_slice(&acknowledgment.to_be_bytes());
        }
        out.extend_from_slice(&header.tcp_window().to_be_bytes());
        out.extend_from_slice(&header.tcp_checksum().to_be_bytes());
        if urgent != 0 {
            out.extend_from_slice(&urgent.to_be_bytes());
        }
        if stride > 0 {
            out.extend_from_slice(&stride.to_be_bytes());
        }
        self.options.push_all(list, header.tcp_options(), acknowledgment, out);
    }

    /// Appends the smallest compressed header that every reference of the decompressor restores;
    /// `None` if none does.
    pub(super) fn push_compressed(
        &self,
        config: &Config,
        cid: u16,
        header: &Header,
        list: &List,
        payload: u32,
        out: &mut Vec<u8>,
    ) -> Option<Encoded> {
        let acknowledgment = header.acknowledgment();
        let is_acknowledgment_known = self.references.acknowledgment.is_constant(acknowledgment);
        let encoded = self.options.encode(list, header.tcp_options(), acknowledgment, is_acknowledgment_known);
        let has_sequential_id = self.id.behavior.has_offset(header);
        let next = Next { header, payload, encoded: &encoded, has_sequential_id };
        let format = self.smallest_format(&next);
        let base = match format {
            Some((octets, base)) if octets < LARGE => base,
            _ => {
                let common = self.co_common(&next);
                let format = format.map(|(_, base)| base);
                [common, format].into_iter().flatten().min_by_key(Vec::len)?
            }
        };
        // The identifier is behind the first octet if it is large.
        config.begin(out, cid, base[0]);
        out.extend_from_slice(&base[1..]);
        out.extend_from_slice(&encoded.list);
        if header.is_v4() && self.id.behavior == IdBehavior::Random {
            out.extend_from_slice(&header.id().to_be_bytes());
        }
        if self.ecn_used {
            out.push((header.tos() & 0x03) << 6 | header.tcp_reserved() << 2 | header.tcp_ecn());
        }
        out.extend_from_slice(&header.tcp_checksum().to_be_bytes());
        out.extend_from_slice(&encoded.irregular);
        Some(encoded)
    }

    /// The smallest base header of the set that fits, and its octets.
    fn smallest_format(&self, next: &Next<'_>) -> Option<(usize, Vec<u8>)> {
        let (header, references) = (next.header, &self.references);
        // §8.2 has zero as the default of URG in `co_baseheader`, and the last value in `tcp`: both
        // are to be the same.
        let has_defaults = header.has_acknowledgment() && !header.urgent() && references.urgent.is_constant(0);
        let is_static = references.dscp.is_constant(u32::from(header.tos() >> 2))
            && references.dont_fragment.is_constant(u32::from(header.dont_fragment()))
            && references.urgent_pointer.is_constant(u32::from(header.urgent_pointer()))
            && references.stride.is_constant(u32::from(self.stride.value))
            && references.id_behavior.is_constant(u32::from(self.id.behavior.number(header)));
        if !has_defaults || !is_static {
            return None;
        }
        let is_sequence_constant = references.sequence.is_constant(header.tcp_sequence());
        let is_acknowledgment_constant = references.acknowledgment.is_constant(header.acknowledgment());
        let is_window_constant = references.window.is_constant(u32::from(header.tcp_window()));
        // What the last format of each set carries beyond the others.
        let needs_last = header.reset_syn_fin() != 0
            || !next.encoded.list.is_empty()
            || !references.ttl.is_constant(u32::from(header.ttl()))
            || !references.ecn_used.is_constant(u32::from(self.ecn_used));
        let formats = formats(next.has_sequential_id);
        formats
            .iter()
            .filter(|format| is_sequence_constant || format.has_sequence())
            .filter(|format| is_acknowledgment_constant || format.has_acknowledgment())
            .filter(|format| is_window_constant || format.has_window())
            .filter(|format| !needs_last || format.has(|field| field == Field::List))
            .find_map(|format| self.base_header(format, next).map(|base| (format.octets(), base)))
    }

    /// The base header in this format; `None` if a field has too few bits.
    fn base_header(&self, format: &Format, next: &Next<'_>) -> Option<Vec<u8>> {
        let mut bits = u64::from(format.discriminator);
        for field in format.fields {
            bits = bits << field.bits() | u64::from(self.field(*field, next)?);
        }
        let octets = format.octets();
        Some(bits.to_be_bytes()[8 - octets..].to_vec())
    }

    /// The bits of a field, if every reference restores its value.
    fn field(&self, field: Field, next: &Next<'_>) -> Option<u32> {
        let (header, references) = (next.header, &self.references);
        match field {
            Field::Sequence(lsb) => encode(&references.sequence, header.tcp_sequence(), lsb),
            Field::ScaledSequence => {
                let is_same = next.payload > 0 && references.payload.is_constant(next.payload);
                is_same.then_some(())?;
                scaled(&references.sequence, header.tcp_sequence(), next.payload, SCALED_SEQUENCE)
            }
            Field::Acknowledgment(lsb) => encode(&references.acknowledgment, header.acknowledgment(), lsb),
            Field::ScaledAcknowledgment => {
                let stride = u32::from(self.stride.value);
                (stride > 0).then_some(())?;
                scaled(&references.acknowledgment, header.acknowledgment(), stride, SCALED_ACKNOWLEDGMENT)
            }
            Field::Window => Some(u32::from(header.tcp_window())),
            Field::WindowLsb => encode(&references.window, u32::from(header.tcp_window()), WINDOW),
            Field::IpId(lsb) => encode(&references.offset, self.id_offset(header), lsb),
            Field::Msn => encode(&references.msn, self.msn & 0xffff, MSN),
            Field::Push => Some(u32::from(header.push())),
            Field::ResetSynFin => reset_syn_fin_index(header.reset_syn_fin()).map(u32::from),
            Field::Ttl => encode(&references.ttl, u32::from(header.ttl()), TTL),
            Field::EcnUsed => Some(u32::from(self.ecn_used)),
            Field::List => Some(u32::from(!next.encoded.list.is_empty())),
            Field::Crc(crc) => Some(u32::from(header.crc(crc))),
        }
    }

    /// The base header `co_common`, which carries any change but of several of RST, SYN and FIN.
    fn co_common(&self, next: &Next<'_>) -> Option<Vec<u8>> {
        let (header, references) = (next.header, &self.references);
        let mut fields = Vec::with_capacity(24);
        let sequence = push_variable(&references.sequence, header.tcp_sequence(), &mut fields);
        let acknowledgment = push_variable(&references.acknowledgment, header.acknowledgment(), &mut fields);
        let stride = push_changed(&references.stride, self.stride.value, &mut fields);
        let window = push_changed(&references.window, header.tcp_window(), &mut fields);
        let behavior = self.id.behavior.number(header);
        let mut is_id_long = false;
        if next.has_sequential_id {
            // Before it is established, a decompressor may have another offset.
            let is_established = references.id_behavior.is_constant(u32::from(behavior));
            match encode(&references.offset, self.id_offset(header), SHORT_IP_ID).filter(|_| is_established) {
                Some(bits) => fields.push(bits as u8),
                None => {
                    fields.extend_from_slice(&header.id().to_be_bytes());
                    is_id_long = true;
                }
            }
        }
        let urgent_pointer = push_changed(&references.urgent_pointer, header.urgent_pointer(), &mut fields);
        let dscp = u32::from(header.tos() >> 2);
        let has_dscp = !references.dscp.is_constant(dscp);
        if has_dscp {
            fields.push((dscp as u8) << 2);
        }
        let has_ttl = !references.ttl.is_constant(u32::from(header.ttl()));
        if has_ttl {
            fields.push(header.ttl());
        }
        let msn = encode(&references.msn, self.msn & 0xffff, MSN)? as u8;
        let has_list = !next.encoded.list.is_empty();
        let mut base = vec![
            CO_COMMON,
            u8::from(header.has_acknowledgment()) << 7
                | u8::from(header.push()) << 6
                | reset_syn_fin_index(header.reset_syn_fin())? << 4
                | msn,
            sequence << 6
                | acknowledgment << 4
                | u8::from(stride) << 3
                | u8::from(window) << 2
                | u8::from(is_id_long) << 1
                | u8::from(urgent_pointer),
            u8::from(self.ecn_used) << 6
                | u8::from(has_dscp) << 5
                | u8::from(has_ttl) << 4
                | u8::from(has_list) << 3
                | behavior << 1
                | u8::from(header.urgent()),
            u8::from(header.dont_fragment()) << 7 | header.crc(Crc::Seven),
        ];
        base.append(&mut fields);
        Some(base)
    }
}

/// The lowest bits of `value`, if every reference restores it from these.
fn encode(references: &Window, value: u32, lsb: Lsb) -> Option<u32> {
    references.fits(value, lsb.bits, lsb.shift, lsb.width).then(|| low(value, lsb.bits))
}

/// The lowest bits of `value` in units of `factor`, if every reference has its residue and restores
/// it.
fn scaled(references: &Window, value: u32, factor: u32, lsb: Lsb) -> Option<u32> {
    let (value, residue) = scale(value, factor);
    let fits = |reference: &u32| {
        let (reference, other) = scale(*reference, factor);
        let decoded = crate::lsb::decode(reference, low(value, lsb.bits), lsb.bits, lsb.shift, lsb.width);
        residue == other && decoded == value
    };
    let values = references.values();
    (!values.is_empty() && values.iter().all(fits)).then(|| low(value, lsb.bits))
}

/// A number in none, one, two or four octets (variable_length_32_enc); returns its indicator.
fn push_variable(references: &Window, value: u32, out: &mut Vec<u8>) -> u8 {
    let [short, long] = VARIABLE;
    if references.is_constant(value) {
        return 0;
    }
    if let Some(bits) = encode(references, value, short) {
        out.push(bits as u8);
        return 1;
    }
    if let Some(bits) = encode(references, value, long) {
        out.extend_from_slice(&(bits as u16).to_be_bytes());
        return 2;
    }
    out.extend_from_slice(&value.to_be_bytes());
    3
}

/// A field of two octets if it may be another one at the decompressor (static_or_irreg); returns
/// whether it was appended.
pub(super) fn push_changed(references: &Window, value: u16, out: &mut Vec<u8>) -> bool {
    let is_changed = !references.is_constant(u32::from(value));
    if is_changed {
        out.extend_from_slice(&value.to_be_bytes());
    }
    is_changed
}

/// The static chain: `ipv4_static` or `ipv6_static`, and `tcp_static`.
fn push_static(header: &Header, out: &mut Vec<u8>) {
    if header.is_v4() {
        out.push(0);
    } else if header.flow_label() == [0; 3] {
        out.push(0x80);
    } else {
        let [high, middle, low] = header.flow_label();
        out.extend_from_slice(&[0x90 | high, middle, low]);
    }
    out.push(header.protocol());
    out.extend_from_slice(header.addresses());
    out.extend_from_slice(header.ports());
}
