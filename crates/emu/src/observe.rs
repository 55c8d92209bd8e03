//! Flows, as they are seen by looking at packets: for the log and the summary of a run of real
//! programs.
//!
//! A simulated flow tells about itself. Of a real one the link sees only its packets, and the
//! [`Observer`] makes of them what it can: which flow each belongs to, what its TCP header says in
//! terms of the stream, and in the end a row of the summary with the same names and meanings as
//! that of a simulated flow. It needs memory and a look at every header, so a link has one only
//! when somebody wants to know.
//!
//! The observer stands at the two ends of the link: it is told of each packet as it enters, leaves
//! or is lost.

mod connection;
mod echo;
mod flow;
mod headers;

use std::collections::BTreeMap;

use airpath_core::{AppEvent, Direction, Ecn, FlowId, Instant, SegmentInfo};
use airpath_observe::Connection;
use airpath_result::summary::FlowRow;
use airpath_wire::segment::Segment;

use crate::offload::Frame;
use flow::Flow;
use headers::{Key, Sight, segment};

/// So many flows are told apart; the packets of all further ones are those of one flow.
pub const MOST_FLOWS: usize = 1 << 16;

/// The flows of a link, in both directions.
#[derive(Debug, Default)]
pub struct Observer {
    flows: Vec<Flow>,
    /// The flow that has these addresses and ports now; a port that is used again begins another.
    current: BTreeMap<Key, FlowId>,
    /// Packets that passed each end, as captures there count them: where packets enter, in the
    /// order of [`Direction::BOTH`].
    passed: [u64; 2],
}

/// What the log says of a packet that enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The flow that it belongs to.
    pub flow: FlowId,
    /// Its TCP header, if it has one.
    pub segment: Option<SegmentInfo>,
}

impl Observer {
    /// No flows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet enters the link: segment `index` of `frame`, which was read off `bytes`.
    pub fn enters(&mut self, now: Instant, direction: Direction, frame: &Frame, bytes: &[u8], index: u32) -> Sighting {
        let sight = self.sight(direction, now, frame.ecn());
        let key = Key::of(direction, frame, bytes);
        let segment = key.route(direction).and_then(|route| segment(frame, bytes, index, route, sight));
        let flow = self.flow(now, direction, key, segment.as_ref());
        let size = frame.segment_bytes(index);
        let segment = self.flows[flow.0 as usize].enters(now, direction, size, frame, bytes, segment.as_ref());
        Sighting { flow, segment }
    }

    /// A packet of `flow`, as [`Self::enters`] returned it, leaves the link with `ecn`: it was due
    /// at `due`, and is handed over now. Returns the event for the log of applications if an echo
    /// came back.
    #[expect(clippy::too_many_arguments, reason = "they are what is known of a packet")]
    pub fn leaves(
        &mut self,
        due: Instant,
        now: Instant,
        direction: Direction,
        (flow, ecn): (FlowId, Ecn),
        frame: &Frame,
        bytes: &[u8],
        index: u32,
    ) -> Option<AppEvent> {
        let end = match direction {
            Direction::Down => Direction::Up,
            Direction::Up => Direction::Down,
        };
        let sight = self.sight(end, now, ecn);
        let seen = self.flows.get_mut(flow.0 as usize)?;
        let step = seen.leaves(due, sight, direction, frame, bytes, index)?;
        Some(AppEvent { flow, step, delivered: seen.answered_bytes() })
    }

    /// The connection of a flow as a capture shows it at the end where packets of `direction`
    /// enter; `None` if it is not TCP, or nothing of it passed there.
    pub fn connection(&self, flow: FlowId, direction: Direction) -> Option<&Connection> {
        self.flows.get(flow.0 as usize)?.connection()?.at_entry(direction)
    }

    /// A packet passes the end where packets of `end` enter.
    const fn sight(&mut self, end: Direction, time: Instant, ecn: Ecn) -> Sight {
        self.passed[end as usize] += 1;
        Sight { time, number: self.passed[end as usize], ecn }
    }

    /// A packet of `flow` with `size` bytes was lost on the link.
    pub fn is_lost(&mut self, direction: Direction, flow: FlowId, size: u32) {
        if let Some(flow) = self.flows.get_mut(flow.0 as usize) {
            flow.is_lost(direction, size);
        }
    }

    /// A row for each flow, as far as it can be known from packets. `mobile` is the name of the
    /// mobile.
    pub fn rows(&self, repetition: u64, mobile: &str) -> Vec<FlowRow> {
        let numbered = self.flows.iter().zip(0..);
        numbered.map(|(flow, number)| flow.row(repetition, number, mobile)).collect()
    }

    /// The flow of a packet that has this key and, if it is TCP, is this segment.
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
        let flow = FlowId(self.flows.len() as u32);
        self.flows.push(Flow::begin(now, direction, key, known.is_some()));
        self.current.insert(key, flow);
        flow
    }

    /// The one flow of all that came too late to be told apart.
    fn beyond_most(&mut self, now: Instant, direction: Direction) -> FlowId {
        if self.flows.len() == MOST_FLOWS {
            self.flows.push(Flow::beyond_most(now, direction));
        }
        FlowId(MOST_FLOWS as u32)
    }
}

#[cfg(test)]
mod tests;
