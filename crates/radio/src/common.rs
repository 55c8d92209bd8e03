//! Mechanisms that several technologies use, by group.
//!
//! | module | what |
//! | --- | --- |
//! | [`buffer_sizes`] | levels of the buffer status report of LTE and NR |
//! | [`header_compression`] | ROHC of PDCP, above any bearer |
//! | [`arq`] | retransmission and segmentation: the RLC acknowledged mode, and what GPRS and HSDPA share with it |
//! | [`multiplexing`] | many entities behind one clock: which acts next, and their packets in order of time |
//! | [`link_adaptation`] | block errors, soft combining, CQI and outer loop of LTE and NR |
//! | [`slots`] | slots of FDD and TDD, and the timeline of data, feedback and grants |
//! | [`shared_channel`] | a transport channel with its TTI clock, schedulers, C/I levels, hybrid ARQ |
//! | `csv` | the tables that are compiled into the crate |
//! | `log` | the states of a mobile in the radio log |

pub mod arq;
pub mod buffer_sizes;
pub(crate) mod csv;
pub mod header_compression;
pub mod link_adaptation;
pub(crate) mod log;
pub mod multiplexing;
pub mod shared_channel;
pub mod slots;
