//! Modulations of the shared channels, and formats: a modulation with a code rate.

use std::str::FromStr;

/// A modulation with Gray mapping (TS 36.211 §7.1, TS 38.211 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Modulation {
    /// 2 bits a symbol.
    Qpsk,
    /// 4 bits a symbol.
    Qam16,
    /// 6 bits a symbol.
    Qam64,
    /// 8 bits a symbol.
    Qam256,
}

impl Modulation {
    /// All, by bits.
    pub const ALL: [Self; 4] = [Self::Qpsk, Self::Qam16, Self::Qam64, Self::Qam256];

    /// Coded bits of a symbol, Q_m.
    pub const fn bits(self) -> u32 {
        2 * (self as u32 + 1)
    }

    /// The modulation with this number of bits a symbol: 2, 4, 6 or 8.
    pub fn of_bits(bits: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.bits() == bits)
    }
}

/// The number of bits a symbol, as the tables write it.
impl FromStr for Modulation {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().ok().and_then(Self::of_bits).ok_or_else(|| format!("`{text}` is none of 2, 4, 6 and 8 bits"))
    }
}

/// A modulation and a code rate: a row of a table of CQIs or of modulation and coding schemes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Format {
    /// The modulation.
    pub modulation: Modulation,
    /// Information bits by coded bits.
    pub code_rate: f64,
}

impl Format {
    /// A format of the standards, which print 1024 times the code rate.
    pub const fn new(modulation: Modulation, code_rate_x1024: f64) -> Self {
        Self { modulation, code_rate: code_rate_x1024 / 1024.0 }
    }

    /// Information bits a symbol.
    pub fn efficiency(&self) -> f64 {
        self.code_rate * f64::from(self.modulation.bits())
    }
}
