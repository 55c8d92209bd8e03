//! Block error rates of GSM's coding schemes over C/I, computed from the standard's coding,
//! interleaving and modulation.
//!
//! | module | what |
//! | --- | --- |
//! | [`coding`], [`convolutional`] | the codes and their soft decoding |
//! | [`puncturing`] | bits that are not sent |
//! | [`schemes`] | CS-1 to CS-4, MCS-1 to MCS-9, TCH/F9.6, TCH/F14.4 and the uplink state flag as data |
//! | [`modulation`] | symbols on fading bursts, soft values |
//! | [`fading`], [`profile`] | fading of signal and interferer |
//! | [`simulate`] | many random blocks |
//! | [`table`] | the tables that `airpath-radio` looks up |
//! | [`mod@reference`], [`mod@compare`] | the standard's required points, and the distance to them |
//!
//! The receiver is ideal: it has perfect channel knowledge, and treats interference as noise of
//! known power. The loss of a real one is derived from the standard's reference points
//! (`docs/block-errors.md`).

pub mod coding;
pub mod compare;
pub mod convolutional;
pub mod fading;
pub mod modulation;
pub mod noise;
pub mod profile;
pub mod puncturing;
pub mod reference;
pub mod schemes;
pub mod simulate;
pub mod table;
