//! Snoop: local retransmission of TCP data on the radio link, without splitting connections.
//!
//! Source: Balakrishnan, Seshan and Katz, "Improving reliable transport and handoff performance in
//! cellular wireless networks", ACM Wireless Networks 1(4), 1995. An agent at the base station
//! keeps a copy of each segment towards the mobile until the mobile acknowledges it. A duplicate
//! acknowledgement for a segment that the agent has means a loss on the radio link. The agent
//! retransmits the segment and absorbs the duplicates that this loss causes, so that the sender
//! does not reduce its window. A timer of its own repairs what no duplicates report. Connections
//! stay end-to-end: only the mobile acknowledges.
//!
//! Losses before the agent are the sender's: it forwards the duplicates for a segment that it does
//! not have, or that the sender has retransmitted. The timer is a choice: that of RFC 6298 over the
//! round trip behind the agent, with a floor of 100 ms.
//!
//! Left out: uploads, where the paper adds negative acknowledgements of the base station; handover
//! of the cache to another base station; and the acknowledgement that the paper's agent sends for
//! data which the mobile already has (here the mobile answers). A retransmission waits behind what
//! the bearer has queued. SACK blocks pass unchanged, so a sender that uses them may still see the
//! loss; the paper's senders had no SACK.
//!
//! The agent of [W-TCP](crate::w_tcp) is a variant of this one.

use std::collections::{BTreeMap, VecDeque};

use airpath_core::{Bytes, Direction, FlowId, Instant, Packet, Span};
use airpath_link::Departure;
use airpath_wire::tcp::Flags;

use crate::deadlines::DeadlineSet;
use crate::departures::Departures;
use crate::middlebox::{Middlebox, MiddleboxContext};
use crate::w_tcp::SenderClock;

/// The timer before the first round trip is measured (RFC 6298 §2.1), and its bounds.
const FIRST_TIMEOUT: Span = Span::from_secs(1);
const LEAST_TIMEOUT: Span = Span::from_millis(100);
const LONGEST_TIMEOUT: Span = Span::from_secs(60);

/// An agent for all flows of a base station.
#[derive(Debug)]
pub struct Snoop {
    /// Bytes of packets that it stores at most for each flow.
    cache: Bytes,
    /// Whether it is W-TCP (see [`crate::w_tcp`]).
    w_tcp: bool,
    flows: BTreeMap<FlowId, Flow>,
    /// When the timers of the flows expire.
    timers: DeadlineSet<FlowId>,
    left: Departures,
}

/// A connection, as the agent sees it.
#[derive(Debug, Default)]
struct Flow {
    /// Copies of segments that are not acknowledged, in the order of their offsets.
    cached: VecDeque<Cached>,
    cached_bytes: u64,
    /// One past the highest byte sent to the mobile.
    next: i64,
    /// The last acknowledgement of the mobile and its window.
    acknowledged: Option<(i64, u32)>,
    /// Duplicates that the current loss still causes.
    expected: u32,
    /// Duplicates that answer old data, which the sender is to receive.
    answers: u32,
    round_trip: Option<RoundTrip>,
    /// Its time in `timers`.
    deadline: Option<Instant>,
    /// By how much the timer has backed off.
    backoff: u32,
    /// Whether the sender has closed its side.
    closing: bool,
    /// With W-TCP, the timestamps of the sender.
    clock: Option<SenderClock>,
    /// With W-TCP, whether the timer expired and the mobile has not answered since: it sends one
    /// segment at a time.
    one_segment: bool,
}

/// A copy of a segment.
#[derive(Clone, Copy, Debug)]
struct Cached {
    offset: i64,
    end: i64,
    /// The copy, which is inside the middlebox.
    copy: Packet,
    arrived: Instant,
    sent: Instant,
    /// Whether it was not yet sent, because one segment is sent at a time.
    waiting: bool,
    /// Whether the agent has retransmitted it.
    repeated: bool,
    /// Whether the sender has retransmitted it.
    from_sender: bool,
}

/// The smoothed round trip behind the agent and its variation (RFC 6298 §2).
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: Span,
    variation: Span,
}

