//! What a block carries: the CQI tables of TS 25.214 §6A.2 and the categories of TS 25.306 Table
//! 5.1a.

/// The modulation and coding of a row of the CQI tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportBlock {
    /// Its size.
    pub bits: u32,
    /// HS-PDSCH codes, of spreading factor 16.
    pub codes: u8,
    /// 2 with QPSK, 4 with 16QAM, 6 with 64QAM.
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

/// TS 25.214 Table 7G, CQI 1 to 30: sizes of whole octets, as MAC-ehs has them. Table 7F is its
/// beginning: its CQI 30 has the block of CQI 29 and 2 dB less power. Recalled; the sizes of CQI 15
/// and 30 agree with a text about the table (scribd.com/document/291306665).
const SIZES_64QAM: [u32; 30] = [
    136, 176, 232, 320, 376, 464, 648, 792, 928, 1264, 1488, 1744, 2288, 2592, 3328, 3576, 4200, 4672, 5296, 5896,
    6568, 7184, 9736, 11432, 14424, 15776, 21768, 26504, 32264, 38576,
];

/// The codes of CQI 26 to 30, from the same table (recalled); below they are those of Table 7D.
const CODES_64QAM: [u8; 5] = [10, 12, 13, 14, 15];

/// The last CQI with QPSK.
const LAST_QPSK: u8 = 15;

/// The last CQI of Table 7G with 16QAM.
pub const LAST_16QAM: u8 = 25;

/// A CQI table of TS 25.214 §6A.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CqiTable {
    /// Table 7D, with 7A to 7C and 7E: QPSK and 16QAM.
    D,
    /// Table 7G, with 7F: 64QAM, too.
    G,
}

impl CqiTable {
    /// The block of a CQI, 1 to 30.
    pub const fn block(self, cqi: u8) -> TransportBlock {
        let row = cqi as usize - 1;
        let bits_per_symbol = match self {
            _ if cqi <= LAST_QPSK => 2,
            Self::G if cqi > LAST_16QAM => 6,
            Self::D | Self::G => 4,
        };
        match self {
            Self::D => TransportBlock { bits: SIZES[row], codes: CODES[row], bits_per_symbol },
            Self::G => {
                let codes = if cqi > LAST_16QAM { CODES_64QAM[row - LAST_16QAM as usize] } else { CODES[row] };
                TransportBlock { bits: SIZES_64QAM[row], codes, bits_per_symbol }
            }
        }
    }
}

impl TransportBlock {
    /// How many PDUs of `pdu` bytes it holds: each has a header of 16 bits (TS 25.322 §9.2.1.4),
    /// and the block one of 21 bits (TS 25.321 §9.2.2: version, queue, TSN, and the size and number
    /// of PDUs).
    pub const fn pdus(&self, pdu: u32) -> u32 {
        self.bits.saturating_sub(21) / (8 * pdu + 16)
    }

    /// Octets that MAC-ehs fills, its headers among them.
    pub const fn octets(&self) -> u32 {
        self.bits / 8
    }

    /// Modulation symbols.
    pub fn symbols(&self) -> u32 {
        u32::from(self.codes) * SYMBOLS_PER_CODE
    }

    /// Bits of payload a symbol.
    pub fn efficiency(&self) -> f64 {
        f64::from(self.bits) / f64::from(self.symbols())
    }
}

/// What a mobile can receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category {
    /// Where its blocks are.
    pub table: CqiTable,
    /// The highest CQI of its table that has a block of its own.
    pub highest: u8,
    /// TTIs from the beginning of a block to that of the next, at least.
    pub interval: u64,
    /// Carriers that it receives at once.
    pub carriers: u8,
    /// Whether it has MAC-ehs only: 64QAM and two carriers need it (TS 25.306 Table 5.1a,
    /// recalled).
    pub needs_ehs: bool,
}

impl Category {
    /// HS-DSCH category 1 to 14 and 21 to 24, those without MIMO (TS 25.306 Table 5.1a). TS 25.214
    /// Table 7A has the blocks of 1 to 6, 7B of 7 and 8, 7C of 9 and 21, 7D of 10 and 22, 7E of 11
    /// and 12, 7F of 13 and 23, 7G of 14 and 24 (recalled from 13 on, but for modulation and
    /// carriers).
    pub const fn of(number: u8) -> Option<Self> {
        let (table, highest, interval, carriers) = match number {
            1 | 2 => (CqiTable::D, 22, 3, 1),
            3 | 4 => (CqiTable::D, 22, 2, 1),
            5 | 6 => (CqiTable::D, 22, 1, 1),
            7 | 8 => (CqiTable::D, 25, 1, 1),
            9 => (CqiTable::D, 26, 1, 1),
            10 => (CqiTable::D, 30, 1, 1),
            11 => (CqiTable::D, LAST_QPSK, 2, 1),
            12 => (CqiTable::D, LAST_QPSK, 1, 1),
            13 => (CqiTable::G, 29, 1, 1),
            14 => (CqiTable::G, 30, 1, 1),
            21 => (CqiTable::D, 26, 1, 2),
            22 => (CqiTable::D, 30, 1, 2),
            23 => (CqiTable::G, 29, 1, 2),
            24 => (CqiTable::G, 30, 1, 2),
            _ => return None,
        };
        Some(Self { table, highest, interval, carriers, needs_ehs: number > 12 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_into_their_codes_and_grow() {
        for table in [CqiTable::D, CqiTable::G] {
            for cqi in 1..=30 {
                let block = table.block(cqi);
                let uncoded = f64::from(block.bits_per_symbol);
                assert!(block.efficiency() < uncoded, "{table:?} {cqi}: less than what is not coded at all");
                assert!(cqi == 1 || block.bits > table.block(cqi - 1).bits, "{table:?} {cqi}");
            }
        }
    }

    #[test]
    fn blocks_of_table_g_are_whole_octets_near_those_of_table_d() {
        for cqi in 1..=30 {
            let [d, g] = [CqiTable::D, CqiTable::G].map(|table| table.block(cqi));
            assert_eq!(g.bits % 8, 0, "{cqi}");
            if cqi <= LAST_16QAM {
                assert!(g.bits.abs_diff(d.bits) <= 18 && g.codes == d.codes, "{cqi}: {g:?} {d:?}");
                assert_eq!(g.bits_per_symbol, d.bits_per_symbol, "{cqi}");
            } else {
                assert_eq!(g.bits_per_symbol, 6, "{cqi}");
            }
        }
    }

    #[test]
    fn categories_have_the_codes_of_their_table() {
        // Codes and largest block of the CQI table; carriers; the largest block of TS 25.306.
        for (number, codes, largest, carriers, most) in [
            (12, 5, 3319, 1, 3630),
            (6, 5, 7168, 1, 7298),
            (8, 10, 14_411, 1, 14_411),
            (9, 12, 17_237, 1, 20_251),
            (10, 15, 25_558, 1, 27_952),
            (13, 14, 32_264, 1, 35_280),
            (14, 15, 38_576, 1, 42_192),
            (21, 12, 17_237, 2, 23_370),
            (22, 15, 25_558, 2, 27_952),
            (23, 14, 32_264, 2, 35_280),
            (24, 15, 38_576, 2, 42_192),
        ] {
            let category = Category::of(number).expect("a category");
            let block = category.table.block(category.highest);
            assert_eq!((block.codes, block.bits, category.carriers), (codes, largest, carriers), "{number}");
            assert!(block.bits <= most, "{number}");
        }
        for number in [0, 15, 20, 25] {
            assert_eq!(Category::of(number), None, "{number}");
        }
    }
}
