//! Why a connection took as long as it did: every nanosecond of it is put down to one [`Cause`].
//!
//! [`Causes`] listens to the observations of one connection. The time between two of them gets a label from what is then known; whether
//! the link was full, or a silence was the radio's or a timer's, comes out up to two round trips later, and until then
//! the time is pending. What is settled is given out as [`Piece`]s, in order and without gaps. Memory does not grow with the connection.
//!
//! | module | what |
//! | --- | --- |
//! | `sender`, `receiver` | what holds the sender, seen where data is sent, or where it arrives |
//! | `bottleneck` | what the link before which data waits has carried, and when it fell silent; with `path` and `arrivals`, what is known of it |
//! | `link` | when it was full, and how much waited |
//! | `timeline` | the slices of time that wait for evidence |
//! | [`stall`](Stall) | the longest waits, in words |
//!
//! The definitions, and how well they are met, stand in `docs/trace-causes.md`.

mod arrivals;
mod bottleneck;
mod link;
mod path;
mod receiver;
mod sender;
mod stall;
mod timeline;

#[cfg(test)]
mod tests;

use core::fmt;

use std::sync::Arc;

use airpath_core::{Direction, Instant, Span};
use airpath_wire::tcp::Flags;

use crate::radio::RadioLog;
use crate::two_ends::Joined;
use airpath_capture::read::LATEST;
use airpath_observe::{End, Observation, Sending};
use arrivals::Arrivals;
use receiver::Receiver;
use sender::Sender;
use timeline::{Label, Timeline};

pub use stall::{Fate, Stall};

/// What a moment of a connection goes by with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The handshake.
    SetUp,
    /// The applications have nothing to send: the gap between request and reply, think time, and the end of a reply on its way.
    Application,
    /// The sender probes for the rate of the path, and has not found it.
    SlowStart,
    /// The receiver's window stops the sender.
    ReceiveWindow,
    /// The congestion window, or a window that the sender clamps, is smaller than the path.
    CongestionWindow,
    /// The link is full: as fast as it gets.
    PathRate,
    /// The link is full, and more than a round trip of data waits in front of it.
    Queueing,
    /// The radio carries nothing.
    Radio,
    /// The path would carry, but the sender waits for its retransmission timer.
    Timer,
    /// What was lost is sent again, and the link is not full meanwhile.
    Recovery,
    /// The path carries what had arrived already.
    Spurious,
    /// All data has arrived; the connection is taken down.
    Closing,
}

impl Cause {
    /// How many there are.
    pub const COUNT: usize = 12;

    /// All of them, in the order of their declaration.
    pub const ALL: [Self; Self::COUNT] = [
        Self::SetUp,
        Self::Application,
        Self::SlowStart,
        Self::ReceiveWindow,
        Self::CongestionWindow,
        Self::PathRate,
        Self::Queueing,
        Self::Radio,
        Self::Timer,
        Self::Recovery,
        Self::Spurious,
        Self::Closing,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SetUp => "set-up",
            Self::Application => "application",
            Self::SlowStart => "slow-start",
            Self::ReceiveWindow => "receive-window",
            Self::CongestionWindow => "congestion-window",
            Self::PathRate => "path-rate",
            Self::Queueing => "queueing",
            Self::Radio => "radio",
            Self::Timer => "timer",
            Self::Recovery => "recovery",
            Self::Spurious => "spurious",
            Self::Closing => "closing",
        }
    }
}

/// How sure a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// One of several explanations, which cannot be told apart from here.
    Low,
    /// Inferred from times and rates.
    Medium,
    /// Seen in the packets themselves, or told by the radio's log.
    High,
}

impl Confidence {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A stretch of time with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Why.
    pub cause: Cause,
    /// How sure that is.
    pub confidence: Confidence,
    /// From when.
    pub begin: Instant,
    /// Until when.
    pub end: Instant,
    /// The frame at which it begins, or before.
    pub first_frame: u64,
    /// The frame at which it ends, or after.
    pub last_frame: u64,
}

