//! Requests, grants and blocks from the mobile.

use airpath_core::{Context, Direction, Instant, Span};

use super::User;
use crate::ofdma::UplinkHarq;
use crate::ofdma::buffer_status::{self, BufferStatus, SHORT_REPORT};
use crate::ofdma::harq::Planned;
use crate::ofdma::plan::{Plan, UplinkTimes};
use crate::ofdma::rlc::Block;
use crate::ofdma::rrc::State;
use crate::ofdma::scheduling_request::Request;
use crate::ofdma::transport_block::Sent;
use crate::ofdma::transport_format::TransportFormat;

impl User {
    /// Bytes that the base station would grant now, if `first` is what it grants for a request.
    #[inline]
    pub fn wanted_up(&self, first: u64) -> u64 {
        self.knowledge.wanted(first, !self.harq_up.is_empty())
    }

    /// Whether a transmission is planned for the slot that begins at `at`.
    #[inline]
    pub fn is_planned_up(&self, at: Instant) -> bool {
        self.harq_up.is_planned(at)
    }

    /// The base station sends a grant in the slot that begins at `now`, for the one at `at`.
    pub fn grant(&mut self, now: Instant, at: Instant, format: TransportFormat, plan: &Plan, cx: &mut Context<'_>) {
        self.has_changed = true;
        self.knowledge.granted(at, (format.bits / 8).into());
        if !self.control.chance(plan.dtx_missed) {
            // It has listened since the request.
            self.active(now, cx);
            self.request.granted();
            self.harq_up.plan(at, Planned::New(format));
            self.will_send(now, at, plan);
        }
    }

    /// Plans the next grant that needs no request, while there is something to send and the mobile
    /// listens. Like any grant it is sent as late as possible: a retransmission that is planned
    /// earlier comes first.
    pub(super) fn preschedule(&mut self, now: Instant, plan: &mut Plan) {
        let Some((interval, bytes)) = plan.prescheduling else { return };
        if self.prescheduled_at > now {
            // The mobile may have missed it: then nothing else happens there.
            self.preschedule_at = Some(self.prescheduled_at);
            return;
        }
        if self.movement.served_from(Direction::Up) > now {
            return;
        }
        let from = plan.next_slot(now);
        let (interval, offset) = (interval.as_nanos(), self.prescheduling_offset.as_nanos());
        let phase = (from.as_nanos() + interval - offset) % interval;
        let at = plan.uplink_from(from + Span::from_nanos((interval - phase) % interval));
        let grant_at = plan.timeline().last_grant(plan.number(at)).map(|slot| plan.start(slot));
        if let Some(grant_at) = grant_at.filter(|grant_at| *grant_at > now) {
            self.preschedule_at = Some(grant_at);
            return;
        }
        let granted = grant_at.unwrap_or(now);
        // What was reported gets grants of its own size.
        if self.wanted_up(0) > 0
            || !self.listens(granted)
            || !self.can_receive(granted, plan)
            || self.harq_up.is_planned(at)
            || !self.has_process_up(granted, plan)
        {
            return;
        }
        self.quality.hear_feedback(now, plan);
        let quality = self.quality.estimate(Direction::Up);
        plan.begin_slot(granted);
        let left = plan.without_others(Direction::Up, plan.left_up(at));
        if let Some(format) = plan.allocate(Direction::Up, at, quality, bytes, left) {
            plan.reserve_up(at, format.blocks);
            self.prescheduled_at = at;
            if self.control.chance(plan.dtx_missed) {
                self.preschedule_at = Some(at);
            } else {
                self.harq_up.plan(at, Planned::Prescheduled(format));
                self.will_send(now, at, plan);
            }
        }
    }

    /// Uses the configured grant of the slot that begins at `now`, unless there is another one for
    /// it, which comes first (TS 38.321 §5.4.1).
    pub(super) fn use_configured_grant(&mut self, now: Instant, plan: &Plan) {
        let Some((configured, grants)) = self.configured.as_mut().zip(plan.configured.as_ref()) else { return };
        let is_due = configured.next.take_if(|at| *at <= now).is_some();
        let is_served = self.rrc.state() == State::Connected && self.movement.served_from(Direction::Up) <= now;
        if is_due && is_served && !self.harq_up.is_planned(now) && self.has_process_up(now, plan) {
            self.harq_up.plan(now, Planned::New(grants.format));
        }
    }

    /// The transmission of the slot that begins at `now`.
    pub(super) fn transmit_up(&mut self, now: Instant, plan: &mut Plan, cx: &mut Context<'_>) {
        if let Some(planned) = self.harq_up.take(now) {
            self.transmit_planned(now, planned, plan, cx);
            self.report_harq(now, Direction::Up, cx);
        }
    }

