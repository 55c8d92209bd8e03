//! LTE (TS 36.xxx).
//!
//! | module | what |
//! | --- | --- |
//! | [`tables`] | the tables of the physical layer and of the buffer status report |
//! | [`tdd`] | subframes, feedback and grants of TDD |

pub mod tables;
pub mod tdd;
