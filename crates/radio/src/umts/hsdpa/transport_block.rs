//! What a block carries: the CQI tables of TS 25.214 §6A.2 and the categories of TS 25.306 Table
//! 5.1a.

/// The modulation and coding of a row of the CQI tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportBlock {
    /// Its size.
    pub bits: u32,
    /// HS-PDSCH codes, of spreading factor 16.
    pub codes: u8,
    /// 2 with QPSK, 4 with 16QAM.
    pub bits_per_symbol: u8,
}

/// Symbols of an HS-PDSCH code in a TTI: 7680 chips over a spreading factor of 16 (TS 25.211
/// §5.3.3.13).
const SYMBOLS_PER_CODE: u32 = 480;

/// TS 25.214 Table 7D, CQI 1 to 30. Tables 7A, 7B, 7C and 7E are its beginnings: above, the block
/// stays and the power falls. Recalled; the sizes of 8, 10, 13, 15, 16 and 23 to 26 agree with the
/// table at comtech.vsb.cz/qualmob/sinr.html.
const SIZES: [u32; 30] = [
    137, 173, 233, 317, 377, 461, 650, 792, 931, 1262, 1483, 1742, 2279, 2583, 3319, 3565, 4189, 4664, 5287, 5887,
    6554, 7168, 9719, 11418, 14411, 17237, 21754, 23370, 24222, 25558,
];

/// The codes of each CQI, from the same table.
const CODES: [u8; 30] =
    [1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 7, 8, 10, 12, 15, 15, 15, 15];

/// The last CQI with QPSK.
const LAST_QPSK: u8 = 15;

impl TransportBlock {
    /// That of a CQI, 1 to 30.
    pub const fn of(cqi: u8) -> Self {
        let row = cqi as usize - 1;
        Self { bits: SIZES[row], codes: CODES[row], bits_per_symbol: if cqi <= LAST_QPSK { 2 } else { 4 } }
    }

    /// How many PDUs of `pdu` bytes it holds: each has a header of 16 bits (TS 25.322 §9.2.1.4),
    /// and the block one of 21 bits (TS 25.321 §9.2.2: version, queue, TSN, and the size and number
    /// of PDUs).
    pub const fn pdus(&self, pdu: u32) -> u32 {
        self.bits.saturating_sub(21) / (8 * pdu + 16)
    }

    /// Bits of payload a symbol.
    pub fn efficiency(&self) -> f64 {
        f64::from(self.bits) / f64::from(u32::from(self.codes) * SYMBOLS_PER_CODE)
    }
}

/// What a mobile can receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category {
    /// The highest CQI of its table that has a block of its own.
    pub highest: u8,
    /// TTIs from the beginning of a block to that of the next, at least.
    pub interval: u64,
}

impl Category {
    /// HS-DSCH category 1 to 12 (TS 25.306 Table 5.1a; TS 25.214 Table 7A for 1 to 6, 7B for 7 and
    /// 8, 7C for 9, 7D for 10, 7E for 11 and 12).
    pub const fn of(number: u8) -> Option<Self> {
        let (highest, interval) = match number {
            1 | 2 => (22, 3),
            3 | 4 => (22, 2),
            5 | 6 => (22, 1),
            7 | 8 => (25, 1),
            9 => (26, 1),
            10 => (30, 1),
            11 => (LAST_QPSK, 2),
            12 => (LAST_QPSK, 1),
            _ => return None,
        };
        Some(Self { highest, interval })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_into_their_codes_and_grow() {
        for cqi in 1..=30 {
            let block = TransportBlock::of(cqi);
            assert!(block.efficiency() < f64::from(block.bits_per_symbol), "{cqi}: less than what is not coded at all");
            assert!(cqi == 1 || block.bits > TransportBlock::of(cqi - 1).bits, "{cqi}");
        }
    }

    #[test]
    fn categories_have_the_codes_of_their_table() {
        for (number, codes, largest) in [(12, 5, 3319), (6, 5, 7168), (8, 10, 14411), (9, 12, 17237), (10, 15, 25558)] {
            let block = TransportBlock::of(Category::of(number).expect("a category").highest);
            assert_eq!((block.codes, block.bits), (codes, largest), "{number}");
        }
        assert_eq!((Category::of(0), Category::of(13)), (None, None));
    }
}