impl RoundTrip {
    fn measure(old: Option<Self>, sample: Span) -> Self {
        let Some(Self { smoothed, variation }) = old else {
            return Self { smoothed: sample, variation: sample / 2 };
        };
        let difference = smoothed.max(sample).saturating_sub(smoothed.min(sample));
        Self { smoothed: (smoothed * 7 + sample) / 8, variation: (variation * 3 + difference) / 4 }
    }
}

impl Flow {
    fn timeout(&self) -> Span {
        let first = self.round_trip.map_or(FIRST_TIMEOUT, |each| each.smoothed + each.variation * 4);
        (first.max(LEAST_TIMEOUT) * (1 << self.backoff.min(10))).min(LONGEST_TIMEOUT)
    }

    /// The position of the first segment that does not end at or before `offset`.
    fn position(&self, offset: i64) -> usize {
        self.cached.partition_point(|cached| cached.end <= offset)
    }
}

impl Snoop {
    /// An agent that stores at most `cache` bytes of packets for each flow.
    pub const fn new(cache: Bytes) -> Self {
        Self { cache, w_tcp: false, flows: BTreeMap::new(), timers: DeadlineSet::new(), left: Departures::new() }
    }

    /// An agent of W-TCP (see [`crate::w_tcp`]) that stores as much.
    pub const fn w_tcp(cache: Bytes) -> Self {
        let mut agent = Self::new(cache);
        agent.w_tcp = true;
        agent
    }

    /// Restarts the timer of a flow with stored segments, or stops it.
    fn restart_timer(&mut self, now: Instant, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let deadline = (!flow.cached.is_empty()).then(|| now + flow.timeout());
        self.timers.set(id, &mut flow.deadline, deadline);
    }

    /// Carries out the timers that have expired up to `now`, each at its own time.
    fn advance(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        while let Some((time, id)) = self.timers.due(now) {
            if let Some(flow) = self.flows.get_mut(&id) {
                flow.backoff += 1;
                flow.one_segment = self.w_tcp;
            }
            self.retransmit(time, id, cx);
            self.restart_timer(time, id);
        }
    }

    /// Sends the first stored segment of a flow again. The duplicates of the segments behind it are
    /// expected.
    fn retransmit(&mut self, now: Instant, id: FlowId, cx: &mut MiddleboxContext<'_>) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        flow.expected = flow.cached.iter().filter(|cached| !cached.waiting).count().saturating_sub(1) as u32;
        let Some(first) = flow.cached.front_mut() else { return };
        first.repeated = true;
        first.sent = now;
        if let Some(packet) = SenderClock::send_copy(flow.clock.as_mut(), now, first.arrived, first.copy, cx) {
            self.left.push(now, Direction::Down, packet);
        }
    }

