//! Version 2 of the profiles: 0x0101 (RTP), 0x0102 (UDP) and 0x0104 (IP) of RFC 5225.
//!
//! | module | what | RFC 5225 |
//! | --- | --- | --- |
//! | [`formats`] | base headers with a fixed order of fields, as a table that both ends use | §6.8.2.4 |
//! | [`common`] | `co_common`, whose fields are optional | §6.8.2.4 |
//! | [`chains`] | static, dynamic and irregular chain | §6.8.2.4 |
//! | [`mod@reference`] | what a packet establishes, and how the next one is restored from it | §6.6 |
//! | [`compressor`] | the context at the compressor | §5.2.1 |
//! | [`decompressor`] | the context at the decompressor | §5.2.2 |
//!
//! The compressor sends the smallest packet that each of its last headers restores. It restores
//! them with the code of the decompressor.

mod chains;
mod common;
pub(crate) mod compressor;
pub(crate) mod decompressor;
mod formats;
mod reference;

use crate::error::DecompressError;
use crate::lsb::{Shift, low};
use crate::reader::Reader;

/// The first octet of a `co_repair` packet (§6.8.2.2).
pub(crate) const CO_REPAIR: u8 = 0xfb;
/// The first octet of a `co_common` packet.
const CO_COMMON: u8 = 0xfa;

/// Bits of the sequence number in the smallest packet.
const FEWEST_BITS: u32 = 4;
/// Packets that carry each change without reordering, as with version 1.
const REPEATS: u32 = crate::refresh::REPEATS;

/// Sequence numbers by which an IR or `co_repair` packet counts as late. With an earlier one, the
/// sender has begun again.
const LATE: u16 = 128;

/// Whether the sequence number `msn` comes before `other`.
const fn is_before(msn: u16, other: u16) -> bool {
    msn.wrapping_sub(other) > u16::MAX / 2
}

/// How much of the interval of the sequence number is for packets that arrive late (reorder_ratio,
/// §6.3.1): version 2 of the profiles restores them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReorderRatio {
    /// No packet is late, or by one.
    #[default]
    None,
    /// A quarter: up to 3 packets late.
    Quarter,
    /// Half: up to 7 packets late.
    Half,
    /// Three quarters: up to 11 packets late.
    ThreeQuarters,
}

impl ReorderRatio {
    /// The two bits that packets carry.
    const fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Quarter => 1,
            Self::Half => 2,
            Self::ThreeQuarters => 3,
        }
    }

    /// The ratio that these two bits mean.
    const fn of(number: u8) -> Self {
        match number & 0x03 {
            0 => Self::None,
            1 => Self::Quarter,
            2 => Self::Half,
            _ => Self::ThreeQuarters,
        }
    }

    /// The offset p of the interval of a sequence number with `bits` bits (`msn_lsb`, §6.6.8).
    const fn offset(self, bits: u32) -> u32 {
        let quarter = 1 << (bits - 2);
        match self {
            Self::None => 1,
            Self::Quarter => quarter - 1,
            Self::Half => 2 * quarter - 1,
            Self::ThreeQuarters => 3 * quarter - 1,
        }
    }

    /// Packets that may be missing at the decompressor when a later one arrives, lost ones and late
    /// ones together, and one more: each change is sent in as many packets.
    ///
    /// The smallest packet covers no more than its interval has ahead.
    pub const fn repeats(self) -> u32 {
        let late = match self {
            Self::None => 0,
            _ => self.offset(FEWEST_BITS),
        };
        let ahead = (1 << FEWEST_BITS) - 1 - self.offset(FEWEST_BITS);
        if REPEATS + late < ahead { REPEATS + late } else { ahead }
    }

    /// Packets by which a packet may be late.
    pub const fn late(self) -> u32 {
        self.offset(FEWEST_BITS)
    }
}

/// `lsb` with a quarter of its interval below the reference.
const fn quarter_below(bits: u32) -> Shift {
    Shift::Fixed((1 << (bits - 2)) - 1)
}

/// Lengths of a number of variable length (`sdvl`, §6.6.9), in bits of value.
const VARIABLE_BITS: [u32; 5] = [7, 14, 21, 28, 32];

/// Appends the lowest `bits` bits of `value`, one of [`VARIABLE_BITS`].
fn push_variable(out: &mut Vec<u8>, value: u32, bits: u32) {
    if bits < 32 {
        crate::lsb::push_sdvl(out, low(value, bits), bits);
    } else {
        out.push(0xff);
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends `value` in the shortest form.
fn push_variable_whole(out: &mut Vec<u8>, value: u32) {
    let bits = VARIABLE_BITS.into_iter().find(|bits| low(value, *bits) == value);
    push_variable(out, value, bits.unwrap_or(32));
}

/// Reads what [`push_variable`] appends: the value, and how many bits it has. The longest form has
/// a value of `octets` octets.
fn read_variable(reader: &mut Reader<'_>, octets: usize) -> Result<(u32, u32), DecompressError> {
    match reader.peek() {
        Some(0xff) => {
            reader.octet()?;
            let value = reader.take(octets)?.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
            Ok((value, 8 * octets as u32))
        }
        Some(0xf0..) => Err(DecompressError::Reserved { field: "a number of variable length" }),
        _ => {
            let (value, bits) = reader.sdvl()?;
            Ok((value, bits.min(28)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios() {
        let all = [ReorderRatio::None, ReorderRatio::Quarter, ReorderRatio::Half, ReorderRatio::ThreeQuarters];
        assert_eq!(all.map(|ratio| ratio.offset(4)), [1, 3, 7, 11]);
        assert_eq!(all.map(ReorderRatio::repeats), [4, 7, 8, 4]);
        assert!(all.into_iter().all(|ratio| ReorderRatio::of(ratio.number()) == ratio));
    }

    #[test]
    fn variable_lengths() {
        for value in [0, 127, 128, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000, 0xfff_ffff, 0x1000_0000, u32::MAX] {
            let mut out = Vec::new();
            push_variable_whole(&mut out, value);
            let bits = read_variable(&mut Reader::new(&out), 4).map(|(read, bits)| (read == value, bits >> 3));
            assert_eq!(bits, Ok((true, [0, 1, 2, 3, 4][out.len() - 1])), "{value}");
        }
        assert!(read_variable(&mut Reader::new(&[0xf0, 0, 0, 0, 0]), 4).is_err());
    }
}
