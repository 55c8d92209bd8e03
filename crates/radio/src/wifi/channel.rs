//! The channel with its access point and stations: who has it next, and for how long.

use std::collections::{BTreeSet, VecDeque};

use airpath_core::{
    ConnectionTotals, Context, Direction, Instant, ModeState, Packet, PacketCounters, PacketStep, Probability,
    RadioEvent, RadioTotals, RandomStream, Seed, Span, UserId,
};
use airpath_link::command::{Buffer, Change};
use airpath_link::queue::Queue;
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

use super::config::Config;
use super::station::Flow;
use super::timing::Timing;
use crate::common::arq::rlc_queue::RlcQueue;
use crate::common::log::Tracks;
use crate::error::ValueError;

/// A Wi-Fi channel with an access point and its mobiles.
#[derive(Debug)]
pub struct Wifi {
    config: Config,
    timing: Timing,
    seed: Seed,
    name: Box<str>,
    /// A mobile is made when its first packet comes.
    mobiles: Vec<Option<Box<Mobile>>>,
    /// Mobiles with frames that can be sent, by direction.
    ready: [BTreeSet<usize>; 2],
    /// Mobiles with frames that cannot be sent before a time.
    blocked: BTreeSet<(Instant, usize)>,
    state: State,
    /// The end of the last exchange.
    free_at: Instant,
    /// The mobile to which the access point has sent last.
    last_served: usize,
    bler: [Probability; 2],
    delay: [Span; 2],
    contention: RandomStream,
    errors: RandomStream,
    departures: [VecDeque<Departure>; 2],
}

/// One mobile.
#[derive(Debug)]
struct Mobile {
    /// By direction.
    flows: [Flow; 2],
    tracks: Tracks,
    /// Its entry among those that are blocked.
    blocked_until: Option<Instant>,
}

/// What happens in the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No station has anything to send.
    Idle,
    /// An exchange begins then.
    Contention(Instant),
    /// An A-MPDU of this mobile ends then.
    Sending(Instant, usize, Direction),
}

