//! A link from its scenario to its result: build both ends, start the programs, forward packets
//! until the command has ended, write the result.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use airpath_capture::headers::HeaderRecorder;
use airpath_core::{Direction, FlowId, Seed, Sink, Span, UserId};
use airpath_eventlog::EventLog;
use airpath_link::RecordingError;
use airpath_path::{Path as HopPath, PolledPath};
use airpath_result::summary::{Ended, FlowRow, LinkRow, MobileRow, RadioRow, Repetition};
use airpath_result::{Folder, INPUTS, Rows, Summary};
use airpath_scenario::{BearerConfig, Scenario, Users};
use nix::poll::{PollFd, PollFlags, poll};
use serde::Serialize;

use crate::clock::{Clock, time_of_day};
use crate::control::ControlSocket;
use crate::forwarder::Forwarder;
use crate::lateness::{LatenessRow, default_budget};
use crate::message::message;
use crate::namespace::{Listeners, NetworkNamespace};
use crate::observe::Observer;
use crate::radio_state::{Listener, RadioState};
use crate::record::Recorder;
use crate::session::{Command, Session, Signals, Waiting, cores};
use crate::status::Status;
use crate::supervisor::{ChildEvent, Exit, Program, Programs, Supervisor};
use crate::sys::Scheduling;
use crate::taps::{Captures, Taps};
use crate::testbed::{Device, FarEnd, Plan, Testbed, environment};
use crate::{LinkError, host_ports};

/// What to run on a link, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program at the mobile.
    pub command: Program,
    /// The server at the other end; without one the host's network is there.
    pub server: Option<Program>,
    /// The result folder.
    pub out: Option<PathBuf>,
    /// Whether to write the event log.
    pub log: bool,
    /// Whether to capture packets at both ends.
    pub capture: bool,
    /// Writes deliveries as recorded links: this path with `.down` and `.up` added. A direction
    /// that delivered less than 1,500 bytes has no file.
    pub record: Option<PathBuf>,
    /// How to wait until a packet is due.
    pub waiting: Waiting,
    /// The lateness that 99 % of the packets must not exceed; by default that of
    /// [`default_budget`].
    pub budget: Option<Span>,
    /// How packets get from the kernel into this process; by default the better one of those that
    /// the host has.
    pub device: Option<Device>,
    /// Whether the kernel may hand over TCP in segments larger than the link's packets.
    pub offload: bool,
    /// The largest IP packet on the link, in bytes.
    pub mtu: u32,
    /// Kernel parameters for the namespaces of the link.
    pub parameters: Vec<(String, String)>,
    /// Further names of the server, each with an address of its own.
    pub hosts: Vec<String>,
    /// Ports of this host that the mobile reaches at the server's address, on a closed link.
    pub host_ports: Vec<u16>,
    /// Whether MPTCP uses the second interface of the mobile.
    pub mptcp: bool,
    /// Socket to the process that connects them ([`crate::host_ports`]).
    pub host_relay: RawFd,
    /// Whether to draw a status line.
    pub status: bool,
    /// Whether the control socket reports the state of the radio.
    pub watched: bool,
}

impl Options {
    /// Whether the other end is a namespace of this link, not the host's network.
    fn is_closed(&self) -> bool {
        self.server.is_some() || !self.host_ports.is_empty()
    }
}

/// How a link ended.
#[derive(Debug)]
pub struct Outcome {
    /// How its command ended.
    pub exit: Exit,
    /// The summary.
    pub summary: Summary,
    /// How late packets left.
    pub lateness: LatenessRow,
    /// The period in which the bearer transmits, if it has any.
    pub transmission_period: Option<Span>,
    /// Packets that the kernel dropped because this process did not read them in time.
    pub overruns: u64,
}

/// The part of the summary that only a link under the real clock has.
#[derive(Clone, Debug, Serialize)]
struct Emulation {
    /// Number of the process that forwards the packets.
    process: u32,
    /// When it began, in seconds since 1 January 1970, UTC.
    started_s: f64,
    /// The words of the command, the server's line, and how the command ended.
    command: Vec<String>,
    serve: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    host_ports: Vec<u16>,
    exit: String,
    /// Time of the command; none if it did not end.
    command_s: Option<f64>,
    /// How packets were read, and how the process waited.
    device: &'static str,
    offload: bool,
    precise: bool,
    realtime_priority: bool,
    mtu: u32,
    parameters: Vec<(String, String)>,
    host: Host,
    lateness: LatenessRow,
    /// Packets that were dropped outside of the path, by cause.
    refused: BTreeMap<&'static str, u64>,
    /// Packets that never entered the path: the kernel dropped them because this process did not
    /// read them in time, or could not pass them to it.
    overruns: u64,
    /// Counters of middleboxes beside those of packets, by hop and name.
    middleboxes: BTreeMap<String, BTreeMap<&'static str, u64>>,
}

