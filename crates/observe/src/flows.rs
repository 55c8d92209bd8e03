//! The connections of a capture: assigns segments to them, and detects their end.
//!
//! Connections are divided into sixteen shards by a hash of their addresses and ports. The state of
//! a connection depends on its own shard alone. So the result does not depend on the number of
//! threads that process the shards.

mod shard;
mod table;

use airpath_core::Span;
use airpath_wire::segment::Segment;

use crate::connection::Connection;
use crate::observation::Observation;

pub use shard::Shard;
pub use table::hash;

/// Number of shards. Enough, so that two threads finish at about the same time; not more, because a
/// shard needs many segments per batch to be efficient.
pub const SHARDS: usize = 16;

/// The number of a connection: from 1, in the order of their first segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowNumber(pub u64);

/// Receives the observations of the connections of a capture.
#[allow(unused_variables, reason = "the names document what an implementation receives")]
pub trait Listener {
    /// Called for each segment; `connection` includes it already.
    fn observed(
        &mut self,
        flow: FlowNumber,
        observation: &Observation,
        segment: &Segment<'_>,
        connection: &Connection,
    ) {
    }

    /// Called once for each connection, after its last segment.
    fn ended(&mut self, flow: FlowNumber, connection: &Connection, why: Ending) {}
}

/// Ignores all observations.
impl Listener for () {}

/// Why a connection counts as ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Both ends closed it, or one reset it, and [`Limits::linger`] has elapsed since.
    Closed,
    /// No segment for [`Limits::idle`].
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

/// How long, and how many, connections are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time without segments after which an open connection is removed. RFC 5382 REQ-5 has
    /// translators keep it for two hours and four minutes.
    pub idle: Span,
    /// Time for which a closed connection is stored for late segments: twice the maximum segment
    /// lifetime (RFC 9293 §3.6.1).
    pub linger: Span,
    /// Maximum number of stored closed connections; beyond it, those that closed first are removed
    /// earlier. Each of the sixteen shards has an equal part.
    pub lingering: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { idle: Span::from_secs(2 * 3600 + 240), linger: Span::from_secs(240), lingering: 4096 }
    }
}

impl Limits {
    /// The limits of one shard.
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

    /// Number of stored connections.
    pub const fn open(&self) -> usize {
        self.held
    }

    /// Number of connections so far.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Processes the next segment of the capture.
    pub fn segment(&mut self, segment: &Segment<'_>, listener: &mut impl Listener) {
        let hash = hash(&segment.route);
        let shard = &mut self.shards[shard_of(hash)];
        self.held -= shard.open();
        shard.segment(hash, segment, &mut self.begun, listener);
        self.held += shard.open();
    }

    /// Ends all stored connections at the end of the capture, in the order of their numbers.
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

/// The shard of connections with this hash. It uses the upper bits, because the tables use the
/// lower ones.
#[inline]
pub const fn shard_of(hash: u32) -> usize {
    (hash >> 28) as usize
}

const _: () = assert!(SHARDS == 1 << 4, "a shard for each value of four bits");

#[cfg(test)]
mod tests;
