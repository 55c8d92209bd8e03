//! Run-length and bit-packed encoding of small numbers, which Parquet uses for dictionary indices
//! and levels (*RLE/bit-packing hybrid*).

use super::varint;

/// Values that are compared together: this number of equal ones, aligned to a multiple of it,
/// starts a run. Bit-packed groups have the same size.
const GROUP: usize = 8;

/// A number of 16 or 32 bits.
pub trait Code: Copy + Default + PartialEq + Into<u32> {}

impl Code for u16 {}
impl Code for u32 {}

/// Appends `values` of at most `width` bits each. `width` is from 1 to 24.
pub fn encode<T: Code>(values: &[T], width: u32, out: &mut Vec<u8>) {
    let (mut at, mut packed) = (0, 0);
    while let Some(group) = values.get(at..at + GROUP) {
        if !are_equal(group) {
            at += GROUP;
            continue;
        }
        let value = group[0];
        let whole = values[at..].chunks_exact(GROUP).take_while(|group| **group == [value; GROUP]).count() * GROUP;
        // Equal values after the last whole group belong to the run: packed, they would be padded.
        let rest = &values[at + whole..];
        let ends_so = rest.len() < GROUP && rest.iter().all(|other| *other == value);
        let run = if ends_so { whole + rest.len() } else { whole };
        pack(&values[packed..at], width, out);
        varint((run as u64) << 1, out);
        out.extend_from_slice(&value.into().to_le_bytes()[..width.div_ceil(8) as usize]);
        at += run;
        packed = at;
    }
    pack(&values[packed..], width, out);
}

/// Whether all values are equal. A full comparison is cheaper than to stop at the first difference.
#[inline]
fn are_equal<T: Code>(values: &[T]) -> bool {
    let first = values[0].into();
    values.iter().fold(0, |difference, value| difference | ((*value).into() ^ first)) == 0
}

/// Appends bit-packed groups, the first value in the lowest bits, the last group padded with zeros.
fn pack<T: Code>(values: &[T], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    varint((values.len().div_ceil(GROUP) as u64) << 1 | 1, out);
    let groups = values.chunks_exact(GROUP);
    let mut last = [T::default(); GROUP];
    last[..groups.remainder().len()].copy_from_slice(groups.remainder());
    let last = (!groups.remainder().is_empty()).then_some(&last[..]);
    for group in groups.chain(last) {
        // Eight values fill `width` whole bytes. All bytes of the number are
        // appended and the excess truncated, because a constant length avoids a call to copy.
        let end = out.len() + width as usize;
        // Pairs first: they are independent for the processor.
        let bits = |at: usize| u64::from(group[at].into());
        let pair = |at: usize| bits(at) | bits(at + 1) << width;
        if width > 16 {
            pack_wide(group, width, out);
            continue;
        }
        let four = |at: usize| pair(at) | pair(at + 2) << (2 * width);
        if width <= 8 {
            out.extend_from_slice(&(four(0) | four(4) << (4 * width)).to_le_bytes());
        } else {
            out.extend_from_slice(&(u128::from(four(0)) | u128::from(four(4)) << (4 * width)).to_le_bytes());
        }
        out.truncate(end);
    }
}

/// Appends eight values of more than 16 bits.
#[cold]
fn pack_wide<T: Code>(group: &[T], width: u32, out: &mut Vec<u8>) {
    let (mut bits, mut filled) = (0_u64, 0);
    for value in group {
        bits |= u64::from((*value).into()) << filled;
        filled += width;
        while filled >= 8 {
            out.push(bits as u8);
            (bits, filled) = (bits >> 8, filled - 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded<T: Code>(values: &[T], width: u32) -> Vec<u8> {
        let mut out = Vec::new();
        encode(values, width, &mut out);
        out
    }

    #[test]
    fn the_examples_of_the_specification() {
        // The numbers 1 to 7 of three bits are packed into 88 C6 FA.
        assert_eq!(encoded(&[0_u16, 1, 2, 3, 4, 5, 6, 7], 3), [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        // A run: its length in the upper bits of the header, then the value in whole bytes.
        assert_eq!(encoded(&[4_u16; 100], 3), [0xC8, 0x01, 4]);
        assert_eq!(encoded(&[0x1FF_u16; 8], 9), [16, 0xFF, 0x01]);
    }

    #[test]
    fn runs_and_packed_bits_alternate() {
        let values: Vec<u16> = [0, 1, 0].into_iter().chain([1; 20]).chain([0; 3]).collect();
        // One packed group has the first five ones, a run those of whole groups; the remainder is
        // packed and padded.
        assert_eq!(encoded(&values, 1), [0b11, 0b1111_1010, 16, 1, 0b101, 0b0111_1111, 0]);
        assert!(encoded::<u16>(&[], 1).is_empty());
    }

    #[test]
    fn all_bits_of_the_widest_are_packed() {
        let values: [u16; 8] = std::array::from_fn(|index| 0xFFFF - index as u16);
        let expected: Vec<u8> = [0b11].into_iter().chain(values.iter().flat_map(|value| value.to_le_bytes())).collect();
        assert_eq!(encoded(&values, 16), expected);
    }

    #[test]
    fn values_of_more_than_16_bits_are_packed() {
        // Eight values of 17 bits: the first in the lowest bits.
        let values: [u32; 8] = std::array::from_fn(|index| 0x1_0000 | index as u32);
        let all = values.iter().rev().fold([0_u64; 3], |[low, middle, high], value| {
            [low << 17 | u64::from(*value), middle << 17 | low >> 47, high << 17 | middle >> 47]
        });
        let bytes: Vec<u8> = all.iter().flat_map(|word| word.to_le_bytes()).take(17).collect();
        assert_eq!(encoded(&values, 17), [&[0b11], &bytes[..]].concat());
        assert_eq!(encoded(&[0x1_2345_u32; 8], 17), [16, 0x45, 0x23, 0x01]);
    }
}
