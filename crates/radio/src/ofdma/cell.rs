//! The cell: its mobiles, and who gets what of each slot.
//!
//! In a slot of the downlink, the carriers are filled one after the other. On each, blocks that are
//! to be sent again come first; they have the same resource blocks as before. What is left goes to
//! mobiles that the scheduler chooses one after the other: each gets resource blocks for what waits
//! for it, at most all that are left. The uplink has one carrier. It is scheduled in the same way,
//! for the slots that the timeline has for grants of this one; what is sent again there keeps its
//! resource blocks.
//!
//! Only mobiles for which the base station can do something are looked at in a slot.

mod cell_group;
mod repeated;

use airpath_core::{Context, Direction, Instant, Packet, PacketCounters, Seed, earliest};
use airpath_link::command::Change;
use airpath_link::{Admission, BearerCommand, CommandError, Departure};

use super::harq::Process;
use super::plan::Plan;
use super::user::User;
use super::{ConfigError, Parameters};
use crate::common::multiplexing::tournament::Tournament;
use crate::common::shared_channel::scheduler::{Candidate, Scheduler};

/// A cell.
#[derive(Debug)]
pub struct Cell {
    plan: Plan,
    /// Of the downlink and of the uplink.
    schedulers: [Box<dyn Scheduler>; 2],
    pub users: Vec<User>,
    /// When something happens in each mobile.
    events: Tournament,
    /// When a packet leaves each.
    departures: Tournament,
    /// When the base station can do something for each: the beginning of a slot.
    turns: Tournament,
    /// The first slot that was not decided.
    next_slot: Instant,
    /// Whether each has packets inside, and how many have.
    is_busy: Vec<bool>,
    busy: usize,
    /// The layers below PDCP of a mobile have started again.
    has_re_established: bool,
    /// Of the current slot; kept for their memory.
    looked_at: Vec<usize>,
    carriers: Box<[Carrier]>,
    up: Vec<Candidate>,
    slot_candidates: Vec<Candidate>,
}

/// What a carrier of the downlink can send in a slot: blocks of mobiles again, and new ones.
#[derive(Clone, Debug, Default)]
struct Carrier {
    repeats: Vec<(usize, Process)>,
    candidates: Vec<Candidate>,
}

