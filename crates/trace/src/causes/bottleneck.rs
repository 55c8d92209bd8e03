//! The bottleneck of a sender's path: estimated from acknowledgements, or exact from the capture of
//! the other end.

use airpath_core::{Instant, Span};

use super::arrivals::{Arrival, Arrivals, Wait, acknowledgement_queues, waits_behind_others};
use super::link_load::{LinkEstimate, Load, LoadMeter};
use super::neighbours::{Meanwhile, Neighbours};
use super::path_estimate::PathEstimate;
use super::timeline::{Label, Limit, Timeline, View, Waiting};
use super::{Cause, Confidence};
use crate::two_point::Direction;
use crate::two_point::silence::{GAP_SERVICE_TIMES, PATIENCE};
use airpath_observe::Observation;

/// With one segment outstanding the receiver may delay its acknowledgement: RFC 9293 §3.8.6.3
/// allows 500 ms, and 200 ms are usual.
const DELAYED_ACK: Span = Span::from_millis(200);

/// The largest one-way delay attributed to the fixed network: 10,000 km of fibre. The rest of the
/// delay belongs to the radio.
pub(super) const FIXED_NETWORK_DELAY: Span = Span::from_millis(50);

/// At least this number of segments in this part of the gap before them came in a bunch.
const BUNCH: u64 = 4;
const BUNCH_WITHIN: u64 = 10;

/// A gap in the deliveries of the link, unless the packets after it had only queued behind others.
#[derive(Clone, Copy, Debug)]
struct SuspectedGap {
    length: Span,
    /// When it ended, and the segments carried since.
    end: Instant,
    segments: u64,
    /// The mean service time of a segment before.
    service: Span,
}

/// Segments that the link carried one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub segments: u64,
    /// Whether they were full-sized.
    pub full: bool,
    /// The bytes of a last segment with at least half of the data of a full one, and those of a
    /// full one.
    pub part: Option<(u64, u64)>,
    /// When the first and the last of them entered the link.
    pub first: Instant,
    pub last: Instant,
    /// When the last of them left the link.
    pub left: Instant,
}

/// The copy that the link carried of data that was sent several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyCarried {
    /// The first copy.
    Original,
    /// The last retransmission.
    Last,
}

/// The link, and the estimates of its path.
#[derive(Clone, Debug, Default)]
pub(super) struct Bottleneck {
    /// Whether the sender is the mobile: then the link is the first hop.
    on_radio: bool,
    /// Whether the capture is at the receiver of the data, right behind the link.
    at_receiver: bool,
    /// Whether acknowledgements do not show when they were sent.
    ack_times_unknown: bool,
    pub(super) path: PathEstimate,
    link: LoadMeter,
    /// The arrivals in the capture of the other end, where there is one. They replace
    /// acknowledgements.
    arrivals: Option<Box<Arrivals>>,
    suspected: Option<SuspectedGap>,
    /// The end of the last gap that the radio log has in the direction of the data.
    known_gap_end: Instant,
    /// The other connections of the host.
    neighbours: Option<Neighbours>,
}

impl Bottleneck {
    /// Sets whether the sender is the mobile.
    pub(super) fn set_on_radio(&mut self, on_radio: bool) {
        self.on_radio = on_radio;
    }

    /// Sets whether acknowledgements do not show when they were sent.
    pub(super) fn set_ack_times_unknown(&mut self, unknown: bool) {
        self.ack_times_unknown = unknown && !self.has_arrivals();
    }

    /// Sets whether the capture is at the receiver of the data.
    pub(super) fn set_at_receiver(&mut self, at_receiver: bool) {
        self.at_receiver = at_receiver;
    }

    /// Sets the other connections of the host.
    pub(super) fn set_neighbours(&mut self, neighbours: Neighbours) {
        self.neighbours = Some(neighbours);
    }

    /// A flight begins: handshakes of other connections may show a shorter round trip.
    pub(super) fn compare_round_trip(&mut self, now: Instant) {
        if let Some(round_trip) = self.neighbours.as_ref().and_then(|neighbours| neighbours.round_trip(now)) {
            self.path.shorten(round_trip);
        }
    }

