//! Replay: puts recorded arrivals on a network again in virtual time.
//!
//! A log has the time and place at which each packet entered, and the commands to the bearers. With
//! the scenario and its seed that determines everything else. So the same scenario gives the same
//! departures and drops to the nanosecond, whether the log comes from a simulation or an emulated
//! link. Another scenario gives the fate of the same packets there. The senders are not simulated:
//! they send the same packets whatever happens to these.
//!
//! Among events at the same time, changes of conditions come first, then hops in the order of their
//! indices, then arrivals in the order of the log. A packet that was sent in response to one that
//! arrived at the same time enters right after that arrival.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

pub use airpath_capture::headers::RecordedHeaders;
use airpath_capture::headers::RecordedSegment;
use airpath_core::{Direction, Ecn, FlowId, Instant, Seed, SegmentInfo, Sink, UserId};
use airpath_link::{BearerCommand, CommandError};
use airpath_path::{Change, Payload as TcpPayload, Side};
use airpath_result::summary::{Ended, Repetition};
use airpath_result::{FolderError, Rows, Summary};
use airpath_scenario::{PlannedPath, Scenario, ScenarioError, Users};
use airpath_tcp::Segment;

use crate::network::{Network, Node, Outgoing};
use crate::packet_buffer::Payload;
use crate::rows::{self, HopRows};
use crate::runner::begin_folder;
use crate::simulation::Setup;

/// The stop flag is read once in this number of events.
const STOP_CHECK: u64 = 1 << 12;

/// The recorded arrivals and commands of one repetition.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The number of the repetition.
    pub repetition: u64,
    /// When it ended; the replay ends at the same time.
    pub end: Instant,
    /// The packets, in the order in which they entered.
    pub arrivals: Vec<Arrival>,
    /// Commands that are not planned in the scenario, in the order of time.
    pub commands: Vec<Command>,
    /// The headers of the packets as bytes, which a proxy needs, and a bearer that reads them.
    pub headers: Option<RecordedHeaders>,
}

/// A packet that enters its first hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When.
    pub time: Instant,
    /// Its direction.
    pub direction: Direction,
    /// Its number.
    pub id: u64,
    /// Size of the IP packet in bytes.
    pub size: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its flow, which the scenario need not have.
    pub flow: FlowId,
    /// The mobile that it goes to or comes from.
    pub user: UserId,
    /// Its TCP header in terms of stream offsets, if known.
    pub header: Option<SegmentInfo>,
    /// Number of packets that had arrived at end points at the same time before it was sent.
    pub after: u32,
}

/// A command to a bearer.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// When.
    pub at: Instant,
    /// The name of the bearer.
    pub component: String,
    /// The command.
    pub command: BearerCommand,
}

/// Options of a replay.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The result folder; none to return the summary only.
    pub out: Option<PathBuf>,
    /// Whether to write the event log.
    pub log: bool,
}

/// Why a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The scenario cannot be built.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The result could not be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A packet of a mobile that the scenario does not have.
    #[error("packet {packet} belongs to mobile number {user}, but the scenario has {mobiles}: add mobiles to it")]
    NoSuchMobile {
        /// The number of the packet.
        packet: u64,
        /// The number of the mobile, from 0.
        user: u32,
        /// How many there are.
        mobiles: usize,
    },
    /// Packets that are not in the order of time.
    #[error("packet {packet} enters before its predecessor: the log is damaged")]
    Order {
        /// The number of the packet.
        packet: u64,
    },
    /// A proxy or a bearer that needs headers, and no headers.
    #[error(
        "the scenario has {table}, but the result has no headers of its packets for it: only a run with {table} and an \
         event log writes them; remove the table {table}, or run the scenario again"
    )]
    NoHeaders {
        /// The table of the scenario.
        table: &'static str,
    },
    /// Headers of other packets.
    #[error("the result has {packets} packets, but the headers of {headers}: its files do not belong together")]
    OtherHeaders {
        /// Packets in the log.
        packets: usize,
        /// Packets in the file of headers.
        headers: usize,
    },
    /// A proxy in front of a bearer that needs headers.
    #[error(
        "the scenario has `proxy` with {table}: the packets that reach the bearer are those of the proxy, and their \
         headers are not in the result; remove one of these tables, or run the scenario again"
    )]
    HeadersOfProxy {
        /// The table of the bearer.
        table: &'static str,
    },
    /// A command to a bearer that the scenario does not have.
    #[error("the log has a command to `{component}`, which the scenario does not have: its bearers are {known}")]
    NoSuchBearer {
        /// The name.
        component: String,
        /// The names that there are.
        known: String,
    },
    /// A command that a bearer cannot carry out.
    #[error("`{component}` cannot carry out the command at {at}: {source}")]
    Command {
        /// When it was given.
        at: Instant,
        /// The bearer.
        component: String,
        /// Why it cannot.
        source: CommandError,
    },
}

