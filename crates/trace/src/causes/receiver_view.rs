//! What limits the sender, from a capture at the receiver.
//!
//! The timestamps of the sender show how long each segment waited (`send_times`), and thus when the
//! link was full. Without them the spacing of arrivals shows it: a full link delivers evenly, and
//! a window-limited sender sends a flight and pauses. Time is divided into rounds as long as the
//! round trip of the handshake, or longer where few segments arrive. Where the link was not full,
//! the receive window is the limit if as much arrived as it allows, else the sender's own window.

mod gaps;
mod offered_window;
mod recovery;

use airpath_core::{Instant, Span};
use airpath_wire::tcp::{Flags, Timestamps};

use super::bottleneck::FIXED_NETWORK_DELAY;
use super::link_load::{LinkEstimate, Load, LoadMeter};
use super::neighbours::{Meanwhile, Neighbours};
use super::path_estimate::PathEstimate;
use super::send_times::SendTimes;
use super::stall::{Fate, Stall};
use super::timeline::{Label, Limit, Timeline, View};
use super::{Cause, Confidence, EndOfData, Stamp};
use crate::shared_path::takes_share;
use crate::two_point::{Direction, Fate as PacketFate};
use airpath_capture::read::LATEST;
use airpath_observe::{Events, Observation};
use offered_window::OfferedWindow;
use recovery::SenderRecovery;

/// The link is full in a round if its gaps are even. A gap up to this multiple of the mean is even.
const EVEN_SPACING: u64 = 3;

/// So is a gap up to this part of the round.
const LONGEST_PAUSE: u64 = 10;

/// An interface joins segments (GRO) that are no further apart than this.
const JOINED_WITHIN: Span = Span::from_millis(1);

/// Segments of a round, at least, for a judgement of their spacing.
const SEGMENTS_PER_ROUND: u64 = 6;

/// The flight grows as in slow start if a round delivers this multiple of the round before.
const GROWTH: f64 = 1.25;

/// A gap longer than a round trip by less than this is no sign of a gap in the radio.
const PATIENCE: Span = Span::from_millis(150);

/// A shorter time with a closed window is the receiver's own processing.
const SHORTEST_CLOSED: Span = Span::from_millis(10);

/// A time in which the receive window allowed no full segment although all data had arrived.
#[derive(Clone, Copy, Debug)]
struct Closed {
    since: Stamp,
    /// When a segment of this end opened it.
    opened: Option<Stamp>,
    /// Probes of the window: the sender has data.
    probes: u32,
}

/// A packet of the other end's capture that arrived.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    /// The frame in which it arrived, or its first segment.
    frame: u64,
    /// Its stream offsets.
    begin: i64,
    end: i64,
    /// When it had arrived without waiting.
    unqueued: Instant,
}

/// What the other end sends, from a capture at the receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiverView {
    round_trip: Span,
    path: PathEstimate,
    highest: i64,
    segment: u32,
    arrived: u64,
    /// The frame of the last segment that arrived.
    frame: u64,
    /// The last arrival of data.
    last: Option<Stamp>,
    /// Whether more data is expected: the last segment did not end the data.
    more: bool,
    end_of_data: EndOfData,
    /// Where the data ended. A hole below may be filled later.
    ended_at: Option<i64>,
    /// Whether data below the highest offset is missing.
    hole: bool,
    /// The recovery of the sender.
    recovery: SenderRecovery,
    round: u32,
    /// Whether the round ends with the last arrival. It is judged at the next, because further
    /// segments may come at the same time.
    round_is_over: bool,
    begin: Instant,
    /// Full segments of the round, and the longest time that one took.
    segments: u64,
    longest: Span,
    /// Bytes of the last arrival, and the time that it took. Segments that come at one time are one
    /// arrival: the path carried them one after the other.
    bytes: u64,
    took: Span,
    /// The time from the arrival before to it, also if that was a gap; zero after a pause of the
    /// data.
    spacing: Span,
    /// Bytes that had arrived when the round began, and bytes of the round before.
    arrived_before: u64,
    before: u64,
    window: u64,
    /// The window that this end offers.
    offered: OfferedWindow,
    /// Whether a segment of the round, or of the one before, reached the edge known to its sender.
    reached_edge: bool,
    reached_edge_before: bool,
    send_times: SendTimes,
    /// With captures of both ends, the packets that arrived: they replace timestamps.
    sent: Vec<SentPacket>,
    /// Whether other connections share the path.
    is_shared: bool,
    /// Whether the near end has more than a segment outstanding, too.
    both_ways: bool,
    /// When the last segment, with data or without, had arrived without waiting.
    unqueued: Option<Instant>,
    /// When the last segment entered the link, where timestamps show it, and whether it waited
    /// there for the one before.
    entered: Option<Instant>,
    waited: bool,
    link: LoadMeter,
    /// Whether the sender is the mobile: then the link is the first hop.
    from_radio: bool,
    closed: Option<Closed>,
    /// The other connections of the host.
    neighbours: Option<Neighbours>,
    /// Whether slow start is over.
    slow_start_over: bool,
}

