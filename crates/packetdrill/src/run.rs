//! Runs a script: virtual time, the connection, and the segments of both directions.

mod calls;
mod segments;
mod support;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use airpath_core::{ComponentId, Context, Direction, FlowId, Instant, Span};
use airpath_tcp::{Connection, Identity, Segment, State};
use airpath_wire::tcp::Flags;

use crate::Finding;
use crate::code::{Code, CodeError, Variables};
use crate::script::{Action, Event, Packet, Script, Time};
use crate::settings::{Settings, changes};
use crate::values;

use calls::{Pending, Socket};

pub use support::unsupported;

/// Start of the two sides' sequence numbers.
pub const OURS: u32 = 1_000_000_000;
pub const THEIRS: u32 = 3_000_000_000;

/// Start of virtual time: timestamps of the peer in a script may be older than the script.
const START: Instant = Instant::from_nanos(1_000_000_000_000);

/// Longest wait for a segment without a time.
const PATIENCE: Span = Span::from_secs(600);

/// Why a run ends before the end of its script.
pub enum Stop {
    Failed(Finding),
    NotApplicable(Finding),
}

/// The state of a run.
pub struct Runner<'a> {
    script: &'a Script<'a>,
    pub settings: Settings,
    pub now: Instant,
    pub sockets: BTreeMap<i64, Socket>,
    pub connection: Option<Connection>,
    /// Whether this end opened the connection.
    connects: bool,
    /// Whether the connection was opened by a listening socket, and no call has accepted it.
    pub unaccepted: bool,
    /// Segments sent and not yet compared, with their times.
    sent: VecDeque<(Instant, Segment)>,
    /// The call that blocks.
    pub pending: Option<Pending>,
    variables: Variables,
    /// Line of the current event.
    pub line: u32,
    timestamps: segments::TimestampMap,
}

impl<'a> Runner<'a> {
    pub fn new(script: &'a Script<'a>, settings: Settings) -> Self {
        Self {
            script,
            settings,
            now: START,
            sockets: BTreeMap::new(),
            connection: None,
            connects: false,
            unaccepted: false,
            sent: VecDeque::new(),
            pending: None,
            variables: Variables::new(),
            line: 0,
            timestamps: segments::TimestampMap::default(),
        }
    }

    /// Runs the script to its end.
    pub fn run(mut self) -> Result<(), Stop> {
        for event in &self.script.events {
            self.line = event.at.line;
            self.event(event)?;
        }
        if self.pending.is_some() {
            return Err(self.failed("the script ends while a call still blocks"));
        }
        Ok(())
    }

    pub fn failed(&self, what: impl Into<String>) -> Stop {
        Stop::Failed(Finding::new(self.line, what))
    }

