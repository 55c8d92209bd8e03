//! Two connections, joined by two pipes, under a virtual clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use airpath_core::{ComponentId, Context, Direction, Ecn, FlowId, Instant, Memory, Sink, Span};

use super::Pipe;
use crate::{Config, Connection, Identity, Segment};

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Opens the connection.
    Client,
    /// Listens.
    Server,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// More segments than any window holds.
const MOST_AT_ONCE: u32 = 20_000;
/// IPv4 without options.
const IP_HEADER: u32 = 20;

/// Two connections and the path between them.
pub struct Pair {
    connections: [Connection; 2],
    pipes: [Pipe; 2],
    /// Segments in flight: arrival time, order, receiver, and slot.
    arrivals: BinaryHeap<Reverse<(Instant, u64, Side, usize)>>,
    slots: Vec<Segment>,
    free: Vec<usize>,
    wakeups: [Option<Instant>; 2],
    /// Highest right edge of the window that each end's peer has offered so far.
    edges: [i64; 2],
    order: u64,
    now: Instant,
    /// Whether an end reads all data on arrival.
    pub reads: [bool; 2],
    /// Delay between the expiry of an end's timers and its call.
    pub lateness: Span,
    /// Whether each step verifies the counts, and each segment is checked against the window that
    /// its receiver has offered.
    pub verifies: bool,
    /// All segments sent, if recorded: time, sender, segment.
    pub sent: Option<Vec<(Instant, Side, Segment)>>,
    /// The reported events, if recorded.
    pub events: Option<Memory>,
}

impl Pair {
    /// Two ends with the same settings: the client sends through `up`, the server through `down`.
    pub fn new(config: &Config, up: Pipe, down: Pipe) -> Self {
        Self::with([config, config], [0, 0], up, down)
    }

    /// Two ends with settings and initial sequence numbers of their own, the client first.
    pub fn with(configs: [&Config; 2], initial: [u32; 2], up: Pipe, down: Pipe) -> Self {
        let id = |direction, local_port, remote_port, initial_sequence| Identity {
            flow: FlowId(0),
            direction,
            local_port,
            remote_port,
            initial_sequence,
        };
        let client = Connection::connect(configs[0], id(Direction::Up, 50_000, 80, initial[0]), Instant::ZERO);
        let server = Connection::listen(configs[1], id(Direction::Down, 80, 50_000, initial[1]));
        Self::of(client, server, up, down)
    }

    /// Two given connections.
    pub fn of(client: Connection, server: Connection, up: Pipe, down: Pipe) -> Self {
        let offered = [&server, &client].map(|receiver| {
            if receiver.config().handshake { 0 } else { receiver.config().receive_buffer.initial.get().cast_signed() }
        });
        Self {
            edges: offered,
            connections: [client, server],
            pipes: [up, down],
            arrivals: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            wakeups: [None; 2],
            order: 0,
            now: Instant::ZERO,
            reads: [true; 2],
            lateness: Span::ZERO,
            verifies: false,
            sent: None,
            events: None,
        }
    }

    /// The present time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// One end. After a change to it, call [`Self::touch`] or run.
    pub const fn connection(&mut self, side: Side) -> &mut Connection {
        &mut self.connections[side as usize]
    }