#[derive(Clone, Debug, Serialize)]
struct Host {
    kernel: String,
    cores: usize,
    /// The default of the link's namespaces.
    congestion_control: String,
}

/// Runs a command on the link that `scenario` describes, until it ends.
///
/// The calling process must have one thread only. Without privileges it is in a user namespace of
/// its own afterwards.
///
/// # Errors
/// If the link cannot be built or kept, or its result not be written.
pub fn run(scenario: &Scenario, options: &Options) -> Result<Outcome, LinkError> {
    if scenario.second_bearer.is_some() && !options.is_closed() {
        return Err(LinkError::SecondBearerOutside);
    }
    if options.mptcp && scenario.second_bearer.is_none() {
        return Err(LinkError::MptcpAlone);
    }
    let planned = scenario.build_path(Seed::new(scenario.seed), Users::First)?;
    let components = planned.topology.component_names();
    let folder = create_folder(scenario, options, &components)?;
    // Opened here, because the namespaces of the link hide it.
    let control = ControlSocket::open()?;
    let plan = plan(options, scenario);
    let testbed = Testbed::build(&plan)?;
    let supervisor = start_programs(options, &plan, &testbed, folder.as_ref())?;
    let signals = Signals::take()?;
    // From here on there may be other threads.
    let mut log = match &folder {
        Some(folder) if options.log => Some(folder.event_log(0, &components, scenario.log.classes())?),
        _ => None,
    };
    let (started, clock) = (time_of_day(), Clock::start());
    let radio = Rc::new(Cell::new(RadioState::default()));
    let status = if options.status { Status::begin(radio.clone()) } else { None };
    let log_sink = log.as_mut().map(|log| log as &mut dyn Sink);
    // The status line needs the states of the radio, with or without a log.
    let mut listener = None;
    let sink = if status.is_some() || options.watched {
        Some(listener.insert(Listener::new(log_sink, radio.clone())) as &mut dyn Sink)
    } else {
        log_sink
    };
    let path = HopPath::new(planned.topology, sink);
    let taps = open_taps(&Wanted {
        folder: folder.as_ref(),
        started,
        capture: options.capture,
        record: options.record.is_some(),
        // The observer numbers the flows of packets.
        observe: folder.is_some() || path.inspects_segments() || scenario.distinguishes_flows(),
        headers: options.log && (scenario.proxy.is_some() || path.inspects_headers()),
    })?;
    let path = PolledPath::new(path, planned.changes);
    let mut forwarder = Forwarder::new(path, clock, taps, &testbed.server_port, &testbed.mobile_port);
    forwarder.set_second(testbed.second.as_ref());
    forwarder.set_time_of_day(started);
    let bearers = [Some(&scenario.bearer), scenario.second_bearer.as_ref()].into_iter().flatten();
    let transmission_period = bearers.filter_map(BearerConfig::transmission_period).min();
    let budget = options.budget.unwrap_or_else(|| default_budget(transmission_period));
    let mut command = Command::new(scenario, supervisor, budget);
    command.radio = options.watched.then_some(radio);
    let mut session = Session::new(forwarder, command, control, signals, options.waiting, status)?;
    // Other links still carry packets while this one writes its result.
    let scheduling = Scheduling::current();
    let realtime_priority = options.waiting.raise_priority();
    session.operator.start = session.forwarder.clock.now();
    let ended = session.operator.supervisor.go().and_then(|()| session.run());
    drop(scheduling);
    let Session { mut forwarder, operator: Command { exit, start, end, .. }, .. } = session;
    let ended = ended.and_then(|()| exit.ok_or(LinkError::InitGone));
    let mut emulation = Emulation::new(options, &testbed, started, &forwarder, &ended, budget, realtime_priority);
    emulation.command_s = end.map(|end| end.since(start).as_secs_f64());
    let (lateness, overruns) = (emulation.lateness, emulation.overruns);
    let mut summary = Summary::new(&scenario.name, scenario.seed, &components);
    let end = if ended.is_ok() { Ended::Finished } else { Ended::Interrupted };
    forwarder.end();
    let mut rows = rows(&forwarder, end);
    if options.is_closed() {
        emulation.host.name_stack(&mut rows.flows);
    }
    summary.add(rows);
    summary.emulation = Some(serde_json::to_value(emulation).expect("it is made of numbers and text"));
    if let Err(error) = &ended {
        summary.unfinished(&error.to_string());
    }
    let taps = forwarder.into_taps();
    // No command ran: recorded links of an earlier run stay.
    let record = options.record.as_deref().filter(|_| !matches!(ended, Ok(Exit::NotExecuted(_))));
    let written = finish(folder.as_ref(), log, taps, record);
    if let Err(error) = &written {
        summary.unfinished(&error.to_string());
    }
    folder.as_ref().map_or(Ok(()), |folder| folder.save(&summary))?;
    let exit = ended?;
    written?;
    Ok(Outcome { exit, summary, lateness, transmission_period, overruns })
}

