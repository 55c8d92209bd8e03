//! One mobile: two links, the RLC entity over both, its RRC connection, and what movement does to
//! them.
//!
//! What happens inside happens at exact times, worked off in their order: blocks arrive, timers
//! expire, states change, TTIs begin. A mobile without packets needs no wake-up; what is
//! still to happen then (the last reports, demotions) is worked off when it is called next.

mod change;
mod movement;
mod reconnection;

use airpath_core::{
    Aspect, Classes, ConnectionTotals, Context, Direction, DropCause, Instant, LinkState, Packet, PacketCounters,
    PacketStep, RadioEvent, RadioTotals, RrcState, Seed, StateValue, UserId, earliest,
};
use airpath_link::{Admission, Departure};

use super::config::{Config, Format, Mobility};
use super::radio_link::RadioLink;
use super::rrc::Rrc;
use super::switching::Switching;
use crate::common::arq::rlc_am::{Carried, Control, Late, Resets};
use crate::common::log::Tracks;
use crate::common::multiplexing::members::Member;
use crate::conditions::{Conditions, Sample};
use crate::umts::ConfigError;
use movement::Coverage;
use reconnection::Reconnection;

/// One mobile and its bearer.
#[derive(Debug)]
pub struct Mobile {
    user: UserId,
    /// Down and up, by [`Direction`].
    links: [RadioLink; 2],
    switching: [Option<Switching>; 2],
    rrc: Rrc,
    /// What the common channels carry in CELL_FACH, down and up.
    common: [Option<Format>; 2],
    resets: Resets,
    conditions: Conditions,
    mobility: Mobility,
    coverage: Coverage,
    reconnection: Option<Reconnection>,
    /// Until when the driver keeps what the mobile gets.
    held_until: Instant,
    tracks: Tracks,
    /// Packets that a queue dropped in the current TTI; kept for its memory.
    dropped: Vec<Packet>,
    /// All that happens up to here has happened.
    clock: Instant,
}

impl Mobile {
    /// An idle mobile, with streams below `path`.
    pub fn new(config: &Config, user: u32, seed: Seed, path: &str) -> Result<Self, ConfigError> {
        let (down, up) = (&config.downlink, &config.uplink);
        let switching = || config.switching.as_ref().map(|switching| Switching::new(switching.clone()));
        let mut links = [
            RadioLink::new(down, Direction::Down, &up.rlc, seed, path)?,
            RadioLink::new(up, Direction::Up, &down.rlc, seed, path)?,
        ];
        if config.switching.is_some() {
            // A bearer that can be switched begins with the slowest format.
            links.iter_mut().for_each(|link| link.format = 0);
        }
        let conditions = Conditions::new(&config.conditions, user as usize, seed, &format!("{path}/conditions"))?;
        links.iter_mut().for_each(|link| link.fade(conditions.profile()));
        Ok(Self {
            user: UserId::new(user),
            links,
            switching: [switching(), switching()],
            rrc: Rrc::new(config.rrc.as_ref()),
            common: [config.rrc.as_ref().map(|rrc| rrc.fach), config.rrc.as_ref().map(|rrc| rrc.rach)],
            resets: Resets::new(&down.rlc, &up.rlc),
            conditions,
            mobility: config.mobility.clone(),
            reconnection: config
                .mobility
                .reconnection
                .clone()
                .map(|reconnection| Reconnection::new(reconnection, seed, path)),
            coverage: Coverage::default(),
            held_until: Instant::ZERO,
            tracks: Tracks::new(UserId::new(user)),
            dropped: Vec::new(),
            clock: Instant::ZERO,
        })
    }

    /// What it has sent or got on the air.
    pub fn radio_totals(&self, direction: Direction) -> RadioTotals {
        self.links[direction as usize].totals
    }

    /// What happened to its connection.
    pub const fn connection_totals(&self) -> ConnectionTotals {
        self.tracks.totals
    }

