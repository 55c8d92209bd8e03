//! A bearer of two links.

use std::collections::VecDeque;

use airpath_core::{Context, Direction, Instant, Packet, PacketCounters, Seed};

use crate::config::{Config, ConfigError, Plan};
use crate::pipe::Pipe;
use crate::{Admission, Bearer, BearerCommand, CommandError, Departure, Link};

/// A bearer of two independent links, for any number of users.
#[derive(Clone, Debug)]
pub struct Duplex<D, U> {
    /// Wake-ups of both links, downlink first; [`Instant::FAR_FUTURE`] for none. Stored together,
    /// so that a call touches only one of the links.
    wakeups: [Instant; 2],
    /// Departures of a link that were not popped before the next push.
    left: VecDeque<(Direction, Departure)>,
    down: D,
    up: U,
}

/// The bearer of two configured links. Generator streams are `name/down/…` and `name/up/…` of
/// `seed`.
///
/// # Errors
/// Those of [`Config::prepare`] of either link; to distinguish them, prepare both and use
/// [`Duplex::from_plans`].
pub fn duplex(down: &Config, up: &Config, seed: Seed, name: &str) -> Result<Duplex<Pipe, Pipe>, ConfigError> {
    Ok(Duplex::from_plans(&down.prepare()?, &up.prepare()?, seed, name))
}

impl Duplex<Pipe, Pipe> {
    /// The bearer of two links. Generator streams are `name/down/…` and `name/up/…` of `seed`.
    pub fn from_plans(down: &Plan, up: &Plan, seed: Seed, name: &str) -> Self {
        Self::new(down.pipe(seed, &format!("{name}/down")), up.pipe(seed, &format!("{name}/up")))
    }
}

impl<D: Link, U: Link> Duplex<D, U> {
    /// The bearer of these two links.
    pub fn new(down: D, up: U) -> Self {
        let mut duplex = Self { wakeups: [Instant::FAR_FUTURE; 2], left: VecDeque::new(), down, up };
        Direction::BOTH.into_iter().for_each(|direction| duplex.rearm(direction));
        duplex
    }

    /// Updates the wake-up of a link after a call.
    #[inline]
    fn rearm(&mut self, direction: Direction) {
        let wakeup = match direction {
            Direction::Down => self.down.next_wakeup(),
            Direction::Up => self.up.next_wakeup(),
        };
        self.wakeups[direction as usize] = wakeup.unwrap_or(Instant::FAR_FUTURE);
    }

    /// The direction with the next wake-up, and its time; downlink first if equal.
    #[inline]
    fn next(&self) -> Option<(Direction, Instant)> {
        let [down, up] = self.wakeups;
        let next = if up < down { (Direction::Up, up) } else { (Direction::Down, down) };
        (next.1 < Instant::FAR_FUTURE).then_some(next)
    }

    /// The directions to which the command applies.
    fn directions(&self, command: &BearerCommand) -> Result<Vec<Direction>, CommandError> {
        command.directions(|direction| match direction {
            Direction::Down => self.down.check(&command.change),
            Direction::Up => self.up.check(&command.change),
        })
    }

    /// The next packet that left either link at or before `now`, from wake-up to wake-up, so that
    /// the departures of both are in one order.
    #[inline]
    fn step(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        while let Some((direction, wakeup)) = self.next().filter(|(_, wakeup)| *wakeup <= now) {
            cx.direction = direction;
            let departure = match direction {
                Direction::Down => self.down.pop(wakeup, cx),
                Direction::Up => self.up.pop(wakeup, cx),
            };
            self.rearm(direction);
            if let Some(departure) = departure {
                return Some((direction, departure));
            }
        }
        None
    }
}

impl<D: Link, U: Link> Bearer for Duplex<D, U> {
    #[inline]
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        // A link must process the time before a packet is pushed.
        while let Some(departure) = self.step(now, cx) {
            self.left.push_back(departure);
        }
        cx.direction = direction;
        let admission = match direction {
            Direction::Down => self.down.push(now, packet, cx),
            Direction::Up => self.up.push(now, packet, cx),
        };
        self.rearm(direction);
        admission
    }

    #[inline]
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        match self.left.pop_front() {
            Some(departure) => Some(departure),
            None => self.step(now, cx),
        }
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Instant> {
        match self.left.front() {
            Some((_, departure)) => Some(departure.due),
            None => self.next().map(|(_, wakeup)| wakeup),
        }
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        let mut counters = match direction {
            Direction::Down => self.down.counters(),
            Direction::Up => self.up.counters(),
        };
        // Packets that were not popped are still inside, as seen by the caller.
        for (_, departure) in self.left.iter().filter(|(way, _)| *way == direction) {
            counters.recall(&departure.packet);
        }
        counters
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.directions(command).map(drop)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        let directions = self.directions(command)?;
        while let Some(departure) = self.step(now, cx) {
            self.left.push_back(departure);
        }
        for direction in directions {
            cx.direction = direction;
            match direction {
                Direction::Down => self.down.command(now, &command.change, cx)?,
                Direction::Up => self.up.command(now, &command.change, cx)?,
            }
            self.rearm(direction);
        }
        command.report(now, cx);
        Ok(())
    }
}
