//! What a packet establishes at both ends, and how the next header is restored from it.

use super::{ReorderRatio, quarter_below};
use crate::crc::Crc;
use crate::error::DecompressError;
use crate::header::Header;
use crate::ip_id::IdBehavior;
use crate::lsb::{Shift, Width, decode, low};
use crate::profile::Profile;
use crate::scaling::scale;

/// The stride of timestamps that no packet has brought (TS_STRIDE_DEFAULT).
pub(super) const DEFAULT_STRIDE: u32 = 160;
/// Bits of RTP that `co_common` carries: padding and extension.
const RTP_FLAGS: u8 = 0x30;

/// A header, and the control fields (RFC 5225 §6.3) that belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reference {
    pub(super) header: Header,
    /// The master sequence number; that of RTP, if there is one.
    pub(super) msn: u16,
    pub(super) ratio: ReorderRatio,
    /// How much the timestamp of RTP grows with the sequence number.
    pub(super) stride: u32,
    pub(super) id: IdBehavior,
    /// Whether packets carry a UDP checksum.
    pub(super) has_checksum: bool,
}

/// The fields of a compressed packet in front of the irregular chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// The CRC of the original header.
    pub(super) crc: (Crc, u8),
    /// The CRC of the control fields.
    pub(super) control_crc: Option<u8>,
    /// Lowest bits of the sequence number, and how many.
    pub(super) msn: (u32, u32),
    pub(super) id: IdField,
    pub(super) timestamp: TimestampField,
    /// The marker of RTP, which is 0 where a packet has no bit for it.
    pub(super) marker: bool,
    pub(super) changes: Changes,
}

impl Fields {
    /// None so far: the IP-ID and the timestamp are inferred, and nothing changes.
    pub(super) fn none() -> Self {
        Self {
            crc: (Crc::Three, 0),
            control_crc: None,
            msn: (0, 0),
            id: IdField::Inferred,
            timestamp: TimestampField::Inferred,
            marker: false,
            changes: Changes::default(),
        }
    }
}

/// How a packet carries a sequential IP-ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IdField {
    /// It grows as the sequence number does (`inferred_sequential_ip_id`).
    #[default]
    Inferred,
    /// Lowest bits of its difference from the sequence number, and how many (`ip_id_lsb`).
    Offset(u32, u32),
    /// As it is.
    Whole(u16),
}

/// How a packet carries the timestamp of RTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TimestampField {
    /// It grows by a stride with each sequence number (`inferred_scaled_field`).
    #[default]
    Inferred,
    /// Lowest bits in strides, and how many (`scaled_ts_lsb`).
    Scaled(u32, u32),
    /// Lowest bits, and how many.
    Unscaled(u32, u32),
}

/// What only `co_common` carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) tos: Option<u8>,
    pub(super) ttl: Option<u8>,
    /// Don't fragment, and the behaviour of the IP-ID.
    pub(super) fragment: Option<(bool, IdBehavior)>,
    pub(super) ratio: Option<ReorderRatio>,
    pub(super) payload_type: Option<u8>,
    /// Padding and extension of RTP.
    pub(super) rtp_flags: Option<u8>,
    pub(super) stride: Option<u32>,
}

/// The fields that every compressed packet carries as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Irregular {
    pub(super) id: u16,
    pub(super) checksum: u16,
}

impl Reference {
    /// One with this header, without any control field.
    pub(super) const fn new(header: Header) -> Self {
        let (ratio, id) = (ReorderRatio::None, IdBehavior::Random);
        Self { header, msn: 0, ratio, stride: DEFAULT_STRIDE, id, has_checksum: false }
    }

    pub(super) fn is_rtp(&self) -> bool {
        self.header.profile == Profile::Rtp
    }

    /// The difference of the IP-ID from the sequence number.
    pub(super) const fn id_offset(&self) -> u16 {
        self.id.offset(self.header.id(), self.msn)
    }

    /// The timestamp in strides.
    pub(super) fn scaled_timestamp(&self) -> u32 {
        scale(self.header.timestamp(), self.stride).0
    }

    /// Padding and extension of RTP.
    pub(super) fn rtp_flags(&self) -> u8 {
        self.header.rtp_flags() & RTP_FLAGS
    }

    /// The CRC of the header, as it is (`crc3` and `crc7` of THIS.UVALUE).
    pub(super) fn crc(&self, crc: Crc) -> u8 {
        crc.of(self.header.as_bytes())
    }

    /// The CRC of the control fields (`control_crc3_encoding`, §6.6.11). Only an IPv4 header has a
    /// behaviour of the IP-ID (erratum 2703).
    pub(super) fn control_crc(&self) -> u8 {
        let crc = Crc::Three;
        let mut value = crc.update(crc.initial(), &[self.ratio.number()]);
        if self.is_rtp() {
            value = crc.update(value, &self.stride.to_be_bytes());
            // TIME_STRIDE: timestamps are not compressed by the time.
            value = crc.update(value, &[0; 4]);
        } else {
            value = crc.update(value, &self.msn.to_be_bytes());
        }
        if self.header.is_v4() {
            value = crc.update(value, &[self.id.number(&self.header)]);
        }
        value
    }

