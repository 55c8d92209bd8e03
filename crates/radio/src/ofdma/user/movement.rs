//! What a mobile's radio is like, and what changes of the serving cell do to it.

use airpath_core::{Context, Direction, DropCause, Instant, ModeState, Span};

use super::User;
use crate::conditions::{Sample, Transition};
use crate::ofdma::plan::Plan;
use crate::ofdma::radio_link::LostLink;
use crate::ofdma::rrc::State;

/// Whether the mobile can be served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Movement {
    /// Set while no cell serves the mobile.
    pub(super) lost: Option<LostLink>,
    /// When a mobile out of coverage looks for a cell again.
    pub(super) next_search: Instant,
    /// The link is that of another cell; what waits is to be made ready.
    pub(super) resumes: bool,
    /// Nothing is sent in a direction before.
    blocked_until: [Instant; 2],
}

/// How often a mobile out of coverage looks for a cell: a choice, of the order of a measurement
/// period (200 ms, TS 36.133 §8.1.2.2).
pub(super) const SEARCH: Span = Span::from_millis(200);

impl Movement {
    /// Whether a cell serves the mobile.
    pub const fn is_covered(&self) -> bool {
        self.lost.is_none()
    }

    /// Whether the radio link has failed: nothing is sent until the mobile has found a cell.
    pub fn has_failed(&self) -> bool {
        self.lost.is_some_and(|lost| lost.has_failed())
    }

    /// Before this, nothing can be sent in a direction.
    pub fn served_from(&self, direction: Direction) -> Instant {
        self.blocked_until[direction as usize].max(self.next_search)
    }

    /// The end of an interruption: before it, no connection is set up.
    pub fn free_from(&self, now: Instant) -> Instant {
        self.blocked_until.into_iter().fold(now, Instant::max)
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
            self.measure_quality(&sample, plan);
        }
        let sample = self.look(now, now, cx);
        if !self.movement.is_covered() {
            self.movement.next_search = now + SEARCH;
            self.has_changed = true;
        }
        self.quality.hear(now, plan);
        if self.must_choose_mode {
            self.choose_mode(sample.carrier_to_interference, plan);
            self.must_choose_mode = false;
        }
        self.sinr = self.sinr_of(&sample);
        sample
    }

    /// The SINR: downlink, uplink.
    pub(super) fn sinr_of(&self, sample: &Sample) -> [f64; 2] {
        let downlink = sample.carrier_to_interference;
        [downlink, downlink - self.below_downlink]
    }

    /// What it was like at `then`, after what has happened to the serving cell up to then.
    pub(super) fn look(&mut self, now: Instant, then: Instant, cx: &mut Context<'_>) -> Sample {
        while let Some((at, transition)) = self.conditions.next_transition(then) {
            self.pass(now, at, transition, cx);
        }
        self.conditions.at(then)
    }

    fn pass(&mut self, now: Instant, at: Instant, transition: Transition, cx: &mut Context<'_>) {
        self.has_changed = true;
        self.clock = self.clock.max(now);
        match transition {
            Transition::Handover { to, gap } | Transition::Reselection { to, gap } => {
                self.tracks.cell(at, to, cx);
                // Without a connection the mobile has selected the cell by itself.
                if self.rrc.was_connected(at) {
                    self.tracks.mode(at, ModeState::Handover, Some(at + gap), cx);
                }
                if at + gap > now {
                    self.establish_again(now, at + gap, DropCause::Handover, cx);
                    // The base station may have found it in a slot: then nothing else makes the
                    // uplink ready again.
                    (self.movement.resumes, self.movement.next_search) = (true, now);
                }
            }
            Transition::CoverageLost => {
                self.movement.lost = Some(LostLink::new(at));
                self.tracks.mode(at, ModeState::NoCoverage, None, cx);
            }
            Transition::CoverageBack { to } => {
                let has_failed = self.movement.has_failed();
                self.movement.lost = None;
                self.movement.next_search = now;
                self.tracks.cell(at, to, cx);
                if self.rrc.state() != State::Connected {
                    self.tracks.mode(at, ModeState::Idle, None, cx);
                } else if has_failed {
                    let until = at + self.rrc.re_establishment();
                    self.tracks.mode(at, ModeState::ReEstablishment, Some(until), cx);
                    self.reset_mac();
                    self.resume_at(until);
                    self.movement.resumes = true;
                } else {
                    self.tracks.mode(at, ModeState::Connected, None, cx);
                }
            }
        }
    }
}
