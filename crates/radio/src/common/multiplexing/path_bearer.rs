//! A bearer of one-way paths over the air, or of plain links: the downlinks come first, the uplink
//! of each user after them.

use std::ops::Range;

use airpath_core::{Context, Direction, Instant, Packet, PacketCounters, RadioTotals, UserId};
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};

use super::paths::{OneWay, Paths};

/// The bearer of all users: each has a downlink of its own, or, if it is `SHARED`, all have one
/// together.
#[derive(Debug)]
pub struct PathBearer<const SHARED: bool> {
    users: usize,
    paths: Paths,
}

impl<const SHARED: bool> PathBearer<SHARED> {
    /// A bearer of these `downlinks` (one if it is shared), and of the uplink of each user.
    pub(crate) fn of(mut downlinks: Vec<OneWay>, uplinks: Vec<OneWay>) -> Self {
        let users = uplinks.len();
        downlinks.extend(uplinks);
        Self { users, paths: Paths::new(downlinks) }
    }

    #[inline]
    fn index(&self, direction: Direction, user: UserId) -> usize {
        let downlinks = if SHARED { 1 } else { self.users };
        match direction {
            Direction::Down if SHARED => 0,
            Direction::Down => user.index(),
            Direction::Up => downlinks + user.index(),
        }
    }

    /// The paths that a command for `user`, or for all, concerns: a shared downlink is everybody's.
    fn concerned(&self, direction: Direction, user: Option<UserId>) -> Range<usize> {
        let first = self.index(direction, user.unwrap_or(UserId::new(0)));
        let is_one = user.is_some() || (SHARED && direction == Direction::Down);
        first..first + if is_one { 1 } else { self.users }
    }
}

impl<const SHARED: bool> Bearer for PathBearer<SHARED> {
    #[inline]
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.paths.push(self.index(direction, packet.user), now, direction, packet, cx)
    }

    #[inline]
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.paths.pop(now, cx)
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Instant> {
        self.paths.next_wakeup()
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        self.paths.counters(direction)
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        self.paths.radio_totals(self.index(direction, user), user)
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.paths.check(command, self.users, |direction| self.concerned(direction, command.user)).map(drop)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        let directions = self.paths.check(command, self.users, |direction| self.concerned(direction, command.user))?;
        for direction in directions {
            let concerned = self.concerned(direction, command.user);
            self.paths.command(concerned, now, command, cx);
        }
        command.report(now, cx);
        Ok(())
    }
}
