//! The link in front of which a sender's data waits, as acknowledgements show it, or exactly, as the other end's capture does.

use airpath_core::{Instant, Span};

use super::arrivals::{Arrival, Arrivals};
use super::link::{Link, Load};
use super::path::Path;
use super::timeline::{Label, Limit, Timeline};
use super::{Cause, Confidence};
use airpath_observe::Observation;

/// What is overdue by less than this says nothing of the radio.
const PATIENCE: Span = Span::from_millis(150);

/// With one segment outstanding the receiver may delay its acknowledgement: RFC 9293 §3.8.6.3 allows 500 ms, and 200 ms are usual.
const DELAYED: Span = Span::from_millis(200);

/// A wait is silence only if it is so many times longer than a segment usually takes.
const USUAL: u64 = 3;

/// A network of wires seldom takes longer one way: that is 10,000 km of fibre. What takes longer before a radio link is the radio's.
const WIRES: Span = Span::from_millis(50);

/// A silence, if what came after it had not only been held back behind something else.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    length: Span,
    /// When it was over, and the segments that came since.
    end: Instant,
    segments: u64,
    /// What the link had taken for one before.
    each: Span,
}

/// Segments that the link has carried one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub segments: u64,
    /// Whether they were full.
    pub full: bool,
    /// When the first and the last of them came to the link.
    pub first: Instant,
    pub last: Instant,
    /// When the link was done with the last of them.
    pub left: Instant,
}

/// The link, and what is known of the path on which it lies.
#[derive(Clone, Debug, Default)]
pub(super) struct Bottleneck {
    /// Whether the sender is the end on the radio: then nothing lies before the link.
    on_radio: bool,
    pub(super) path: Path,
    link: Link,
    /// What the other end's capture tells of arrivals, if there is one; acknowledgements need not tell then.
    arrivals: Option<Arrivals>,
    suspicion: Option<Suspicion>,
    /// Until when the radio's log told last that nothing was sent the way of the data.
    known_silent: Instant,
}

impl Bottleneck {
    /// Says whether the sender is the end on the radio.
    pub(super) fn on_radio(&mut self, on_radio: bool) {
        self.on_radio = on_radio;
    }

    /// The other end's capture tells what arrived when.
    pub(super) fn know(&mut self, arrivals: Arrivals) {
        if let Some(service) = arrivals.service() {
            self.path.served(service);
        }
        if let Some(round_trip) = arrivals.round_trip() {
            self.path.round_trip(round_trip, 0);
        }
        self.arrivals = Some(arrivals);
    }

    /// Whether the other end's capture tells.
    pub(super) fn is_exact(&self) -> bool {
        self.arrivals.is_some()
    }

    /// The radio's log told that nothing was sent until then: nothing need be guessed.
    pub(super) fn known_silent(&mut self, until: Instant) {
        self.known_silent = until;
    }

    /// When the link was done with what it carried last, if it has not run empty since.
    pub(super) fn done(&self) -> Option<Instant> {
        self.link.done()
    }

    /// What arrived next, if anything has by now, and that is known.
    pub(super) fn next_arrival(&mut self, now: Instant) -> Option<Arrival> {
        self.arrivals.as_mut().and_then(|arrivals| arrivals.until(now))
    }

    /// A packet arrived.
    pub(super) fn arrived(
        &mut self,
        arrival: &Arrival,
        segment: u32,
        heard: Instant,
        window: Limit,
        timeline: &mut Timeline,
    ) {
        let carried = self.passed(arrival, segment);
        if arrival.spurious {
            let begin = self.link.done().unwrap_or(carried.first).max(carried.first);
            let spurious = Label::Known(Cause::Spurious, Confidence::High);
            timeline.paint(begin, carried.left, spurious, |label| {
                matches!(label, Label::Limited(..) | Label::Unanswered | Label::Known(Cause::Application, _))
            });
        }
        if let Some((begin, end)) = self.silence(carried, heard)
            && self.is_long(begin, end, false)
        {
            self.suspect(begin, end, timeline);
        }
        self.busy(carried, window, timeline);
    }

    /// What the link carried.
    fn passed(&self, arrival: &Arrival, segment: u32) -> Carried {
        let measure = self.path.measure();
        let way = self.arrivals.as_ref().map_or(Span::ZERO, |arrivals| {
            arrivals.shortest().saturating_sub(arrivals.service().unwrap_or(measure.service))
        });
        let before = self.before(way);
        let first = (arrival.sent + before).min(arrival.arrived);
        let left = (arrival.arrived - (way - before).min(arrival.arrived.since(arrival.sent))).max(first);
        Carried { segments: 1, full: arrival.length >= segment, first, last: first, left }
    }

    /// How long it takes from the sender to the link, of a `way` that long. Where on the path the link is cannot be known: to that of the other end, a
    /// quarter of the way, but no longer than wires take.
    fn before(&self, way: Span) -> Span {
        if self.on_radio { Span::ZERO } else { WIRES.min(way / 4) }
    }

    /// How long before an acknowledgement of a full segment came the link was done with it.
    fn back(&self) -> Span {
        let full = self.path.base_full().unwrap_or(Span::ZERO);
        let measure = self.path.measure();
        full.saturating_sub(measure.service + self.before(measure.base))
    }