    /// Sends the segments of a flow that wait.
    fn release(&mut self, now: Instant, id: FlowId, cx: &mut MiddleboxContext<'_>) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        if !std::mem::take(&mut flow.one_segment) {
            return;
        }
        for cached in flow.cached.iter_mut().filter(|cached| cached.waiting) {
            (cached.waiting, cached.sent) = (false, now);
            if let Some(packet) = SenderClock::send_copy(flow.clock.as_mut(), now, cached.arrived, cached.copy, cx) {
                self.left.push(now, Direction::Down, packet);
            }
        }
    }

    /// A packet towards the mobile. Returns whether it leaves now; otherwise it is stored.
    fn on_data(&mut self, now: Instant, packet: Packet, cx: &mut MiddleboxContext<'_>) -> bool {
        let Some(segment) = cx.segment(packet.slot) else { return true };
        if segment.flags & (Flags::SYN.0 | Flags::RST.0) != 0 {
            self.forget(now, packet.flow, cx);
            return true;
        }
        if segment.flags & Flags::FIN.0 != 0
            && let Some(flow) = self.flows.get_mut(&packet.flow)
        {
            flow.closing = true;
        }
        if segment.length == 0 {
            return true;
        }
        let flow = self.flows.entry(packet.flow).or_default();
        let (offset, end) = (segment.offset, segment.offset + i64::from(segment.length));
        // What found a full cache was sent, too.
        let from_sender = offset < flow.next;
        flow.next = flow.next.max(end);
        if flow.acknowledged.is_some_and(|(acknowledged, _)| end <= acknowledged) {
            // The acknowledgement was lost before the sender. The mobile repeats it.
            flow.answers += 1;
            return true;
        }
        let at = flow.position(offset);
        if let Some(cached) = flow.cached.get_mut(at)
            && cached.offset < end
        {
            cached.from_sender = true;
            return true;
        }
        if flow.cached_bytes + u64::from(packet.size) > self.cache.get() {
            return true;
        }
        let waiting = flow.one_segment;
        let copy = if waiting { Some(packet) } else { cx.copy(now, Direction::Down, packet) };
        let Some(copy) = copy else { return true };
        flow.cached_bytes += u64::from(packet.size);
        flow.cached
            .insert(at, Cached { offset, end, copy, arrived: now, sent: now, waiting, repeated: false, from_sender });
        // While the first segment is missing, each further one causes a duplicate.
        flow.expected += u32::from(flow.expected > 0 && !waiting);
        if flow.deadline.is_none() {
            self.restart_timer(now, packet.flow);
        }
        !waiting
    }

    /// An acknowledgement of the mobile. Returns whether the sender is to receive it.
    fn on_acknowledgement(&mut self, now: Instant, packet: Packet, cx: &mut MiddleboxContext<'_>) -> bool {
        let Some(segment) = cx.segment(packet.slot) else { return true };
        if segment.flags & (Flags::SYN.0 | Flags::RST.0) != 0 {
            self.forget(now, packet.flow, cx);
            return true;
        }
        let (Some(ack), Some(flow)) = (segment.ack.get(), self.flows.get_mut(&packet.flow)) else { return true };
        let pure = cx.pure_ack(packet.slot).is_some();
        let last = flow.acknowledged;
        if last.is_none_or(|(last, _)| ack > last) {
            flow.acknowledged = Some((ack, segment.window));
            (flow.expected, flow.answers, flow.backoff) = (0, 0, 0);
            let covered = flow.position(ack);
            if let Some(newest) = covered.checked_sub(1).map(|newest| flow.cached[newest])
                && !newest.repeated
                && !newest.from_sender
            {
                flow.round_trip = Some(RoundTrip::measure(flow.round_trip, now.since(newest.sent)));
            }
            for cached in flow.cached.drain(..covered) {
                flow.cached_bytes -= u64::from(cached.copy.size);
                cx.absorb(now, Direction::Down, cached.copy);
            }
            let is_over = flow.closing && flow.cached.is_empty();
            self.release(now, packet.flow, cx);
            self.restart_timer(now, packet.flow);
            if is_over {
                self.flows.remove(&packet.flow);
            }
            return true;
        }
        if !pure {
            return true;
        }
        if last.is_some_and(|(last, _)| ack < last) {
            // The paper drops it as spurious.
            return false;
        }
        if last != Some((ack, segment.window)) {
            flow.acknowledged = Some((ack, segment.window));
            return true;
        }
        if flow.answers > 0 {
            flow.answers -= 1;
            return true;
        }
        match flow.cached.front() {
            Some(first) if first.offset <= ack && !first.from_sender => {
                if flow.expected > 0 {
                    flow.expected -= 1;
                } else {
                    self.retransmit(now, packet.flow, cx);
                    self.restart_timer(now, packet.flow);
                }
                false
            }
            _ => true,
        }
    }

    /// A connection begins or is reset.
    fn forget(&mut self, now: Instant, id: FlowId, cx: &mut MiddleboxContext<'_>) {
        let Some(mut flow) = self.flows.remove(&id) else { return };
        self.timers.set(id, &mut flow.deadline, None);
        for cached in flow.cached {
            cx.absorb(now, Direction::Down, cached.copy);
        }
    }
}

impl Middlebox for Snoop {
    fn push(&mut self, now: Instant, direction: Direction, mut packet: Packet, cx: &mut MiddleboxContext<'_>) {
        self.advance(now, cx);
        match direction {
            Direction::Down => {
                let leaves = self.on_data(now, packet, cx);
                if let Some(flow) = self.flows.get_mut(&packet.flow).filter(|_| leaves && self.w_tcp) {
                    packet = flow.clock.get_or_insert_default().pass(now, packet, cx);
                }
                if !leaves {
                    return;
                }
            }
            Direction::Up => {
                if !self.on_acknowledgement(now, packet, cx) {
                    return cx.absorb(now, direction, packet);
                }
            }
        }
        self.left.push(now, direction, packet);
    }

    fn pop(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        self.left.pop()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.left.next().or_else(|| self.timers.first())
    }
}