    /// The sequence number of a packet whose interval begins relative to this reference.
    pub(super) fn msn_of(&self, fields: &Fields) -> u16 {
        let (value, bits) = fields.msn;
        let ratio = fields.changes.ratio.unwrap_or(self.ratio);
        decode(u32::from(self.msn), value, bits, Shift::Fixed(ratio.offset(bits)), Width::Sixteen) as u16
    }

    /// Whether compressed packets carry an IP-ID as it is.
    pub(super) fn has_random_id(&self, fields: &Fields) -> bool {
        self.header.is_v4() && self.id_after(fields) == IdBehavior::Random
    }

    fn id_after(&self, fields: &Fields) -> IdBehavior {
        fields.changes.fragment.map_or(self.id, |(_, id)| id)
    }

    /// Restores the header of the packet with the sequence number `msn` and `payload` bytes behind
    /// its headers.
    pub(super) fn restore(
        &self,
        fields: &Fields,
        msn: u16,
        irregular: Irregular,
        payload: usize,
    ) -> Result<Self, DecompressError> {
        let mut next = *self;
        next.msn = msn;
        next.apply(&fields.changes);
        if self.header.is_v4() {
            next.header.set_id(self.restored_id(next.id, fields.id, msn, irregular.id));
        }
        if self.has_checksum {
            next.header.set_udp_checksum(irregular.checksum);
        }
        if self.is_rtp() {
            next.header.set_sequence(msn);
            next.header.set_marker(fields.marker);
            next.header.set_timestamp(self.restored_timestamp(fields.timestamp, msn)?);
        }
        next.complete(payload)?;
        Ok(next)
    }

    fn apply(&mut self, changes: &Changes) {
        let Changes { tos, ttl, fragment, ratio, payload_type, rtp_flags, stride } = *changes;
        let header = &mut self.header;
        header.set_tos(tos.unwrap_or_else(|| header.tos()));
        header.set_ttl(ttl.unwrap_or_else(|| header.ttl()));
        if let Some((dont_fragment, id)) = fragment {
            header.set_dont_fragment(dont_fragment);
            self.id = id;
        }
        if let Some(payload_type) = payload_type {
            header.set_payload_type(payload_type);
        }
        if let Some(flags) = rtp_flags {
            header.set_rtp_flags(header.rtp_flags() & !RTP_FLAGS | flags);
        }
        self.ratio = ratio.unwrap_or(self.ratio);
        self.stride = stride.unwrap_or(self.stride);
    }

    fn restored_id(&self, id: IdBehavior, field: IdField, msn: u16, irregular: u16) -> u16 {
        match (id, field) {
            (IdBehavior::Random, _) => irregular,
            (IdBehavior::Constant, _) => 0,
            (_, IdField::Whole(whole)) => whole,
            (_, IdField::Inferred) => id.id(id.offset(self.header.id(), self.msn), msn),
            (_, IdField::Offset(value, bits)) => {
                let reference = u32::from(id.offset(self.header.id(), self.msn));
                id.id(decode(reference, value, bits, quarter_below(bits), Width::Sixteen) as u16, msn)
            }
        }
    }

    fn restored_timestamp(&self, field: TimestampField, msn: u16) -> Result<u32, DecompressError> {
        let last = self.header.timestamp();
        match field {
            TimestampField::Inferred => {
                let step = i32::from(msn.wrapping_sub(self.msn) as i16);
                Ok(last.wrapping_add_signed((self.stride as i32).wrapping_mul(step)))
            }
            TimestampField::Unscaled(value, bits) => {
                Ok(decode(last, value, bits, quarter_below(bits), Width::ThirtyTwo))
            }
            TimestampField::Scaled(..) if self.stride == 0 => {
                Err(DecompressError::Reserved { field: "a scaled timestamp without a stride" })
            }
            TimestampField::Scaled(value, bits) => {
                let (scaled, residue) = scale(last, self.stride);
                let scaled = decode(scaled, value, bits, quarter_below(bits), Width::ThirtyTwo);
                Ok(scaled.wrapping_mul(self.stride).wrapping_add(residue))
            }
        }
    }

    /// Completes the header by the length of the payload.
    pub(super) fn complete(&mut self, payload: usize) -> Result<(), DecompressError> {
        let length = self.header.length() + payload;
        if length > usize::from(u16::MAX) {
            return Err(DecompressError::Unsupported { feature: "a packet of more than 65535 bytes" });
        }
        self.header.infer(length);
        Ok(())
    }

    /// What the irregular chain carries.
    pub(super) fn irregular(&self) -> Irregular {
        Irregular { id: self.header.id(), checksum: self.header.udp_checksum() }
    }

    /// The lowest bits of the sequence number.
    pub(super) const fn msn_bits(&self, bits: u32) -> (u32, u32) {
        (low(self.msn as u32, bits), bits)
    }
}
