//! One mobile: its RLC both ways, the Iub, hybrid ARQ and reordering towards it, its dedicated
//! channel, and its radio.
//!
//! What happens inside happens at exact times, worked off in their order. The TTIs of the HS-DSCH
//! are the cell's.

mod change;
mod movement;
mod tracks;
mod transmission;
mod transmission_up;

use std::collections::VecDeque;

use airpath_core::{
    ConnectionTotals, Context, Direction, DropCause, Instant, LinkState, Packet, PacketCounters, PacketStep,
    RadioTotals, RandomStream, Seed, Span, UserId, earliest,
};
use airpath_link::{Admission, Departure};

use super::buffer::{Packing, Reassembly};
use super::config::{Config, TTI};
use super::harq::Harq;
use super::iub::Iub;
use super::link_quality::LinkQuality;
use super::reordering::Reordering;
use super::unit::{Block, Unit};
use super::uplink::Uplink;
use crate::common::arq::acknowledged::Pdu;
use crate::common::arq::rlc_am::{Control, Late, Parameters, Resets, RlcAm};
use crate::common::log::Tracks;
use crate::common::multiplexing::due::pop_due;
use crate::common::shared_channel::cqi_reports::Reports;
use crate::conditions::Conditions;
use crate::umts::ConfigError;

/// One mobile.
#[derive(Debug)]
pub struct User {
    id: UserId,
    down: RlcAm,
    pub up: Uplink,
    resets: Resets,
    pub iub: Iub,
    pub harq: Harq,
    /// Blocks that are being decoded.
    arrivals: VecDeque<(Instant, Block)>,
    reordering: Reordering,
    reassembly: Reassembly,
    /// Blocks that have gone up and were not taken apart yet; kept for its memory.
    ready: VecDeque<Block>,
    quality: LinkQuality,
    reports: Reports,
    conditions: Conditions,
    movement: movement::Movement,
    errors: RandomStream,
    bler: Option<airpath_core::Probability>,
    /// The C/I in the current TTI, as a ratio.
    ratio: f64,
    /// The number of the TTI after the one in which it was served last.
    pub waiting_since: u64,
    totals: RadioTotals,
    tracks: Tracks,
    /// Packets that a queue dropped; kept for its memory.
    dropped: Vec<Packet>,
    pdus: VecDeque<Pdu>,
    /// The memory of blocks that are no more.
    spare: Vec<Vec<Unit>>,
    /// All that happens up to here has happened.
    clock: Instant,
}

impl User {
    /// An idle mobile, with streams below `path`.
    pub fn new(config: &Config, index: usize, seed: Seed, path: &str) -> Result<Self, ConfigError> {
        let (down, mobile) = (&config.downlink, &config.mobile);
        let window = u64::from(mobile.reordering_window);
        let pdu = down.pdu.get() as u32;
        let packing = down.mac.packing();
        let room = match packing {
            Packing::WholePdus => down.iub.buffer.get() / u64::from(pdu),
            Packing::Segments => down.iub.buffer.get(),
        };
        let conditions = Conditions::new(&config.conditions, index, seed, &format!("{path}/conditions"))?;
        let mut up = Uplink::new(config, seed, path)?;
        up.fade(conditions.profile());
        Ok(Self {
            id: UserId::new(index as u32),
            down: RlcAm::new(&Parameters {
                rlc: &down.rlc,
                opposite: config.uplink_rlc(),
                direction: Direction::Down,
                pdu,
                flexible: packing == Packing::Segments,
                pdcp_header: down.pdcp_header.get() as u32,
                delay: down.delay,
                queue: down.queue.as_ref(),
                tti: TTI,
                seed,
                path,
            })?,
            up,
            resets: Resets::new(&down.rlc, config.uplink_rlc()),
            iub: Iub::new(down.iub.delay, down.iub.interval, packing, packing.largest(pdu), room as u32),
            harq: Harq::new(down.harq.processes, config.cell.carriers, window),
            arrivals: VecDeque::new(),
            reordering: Reordering::new(window, mobile.reordering_timer),
            reassembly: Reassembly::default(),
            ready: VecDeque::new(),
            quality: LinkQuality::new(config.category()?.table),
            reports: Reports::new(mobile.cqi_cycle, mobile.cqi_delay),
            conditions,
            movement: movement::Movement::default(),
            errors: seed.stream(&format!("{path}/down/errors")),
            bler: down.bler,
            ratio: 0.0,
            waiting_since: 0,
            totals: RadioTotals::default(),
            tracks: Tracks::new(UserId::new(index as u32)),
            dropped: Vec::new(),
            pdus: VecDeque::new(),
            spare: Vec::new(),
            clock: Instant::ZERO,
        })
    }