    /// A packet of this connection came from the far end, after it had `waited` behind others: the
    /// path may have carried others before.
    pub(super) fn passed(&mut self, now: Instant, waited: Span, is_data: bool, timeline: &mut Timeline) {
        let shift = self.return_delay() + waited;
        // Own packets are recorded in any case: the gaps are compared with them.
        let others = self.neighbours.as_mut().and_then(|neighbours| neighbours.passed(now, is_data));
        // Exact arrivals show which packets the link carried.
        if let Some((begin, end)) = others.filter(|_| self.arrivals.is_none()) {
            timeline.share(earlier(begin, shift), earlier(end, shift), View::Sender);
        }
    }

    /// A datagram of this flow came from the far end: the time of the link before it in which the
    /// path carried others, if a window is over.
    pub(super) fn others_before(&mut self, now: Instant) -> Option<(Instant, Instant)> {
        let shift = self.return_delay();
        let (begin, end) = self.neighbours.as_mut()?.passed(now, true)?;
        Some((earlier(begin, shift), earlier(end, shift)))
    }

    /// The time is `now`: no later packet is known.
    pub(super) fn set_now(&mut self, now: Instant) {
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.set_now(now);
        }
    }

    /// What the path carried of other connections in a time of the link.
    pub(super) fn meanwhile(&self, begin: Instant, end: Instant) -> Meanwhile {
        let Some(neighbours) = &self.neighbours else { return Meanwhile::Nothing };
        let shift = self.return_delay();
        match neighbours.meanwhile(begin + shift, end + shift) {
            Meanwhile::Others(from, to) => Meanwhile::Others(earlier(from, shift), earlier(to, shift)),
            Meanwhile::Own(from, to) => Meanwhile::Own(earlier(from, shift), earlier(to, shift)),
            Meanwhile::Nothing => Meanwhile::Nothing,
        }
    }

    /// Whether for long no packet of the host passed either. The packets from the far end show the
    /// begin and the end of that time less exactly than arrivals there.
    fn is_silent(&self, begin: Instant, end: Instant) -> bool {
        match self.meanwhile(begin, end) {
            Meanwhile::Others(from, to) => self.is_long(from, to, false),
            Meanwhile::Nothing | Meanwhile::Own(..) => true,
        }
    }

    /// The part of a gap of this connection in which no packet of the host passed either; the rest
    /// is attributed to sharing. `None` if others passed all the time.
    pub(super) fn silent_part(
        &self,
        (begin, end): (Instant, Instant),
        timeline: &mut Timeline,
    ) -> Option<(Instant, Instant)> {
        let Meanwhile::Others(from, to) = self.meanwhile(begin, end) else { return Some((begin, end)) };
        let silent = (self.is_long(from, to, false) && !self.is_usual(from, to)).then_some((from, to));
        let sharing = Label::Known(Cause::Sharing, Confidence::Medium);
        let (from, to) = silent.unwrap_or((end, end));
        timeline.relabel(begin, from, sharing, Label::is_open);
        timeline.relabel(to, end, sharing, Label::is_open);
        silent
    }

    /// A packet of the far end arrived at `end`, not at `begin`: it waited behind packets of other
    /// connections.
    pub(super) fn waited(&self, begin: Instant, end: Instant, timeline: &mut Timeline) {
        let shift = self.path.link_estimate().base / 2;
        timeline.behind_others(earlier(begin, shift), earlier(end, shift), Waiting::Acknowledgement);
    }

    /// Acknowledgements came after a `silence` of the path, and were sent before its end: data may
    /// have got through meanwhile.
    pub(super) fn held(&self, silence: (Instant, Instant), timeline: &mut Timeline) {
        let shift = self.path.link_estimate().base / 2;
        let [begin, end] = [silence.0, silence.1].map(|time| earlier(time, shift));
        let label = Label::AcknowledgementGap(Confidence::Medium);
        timeline.relabel(begin, end, label, |label| matches!(label, Label::Limited(..)));
    }

    /// Sets the arrivals from the capture of the other end.
    pub(super) fn set_arrivals(&mut self, arrivals: Arrivals) {
        if let Some(service) = arrivals.service() {
            self.path.service_sample(service);
        }
        if let Some(round_trip) = arrivals.round_trip() {
            self.path.round_trip(round_trip, 0);
        }
        self.arrivals = Some(Box::new(arrivals));
    }

    /// When packets in `back` waited behind packets of other connections.
    pub(super) fn waits_behind_others(&self, back: &Direction) -> Vec<Wait> {
        waits_behind_others(back, self.path.link_estimate().window(), self.delay_to_return_link(back))
    }

    /// When acknowledgements in `back` queued in front of their link.
    pub(super) fn return_queues(&self, back: &Direction) -> Vec<(Instant, Instant)> {
        acknowledgement_queues(back, self.path.link_estimate().window(), self.delay_to_return_link(back))
    }

    /// The delay between the sender of `back` and the link. The radio is the first hop of what the
    /// mobile sends.
    fn delay_to_return_link(&self, back: &Direction) -> Span {
        let shortest = back.delay.map_or(Span::ZERO, |delay| delay.minimum);
        if self.on_radio { FIXED_NETWORK_DELAY.min(shortest / 4) } else { Span::ZERO }
    }

    /// Whether arrivals are exact, from the capture of the other end.
    pub(super) fn has_arrivals(&self) -> bool {
        self.arrivals.is_some()
    }

    /// The radio log has a gap until then: none is inferred there.
    pub(super) fn set_known_gap_end(&mut self, until: Instant) {
        self.known_gap_end = until;
    }

    /// When the last packet left the link; `None` if the link has run empty since.
    pub(super) fn busy_until(&self) -> Option<Instant> {
        self.link.busy_until()
    }

    /// The next arrival until `now`, where arrivals are exact.
    pub(super) fn next_arrival(&mut self, now: Instant) -> Option<Arrival> {
        self.arrivals.as_mut().and_then(|arrivals| arrivals.until(now))
    }

    /// A packet arrived; `received` is when the last new data of the other end came.
    pub(super) fn arrived(
        &mut self,
        arrival: &Arrival,
        segment: u32,
        received: Instant,
        window_kind: Limit,
        timeline: &mut Timeline,
    ) {
        let carried = self.carried_for(arrival, segment);
        let mut begin = self.link.busy_until().unwrap_or(carried.first).max(carried.first);
        let mut others = Instant::ZERO;
        let mut silent = None;
        if let Some(until) = arrival.others_until {
            // It waited for their packets, unless none of them arrived either.
            let after = arrival.arrived.since(carried.left);
            let until = earlier(until, after).min(carried.left);
            let (first, last) = (begin + after, until + after);
            let silences = self.arrivals.iter().flat_map(|each| each.silences(first, last));
            for (from, to) in silences.map(|(from, to)| (earlier(from, after), earlier(to, after))) {
                timeline.share(begin, from, View::Sender);
                begin = to;
                silent = Some((from, to));
            }
            timeline.share(begin, until, View::Sender);
            begin = begin.max(until);
            others = until;
        }
        if arrival.spurious {
            let mut begin_of_copy = begin;
            // A link that is busy carries the copy from when the packet before it had left.
            let service = self.path.link_estimate().service.min(carried.left.since(carried.first));
            let alone = begin.max(carried.left - service);
            if begin < alone
                && (self.is_long(begin, alone, false)
                    || matches!(self.meanwhile(begin, carried.left), Meanwhile::Others(..)))
            {
                // Before, the link carried packets of others that arrived later, or none.
                begin_of_copy = alone;
            }
            let spurious = Label::Known(Cause::Spurious, Confidence::High);
            timeline.relabel(begin_of_copy, carried.left, spurious, |label| {
                matches!(label, Label::Limited(..) | Label::AcknowledgementGap(_)) || label.is_idle()
            });
        }
        let gap = self.gap(carried, received).map(|(begin, end)| match silent {
            Some((from, to)) => (begin.max(from), end.min(to)),
            None => (begin.max(others), end),
        });
        if let Some((begin, end)) = gap
            && begin < end
            && self.is_long(begin, end, false)
        {
            let whole = silent.is_some() && self.is_silent(begin, end);
            let gap = if whole { Some((begin, end)) } else { self.silent_part((begin, end), timeline) };
            if let Some((begin, end)) = gap {
                self.suspect_gap(begin, end, timeline);
            }
        }
        self.others_entered(carried.first, window_kind, timeline);
        self.busy(carried, window_kind, timeline);
    }

    /// Packets of other connections entered the link until `now`, where arrivals are exact.
    fn others_entered(&mut self, now: Instant, window_kind: Limit, timeline: &mut Timeline) {
        let estimate = self.path.link_estimate();
        let delay = self.empty_delay();
        let before = self.delay_to_link(delay);
        let Some(arrivals) = &mut self.arrivals else { return };
        while let Some((sent, arrived)) = arrivals.queued_until(earlier(now, before)) {
            let entered = sent + before;
            let left = earlier(arrived, delay - before).max(entered);
            self.link.others(entered, left, estimate, &mut |until, load| {
                timeline.set_load(until, load, window_kind, View::Sender)
            });
        }
    }

    /// The delay of the empty path without the transmission on the link, where arrivals are exact.
    fn empty_delay(&self) -> Span {
        let link = self.path.link_estimate();
        self.arrivals.as_ref().map_or(Span::ZERO, |arrivals| {
            arrivals.shortest().saturating_sub(arrivals.service().unwrap_or(link.service))
        })
    }

    /// When the link carried a packet that arrived.
    fn carried_for(&self, arrival: &Arrival, segment: u32) -> Carried {
        let delay = self.empty_delay();
        let before = self.delay_to_link(delay);
        let first = (arrival.sent + before).min(arrival.arrived);
        let left = (arrival.arrived - (delay - before).min(arrival.arrived.since(arrival.sent))).max(first);
        let segments = u64::from(arrival.length.div_ceil(segment.max(1))).max(1);
        Carried { segments, full: arrival.length >= segment, part: None, first, last: first, left }
    }

    /// The part of `delay` between the sender and the link. The position of the link on the path is
    /// not observable. From the fixed end a quarter of the delay is assumed, at most that of a
    /// fixed network.
    pub(super) fn delay_to_link(&self, delay: Span) -> Span {
        if self.on_radio { Span::ZERO } else { FIXED_NETWORK_DELAY.min(delay / 4) }
    }

    /// The time from when a full segment left the link until its acknowledgement came.
    pub(super) fn return_delay(&self) -> Span {
        if self.at_receiver {
            return Span::ZERO;
        }
        let estimate = self.path.link_estimate();
        // All full segments so far may have waited in a queue.
        let full = self.path.base_full().unwrap_or(Span::ZERO).min(estimate.base + estimate.service);
        full.saturating_sub(estimate.service + self.delay_to_link(estimate.base))
    }

    /// The segments that the link carried according to an acknowledgement, which had `arrived`
    /// without others in front of it. `delivered` bytes had arrived before.
    pub(super) fn carried_by(
        &self,
        observation: &Observation,
        arrived: Instant,
        delivered: u64,
        segment: u32,
        copy: CopyCarried,
    ) -> Option<Carried> {
        let estimate = self.path.link_estimate();
        let sent = observation.newly_acknowledged?;
        let newly = observation.delivered.saturating_sub(delivered);
        let segments = newly.div_ceil(u64::from(segment.max(1))).max(1);
        let original = copy == CopyCarried::Original;
        // An acknowledgement that was held may be older than the copies.
        let now = arrived.max(if original { sent.original } else { sent.last });
        let earliest = if original { sent.original } else { sent.first };
        let latest = if original && segments == 1 { sent.original } else { sent.last.min(now) };
        let [first, last] = [earliest, latest].map(|sent| sent + self.delay_to_link(estimate.base));
        let left = now - self.return_delay().min(now.since(latest));
        let due = self.link.busy_until().unwrap_or(last).max(last) + estimate.service;
        // The receiver delayed its acknowledgement, as the next segment had not been sent then.
        let alone = segments == 1 && observation.unacknowledged_since.is_none_or(|sent| sent + estimate.base > now);
        let left = if alone { undelayed(left, due) } else { left };
        Some(Carried {
            segments,
            full: newly >= u64::from(segment),
            part: Some((newly, segment.into())).filter(|(newly, full)| newly < full && newly * 2 >= *full),
            first: first.min(left),
            last: last.min(left),
            left,
        })
    }

    /// Processes the segments of an acknowledgement, unless arrivals are exact.
    pub(super) fn acknowledged(&mut self, carried: Option<Carried>, window_kind: Limit, timeline: &mut Timeline) {
        // The capture of the other end may be over.
        let is_new = |carried: &Carried| self.arrivals.as_ref().is_none_or(|arrivals| arrivals.lack(carried.last));
        if let Some(carried) = carried.filter(is_new) {
            self.busy(carried, window_kind, timeline);
        }
    }

    /// Updates the load and the service time of the link.
    pub(super) fn busy(&mut self, carried: Carried, window_kind: Limit, timeline: &mut Timeline) {
        let Carried { segments, full, part, first, last, left } = carried;
        let estimate = self.path.link_estimate();
        if let Some(done) = self.link.busy_until()
            && (full || self.path.is_service_unknown() && part.is_some())
        {
            let each = left.since(done) / segments;
            let sample = part.map_or(each, |(bytes, full)| each.saturating_mul(full) / bytes);
            // Before the first sample the estimate may contain a queue.
            let service = if self.path.is_service_unknown() { sample } else { estimate.service };
            if last + service < done {
                self.path.service_sample(sample);
            }
        }
        let done = self.link.busy_until().unwrap_or(first).max(first);
        if segments > 1 {
            let others = estimate.service.saturating_mul(segments - 1);
            let before = (left - others.min(left.since(first))).max(first);
            // The acknowledgement of the first of two that were not sent together may have been
            // delayed.
            let before = if segments == 2 { undelayed(before, done + estimate.service) } else { before };
            self.carry(first, before, estimate, window_kind, timeline);
        }
        self.carry(last, left, estimate, window_kind, timeline);
        if let Some(suspected) = &mut self.suspected {
            suspected.segments += segments;
            self.judge_gap(timeline);
        }
    }

    /// The link carried a packet from when it `entered`, or others before it.
    fn carry(
        &mut self,
        entered: Instant,
        left: Instant,
        estimate: LinkEstimate,
        window_kind: Limit,
        timeline: &mut Timeline,
    ) {
        if let Some(since) = self.link.pause_until(entered, estimate)
            && self.is_filled(self.link.wait(), entered.since(since), entered, left)
        {
            self.link.filled_by_others(entered);
            if let Some((begin, end)) = self.link.others_until(entered) {
                timeline.share(begin, end, View::Sender);
            }
        }
        let report = &mut |until, load| timeline.set_load(until, load, window_kind, View::Sender);
        self.link.carry(entered, left, estimate, report);
    }

    /// Whether the packets of all connections of the host filled the link for `time` or more, when
    /// a packet of this connection `entered` it that left it at `left`. A link is hardly ever free
    /// if the `wait` of its packets is that for another one or longer.
    pub(super) fn is_filled(&self, wait: Span, time: Span, entered: Instant, left: Instant) -> bool {
        let Some(neighbours) = self.neighbours.as_ref().filter(|_| !self.path.is_service_unknown()) else {
            return false;
        };
        let estimate = self.path.link_estimate();
        let at_capture = if self.at_receiver { left } else { earlier(entered, self.delay_to_link(estimate.base)) };
        wait >= estimate.service && neighbours.fill(self.at_receiver, estimate, time, at_capture)
    }

    /// Decides whether the suspected gap was one, where the segments since show that. Segments that
    /// arrive faster than the link can serve them had been carried during the gap.
    fn judge_gap(&mut self, timeline: &mut Timeline) {
        let Some(SuspectedGap { length, end, segments, service }) = self.suspected else { return };
        let time = self.link.busy_until().map_or(Span::ZERO, |done| done.since(end));
        let transmission = service.saturating_mul(segments);
        // Over a long time the error of the service time adds up, so a burst is twice as fast.
        let burst = transmission.saturating_sub(time) >= length / 2 && transmission >= time * 2;
        if burst || time >= length {
            let confidence = self.gap_confidence();
            timeline.resolve_gap((!burst).then_some(confidence));
            self.suspected = None;
        }
    }

    /// No more evidence comes: the suspected gap was one.
    fn confirm_gap(&mut self, timeline: &mut Timeline) {
        let confidence = self.gap_confidence();
        if self.suspected.take().is_some() {
            timeline.resolve_gap(Some(confidence));
        }
    }

    /// The confidence of the suspected gap. If acknowledgements come in a bunch, and do not show
    /// when they were sent, the path may have held them back while it carried data.
    fn gap_confidence(&self) -> Confidence {
        let Some(SuspectedGap { length, end, segments, .. }) = self.suspected else { return Confidence::Medium };
        let time = self.link.busy_until().map_or(Span::ZERO, |done| done.since(end));
        let is_bunch = segments >= BUNCH && time <= length / BUNCH_WITHIN;
        if self.ack_times_unknown && is_bunch { Confidence::Low } else { Confidence::Medium }
    }

    /// Begin and end of the time in which the link was idle before the last carried segments,
    /// beyond their service time. A gap begins no earlier than `received`, when data of the other
    /// end came.
    pub(super) fn gap(&self, carried: Carried, received: Instant) -> Option<(Instant, Instant)> {
        let estimate = self.path.link_estimate();
        let received = received - self.return_delay().min(received.since(Instant::ZERO));
        let free = self.link.busy_until().unwrap_or(carried.first).max(carried.first);
        // The acknowledgement of the first of two that were not sent together may have been
        // delayed.
        let together = carried.segments != 2 || undelayed(carried.last, free + estimate.service) == carried.last;
        let (begin, segments) = if together { (free, carried.segments) } else { (carried.last.max(free), 1) };
        let begin = begin.max(received);
        let end = carried.left - estimate.service.saturating_mul(segments).min(carried.left.since(begin));
        (begin < end).then_some((begin, end))
    }

    /// Marks a time in which the link may have had a gap; the next segments decide.
    pub(super) fn suspect_gap(&mut self, begin: Instant, end: Instant, timeline: &mut Timeline) {
        // The radio log has this gap.
        if self.known_gap_end > begin {
            return;
        }
        self.confirm_gap(timeline);
        let open = |label: Label| matches!(label, Label::Limited(..) | Label::AcknowledgementGap(_));
        timeline.relabel(begin, end, Label::SuspectedGap(None), open);
        let service = self.path.mean_service();
        self.suspected = Some(SuspectedGap { length: end.since(begin), end, segments: 0, service });
    }

    /// Whether a wait is longer than packets usually take. The acknowledgement of a segment that is
    /// `alone` in flight may be delayed.
    pub(super) fn is_long(&self, begin: Instant, end: Instant, alone: bool) -> bool {
        let patience = PATIENCE + if alone { DELAYED_ACK } else { Span::ZERO };
        end.since(begin) > patience.max(self.path.link_estimate().service * GAP_SERVICE_TIMES)
    }

    /// Whether times about as long have passed before without a packet from the far end, between
    /// packets with data: these take so long on their link, and acknowledgements wait for them.
    pub(super) fn is_usual(&self, begin: Instant, end: Instant) -> bool {
        let Some(neighbours) = self.neighbours.as_ref().filter(|_| !self.has_arrivals()) else { return false };
        let shift = self.return_delay();
        neighbours.is_usual(begin + shift, end + shift)
    }

    /// A duplicate was reported: the link carried it for the service time of a segment.
    pub(super) fn spurious(&self, now: Instant, timeline: &mut Timeline) {
        if self.has_arrivals() {
            return;
        }
        let end = now - self.return_delay().min(now.since(Instant::ZERO));
        let begin = end - self.path.link_estimate().service.min(end.since(Instant::ZERO));
        timeline.relabel(begin, end, Label::Known(Cause::Spurious, Confidence::Medium), |label| {
            matches!(label, Label::Limited(..))
        });
    }

    /// The link was not full until an instant.
    pub(super) fn free_until(&mut self, until: Instant, window_kind: Limit, timeline: &mut Timeline) {
        self.confirm_gap(timeline);
        let report = &mut |until, load| timeline.set_load(until, load, window_kind, View::Sender);
        self.link.run_empty(self.path.link_estimate(), report);
        report(until, Load::Free);
    }

    /// Nothing is outstanding: the link runs empty.
    pub(super) fn run_empty(&mut self, window_kind: Limit, timeline: &mut Timeline) {
        self.confirm_gap(timeline);
        if let Some(busy) = self.link.busy_until() {
            self.others_entered(busy, window_kind, timeline);
        }
        self.link.run_empty(self.path.link_estimate(), &mut |until, load| {
            timeline.set_load(until, load, window_kind, View::Sender)
        });
        timeline.set_load(Instant::FAR_FUTURE, Load::Free, window_kind, View::Sender);
    }
}

/// An instant earlier by `by`; the earliest instant where that would be before it.
fn earlier(time: Instant, by: Span) -> Instant {
    time - by.min(time.since(Instant::ZERO))
}

/// When a segment left the link. If its acknowledgement came after `due` by no more than the usual
/// delay of acknowledgements, it left at `due`.
fn undelayed(left: Instant, due: Instant) -> Instant {
    if left > due && left.since(due) <= DELAYED_ACK + DELAYED_ACK / 10 { due } else { left }
}
