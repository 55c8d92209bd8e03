//! The connections of a capture: which segment belongs to which, and when one has ended.
//!
//! They are divided into sixteen shards by a hash of their addresses and ports, and what becomes of
//! a connection depends on its own shard alone: so the shards come to the same whether one thread
//! looks after all of them, or several after some each.

mod shard;
mod table;

use airpath_core::Span;
use airpath_wire::segment::Segment;

use crate::connection::Connection;
use crate::observation::Observation;

pub use shard::Shard;
pub use table::hash;

/// Shards of the connections. Some, so that two threads that take turns in them end at about the
/// same time; not many, because each needs as many segments at a time as make it worth while.
pub const SHARDS: usize = 16;

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

impl Ending {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Idle => "idle",
            Self::Reused => "ports-reused",
            Self::EndOfCapture => "open",
        }
    }
}

/// How long, and how many, connections are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// An open connection without segments for this long is given up. RFC 5382 REQ-5 has
    /// translators keep it for two hours and four minutes.
    pub idle: Span,
    /// A closed connection is kept so long for segments that come late: twice the maximum segment
    /// lifetime (RFC 9293 §3.6.1).
    pub linger: Span,
    /// Closed connections kept at most; of more, those that closed first are given up sooner. Each
    /// of the sixteen shards of the connections keeps its part.
    pub lingering: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { idle: Span::from_secs(2 * 3600 + 240), linger: Span::from_secs(240), lingering: 4096 }
    }
}

impl Limits {
    /// Those of each of the shards.
    pub const fn of_a_shard(self) -> Self {
        Self { lingering: self.lingering.div_ceil(SHARDS), ..self }
    }
}

/// The connections of a capture.
#[derive(Debug)]
pub struct Flows {
    shards: Vec<Shard>,
    begun: u64,
    held: usize,
}

impl Flows {
    /// No connections yet.
    pub fn new(limits: Limits) -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::new(limits.of_a_shard())).collect(), begun: 0, held: 0 }
    }

    /// Connections that are held now.
    pub const fn open(&self) -> usize {
        self.held
    }

    /// Connections that have begun.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Takes the next segment of the capture.
    pub fn segment(&mut self, segment: &Segment<'_>, listener: &mut impl Listener) {
        let hash = hash(&segment.route);
        let shard = &mut self.shards[shard_of(hash)];
        self.held -= shard.open();
        shard.segment(hash, segment, &mut self.begun, listener);
        self.held += shard.open();
    }

    /// The capture has ended: every connection that is still held ends, in the order of their
    /// numbers.
    pub fn finish(&mut self, listener: &mut impl Listener) {
        let shards = self.shards.iter().enumerate();
        let mut left: Vec<_> = shards
            .flat_map(|(shard, of_shard)| {
                of_shard.held().into_iter().map(move |(number, place)| (number, shard, place))
            })
            .collect();
        left.sort_unstable();
        for (_, shard, place) in left {
            self.shards[shard].finish_one(place, listener);
        }
        self.held = 0;
    }
}

impl Default for Flows {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

/// Which shard the connections of that hash belong to. The tables look at its lower bits, so these
/// are the upper.
#[inline]
pub const fn shard_of(hash: u32) -> usize {
    (hash >> 28) as usize
}

const _: () = assert!(SHARDS == 1 << 4, "a shard for each value of four bits");
