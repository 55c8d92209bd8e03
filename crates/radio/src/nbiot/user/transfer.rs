//! Transfers: random access, messages of the set-up, blocks of data.

use airpath_core::{Classes, Context, Direction, Instant, RadioEvent, Span, WaitState};

use super::{Phase, State, User, recycle};
use crate::common::link_adaptation::SoftBuffer;
use crate::conditions::Sample;
use crate::nbiot::plan::{ACCESS_RESPONSE, FIRST_MESSAGE, Format, Plan, as_sinr, decibel};
use crate::ofdma::rlc::Block;

/// Bytes of headers of the MAC, and of a buffer status report, that a block has room for.
const MARGIN: u64 = 4;

/// A block, from its plan to its end.
#[derive(Debug)]
pub(super) struct Transfer {
    direction: Direction,
    purpose: Purpose,
    format: Format,
    /// When its block begins, when it is decoded, and when the result is known.
    pub start: Instant,
    decoded: Instant,
    pub end: Instant,
    /// The earliest NPDCCH after it.
    next: Instant,
    /// What the receiver has of it.
    soft: SoftBuffer,
    attempts: u8,
    pub block: Block,
    /// Bytes of a message of the set-up in it.
    message: u32,
    /// Bytes that the mobile reports as waiting.
    reported: u64,
    /// It carries a part of a packet.
    has_data: bool,
    errored: bool,
}

/// What a transfer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The response of random access.
    Response,
    /// The first message of the mobile after it.
    FirstMessage,
    /// Messages of the set-up, and data.
    Data,
}

impl User {
    /// Goes on with what the mobile does, if it is time.
    pub(super) fn step(&mut self, now: Instant, plan: &mut Plan, cx: &mut Context<'_>) {
        let is_due = match &self.phase {
            Phase::Rest => false,
            Phase::Access(at) | Phase::Turn(at) => *at <= now,
            Phase::Planned(transfer) => transfer.start <= now,
            Phase::Sent(transfer) => transfer.end <= now,
        };
        if !is_due {
            return;
        }
        match std::mem::replace(&mut self.phase, Phase::Rest) {
            Phase::Rest => {}
            Phase::Access(_) => {
                self.plan(now, Direction::Down, Purpose::Response, ACCESS_RESPONSE.into(), plan);
            }
            Phase::Turn(_) => self.turn(now, plan, cx),
            Phase::Planned(transfer) => self.send(now, transfer, plan, cx),
            Phase::Sent(transfer) => self.finish(now, transfer, plan, cx),
        }
    }

    /// The base station plans the next transfer, or the mobile requests one.
    fn turn(&mut self, now: Instant, plan: &mut Plan, cx: &mut Context<'_>) {
        if let Some(transfer) = self.again.take() {
            self.plan_again(now, transfer, plan);
            return;
        }
        if std::mem::take(&mut self.is_granted) {
            self.plan(now, Direction::Up, Purpose::FirstMessage, FIRST_MESSAGE.into(), plan);
            return;
        }
        let (down, up) = (self.waiting_down(now), self.waiting_up(now));
        if self.state == State::SetUp {
            let direction = if self.message.is_multiple_of(2) { Direction::Down } else { Direction::Up };
            let is_last = self.message + 1 == plan.setup.len();
            let data = if is_last { up } else { 0 };
            self.plan(now, direction, Purpose::Data, u64::from(self.message_left) + data, plan);
            return;
        }
        // The base station has polled, so it expects a status report.
        let known = self.known.max(self.down.status_bytes(now)).min(up);
        let direction = match (down > 0, known > 0) {
            (true, true) => self.last_direction.opposite(),
            (true, false) => Direction::Down,
            (false, true) => Direction::Up,
            (false, false) if up > 0 => {
                self.access(now, plan, cx);
                return;
            }
            (false, false) => return,
        };
        let wanted = if direction == Direction::Down { down } else { known };
        self.plan(now, direction, Purpose::Data, wanted, plan);
    }

    /// Plans a new block.
    fn plan(&mut self, now: Instant, direction: Direction, purpose: Purpose, bytes: u64, plan: &mut Plan) {
        self.last_direction = direction;
        let level = plan.level_in(self.level, self.measured);
        let sinr = level.effective(direction as usize, self.measured, plan.below_downlink);
        let margin = if purpose == Purpose::Data { MARGIN } else { 0 };
        let format = level.format(direction as usize, sinr, bytes + margin);
        let transfer = Transfer {
            direction,
            purpose,
            format,
            start: now,
            decoded: now,
            end: now,
            next: now,
            soft: plan.soft_buffer(&format),
            attempts: 0,
            block: self.spare.pop().unwrap_or_default(),
            message: 0,
            reported: 0,
            has_data: false,
            errored: false,
        };
        self.plan_again(now, Box::new(transfer), plan);
    }

    /// Takes the resources of a block. One that is sent again keeps its repetitions.
    fn plan_again(&mut self, now: Instant, mut transfer: Box<Transfer>, plan: &mut Plan) {
        let from = now.max(self.blocked_until[transfer.direction as usize]);
        match transfer.direction {
            Direction::Down => {
                let is_acknowledged = transfer.purpose == Purpose::Data;
                let times = plan.reserve_down(from, self.level, &transfer.format, is_acknowledged);
                (transfer.start, transfer.decoded) = (times.data_start, times.data_end);
                (transfer.end, transfer.next) = match is_acknowledged {
                    true => {
                        let heard = times.acknowledgement_end + plan.processing;
                        (times.acknowledgement_end, times.next_control.max(heard))
                    }
                    false => (times.data_end, times.data_end),
                };
            }
            Direction::Up => {
                let times = plan.reserve_up(from, self.level, &transfer.format);
                (transfer.start, transfer.decoded, transfer.end) = (times.data_start, times.data_end, times.data_end);
                transfer.next = times.next_control.max(times.data_end + plan.processing);
            }
        }
        self.phase = Phase::Planned(transfer);
    }

