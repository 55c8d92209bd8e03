//! A mobile: its two flows, its radio, and what it does when.

use airpath_core::{
    Context, Direction, DropCause, Instant, Probability, RadioEvent, RadioTotals, RandomStream, Seed, Span, StateValue,
    UserId,
};

use super::air::Air;
use super::coding_scheme::CodingScheme;
use super::config::{Access, Config};
use super::downlink::{self, Downlink};
use super::ends::Ends;
use super::lanes::Lanes;
use super::llc;
use super::multiframe::{block_from, ccch_from, end_of, paging_from, start_of};
use super::uplink::{self, Uplink};
use crate::common::arq::acknowledged::Settings;
use crate::conditions::{Conditions, Transition};
use crate::error::check_queue;
use crate::gsm::gprs::ConfigError;

/// The end of a silence that only the user can end.
const STUCK: u64 = u64::MAX;

/// A frame of the TDMA, rounded to nanoseconds.
const FRAME: Span = Span::from_nanos(60_000_000 / 13);

/// Parameters as the flows use them.
#[derive(Clone, Debug)]
pub struct Timing {
    pub network_delay: Span,
    pub poll_interval: u32,
    pub ack_interval: u32,
    pub base_station_buffer: u64,
    pub access: Access,
    pub access_frames: u32,
    pub assignment_wait: Span,
    pub reaction: Span,
    pub paging_multiframes: u64,
    pub non_drx: Span,
    pub ready: Span,
    pub t3192: Span,
    pub countdown: u32,
    pub delayed_release: Span,
    pub extended_uplink: Span,
    pub keep_interval: Span,
    pub max_unanswered: u32,
    pub t3195: Span,
    pub stuck: Probability,
}

impl Timing {
    pub fn new(config: &Config) -> Self {
        let Config { cell, rlc, tbf, .. } = config;
        Self {
            network_delay: cell.network_delay,
            poll_interval: rlc.poll_interval,
            ack_interval: rlc.ack_interval,
            base_station_buffer: rlc.base_station_buffer.get(),
            access: tbf.access,
            access_frames: tbf.access_frames,
            assignment_wait: tbf.assignment_wait,
            reaction: tbf.reaction,
            paging_multiframes: tbf.paging_multiframes.into(),
            non_drx: tbf.non_drx,
            ready: tbf.ready,
            t3192: tbf.t3192,
            countdown: tbf.countdown,
            delayed_release: tbf.delayed_release,
            extended_uplink: tbf.extended_uplink,
            keep_interval: tbf.keep_interval,
            max_unanswered: tbf.max_unanswered,
            t3195: tbf.t3195,
            stuck: tbf.stuck,
        }
    }

    /// The block in which the network can answer what it got in `block`.
    pub fn network(&self, block: u64) -> u64 {
        block_from(end_of(block) + self.network_delay)
    }

    /// The block from which a mobile uses what it was assigned in `block`.
    pub fn mobile(&self, block: u64) -> u64 {
        block_from(end_of(block) + self.reaction)
    }
}

/// What a mobile sent or got in one block period, on all of its timeslots.
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    pdus: u16,
    repeated: u16,
    errored: u16,
    bytes: u32,
    level: u8,
}

impl Burst {
    /// Counts an RLC block.
    #[inline]
    pub fn add(&mut self, scheme: CodingScheme, attempt: u32, received: bool) {
        self.pdus += 1;
        self.repeated += u16::from(attempt > 1);
        self.errored += u16::from(!received);
        self.bytes += scheme.payload();
        self.level = scheme.number();
    }
}

/// What an uplink block is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A bitmap of the downlink.
    Bitmap,
    /// The acknowledgement of a downlink assignment.
    Assignment,
    /// The acknowledgement of the uplink's last bitmap.
    LastBitmap,
    /// What the mobile needs, with two-phase access.
    Resources,
}

