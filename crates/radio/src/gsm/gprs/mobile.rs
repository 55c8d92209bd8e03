//! A mobile: its downlink and uplink TBF, its radio, and the procedures that set TBFs up and end
//! them.

use airpath_core::{
    ConnectionTotals, Context, Direction, DropCause, Instant, LinkState, ModeState, RadioEvent, RadioTotals,
    RandomStream, Seed, Span, StateValue, TbfState, UserId,
};
use airpath_link::command::Buffer;

use super::air::Air;
use super::coding_scheme::CodingScheme;
use super::config::{Access, Config};
use super::downlink::{self, Downlink};
use super::ends::Ends;
use super::llc;
use super::multiframe::{BLOCK_PERIOD, block_from, ccch_from, end_of, paging_from, start_of};
use super::multislot::Timeslots;
use super::parameters::Parameters;
use super::radio_block::PeriodCounts;
use super::tracks::Tracks;
use super::uplink::{self, Contention, Uplink};
use crate::common::arq::acknowledged::Settings;
use crate::common::arq::rlc_queue::RlcQueue;
use crate::conditions::{Conditions, Transition};
use crate::error::check_queue;
use crate::gsm::gprs::ConfigError;

/// `silent_until` of a stuck mobile: it neither sends nor receives until its user reconnects.
const STUCK: u64 = u64::MAX;

/// A TDMA frame, rounded to nanoseconds.
const FRAME: Span = Span::from_nanos(60_000_000 / 13);

/// The control message for which an uplink block is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UplinkControl {
    /// Packet Downlink Ack/Nack: the bitmap of the downlink (TS 44.060 §9.3.2.5).
    DownlinkAckNack,
    /// Packet Control Acknowledgement of a Packet Downlink Assignment (TS 44.060 §7.2).
    AssignmentAcknowledgement,
    /// Packet Control Acknowledgement of the final Packet Uplink Ack/Nack (TS 44.060 §9.3.2.4).
    FinalAckNackAcknowledgement,
    /// Packet Resource Request, with two-phase access (TS 44.060 §7.1.3).
    ResourceRequest,
}

/// What a mobile's control channel carries in a downlink block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownlinkControl {
    /// No control message: the block is free for data.
    None,
    /// A message without a response.
    Sent,
    /// A message to which the mobile responds in a reserved uplink block.
    Polled(UplinkControl),
}

/// A mobile.
#[derive(Debug)]
pub struct Mobile {
    pub user: UserId,
    pub down: Downlink,
    pub up: Uplink,
    pub air: Air,
    /// The first of its timeslots, which carries its control channel (PACCH).
    pub slot: u8,
    /// Whether the cell processes its blocks: from new data until [`Self::is_idle`].
    pub in_active_list: bool,
    pub counts: [PeriodCounts; 2],
    pub totals: [RadioTotals; 2],
    pub connection: ConnectionTotals,
    /// Nothing is sent before this block; down, up.
    silent_until: [u64; 2],
    /// Cell reselection lasts until this block.
    reselects_until: u64,
    tracks: Tracks,
    access_stream: RandomStream,
    /// Random bits that select the paging group.
    paging_draw: u64,
    /// When the last TBF ended.
    transfer_ended: Option<Instant>,
    /// Without a downlink TBF the mobile monitors its PDCH until this time (T3192).
    listens_until: Instant,
}