/// The sum of a connection's pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Time by cause, in the order of [`Cause::ALL`]. They add up to the connection's elapsed time.
    pub times: [Span; Cause::COUNT],
    /// Its longest stalls, the longest first.
    pub stalls: Vec<Stall>,
}

impl Account {
    /// Stalls that are remembered.
    pub const STALLS: usize = 8;

    /// The elapsed time: the sum of all causes.
    pub fn total(&self) -> Span {
        self.times.iter().fold(Span::ZERO, |sum, &time| sum + time)
    }

    /// Time put down to one cause.
    pub const fn of(&self, cause: Cause) -> Span {
        self.times[cause as usize]
    }

    fn stalled(&mut self, stall: Stall) {
        let place = self.stalls.partition_point(|other| other.length() >= stall.length());
        if place < Self::STALLS {
            self.stalls.truncate(Self::STALLS - 1);
            self.stalls.insert(place, stall);
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for cause in Cause::ALL.into_iter().filter(|cause| !self.of(*cause).is_zero()) {
            let separator = if core::mem::take(&mut first) { "" } else { ", " };
            write!(f, "{separator}{} {}", cause.name(), self.of(cause))?;
        }
        Ok(())
    }
}

/// How far a connection has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SetUp,
    Open,
    Closing,
}

/// The causes of one connection.
#[derive(Clone, Debug)]
pub struct Causes {
    phase: Phase,
    /// The end at which the capture was taken.
    near: Option<End>,
    /// The last observation.
    last: Option<(Instant, u64)>,
    /// Some times were odd.
    odd: bool,
    syn: Option<Instant>,
    answer: Option<Instant>,
    fin: bool,
    /// What the end of the capture sends, and what it receives.
    sender: Sender,
    receiver: Receiver,
    timeline: Timeline,
    account: Account,
    radio: Option<Radio>,
}

/// The radio's log, as far as it was read.
#[derive(Clone, Debug)]
struct Radio {
    log: Arc<RadioLog>,
    /// The end that is the mobile.
    mobile: End,
    /// The silences before this one are over.
    next: usize,
    /// It is no log, but what both ends' captures tell: there may be more.
    inferred: bool,
}

impl Causes {
    /// Of a capture taken at `near`, which the handshake tells if it is not given.
    pub fn new(near: Option<End>) -> Self {
        let mut causes = Self {
            phase: Phase::SetUp,
            near: None,
            last: None,
            odd: false,
            syn: None,
            answer: None,
            fin: false,
            sender: Sender::default(),
            receiver: Receiver::new(),
            timeline: Timeline::default(),
            account: Account::default(),
            radio: None,
        };
        if let Some(near) = near {
            causes.is_at(near);
        }
        causes
    }

    /// The capture was taken at that end. Clients are taken to be on the radio, if nobody says which end is.
    fn is_at(&mut self, near: End) {
        self.near = Some(near);
        let mobile = self.radio.as_ref().map_or(End::Client, |radio| radio.mobile);
        self.sender.bottleneck().on_radio(near == mobile);
    }

    /// Lets the radio's log tell when it was silent; `mobile` is the end on the radio.
    pub fn with_radio(self, log: Arc<RadioLog>, mobile: End) -> Self {
        let mut told = Self { radio: Some(Radio { log, mobile, next: 0, inferred: false }), ..self };
        if let Some(near) = told.near {
            told.is_at(near);
        }
        told
    }

    /// Lets the other end's capture tell what arrived when, and, unless the radio's log does, when acknowledgements did not get through;
    /// `mobile` is the end on the radio.
    pub fn with_both_ends(mut self, joined: &Joined, mobile: End) -> Self {
        let arrivals = Arrivals::of(joined.sent_by(joined.near), joined.sent_by(joined.near.other()));
        self.sender.bottleneck().know(arrivals);
        let own = joined.path_log(mobile);
        let (log, inferred) = match &self.radio {
            Some(radio) => (radio.log.and_waits(&own), false),
            None => (own, true),
        };
        self.radio = Some(Radio { log: Arc::new(log), mobile, next: 0, inferred });
        self.is_at(joined.near);
        self
    }

