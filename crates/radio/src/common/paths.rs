//! Many one-way paths under one clock: the earliest is always next, and the idle ones cost nothing.

use std::collections::VecDeque;
use std::ops::Range;

use airpath_core::{Cx, Direction, Instant, Packet, RadioTotals, Tally, UserId};
use airpath_link::{Admission, BearerCommand, Change, CommandError, Departure, Link, Path};

use super::carrier::Carrier;
use super::tournament::Tournament;

/// One direction of one user, or of all.
#[derive(Debug)]
pub enum OneWay {
    /// Over the air.
    Carrier(Box<Carrier>),
    /// Over a plain link.
    Link(Direction, Box<Path>),
}

/// The paths of a bearer, by index.
#[derive(Debug)]
pub struct Paths {
    paths: Vec<OneWay>,
    wakeups: Tournament,
    /// What has left a path and was not asked for before the next packet was pushed.
    left: VecDeque<(Direction, Departure)>,
}

impl Paths {
    /// Idle paths.
    pub fn new(paths: Vec<OneWay>) -> Self {
        Self { wakeups: Tournament::new(paths.len()), paths, left: VecDeque::new() }
    }

    /// Gives a packet to path number `index`.
    #[inline]
    pub fn push(&mut self, index: usize, now: Instant, packet: Packet, cx: &mut Cx<'_>) -> Admission {
        // A path is not asked for the time before it was given a packet.
        while let Some(departure) = self.step(now, cx) {
            self.left.push_back(departure);
        }
        let path = &mut self.paths[index];
        cx.direction = path.direction();
        let admission = match path {
            OneWay::Carrier(carrier) => carrier.push(now, packet, cx),
            OneWay::Link(_, link) => link.push(now, packet, cx),
        };
        self.wakeups.set(index, path.next_wakeup());
        admission
    }

    /// The next packet that left at or before `now`, from whichever path.
    #[inline]
    pub fn pop(&mut self, now: Instant, cx: &mut Cx<'_>) -> Option<(Direction, Departure)> {
        match self.left.pop_front() {
            Some(departure) => Some(departure),
            None => self.step(now, cx),
        }
    }

    /// Goes from wake-up to wake-up until a packet leaves, so that the departures of all paths come in
    /// one order.
    #[inline]
    fn step(&mut self, now: Instant, cx: &mut Cx<'_>) -> Option<(Direction, Departure)> {
        while let Some((index, wakeup)) = self.wakeups.first()
            && wakeup <= now
        {
            let path = &mut self.paths[index];
            cx.direction = path.direction();
            let departure = match path {
                OneWay::Carrier(carrier) => carrier.pop(wakeup, cx),
                OneWay::Link(_, link) => link.pop(wakeup, cx),
            };
            self.wakeups.set(index, path.next_wakeup());
            if let Some(departure) = departure {
                return Some((cx.direction, departure));
            }
        }
        None
    }

    /// When to call `pop` next.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        match self.left.front() {
            Some((_, departure)) => Some(departure.due),
            None => self.wakeups.first().map(|(_, wakeup)| wakeup),
        }
    }

    /// The tally of all paths of a direction together.
    pub fn tally(&self, direction: Direction) -> Tally {
        let mut sum = Tally::default();
        for path in self.paths.iter().filter(|path| path.direction() == direction) {
            sum += path.tally();
        }
        // What was not handed over is still inside, as seen from outside.
        for (_, departure) in self.left.iter().filter(|(way, _)| *way == direction) {
            sum.recall(&departure.packet);
        }
        sum
    }

    /// The directions in which a bearer of so many `users` does as commanded, given the paths that this `concerns`.
    pub fn check(
        &self,
        command: &BearerCommand,
        users: usize,
        concerns: impl Fn(Direction) -> Range<usize>,
    ) -> Result<Vec<Direction>, CommandError> {
        if let Some(UserId(user)) = command.user.filter(|user| usize::from(user.0) >= users) {
            return Err(CommandError::NoSuchUser { user, users });
        }
        command.directions(|direction| {
            self.paths[concerns(direction)].iter().try_for_each(|path| path.check(&command.change))
        })
    }

    /// Changes the conditions of these paths, which was checked before.
    pub fn command(&mut self, concerned: Range<usize>, now: Instant, command: &BearerCommand, cx: &mut Cx<'_>) {
        while let Some(departure) = self.step(now, cx) {
            self.left.push_back(departure);
        }
        for index in concerned {
            let path = &mut self.paths[index];
            cx.direction = path.direction();
            match path {
                OneWay::Carrier(carrier) => carrier.command(now, command, cx),
                OneWay::Link(_, link) => link.command(now, &command.change, cx).expect("it was checked before"),
            }
            self.wakeups.set(index, path.next_wakeup());
        }
    }

    /// What `user` transmitted on path number `index`; `None` if that is no radio, or not the user's.
    pub fn radio_totals(&self, index: usize, user: UserId) -> Option<RadioTotals> {
        match self.paths.get(index)? {
            OneWay::Carrier(carrier) => carrier.radio_totals(user),
            OneWay::Link(..) => None,
        }
    }
}

impl OneWay {
    const fn direction(&self) -> Direction {
        match self {
            Self::Carrier(carrier) => carrier.direction(),
            Self::Link(direction, _) => *direction,
        }
    }

    fn check(&self, change: &Change) -> Result<(), CommandError> {
        match self {
            Self::Carrier(carrier) => carrier.check(change),
            Self::Link(_, link) => link.check(change),
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        match self {
            Self::Carrier(carrier) => carrier.next_wakeup(),
            Self::Link(_, link) => link.next_wakeup(),
        }
    }

    fn tally(&self) -> Tally {
        match self {
            Self::Carrier(carrier) => carrier.tally(),
            Self::Link(_, link) => link.tally(),
        }
    }
}
