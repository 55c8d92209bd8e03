//! The static, the dynamic and the irregular chain (RFC 5225 §6.8.2.4), of one IP header.

use super::reference::{DEFAULT_STRIDE, Irregular, Reference};
use super::{ReorderRatio, push_variable_whole, read_variable};
use crate::error::DecompressError;
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::profile::Profile;
use crate::reader::Reader;

/// In the first octet of the static chain: IPv6, the innermost IP header, and a flow label that is
/// not zero.
const IPV6: u8 = 0x80;
const INNERMOST: u8 = 0x40;
const FLOW_LABEL: u8 = 0x10;

/// Appends the static chain: `ipv4_static` or `ipv6_static`, `udp_static`, `rtp_static`.
pub(super) fn push_static(header: &Header, out: &mut Vec<u8>) {
    if header.is_v4() {
        out.extend_from_slice(&[INNERMOST, header.protocol()]);
    } else {
        match header.flow_label() {
            [0, 0, 0] => out.push(IPV6 | INNERMOST),
            [high, middle, low] => out.extend_from_slice(&[IPV6 | INNERMOST | FLOW_LABEL | high, middle, low]),
        }
        out.push(header.protocol());
    }
    out.extend_from_slice(header.addresses());
    if header.profile != Profile::Ip {
        out.extend_from_slice(header.ports());
    }
    if header.profile == Profile::Rtp {
        out.extend_from_slice(header.ssrc());
    }
}

/// Reads the static chain.
pub(super) fn read_static(profile: Profile, reader: &mut Reader<'_>) -> Result<Header, DecompressError> {
    let first = reader.octet()?;
    let mut label = [0; 3];
    match first & !INNERMOST {
        0 | IPV6 => {}
        0x90..=0x9f => {
            let rest = reader.take(2)?;
            label = [first & 0x0f, rest[0], rest[1]];
        }
        _ => return Err(DecompressError::Reserved { field: "the static chain of IP" }),
    }
    let is_v4 = first & IPV6 == 0;
    let mut header = Header::empty(profile, if is_v4 { 4 } else { 6 });
    header.set_protocol(reader.octet()?);
    if first & INNERMOST == 0 || !header.ends_chain() {
        return Err(DecompressError::Unsupported { feature: "a chain of IP or extension headers" });
    }
    if !is_v4 {
        header.set_flow_label(&label);
    }
    header.set_addresses(reader.take(if is_v4 { 8 } else { 32 })?);
    if profile != Profile::Ip {
        header.set_ports(reader.take(4)?);
    }
    if profile == Profile::Rtp {
        header.set_rtp_flags(0x80);
        header.set_ssrc(reader.take(4)?);
    }
    Ok(header)
}

/// Appends the dynamic chain. The last header has the sequence number and the reorder ratio: IP
/// (`ipv4_endpoint_innermost_dynamic`, `ipv6_endpoint_dynamic`), UDP (`udp_endpoint_dynamic`) or
/// RTP.
pub(super) fn push_dynamic(reference: &Reference, out: &mut Vec<u8>) {
    let Reference { header, msn, ratio, id, .. } = reference;
    let (ratio, msn) = (ratio.number(), msn.to_be_bytes());
    let is_last = header.profile == Profile::Ip;
    if header.is_v4() {
        let ratio = if is_last { ratio << 3 } else { 0 };
        out.push(ratio | u8::from(header.dont_fragment()) << 2 | id.number(header));
    }
    out.extend_from_slice(&[header.tos(), header.ttl()]);
    if header.is_v4() && *id != IdBehavior::Constant {
        out.extend_from_slice(&header.id().to_be_bytes());
    }
    if is_last {
        if !header.is_v4() {
            out.push(ratio);
        }
        out.extend_from_slice(&msn);
        return;
    }
    out.extend_from_slice(&header.udp_checksum().to_be_bytes());
    if header.profile == Profile::Udp {
        out.extend_from_slice(&msn);
        out.push(ratio);
    } else {
        push_rtp(reference, out);
    }
}