/// A mobile.
#[derive(Debug)]
pub struct Mobile {
    pub user: UserId,
    pub down: Downlink,
    pub up: Uplink,
    pub air: Air,
    /// The first of its timeslots, on which it is controlled.
    pub slot: u8,
    pub is_active: bool,
    pub bursts: [Burst; 2],
    pub totals: [RadioTotals; 2],
    /// Nothing is sent before this block; down, up.
    silent_until: [u64; 2],
    /// It is on its way to another cell before this block.
    reselects_until: u64,
    lanes: Lanes,
    access: RandomStream,
    paging_group: u64,
    /// When the last flow ended.
    transfer_ended: Option<Instant>,
    /// It listens on its packet data channel until then, though there is no downlink flow.
    listens_until: Instant,
}

impl Mobile {
    /// An idle mobile.
    pub fn new(config: &Config, user: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        let path = format!("{name}/user-{user}");
        let conditions = Conditions::new(&config.conditions, user, seed, &format!("{path}/conditions"))?;
        let settings = |direction| {
            let window = config.rlc.window.into();
            let settings = Settings { window, packet_overhead: 0, end_overhead: llc::LENGTH_INDICATOR };
            (settings, llc::framing(config.way(direction).frame.get() as u32))
        };
        let mut schemes = vec![CodingScheme::Cs1];
        for way in [&config.downlink, &config.uplink] {
            let used = way.adaptation.as_ref().map_or_else(|| vec![way.scheme], |it| it.schemes.clone());
            // What was sent in a fast one may be sent again in one that is used for nothing else.
            for original in &used {
                schemes.extend(used.iter().map(|current| original.repeated_as(*current)));
            }
        }
        let down_queue = check_queue(config.downlink.queue.as_ref(), "downlink")?;
        let up_queue = check_queue(config.uplink.queue.as_ref(), "uplink")?;
        Ok(Self {
            user: UserId(user as u16),
            down: Downlink::new(settings(Direction::Down), &down_queue, &config.downlink),
            up: Uplink::new(settings(Direction::Up), &up_queue, &config.uplink),
            air: Air::new(conditions, schemes, seed, &path),
            slot: 0,
            is_active: false,
            bursts: [Burst::default(); 2],
            totals: [RadioTotals::default(); 2],
            silent_until: [0; 2],
            reselects_until: 0,
            lanes: Lanes::default(),
            access: seed.stream(&format!("{path}/access")),
            paging_group: seed.stream(&format!("{path}/paging")).bits(),
            transfer_ended: None,
            listens_until: Instant::ZERO,
        })
    }

    /// Whether it could be forgotten: no flow, and nothing to make one for.
    pub fn is_idle(&self) -> bool {
        self.down.phase == downlink::Phase::None
            && self.up.phase == uplink::Phase::None
            && !self.down.has_data()
            && !self.up.has_data()
    }

    /// Whether it has a downlink flow, or is about to.
    pub fn receives(&self) -> bool {
        self.down.phase != downlink::Phase::None
    }

    /// Whether it is silent in `block` in a direction.
    pub const fn is_silent(&self, direction: Direction, block: u64) -> bool {
        self.silent_until[direction as usize] > block
    }

    /// Packets and bytes that wait in a direction.
    pub fn backlog(&self, direction: Direction, now: Instant) -> (u32, u64) {
        match direction {
            Direction::Down => self.down.backlog(now),
            Direction::Up => self.up.backlog(now),
        }
    }

    /// The mobile leaves its cell: the flow ends. What was not delivered is kept for the new cell, or lost with all
    /// that waits.
    pub fn change_cell(
        &mut self,
        direction: Direction,
        at: Instant,
        keeps: bool,
        ends: &mut Ends,
        cx: &mut Context<'_>,
    ) {
        let lost = DropCause::Handover;
        match direction {
            Direction::Down => {
                if keeps {
                    self.down.restart();
                } else {
                    self.down.discard(at, lost, ends, cx);
                    self.down.discard_waiting(at, lost, ends, cx);
                    self.down.queue.clear(|packet| ends.lose(direction, at, packet, lost, cx));
                }
                self.down.release(0);
                self.listens_until = at;
            }
            Direction::Up => {
                if keeps {
                    self.up.restart();
                } else {
                    self.up.discard(at, lost, ends, cx);
                    self.up.discard_waiting(at, lost, ends, cx);
                    self.up.queue.clear(|packet| ends.lose(direction, at, packet, lost, cx));
                }
                self.up.release();
            }
        }
        self.transfer_ended = Some(at);
    }

