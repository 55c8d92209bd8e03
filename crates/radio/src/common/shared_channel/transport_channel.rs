//! A radio channel in one direction: a TTI clock, the users that share it in time, and the
//! repetition of what was received in error. A dedicated channel is one with a single user.
//!
//! TTIs begin at the multiples of their length. In each, one user sends a block of PDUs:
//!
//! 1. If a retransmission is due, it is sent, of whatever user, the longest due first. A repeated
//!    block of [`Repetition::Blocks`] has the TTI to itself and keeps its size, whatever the state
//!    of the channel: the transport block of an H-ARQ process does not change. [`Repetition::Pdus`]
//!    fills the rest of the TTI with new PDUs.
//! 2. Otherwise the scheduler picks one of the users that have new data. Data that arrives at the
//!    very beginning of a TTI is sent in the next one.
//! 3. The block, or each of its PDUs, is received in error with a probability that depends only on
//!    the attempt. Data received in error is due again one retransmission delay after the end of
//!    the TTI, in the first TTI that begins from then on: the receiver needs the whole TTI to
//!    detect the error; NACK and turnaround follow. With 9.5 ms and TTIs of 2 ms this is six TTIs
//!    after the first transmission. The number of H-ARQ processes is the number that this takes.
//! 4. A packet is passed on at the end of the TTI that completes it and all packets before it. It
//!    leaves after the fixed one-way delay.
//!
//! Nothing that happens inside depends on when the channel is polled: TTIs are worked off in their
//! order, up to the time of the call, each with what had been pushed before it began.

mod change;

use std::collections::VecDeque;

use airpath_core::{
    Context, Direction, DropCause, Dropped, Instant, Packet, PacketCounters, PacketStep, RadioEvent, RadioTotals,
    RandomStream, Seed, Span, UserId, earliest,
};
use airpath_link::queue::{Discipline, Queue};
use airpath_link::{Admission, Departure};

use super::channel::{Channel, Levels};
use super::harq::ErrorsByAttempt;
use super::scheduler::{Candidate, Scheduler};
use crate::common::arq::repeats::{Repeat, Repeats};
use crate::common::arq::rlc::{Rlc, Run};
use crate::common::arq::rlc_queue::RlcQueue;

/// What a carrier is like.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// The direction of what it carries.
    pub direction: Direction,
    /// The length of a TTI, not zero.
    pub tti: Span,
    /// The size of a PDU in bytes, not zero.
    pub pdu: u32,
    /// How many PDUs a TTI carries, by level.
    pub pdus_per_tti: Vec<u32>,
    /// The probability of an error, for each user until a command changes it.
    pub errors: ErrorsByAttempt,
    /// What is in error, and sent again, as one.
    pub repetition: Repetition,
    /// From the end of a TTI to when what was in error may be sent again.
    pub retransmission_delay: Span,
    /// How often a PDU is sent before its packet is given up.
    pub max_attempts: Option<u32>,
    /// Whether packets are delivered in the order in which they came.
    pub in_sequence: bool,
    /// From the end of a TTI to the departure of the packets that it completes.
    pub delay: Span,
    /// What waits before the RLC, for each user.
    pub queue: Queue,
    /// The C/I levels, if what a TTI carries depends on them.
    pub levels: Option<Levels>,
}

/// What is in error, and sent again, as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// The block of a TTI, in a TTI of its own: hybrid ARQ.
    Blocks,
    /// Single PDUs, among new ones: the ARQ of the RLC.
    Pdus {
        /// Whether the PDUs of a TTI are in error all together, rather than each by itself.
        together: bool,
    },
}

/// A carrier and its users.
#[derive(Debug)]
pub struct TransportChannel {
    parameters: Parameters,
    /// Whether the queues may drop a packet when its turn has come.
    drops_when_sending: bool,
    /// The first of the users, who are numbered in a row.
    first_user: u32,
    users: Vec<User>,
    /// The channels of the users; none where the level never changes.
    channels: Vec<Channel>,
    scheduler: Box<dyn Scheduler>,
    /// The users that have something that was never sent.
    candidates: Vec<Candidate>,
    /// What is to be sent again.
    repeats: Repeats,
    /// The first TTI that is still to come.
    next_tti: u64,
    /// The block of the current TTI; kept for its memory.
    block: Vec<Run>,
    /// Packets in flight to the far end, in the order of `due`.
    departures: VecDeque<Departure>,
    /// Packets that were lost and are still to be reported, in the order of time.
    losses: VecDeque<Dropped>,
    /// Users that are interrupted while others go on.
    interruptions: Vec<Interruption>,
    counters: PacketCounters,
}

