//! The checksums of ROHC (RFC 3095 §5.9), each with all ones as its initial value.

/// A CRC, by its polynomial with the bits reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crc {
    /// 1 + x + x³ (§5.9.2).
    Three,
    /// 1 + x + x² + x³ + x⁶ + x⁷ (§5.9.2).
    Seven,
    /// 1 + x + x² + x⁸ (§5.9.1).
    Eight,
}

impl Crc {
    const fn polynomial(self) -> u8 {
        match self {
            Self::Three => 0x06,
            Self::Seven => 0x79,
            Self::Eight => 0xe0,
        }
    }

    /// The value before the first byte.
    pub(crate) const fn initial(self) -> u8 {
        match self {
            Self::Three => 0x07,
            Self::Seven => 0x7f,
            Self::Eight => 0xff,
        }
    }

    /// The value after `bytes`, from that before them.
    pub(crate) fn update(self, crc: u8, bytes: &[u8]) -> u8 {
        let polynomial = self.polynomial();
        bytes.iter().fold(crc, |crc, byte| {
            (0..8).fold(crc ^ byte, |crc, _| if crc & 1 == 1 { crc >> 1 ^ polynomial } else { crc >> 1 })
        })
    }

    /// The CRC of `bytes`.
    pub(crate) fn of(self, bytes: &[u8]) -> u8 {
        self.update(self.initial(), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        // The check value of CRC-8/ROHC, CRC-7/ROHC and CRC-3/ROHC in the catalogue of CRCs.
        assert_eq!(Crc::Eight.of(b"123456789"), 0xd0);
        assert_eq!(Crc::Seven.of(b"123456789"), 0x53);
        assert_eq!(Crc::Three.of(b"123456789"), 0x6);
    }
}