    /// The run ends at `now`.
    pub fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.tracks.settle(now, cx);
    }

    /// When something happens next inside.
    #[inline]
    fn next_event(&self) -> Option<Instant> {
        let after = self.clock;
        let is_empty = self.links.iter().all(RadioLink::is_empty);
        let [down, up] = [self.links[0].next_event(after), self.links[1].next_event(after)];
        let reset = self.resets.next_timer();
        let reconnected = self.reconnection.as_ref().and_then(Reconnection::next_change);
        // What has become due by a change that came late, as inactivity does when the last packet
        // arrives, is due at once.
        earliest([down, up, reset, reconnected, self.rrc.next_change(is_empty)]).map(|at| at.max(after))
    }

    /// Works off all that happens up to `now`.
    fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.clock = at;
            self.work(at, cx);
        }
        self.clock = now;
    }

    /// What happens at one time: what comes in first, what goes out last.
    fn work(&mut self, now: Instant, cx: &mut Context<'_>) {
        for direction in Direction::BOTH {
            self.receive(now, direction, cx);
        }
        for link in &mut self.links {
            link.rlc.expire(now, cx);
        }
        self.expire_reset(now, cx);
        if self.reconnection.as_ref().and_then(Reconnection::next_change).is_some_and(|at| at <= now) {
            self.reconnect(now, cx);
        }
        let is_empty = self.links.iter().all(RadioLink::is_empty);
        if self.rrc.next_change(is_empty).is_some_and(|at| at <= now) {
            // A handover before `now` is one of the state that ends.
            self.look_around(now, cx);
        }
        let was_idle = self.rrc.state() == RrcState::Idle;
        if self.rrc.change(now, is_empty) {
            self.tracks.totals.set_ups += u32::from(was_idle);
            self.enter_state(now, cx);
        }
        for direction in Direction::BOTH {
            if self.links[direction as usize].tti_at == Some(now) {
                self.links[direction as usize].tti_at = None;
                self.transmit(now, direction, cx);
            }
        }
        self.schedule(now);
        self.report_stall(now, cx);
    }

    /// Whether the window of an RLC is why nothing is sent.
    fn report_stall(&mut self, now: Instant, cx: &mut Context<'_>) {
        if cx.wants(Classes::STATE) {
            let is_stalled = self.links.iter().any(|link| link.rlc.is_stalled(now));
            self.tracks.stalled(now, is_stalled, cx);
        }
    }

    /// Takes what has come over a link.
    fn receive(&mut self, now: Instant, direction: Direction, cx: &mut Context<'_>) {
        let mut polled = false;
        loop {
            let [down, up] = &mut self.links;
            let (link, opposite) = if direction == Direction::Down { (down, up) } else { (up, down) };
            let Some(received) = link.receive(now, &mut polled) else { break };
            for number in received.reports.numbers() {
                link.rlc.hand_report_to(number, &mut opposite.rlc);
            }
            match received.control {
                Some(Control::Reset { sequence }) => {
                    if self.resets.receive(sequence) {
                        self.reset_rlc(now, cx);
                    }
                    self.links[direction.opposite() as usize].rlc.control = Some(Control::ResetAck { sequence });
                }
                Some(Control::ResetAck { sequence }) => self.reset_acknowledged(now, direction, sequence, cx),
                Some(discard) => link.rlc.take_discard(now, discard, &mut opposite.rlc),
                None => {}
            }
        }
        if polled {
            self.links[direction.opposite() as usize].rlc.reporting.trigger();
        }
        self.hold(direction);
    }

    /// What the driver keeps is not with IP before it lets it go.
    fn hold(&mut self, direction: Direction) {
        if direction == Direction::Down {
            let held_until = self.held_until;
            let late = self.links[0].rlc.departures.iter_mut().rev().take_while(|departure| departure.due < held_until);
            late.for_each(|departure| departure.due = held_until);
        }
    }

    /// What a link's channel carries now; `None` if it has none.
    fn channel(&self, direction: Direction) -> Option<&Format> {
        if self.rrc.is_promoted() || self.has_lost_connection() {
            return None;
        }
        let link = &self.links[direction as usize];
        match self.rrc.state() {
            RrcState::Idle | RrcState::CellPch => None,
            RrcState::CellFach => self.common[direction as usize].as_ref(),
            RrcState::CellDch => Some(&link.formats[link.format]),
        }
    }

    /// Finds the next TTI of each link that has something to send.
    fn schedule(&mut self, now: Instant) {
        for direction in Direction::BOTH {
            let link = &self.links[direction as usize];
            if link.tti_at.is_some() || !link.has_something(now) {
                continue;
            }
            let Some(tti) = self.channel(direction).map(|format| format.tti) else { continue };
            // What arrives at the very beginning of a TTI goes in the next one.
            let next = Instant::from_nanos(now.as_nanos() + 1).max(link.blocked_until).max(self.coverage.next_search);
            self.links[direction as usize].tti_at = Some(next.round_up_to(tti));
        }
    }

    /// One TTI of a link.
    fn transmit(&mut self, now: Instant, direction: Direction, cx: &mut Context<'_>) {
        let sample = self.look_around(now, cx);
        let index = direction as usize;
        if !self.coverage.is_covered() || self.links[index].blocked_until > now {
            return;
        }
        let is_dedicated = self.rrc.state() == RrcState::CellDch;
        if is_dedicated && self.switch(now, direction, &sample, cx) {
            return;
        }
        let Some(format) = self.channel(direction).copied() else { return };
        self.report_tracks(now, direction, &sample, cx);
        let (ci, needs) = (self.links[index].ci(&sample), self.links[index].needs(&format));
        let [down, up] = &mut self.links;
        let (link, opposite) = if direction == Direction::Down { (down, up) } else { (up, down) };
        let (carried, errored) = link.send(
            now,
            &format,
            &opposite.rlc,
            |errors| errors.is_errored(now, format.tti, ci, needs),
            &mut self.dropped,
        );
        link.rlc.lose(now, &mut self.dropped, cx);
        if carried.pdus > 0 {
            self.report(now, direction, &format, carried, errored, cx);
        }
        // MaxDAT reached without a discard (`RlcAm::give_up`), or MaxMRW. Next: `expire_reset`.
        if carried.exhausted && !self.resets.is_running() {
            self.begin_reset(now, direction, cx);
        }
        if carried.data > 0 {
            self.rrc.active(now);
        }
    }

    fn report(
        &mut self,
        now: Instant,
        direction: Direction,
        format: &Format,
        carried: Carried,
        errored: bool,
        cx: &mut Context<'_>,
    ) {
        let link = &mut self.links[direction as usize];
        let event = RadioEvent {
            direction,
            user: self.user,
            duration: format.tti,
            pdus: carried.pdus as u16,
            repeated: carried.repeated as u16,
            errored: if errored { carried.pdus as u16 } else { 0 },
            bytes: carried.pdus * link.rlc.pdu,
            level: 0,
            control: 0,
        };
        link.totals.add(&event);
        cx.radio(now, || event);
    }

    /// Chooses another format, if that is better. Returns whether the TTI is lost to that.
    fn switch(&mut self, now: Instant, direction: Direction, sample: &Sample, cx: &mut Context<'_>) -> bool {
        let index = direction as usize;
        let (Some(switching), link) = (&mut self.switching[index], &mut self.links[index]) else { return false };
        let waits = link.rlc.sender.backlog().1;
        let sent = link.totals.bytes;
        let Some(format) = switching.choose(now, link, link.ci(sample), waits, sent) else {
            return false;
        };
        link.format = format;
        link.blocked_until = link.blocked_until.max(now + switching.gap());
        let waits = link.blocked_until > now;
        self.report_slots(now, direction, cx);
        waits
    }

    /// A PDU may not be sent once more: both ends are reset.
    fn begin_reset(&mut self, now: Instant, direction: Direction, cx: &mut Context<'_>) {
        self.resets.begin(now, direction, &mut self.links[direction as usize].rlc);
        self.tracks.link(now, LinkState::Reset, cx);
    }

    /// After MaxRST RESETs without an answer. Next: `fail` in `mobile/movement.rs`.
    fn expire_reset(&mut self, now: Instant, cx: &mut Context<'_>) {
        match self.resets.expire(now) {
            Some(Late::Again(direction, reset)) => self.links[direction as usize].rlc.control = Some(reset),
            Some(Late::Failed) => self.fail(now, cx),
            None => {}
        }
    }

    /// The entity is reset, both ways: packets sent and not delivered are lost (TS 25.322
    /// §11.4.3).
    fn reset_rlc(&mut self, now: Instant, cx: &mut Context<'_>) {
        for link in &mut self.links {
            link.reset(now, DropCause::AttemptsExhausted, cx);
        }
    }

    /// The answer has come over the link of `direction`.
    fn reset_acknowledged(&mut self, now: Instant, direction: Direction, sequence: u64, cx: &mut Context<'_>) {
        if let Some(goes_on) = self.resets.acknowledged(direction, sequence) {
            self.links[goes_on as usize].rlc.is_stopped = false;
            self.tracks.link(now, LinkState::Connected, cx);
        }
    }

    /// `bytes` wait in a direction: the RRC connection may need another state, unless it is
    /// lost and `reconnect` sets it up.
    fn waits(&mut self, now: Instant, direction: Direction, bytes: u64) {
        if !self.has_lost_connection() {
            self.rrc.waits(self.free_from(now), direction, bytes);
        }
    }

    /// The RRC connection is in another state.
    fn enter_state(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.report_state(now, cx);
        for direction in Direction::BOTH {
            let link = &mut self.links[direction as usize];
            link.tti_at = None;
            if self.rrc.state() == RrcState::CellDch && self.switching[direction as usize].is_some() {
                link.format = 0;
            }
            let waits = link.rlc.sender.backlog().1;
            self.waits(now, direction, waits);
            self.report_slots(now, direction, cx);
        }
    }

    fn report_tracks(&mut self, now: Instant, direction: Direction, sample: &Sample, cx: &mut Context<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        self.tracks.connected(now, self.resets.is_running(), cx);
        self.report_state(now, cx);
        self.tracks.radio(now, sample, cx);
        self.report_slots(now, direction, cx);
    }

    fn report_state(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.tracks.report(now, None, Aspect::Rrc, self.rrc.state().into(), cx);
    }

    /// What a TTI carries: none without a channel.
    fn report_slots(&mut self, now: Instant, direction: Direction, cx: &mut Context<'_>) {
        let pdus = self.channel(direction).map_or(0, |format| format.pdus);
        self.tracks.report(now, Some(direction), Aspect::Slots, StateValue::Number(f64::from(pdus)), cx);
    }
}