impl Mobile {
    /// An idle mobile.
    pub fn new(config: &Config, user: usize, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        let path = format!("{name}/user-{user}");
        let conditions = Conditions::new(&config.conditions, user, seed, &format!("{path}/conditions"))?;
        let settings_and_framing = |direction| {
            let window = config.rlc.window.into();
            let settings = Settings { window, packet_overhead: 0, end_overhead: llc::LENGTH_INDICATOR };
            (settings, llc::framing(config.direction_config(direction).frame.get() as u32))
        };
        // Control blocks have the coding of CS-1 (3GPP TS 45.003 §5.1.1.4).
        let mut schemes = vec![CodingScheme::Cs1];
        for direction_config in [&config.downlink, &config.uplink] {
            let used = direction_config
                .adaptation
                .as_ref()
                .map_or_else(|| vec![direction_config.scheme], |it| it.schemes.clone());
            // EGPRS retransmits a block in a scheme of the family of its original scheme. That
            // scheme need not be configured (TS 44.060 §8.1.1).
            for original in &used {
                schemes.extend(used.iter().map(|current| original.repeated_as(*current)));
            }
        }
        let down_queue = check_queue(config.downlink.queue.as_ref(), "downlink")?;
        let up_queue = check_queue(config.uplink.queue.as_ref(), "uplink")?;
        let queue = |queue, direction: Direction| {
            RlcQueue::new(queue, BLOCK_PERIOD, seed, &format!("{path}/{}", direction.name()))
        };
        let down_queue = queue(&down_queue, Direction::Down);
        let up_queue = queue(&up_queue, Direction::Up);
        Ok(Self {
            user: UserId::new(user as u32),
            down: Downlink::new(settings_and_framing(Direction::Down), down_queue, &config.downlink),
            up: Uplink::new(settings_and_framing(Direction::Up), up_queue, &config.uplink),
            air: Air::new(conditions, schemes, seed, &path),
            slot: 0,
            in_active_list: false,
            counts: [PeriodCounts::default(); 2],
            totals: [RadioTotals::default(); 2],
            connection: ConnectionTotals::default(),
            silent_until: [0; 2],
            reselects_until: 0,
            tracks: Tracks::default(),
            access_stream: seed.stream(&format!("{path}/access")),
            paging_draw: seed.stream(&format!("{path}/paging")).bits(),
            transfer_ended: None,
            listens_until: Instant::ZERO,
        })
    }

    /// Whether it has neither a TBF nor data for one.
    pub fn is_idle(&self) -> bool {
        self.down.phase == downlink::Phase::None
            && self.up.phase == uplink::Phase::None
            && !self.down.has_data()
            && !self.up.has_data()
    }

    /// Whether it has a downlink TBF, or one is being set up, from the page on.
    pub fn has_or_expects_downlink_tbf(&self) -> bool {
        self.down.phase != downlink::Phase::None
    }

    /// Whether nothing is sent in `block` in a direction.
    pub const fn is_silent(&self, direction: Direction, block: u64) -> bool {
        self.silent_until[direction as usize] > block
    }

    /// Packets and bytes that wait in a direction.
    pub fn backlog(&self, direction: Direction) -> (u32, u64) {
        match direction {
            Direction::Down => self.down.backlog(),
            Direction::Up => self.up.backlog(),
        }
    }

    /// Ends the TBF of a direction at a commanded handover. `buffer` decides about all undelivered
    /// packets, queued ones included: the new cell sends them, or they are dropped. For cell
    /// reselection see [`Self::reselect`].
    pub fn hand_over(
        &mut self,
        direction: Direction,
        at: Instant,
        buffer: Buffer,
        ends: &mut Ends,
        cx: &mut Context<'_>,
    ) {
        let lost = DropCause::Handover;
        match direction {
            Direction::Down => {
                if buffer == Buffer::Keep {
                    self.down.restart();
                } else {
                    self.down.drop_in_flight(at, lost, ends, cx);
                    self.down.drop_unsent(at, lost, ends, cx);
                    self.down.drop_in_support_node(at, lost, ends, cx);
                }
                self.down.release();
                self.listens_until = at;
            }
            Direction::Up => {
                if buffer == Buffer::Keep {
                    self.up.restart();
                } else {
                    self.up.drop_in_flight(at, lost, ends, cx);
                    self.up.drop_unsent(at, lost, ends, cx);
                    self.up.drop_in_queue(at, lost, ends, cx);
                }
                self.up.release();
            }
        }
        self.transfer_ended = Some(at);
    }

