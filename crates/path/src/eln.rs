//! ELN: explicit notification that a loss was not congestion.
//!
//! Sources: Balakrishnan and Katz, "Explicit loss notification and wireless web performance", IEEE
//! Globecom Internet Mini-Conference, 1998, with an agent at the base station for uploads; and
//! Balakrishnan, Padmanabhan, Seshan and Katz, "A comparison of mechanisms for improving TCP
//! performance over wireless links", IEEE/ACM Transactions on Networking 5(6), 1997, for downloads.
//! The agent records which data it has not seen. When the mobile reports a loss, and the agent has
//! seen the lost segment, the radio link lost it. The agent sets a bit in the acknowledgement. The
//! sender retransmits as usual, but keeps its window (`recovery.loss_notification`).
//!
//! The text of these papers was not found.
//!
//! A loss is reported by a duplicate acknowledgement, or by SACK blocks. Data that arrived late at
//! the agent count as lost before it until they are acknowledged. Nothing is retransmitted or held.
//!
//! Limits: the queue of the bearer is behind the agent, so what it drops counts as lost by the
//! radio link. If a retransmission is lost too, the sender's timer repairs it and reduces the
//! window. Left out: uploads.

use std::collections::BTreeMap;

use airpath_core::range_set::{Range, RangeSet};
use airpath_core::{Direction, FlowId, Instant, Packet};
use airpath_link::Departure;
use airpath_tcp::Segment;
use airpath_wire::tcp::{Flags, TcpHeader};

use crate::departures::Departures;
use crate::middlebox::{Middlebox, MiddleboxContext};
use crate::payload::Payload;
use crate::store::NewSegment;

/// Ranges of missing data that are stored for a flow. More become one, and no loss in it is
/// notified.
const MOST_RANGES: usize = 256;

/// An agent for all flows of a base station.
#[derive(Debug, Default)]
pub struct Eln {
    flows: BTreeMap<FlowId, Flow>,
    left: Departures,
}

/// A connection, as the agent sees it.
#[derive(Debug, Default)]
struct Flow {
    /// One past the highest byte sent to the mobile.
    next: i64,
    /// Data below `next` that had not been seen when later data were.
    missing: RangeSet<i64>,
    /// The last acknowledgement of the mobile and its window.
    acknowledged: Option<(i64, u32)>,
    /// Whether the sender has closed its side.
    closing: bool,
}

impl Eln {
    /// Data towards the mobile.
    fn on_data(&mut self, packet: Packet, cx: &MiddleboxContext<'_>) {
        let Some(segment) = cx.segment(packet.slot) else { return };
        if segment.flags & (Flags::SYN.0 | Flags::RST.0) != 0 {
            self.flows.remove(&packet.flow);
            return;
        }
        if segment.length == 0 && !self.flows.contains_key(&packet.flow) {
            return;
        }
        let flow = self.flows.entry(packet.flow).or_default();
        flow.closing |= segment.flags & Flags::FIN.0 != 0;
        if segment.length == 0 {
            return;
        }
        if segment.offset > flow.next {
            flow.missing.insert(Range::new(flow.next, segment.offset), |_| ());
            if let (true, Some(first)) = (flow.missing.len() > MOST_RANGES, flow.missing.first()) {
                flow.missing.insert(Range::new(first.start, segment.offset), |_| ());
            }
        }
        flow.next = flow.next.max(segment.offset + i64::from(segment.length));
    }

    /// A packet of the mobile. Returns the packet that leaves in its place, if it reports a loss of
    /// the radio link.
    fn on_acknowledgement(&mut self, now: Instant, packet: Packet, cx: &mut MiddleboxContext<'_>) -> Option<Packet> {
        let info = cx.segment(packet.slot)?;
        if info.flags & (Flags::SYN.0 | Flags::RST.0) != 0 {
            self.flows.remove(&packet.flow);
            return None;
        }
        let (ack, flow) = (info.ack.get()?, self.flows.get_mut(&packet.flow)?);
        let acknowledged = Some((ack, info.window));
        let repeats = flow.acknowledged == acknowledged;
        if flow.acknowledged.is_none_or(|(last, _)| ack >= last) {
            flow.acknowledged = acknowledged;
            flow.missing.remove_below(ack);
        }
        if flow.closing && ack >= flow.next {
            self.flows.remove(&packet.flow);
            return None;
        }
        let seen = ack < flow.next && flow.missing.containing(Range::new(ack, ack + 1)).is_none();
        if !seen || cx.pure_ack(packet.slot).is_none() {
            return None;
        }
        let segment = cx.tcp_segment(&packet)?;
        if !repeats && !reports_gap(&segment.header) {
            return None;
        }
        let header = TcpHeader { loss_notification: true, ..segment.header };
        let segment = Segment { header, ..segment };
        let new = NewSegment {
            flow: packet.flow,
            segment: &segment,
            segment_size: segment.length,
            payload: Payload::Counted,
            buffer: None,
        };
        cx.create_segment(now, Direction::Up, packet.user, new)
    }
}

/// Whether SACK blocks report data above the acknowledgement.
fn reports_gap(header: &TcpHeader) -> bool {
    // Sequence numbers wrap.
    let is_above = |start: u32| start.wrapping_sub(header.acknowledgment).cast_signed() > 0;
    header.options.sack.as_slice().iter().any(|(start, _)| is_above(*start))
}

impl Middlebox for Eln {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut MiddleboxContext<'_>) {
        let mut leaving = packet;
        match direction {
            Direction::Down => self.on_data(packet, cx),
            Direction::Up => {
                if let Some(created) = self.on_acknowledgement(now, packet, cx) {
                    cx.absorb(now, direction, packet);
                    leaving = created;
                }
            }
        }
        self.left.push(now, direction, leaving);
    }

    fn pop(&mut self, _: Instant, _: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        self.left.pop()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.left.next()
    }
}
