//! The mobile's end of an E-DCH, and that of the RNC: RLC, hybrid ARQ and reordering.

use std::collections::{BTreeMap, VecDeque};

use airpath_core::{Decibel, Instant, Packet, Probability, RadioTotals, RandomStream, Seed, Span, WaitState, earliest};

use super::config::EDch;
use super::grants::Activity;
use super::ladder::Ladder;
use crate::common::arq::acknowledged::Pdu;
use crate::common::arq::rlc_am::{Parameters, Reports, Rlc, RlcAm};
use crate::common::link_adaptation::Combining;
use crate::common::multiplexing::due::pop_due;
use crate::common::shared_channel::harq::{DEFAULT_CQI, block_error_rate, ratio_of_block_error_rate};
use crate::conditions::{Profile, Sample};
use crate::umts::ConfigError;
use crate::umts::hsdpa::reordering::Reordering;
use crate::umts::hsdpa::unit::{Block, Unit};
use crate::umts::r99::radio_link::Received;

/// Blocks between a missing one and the last that has come: half of the 64 numbers of MAC-es (TS
/// 25.321 §9.2.4.2, recalled).
const WINDOW: u64 = 32;

/// The E-DCH of one mobile.
#[derive(Debug)]
pub struct EDchLink {
    pub rlc: RlcAm,
    tti: Span,
    ladder: Ladder,
    bler: Probability,
    combining: Combining,
    max_transmissions: u32,
    fading: BTreeMap<Profile, Decibel>,
    margin: f64,
    below_cell: Option<f64>,
    radio_delay: Span,
    grant_delay: Span,
    happy_delay: Span,
    /// The step of the ladder that it has, and those that are to come.
    grant: Option<u8>,
    grants: VecDeque<(Instant, Option<u8>)>,
    request: Request,
    /// When the base station has scheduling information that it is to be given notice of.
    heard: Option<Instant>,
    /// Its grant is that of another cell.
    is_lost: bool,
    /// When the last two blocks ended, and whether they had the happy bit.
    happy: [Option<(Instant, bool)>; 2],
    processes: Vec<Option<Sent>>,
    errors: RandomStream,
    pub tti_at: Option<Instant>,
    blocked_until: Instant,
    /// The number of the next block.
    next: u64,
    arrivals: VecDeque<(Instant, Block)>,
    reordering: Reordering,
    /// PDUs that have gone up and were not given to the RLC yet.
    ready: VecDeque<Unit>,
    pdus: VecDeque<Pdu>,
    pub totals: RadioTotals,
}

/// What a mobile without a grant does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// Nothing.
    Idle,
    /// It is to send scheduling information.
    Due,
    /// That is in a process, or the base station has it.
    Sent,
}

/// A block that was sent, in vain so far.
#[derive(Debug)]
struct Sent {
    /// Without one it is scheduling information only.
    block: Option<Block>,
    bits: u32,
    step: u8,
    attempts: u32,
    /// The sum of what its attempts were received with, as ratios to what they need.
    sum: f64,
}

/// A transmission.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transmission {
    /// PDUs in it; none in scheduling information.
    pub pdus: u32,
    /// Whether it was sent before.
    pub is_repeated: bool,
    /// Whether it was received in error.
    pub is_errored: bool,
    /// The step of its grant, from 1.
    pub level: u8,
    /// Whether it is scheduling information alone.
    pub is_request: bool,
    /// Whether the RLC is to reset.
    pub exhausted: bool,
}

/// Bits of scheduling information alone.
const REQUEST_BITS: u32 = 18;

impl EDchLink {
    /// An idle one, with streams below `path`.
    pub fn new(config: &EDch, opposite: &Rlc, seed: Seed, path: &str) -> Result<Self, ConfigError> {
        let (tti, largest) = config.format()?;
        Ok(Self {
            rlc: RlcAm::new(&Parameters {
                rlc: &config.rlc,
                opposite,
                direction: airpath_core::Direction::Up,
                pdu: config.pdu_size()?,
                flexible: false,
                pdcp_header: config.pdcp_header.get() as u32,
                delay: config.delay,
                queue: config.queue.as_ref(),
                tti: config.tti,
                seed,
                path,
            })?,
            tti: config.tti,
            ladder: config.ladder(largest)?,
            bler: config.bler,
            combining: config.combining,
            max_transmissions: config.max_transmissions.into(),
            fading: config.fading.clone(),
            margin: 0.0,
            below_cell: config.below_cell.map(Decibel::get),
            radio_delay: config.radio_delay,
            grant_delay: config.grants.delay,
            happy_delay: config.grants.happy_delay,
            grant: None,
            grants: VecDeque::new(),
            request: Request::Idle,
            heard: None,
            is_lost: false,
            happy: [None; 2],
            processes: std::iter::repeat_with(|| None).take(tti.processes().into()).collect(),
            errors: seed.stream(&format!("{path}/up/errors")),
            tti_at: None,
            blocked_until: Instant::ZERO,
            next: 0,
            arrivals: VecDeque::new(),
            reordering: Reordering::new(WINDOW, config.reordering_timer),
            ready: VecDeque::new(),
            pdus: VecDeque::new(),
            totals: RadioTotals::default(),
        })
    }