    /// What happens at the beginning of a block, before anything is sent in it.
    pub fn begin(&mut self, block: u64, timing: &Timing, ends: &mut Ends, cx: &mut Context<'_>) {
        let now = start_of(block);
        self.air.sample(now);
        for adapter in [&mut self.down.adapter, &mut self.up.adapter].into_iter().flatten() {
            adapter.measure(self.air.sample.carrier_to_interference);
        }
        while let Some((at, transition)) = self.air.next_transition(now) {
            if let Transition::Reselection { gap, .. } | Transition::Handover { gap, .. } = transition {
                self.reselect(now, at + gap, ends, cx);
            }
        }
        self.begin_down(block, timing, ends, cx);
        self.begin_up(block, timing);
    }

    /// The mobile has left its cell for another, in which it can send from `until` on. What the old cell's base station
    /// had for it is lost; its own frames it sends anew. It tells the network where it is before that can send
    /// anything (3GPP TS 23.060 §6.9.1, cell update).
    fn reselect(&mut self, now: Instant, until: Instant, ends: &mut Ends, cx: &mut Context<'_>) {
        let had_flows = self.down.phase != downlink::Phase::None || self.up.phase != uplink::Phase::None;
        if until <= now && !had_flows {
            // It was idle, and is long there.
            return;
        }
        self.down.discard(now, DropCause::Handover, ends, cx);
        self.down.discard_waiting(now, DropCause::Handover, ends, cx);
        self.down.release(0);
        self.up.restart();
        self.up.release();
        self.listens_until = now;
        self.transfer_ended = Some(now);
        self.silent_until = self.silent_until.map(|silent| silent.max(block_from(until)));
        self.reselects_until = block_from(until);
        self.down.phase = downlink::Phase::Paged;
        self.up.answers_page = true;
    }

    fn begin_down(&mut self, block: u64, timing: &Timing, ends: &mut Ends, cx: &mut Context<'_>) {
        use downlink::Phase;
        let now = start_of(block);
        match self.down.phase {
            Phase::None if self.down.may_begin(block) && !self.is_silent(Direction::Down, block) => {
                self.set_up_down(block, timing);
            }
            Phase::Paging { at } if at <= block => {
                self.up.answers_page = true;
                self.down.phase = Phase::Paged;
            }
            Phase::Paged if self.up.phase == uplink::Phase::Transfer => self.down.phase = Phase::Assign { from: block },
            Phase::Common { at, heard } if at <= block => {
                // The network finds out by an assignment that goes unanswered; the time is about the same.
                if heard {
                    self.down.phase = Phase::Assign { from: block };
                } else {
                    self.down.phase = Phase::None;
                }
            }
            Phase::Answered { at, heard } if at <= block => {
                if heard {
                    self.down.begin_transfer();
                } else {
                    self.down.phase = Phase::Assign { from: block };
                }
            }
            Phase::Transfer => {
                if self.down.take_answer(block) {
                    self.down.release(block);
                    self.listens_until = now + timing.t3192;
                    self.transfer_ended = Some(now);
                } else if self.down.has_failed(timing) {
                    self.down.discard(now, DropCause::AttemptsExhausted, ends, cx);
                    self.down.release(block_from(now + timing.t3195));
                    self.give_up(now, timing);
                }
            }
            _ => {}
        }
    }

