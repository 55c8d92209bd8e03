//! One mobile: its RLC both ways, hybrid ARQ, uplink requests, discontinuous reception, its
//! connection and its radio.
//!
//! What happens inside happens at exact times, worked off in their order. The slots in which the
//! base station decides are the cell's.

mod cell_group;
mod change;
mod coverage;
mod downlink;
mod movement;
mod radio_link;
mod tracks;
mod uplink;

pub(crate) use cell_group::Connection;

use std::collections::VecDeque;

use airpath_core::{
    ConnectionTotals, Context, Direction, DropCause, Instant, LteRrcState, ModeState, Packet, PacketCounters,
    PacketStep, Probability, RadioTotals, RandomStream, Seed, Span, UserId, earliest,
};
use airpath_link::{Admission, Departure};

use super::Parameters;
use super::buffer_status::{Knowledge, Reporting};
use super::channels::{Channel, Channels};
use super::config::Duplex;
use super::configured_grant;
use super::drx::Drx;
use super::error::ConfigError;
use super::harq;
use super::link_quality::LinkQuality;
use super::occupancy::{GUARD_OF_TYPE_B, Occupancy};
use super::pdcp::Pdcp;
use super::plan::Plan;
use super::radio_link::Timer;
use super::rlc::{Block, MaxRetransmissions, Rlc};
use super::rrc::{Rrc, State};
use super::scheduling_request::SchedulingRequest;
use crate::common::arq::rlc_queue::RlcQueue;
use crate::common::log::Tracks;
use crate::common::multiplexing::due::pop_due;
use crate::common::slots::Occasions;
use crate::conditions::Conditions;

/// One mobile.
#[derive(Debug)]
pub struct User {
    id: UserId,
    down: Channels,
    up: Channels,
    /// Of each carrier.
    harq_down: Box<[harq::Downlink]>,
    harq_up: harq::Uplink,
    /// Blocks that were decoded, in transit to the RLC: downlink, uplink.
    arrivals: [VecDeque<(Instant, Block)>; 2],
    request: SchedulingRequest,
    reporting: Reporting,
    /// The base station's view of the buffer of the mobile.
    pub knowledge: Knowledge,
    /// When the base station can react to a scheduling request.
    requested_at: Option<Instant>,
    /// The last grant without a request that was planned.
    prescheduled_at: Instant,
    prescheduling_offset: Span,
    /// When the next one can be planned.
    preschedule_at: Option<Instant>,
    configured: Option<configured_grant::OfMobile>,
    /// The buffer of the mobile had something in it, and voice.
    had_data: bool,
    had_voice: bool,
    drx: Option<Drx>,
    rrc: Rrc,
    /// When the last set-up of the connection began, after paging.
    promotion_from: Instant,
    conditions: Conditions,
    movement: movement::Movement,
    /// Since when there is a packet inside.
    inside_since: Instant,
    pub quality: LinkQuality,
    errors: [RandomStream; 2],
    control: RandomStream,
    bler: [Option<Probability>; 2],
    /// The SINR in the current slot: downlink, uplink.
    sinr: [f64; 2],
    below_downlink: f64,
    /// The coverage mode of the connection, and whether it is to be chosen again.
    mode: u8,
    must_choose_mode: bool,
    /// In a narrowband or with half duplex, what it sends and receives.
    occupancy: Option<Box<Occupancy>>,
    /// The number of the slot after the one in which it was served last: downlink, uplink.
    pub waiting_since: [u64; 2],
    /// Whether something waited when it was last a candidate and after it was last served; of each
    /// direction.
    pub had_backlog: [bool; 2],
    totals: [RadioTotals; 2],
    tracks: Tracks,
    /// The headers of a packet; kept for its memory.
    headers: Vec<u8>,
    /// Bytes that wait in the other cell group, and may be sent in this one.
    shared_up: u64,
    /// The memory of blocks that are no more.
    spare: Vec<Block>,
    /// All that happens up to here has happened.
    clock: Instant,
    /// The times of its events may have changed in a slot.
    has_changed: bool,
    /// Why the layers below PDCP have started again.
    re_established: Option<DropCause>,
}