    /// Length of a TTI.
    pub const fn tti(&self) -> Span {
        self.tti
    }

    /// From now on there is this fast fading.
    pub fn fade(&mut self, profile: Profile) {
        self.margin = self.fading.get(&profile).map_or(0.0, |margin| margin.get());
    }

    /// From now on errors in this share of first transmissions.
    pub const fn set_bler(&mut self, bler: Probability) {
        self.bler = bler;
    }

    /// C/I at its highest power.
    fn ci(&self, sample: &Sample) -> f64 {
        match (sample.level, self.below_cell) {
            (Some(level), Some(below)) => level - below,
            _ => sample.carrier_to_interference,
        }
    }

    /// When something happens next that is the link's own.
    pub fn next_event(&self, after: Instant) -> Option<Instant> {
        earliest([
            self.tti_at,
            self.arrivals.front().map(|(at, _)| *at),
            self.reordering.next_timer(),
            self.grants.front().map(|(at, _)| *at),
            self.rlc.next_timer(after),
        ])
    }

    /// Nothing is sent before `until`.
    pub fn block(&mut self, until: Instant) {
        self.blocked_until = self.blocked_until.max(until);
    }

    /// Whether it may send at `now`.
    pub fn may_send(&self, now: Instant) -> bool {
        self.blocked_until <= now
    }

    /// The base station gives it a grant at `now`, or withdraws it.
    pub fn grant(&mut self, now: Instant, step: Option<u8>) {
        self.grants.push_back((now + self.grant_delay, step));
    }

    /// Handles the grants that have come by `now`.
    pub fn work(&mut self, now: Instant) {
        while let Some(step) = pop_due(&mut self.grants, now) {
            self.grant = step;
            self.request = Request::Idle;
        }
    }

    /// The serving cell has changed: the processes are flushed and the grant is no more (TS 25.321
    /// §11.8.1.1.2, §11.8.1.3).
    pub fn reset_mac(&mut self) {
        self.processes.iter_mut().for_each(|process| *process = None);
        (self.grant, self.request, self.heard, self.happy) = (None, Request::Idle, None, [None; 2]);
        self.grants.clear();
        self.is_lost = true;
    }

    /// When the base station has new scheduling information.
    pub const fn take_heard(&mut self) -> Option<Instant> {
        self.heard.take()
    }

    /// Whether the base station is to forget its grant.
    pub const fn take_lost(&mut self) -> bool {
        std::mem::replace(&mut self.is_lost, false)
    }

    /// What the base station has heard of it at `now`.
    pub fn activity(&self, now: Instant) -> Activity {
        let last = self.happy.iter().flatten().find(|(ended, _)| *ended <= now);
        Activity { last_block: last.map(|(ended, _)| *ended), is_happy: last.is_none_or(|(_, is_happy)| *is_happy) }
    }

    /// Whether a block is to be sent again.
    pub fn has_repeats(&self) -> bool {
        self.processes.iter().flatten().any(|sent| sent.block.is_some())
    }

    /// What its data wait for.
    pub fn wait(&self, now: Instant) -> WaitState {
        if self.grant.is_some() || !self.rlc.has_something(now) {
            WaitState::None
        } else if self.request == Request::Due {
            WaitState::SchedulingRequest
        } else {
            WaitState::Grant
        }
    }

    /// Finds the next TTI that is used, after `now` and not before `earliest`.
    pub fn schedule(&mut self, now: Instant, earliest: Instant) {
        let has_something = self.rlc.has_something(now);
        if self.grant.is_none() && self.request == Request::Idle && self.grants.is_empty() && has_something {
            self.request = Request::Due;
        }
        let is_new = if self.grant.is_some() { has_something } else { self.request == Request::Due };
        self.tti_at = None;
        if !is_new && self.processes.iter().all(Option::is_none) {
            return;
        }
        // What arrives at the very beginning of a TTI goes in the next one.
        let next = Instant::from_nanos(now.as_nanos() + 1).max(self.blocked_until).max(earliest);
        let first = next.round_up_to(self.tti);
        let mut ttis = (0..self.processes.len() as u64).map(|tti| first + self.tti * tti);
        self.tti_at = ttis.find(|at| is_new || self.processes[self.process(*at)].is_some());
    }

    /// The process whose turn it is in the TTI that begins at `at`.
    fn process(&self, at: Instant) -> usize {
        (at.as_nanos() / self.tti.as_nanos() % self.processes.len() as u64) as usize
    }

