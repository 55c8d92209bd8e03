//! The bearer: two cells, the PDCP above them, and the secondary cell group of each mobile.
//!
//! What happens in the cells is handled at its exact time, so that what moves from one to the other
//! does not depend on when the bearer is polled.

use std::collections::VecDeque;

use airpath_core::{
    CellGroupState, ConnectionTotals, Context, Direction, DropCause, Dropped, Instant, Packet, PacketCounters,
    PacketStep, RadioTotals, Seed, UserId, earliest,
};
use airpath_link::command::Change;
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

use super::ConfigError;
use super::config::{CellGroup, Config, Uplink};
use super::events::OfCell;
use super::mobile::Mobile;
use super::pdcp::Received;
use super::secondary_group::{Parameters, SecondaryGroup};
use crate::common::multiplexing::tournament::Tournament;
use crate::ofdma::cell::Cell;
use crate::ofdma::plan::Plan;
use crate::ofdma::user::{Connection, User};

/// What messages call it.
const NAME: &str = "a bearer with EN-DC";
const ONE_DIRECTION: &str = "one direction of a bearer with EN-DC";

/// An LTE cell and an NR cell with their mobiles.
#[derive(Debug)]
pub struct EnDc {
    /// That of LTE and that of NR.
    cells: [Cell; 2],
    mobiles: Vec<Mobile>,
    /// When something happens in each mobile outside the cells.
    events: Tournament,
    parameters: Parameters,
    uplink: Uplink,
    /// Mobiles with packets inside.
    busy: usize,
    /// Those whose uplink may be split: they had packets inside when it was last looked at.
    splitting: Vec<usize>,
    counters: [PacketCounters; 2],
    departures: VecDeque<(Direction, Departure)>,
    /// Packets that a cell has dropped, and mobiles of a cell; kept for their memory.
    dropped: Vec<Dropped>,
    re_established: Vec<(usize, DropCause)>,
}