impl ReceiverView {
    /// Nothing has arrived yet. The rounds have odd numbers; those of the sender's view are even.
    pub(super) fn new() -> Self {
        Self { round: 1, ..Self::default() }
    }

    /// Sets the other connections of the host.
    pub(super) fn set_neighbours(&mut self, neighbours: Neighbours) {
        self.neighbours = Some(neighbours);
    }

    /// Sets the round trip of the handshake.
    pub(super) fn first_round_trip(&mut self, sample: Span) {
        self.round_trip = sample;
        self.path.round_trip(sample, 0);
    }

    /// Sets whether the sender is the mobile.
    pub(super) fn set_from_radio(&mut self, from_radio: bool) {
        self.from_radio = from_radio;
    }

    /// Uses the times of sending from the capture of the other end: where other connections share
    /// the path, and where data of the near end waits for acknowledgements behind this data. Else
    /// the spacing of a round's arrivals shows the rate, to the packet; the load of the link has
    /// the resolution of half a window only.
    pub(super) fn set_sent(&mut self, direction: &Direction, is_shared: bool) {
        self.is_shared = is_shared;
        let shortest = direction.delay.map_or(Span::ZERO, |delay| delay.minimum);
        let sent = direction.transits.iter().filter_map(|transit| match transit.fate {
            PacketFate::Arrived { frame, .. } => Some(SentPacket {
                frame,
                begin: transit.packet.offset,
                end: transit.packet.end(),
                unqueued: transit.packet.time.min(LATEST) + shortest,
            }),
            PacketFate::Lost | PacketFate::Unknown => None,
        });
        self.sent = sent.collect();
        self.sent.sort_unstable_by_key(|packet| packet.frame);
    }

    /// Whether the near end has more than a segment outstanding when the next segment arrives.
    pub(super) fn set_both_ways(&mut self, both_ways: bool) {
        self.both_ways = both_ways;
    }

    /// Whether the last segment does not show when it was sent.
    pub(super) const fn is_send_time_unknown(&self) -> bool {
        self.unqueued.is_none()
    }

    /// When the last segment, which arrived `now`, had arrived without waiting, and the round trip
    /// of the empty path; `None` without a wait of half of that.
    pub(super) fn wait_in_queue(&self, now: Instant) -> Option<(Instant, Span)> {
        let sent = self.unqueued.filter(|sent| now.since(*sent) > self.round_trip / 2 && !self.round_trip.is_zero())?;
        Some((sent, self.round_trip))
    }

    /// When the segment that arrives `now` had arrived without packets in front of it, and whether
    /// other connections sent those; `None` without a wait of half a round trip.
    pub(super) fn wait_behind_packets(&mut self, now: Instant) -> Option<(Instant, bool)> {
        let (sent, _) = self.wait_in_queue(now)?;
        let neighbours = self.neighbours.as_mut()?;
        neighbours.set_now(now);
        match neighbours.meanwhile(sent, now) {
            Meanwhile::Others(..) => Some((sent, true)),
            Meanwhile::Own(..) if self.link.busy_until().is_some() => Some((sent, false)),
            Meanwhile::Own(..) | Meanwhile::Nothing => None,
        }
    }