    /// Sends in the TTI that begins at `now`. `receiving` is the downlink, whose reports go with
    /// it; `dropped` gets packets that the queue drops instead of sending them.
    pub fn transmit(
        &mut self,
        now: Instant,
        sample: &Sample,
        receiving: &RlcAm,
        dropped: &mut Vec<Packet>,
    ) -> Transmission {
        let ci = self.ci(sample) - self.margin;
        let process = self.process(now);
        let mut transmission = Transmission::default();
        let sent = match (self.processes[process].take(), self.grant) {
            (Some(sent), _) => Some(sent),
            (None, Some(step)) => self.fill(now, step, ci, receiving, &mut transmission, dropped),
            (None, None) if self.request == Request::Due => {
                self.request = Request::Sent;
                Some(Sent { block: None, bits: REQUEST_BITS, step: 0, attempts: 0, sum: 0.0 })
            }
            (None, None) => None,
        };
        let Some(mut sent) = sent else { return transmission };
        let ended = now + self.tti;
        if let Some(step) = self.grant {
            self.happy = [Some((ended, self.is_happy(step, ci))), self.happy[0]];
        }
        transmission.is_repeated = sent.attempts > 0;
        transmission.is_errored = self.is_errored(&mut sent, ci);
        transmission.pdus = sent.block.as_ref().map_or(0, |block| block.units.len() as u32);
        transmission.level = sent.step + 1;
        transmission.is_request = sent.block.is_none();
        if !transmission.is_errored {
            match sent.block {
                Some(block) => self.arrivals.push_back((ended + self.radio_delay, block)),
                None => self.heard = Some(ended),
            }
        } else if sent.attempts < self.max_transmissions {
            self.processes[process] = Some(sent);
        } else if sent.block.is_none() && self.request == Request::Sent {
            self.request = Request::Idle;
        }
        transmission
    }

    /// A new block, as large as grant, power and category allow: at least of one PDU.
    fn fill(
        &mut self,
        now: Instant,
        step: u8,
        ci: f64,
        receiving: &RlcAm,
        transmission: &mut Transmission,
        dropped: &mut Vec<Packet>,
    ) -> Option<Sent> {
        let bits = self.ladder.bits(step).min(self.ladder.bits_at(ci));
        let room = Ladder::pdus(bits, self.rlc.pdu).max(1);
        let carried = self.rlc.fill(now, room, receiving, &mut self.pdus, dropped);
        transmission.exhausted = carried.exhausted;
        if carried.pdus == 0 {
            return None;
        }
        let units = Unit::all(&carried, self.rlc.pdu, self.pdus.drain(..)).collect();
        let block = Block { number: self.next, units };
        self.next += 1;
        let bits = Ladder::bits_of(carried.pdus, self.rlc.pdu);
        Some(Sent { block: Some(block), bits, step, attempts: 0, sum: 0.0 })
    }

    /// Whether the mobile is happy with a step (TS 25.321 §11.8.1.5): power or category allow no
    /// more, or what waits is sent soon.
    fn is_happy(&self, step: u8, ci: f64) -> bool {
        let (_, waiting) = self.rlc.sender.backlog();
        step == self.ladder.top()
            || self.ladder.needs(self.ladder.bits(step + 1)) > ci
            || self.ladder.time_for(step, waiting) <= self.happy_delay
    }

    /// Sends a block once more, with as much of the power that it needs as there is.
    fn is_errored(&mut self, sent: &mut Sent, ci: f64) -> bool {
        let ratio = libm::exp10((ci - self.ladder.needs(sent.bits)).min(0.0) / 10.0);
        sent.attempts += 1;
        sent.sum += ratio;
        let received = if self.combining == Combining::None { ratio } else { sent.sum };
        let draw = self.errors.uniform();
        if self.bler == Probability::NEVER || self.bler == Probability::ALWAYS {
            return self.bler == Probability::ALWAYS;
        }
        let target = ratio_of_block_error_rate(self.bler.get(), DEFAULT_CQI);
        draw < block_error_rate(target + 10.0 * libm::log10(received), DEFAULT_CQI)
    }

    /// The next PDU with control information that has come by `now`; data goes to the RLC. `polled`
    /// is set if a PDU polls for a report.
    pub fn receive(&mut self, now: Instant, polled: &mut bool) -> Option<Received> {
        let Self { arrivals, reordering, ready, .. } = self;
        while let Some(block) = pop_due(arrivals, now) {
            reordering.take(now, block, |block| ready.extend(block.units));
        }
        reordering.expire(now, |block| ready.extend(block.units));
        let mut progress = false;
        let mut received = None;
        while let Some(unit) = self.ready.pop_front() {
            if let Some(pdu) = &unit.data {
                progress |= self.rlc.receive(pdu, polled);
                *polled |= unit.polls;
            }
            if unit.control.is_some() || unit.report.is_some() {
                let reports = unit.report.map_or_else(Reports::default, Reports::one);
                received = Some(Received { control: unit.control, reports });
                break;
            }
        }
        if progress {
            self.rlc.deliver(now);
        }
        received
    }
}