    /// Procedures at the beginning of a block, before anything is sent in it.
    pub fn start_of_block(&mut self, block: u64, parameters: &Parameters, ends: &mut Ends, cx: &mut Context<'_>) {
        let now = start_of(block);
        self.air.sample(now);
        for adapter in [&mut self.down.adapter, &mut self.up.adapter].into_iter().flatten() {
            adapter.measure(self.air.sample.carrier_to_interference);
        }
        while let Some((at, transition)) = self.air.next_transition(now) {
            // The network does not support PS handover: the mobile reselects instead.
            if let Transition::Reselection { gap, .. } | Transition::Handover { gap, .. } = transition {
                self.connection.handovers += 1;
                self.reselect(now, at + gap, ends, cx);
            }
        }
        self.step_downlink(block, parameters, ends, cx);
        self.step_uplink(block, parameters);
    }

    /// Cell reselection because of the radio conditions. The mobile can send in the new cell from
    /// `until` on. LLC frames in the old base station are lost. The mobile sends its own LLC frames
    /// again. The network sends nothing before the mobile's cell update (3GPP TS 23.060 §6.9.1),
    /// which is modelled as the response to a page.
    fn reselect(&mut self, now: Instant, until: Instant, ends: &mut Ends, cx: &mut Context<'_>) {
        let had_tbf = self.has_or_expects_downlink_tbf() || self.up.phase != uplink::Phase::None;
        if until <= now && !had_tbf {
            // The reselection is over and the mobile had no TBF: nothing was interrupted.
            return;
        }
        self.down.drop_in_flight(now, DropCause::Handover, ends, cx);
        self.down.drop_unsent(now, DropCause::Handover, ends, cx);
        self.down.release();
        self.up.restart();
        self.up.release();
        self.listens_until = now;
        self.transfer_ended = Some(now);
        self.silent_until = self.silent_until.map(|silent| silent.max(block_from(until)));
        self.reselects_until = block_from(until);
        self.down.phase = downlink::Phase::AwaitsCellUpdate;
        self.down.is_reachable = true;
        self.up.responds_to_page = true;
        self.up.forget_heard();
    }

    fn step_downlink(&mut self, block: u64, parameters: &Parameters, ends: &mut Ends, cx: &mut Context<'_>) {
        use downlink::Phase;
        let now = start_of(block);
        match self.down.phase {
            Phase::None if self.down.may_begin(block) && !self.is_silent(Direction::Down, block) => {
                self.establish_downlink(block, parameters);
            }
            Phase::Paging { .. } | Phase::AwaitsCellUpdate if self.up.is_heard(block) => {
                self.up.responds_to_page = false;
                // The mobile listens on the PACCH of its uplink TBF.
                self.down.phase = if self.up.phase == uplink::Phase::Transfer {
                    Phase::AssignmentPending { from: block }
                } else {
                    Phase::None
                };
            }
            Phase::Paging { at } if at <= block => {
                self.up.responds_to_page = true;
                self.down.phase = Phase::AwaitsCellUpdate;
            }
            Phase::AssignedOnCcch { at, heard } if at <= block => {
                self.down.is_reachable = heard;
                self.down.phase = Phase::AssignmentPending { from: block };
            }
            Phase::AssignmentAnswerDue { at, received } if at <= block => {
                if received {
                    self.down.begin_transfer();
                } else if self.down.repeat_assignment(block, parameters) {
                    self.down.release_until(block_from(now + parameters.t3195));
                }
            }
            Phase::Transfer => {
                let ends_tbf = self.down.handle_ack_nack(block);
                if ends_tbf {
                    self.down.release();
                    self.listens_until = now + parameters.t3192;
                    self.transfer_ended = Some(now);
                } else if self.down.has_failed(parameters) {
                    self.down.drop_in_flight(now, DropCause::AttemptsExhausted, ends, cx);
                    self.down.release_until(block_from(now + parameters.t3195));
                    self.abandon_tbf(now, parameters);
                }
            }
            _ => {}
        }
    }