    /// Changes one end at the present time, and sends what follows.
    pub fn with_connection(&mut self, side: Side, act: impl FnOnce(&mut Connection, Instant, &mut Context<'_>)) {
        let now = self.now;
        let connection = &mut self.connections[side as usize];
        let mut dropped = Vec::new();
        let sink = self.events.as_mut().map(|memory| memory as &mut dyn Sink);
        let mut cx = Context::new(sink, &mut dropped, ComponentId(side as u32));
        act(connection, now, &mut cx);
        self.touch(side);
    }

    /// Sends what one end has to send, and schedules its next wake-up.
    pub fn touch(&mut self, side: Side) {
        let connection = &mut self.connections[side as usize];
        if self.reads[side as usize] {
            let readable = connection.readable();
            if readable > 0 {
                connection.read(readable);
            }
        }
        let mut dropped = Vec::new();
        let sink = self.events.as_mut().map(|memory| memory as &mut dyn Sink);
        let mut cx = Context::new(sink, &mut dropped, ComponentId(side as u32));
        let mut count = 0;
        while let Some(segment) = connection.poll_transmit(self.now, &mut cx) {
            count += 1;
            assert!(count < MOST_AT_ONCE, "no end to {segment:?} of {connection:?}");
            if self.verifies {
                check_window(&segment, self.edges[side as usize]);
                let offered = segment.info.ack.get().unwrap_or(0) + i64::from(segment.info.window);
                let edge = &mut self.edges[side.other() as usize];
                *edge = offered.max(*edge);
            }
            if let Some(sent) = &mut self.sent {
                sent.push((self.now, side, segment));
            }
            let (arrivals, slots, free, order) = (&mut self.arrivals, &mut self.slots, &mut self.free, &mut self.order);
            self.pipes[side as usize].send(self.now, segment.wire_size(IP_HEADER), |at, marked| {
                let mut segment = segment;
                if marked && segment.ecn.is_capable() {
                    segment.ecn = Ecn::Ce;
                }
                let slot = free.pop().unwrap_or_else(|| {
                    slots.push(segment);
                    slots.len() - 1
                });
                slots[slot] = segment;
                *order += 1;
                arrivals.push(Reverse((at, *order, side.other(), slot)));
            });
        }
        self.wakeups[side as usize] = connection.next_wakeup().map(|at| at.max(self.now) + self.lateness);
        if self.verifies {
            connection.verify();
        }
    }

    /// Advances to the next event, unless it is after `until`. Returns whether there was one.
    pub fn step(&mut self, until: Instant) -> bool {
        let arrival = self.arrivals.peek().map(|Reverse((at, ..))| *at);
        let wakeup = self.wakeups.iter().flatten().min().copied();
        let next = match (arrival, wakeup) {
            (None, None) => return false,
            (Some(arrival), Some(wakeup)) => arrival.min(wakeup),
            (one, other) => one.or(other).expect("one of them is there"),
        };
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        let mut dropped = Vec::new();
        let sink = self.events.as_mut().map(|memory| memory as &mut dyn Sink);
        // At the same instant timers expire first: they were set before.
        if wakeup.is_none_or(|at| at > next) {
            let Reverse((_, _, side, slot)) = self.arrivals.pop().expect("it was peeked at");
            self.free.push(slot);
            let mut cx = Context::new(sink, &mut dropped, ComponentId(side as u32));
            let segment = self.slots[slot];
            self.connections[side as usize].handle_segment(self.now, &segment, &mut cx);
            self.touch(side);
            return true;
        }
        let side = if self.wakeups[0].is_some_and(|at| at <= next) { Side::Client } else { Side::Server };
        let mut cx = Context::new(sink, &mut dropped, ComponentId(side as u32));
        self.connections[side as usize].handle_timeout(self.now, &mut cx);
        self.touch(side);
        true
    }

    /// Runs for `span`, or until no event is left.
    pub fn run(&mut self, span: Span) {
        let until = self.now + span;
        self.run_until(until, |_| false);
    }

    /// Runs until `over`, at the latest until `until`. Returns whether `over` became true.
    pub fn run_until(&mut self, until: Instant, mut over: impl FnMut(&Self) -> bool) -> bool {
        self.touch(Side::Client);
        self.touch(Side::Server);
        loop {
            if over(self) {
                return true;
            }
            if !self.step(until) {
                self.now = self.now.max(until);
                return false;
            }
        }
    }

    /// One end, read-only.
    pub const fn look(&self, side: Side) -> &Connection {
        &self.connections[side as usize]
    }
}

/// No payload exceeds the offered window.
fn check_window(segment: &Segment, edge: i64) {
    let end = segment.info.offset + i64::from(segment.length);
    assert!(segment.length == 0 || end <= edge, "{segment:?} goes beyond {edge}");
}
