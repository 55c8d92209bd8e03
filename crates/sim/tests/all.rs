//! The tests of the crate's public interface, in one program: it links once.

mod congestion;
mod connections;
mod contracts;
mod full_disk;
mod header_compression;
mod l4s;
mod many_mobiles;
mod page;
mod page_http;
mod page_http3;
mod phase;
mod proposals;
mod proxy;
mod quic;
mod replay;
mod sharing;
mod two_bearers;
