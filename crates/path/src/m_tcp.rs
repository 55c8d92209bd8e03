//! M-TCP: stops the sender while the mobile is disconnected.
//!
//! Source: Brown and Singh, "M-TCP: TCP for mobile cellular networks", ACM CCR 27(5), 1997. The
//! supervisor host forwards the mobile's acknowledgements, but withholds that of the last byte.
//! When the mobile is silent, it acknowledges this byte with a window of zero. The sender then
//! stops its timer and keeps its congestion window. When the mobile is back, its own window is
//! forwarded, and the sender continues at full speed. So only the mobile acknowledges data.
//!
//! The sender must stop its timer for a closed window, as BSD does
//! (`recovery.zero_window_freezes`); the timer of Linux expires as usual.
//!
//! Compared with a summary by its author (web.cecs.pdx.edu/~singh/mtcp.html): the withheld byte,
//! the window of zero in a fade, and the duplicate acknowledgement that opens it are the same.
//! Another public summary states that the supervisor host retransmits nothing; nothing is here.
//!
//! Left out: the split of the connection, with bandwidth management by the supervisor host, and
//! compression. The mobile of the paper announces its return; here the middlebox probes it once per
//! second with an old sequence number, which TCP answers.

use std::collections::BTreeMap;

use airpath_core::{Direction, FlowId, Instant, Packet, SegmentInfo, Span, UserId};
use airpath_link::Departure;
use airpath_tcp::Segment;
use airpath_wire::tcp::Flags;

use crate::deadlines::DeadlineSet;
use crate::departures::Departures;
use crate::middlebox::{Middlebox, MiddleboxContext};
use crate::payload::Payload;
use crate::store::NewSegment;

/// Time between two probes of a disconnected mobile.
const PROBE_INTERVAL: Span = Span::from_secs(1);

/// A middlebox that stops senders.
#[derive(Debug)]
pub struct MTcp {
    freeze_after: Span,
    flows: BTreeMap<FlowId, Flow>,
    timers: DeadlineSet<FlowId>,
    left: Departures,
}

#[derive(Debug)]
struct Flow {
    user: UserId,
    /// The newest data segment of the sender, as a model of probes.
    data: Segment,
    /// One past the highest byte sent to the mobile.
    next: i64,
    /// The mobile's last acknowledgement, as a model of ours.
    last: Option<Segment>,
    /// The highest acknowledged byte that the sender has received.
    forwarded: i64,
    frozen: bool,
    /// Its time in `timers`.
    deadline: Option<Instant>,
}

impl Flow {
    /// The mobile's acknowledgement, as far as the sender may have it: without the last byte while
    /// data are outstanding.
    fn visible(&self, ack: i64) -> i64 {
        let withheld = if ack < self.next && !self.frozen { ack - 1 } else { ack };
        withheld.max(self.forwarded)
    }
}

/// `segment` with another acknowledgement and window.
fn acknowledging(segment: &Segment, ack: i64, window: Option<u32>) -> Segment {
    let mut changed = *segment;
    let by = segment.info.ack.get().map_or(0, |old| ack - old);
    // Sequence numbers wrap.
    changed.header.acknowledgment = segment.header.acknowledgment.wrapping_add(by as u32);
    changed.info.ack = ack.into();
    if let Some(window) = window {
        changed.info.window = window;
        changed.header.window = 0;
    }
    changed
}

impl MTcp {
    /// A middlebox that stops the sender of a flow when data are outstanding and the mobile has
    /// sent nothing for `freeze_after`.
    pub const fn new(freeze_after: Span) -> Self {
        Self { freeze_after, flows: BTreeMap::new(), timers: DeadlineSet::new(), left: Departures::new() }
    }

    fn set_timer(&mut self, id: FlowId, deadline: Option<Instant>) {
        if let Some(flow) = self.flows.get_mut(&id) {
            self.timers.set(id, &mut flow.deadline, deadline);
        }
    }

    fn forget(&mut self, id: FlowId) {
        self.set_timer(id, None);
        self.flows.remove(&id);
    }

