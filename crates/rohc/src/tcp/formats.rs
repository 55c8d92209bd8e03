//! Base headers of compressed packets (RFC 6846 §8.2): the fields of each, in their order.

use crate::crc::Crc;
use crate::lsb::{Shift, Width};

/// A field of a base header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Lowest bits of the sequence number.
    Sequence(Lsb),
    /// Four bits of the sequence number in units of the payload.
    ScaledSequence,
    /// Lowest bits of the acknowledgment number.
    Acknowledgment(Lsb),
    /// Four bits of the acknowledgment number in units of the stride.
    ScaledAcknowledgment,
    /// The window as it is.
    Window,
    /// Lowest bits of the window.
    WindowLsb,
    /// Lowest bits of the IP-ID less the master sequence number.
    IpId(Lsb),
    /// Four bits of the master sequence number.
    Msn,
    /// The flag PSH.
    Push,
    /// RST, SYN and FIN as an index.
    ResetSynFin,
    /// Three bits of the time to live.
    Ttl,
    /// Whether the irregular chain has bits of ECN.
    EcnUsed,
    /// Whether a list of options follows.
    List,
    /// The CRC of the header.
    Crc(Crc),
}

/// An LSB-encoded field: how many bits, and the offset p of its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lsb {
    pub(super) bits: u32,
    pub(super) shift: Shift,
    pub(super) width: Width,
}

impl Lsb {
    pub(super) const fn new(bits: u32, offset: u32, width: Width) -> Self {
        Self { bits, shift: Shift::Fixed(offset), width }
    }
}

pub(super) const MSN: Lsb = Lsb::new(4, 4, Width::Sixteen);
pub(super) const SCALED_SEQUENCE: Lsb = Lsb::new(4, 7, Width::ThirtyTwo);
pub(super) const SCALED_ACKNOWLEDGMENT: Lsb = Lsb::new(4, 3, Width::ThirtyTwo);
pub(super) const TTL: Lsb = Lsb::new(3, 3, Width::Eight);
pub(super) const WINDOW: Lsb = Lsb::new(15, 16383, Width::Sixteen);
/// Those of variable_length_32_enc, in `co_common`.
pub(super) const VARIABLE: [Lsb; 2] = [Lsb::new(8, 63, Width::ThirtyTwo), Lsb::new(16, 16383, Width::ThirtyTwo)];
/// The short form of optional_ip_id_lsb, in `co_common`.
pub(super) const SHORT_IP_ID: Lsb = Lsb::new(8, 3, Width::Sixteen);

impl Field {
    /// Its size.
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::Sequence(lsb) | Self::Acknowledgment(lsb) | Self::IpId(lsb) => lsb.bits,
            Self::ScaledSequence | Self::ScaledAcknowledgment | Self::Msn => 4,
            Self::Window => 16,
            Self::WindowLsb => 15,
            Self::Push | Self::EcnUsed | Self::List => 1,
            Self::ResetSynFin => 2,
            Self::Ttl | Self::Crc(Crc::Three) => 3,
            Self::Crc(Crc::Seven) => 7,
            Self::Crc(Crc::Eight) => 8,
        }
    }
}

/// A base header: the bits by which it is recognised, then its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) discriminator: u8,
    pub(super) discriminator_bits: u32,
    pub(super) fields: &'static [Field],
}

impl Format {
    const fn new(discriminator: u8, discriminator_bits: u32, fields: &'static [Field]) -> Self {
        Self { discriminator, discriminator_bits, fields }
    }

    /// Whether a packet whose first octet is `first` has it.
    pub(super) const fn begins_with(&self, first: u8) -> bool {
        first >> (8 - self.discriminator_bits) == self.discriminator
    }

    /// Its octets.
    pub(super) fn octets(&self) -> usize {
        let bits = self.discriminator_bits + self.fields.iter().map(|field| field.bits()).sum::<u32>();
        (bits / 8) as usize
    }

    pub(super) fn has(&self, is_kind: impl Fn(Field) -> bool) -> bool {
        self.fields.iter().any(|field| is_kind(*field))
    }

    /// Whether it carries the sequence number, scaled or not.
    pub(super) fn has_sequence(&self) -> bool {
        self.has(|field| matches!(field, Field::Sequence(_) | Field::ScaledSequence))
    }

    /// Whether it carries the acknowledgment number, scaled or not.
    pub(super) fn has_acknowledgment(&self) -> bool {
        self.has(|field| matches!(field, Field::Acknowledgment(_) | Field::ScaledAcknowledgment))
    }

    /// Whether it carries the window.
    pub(super) fn has_window(&self) -> bool {
        self.has(|field| matches!(field, Field::Window | Field::WindowLsb))
    }
}

const fn sequence(bits: u32, offset: u32) -> Field {
    Field::Sequence(Lsb::new(bits, offset, Width::ThirtyTwo))
}

const fn acknowledgment(bits: u32, offset: u32) -> Field {
    Field::Acknowledgment(Lsb::new(bits, offset, Width::ThirtyTwo))
}

