//! The call of one mobile: its links in a row, with PPP at both ends.

use std::collections::VecDeque;

use airpath_core::{
    ConnectionTotals, Context, Direction, DropCause, Instant, LinkState, Packet, PacketCounters, PacketStep,
    RadioTotals, Seed, Span, UserId,
};
use airpath_link::command::{Buffer, Change, CommandError};
use airpath_link::{Admission, Departure};

use super::config::{Config, Dial};
use super::modem::ModemLine;
use super::octets::Run;
use super::ppp::Ppp;
use super::stream::{Fate, Outcome};
use super::traffic_channel::TrafficChannel;
use crate::common::arq::rlc_queue::RlcQueue;
use crate::common::multiplexing::members::Member;
use crate::error::{ValueError, check_queue};
use crate::gsm::csd::ConfigError;

/// The call of one mobile.
#[derive(Debug)]
pub struct Circuit {
    config: Config,
    call: Call,
    ppp: [Ppp; 2],
    /// From the gateway to the mobile.
    links: Vec<Timed>,
    /// Octets that left a link in this step.
    outcomes: Vec<Outcome>,
    /// What has left and was not handed over.
    left: VecDeque<(Direction, Departure)>,
    counters: [PacketCounters; 2],
}

/// How the call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// There is none; the next packet makes one.
    Idle,
    /// It is there then.
    SettingUp(Instant),
    /// It is there.
    Up,
    /// It was lost, and there will be no other.
    Lost,
}

/// A link, and when something happens in it next.
#[derive(Debug)]
struct Timed {
    link: Link,
    next_event: Option<Instant>,
}

#[derive(Debug)]
enum Link {
    Modem(Box<ModemLine>),
    Radio(Box<TrafficChannel>),
}

impl Circuit {
    /// An idle one. Generator streams are `path/modem/…/errors` and `path/radio/…/errors`.
    ///
    /// # Errors
    /// If the queues make no sense.
    pub fn new(config: &Config, user: UserId, seed: Seed, path: &str) -> Result<Self, ConfigError> {
        let frame = config.radio.as_ref().map_or(Span::ZERO, |radio| radio.channel.frame_duration());
        let queue = |direction: &super::config::Direction, table| -> Result<Ppp, ValueError> {
            let queue = check_queue(direction.queue.as_ref(), table)?;
            Ok(Ppp::new(&config.ppp, RlcQueue::new(&queue, frame, seed, &format!("{path}/{table}"))))
        };
        let wire = |end: &str| {
            let serial = config.serial.as_ref()?;
            Some(Link::Modem(Box::new(ModemLine::new(&serial.wire(), seed, &format!("{path}/serial/{end}")))))
        };
        let mut links: Vec<Link> = wire("gateway").into_iter().collect();
        if let Some(modem) = &config.modem {
            links.push(Link::Modem(Box::new(ModemLine::new(modem, seed, &format!("{path}/modem")))));
        }
        if let Some(radio) = &config.radio {
            links.push(Link::Radio(Box::new(TrafficChannel::new(
                config,
                radio,
                user,
                seed,
                &format!("{path}/radio"),
            )?)));
        }
        links.extend(wire("mobile"));
        let call = match config.call.dial {
            Dial::Before => Call::Up,
            Dial::FirstPacket => Call::Idle,
        };
        Ok(Self {
            call,
            ppp: [queue(&config.downlink, "downlink")?, queue(&config.uplink, "uplink")?],
            links: links.into_iter().map(Timed::new).collect(),
            outcomes: Vec::new(),
            left: VecDeque::new(),
            counters: Default::default(),
            config: config.clone(),
        })
    }

    /// Whether it compresses headers.
    pub const fn compresses_headers(&self) -> bool {
        self.config.ppp.compressed_header.is_some()
    }

    /// All transmissions on the air, one way.
    pub fn radio_totals(&self, direction: Direction) -> Option<RadioTotals> {
        self.radio().map(|radio| radio.totals(direction))
    }

    /// What happened to its call.
    pub fn connection_totals(&self) -> Option<ConnectionTotals> {
        self.radio().map(TrafficChannel::connection_totals)
    }

    fn radio(&self) -> Option<&TrafficChannel> {
        self.links.iter().find_map(|each| match &each.link {
            Link::Radio(radio) => Some(&**radio),
            Link::Modem(_) => None,
        })
    }

