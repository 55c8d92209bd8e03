//! The radio log of a mobile: its states, and what it sends and gets.

use airpath_core::{
    Aspect, Classes, Context, Direction, DrxState, HarqState, Instant, LteRrcState, RadioEvent, Span, StateValue,
    WaitState,
};

use super::User;
use crate::common::log::Tracks;
use crate::conditions::Sample;
use crate::ofdma::rrc::State;
use crate::ofdma::transport_format::TransportFormat;

impl User {
    /// The mobile sends or receives in the slot that begins at `now`.
    pub(super) fn report_tracks(&mut self, now: Instant, sample: &Sample, cx: &mut Context<'_>) {
        if cx.wants(Classes::STATE) {
            self.tracks.connected(now, false, cx);
            self.tracks.radio(now, sample, cx);
            self.report_rrc(now, LteRrcState::Connected, cx);
        }
    }

    /// The RRC state.
    pub(super) fn report_rrc(&mut self, at: Instant, state: LteRrcState, cx: &mut Context<'_>) {
        self.tracks.report(at, None, Aspect::Rrc, state.into(), cx);
    }

    /// The transmission window may be why nothing is sent.
    pub(super) fn report_stall(&mut self, now: Instant, cx: &mut Context<'_>) {
        if cx.wants(Classes::STATE) {
            self.tracks.stalled(now, self.down.data.is_stalled() || self.up.data.is_stalled(), cx);
        }
    }

    /// Downlink data wait at `now`, before the base station has served them: a mobile that sleeps
    /// is the reason.
    pub(super) fn report_sleep(&mut self, now: Instant, cx: &mut Context<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        if self.rrc.state() == State::Connected && self.down.waiting() > 0 && !self.listens(now) {
            self.report_wait(now, Direction::Down, WaitState::Drx, cx);
        }
    }

    /// The base station can serve it at `now`, if it listens.
    pub fn report_awake(&mut self, now: Instant, cx: &mut Context<'_>) {
        if cx.wants(Classes::STATE) && self.listens(now) {
            self.report_wait(now, Direction::Down, WaitState::None, cx);
        }
    }

    /// What the packets of the uplink wait for.
    pub(super) fn report_request(&mut self, now: Instant, cx: &mut Context<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let has_grant = self.configured.as_ref().is_some_and(|configured| configured.next.is_some());
        let waits = self.rrc.state() == State::Connected && self.up.waiting() > 0;
        let state = if waits && has_grant {
            WaitState::Grant
        } else if !waits || !self.request.is_pending() {
            WaitState::None
        } else if self.request.message_at().is_some() {
            WaitState::RandomAccess
        } else if self.request.is_awaited() || self.harq_up.has_grant() {
            WaitState::Grant
        } else {
            WaitState::SchedulingRequest
        };
        self.report_wait(now, Direction::Up, state, cx);
    }

    fn report_wait(&mut self, now: Instant, direction: Direction, state: WaitState, cx: &mut Context<'_>) {
        self.tracks.report(now, Some(direction), Aspect::Wait, state.into(), cx);
    }

    /// Whether a block of a direction is to be sent again.
    pub(super) fn report_harq(&mut self, now: Instant, direction: Direction, cx: &mut Context<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let repeats = match direction {
            Direction::Down => self.harq_down.iter().any(|carrier| carrier.has_repeats()),
            Direction::Up => self.harq_up.has_repeats(),
        };
        let state = if repeats { HarqState::Repeat } else { HarqState::None };
        self.tracks.report(now, Some(direction), Aspect::Harq, state.into(), cx);
    }

    /// The DRX states up to `now`, if it was not active since the last activity.
    pub(super) fn report_drx(&mut self, now: Instant, cx: &mut Context<'_>) {
        // It listens until its request is answered.
        if !cx.wants(Classes::STATE) || self.request.is_awaited() {
            return;
        }
        let tracks = &mut self.tracks;
        if let Some(drx) = &mut self.drx {
            drx.report(now, |at, state| report_state(tracks, at, state, cx));
        }
    }

    /// It is active from `now` on.
    pub(super) fn report_active(&mut self, now: Instant, cx: &mut Context<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let tracks = &mut self.tracks;
        if let Some(drx) = &mut self.drx {
            drx.report_active(now, |at, state| report_state(tracks, at, state, cx));
        }
    }

    /// The mobile got an assignment or a grant of new data.
    pub(super) fn active(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.rrc.active(now);
        if self.drx.is_some() {
            self.report_drx(now, cx);
            self.report_active(now, cx);
        }
        if let Some(drx) = &mut self.drx {
            drx.active(now);
        }
    }

    /// A block of PDUs that begins at a time and takes a duration, sent for the first time or
    /// `again`.
    pub(super) fn report_block(
        &mut self,
        (now, duration): (Instant, Span),
        direction: Direction,
        format: &TransportFormat,
        (pdus, again, errored): (usize, bool, bool),
        cx: &mut Context<'_>,
    ) {
        let pdus = pdus as u16;
        let event = RadioEvent {
            direction,
            user: self.id,
            duration,
            pdus,
            repeated: if again { pdus } else { 0 },
            errored: if errored { pdus } else { 0 },
            bytes: format.bits / 8,
            level: format.scheme,
            control: 0,
        };
        self.totals[direction as usize].add(&event);
        cx.radio(now, || event);
        if cx.wants(Classes::STATE) {
            let blocks = StateValue::Number(f64::from(format.blocks));
            self.tracks.report(now, Some(direction), Aspect::Slots, blocks, cx);
        }
    }
}

fn report_state(tracks: &mut Tracks, at: Instant, state: DrxState, cx: &mut Context<'_>) {
    tracks.report(at, None, Aspect::Drx, state.into(), cx);
}
