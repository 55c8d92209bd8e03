//! The cell: its mobiles, and who gets what of each TTI.
//!
//! In a TTI, blocks that are to be sent again come first, those that wait longest before the
//! others. What codes, power and HS-SCCHs are left goes to mobiles that the scheduler chooses one
//! after the other. A block needs the codes of its CQI, and of the power as much less than all as
//! its CQI is lower than the reported one; what power is left is spread over the blocks of the TTI
//! in proportion.
//!
//! With two carriers each has these codes and this power, and serves the mobiles in the same way,
//! one carrier after the other. What is sent again is sent on its carrier.
//!
//! A TTI costs what the mobiles cost that it [reviews](Cell::review): those to which something has
//! happened, those whose C/I varies, and those that may be served now and could not before. The
//! others keep their place among the candidates.

use std::collections::BTreeSet;

use airpath_core::{Context, Direction, Instant, Packet, PacketCounters, earliest};
use airpath_link::{Admission, BearerCommand, Departure};

use super::candidates::Candidates;
use super::config::TTI;
use super::e_dch::grants::Scheduling;
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
    /// The state of each for the TTIs.
    places: Vec<Place>,
    /// When each is reviewed next: in the first TTI from then on.
    reviews: Tournament,
    /// From when on each can be served for which the base station has something.
    served_from: Tournament,
    carriers: Vec<Carrier>,
    /// Grants of an E-DCH, if the mobiles have one.
    uplink: Option<Scheduling>,
    /// Of one decision; kept for its memory.
    changes: Vec<(usize, Option<u8>)>,
    /// How many mobiles have packets inside.
    busy: usize,
    /// When the next TTI begins that is used.
    tti_at: Option<Instant>,
    /// Of the current TTI; kept for their memory.
    grants: Vec<Grant>,
    reviewed: Vec<usize>,
    /// How many reviews there were.
    #[cfg(test)]
    reviews_made: u64,
}

/// What can be sent on a carrier.
#[derive(Debug)]
struct Carrier {
    number: u8,
    /// Those that can get a new block.
    candidates: Candidates,
    /// Blocks that are to be sent again: since when, mobile, process.
    repeats: BTreeSet<(Instant, usize, usize)>,
}

/// The state of a mobile for the TTIs.
#[derive(Clone, Debug, Default)]
struct Place {
    /// The base station has something for it, or had in the last TTI.
    is_active: bool,
    /// Its radio has not changed since its last review.
    is_settled: bool,
    /// It has packets inside.
    is_busy: bool,
    /// Something waited for it in the base station at its last review.
    had_backlog: bool,
    /// The number after that of the TTI of its last review.
    reviewed: u64,
    /// Its block that is to be sent again now, by carrier.
    repeats: [Option<(Instant, usize)>; CARRIERS],
}

