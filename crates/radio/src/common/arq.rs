//! Retransmission and segmentation.

pub mod acknowledged;
pub(crate) mod repeats;
pub(crate) mod rlc;
pub(crate) mod rlc_am;
pub mod rlc_queue;