    fn transmit_planned(&mut self, now: Instant, planned: Planned, plan: &mut Plan, cx: &mut Context<'_>) {
        let sample = self.look_around(now, plan, cx);
        // A handover may have been found just now.
        if sample.covered && self.movement.served_from(Direction::Up) > now {
            if let Planned::Again(sent) = planned {
                self.give_up(now, Direction::Up, sent.block, cx);
            }
            return;
        }
        let is_unrequested = matches!(planned, Planned::Prescheduled(_));
        let mut sent = match planned {
            Planned::New(format) | Planned::Prescheduled(format) => {
                let soft = plan.soft_buffer(Direction::Up, &format);
                Sent::new(self.fill_up(now, format.bits / 8, cx), format, soft)
            }
            Planned::Again(sent) => *sent,
        };
        // Grants that a mobile does not use are left out, so they do not keep it awake.
        if is_unrequested && sent.block.count() > 0 {
            self.active(now, cx);
        }
        self.report_tracks(now, &sample, cx);
        let direction = Direction::Up;
        let is_first = sent.attempts == 0;
        sent.attempts += 1;
        let errored = !sample.covered || self.is_errored(now, direction, &mut sent, plan);
        let pdus = sent.block.count();
        let UplinkTimes { received, next_grant } = plan.uplink_times(now, self.coverage(sent.format.mode));
        self.report_block((now, received.since(now)), direction, &sent.format, (pdus, !is_first, errored), cx);
        if is_first {
            self.learn_from(direction, received + plan.processing, sent.format.blocks, !errored);
        }
        if !errored {
            if let Some(status) = sent.block.buffer_status {
                let bytes = buffer_status::reported(status.bytes, plan.buffer_sizes);
                self.knowledge.hear(received + plan.processing, BufferStatus { bytes, ..status });
            }
            self.arrivals[direction as usize].push_back((received, sent.block));
        } else if sent.attempts >= plan.max_transmissions || self.is_taken_for_positive(plan) {
            self.give_up(now, direction, sent.block, cx);
        } else {
            let at = if plan.narrowband.is_some() {
                self.grant_again(now, plan.number(next_grant), &sent.format, plan)
            } else {
                let blocks = sent.format.blocks;
                let at = plan.next_attempt_up(now, blocks, |at| !self.harq_up.is_planned(at));
                plan.reserve_up(at, blocks);
                at
            };
            self.harq_up.plan(at, Planned::Again(Box::new(sent)));
            self.will_send(now, at, plan);
            return;
        }
        self.harq_up.done(now, next_grant);
    }

    /// Whether the mobile takes negative feedback for a positive one, if there is feedback.
    fn is_taken_for_positive(&mut self, plan: &Plan) -> bool {
        plan.uplink_harq == UplinkHarq::ByFeedback && self.control.chance(plan.nack_to_ack)
    }

    /// Whether a grant that is sent at `now` has a process.
    #[inline]
    pub fn has_process_up(&self, now: Instant, plan: &Plan) -> bool {
        let harq = match &plan.narrowband {
            None => plan.uplink_harq,
            Some(narrowband) => UplinkHarq::ByGrants { processes: narrowband.mode(self.mode).processes.into() },
        };
        self.harq_up.has_process(now, harq)
    }

    /// A new block of this size.
    fn fill_up(&mut self, now: Instant, size: u32, cx: &mut Context<'_>) -> Block {
        let mut block = self.spare.pop().unwrap_or_default();
        self.reporting.granted(now);
        let comes_first = size >= SHORT_REPORT && self.reporting.comes_first(now);
        let room = if comes_first { size - SHORT_REPORT } else { size };
        let used = self.up.fill(now, room, &mut self.down, &mut block, cx);
        let waiting = self.waiting_up(now);
        // Padding that has room for a report is one (padding BSR).
        if comes_first || room - used >= SHORT_REPORT {
            let (has_voice, is_alone) = (self.up.waiting_voice() > 0, used == 0);
            block.buffer_status = Some(BufferStatus { at: now, bytes: waiting, has_voice, is_alone });
            self.reporting.sent(now, waiting);
            self.request.cancel();
        }
        (self.had_data, self.had_voice) = (waiting > 0, self.up.waiting_voice() > 0);
        block
    }

    /// Sends a scheduling request, or the message of random access, if it is time.
    pub(super) fn request_up(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) {
        let is_served = self.rrc.state() == State::Connected && !self.movement.has_failed();
        if self.movement.served_from(Direction::Up) > now || !is_served {
            return;
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if !is_due(self.request.next()) && !is_due(self.request.message_at()) {
            return;
        }
        let slots = self.request_slots(now, plan);
        if !self.can_request(now, plan) {
            self.request.postpone(now, now + plan.slot());
            return;
        }
        let usable = plan.start(slots.end) + plan.processing;
        if self.request.message_at().is_some_and(|at| at <= now) {
            let waiting = self.waiting_up(now);
            self.request.message_sent();
            self.reporting.sent(now, waiting);
            if self.look_around(now, plan, cx).covered {
                let has_voice = self.up.waiting_voice() > 0;
                let bytes = buffer_status::reported(waiting, plan.buffer_sizes);
                self.knowledge.hear(usable, BufferStatus { at: now, bytes, has_voice, is_alone: false });
            }
        }
        if self.request.send(now, plan) == Some(Request::Scheduling) && self.look_around(now, plan, cx).covered {
            self.report_drx(now, cx);
            self.report_active(now, cx);
            self.requested_at.get_or_insert(usable);
        }
    }

    /// Nothing is sent before `until`: grants that were not used yet are void, and blocks that are
    /// to be sent again wait, but for those of a narrowband, which are left to the RLC.
    pub(super) fn interrupt_up(&mut self, now: Instant, until: Instant, plan: &mut Plan, cx: &mut Context<'_>) {
        for (at, sent) in self.harq_up.cancel_grants() {
            if plan.narrowband.is_some() {
                self.give_up(now, Direction::Up, sent.block, cx);
                continue;
            }
            let mut again_at = at;
            while again_at < until {
                again_at = plan.next_attempt_up(again_at, sent.format.blocks, |at| !self.harq_up.is_planned(at));
            }
            if again_at != at && plan.can_promise(now, again_at) {
                plan.reserve_up(again_at, sent.format.blocks);
            }
            self.harq_up.plan(again_at, Planned::Again(sent));
            self.will_send(now, again_at, plan);
        }
        self.report_harq(now, Direction::Up, cx);
    }
}