/// A user that gets nothing for a time, while others do.
#[derive(Debug)]
struct Interruption {
    /// The index of the user.
    user: u32,
    /// The first TTI in which it may send again.
    until: u64,
    /// What it has to repeat then.
    repeats: Vec<Repeat>,
}

#[derive(Debug)]
struct User {
    rlc: Rlc,
    errors: RandomStream,
    block_errors: ErrorsByAttempt,
    is_candidate: bool,
    /// Whether it is interrupted: then it is no candidate, whatever it has.
    is_interrupted: bool,
    waiting_since: u64,
    totals: RadioTotals,
}

impl TransportChannel {
    /// An idle carrier for users numbered in a row from `first_user` on, each with the name of the
    /// stream of its errors. `channels` are those of the users, in their order, or none at all if
    /// the level is always 0.
    pub fn new(
        parameters: Parameters,
        scheduler: Box<dyn Scheduler>,
        channels: Vec<Channel>,
        (first_user, error_streams): (u32, Vec<String>),
        seed: Seed,
    ) -> Self {
        let Parameters { tti, pdu, in_sequence, ref queue, retransmission_delay, .. } = parameters;
        let users = error_streams.iter().map(|path| User {
            rlc: Rlc::new(pdu, in_sequence, RlcQueue::new(queue, tti, seed, path)),
            errors: seed.stream(path),
            block_errors: parameters.errors.clone(),
            is_candidate: false,
            is_interrupted: false,
            waiting_since: 0,
            totals: RadioTotals::default(),
        });
        Self {
            drops_when_sending: parameters.queue.discipline != Discipline::DropTail,
            first_user,
            users: users.collect(),
            channels,
            scheduler,
            candidates: Vec::new(),
            repeats: Repeats::new(1 + retransmission_delay.as_nanos().div_ceil(tti.as_nanos())),
            next_tti: 0,
            block: Vec::new(),
            departures: VecDeque::new(),
            losses: VecDeque::new(),
            interruptions: Vec::new(),
            counters: PacketCounters::default(),
            parameters,
        }
    }

    /// The direction of what it carries.
    pub const fn direction(&self) -> Direction {
        self.parameters.direction
    }

    /// Gives it a packet of one of its users.
    pub fn push(&mut self, now: Instant, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.advance(now, cx);
        self.counters.offer(&packet);
        let index = self.index_of(packet.user).expect("a packet is pushed to the carrier of its user");
        let user = &mut self.users[index];
        let had_nothing = !user.is_candidate && !user.rlc.has_new();
        let counters = &mut self.counters;
        let lost = |packet| {
            counters.lose(&packet, DropCause::QueueFull);
            cx.drop_packet(now, packet, DropCause::QueueFull);
        };
        if let Err(cause) = user.rlc.enqueue(now, packet, lost) {
            self.counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
            return Admission::Dropped(cause);
        }
        cx.packet(now, packet, || {
            let (backlog_packets, backlog_bytes) = user.rlc.backlog();
            PacketStep::Queued { backlog_packets, backlog_bytes }
        });
        if had_nothing {
            self.scheduler.backlogged(now.as_nanos() / self.parameters.tti.as_nanos(), index as u32);
        }
        let user = &self.users[index];
        if !user.is_candidate && !user.is_interrupted {
            self.enlist(index);
            if self.candidates.len() == 1 {
                // The TTI that begins now is over, and those that passed idle do not come back.
                self.next_tti = self.next_tti.max(now.as_nanos() / self.parameters.tti.as_nanos() + 1);
            }
        }
        Admission::Queued
    }

    /// Makes a user a candidate.
    #[inline]
    fn enlist(&mut self, index: usize) {
        let user = &mut self.users[index];
        user.is_candidate = true;
        let (waiting_since, pdus) = (user.waiting_since, self.parameters.pdus_per_tti[0]);
        self.candidates.push(Candidate { user: index as u32, level: 0, pdus, waiting_since });
    }