impl User {
    /// A mobile without a packet, with streams below `path`, those of its radio conditions in
    /// `place`/conditions.
    pub fn new(config: &Parameters, index: usize, seed: Seed, path: &str, place: &str) -> Result<Self, ConfigError> {
        let slot = config.timeline.pattern().duration();
        let rlc = |direction: Direction, delay| {
            let queue = RlcQueue::new(&config.pdcp.queue, slot, seed, &format!("{path}/{}", direction.name()));
            let data = Rlc::new(&config.rlc, Pdcp::new(&config.pdcp, queue), direction, delay);
            let voice = config
                .voice
                .as_ref()
                .map(|voice| Rlc::new(&voice.rlc, Pdcp::new(&voice.pdcp, RlcQueue::unlimited()), direction, delay));
            Channels::new(data, voice)
        };
        let mut offsets = seed.stream(&format!("{path}/offsets"));
        // One of the slots of a period that carry the uplink.
        let slots = config.timeline.pattern();
        let sr_slots = config.uplink.sr_period.as_nanos() / slots.duration().as_nanos();
        let fits = |slot: &u64| slots.carries_uplink(*slot) && Occasions::new(sr_slots, *slot).fit(slots);
        let occasions = (0..sr_slots).filter(fits);
        let drawn = offsets.below(occasions.clone().count() as u64);
        let occasion = occasions.clone().nth(drawn as usize).expect("one is below their number");
        let request = SchedulingRequest::new(&config.uplink, slots.start(occasion).since(Instant::ZERO));
        let mut offset = |period: Span| SUBFRAME.saturating_mul(offsets.below(period.as_nanos() / SUBFRAME.as_nanos()));
        let drx = config.drx.clone().map(|drx| {
            let offset = offset(drx.long);
            Drx::new(drx, offset)
        });
        let paging_offset = config.rrc.as_ref().map_or(Span::ZERO, |rrc| offset(rrc.paging));
        let prescheduling = config.uplink.prescheduling.as_ref();
        let prescheduling_offset = prescheduling.map_or(Span::ZERO, |it| offset(it.interval));
        let configured = config.configured_grant.as_ref().map(|grant| {
            let mut stream = seed.stream(&format!("{path}/configured-grant"));
            let all = grant.slots(slots);
            let drawn = stream.below(all.clone().count() as u64);
            let slot = all.clone().nth(drawn as usize).expect("one is below their number");
            configured_grant::OfMobile::new(grant.period, slot)
        });
        let rrc = Rrc::new(config.rrc.clone(), paging_offset, &mut offsets);
        let is_half_duplex = config.mobile.duplex == Duplex::Half;
        let mut user = Self {
            id: UserId::new(index as u32),
            down: rlc(Direction::Down, config.cell.delay),
            up: rlc(Direction::Up, config.cell.delay),
            harq_down: (0..config.cell.carriers).map(|_| harq::Downlink::new(config.harq.processes)).collect(),
            harq_up: harq::Uplink::default(),
            arrivals: Default::default(),
            request,
            reporting: Reporting::new(&config.uplink),
            knowledge: Knowledge::default(),
            requested_at: None,
            prescheduled_at: Instant::ZERO,
            prescheduling_offset,
            preschedule_at: None,
            configured,
            had_data: false,
            had_voice: false,
            headers: Vec::new(),
            drx,
            rrc,
            promotion_from: Instant::ZERO,
            conditions: Conditions::new(&config.conditions, index, seed, &format!("{place}/conditions"))?,
            movement: movement::Movement::default(),
            inside_since: Instant::ZERO,
            quality: LinkQuality::new(config),
            errors: ["down/errors", "up/errors"].map(|name| seed.stream(&format!("{path}/{name}"))),
            control: seed.stream(&format!("{path}/control")),
            bler: [config.downlink.bler, config.uplink.bler],
            sinr: [0.0; 2],
            below_downlink: config.uplink.below_downlink.get(),
            mode: 0,
            must_choose_mode: false,
            occupancy: (is_half_duplex || config.repetition.is_some()).then(|| {
                let guard = if config.repetition.is_some() { GUARD_OF_TYPE_B } else { 0 };
                Box::new(Occupancy::new(is_half_duplex.then_some(guard), sr_slots, occasion))
            }),
            waiting_since: [0; 2],
            had_backlog: [false; 2],
            totals: Default::default(),
            tracks: Tracks::new(UserId::new(index as u32)),
            shared_up: 0,
            spare: Vec::new(),
            clock: Instant::ZERO,
            has_changed: false,
            re_established: None,
        };
        if user.rrc.state() == State::Idle {
            user.set_connected(None);
        }
        Ok(user)
    }

