//! `co_common` (RFC 5225 §6.8.2.4): any change of the fields that are not static, with a CRC of
//! seven bits over the header and one of three over the control fields.

use super::reference::{Changes, Fields, IdField, Reference, TimestampField};
use super::{CO_COMMON, ReorderRatio, VARIABLE_BITS, push_variable, push_variable_whole, read_variable};
use crate::crc::Crc;
use crate::error::DecompressError;
use crate::ip_id::IdBehavior;
use crate::lsb::low;
use crate::reader::Reader;

/// Bits of the sequence number of profiles whose compressor counts it.
const COUNTED_BITS: u32 = 8;
/// Those of RTP (`sdvl_sn_lsb`). With more, `co_repair` is sent.
const RTP_BITS: [u32; 2] = [7, 14];

/// Fields of `target` that restore it from each of `references`, and not from fewer bits; `None` if
/// none do.
pub(super) fn fields(
    target: &Reference,
    references: &[Reference],
    restores: impl Fn(&Fields) -> bool,
) -> Option<Fields> {
    let changes = changes(target, references);
    let mut fields = Fields {
        crc: (Crc::Seven, target.crc(Crc::Seven)),
        control_crc: Some(target.control_crc()),
        msn: target.msn_bits(COUNTED_BITS),
        id: IdField::Inferred,
        timestamp: TimestampField::Inferred,
        marker: target.is_rtp() && target.header.marker(),
        changes,
    };
    let mut ids = vec![IdField::Inferred];
    if target.id.has_offset(&target.header) {
        let offset = u32::from(target.id_offset());
        ids = vec![IdField::Offset(low(offset, 8), 8), IdField::Whole(target.header.id())];
        if changes.fragment.is_some() && references.iter().any(|reference| reference.id != target.id) {
            // Without an offset before, only the whole IP-ID is unambiguous.
            ids.remove(0);
        }
    }
    if !target.is_rtp() {
        return ids.into_iter().find_map(|id| {
            fields.id = id;
            restores(&fields).then_some(fields)
        });
    }
    let timestamp = target.header.timestamp();
    let scaled =
        VARIABLE_BITS[..4].iter().map(|bits| TimestampField::Scaled(low(target.scaled_timestamp(), *bits), *bits));
    let scaled = scaled.filter(|_| changes.stride.is_none() && target.stride != 0);
    let unscaled = VARIABLE_BITS.iter().map(|bits| TimestampField::Unscaled(low(timestamp, *bits), *bits));
    let mut timestamps: Vec<_> = scaled.chain(unscaled).collect();
    timestamps.sort_by_key(|timestamp| match timestamp {
        TimestampField::Inferred => 0,
        TimestampField::Scaled(_, bits) | TimestampField::Unscaled(_, bits) => *bits,
    });
    let mut candidates = Vec::new();
    for bits in RTP_BITS {
        for id in &ids {
            candidates.extend(timestamps.iter().map(|timestamp| (bits, *id, *timestamp)));
        }
    }
    candidates.into_iter().find_map(|(bits, id, timestamp)| {
        (fields.msn, fields.id, fields.timestamp) = (target.msn_bits(bits), id, timestamp);
        restores(&fields).then_some(fields)
    })
}

/// What of `target` differs from some of `references`.
fn changes(target: &Reference, references: &[Reference]) -> Changes {
    let differs = |is_equal: &dyn Fn(&Reference) -> bool| !references.iter().all(is_equal);
    let header = &target.header;
    let mut changes = Changes {
        tos: differs(&|other| other.header.tos() == header.tos()).then(|| header.tos()),
        ttl: differs(&|other| other.header.ttl() == header.ttl()).then(|| header.ttl()),
        fragment: differs(&|other| (other.header.dont_fragment(), other.id) == (header.dont_fragment(), target.id))
            .then(|| (header.dont_fragment(), target.id)),
        ratio: differs(&|other| other.ratio == target.ratio).then_some(target.ratio),
        ..Changes::default()
    };
    if target.is_rtp() {
        let payload_type = header.payload_type();
        changes.payload_type = differs(&|other| other.header.payload_type() == payload_type).then_some(payload_type);
        changes.rtp_flags = differs(&|other| other.rtp_flags() == target.rtp_flags()).then(|| target.rtp_flags());
        changes.stride = differs(&|other| other.stride == target.stride).then_some(target.stride);
        // One octet has all of these.
        if changes.tos.is_some() || changes.ttl.is_some() || changes.fragment.is_some() || changes.ratio.is_some() {
            changes.fragment = Some((header.dont_fragment(), target.id));
            changes.ratio = Some(target.ratio);
        }
        if changes.payload_type.is_some() || changes.rtp_flags.is_some() {
            changes.rtp_flags = Some(target.rtp_flags());
        }
    } else {
        // The reorder ratio is in each packet.
        changes.ratio = Some(target.ratio);
    }
    changes
}