impl Wifi {
    /// An idle channel with `users` mobiles. Generator streams are `name/contention`,
    /// `name/errors`, and those of queues below `name/user-N`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ValueError> {
        config.check()?;
        Ok(Self {
            timing: Timing::new(config),
            seed,
            mobiles: std::iter::repeat_with(|| None).take(users).collect(),
            ready: Default::default(),
            blocked: BTreeSet::new(),
            state: State::Idle,
            free_at: Instant::ZERO,
            last_served: 0,
            bler: [config.downlink.bler, config.uplink.bler],
            delay: [config.delay; 2],
            contention: seed.stream(&format!("{name}/contention")),
            errors: seed.stream(&format!("{name}/errors")),
            departures: Default::default(),
            config: config.clone(),
            name: name.into(),
        })
    }

    /// The mobile of this number.
    fn mobile(&mut self, index: usize) -> &mut Mobile {
        let Self { config, seed, name, mobiles, .. } = self;
        mobiles[index].get_or_insert_with(|| {
            let flow = |queue: Option<&Queue>, direction: Direction| {
                let path = format!("{name}/user-{index}/{}", direction.name());
                Flow::new(RlcQueue::new(&queue.cloned().unwrap_or_default(), Span::ZERO, *seed, &path))
            };
            Box::new(Mobile {
                flows: [
                    flow(config.downlink.queue.as_ref(), Direction::Down),
                    flow(config.uplink.queue.as_ref(), Direction::Up),
                ],
                tracks: Tracks::new(UserId::new(index as u32)),
                blocked_until: None,
            })
        })
    }

    /// Other stations.
    fn others(&self) -> u64 {
        self.config.others.as_ref().map_or(0, |others| others.stations.into())
    }

    /// Everything up to `now` happens.
    fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            if let Some((_, index)) = self.blocked.first().copied().filter(|(until, _)| *until <= at) {
                self.refresh(at, index, cx);
                self.wake(at);
                continue;
            }
            match self.state {
                State::Idle => {}
                State::Contention(start) => self.begin_exchange(start, cx),
                State::Sending(end, index, direction) => {
                    let delay = self.delay[direction as usize];
                    cx.direction = direction;
                    let departures = &mut self.departures[direction as usize];
                    let mobile = self.mobiles[index].as_mut().expect("it has sent");
                    mobile.flows[direction as usize].receive(end, delay, departures, cx);
                    self.refresh(end, index, cx);
                    self.free_at = end + Timing::acknowledgement();
                    self.contend(self.free_at);
                }
            }
        }
    }

    /// When something happens in the channel next.
    fn next_event(&self) -> Option<Instant> {
        let channel = match self.state {
            State::Idle => None,
            State::Contention(at) | State::Sending(at, ..) => Some(at),
        };
        channel.into_iter().chain(self.blocked.first().map(|(until, _)| *until)).min()
    }

    /// The stations that have something to send contend from `from` on.
    fn contend(&mut self, from: Instant) {
        let [down, up] = &self.ready;
        let mobiles = u64::from(!down.is_empty()) + up.len() as u64;
        self.state = match mobiles {
            0 => State::Idle,
            _ => State::Contention(from + Timing::access(mobiles + self.others())),
        };
    }

    /// A frame can be sent: the channel does not stay idle.
    fn wake(&mut self, now: Instant) {
        if self.state != State::Idle || self.ready.iter().all(BTreeSet::is_empty) {
            return;
        }
        match &self.config.others {
            // It meets an exchange of another station, which began at a random time.
            Some(others) if self.free_at <= now => {
                let left = self.contention.below(others.airtime.as_nanos());
                self.contend(now + Span::from_nanos(left));
            }
            _ => {
                self.contend(self.free_at);
                if let State::Contention(start) = &mut self.state {
                    // A station sends at once if the channel was idle for long enough (§10.23.2.2).
                    *start = (*start).max(now);
                }
            }
        }
    }

    /// A contender begins an exchange at `start`.
    fn begin_exchange(&mut self, start: Instant, cx: &mut Context<'_>) {
        let [down, up] = &self.ready;
        let (access_point, others) = (u64::from(!down.is_empty()), self.others());
        let mobiles = access_point + up.len() as u64;
        if mobiles == 0 {
            self.state = State::Idle;
            return;
        }
        let contenders = mobiles + others;
        let winner = if contenders > 1 { self.contention.below(contenders) } else { 0 };
        let (index, direction) = if winner < access_point {
            // The access point serves its mobiles in turn.
            let next = down.range(self.last_served + 1..).next().or_else(|| down.first());
            self.last_served = *next.expect("a mobile is ready");
            (self.last_served, Direction::Down)
        } else if let Some(index) = up.iter().nth((winner - access_point) as usize) {
            (*index, Direction::Up)
        } else {
            let airtime = self.config.others.as_ref().map_or(Span::ZERO, |others| others.airtime);
            self.free_at = start + airtime;
            self.contend(self.free_at);
            return;
        };
        let Self { config, timing, mobiles, errors, bler, .. } = self;
        let mobile = mobiles[index].as_mut().expect("it is ready");
        let flow = &mut mobile.flows[direction as usize];
        cx.direction = direction;
        let most = config.channel.max_transmissions;
        let Some(sent) = flow.send(start, timing, bler[direction as usize], most, errors, cx) else {
            // Its queue has dropped everything: only the time of the contention is lost.
            self.refresh(start, index, cx);
            self.contend(start);
            return;
        };
        let [pdus, repeated, errored] = sent.frames;
        let event = RadioEvent {
            direction,
            user: UserId::new(index as u32),
            duration: sent.duration,
            pdus,
            repeated,
            errored,
            bytes: sent.bytes,
            level: config.channel.mcs,
            control: 0,
        };
        flow.count(&event);
        cx.radio(start, || event);
        self.ready[direction as usize].remove(&index);
        self.state = State::Sending(start + sent.duration, index, direction);
    }

    /// Takes note of what a mobile can send at `now`, and of the end of an interruption.
    fn refresh(&mut self, now: Instant, index: usize, cx: &mut Context<'_>) {
        let Self { mobiles, ready, blocked, state, .. } = self;
        let mobile = mobiles[index].as_mut().expect("it was made");
        mobile.tracks.active(now, cx);
        if let Some(until) = mobile.blocked_until.take() {
            blocked.remove(&(until, index));
        }
        for direction in Direction::BOTH {
            let flow = &mobile.flows[direction as usize];
            let is_sending = matches!(state, State::Sending(end, sender, way)
                if *end > now && (*sender, *way) == (index, direction));
            let has_frames = flow.has_frames() && !is_sending;
            if has_frames && flow.blocked_until <= now {
                ready[direction as usize].insert(index);
            } else {
                ready[direction as usize].remove(&index);
                if has_frames {
                    let until = mobile.blocked_until.get_or_insert(flow.blocked_until);
                    *until = (*until).min(flow.blocked_until);
                }
            }
        }
        blocked.extend(mobile.blocked_until.map(|until| (until, index)));
    }

    fn directions(&self, command: &BearerCommand) -> Result<Vec<Direction>, CommandError> {
        let users = self.mobiles.len();
        if let Some(user) = command.user.filter(|user| user.index() >= users) {
            return Err(CommandError::NoSuchUser { user: user.number(), users });
        }
        command.directions(|_| check(&command.change))
    }

    /// The earliest departure.
    fn next_departure(&self) -> Option<(Instant, Direction)> {
        let due = |direction: Direction| {
            self.departures[direction as usize].front().map(|departure| (departure.due, direction))
        };
        Direction::BOTH.into_iter().filter_map(due).min()
    }
}

