//! What movement does to a connection: handover, its gap and the burst after it, coverage that is
//! lost, and the failure of the radio link.

use airpath_core::{Context, DropCause, Instant, LinkState, ModeState, RrcState, Span};

use super::Mobile;
use crate::conditions::{Sample, Transition};
use crate::umts::r99::config::Undelivered;
use crate::umts::r99::radio_link::RadioLink;

/// Whether the mobile is in coverage, and whether its link has failed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage {
    lost_at: Option<Instant>,
    /// The link has failed.
    failed: bool,
    /// Its radio bearers are released, too.
    released: bool,
    /// Out of coverage, the radio is not looked at before.
    pub next_search: Instant,
}

/// How often a mobile looks for coverage: a choice, of the order of a measurement period (200 ms,
/// TS 25.133 §8.1.2.2).
const SEARCH: Span = Span::from_millis(200);

impl Coverage {
    /// Whether a cell serves the mobile.
    #[inline]
    pub const fn is_covered(&self) -> bool {
        self.lost_at.is_none()
    }

    /// Whether the radio bearers are released, and not set up again.
    #[inline]
    pub const fn is_released(&self) -> bool {
        self.released
    }
}

impl Mobile {
    /// Finds out what the radio is like at `now`, and what has happened to it.
    pub(super) fn look_around(&mut self, now: Instant, cx: &mut Context<'_>) -> Sample {
        while let Some((at, transition)) = self.conditions.next_transition(now) {
            self.pass(now, at, transition, cx);
        }
        if let Some(lost_at) = self.coverage.lost_at {
            self.coverage.next_search = now + SEARCH;
            let since = now.since(lost_at);
            // A mobile that has lost its connection searches for a cell by itself: the link cannot
            // fail again.
            if self.has_lost_connection() {
                return self.conditions.at(now);
            }
            if !self.coverage.failed && since >= self.mobility.link_failure {
                self.coverage.failed = true;
                self.tracks.totals.link_failures += 1;
                if !self.mobility.link_release.is_zero() {
                    self.tracks.link(now, LinkState::Failed, cx);
                }
            }
            if !self.coverage.released && since >= self.mobility.link_failure + self.mobility.link_release {
                self.fail(now, cx);
            }
        }
        self.conditions.at(now)
    }

    pub(super) fn pass(&mut self, now: Instant, at: Instant, transition: Transition, cx: &mut Context<'_>) {
        match transition {
            Transition::Handover { to, gap } => {
                self.tracks.cell(at, to, cx);
                let (is_dedicated, selects_cells) = (self.rrc.state() == RrcState::CellDch, self.selects_cells());
                let lost = match &mut self.reconnection {
                    Some(reconnection) if is_dedicated => reconnection.draw(),
                    // A connection without a dedicated channel has no radio link that could fail.
                    Some(reconnection) if reconnection.is_running() => None,
                    _ if selects_cells => None,
                    Some(_) | None => Some(false),
                };
                // Without a connection the mobile has selected the cell by itself.
                match lost {
                    None => {}
                    Some(true) => self.lose_connection(at, cx),
                    Some(false) => self.hand_over(now, at, gap, self.mobility.buffer, cx),
                }
            }
            Transition::Reselection { to, gap } => {
                self.tracks.totals.handovers += u32::from(!self.selects_cells());
                self.tracks.cell(at, to, cx);
                self.block(now, at + gap);
            }
            Transition::CoverageLost => {
                self.coverage.lost_at = Some(at);
                self.tracks.mode(at, ModeState::NoCoverage, None, cx);
            }
            Transition::CoverageBack { to } => {
                self.coverage.lost_at = None;
                self.coverage.next_search = now;
                self.coverage.released = false;
                self.tracks.cell(at, to, cx);
                if self.has_lost_connection() {
                    self.coverage.failed = false;
                    self.tracks.mode(at, ModeState::ReEstablishment, None, cx);
                } else if std::mem::take(&mut self.coverage.failed) {
                    let until = at + self.mobility.re_establishment;
                    self.tracks.mode(at, ModeState::ReEstablishment, Some(until), cx);
                    self.block(now, until);
                } else {
                    self.tracks.mode(at, ModeState::Connected, None, cx);
                }
            }
        }
    }

    /// Whether the mobile changes its cell by itself, as in idle and in CELL_PCH (TS 25.304 §5.2).
    const fn selects_cells(&self) -> bool {
        matches!(self.rrc.state(), RrcState::Idle | RrcState::CellPch)
    }

    /// Whether a handover that was not noticed for lack of packets loses those that come now.
    pub(super) fn may_lose_by_handover(&self) -> bool {
        let loses = self.mobility.buffer == Undelivered::Discard || self.reconnection.is_some();
        loses && self.links.iter().all(RadioLink::is_empty)
    }

    /// Both directions are handed over to another cell at `at`. What the driver has meanwhile goes
    /// to IP after it.
    pub(super) fn hand_over(
        &mut self,
        now: Instant,
        at: Instant,
        gap: Span,
        buffer: Undelivered,
        cx: &mut Context<'_>,
    ) {
        let until = at + gap;
        if !self.selects_cells() {
            self.tracks.mode(at, ModeState::Handover, Some(until), cx);
        }
        self.block(now, until);
        self.held_until = self.held_until.max(until + self.mobility.driver_hold);
        match buffer {
            Undelivered::Keep => {}
            Undelivered::Forward => {
                self.resets.forget(None);
                self.links.iter_mut().for_each(|link| link.re_establish(now, DropCause::Handover, cx));
            }
            Undelivered::Discard => self.discard(now, DropCause::Handover, cx),
        }
    }

    /// The radio bearers are released: what the RLC has is lost, and they are to be set up again.
    pub(super) fn fail(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.tracks.totals.link_failures += u32::from(!self.coverage.failed);
        self.discard(now, DropCause::AttemptsExhausted, cx);
        self.rrc.lose(now);
        self.tracks.link(now, LinkState::Disconnected, cx);
        self.report_state(now, cx);
        if self.coverage.is_covered() {
            let until = now + self.mobility.re_establishment;
            self.tracks.mode(now, ModeState::ReEstablishment, Some(until), cx);
            self.block(now, until);
        } else {
            self.coverage.failed = true;
            self.coverage.released = true;
        }
    }

    pub(super) fn discard(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.resets.forget(None);
        for link in &mut self.links {
            link.discard(now, cause, cx);
        }
    }

    /// Nothing is sent before `until`.
    fn block(&mut self, now: Instant, until: Instant) {
        for link in &mut self.links {
            link.blocked_until = link.blocked_until.max(until);
            if link.tti_at.is_some_and(|at| at > now && at < until) {
                link.tti_at = None;
            }
        }
    }
}