impl Emulation {
    fn new(
        options: &Options,
        testbed: &Testbed,
        started: Span,
        forwarder: &Forwarder<'_>,
        ended: &Result<Exit, LinkError>,
        budget: Span,
        realtime_priority: bool,
    ) -> Self {
        let overruns = testbed.overruns();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            process: std::process::id(),
            started_s: started.as_secs_f64(),
            command: options.command.words(),
            serve: options.server.as_ref().and_then(Program::shell_line),
            host_ports: options.host_ports.clone(),
            command_s: None,
            exit: ended.as_ref().map_or_else(|error| error.to_string(), |exit| exit.to_string()),
            device: testbed.device.name(),
            offload: options.offload,
            precise: options.waiting == Waiting::Precise,
            realtime_priority,
            mtu: options.mtu,
            parameters: options.parameters.clone(),
            host: Host {
                kernel: kernel.trim_end().to_owned(),
                cores: cores(),
                congestion_control: testbed.congestion_control.clone(),
            },
            lateness: forwarder.lateness.row(budget, overruns),
            refused: forwarder.dropped.by_cause(),
            overruns,
            middleboxes: middleboxes(forwarder.path()),
        }
    }
}

/// Counters of middleboxes that have any.
fn middleboxes(path: &HopPath<'_>) -> BTreeMap<String, BTreeMap<&'static str, u64>> {
    let counters = path.hops().map(|(name, hop)| (name.to_owned(), hop.statistics().into_iter().collect()));
    counters.filter(|(_, counters): &(_, BTreeMap<_, _>)| !counters.is_empty()).collect()
}

impl Host {
    /// Names the kernel and its congestion control in the `tcp` of flows whose two ends are
    /// programs on this host. A program can select another congestion control for its own socket.
    fn name_stack(&self, flows: &mut [FlowRow]) {
        for tcp in flows.iter_mut().filter_map(|flow| flow.transfer.as_mut()).map(|row| Arc::make_mut(&mut row.tcp)) {
            tcp["profile"] = format!("Linux {}", self.kernel).into();
            tcp["congestion"] = serde_json::json!({ "algorithm": self.congestion_control });
        }
    }
}

/// Creates the result folder of a link.
fn create_folder(scenario: &Scenario, options: &Options, components: &[String]) -> Result<Option<Folder>, LinkError> {
    let Some(out) = &options.out else { return Ok(None) };
    let kept = scenario.archive(out, INPUTS);
    create_folder_of(Some(out), &scenario.name, &kept.toml, &kept.files, (scenario.seed, components))
}

/// Creates a result folder at `out`, with a summary that remains if the process is killed.
pub(crate) fn create_folder_of(
    out: Option<&Path>,
    name: &str,
    scenario: &str,
    files: &[(PathBuf, PathBuf)],
    (seed, components): (u64, &[String]),
) -> Result<Option<Folder>, LinkError> {
    let Some(out) = out else { return Ok(None) };
    let folder = Folder::create(out, scenario, files)?;
    let mut summary = Summary::new(name, seed, components);
    summary.unfinished("ended from outside before its command had ended");
    summary.emulation = Some(serde_json::json!({ "process": std::process::id() }));
    folder.save(&summary)?;
    Ok(Some(folder))
}

fn plan<'a>(options: &'a Options, scenario: &Scenario) -> Plan<'a> {
    let http = scenario.proxy.as_ref().and_then(|proxy| proxy.http.as_ref());
    Plan {
        far_end: if options.is_closed() { FarEnd::Server } else { FarEnd::Outside },
        device: options.device.unwrap_or_else(Device::of_host),
        offload: options.offload,
        mtu: options.mtu,
        parameters: &options.parameters,
        hosts: &options.hosts,
        proxy: http.and_then(|http| http.address).map(|address| address.ip()),
        second: scenario.second_bearer.is_some(),
        mptcp: options.mptcp,
    }
}

