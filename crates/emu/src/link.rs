//! A link from its scenario to its result: make both ends, start the programs, carry packets until the command has ended,
//! say how it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use airpath_core::{Direction, Seed, Sink, Span, UserId};
use airpath_eventlog::EventLog;
use airpath_result::summary::{Ended, LinkRow, RadioRow, Repetition};
use airpath_result::{Folder, INPUTS, Rows, Summary};
use airpath_scenario::{Origin, Scenario, ScenarioError, TimedOrder};
use nix::poll::{PollFd, PollFlags, poll};
use serde::Serialize;

use crate::LinkError;
use crate::clock::{Clock, time_of_day};
use crate::control::Control;
use crate::household::{Exit, Household, News, Program, Programs};
use crate::laboratory::{Device, FarEnd, Laboratory, Plan, surroundings};
use crate::lateness::LatenessRow;
use crate::namespace::NetworkNamespace;
use crate::observe::Observer;
use crate::pump::Pump;
use crate::radio_state::Listener;
use crate::record::Recorder;
use crate::session::{Session, Waiting, cores};
use crate::status::Status;
use crate::watch::{Captures, Watch};
use crate::way::{Hop, Way};

/// What to put on a link, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program at the mobile.
    pub command: Program,
    /// The server at the other end; the outside lies there without one.
    pub server: Option<Program>,
    /// The result folder.
    pub out: Option<PathBuf>,
    /// Whether to keep the event log in it.
    pub log: bool,
    /// Whether to capture packets at both ends in it.
    pub capture: bool,
    /// Write what the link delivered as recorded links: this path with `.down` and `.up` added.
    pub record: Option<PathBuf>,
    /// How to wait for what is due.
    pub waiting: Waiting,
    /// The lateness that 99 % of the packets must not exceed.
    pub budget: Span,
    /// How packets are carried; by default as the host can do it best.
    pub device: Option<Device>,
    /// Whether the kernel may hand over TCP in segments larger than the link's packets.
    pub offload: bool,
    /// The largest IP packet on the link, in bytes.
    pub mtu: u32,
    /// Kernel parameters for the namespaces of the link.
    pub parameters: Vec<(String, String)>,
    /// Whether to draw a status line.
    pub status: bool,
}

/// How a link ended.
#[derive(Debug)]
pub struct Outcome {
    /// How its command did.
    pub exit: Exit,
    /// What is to be said of it.
    pub summary: Summary,
    /// How late packets left.
    pub lateness: LatenessRow,
    /// Packets that the kernel dropped because this process did not take them in.
    pub overruns: u64,
}

