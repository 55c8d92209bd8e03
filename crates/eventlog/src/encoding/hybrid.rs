//! The encoding of small numbers in runs and packed bits that Parquet uses for dictionary indices and levels
//! (*RLE/bit-packing hybrid*).

use super::varint;

/// Equal values from which on a run is written instead of packed bits. Packed bits come in groups of as many.
const GROUP: usize = 8;

/// Appends `values`, each of which has at most `width` bits. `width` is from 1 to 16.
pub fn encode(values: &[u16], width: u32, out: &mut Vec<u8>) {
    let (mut at, mut packed) = (0, 0);
    while let Some(&value) = values.get(at) {
        let run = values[at..].iter().take_while(|other| **other == value).count();
        if run < GROUP {
            at = values.len().min(at + GROUP);
            continue;
        }
        pack(&values[packed..at], width, out);
        varint((run as u64) << 1, out);
        out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
        at += run;
        packed = at;
    }
    pack(&values[packed..], width, out);
}

/// Appends groups of packed bits, the first value in the lowest bits, the last group filled up with zeros.
fn pack(values: &[u16], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    varint((values.len().div_ceil(GROUP) as u64) << 1 | 1, out);
    for group in values.chunks(GROUP) {
        // Eight values of at most 16 bits fill whole bytes: `width` of them. All bytes of the number are appended and
        // the others taken back, because a length that is known beforehand needs no call to copy.
        let end = out.len() + width as usize;
        if width <= 8 {
            let bits = group.iter().rev().fold(0u64, |bits, value| bits << width | u64::from(*value));
            out.extend_from_slice(&bits.to_le_bytes());
        } else {
            let bits = group.iter().rev().fold(0u128, |bits, value| bits << width | u128::from(*value));
            out.extend_from_slice(&bits.to_le_bytes());
        }
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values: &[u16], width: u32) -> Vec<u8> {
        let mut out = Vec::new();
        encode(values, width, &mut out);
        out
    }

    #[test]
    fn the_examples_of_the_specification() {
        // The numbers 1 to 7 of three bits are packed into 88 C6 FA.
        assert_eq!(encoded(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        // A run: its length in the upper bits of the header, then the value in whole bytes.
        assert_eq!(encoded(&[4; 100], 3), [0xC8, 0x01, 4]);
        assert_eq!(encoded(&[0x1FF; 8], 9), [16, 0xFF, 0x01]);
    }

    #[test]
    fn runs_and_packed_bits_alternate() {
        let values: Vec<u16> = [0, 1, 0].into_iter().chain([1; 20]).chain([0; 3]).collect();
        // One packed group takes the first five ones, a run the others; the rest is packed and filled up.
        assert_eq!(encoded(&values, 1), [0b11, 0b1111_1010, 30, 1, 0b11, 0]);
        assert!(encoded(&[], 1).is_empty());
    }
}