    /// The slot of its configured grants in their period.
    pub fn configured_slot(&self) -> Option<u64> {
        self.configured.as_ref().map(|configured| configured.slot)
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
    pub fn counters(&self, direction: Direction) -> PacketCounters {
        match direction {
            Direction::Down => self.down.counters(),
            Direction::Up => self.up.counters(),
        }
    }

    fn channels(&mut self, direction: Direction) -> &mut Channels {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    /// Whether all packets have come to the far end, handed over by now or not.
    pub fn is_empty(&self) -> bool {
        self.down.is_empty() && self.up.is_empty()
    }

    /// Whether the times of its events may have changed since the last call, in slots in which it
    /// was looked at.
    pub const fn take_change(&mut self) -> bool {
        std::mem::replace(&mut self.has_changed, false)
    }

    /// When something happens next that is its own.
    pub fn next_event(&self) -> Option<Instant> {
        let arrives = self.arrivals.iter().filter_map(|queue| queue.front().map(|(at, _)| *at)).min();
        let served_from = self.movement.served_from(Direction::Up);
        let can_request = !self.movement.has_failed();
        let request = self.request.next().filter(|_| can_request).map(|at| at.max(served_from));
        let message = self.request.message_at().filter(|_| can_request).map(|at| at.max(served_from));
        let events = [
            arrives,
            self.down.next_timer(),
            self.up.next_timer(),
            self.harq_up.next(),
            request,
            message,
            self.requested_at,
            self.preschedule_at,
            self.configured.as_ref().and_then(|configured| configured.next),
            self.reporting.next_timer(),
            self.knowledge.next_event(),
            self.rrc.next_change(),
            self.link_timer().map(Timer::at),
            self.search_at(),
        ];
        earliest(events).map(|at| at.max(self.clock))
    }

    /// What happens at one time: what comes in first, what goes out last.
    pub fn work(&mut self, now: Instant, plan: &mut Plan, cx: &mut Context<'_>) {
        self.clock = now;
        self.hear(now);
        if self.rrc.change(now) {
            self.connected(now, cx);
        }
        self.expire_link(now, cx);
        self.search(now, plan, cx);
        self.receive(now, cx);
        let results = [self.down.expire(now, cx), self.up.expire(now, cx)];
        if results.into_iter().any(|result| result.is_err()) {
            self.fail(now, cx);
        }
        self.use_configured_grant(now, plan);
        self.transmit_up(now, plan, cx);
        self.request_up(now, plan, cx);
        self.prepare(now, plan, cx);
    }

    /// Whether the layers below PDCP have started again, and the cause was not taken.
    pub const fn has_re_established(&self) -> bool {
        self.re_established.is_some()
    }

    /// What the base station hears and can use at `now`.
    fn hear(&mut self, now: Instant) {
        self.knowledge.advance(now);
        if self.requested_at.take_if(|at| *at <= now).is_some() {
            self.knowledge.request();
        }
    }

    /// The RLC gets the blocks that were decoded.
    fn receive(&mut self, now: Instant, cx: &mut Context<'_>) {
        for direction in Direction::BOTH {
            while let Some(mut block) = pop_due(&mut self.arrivals[direction as usize], now) {
                self.channels(direction).receive(now, &block, cx);
                if let Some(status) = block.status.take()
                    && self.channels(direction.opposite()).acknowledge(&status) == Err(MaxRetransmissions)
                {
                    self.recycle(block);
                    self.fail(now, cx);
                    return;
                }
                self.recycle(block);
            }
        }
    }

    /// Makes ready what follows from a change: a buffer that is not empty any more, or a grant
    /// that needs no request.
    fn prepare(&mut self, now: Instant, plan: &mut Plan, cx: &mut Context<'_>) {
        (self.clock, self.preschedule_at) = (now, None);
        if self.rrc.state() != State::Connected || self.movement.has_failed() {
            self.report_request(now, cx);
            return;
        }
        let waiting = self.waiting_up(now);
        // Voice comes before other data, so it is reported, too.
        let has_voice = self.up.waiting_voice() > 0;
        if (waiting > 0 && !self.had_data) || (has_voice && !self.had_voice) {
            self.reporting.trigger();
        }
        (self.had_data, self.had_voice) = (waiting > 0, has_voice);
        self.reporting.expire(now, waiting);
        match &mut self.configured {
            // No request is sent for data that have configured grants (logicalChannelSR-Mask, TS
            // 38.321 §5.4.5).
            Some(configured) => {
                let from = self.movement.served_from(Direction::Up);
                configured.next = (waiting > 0).then(|| configured.after(now, from, plan.timeline().pattern()));
            }
            None if self.reporting.is_triggered() && waiting > 0 => self.request.trigger(now),
            None => {}
        }
        if waiting > 0 {
            self.preschedule(now, plan);
        }
        self.report_request(now, cx);
        self.report_stall(now, cx);
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
        // Not by the counters: when packets are handed over depends on the caller.
        let was_empty = self.is_empty();
        if was_empty {
            self.inside_since = now;
        }
        let admission = self.enqueue(now, direction, packet, plan, cx);
        if admission == Admission::Queued {
            self.connect(now, direction, was_empty, plan, cx);
            if !matches!(self.rrc.state(), State::Idle | State::Inactive) {
                self.rrc.active(now);
            }
            self.prepare(now, plan, cx);
            if direction == Direction::Down {
                self.report_sleep(now, cx);
            }
        }
        admission
    }

    /// Takes a packet that [only lengthens](Self::only_lengthens) the queue.
    pub fn push_behind(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) -> Admission {
        let admission = self.enqueue(now, direction, packet, plan, cx);
        if admission == Admission::Queued {
            self.rrc.active(now);
        }
        admission
    }

    /// The channel of a packet.
    fn channel_of(&mut self, direction: Direction, packet: &Packet, plan: &Plan, cx: &Context<'_>) -> Channel {
        let Some(template) = &plan.voice else { return Channel::Data };
        self.headers.clear();
        if cx.headers(direction, packet, &mut self.headers) { template.channel(&self.headers) } else { Channel::Data }
    }

    /// Puts a packet into the queue.
    fn enqueue(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) -> Admission {
        cx.direction = direction;
        let channel = self.channel_of(direction, &packet, plan, cx);
        let channels = self.channels(direction);
        let rlc = channels.channel(channel);
        rlc.counters.offer(&packet);
        if let Err(cause) = rlc.enqueue(now, packet, cx) {
            rlc.counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
            return Admission::Dropped(cause);
        }
        cx.packet(now, packet, || {
            let (backlog_packets, backlog_bytes) = channels.backlog();
            PacketStep::Queued { backlog_packets, backlog_bytes }
        });
        Admission::Queued
    }

    /// Whether a packet that comes now only makes a queue longer: others wait before it, so all
    /// times at which something happens, and all that was made ready, stay as they are.
    #[inline]
    pub fn only_lengthens(&self, direction: Direction, plan: &Plan) -> bool {
        let channels = match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        };
        channels.only_lengthens()
            && (direction == Direction::Down || self.had_data)
            && self.rrc.state() == State::Connected
            && !self.reporting.is_triggered()
            && plan.prescheduling.is_none()
            && plan.configured.is_none()
    }

    /// Sets up the connection if there is none, for a packet in this direction. It may have been
    /// released if nothing was inside before.
    fn connect(&mut self, now: Instant, direction: Direction, was_empty: bool, plan: &Plan, cx: &mut Context<'_>) {
        if was_empty {
            self.release_inactive(now, cx);
        }
        let was_idle = matches!(self.rrc.state(), State::Idle | State::Inactive);
        if was_idle {
            if !self.finds_cell(now, cx) {
                return;
            }
            self.begin_set_up(now, plan, cx);
        }
        // What has waited for coverage may be for the other direction.
        let direction = if self.up.waiting() > 0 { Direction::Up } else { direction };
        // In an interruption the network cannot page it, and neither can send.
        let from = self.movement.free_from(now);
        if let Some(begins) = self.rrc.waits(from, direction) {
            if was_idle && begins > from {
                self.report_rrc(now, LteRrcState::Paging, cx);
            }
            self.promotion_from = begins;
        }
    }

    /// Releases or suspends the connection if it was not used for long enough. Nothing is inside.
    pub(crate) fn release_inactive(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some((at, from)) = self.rrc.release(now) {
            // Handovers before `at` are those of the connection that ends.
            self.look(now, at, cx);
            self.released(at, from, cx);
        }
    }

    /// The connection was released or suspended at `at`, or the mobile has left the state
    /// inactive.
    fn released(&mut self, at: Instant, from: State, cx: &mut Context<'_>) {
        let is_idle = self.rrc.state() == State::Idle;
        if from == State::Inactive {
            self.report_rrc(at, LteRrcState::Idle, cx);
            return;
        }
        self.report_drx(at, cx);
        if let Some(drx) = &mut self.drx {
            drx.forget_report();
        }
        self.report_rrc(at, if is_idle { LteRrcState::Idle } else { LteRrcState::Inactive }, cx);
        self.tracks.mode(at, ModeState::Idle, None, cx);
        self.reset_mac();
        self.down.release_connection();
        self.up.release_connection();
        self.set_connected(None);
    }

    fn set_connected(&mut self, at: Option<Instant>) {
        Direction::BOTH.into_iter().for_each(|direction| self.channels(direction).set_connected(at));
    }

    /// The connection was set up.
    fn connected(&mut self, now: Instant, cx: &mut Context<'_>) {
        if let Some(drx) = &mut self.drx {
            drx.begin(now);
        }
        (self.had_data, self.had_voice) = (false, false);
        self.set_connected(Some(now));
        self.tracks.totals.set_ups += 1;
        self.report_rrc(self.promotion_from, LteRrcState::Promotion, cx);
        self.report_rrc(now, LteRrcState::Connected, cx);
        self.report_active(now, cx);
    }

    /// The radio link has failed: the connection is established again (TS 36.331 §5.3.7).
    fn fail(&mut self, now: Instant, cx: &mut Context<'_>) {
        let until = now + self.rrc.re_establishment();
        self.movement.fail(now);
        self.tracks.totals.link_failures += 1;
        self.tracks.mode(now, ModeState::ReEstablishment, Some(until), cx);
        self.establish_again(now, until, DropCause::AttemptsExhausted, cx);
    }

    /// Nothing is sent until then, and the layers below PDCP start again.
    fn establish_again(&mut self, now: Instant, until: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.reset_mac();
        Direction::BOTH.into_iter().for_each(|direction| self.report_harq(now, direction, cx));
        self.must_choose_mode = true;
        self.re_established = Some(cause);
        self.down.establish_again(now, cause, cx);
        self.up.establish_again(now, cause, cx);
        self.resume_at(until);
    }

    /// Nothing is sent until then, and the mobile is awake after it.
    fn resume_at(&mut self, until: Instant) {
        self.movement.block(&Direction::BOTH, until);
        if let Some(drx) = &mut self.drx {
            drx.begin(until);
        }
    }

    /// Hybrid ARQ and the requests for the uplink start again.
    fn reset_mac(&mut self) {
        let Self { harq_down, harq_up, spare, arrivals, .. } = self;
        harq_down.iter_mut().for_each(|carrier| carrier.clear(|block| recycle(spare, block)));
        harq_up.clear(|block| recycle(spare, block));
        for queue in arrivals {
            queue.drain(..).for_each(|(_, block)| recycle(spare, block));
        }
        self.quality.forget_feedback();
        self.request.cancel();
        self.reporting.clear();
        self.knowledge.clear();
        self.requested_at = None;
        self.preschedule_at = None;
        if let Some(configured) = &mut self.configured {
            configured.next = None;
        }
        (self.had_data, self.had_voice) = (false, false);
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.clear();
        }
    }