    fn radio_mut(&mut self) -> Option<&mut TrafficChannel> {
        self.links.iter_mut().find_map(|each| match &mut each.link {
            Link::Radio(radio) => Some(&mut **radio),
            Link::Modem(_) => None,
        })
    }

    /// When something happens next.
    fn next_event(&self) -> Option<Instant> {
        match self.call {
            Call::SettingUp(until) => Some(until),
            Call::Idle | Call::Lost => None,
            Call::Up => self.links.iter().filter_map(|each| each.next_event).min(),
        }
    }

    /// Does all that happens at `now`, the time of the next event.
    fn step(&mut self, now: Instant, cx: &mut Context<'_>) {
        if let Call::SettingUp(_) = self.call {
            self.call = Call::Up;
            self.ppp.iter_mut().for_each(Ppp::begin_call);
            if let Some(radio) = self.radio_mut() {
                radio.begin_call(now);
            }
            self.count(|totals| totals.set_ups += 1);
            self.report_link(now, LinkState::Connected, cx);
        }
        for index in 0..self.links.len() {
            if self.links[index].next_event.is_some_and(|at| at <= now) {
                self.links[index].step(now, &mut self.outcomes, cx);
                self.pass_on(now, index);
            }
        }
        if self.links.iter().any(|each| each.link.is_disconnected()) {
            self.lose_call(now, cx);
        }
        self.control_flow(now);
        for direction in Direction::BOTH {
            cx.direction = direction;
            while let Some((packet, fate)) = self.ppp[direction as usize].next_complete() {
                match fate {
                    Ok(()) => self.left.push_back((direction, Departure { due: now, packet })),
                    Err(cause) => self.drop_packet(now, direction, packet, cause, cx),
                }
            }
            if self.call == Call::Up {
                self.feed(now, direction, cx);
            }
        }
    }

    /// Whether its radio link supports this change.
    ///
    /// # Errors
    /// If not, or if there is no radio link.
    pub fn check(&self, change: &Change) -> Result<(), CommandError> {
        change.check()?;
        let foreign = |what, help| Err(CommandError::Foreign { key: change.kind().name(), what, help });
        let (Some(air), Some(radio)) = (self.radio(), &self.config.radio) else {
            return foreign("a call without a radio link", "give the bearer one, or change the fixed network");
        };
        match change {
            Change::Outage(_) | Change::Handover { buffer: Buffer::Keep, .. } => Ok(()),
            Change::Handover { buffer: Buffer::Discard, .. } => {
                foreign("a call", "the interworking function stays the same: leave out `buffer`, or write `keep`")
            }
            Change::Channels(channels) if *channels <= radio.slots => Ok(()),
            Change::Channels(channels) => Err(CommandError::Capacity {
                key: change.kind().name(),
                pdus: u64::from(*channels),
                max: radio.slots,
                pdu: air.payload(),
            }),
            Change::Rate(_) => foreign("a call", "its rate follows from `radio.channel` and the number of `channels`"),
            Change::Delay(_) => foreign("a traffic channel", "its delay follows from interleaving"),
            Change::Loss(_) | Change::Level(_) | Change::Class(_) => foreign("a traffic channel", "it has a `bler`"),
            Change::Bler(_) | Change::CarrierToInterference(_) | Change::Environment(_) => {
                air.conditions().check(change)
            }
        }
    }

    /// Changes the conditions of its radio link, which was checked before.
    pub fn command(&mut self, now: Instant, change: &Change, cx: &mut Context<'_>) {
        let is_up = self.call == Call::Up;
        let Some(radio) = self.radio_mut() else { return };
        match change {
            Change::Channels(channels) => radio.set_slots(now, *channels, cx),
            Change::Handover { gap, .. } if is_up => radio.hand_over(now, *gap, cx),
            _ => match change.interruption() {
                Some((span, _)) => radio.interrupt(now, span),
                None => radio.conditions_mut().command(now, change).expect("it was checked before"),
            },
        }
    }

