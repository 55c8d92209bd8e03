//! The analysis of captures: packets in, a report of their connections out.
//!
//! | module | what |
//! | --- | --- |
//! | `source`, `reading` | captures and event logs as packets |
//! | `pipeline` | one thread reads, another does the rest: where all connections must be in one place |
//! | `parallel` | connections in shards, for two threads or one, and the merge of what these emit |
//! | [`selector`](Selection) | which connections to analyse |
//! | [`Shortcomings`] | what the capture lacks |
//! | `collect`, `reporter` | the state of each connection, and the line of JSON of each that ended |
//! | `table_builder`, `json_lines` | rows stamped with their frames, and lines of JSON |
//! | `quic` | the QUIC flows, which are not divided into shards |
//! | `inputs` | radio logs and the packets of other connections, for the causes |
//! | `records`, `web_records` | the rows of the tables: connections and segments, HTTP, TLS and QUIC |
//! | `two_point` | captures of both ends joined, and the rows of their tables |
//! | [`table`] | records as columns, and as JSON |
//! | `per_flow` | values by flow number |

mod collect;
mod inputs;
mod json_lines;
mod parallel;
mod per_flow;
mod pipeline;
mod quic;
mod reading;
mod records;
mod reporter;
mod selector;
mod shortcomings;
mod source;
pub mod table;
mod table_builder;
mod two_point;
mod web_records;

use std::cell::{Cell, RefCell};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::radio::RadioLog;
use crate::shared_path::Recorder;
use crate::two_point::{JoinError, JoinedCaptures};
use airpath_capture::decode::Decoded;
use airpath_capture::read::OpenError;
use airpath_observe::flows::{FlowNumber, Flows};
use airpath_web::Exchanges;
use collect::{Collector, END_OF_CAPTURE};
use inputs::Inputs;
use json_lines::JsonLines;
use quic::QuicCollector;
use records::FlowId;
use reporter::Reporter;
use table::Table;
use two_point::both_ends;

pub use reading::{FileReading, Reading, STANDARD_INPUT, Step, WithoutTcp};
pub use records::figures;
pub use selector::{Selection, Selector, SelectorError};
pub use shortcomings::Shortcomings;
pub use source::Source;
pub use two_point::Peer;

/// What to analyse, and which results to produce.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the packets come from.
    pub source: Source,
    /// Which connections; `None` selects all.
    pub select: Option<Selection>,
    /// The same traffic at the other end.
    pub peer: Option<Peer>,
    /// Radio logs, each with the address of its mobile; a log without an address applies to every
    /// client.
    pub radio: Vec<(Option<IpAddr>, Arc<RadioLog>)>,
    /// Whether to attribute the time of the connections to causes.
    pub causes: bool,
    /// Whether to parse the application data: HTTP, TLS, QUIC.
    pub exchanges: bool,
    /// Whether to keep a row for every segment.
    pub observations: bool,
    /// Whether to report each connection when it ends and then drop it; no tables are made.
    pub stream: bool,
    /// Whether to work in the calling thread alone. Else a second thread may help; the output is
    /// the same.
    pub one_thread: bool,
}