const fn ip_id(bits: u32, offset: u32) -> Field {
    Field::IpId(Lsb::new(bits, offset, Width::Sixteen))
}

const CRC3: Field = Field::Crc(Crc::Three);
const CRC7: Field = Field::Crc(Crc::Seven);

/// The first octet of `co_common`, without ttl_hopl_outer_flag.
pub(super) const CO_COMMON: u8 = 0xfa;

/// The formats of a flow whose IP-ID is not sequential, `rnd_1` to `rnd_8`, the smallest first.
pub(super) const RANDOM: [Format; 8] = {
    use Field::{EcnUsed, List, Msn, Push, ResetSynFin, ScaledAcknowledgment, ScaledSequence, Ttl, Window};
    [
        // rnd_2
        Format::new(0b1100, 4, &[ScaledSequence, Msn, Push, CRC3]),
        // rnd_4
        Format::new(0b1101, 4, &[ScaledAcknowledgment, Msn, Push, CRC3]),
        // rnd_3
        Format::new(0b0, 1, &[acknowledgment(15, 8191), Msn, Push, CRC3]),
        // rnd_1
        Format::new(0b10_1110, 6, &[sequence(18, 65535), Msn, Push, CRC3]),
        // rnd_6
        Format::new(0b1010, 4, &[CRC3, Push, acknowledgment(16, 16383), Msn, ScaledSequence]),
        // rnd_5
        Format::new(0b100, 3, &[Push, Msn, CRC3, sequence(14, 8191), acknowledgment(15, 8191)]),
        // rnd_7
        Format::new(0b10_1111, 6, &[acknowledgment(18, 65535), Window, Msn, Push, CRC3]),
        // rnd_8
        Format::new(
            0b1_0110,
            5,
            &[ResetSynFin, List, CRC7, Msn, Push, Ttl, EcnUsed, sequence(16, 65535), acknowledgment(16, 16383)],
        ),
    ]
};

/// The formats of a flow whose IP-ID is sequential, `seq_1` to `seq_8`, the smallest first.
pub(super) const SEQUENTIAL: [Format; 8] = {
    use Field::{EcnUsed, List, Msn, Push, ResetSynFin, ScaledAcknowledgment, ScaledSequence, Ttl, WindowLsb};
    [
        // seq_4
        Format::new(0b0, 1, &[ScaledAcknowledgment, ip_id(3, 1), Msn, Push, CRC3]),
        // seq_2
        Format::new(0b1_1010, 5, &[ip_id(7, 3), ScaledSequence, Msn, Push, CRC3]),
        // seq_1
        Format::new(0b1010, 4, &[ip_id(4, 3), sequence(16, 32767), Msn, Push, CRC3]),
        // seq_3
        Format::new(0b1001, 4, &[ip_id(4, 3), acknowledgment(16, 16383), Msn, Push, CRC3]),
        // seq_6
        Format::new(0b1_1011, 5, &[ScaledSequence, ip_id(7, 3), acknowledgment(16, 16383), Msn, Push, CRC3]),
        // seq_5
        Format::new(0b1000, 4, &[ip_id(4, 3), acknowledgment(16, 16383), sequence(16, 32767), Msn, Push, CRC3]),
        // seq_7
        Format::new(0b1100, 4, &[WindowLsb, ip_id(5, 3), acknowledgment(16, 32767), Msn, Push, CRC3]),
        // seq_8
        Format::new(
            0b1011,
            4,
            &[
                ip_id(4, 3),
                List,
                CRC7,
                Msn,
                Push,
                Ttl,
                EcnUsed,
                acknowledgment(15, 8191),
                ResetSynFin,
                sequence(14, 8191),
            ],
        ),
    ]
};

/// The formats for this behaviour of the IP-ID.
pub(super) const fn formats(has_sequential_id: bool) -> &'static [Format; 8] {
    if has_sequential_id { &SEQUENTIAL } else { &RANDOM }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_first_octet_has_at_most_one_format_and_sizes_are_those_of_the_rfc() {
        for formats in [&RANDOM, &SEQUENTIAL] {
            for first in 0..=255 {
                let found = formats.iter().filter(|format| format.begins_with(first)).count();
                // 0xe0 to 0xff belong to the framework, and to IR, IR-DYN and co_common.
                assert_eq!(found, usize::from(first < 0xe0), "{first:#04x}");
            }
        }
        let octets = |formats: &[Format]| formats.iter().map(Format::octets).collect::<Vec<_>>();
        assert_eq!(octets(&RANDOM), [2, 2, 3, 4, 4, 5, 6, 7]);
        assert_eq!(octets(&SEQUENTIAL), [2, 3, 4, 4, 5, 6, 6, 7]);
        for format in RANDOM.iter().chain(&SEQUENTIAL) {
            let bits = format.discriminator_bits + format.fields.iter().map(|field| field.bits()).sum::<u32>();
            assert_eq!(bits % 8, 0, "{format:?}");
        }
    }
}