    /// The end at which the capture was taken, as far as that is known.
    pub const fn near(&self) -> Option<End> {
        self.near
    }

    /// Takes the next observation; `settled` gets the pieces that no later one can change. Where the time of a capture steps back, it is taken to
    /// stand still.
    pub fn observe(&mut self, observation: &Observation, settled: &mut impl FnMut(&Piece)) {
        self.odd |= observation.time > LATEST || self.last.is_some_and(|(last, _)| observation.time < last);
        if self.odd {
            let tamed = self.tamed(observation);
            self.take(&tamed, settled);
        } else {
            self.take(observation, settled);
        }
    }

    /// The same with times that neither step back nor are out of bounds.
    fn tamed(&self, observation: &Observation) -> Observation {
        let now = observation.time.min(LATEST).max(self.last.map_or(Instant::ZERO, |(last, _)| last));
        let earlier = |sent: Instant| sent.min(now);
        let within = |(sample, frame): (Span, u64)| (sample.min(now.since(Instant::ZERO)), frame);
        Observation {
            time: now,
            news: observation.news.map(|sent| Sending {
                original: earlier(sent.original),
                first: earlier(sent.first),
                last: earlier(sent.last),
            }),
            unacknowledged_since: observation.unacknowledged_since.map(earlier),
            round_trip: observation.round_trip.map(within),
            echo_round_trip: observation.echo_round_trip.map(within),
            ..observation.clone()
        }
    }

    fn take(&mut self, observation: &Observation, settled: &mut impl FnMut(&Piece)) {
        let now = (observation.time, observation.frame);
        if let Some(before) = self.last
            && now.0 > before.0
        {
            let label = self.label();
            self.timeline.push(before, now, label);
            if self.phase == Phase::Open {
                self.silences(before.0, now.0);
            }
            self.sender.passed(now.0, &mut self.timeline);
        }
        self.last = Some(now);
        match self.phase {
            Phase::SetUp => self.set_up(observation),
            Phase::Open | Phase::Closing => self.open(observation),
        }
        let account = &mut self.account;
        self.timeline.settle(&mut |piece| {
            account.times[piece.cause as usize] += piece.end.since(piece.begin);
            settled(piece);
        });
    }

    /// Nothing more comes: settles what is pending, and gives the sum.
    pub fn finish(mut self, settled: &mut impl FnMut(&Piece)) -> Account {
        let mut stalls = Vec::new();
        self.sender.end(&mut self.timeline, &mut stalls);
        self.receiver.end(&mut self.timeline);
        for stall in stalls {
            self.account.stalled(stall);
        }
        let account = &mut self.account;
        self.timeline.finish(&mut |piece| {
            account.times[piece.cause as usize] += piece.end.since(piece.begin);
            settled(piece);
        });
        self.account
    }

    fn set_up(&mut self, observation: &Observation) {
        let (syn, ack) = (observation.flags.contains(Flags::SYN), observation.flags.contains(Flags::ACK));
        match (syn, ack) {
            (true, false) => self.syn = self.syn.or(Some(observation.time)),
            (true, true) => {
                self.answer = self.answer.or(Some(observation.time));
                // At the client the connection is open with the answer. That the capture is the client's shows in how long the answer took.
                if self.near == Some(End::Client) {
                    self.phase = Phase::Open;
                    self.first_round_trip(observation.time);
                }
            }
            _ => {
                if let Some(near) = self.near.or_else(|| self.infer_near(observation)) {
                    self.is_at(near);
                }
                self.phase = Phase::Open;
                self.first_round_trip(observation.time);
                self.open(observation);
            }
        }
    }

