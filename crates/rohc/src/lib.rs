//! Robust header compression (ROHC) without I/O.
//!
//! A [`Compressor`] replaces the headers of IP packets by a few octets; a [`Decompressor`] at the
//! other end of the link restores them bit by bit. Both keep the last header of each flow as its
//! context. A CRC over the original header detects a context that was damaged by losses, and such
//! packets are discarded. In optimistic mode feedback repairs the context; in reliable mode packets
//! refer only to what feedback has acknowledged.
//!
//! | RFC | what | here |
//! | --- | --- | --- |
//! | 5795 | framework | small and large context identifiers, feedback, padding; no segments |
//! | 3095, 4815 | profiles 0x0000, 0x0001 (RTP), 0x0002 (UDP) | without lists of sources and of extension headers |
//! | 3843 | profile 0x0004 (IP) | one IP header |
//! | 5225 | profiles 0x0101 (RTP), 0x0102 (UDP), 0x0104 (IP) | one IP header, without lists of sources |
//! | 6846, 4164 | profile 0x0006 (TCP) | one IP header, all options of TCP, context replication |
//!
//! PDCP names these profiles (TS 25.323 §5.1.2, TS 36.323 §5.5.1). Whatever they cannot restore
//! exactly, such as a fragment or an IPv4 header with options, is sent with profile 0x0000.
//!
//! ```
//! use std::time::Duration;
//!
//! use airpath_rohc::{Compressor, Config, Decompressor};
//!
//! let config = Config::default();
//! let (mut compressor, mut decompressor) = (Compressor::new(&config)?, Decompressor::new(&config)?);
//! let packet = b"\x60\x00\x00\x00\x00\x04\x3b\x40 source address  destination    data";
//! # let mut packet = packet[..44].to_vec();
//! let (mut compressed, mut restored) = (Vec::new(), Vec::new());
//! let replaced = compressor.compress(&packet, packet.len(), &mut compressed);
//! compressed.extend_from_slice(&packet[replaced..]);
//!
//! let read = decompressor.decompress(Duration::ZERO, &compressed, compressed.len(), &mut restored)?;
//! restored.extend_from_slice(&compressed[read..]);
//! assert_eq!(restored, packet);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compressor;
mod crc;
mod decompressor;
mod error;
mod feedback;
mod framework;
mod header;
mod ip_id;
mod lsb;
mod profile;
mod reader;
mod refresh;
mod scaling;
mod stride;
mod tcp;
mod v2;
mod validity;

pub use compressor::Compressor;
pub use decompressor::Decompressor;
pub use error::{ConfigError, DecompressError, FeedbackError};
pub use framework::{Config, Mode, split_feedback};
pub use profile::{Profile, Profiles, Version};
pub use v2::ReorderRatio;