    /// A time as in a script: seconds since its start.
    pub fn seconds(at: Instant) -> String {
        format!("{:.6} s", at.since(START).as_secs_f64())
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        // Relative times count from the end of the last event: of an expected segment, from
        // its transmission, as in packetdrill.
        let base = self.now;
        let (begin, end) = match event.time {
            Time::Absolute(time) => (START + time, START + time),
            Time::Relative(time) => (base + time, base + time),
            Time::AbsoluteRange(begin, end) => (START + begin, START + end),
            Time::RelativeRange(begin, end) => (base + begin, base + end),
            Time::Any => (base, base),
        };
        match &event.action {
            Action::Departure(packet) => {
                let range = (event.time != Time::Any).then_some((begin, end));
                self.departure(packet, range)?;
            }
            action => {
                self.advance(begin)?;
                match action {
                    Action::Arrival(packet) => self.arrival(packet)?,
                    Action::Call(call) => {
                        let relative = matches!(event.time, Time::Relative(_));
                        self.call(call, if relative { base } else { START })?;
                    }
                    Action::Code(code) => self.code(code)?,
                    Action::Command(command) => self.command(command),
                    Action::Unsupported(_) | Action::Departure(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Lets time pass until `until`.
    fn advance(&mut self, until: Instant) -> Result<(), Stop> {
        while let Some(at) = self.wakeup().filter(|at| *at <= until) {
            self.step(at)?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn wakeup(&self) -> Option<Instant> {
        self.connection.as_ref().and_then(Connection::next_wakeup)
    }

    /// Handles the timers of the connection that expire at `at`.
    fn step(&mut self, at: Instant) -> Result<(), Stop> {
        self.now = self.now.max(at);
        self.with(|connection, now, cx| connection.handle_timeout(now, cx));
        self.transmit()
    }

    /// Calls the connection, if there is one.
    pub fn with<T>(&mut self, act: impl FnOnce(&mut Connection, Instant, &mut Context<'_>) -> T) -> Option<T> {
        let mut dropped = Vec::new();
        let mut cx = Context::new(None, &mut dropped, ComponentId(0));
        let now = self.now;
        self.connection.as_mut().map(|connection| act(connection, now, &mut cx))
    }

    /// Takes the segments that the connection sends now, and completes the call that blocks if it
    /// can.
    pub fn transmit(&mut self) -> Result<(), Stop> {
        while let Some(segment) = self.with(Connection::poll_transmit).flatten() {
            self.sent.push_back((self.now, segment));
        }
        self.complete_pending()
    }

    /// The identity of a connection.
    pub const fn identity() -> Identity {
        Identity { flow: FlowId(0), direction: Direction::Up, local_port: 1, remote_port: 2, initial_sequence: OURS }
    }

    /// A segment arrives.
    fn arrival(&mut self, packet: &Packet) -> Result<(), Stop> {
        let opens = packet.flags.contains(Flags::SYN) && !packet.flags.contains(Flags::ACK);
        let over = |connection: &Connection| matches!(connection.state(), State::Closed | State::TimeWait);
        if opens
            && self.connection.as_ref().is_none_or(over)
            && let Some(listener) = self.sockets.values().find(|socket| socket.is_listening())
        {
            let config = self.configured(listener, self.settings.listening())?;
            self.connection = Some(Connection::listen(config, Self::identity()));
            self.connects = false;
            self.unaccepted = true;
            self.timestamps = segments::TimestampMap::default();
        }
        let segment = self.timestamps.arriving(packet);
        if self.connection.is_none() {
            return Err(self.failed("a segment arrives, but no socket listens or connects"));
        }
        self.with(|connection, now, cx| connection.handle_segment(now, &segment, cx));
        self.transmit()
    }

    /// A segment is expected within `range`: the next one, or several in a row with as much payload
    /// together, since this end point has no segmentation offload.
    fn departure(&mut self, packet: &Packet, range: Option<(Instant, Instant)>) -> Result<(), Stop> {
        let (mut length, mut first) = (0, true);
        let tolerance = range.map_or(Span::ZERO, |(begin, _)| self.settings.tolerance(begin.since(self.now)));
        let limit = range.map_or(self.now + PATIENCE, |(_, end)| end + tolerance);
        while first || length < packet.length {
            let (at, segment) = self.next_sent(packet, limit, length)?;
            let last = length + segment.length >= packet.length;
            let expected = segments::Expected { packet, passed: length, last, tick: self.settings.timestamp_tick };
            // The clock of timestamps counts from the start of the script.
            let since_start = self.settings.tolerance(at.since(START));
            if let Err(what) = self.timestamps.compare(&expected, &segment, since_start) {
                return Err(self.failed(what));
            }
            if let Some((begin, end)) = range
                && (at + tolerance < begin || at > end + tolerance)
            {
                let expected = if begin == end {
                    Self::seconds(begin)
                } else {
                    format!("{} to {}", Self::seconds(begin), Self::seconds(end))
                };
                let shown = segments::show(&segment);
                return Err(self.failed(format!("sent at {}, expected at {expected}: {shown}", Self::seconds(at))));
            }
            length += segment.length;
            first = false;
        }
        Ok(())
    }

    /// The next segment that is sent. Waits for it until `limit`.
    fn next_sent(&mut self, packet: &Packet, limit: Instant, passed: u32) -> Result<(Instant, Segment), Stop> {
        loop {
            if let Some(sent) = self.sent.pop_front() {
                return Ok(sent);
            }
            match self.wakeup().filter(|at| *at <= limit) {
                Some(at) => self.step(at)?,
                None => {
                    let wanted = segments::describe(packet);
                    let part = if passed > 0 { format!(" after {passed} bytes of it") } else { String::new() };
                    let until = Self::seconds(limit);
                    return Err(self.failed(format!("nothing is sent{part} until {until}, expected {wanted}")));
                }
            }
        }
    }

    /// A command within the script, which may change settings, also of the connection.
    fn command(&mut self, command: &str) {
        self.settings.command(command);
        let Some(connection) = &mut self.connection else { return };
        let mut config = (**connection.config()).clone();
        for line in command.lines() {
            changes(line, &mut config);
        }
        connection.restore(Arc::new(config), Self::identity().flow);
    }

    fn code(&mut self, code: &Code) -> Result<(), Stop> {
        let Some(connection) = &self.connection else {
            return Err(self.failed("code before there is a connection"));
        };
        let result = code.run(&mut self.variables, &|name| values::lookup(connection, self.connects, name));
        result.map_err(|error| match error {
            CodeError::Failed(line, what) => Stop::Failed(Finding::new(line, what)),
            CodeError::Unknown(line, what) => Stop::NotApplicable(Finding::new(line, what)),
        })
    }
}