    /// When the segment that arrives `now` had arrived without the silence before it, in which no
    /// packet of the host came from the far end, and that silence; `None` without a long one.
    pub(super) fn wait_in_silence(&mut self, now: Instant) -> Option<(Instant, (Instant, Instant))> {
        let (sent, _) = self.wait_in_queue(now)?;
        let neighbours = self.neighbours.as_mut()?;
        neighbours.set_now(now);
        let (begin, end) = match neighbours.meanwhile(sent, now) {
            Meanwhile::Nothing => (sent, now),
            Meanwhile::Own(begin, end) => (begin, end),
            Meanwhile::Others(..) => return None,
        };
        (end.since(begin) > PATIENCE).then_some((sent, (begin, end)))
    }

    /// When a segment that arrived had arrived without waiting; `None` where that is not known.
    fn unqueued(&mut self, observation: &Observation) -> Option<Instant> {
        let by_timestamps = self.send_times.arrived(observation.timestamps, observation.time);
        if !self.is_shared && !self.both_ways {
            return by_timestamps;
        }
        // A segment that was sent as a part of a super-segment arrived after its first part.
        let at = self.sent.partition_point(|packet| packet.frame <= observation.frame).checked_sub(1);
        let known = at.map(|at| self.sent[at]).filter(|packet| {
            let end = observation.offset + i64::from(observation.length);
            packet.frame == observation.frame || (packet.begin <= observation.offset && end <= packet.end)
        });
        known.map(|packet| packet.unqueued.min(observation.time)).or(by_timestamps)
    }

    /// The other end sent a segment of the handshake.
    pub(super) fn handshake(&mut self, timestamps: Option<Timestamps>, now: Instant) {
        self.send_times.arrived(timestamps, now);
    }

    /// Whether no data is expected: the last segment ended the data.
    pub(super) fn idle(&self) -> bool {
        !self.more && !self.hole
    }

    /// Whether the link of this data is busy: its load will be reported later.
    pub(super) fn is_link_busy(&self) -> bool {
        self.link.busy_until().is_some()
    }

    /// The label of the time from now on.
    pub(super) fn label(&self) -> Label {
        let limit = match () {
            () if self.is_closed() && !self.hole => Limit::ClosedWindow,
            () => Limit::OwnWindowUndecided,
        };
        Label::Limited(limit, if self.round_is_over { self.round + 2 } else { self.round })
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some_and(|closed| closed.opened.is_none())
    }

    /// The receiver acknowledged data, and advertised a window.
    pub(super) fn acknowledged(&mut self, observation: &Observation, timeline: &mut Timeline) {
        self.window = observation.most_receivable();
        self.label_recovery(observation.time, timeline);
        let Some(acknowledged) = observation.acknowledged else { return };
        let was_idle = self.idle();
        // A FIN has a number, too, and is no data.
        if acknowledged > self.highest + 1 {
            self.last = Some(Stamp::of(observation));
            self.more = true;
            if let Some(busy) = self.link.busy_until() {
                // The link carried what the capture lacks.
                self.carry(busy, self.at_link(observation.time).max(busy), observation.time, timeline);
            }
        }
        // What the receiver has, the capture may lack.
        self.highest = self.highest.max(acknowledged);
        let had_hole = self.hole;
        self.hole &= acknowledged < self.highest;
        self.recovery.follow([had_hole, self.hole], observation.time, self.round_trip / 2);
        self.more &= acknowledged < self.highest || self.ended_at != Some(self.highest);
        if self.idle() && !was_idle {
            self.end_of_flight(observation.time, timeline);
        }
        let edge = acknowledged.saturating_add_unsigned(observation.most_receivable());
        self.offered.offer(edge, observation.timestamps.map(|stamps| stamps.value));
        if self.has_room()
            && let Some(closed) = &mut self.closed
        {
            closed.opened.get_or_insert(Stamp::of(observation));
        }
    }

    /// Whether the window allows a full segment after the data that has arrived.
    fn has_room(&self) -> bool {
        self.offered.has_room(self.highest, self.segment)
    }