    /// Chooses how the mobile is told of a downlink flow.
    fn set_up_down(&mut self, block: u64, timing: &Timing) {
        use downlink::Phase;
        let now = start_of(block);
        self.down.phase = if self.up.phase == uplink::Phase::Transfer || now < self.listens_until {
            Phase::Assign { from: block }
        } else if self.up.phase != uplink::Phase::None {
            // It is busy with an access of its own, and cannot be told before its uplink flow is there.
            Phase::None
        } else {
            let sent = now + timing.network_delay;
            let recently = |span: Span| self.transfer_ended.is_some_and(|ended| now.since(ended) < span);
            let until = if recently(timing.non_drx) {
                ccch_from(sent)
            } else {
                paging_from(sent, self.paging_group, timing.paging_multiframes)
            };
            if recently(timing.ready) {
                let heard = self.air.receives_control(Direction::Down);
                Phase::Common { at: block_from(until + timing.assignment_wait), heard }
            } else {
                Phase::Paging { at: block_from(until) }
            }
        };
    }

    fn begin_up(&mut self, block: u64, timing: &Timing) {
        use uplink::Phase;
        let now = start_of(block);
        match self.up.phase {
            Phase::None if self.up.has_data() && !self.is_silent(Direction::Up, block) => {
                self.set_up_up(block, timing);
            }
            Phase::Access { at, heard } if at <= block => {
                if !heard {
                    self.up.phase = Phase::None;
                } else if timing.access == Access::TwoPhase {
                    self.up.phase = Phase::SingleBlock { at: block };
                } else {
                    self.up.begin_transfer(true);
                }
            }
            Phase::Request if self.down.phase != downlink::Phase::Transfer => self.up.phase = Phase::None,
            Phase::Start { at } if at <= block => self.up.begin_transfer(false),
            Phase::Transfer => {
                self.up.take_acknowledgement(block);
                if self.up.has_failed(timing) {
                    self.up.restart();
                    self.up.release();
                    self.give_up(now, timing);
                }
            }
            _ => {}
        }
    }

    /// The network has given up a flow, after which the mobile may be stuck.
    fn give_up(&mut self, now: Instant, timing: &Timing) {
        self.transfer_ended = Some(now);
        if self.access.chance(timing.stuck) {
            self.silent_until = [STUCK; 2];
        }
    }

    /// Keeps the mobile silent in a direction until `block`: a user who has connected anew is no longer stuck.
    pub fn silence(&mut self, direction: Direction, block: u64, is_anew: bool) {
        let silent = &mut self.silent_until[direction as usize];
        *silent = if is_anew && *silent == STUCK { block } else { (*silent).max(block) };
    }

    /// Chooses how the mobile asks for an uplink flow.
    fn set_up_up(&mut self, block: u64, timing: &Timing) {
        use uplink::Phase;
        self.up.phase = match self.down.phase {
            downlink::Phase::Transfer => Phase::Request,
            // It is about to get a downlink flow, and asks then.
            downlink::Phase::Common { heard: true, .. }
            | downlink::Phase::Assign { .. }
            | downlink::Phase::Assigned { .. }
            | downlink::Phase::Answered { .. } => Phase::None,
            _ => {
                let frames = self.access.below(timing.access_frames.into());
                let burst = start_of(block) + FRAME * (frames + 1);
                let answered = ccch_from(burst + timing.network_delay);
                let heard = self.air.receives_control(Direction::Down);
                Phase::Access { at: block_from(answered + timing.reaction), heard }
            }
        };
    }

    /// Sends a control block on its control channel, if there is one to send. Returns what for an uplink block is
    /// needed, if it needs one.
    pub fn send_control(&mut self, block: u64, timing: &Timing) -> Option<Option<Reply>> {
        if self.up.has_acknowledgement(block) {
            let heard = self.air.receives_control(Direction::Down);
            return Some(self.up.send_acknowledgement(block, heard).then_some(Reply::LastBitmap));
        }
        if let uplink::Phase::Assign { from } = self.up.phase
            && from <= block
        {
            self.up.phase = if self.air.receives_control(Direction::Down) {
                uplink::Phase::Start { at: timing.mobile(block) }
            } else {
                // The mobile asks again.
                uplink::Phase::None
            };
            return Some(None);
        }
        if let downlink::Phase::Assign { from } = self.down.phase
            && from <= block
        {
            let heard = self.air.receives_control(Direction::Down);
            self.down.phase = downlink::Phase::Assigned { heard };
            return Some(Some(Reply::Assignment));
        }
        None
    }

