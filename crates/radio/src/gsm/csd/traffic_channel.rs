//! The radio link: RLP between mobile and interworking function, over one or several full-rate
//! traffic channels.
//!
//! RLP frames begin at multiples of their duration, one on each channel: 240 bits in 20 ms on
//! TCH/F9.6, 576 bits in 40 ms on TCH/F14.4 (3GPP TS 24.022 §4.1). A frame is at the other end when
//! its last burst is through and the fixed part of the network has passed it on, or is lost if it
//! was received in error. While neither end has data the channel sends NULL frames, which are not
//! counted: it sleeps.

use std::collections::VecDeque;

use airpath_core::{
    ConnectionTotals, Context, Direction, Instant, LinkState, RadioEvent, RadioTotals, Seed, Span, UserId, earliest,
};

use super::air::Air;
use super::config::{Config, Radio};
use super::hdlc_abm::{Frame, Phase, Reaction, Station};
use super::octets::Run;
use super::stream::{Outcome, Stream};
use super::tracks::Tracks;
use crate::gsm::csd::ConfigError;

/// The radio link of one mobile.
#[derive(Debug)]
pub struct TrafficChannel {
    user: UserId,
    duration: Span,
    /// From the beginning of a frame to when it is at the other end.
    delay: Span,
    slots: u32,
    payload: u32,
    /// Octets before compression for each that the link carries.
    compression: f64,
    conditions: Air,
    /// By the direction in which they send user data: at the interworking function, and at the
    /// mobile.
    stations: [Station; 2],
    streams: [Stream; 2],
    air: [VecDeque<(Instant, Frame)>; 2],
    errors: [airpath_core::RandomStream; 2],
    totals: [RadioTotals; 2],
    /// The first frame that is still to come, while awake.
    next_frame: u64,
    is_awake: bool,
    /// Frames that begin before then are lost.
    interrupted_until: Instant,
    tracks: Tracks,
}

impl TrafficChannel {
    /// An idle, established link. Generator streams are `path/down/errors` and
    /// `path/up/errors`, and those of the conditions below `path/conditions`.
    ///
    /// # Errors
    /// If the conditions make no sense.
    pub fn new(config: &Config, radio: &Radio, user: UserId, seed: Seed, path: &str) -> Result<Self, ConfigError> {
        let settings = radio.station();
        Ok(Self {
            user,
            duration: radio.channel.frame_duration(),
            delay: radio.frame_delay(),
            slots: radio.slots,
            payload: settings.payload,
            compression: radio.compression.unwrap_or(1.0),
            conditions: Air::new(config, radio, user.index(), seed, path)?,
            stations: [Station::new(settings.clone()), Station::new(settings)],
            streams: [Stream::new(radio.compression), Stream::new(radio.compression)],
            air: Default::default(),
            errors: Direction::BOTH.map(|direction| seed.stream(&format!("{path}/{}/errors", direction.name()))),
            totals: Default::default(),
            next_frame: 0,
            is_awake: false,
            interrupted_until: Instant::ZERO,
            tracks: Tracks::new(user, radio.channel.name(), radio.slots),
        })
    }

    /// Octets that wait one way.
    pub const fn waiting(&self, direction: Direction) -> u64 {
        self.streams[direction as usize].waiting()
    }

    /// Octets of user data in a frame.
    pub const fn payload(&self) -> u32 {
        self.payload
    }

    /// Octets that it takes at once: a frame on each channel.
    pub const fn takes_at_once(&self) -> u32 {
        self.payload * self.slots
    }

    /// Octets that still come, and that pass until the next come, when the link is held and let go.
    pub fn in_flight(&self) -> u64 {
        let frames = self.delay.as_nanos() / self.duration.as_nanos() + 2;
        (f64::from(self.takes_at_once()) * frames as f64 * self.compression).ceil() as u64
    }

    /// Stops sending octets that wait one way, or sends them again. Returns whether they are sent
    /// again from now on.
    pub fn hold(&mut self, now: Instant, direction: Direction, is_held: bool) -> bool {
        let is_let_go = self.streams[direction as usize].hold(is_held);
        if is_let_go {
            self.wake(now);
        }
        is_let_go
    }

    /// What happened to the call.
    pub const fn connection_totals(&self) -> ConnectionTotals {
        self.conditions.totals
    }

    pub const fn connection_totals_mut(&mut self) -> &mut ConnectionTotals {
        &mut self.conditions.totals
    }

    /// All transmissions one way.
    pub const fn totals(&self, direction: Direction) -> RadioTotals {
        self.totals[direction as usize]
    }

    /// Whether the link has given up.
    pub fn is_disconnected(&self) -> bool {
        self.stations.iter().any(|station| station.phase() == Phase::Disconnected)
    }

    /// Gives it octets.
    pub fn offer(&mut self, now: Instant, direction: Direction, run: Run) {
        self.streams[direction as usize].offer(run);
        self.wake(now);
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.air.iter().filter_map(|air| air.front().map(|(at, _)| *at)).min();
        let frame = self.is_awake.then(|| self.start_of(self.next_frame));
        earliest([arrival, frame])
    }

