//! What limits the sender, from a capture at the receiver: inferred from the spacing of arrivals.
//!
//! Time is divided into rounds as long as the round trip of the handshake, or longer where few
//! segments arrive. A full link delivers evenly. A window-limited sender sends a flight and pauses:
//! the receive window is the limit if as much arrived as it allows, else the sender's own window
//! is. Queueing at the link is not observable here.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

use super::path_estimate::PathEstimate;
use super::stall::{Fate, Stall};
use super::timeline::{Label, Limit, Timeline};
use super::{Cause, Confidence, Stamp};
use airpath_observe::Observation;

/// The link is full in a round if no gap is longer than this multiple of the mean.
const EVEN_SPACING: u64 = 3;

/// Segments of a round, at least, for a judgement of their spacing.
const SEGMENTS_PER_ROUND: u64 = 6;

/// The smallest full-sized segment: the MSS that every host accepts (RFC 9293 §3.7.1).
const FULL_SIZED: u32 = 536;

/// The flight grows as in slow start if a round delivers this multiple of the round before.
const GROWTH: f64 = 1.25;

/// A gap longer than a round trip by less than this is no sign of a gap in the radio.
const PATIENCE: Span = Span::from_millis(150);

/// A gap counts only if it is longer than this multiple of the usual interval.
const GAP_INTERVALS: u64 = 3;

/// What the other end sends, from a capture at the receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiverView {
    round_trip: Span,
    path: PathEstimate,
    highest: i64,
    segment: u32,
    arrived: u64,
    /// The last arrival of data.
    last: Option<Stamp>,
    /// Whether more data is expected: the last segment was full-sized.
    more: bool,
    /// Whether data below the highest offset is missing.
    hole: bool,
    round: u32,
    begin: Instant,
    /// Segments of the round, and the longest gap between two.
    segments: u64,
    longest: Span,
    /// Bytes that had arrived when the round began, and bytes of the round before.
    arrived_before: u64,
    before: u64,
    window: u64,
    /// Whether slow start is over.
    slow_start_over: bool,
}

impl ReceiverView {
    /// Nothing has arrived yet. The rounds have odd numbers; those of the sender's view are even.
    pub(super) fn new() -> Self {
        Self { round: 1, ..Self::default() }
    }

    /// Sets the round trip of the handshake.
    pub(super) fn first_round_trip(&mut self, sample: Span) {
        self.round_trip = sample;
        self.path.round_trip(sample, 0);
    }

    /// Whether no data is expected: the last segment was not full-sized.
    pub(super) fn idle(&self) -> bool {
        !self.more && !self.hole
    }

    /// The label of the time from now on.
    pub(super) fn label(&self) -> Label {
        Label::Limited(if self.hole { Limit::Recovery } else { Limit::OwnWindowUndecided }, self.round)
    }

    /// The receiver advertised a window.
    pub(super) fn window_advertised(&mut self, observation: &Observation) {
        self.window = observation.window;
    }

    /// The receiver sends data, a request: so the sender's application had no more data.
    pub(super) fn request_sent(&mut self, now: Instant, timeline: &mut Timeline) {
        if let Some(Stamp { time: last, .. }) = self.last
            && !self.idle()
            && now.since(last) > self.round_trip
        {
            (self.more, self.hole) = (false, false);
            timeline.relabel(last, now, Label::Known(Cause::Application, Confidence::Medium), |label| {
                matches!(label, Label::Limited(..))
            });
            self.next_round(now, timeline);
        }
    }

    /// Data arrived.
    pub(super) fn arrived(&mut self, observation: &Observation, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        if observation.flags.contains(Flags::FIN) {
            self.more = false;
        }
        if observation.length == 0 {
            return;
        }
        let now = observation.time;
        let end = observation.offset + i64::from(observation.length);
        let filled = observation.offset < self.highest;
        if self.idle() {
            self.start(now);
        } else {
            self.gap(observation, filled, timeline, stalls);
        }
        let before = self.last.map_or(self.begin, |last| last.time.max(self.begin));
        self.longest = self.longest.max(now.since(before));
        self.segments += 1;
        self.hole =
            if filled { self.hole && observation.retransmission.is_none() } else { observation.offset > self.highest };
        self.segment = self.segment.max(observation.length);
        self.highest = self.highest.max(end);
        self.arrived += u64::from(observation.length);
        self.path.progress(now);
        self.last = Some(Stamp::of(observation));
        self.more = observation.length >= self.segment.max(FULL_SIZED) && !observation.flags.contains(Flags::FIN);
        if now.since(self.begin) >= self.round_trip && self.segments >= SEGMENTS_PER_ROUND {
            self.next_round(now, timeline);
        }
        if self.idle() {
            self.next_round(now, timeline);
        }
    }

    /// The connection ended.
    pub(super) fn end(&mut self, timeline: &mut Timeline) {
        if let Some(Stamp { time: now, .. }) = self.last {
            self.next_round(now, timeline);
        }
    }

    fn start(&mut self, now: Instant) {
        self.path.pause();
        self.round += 2;
        self.begin = now;
        (self.segments, self.longest) = (0, Span::ZERO);
        self.arrived_before = self.arrived;
        self.before = 0;
    }

    /// Ends the round, and judges whether the link was full in it.
    fn next_round(&mut self, now: Instant, timeline: &mut Timeline) {
        let time = now.since(self.begin);
        let bytes = self.arrived - self.arrived_before;
        let full = self.segments >= SEGMENTS_PER_ROUND / 2 && self.longest <= time / self.segments * EVEN_SPACING;
        if self.before > 0 {
            self.slow_start_over = (bytes as f64) < GROWTH * self.before as f64;
        }
        let receiver = bytes + u64::from(self.segment) > self.window;
        let window = if receiver {
            Cause::ReceiveWindow
        } else if self.slow_start_over {
            Cause::CongestionWindow
        } else {
            Cause::SlowStart
        };
        timeline.resolve(self.round, |label| match label {
            _ if full => (Cause::PathRate, Confidence::Medium),
            Label::Limited(Limit::Recovery, _) => (Cause::Recovery, Confidence::Medium),
            _ => (window, Confidence::Low),
        });
        (self.segments, self.longest) = (0, Span::ZERO);
        self.before = bytes;
        self.arrived_before = self.arrived;
        self.begin = now;
        self.round += 2;
    }

    /// No data came for long though more was expected: a gap of the path, or the sender's
    /// retransmission time-out.
    fn gap(&mut self, observation: &Observation, filled: bool, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        let Some(Stamp { time: last, frame }) = self.last else { return };
        let now = observation.time;
        let usual = self.path.interval() * GAP_INTERVALS;
        if now.since(last) <= (self.round_trip + PATIENCE).max(usual) {
            return;
        }
        let lost = filled && observation.retransmission.is_some();
        let (cause, fate) = if lost { (Cause::Timer, Fate::Lost) } else { (Cause::Radio, Fate::Held) };
        let end = if lost { now - (self.round_trip / 2).min(now.since(last)) } else { now };
        timeline.relabel(last, end, Label::Known(cause, Confidence::Low), |label| matches!(label, Label::Limited(..)));
        stalls.push(Stall {
            begin: last,
            end: now,
            first_frame: frame,
            last_frame: observation.frame,
            outstanding: 0,
            timeouts: u32::from(lost),
            fate,
            path_gap: if lost { Span::ZERO } else { now.since(last) },
        });
        self.next_round(now, timeline);
    }
}