    /// Sends what an uplink block was reserved for, if the block is there.
    pub fn reply(&mut self, block: u64, reply: Reply, is_there: bool, timing: &Timing) {
        let known_at = timing.network(block);
        let is_silent = !is_there || self.is_silent(Direction::Up, block);
        let air = &mut self.air;
        let mut gets_through = || !is_silent && air.receives_control(Direction::Up);
        match reply {
            Reply::Bitmap => {
                if self.down.answer(known_at, gets_through) && self.up.phase == uplink::Phase::Request {
                    self.up.phase = uplink::Phase::Assign { from: known_at };
                }
            }
            Reply::Assignment => {
                if let downlink::Phase::Assigned { heard } = self.down.phase {
                    self.down.phase = downlink::Phase::Answered { at: known_at, heard: heard && gets_through() };
                }
            }
            Reply::LastBitmap => {
                self.up.answer(known_at, gets_through);
                if self.up.phase == uplink::Phase::None {
                    self.transfer_ended = Some(end_of(block));
                }
            }
            Reply::Resources => {
                self.up.phase =
                    if gets_through() { uplink::Phase::Assign { from: known_at } } else { uplink::Phase::None };
            }
        }
    }

    /// Whether it waits for a single block, and may have it in `block`.
    pub fn needs_single_block(&self, block: u64) -> bool {
        matches!(self.up.phase, uplink::Phase::SingleBlock { at } if at <= block)
    }

    /// Reports what it sent and got in a block, and what is new about it. `slots` are those that it may use (down, up, and up
    /// while it receives nothing), `left` those that calls leave.
    pub fn end(&mut self, block: u64, slots: [u8; 3], left: u8, cx: &mut Context<'_>) {
        let at = start_of(block);
        for direction in Direction::BOTH {
            let Burst { pdus, repeated, errored, bytes, level } = std::mem::take(&mut self.bursts[direction as usize]);
            if pdus > 0 {
                let duration = end_of(block).since(at);
                let event = RadioEvent { direction, user: self.user, duration, pdus, repeated, errored, bytes, level };
                self.totals[direction as usize].add(&event);
                cx.radio(at, || event);
            }
        }
        let Self { lanes, user, slot, down, up, air, silent_until, reselects_until, .. } = self;
        lanes.report(at, *user, cx, || {
            let down_tbf = match down.phase {
                downlink::Phase::None => "none",
                downlink::Phase::Paging { .. } | downlink::Phase::Paged => "paging",
                downlink::Phase::Transfer => "transfer",
                _ => "establishment",
            };
            let up_tbf = match up.phase {
                uplink::Phase::None => "none",
                uplink::Phase::Transfer => "transfer",
                _ => "establishment",
            };
            let mode = if *reselects_until > block {
                "reselection"
            } else if !air.sample.covered || silent_until.iter().all(|until| *until > block) {
                "no-coverage"
            } else {
                match (down_tbf, up_tbf) {
                    ("transfer", _) | (_, "transfer") => "transfer",
                    ("none", "none") => "idle",
                    _ => "access",
                }
            };
            let link = if silent_until.contains(&STUCK) {
                "stuck"
            } else if down.is_stalled() || up.is_stalled() {
                "stalled"
            } else {
                "connected"
            };
            let there = left.saturating_sub(*slot);
            let used = |tbf, slots: u8| f64::from(if tbf == "transfer" { slots.min(there) } else { 0 });
            let up_slots = slots[if down.phase == downlink::Phase::None { 2 } else { 1 }];
            [
                StateValue::Name(mode),
                StateValue::Number(air.sample.cell.into()),
                StateValue::Number(air.sample.carrier_to_interference),
                StateValue::Name(down_tbf),
                StateValue::Name(up_tbf),
                StateValue::Name(down.scheme.name()),
                StateValue::Name(up.scheme.name()),
                StateValue::Number(used(down_tbf, slots[0])),
                StateValue::Number(used(up_tbf, up_slots)),
                StateValue::Name(link),
            ]
        });
    }
}
