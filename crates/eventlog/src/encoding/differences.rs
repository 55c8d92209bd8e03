//! Delta encoding of numbers (`DELTA_BINARY_PACKED`): small where they rise steadily or are
//! constant.

use super::varint;

/// Number of differences with one common minimum.
const BLOCK: usize = 128;
/// Number of differences with one common bit width.
const MINIBLOCK: usize = 32;

/// Appends `values`.
pub fn encode(values: &[i64], out: &mut Vec<u8>) {
    varint(BLOCK as u64, out);
    varint((BLOCK / MINIBLOCK) as u64, out);
    varint(values.len() as u64, out);
    signed(values.first().copied().unwrap_or(0), out);
    let mut differences = [0; BLOCK];
    let mut at = 1;
    while at < values.len() {
        let count = BLOCK.min(values.len() - at);
        let pairs = values[at - 1..].iter().zip(&values[at..]);
        for (difference, (before, value)) in differences.iter_mut().zip(pairs) {
            *difference = value.wrapping_sub(*before);
        }
        block(&mut differences, count, out);
        at += count;
    }
}

/// Appends the first `count` differences, relative to their minimum.
fn block(differences: &mut [i64; BLOCK], count: usize, out: &mut Vec<u8>) {
    // Padding does not lower the minimum, and is packed as zeros.
    let first = differences[0];
    differences[count..].fill(first);
    let least = least(differences);
    signed(least, out);
    differences[count..].fill(least);
    let widths = out.len();
    out.extend_from_slice(&[0; BLOCK / MINIBLOCK]);
    for (index, miniblock) in differences.chunks(MINIBLOCK).enumerate() {
        let all = miniblock.iter().fold(0, |all, difference| all | difference.wrapping_sub(least) as u64);
        let width = u64::BITS - all.leading_zeros();
        out[widths + index] = width as u8;
        if width > 0 {
            pack(miniblock, least, width, out);
        }
    }
}

/// The minimum: of each of four columns first, which are independent for the processor.
fn least(differences: &[i64; BLOCK]) -> i64 {
    let mut columns = [i64::MAX; 4];
    for row in differences.chunks_exact(4) {
        for (least, difference) in columns.iter_mut().zip(row) {
            *least = (*least).min(*difference);
        }
    }
    columns.into_iter().fold(i64::MAX, i64::min)
}

/// Appends the differences of a miniblock relative to `least`, in `width` bits, the first in the
/// lowest bits.
fn pack(differences: &[i64], least: i64, width: u32, out: &mut Vec<u8>) {
    let value = |index: usize| differences[index].wrapping_sub(least) as u64;
    let mut packed = Packed { bytes: [0; MINIBLOCK * size_of::<u64>()], words: 0, word: 0, filled: 0 };
    // As many values at a time as fit a word: the values of a group are independent for the
    // processor.
    if width <= 16 {
        for at in (0..MINIBLOCK).step_by(4) {
            let pair = |at| value(at) | value(at + 1) << width;
            packed.push(pair(at) | pair(at + 2) << (2 * width), 4 * width);
        }
    } else if width <= 32 {
        (0..MINIBLOCK).step_by(2).for_each(|at| packed.push(value(at) | value(at + 1) << width, 2 * width));
    } else {
        (0..MINIBLOCK).for_each(|at| packed.push(value(at), width));
    }
    // A miniblock of 32 values ends with a whole word, or with the lower half of one.
    if packed.filled > 0 {
        packed.end_word();
    }
    out.extend_from_slice(&packed.bytes[..MINIBLOCK / 8 * width as usize]);
}

/// Accumulates bits into words.
struct Packed {
    bytes: [u8; MINIBLOCK * size_of::<u64>()],
    words: usize,
    word: u64,
    filled: u32,
}

impl Packed {
    /// Adds the lowest `bits` bits of `value`; the others are zero.
    #[inline]
    fn push(&mut self, value: u64, bits: u32) {
        self.word |= value << self.filled;
        self.filled += bits;
        if self.filled >= u64::BITS {
            self.end_word();
            self.filled -= u64::BITS;
            // The upper bits of the value that did not fit: none, if it filled the word.
            self.word = value.checked_shr(bits - self.filled).unwrap_or(0);
        }
    }

    fn end_word(&mut self) {
        self.bytes[self.words * 8..][..8].copy_from_slice(&self.word.to_le_bytes());
        self.words += 1;
    }
}

/// Appends a number so that small ones of either sign are short (*zigzag*).
fn signed(value: i64, out: &mut Vec<u8>) {
    varint((value << 1 ^ value >> (i64::BITS - 1)) as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values: &[i64]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(values, &mut out);
        out
    }

    /// The header: 128 differences per block, in 4 miniblocks; the count; the first value, zigzag.
    #[test]
    fn the_first_value_needs_no_block() {
        assert_eq!(encoded(&[]), [0x80, 1, 4, 0, 0]);
        assert_eq!(encoded(&[-3]), [0x80, 1, 4, 1, 5]);
    }

    /// The examples of the specification, except for its block size of 8.
    #[test]
    fn the_examples_of_the_specification() {
        // Differences of 1, each 0 above the minimum: no bits.
        assert_eq!(encoded(&[1, 2, 3, 4, 5]), [0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        // Differences -2 -2 -2 1 2 3 3 with the minimum -2: 0 0 0 3 4 5 5 in three bits, padded to
        // 32.
        let mut expected = vec![0x80, 1, 4, 8, 14, 3, 3, 0, 0, 0];
        expected.extend([0b0000_0000, 0b1100_0110, 0b0001_0110, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        expected[10..13].copy_from_slice(&(3u32 << 9 | 4 << 12 | 5 << 15 | 5 << 18).to_le_bytes()[..3]);
        assert_eq!(encoded(&[7, 5, 3, 1, 2, 4, 7, 10]), expected);
    }

    /// Differences of every width parse back as specified: the first in the lowest bits.
    #[test]
    fn all_widths_are_packed() {
        for width in 1..=63 {
            let steps = (0..32u64).map(|index| index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - width));
            let steps: Vec<u64> = steps.map(|step| step | 1 << (width - 1)).collect();
            let mut differences: Vec<i64> = steps.iter().map(|step| *step as i64).collect();
            differences[7] = 0;
            let mut out = Vec::new();
            pack(&differences, 0, width as u32, &mut out);
            assert_eq!(out.len(), 4 * width);
            for (index, difference) in differences.iter().enumerate() {
                let bit = |bit: usize| u64::from(out[bit / 8] >> (bit % 8) & 1);
                let read = (0..width).fold(0, |value, at| value | bit(index * width + at) << at);
                assert_eq!(read, *difference as u64, "width {width}, value {index}");
            }
        }
    }

    #[test]
    fn extremes_take_all_bits() {
        let out = encoded(&[0, i64::MAX, i64::MIN, 0]);
        // The differences are 2^63 - 1, 1 and -2^63 (modulo 2^64), so that the minimum is the last.
        assert_eq!(out[5..15], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]);
        assert_eq!(out[15..19], [64, 0, 0, 0]);
        assert_eq!(out[19..27], u64::MAX.to_le_bytes());
        assert_eq!(out[27..35], (1u64 << 63 | 1).to_le_bytes());
        assert_eq!(out.len(), 19 + 32 * 8);
    }
}