    /// Data arrived: the time with a closed window is over. Returns whether there was one.
    fn end_of_closed(&mut self, now: Stamp, timeline: &mut Timeline, stalls: &mut Vec<Stall>) -> bool {
        let Some(Closed { since, opened, probes }) = self.closed.take() else { return false };
        let until = opened.unwrap_or(now);
        if until.time.since(since.time) < SHORTEST_CLOSED {
            return false;
        }
        // The sender answers a window update within a round trip.
        let answered = now.time.since(until.time) <= self.round_trip + PATIENCE;
        let confidence = if answered || probes > 0 { Confidence::High } else { Confidence::Medium };
        // Then the link transmits the data.
        let end = if answered { now.time.min(until.time + self.round_trip) } else { until.time };
        timeline.relabel(since.time, end, Label::Known(Cause::ReceiveWindow, confidence), |label| {
            matches!(label, Label::Limited(..))
        });
        if !answered {
            let idle = Label::Known(Cause::Application, Confidence::Medium);
            timeline.relabel(end, now.time, idle, |label| matches!(label, Label::Limited(..)));
        }
        stalls.push(Stall {
            begin: since.time,
            end: until.time,
            first_frame: since.frame,
            last_frame: until.frame,
            outstanding: 0,
            timeouts: probes,
            tail_probes: 0,
            fate: Fate::WindowClosed,
            path_gap: Span::ZERO,
        });
        self.next_round(now.time, timeline);
        true
    }

    /// The receiver sends data, a request: so the sender's application had no more data.
    pub(super) fn request_sent(&mut self, now: Instant, timeline: &mut Timeline) {
        self.label_recovery(now, timeline);
        self.end_round(now, timeline);
        if let Some(Stamp { time: last, .. }) = self.last
            && !self.idle()
            && !self.is_closed()
            && now.since(last) > self.round_trip
        {
            (self.more, self.hole) = (false, false);
            timeline.relabel(last, now, Label::Known(Cause::Application, Confidence::Medium), |label| {
                matches!(label, Label::Limited(..))
            });
            self.next_round(now, timeline);
            self.run_empty(timeline);
        }
    }

    /// Data arrived.
    pub(super) fn arrived(&mut self, observation: &Observation, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        let before = std::mem::replace(&mut self.frame, observation.frame);
        if observation.flags.contains(Flags::FIN) {
            self.end_round(observation.time, timeline);
            self.more = false;
        }
        // The further segments of a super-segment acknowledge nothing.
        if observation.acknowledged.is_some()
            && takes_share(observation.flags, observation.length)
            && let Some((begin, end)) =
                self.neighbours.as_mut().and_then(|each| each.passed(observation.time, observation.length > 0))
        {
            timeline.share(begin, end, View::Receiver);
        }
        let events = observation.events;
        if let Some(closed) = &mut self.closed
            && (events.contains(Events::ZERO_WINDOW_PROBE) || events.contains(Events::KEEP_ALIVE))
        {
            closed.probes += 1;
            return;
        }
        let now = observation.time;
        let unqueued = self.unqueued(observation);
        self.unqueued = unqueued;
        if observation.length == 0 {
            return;
        }
        self.label_recovery(now, timeline);
        self.end_round(now, timeline);
        let end = observation.offset + i64::from(observation.length);
        let filled = observation.offset < self.highest;
        let had_hole = self.hole;
        // Without the round trip of the empty path a queue is not known.
        self.entered = unqueued.filter(|_| !self.round_trip.is_zero());
        if self.end_of_closed(Stamp::of(observation), timeline, stalls) {
            self.start(now, timeline);
        } else if self.idle() {
            self.start(now, timeline);
            if !filled {
                self.waited_for_radio(observation, before, timeline, stalls);
            }
        } else {
            self.gap(observation, filled, timeline, stalls);
        }
        let before = self.last.map_or(self.begin, |last| last.time.max(self.begin));
        if now > before {
            self.end_arrival();
            self.took = now.since(before);
            self.spacing = self.took;
            self.path.progress(now);
        }
        self.bytes += u64::from(observation.length);
        self.carried(now, timeline);
        self.hole = if filled {
            self.hole && observation.retransmission.is_none()
        } else {
            self.hole || observation.offset > self.highest
        };
        self.recovery.follow([had_hole, self.hole], now, self.round_trip / 2);
        self.segment = observation.full_segment;
        self.highest = self.highest.max(end);
        self.arrived += u64::from(observation.length);
        self.last = Some(Stamp::of(observation));
        self.more = !self.end_of_data.at(observation);
        self.reached_edge |= self.offered.is_filled_by(end, self.segment, observation.timestamps);
        // A sub-MSS segment may fill the window, as it was a round trip ago.
        let fills = (self.more || self.offered.ends_at(end)) && !observation.flags.contains(Flags::FIN);
        self.more |= fills;
        if end == self.highest {
            self.ended_at = (!self.more).then_some(end);
        }
        if fills && !self.hole && !self.has_room() {
            self.closed = Some(Closed { since: Stamp::of(observation), opened: None, probes: 0 });
        }
        self.round_is_over =
            now.since(self.begin) >= self.round_trip && self.segments + self.arrival() >= SEGMENTS_PER_ROUND;
        if self.idle() {
            self.end_of_flight(now, timeline);
        }
    }