    /// Passes octets that left link `index` to the next, or to the far end.
    fn pass_on(&mut self, now: Instant, index: usize) {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        for Outcome { direction, fate, run } in outcomes.drain(..) {
            let next = match direction {
                Direction::Down => Some(index + 1).filter(|next| *next < self.links.len()),
                Direction::Up => index.checked_sub(1),
            };
            match next {
                Some(next) if fate == Fate::Delivered => self.links[next].offer(now, direction, run),
                _ => self.ppp[direction as usize].settle(run, fate),
            }
        }
        self.outcomes = outcomes;
    }

    /// Holds each link while the next has no room, as RNR of RLP (TS 24.022) and of V.42 (§8.4) and
    /// the flow control of L2R (TS 27.002) and of serial interfaces do. The next has room while it
    /// has fewer octets than keep it busy until more come. How much a device stores is its maker's
    /// choice; that is the least that costs no throughput.
    fn control_flow(&mut self, now: Instant) {
        let links = &mut self.links;
        let last = links.len() - 1;
        // From the far end, so that what one link lets go makes room for the one before it.
        for index in (0..last).rev() {
            Timed::control_flow(links, now, Direction::Down, (index, index + 1));
        }
        for index in 1..=last {
            Timed::control_flow(links, now, Direction::Up, (index, index - 1));
        }
    }

    /// Frames packets while the first link has too few octets.
    fn feed(&mut self, now: Instant, direction: Direction, cx: &mut Context<'_>) {
        let first = match direction {
            Direction::Down => 0,
            Direction::Up => self.links.len() - 1,
        };
        let Self { links, ppp, counters, .. } = self;
        cx.direction = direction;
        while links[first].link.waiting(direction) < u64::from(links[first].link.takes_at_once()) {
            let dropped = |packet: Packet, cx: &mut Context<'_>| {
                counters[direction as usize].lose(&packet, DropCause::QueueManagement);
                cx.drop_packet(now, packet, DropCause::QueueManagement);
            };
            let Some(run) = ppp[direction as usize].frame(now, cx, dropped) else { break };
            links[first].offer(now, direction, run);
        }
    }

    /// The call is lost, and all that is inside with it.
    fn lose_call(&mut self, now: Instant, cx: &mut Context<'_>) {
        for index in 0..self.links.len() {
            self.links[index].restart(&self.config, &mut self.outcomes);
            let mut outcomes = std::mem::take(&mut self.outcomes);
            for Outcome { direction, fate, run } in outcomes.drain(..) {
                self.ppp[direction as usize].settle(run, fate);
            }
            self.outcomes = outcomes;
        }
        for direction in Direction::BOTH {
            cx.direction = direction;
            let mut lost = Vec::new();
            self.ppp[direction as usize].clear(now, |packet| lost.push(packet));
            for packet in lost {
                self.drop_packet(now, direction, packet, DropCause::AttemptsExhausted, cx);
            }
        }
        self.call = match self.config.call.dial {
            Dial::Before => Call::Lost,
            Dial::FirstPacket => Call::Idle,
        };
        self.count(|totals| totals.link_failures += 1);
        self.report_link(now, LinkState::Disconnected, cx);
    }

    /// The run ends at `now`.
    pub fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        if let Some(radio) = self.radio_mut() {
            radio.end(now, cx);
        }
    }

    fn count(&mut self, count: impl FnOnce(&mut ConnectionTotals)) {
        if let Some(radio) = self.radio_mut() {
            count(radio.connection_totals_mut());
        }
    }

    fn report_link(&mut self, now: Instant, state: LinkState, cx: &mut Context<'_>) {
        if let Some(radio) = self.radio_mut() {
            radio.report_link(now, state, cx);
        }
    }

    fn drop_packet(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        cause: DropCause,
        cx: &mut Context<'_>,
    ) {
        self.counters[direction as usize].lose(&packet, cause);
        cx.drop_packet(now, packet, cause);
    }
}