/// Whether the channel can do that.
fn check(change: &Change) -> Result<(), CommandError> {
    change.check()?;
    let foreign = |help| Err(CommandError::Foreign { key: change.kind().name(), what: "a Wi-Fi channel", help });
    match change {
        Change::Outage(_) | Change::Handover { .. } | Change::Bler(_) => Ok(()),
        Change::Delay(delay) if delay.fixed().is_some() => Ok(()),
        Change::Delay(_) => foreign("its delay is one length of time, not a distribution"),
        Change::Loss(_) => foreign("frames are lost with a `bler`"),
        Change::CarrierToInterference(_) | Change::Environment(_) => {
            foreign("it has no radio conditions: use `bler` or `outage`")
        }
        Change::Rate(_) | Change::Channels(_) | Change::Level(_) | Change::Class(_) => {
            foreign("its rate follows from `bearer.channel` and the other stations")
        }
    }
}

impl Bearer for Wifi {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.advance(now, cx);
        let index = packet.user.index();
        cx.direction = direction;
        if let Err(cause) = self.mobile(index).flows[direction as usize].push(now, packet, cx) {
            return Admission::Dropped(cause);
        }
        self.refresh(now, index, cx);
        self.wake(now);
        Admission::Queued
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        let (_, direction) = self.next_departure().filter(|(due, _)| *due <= now)?;
        let departure = self.departures[direction as usize].pop_front()?;
        let mobile = self.mobiles[departure.packet.user.index()].as_mut().expect("it has a packet");
        mobile.flows[direction as usize].counters.deliver(&departure.packet);
        cx.direction = direction;
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        Some((direction, departure))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.next_departure().map(|(due, _)| due).into_iter().chain(self.next_event()).min()
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        let mut sum = PacketCounters::default();
        for mobile in self.mobiles.iter().flatten() {
            sum += mobile.flows[direction as usize].counters;
        }
        sum
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        let mobile = self.mobiles.get(user.index())?;
        Some(mobile.as_ref().map_or_else(RadioTotals::default, |mobile| mobile.flows[direction as usize].totals))
    }

    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        Some(self.mobiles.get(user.index())?.as_ref().map_or_else(Default::default, |mobile| mobile.tracks.totals))
    }

    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.mobiles.iter_mut().flatten().for_each(|mobile| mobile.tracks.settle(now, cx));
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.directions(command).map(drop)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        let directions = self.directions(command)?;
        self.advance(now, cx);
        match &command.change {
            Change::Bler(bler) => directions.iter().for_each(|direction| self.bler[*direction as usize] = *bler),
            Change::Delay(delay) => {
                let delay = delay.fixed().expect("it was checked before");
                directions.iter().for_each(|direction| self.delay[*direction as usize] = delay);
            }
            _ => {}
        }
        if let Some((span, buffer)) = command.change.interruption() {
            let (mode, until) = match command.change {
                Change::Outage(_) => (ModeState::NoCoverage, now + span + self.config.association),
                _ => (ModeState::Handover, now + span),
            };
            let users = command.user.map_or(0..self.mobiles.len(), |user| user.index()..user.index() + 1);
            for index in users {
                let mobile = self.mobile(index);
                for direction in &directions {
                    let flow = &mut mobile.flows[*direction as usize];
                    flow.blocked_until = flow.blocked_until.max(until);
                    if buffer == Buffer::Discard {
                        cx.direction = *direction;
                        flow.discard(now, cx);
                    }
                }
                if directions.len() == Direction::BOTH.len() {
                    mobile.tracks.active(now, cx);
                    mobile.tracks.mode(now, mode, Some(until), cx);
                }
                self.refresh(now, index, cx);
            }
        }
        command.report(now, cx);
        Ok(())
    }
}
