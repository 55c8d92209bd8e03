//! An end point of QUIC (RFC 9000) without I/O: [`quinn_proto`], stepped by the caller's clock.
//!
//! [`Connection`] has the verbs of all airpath models: `handle_…(now, …)`, `poll_…(now)`,
//! [`next_wakeup`](Connection::next_wakeup). Its datagrams are real QUIC datagrams, for virtual
//! time and for sockets.
//!
//! | module | contents |
//! | --- | --- |
//! | [`clock`] | the times of quinn and of airpath |
//! | [`config`] | settings: controller, windows, datagram size, sizes of TLS messages |
//! | [`connection`] | one end of one connection, with its streams |
//! | [`Identity`] | the settings of quinn that depend on random streams |
//! | [`null_crypto`] | a handshake with the sizes and steps of TLS 1.3, without encryption |
//! | [`statistics`] | counters and round trips |
//!
//! # Determinism
//! Connection identifiers, keys and the seed of quinn come from two [`RandomStream`]s. quinn's
//! CUBIC uses `f64::cbrt` of the platform, so results of CUBIC may differ between platforms in the
//! last bit of the window. All other arithmetic is the same everywhere.
//!
//! `tests/support/mod.rs` has the loop of an owner: two ends over a link in virtual time.
//!
//! [`RandomStream`]: airpath_core::RandomStream

pub mod clock;
pub mod config;
pub mod connection;
mod controller;
mod frames;
mod identity;
pub mod null_crypto;
mod packet_log;
pub mod statistics;
mod streams;

pub use clock::Clock;
pub use config::{Config, ConfigError, Controller, NAME};
pub use connection::{Connection, Outcome};
pub use identity::Identity;
pub use statistics::Statistics;
pub use streams::Stream;
