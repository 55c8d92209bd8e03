//! Base headers with a fixed order of fields (RFC 5225 §6.8.2.4).

use super::reference::{Fields, IdField, Reference, TimestampField};
use crate::crc::Crc;
use crate::error::DecompressError;
use crate::framework::Config;
use crate::ip_id::IdBehavior;
use crate::lsb::low;
use crate::profile::Profile;
use crate::reader::Reader;

/// A field of a base header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// Lowest bits of the master sequence number.
    Msn(u32),
    /// Lowest bits of the IP-ID less the master sequence number.
    Id(u32),
    /// Lowest bits of the timestamp in strides.
    Timestamp(u32),
    /// The marker of RTP.
    Marker,
    /// The CRC of the header.
    Crc(Crc),
}

impl Field {
    const fn bits(self) -> u32 {
        match self {
            Self::Msn(bits) | Self::Id(bits) | Self::Timestamp(bits) => bits,
            Self::Marker => 1,
            Self::Crc(Crc::Three) => 3,
            Self::Crc(Crc::Seven) => 7,
            Self::Crc(Crc::Eight) => 8,
        }
    }
}

/// A base header: the discriminator, how many bits it has, and the fields behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    discriminator: u32,
    bits: u32,
    fields: &'static [Field],
}

const fn format(discriminator: u32, bits: u32, fields: &'static [Field]) -> Format {
    Format { discriminator, bits, fields }
}

const CRC3: Field = Field::Crc(Crc::Three);
const CRC7: Field = Field::Crc(Crc::Seven);

// Of all profiles, then of 0x0102 and 0x0104, then of 0x0101.
const PT_0_CRC3: Format = format(0, 1, &[Field::Msn(4), CRC3]);
const PT_0_CRC7: Format = format(0b100, 3, &[Field::Msn(6), CRC7]);
const PT_1_SEQ_ID: Format = format(0b101, 3, &[CRC3, Field::Msn(6), Field::Id(4)]);
const PT_2_SEQ_ID: Format = format(0b110, 3, &[Field::Id(6), CRC7, Field::Msn(8)]);
const RTP_PT_0_CRC7: Format = format(0b1000, 4, &[Field::Msn(5), CRC7]);
const RTP_PT_1_SEQ_ID: Format = format(0b1001, 4, &[Field::Id(4), Field::Msn(5), CRC3]);
const RTP_PT_1_TS: Format = format(0b101, 3, &[Field::Marker, Field::Msn(4), Field::Timestamp(5), CRC3]);
const RTP_PT_2_RND: Format = format(0b110, 3, &[Field::Msn(7), Field::Timestamp(6), Field::Marker, CRC7]);
const RTP_PT_2_SEQ_ID: Format = format(0b1_1000, 5, &[Field::Msn(7), Field::Id(5), CRC7]);
const RTP_PT_2_SEQ_BOTH: Format =
    format(0b1_1001, 5, &[Field::Msn(7), Field::Id(5), CRC7, Field::Timestamp(7), Field::Marker]);
const RTP_PT_2_SEQ_TS: Format = format(0b1101, 4, &[Field::Msn(7), Field::Timestamp(5), Field::Marker, CRC7]);

const COUNTED_RANDOM: [Format; 2] = [PT_0_CRC3, PT_0_CRC7];
const COUNTED_SEQUENTIAL: [Format; 4] = [PT_0_CRC3, PT_0_CRC7, PT_1_SEQ_ID, PT_2_SEQ_ID];
/// `pt_1_rnd` has the bits of `pt_1_seq_ts`.
const RTP_RANDOM: [Format; 4] = [PT_0_CRC3, RTP_PT_0_CRC7, RTP_PT_1_TS, RTP_PT_2_RND];
const RTP_SEQUENTIAL: [Format; 7] =
    [PT_0_CRC3, RTP_PT_0_CRC7, RTP_PT_1_SEQ_ID, RTP_PT_1_TS, RTP_PT_2_SEQ_ID, RTP_PT_2_SEQ_TS, RTP_PT_2_SEQ_BOTH];

/// The base headers of a profile whose IP-ID is sequential or not, the smallest first.
pub(super) const fn formats(profile: Profile, is_sequential: bool) -> &'static [Format] {
    match (profile, is_sequential) {
        (Profile::Rtp, true) => &RTP_SEQUENTIAL,
        (Profile::Rtp, false) => &RTP_RANDOM,
        (_, true) => &COUNTED_SEQUENTIAL,
        (_, false) => &COUNTED_RANDOM,
    }
}

