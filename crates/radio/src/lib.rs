//! Cellular and Wi-Fi bearers: each is a [`Bearer`](airpath_link::Bearer) of both directions, made
//! from a `Config` that a scenario or a preset can write.
//!
//! | module | what |
//! | --- | --- |
//! | [`gsm::csd`] | GSM circuit-switched data: a call for each user, RLP, V.42 and PPP |
//! | [`gsm::gprs`] | a GPRS or EGPRS cell: radio blocks, temporary block flows, RLC |
//! | [`gsm::block_errors`] | block error rates of GSM coding schemes over C/I |
//! | [`umts::r99`] | UMTS packet bearers with the RLC of TS 25.322, RRC states, handover |
//! | [`umts::hsdpa`] | an HSDPA cell: CQI, codes, hybrid ARQ, reordering, Iub flow control |
//! | [`ofdma`] | the cell that LTE, LTE-M and NR have in common: RLC, hybrid ARQ, uplink grants, DRX, RRC states |
//! | [`lte`] | an LTE cell with frequency or time division duplex |
//! | [`ltem`] | an LTE-M narrowband: coverage modes with repetitions, half duplex, small blocks |
//! | [`nbiot`] | an NB-IoT carrier: coverage levels with repetitions, random access, sleep |
//! | [`nr`] | an NR cell; tables of the physical layer and TDD patterns |
//! | [`endc`] | an LTE cell and an NR cell that serve the same mobiles (EN-DC, NSA) |
//! | [`wifi`] | a Wi-Fi access point: shared channel, aggregation, retransmission |
//! | [`plain`] | bearers that are no radio: two plain links for each mobile |
//! | [`study::dch_simple`] | the study's UMTS dedicated channels: a constant rate, ARQ by its mean effect |
//! | [`study::hs_dsch_simple`] | the study's shared channel: schedulers, drawn C/I levels, hybrid ARQ |
//! | [`conditions`] | radio conditions of a mobile: C/I, serving cell, movement |
//! | [`model`] | the interface of a model |
//! | [`registry`] | the list of all models |
//! | [`common`] | mechanisms that several technologies use |

pub mod common;
pub mod conditions;
pub mod endc;
mod enumeration;
mod error;
pub mod gsm;
pub mod lte;
pub mod ltem;
pub mod model;
pub mod nbiot;
pub mod nr;
pub mod ofdma;
pub mod plain;
pub mod registry;
pub mod study;
pub mod umts;
pub mod wifi;

pub use enumeration::Enumeration;
pub use error::{ModelError, ValueError};
pub use model::Model;
pub use registry::Models;

/// The guide to schedulers, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/schedulers.md")]
mod guide_to_schedulers {}