/// The result of an analysis.
#[derive(Clone, Debug)]
pub struct Report {
    /// How the captures were read.
    pub reading: Reading,
    /// What the capture lacks of the reported connections.
    pub shortcomings: Shortcomings,
    /// Whether the analysis was ended early.
    pub stopped: bool,
    /// The tables, by name.
    pub tables: Vec<(&'static str, Table)>,
    /// The application data, with [`Options::exchanges`].
    pub exchanges: Option<Exchanges>,
    /// The fate of each packet between the two ends, with [`Options::peer`].
    pub ends: Option<JoinedCaptures>,
}

/// Why captures cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No such file, or it cannot be read.
    #[error("{file}: {error}")]
    Unreadable {
        /// Its name.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// The file is no capture.
    #[error("{file}: {error}")]
    NotACapture {
        /// Its name.
        file: String,
        /// Why.
        error: OpenError,
    },
    /// The captures of the two ends have nothing in common.
    #[error("{file} and {peer} do not match: {error}")]
    Peer {
        /// The first capture.
        file: String,
        /// The other.
        peer: String,
        /// Why.
        error: JoinError,
    },
    /// A capture that is joined with the other end's is read twice; standard input cannot be.
    #[error("with a capture of the other end this one is read twice, and standard input cannot be")]
    ReadTwice,
    /// The captures have no TCP.
    #[error("{0}")]
    NoTcp(WithoutTcp),
    /// No flow matches the selector.
    #[error("no flow matches '{selector}': the capture has {} numbered from 1", counted(*.connections, *.quic))]
    NoSuchFlow {
        /// The selector.
        selector: Selector,
        /// Number of connections of TCP in the captures.
        connections: u64,
        /// Number of QUIC flows in the captures.
        quic: u64,
    },
}

impl TraceError {
    /// What to do about it, where that is known.
    pub fn next_step(&self) -> Option<String> {
        let known = match self {
            Self::Unreadable { .. } => "name a capture file (pcap or pcapng), or - for standard input",
            Self::NotACapture { error, .. } => error.next_step()?,
            Self::Peer { error, .. } => error.next_step(),
            Self::ReadTwice => "name a file",
            Self::NoTcp(without) => without.next_step,
            Self::NoSuchFlow { selector, .. } => return Some(selector.advice()),
        };
        Some(known.to_owned())
    }
}

/// The numbers of flows of a capture, in words.
fn counted(connections: u64, quic: u64) -> String {
    let one_or_more = |count, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    match (connections, quic) {
        (_, 0) => one_or_more(connections, "TCP connection"),
        (0, _) => one_or_more(quic, "QUIC flow"),
        _ => format!("{} and {}, each", one_or_more(connections, "TCP connection"), one_or_more(quic, "QUIC flow")),
    }
}

/// Analyses captures.
///
/// With [`Options::stream`], `line` receives the line of JSON of each connection when it ends. When
/// `line` returns `false` or `stop` is set, the analysis ends early with the results so far.
///
/// # Errors
/// If a file cannot be read or is no capture, or if no connection matches.
pub fn analyse(options: &Options, stop: &AtomicBool, line: &mut dyn FnMut(&str) -> bool) -> Result<Report, TraceError> {
    let mut ends = options.peer.as_ref().map(|peer| both_ends(options, peer, stop)).transpose()?.flatten();
    let found = match &options.source {
        Source::Captures(files) if options.is_divided() => divided(files, options, stop, line)?,
        _ => undivided(options, ends.as_ref(), stop, line)?,
    };
    let Found { reading, begun, mut selected, shortcomings, mut tables, exchanges, quic } = found;
    selected.iter_mut().zip(quic.selected()).for_each(|(sum, flows)| *sum += flows);
    if begun == 0 && quic.begun() == 0 {
        return Err(TraceError::NoTcp(reading.without_tcp()));
    }
    if let Some(selection) = &options.select {
        let unmatched = selection.selectors().iter().zip(selected).find(|(_, flows)| *flows == 0);
        if let Some((&selector, _)) = unmatched {
            return Err(TraceError::NoSuchFlow { selector, connections: begun, quic: quic.begun() });
        }
        if let Some(ends) = &mut ends {
            ends.connections.retain(|joined| selection.matches(FlowId::Connection(joined.flow), &joined.route));
        }
    }
    tables.extend(exchanges.iter().flat_map(web_records::tables));
    if !options.stream {
        tables.extend(quic.tables());
    }
    tables.extend(ends.iter().flat_map(two_point::tables));
    Ok(Report { reading, shortcomings, stopped: stop.load(Ordering::Relaxed), tables, exchanges, ends })
}

/// Results before the tables of both ends and of the application data.
struct Found {
    reading: Reading,
    /// Connections that began.
    begun: u64,
    /// Connections that each selector of [`Options::select`] matches.
    selected: Vec<u64>,
    shortcomings: Shortcomings,
    tables: Vec<(&'static str, Table)>,
    exchanges: Option<Exchanges>,
    quic: QuicCollector,
}

impl Options {
    /// Whether to divide the connections into shards. They may not be divided where the number of a
    /// connection is needed at its first segment, where the results of one depend on others, or
    /// where the capture is live.
    fn is_divided(&self) -> bool {
        let by_number = self.selectors().iter().any(Selector::is_connection_number);
        !self.is_live() && !by_number && !self.exchanges && self.peer.is_none()
    }