/// Appends the packet behind its first octet, up to the irregular chain.
pub(super) fn push(target: &Reference, fields: &Fields, out: &mut Vec<u8>) {
    let Changes { tos, ttl, fragment, payload_type, rtp_flags, stride, .. } = fields.changes;
    let (crc, control_crc) = (fields.crc.1, fields.control_crc.unwrap_or_default());
    let is_whole = matches!(fields.id, IdField::Whole(_));
    let (has_ttl, has_tos) = (u8::from(ttl.is_some()), u8::from(tos.is_some()));
    // Don't fragment, and the behaviour of the IP-ID.
    let fragment = fragment.map(|(dont_fragment, id)| u8::from(dont_fragment) << 2 | id.number(&target.header));
    let ratio = target.ratio.number();
    if target.is_rtp() {
        let is_scaled = matches!(fields.timestamp, TimestampField::Scaled(..));
        out.push(u8::from(fields.marker) << 7 | crc);
        let indicators = [fragment.is_some(), rtp_flags.is_some(), is_scaled, stride.is_some(), is_whole];
        let indicators = indicators.into_iter().fold(0, |bits, bit| bits << 1 | u8::from(bit));
        out.push(indicators << 3 | control_crc);
        if let Some(fragment) = fragment {
            out.push(has_ttl << 6 | has_tos << 5 | fragment << 2 | ratio);
        }
        if let Some(flags) = rtp_flags {
            out.push(u8::from(payload_type.is_some()) << 6 | flags >> 1);
        }
    } else {
        out.push(u8::from(is_whole) << 7 | crc);
        let has_fragment = u8::from(fragment.is_some());
        out.push(has_fragment << 7 | has_ttl << 6 | has_tos << 5 | ratio << 3 | control_crc);
        if let Some(fragment) = fragment {
            out.push(fragment << 4);
        }
    }
    out.extend([tos, ttl, payload_type].into_iter().flatten());
    if target.is_rtp() {
        push_variable(out, fields.msn.0, fields.msn.1);
    } else {
        out.push(fields.msn.0 as u8);
    }
    match fields.id {
        IdField::Inferred => {}
        IdField::Offset(value, _) => out.push(value as u8),
        IdField::Whole(id) => out.extend_from_slice(&id.to_be_bytes()),
    }
    match fields.timestamp {
        TimestampField::Inferred => {}
        TimestampField::Scaled(value, bits) | TimestampField::Unscaled(value, bits) => push_variable(out, value, bits),
    }
    if let Some(stride) = stride {
        push_variable_whole(out, stride);
    }
}

/// Which fields follow in a packet.
struct Present {
    tos: bool,
    ttl: bool,
    payload_type: bool,
    whole_id: bool,
    scaled: bool,
    stride: bool,
    time_stride: bool,
}

