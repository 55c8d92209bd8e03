//! What comes through the air: the probability that a frame is in error, by the conditions of the
//! mobile or as it was set.

use airpath_core::{ConnectionTotals, Context, Instant, ModeState, Probability, Seed, Span};
use airpath_link::{Change, CommandError};

use super::config::{Config, Radio};
use super::tracks::Tracks;
use crate::conditions::{Conditions, Transition};
use crate::gsm::block_errors::Curve;
use crate::gsm::csd::ConfigError;

/// The conditions of one mobile.
#[derive(Debug)]
pub struct Air {
    scheme: &'static str,
    conditions: Option<(Conditions, &'static Curve)>,
    /// What holds instead.
    frame_errors: Option<Probability>,
    /// When the handover that is under way ends.
    handover_until: Option<Instant>,
    /// What happened to the call.
    pub totals: ConnectionTotals,
}

impl Air {
    /// Those of the mobile `user`. Generator streams lie below `path/conditions`.
    ///
    /// # Errors
    /// If the conditions make no sense.
    pub fn new(config: &Config, radio: &Radio, user: usize, seed: Seed, path: &str) -> Result<Self, ConfigError> {
        let scheme = radio.channel.name();
        let conditions = match &config.conditions {
            Some(conditions) => {
                let conditions = Conditions::new(conditions, user, seed, &format!("{path}/conditions"))?;
                let curve = Curve::of(scheme, conditions.profile(), 1);
                Some((conditions, curve))
            }
            None => None,
        };
        Ok(Self {
            scheme,
            conditions,
            frame_errors: radio.frame_errors,
            handover_until: None,
            totals: Default::default(),
        })
    }

    /// The probability that a frame that begins at `now` is in error. `interrupt` is called for a
    /// time in which nothing gets through at all.
    pub fn at(
        &mut self,
        now: Instant,
        mut interrupt: impl FnMut(Instant, Span),
        tracks: &mut Tracks,
        cx: &mut Context<'_>,
    ) -> Probability {
        while let Some((at, transition)) = self.next_transition(now) {
            if let Transition::Handover { gap, .. } | Transition::Reselection { gap, .. } = transition {
                interrupt(at, gap);
                self.hand_over(at, gap, tracks, cx);
            }
        }
        self.settle(now, tracks, cx);
        let Some((conditions, curve)) = &mut self.conditions else {
            self.report_mode(now, true, tracks, cx);
            return self.frame_errors.unwrap_or(Probability::NEVER);
        };
        let sample = conditions.at(now);
        let p = curve.at(sample.carrier_to_interference);
        tracks.radio(now, &sample, cx);
        self.report_mode(now, sample.covered, tracks, cx);
        match self.frame_errors {
            _ if !sample.covered => Probability::ALWAYS,
            Some(frame_errors) => frame_errors,
            None => p,
        }
    }

    fn next_transition(&mut self, now: Instant) -> Option<(Instant, Transition)> {
        self.conditions.as_mut()?.0.next_transition(now)
    }

    fn report_mode(&self, now: Instant, is_covered: bool, tracks: &mut Tracks, cx: &mut Context<'_>) {
        let mode = match self.handover_until {
            _ if !is_covered => ModeState::NoCoverage,
            Some(_) => ModeState::Handover,
            None => ModeState::Call,
        };
        tracks.mode(now, mode, cx);
    }

    /// The call is handed over at `at`, which takes `gap`.
    pub fn hand_over(&mut self, at: Instant, gap: Span, tracks: &mut Tracks, cx: &mut Context<'_>) {
        self.totals.handovers += 1;
        self.settle(at, tracks, cx);
        if !gap.is_zero() {
            // Of two interruptions at a time, the longer one counts.
            self.handover_until = self.handover_until.max(Some(at + gap));
            tracks.mode(at, ModeState::Handover, cx);
        }
    }

    /// Reports that a handover has ended, if it has by `now`.
    pub fn settle(&mut self, now: Instant, tracks: &mut Tracks, cx: &mut Context<'_>) {
        if let Some(until) = self.handover_until.take_if(|until| *until <= now) {
            tracks.handover_ended(until, cx);
        }
    }

    /// The mobile selects its cell by itself until `now`.
    pub fn select_cell(&mut self, now: Instant) {
        while self.next_transition(now).is_some() {}
    }

    /// Whether this change is one of conditions that they can have.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self, change: &Change) -> Result<(), CommandError> {
        match (change, &self.conditions) {
            (Change::Bler(_), _) => Ok(()),
            (_, Some((conditions, _))) => conditions.check(change),
            (_, None) => Err(CommandError::Foreign {
                key: change.kind().name(),
                what: "a traffic channel with `frame_errors`",
                help: "change its `bler`, or give the bearer `conditions` instead",
            }),
        }
    }

    /// Changes them from now on.
    ///
    /// # Errors
    /// Those of [`Air::check`]; then nothing has changed.
    pub fn command(&mut self, now: Instant, change: &Change) -> Result<(), CommandError> {
        self.check(change)?;
        if let Change::Bler(bler) = change {
            self.frame_errors = Some(*bler);
        } else if let Some((conditions, curve)) = &mut self.conditions {
            conditions.command(now, change)?;
            *curve = Curve::of(self.scheme, conditions.profile(), 1);
            self.frame_errors = None;
        }
        Ok(())
    }
}
