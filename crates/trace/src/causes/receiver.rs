//! One end's data, seen where it arrives: the sender's windows and waits must be guessed from the rhythm of arrivals.
//!
//! Time is cut into rounds of the handshake's length, or longer where little comes. A link that is full delivers evenly; a sender that is
//! held by a window sends a flight and pauses. It is held by the receiver's window, if as much came as that allows, or else by its own.
//! Queueing in front of the link is not seen from here.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

use super::path::Path;
use super::stall::{Fate, Stall};
use super::timeline::{Label, Limit, Timeline};
use super::{Cause, Confidence};
use airpath_observe::Observation;

/// A round in which no gap is longer than this many times the mean is one of a full link.
const EVEN: u64 = 3;

/// Segments that a round must have to tell whether they came evenly.
const TELLING: u64 = 6;

/// The smallest segment that is taken for a full one: what every host accepts (RFC 9293 §3.7.1).
const FULL_SIZED: u32 = 536;

/// The flight grows as in slow start if a round brings this many times what the one before did.
const GROWTH: f64 = 1.25;

/// A gap that is longer than a round trip by less than this says nothing of the radio.
const PATIENCE: Span = Span::from_millis(150);

/// A gap is silence only if it is so many times longer than usual.
const USUAL: u64 = 3;

/// What one end sends, where it arrives.
#[derive(Clone, Debug, Default)]
pub(super) struct Receiver {
    round_trip: Span,
    path: Path,
    highest: i64,
    segment: u32,
    arrived: u64,
    /// When data last came, in which frame, and whether it was a full segment.
    last: Option<(Instant, u64)>,
    more: bool,
    /// A hole below what has arrived.
    hole: bool,
    round: u32,
    begin: Instant,
    /// The segments of the round, and the longest gap between two.
    segments: u64,
    longest: Span,
    arrived_before: u64,
    before: u64,
    window: u64,
    steady: bool,
}

impl Receiver {
    /// Nothing has arrived yet. Its rounds have odd numbers.
    pub(super) fn new() -> Self {
        Self { round: 1, ..Self::default() }
    }

    /// The round trip of the handshake.
    pub(super) fn first_round_trip(&mut self, sample: Span) {
        self.round_trip = sample;
        self.path.round_trip(sample, 0);
    }

    /// Whether nothing more is known to be on its way: the last segment was not full.
    pub(super) fn idle(&self) -> bool {
        !self.more && !self.hole
    }

    /// What the time from now on goes by with.
    pub(super) fn label(&self) -> Label {
        Label::Limited(if self.hole { Limit::Recovery } else { Limit::Window }, self.round)
    }

    /// The receiver offered a window.
    pub(super) fn offered(&mut self, observation: &Observation) {
        self.window = observation.window;
    }

    /// The receiver sends data itself, a request: so the sender had told all that it had to tell.
    pub(super) fn asked(&mut self, now: Instant, timeline: &mut Timeline) {
        if let Some((last, _)) = self.last
            && !self.idle()
            && now.since(last) > self.round_trip
        {
            (self.more, self.hole) = (false, false);
            timeline.paint(last, now, Label::Known(Cause::Application, Confidence::Medium), |label| {
                matches!(label, Label::Limited(..))
            });
            self.turn(now, timeline);
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
        let before = self.last.map_or(self.begin, |(last, _)| last.max(self.begin));
        self.longest = self.longest.max(now.since(before));
        self.segments += 1;
        self.hole =
            if filled { self.hole && observation.retransmission.is_none() } else { observation.offset > self.highest };
        self.segment = self.segment.max(observation.length);
        self.highest = self.highest.max(end);
        self.arrived += u64::from(observation.length);
        self.path.delivered(now);
        self.last = Some((now, observation.frame));
        self.more = observation.length >= self.segment.max(FULL_SIZED) && !observation.flags.contains(Flags::FIN);
        if now.since(self.begin) >= self.round_trip && self.segments >= TELLING {
            self.turn(now, timeline);
        }
        if self.idle() {
            self.turn(now, timeline);
        }
    }

    /// The connection ended.
    pub(super) fn end(&mut self, timeline: &mut Timeline) {
        if let Some((now, _)) = self.last {
            self.turn(now, timeline);
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

    /// A round is over: was the link full in it?
    fn turn(&mut self, now: Instant, timeline: &mut Timeline) {
        let time = now.since(self.begin);
        let came = self.arrived - self.arrived_before;
        let full = self.segments >= TELLING / 2 && self.longest <= time / self.segments * EVEN;
        if self.before > 0 {
            self.steady = (came as f64) < GROWTH * self.before as f64;
        }
        let receiver = came + u64::from(self.segment) > self.window;
        let held = match () {
            () if receiver => Cause::ReceiveWindow,
            () if self.steady => Cause::CongestionWindow,
            () => Cause::SlowStart,
        };
        timeline.resolve(self.round, |label| match label {
            _ if full => (Cause::PathRate, Confidence::Medium),
            Label::Limited(Limit::Recovery, _) => (Cause::Recovery, Confidence::Medium),
            _ => (held, Confidence::Low),
        });
        (self.segments, self.longest) = (0, Span::ZERO);
        self.before = came;
        self.arrived_before = self.arrived;
        self.begin = now;
        self.round += 2;
    }

    /// Nothing came for long though more was expected: silence, or a sender that waited for its timer.
    fn gap(&mut self, observation: &Observation, filled: bool, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        let Some((last, frame)) = self.last else { return };
        let now = observation.time;
        let usual = self.path.gap() * USUAL;
        if now.since(last) <= (self.round_trip + PATIENCE).max(usual) {
            return;
        }
        let lost = filled && observation.retransmission.is_some();
        let (cause, fate) = if lost { (Cause::Timer, Fate::Lost) } else { (Cause::Radio, Fate::Held) };
        let end = if lost { now - (self.round_trip / 2).min(now.since(last)) } else { now };
        timeline.paint(last, end, Label::Known(cause, Confidence::Low), |label| matches!(label, Label::Limited(..)));
        stalls.push(Stall {
            begin: last,
            end: now,
            first_frame: frame,
            last_frame: observation.frame,
            outstanding: 0,
            timeouts: u32::from(lost),
            fate,
            silent: if lost { Span::ZERO } else { now.since(last) },
        });
        self.turn(now, timeline);
    }
}
