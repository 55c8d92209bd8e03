//! Grants at the base station: who may send how much.
//!
//! Scheduling information is answered when it comes, as long as the noise rise has room. Once in a
//! round trip of hybrid ARQ the base station looks at the happy bits: it withdraws what is not
//! used, gives unhappy mobiles a step more, those with the least first, and takes a step from the
//! mobile with the most where one with less waits for room.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use airpath_core::{Instant, Span};

use super::ladder::Ladder;

/// The grants of a cell.
#[derive(Debug)]
pub struct Scheduling {
    ladder: Ladder,
    /// A round trip of hybrid ARQ.
    period: Span,
    inactivity: Span,
    /// Scheduling information in the air: when the base station has it, and whose it is.
    heard: BTreeSet<(Instant, usize)>,
    /// Mobiles that wait for room.
    waiting: VecDeque<usize>,
    /// The step of each mobile that has a grant, and when it was granted first.
    granted: BTreeMap<usize, (u8, Instant)>,
    next_review: Option<Instant>,
}

/// What the base station has heard of a mobile with a grant.
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// Its last block ended then.
    pub last_block: Option<Instant>,
    /// Whether that had the happy bit.
    pub is_happy: bool,
}

impl Scheduling {
    /// No grants.
    pub const fn new(ladder: Ladder, period: Span, inactivity: Span) -> Self {
        Self {
            ladder,
            period,
            inactivity,
            heard: BTreeSet::new(),
            waiting: VecDeque::new(),
            granted: BTreeMap::new(),
            next_review: None,
        }
    }

    /// When the base station decides next.
    pub fn next(&self) -> Option<Instant> {
        [self.heard.first().map(|(at, _)| *at), self.next_review].into_iter().flatten().min()
    }

    /// The base station has scheduling information of a mobile at `at`.
    pub fn request(&mut self, user: usize, at: Instant) {
        self.heard.insert((at, user));
    }

    /// A mobile has changed the cell: there is nothing for it.
    pub fn forget(&mut self, user: usize) {
        self.heard.retain(|(_, other)| *other != user);
        self.waiting.retain(|other| *other != user);
        self.granted.remove(&user);
    }

    /// Decides at `now`. `activity` has what was heard of a mobile; `changes` gets each new grant
    /// with its mobile, or none if it is withdrawn.
    pub fn work(&mut self, now: Instant, activity: impl Fn(usize) -> Activity, changes: &mut Vec<(usize, Option<u8>)>) {
        while let Some((_, user)) = self.heard.first().copied().filter(|(at, _)| *at <= now) {
            self.heard.pop_first();
            if !self.granted.contains_key(&user) && !self.waiting.contains(&user) {
                self.waiting.push_back(user);
            }
        }
        if self.next_review.take_if(|at| *at <= now).is_some() {
            self.review(now, activity, changes);
        }
        while let Some(user) = self.waiting.front().copied()
            && self.ladder.has_room(self.load() + self.ladder.load(0))
        {
            self.waiting.pop_front();
            self.granted.insert(user, (0, now));
            changes.push((user, Some(0)));
        }
        if self.next_review.is_none() && !(self.granted.is_empty() && self.waiting.is_empty()) {
            self.next_review = Some(Instant::from_nanos(now.as_nanos() + 1).round_up_to(self.period));
        }
    }

    fn load(&self) -> f64 {
        self.granted.values().map(|(step, _)| self.ladder.load(*step)).sum()
    }

    fn review(&mut self, now: Instant, activity: impl Fn(usize) -> Activity, changes: &mut Vec<(usize, Option<u8>)>) {
        let mut unhappy = Vec::new();
        let inactivity = self.inactivity;
        self.granted.retain(|user, (step, since)| {
            let Activity { last_block, is_happy } = activity(*user);
            let is_used = last_block.map_or(*since, |last| last.max(*since)) + inactivity > now;
            if !is_used {
                changes.push((*user, None));
            } else if !is_happy && last_block.is_some_and(|last| last >= *since) {
                unhappy.push((*step, *user));
            }
            is_used
        });
        unhappy.sort_unstable();
        let top = self.ladder.top();
        let mut least_without_room = self.waiting.front().map(|_| 0);
        for (step, user) in unhappy.into_iter().filter(|(step, _)| *step < top) {
            let more = self.ladder.load(step + 1) - self.ladder.load(step);
            if self.ladder.has_room(self.load() + more) {
                self.set(user, step + 1, changes);
            } else {
                // It gets what is left by one that has at least two steps more.
                least_without_room = least_without_room.or(Some(step + 1));
            }
        }
        let most = self.granted.iter().map(|(user, (step, _))| (*step, *user)).max();
        if let (Some(least), Some((step, user))) = (least_without_room, most)
            && step > least
        {
            self.set(user, step - 1, changes);
        }
    }

    fn set(&mut self, user: usize, step: u8, changes: &mut Vec<(usize, Option<u8>)>) {
        if let Some((granted, _)) = self.granted.get_mut(&user) {
            *granted = step;
            changes.push((user, Some(step)));
        }
    }
}