/// The most carriers of a cell.
const CARRIERS: usize = 2;

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
    pub fn new(plan: Plan, scheduler: Box<dyn Scheduler>, uplink: Option<Scheduling>, users: Vec<User>) -> Self {
        let count = users.len();
        let carrier = |number| {
            let candidates = Candidates::new(count, &*scheduler);
            Carrier { number, candidates, repeats: BTreeSet::new() }
        };
        let carriers = (0..plan.carriers).map(carrier).collect();
        Self {
            plan,
            scheduler,
            users,
            events: Tournament::new(count),
            departures: Tournament::new(count),
            places: vec![Place::default(); count],
            reviews: Tournament::new(count),
            served_from: Tournament::new(count),
            carriers,
            uplink,
            changes: Vec::new(),
            busy: 0,
            tti_at: None,
            grants: Vec::new(),
            reviewed: Vec::new(),
            #[cfg(test)]
            reviews_made: 0,
        }
    }

    /// Works off all that happens up to `now`.
    pub fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        loop {
            let event = self.events.first().filter(|(_, at)| *at <= now);
            let tti = self.tti_at.filter(|at| *at <= now);
            let grants = self.uplink.as_ref().and_then(Scheduling::next).filter(|at| *at <= now);
            // Of what is at one time: the mobiles, then the base station.
            let next = earliest([event.map(|(_, at)| at), grants, tti]);
            match (event, next) {
                (_, None) => return,
                (Some((user, at)), Some(next)) if at == next => {
                    self.users[user].work(at, cx);
                    self.update(user, at);
                }
                (_, Some(next)) if grants == Some(next) => self.decide_grants(next),
                (_, Some(next)) => self.tti(next, cx),
            }
        }
    }

    /// Gives a mobile a packet.
    pub fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.change(packet.user.index(), now, cx, |user, cx| user.push(now, direction, packet, cx))
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

    /// Changes the conditions of a mobile, which was checked before.
    pub fn command(
        &mut self,
        index: usize,
        now: Instant,
        command: &BearerCommand,
        directions: &[Direction],
        cx: &mut Context<'_>,
    ) {
        self.advance(now, cx);
        if self.places[index].is_active && self.places[index].is_settled {
            // The reports of the TTIs before are those of the conditions before.
            let last = Instant::from_nanos(now.as_nanos() / TTI.as_nanos() * TTI.as_nanos());
            self.users[index].catch_up(last, cx);
        }
        self.users[index].command(now, command, directions, cx);
        self.update(index, now);
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
        let grants = self.uplink.as_ref().filter(|_| self.busy > 0).and_then(Scheduling::next);
        earliest([leaves, event, tti, grants])
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
        self.refresh(index);
        let user = &self.users[index];
        let place = &mut self.places[index];
        if user.has_blocks() {
            place.is_active = true;
            // What comes at the very beginning of a TTI goes in the next one.
            let next = Instant::from_nanos(now.as_nanos() + 1).max(user.served_from()).round_up_to(TTI);
            self.tti_at = Some(self.tti_at.map_or(next, |at| at.min(next)));
        }
        if place.is_active {
            self.reviews.set(index, Some(now));
        }
    }

    /// The base station decides about the grants of the uplink.
    fn decide_grants(&mut self, now: Instant) {
        let Some(uplink) = &mut self.uplink else { return };
        let mut changes = std::mem::take(&mut self.changes);
        let users = &self.users;
        let activity = |user: usize| users[user].up.e_dch().expect("all mobiles have one").activity(now);
        uplink.work(now, activity, &mut changes);
        for (index, step) in changes.drain(..) {
            if let Some(e_dch) = self.users[index].up.e_dch_mut() {
                e_dch.grant(now, step);
            }
            self.refresh(index);
        }
        self.changes = changes;
    }

    /// Notes what the base station has got of a mobile's requests, and whether that has left.
    fn hear(&mut self, index: usize) {
        let (Some(uplink), Some(e_dch)) = (&mut self.uplink, self.users[index].up.e_dch_mut()) else { return };
        if e_dch.take_lost() {
            uplink.forget(index);
        }
        if let Some(at) = e_dch.take_heard() {
            uplink.request(index, at);
        }
    }

    /// Notes when something happens next in a mobile.
    fn refresh(&mut self, index: usize) {
        self.hear(index);
        let user = &self.users[index];
        self.events.set(index, user.next_event());
        self.departures.set(index, user.next_departure().map(|(due, _)| due));
        self.served_from.set(index, user.has_blocks().then(|| user.served_from()));
        let is_busy = !user.is_empty();
        if is_busy != std::mem::replace(&mut self.places[index].is_busy, is_busy) {
            if is_busy { self.busy += 1 } else { self.busy -= 1 }
        }
    }

    /// One TTI.
    fn tti(&mut self, now: Instant, cx: &mut Context<'_>) {
        let mut reviewed = std::mem::take(&mut self.reviewed);
        while let Some((index, _)) = self.reviews.first().filter(|(_, at)| *at <= now) {
            self.review(index, now, cx);
            reviewed.push(index);
        }
        for carrier in 0..self.carriers.len() {
            self.serve(carrier, now, &mut reviewed, cx);
        }
        for carrier in &mut self.carriers {
            carrier.candidates.rank_again(&*self.scheduler);
        }
        for index in reviewed.drain(..) {
            if !self.users[index].has_blocks() {
                self.forget(index);
                self.places[index].is_active = false;
                self.places[index].had_backlog = false;
                self.reviews.set(index, None);
            }
            self.refresh(index);
        }
        self.reviewed = reviewed;
        let next = Instant::from_nanos(now.as_nanos() + 1);
        self.tti_at = self.served_from.first().map(|(_, at)| at.max(next).round_up_to(TTI));
    }

    /// The blocks of a carrier in a TTI. Adds mobiles that were not reviewed in it to `reviewed`.
    fn serve(&mut self, carrier: usize, now: Instant, reviewed: &mut Vec<usize>, cx: &mut Context<'_>) {
        let mut left = Left { codes: self.plan.codes, power: 1.0 };
        self.grant_repeats(carrier, &mut left);
        self.grant_new(carrier, now, &mut left);
        let sum: f64 = self.grants.iter().map(|grant| grant.share).sum();
        let number = now.as_nanos() / TTI.as_nanos();
        for grant in self.grants.drain(..) {
            let user = &mut self.users[grant.user];
            user.waiting_since = number + 1;
            match grant.new {
                None => user.send_again(now, grant.process, 1.0 / sum, &self.plan, cx),
                Some(choice) => {
                    user.send_new(now, grant.process, choice, 1.0 / sum, &self.plan, cx);
                    self.scheduler.served(number, grant.user as u32, choice.amount);
                    for other in self.carriers.iter_mut().skip(carrier + 1) {
                        other.candidates.served_elsewhere(grant.user, &*self.scheduler);
                    }
                }
            }
            self.reviews.set(grant.user, Some(now));
            if self.places[grant.user].reviewed != number + 1 {
                reviewed.push(grant.user);
            }
        }
    }

    /// Takes a mobile out of those that can be served.
    fn forget(&mut self, index: usize) {
        for (carrier, repeat) in self.carriers.iter_mut().zip(&mut self.places[index].repeats) {
            carrier.candidates.remove(index);
            if let Some((since, process)) = repeat.take() {
                carrier.repeats.remove(&(since, index, process));
            }
        }
    }

    /// Finds out what a mobile can be served with: a block again, or a new one. It is reviewed
    /// again when that may change.
    fn review(&mut self, index: usize, now: Instant, cx: &mut Context<'_>) {
        self.forget(index);
        let whole = Left { codes: self.plan.codes, power: 1.0 };
        let number = now.as_nanos() / TTI.as_nanos();
        self.places[index].reviewed = number + 1;
        #[cfg(test)]
        {
            self.reviews_made += 1;
        }
        let user = &mut self.users[index];
        let rests_until = if user.waiting_since > 0 { user.waiting_since + self.plan.interval - 1 } else { 0 };
        let can = user.begin_tti(now, cx);
        let has_backlog = !user.iub.buffer.is_empty();
        let had_backlog = std::mem::replace(&mut self.places[index].had_backlog, has_backlog);
        if has_backlog && !had_backlog {
            self.scheduler.backlogged(number, index as u32);
        }
        let level = user.reported(now);
        let next = if !can {
            Some(user.served_from())
        } else if number < rests_until {
            Some(Instant::from_nanos(rests_until * TTI.as_nanos()))
        } else {
            let mut next = None;
            for (carrier, repeat) in self.carriers.iter_mut().zip(&mut self.places[index].repeats) {
                let event = if let Some((since, process)) = user.harq.repeat_at(carrier.number, now) {
                    *repeat = Some((since, process));
                    carrier.repeats.insert((since, index, process));
                    None
                } else if !user.iub.buffer.is_empty() && user.harq.idle(carrier.number, now).is_some() {
                    // Its rate, whatever waits for it.
                    if let Some(Choice { amount: pdus, .. }) = self.plan.choose(level, u32::MAX, &whole) {
                        let (user, waiting_since) = (index as u32, user.waiting_since);
                        let candidate = Candidate { user, level, pdus, waiting_since };
                        carrier.candidates.insert(candidate, &*self.scheduler);
                    }
                    user.harq.next_repeat(carrier.number, now)
                } else {
                    user.harq.next_answer(now)
                };
                next = earliest([next, event]);
            }
            next
        };
        // One that cannot be served takes no reports.
        let is_settled = can && user.is_settled(cx);
        self.places[index].is_settled = is_settled;
        let soon = (can && !is_settled).then_some(now + TTI);
        self.reviews.set(index, earliest([next, soon]));
    }

    fn grant_repeats(&mut self, carrier: usize, left: &mut Left) {
        for (_, user, process) in &self.carriers[carrier].repeats {
            if self.grants.len() >= usize::from(self.plan.users_per_tti) {
                break;
            }
            let sent = self.users[*user].harq.sent(*process).expect("the process has something to send again");
            if left.has(sent.air, sent.share) {
                left.take(sent.air, sent.share);
                self.grants.push(Grant { user: *user, process: *process, share: sent.share, new: None });
            }
        }
    }

    fn grant_new(&mut self, carrier: usize, now: Instant, left: &mut Left) {
        let Carrier { number, candidates, .. } = &mut self.carriers[carrier];
        candidates.begin();
        while self.grants.len() < usize::from(self.plan.users_per_tti)
            && left.codes > 0
            && candidates.best_level().is_some_and(|level| self.plan.has_room(level, left))
            && let Some(candidate) = candidates.next(&mut *self.scheduler)
        {
            let index = candidate.user as usize;
            let user = &self.users[index];
            // What it had when it was reviewed may have gone on the carrier before, or that block
            // may have filled its window.
            if user.iub.buffer.is_empty() {
                continue;
            }
            let Some(process) = user.harq.idle(*number, now) else { continue };
            if let Some(choice) = self.plan.choose(candidate.level, user.iub.buffer.waiting(), left) {
                left.take(choice.air, choice.share);
                self.grants.push(Grant { user: index, process, share: choice.share, new: Some(choice) });
            }
        }
        candidates.end();
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{ComponentId, Ecn, FlowId, Seed, Slot, Span, UserId};

    use super::*;
    use crate::umts::hsdpa::{Config, Hsdpa};

    /// Reviews a TTI of a cell in which packets wait for all mobiles, at this C/I.
    fn reviews(users: u16, ci: &str) -> f64 {
        let preset: toml::Table =
            include_str!("../../../../../presets/hsdpa-cat10.toml").parse().expect("the preset is TOML");
        let mut bearer = preset["bearer"].as_table().expect("a table").clone();
        bearer.remove("model");
        bearer["conditions"].as_table_mut().expect("a table").insert("ci".to_owned(), ci.into());
        let config: Config = bearer.try_into().expect("a config");
        let mut cell = Hsdpa::new(&config, users.into(), Seed::new(1), "cell").expect("sound parameters").cell;
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        for id in 0..u64::from(users) * 40 {
            let user = UserId::new((id % u64::from(users)) as u32);
            let packet = Packet { id, size: 1500, flow: FlowId(0), user, ecn: Ecn::NotEct, slot: Slot(0) };
            cell.push(Instant::ZERO, Direction::Down, packet, &mut cx);
        }
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        cell.advance(at(1000), &mut cx);
        let before = cell.reviews_made;
        cell.advance(at(2000), &mut cx);
        (cell.reviews_made - before) as f64 / 500.0
    }

    #[test]
    fn a_tti_does_not_review_all_mobiles_with_data() {
        // The mobile that was served, and of each the 5 expiries of Timer_Poll in a second and the
        // 5 PDUs that come to the base station for them.
        for ci in ["14 dB", "8 dB"] {
            for users in [50, 400] {
                let reviews = reviews(users, ci);
                assert!(reviews < 3.0 + f64::from(users) * 10.0 / 500.0, "{users} mobiles at {ci}: {reviews}");
            }
        }
    }
}
