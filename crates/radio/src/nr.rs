//! NR (TS 38.xxx).
//!
//! | module | what |
//! | --- | --- |
//! | [`tables`] | the tables of the physical layer, and the size of a transport block |
//! | [`tdd`] | TDD patterns |

pub mod tables;
pub mod tdd;
