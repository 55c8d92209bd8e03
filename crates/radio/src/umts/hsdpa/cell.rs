//! The cell: its mobiles, and who gets what of each TTI.
//!
//! In a TTI, blocks that are to be sent again come first, those that wait longest before the
//! others. What codes, power and HS-SCCHs are left goes to mobiles that the scheduler chooses one
//! after the other. A block needs the codes of its CQI, and of the power as much less than all as
//! its CQI is lower than the reported one; what power is left is spread over the blocks of the TTI
//! in proportion.

use airpath_core::{Context, Direction, Instant, Packet, PacketCounters};
use airpath_link::{Admission, Departure};

use super::config::TTI;
use super::plan::{Choice, Left, Plan};
use super::user::User;
use crate::common::multiplexing::tournament::Tournament;
use crate::common::shared_channel::scheduler::{Candidate, Scheduler};

/// A cell.
#[derive(Debug)]
pub struct Cell {
    plan: Plan,
    scheduler: Box<dyn Scheduler>,
    pub users: Vec<User>,
    /// When something happens in each mobile.
    events: Tournament,
    /// When a packet leaves each.
    departures: Tournament,
    /// The mobiles for which the base station has something, in no order.
    active: Vec<usize>,
    is_active: Vec<bool>,
    /// Whether each has packets inside, and how many have.
    is_busy: Vec<bool>,
    busy: usize,
    /// When the next TTI begins that is used.
    tti_at: Option<Instant>,
    /// Of the current TTI; kept for their memory.
    grants: Vec<Grant>,
    candidates: Vec<Candidate>,
    repeats: Vec<(Instant, usize, usize)>,
}

/// What a mobile gets of a TTI.
#[derive(Clone, Copy, Debug)]
struct Grant {
    user: usize,
    process: usize,
    share: f64,
    /// `None`: the block of the process once more.
    new: Option<Choice>,
}

impl Cell {
    /// An idle cell.
    pub fn new(plan: Plan, scheduler: Box<dyn Scheduler>, users: Vec<User>) -> Self {
        let count = users.len();
        Self {
            plan,
            scheduler,
            users,
            events: Tournament::new(count),
            departures: Tournament::new(count),
            active: Vec::new(),
            is_active: vec![false; count],
            is_busy: vec![false; count],
            busy: 0,
            tti_at: None,
            grants: Vec::new(),
            candidates: Vec::new(),
            repeats: Vec::new(),
        }
    }

