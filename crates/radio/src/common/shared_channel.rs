//! A transport channel with TTIs: who is served, what a TTI carries, which blocks are in error.

pub mod channel;
pub(crate) mod cqi_reports;
pub mod harq;
pub mod scheduler;
pub(crate) mod transport_channel;