/// Reads the packet behind its first octet, up to the irregular chain.
pub(super) fn read(reference: &Reference, reader: &mut Reader<'_>) -> Result<Fields, DecompressError> {
    let (first, second) = (reader.octet()?, reader.octet()?);
    let mut changes = Changes::default();
    let is_rtp = reference.is_rtp();
    let present = if is_rtp {
        read_rtp_flags(reference, second, &mut changes, reader)?
    } else {
        read_flags(reference, first, second, &mut changes, reader)?
    };
    changes.tos = present.tos.then(|| reader.octet()).transpose()?;
    changes.ttl = present.ttl.then(|| reader.octet()).transpose()?;
    changes.payload_type = present.payload_type.then(|| reader.octet()).transpose()?;
    if changes.payload_type.is_some_and(|octet| octet & 0x80 != 0) {
        return Err(DecompressError::Reserved { field: "the payload type" });
    }
    let msn = if is_rtp { read_variable(reader, 2)? } else { (u32::from(reader.octet()?), COUNTED_BITS) };
    // A sequence number has 16 bits.
    let msn = (low(msn.0, 16), msn.1.min(16));
    let behavior = changes.fragment.map_or(reference.id, |(_, id)| id);
    let id = match (behavior.has_offset(&reference.header), present.whole_id) {
        (true, true) => IdField::Whole(reader.word()?),
        (true, false) => IdField::Offset(u32::from(reader.octet()?), 8),
        (false, false) => IdField::Inferred,
        (false, true) => return Err(DecompressError::Reserved { field: "the indicator of the IP-ID" }),
    };
    let mut timestamp = TimestampField::Inferred;
    if is_rtp {
        let (value, bits) = read_variable(reader, 4)?;
        timestamp =
            if present.scaled { TimestampField::Scaled(value, bits) } else { TimestampField::Unscaled(value, bits) };
    }
    if present.stride {
        changes.stride = Some(read_variable(reader, 4)?.0);
    }
    if present.time_stride && read_variable(reader, 4)?.0 != 0 {
        return Err(DecompressError::Unsupported { feature: "timer-based compression of timestamps" });
    }
    Ok(Fields {
        crc: (Crc::Seven, first & 0x7f),
        control_crc: Some(second & 0x07),
        msn,
        id,
        timestamp,
        marker: is_rtp && first & 0x80 != 0,
        changes,
    })
}

/// Don't fragment and the behaviour of the IP-ID, which are the lowest bits of `flags`.
fn read_fragment(reference: &Reference, flags: u8) -> Result<(bool, IdBehavior), DecompressError> {
    // IPv6 has neither (§6.8.2.4).
    if !reference.header.is_v4() && flags & 0x07 != 2 {
        return Err(DecompressError::Reserved { field: "the flags of IPv6" });
    }
    Ok((flags & 0x04 != 0, IdBehavior::from_number(flags)))
}

/// `profile_1_7_flags1_enc` and `profile_1_flags2_enc`.
fn read_rtp_flags(
    reference: &Reference,
    second: u8,
    changes: &mut Changes,
    reader: &mut Reader<'_>,
) -> Result<Present, DecompressError> {
    let (mut ip, mut rtp) = (0, 0);
    if second & 0x80 != 0 {
        ip = reader.octet()?;
        changes.fragment = Some(read_fragment(reference, ip >> 2)?);
        changes.ratio = Some(ReorderRatio::of(ip));
    }
    if second & 0x40 != 0 {
        rtp = reader.octet()?;
        changes.rtp_flags = Some((rtp & 0x18) << 1);
    }
    let (scaled, stride) = (second & 0x20 != 0, second & 0x10 != 0);
    if ip & 0x80 != 0 || rtp & 0x07 != 0 || scaled && stride {
        return Err(DecompressError::Reserved { field: "the flags of co_common" });
    }
    if rtp & 0x80 != 0 {
        return Err(DecompressError::Unsupported { feature: "a list of contributing sources" });
    }
    Ok(Present {
        tos: ip & 0x20 != 0,
        ttl: ip & 0x40 != 0,
        payload_type: rtp & 0x40 != 0,
        whole_id: second & 0x08 != 0,
        scaled,
        stride,
        time_stride: rtp & 0x20 != 0,
    })
}

/// `profile_2_3_4_flags_enc`.
fn read_flags(
    reference: &Reference,
    first: u8,
    second: u8,
    changes: &mut Changes,
    reader: &mut Reader<'_>,
) -> Result<Present, DecompressError> {
    changes.ratio = Some(ReorderRatio::of(second >> 3));
    if second & 0x80 != 0 {
        let flags = reader.octet()?;
        if flags & 0x8f != 0 {
            return Err(DecompressError::Reserved { field: "the flags of co_common" });
        }
        changes.fragment = Some(read_fragment(reference, flags >> 4)?);
    }
    Ok(Present {
        tos: second & 0x20 != 0,
        ttl: second & 0x40 != 0,
        payload_type: false,
        whole_id: first & 0x80 != 0,
        scaled: false,
        stride: false,
        time_stride: false,
    })
}

/// The octet that begins the packet.
pub(super) const fn is_common(first: u8) -> bool {
    first == CO_COMMON
}