    /// The selectors of connections; none selects all.
    fn selectors(&self) -> &[Selector] {
        self.select.as_ref().map_or(&[], Selection::selectors)
    }

    /// Whether the capture may be live: a connection that has ended must not wait until a batch of
    /// later packets is full.
    fn is_live(&self) -> bool {
        self.stream && self.source.is_standard_input()
    }
}

/// Analyses the connections in shards.
fn divided(
    files: &[PathBuf],
    options: &Options,
    stop: &AtomicBool,
    line: &mut dyn FnMut(&str) -> bool,
) -> Result<Found, TraceError> {
    let parallel::Outcome { reading, collectors, flow_order, quic } = parallel::analyse(files, options, stop, line)?;
    let mut shortcomings = Shortcomings::default();
    collectors.iter().for_each(|collector| shortcomings.merge(collector.shortcomings()));
    let mut selected = vec![0; options.selectors().len()];
    for of_shard in collectors.iter().map(Collector::selected) {
        selected.iter_mut().zip(of_shard).for_each(|(sum, flows)| *sum += flows);
    }
    let mut builders: Vec<_> =
        collectors.into_iter().map(|collector| collector.finish().0.named().into_iter()).collect();
    let mut tables = Vec::new();
    loop {
        let next: Vec<_> = builders.iter_mut().filter_map(Iterator::next).collect();
        let Some(&(name, _)) = next.first() else { break };
        let of_name = next.into_iter().map(|(_, builder)| builder).collect();
        let number = |shard, number: i64| flow_order.number(shard, FlowNumber(number as u64)).0 as i64;
        tables.extend(parallel::merged(of_name, END_OF_CAPTURE, number).map(|table| (name, table)));
    }
    Ok(Found { reading, begun: flow_order.begun(), selected, shortcomings, tables, exchanges: None, quic })
}

/// Analyses all connections in this thread; at most another one reads.
fn undivided(
    options: &Options,
    ends: Option<&JoinedCaptures>,
    stop: &AtomicBool,
    line: &mut dyn FnMut(&str) -> bool,
) -> Result<Found, TraceError> {
    let mut flows = Flows::default();
    let paths = Arc::default();
    let mut recorder = Recorder::new(Arc::clone(&paths));
    let mut quic = QuicCollector::new(options, Inputs::new(options, Arc::clone(&paths)));
    let mut collector = Collector::new(options, ends, paths);
    let goes_on = Cell::new(true);
    let mut buffer = String::new();
    let line = RefCell::new(line);
    let emit = |lines: &mut JsonLines, buffer: &mut String| {
        for each in lines.iter() {
            goes_on.set(goes_on.get() && (line.borrow_mut())(lines.text(each, each.flow, buffer)));
        }
        lines.clear();
    };
    let on_end = |_, collector: &mut Collector<'_>| emit(collector.lines(), &mut buffer);
    let mut reporter = Reporter { collector: &mut collector, on_end };
    let (mut lines, mut text) = (JsonLines::default(), String::new());
    let reading = options.source.packets(options.one_thread || options.is_live(), |packet| {
        if options.causes {
            recorder.packet(packet);
        }
        match packet {
            Decoded::Segment(segment) => flows.segment(segment, &mut reporter),
            Decoded::Datagram(datagram) => {
                if quic.datagram(datagram) {
                    quic.take_lines(&mut lines);
                    emit(&mut lines, &mut text);
                }
            }
            Decoded::Skipped(_) => {}
        }
        goes_on.get() && !stop.load(Ordering::Relaxed)
    })?;
    quic.finish();
    quic.take_lines(&mut lines);
    emit(&mut lines, &mut text);
    flows.finish(&mut reporter);
    let (begun, selected, shortcomings) = (flows.begun(), collector.selected().to_vec(), collector.shortcomings());
    let (builders, exchanges) = collector.finish();
    let tables =
        builders.named().into_iter().filter_map(|(name, builder)| Some((name, builder.into_table()?))).collect();
    Ok(Found { reading, begun, selected, shortcomings, tables, exchanges, quic })
}
