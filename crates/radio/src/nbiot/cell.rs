//! The carrier with its mobiles. A mobile is made when its first packet comes, so those that never
//! send or get anything take no memory.

use airpath_core::{
    ConnectionTotals, Context, Direction, Instant, Packet, PacketCounters, RadioTotals, Seed, UserId, earliest,
};
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

use super::config::Config;
use super::plan::Plan;
use super::user::User;
use crate::common::multiplexing::tournament::Tournament;
use crate::ofdma::ConfigError;

/// A carrier of NB-IoT with its mobiles.
#[derive(Debug)]
pub struct NbIot {
    config: Config,
    seed: Seed,
    name: Box<str>,
    plan: Plan,
    /// What each mobile can do; it never gets a packet.
    prototype: Box<User>,
    users: Vec<Option<Box<User>>>,
    /// When something happens in each mobile.
    events: Tournament,
    /// When a packet leaves each.
    departures: Tournament,
    /// Mobiles that have packets inside.
    busy: usize,
}

impl NbIot {
    /// An idle carrier with `users` mobiles. Generator streams are below `name/user-N`: `errors`,
    /// `offsets` and `conditions`.
    ///
    /// # Errors
    /// If the parameters make no sense.
    pub fn new(config: &Config, users: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        config.check()?;
        let plan = Plan::new(config);
        // The mobiles are made later; what is wrong with one is found now.
        for index in 1..users.min(config.conditions.distinct()) {
            User::new(config, &plan, index, seed, name)?;
        }
        Ok(Self {
            prototype: Box::new(User::new(config, &plan, 0, seed, name)?),
            config: config.clone(),
            seed,
            name: name.into(),
            plan,
            users: std::iter::repeat_with(|| None).take(users).collect(),
            events: Tournament::new(users),
            departures: Tournament::new(users),
            busy: 0,
        })
    }

    /// The mobile of this number.
    fn user(&mut self, index: usize) -> &mut User {
        let Self { config, seed, name, plan, users, .. } = self;
        users[index].get_or_insert_with(|| {
            let path = format!("{name}/user-{index}");
            Box::new(User::new(config, plan, index, *seed, &path).expect("the parameters were checked before"))
        })
    }

    /// Works off all that happens up to `now`.
    fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some((index, at)) = self.events.first().filter(|(_, at)| *at <= now) {
            self.plan.forget_before(at);
            let user = self.users[index].as_mut().expect("a mobile with events was made");
            let was_busy = !user.is_empty();
            user.work(at, &mut self.plan, cx);
            self.refresh(index, was_busy);
        }
    }

    /// Takes note of what has changed in a mobile.
    fn refresh(&mut self, index: usize, was_busy: bool) {
        let user = self.users[index].as_ref().expect("it was made");
        self.events.set(index, user.next_event());
        self.departures.set(index, user.next_departure().map(|(due, _)| due));
        match (was_busy, !user.is_empty()) {
            (false, true) => self.busy += 1,
            (true, false) => self.busy -= 1,
            _ => {}
        }
    }

    fn directions(&self, command: &BearerCommand) -> Result<Vec<Direction>, CommandError> {
        let users = self.users.len();
        if let Some(user) = command.user.filter(|user| user.index() >= users) {
            return Err(CommandError::NoSuchUser { user: user.number(), users });
        }
        if command.change.needs_radio_conditions() && command.direction.is_some() {
            let (key, what) = (command.change.kind().name(), "one direction of a carrier of NB-IoT");
            return Err(CommandError::Foreign { key, what, help: "it is that of both: leave out `direction`" });
        }
        command.directions(|_| self.prototype.check(&command.change))
    }
}

impl Bearer for NbIot {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.advance(now, cx);
        let index = packet.user.index();
        let was_busy = !self.user(index).is_empty();
        let user = self.users[index].as_mut().expect("it was made");
        let admission = user.push(now, direction, packet, &mut self.plan, cx);
        self.refresh(index, was_busy);
        admission
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        let (index, _) = self.departures.first().filter(|(_, due)| *due <= now)?;
        let user = self.users[index].as_mut().expect("it was made");
        let departure = user.pop(cx);
        self.departures.set(index, user.next_departure().map(|(due, _)| due));
        departure
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let leaves = self.departures.first().map(|(_, due)| due);
        let event = self.events.first().filter(|_| self.busy > 0).map(|(_, at)| at);
        earliest([leaves, event])
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        let mut sum = PacketCounters::default();
        for user in self.users.iter().flatten() {
            sum += user.counters(direction);
        }
        sum
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        let user = self.users.get(user.index())?;
        Some(user.as_ref().map_or_else(RadioTotals::default, |user| user.radio_totals(direction)))
    }

    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        Some(self.users.get(user.index())?.as_ref().map_or_else(Default::default, |user| user.connection_totals()))
    }

    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.users.iter_mut().flatten().for_each(|user| user.end(now, cx));
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.directions(command).map(drop)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        let directions = self.directions(command)?;
        self.advance(now, cx);
        let users = match command.user {
            Some(user) => user.index()..user.index() + 1,
            None => 0..self.users.len(),
        };
        for index in users {
            let was_busy = !self.user(index).is_empty();
            let user = self.users[index].as_mut().expect("it was made");
            user.command(now, command, &directions);
            self.refresh(index, was_busy);
        }
        command.report(now, cx);
        Ok(())
    }
}
