//! How a transport block is cut into code blocks, and how far its code can be extended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A channel code of a data channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coding {
    /// The turbo code of LTE (TS 36.212 §5.1).
    Turbo,
    /// The LDPC codes of NR (TS 38.212 §5.2.2, §5.3.2, §6.2, §7.2).
    Ldpc,
}

/// The code blocks of a transport block. All have the same size; filler bits are not counted,
/// because the receiver has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeBlocks {
    /// Their number.
    pub count: u32,
    /// Bits of each, with its CRCs.
    pub bits: f64,
    /// The lowest code rate: what is sent beyond repeats bits.
    pub mother_rate: f64,
}

/// CRC of a transport block and of each of several code blocks (TS 36.212 §5.1.1, §5.1.2).
const CRC: u32 = 24;
/// CRC of a transport block of at most [`LARGEST_WITH_SHORT_CRC`] bits in NR (TS 38.212 §7.2.1).
const SHORT_CRC: u32 = 16;
const LARGEST_WITH_SHORT_CRC: u32 = 3824;

impl CodeBlocks {
    /// The code blocks of a transport block of `bits` bits, sent first at `code_rate`.
    pub fn of(coding: Coding, bits: u32, code_rate: f64) -> Self {
        let (crc, largest, mother_rate) = match coding {
            // TS 36.212 §5.1.2 (Z = 6144), §5.1.3.2 (three streams).
            Coding::Turbo => (CRC, 6144, 1.0 / 3.0),
            Coding::Ldpc => {
                let crc = if bits > LARGEST_WITH_SHORT_CRC { CRC } else { SHORT_CRC };
                // Base graph 2 by TS 38.212 §7.2.2; sizes by §5.2.2; rates by §5.3.2: 66 Z_c bits
                // of 22 Z_c, 50 Z_c bits of 10 Z_c.
                let second = bits <= 292 || (bits <= 3824 && code_rate <= 0.67) || code_rate <= 0.25;
                if second { (crc, 3840, 1.0 / 5.0) } else { (crc, 8448, 1.0 / 3.0) }
            }
        };
        let total = bits + crc;
        if total <= largest {
            return Self { count: 1, bits: f64::from(total), mother_rate };
        }
        let count = total.div_ceil(largest - CRC);
        Self { count, bits: f64::from(total) / f64::from(count) + f64::from(CRC), mother_rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(coding: Coding, bits: u32, code_rate: f64) -> (u32, f64) {
        let blocks = CodeBlocks::of(coding, bits, code_rate);
        (blocks.count, blocks.bits)
    }

    #[test]
    fn turbo_blocks_have_at_most_6144_bits() {
        assert_eq!(cut(Coding::Turbo, 6120, 0.5), (1, 6144.0));
        // 6128 + 24 bits in two blocks with a CRC each.
        assert_eq!(cut(Coding::Turbo, 6128, 0.5), (2, 3100.0));
        // 75376 + 24 bits: 13 blocks, of 5800 + 24 bits.
        assert_eq!(cut(Coding::Turbo, 75_376, 0.9), (13, 5824.0));
    }

    /// The two graphs, as the TBS formula has them: 3816 and 8424 bits with the CRC of a code
    /// block.
    #[test]
    fn ldpc_blocks_have_the_size_of_their_base_graph() {
        assert_eq!(cut(Coding::Ldpc, 8424, 0.5), (1, 8448.0));
        assert_eq!(cut(Coding::Ldpc, 8432, 0.5), (2, 4252.0));
        assert_eq!(cut(Coding::Ldpc, 3824, 0.9), (1, 3840.0));
        assert_eq!(cut(Coding::Ldpc, 3848, 0.2), (2, 1960.0));
        let mother = |bits, rate| CodeBlocks::of(Coding::Ldpc, bits, rate).mother_rate;
        assert_eq!([mother(292, 0.9), mother(3824, 0.67), mother(8000, 0.25)], [0.2; 3]);
        assert_eq!([mother(300, 0.68), mother(3832, 0.67)], [1.0 / 3.0; 2]);
    }

    #[test]
    fn no_code_block_exceeds_the_largest() {
        for bits in (16..400_000).step_by(984) {
            for rate in [0.1, 0.3, 0.6, 0.9] {
                assert!(cut(Coding::Turbo, bits, rate).1 <= 6144.0);
                let largest = if rate <= 0.25 || (bits <= 3824 && rate <= 0.67) { 3840.0 } else { 8448.0 };
                assert!(cut(Coding::Ldpc, bits, rate).1 <= largest, "{bits} {rate}");
            }
        }
    }
}
