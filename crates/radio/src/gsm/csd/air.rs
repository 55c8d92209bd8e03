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
        let Some((conditions, curve)) = &mut self.conditions else {
            tracks.mode(now, ModeState::Call, cx);
            return self.frame_errors.unwrap_or(Probability::NEVER);
        };
        while let Some((at, transition)) = conditions.next_transition(now) {
            if let Transition::Handover { gap, .. } | Transition::Reselection { gap, .. } = transition {
                self.totals.handovers += 1;
                if !gap.is_zero() {
                    interrupt(at, gap);
                    self.handover_until = Some(at + gap);
                }
            }
        }
        let sample = conditions.at(now);
        tracks.radio(now, &sample, cx);
        self.handover_until = self.handover_until.filter(|until| *until > now);
        let mode = match self.handover_until {
            _ if !sample.covered => ModeState::NoCoverage,
            Some(_) => ModeState::Handover,
            None => ModeState::Call,
        };
        tracks.mode(now, mode, cx);
        match self.frame_errors {
            _ if !sample.covered => Probability::ALWAYS,
            Some(frame_errors) => frame_errors,
            None => curve.at(sample.carrier_to_interference),
        }
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
