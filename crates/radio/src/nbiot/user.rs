//! One mobile: its RLC both ways, the one transfer that it can have at a time, random access, and
//! its connection.
//!
//! It sends or receives at a time (half duplex), so what it does is a chain: random access, the
//! messages that set the connection up, blocks of data. Each step is planned when the one before
//! has ended, and takes the resources of the carrier that it needs.

mod connection;
mod transfer;

use std::collections::VecDeque;

use airpath_core::{
    Aspect, ConnectionTotals, Context, Direction, DropCause, HarqState, Instant, LteRrcState, ModeState, Packet,
    PacketCounters, PacketStep, Probability, RadioTotals, RandomStream, Seed, Span, UserId, WaitState, earliest,
};
use airpath_link::command::{BearerCommand, Buffer, Change, CommandError};
use airpath_link::{Admission, Departure};

use super::config::Config;
use super::plan::{Plan, SUBFRAME};
use crate::common::arq::rlc_queue::RlcQueue;
use crate::common::log::Tracks;
use crate::common::multiplexing::due::pop_due;
use crate::conditions::{self, Conditions};
use crate::ofdma::paging::Paging;
use crate::ofdma::pdcp::{self, Pdcp};
use crate::ofdma::rlc::{Block, MaxRetransmissions, Rlc};
use transfer::Transfer;

/// Bytes of the header of a PDCP data PDU with a sequence number of 7 bits (TS 36.323 §6.2.4).
const PDCP_HEADER: u64 = 1;

/// One mobile.
#[derive(Debug)]
pub struct User {
    id: UserId,
    down: Rlc,
    up: Rlc,
    state: State,
    phase: Phase,
    paging: Paging,
    /// Since when it is idle; `None`: since before the run.
    idle_since: Option<Instant>,
    /// When it is paged, or updates its tracking area, for what waits for it.
    page_at: Option<Instant>,
    /// When the set-up of the connection began.
    setup_from: Instant,
    /// The coverage level of the last random access, and the SINR downwards that the base station
    /// has measured last, in what the mobile sent.
    level: usize,
    measured: f64,
    /// The message of the set-up that is next, and the bytes that are left of it.
    message: usize,
    message_left: u32,
    /// Bytes in the buffer of the mobile that were reported to the base station.
    known: u64,
    last_direction: Direction,
    /// The response of random access has granted the first message.
    is_granted: bool,
    /// A block that is to be sent again.
    again: Option<Box<Transfer>>,
    /// When the connection is released unless something happens.
    release_at: Option<Instant>,
    /// Data went up in this connection, and then came down.
    has_sent: bool,
    is_answered: bool,
    /// Blocks that were decoded, in transit to the RLC: downlink, uplink.
    arrivals: [VecDeque<(Instant, Block)>; 2],
    conditions: Conditions,
    is_lost: bool,
    /// Nothing gets through in a direction before.
    blocked_until: [Instant; 2],
    bler: [Option<Probability>; 2],
    errors: RandomStream,
    totals: [RadioTotals; 2],
    tracks: Tracks,
    spare: Vec<Block>,
    /// All that happens up to here has happened.
    clock: Instant,
}

/// The connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is none.
    Idle,
    /// It is being set up.
    SetUp,
    /// It is there.
    Connected,
}

/// What the mobile does, and until when.
#[derive(Debug)]
enum Phase {
    /// Nothing.
    Rest,
    /// It has begun random access; the response can be sent then.
    Access(Instant),
    /// The base station can plan the next transfer then.
    Turn(Instant),
    /// A transfer was planned, whose block is sent from then on.
    Planned(Box<Transfer>),
    /// Its block is on the air, or its acknowledgement.
    Sent(Box<Transfer>),
}

impl User {
    /// A mobile without a packet, with streams below `path`.
    ///
    /// # Errors
    /// If its radio conditions make no sense.
    pub fn new(
        config: &Config,
        plan: &Plan,
        index: usize,
        seed: Seed,
        path: &str,
    ) -> Result<Self, conditions::ConfigError> {
        let rlc = |direction: Direction| {
            let queue = config.queue.clone().unwrap_or_default();
            let parameters = pdcp::Parameters { header: PDCP_HEADER, discard: None, queue, reordering: None };
            let queue = RlcQueue::new(&parameters.queue, SUBFRAME, seed, &format!("{path}/{}", direction.name()));
            Rlc::new(&plan.rlc, Pdcp::new(&parameters, queue), direction, plan.delay)
        };
        let mut offsets = seed.stream(&format!("{path}/offsets"));
        let cycle = config.rrc.paging;
        let offset = SUBFRAME * offsets.below(cycle.as_nanos() / SUBFRAME.as_nanos());
        let user = UserId::new(index as u32);
        Ok(Self {
            id: user,
            down: rlc(Direction::Down),
            up: rlc(Direction::Up),
            state: State::Idle,
            phase: Phase::Rest,
            paging: Paging::new(cycle, offset, config.rrc.power_saving.as_ref(), &mut offsets),
            idle_since: None,
            page_at: None,
            setup_from: Instant::ZERO,
            level: 0,
            measured: 0.0,
            message: 0,
            message_left: 0,
            known: 0,
            last_direction: Direction::Up,
            is_granted: false,
            again: None,
            release_at: None,
            has_sent: false,
            is_answered: false,
            arrivals: Default::default(),
            conditions: Conditions::new(&config.conditions, index, seed, &format!("{path}/conditions"))?,
            is_lost: false,
            blocked_until: [Instant::ZERO; 2],
            bler: [config.downlink.bler, config.uplink.bler],
            errors: seed.stream(&format!("{path}/errors")),
            totals: Default::default(),
            tracks: Tracks::new(user),
            spare: Vec::new(),
            clock: Instant::ZERO,
        })
    }

