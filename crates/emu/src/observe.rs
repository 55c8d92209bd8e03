//! Reconstructs flows from packets, for the log and the summary of a run of real programs.
//!
//! A simulated flow reports its own state. Of a real flow the link has only the packets. From them
//! the [`Observer`] derives the flow of each packet, its TCP header in terms of stream offsets, and
//! a row of the summary with the same names and meanings as that of a simulated flow. It needs
//! memory and parses every header, so a link has an observer only for a log or a summary.
//!
//! The observer receives the packets at both ends of the link: as each enters, leaves or is lost.

mod connection;
mod datagrams;
mod echo;
mod flow;
mod headers;
mod numbers;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use airpath_core::{AppEvent, Direction, Ecn, FlowId, Instant, SegmentInfo};
use airpath_observe::Connection;
use airpath_result::summary::FlowRow;
use airpath_wire::segment::{Endpoint, Route, Segment};

use crate::offload::Frame;
use flow::Flow;
pub(crate) use headers::addresses;
pub(crate) use headers::icmp_error;
use headers::{Key, Sight, segment};
pub use numbers::ConnectionNumbers;

/// Maximum number of separate flows; the packets of all further flows are counted as one flow.
pub const MOST_FLOWS: usize = 1 << 16;

/// The flows of a link, in both directions.
#[derive(Debug, Default)]
pub struct Observer {
    flows: Vec<Flow>,
    /// The current flow with these addresses and ports; a reused port begins another flow.
    current: BTreeMap<Key, FlowId>,
    /// Flows that a middlebox has begun.
    begun_on_path: BTreeSet<FlowId>,
    /// Packets that passed each end, as captures there count them: by the direction of the packets
    /// that enter there, in the order of [`Direction::BOTH`].
    passed: [u64; 2],
}

/// The entry of a packet in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The flow that it belongs to.
    pub flow: FlowId,
    /// Its number among the packets of this flow and direction, from zero.
    pub number: u64,
    /// Its TCP header, if it has one.
    pub segment: Option<SegmentInfo>,
}

/// The times of a packet that has passed the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it entered.
    pub entered: Instant,
    /// [`Sighting::number`] of its entry; `None` for a packet that was created on the link.
    pub number: Option<u64>,
    /// When it was due to leave.
    pub due: Instant,
    /// When it was handed over.
    pub now: Instant,
}

impl Observer {
    /// No flows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a packet that enters the link: segment `index` of `frame`, which was parsed from
    /// `bytes`.
    pub fn enters(&mut self, now: Instant, direction: Direction, frame: &Frame, bytes: &[u8], index: u32) -> Sighting {
        let sight = self.sight(direction, now, frame.ecn());
        let key = Key::of(direction, frame, bytes);
        let segment = key.route(direction).and_then(|route| segment(frame, bytes, index, route, sight));
        let flow = self.flow(now, direction, key, segment.as_ref());
        let size = frame.segment_bytes(index);
        let seen = &mut self.flows[flow.0 as usize];
        let number = seen.offered_packets(direction);
        let segment = seen.enters(now, direction, size, frame, bytes, segment.as_ref());
        Sighting { flow, number, segment }
    }

    /// Adds a packet that leaves the link with `ecn`. `flow` is that returned by [`Self::enters`].
    /// Returns the event for the log of applications if an echo reply arrived.
    pub fn leaves(
        &mut self,
        passage: Passage,
        direction: Direction,
        (flow, ecn): (FlowId, Ecn),
        frame: &Frame,
        bytes: &[u8],
        index: u32,
    ) -> Option<AppEvent> {
        let sight = self.sight(direction.opposite(), passage.now, ecn);
        let seen = self.flows.get_mut(flow.0 as usize)?;
        let step = seen.leaves(passage, sight, direction, frame, bytes, index)?;
        Some(AppEvent { flow, step, delivered: seen.answered_bytes() })
    }

    /// The mobile's address in a flow.
    pub fn mobile_address(&self, flow: FlowId) -> Option<IpAddr> {
        Some(self.flows.get(flow.0 as usize)?.key()?.mobile())
    }