    /// A block begins.
    fn send(&mut self, now: Instant, mut transfer: Box<Transfer>, plan: &Plan, cx: &mut Context<'_>) {
        let direction = transfer.direction;
        let is_first = transfer.attempts == 0;
        if is_first {
            self.fill(now, &mut transfer, plan, cx);
        }
        transfer.attempts += 1;
        let sample = self.look(now, cx);
        let index = direction as usize;
        let sinr = match self.bler[index] {
            None => {
                plan.level_of(&transfer.format).effective(index, sample.carrier_to_interference, plan.below_downlink)
            }
            Some(bler) => plan.sinr_of(&transfer.format, as_sinr(bler)),
        };
        let errors = transfer.soft.receive(transfer.format.symbols(), decibel(sinr));
        let is_blocked = self.is_lost || !sample.covered || self.blocked_until[index] > now;
        transfer.errored = self.errors.chance(errors) || is_blocked;
        // The mobile sends the block or its acknowledgement, which the base station measures.
        if transfer.purpose != Purpose::Response && !is_blocked {
            self.measured = sample.carrier_to_interference;
        }
        self.report(now, &transfer, is_first, &sample, cx);
        if transfer.purpose == Purpose::Data {
            let repeats = transfer.errored && transfer.attempts < plan.max_transmissions;
            self.report_harq(now, direction, repeats, cx);
        }
        if !transfer.errored && transfer.purpose == Purpose::Data {
            let processing = if direction == Direction::Down { plan.mobile_processing } else { Span::ZERO };
            let block = std::mem::take(&mut transfer.block);
            self.arrivals[index].push_back((transfer.decoded + processing, block));
        }
        self.phase = Phase::Sent(transfer);
    }

    /// Puts a part of a message and data into a block.
    fn fill(&mut self, now: Instant, transfer: &mut Transfer, plan: &Plan, cx: &mut Context<'_>) {
        let room = transfer.format.bits / 8;
        let mut left = room;
        match transfer.purpose {
            Purpose::Response => return,
            Purpose::FirstMessage => left = room.saturating_sub(FIRST_MESSAGE),
            Purpose::Data if self.state == State::SetUp => {
                transfer.message = self.message_left.min(room);
                left -= transfer.message;
            }
            Purpose::Data => {}
        }
        let is_last = self.message + 1 >= plan.setup.len() && transfer.message == self.message_left;
        if transfer.purpose == Purpose::Data && (self.state == State::Connected || is_last) {
            let Self { down, up, .. } = self;
            let (this, other) = if transfer.direction == Direction::Down { (down, up) } else { (up, down) };
            this.fill(now, left, other, &mut transfer.block, cx);
            transfer.has_data = !transfer.block.pdus.is_empty();
        }
        if transfer.direction == Direction::Up {
            transfer.reported = self.waiting_up(now);
        }
    }

    /// A block and its acknowledgement are over.
    fn finish(&mut self, now: Instant, mut transfer: Box<Transfer>, plan: &Plan, cx: &mut Context<'_>) {
        let next = transfer.next.max(now);
        if transfer.errored {
            let is_last = transfer.attempts >= plan.max_transmissions;
            if transfer.purpose == Purpose::Response || (transfer.purpose == Purpose::FirstMessage && is_last) {
                recycle(&mut self.spare, transfer.block);
                self.access(now, plan, cx);
                return;
            }
            if is_last {
                let block = std::mem::take(&mut transfer.block);
                self.rlc(transfer.direction).give_up(now, &block.pdus, cx);
                recycle(&mut self.spare, block);
            } else {
                self.again = Some(transfer);
            }
            self.phase = Phase::Turn(next);
            return;
        }
        match transfer.purpose {
            Purpose::Response => {
                recycle(&mut self.spare, std::mem::take(&mut transfer.block));
                self.is_granted = true;
            }
            Purpose::FirstMessage => {
                recycle(&mut self.spare, std::mem::take(&mut transfer.block));
                self.known = transfer.reported;
                if self.state == State::Connected {
                    self.report_wait(now, WaitState::None, cx);
                }
            }
            Purpose::Data => {
                if transfer.direction == Direction::Up {
                    self.known = transfer.reported;
                }
                if transfer.message > 0 {
                    self.message_received(now, transfer.message, plan, cx);
                }
                match transfer.direction {
                    Direction::Up => self.has_sent |= transfer.has_data,
                    Direction::Down => self.is_answered |= self.has_sent && transfer.has_data,
                }
            }
        }
        if self.state == State::Connected {
            self.keep(now, plan);
        }
        self.phase = Phase::Turn(next);
    }

    /// A transmission of a block.
    fn report(&mut self, now: Instant, transfer: &Transfer, is_first: bool, sample: &Sample, cx: &mut Context<'_>) {
        let pdus = transfer.block.pdus.len().max(1) as u16;
        let event = RadioEvent {
            direction: transfer.direction,
            user: self.id,
            duration: transfer.decoded.since(now),
            pdus,
            repeated: if is_first { 0 } else { pdus },
            errored: if transfer.errored { pdus } else { 0 },
            bytes: transfer.format.bits / 8,
            level: transfer.format.i_tbs,
            control: 0,
        };
        self.totals[transfer.direction as usize].add(&event);
        cx.radio(now, || event);
        if cx.wants(Classes::STATE) {
            self.tracks.connected(now, false, cx);
            self.tracks.radio(now, sample, cx);
        }
    }
}
