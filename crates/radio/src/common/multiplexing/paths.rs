//! One-way paths as members of a bearer: each user's direction over the air, or a plain link.

use std::ops::Range;

use airpath_core::{Context, Direction, Instant, Packet, PacketCounters, RadioTotals, UserId};
use airpath_link::{Admission, BearerCommand, Change, CommandError, Departure, Link, Pipe};

use super::members::{Member, Members};
use crate::common::shared_channel::transport_channel::TransportChannel;

/// One direction of one user, or of all.
#[derive(Debug)]
pub enum OneWay {
    /// Over the air.
    TransportChannel(Box<TransportChannel>),
    /// Over a plain link.
    Link(Direction, Box<Pipe>),
}

/// The paths of a bearer, by index.
pub type Paths = Members<OneWay>;

impl Paths {
    /// The directions in which a bearer of this number of `users` can obey a command, given the
    /// paths that this `concerns`.
    pub fn check(
        &self,
        command: &BearerCommand,
        users: usize,
        concerns: impl Fn(Direction) -> Range<usize>,
    ) -> Result<Vec<Direction>, CommandError> {
        if let Some(user) = command.user.filter(|user| user.index() >= users) {
            return Err(CommandError::NoSuchUser { user: user.number(), users });
        }
        command.directions(|direction| {
            self.as_slice()[concerns(direction)].iter().try_for_each(|path| path.check(&command.change))
        })
    }

    /// Changes the conditions of these paths, which was checked before.
    pub fn command(&mut self, concerned: Range<usize>, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) {
        for index in concerned {
            self.change(index, now, cx, |path, cx| {
                cx.direction = path.direction();
                match path {
                    OneWay::TransportChannel(channel) => channel.command(now, command, cx),
                    OneWay::Link(_, link) => link.command(now, &command.change, cx).expect("it was checked before"),
                }
            });
        }
    }

    /// What `user` transmitted on path number `index`; `None` if that is no radio, or not the
    /// user's.
    pub fn radio_totals(&self, index: usize, user: UserId) -> Option<RadioTotals> {
        match self.get(index)? {
            OneWay::TransportChannel(channel) => channel.radio_totals(user),
            OneWay::Link(..) => None,
        }
    }
}

impl OneWay {
    const fn direction(&self) -> Direction {
        match self {
            Self::TransportChannel(channel) => channel.direction(),
            Self::Link(direction, _) => *direction,
        }
    }

    fn check(&self, change: &Change) -> Result<(), CommandError> {
        match self {
            Self::TransportChannel(channel) => channel.check(change),
            Self::Link(_, link) => link.check(change),
        }
    }
}

/// A path goes one way only: packets of the other are never given to it.
impl Member for OneWay {
    #[inline]
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        cx.direction = direction;
        match self {
            Self::TransportChannel(channel) => channel.push(now, packet, cx),
            Self::Link(_, link) => link.push(now, packet, cx),
        }
    }

    #[inline]
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        let direction = self.direction();
        cx.direction = direction;
        let departure = match self {
            Self::TransportChannel(channel) => channel.pop(now, cx),
            Self::Link(_, link) => link.pop(now, cx),
        };
        departure.map(|departure| (direction, departure))
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Instant> {
        match self {
            Self::TransportChannel(channel) => channel.next_wakeup(),
            Self::Link(_, link) => link.next_wakeup(),
        }
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        match self {
            _ if direction != self.direction() => PacketCounters::default(),
            Self::TransportChannel(channel) => channel.counters(),
            Self::Link(_, link) => link.counters(),
        }
    }
}