    /// What an acknowledgement tells that the link has carried: of what was sent several times, the first copy or the last.
    /// Before it, `delivered` bytes were known to have arrived.
    pub(super) fn told(
        &self,
        observation: &Observation,
        delivered: u64,
        segment: u32,
        original: bool,
    ) -> Option<Carried> {
        let now = observation.time;
        let measure = self.path.measure();
        let sent = observation.news?;
        let news = observation.delivered.saturating_sub(delivered);
        let segments = news.div_ceil(u64::from(segment.max(1))).max(1);
        let earliest = if original { sent.original } else { sent.first };
        let latest = if original && segments == 1 { sent.original } else { sent.last };
        let [first, last] = [earliest, latest].map(|sent| sent + self.before(measure.base));
        let left = now - self.back().min(now.since(latest));
        let due = self.link.done().unwrap_or(last).max(last) + measure.service;
        // The receiver waited for a second segment, which had not been sent then.
        let alone = segments == 1 && observation.unacknowledged_since.is_none_or(|sent| sent + measure.base > now);
        let left = if alone { undelayed(left, due) } else { left };
        Some(Carried { segments, full: news >= u64::from(segment), first: first.min(left), last: last.min(left), left })
    }

    /// An acknowledgement tells what the link has carried, if nothing better does.
    pub(super) fn carried(&mut self, carried: Option<Carried>, window: Limit, timeline: &mut Timeline) {
        if let Some(carried) = carried.filter(|_| self.arrivals.is_none()) {
            self.busy(carried, window, timeline);
        }
    }

    /// The link was busy with what it carried.
    fn busy(&mut self, carried: Carried, window: Limit, timeline: &mut Timeline) {
        let Carried { segments, full, first, last, left } = carried;
        let measure = self.path.measure();
        if let Some(done) = self.link.done()
            && full
            && last + measure.service < done
        {
            self.path.served(left.since(done) / segments);
        }
        let done = self.link.done().unwrap_or(first).max(first);
        let tell = &mut |until, load| timeline.carried(until, load, window);
        if segments > 1 {
            let rest = measure.service.saturating_mul(segments - 1);
            let before = (left - rest.min(left.since(first))).max(first);
            // The first of two that were not sent together may have waited for the other at the receiver.
            let before = if segments == 2 { undelayed(before, done + measure.service) } else { before };
            self.link.carried(first, before, measure, tell);
        }
        self.link.carried(last, left, measure, tell);
        if let Some(suspicion) = &mut self.suspicion {
            suspicion.segments += segments;
            self.clear_up(timeline);
        }
    }

    /// Decides whether the link had been silent, if what has come since tells: what comes sooner than the link takes for it had been carried before.
    fn clear_up(&mut self, timeline: &mut Timeline) {
        let Some(Suspicion { length, end, segments, each }) = self.suspicion else { return };
        let time = self.link.done().map_or(Span::ZERO, |done| done.since(end));
        let burst = each.saturating_mul(segments).saturating_sub(time) >= length / 2;
        if burst || time >= length {
            timeline.silence(!burst);
            self.suspicion = None;
        }
    }

    /// Nothing more will tell: the link had been silent.
    fn convict(&mut self, timeline: &mut Timeline) {
        if self.suspicion.take().is_some() {
            timeline.silence(true);
        }
    }

    /// When the link fell silent and when it was back, if it took much longer for what it carried now than it does otherwise.
    /// No silence is looked for before `heard`, when data of the other end came.
    pub(super) fn silence(&self, carried: Carried, heard: Instant) -> Option<(Instant, Instant)> {
        let measure = self.path.measure();
        let heard = heard - self.back().min(heard.since(Instant::ZERO));
        let free = self.link.done().unwrap_or(carried.first).max(carried.first);
        // The receiver may have waited for the second of two that were not sent together.
        let together = carried.segments != 2 || undelayed(carried.last, free + measure.service) == carried.last;
        let (begin, segments) = if together { (free, carried.segments) } else { (carried.last.max(free), 1) };
        let begin = begin.max(heard);
        let end = carried.left - measure.service.saturating_mul(segments).min(carried.left.since(begin));
        (begin < end).then_some((begin, end))
    }

    /// The link may have been silent; what comes next tells.
    pub(super) fn suspect(&mut self, begin: Instant, end: Instant, timeline: &mut Timeline) {
        // What the radio's log tells of needs no guess.
        if self.known_silent > begin {
            return;
        }
        self.convict(timeline);
        let open = |label: Label| matches!(label, Label::Limited(..) | Label::Unanswered);
        timeline.paint(begin, end, Label::Silence(None), open);
        self.suspicion = Some(Suspicion { length: end.since(begin), end, segments: 0, each: self.path.mean() });
    }

    /// Whether such a wait is longer than what packets usually see; a segment that is `alone` may be acknowledged late.
    pub(super) fn is_long(&self, begin: Instant, end: Instant, alone: bool) -> bool {
        let patience = PATIENCE + if alone { DELAYED } else { Span::ZERO };
        end.since(begin) > patience.max(self.path.measure().service * USUAL)
    }

    /// A duplicate was reported: the link was busy with it for as long as it takes for a segment.
    pub(super) fn spurious(&self, now: Instant, timeline: &mut Timeline) {
        if self.is_exact() {
            return;
        }
        let end = now - self.back().min(now.since(Instant::ZERO));
        let begin = end - self.path.measure().service.min(end.since(Instant::ZERO));
        timeline.paint(begin, end, Label::Known(Cause::Spurious, Confidence::Medium), |label| {
            matches!(label, Label::Limited(..))
        });
    }

    /// Nothing is outstanding: the link runs empty.
    pub(super) fn rest(&mut self, window: Limit, timeline: &mut Timeline) {
        self.convict(timeline);
        self.link.rest(self.path.measure(), &mut |until, load| timeline.carried(until, load, window));
        timeline.carried(Instant::FAR_FUTURE, Load::Free, window);
    }
}

/// When the link was done with a segment, if its acknowledgement was delayed by no more than is usual after it was `due`.
fn undelayed(left: Instant, due: Instant) -> Instant {
    if left > due && left.since(due) <= DELAYED + DELAYED / 10 { due } else { left }
}
