//! Replay: what entered a network once, put on it again in virtual time.
//!
//! A log says of each packet when and where it entered, and which commands were given to the bearers: that is all that
//! what happened to it depended on, beside the scenario and its seed. So the same scenario gives the same departures and
//! drops to the nanosecond, whether the log is of a simulation or of an emulated link; and another one says what would have
//! become of the same packets there. What sent them is not asked: it sends the same whatever becomes of them.
//!
//! Among what happens at the same time, changes of conditions come first, then what happens in the hops, those nearest to
//! the servers first, and then the packets that enter, in the order of their numbers. A packet that was sent in answer to
//! one that came in at the same time enters right after that.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_core::{Direction, Ecn, FlowId, Instant, Seed, SegmentInfo, Sink, UserId};
use airpath_link::{BearerCommand, CommandError};
use airpath_result::summary::{Ended, Repetition};
use airpath_result::{FolderError, Rows, Summary};
use airpath_scenario::{Scenario, ScenarioError};

use crate::route::Side;
use crate::rows;
use crate::runner::begin_folder;
use crate::simulation::{Setup, hop_index};
use crate::store::Body;
use crate::world::{Outgoing, World};

/// How often the loop looks whether it should stop: every so many events.
const STOP_CHECK: u64 = 1 << 12;

/// What entered the network in one repetition.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The number of the repetition.
    pub repetition: u64,
    /// When it ended: so does the replay.
    pub end: Instant,
    /// The packets, in the order in which they entered.
    pub arrivals: Vec<Arrival>,
    /// The commands that were given beside those that the scenario has, in the order of time.
    pub commands: Vec<Command>,
}

/// A packet that enters the first hop of its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When.
    pub time: Instant,
    /// Which way it goes.
    pub direction: Direction,
    /// Its number.
    pub id: u64,
    /// Size of the IP packet in bytes.
    pub size: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// The flow that it belongs to, which the scenario need not have.
    pub flow: FlowId,
    /// The mobile that it goes to or comes from.
    pub user: UserId,
    /// Its TCP header, where that is known.
    pub header: Option<SegmentInfo>,
    /// How many packets had come in at an end point at the same time before it was sent.
    pub after: u32,
}

/// A command that was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// When.
    pub at: Instant,
    /// The name of the bearer.
    pub component: String,
    /// What it was to do.
    pub command: BearerCommand,
}

/// What to do with the outcome of a replay.
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
    #[error("packet {packet} is one of mobile number {user}, but the scenario has {mobiles}: give it as many")]
    NoSuchMobile {
        /// The number of the packet.
        packet: u64,
        /// The number of the mobile, from 0.
        user: u16,
        /// How many there are.
        mobiles: usize,
    },
    /// Packets that go back in time.
    #[error("packet {packet} enters before the one ahead of it: the log is damaged")]
    Order {
        /// The number of the packet.
        packet: u64,
    },
    /// A command to a bearer that the scenario does not have.
    #[error("a command was given to `{component}`, which the scenario does not have: its bearers are {known}")]
    NoSuchBearer {
        /// The name.
        component: String,
        /// The names that there are.
        known: String,
    },
    /// A command that a bearer cannot carry out.
    #[error("`{component}` cannot do what was commanded at {at}: {source}")]
    Command {
        /// When it was given.
        at: Instant,
        /// The bearer.
        component: String,
        /// Why it cannot.
        source: CommandError,
    },
}

/// Puts what was recorded on the network of `scenario` again. `stop` ends it early with what there is by then.
///
/// # Errors
/// Where the recording does not fit the scenario, or the result cannot be written.
pub fn replay(
    scenario: &Scenario,
    recordings: &[Recording],
    options: &Options,
    stop: &AtomicBool,
) -> Result<Summary, ReplayError> {
    let components = Setup::network(scenario, Seed::new(scenario.seed))?.names().to_vec();
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

/// Replays one repetition and lets `sink` have what happens. Returns what is to be said of it.
///
/// # Errors
/// Where the recording does not fit the scenario.
pub fn replay_into<'a>(
    scenario: &Scenario,
    recording: &'a Recording,
    sink: Option<&'a mut dyn Sink>,
    stop: &AtomicBool,
) -> Result<Rows, ReplayError> {
    let setup = Setup::network(scenario, Seed { seed: scenario.seed, repetition: recording.repetition })?;
    let mut replay = Replay::new(setup, sink, recording)?;
    let ended = replay.run(stop)?;
    Ok(replay.rows(ended))
}

/// One repetition that is being replayed.
struct Replay<'a> {
    world: World<'a>,
    names: Vec<String>,
    recording: &'a Recording,
    /// Arrivals that have entered.
    entered: usize,
    /// All commands, those of the scenario and those of the recording, in the order of time, with their hop.
    commands: Vec<(Instant, usize, BearerCommand)>,
    /// Commands that were carried out.
    commanded: usize,
    now: Instant,
    /// Packets that came in at an end point at `now`.
    received: u32,
    events: u64,
}

/// What is next.
enum Next {
    Command(Instant),
    Hop(Instant, u32),
    Arrival(Instant),
}