    /// Keeps the memory of a block that is no more.
    fn recycle(&mut self, block: Block) {
        recycle(&mut self.spare, block);
    }

    /// When the next packet leaves, and which way.
    pub fn next_departure(&self) -> Option<(Instant, Direction)> {
        let due = |channels: &Channels, direction| channels.next_departure().map(|due| (due, direction));
        earliest([due(&self.down, Direction::Down), due(&self.up, Direction::Up)])
    }

    /// The next packet, which has left.
    pub fn pop(&mut self, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        let (_, direction) = self.next_departure()?;
        let departure = self.channels(direction).pop()?;
        cx.direction = direction;
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        Some((direction, departure))
    }

    /// When the base station can do something for it from `from` on, the beginning of a slot that
    /// carries data or grants.
    pub fn next_turn(&self, now: Instant, from: Instant, plan: &Plan) -> Option<Instant> {
        if self.rrc.state() != State::Connected || self.movement.has_failed() {
            return None;
        }
        // In a busy cell the answer is nearly always `from`, and nothing is earlier.
        let down = from.max(self.movement.served_from(Direction::Down));
        let mut first = None;
        if self.waiting_down(now) > 0 {
            first = self.next_process(harq::Downlink::next_idle).map(|at| self.next_active(at.max(down)));
        }
        if first != Some(from) && self.wanted_up(plan.first_grant) > 0 {
            let up = from.max(self.movement.served_from(Direction::Up));
            first = earliest([first, Some(self.next_active(up))]);
        }
        if first != Some(from) {
            let repeat = self.next_process(|carrier| carrier.next_repeat(true)).map(|at| at.max(down));
            let unknown =
                self.next_process(|carrier| carrier.next_repeat(false)).map(|at| self.next_active(at.max(down)));
            first = earliest([first, repeat, unknown]);
        }
        let first = first.map(|first| if first == from { from } else { plan.control_from(first) });
        match &self.occupancy {
            None => first,
            Some(occupancy) => first.map(|first| plan.start(occupancy.receives_from(plan.number(first)))),
        }
    }

