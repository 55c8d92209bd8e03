//! Flows, as they are seen by looking at packets: for the log and the summary of a run of real programs.
//!
//! A simulated flow tells about itself. Of a real one the link sees only its packets, and the [`Observer`] makes of them
//! what it can: which flow each belongs to, what its TCP header says in terms of the stream, and in the end a row of
//! the summary with the same names and meanings as that of a simulated flow. It needs memory and a look at every header, so
//! a link has one only when somebody wants to know.
//!
//! The observer stands at the two ends of the link: it is told of each packet as it enters, leaves or is lost.

mod connection;
mod echo;
mod flow;
mod headers;
mod ranges;
mod stream;

use std::collections::BTreeMap;

use airpath_core::{AppEvent, Direction, FlowId, Instant, SegmentInfo};
use airpath_result::summary::FlowRow;

use crate::offload::Frame;
use flow::Flow;
use headers::{Key, TcpSegment};

/// So many flows are told apart; the packets of all further ones are those of one flow.
pub const MOST_FLOWS: usize = 1 << 16;

/// The flows of a link, in both directions.
#[derive(Debug, Default)]
pub struct Observer {
    flows: Vec<Flow>,
    /// The flow that has these addresses and ports now; a port that is used again begins another.
    current: BTreeMap<Key, FlowId>,
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

    /// A packet enters the link: segment `segment` of `frame`, which was read off `bytes`.
    pub fn enters(
        &mut self,
        now: Instant,
        direction: Direction,
        frame: &Frame,
        bytes: &[u8],
        segment: u32,
    ) -> Sighting {
        let key = Key::of(direction, frame, bytes);
        let header = key.is_tcp().then(|| TcpSegment::read(frame, bytes, segment)).flatten();
        let flow = self.flow(now, direction, key, header.as_ref());
        let size = frame.segment_bytes(segment);
        let segment = self.flows[flow.0 as usize].enters(now, direction, size, frame, bytes, header.as_ref());
        Sighting { flow, segment }
    }

    /// A packet of `flow`, as [`Self::enters`] said, leaves the link. Says what the log of applications is told: that an
    /// echo came back.
    pub fn leaves(
        &mut self,
        due: Instant,
        direction: Direction,
        flow: FlowId,
        frame: &Frame,
        bytes: &[u8],
        segment: u32,
    ) -> Option<AppEvent> {
        let seen = self.flows.get_mut(flow.0 as usize)?;
        let step = seen.leaves(due, direction, frame, bytes, segment)?;
        Some(AppEvent { flow, step, delivered: seen.answered_bytes() })
    }

    /// A packet of `flow` with `size` bytes was lost on the link.
    pub fn is_lost(&mut self, direction: Direction, flow: FlowId, size: u32) {
        if let Some(flow) = self.flows.get_mut(flow.0 as usize) {
            flow.is_lost(direction, size);
        }
    }

    /// A row for each flow, as far as it can be known from packets. `mobile` is the name of the mobile.
    pub fn rows(&self, repetition: u64, mobile: &str) -> Vec<FlowRow> {
        let numbered = self.flows.iter().zip(0..);
        numbered.map(|(flow, number)| flow.row(repetition, number, mobile)).collect()
    }

    /// The flow of a packet that has this key, and if it is TCP this header.
    fn flow(&mut self, now: Instant, direction: Direction, key: Key, header: Option<&TcpSegment>) -> FlowId {
        let known = self.current.get(&key).copied();
        if let Some(flow) = known
            && !header.is_some_and(|header| self.flows[flow.0 as usize].is_succeeded_by(direction, header))
        {
            return flow;
        }
        if self.flows.len() >= MOST_FLOWS {
            return self.rest(now, direction);
        }
        let flow = FlowId(self.flows.len() as u32);
        self.flows.push(Flow::begin(now, direction, key));
        self.current.insert(key, flow);
        flow
    }

    /// The one flow of all that came too late to be told apart.
    fn rest(&mut self, now: Instant, direction: Direction) -> FlowId {
        if self.flows.len() == MOST_FLOWS {
            self.flows.push(Flow::rest(now, direction));
        }
        FlowId(MOST_FLOWS as u32)
    }
}

#[cfg(test)]
mod tests;