/// Replays `recordings` on the network of `scenario`. `stop` ends the replay early, with the
/// results up to then.
///
/// # Errors
/// If the recording does not fit the scenario, or the result cannot be written.
pub fn replay(
    scenario: &Scenario,
    recordings: &[Recording],
    options: &Options,
    stop: &AtomicBool,
) -> Result<Summary, ReplayError> {
    let components = Setup::network(scenario, Seed::new(scenario.seed))?.names();
    // Before a folder is begun.
    for recording in recordings {
        Replay::new(scenario, None, recording)?;
    }
    let folder = options.out.as_deref().map(|out| begin_folder(scenario, out)).transpose()?;
    let mut summary = Summary::new(&scenario.name, scenario.seed, &components);
    if let Some(folder) = &folder {
        let mut unfinished = summary.clone();
        unfinished.unfinished("ended from outside before all repetitions were done");
        folder.save(&unfinished)?;
    }
    for recording in recordings {
        let log = folder.as_ref().filter(|_| options.log);
        let mut log = log
            .map(|folder| folder.event_log(recording.repetition, &components, scenario.log.classes()))
            .transpose()?;
        let rows = replay_into(scenario, recording, log.as_mut().map(|log| log as &mut dyn Sink), stop)?;
        let ended = rows.repetition.ended;
        summary.add(rows);
        if let (Some(folder), Some(log)) = (&folder, log) {
            log.finish().map_err(|source| folder.error("events", source))?;
        }
        if ended == Ended::Interrupted {
            summary.unfinished("interrupted");
            break;
        }
    }
    if let Some(folder) = &folder {
        folder.save(&summary)?;
    }
    Ok(summary)
}

/// Replays one repetition and sends its events to `sink`; returns the summary rows.
///
/// # Errors
/// If the recording does not fit the scenario.
pub fn replay_into<'a>(
    scenario: &Scenario,
    recording: &'a Recording,
    sink: Option<&'a mut dyn Sink>,
    stop: &AtomicBool,
) -> Result<Rows, ReplayError> {
    let mut replay = Replay::new(scenario, sink, recording)?;
    let ended = replay.run(stop)?;
    Ok(replay.rows(ended))
}

/// The replay of one repetition.
struct Replay<'a> {
    network: Network<'a>,
    arrivals: Arrivals<'a>,
    number: u64,
    end: Instant,
    /// All commands, those of the scenario and those of the recording, in the order of time.
    commands: Vec<Change>,
    /// Commands that were carried out.
    commanded: usize,
    now: Instant,
    events: u64,
}

/// The recorded packets, and those of them that have entered.
struct Arrivals<'a> {
    recorded: &'a [Arrival],
    headers: Option<&'a RecordedHeaders>,
    /// Whether a proxy reads their segments.
    has_proxy: bool,
    entered: usize,
    /// Packets that have arrived at end points at the current time.
    received: u32,
}

/// The next event.
enum Next {
    Command(Instant),
    Node(Instant, u32),
    Arrival(Instant),
}