    /// Works off all that happens up to `now`.
    pub fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        loop {
            let event = self.events.first().filter(|(_, at)| *at <= now);
            let tti = self.tti_at.filter(|at| *at <= now);
            match (event, tti) {
                (Some((user, at)), tti) if tti.is_none_or(|tti| at <= tti) => {
                    self.users[user].work(at, cx);
                    self.update(user, at);
                }
                (_, Some(tti)) => self.tti(tti, cx),
                (_, None) => return,
            }
        }
    }

    /// Gives a mobile a packet.
    pub fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.change(usize::from(packet.user.0), now, cx, |user, cx| user.push(now, direction, packet, cx))
    }

    /// Changes a mobile after all that happens up to `now`.
    pub fn change<T>(
        &mut self,
        user: usize,
        now: Instant,
        cx: &mut Context<'_>,
        change: impl FnOnce(&mut User, &mut Context<'_>) -> T,
    ) -> T {
        self.advance(now, cx);
        let result = change(&mut self.users[user], cx);
        self.update(user, now);
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
        let (event, tti) =
            if self.busy > 0 { (self.events.first().map(|(_, at)| at), self.tti_at) } else { (None, None) };
        [leaves, event, tti].into_iter().flatten().min()
    }

    /// The counters of all in a direction.
    pub fn counters(&self, direction: Direction) -> PacketCounters {
        let mut sum = PacketCounters::default();
        for user in &self.users {
            sum += user.counters(direction);
        }
        sum
    }

    /// Takes note of what has changed in a mobile.
    fn update(&mut self, index: usize, now: Instant) {
        let user = &self.users[index];
        self.events.set(index, user.next_event());
        self.departures.set(index, user.next_departure().map(|(due, _)| due));
        let is_busy = !user.is_empty();
        if is_busy != std::mem::replace(&mut self.is_busy[index], is_busy) {
            if is_busy { self.busy += 1 } else { self.busy -= 1 }
        }
        if user.has_blocks() {
            if !std::mem::replace(&mut self.is_active[index], true) {
                self.active.push(index);
            }
            // What comes at the very beginning of a TTI goes in the next one.
            let next = Instant::from_nanos(now.as_nanos() + 1).max(user.served_from()).round_up_to(TTI);
            self.tti_at = Some(self.tti_at.map_or(next, |at| at.min(next)));
        }
    }

    /// One TTI.
    fn tti(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.tti_at = None;
        self.find(now, cx);
        let mut left = Left { codes: self.plan.codes, power: 1.0 };
        self.grant_repeats(&mut left);
        self.grant_new(now, &mut left);
        let sum: f64 = self.grants.iter().map(|grant| grant.share).sum();
        let number = now.as_nanos() / TTI.as_nanos();
        for grant in self.grants.drain(..) {
            let user = &mut self.users[grant.user];
            user.waiting_since = number + 1;
            match grant.new {
                None => user.send_again(now, grant.process, 1.0 / sum, &self.plan, cx),
                Some(choice) => {
                    user.send_new(now, grant.process, choice, 1.0 / sum, &self.plan, cx);
                    self.scheduler.served(number, grant.user as u32, choice.pdus);
                }
            }
        }
        let mut place = 0;
        while let Some(user) = self.active.get(place).copied() {
            if self.users[user].has_blocks() {
                place += 1;
            } else {
                self.active.swap_remove(place);
                self.is_active[user] = false;
            }
            self.update(user, now);
        }
    }

    /// Finds who can be served: with a block again, or with a new one.
    fn find(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.repeats.clear();
        self.candidates.clear();
        let whole = Left { codes: self.plan.codes, power: 1.0 };
        let number = now.as_nanos() / TTI.as_nanos();
        for index in &self.active {
            let user = &mut self.users[*index];
            let rests = user.waiting_since > 0 && number + 1 < user.waiting_since + self.plan.interval;
            if !user.begin_tti(now, cx) || rests {
                continue;
            }
            if let Some((since, process)) = user.harq.repeat_at(now) {
                self.repeats.push((since, *index, process));
            } else if !user.iub.buffer.is_empty() && user.harq.idle(now).is_some() {
                let level = user.reported(now);
                let waiting = user.iub.buffer.len() as u32;
                if let Some(choice) = self.plan.choose(level, waiting, &whole) {
                    let (user, waiting_since) = (*index as u32, user.waiting_since);
                    self.candidates.push(Candidate { user, level, pdus: choice.pdus, waiting_since });
                }
            }
        }
        self.repeats.sort_unstable();
        self.candidates.sort_unstable_by_key(|candidate| candidate.user);
    }

    fn grant_repeats(&mut self, left: &mut Left) {
        for (_, user, process) in &self.repeats {
            let sent = self.users[*user].harq.sent(*process).expect("the process has something to send again");
            if self.grants.len() < usize::from(self.plan.users_per_tti) && left.has(sent.cqi, sent.share) {
                left.take(sent.cqi, sent.share);
                self.grants.push(Grant { user: *user, process: *process, share: sent.share, new: None });
            }
        }
    }

    fn grant_new(&mut self, now: Instant, left: &mut Left) {
        while self.grants.len() < usize::from(self.plan.users_per_tti) && left.codes > 0 && !self.candidates.is_empty()
        {
            let candidate = self.candidates.remove(self.scheduler.choose(&self.candidates));
            let index = candidate.user as usize;
            let user = &self.users[index];
            let waiting = user.iub.buffer.len() as u32;
            if let Some(choice) = self.plan.choose(candidate.level, waiting, left) {
                let process = user.harq.idle(now).expect("a candidate has one");
                left.take(choice.cqi, choice.share);
                self.grants.push(Grant { user: index, process, share: choice.share, new: Some(choice) });
            }
        }
    }
}
