//! Reference points of the standard: the co-channel C/I at which a receiver must reach a block
//! error rate.
//!
//! TS 45.005 Table 2a (GMSK) and Table 2c (8-PSK, mobile station), GSM 850 and 900. **Recalled, not
//! verified**: no public copy of the table's text was available at the time of writing. A row that
//! turns out different changes the loss by its difference divided by the number of points of its
//! modulation.

use crate::profile::Profile;

/// One required point.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Coding scheme.
    pub scheme: &'static str,
    /// Propagation condition.
    pub profile: Profile,
    /// The required block error rate.
    pub rate: f64,
    /// The C/I in dB.
    pub ci_db: f64,
}

/// C/I of each scheme for 10 % over TU3 without hopping, TU3 with ideal hopping, TU50 without
/// hopping.
const TEN_PERCENT: [(&str, [f64; 3]); 10] = [
    ("cs-1", [13.0, 9.0, 10.0]),
    ("cs-2", [15.0, 13.0, 14.0]),
    ("cs-3", [16.0, 15.0, 16.0]),
    ("cs-4", [21.0, 23.0, 24.0]),
    ("mcs-1", [13.0, 9.5, 10.5]),
    ("mcs-2", [15.0, 12.0, 12.5]),
    ("mcs-3", [16.5, 16.5, 17.0]),
    ("mcs-4", [19.0, 21.5, 22.0]),
    ("mcs-5", [19.5, 14.5, 15.5]),
    ("mcs-6", [21.5, 17.0, 18.0]),
];

/// All points.
pub fn points() -> impl Iterator<Item = Point> {
    let profiles = [Profile::Tu3, Profile::Tu3Hopping, Profile::Tu50];
    TEN_PERCENT.into_iter().flat_map(move |(scheme, values)| {
        profiles.into_iter().zip(values).map(move |(profile, ci_db)| Point { scheme, profile, rate: 0.1, ci_db })
    })
}
