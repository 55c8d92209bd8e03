//! Assigns segments to the connections of a flow: a flow of transactions may open one connection
//! for each, and the log has no ports.

use std::collections::VecDeque;

use airpath_core::{Direction, SegmentInfo};
use airpath_wire::tcp::Flags;

use super::Logged;

/// Connections of a flow that may have segments in flight: the close of one overlaps with the
/// opening of the next.
const KEPT: usize = 8;

/// Numbers connections as their segments are sent.
#[derive(Debug)]
pub(super) struct ConnectionNumbers {
    flows: Vec<Flow>,
}

#[derive(Debug, Default)]
struct Flow {
    /// Connections so far.
    begun: u32,
    /// The newest first.
    open: VecDeque<Open>,
}

#[derive(Debug)]
struct Open {
    number: u32,
    /// Offset after the last byte sent in each direction.
    next: [i64; 2],
    /// Whether something other than a SYN was sent in each direction.
    goes_on: [bool; 2],
}

impl ConnectionNumbers {
    /// For `flows` flows without connections.
    pub fn new(flows: usize) -> Self {
        Self { flows: (0..flows).map(|_| Flow::default()).collect() }
    }

    /// The connection in its flow, from 0, of the next segment that was sent.
    pub fn connection(&mut self, segment: &Logged) -> u32 {
        let Logged { direction, header, .. } = segment;
        let flow = &mut self.flows[segment.flow as usize];
        let newest = flow.open.front();
        let opens = header.flags & Flags::SYN.0 != 0 && header.flags & Flags::ACK.0 == 0;
        // A SYN that nothing followed is retransmitted.
        if newest.is_none_or(|newest| opens && newest.goes_on[*direction as usize]) {
            flow.open.push_front(Open::new(flow.begun, *direction, header));
            flow.begun += 1;
            flow.open.truncate(KEPT);
        }
        let at = if header.flags & Flags::SYN.0 != 0 {
            None
        } else {
            flow.open.iter().position(|open| open.fits(*direction, header))
        };
        let open = &mut flow.open[at.unwrap_or(0)];
        open.take(*direction, header);
        open.number
    }
}

impl Open {
    fn new(number: u32, direction: Direction, header: &SegmentInfo) -> Self {
        let mut next = [0; 2];
        next[direction as usize] = header.offset;
        next[1 - direction as usize] = header.ack.get().unwrap_or(0);
        Self { number, next, goes_on: [false; 2] }
    }

    /// Whether a segment fits this connection: it leaves no gap, and acknowledges only sent data.
    fn fits(&self, direction: Direction, header: &SegmentInfo) -> bool {
        let index = direction as usize;
        header.offset <= self.next[index] && header.ack.get().is_none_or(|ack| ack <= self.next[1 - index])
    }

    fn take(&mut self, direction: Direction, header: &SegmentInfo) {
        let index = direction as usize;
        let counted = i64::from(header.flags & Flags::SYN.0 != 0) + i64::from(header.flags & Flags::FIN.0 != 0);
        self.next[index] = self.next[index].max(header.offset.saturating_add(i64::from(header.length) + counted));
        self.goes_on[index] |= header.flags & Flags::SYN.0 == 0;
    }
}