impl<'a> Replay<'a> {
    fn new(setup: Setup, sink: Option<&'a mut dyn Sink>, recording: &'a Recording) -> Result<Self, ReplayError> {
        let (world, names, orders) = setup.into_network(sink);
        let mobiles = world.route.cell_of.len();
        let mut last = Instant::ZERO;
        for arrival in &recording.arrivals {
            if usize::from(arrival.user.0) >= mobiles {
                return Err(ReplayError::NoSuchMobile { packet: arrival.id, user: arrival.user.0, mobiles });
            }
            if arrival.time < last {
                return Err(ReplayError::Order { packet: arrival.id });
            }
            last = arrival.time;
        }
        let mut commands: Vec<_> =
            orders.into_iter().map(|timed| (timed.at, hop_index(timed.order.hop), timed.order.command)).collect();
        let hops = &names[..world.route.hops];
        for Command { at, component, command } in &recording.commands {
            let hop = hops
                .iter()
                .position(|name| name == component)
                .ok_or_else(|| ReplayError::NoSuchBearer { component: component.clone(), known: hops.join(", ") })?;
            commands.push((*at, hop, command.clone()));
        }
        commands.sort_by_key(|(at, ..)| *at);
        let now = Instant::ZERO;
        Ok(Self { world, names, recording, entered: 0, commands, commanded: 0, now, received: 0, events: 0 })
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<Ended, ReplayError> {
        while let Some(next) = self.next() {
            let (Next::Command(time) | Next::Hop(time, _) | Next::Arrival(time)) = next;
            if time > self.recording.end {
                break;
            }
            if time > self.now {
                (self.now, self.received) = (time, 0);
            }
            self.events += 1;
            if self.events.is_multiple_of(STOP_CHECK) && (stop.load(Ordering::Relaxed) || self.world.has_failed()) {
                return Ok(Ended::Interrupted);
            }
            match next {
                Next::Command(at) => self.command(at)?,
                Next::Hop(now, node) => self.serve(now, node as usize),
                Next::Arrival(_) => self.enter(),
            }
        }
        self.now = self.recording.end;
        Ok(if self.entered == self.recording.arrivals.len() { Ended::Finished } else { Ended::Duration })
    }

    /// What is next; commands come first among equals, then hops.
    fn next(&mut self) -> Option<Next> {
        let command = self.commands.get(self.commanded).map(|(at, ..)| *at);
        let arrival = self.arrival().map(|arrival| arrival.time);
        let hop = self.world.agenda.pop();
        if let Some((time, node)) = hop {
            let earlier = |other: Option<Instant>| other.is_some_and(|other| other < time);
            if command != Some(time) && !earlier(command) && !earlier(arrival) {
                return Some(Next::Hop(time, node));
            }
            self.world.agenda.wake(node, Some(time));
        }
        match (command, arrival) {
            (Some(command), Some(arrival)) if arrival < command => Some(Next::Arrival(arrival)),
            (Some(command), _) => Some(Next::Command(command)),
            (None, arrival) => arrival.map(Next::Arrival),
        }
    }

    fn arrival(&self) -> Option<&'a Arrival> {
        self.recording.arrivals.get(self.entered)
    }

    fn command(&mut self, at: Instant) -> Result<(), ReplayError> {
        let (_, hop, command) = &self.commands[self.commanded];
        self.commanded += 1;
        let component = || self.names[*hop].clone();
        self.world.command(at, *hop, command).map_err(|source| ReplayError::Command {
            at,
            component: component(),
            source,
        })
    }

    /// Moves on what has left a hop.
    fn serve(&mut self, now: Instant, hop: usize) {
        while let Some((direction, departure)) = self.world.pop(now, hop) {
            if !self.world.forward(now, hop, direction, &departure.packet) {
                continue;
            }
            self.world.free(departure.packet.slot);
            self.received += 1;
            while let Some(answer) = self.arrival()
                && answer.time == now
                && (1..=self.received).contains(&answer.after)
            {
                self.enter();
            }
        }
        self.world.rearm(hop);
    }

    /// Lets the next packet in.
    fn enter(&mut self) {
        let Some(Arrival { time, direction, id, size, ecn, flow, user, header, .. }) = self.arrival().copied() else {
            return;
        };
        self.entered += 1;
        let side = match direction {
            Direction::Down => Side::Server,
            Direction::Up => Side::Mobile,
        };
        self.world.packets = id;
        self.world.send(time, Outgoing { flow, user, side, size, ecn, body: Body::Recorded(header) });
    }

    fn rows(&self, ended: Ended) -> Rows {
        let number = self.recording.repetition;
        let hops = self.names.iter().map(String::as_str).zip(self.world.hops.iter().map(AsRef::as_ref));
        let (links, radio) = rows::of_hops(hops, self.world.route.cell_of.len(), number);
        let repetition = Repetition {
            repetition: number,
            simulated_s: self.now.as_secs_f64(),
            ended,
            packets: self.entered as u64,
            events: self.events,
        };
        Rows { repetition, flows: Vec::new(), links, radio }
    }
}

/// Those of the commands of a log that are not what `scenario` has scripted: they were given by hand.
pub fn given_by_hand(scenario: &Scenario, names: &[String], logged: Vec<Command>) -> Vec<Command> {
    let name = |hop: usize| names.get(hop).cloned().unwrap_or_default();
    let mut scripted: Vec<Command> = scenario
        .timed_orders()
        .into_iter()
        .map(|timed| Command {
            at: timed.at,
            component: name(hop_index(timed.order.hop)),
            command: timed.order.command,
        })
        .collect();
    let mut is_by_hand = |command: &Command| match scripted.iter().position(|script| script == command) {
        Some(index) => {
            scripted.remove(index);
            false
        }
        None => true,
    };
    logged.into_iter().filter(|command| is_by_hand(command)).collect()
}

/// The names of the hops of a scenario, by which its log calls them.
///
/// # Errors
/// If the scenario cannot be built.
pub fn hop_names(scenario: &Scenario) -> Result<Vec<String>, ScenarioError> {
    let setup = Setup::network(scenario, Seed::new(scenario.seed))?;
    Ok(setup.names().to_vec())
}
