//! Packet headers.
//!
//! Headers are plain structs. `emit` writes a header with its checksum at the start of a byte
//! slice. `parse` reads a header and returns it with the bytes that follow. Neither allocates.
//! `parse` rejects malformed headers and never panics. It does not verify checksums
//! ([`checksum::Sum::holds`]): captures taken on a sending machine often lack them.
//!
//! | module | contents | source |
//! | --- | --- | --- |
//! | [`ip`] | either version of IP, protocol numbers | |
//! | [`ipv4`] | IPv4 | RFC 791, RFC 2474, RFC 3168 |
//! | [`ipv6`] | IPv6 | RFC 8200 |
//! | [`tcp`] | TCP and its options | RFC 9293, RFC 7323, RFC 2018 |
//! | [`udp`] | UDP | RFC 768 |
//! | [`rtp`] | RTP | RFC 3550 |
//! | [`rtcp`] | reports and feedback of RTP | RFC 3550, RFC 4585, RFC 5104 |
//! | [`icmp`] | echo requests and replies | RFC 792, RFC 4443 |
//! | [`checksum`] | the Internet checksum | RFC 1071 |
//! | [`segment`] | a captured TCP segment or UDP datagram | |

pub mod checksum;
pub mod error;
pub mod icmp;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
mod protocol;
pub mod rtcp;
pub mod rtp;
pub mod segment;
pub mod tcp;
pub mod udp;

pub use error::ParseError;
