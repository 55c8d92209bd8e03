//! LTE (TS 36.xxx).
//!
//! | module | what |
//! | --- | --- |
//! | [`tables`] | the tables of the physical layer and of the buffer status report |

pub mod tables;
