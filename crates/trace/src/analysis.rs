//! The one call: captures in, a report of their connections out.
//!
//! | module | what |
//! | --- | --- |
//! | `pipeline` | reading in one thread, all else in another |
//! | [`selector`](Selector) | which connections are meant |
//! | [`Shortcomings`] | what the capture lacks |
//! | `collect` | what is kept of each connection, and its line of JSON when it ends |
//! | `records`, `said` | the rows of the tables: of connections and segments, and of what was said on them |
//! | `ends` | captures of both ends joined, and the rows of their tables |
//! | [`table`] | records as columns, and as JSON |
//! | `numbered` | values by the numbers of flows |

mod collect;
mod ends;
mod numbered;
mod pipeline;
mod records;
mod said;
mod selector;
mod shortcomings;
pub mod table;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::capture::OpenError;
use crate::event_log::{EventLog, Vantage};
use crate::flows::Flows;
use crate::http::Exchanges;
use crate::radio::RadioLog;
use crate::two_ends::{JoinError, TwoEnds};
use collect::Collector;
use ends::both_ends;
use pipeline::{Packet, packets};
use table::Table;

pub use ends::Peer;
pub use pipeline::{FileReading, Reading, STANDARD_INPUT, Step};
pub use records::figures;
pub use selector::{Selector, SelectorError};
pub use shortcomings::Shortcomings;

/// What is to be analysed, and what is wanted of it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the packets come from.
    pub source: Source,
    /// Which connections; all if none is given.
    pub select: Option<Selector>,
    /// The same traffic at the other end.
    pub peer: Option<Peer>,
    /// Radio logs, each with the address of its mobile; without one it is that of every client.
    pub radio: Vec<(Option<IpAddr>, Arc<RadioLog>)>,
    /// Whether their time is put down to causes.
    pub causes: bool,
    /// Whether what was said on them is read: HTTP, TLS, QUIC.
    pub exchanges: bool,
    /// Whether every segment of them is kept.
    pub observations: bool,
    /// Whether connections are told of as they end, and then forgotten: there are no tables then.
    pub stream: bool,
}

/// Where packets come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Captures, in the order of their times; [`STANDARD_INPUT`] stands for standard input.
    Captures(Vec<PathBuf>),
    /// The event log of a run, told from one of its ends.
    Log(Arc<EventLog>, Vantage),
}

impl Default for Source {
    fn default() -> Self {
        Self::Captures(Vec::new())
    }
}

impl Source {
    /// What it is called: its first file, or the log.
    fn name(&self) -> String {
        match self {
            Self::Captures(files) => files.first().map(|file| file.display().to_string()).unwrap_or_default(),
            Self::Log(log, _) => log.name().to_owned(),
        }
    }
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Report {
    /// How the captures were read.
    pub reading: Reading,
    /// What the capture lacks of the connections that are told of.
    pub shortcomings: Shortcomings,
    /// Whether the analysis was ended early.
    pub stopped: bool,
    /// The tables, by name.
    pub tables: Vec<(&'static str, Table)>,
    /// What was said, if that was asked for.
    pub exchanges: Option<Exchanges>,
    /// What became of the packets on their way, if there is a capture of the other end.
    pub ends: Option<TwoEnds>,
}

/// Why captures cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No such file, or it cannot be read.
    #[error("{file}: {error}; name a capture file (pcap or pcapng), or - for standard input")]
    Unreadable {
        /// Its name.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// It is no capture.
    #[error("{file}: {error}")]
    NotACapture {
        /// Its name.
        file: String,
        /// Why.
        error: OpenError,
    },
    /// The captures of the two ends have nothing in common.
    #[error("{file} and {peer} do not match; {error}")]
    Peer {
        /// The first capture.
        file: String,
        /// The other.
        peer: String,
        /// Why.
        error: JoinError,
    },
    /// What is joined with the other end's capture is read twice.
    #[error("with a capture of the other end this one is read twice, and standard input cannot be; name a file")]
    ReadTwice,
    /// There is no TCP in it.
    #[error("{0}")]
    NoTcp(String),
    /// There are connections, but not those.
    #[error("no connection matches '{selector}': there are {begun}, numbered from 1; without --flow they are listed")]
    NoSuchFlow {
        /// What was asked for.
        selector: Selector,
        /// The connections that there are.
        begun: u64,
    },
}

/// Analyses captures.
///
/// `line` is given the line of JSON of each connection when it ends, if [`Options::stream`] says so; when it returns `false`, or `stop` is
/// set, the analysis ends early, with what there is until then.
///
/// # Errors
/// Where a file cannot be read or is no capture, or there is no such connection in it.
pub fn analyse(options: &Options, stop: &AtomicBool, line: &mut dyn FnMut(&str) -> bool) -> Result<Report, TraceError> {
    let mut flows = Flows::default();
    let ends = options.peer.as_ref().map(|peer| both_ends(options, peer, stop)).transpose()?;
    let mut collector = Collector::new(options, ends.as_ref(), line);
    let reading = packets(&options.source, |packet| {
        match packet {
            Packet::Segment(segment) => flows.segment(segment, &mut collector),
            Packet::Datagram(datagram) => collector.datagram(datagram),
        }
        collector.goes_on() && !stop.load(Ordering::Relaxed)
    })?;
    let stopped = stop.load(Ordering::Relaxed);
    flows.finish(&mut collector);
    if flows.begun() == 0 {
        return Err(TraceError::NoTcp(reading.without_tcp()));
    }
    if let (Some(selector), 0) = (options.select, collector.selected()) {
        return Err(TraceError::NoSuchFlow { selector, begun: flows.begun() });
    }
    let shortcomings = collector.shortcomings();
    let (mut tables, exchanges) = collector.finish();
    tables.extend(ends.iter().flat_map(ends::tables));
    Ok(Report { reading, shortcomings, stopped, tables, exchanges, ends })
}
