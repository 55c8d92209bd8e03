//! What a mobile's radio is like, and what changes of the serving cell do to it.

use airpath_core::{Classes, Context, Direction, DropCause, Instant, ModeState, Span};

use super::User;
use crate::conditions::{Sample, Transition};
use crate::umts::hsdpa::link_quality;

/// Whether the mobile can be served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Movement {
    is_lost: bool,
    /// Out of coverage, the radio is not looked at before.
    pub next_search: Instant,
    /// No block is sent to it before.
    pub blocked_until: Instant,
}

/// How often a mobile looks for coverage: a choice, of the order of a measurement period (200 ms,
/// TS 25.133 §8.1.2.2).
const SEARCH: Span = Span::from_millis(200);

impl Movement {
    /// Whether a cell serves the mobile.
    pub const fn is_covered(&self) -> bool {
        !self.is_lost
    }
}

impl User {
    /// Before this, no block can be sent to it.
    pub fn served_from(&self) -> Instant {
        self.movement.blocked_until.max(self.movement.next_search)
    }

    /// Finds out what the radio is like in the TTI that begins now. Returns whether a block can be
    /// sent.
    pub fn begin_tti(&mut self, now: Instant, cx: &mut Context<'_>) -> bool {
        if self.served_from() > now {
            return false;
        }
        let sample = self.look_around(now, cx);
        self.ratio = link_quality::ratio(sample.carrier_to_interference);
        let can = self.movement.is_covered() && self.movement.blocked_until <= now;
        if can {
            self.report_tracks(now, &sample, cx);
        }
        can
    }

    /// Whether nothing in its radio changes until something happens to it: constant conditions that
    /// the base station has, and no state of the log that ends by itself.
    pub fn is_settled(&self, cx: &Context<'_>) -> bool {
        let cqi = self.conditions.constant().map(|ci| self.quality.reported(ci));
        cqi.is_some_and(|cqi| self.reports.is_settled(cqi)) && (self.tracks.is_settled() || !cx.wants(Classes::STATE))
    }

    /// Takes the reports up to `now`, which is at most the time of the last TTI.
    pub fn catch_up(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.look_around(now, cx);
    }

    /// The CQI that the base station uses.
    pub fn reported(&mut self, now: Instant) -> u8 {
        self.reports.heard(now)
    }

    /// Finds out what the radio is like at `now`, and takes the reports up to then.
    pub(super) fn look_around(&mut self, now: Instant, cx: &mut Context<'_>) -> Sample {
        while let Some(at) = self.reports.due(now) {
            let sample = self.look(now, at, cx);
            let cqi = if sample.covered { self.quality.reported(sample.carrier_to_interference) } else { 0 };
            self.reports.take(cqi);
        }
        let sample = self.look(now, now, cx);
        if !self.movement.is_covered() {
            self.movement.next_search = now + SEARCH;
        }
        sample
    }

    /// What it was like at `then`.
    fn look(&mut self, now: Instant, then: Instant, cx: &mut Context<'_>) -> Sample {
        while let Some((at, transition)) = self.conditions.next_transition(then) {
            self.pass(now, at, transition, cx);
        }
        self.conditions.at(then)
    }

    fn pass(&mut self, now: Instant, at: Instant, transition: Transition, cx: &mut Context<'_>) {
        match transition {
            Transition::Handover { to, gap } | Transition::Reselection { to, gap } => {
                self.tracks.cell(at, to, cx);
                self.tracks.mode(at, ModeState::Handover, Some(at + gap), cx);
                self.block(at + gap);
                self.reset_mac(now, at, cx);
            }
            Transition::CoverageLost => {
                self.movement.is_lost = true;
                self.tracks.mode(at, ModeState::NoCoverage, None, cx);
            }
            Transition::CoverageBack { to } => {
                self.movement.is_lost = false;
                self.movement.next_search = now;
                self.tracks.cell(at, to, cx);
                self.tracks.mode(at, ModeState::Connected, None, cx);
            }
        }
    }

    /// The conditions restart.
    pub(super) const fn forget_coverage(&mut self) {
        self.movement.is_lost = false;
        self.movement.next_search = Instant::ZERO;
    }

    /// Nothing is sent before `until`, either way.
    pub(super) fn block(&mut self, until: Instant) {
        self.movement.blocked_until = self.movement.blocked_until.max(until);
        self.up.block(until);
    }

    /// MAC-hs restarts with a change of the serving cell at `at`: what the base station had is lost
    /// to it, and left to the RLC (TS 25.308 §9). What has come since is in the new one.
    pub(super) fn reset_mac(&mut self, now: Instant, at: Instant, cx: &mut Context<'_>) {
        if let Some(e_dch) = self.up.e_dch_mut() {
            e_dch.reset_mac();
        }
        self.iub.lose_before(now, at);
        let spare = &mut self.spare;
        self.harq.clear(|mut block| {
            block.units.clear();
            spare.push(block.units);
        });
        let ready = &mut self.ready;
        self.reordering.reset(self.harq.next_number(), |block| ready.push_back(block));
        self.take_apart(now, cx);
    }

    /// What the RLC has in these directions is lost.
    pub(super) fn discard(&mut self, now: Instant, directions: &[Direction], cause: DropCause, cx: &mut Context<'_>) {
        for direction in directions {
            self.resets.forget(Some(*direction));
            match direction {
                Direction::Down => {
                    self.reset_mac(now, now, cx);
                    self.down.discard(now, cause, cx);
                }
                Direction::Up => self.up.discard(now, cause, cx),
            }
        }
    }
}