impl EnDc {
    /// Idle cells with `users` mobiles. Generator streams are below `name/master` and
    /// `name/secondary`, those of an LTE and an NR cell. The `conditions` of both are in
    /// `name/user-N`: a mobile is at one place.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        let [master, secondary] = config.parameters()?;
        let cell = |group: CellGroup, parameters| {
            let own = format!("{name}/{}", group.table());
            Cell::new(parameters, users, seed, &own, name).map_err(|error| config.error_in(group, error))
        };
        let (master, secondary) = (cell(CellGroup::Master, &master)?, cell(CellGroup::Secondary, &secondary)?);
        let mobile = |index| Mobile::new(UserId::new(index as u32), config.secondary.pdcp.t_reordering);
        Ok(Self {
            cells: [master, secondary],
            mobiles: (0..users).map(mobile).collect(),
            events: Tournament::new(users),
            parameters: Parameters {
                addition: config.addition.clone(),
                release: config.release.clone(),
                random_access: config.secondary.uplink.random_access.clone(),
            },
            uplink: config.uplink.clone(),
            busy: 0,
            splitting: Vec::new(),
            counters: Default::default(),
            departures: VecDeque::new(),
            dropped: Vec::new(),
            re_established: Vec::new(),
        })
    }

    /// Calls a cell. Its events are passed on, and the packets that it drops.
    fn call<R>(
        &mut self,
        group: CellGroup,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut Cell, &mut Context<'_>) -> R,
    ) -> R {
        let mut dropped = std::mem::take(&mut self.dropped);
        let at = cx.at;
        let (mobiles, uplink) = (&self.mobiles, &self.uplink);
        let carrier = |index: usize, direction| mobiles[index].carrier(direction, uplink);
        let mut sink = OfCell { cx, group, carrier };
        let mut inner = Context::new(Some(&mut sink), &mut dropped, at);
        let result = call(&mut self.cells[group as usize], &mut inner);
        for Dropped { time, packet, cause } in dropped.drain(..) {
            if let Some(direction) = self.mobiles[packet.user.index()].withdraw(time, packet.id) {
                self.lose(time, direction, packet, cause, cx);
                self.deliver(time, packet.user.index(), direction);
                self.update(packet.user.index());
            }
        }
        self.dropped = dropped;
        result
    }

    /// Lets a mobile do something in a cell.
    fn with_user<R>(
        &mut self,
        group: CellGroup,
        index: usize,
        now: Instant,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut User, &mut Plan, &mut Context<'_>) -> R,
    ) -> R {
        self.call(group, cx, |cell, cx| cell.with_user(index, now, cx, act))
    }

    fn lose(&mut self, now: Instant, direction: Direction, packet: Packet, cause: DropCause, cx: &mut Context<'_>) {
        self.leave(packet.user.index());
        self.counters[direction as usize].lose(&packet, cause);
        cx.direction = direction;
        cx.drop_packet(now, packet, cause);
    }

    /// A packet of a mobile is not inside any more.
    fn leave(&mut self, index: usize) {
        let mobile = &mut self.mobiles[index];
        mobile.inside -= 1;
        self.busy -= usize::from(mobile.inside == 0);
    }

    /// Handles all that happens up to `now`, each at its time.
    fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        loop {
            let wakeups = [self.cells[0].next_wakeup(), self.cells[1].next_wakeup()];
            let event = self.events.first().map(|(_, at)| at);
            let Some(at) = earliest([wakeups[0], wakeups[1], event]).filter(|at| *at <= now) else { return };
            for (group, wakeup) in CellGroup::BOTH.into_iter().zip(wakeups) {
                if wakeup.is_some_and(|wakeup| wakeup <= at) {
                    while let Some((direction, departure)) = self.call(group, cx, |cell, cx| cell.pop(at, cx)) {
                        self.receive(at, direction, departure.packet, cx);
                    }
                }
            }
            self.re_established(at, cx);
            self.split_uplinks(at, cx);
            if let Some((index, _)) = self.events.first().filter(|(_, event)| *event <= at) {
                self.work(at, index, cx);
                self.re_established(at, cx);
            }
        }
    }

    /// A packet has come out of a cell.
    fn receive(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) {
        let index = packet.user.index();
        self.cells[0].users[index].keep_connection(now);
        match self.mobiles[index].pdcp[direction as usize].receive(now, packet) {
            Received::InTime => self.deliver(now, index, direction),
            Received::Late => self.lose(now, direction, packet, DropCause::AttemptsExhausted, cx),
        }
        self.update(index);
    }

    /// Packets of a direction leave for which it is their turn.
    fn deliver(&mut self, now: Instant, index: usize, direction: Direction) {
        while let Some(packet) = self.mobiles[index].pdcp[direction as usize].pop() {
            self.departures.push_back((direction, Departure { due: now, packet }));
            self.leave(index);
        }
    }

    /// Does what is to be done for a mobile at `now`, outside its cells.
    fn work(&mut self, now: Instant, index: usize, cx: &mut Context<'_>) {
        for direction in Direction::BOTH {
            let pdcp = &mut self.mobiles[index].pdcp[direction as usize];
            if pdcp.next_timer().is_some_and(|at| at <= now) {
                pdcp.expire(now);
                self.deliver(now, index, direction);
            }
        }
        // A cell without packets has no wake-ups.
        self.call(CellGroup::Master, cx, |cell, cx| cell.advance(now, cx));
        let connection = self.cells[0].users[index].connection();
        let mobile = &mut self.mobiles[index];
        let is_due = mobile.group.next_event().is_some_and(|at| at <= now);
        match mobile.group {
            SecondaryGroup::Absent if matches!(connection, Connection::Until(_)) => {
                mobile.configure(now, &self.parameters);
                mobile.report(now, CellGroupState::Master, cx);
            }
            SecondaryGroup::Measured { .. } | SecondaryGroup::Active { .. } if is_due => self.measure(now, index, cx),
            SecondaryGroup::Added { .. } if is_due => self.add(now, index, cx),
            _ => {}
        }
        if self.mobiles[index].inside == 0 && matches!(connection, Connection::Until(at) if at <= now) {
            self.with_user(CellGroup::Master, index, now, cx, |user, _, cx| user.release_inactive(now, cx));
            if self.cells[0].users[index].connection() == Connection::None {
                self.release(now, index, cx);
                self.mobiles[index].group = SecondaryGroup::Absent;
            }
        }
        self.update(index);
    }

    /// The mobile measures its cells.
    fn measure(&mut self, now: Instant, index: usize, cx: &mut Context<'_>) {
        let is_constant = self.cells.iter().all(|cell| cell.users[index].is_constant());
        if !is_constant {
            self.call(CellGroup::Master, cx, |cell, cx| cell.measure(index, now, cx));
        }
        let sample = self.call(CellGroup::Secondary, cx, |cell, cx| cell.measure(index, now, cx));
        let sinr = sample.covered.then_some(sample.carrier_to_interference);
        let has_master = self.cells[0].users[index].is_covered();
        let Mobile { group, filter, .. } = &mut self.mobiles[index];
        // LTE configures NR.
        let sinr = sinr.filter(|_| has_master || group.is_active());
        let sinr = if is_constant { sinr } else { filter.measured(sinr, self.parameters.addition.measurement_period) };
        if group.measured(now, sinr, is_constant, &self.parameters) {
            self.fail(now, index, cx);
        }
    }

    /// The NR cell is there: what waits for it moves there.
    fn add(&mut self, now: Instant, index: usize, cx: &mut Context<'_>) {
        if !self.cells[0].users[index].is_covered() {
            self.mobiles[index].group.fail(now, &self.parameters);
            return;
        }
        self.mobiles[index].group.activate(now, &self.parameters);
        self.mobiles[index].report(now, CellGroupState::Secondary, cx);
        self.with_user(CellGroup::Secondary, index, now, cx, |user, _, cx| user.begin_group(now, cx));
        for direction in Direction::BOTH {
            if self.mobiles[index].carrier(direction, &self.uplink) == CellGroup::Secondary {
                let take = |user: &mut User, _: &mut Plan, _: &mut Context<'_>| user.take_waiting(now, direction);
                let packets = self.with_user(CellGroup::Master, index, now, cx, take);
                self.take_over(now, index, direction, packets, CellGroup::Secondary, cx);
            }
        }
    }

    /// The NR cell is not there any more: LTE sends again what did not arrive (data recovery, TS
    /// 38.323 §5.5).
    fn release(&mut self, now: Instant, index: usize, cx: &mut Context<'_>) {
        if !self.mobiles[index].group.is_active() {
            return;
        }
        let packets = self.with_user(CellGroup::Secondary, index, now, cx, |user, _, cx| user.end_group(now, cx));
        self.mobiles[index].group = SecondaryGroup::Absent;
        self.mobiles[index].report(now, CellGroupState::Master, cx);
        self.cells[0].users[index].carry_alone();
        for (direction, packets) in Direction::BOTH.into_iter().zip(packets) {
            self.take_over(now, index, direction, packets, CellGroup::Master, cx);
        }
    }

    /// The connection is lost, and with it the NR cell and what waits there.
    fn lose_group(&mut self, now: Instant, index: usize, cause: DropCause, cx: &mut Context<'_>) {
        if self.mobiles[index].group.is_active() {
            let packets = self.with_user(CellGroup::Secondary, index, now, cx, |user, _, cx| user.end_group(now, cx));
            self.mobiles[index].report(now, CellGroupState::Master, cx);
            self.cells[0].users[index].carry_alone();
            for (direction, packets) in Direction::BOTH.into_iter().zip(packets) {
                for packet in packets {
                    self.mobiles[index].withdraw(now, packet.id);
                    self.lose(now, direction, packet, cause, cx);
                }
                self.deliver(now, index, direction);
            }
        }
        self.mobiles[index].group = SecondaryGroup::Absent;
    }

    /// The radio link to the NR cell has failed (TS 37.340 §7.7).
    fn fail(&mut self, now: Instant, index: usize, cx: &mut Context<'_>) {
        self.release(now, index, cx);
        self.mobiles[index].group.fail(now, &self.parameters);
    }

    fn take_over(
        &mut self,
        now: Instant,
        index: usize,
        direction: Direction,
        packets: Vec<Packet>,
        group: CellGroup,
        cx: &mut Context<'_>,
    ) {
        if !packets.is_empty() {
            self.with_user(group, index, now, cx, |user, plan, cx| user.take_over(now, direction, packets, plan, cx));
        }
    }

    /// Handles what has started again in the cells: a handover or a failure of LTE releases the NR
    /// cell, which is added again later; a failure of NR releases it; a handover of NR does not.
    fn re_established(&mut self, now: Instant, cx: &mut Context<'_>) {
        let mut mobiles = std::mem::take(&mut self.re_established);
        self.cells[0].re_established(|index, cause| mobiles.push((index, cause)));
        for (index, cause) in mobiles.drain(..) {
            if self.cells[0].users[index].connection() == Connection::None {
                self.lose_group(now, index, cause, cx);
            } else if self.mobiles[index].group != SecondaryGroup::Absent {
                self.release(now, index, cx);
                let resumed = self.cells[0].users[index].sends_from(now);
                self.mobiles[index].configure(resumed, &self.parameters);
            }
            self.update(index);
        }
        self.cells[1].re_established(|index, cause| mobiles.push((index, cause)));
        for (index, cause) in mobiles.drain(..) {
            if cause != DropCause::Handover && self.mobiles[index].group.is_active() {
                self.fail(now, index, cx);
                self.update(index);
            }
        }
        self.re_established = mobiles;
    }

    /// Splits the uplink of all mobiles that have packets inside.
    fn split_uplinks(&mut self, now: Instant, cx: &mut Context<'_>) {
        let mut place = 0;
        while let Some(index) = self.splitting.get(place).copied() {
            self.split_uplink(now, index, cx);
            let mobile = &mut self.mobiles[index];
            mobile.is_splitting = mobile.inside > 0;
            if mobile.is_splitting {
                place += 1;
            } else {
                self.splitting.swap_remove(place);
            }
        }
    }

    /// Lets both cells carry the uplink of a mobile for which much waits: packets of the primary
    /// path move to the other cell when they are granted there (TS 38.323 §5.2.1).
    fn split_uplink(&mut self, now: Instant, index: usize, cx: &mut Context<'_>) {
        let Some(threshold) = self.uplink.ul_data_split_threshold else { return };
        if !self.mobiles[index].group.is_active() {
            return;
        }
        let primary = self.mobiles[index].carrier(Direction::Up, &self.uplink);
        let mobile = |group: CellGroup| &self.cells[group as usize].users[index];
        let [waiting, others] = [primary, primary.other()].map(|group| mobile(group).data_volume(Direction::Up));
        let (lacks, shared) = (mobile(primary.other()).lacks_up(), mobile(primary.other()).shared_up());
        if waiting == 0 && shared == 0 {
            return;
        }
        let is_split = waiting + others >= threshold.get();
        let take = |user: &mut User, _: &mut Plan, cx: &mut Context<'_>| user.take_first_up(now, lacks, cx);
        let packets = if is_split && lacks > 0 { self.with_user(primary, index, now, cx, take) } else { Vec::new() };
        let waiting = self.cells[primary as usize].users[index].data_volume(Direction::Up);
        let waiting = if is_split { waiting } else { 0 };
        if !packets.is_empty() || waiting != shared {
            let share = |user: &mut User, plan: &mut Plan, cx: &mut Context<'_>| {
                user.share_up(now, packets, waiting, plan, cx);
            };
            self.with_user(primary.other(), index, now, cx, share);
        }
    }

    /// Notes when something happens next in a mobile outside the cells.
    fn update(&mut self, index: usize) {
        let mobile = &self.mobiles[index];
        let connection = match self.cells[0].users[index].connection() {
            Connection::SetUp(until) if mobile.group == SecondaryGroup::Absent => Some(until),
            Connection::Until(at) if mobile.inside == 0 => Some(at),
            _ => None,
        };
        self.events.set(index, earliest([connection, mobile.next_event()]));
    }
}

