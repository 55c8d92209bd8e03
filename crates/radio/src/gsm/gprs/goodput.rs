//! What a coding scheme carries at a C/I, and where a faster one begins to carry more: thresholds
//! for link adaptation.

use super::coding_scheme::CodingScheme;
use crate::conditions::Profile;
use crate::gsm::block_errors::Curve;

/// Radio blocks in a second.
const BLOCKS_PER_SECOND: f64 = 50.0;

/// Bits of RLC data that a timeslot delivers in a second when every block is sent for the first
/// time.
///
/// Later transmissions of EGPRS are combined and so fail less; they are left out.
pub fn goodput(scheme: CodingScheme, profile: Profile, ci_db: f64) -> f64 {
    let bits = f64::from(scheme.payload() * scheme.blocks() * 8);
    bits * BLOCKS_PER_SECOND * (1.0 - Curve::of(scheme.name(), profile, 1).at(ci_db).get())
}

/// The C/I in decibels above which `faster` delivers more than `slower` and never less again, to a
/// twentieth of a decibel.
///
/// ```
/// use airpath_radio::conditions::Profile;
/// use airpath_radio::gsm::gprs::{CodingScheme, crossing};
///
/// let cs2 = crossing(CodingScheme::Cs1, CodingScheme::Cs2, Profile::Tu50);
/// assert!(cs2 < crossing(CodingScheme::Cs2, CodingScheme::Cs4, Profile::Tu50));
/// ```
pub fn crossing(slower: CodingScheme, faster: CodingScheme, profile: Profile) -> f64 {
    // At high C/I the faster scheme wins; the crossing is the highest C/I at which it loses.
    let place = |step: i32| f64::from(step) / 20.0;
    let wins = |step: &i32| goodput(faster, profile, place(*step)) >= goodput(slower, profile, place(*step));
    (-400..=1200).rev().take_while(wins).last().map_or(f64::INFINITY, place)
}