impl Format {
    /// The fields that it carries of a packet. Without a marker it fits none that is marked.
    pub(super) fn fields(&self, target: &Reference) -> Option<Fields> {
        let mut fields = Fields::none();
        for field in self.fields {
            match *field {
                Field::Msn(bits) => fields.msn = target.msn_bits(bits),
                Field::Id(bits) => fields.id = IdField::Offset(low(u32::from(target.id_offset()), bits), bits),
                Field::Timestamp(bits) => {
                    fields.timestamp = TimestampField::Scaled(low(target.scaled_timestamp(), bits), bits);
                }
                Field::Marker => fields.marker = target.header.marker(),
                Field::Crc(crc) => fields.crc = (crc, target.crc(crc)),
            }
        }
        let is_marked = target.is_rtp() && target.header.marker();
        (fields.marker == is_marked).then_some(fields)
    }

    /// Its bits.
    fn bits(&self) -> u32 {
        self.bits + self.fields.iter().map(|field| field.bits()).sum::<u32>()
    }

    /// Appends its octets with these fields, the first of them in the highest bits.
    pub(super) fn push(&self, fields: &Fields, config: &Config, cid: u16, out: &mut Vec<u8>) {
        let mut value = self.discriminator;
        for field in self.fields {
            let bits = match (field, fields.id, fields.timestamp) {
                (Field::Msn(_), ..) => fields.msn.0,
                (Field::Id(_), IdField::Offset(value, _), _) => value,
                (Field::Timestamp(_), _, TimestampField::Scaled(value, _)) => value,
                (Field::Marker, ..) => u32::from(fields.marker),
                (Field::Crc(_), ..) => u32::from(fields.crc.1),
                (Field::Id(_) | Field::Timestamp(_), ..) => 0,
            };
            value = value << field.bits() | bits;
        }
        let octets = value.to_be_bytes();
        let octets = &octets[octets.len() - self.bits() as usize / 8..];
        config.begin(out, cid, octets[0]);
        out.extend_from_slice(&octets[1..]);
    }

    /// The fields of a packet that begins with `first`.
    fn read(&self, first: u8, reader: &mut Reader<'_>) -> Result<Fields, DecompressError> {
        let count = self.bits();
        let rest = reader.take(count as usize / 8 - 1)?;
        let value = rest.iter().fold(u32::from(first), |value, octet| value << 8 | u32::from(*octet));
        let mut fields = Fields::none();
        let mut left = count - self.bits;
        for field in self.fields {
            left -= field.bits();
            let bits = low(value >> left, field.bits());
            match *field {
                Field::Msn(count) => fields.msn = (bits, count),
                Field::Id(count) => fields.id = IdField::Offset(bits, count),
                Field::Timestamp(count) => fields.timestamp = TimestampField::Scaled(bits, count),
                Field::Marker => fields.marker = bits != 0,
                Field::Crc(crc) => fields.crc = (crc, bits as u8),
            }
        }
        Ok(fields)
    }
}

/// Reads the base header that begins with `first`, of a context with the IP-ID behaviour `id`.
pub(super) fn read(
    reference: &Reference,
    id: IdBehavior,
    first: u8,
    reader: &mut Reader<'_>,
) -> Result<Fields, DecompressError> {
    let has_discriminator = |format: &&Format| u32::from(first) >> (8 - format.bits) == format.discriminator;
    let formats = formats(reference.header.profile, id.has_offset(&reference.header));
    let format = formats.iter().find(has_discriminator).ok_or(DecompressError::Type { octet: first })?;
    format.read(first, reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of RFC 5225 §6.8.2.4 in octets, and no bit left over.
    #[test]
    fn sizes() {
        let sizes = |formats: &[Format]| formats.iter().map(Format::bits).collect::<Vec<_>>();
        assert_eq!(sizes(&COUNTED_SEQUENTIAL), [8, 16, 16, 24]);
        assert_eq!(sizes(&RTP_RANDOM), [8, 16, 16, 24]);
        assert_eq!(sizes(&RTP_SEQUENTIAL), [8, 16, 16, 16, 24, 24, 32]);
    }

    /// No octet begins two formats of one context, nor what the framework has.
    #[test]
    fn discriminators_are_unambiguous() {
        for formats in [&COUNTED_RANDOM[..], &COUNTED_SEQUENTIAL, &RTP_RANDOM, &RTP_SEQUENTIAL] {
            for first in 0..=255_u32 {
                let matching = formats.iter().filter(|format| first >> (8 - format.bits) == format.discriminator);
                assert!(matching.count() <= usize::from(first < 0xe0), "{first:#x}");
            }
        }
    }
}