impl<'a> Replay<'a> {
    fn new(
        scenario: &Scenario,
        sink: Option<&'a mut (dyn Sink + 'a)>,
        recording: &'a Recording,
    ) -> Result<Self, ReplayError> {
        let setup = Setup::network(scenario, Seed { seed: scenario.seed, repetition: recording.repetition })?;
        check_headers(scenario, &setup, recording)?;
        let (network, mut commands) = setup.into_network(sink);
        check_arrivals(&recording.arrivals, network.path.route().users())?;
        for Command { at, component, command } in &recording.commands {
            let hop = network.path.hops().position(|(name, _)| name == component).ok_or_else(|| {
                let known: Vec<&str> = network.path.hops().map(|(name, _)| name).collect();
                ReplayError::NoSuchBearer { component: component.clone(), known: known.join(", ") }
            })?;
            commands.push(Change { at: *at, hop, command: command.clone() });
        }
        commands.sort_by_key(|change| change.at);
        Ok(Self {
            network,
            arrivals: Arrivals {
                recorded: &recording.arrivals,
                headers: recording.headers.as_ref(),
                has_proxy: scenario.proxy.is_some(),
                entered: 0,
                received: 0,
            },
            number: recording.repetition,
            end: recording.end,
            commands,
            commanded: 0,
            now: Instant::ZERO,
            events: 0,
        })
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<Ended, ReplayError> {
        while let Some(next) = self.next() {
            let (Next::Command(time) | Next::Node(time, _) | Next::Arrival(time)) = next;
            if time > self.end {
                break;
            }
            if time > self.now {
                (self.now, self.arrivals.received) = (time, 0);
            }
            self.events += 1;
            if self.events.is_multiple_of(STOP_CHECK) && (stop.load(Ordering::Relaxed) || self.network.has_failed()) {
                return Ok(Ended::Interrupted);
            }
            match next {
                Next::Command(_) => self.command()?,
                Next::Node(now, node) => self.serve(now, node),
                Next::Arrival(_) => self.arrivals.enter(&mut self.network),
            }
        }
        self.now = self.end;
        self.network.path.end(self.now);
        Ok(if self.arrivals.next().is_none() { Ended::Finished } else { Ended::Duration })
    }

    /// The next event; among those at the same time commands come first, then hops.
    fn next(&mut self) -> Option<Next> {
        let command = self.commands.get(self.commanded).map(|change| change.at);
        let arrival = self.arrivals.next().map(|arrival| arrival.time);
        if let Some((time, node)) = self.network.events.pop() {
            let earlier = |other: Option<Instant>| other.is_some_and(|other| other < time);
            if command != Some(time) && !earlier(command) && !earlier(arrival) {
                return Some(Next::Node(time, node));
            }
            self.network.events.wake(node, Some(time));
        }
        match (command, arrival) {
            (Some(command), Some(arrival)) if arrival < command => Some(Next::Arrival(arrival)),
            (Some(command), _) => Some(Next::Command(command)),
            (None, arrival) => arrival.map(Next::Arrival),
        }
    }

    fn command(&mut self) -> Result<(), ReplayError> {
        let Change { at, hop, command } = &self.commands[self.commanded];
        self.commanded += 1;
        self.network.command(*at, *hop, command).map_err(|source| ReplayError::Command {
            at: *at,
            component: self.network.path.names()[*hop].clone(),
            source,
        })
    }

    /// Forwards what has left a hop; responses to what has arrived enter at once.
    fn serve(&mut self, now: Instant, node: u32) {
        let Self { network, arrivals, .. } = self;
        let Node::Hop(hop) = network.decode_node(node) else { return };
        network.drain_hop(now, hop, |network, _, _| {
            arrivals.received += 1;
            while let Some(response) = arrivals.next()
                && response.time == now
                && (1..=arrivals.received).contains(&response.after)
            {
                arrivals.enter(network);
            }
        });
    }

    fn rows(&self, ended: Ended) -> Rows {
        let path = &self.network.path;
        // The mobiles come after the hops and the server.
        let names = &path.names()[path.hops().len() + 1..];
        let HopRows { links, radio, mobiles } = rows::of_hops(path.hops(), path.route(), names, self.number);
        let repetition = Repetition {
            repetition: self.number,
            simulated_s: self.now.as_secs_f64(),
            ended,
            packets: self.arrivals.entered as u64,
            events: self.events,
        };
        Rows {
            repetition,
            flows: Vec::new(),
            links,
            radio,
            mobiles,
            pages: Vec::new(),
            objects: Vec::new(),
            buffers: Vec::new(),
            segments: Vec::new(),
            scripts: Vec::new(),
            middleboxes: Vec::new(),
        }
    }
}