impl Cell {
    /// An idle cell with this number of mobiles, with streams below `name`, those of radio
    /// conditions below `conditions`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(
        parameters: &Parameters,
        count: usize,
        seed: Seed,
        name: &str,
        conditions: &str,
    ) -> Result<Self, ConfigError> {
        let station = &parameters.cell;
        let slot = parameters.timeline.pattern().duration();
        let scheduler = || station.scheduler.build(count, slot, BIT, station.scheduler_options, "cell");
        let schedulers = [scheduler()?, scheduler()?];
        let mut plan = Plan::new(parameters, seed, name)?;
        let of_user = |name: &str, index| format!("{name}/user-{index}");
        let user = |index| User::new(parameters, index, seed, &of_user(name, index), &of_user(conditions, index));
        let users = (0..count).map(user).collect::<Result<Vec<_>, _>>()?;
        plan.reserve_configured(users.iter().filter_map(User::configured_slot))?;
        Ok(Self {
            carriers: vec![Carrier::default(); plan.carriers].into(),
            plan,
            schedulers,
            users,
            events: Tournament::new(count),
            departures: Tournament::new(count),
            turns: Tournament::new(count),
            next_slot: Instant::ZERO,
            is_busy: vec![false; count],
            busy: 0,
            has_re_established: false,
            looked_at: Vec::new(),
            up: Vec::new(),
            slot_candidates: Vec::new(),
        })
    }

    /// Works off all that happens up to `now`.
    #[inline]
    pub fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        // Most packets come or leave together with others, so that nothing has happened since.
        let is_due = |first: Option<(usize, Instant)>| first.is_some_and(|(_, at)| at <= now);
        if is_due(self.events.first()) || is_due(self.turns.first()) {
            self.work_off(now, cx);
        }
    }

    fn work_off(&mut self, now: Instant, cx: &mut Context<'_>) {
        loop {
            let event = self.events.first().filter(|(_, at)| *at <= now);
            let turn = self.turns.first().map(|(_, at)| at).filter(|at| *at <= now);
            match (event, turn) {
                (Some((user, at)), turn) if turn.is_none_or(|turn| at <= turn) => {
                    self.users[user].work(at, &mut self.plan, cx);
                    self.update(user, at);
                }
                (_, Some(turn)) => self.decide(turn, cx),
                (_, None) => return,
            }
        }
    }

    /// Gives a mobile a packet.
    pub fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.advance(now, cx);
        let index = packet.user.index();
        let user = &mut self.users[index];
        if user.only_lengthens(direction, &self.plan) {
            self.begin_outside(now);
            return self.users[index].push_behind(now, direction, packet, &self.plan, cx);
        }
        let admission = user.push(now, direction, packet, &mut self.plan, cx);
        self.update_from_outside(index, now);
        admission
    }

    /// The directions that a command concerns, in a cell that messages call `cell`.
    ///
    /// # Errors
    /// If it cannot do that, or not in `one_direction`.
    pub fn directions(
        &self,
        command: &BearerCommand,
        cell: &'static str,
        one_direction: &'static str,
    ) -> Result<Vec<Direction>, CommandError> {
        let users = self.users.len();
        if let Some(user) = command.user.filter(|user| user.index() >= users) {
            return Err(CommandError::NoSuchUser { user: user.number(), users });
        }
        // A handover ends the connection of both directions.
        let concerns_both =
            command.change.needs_radio_conditions() || matches!(command.change, Change::Handover { .. });
        if concerns_both && command.direction.is_some() {
            let (key, what) = (command.change.kind().name(), one_direction);
            return Err(CommandError::Foreign { key, what, help: "it is that of both: leave out `direction`" });
        }
        // All mobiles are alike in what they can do.
        let first = self.users.first();
        command.directions(|_| first.map_or(Ok(()), |user| user.check(&command.change, cell)))
    }

    /// Changes the conditions of a mobile, or of all, which was checked before.
    pub fn command(&mut self, now: Instant, command: &BearerCommand, directions: &[Direction], cx: &mut Context<'_>) {
        let users = match command.user {
            Some(user) => user.index()..user.index() + 1,
            None => 0..self.users.len(),
        };
        for index in users {
            self.with_user(index, now, cx, |user, plan, cx| user.command(now, command, directions, plan, cx));
        }
    }

    /// Lets a mobile do something at `now`, from outside.
    pub(crate) fn with_user<R>(
        &mut self,
        index: usize,
        now: Instant,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut User, &mut Plan, &mut Context<'_>) -> R,
    ) -> R {
        self.advance(now, cx);
        let result = act(&mut self.users[index], &mut self.plan, cx);
        self.update_from_outside(index, now);
        result
    }

    /// The next packet that left at or before `now`.
    pub fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        let (user, _) = self.departures.first().filter(|(_, due)| *due <= now)?;
        let departure = self.users[user].pop(cx);
        self.departures.set(user, self.users[user].next_departure().map(|(due, _)| due));
        departure
    }

    /// When to call `pop` next. Events that concern no packet need no wake-up.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let leaves = self.departures.first().map(|(_, due)| due);
        let event = self.events.first().filter(|_| self.busy > 0).map(|(_, at)| at);
        let turn = self.turns.first().filter(|_| self.busy > 0).map(|(_, at)| at);
        earliest([leaves, event, turn])
    }

    /// Whether mobiles have a voice bearer.
    pub const fn has_voice(&self) -> bool {
        self.plan.voice.is_some()
    }

    /// The counters of all in a direction.
    pub fn counters(&self, direction: Direction) -> PacketCounters {
        let mut sum = PacketCounters::default();
        for user in &self.users {
            sum += user.counters(direction);
        }
        sum
    }

    /// Takes note of what has changed in a mobile by what happened at `now`.
    fn update(&mut self, index: usize, now: Instant) {
        self.refresh(index);
        self.schedule_turn(index, now);
    }

    /// Notes when the base station can do something for a mobile, after what happened at `now`.
    fn schedule_turn(&mut self, index: usize, now: Instant) {
        // What happens inside at the beginning of a slot comes before its decisions.
        let from = self.plan.control_from(now.max(self.next_slot));
        self.turns.set(index, self.users[index].next_turn(now, from, &self.plan));
    }

    /// Takes note of what has changed in a mobile from outside at `now`: what comes at the very
    /// beginning of a slot goes in the next one.
    fn update_from_outside(&mut self, index: usize, now: Instant) {
        self.begin_outside(now);
        self.update(index, now);
    }

    /// What comes from outside at `now` is for the slots that begin later.
    #[inline]
    fn begin_outside(&mut self, now: Instant) {
        if now >= self.next_slot {
            self.next_slot = self.plan.next_slot(now);
        }
    }

    /// Notes when something happens next in a mobile.
    fn refresh(&mut self, index: usize) {
        let user = &self.users[index];
        self.events.set(index, user.next_event());
        self.departures.set(index, user.next_departure().map(|(due, _)| due));
        self.has_re_established |= user.has_re_established();
        let is_busy = !user.is_empty();
        if is_busy != std::mem::replace(&mut self.is_busy[index], is_busy) {
            if is_busy { self.busy += 1 } else { self.busy -= 1 }
        }
    }

    /// The base station decides in the slot that begins at `now`.
    fn decide(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.plan.begin_slot(now);
        let mut looked_at = std::mem::take(&mut self.looked_at);
        while let Some((index, _)) = self.turns.first().filter(|(_, at)| *at <= now) {
            self.turns.set(index, None);
            looked_at.push(index);
            self.look_at(index, now, cx);
        }
        if self.plan.narrowband.is_some() {
            self.grant_repeated(now, cx);
            self.assign_repeated(now, cx);
        } else {
            self.grant_uplink(now, cx);
            self.assign_downlink(now, cx);
        }
        self.next_slot = now + self.plan.slot();
        for index in looked_at.drain(..) {
            if self.users[index].take_change() {
                self.refresh(index);
            }
            self.schedule_turn(index, now);
        }
        self.looked_at = looked_at;
    }

    /// Finds out what a mobile can get: a block again or a new one, and a grant.
    fn look_at(&mut self, index: usize, now: Instant, cx: &mut Context<'_>) {
        let plan = &self.plan;
        let number = plan.number(now);
        let mut candidate = |user: &mut User, direction: Direction| {
            if !std::mem::replace(&mut user.had_backlog[direction as usize], true) {
                self.schedulers[direction as usize].backlogged(number, index as u32);
            }
            candidate(index, user, direction)
        };
        let user = &mut self.users[index];
        user.look_around(now, plan, cx);
        user.report_awake(now, cx);
        if !user.can_receive(now, plan) {
            return;
        }
        if plan.carries_downlink(now) && user.is_served(now, Direction::Down) {
            for (number, carrier) in self.carriers.iter_mut().enumerate() {
                if let Some(process) = user.repeat_process(now, number, user.listens(now)) {
                    carrier.repeats.push((index, process));
                } else if user.waiting_down(now) > 0 && user.listens(now) && user.idle_process(now, number).is_some() {
                    carrier.candidates.push(candidate(user, Direction::Down));
                }
            }
        }
        if user.is_served(now, Direction::Up) && user.wanted_up(plan.first_grant) > 0 && user.listens(now) {
            self.up.push(candidate(user, Direction::Up));
        }
    }

    fn grant_uplink(&mut self, now: Instant, cx: &mut Context<'_>) {
        let Self { plan, users, schedulers, up: all, slot_candidates: candidates, .. } = self;
        let number = plan.number(now);
        let mut served = 0;
        for rank in 0.. {
            let Some(slot) = plan.timeline().granted(number).nth(rank).filter(|_| !all.is_empty()) else { break };
            let at = plan.start(slot);
            let can_send = |candidate: &&Candidate| {
                let user = &users[candidate.user as usize];
                !user.is_planned_up(at) && user.has_process_up(now, plan) && user.wanted_up(plan.first_grant) > 0
            };
            candidates.extend(all.iter().filter(can_send));
            while served < plan.users_per_slot && !candidates.is_empty() {
                let left = plan.without_others(Direction::Up, plan.left_up(at));
                if left == 0 {
                    break;
                }
                let index = choose(&mut *schedulers[1], candidates, users, Direction::Up);
                let others = candidates.iter().take(plan.users_per_slot - served - 1);
                let others = others.map(|other| &users[other.user as usize]);
                let left = part_up(left, &users[index], others, plan);
                let user = &mut users[index];
                let wanted = user.wanted_up(plan.first_grant);
                let estimate = user.quality.estimate(Direction::Up);
                if let Some(format) = plan.allocate(Direction::Up, at, estimate, wanted, left) {
                    user.waiting_since[1] = number + 1;
                    user.grant(now, at, format, plan, cx);
                    plan.reserve_up(at, format.blocks);
                    schedulers[1].served(number, index as u32, format.bits);
                    user.had_backlog[1] = user.wanted_up(plan.first_grant) > 0;
                    served += 1;
                }
            }
            candidates.clear();
        }
        all.clear();
    }

    fn assign_downlink(&mut self, now: Instant, cx: &mut Context<'_>) {
        (0..self.carriers.len()).for_each(|carrier| self.assign_carrier(carrier, now, cx));
    }

    fn assign_carrier(&mut self, carrier: usize, now: Instant, cx: &mut Context<'_>) {
        let Self { plan, users, schedulers, carriers, .. } = self;
        let Carrier { repeats, candidates } = &mut carriers[carrier];
        let number = plan.number(now);
        if carrier > 0 {
            // What waited may have gone on a carrier before this one.
            candidates.retain(|candidate| users[candidate.user as usize].waiting_down(now) > 0);
        }
        let (mut left, mut served) = (plan.down.total, 0);
        repeats.sort_unstable_by_key(|(index, _)| (users[*index].waiting_since[0], *index));
        for (index, process) in repeats.drain(..) {
            let blocks = users[index].format_again(process).map_or(0, |format| format.blocks);
            if served < plan.users_per_slot && blocks <= left {
                users[index].waiting_since[0] = number + 1;
                users[index].send_again(now, process, plan, cx);
                left -= blocks;
                served += 1;
            }
        }
        left = plan.without_others(Direction::Down, left);
        while served < plan.users_per_slot && left > 0 && !candidates.is_empty() {
            let index = choose(&mut *schedulers[0], candidates, users, Direction::Down);
            let user = &mut users[index];
            let process = user.idle_process(now, carrier).expect("a candidate has one");
            let estimate = user.quality.estimate(Direction::Down);
            if let Some(format) = plan.allocate(Direction::Down, now, estimate, user.waiting_down(now) + MARGIN, left) {
                user.waiting_since[0] = number + 1;
                user.send_new(now, process, format, plan, cx);
                left -= format.blocks;
                schedulers[0].served(number, index as u32, format.bits);
                user.had_backlog[0] = user.waiting_down(now) > 0;
                served += 1;
            }
        }
        candidates.clear();
    }
}