/// `rtp_dynamic`, without a list of contributing sources.
fn push_rtp(reference: &Reference, out: &mut Vec<u8>) {
    let Reference { header, ratio, stride, .. } = reference;
    let has_stride = *stride != DEFAULT_STRIDE;
    // Padding and extension are bits 0x20 and 0x10 of RTP.
    out.push(ratio.number() << 5 | u8::from(has_stride) << 3 | reference.rtp_flags() >> 4);
    out.push(u8::from(header.marker()) << 7 | header.payload_type());
    out.extend_from_slice(&header.sequence().to_be_bytes());
    out.extend_from_slice(&header.timestamp().to_be_bytes());
    if has_stride {
        push_variable_whole(out, *stride);
    }
}

/// Reads the dynamic chain.
pub(super) fn read_dynamic(reference: &mut Reference, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
    let header = &mut reference.header;
    let profile = header.profile;
    let is_last = profile == Profile::Ip;
    reference.id = IdBehavior::Random;
    if header.is_v4() {
        let flags = reader.octet()?;
        if flags & if is_last { 0xe0 } else { 0xf8 } != 0 {
            return Err(DecompressError::Reserved { field: "the dynamic chain of IPv4" });
        }
        if is_last {
            reference.ratio = ReorderRatio::of(flags >> 3);
        }
        header.set_dont_fragment(flags & 0x04 != 0);
        reference.id = IdBehavior::from_number(flags);
    }
    header.set_tos(reader.octet()?);
    header.set_ttl(reader.octet()?);
    if header.is_v4() {
        header.set_id(if reference.id == IdBehavior::Constant { 0 } else { reader.word()? });
    }
    if is_last {
        if !header.is_v4() {
            reference.ratio = read_ratio(reader)?;
        }
        reference.msn = reader.word()?;
        return Ok(());
    }
    let checksum = reader.word()?;
    header.set_udp_checksum(checksum);
    reference.has_checksum = checksum != 0;
    if profile == Profile::Udp {
        reference.msn = reader.word()?;
        reference.ratio = read_ratio(reader)?;
        Ok(())
    } else {
        read_rtp(reference, reader)
    }
}

/// The octet of a reorder ratio.
fn read_ratio(reader: &mut Reader<'_>) -> Result<ReorderRatio, DecompressError> {
    match reader.octet()? {
        ratio @ 0..=3 => Ok(ReorderRatio::of(ratio)),
        _ => Err(DecompressError::Reserved { field: "the reorder ratio" }),
    }
}

fn read_rtp(reference: &mut Reference, reader: &mut Reader<'_>) -> Result<(), DecompressError> {
    let header = &mut reference.header;
    let (flags, marked) = (reader.octet()?, reader.octet()?);
    if flags & 0x80 != 0 {
        return Err(DecompressError::Reserved { field: "the dynamic chain of RTP" });
    }
    if flags & 0x10 != 0 {
        return Err(DecompressError::Unsupported { feature: "a list of contributing sources" });
    }
    reference.ratio = ReorderRatio::of(flags >> 5);
    header.set_rtp_flags(0x80 | (flags & 0x03) << 4);
    header.set_payload_type(marked & 0x7f);
    header.set_marker(marked & 0x80 != 0);
    reference.msn = reader.word()?;
    header.set_sequence(reference.msn);
    let timestamp = reader.take(4)?.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    header.set_timestamp(timestamp);
    reference.stride = if flags & 0x08 != 0 { read_variable(reader, 4)?.0 } else { DEFAULT_STRIDE };
    if flags & 0x04 != 0 && read_variable(reader, 4)?.0 != 0 {
        return Err(DecompressError::Unsupported { feature: "timer-based compression of timestamps" });
    }
    Ok(())
}

/// Appends the irregular chain.
pub(super) fn push_irregular(reference: &Reference, out: &mut Vec<u8>) {
    let Irregular { id, checksum } = reference.irregular();
    if reference.header.is_v4() && reference.id == IdBehavior::Random {
        out.extend_from_slice(&id.to_be_bytes());
    }
    if reference.has_checksum {
        out.extend_from_slice(&checksum.to_be_bytes());
    }
}

/// Reads the irregular chain of a packet that has an IP-ID or not.
pub(super) fn read_irregular(
    reference: &Reference,
    has_id: bool,
    reader: &mut Reader<'_>,
) -> Result<Irregular, DecompressError> {
    let mut irregular = Irregular::default();
    if has_id {
        irregular.id = reader.word()?;
    }
    if reference.has_checksum {
        irregular.checksum = reader.word()?;
    }
    Ok(irregular)
}
