//! Grants at the base station: who may send how much.
//!
//! Scheduling information is answered when it comes, as long as the noise rise has room. Once in a
//! round trip of hybrid ARQ the base station looks at the happy bits: it withdraws what is not
//! used, and while a mobile waits for room what was not used just now. It gives unhappy mobiles a
//! step more, those with the least first, and takes a step from the mobile with the most where one
//! with less has no room. While a mobile waits for its first grant, the others only lose steps;
//! where all have the first grant, they take turns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use airpath_core::{Instant, Span, earliest};

use super::ladder::Ladder;

/// The grants of a cell.
#[derive(Debug)]
pub struct Scheduling {
    ladder: Ladder,
    /// A round trip of hybrid ARQ.
    period: Span,
    /// A mobile that has sent nothing for so long loses its grant: if none waits, and if one does.
    inactivity: [Span; 2],
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
    pub const fn new(ladder: Ladder, period: Span, inactivity: [Span; 2]) -> Self {
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
        earliest([self.heard.first().map(|(at, _)| *at), self.next_review])
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
        let [inactivity, silence] = self.inactivity;
        let inactivity = if self.waiting.is_empty() { inactivity } else { silence };
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
        if self.waiting.is_empty() {
            self.raise(unhappy, changes);
        } else {
            self.make_room(now, changes);
        }
    }

    /// Gives unhappy mobiles a step more, and takes one from the mobile with the most for one that
    /// gets none.
    fn raise(&mut self, mut unhappy: Vec<(u8, usize)>, changes: &mut Vec<(usize, Option<u8>)>) {
        unhappy.sort_unstable();
        let top = self.ladder.top();
        let mut without_room = None;
        for (step, user) in unhappy.into_iter().filter(|(step, _)| *step < top) {
            let more = self.ladder.load(step + 1) - self.ladder.load(step);
            if self.ladder.has_room(self.load() + more) {
                self.set(user, step + 1, changes);
            } else {
                without_room = without_room.or(Some(step));
            }
        }
        if let (Some(least), Some((step, user))) = (without_room, self.most())
            && step > least + 1
        {
            self.set(user, step - 1, changes);
        }
    }

    /// Takes a step from the mobile with the most, for one that waits. If none has more than the
    /// first grant, they take turns: the one that has had it the longest loses it.
    fn make_room(&mut self, now: Instant, changes: &mut Vec<(usize, Option<u8>)>) {
        match self.most() {
            Some((0, _)) => {
                let oldest = self.granted.iter().map(|(user, (_, since))| (*since, *user)).min();
                if let Some((_, user)) = oldest.filter(|(since, _)| *since + self.inactivity[0] <= now) {
                    self.granted.remove(&user);
                    changes.push((user, None));
                }
            }
            Some((step, user)) => self.set(user, step - 1, changes),
            None => {}
        }
    }

    /// The mobile with the most.
    fn most(&self) -> Option<(u8, usize)> {
        self.granted.iter().map(|(user, (step, _))| (*step, *user)).max()
    }

    fn set(&mut self, user: usize, step: u8, changes: &mut Vec<(usize, Option<u8>)>) {
        if let Some((granted, _)) = self.granted.get_mut(&user) {
            *granted = step;
            changes.push((user, Some(step)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::umts::hsdpa::Config;

    const PERIOD: Span = Span::from_millis(16);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// The grants of the preset of 2 ms, with another noise rise.
    fn scheduling(noise_rise: &str) -> Scheduling {
        let preset: toml::Table =
            include_str!("../../../../../../presets/hspa-cat10-eul.toml").parse().expect("the preset is TOML");
        let mut bearer = preset["bearer"].as_table().expect("a table").clone();
        bearer.remove("model");
        let config: Config = bearer.try_into().expect("a config");
        let mut e_dch = config.e_dch.expect("an E-DCH");
        e_dch.grants.noise_rise = noise_rise.parse().expect("a level");
        e_dch.scheduling().expect("sound parameters")
    }

    /// Decides up to `until` with mobiles that send without a pause, and these are unhappy.
    fn run(scheduling: &mut Scheduling, until: Instant, unhappy: &[usize]) -> Vec<(usize, Option<u8>)> {
        let mut changes = Vec::new();
        while let Some(now) = scheduling.next().filter(|now| *now <= until) {
            let activity = |user| Activity { last_block: Some(now), is_happy: !unhappy.contains(&user) };
            scheduling.work(now, activity, &mut changes);
        }
        changes
    }

    #[test]
    fn an_unhappy_mobile_climbs_to_the_top_and_a_happy_one_stays() {
        let mut scheduling = scheduling("6 dB");
        scheduling.request(3, at(4));
        assert_eq!(run(&mut scheduling, at(15), &[]), [(3, Some(0))]);
        assert_eq!(run(&mut scheduling, at(16 * 20), &[]), []);
        let top = scheduling.ladder.top();
        let climbed: Vec<_> = (1..=top).map(|step| (3, Some(step))).collect();
        assert_eq!(run(&mut scheduling, at(16 * 60), &[3]), climbed);
        assert_eq!(scheduling.next(), Some(at(16 * 61)), "once in a round trip");
        assert_eq!(PERIOD, scheduling.period);
    }

    #[test]
    fn who_waits_for_room_gets_it_from_the_one_with_the_most() {
        // A first grant has a load of 0.12, a step more 0.21; 1.1 dB of noise rise allow 0.22.
        let mut scheduling = scheduling("1.1 dB");
        scheduling.request(0, at(2));
        run(&mut scheduling, at(400), &[0]);
        assert_eq!(scheduling.granted[&0].0, 1);
        scheduling.request(1, at(404));
        assert_eq!(run(&mut scheduling, at(404), &[0]), [], "there is no room");
        // 0.24 are too much for two: they take turns.
        let changes = run(&mut scheduling, at(1000), &[0]);
        assert_eq!(changes, [(0, Some(0)), (0, None), (1, Some(0))]);
        scheduling.forget(1);
        scheduling.request(0, at(1001));
        assert_eq!(run(&mut scheduling, at(1001), &[]), [(0, Some(0))]);
    }

    #[test]
    fn what_is_not_used_is_withdrawn() {
        let mut scheduling = scheduling("6 dB");
        scheduling.request(0, at(2));
        let mut changes = Vec::new();
        while let Some(now) = scheduling.next() {
            scheduling.work(now, |_| Activity { last_block: Some(at(100)), is_happy: false }, &mut changes);
        }
        let (last, granted) = changes.split_last().expect("changes");
        assert_eq!(*last, (0, None));
        assert!(granted.iter().all(|(_, step)| step.is_some()));
        assert_eq!((scheduling.next(), scheduling.granted.len()), (None, 0), "idle costs nothing");
    }
}