    /// The next packet that left at or before `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<Departure> {
        self.advance(now, cx);
        let departure = *self.departures.front().filter(|departure| departure.due <= now)?;
        self.departures.pop_front();
        self.counters.deliver(&departure.packet);
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        Some(departure)
    }

    /// The earliest time at which a packet leaves or is lost: one whose time is known, or one in
    /// the next TTI.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let next = self.next_active();
        // What is sent later leaves later, and is lost later.
        let leaves = match self.departures.front() {
            Some(departure) => Some(departure.due),
            None => next.map(|tti| self.start_of(tti + 1) + self.parameters.delay),
        };
        let lost = match self.losses.front() {
            Some(lost) => Some(lost.time),
            None => next.and_then(|tti| self.earliest_loss(tti)),
        };
        earliest([leaves, lost])
    }

    /// When a packet is lost at the earliest if `tti` is the next one.
    #[inline]
    fn earliest_loss(&self, tti: u64) -> Option<Instant> {
        // A user who comes back may bring new packets and repeats.
        let comes_back = !self.interruptions.is_empty();
        if self.drops_when_sending && (comes_back || !self.candidates.is_empty()) {
            return Some(self.start_of(tti));
        }
        let may_be_the_last = self.parameters.max_attempts? == 1 || comes_back || self.repeats.first().is_some();
        let loses = if may_be_the_last { tti } else { tti + self.repeats.turnaround() };
        Some(self.start_of(loses + 1))
    }

    /// What went in, came out, was lost and is inside.
    pub const fn counters(&self) -> PacketCounters {
        self.counters
    }

    /// All transmissions of `user`, if it is one of this carrier's.
    pub fn radio_totals(&self, user: UserId) -> Option<RadioTotals> {
        self.index_of(user).map(|index| self.users[index].totals)
    }

    fn index_of(&self, user: UserId) -> Option<usize> {
        let index = user.number().checked_sub(self.first_user)? as usize;
        (index < self.users.len()).then_some(index)
    }

    #[inline]
    fn start_of(&self, tti: u64) -> Instant {
        Instant::from_nanos(tti * self.parameters.tti.as_nanos())
    }

    /// The next TTI in which something can be sent.
    #[inline]
    fn next_active(&self) -> Option<u64> {
        let active = if self.candidates.is_empty() {
            self.repeats.first().map(|repeat| repeat.due.max(self.next_tti))
        } else {
            Some(self.next_tti)
        };
        if self.interruptions.is_empty() { active } else { self.next_active_or_resumed(active) }
    }

    /// Works off the TTIs that begin up to and including `now`, and reports the losses until then.
    #[inline]
    fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some(tti) = self.next_active()
            && self.start_of(tti) <= now
        {
            if !self.interruptions.is_empty() {
                self.resume(tti);
            }
            self.transmit(tti, cx);
            self.next_tti = tti + 1;
        }
        while let Some(lost) = self.losses.front().copied()
            && lost.time <= now
        {
            self.losses.pop_front();
            self.counters.lose(&lost.packet, lost.cause);
            cx.drop_packet(lost.time, lost.packet, lost.cause);
        }
    }

    /// One TTI.
    fn transmit(&mut self, tti: u64, cx: &mut Context<'_>) {
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        let (index, level, repeated) = match self.take_repeats(tti, &mut block) {
            Some(repeats) => repeats,
            None => match self.schedule(tti) {
                Some((index, level)) => (index, level, 0),
                None => {
                    self.block = block;
                    return;
                }
            },
        };
        let start = self.start_of(tti);
        let new = if repeated > 0 && self.parameters.repetition == Repetition::Blocks {
            0
        } else {
            self.take_new(tti, index, level, repeated, &mut block)
        };
        let errored = self.receive(tti, index, level, &block);
        self.block = block;
        let pdus = repeated + new;
        if pdus > 0 {
            let event = RadioEvent {
                direction: self.parameters.direction,
                user: UserId::new(self.first_user + index as u32),
                duration: self.parameters.tti,
                pdus: pdus as u16,
                repeated: repeated as u16,
                errored: errored as u16,
                bytes: pdus * self.parameters.pdu,
                level,
                control: 0,
            };
            self.users[index].totals.add(&event);
            cx.radio(start, || event);
        }
        self.leave_if_done(index);
    }

    /// Moves what is to be repeated in TTI `tti` into `block`. Returns whose it is, at which level
    /// it was sent first, and how many PDUs it is; `None` if nothing is due.
    #[inline]
    fn take_repeats(&mut self, tti: u64, block: &mut Vec<Run>) -> Option<(usize, u8, u32)> {
        let users = &self.users;
        // The rest of a packet that was given up is not worth a transmission.
        let wanted = |repeat: &Repeat| !users[repeat.user as usize].rlc.is_done(repeat.run.packet);
        let (repeat, pdus) = match self.parameters.repetition {
            Repetition::Blocks => self.repeats.take_block(tti, wanted, block)?,
            Repetition::Pdus { .. } => self.repeats.take_pdus(tti, self.parameters.pdus_per_tti[0], wanted, block)?,
        };
        Some((repeat.user as usize, repeat.level, pdus))
    }

    /// How many PDUs a TTI carries at `level`.
    fn room(&self, level: u8) -> u32 {
        self.parameters.pdus_per_tti[usize::from(level)]
    }

    /// Picks the user that sends something new, and finds its level.
    fn schedule(&mut self, tti: u64) -> Option<(usize, u8)> {
        if !self.channels.is_empty() {
            for candidate in &mut self.candidates {
                candidate.level = self.channels[candidate.user as usize].draw();
                candidate.pdus = self.parameters.pdus_per_tti[usize::from(candidate.level)];
            }
        }
        let chosen = match self.candidates.len() {
            0 => return None,
            1 => 0,
            _ => self.scheduler.choose(&self.candidates),
        };
        let candidate = &mut self.candidates[chosen];
        candidate.waiting_since = tti + 1;
        self.users[candidate.user as usize].waiting_since = tti + 1;
        Some((candidate.user as usize, candidate.level))
    }

    /// Fills the block of a user with new PDUs, beside `used` others. Returns their number.
    fn take_new(&mut self, tti: u64, index: usize, level: u8, used: u32, block: &mut Vec<Run>) -> u32 {
        let (start, room) = (self.start_of(tti), self.room(level) - used);
        let Self { users, losses, scheduler, .. } = self;
        let new = users[index].rlc.segment(start, room, block, |packet| {
            losses.push_back(Dropped { time: start, packet, cause: DropCause::QueueManagement });
        });
        if new > 0 {
            scheduler.served(tti, index as u32, new);
        }
        new
    }

    /// When what the far end gets at `end` leaves: never before what left earlier, though the delay
    /// be shorter now.
    #[inline]
    fn due_after(&self, end: Instant) -> Instant {
        let due = end + self.parameters.delay;
        self.departures.back().map_or(due, |last| due.max(last.due))
    }

    /// Lets the far end have the block, but for what is in error, which is kept to be repeated or
    /// given up. Returns the number of PDUs in error.
    fn receive(&mut self, tti: u64, index: usize, level: u8, block: &[Run]) -> u32 {
        let together = match self.parameters.repetition {
            Repetition::Blocks | Repetition::Pdus { together: true } => {
                let User { errors, block_errors, .. } = &mut self.users[index];
                block.first().map(|run| errors.chance(block_errors.at(run.attempt)))
            }
            Repetition::Pdus { together: false } => None,
        };
        let end = self.start_of(tti + 1);
        let due = self.due_after(end);
        let mut sum = 0;
        for run in block {
            let user = &mut self.users[index];
            let errored = match together {
                Some(errored) => u32::from(errored) * run.pdus,
                None => {
                    let p = user.block_errors.at(run.attempt);
                    (0..run.pdus).map(|_| u32::from(user.errors.chance(p))).sum()
                }
            };
            sum += errored;
            let departures = &mut self.departures;
            let mut deliver = |packet| departures.push_back(Departure { due, packet });
            if errored < run.pdus {
                user.rlc.receive(run.packet, run.pdus - errored, &mut deliver);
            }
            if errored == 0 {
                continue;
            }
            if self.parameters.max_attempts.is_none_or(|max| run.attempt < max) {
                self.repeats.add(tti, index as u32, level, *run, errored);
            } else if let Some(packet) = user.rlc.give_up(run.packet, &mut deliver) {
                self.losses.push_back(Dropped { time: end, packet, cause: DropCause::AttemptsExhausted });
            }
        }
        sum
    }

    /// Takes a user out of the candidates if it has nothing new left.
    fn leave_if_done(&mut self, index: usize) {
        let user = &mut self.users[index];
        if user.is_candidate && !user.rlc.has_new() {
            user.is_candidate = false;
            let place = self.candidates.iter().position(|candidate| candidate.user as usize == index);
            self.candidates.swap_remove(place.expect("a user that is marked as a candidate is one"));
        }
    }
}