    /// Source and destination of packets of `direction` of a flow; `None` if it is not TCP.
    pub fn route(&self, flow: FlowId, direction: Direction) -> Option<Route> {
        self.flows.get(flow.0 as usize)?.key()?.route(direction)
    }

    /// The flow of a TCP segment of this direction.
    pub fn flow_of_segment(&self, direction: Direction, source: Endpoint, destination: Endpoint) -> Option<FlowId> {
        self.current.get(&Key::of_segment(direction, source, destination)).copied()
    }

    /// Begins a TCP flow of a middlebox between these ends; `None` if the mobile has used its port
    /// with this server, or there are too many flows.
    pub fn begin_on_path(&mut self, now: Instant, mobile: Endpoint, server: Endpoint) -> Option<FlowId> {
        let key = Key::of_segment(Direction::Up, mobile, server);
        let known = self.current.get(&key);
        if known.is_some_and(|known| !self.begun_on_path.contains(known)) || self.flows.len() >= MOST_FLOWS {
            return None;
        }
        let flow = self.begin(now, Direction::Up, key, known.is_some());
        self.begun_on_path.insert(flow);
        Some(flow)
    }

    /// Begins the flow of a connection that another process has relayed; `route` is that of the
    /// mobile's packets. `None` if there are too many flows.
    pub fn adopt(&mut self, now: Instant, route: &Route) -> Option<FlowId> {
        (self.flows.len() < MOST_FLOWS).then(|| {
            self.begin(now, Direction::Up, Key::of_segment(Direction::Up, route.source, route.destination), false)
        })
    }

    /// The connection of a flow in a capture at the end where packets of `direction` enter; `None`
    /// if it is not TCP, or no packet of it passed there.
    pub fn connection(&self, flow: FlowId, direction: Direction) -> Option<&Connection> {
        self.flows.get(flow.0 as usize)?.connection()?.at_entry(direction)
    }

    /// Counts a packet at the end where packets of `end` enter.
    const fn sight(&mut self, end: Direction, time: Instant, ecn: Ecn) -> Sight {
        self.passed[end as usize] += 1;
        Sight { time, number: self.passed[end as usize], ecn }
    }

    /// Adds a packet of `flow` with `size` bytes that the link lost.
    pub fn is_lost(&mut self, direction: Direction, flow: FlowId, size: u32) {
        if let Some(flow) = self.flows.get_mut(flow.0 as usize) {
            flow.is_lost(direction, size);
        }
    }

    /// A row for each flow, with the figures that packets show. `mobile` is the name of the mobile.
    pub fn rows(&self, repetition: u64, mobile: &str) -> Vec<FlowRow> {
        let numbered = self.flows.iter().zip(0..);
        numbered.map(|(flow, number)| flow.row(repetition, number, mobile)).collect()
    }

    /// The flow of a packet with this key and, if it is TCP, this segment.
    fn flow(&mut self, now: Instant, direction: Direction, key: Key, segment: Option<&Segment<'_>>) -> FlowId {
        let known = self.current.get(&key).copied();
        if let Some(flow) = known
            && !segment.is_some_and(|segment| self.flows[flow.0 as usize].is_succeeded_by(direction, segment))
        {
            return flow;
        }
        if self.flows.len() >= MOST_FLOWS {
            return self.beyond_most(now, direction);
        }
        self.begin(now, direction, key, known.is_some())
    }

    fn begin(&mut self, now: Instant, direction: Direction, key: Key, reused: bool) -> FlowId {
        let flow = FlowId(self.flows.len() as u32);
        self.flows.push(Flow::begin(now, direction, key, reused));
        self.current.insert(key, flow);
        flow
    }

    /// The common flow of all packets beyond the maximum number of flows.
    fn beyond_most(&mut self, now: Instant, direction: Direction) -> FlowId {
        if self.flows.len() == MOST_FLOWS {
            self.flows.push(Flow::beyond_most(now, direction));
        }
        FlowId(MOST_FLOWS as u32)
    }
}

#[cfg(test)]
mod tests;