impl Member for Mobile {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.advance(now, cx);
        if self.coverage.is_released() || self.may_lose_by_handover() {
            // A handover of the past does not concern this packet.
            self.look_around(now, cx);
            self.advance(now, cx);
        }
        cx.direction = direction;
        let link = &mut self.links[direction as usize];
        link.rlc.counters.offer(&packet);
        let cause = if self.coverage.is_released() {
            Some(DropCause::AttemptsExhausted)
        } else {
            link.rlc.enqueue(now, packet, cx).err()
        };
        if let Some(cause) = cause {
            link.rlc.counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
            return Admission::Dropped(cause);
        }
        let (backlog_packets, backlog_bytes) = link.rlc.sender.backlog();
        cx.packet(now, packet, || PacketStep::Queued { backlog_packets, backlog_bytes });
        self.waits(now, direction, backlog_bytes);
        self.schedule(now);
        self.report_stall(now, cx);
        Admission::Queued
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        let due = |link: &RadioLink| link.rlc.departures.front().map(|departure| departure.due);
        let direction = match (due(&self.links[0]), due(&self.links[1])) {
            (Some(down), Some(up)) if up < down => Direction::Up,
            (None, Some(_)) => Direction::Up,
            (None, None) => return None,
            _ => Direction::Down,
        };
        let link = &mut self.links[direction as usize];
        let departure = *link.rlc.departures.front().filter(|departure| departure.due <= now)?;
        link.rlc.departures.pop_front();
        link.rlc.counters.deliver(&departure.packet);
        cx.direction = direction;
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        Some((direction, departure))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let departs =
            self.links.iter().filter_map(|link| link.rlc.departures.front()).map(|departure| departure.due).min();
        // What has left the RLC needs nothing more than to be handed over.
        let is_empty = self.links.iter().all(RadioLink::is_empty);
        let event = if is_empty { None } else { self.next_event() };
        earliest([departs, event])
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        self.links[direction as usize].rlc.counters
    }
}