/// Starts the server and waits until it listens; the command waits to begin.
fn start_programs(
    options: &Options,
    plan: &Plan<'_>,
    testbed: &Testbed,
    folder: Option<&Folder>,
) -> Result<Supervisor, LinkError> {
    let mut supervisor = Supervisor::start(&Programs {
        command: &options.command,
        server: options.server.as_ref().zip(testbed.server.as_ref()),
        server_log: folder.map(|folder| folder.path().join("server.log")),
        mobile: &testbed.mobile,
        environment: environment(testbed.addresses, plan),
    })?;
    if let Some(server) = &testbed.server {
        if options.server.is_some() {
            await_server(server, &mut supervisor)?;
        }
        host_ports::open(server, &options.host_ports, options.host_relay)?;
    }
    Ok(supervisor)
}

/// The packet observers of a run.
pub(crate) struct Wanted<'a> {
    pub folder: Option<&'a Folder>,
    pub started: Span,
    pub capture: bool,
    pub record: bool,
    /// The flow observer parses every packet, so it exists only if its output is used.
    pub observe: bool,
    /// Headers of the packets that enter, for a replay.
    pub headers: bool,
}

/// Opens the packet observers.
pub(crate) fn open_taps(wanted: &Wanted<'_>) -> Result<Taps, LinkError> {
    let Wanted { folder, started, .. } = *wanted;
    let captures = match folder {
        Some(folder) if wanted.capture => {
            Some(Captures::create(&folder.captures(), started).map_err(|error| folder.error("captures", error))?)
        }
        _ => None,
    };
    let headers = match folder {
        Some(folder) if wanted.headers => {
            Some(HeaderRecorder::create(&folder.headers(), 0).map_err(|error| folder.error("headers", error))?)
        }
        _ => None,
    };
    Ok(Taps {
        observer: wanted.observe.then(Observer::new),
        captures,
        headers,
        recorder: wanted.record.then(Recorder::default),
    })
}

/// The rows of the summary.
pub(crate) fn rows(forwarder: &Forwarder<'_>, ended: Ended) -> Rows {
    let path = forwarder.path();
    let interfaces = path.route().users();
    // The mobiles come after the hops and the server.
    let mobiles = &path.names()[path.hops().len() + 1..];
    let mobile = if forwarder.second().is_some() { mobiles.first() } else { mobiles.last() };
    let mobile = mobile.expect("a path has a mobile");
    let mut rows = Rows {
        repetition: Repetition {
            repetition: 0,
            // Packets that became due later have not left, and a replay ends where the link did.
            simulated_s: forwarder.delivered_until.as_secs_f64(),
            ended,
            packets: forwarder.packets(),
            events: 0,
        },
        flows: forwarder.taps().observer.as_ref().map(|observer| observer.rows(0, mobile)).unwrap_or_default(),
        links: Vec::new(),
        radio: Vec::new(),
        mobiles: Vec::new(),
        pages: Vec::new(),
        objects: Vec::new(),
        buffers: Vec::new(),
        segments: Vec::new(),
        scripts: Vec::new(),
        middleboxes: Vec::new(),
    };
    if let Some(second) = forwarder.second() {
        for (row, flow) in rows.flows.iter_mut().zip(0..) {
            let observer = forwarder.taps().observer.as_ref();
            let address = observer.and_then(|observer| observer.mobile_address(FlowId(flow)));
            if address.is_some_and(|address| address == second.addresses.like(address)) {
                row.mobile.clone_from(&mobiles[1]);
            }
        }
    }
    let users = (0..interfaces as u32).map(UserId::new);
    for (index, (name, hop)) in path.hops().enumerate() {
        for user in users.clone().filter(|user| path.route().cell_of(*user) == Some(index)) {
            let totals = hop.connection_totals(user);
            rows.mobiles.extend(totals.map(|totals| MobileRow::of(name, user, &mobiles[user.index()], 0, &totals)));
        }
        for direction in Direction::BOTH {
            rows.links.push(LinkRow::of(name, direction, 0, &hop.counters(direction)));
            for user in users.clone().filter(|user| path.route().cell_of(*user) == Some(index)) {
                let totals = hop.radio_totals(direction, user);
                rows.radio.extend(totals.map(|totals| RadioRow::of(name, direction, user, 0, &totals)));
            }
        }
    }
    rows
}