    /// Labels the time of the sender's recovery until `now`.
    fn label_recovery(&mut self, now: Instant, timeline: &mut Timeline) {
        let Some((since, until)) = self.recovery.take_until(now) else { return };
        let recovery = Label::Limited(Limit::Recovery, self.round);
        timeline.relabel(since, until, recovery, |label| {
            matches!(label, Label::Limited(Limit::OwnWindowUndecided, round) if View::of(round) == View::Receiver)
        });
    }

    /// All data has arrived. From when its last segment was sent, the sender had no data.
    fn end_of_flight(&mut self, now: Instant, timeline: &mut Timeline) {
        if let Some(entered) = self.entered {
            let begin = self.at_link(entered);
            let label = Label::Limited(Limit::LastFlight, self.round);
            timeline.relabel(begin, now, label, |label| {
                matches!(label, Label::Limited(limit, round) if View::of(round) == View::Receiver
                    && !matches!(limit, Limit::ClosedWindow | Limit::Recovery))
            });
        }
        self.next_round(now, timeline);
        self.run_empty(timeline);
    }

    /// The link carried a segment that arrived `now`.
    fn carried(&mut self, now: Instant, timeline: &mut Timeline) {
        let Some(entered) = self.entered else { return };
        let (entered, left) = (self.at_link(entered), self.at_link(now));
        self.waited = self.link.busy_until().is_some_and(|busy| entered < busy);
        self.carry(entered, left, now, timeline);
    }

    /// The link carried a packet that arrived `now`, or shows so by its acknowledgement.
    fn carry(&mut self, entered: Instant, left: Instant, now: Instant, timeline: &mut Timeline) {
        let (estimate, window_kind) = (self.link_estimate(), self.window_kind());
        if let Some(since) = self.link.pause_until(entered, estimate)
            && let Some(neighbours) = &mut self.neighbours
            && !self.path.is_service_unknown()
            && self.link.wait() >= estimate.service
        {
            neighbours.set_now(now);
            if neighbours.fill(true, estimate, entered.since(since), now) {
                self.link.filled_by_others(entered);
            }
        }
        self.link.carry(entered, left, estimate, &mut |until, load| {
            timeline.set_load(until, load, window_kind, View::Receiver);
        });
    }

    /// No data is expected: the link runs empty.
    fn run_empty(&mut self, timeline: &mut Timeline) {
        if self.entered.is_none() && self.link.busy_until().is_none() {
            return;
        }
        let (estimate, window_kind) = (self.link_estimate(), self.window_kind());
        let report = &mut |until, load| timeline.set_load(until, load, window_kind, View::Receiver);
        self.link.run_empty(estimate, report);
        report(Instant::FAR_FUTURE, Load::Free);
    }

    /// The window that limits the sender, by its last segments.
    fn window_kind(&self) -> Limit {
        let is_receivers = self.reached_edge || self.reached_edge_before;
        if is_receivers { Limit::ReceiveWindow } else { Limit::own_window(self.slow_start_over) }
    }

    fn link_estimate(&self) -> LinkEstimate {
        LinkEstimate { base: self.round_trip, service: self.path.link_estimate().service }
    }

    /// When a segment that arrives at `time` was at the link. The position of the link on the path
    /// is not observable; half of the round trip is assumed for the way of the data.
    fn at_link(&self, time: Instant) -> Instant {
        let delay = self.round_trip / 2;
        let before = if self.from_radio { Span::ZERO } else { FIXED_NETWORK_DELAY.min(delay / 4) };
        time - (delay - before).min(time.since(Instant::ZERO))
    }

