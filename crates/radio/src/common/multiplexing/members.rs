//! Parts of a bearer that have nothing to do with each other, mobiles or one-way paths: the
//! earliest is always next, and the idle ones cost nothing.

use std::collections::VecDeque;

use airpath_core::{Context, Direction, Instant, Packet, PacketCounters};
use airpath_link::{Admission, Departure};

use super::tournament::Tournament;

/// One mobile, or one of its ways. The contracts are those of a [`Bearer`](airpath_link::Bearer).
pub trait Member {
    /// Gives it a packet.
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission;
    /// The next packet that left at or before `now`, whichever way.
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)>;
    /// When to call `pop` next.
    fn next_wakeup(&self) -> Option<Instant>;
    /// What went in, came out, was lost and is inside, one way.
    fn counters(&self, direction: Direction) -> PacketCounters;
}

/// The members of a bearer, by number.
#[derive(Debug)]
pub struct Members<M> {
    members: Vec<M>,
    wakeups: Tournament,
    /// Departures that were not popped before the next packet was pushed.
    left: VecDeque<(Direction, Departure)>,
}

impl<M: Member> Members<M> {
    /// Idle members.
    pub fn new(members: Vec<M>) -> Self {
        Self { wakeups: Tournament::new(members.len()), members, left: VecDeque::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// All of them.
    pub fn as_slice(&self) -> &[M] {
        &self.members
    }

    /// One of them.
    pub fn get(&self, index: usize) -> Option<&M> {
        self.members.get(index)
    }

    /// All of them, for what changes no wake-up.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.members.iter_mut()
    }

    /// Gives member number `index` a packet.
    #[inline]
    pub fn push(
        &mut self,
        index: usize,
        now: Instant,
        direction: Direction,
        packet: Packet,
        cx: &mut Context<'_>,
    ) -> Admission {
        self.change(index, now, cx, |member, cx| member.push(now, direction, packet, cx))
    }

    /// Changes a member after all that happens up to `now`.
    #[inline]
    pub fn change<T>(
        &mut self,
        index: usize,
        now: Instant,
        cx: &mut Context<'_>,
        change: impl FnOnce(&mut M, &mut Context<'_>) -> T,
    ) -> T {
        while let Some(departure) = self.step(now, cx) {
            self.left.push_back(departure);
        }
        let member = &mut self.members[index];
        let result = change(member, cx);
        self.wakeups.set(index, member.next_wakeup());
        result
    }

    /// The next packet that left at or before `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        match self.left.pop_front() {
            Some(departure) => Some(departure),
            None => self.step(now, cx),
        }
    }

    /// Goes from wake-up to wake-up until a packet leaves, so that the departures of all come in
    /// one order.
    #[inline]
    fn step(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        while let Some((index, wakeup)) = self.wakeups.first()
            && wakeup <= now
        {
            let member = &mut self.members[index];
            let departure = member.pop(wakeup, cx);
            self.wakeups.set(index, member.next_wakeup());
            if departure.is_some() {
                return departure;
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

    /// The counters of all in a direction.
    pub fn counters(&self, direction: Direction) -> PacketCounters {
        let mut sum = PacketCounters::default();
        for member in &self.members {
            sum += member.counters(direction);
        }
        // What was not handed over is still inside, as seen from outside.
        for (_, departure) in self.left.iter().filter(|(way, _)| *way == direction) {
            sum.recall(&departure.packet);
        }
        sum
    }
}