impl Member for Circuit {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        cx.direction = direction;
        self.counters[direction as usize].offer(&packet);
        let cause = if matches!(self.call, Call::Lost) {
            Some(DropCause::AttemptsExhausted)
        } else {
            let Self { ppp, counters, .. } = &mut *self;
            let lost = |packet| {
                counters[direction as usize].lose(&packet, DropCause::QueueFull);
                cx.drop_packet(now, packet, DropCause::QueueFull);
            };
            ppp[direction as usize].enqueue(now, packet, lost).err()
        };
        if let Some(cause) = cause {
            self.drop_packet(now, direction, packet, cause, cx);
            return Admission::Dropped(cause);
        }
        cx.packet(now, packet, || {
            let (backlog_packets, backlog_bytes) = self.ppp[direction as usize].backlog();
            PacketStep::Queued { backlog_packets, backlog_bytes }
        });
        match self.call {
            Call::Idle => {
                self.call = Call::SettingUp(now + self.config.call.set_up);
                self.report_link(now, LinkState::SetUp, cx);
            }
            Call::Up => self.feed(now, direction, cx),
            Call::SettingUp(_) | Call::Lost => {}
        }
        Admission::Queued
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        while self.left.is_empty()
            && let Some(at) = self.next_event().filter(|at| *at <= now)
        {
            self.step(at, cx);
        }
        let (direction, departure) = self.left.pop_front()?;
        self.counters[direction as usize].deliver(&departure.packet);
        cx.direction = direction;
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        Some((direction, departure))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.left.front().map(|(_, departure)| departure.due).or_else(|| self.next_event())
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        self.counters[direction as usize]
    }
}

impl Timed {
    fn new(link: Link) -> Self {
        Self { next_event: link.next_event(), link }
    }

    fn offer(&mut self, now: Instant, direction: Direction, run: Run) {
        self.link.offer(now, direction, run);
        self.next_event = self.link.next_event();
    }

    fn step(&mut self, now: Instant, outcomes: &mut Vec<Outcome>, cx: &mut Context<'_>) {
        self.link.step(now, outcomes, cx);
        self.next_event = self.link.next_event();
    }

    /// Holds a link while the next one has no room.
    fn control_flow(links: &mut [Self], now: Instant, direction: Direction, (index, next): (usize, usize)) {
        let has_room = links[next].link.waiting(direction)
            < links[index].link.in_flight() + u64::from(links[next].link.takes_at_once());
        let Self { link, next_event } = &mut links[index];
        if link.hold(now, direction, !has_room) {
            *next_event = link.next_event();
        }
    }

    fn restart(&mut self, config: &Config, outcomes: &mut Vec<Outcome>) {
        self.link.restart(config, outcomes);
        self.next_event = self.link.next_event();
    }
}

impl Link {
    fn waiting(&self, direction: Direction) -> u64 {
        match self {
            Self::Modem(modem) => modem.waiting(direction),
            Self::Radio(radio) => radio.waiting(direction),
        }
    }

    fn takes_at_once(&self) -> u32 {
        match self {
            Self::Modem(modem) => modem.takes_at_once(),
            Self::Radio(radio) => radio.takes_at_once(),
        }
    }

    fn in_flight(&self) -> u64 {
        match self {
            Self::Modem(modem) => modem.in_flight(),
            Self::Radio(radio) => radio.in_flight(),
        }
    }

    fn hold(&mut self, now: Instant, direction: Direction, is_held: bool) -> bool {
        match self {
            Self::Modem(modem) => modem.hold(now, direction, is_held),
            Self::Radio(radio) => radio.hold(now, direction, is_held),
        }
    }

    fn is_disconnected(&self) -> bool {
        match self {
            Self::Modem(modem) => modem.is_disconnected(),
            Self::Radio(radio) => radio.is_disconnected(),
        }
    }

    fn offer(&mut self, now: Instant, direction: Direction, run: Run) {
        match self {
            Self::Modem(modem) => modem.offer(now, direction, run),
            Self::Radio(radio) => radio.offer(now, direction, run),
        }
    }

    fn next_event(&self) -> Option<Instant> {
        match self {
            Self::Modem(modem) => modem.next_event(),
            Self::Radio(radio) => radio.next_event(),
        }
    }

    fn step(&mut self, now: Instant, outcomes: &mut Vec<Outcome>, cx: &mut Context<'_>) {
        match self {
            Self::Modem(modem) => modem.step(now, outcomes),
            Self::Radio(radio) => radio.step(now, outcomes, cx),
        }
    }

    fn restart(&mut self, config: &Config, outcomes: &mut Vec<Outcome>) {
        match self {
            Self::Modem(modem) => modem.restart(outcomes),
            Self::Radio(radio) => {
                radio.restart(config.radio.as_ref().expect("there is a radio link"), outcomes);
            }
        }
    }
}