    /// The connection ended.
    pub(super) fn end(&mut self, timeline: &mut Timeline) {
        // The time after the last arrival has the number of the round after it.
        self.end_round(Instant::FAR_FUTURE, timeline);
        if let Some(Stamp { time: now, .. }) = self.last {
            self.next_round(now, timeline);
        }
        self.run_empty(timeline);
    }

    /// Full segments of the last arrival.
    fn arrival(&self) -> u64 {
        self.bytes.div_ceil(u64::from(self.segment.max(1)))
    }

    fn end_arrival(&mut self) {
        let segments = self.arrival();
        // Segments further apart are not joined: they came together, after a pause.
        let is_steady = self.took <= JOINED_WITHIN * segments;
        self.longest = self.longest.max(if is_steady { self.took / segments.max(1) } else { self.took });
        if self.waited && segments > 0 && !self.spacing.is_zero() {
            self.path.service_sample(self.spacing / segments);
        }
        self.segments += segments;
        (self.bytes, self.took, self.spacing) = (0, Span::ZERO, Span::ZERO);
    }

    /// Data comes after the other end had none.
    fn start(&mut self, now: Instant, timeline: &mut Timeline) {
        self.path.pause();
        self.path.progress(now);
        self.compare_round_trip(now);
        (self.bytes, self.took, self.spacing) = (0, Span::ZERO, Span::ZERO);
        self.round += 2;
        self.begin = now;
        (self.segments, self.longest) = (0, Span::ZERO);
        self.arrived_before = self.arrived;
        self.before = 0;
        if let Some(entered) = self.entered {
            // It was on the path before it arrived.
            let label = Label::Limited(Limit::OwnWindowUndecided, self.round);
            timeline.relabel(self.at_link(entered), now, label, |label| {
                label.is_idle() && !matches!(label, Label::Latency(View::Receiver, _))
            });
        }
    }

    /// A flight begins: handshakes of other connections may show a shorter round trip.
    fn compare_round_trip(&mut self, now: Instant) {
        let other = self.neighbours.as_ref().and_then(|neighbours| neighbours.round_trip(now));
        if let Some(other) = other.filter(|other| *other < self.round_trip) {
            self.round_trip = other;
            self.path.shorten(other);
        }
    }

    /// Ends a round that is over: nothing more came at the time of its last arrival.
    fn end_round(&mut self, now: Instant, timeline: &mut Timeline) {
        if let Some(Stamp { time: last, .. }) = self.last
            && self.round_is_over
            && now > last
        {
            self.next_round(last, timeline);
        }
    }

    /// Ends the round, and judges whether the link was full in it.
    fn next_round(&mut self, now: Instant, timeline: &mut Timeline) {
        self.end_arrival();
        self.round_is_over = false;
        let time = now.since(self.begin);
        let bytes = self.arrived - self.arrived_before;
        let spacing = (time / self.segments.max(1) * EVEN_SPACING).max(time / LONGEST_PAUSE);
        let even = self.segments >= SEGMENTS_PER_ROUND / 2 && self.longest <= spacing;
        if self.before > 0 {
            self.slow_start_over = (bytes as f64) < GROWTH * self.before as f64;
        }
        let is_filled = bytes + u64::from(self.segment) > self.window;
        self.reached_edge |= self.offered.take_unknown() && is_filled;
        if self.entered.is_some() {
            // The load of the link decides later.
            timeline.set_window_kind(self.round, self.window_kind());
            self.reached_edge_before = std::mem::take(&mut self.reached_edge);
        } else {
            let window = if is_filled { Limit::ReceiveWindow } else { Limit::own_window(self.slow_start_over) };
            timeline.resolve(self.round, |label, shared| match label {
                Label::Limited(Limit::ClosedWindow, _) => (Cause::ReceiveWindow, Confidence::Medium),
                _ if shared => (Cause::Sharing, Confidence::Low),
                _ if even => (Cause::PathRate, Confidence::Medium),
                Label::Limited(Limit::Recovery, _) => (Cause::Recovery, Confidence::Medium),
                _ => (window.cause().0, Confidence::Low),
            });
        }
        (self.segments, self.longest) = (0, Span::ZERO);
        self.before = bytes;
        self.arrived_before = self.arrived;
        self.begin = now;
        self.round += 2;
    }
}
