//! Channel coding of the bits of a part, and decoding at a receiver.

use crate::convolutional::{Code, Viterbi};

/// A coding.
#[derive(Clone, Copy, Debug)]
pub enum Coding {
    /// Uncoded.
    Uncoded,
    /// A convolutional code with known end: zeros empty the encoder's memory.
    Terminated(Code),
    /// A tail-biting convolutional code.
    Circular(Code),
    /// One of eight code words for three bits, the first bit highest.
    Words(&'static [u64; 8], usize),
}

/// Code words of the uplink state flag on GMSK with CS-2 to CS-4 and MCS-1 to MCS-4, 12 bits (TS
/// 45.003 §5.1.4.2).
pub const USF_12: [u64; 8] = [0x000, 0xd0b, 0x376, 0xe7d, 0x0dd, 0xdd6, 0x3ab, 0xea0];

/// Code words of the uplink state flag on 8-PSK, 36 bits (TS 45.003 §5.1.9.1.2).
pub const USF_36: [u64; 8] = [
    0x0_0000_0000,
    0xf_8783_f1f1,
    0xe_7773_0d8c,
    0x9_e60e_ee4f,
    0x1_996a_1bfe,
    0xd_58d5_d72b,
    0x2_6dfd_a274,
    0x6_babc_7c93,
];

impl Coding {
    /// Number of coded bits for `bits` bits.
    pub fn length(self, bits: usize) -> usize {
        match self {
            Self::Uncoded => bits,
            Self::Terminated(code) => (bits + code.memory()) * code.outputs(),
            Self::Circular(code) => bits * code.outputs(),
            Self::Words(_, length) => length,
        }
    }

    /// The coded bits of a block.
    pub fn encode(self, block: &[bool]) -> Vec<bool> {
        match self {
            Self::Uncoded => block.to_vec(),
            Self::Terminated(code) => code.encode(block),
            Self::Circular(code) => code.encode_circular(block),
            Self::Words(words, length) => {
                let index = block.iter().fold(0, |index, bit| 2 * index + usize::from(*bit));
                (0..length).rev().map(|i| words[index] >> i & 1 == 1).collect()
            }
        }
    }
}

/// The decoders of all codings.
#[derive(Debug)]
pub struct Decoders {
    half: Viterbi,
    third: Viterbi,
}

impl Decoders {
    /// Allocates the working memory.
    pub fn new() -> Self {
        Self { half: Viterbi::new(Code::Half), third: Viterbi::new(Code::Third) }
    }

    /// Whether a receiver decodes the first `checked` bits of `block` correctly from log-likelihood
    /// ratios ln(P(0)/P(1)).
    pub fn recovers(&mut self, coding: Coding, soft: &[f32], block: &[bool], checked: usize) -> bool {
        match coding {
            Coding::Uncoded => soft.iter().zip(&block[..checked]).all(|(soft, bit)| (*soft < 0.0) == *bit),
            Coding::Terminated(code) => self.viterbi(code).decode(soft)[..checked] == block[..checked],
            Coding::Circular(code) => self.viterbi(code).decode_circular(soft)[..checked] == block[..checked],
            Coding::Words(words, length) => {
                let correlation = |word: u64| -> f32 {
                    let signs = (0..length).rev().map(|i| if word >> i & 1 == 1 { -1.0 } else { 1.0 });
                    signs.zip(soft).map(|(sign, soft)| sign * soft).sum()
                };
                let best =
                    (0..8).fold(0, |best, i| if correlation(words[i]) > correlation(words[best]) { i } else { best });
                best == block.iter().fold(0, |index, bit| 2 * index + usize::from(*bit))
            }
        }
    }

    fn viterbi(&mut self, code: Code) -> &mut Viterbi {
        match code {
            Code::Half => &mut self.half,
            Code::Third => &mut self.third,
        }
    }
}

impl Default for Decoders {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_uplink_state_flag_are_as_far_apart_as_in_the_standard() {
        let distance = |words: &[u64; 8]| {
            let pairs = (0..8).flat_map(|i| (0..i).map(move |j| (i, j)));
            pairs.map(|(i, j)| (words[i] ^ words[j]).count_ones()).min()
        };
        assert_eq!(distance(&USF_12), Some(5));
        assert_eq!(distance(&USF_36), Some(20));
    }

    #[test]
    fn what_was_coded_is_recovered_and_something_else_is_not() {
        let cases = [
            (Coding::Uncoded, 40),
            (Coding::Terminated(Code::Half), 40),
            (Coding::Circular(Code::Third), 40),
            (Coding::Words(&USF_12, 12), 3),
            (Coding::Words(&USF_36, 36), 3),
        ];
        for (coding, bits) in cases {
            let block: Vec<bool> = (0..bits).map(|i| i % 3 == 1).collect();
            let coded = coding.encode(&block);
            assert_eq!(coded.len(), coding.length(bits));
            let soft: Vec<f32> = coded.iter().map(|bit| if *bit { -1.0 } else { 1.0 }).collect();
            assert!(Decoders::new().recovers(coding, &soft, &block, bits), "{coding:?}");
            let mut other = block.clone();
            other[0] = !other[0];
            assert!(!Decoders::new().recovers(coding, &soft, &other, bits), "{coding:?}");
        }
    }
}
