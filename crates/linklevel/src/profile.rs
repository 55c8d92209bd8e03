//! Propagation profiles: those of TS 45.005 annex C for which Table 2a has its points.

/// How signal and interferer fade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Not at all.
    Static,
    /// Typical urban, 3 km/h, no frequency hopping: a block is good or bad as a whole.
    Tu3,
    /// Typical urban, 3 km/h, ideal frequency hopping: each burst fades by itself.
    Tu3Hopping,
    /// Typical urban, 50 km/h, no frequency hopping: bursts are half alike.
    Tu50,
}

impl Profile {
    /// In the order of the tables.
    pub const ALL: [Self; 4] = [Self::Static, Self::Tu3, Self::Tu3Hopping, Self::Tu50];

    /// As columns of the tables have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Tu3 => "tu3",
            Self::Tu3Hopping => "tu3-hopping",
            Self::Tu50 => "tu50",
        }
    }

    /// Metres a second, where bursts of one block know of each other.
    pub(crate) const fn speed(self) -> Option<f64> {
        match self {
            Self::Static => Some(0.0),
            Self::Tu3 => Some(3.0 / 3.6),
            Self::Tu3Hopping => None,
            Self::Tu50 => Some(50.0 / 3.6),
        }
    }
}
