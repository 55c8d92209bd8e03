//! Capture files: reads and writes them, and decodes their frames.
//!
//! | module | contents | source |
//! | --- | --- | --- |
//! | [`read`] | records of pcap, pcapng and snoop files, plain or compressed | |
//! | [`decode`] | the TCP segment or UDP datagram in a frame | |
//! | [`skipped`] | what could not be used of a capture, counted by cause | |
//! | [`write`] | pcapng files with nanoseconds, written while a run goes on | draft-ietf-opsawg-pcapng |
//! | [`simulated`] | simulated packets into such a file: headers without payload | |
//! | [`headers`] | headers of the packets of a run, for its replay | |
//!
//! ```
//! use std::net::Ipv4Addr;
//! use airpath_capture::{simulated::{Capture, Envelope}, write::Interface};
//! use airpath_core::{Ecn, Instant};
//! use airpath_wire::tcp::TcpHeader;
//!
//! let mut file = Vec::new(); // anything that implements `std::io::Write`
//! let interface = Interface { name: "server", description: "the fixed end" };
//! let mut capture = Capture::create(&mut file, "an example", interface)?;
//! let envelope = Envelope {
//!     time: Instant::from_nanos(1),
//!     source: Ipv4Addr::new(10, 0, 0, 1),
//!     destination: Ipv4Addr::new(10, 0, 0, 2),
//!     ecn: Ecn::NotEct,
//!     identification: 0,
//! };
//! capture.tcp(envelope, &TcpHeader::default(), 1460)?;
//! capture.finish()?;
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod decode;
pub mod headers;
mod pcapng;
pub mod read;
pub mod simulated;
pub mod skipped;
pub mod write;
