//! The connection of a mobile: paging, random access, set-up and release.

use airpath_core::{Context, Direction, Instant, LteRrcState, ModeState, Span, WaitState};

use super::{Phase, State, User};
use crate::conditions::{Sample, Transition};
use crate::nbiot::config::ReleaseAssistance;
use crate::nbiot::plan::Plan;

/// How long a mobile out of coverage waits before it tries again: a choice.
const SEARCH: Span = Span::from_secs(2);

impl User {
    /// Sets the connection up if there is none, for a packet in this direction.
    pub(super) fn connect(&mut self, now: Instant, direction: Direction, plan: &Plan, cx: &mut Context<'_>) {
        if self.state != State::Idle {
            return;
        }
        match direction {
            Direction::Up => {
                self.page_at = None;
                self.set_up(now, plan, cx);
            }
            Direction::Down if self.page_at.is_none() => {
                self.page_at = Some(self.paging.next(now, self.idle_since, plan.inactivity));
                self.report_rrc(now, LteRrcState::Paging, cx);
            }
            Direction::Down => {}
        }
    }

    /// Begins to set the connection up.
    pub(super) fn set_up(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) {
        self.report_rrc(now, LteRrcState::Promotion, cx);
        (self.state, self.setup_from, self.release_at) = (State::SetUp, now, None);
        (self.has_sent, self.is_answered) = (false, false);
        (self.message, self.message_left) = (0, plan.setup[0]);
        self.access(now, plan, cx);
    }

    /// Begins random access: at the next occasion, in the coverage level of the mobile.
    pub(super) fn access(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) {
        let sample = self.look(now, cx);
        if self.state == State::Connected {
            self.report_wait(now, WaitState::RandomAccess, cx);
        }
        let from = now.max(self.blocked_until[Direction::Up as usize]);
        let from = if self.is_lost || !sample.covered { from + SEARCH } else { from };
        self.measured = sample.carrier_to_interference;
        self.level = plan.level(self.measured);
        let (_, response_at) = plan.levels[self.level].access(from);
        self.phase = Phase::Access(response_at);
    }

    /// What the radio is like now.
    pub(super) fn look(&mut self, now: Instant, cx: &mut Context<'_>) -> Sample {
        while let Some((at, transition)) = self.conditions.next_transition(now) {
            match transition {
                Transition::Handover { to, gap } | Transition::Reselection { to, gap } => {
                    self.tracks.cell(at, to, cx);
                    // Without a connection the mobile has selected the cell by itself.
                    if self.state == State::Connected {
                        self.tracks.mode(at, ModeState::Handover, Some(at + gap), cx);
                    }
                    for blocked in &mut self.blocked_until {
                        *blocked = (*blocked).max(at + gap);
                    }
                }
                Transition::CoverageLost => {
                    self.is_lost = true;
                    self.tracks.mode(at, ModeState::NoCoverage, None, cx);
                }
                Transition::CoverageBack { to } => {
                    self.is_lost = false;
                    self.tracks.cell(at, to, cx);
                    self.tracks.mode(at, ModeState::Connected, None, cx);
                }
            }
        }
        self.conditions.at(now)
    }

    /// A message of the set-up was received, or a part of it.
    pub(super) fn message_received(&mut self, now: Instant, bytes: u32, plan: &Plan, cx: &mut Context<'_>) {
        self.message_left -= bytes;
        if self.message_left > 0 {
            return;
        }
        self.message += 1;
        match plan.setup.get(self.message) {
            Some(next) => self.message_left = *next,
            None => {
                self.state = State::Connected;
                self.tracks.totals.set_ups += 1;
                self.report_rrc(now, LteRrcState::Connected, cx);
                self.keep(now, plan);
            }
        }
    }

    /// The connection is kept for its inactivity time from now on, or with release assistance for
    /// less.
    pub(super) fn keep(&mut self, now: Instant, plan: &Plan) {
        let waits = self.waiting_down(now) > 0 || self.waiting_up(now) > 0 || !self.is_empty();
        let is_last = match plan.release_assistance {
            ReleaseAssistance::Off => false,
            ReleaseAssistance::AfterUplink => self.has_sent,
            ReleaseAssistance::AfterDownlink => self.has_sent && self.is_answered,
        };
        self.release_at = Some(now + if is_last && !waits { plan.release } else { plan.inactivity });
    }

    /// Releases the connection if it is time and nothing waits.
    pub(super) fn release(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) {
        if self.release_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let is_busy = !matches!(self.phase, Phase::Rest)
            || self.waiting_down(now) > 0
            || self.waiting_up(now) > 0
            || !self.is_empty();
        if is_busy {
            self.release_at = Some(now + plan.inactivity);
            return;
        }
        self.look(now, cx);
        self.reset();
        // Nearly all mobiles of a carrier are idle: they keep no memory for the next connection.
        (self.spare, self.arrivals) = Default::default();
        (self.state, self.idle_since) = (State::Idle, Some(now));
        self.report_rrc(now, LteRrcState::Idle, cx);
        self.tracks.mode(now, ModeState::Idle, None, cx);
        self.down.release_connection();
        self.up.release_connection();
    }
}
