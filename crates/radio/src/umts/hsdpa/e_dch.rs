//! The enhanced dedicated channel (E-DCH, HSUPA): blocks with hybrid ARQ upwards, whose size the
//! base station limits by grants (TS 25.319).
//!
//! - A mobile without a grant that has something to send sends scheduling information (SI); the
//!   base station answers with its first grant, if the noise rise of the cell has room for it.
//! - Each block has a happy bit. An unhappy mobile gets one step of the ladder of grants more in
//!   each round trip, while there is room; where there is none, the mobile with the most gives way
//!   to one with less. What is not used is withdrawn.
//! - A block is as large as grant, power and category allow. Processes are synchronous: what was
//!   received in error is sent again when the turn of its process comes (TS 25.321 §11.8.1).

pub mod category;
pub mod config;
pub mod grants;
pub mod ladder;
pub mod link;
