//! Captures into flows: what each TCP connection did, and why it took as long as it did.
//!
//! A capture goes through four rooms, and each knows only the one before it:
//!
//! | module | takes | gives |
//! | --- | --- | --- |
//! | [`capture`] | a file or a stream | [`Record`](capture::Record)s: the bytes of a frame, and when they were captured |
//! | [`decode`] | records | [`Segment`](decode::Segment)s of TCP, out of whatever they were wrapped in |
//! | [`connection`] | the segments of one connection | [`Observation`](connection::Observation)s: what each segment meant |
//! | [`flows`] | the segments of a capture | their connections, and who they are told to |
//! | [`statistics`] | what a connection found | figures, and their names |
//! | [`two_ends`] | two captures of the same connections | what became of each packet on its way |
//! | [`event_log`] | the event log of a run | the segments that captures at its ends would have |
//! | everything else | observations | figures, causes, exchanges of HTTP |
//!
//! Nothing here reads a clock; times are those of the capture, in nanoseconds since 1 January 1970, UTC.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod capture;
pub mod causes;
pub mod connection;
pub mod decode;
pub mod event_log;
pub mod flows;
pub mod http;
pub mod passed_over;
pub mod radio;
pub mod statistics;
pub mod two_ends;
