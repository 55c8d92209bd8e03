//! NB-IoT (TS 36.213 §16).
//!
//! | module | what |
//! | --- | --- |
//! | [`tables`] | transport block sizes, repetitions, delays |
//! | [`timeline`] | the times of one downlink or uplink transfer |

pub mod tables;
pub mod timeline;