    /// The handshake is complete `now`: the longer of its two halves is the round trip.
    fn first_round_trip(&mut self, now: Instant) {
        let (Some(syn), Some(answer)) = (self.syn, self.answer) else { return };
        let round_trip = answer.since(syn).max(now.since(answer));
        self.sender.bottleneck().path.round_trip(round_trip, 0);
        self.receiver.first_round_trip(round_trip);
    }

    /// Of the two halves of the handshake, that on the capture's own side takes next to no time.
    fn infer_near(&self, third: &Observation) -> Option<End> {
        let (syn, answer) = (self.syn?, self.answer?);
        let near_server = answer.since(syn) < third.time.since(answer);
        Some(if near_server { End::Server } else { End::Client })
    }

    /// The end at which the capture is taken to have been made: where nothing tells, at the server.
    fn seen_at(&self) -> End {
        self.near.unwrap_or(End::Server)
    }

    fn open(&mut self, observation: &Observation) {
        let mut stalls = Vec::new();
        if observation.from == self.seen_at() {
            if observation.length > 0 {
                self.receiver.asked(observation.time, &mut self.timeline);
            }
            self.sender.sent(observation, &mut self.timeline);
            self.receiver.offered(observation);
        } else {
            self.receiver.arrived(observation, &mut self.timeline, &mut stalls);
            self.sender.answered(observation, &mut self.timeline, &mut stalls);
            if observation.length > 0 && observation.retransmission.is_none() {
                self.sender.heard(observation);
            }
        }
        for stall in stalls {
            self.account.stalled(stall);
        }
        self.fin |= observation.flags.contains(Flags::FIN) || observation.flags.contains(Flags::RST);
        let done = self.fin && self.sender.idle() && self.receiver.idle();
        self.phase = if done { Phase::Closing } else { Phase::Open };
    }

    /// Puts down to the radio what its log says of the time between two observations.
    fn silences(&mut self, begin: Instant, end: Instant) {
        let near = self.seen_at();
        let Some(radio) = &mut self.radio else { return };
        let sending = !self.sender.idle();
        let receiving = !sending && !self.receiver.idle();
        let waiting = !sending && !receiving;
        // The way of the data; where none is known to be on its way, whatever waits may go either way.
        let upwards = if sending { near == radio.mobile } else { near != radio.mobile };
        let way = if upwards { Direction::Up } else { Direction::Down };
        let silences = radio.log.silences();
        while silences.get(radio.next).is_some_and(|silence| silence.end <= begin) {
            radio.next += 1;
        }
        for silence in silences[radio.next..].iter().take_while(|silence| silence.begin < end) {
            let (from, to) = (silence.begin.max(begin), silence.end.min(end));
            if from >= to || (waiting && !silence.wanted) {
                continue;
            }
            let other_way = silence.direction.is_some_and(|direction| direction != way);
            let sender = &mut self.sender;
            match () {
                () if sending && other_way => sender.unanswered(from, to, &mut self.timeline),
                () if sending => {
                    sender.silent(from, to, &mut self.timeline);
                    if !radio.inferred {
                        sender.bottleneck().known_silent(to);
                    }
                }
                // Acknowledgements that wait do not stop the data that is on its way.
                () if receiving && other_way => {}
                () => self.timeline.paint(from, to, Label::Known(Cause::Radio, Confidence::High), |_| true),
            }
        }
    }

    /// What the time from now on goes by with, as far as that is known now.
    fn label(&self) -> Label {
        match self.phase {
            Phase::SetUp => Label::Known(Cause::SetUp, Confidence::High),
            Phase::Closing => Label::Known(Cause::Closing, Confidence::High),
            Phase::Open if !self.sender.idle() => self.sender.label(),
            Phase::Open if !self.receiver.idle() => self.receiver.label(),
            Phase::Open => Label::Known(Cause::Application, Confidence::High),
        }
    }
}
