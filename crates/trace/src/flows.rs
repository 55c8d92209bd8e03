//! The connections of a capture: which segment belongs to which, and when one has ended.

mod table;

use std::collections::VecDeque;

use airpath_core::{Instant, Span};

use crate::connection::{Connection, End, Observation};
use crate::decode::Segment;
use table::{Slot, Table};

/// The number of a connection: from 1, in the order of their first segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowNumber(pub u64);

/// Who wants to know what the connections of a capture do.
pub trait Listener {
    /// A segment passed; `connection` includes it already.
    fn observed(
        &mut self,
        flow: FlowNumber,
        observation: &Observation,
        segment: &Segment<'_>,
        connection: &Connection,
    ) {
        let _ = (flow, observation, segment, connection);
    }

    /// A connection has ended, or nothing more will be heard of it; called once for each.
    fn ended(&mut self, flow: FlowNumber, connection: &Connection, why: Ending) {
        let _ = (flow, connection, why);
    }
}

/// Nobody listens.
impl Listener for () {}

/// Why a connection counts as ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Both ends closed it, or one reset it, some time ago.
    Closed,
    /// Nothing was heard of it for long.
    Idle,
    /// Another connection between the same addresses and ports began.
    Reused,
    /// The capture ended.
    EndOfCapture,
}

/// How long, and how many, connections are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// An open connection without segments for this long is given up. RFC 5382 REQ-5 has translators keep it for two hours and four minutes.
    pub idle: Span,
    /// A closed connection is kept so long for segments that come late: twice the maximum segment lifetime (RFC 9293 §3.6.1).
    pub linger: Span,
    /// Closed connections kept at most; of more, those that closed first are given up sooner.
    pub lingering: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { idle: Span::from_secs(2 * 3600 + 240), linger: Span::from_secs(240), lingering: 4096 }
    }
}

/// Segments between two looks for connections that have been idle for long.
const SEGMENTS_PER_SWEEP: u64 = 256;

/// Connections looked at in such a sweep.
const SLOTS_PER_SWEEP: usize = 16;

/// The connections of a capture.
#[derive(Debug)]
pub struct Flows {
    limits: Limits,
    table: Table,
    /// Closed connections, in the order in which they closed.
    closed: VecDeque<(u32, FlowNumber, Instant)>,
    begun: u64,
    segments: u64,
    /// Where the next sweep begins.
    hand: u32,
}

impl Flows {
    /// No connections yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, table: Table::default(), closed: VecDeque::new(), begun: 0, segments: 0, hand: 0 }
    }

    /// Connections that are held now.
    pub fn open(&self) -> usize {
        self.table.len()
    }

    /// Connections that have begun.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Takes the next segment of the capture.
    pub fn segment(&mut self, segment: &Segment<'_>, listener: &mut impl Listener) {
        self.segments += 1;
        if self.segments.is_multiple_of(SEGMENTS_PER_SWEEP) {
            self.sweep(segment.time, listener);
        }
        let hash = table::hash(&segment.route);
        let (index, from) = match self.table.find(hash, &segment.route) {
            Some((index, from)) if !self.table.slot(index).connection.superseded_by(segment, from) => (index, from),
            Some((index, _)) => {
                self.end(index, Ending::Reused, listener);
                self.begin(hash, segment, true)
            }
            None => self.begin(hash, segment, false),
        };
        let slot = self.table.slot_mut(index);
        let observation = slot.connection.segment(segment, from);
        listener.observed(slot.number, &observation, segment, &slot.connection);
        if !slot.closed && slot.connection.closed() {
            slot.closed = true;
            let number = slot.number;
            self.closed.push_back((index, number, segment.time));
            self.let_go(segment.time, listener);
        }
    }

    /// The capture has ended: every connection that is still held ends.
    pub fn finish(&mut self, listener: &mut impl Listener) {
        let mut left: Vec<(FlowNumber, u32)> = self.table.slots().map(|(index, slot)| (slot.number, index)).collect();
        left.sort_unstable();
        for (_, index) in left {
            let why = if self.table.slot(index).closed { Ending::Closed } else { Ending::EndOfCapture };
            self.end(index, why, listener);
        }
        self.closed.clear();
    }

    fn begin(&mut self, hash: u32, segment: &Segment<'_>, reused: bool) -> (u32, End) {
        self.begun += 1;
        let connection = Connection::new(segment, reused);
        let from = if connection.route().source == segment.route.source { End::Client } else { End::Server };
        let slot = Slot { hash, number: FlowNumber(self.begun), closed: false, connection };
        (self.table.insert(slot), from)
    }

    fn end(&mut self, index: u32, why: Ending, listener: &mut impl Listener) {
        let slot = self.table.remove(index);
        listener.ended(slot.number, &slot.connection, why);
    }

    /// Gives up closed connections that have lingered, or are too many.
    fn let_go(&mut self, now: Instant, listener: &mut impl Listener) {
        while let Some(&(index, number, since)) = self.closed.front() {
            if self.closed.len() <= self.limits.lingering && now.since(since) <= self.limits.linger {
                break;
            }
            self.closed.pop_front();
            // Unless a new connection took its place.
            if self.table.get(index).is_some_and(|slot| slot.number == number) {
                self.end(index, Ending::Closed, listener);
            }
        }
    }

    /// Looks at a few connections, and gives up those that are idle.
    fn sweep(&mut self, now: Instant, listener: &mut impl Listener) {
        self.let_go(now, listener);
        for _ in 0..SLOTS_PER_SWEEP {
            self.hand = if self.hand + 1 < self.table.capacity() { self.hand + 1 } else { 0 };
            let idle =
                self.table.get(self.hand).is_some_and(|slot| now.since(slot.connection.last()) > self.limits.idle);
            if idle {
                self.end(self.hand, Ending::Idle, listener);
            }
        }
    }
}

impl Default for Flows {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}