impl<'a> Arrivals<'a> {
    fn next(&self) -> Option<&'a Arrival> {
        self.recorded.get(self.entered)
    }

    /// The next packet enters the network.
    fn enter(&mut self, network: &mut Network<'_>) {
        let Some(&arrival) = self.next() else { return };
        let Arrival { time, direction, id, size, ecn, flow, user, header, .. } = arrival;
        let headers = self.headers;
        let (number, side) = (self.entered, Side::at_start_of(direction));
        self.entered += 1;
        network.packets = id;
        let segment = headers.filter(|_| self.has_proxy).and_then(|headers| headers.segment(number));
        let outgoing = |payload| Outgoing { flow, user, side, size, ecn, payload };
        if let (Some(info), Some(RecordedSegment { is_ipv6, header, length })) = (header, segment) {
            if is_ipv6 {
                network.set_ipv6(flow);
            }
            network.send(time, outgoing(Payload::Segment(Segment { header, length, ecn, info })));
        } else {
            let bytes = headers.map(|headers| TcpPayload::Bytes([headers.get(number), &[]]));
            network.send_with(time, outgoing(Payload::Recorded(header)), bytes.unwrap_or(TcpPayload::Counted));
        }
    }
}

/// Whether the recording has the headers that the scenario needs.
fn check_headers(scenario: &Scenario, setup: &Setup, recording: &Recording) -> Result<(), ReplayError> {
    let of_bearer = setup.inspects_headers().then_some("`bearer.header_compression` or `bearer.voice`");
    let of_proxy = scenario.proxy.as_ref().map(|_| "`proxy`");
    if let (Some(table), Some(_)) = (of_bearer, of_proxy) {
        return Err(ReplayError::HeadersOfProxy { table });
    }
    let Some(table) = of_bearer.or(of_proxy) else { return Ok(()) };
    let Some(headers) = &recording.headers else { return Err(ReplayError::NoHeaders { table }) };
    if headers.len() != recording.arrivals.len() {
        return Err(ReplayError::OtherHeaders { packets: recording.arrivals.len(), headers: headers.len() });
    }
    Ok(())
}

/// Whether all packets belong to one of `mobiles` mobiles and are in the order of time.
fn check_arrivals(arrivals: &[Arrival], mobiles: usize) -> Result<(), ReplayError> {
    let mut last = Instant::ZERO;
    for arrival in arrivals {
        if arrival.user.index() >= mobiles {
            return Err(ReplayError::NoSuchMobile { packet: arrival.id, user: arrival.user.number(), mobiles });
        }
        if arrival.time < last {
            return Err(ReplayError::Order { packet: arrival.id });
        }
        last = arrival.time;
    }
    Ok(())
}

/// The commands of a log that `scenario` does not plan: they were given while the link ran.
///
/// # Errors
/// If the path of the scenario cannot be built.
pub fn unplanned_commands(scenario: &Scenario, logged: Vec<Command>) -> Result<Vec<Command>, ScenarioError> {
    let PlannedPath { topology, changes } = scenario.build_path(Seed::new(scenario.seed), Users::All)?;
    let command = |Change { at, hop, command }| Command { at, component: topology.hops[hop].0.clone(), command };
    let mut planned: Vec<Command> = changes.into_iter().map(command).collect();
    let mut is_unplanned = |command: &Command| match planned.iter().position(|planned| planned == command) {
        Some(index) => {
            planned.remove(index);
            false
        }
        None => true,
    };
    Ok(logged.into_iter().filter(|command| is_unplanned(command)).collect())
}

/// Names of the components of a scenario, by their number in its log.
///
/// # Errors
/// If the path of the scenario cannot be built.
pub fn component_names(scenario: &Scenario) -> Result<Vec<String>, ScenarioError> {
    Ok(Setup::network(scenario, Seed::new(scenario.seed))?.names())
}