/// Takes the candidate out that is served next: one for whom voice waits, if there is one.
fn choose(
    scheduler: &mut dyn Scheduler,
    candidates: &mut Vec<Candidate>,
    users: &[User],
    direction: Direction,
) -> usize {
    let is_urgent = |candidate: &&Candidate| users[candidate.user as usize].has_urgent(direction);
    let index = if candidates.iter().any(|candidate| is_urgent(&candidate)) {
        let urgent: Vec<Candidate> = candidates.iter().filter(is_urgent).cloned().collect();
        let chosen = urgent[scheduler.choose(&urgent)].user;
        candidates.iter().position(|candidate| candidate.user == chosen).expect("it is one of them")
    } else {
        scheduler.choose(candidates)
    };
    candidates.swap_remove(index).user as usize
}

/// Of `left` resource blocks of a slot of the uplink, those for a user with others after it.
fn part_up<'a>(left: u32, user: &User, others: impl Iterator<Item = &'a User>, plan: &Plan) -> u32 {
    let Some(power) = &plan.power else { return left };
    let wanted = |user: &User| {
        let estimate = user.quality.estimate(Direction::Up);
        plan.up.blocks_for(user.wanted_up(plan.first_grant), estimate.efficiency)
    };
    power.part(left, wanted(user), others.map(wanted))
}

/// The unit of what schedulers hear of, in bits.
const BIT: u64 = 1;

/// Bytes of headers of the MAC and the RLC that the base station leaves room for.
const MARGIN: u64 = 8;

fn candidate(index: usize, user: &User, direction: Direction) -> Candidate {
    let estimate = user.quality.estimate(direction);
    // Bits of a thousand symbols: the rate now.
    let pdus = (estimate.efficiency * f64::from(estimate.layers) * 1000.0) as u32;
    Candidate {
        user: index as u32,
        level: user.quality.cqi(direction),
        pdus,
        waiting_since: user.waiting_since[direction as usize],
    }
}