    /// What it has sent or got on the air.
    pub const fn radio_totals(&self, direction: Direction) -> RadioTotals {
        match direction {
            Direction::Down => self.totals,
            Direction::Up => *self.up.totals(),
        }
    }

    /// What happened to its connection.
    pub const fn connection_totals(&self) -> ConnectionTotals {
        self.tracks.totals
    }

    /// The run ends at `now`.
    pub fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.tracks.settle(now, cx);
    }

    /// What went in, came out, was lost and is inside.
    pub const fn counters(&self, direction: Direction) -> PacketCounters {
        match direction {
            Direction::Down => self.down.counters,
            Direction::Up => self.up.rlc().counters,
        }
    }

    fn rlc(&mut self, direction: Direction) -> &mut RlcAm {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => self.up.rlc_mut(),
        }
    }

    /// Whether all packets have come to the far end, handed over by now or not.
    pub fn is_empty(&self) -> bool {
        self.down.is_empty() && self.up.rlc().is_empty()
    }

    /// Whether the base station has something for it.
    pub fn has_blocks(&self) -> bool {
        !self.iub.buffer.is_empty() || self.harq.has_repeats()
    }

    /// When something happens next that is its own.
    pub fn next_event(&self) -> Option<Instant> {
        let arrives = self.arrivals.front().map(|(at, _)| *at);
        let events = [
            arrives,
            self.iub.next_event(),
            self.reordering.next_timer(),
            self.down.next_timer(self.clock),
            self.up.next_event(self.clock),
            self.resets.next_timer(),
        ];
        earliest(events).map(|at| at.max(self.clock))
    }

    /// What happens at one time: what comes in first, what goes out last.
    pub fn work(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.clock = now;
        self.iub.work(now);
        if let Some(e_dch) = self.up.e_dch_mut() {
            e_dch.work(now);
        }
        self.receive_down(now, cx);
        self.receive_up(now, cx);
        self.down.expire(now, cx);
        self.up.rlc_mut().expire(now, cx);
        match self.resets.expire(now) {
            Some(Late::Again(direction, reset)) => self.rlc(direction).control = Some(reset),
            Some(Late::Failed) => self.fail(now, cx),
            None => {}
        }
        if self.up.takes_tti(now) {
            self.transmit_up(now, cx);
        }
        self.send_on(now, cx);
    }

    /// Lets the RNC send what it may, and finds the next TTI of the uplink.
    pub fn send_on(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.clock = now;
        while self.iub.may_send() > 0 && self.down.has_something(now) {
            let Self { down, up, iub, pdus, dropped, .. } = self;
            let carried = down.fill(now, iub.may_send(), up.rlc(), pdus, dropped);
            iub.send(now, Unit::all(&carried, down.pdu, pdus.drain(..)));
            down.lose(now, dropped, cx);
            // MaxDAT reached without a discard (`RlcAm::give_up`), or MaxMRW. Next: `begin_reset`.
            if carried.exhausted && !self.resets.is_running() {
                self.begin_reset(now, Direction::Down, cx);
            } else if carried.pdus == 0 {
                break;
            }
        }
        if self.iub.may_send() == 0 && self.down.has_something(now) {
            self.iub.request_capacity(now);
        }
        self.up.schedule(now, self.movement.next_search);
        self.report_stall(now, cx);
        self.report_wait(now, cx);
    }

    fn receive_down(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some(block) = pop_due(&mut self.arrivals, now) {
            let ready = &mut self.ready;
            if let Some(late) = self.reordering.take(now, block, |block| ready.push_back(block)) {
                self.recycle(late);
            }
        }
        let ready = &mut self.ready;
        self.reordering.expire(now, |block| ready.push_back(block));
        self.take_apart(now, cx);
    }

    /// Gives the RLC of the mobile what has gone up.
    fn take_apart(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some(block) = self.ready.pop_front() {
            let (mut polled, mut progress) = (false, false);
            self.reassembly.begin(&block);
            for unit in &block.units {
                if !self.reassembly.take(block.number, unit) {
                    continue;
                }
                if let Some(pdu) = &unit.data {
                    progress |= self.down.receive(pdu, &mut polled);
                    polled |= unit.polls;
                }
                if let Some(number) = unit.report {
                    self.down.hand_report_to(number, self.up.rlc_mut());
                }
                if let Some(control) = unit.control {
                    self.take_control(now, Direction::Down, control, cx);
                }
            }
            if progress {
                self.down.deliver(now);
            }
            if polled {
                self.up.rlc_mut().reporting.trigger();
            }
            self.recycle(block);
        }
    }

    fn receive_up(&mut self, now: Instant, cx: &mut Context<'_>) {
        let mut polled = false;
        while let Some(received) = self.up.receive(now, &mut polled) {
            for number in received.reports.numbers() {
                self.up.rlc_mut().hand_report_to(number, &mut self.down);
            }
            if let Some(control) = received.control {
                self.take_control(now, Direction::Up, control, cx);
            }
        }
        if polled {
            self.down.reporting.trigger();
        }
    }

    /// A message of a reset or a discard has come in a direction.
    fn take_control(&mut self, now: Instant, direction: Direction, control: Control, cx: &mut Context<'_>) {
        match control {
            Control::Reset { sequence } => {
                if self.resets.receive(sequence) {
                    self.down.reset(now, DropCause::AttemptsExhausted, cx);
                    self.up.reset(now, DropCause::AttemptsExhausted, cx);
                }
                self.rlc(direction.opposite()).control = Some(Control::ResetAck { sequence });
            }
            Control::ResetAck { sequence } => {
                if let Some(goes_on) = self.resets.acknowledged(direction, sequence) {
                    self.rlc(goes_on).is_stopped = false;
                    self.tracks.link(now, LinkState::Connected, cx);
                }
            }
            discard => match direction {
                Direction::Down => self.down.take_discard(now, discard, self.up.rlc_mut()),
                Direction::Up => self.up.rlc_mut().take_discard(now, discard, &mut self.down),
            },
        }
    }

    /// Next: [`Resets::expire`] in `work`, which leads to `fail` after MaxRST RESETs.
    fn begin_reset(&mut self, now: Instant, direction: Direction, cx: &mut Context<'_>) {
        let Self { resets, down, up, .. } = self;
        resets.begin(now, direction, if direction == Direction::Down { down } else { up.rlc_mut() });
        self.tracks.link(now, LinkState::Reset, cx);
    }

    /// Keeps the memory of a block that is no more.
    fn recycle(&mut self, mut block: Block) {
        block.units.clear();
        self.spare.push(block.units);
    }

    /// Takes a packet to send.
    pub fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        cx.direction = direction;
        let rlc = self.rlc(direction);
        rlc.counters.offer(&packet);
        if let Err(cause) = rlc.enqueue(now, packet, cx) {
            rlc.counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
            return Admission::Dropped(cause);
        }
        let (backlog_packets, backlog_bytes) = rlc.sender.backlog();
        cx.packet(now, packet, || PacketStep::Queued { backlog_packets, backlog_bytes });
        self.send_on(now, cx);
        Admission::Queued
    }

    /// When the next packet leaves, and which way.
    pub fn next_departure(&self) -> Option<(Instant, Direction)> {
        let due = |rlc: &RlcAm, direction| rlc.departures.front().map(|departure| (departure.due, direction));
        earliest([due(&self.down, Direction::Down), due(self.up.rlc(), Direction::Up)])
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

    /// The connection has failed: all is lost, and it is set up again.
    fn fail(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.tracks.totals.link_failures += 1;
        self.tracks.link(now, LinkState::Disconnected, cx);
        self.resets.forget(None);
        self.discard(now, &Direction::BOTH, DropCause::AttemptsExhausted, cx);
        self.block(now + RE_ESTABLISHMENT);
    }
}

/// How long it takes to set a connection up again whose RLC has failed: a choice, as of `umts`.
const RE_ESTABLISHMENT: Span = Span::from_secs(2);