/// The part of the summary that only a link under the real clock has.
#[derive(Clone, Debug, Serialize)]
struct Emulation {
    /// The number of the process that carries the packets.
    process: u32,
    /// When it began, in seconds since 1 January 1970, UTC.
    started_s: f64,
    /// The words of the command, the server's line, and what became of the command.
    command: Vec<String>,
    serve: Option<String>,
    exit: String,
    /// How packets were carried, and waited for.
    device: &'static str,
    offload: bool,
    precise: bool,
    realtime_priority: bool,
    mtu: u32,
    parameters: Vec<(String, String)>,
    host: Host,
    lateness: LatenessRow,
    /// Packets that the link did not carry, by cause, beside those that it lost.
    refused: BTreeMap<&'static str, u64>,
    /// Packets that the kernel dropped because this process did not take them in: the link never saw them.
    overruns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Host {
    kernel: String,
    cores: usize,
}

/// Runs a command on the link that `scenario` describes, until it ends.
///
/// The calling process must have one thread only. Without privileges it is in a user namespace of its own afterwards.
///
/// # Errors
/// Where the link cannot be made or kept, or its result not be written.
pub fn run(scenario: &Scenario, options: &Options) -> Result<Outcome, LinkError> {
    let seed = Seed::new(scenario.seed);
    let hops = hops(scenario, seed)?;
    let planned = scenario.timed_orders().into_iter();
    let changes = planned.filter_map(|TimedOrder { at, order }| Some((at, place(order.hop)?, order.command))).collect();
    let mut components: Vec<String> = hops.iter().map(|(name, _)| name.clone()).collect();
    components.push("server".to_owned());
    let mobile = scenario.mobiles()[0].name.clone();
    components.push(mobile.clone());
    let folder = options.out.as_deref().map(|out| {
        let kept = scenario.archive(out, INPUTS);
        Folder::create(out, &kept.toml, &kept.files)
    });
    let folder = folder.transpose()?;
    if let Some(folder) = &folder {
        let mut summary = Summary::new(&scenario.name, scenario.seed, &components);
        summary.unfinished("ended from outside before its command had ended");
        summary.emulation = Some(serde_json::json!({ "process": std::process::id() }));
        folder.save(&summary)?;
    }
    // Heard outside of the link's namespaces, so before there are any.
    let control = Control::open()?;
    let far_end = if options.server.is_some() { FarEnd::Server } else { FarEnd::Outside };
    let device = options.device.unwrap_or_else(Device::of_host);
    let plan = Plan { far_end, device, offload: options.offload, mtu: options.mtu, parameters: &options.parameters };
    let laboratory = Laboratory::make(&plan)?;
    let server = options.server.as_ref().zip(laboratory.server.as_ref());
    let mut household = Household::start(&Programs {
        command: &options.command,
        server,
        server_log: folder.as_ref().map(|folder| folder.path().join("server.log")),
        mobile: &laboratory.mobile,
        surroundings: surroundings(laboratory.addresses, far_end),
    })?;
    if let Some(server) = &laboratory.server {
        await_server(server, &mut household)?;
    }
    // From here on there may be other threads.
    let mut log = match &folder {
        Some(folder) if options.log => Some(folder.event_log(0, &components, scenario.log.classes())?),
        _ => None,
    };
    let started = time_of_day();
    let clock = Clock::start();
    let captures = match &folder {
        Some(folder) if options.capture => {
            Some(Captures::create(&folder.captures(), started).map_err(|error| folder.error("captures", error))?)
        }
        _ => None,
    };
    let reads_headers = hops.iter().any(|(_, hop)| hop.reads_headers());
    let watch = Watch {
        observer: (folder.is_some() || reads_headers).then(Observer::new),
        captures,
        recorder: options.record.as_ref().map(|_| Recorder::default()),
        successions: reads_headers.then(Vec::new),
    };
    let status = if options.status { Status::begin() } else { None };
    let log_sink = log.as_mut().map(|log| log as &mut dyn Sink);
    // A status line listens to the states of the radio, whether there is a log or not.
    let mut listener = None;
    let sink = match &status {
        Some(status) => Some(listener.insert(Listener::new(log_sink, status.radio())) as &mut dyn Sink),
        None => log_sink,
    };
    let way = Way::new(hops, changes, sink);
    let pump = Pump::new(way, clock, watch, &laboratory.server_port, &laboratory.mobile_port);
    let mut session = Session::new(pump, scenario, household, control, options.waiting, status)?;
    let ended = session.run();
    let Session { pump, realtime_priority, .. } = session;
    let Pump { way, lateness, refused, watch, .. } = &pump;
    let lateness = lateness.row(options.budget);
    let overruns = laboratory.overruns();
    let mut rows = Rows {
        repetition: Repetition {
            repetition: 0,
            // Not now: what became due since has not left, and a replay is to end where the link did.
            simulated_s: pump.carried_until.as_secs_f64(),
            ended: if ended.is_ok() { Ended::Finished } else { Ended::Interrupted },
            packets: pump.packets(),
            events: 0,
        },
        flows: watch.observer.as_ref().map(|observer| observer.rows(0, &mobile)).unwrap_or_default(),
        links: Vec::new(),
        radio: Vec::new(),
    };
    for (name, hop) in way.hops() {
        for direction in Direction::BOTH {
            rows.links.push(LinkRow::of(name, direction, 0, &hop.counters(direction)));
            let totals = hop.radio_totals(direction, UserId(0));
            rows.radio.extend(totals.map(|totals| RadioRow::of(name, direction, UserId(0), 0, &totals)));
        }
    }
    let mut summary = Summary::new(&scenario.name, scenario.seed, &components);
    summary.add(rows);
    let emulation = Emulation {
        process: std::process::id(),
        started_s: started.as_secs_f64(),
        command: options.command.words(),
        serve: options.server.as_ref().and_then(Program::shell_line),
        exit: ended.as_ref().map_or_else(|error| error.to_string(), |exit| exit.to_string()),
        device: device.name(),
        offload: options.offload,
        precise: options.waiting == Waiting::Precise,
        realtime_priority,
        mtu: options.mtu,
        parameters: options.parameters.clone(),
        host: Host {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim_end().to_owned(),
            cores: cores(),
        },
        lateness,
        refused: refused.by_cause(),
        overruns,
    };
    summary.emulation = Some(serde_json::to_value(emulation).expect("it is made of numbers and text"));
    if let Err(error) = &ended {
        summary.unfinished(&error.to_string());
    }
    let Pump { watch: Watch { captures, recorder, .. }, .. } = pump;
    let written = finish(folder.as_ref(), log, captures, options.record.as_deref().zip(recorder));
    if let Err(error) = &written {
        summary.unfinished(&error.to_string());
    }
    folder.as_ref().map_or(Ok(()), |folder| folder.save(&summary))?;
    let exit = ended?;
    written?;
    Ok(Outcome { exit, summary, lateness, overruns })
}

/// The bearers between server and mobile: those that the simulator would make.
fn hops(scenario: &Scenario, seed: Seed) -> Result<Vec<Hop>, LinkError> {
    if scenario.access.is_some() {
        let origin = Origin::default();
        return Err(ScenarioError::new(
            "a link has one way only, but `access` gives each flow its own",
            origin,
            "access",
        )
        .help("put what it says into `fixed`")
        .into());
    }
    let cells = scenario.build_cells(seed)?;
    let cell = cells.bearers.into_iter().next().expect("every user has a bearer, the first one the first");
    Ok(vec![("fixed".to_owned(), scenario.build_fixed(seed)), cell])
}

/// How long to wait between looks whether the server listens, in milliseconds: the first few, then the last again and
/// again. A look costs the kernel some milliseconds.
const SERVER_LOOKS: [u16; 5] = [10, 20, 40, 80, 160];
const MOST_LOOKS: usize = 64;

/// Waits until the server listens at some port, so that the command finds it; after ten seconds it has to do without.
fn await_server(network: &NetworkNamespace, household: &mut Household) -> Result<(), LinkError> {
    for look in 0..MOST_LOOKS {
        let mut news = [PollFd::new(household.descriptor(), PollFlags::POLLIN)];
        let pause = SERVER_LOOKS[look.min(SERVER_LOOKS.len() - 1)];
        if poll(&mut news, pause).unwrap_or(0) > 0 {
            return Err(match household.news() {
                Some(News::Server(exit)) => LinkError::ServerEnded(exit.to_string()),
                Some(News::Command(_)) | None => LinkError::ParentGone,
            });
        }
        if network.has_listener() {
            return Ok(());
        }
    }
    eprintln!("airpath: the server listens at no port yet; the command starts all the same");
    Ok(())
}

/// Where a bearer lies on the way; nowhere if it is that of another mobile.
pub(crate) const fn place(bearer: airpath_scenario::Hop) -> Option<usize> {
    match bearer {
        airpath_scenario::Hop::Fixed => Some(0),
        airpath_scenario::Hop::Cell(0) => Some(1),
        airpath_scenario::Hop::Cell(_) => None,
    }
}

/// Writes what is still to be written; the first error is told, but does not keep the rest from being written.
fn finish(
    folder: Option<&Folder>,
    log: Option<EventLog>,
    captures: Option<Captures>,
    record: Option<(&Path, Recorder)>,
) -> Result<(), LinkError> {
    let in_folder = |name: &'static str| {
        move |error| match folder {
            Some(folder) => LinkError::from(folder.error(name, error)),
            None => LinkError::Host(name, error),
        }
    };
    let logged = log.map_or(Ok(()), |log| log.finish().map(drop)).map_err(in_folder("events"));
    let captured = captures.map_or(Ok(()), Captures::finish).map_err(in_folder("captures"));
    let recorded = record.map_or(Ok(()), |(path, recorder)| {
        Direction::BOTH.into_iter().try_for_each(|direction| {
            let recording = recorder.recording(direction)?;
            let path = PathBuf::from(format!("{}.{}", path.display(), direction.name()));
            recording.map_or(Ok(()), |recording| recording.write(&path))
        })
    });
    logged.and(captured).and(recorded.map_err(LinkError::from))
}