    /// Does all that happens at `now`.
    pub fn step(&mut self, now: Instant, outcomes: &mut Vec<Outcome>, cx: &mut Context<'_>) {
        for direction in Direction::BOTH {
            while let Some((at, frame)) = self.air[direction as usize].front().copied()
                && at <= now
            {
                self.air[direction as usize].pop_front();
                self.arrive(now, direction, frame, outcomes);
            }
        }
        if self.is_awake && self.start_of(self.next_frame) == now {
            self.transmit(now, cx);
            self.next_frame += 1;
        }
        self.is_awake &= self.is_busy();
        self.wake(now);
        self.report(now, cx);
    }

    /// Loses all octets inside, and is established again.
    pub fn restart(&mut self, radio: &Radio, outcomes: &mut Vec<Outcome>) {
        for direction in Direction::BOTH {
            self.streams[direction as usize].lose_all(direction, outcomes);
            self.air[direction as usize].clear();
            self.stations[direction as usize] = Station::new(radio.station());
        }
        self.is_awake = false;
    }

    /// Loses all frames that begin within the next `span`.
    pub fn interrupt(&mut self, now: Instant, span: Span) {
        self.interrupted_until = self.interrupted_until.max(now + span);
    }

    /// The network hands the call over, which takes `gap`.
    pub fn hand_over(&mut self, now: Instant, gap: Span, cx: &mut Context<'_>) {
        self.interrupt(now, gap);
        self.conditions.hand_over(now, gap, &mut self.tracks, cx);
    }

    /// A call begins: the mobile has selected its cell by itself before.
    pub fn begin_call(&mut self, now: Instant) {
        self.conditions.select_cell(now);
    }

    /// The run ends at `now`.
    pub fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.conditions.settle(now, &mut self.tracks, cx);
    }

    /// What frames come through.
    pub const fn conditions(&self) -> &Air {
        &self.conditions
    }

    /// The same, to be changed.
    pub const fn conditions_mut(&mut self) -> &mut Air {
        &mut self.conditions
    }

    /// Uses this number of channels from now on.
    pub fn set_slots(&mut self, now: Instant, slots: u32, cx: &mut Context<'_>) {
        self.slots = slots;
        self.tracks.slots(now, slots, cx);
    }

    fn is_busy(&self) -> bool {
        self.stations.iter().zip(&self.streams).any(|(station, stream)| station.is_busy(stream.ready()))
    }

    /// Lets frames begin from the next on, if there is something to send.
    fn wake(&mut self, now: Instant) {
        if !self.is_awake && self.is_busy() {
            self.is_awake = true;
            // The frame that begins now is over, and those that passed idle do not come back.
            self.next_frame = self.next_frame.max(now.as_nanos() / self.duration.as_nanos() + 1);
        }
    }

    const fn start_of(&self, frame: u64) -> Instant {
        Instant::from_nanos(frame * self.duration.as_nanos())
    }

    /// Sends a frame on each channel, both ways.
    fn transmit(&mut self, now: Instant, cx: &mut Context<'_>) {
        let Self { conditions, tracks, interrupted_until, .. } = self;
        let p = conditions.at(now, |at, gap| *interrupted_until = (*interrupted_until).max(at + gap), tracks, cx);
        let is_interrupted = now < self.interrupted_until;
        for direction in Direction::BOTH {
            let index = direction as usize;
            let mut event = RadioEvent {
                direction,
                user: self.user,
                duration: self.duration,
                pdus: 0,
                repeated: 0,
                errored: 0,
                bytes: 0,
                level: 0,
                control: 0,
            };
            for _ in 0..self.slots {
                let stream = &mut self.streams[index];
                let Some(frame) = self.stations[index].next_frame(now, stream.ready(), stream.position()) else {
                    break;
                };
                let (octets, is_repeated) = (frame.octets(), frame.is_repeated());
                if !is_repeated {
                    stream.cut(u64::from(octets));
                }
                let is_errored = self.errors[index].chance(p) || is_interrupted;
                event.pdus += 1;
                event.repeated += u16::from(is_repeated);
                event.errored += u16::from(is_errored);
                event.bytes += if octets > 0 { self.payload } else { 0 };
                if !is_errored {
                    self.air[index].push_back((now + self.delay, frame));
                }
            }
            if event.pdus > 0 {
                self.totals[index].add(&event);
                cx.radio(now, || event);
            }
        }
    }

    /// Hands a frame of `direction` to the station at its end.
    fn arrive(&mut self, now: Instant, direction: Direction, frame: Frame, outcomes: &mut Vec<Outcome>) {
        let (here, back) = (direction as usize, direction.opposite());
        let Reaction { delivered, restarted_at } = self.stations[back as usize].receive(now, frame);
        self.streams[here].deliver(delivered, direction, outcomes);
        if let Some(position) = restarted_at {
            self.streams[here].lose_before(position, direction, outcomes);
            self.streams[back as usize].lose_before(u64::MAX, back, outcomes);
        }
    }

    /// Reports the state of the link, if it has changed.
    fn report(&mut self, now: Instant, cx: &mut Context<'_>) {
        let [down, up] = [0, 1].map(|index| self.stations[index].phase());
        let state = match down.max(up) {
            Phase::Connected => LinkState::Connected,
            Phase::Recovering => LinkState::Recovering,
            Phase::Resetting => LinkState::Reset,
            Phase::Disconnected => LinkState::Disconnected,
        };
        self.report_link(now, state, cx);
    }

    /// Reports the state of the link, if it has changed.
    pub fn report_link(&mut self, now: Instant, state: LinkState, cx: &mut Context<'_>) {
        self.tracks.link(now, state, cx);
    }
}
