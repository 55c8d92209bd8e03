//! What the failure of a mobile's radio link does: re-establishment, release, and the search for a
//! cell.

use airpath_core::{Context, Direction, DropCause, Instant, ModeState};

use super::User;
use super::movement::SEARCH;
use crate::ofdma::plan::Plan;
use crate::ofdma::radio_link::Timer;
use crate::ofdma::rrc::State;

impl User {
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
        if self.is_empty() {
            self.release_inactive(now, cx);
        }
        // Coverage may have come back since the last look.
        self.look(now, now, cx);
        match self.link_timer().filter(|timer| timer.at() <= now) {
            Some(Timer::Failure(at)) => {
                self.movement.fail(at);
                self.tracks.totals.link_failures += 1;
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
        let is_covered = self.look(now, now, cx).covered;
        if !is_covered {
            self.tracks.mode(now, ModeState::NoCoverage, None, cx);
            self.movement.next_search = now + SEARCH;
        }
        is_covered
    }

    /// When a mobile searches for a cell while packets wait: an idle one, in coverage the first
    /// packet starts its set-up, and one whose radio link has failed.
    pub(super) fn search_at(&self) -> Option<Instant> {
        let searches = match self.rrc.state() {
            State::Idle | State::Inactive => true,
            State::Connected => self.movement.has_failed() || self.movement.resumes,
            State::Promotion(_) => false,
        };
        (searches && !self.is_empty()).then_some(self.movement.next_search)
    }

    /// Searches for a cell if it is time. In one, an idle mobile sets up its connection.
    pub(super) fn search(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) {
        if self.search_at().is_none_or(|at| at > now) {
            return;
        }
        if self.rrc.state() == State::Connected {
            if self.movement.has_failed() && !self.look(now, now, cx).covered {
                self.movement.next_search = now + SEARCH;
            }
        } else if self.finds_cell(now, cx) {
            self.release_inactive(now, cx);
            self.connect(now, Direction::Down, false, plan, cx);
            // Dual connectivity follows the connection.
            self.re_established = Some(DropCause::AttemptsExhausted);
        }
        // All that waits is made ready now.
        self.movement.resumes = false;
    }
}
