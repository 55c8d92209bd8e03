//! Packet headers and capture files.
//!
//! Headers are plain structs. `emit` writes one at the start of a byte slice, checksum included;
//! `parse` reads one and returns it with the bytes that follow. Neither allocates. Parsing refuses
//! what is malformed, never panics, and leaves it to the caller to verify a checksum
//! ([`checksum::Sum::holds`]), because captures taken on a sending machine often lack it.
//!
//! | module | what | source |
//! | --- | --- | --- |
//! | [`ip`] | either version of IP, protocol numbers | |
//! | [`ipv4`] | IPv4 | RFC 791, RFC 2474, RFC 3168 |
//! | [`ipv6`] | IPv6 | RFC 8200 |
//! | [`tcp`] | TCP and its options | RFC 9293, RFC 7323, RFC 2018 |
//! | [`udp`] | UDP | RFC 768 |
//! | [`icmp`] | echo requests and replies | RFC 792, RFC 4443 |
//! | [`checksum`] | the Internet checksum | RFC 1071 |
//! | [`pcapng`] | capture files with nanoseconds, written as the run goes | |
//! | [`capture`] | simulated packets into a capture file | |
//!
//! ```
//! use std::net::Ipv4Addr;
//! use airpath_core::{Ecn, Instant};
//! use airpath_wire::{capture::{Capture, Envelope}, pcapng::Interface, tcp::TcpHeader};
//!
//! let mut file = Vec::new(); // anything that implements `std::io::Write`
//! let interface = Interface { name: "server", description: "the fixed end" };
//! let mut capture = Capture::create(&mut file, "an example", interface)?;
//! let envelope = Envelope {
//!     time: Instant::from_nanos(1),
//!     source: Ipv4Addr::new(10, 0, 0, 1),
//!     destination: Ipv4Addr::new(10, 0, 0, 2),
//!     ecn: Ecn::NotEct,
//! };
//! capture.tcp(envelope, &TcpHeader::default(), 1460)?;
//! capture.finish()?;
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod capture;
pub mod checksum;
pub mod error;
pub mod icmp;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod pcapng;
pub mod tcp;
pub mod udp;

pub use error::ParseError;
