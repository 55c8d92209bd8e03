//! The bits of a raw byte sequence payload (H.264 §7.2, §9.1).

/// Reads the bits of a NAL unit without its emulation prevention bytes. `None` after the end.
#[derive(Clone, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// The byte being read, the bits of it that are left, and the zeros before it.
    at: usize,
    left: u32,
    zeros: u32,
}

impl<'a> Bits<'a> {
    /// The bits of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, left: 8, zeros: 0 }
    }

    /// The next bit.
    pub fn bit(&mut self) -> Option<bool> {
        if self.left == 8 && self.zeros >= 2 && self.bytes.get(self.at) == Some(&3) {
            // The third byte of 0x000003 prevents a start code (§7.4.1).
            self.at += 1;
            self.zeros = 0;
        }
        let byte = *self.bytes.get(self.at)?;
        self.left -= 1;
        let bit = byte >> self.left & 1 == 1;
        if self.left == 0 {
            self.zeros = if byte == 0 { self.zeros + 1 } else { 0 };
            self.at += 1;
            self.left = 8;
        }
        Some(bit)
    }

    /// An unsigned number of `count` bits, at most 32.
    pub fn unsigned(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0, |value: u32, _| Some(value << 1 | u32::from(self.bit()?)))
    }

    /// Skips `count` bits.
    pub fn skip(&mut self, count: u32) -> Option<()> {
        (0..count).try_for_each(|_| self.bit().map(drop))
    }

    /// An Exp-Golomb code (§9.1): `ue(v)`. Codes above 2³² − 2 are none.
    pub fn golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
            if zeros == 32 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.unsigned(zeros)?)
    }

    /// A signed Exp-Golomb code (§9.1.1): `se(v)`.
    pub fn signed_golomb(&mut self) -> Option<i32> {
        let code = self.golomb()?;
        let half = code.div_ceil(2) as i32;
        Some(if code % 2 == 1 { half } else { -half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_values_of_the_standard() {
        // Table 9-2: 1, 010, 011, 00100, 00101.
        let bytes = [0b1010_0110, 0b0100_0010, 0b1000_0000];
        let mut bits = Bits::new(&bytes);
        assert_eq!([(); 5].map(|()| bits.golomb()), [0, 1, 2, 3, 4].map(Some));
        let mut bits = Bits::new(&bytes);
        // Table 9-3.
        assert_eq!([(); 5].map(|()| bits.signed_golomb()), [0, 1, -1, 2, -2].map(Some));
    }

    #[test]
    fn emulation_prevention_bytes_are_no_bits() {
        let mut bits = Bits::new(&[0, 0, 3, 1, 0, 0, 3, 0, 0, 3]);
        assert_eq!(bits.unsigned(24), Some(1));
        assert_eq!(bits.unsigned(32), Some(0));
        assert_eq!(bits.bit(), None);
        assert_eq!(Bits::new(&[0, 0, 2, 3]).unsigned(32), Some(0x203));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(0..4_u8, 0..40)) {
            let mut bits = Bits::new(&bytes);
            while bits.golomb().is_some() {}
            let mut bits = Bits::new(&bytes);
            while bits.signed_golomb().is_some() {}
        }
    }
}