impl Bearer for EnDc {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.advance(now, cx);
        let index = packet.user.index();
        self.cells[0].users[index].keep_connection(now);
        let group = self.mobiles[index].carrier(direction, &self.uplink);
        self.counters[direction as usize].offer(&packet);
        let mobile = &mut self.mobiles[index];
        mobile.pdcp[direction as usize].send(packet.id);
        self.busy += usize::from(mobile.inside == 0);
        mobile.inside += 1;
        if self.uplink.ul_data_split_threshold.is_some() && !std::mem::replace(&mut mobile.is_splitting, true) {
            self.splitting.push(index);
        }
        let admission = self.call(group, cx, |cell, cx| cell.push(now, direction, packet, cx));
        self.split_uplink(now, index, cx);
        self.update(index);
        admission
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        let (direction, departure) = self.departures.pop_front()?;
        self.counters[direction as usize].deliver(&departure.packet);
        cx.direction = direction;
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        Some((direction, departure))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let leaves = self.departures.front().map(|(_, departure)| departure.due);
        let event = self.events.first().filter(|_| self.busy > 0).map(|(_, at)| at);
        earliest([leaves, event, self.cells[0].next_wakeup(), self.cells[1].next_wakeup()])
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        self.counters[direction as usize]
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        let mut sum = RadioTotals::default();
        for cell in &self.cells {
            sum += cell.users.get(user.index())?.radio_totals(direction);
        }
        Some(sum)
    }

    /// Those of LTE, which has the connection.
    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        self.cells[CellGroup::Master as usize].users.get(user.index()).map(User::connection_totals)
    }

    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        for group in CellGroup::BOTH {
            self.call(group, cx, |cell, cx| cell.users.iter_mut().for_each(|user| user.end(now, cx)));
        }
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.cells.iter().try_for_each(|cell| cell.directions(command, NAME, ONE_DIRECTION).map(drop))
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        self.check(command)?;
        self.advance(now, cx);
        let concerned = match command.user {
            Some(user) => user.index()..user.index() + 1,
            None => 0..self.mobiles.len(),
        };
        let directions = self.cells[0].directions(command, NAME, ONE_DIRECTION)?;
        // A handover is one of LTE: NR is released before.
        let is_handover = matches!(command.change, Change::Handover { .. });
        for index in concerned.clone().filter(|_| is_handover) {
            if self.mobiles[index].group.is_active() {
                self.fail(now, index, cx);
            }
        }
        for group in CellGroup::BOTH.into_iter().filter(|group| !is_handover || *group == CellGroup::Master) {
            self.call(group, cx, |cell, cx| cell.command(now, command, &directions, cx));
        }
        self.re_established(now, cx);
        for index in concerned {
            self.mobiles[index].group.measure_again(now, &self.parameters);
            self.update(index);
        }
        command.report(now, cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{ComponentId, Span};

    use super::*;
    use crate::conditions::Sample;

    /// What a mobile has in both cells every half second, with the network of LTE in each and
    /// conditions that `more` has.
    fn samples(more: &str) -> Vec<[Sample; 2]> {
        let preset = include_str!("../../../../presets/nr-n71-fdd-20mhz-nsa.toml");
        let mut bearer = preset.parse::<toml::Table>().expect("TOML")["bearer"].as_table().expect("a table").clone();
        bearer.remove("model");
        let mut config: Config = bearer.try_into().expect("parameters");
        config.secondary.conditions = config.master.conditions.clone();
        let conditions: toml::Table = more.parse().expect("TOML");
        let read = |key: &str| conditions.get(key).map(|table| table.clone().try_into().expect("conditions"));
        config.conditions = read("conditions").unwrap_or_default();
        for (own, key) in [(&mut config.master.conditions, "master"), (&mut config.secondary.conditions, "secondary")] {
            *own = crate::conditions::Config { network: own.network.clone(), ..read(key).unwrap_or_default() };
        }
        config.conditions.of_mobiles = vec![None, read("mobile")];
        let mut bearer = EnDc::new(&config, 2, Seed::new(7), "cell").expect("sound parameters");
        let mut dropped = Vec::new();
        let mut cx = Context::new(None, &mut dropped, ComponentId(0));
        (0..600)
            .map(|step| {
                let at = Instant::ZERO + Span::from_millis(500).saturating_mul(step);
                CellGroup::BOTH.map(|group| bearer.cells[group as usize].measure(1, at, &mut cx))
            })
            .collect()
    }

    const WALK: &str = "{ cells = { count = 3, spacing = \"1 km\", setback = \"100 m\", antenna = \"30 m\" }, \
        movement = { speed = \"30 km/h\", from = \"0 m\", to = \"2 km\", path = \"to-and-fro\" }, \
        shadowing = { deviation = \"8 dB\", correlation_distance = \"20 m\" } }";

    #[test]
    fn a_mobile_is_at_one_place_in_both_cells() {
        let share_equal = |more: &str| {
            let samples = samples(more);
            samples.iter().filter(|[master, secondary]| master == secondary).count() as f64 / samples.len() as f64
        };
        assert_eq!(share_equal(&format!("conditions = {WALK}")), 1.0);
        assert_eq!(share_equal(&format!("conditions.ci = \"20 dB\"\nmobile = {WALK}")), 1.0, "one mobile alone");
        assert_eq!(share_equal(&format!("master = {WALK}\nsecondary = {WALK}")), 1.0, "in the tables of the cells");
        let levels = format!("master.ci = \"3 dB\"\nsecondary.ci = \"9 dB\"\nmobile = {WALK}");
        assert_eq!(share_equal(&levels), 1.0, "one mobile, beside tables of the cells");
        let levels = samples(&format!("conditions = {WALK}\nsecondary.ci = \"3 dB\""));
        assert!(levels.iter().all(|[master, secondary]| master.level.is_some() && secondary.level.is_none()));
    }
}
