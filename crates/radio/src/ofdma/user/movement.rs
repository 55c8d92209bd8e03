//! What a mobile's radio is like, and what changes of the serving cell do to it.

use airpath_core::{Context, Direction, DropCause, Instant, ModeState, Span};

use super::User;
use crate::conditions::{Sample, Transition};
use crate::ofdma::plan::Plan;
use crate::ofdma::radio_link::{LostLink, Timer};
use crate::ofdma::rrc::State;

/// Whether the mobile can be served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Movement {
    /// Without a cell that serves the mobile.
    lost: Option<LostLink>,
    /// Out of coverage, the radio is not looked at before.
    next_search: Instant,
    /// Nothing is sent in a direction before.
    blocked_until: [Instant; 2],
}

/// How often a mobile out of coverage looks for a cell: a choice, of the order of a measurement
/// period (200 ms, TS 36.133 §8.1.2.2).
const SEARCH: Span = Span::from_millis(200);

impl Movement {
    /// Whether a cell serves the mobile.
    pub const fn is_covered(&self) -> bool {
        self.lost.is_none()
    }

    /// Before this, nothing can be sent in a direction.
    pub fn served_from(&self, direction: Direction) -> Instant {
        self.blocked_until[direction as usize].max(self.next_search)
    }

    /// Nothing is sent in these directions before `until`.
    pub fn block(&mut self, directions: &[Direction], until: Instant) {
        for direction in directions {
            let blocked = &mut self.blocked_until[*direction as usize];
            *blocked = (*blocked).max(until);
        }
    }

    /// The conditions restart.
    pub const fn forget_coverage(&mut self) {
        (self.lost, self.next_search) = (None, Instant::ZERO);
    }

    /// The radio link has failed by the RLC: T310 is not awaited any more.
    pub fn fail(&mut self, now: Instant) {
        if let Some(lost) = &mut self.lost {
            lost.fail(now);
        }
    }
}

impl User {
    /// Finds out what the radio is like in the slot that begins at `now`, and takes the reports
    /// of the channel up to then.
    pub fn look_around(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) -> Sample {
        while let Some(at) = self.quality.due(now) {
            let sample = self.look(now, at, cx);
            if self.must_choose_mode {
                self.choose_mode(sample.carrier_to_interference, plan);
            }
            let sinr = sample.covered.then(|| self.sinr_of(&sample));
            self.quality.measure(sinr, plan);
        }
        let sample = self.look(now, now, cx);
        if !self.movement.is_covered() {
            self.movement.next_search = now + SEARCH;
            self.has_changed = true;
        }
        self.quality.hear(now);
        if self.must_choose_mode {
            self.choose_mode(sample.carrier_to_interference, plan);
            self.must_choose_mode = false;
        }
        self.sinr = self.sinr_of(&sample);
        sample
    }

    /// The SINR of a block with its repetitions: downlink, uplink.
    fn sinr_of(&self, sample: &Sample) -> [f64; 2] {
        let downlink = sample.carrier_to_interference;
        [downlink + self.gain[0], downlink - self.below_downlink + self.gain[1]]
    }

    /// What it was like at `then`.
    fn look(&mut self, now: Instant, then: Instant, cx: &mut Context<'_>) -> Sample {
        self.pass_until(now, then, cx);
        self.conditions.at(then)
    }

    /// Passes what has happened to the serving cell up to `then`.
    fn pass_until(&mut self, now: Instant, then: Instant, cx: &mut Context<'_>) {
        while let Some((at, transition)) = self.conditions.next_transition(then) {
            self.has_changed = true;
            self.pass(now, at, transition, cx);
        }
    }

    fn pass(&mut self, now: Instant, at: Instant, transition: Transition, cx: &mut Context<'_>) {
        match transition {
            Transition::Handover { to, gap } | Transition::Reselection { to, gap } => {
                self.tracks.cell(at, to, cx);
                self.tracks.mode(at, ModeState::Handover, Some(at + gap), cx);
                if at + gap > now {
                    self.establish_again(now, at + gap, DropCause::Handover, cx);
                }
            }
            Transition::CoverageLost => {
                self.movement.lost = Some(LostLink::new(at));
                self.tracks.mode(at, ModeState::NoCoverage, None, cx);
            }
            Transition::CoverageBack { to } => {
                let has_failed = self.movement.lost.take().is_some_and(|lost| lost.has_failed());
                self.movement.next_search = now;
                self.tracks.cell(at, to, cx);
                if has_failed && self.rrc.state() == State::Connected {
                    let until = at + self.rrc.re_establishment();
                    self.tracks.mode(at, ModeState::ReEstablishment, Some(until), cx);
                    self.resume_at(until);
                } else {
                    self.tracks.mode(at, ModeState::Connected, None, cx);
                }
            }
        }
    }

    /// The timer of the radio link that runs.
    pub(super) fn link_timer(&self) -> Option<Timer> {
        let (lost, timers) = self.movement.lost.as_ref().zip(self.rrc.link_timers())?;
        Some(lost.timer(timers))
    }

    /// Does what is due at the end of T310 or T311.
    pub(super) fn expire_link(&mut self, now: Instant, cx: &mut Context<'_>) {
        if self.link_timer().is_none_or(|timer| timer.at() > now) {
            return;
        }
        // Coverage may have come back since the last look.
        self.pass_until(now, now, cx);
        match self.link_timer().filter(|timer| timer.at() <= now) {
            Some(Timer::Failure(at)) => {
                self.movement.fail(at);
                self.tracks.mode(at, ModeState::ReEstablishment, None, cx);
                self.establish_again(now, now, DropCause::AttemptsExhausted, cx);
            }
            Some(Timer::Release(at)) => self.lose_connection(at, now, cx),
            None => {}
        }
    }

    /// The connection is released at `at`, and all that came before is lost with its bearers (TS
    /// 36.331 §5.3.12).
    fn lose_connection(&mut self, at: Instant, now: Instant, cx: &mut Context<'_>) {
        let cause = DropCause::AttemptsExhausted;
        let is_older = self.inside_since <= at;
        for direction in Direction::BOTH {
            let channels = self.channels(direction);
            if is_older {
                channels.discard(now, cause, cx);
            } else {
                channels.establish_again(now, cause, cx);
            }
        }
        self.rrc.lose(at);
        self.released(at, State::Connected, cx);
        self.re_established = Some(cause);
        self.movement.next_search = now + SEARCH;
    }

    /// Whether the mobile can set up a connection now. If not, it looks for a cell later.
    pub(super) fn finds_cell(&mut self, now: Instant, cx: &mut Context<'_>) -> bool {
        self.pass_until(now, now, cx);
        let is_covered = self.movement.is_covered();
        if !is_covered {
            self.movement.next_search = now + SEARCH;
        }
        is_covered
    }

    /// When an idle mobile looks for a cell, for what waits.
    pub(super) fn search_at(&self) -> Option<Instant> {
        let is_idle = matches!(self.rrc.state(), State::Idle | State::Inactive);
        (is_idle && !self.movement.is_covered() && !self.is_empty()).then_some(self.movement.next_search)
    }

    /// Sets up the connection of an idle mobile that waits for coverage, if it is back.
    pub(super) fn search(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) {
        if self.search_at().is_some_and(|at| at <= now) && self.finds_cell(now, cx) {
            let direction = if self.up.waiting() > 0 { Direction::Up } else { Direction::Down };
            self.connect(now, direction, false, plan, cx);
            // Dual connectivity follows the connection.
            self.re_established = Some(DropCause::AttemptsExhausted);
        }
    }
}
