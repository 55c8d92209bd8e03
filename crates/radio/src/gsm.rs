//! GSM: circuit-switched data, GPRS and EGPRS, and the block error rates of their coding schemes.

pub mod block_errors;
pub mod csd;
pub mod gprs;