    /// Chooses the channel of a downlink assignment: PACCH, CCCH, or CCCH after a page.
    fn establish_downlink(&mut self, block: u64, parameters: &Parameters) {
        use downlink::Phase;
        let now = start_of(block);
        self.down.is_reachable = true;
        self.down.phase = if self.up.phase == uplink::Phase::Transfer || now < self.listens_until {
            Phase::AssignmentPending { from: block }
        } else if self.up.phase != uplink::Phase::None {
            // During its own access it monitors no other assignment; the downlink follows on the
            // PACCH of its uplink TBF.
            Phase::None
        } else {
            let at_base_station = now + parameters.network_delay;
            let recently = |span: Span| self.transfer_ended.is_some_and(|ended| now.since(ended) < span);
            let heard_at = if recently(parameters.non_drx) {
                ccch_from(at_base_station)
            } else {
                paging_from(at_base_station, self.paging_draw, parameters.paging_multiframes)
            };
            if recently(parameters.ready) {
                let heard = self.air.receives_control(Direction::Down);
                Phase::AssignedOnCcch { at: block_from(heard_at + parameters.assignment_wait), heard }
            } else {
                self.up.forget_heard();
                Phase::Paging { at: block_from(heard_at) }
            }
        };
    }

    fn step_uplink(&mut self, block: u64, parameters: &Parameters) {
        use uplink::Phase;
        let now = start_of(block);
        match self.up.phase {
            Phase::None if self.up.has_data() && !self.is_silent(Direction::Up, block) => {
                self.establish_uplink(block, parameters);
            }
            Phase::Access { at, heard } if at <= block => {
                if !heard {
                    self.up.phase = Phase::None;
                } else if parameters.access == Access::TwoPhase {
                    self.up.phase = Phase::SingleBlock { at: block };
                } else {
                    self.up.begin_transfer(Contention::Unresolved);
                }
            }
            // The downlink TBF has ended: no Packet Downlink Ack/Nack will carry the request.
            Phase::RequestPending if self.down.phase != downlink::Phase::Transfer => self.up.phase = Phase::None,
            Phase::AwaitsAssignment { until } if until <= block => self.up.phase = Phase::None,
            Phase::Start { at } if at <= block => self.up.begin_transfer(Contention::Resolved),
            Phase::Transfer => {
                self.up.handle_ack_nack(block);
                if self.up.has_failed(parameters) {
                    self.up.abandon();
                    self.abandon_tbf(now, parameters);
                }
            }
            Phase::Abandoned { until } if until <= block => self.up.phase = Phase::None,
            _ => {}
        }
    }

    /// The network has released a TBF abnormally, after which the mobile may be stuck.
    fn abandon_tbf(&mut self, now: Instant, parameters: &Parameters) {
        self.transfer_ended = Some(now);
        if self.access_stream.chance(parameters.stuck) {
            self.silent_until = [STUCK; 2];
        }
    }

    /// Sends nothing in a direction until `block`.
    pub fn silence(&mut self, direction: Direction, block: u64) {
        let silent = &mut self.silent_until[direction as usize];
        *silent = (*silent).max(block);
    }

    /// The user reconnects. The mobile is silent in a direction until `block`, and no longer stuck.
    pub fn reconnect(&mut self, direction: Direction, block: u64) {
        let silent = &mut self.silent_until[direction as usize];
        *silent = if *silent == STUCK { block } else { (*silent).max(block) };
    }

