//! Cellular bearers: each is a [`Bearer`](airpath_link::Bearer) of both directions, made from a `Config` that a
//! scenario or a preset can write.
//!
//! | module | what |
//! | --- | --- |
//! | [`gprs`] | a GPRS or EGPRS cell: radio blocks, temporary block flows, RLC |
//! | [`umts_dch`] | UMTS dedicated channels, one for each user, with the ARQ of the RLC |
//! | [`umts`] | UMTS packet bearers with RLC by its specification, RRC states, handover |
//! | [`hsdpa`] | a cell's HS-DSCH, shared in time: schedulers, C/I levels, hybrid ARQ |
//! | [`hsdpa_cell`] | an HSDPA cell by its specifications: CQI, codes, hybrid ARQ, reordering, Iub flow control |
//! | [`conditions`] | what the radio of a mobile is like: C/I, serving cell, movement |
//! | [`block_errors`] | block error rates of GSM coding schemes over C/I |
//! | [`gsm_csd`] | GSM circuit-switched data: a call for each user, RLP, V.42 and PPP |
//! | [`common`] | what they are built of: the carrier with its TTI clock, segmentation, schedulers, channels, H-ARQ |
//!
//! The models `umts_dch` and `hsdpa` are those of the study `hsdpa-sim`; what goes beyond it says so.

pub mod block_errors;
pub mod common;
pub mod conditions;
mod error;
pub mod gprs;
pub mod gsm_csd;
pub mod hsdpa;
pub mod hsdpa_cell;
pub mod umts;
pub mod umts_dch;

pub use error::ConfigError;

/// The guide to schedulers, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/schedulers.md")]
mod guide_to_schedulers {}
