//! Propagation profiles of TS 45.005 annex C that have points in Table 2a.

/// Fading of signal and interferer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// None.
    Static,
    /// Typical urban, 3 km/h, no frequency hopping: all bursts of a block fade together.
    Tu3,
    /// Typical urban, 3 km/h, ideal frequency hopping: each burst fades independently.
    Tu3Hopping,
    /// Typical urban, 50 km/h, no frequency hopping: bursts are partly correlated.
    Tu50,
}

impl Profile {
    /// The order of the tables.
    pub const ALL: [Self; 4] = [Self::Static, Self::Tu3, Self::Tu3Hopping, Self::Tu50];

    /// The name in the columns of the tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Tu3 => "tu3",
            Self::Tu3Hopping => "tu3-hopping",
            Self::Tu50 => "tu50",
        }
    }

    /// Metres per second, where the bursts of a block are correlated.
    pub(crate) const fn speed(self) -> Option<f64> {
        match self {
            Self::Static => Some(0.0),
            Self::Tu3 => Some(3.0 / 3.6),
            Self::Tu3Hopping => None,
            Self::Tu50 => Some(50.0 / 3.6),
        }
    }
}
