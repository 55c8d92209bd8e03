//! NR (TS 38.xxx).
//!
//! | module | what |
//! | --- | --- |
//! | [`tables`] | the tables of the physical layer, and the size of a transport block |

pub mod tables;