    /// Chooses how the mobile requests an uplink TBF: with a Packet Downlink Ack/Nack, or by random
    /// access.
    fn establish_uplink(&mut self, block: u64, parameters: &Parameters) {
        use uplink::Phase;
        self.up.phase = match self.down.phase {
            downlink::Phase::Transfer => Phase::RequestPending,
            // A downlink TBF is being set up: the request goes with its first Packet Downlink
            // Ack/Nack.
            downlink::Phase::AssignedOnCcch { heard: true, .. }
            | downlink::Phase::AssignmentPending { .. }
            | downlink::Phase::AssignmentSent { .. }
            | downlink::Phase::AssignmentAnswerDue { .. } => Phase::None,
            downlink::Phase::None
            | downlink::Phase::Paging { .. }
            | downlink::Phase::AwaitsCellUpdate
            | downlink::Phase::AssignedOnCcch { heard: false, .. } => {
                let burst = self.up.access_bursts;
                let frames = self.access_stream.below(parameters.access_spread(burst).into());
                let access_burst_end = start_of(block) + FRAME * (frames + 1);
                let answered = ccch_from(access_burst_end + parameters.network_delay);
                let heard = self.air.receives_control(Direction::Down);
                let ends = if heard {
                    answered + parameters.reaction
                } else {
                    access_burst_end + FRAME * u64::from(parameters.access_wait(burst))
                };
                self.up.access_bursts = if heard || burst == parameters.max_retrans { 0 } else { burst + 1 };
                Phase::Access { at: block_from(ends), heard }
            }
        };
    }

    /// Sends a control message on the PACCH, if one is pending.
    pub fn send_control(&mut self, block: u64, parameters: &Parameters) -> DownlinkControl {
        if self.up.has_ack_nack(block) {
            let heard = self.air.receives_control(Direction::Down);
            let is_final = self.up.send_ack_nack(block, heard);
            return if is_final {
                DownlinkControl::Polled(UplinkControl::FinalAckNackAcknowledgement)
            } else {
                DownlinkControl::Sent
            };
        }
        if let uplink::Phase::AssignmentPending { from } = self.up.phase
            && from <= block
        {
            if self.air.receives_control(Direction::Down) {
                self.up.phase = uplink::Phase::Start { at: parameters.assignment_start(block) };
            } else {
                self.up.miss_assignment();
            }
            return DownlinkControl::Sent;
        }
        if let downlink::Phase::AssignmentPending { from } = self.down.phase
            && from <= block
        {
            let mobile_heard = self.air.receives_control(Direction::Down) && self.down.is_reachable;
            self.down.phase = downlink::Phase::AssignmentSent { mobile_heard };
            return DownlinkControl::Polled(UplinkControl::AssignmentAcknowledgement);
        }
        DownlinkControl::None
    }

    /// A call has taken the uplink block that was reserved for a message. The network repeats the
    /// poll.
    pub fn cancel_response(&mut self, block: u64, message: UplinkControl) {
        match message {
            UplinkControl::DownlinkAckNack => self.down.cancel_poll(),
            UplinkControl::AssignmentAcknowledgement => {
                if matches!(self.down.phase, downlink::Phase::AssignmentSent { .. }) {
                    self.down.phase = downlink::Phase::AssignmentPending { from: block };
                }
            }
            UplinkControl::FinalAckNackAcknowledgement => {
                if self.up.phase == uplink::Phase::Transfer {
                    self.up.repeat_final(block);
                }
            }
            UplinkControl::ResourceRequest => unreachable!("no block is reserved for it"),
        }
    }

    /// Sends the control message for which an uplink block was reserved.
    pub fn respond(&mut self, block: u64, message: UplinkControl, parameters: &Parameters) {
        let known_at = parameters.network_response(block);
        let cannot_send = self.is_silent(Direction::Up, block);
        self.counts[Direction::Up as usize].control += u16::from(!cannot_send);
        let air = &mut self.air;
        // A closure, so that only a message that is sent draws from the random stream of block
        // errors.
        let mut draw_reception = || !cannot_send && air.receives_control(Direction::Up);
        match message {
            UplinkControl::DownlinkAckNack => {
                let is_sent = self.down.has_heard_poll() && !cannot_send;
                let was_received = self.down.send_ack_nack(known_at, draw_reception);
                if is_sent && self.up.phase == uplink::Phase::RequestPending {
                    self.up.request(block, was_received.then_some(known_at), parameters);
                }
            }
            UplinkControl::AssignmentAcknowledgement => {
                if let downlink::Phase::AssignmentSent { mobile_heard } = self.down.phase {
                    let received = mobile_heard && draw_reception();
                    self.down.phase = downlink::Phase::AssignmentAnswerDue { at: known_at, received };
                }
            }
            UplinkControl::FinalAckNackAcknowledgement => {
                self.up.acknowledge_final(known_at, draw_reception);
                if self.up.phase == uplink::Phase::None {
                    self.transfer_ended = Some(end_of(block));
                }
            }
            UplinkControl::ResourceRequest => {
                let was_received = draw_reception();
                self.up.request(block, was_received.then_some(known_at), parameters);
            }
        }
    }

