//! Captures into flows: what each TCP connection did, and why it took as long as it did.
//!
//! | module | input | output |
//! | --- | --- | --- |
//! | [`analysis`] | captures or an event log | the tables and lines of a report |
//! | [`causes`] | the observations of a connection | its elapsed time, attributed to causes |
//! | [`two_point`] | two captures of the same connections | the fate of each packet between them |
//! | [`shared_path`] | the packets of all connections of a host | what its path carried, by time |
//! | [`radio`] | the log of a radio | the gaps in which it carried nothing |
//! | [`event_log`] | the event log of a run | the segments of captures at its ends |
//!
//! `airpath-capture` reads and decodes frames, `airpath-observe` follows TCP connections,
//! `airpath-web` parses their HTTP and TLS.
//!
//! Nothing here reads a clock; times are those of the capture, in nanoseconds since 1 January 1970,
//! UTC.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod causes;
pub mod event_log;
pub mod radio;
pub mod shared_path;
pub mod two_point;