/// Pauses between checks whether the server listens, in milliseconds; the last one repeats. A check
/// takes the kernel some milliseconds.
const SERVER_CHECK_PAUSES: [u16; 5] = [10, 20, 40, 80, 160];
const MOST_SERVER_CHECKS: usize = 64;

/// Checks for which a server that listens at loopback addresses only is given time to open others.
const MOST_LOOPBACK_CHECKS: usize = 4;

/// Waits until the server listens at some port, at most ten seconds.
fn await_server(network: &NetworkNamespace, supervisor: &mut Supervisor) -> Result<(), LinkError> {
    let (mut loopback_checks, mut exit) = (0, None);
    for check in 0..MOST_SERVER_CHECKS {
        let mut events = [PollFd::new(supervisor.descriptor(), PollFlags::POLLIN)];
        let pause = SERVER_CHECK_PAUSES[check.min(SERVER_CHECK_PAUSES.len() - 1)];
        if poll(&mut events, pause).unwrap_or(0) > 0 {
            match supervisor.next_event() {
                Some(ChildEvent::Server(ended)) => exit = Some(ended),
                Some(ChildEvent::Command(_)) | None => return Err(LinkError::InitGone),
            }
        }
        // A server that has become a daemon runs on in another process.
        if let Some(exit) = exit
            && (exit != Exit::Code(0) || !supervisor.has_programs())
        {
            return Err(LinkError::ServerEnded(exit.to_string()));
        }
        match network.listeners() {
            Listeners::Reachable => return Ok(()),
            Listeners::Loopback if loopback_checks == MOST_LOOPBACK_CHECKS => {
                message(
                    "airpath: the server listens at 127.0.0.1 only; let it listen at 0.0.0.0, or the host `server`",
                );
                return Ok(());
            }
            Listeners::Loopback => loopback_checks += 1,
            Listeners::None => {}
        }
    }
    message("airpath: the server listens at no port yet; the command starts anyway");
    Ok(())
}

/// Removes the recorded link of an earlier run. A device or a pipe stays.
fn remove_earlier(file: &Path) -> Result<(), RecordingError> {
    let removed = if file.is_file() { fs::remove_file(file) } else { Ok(()) };
    removed.map_err(|error| RecordingError::Io { file: file.to_owned(), error })
}

/// Finishes all output files. Returns the first error, after all were tried.
pub(crate) fn finish(
    folder: Option<&Folder>,
    log: Option<EventLog>,
    taps: Taps,
    record: Option<&Path>,
) -> Result<(), LinkError> {
    let in_folder = |name: &'static str| {
        move |error| match folder {
            Some(folder) => LinkError::from(folder.error(name, error)),
            None => LinkError::Host(name, error),
        }
    };
    let logged = log.map_or(Ok(()), |log| log.finish().map(drop)).map_err(in_folder("events"));
    let Taps { captures, headers, recorder, .. } = taps;
    let headers = headers.map_or(Ok(()), HeaderRecorder::finish).map_err(in_folder("headers"));
    let captured = captures.map_or(Ok(()), Captures::finish).map_err(in_folder("captures"));
    let recorded = record.zip(recorder).map_or(Ok(()), |(path, recorder)| {
        Direction::BOTH.into_iter().try_for_each(|direction| {
            let recording = recorder.recording(direction)?;
            let path = PathBuf::from(format!("{}.{}", path.display(), direction.name()));
            match recording {
                Some(recording) => recording.write(&path),
                None => remove_earlier(&path),
            }
        })
    });
    logged.and(headers).and(captured).and(recorded.map_err(LinkError::from))
}
