//! The one call: captures in, a report of their connections out.
//!
//! | module | what |
//! | --- | --- |
//! | `reading` | captures and event logs as packets |
//! | `sharing` | two threads that share the connections, and `numbers`, which puts in order what they tell |
//! | `pipeline` | reading in one thread, all else in another: where what is wanted needs all connections in one place |
//! | [`selector`](Selector) | which connections are meant |
//! | [`Shortcomings`] | what the capture lacks |
//! | `collect` | what is kept of each connection, and the line of JSON that it leaves when it ends: `sheet`, `lines` |
//! | `records`, `said` | the rows of the tables: of connections and segments, and of what was said on them |
//! | `ends` | captures of both ends joined, and the rows of their tables |
//! | [`table`] | records as columns, and as JSON |
//! | `numbered` | values by the numbers of flows |

mod collect;
mod ends;
mod lines;
mod numbered;
mod numbers;
mod pipeline;
mod reading;
mod records;
mod said;
mod selector;
mod sharing;
mod sheet;
mod shortcomings;
pub mod table;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::event_log::{EventLog, Vantage};
use crate::radio::RadioLog;
use crate::two_ends::{JoinError, TwoEnds};
use airpath_capture::read::OpenError;
use airpath_observe::flows::{Ending, FlowNumber, Flows, Listener};
use airpath_observe::{Connection, Observation};
use airpath_web::Exchanges;
use airpath_wire::segment::Segment;
use collect::{Collector, END_OF_CAPTURE};
use ends::both_ends;
use pipeline::read_ahead;
use reading::{Packet, captured, logged};
use sheet::merged;
use table::Table;

pub use ends::Peer;
pub use reading::{FileReading, Reading, STANDARD_INPUT, Step};
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
    /// Whether all is done in the thread that asks. Else a second one does its part, where that is worth it; what comes out is the same.
    pub one_thread: bool,
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
    /// Whether a capture is read from standard input.
    fn is_standard_input(&self) -> bool {
        matches!(self, Self::Captures(files) if files.iter().any(|file| file.as_os_str() == STANDARD_INPUT))
    }

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
    let ends = options.peer.as_ref().map(|peer| both_ends(options, peer, stop)).transpose()?;
    let found = match &options.source {
        Source::Captures(files) if options.is_divisible() => divided(files, options, stop, line)?,
        _ => undivided(options, ends.as_ref(), stop, line)?,
    };
    let Found { reading, begun, selected, shortcomings, mut tables, exchanges } = found;
    if begun == 0 {
        return Err(TraceError::NoTcp(reading.without_tcp()));
    }
    if let (Some(selector), 0) = (options.select, selected) {
        return Err(TraceError::NoSuchFlow { selector, begun });
    }
    tables.extend(exchanges.iter().flat_map(said::tables));
    tables.extend(ends.iter().flat_map(ends::tables));
    Ok(Report { reading, shortcomings, stopped: stop.load(Ordering::Relaxed), tables, exchanges, ends })
}

/// What was found in captures.
struct Found {
    reading: Reading,
    /// Connections that have begun, and those of them that were told of.
    begun: u64,
    selected: u64,
    shortcomings: Shortcomings,
    tables: Vec<(&'static str, Table)>,
    exchanges: Option<Exchanges>,
}

impl Options {
    /// Whether two threads may share the connections: unless their numbers have to be known at once, or what is collected of one depends on others.
    fn is_divisible(&self) -> bool {
        let by_number = matches!(self.select, Some(Selector::Number(_)));
        !self.in_one_thread() && !by_number && !self.exchanges && self.peer.is_none()
    }

    /// Whether all is done in this thread. Standard input may be a capture that is being made: no connection that has ended shall wait for a batch
    /// of what follows.
    fn in_one_thread(&self) -> bool {
        let live = self.stream && self.source.is_standard_input();
        self.one_thread || live
    }
}

/// Two threads share the connections.
fn divided(
    files: &[PathBuf],
    options: &Options,
    stop: &AtomicBool,
    line: &mut dyn FnMut(&str) -> bool,
) -> Result<Found, TraceError> {
    let sharing::Shared { reading, collectors, numbers } = sharing::share(files, options, stop, line)?;
    let mut shortcomings = Shortcomings::default();
    collectors.iter().for_each(|collector| shortcomings.merge(collector.shortcomings()));
    let selected = collectors.iter().map(Collector::selected).sum();
    let mut sheets: Vec<_> = collectors.into_iter().map(|collector| collector.finish().0.named().into_iter()).collect();
    let mut tables = Vec::new();
    loop {
        let next: Vec<_> = sheets.iter_mut().filter_map(Iterator::next).collect();
        let Some(&(name, _)) = next.first() else { break };
        let of_name = next.into_iter().map(|(_, sheet)| sheet).collect();
        let number = |share, number: i64| numbers.of(share, FlowNumber(number as u64)).0 as i64;
        tables.extend(merged(of_name, END_OF_CAPTURE, number).map(|table| (name, table)));
    }
    Ok(Found { reading, begun: numbers.begun(), selected, shortcomings, tables, exchanges: None })
}

/// All connections in one place: in this thread, and at most another one reads.
fn undivided(
    options: &Options,
    ends: Option<&TwoEnds>,
    stop: &AtomicBool,
    line: &mut dyn FnMut(&str) -> bool,
) -> Result<Found, TraceError> {
    let mut flows = Flows::default();
    let collector = Collector::new(options, ends);
    let mut telling = Telling { collector, line, goes_on: true, space: String::new() };
    let reading = packets(&options.source, options.in_one_thread(), |packet| {
        match packet {
            Packet::Segment(segment) => flows.segment(segment, &mut telling),
            Packet::Datagram(datagram) => telling.collector.datagram(datagram),
        }
        telling.goes_on && !stop.load(Ordering::Relaxed)
    })?;
    flows.finish(&mut telling);
    let collector = telling.collector;
    let (begun, selected, shortcomings) = (flows.begun(), collector.selected(), collector.shortcomings());
    let (sheets, exchanges) = collector.finish();
    let tables = sheets.named().into_iter().filter_map(|(name, sheet)| Some((name, sheet.into_table()?))).collect();
    Ok(Found { reading, begun, selected, shortcomings, tables, exchanges })
}

/// Collects, and tells at once what there is to tell.
struct Telling<'a, 'b> {
    collector: Collector<'a>,
    line: &'b mut dyn FnMut(&str) -> bool,
    /// Whether more is wanted.
    goes_on: bool,
    /// For the text of a line.
    space: String,
}

impl Listener for Telling<'_, '_> {
    #[inline]
    fn observed(
        &mut self,
        flow: FlowNumber,
        observation: &Observation,
        segment: &Segment<'_>,
        connection: &Connection,
    ) {
        self.collector.observed(flow, observation, segment, connection);
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, ending: Ending) {
        self.collector.ended(flow, connection, ending);
        let lines = self.collector.lines();
        for told in lines.iter() {
            self.goes_on = self.goes_on && (self.line)(lines.text(told, told.flow, &mut self.space));
        }
        lines.clear();
    }
}

/// Gives `take` the packets of a source in their order. When that says `false`, nothing more is read.
fn packets(
    source: &Source,
    one_thread: bool,
    mut take: impl FnMut(&Packet<'_>) -> bool,
) -> Result<Reading, TraceError> {
    match source {
        Source::Captures(files) if one_thread => captured(files, |packet| take(&packet)),
        Source::Captures(files) => read_ahead(files, take),
        Source::Log(log, vantage) => Ok(logged(log, *vantage, |packet| take(&packet))),
    }
}