    /// What happened to its connection.
    pub const fn connection_totals(&self) -> ConnectionTotals {
        self.tracks.totals
    }

    /// The run ends at `now`.
    pub fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.tracks.settle(now, cx);
    }

    /// What it has sent or got on the air.
    pub const fn radio_totals(&self, direction: Direction) -> RadioTotals {
        self.totals[direction as usize]
    }

    /// What went in, came out, was lost and is inside.
    pub const fn counters(&self, direction: Direction) -> PacketCounters {
        match direction {
            Direction::Down => self.down.counters,
            Direction::Up => self.up.counters,
        }
    }

    fn rlc(&mut self, direction: Direction) -> &mut Rlc {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    /// Whether all packets have come to the far end, handed over by now or not.
    pub fn is_empty(&self) -> bool {
        self.down.is_empty() && self.up.is_empty()
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Instant> {
        let arrives = self.arrivals.iter().filter_map(|queue| queue.front().map(|(at, _)| *at)).min();
        let phase = match &self.phase {
            Phase::Rest => None,
            Phase::Access(at) | Phase::Turn(at) => Some(*at),
            Phase::Planned(transfer) => Some(transfer.start),
            Phase::Sent(transfer) => Some(transfer.end),
        };
        let events = [arrives, phase, self.down.next_timer(), self.up.next_timer(), self.page_at, self.release_at];
        earliest(events).map(|at| at.max(self.clock))
    }

    /// What happens at one time.
    pub fn work(&mut self, now: Instant, plan: &mut Plan, cx: &mut Context<'_>) {
        self.clock = now;
        self.receive(now, plan, cx);
        let results = [self.down.expire(now, cx), self.up.expire(now, cx)];
        if results.into_iter().any(|result| result.is_err()) {
            self.fail(now, plan, cx);
        }
        if self.page_at.take_if(|at| *at <= now).is_some() {
            self.set_up(now, plan, cx);
        }
        self.step(now, plan, cx);
        self.release(now, plan, cx);
        self.wake(now);
    }

    /// The RLC gets the blocks that were decoded.
    fn receive(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) {
        for direction in Direction::BOTH {
            while let Some(mut block) = pop_due(&mut self.arrivals[direction as usize], now) {
                self.rlc(direction).receive(now, &block.pdus, cx);
                let result = block.status.take().map(|status| self.rlc(direction.opposite()).acknowledge(&status));
                recycle(&mut self.spare, block);
                if result == Some(Err(MaxRetransmissions)) {
                    self.fail(now, plan, cx);
                    return;
                }
            }
        }
    }

    /// Takes a packet to send.
    pub fn push(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        plan: &mut Plan,
        cx: &mut Context<'_>,
    ) -> Admission {
        cx.direction = direction;
        self.clock = now;
        let rlc = self.rlc(direction);
        rlc.counters.offer(&packet);
        if let Err(cause) = rlc.enqueue(now, packet, cx) {
            rlc.counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
            return Admission::Dropped(cause);
        }
        let (backlog_packets, backlog_bytes) = rlc.backlog();
        cx.packet(now, packet, || PacketStep::Queued { backlog_packets, backlog_bytes });
        self.connect(now, direction, plan, cx);
        self.wake(now);
        Admission::Queued
    }

    /// When the next packet leaves, and which way.
    pub fn next_departure(&self) -> Option<(Instant, Direction)> {
        let due = |rlc: &Rlc, direction| rlc.departures.front().map(|departure| (departure.due, direction));
        earliest([due(&self.down, Direction::Down), due(&self.up, Direction::Up)])
    }

    /// The next packet, which has left.
    pub fn pop(&mut self, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        let (_, direction) = self.next_departure()?;
        let rlc = self.rlc(direction);
        let departure = rlc.departures.pop_front()?;
        rlc.counters.deliver(&departure.packet);
        cx.direction = direction;
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        Some((direction, departure))
    }

    /// Bytes that wait for it, the base station's status report included.
    fn waiting_down(&self, now: Instant) -> u64 {
        self.down.waiting() + self.up.status_bytes(now)
    }

    /// Bytes that wait at the mobile, its status report included.
    fn waiting_up(&self, now: Instant) -> u64 {
        self.up.waiting() + self.down.status_bytes(now)
    }

    /// A connected mobile at rest has something to send or to get: its turn comes.
    fn wake(&mut self, now: Instant) {
        let waits = self.waiting_down(now) > 0 || self.waiting_up(now) > 0;
        if self.state == State::Connected && matches!(self.phase, Phase::Rest) && waits {
            self.phase = Phase::Turn((now + Span::from_nanos(1)).round_up_to(SUBFRAME));
        }
    }

    /// Whether it can do that.
    pub fn check(&self, change: &Change) -> Result<(), CommandError> {
        change.check()?;
        let foreign =
            |help| Err(CommandError::Foreign { key: change.kind().name(), what: "a carrier of NB-IoT", help });
        match change {
            Change::Outage(_) | Change::Bler(_) => Ok(()),
            Change::CarrierToInterference(_) | Change::Environment(_) => self.conditions.check(change),
            Change::Delay(delay) if delay.fixed().is_some() => Ok(()),
            Change::Handover { .. } => foreign("a mobile changes its cell when it is idle: use `outage`"),
            Change::Delay(_) => foreign("its delay is one length of time, not a distribution"),
            Change::Loss(_) => foreign("blocks are lost by the SINR, or with a `bler`"),
            Change::Rate(_) | Change::Channels(_) | Change::Level(_) | Change::Class(_) => {
                foreign("its rate follows from repetitions, SINR and the other mobiles")
            }
        }
    }

    /// Does what was checked before, in these directions.
    pub fn command(&mut self, now: Instant, command: &BearerCommand, directions: &[Direction]) {
        self.clock = now;
        if let Some((span, Buffer::Keep)) = command.change.interruption() {
            for direction in directions {
                let blocked = &mut self.blocked_until[*direction as usize];
                *blocked = (*blocked).max(now + span);
            }
        }
        match &command.change {
            Change::CarrierToInterference(_) | Change::Environment(_) => {
                self.conditions.command(now, &command.change).expect("it was checked before");
                self.is_lost = false;
            }
            Change::Bler(bler) => {
                directions.iter().for_each(|direction| self.bler[*direction as usize] = Some(*bler));
            }
            Change::Delay(delay) => {
                let delay = delay.fixed().expect("it was checked before");
                directions.iter().for_each(|direction| self.rlc(*direction).delay = delay);
            }
            _ => {}
        }
    }

    fn report_rrc(&mut self, at: Instant, state: LteRrcState, cx: &mut Context<'_>) {
        self.tracks.report(at, None, Aspect::Rrc, state.into(), cx);
    }

    /// What the data of a connected mobile wait for.
    fn report_wait(&mut self, now: Instant, state: WaitState, cx: &mut Context<'_>) {
        self.tracks.report(now, Some(Direction::Up), Aspect::Wait, state.into(), cx);
    }

    /// Whether the block of a direction is to be sent again.
    fn report_harq(&mut self, now: Instant, direction: Direction, repeats: bool, cx: &mut Context<'_>) {
        let state = if repeats { HarqState::Repeat } else { HarqState::None };
        self.tracks.report(now, Some(direction), Aspect::Harq, state.into(), cx);
    }

    /// The radio link has failed: the connection is set up again, and the RLC starts again.
    fn fail(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) {
        self.tracks.totals.link_failures += 1;
        self.tracks.mode(now, ModeState::ReEstablishment, None, cx);
        Direction::BOTH.into_iter().for_each(|direction| self.report_harq(now, direction, false, cx));
        self.report_wait(now, WaitState::None, cx);
        self.reset();
        self.down.establish_again(now, DropCause::AttemptsExhausted, cx);
        self.up.establish_again(now, DropCause::AttemptsExhausted, cx);
        self.set_up(now, plan, cx);
    }

    /// What is on the air is lost.
    fn reset(&mut self) {
        if let Phase::Planned(transfer) | Phase::Sent(transfer) = std::mem::replace(&mut self.phase, Phase::Rest) {
            recycle(&mut self.spare, transfer.block);
        }
        if let Some(transfer) = self.again.take() {
            recycle(&mut self.spare, transfer.block);
        }
        for queue in &mut self.arrivals {
            queue.drain(..).for_each(|(_, block)| recycle(&mut self.spare, block));
        }
        (self.known, self.is_granted) = (0, false);
    }
}

/// Keeps the memory of a block that is no more.
fn recycle(spare: &mut Vec<Block>, mut block: Block) {
    block.pdus.clear();
    (block.status, block.buffer_status) = (None, None);
    spare.push(block);
}