    /// Whether it waits for the single block of two-phase access, and may have it in `block`.
    pub fn needs_single_block(&self, block: u64) -> bool {
        matches!(self.up.phase, uplink::Phase::SingleBlock { at } if at <= block)
    }

    /// Reports the transmissions of a block period, and the states that have changed. `slots` are
    /// the timeslots that its multislot class allows, `slots_free_of_calls` the number of the
    /// cell's timeslots that calls leave.
    pub fn end_of_block(&mut self, block: u64, slots: Timeslots, slots_free_of_calls: u8, cx: &mut Context<'_>) {
        let at = start_of(block);
        for direction in Direction::BOTH {
            // Control blocks of periods without data are in the next event.
            let counts = &mut self.counts[direction as usize];
            if counts.pdus > 0 {
                // `RadioEvent::level` is the number of the coding scheme on this bearer.
                let PeriodCounts { pdus, repeated, errored, bytes, last_scheme: level, control } =
                    std::mem::take(counts);
                let (user, duration) = (self.user, end_of(block).since(at));
                let event = RadioEvent { direction, user, duration, pdus, repeated, errored, bytes, level, control };
                self.totals[direction as usize].add(&event);
                cx.radio(at, || event);
            }
        }
        let Self { tracks, user, slot, down, up, air, silent_until, reselects_until, .. } = self;
        tracks.report(at, *user, cx, || {
            let down_tbf = match down.phase {
                downlink::Phase::None => TbfState::None,
                downlink::Phase::Paging { .. } | downlink::Phase::AwaitsCellUpdate => TbfState::Paging,
                downlink::Phase::Transfer => TbfState::Transfer,
                _ => TbfState::Establishment,
            };
            let up_tbf = match up.phase {
                uplink::Phase::None => TbfState::None,
                uplink::Phase::Transfer => TbfState::Transfer,
                _ => TbfState::Establishment,
            };
            let mode = if *reselects_until > block {
                ModeState::Reselection
            // Commanded outages and handovers, and a stuck mobile, are logged as no coverage.
            } else if !air.sample.covered || silent_until.iter().all(|until| *until > block) {
                ModeState::NoCoverage
            } else {
                match (down_tbf, up_tbf) {
                    (TbfState::Transfer, _) | (_, TbfState::Transfer) => ModeState::Transfer,
                    (TbfState::None, TbfState::None) => ModeState::Idle,
                    _ => ModeState::Access,
                }
            };
            let link = if silent_until.contains(&STUCK) {
                LinkState::Stuck
            } else if down.is_stalled() || up.is_stalled() {
                LinkState::Stalled
            } else {
                LinkState::Connected
            };
            // Calls take the last timeslots of the cell.
            let available = slots_free_of_calls.saturating_sub(*slot);
            let used = |tbf, slots: u8| f64::from(if tbf == TbfState::Transfer { slots.min(available) } else { 0 });
            let up_slots = slots.up_while(down.phase != downlink::Phase::None);
            // In the order of `tracks::TRACKS`.
            [
                mode.into(),
                StateValue::Number(air.sample.cell.into()),
                StateValue::Number(air.sample.carrier_to_interference),
                down_tbf.into(),
                up_tbf.into(),
                StateValue::Name(down.scheme.name()),
                StateValue::Name(up.scheme.name()),
                StateValue::Number(used(down_tbf, slots.down)),
                StateValue::Number(used(up_tbf, up_slots)),
                link.into(),
            ]
        });
    }
}