    /// The earliest of times of the carriers.
    #[inline]
    fn next_process(&self, time: impl Fn(&harq::Downlink) -> Option<Instant>) -> Option<Instant> {
        self.harq_down.iter().filter_map(time).min()
    }

    /// The first time from `from` on at which it listens: also while it waits for the answer to a
    /// request that the base station has heard (TS 36.321 §5.7).
    #[inline]
    fn next_active(&self, from: Instant) -> Instant {
        let awaits_grant = self.request.is_awaited() && self.requested_at.is_none();
        self.drx.as_ref().filter(|_| !awaits_grant).map_or(from, |drx| drx.next_active(from))
    }

    /// Bytes that wait for it, the base station's status report included.
    #[inline]
    pub fn waiting_down(&self, now: Instant) -> u64 {
        self.down.waiting() + self.up.data.status_bytes(now)
    }

    /// Bytes that wait at the mobile, its status report included.
    #[inline]
    fn waiting_up(&self, now: Instant) -> u64 {
        self.up.waiting() + self.shared_up + self.down.data.status_bytes(now)
    }

    /// Whether new data or a grant can be sent to it in the slot that begins at `now`.
    #[inline]
    pub fn listens(&self, now: Instant) -> bool {
        self.next_active(now) <= now
    }

    /// Whether voice waits for it, or waits for a grant.
    #[inline]
    pub fn has_urgent(&self, direction: Direction) -> bool {
        match direction {
            Direction::Down => self.down.waiting_voice() > 0,
            Direction::Up => self.knowledge.is_urgent(),
        }
    }

    /// Whether it can be served in a direction.
    #[inline]
    pub fn is_served(&self, now: Instant, direction: Direction) -> bool {
        self.rrc.state() == State::Connected
            && self.movement.is_covered()
            && self.movement.served_from(direction) <= now
    }
}

fn recycle(spare: &mut Vec<Block>, mut block: Block) {
    block.pdus.clear();
    block.voice.clear();
    (block.status, block.buffer_status) = (None, None);
    spare.push(block);
}

/// The unit of the cycles of DRX, paging and prescheduling: a subframe (TS 36.211 §4, TS 38.211
/// §4.3.1).
const SUBFRAME: Span = Span::from_millis(1);