    /// Carries out the timers that have expired up to `now`, each at its own time: stops the
    /// sender, then probes the mobile.
    fn advance(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        while let Some((time, id)) = self.timers.due(now) {
            self.set_timer(id, Some(time + PROBE_INTERVAL));
            let Some(flow) = self.flows.get_mut(&id) else { continue };
            let Some(last) = flow.last else { continue };
            let acknowledged = last.info.ack.get().unwrap_or(flow.forwarded);
            let (direction, segment) = if std::mem::replace(&mut flow.frozen, true) {
                (Direction::Down, probe(&flow.data, acknowledged))
            } else {
                flow.forwarded = acknowledged;
                (Direction::Up, acknowledging(&last, acknowledged, Some(0)))
            };
            let new = NewSegment {
                flow: id,
                segment: &segment,
                segment_size: segment.length,
                payload: Payload::Counted,
                buffer: None,
            };
            if let Some(packet) = cx.create_segment(time, direction, flow.user, new) {
                self.left.push(time, direction, packet);
            }
        }
    }

    fn on_data(&mut self, now: Instant, packet: Packet, cx: &mut MiddleboxContext<'_>) {
        let Some(segment) = cx.tcp_segment(&packet) else { return };
        if segment.info.flags & (Flags::SYN.0 | Flags::RST.0 | Flags::FIN.0) != 0 {
            return self.forget(packet.flow);
        }
        if segment.length == 0 {
            return;
        }
        let end = segment.info.offset + i64::from(segment.length);
        let user = packet.user;
        let flow = self.flows.entry(packet.flow).or_insert(Flow {
            user,
            data: segment,
            next: end,
            last: None,
            forwarded: 0,
            frozen: false,
            deadline: None,
        });
        if end > flow.next {
            (flow.next, flow.data) = (end, segment);
        }
        if flow.deadline.is_none() {
            self.set_timer(packet.flow, Some(now + self.freeze_after));
        }
    }

    /// A packet of the mobile. Returns what leaves in its place; `None` for itself.
    fn on_acknowledgement(&mut self, now: Instant, packet: Packet, cx: &mut MiddleboxContext<'_>) -> Option<Packet> {
        let segment = cx.tcp_segment(&packet)?;
        if segment.info.flags & (Flags::SYN.0 | Flags::RST.0 | Flags::FIN.0) != 0 {
            self.forget(packet.flow);
            return None;
        }
        let (ack, flow) = (segment.info.ack.get()?, self.flows.get_mut(&packet.flow)?);
        let freeze_after = self.freeze_after;
        let visible = flow.visible(ack);
        if flow.last.is_none_or(|last| last.info.ack <= ack.into()) {
            flow.last = Some(Segment { length: 0, info: SegmentInfo { length: 0, ..segment.info }, ..segment });
        }
        flow.frozen = false;
        let outstanding = ack < flow.next;
        let created = if visible == ack || cx.pure_ack(packet.slot).is_none() {
            flow.forwarded = flow.forwarded.max(ack);
            None
        } else {
            flow.forwarded = visible;
            let segment = acknowledging(&segment, visible, None);
            let new = NewSegment {
                flow: packet.flow,
                segment: &segment,
                segment_size: segment.length,
                payload: Payload::Counted,
                buffer: None,
            };
            cx.create_segment(now, Direction::Up, packet.user, new)
        };
        self.set_timer(packet.flow, outstanding.then(|| now + freeze_after));
        created
    }
}

/// A segment without payload and with an old sequence number, which the mobile answers.
fn probe(data: &Segment, acknowledged: i64) -> Segment {
    let offset = acknowledged - 1;
    let mut probe = *data;
    probe.header.sequence = data.header.sequence.wrapping_add((offset - data.info.offset) as u32);
    probe.length = 0;
    probe.info = SegmentInfo { offset, length: 0, ..data.info };
    probe
}

impl Middlebox for MTcp {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut MiddleboxContext<'_>) {
        self.advance(now, cx);
        let mut leaving = packet;
        match direction {
            Direction::Down => self.on_data(now, packet, cx),
            Direction::Up => {
                if let Some(created) = self.on_acknowledgement(now, packet, cx) {
                    cx.absorb(now, direction, packet);
                    leaving = created;
                }
            }
        }
        self.left.push(now, direction, leaving);
    }

    fn pop(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        self.left.pop()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.left.next().or_else(|| self.timers.first())
    }
}
