//! The connections of a capture: which segment belongs to which, and when one has ended.
//!
//! They are divided into sixteen shares by a hash of their addresses and ports, and what becomes of a connection depends on its own share alone:
//! so the shares come to the same whether one thread looks after all of them, or several after some each.

mod share;
mod table;

use airpath_core::Span;

use crate::connection::{Connection, Observation};
use crate::decode::Segment;

pub(crate) use share::Share;
pub(crate) use table::hash;

/// Shares of the connections. Some, so that two threads that take turns in them end at about the same time; not many, because each
/// needs as many segments at a time as make it worth while.
pub(crate) const SHARES: usize = 16;

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
    /// Closed connections kept at most; of more, those that closed first are given up sooner. Each of the sixteen shares of the connections
    /// keeps its part.
    pub lingering: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { idle: Span::from_secs(2 * 3600 + 240), linger: Span::from_secs(240), lingering: 4096 }
    }
}

impl Limits {
    /// Those of each of the shares.
    pub(crate) const fn of_a_share(self) -> Self {
        Self { lingering: self.lingering.div_ceil(SHARES), ..self }
    }
}

/// The connections of a capture.
#[derive(Debug)]
pub struct Flows {
    shares: Vec<Share>,
    begun: u64,
    held: usize,
}

impl Flows {
    /// No connections yet.
    pub fn new(limits: Limits) -> Self {
        Self { shares: (0..SHARES).map(|_| Share::new(limits.of_a_share())).collect(), begun: 0, held: 0 }
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
        let share = &mut self.shares[share_of(hash)];
        self.held -= share.open();
        share.segment(hash, segment, &mut self.begun, listener);
        self.held += share.open();
    }

    /// The capture has ended: every connection that is still held ends, in the order of their numbers.
    pub fn finish(&mut self, listener: &mut impl Listener) {
        let shares = self.shares.iter().enumerate();
        let mut left: Vec<_> = shares
            .flat_map(|(share, of_share)| {
                of_share.held().into_iter().map(move |(number, place)| (number, share, place))
            })
            .collect();
        left.sort_unstable();
        for (_, share, place) in left {
            self.shares[share].finish_one(place, listener);
        }
        self.held = 0;
    }
}

impl Default for Flows {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

/// Which share the connections of that hash belong to. The tables look at its lower bits, so these are the upper.
#[inline]
pub(crate) const fn share_of(hash: u32) -> usize {
    (hash >> 28) as usize
}

const _: () = assert!(SHARES == 1 << 4, "a share for each value of four bits");
