//! What carries packets from a mobile: a dedicated channel of Release 99, or an E-DCH.

use airpath_core::{Context, Direction, DropCause, Instant, Probability, RadioTotals, Seed};

use super::config::Config;
use super::e_dch::link::EDchLink;
use crate::common::arq::rlc_am::RlcAm;
use crate::conditions::Profile;
use crate::umts::ConfigError;
use crate::umts::r99::radio_link::{RadioLink, Received};

/// The uplink of one mobile.
#[derive(Debug)]
pub enum Uplink {
    Dch(Box<RadioLink>),
    EDch(Box<EDchLink>),
}

impl Uplink {
    /// An idle one.
    pub fn new(config: &Config, seed: Seed, path: &str) -> Result<Self, ConfigError> {
        let opposite = &config.downlink.rlc;
        Ok(match (&config.uplink, &config.e_dch) {
            (Some(uplink), _) => Self::Dch(Box::new(RadioLink::new(uplink, Direction::Up, opposite, seed, path)?)),
            (None, Some(e_dch)) => Self::EDch(Box::new(EDchLink::new(e_dch, opposite, seed, path)?)),
            (None, None) => unreachable!("it was checked that there is one"),
        })
    }

    /// The RLC.
    #[inline]
    pub const fn rlc(&self) -> &RlcAm {
        match self {
            Self::Dch(link) => &link.rlc,
            Self::EDch(link) => &link.rlc,
        }
    }

    /// The same, to change it.
    #[inline]
    pub const fn rlc_mut(&mut self) -> &mut RlcAm {
        match self {
            Self::Dch(link) => &mut link.rlc,
            Self::EDch(link) => &mut link.rlc,
        }
    }

    /// What it has sent on the air.
    pub const fn totals(&self) -> &RadioTotals {
        match self {
            Self::Dch(link) => &link.totals,
            Self::EDch(link) => &link.totals,
        }
    }

    /// The same, to add to it.
    pub const fn totals_mut(&mut self) -> &mut RadioTotals {
        match self {
            Self::Dch(link) => &mut link.totals,
            Self::EDch(link) => &mut link.totals,
        }
    }

    /// When something happens next that is its own.
    #[inline]
    pub fn next_event(&self, after: Instant) -> Option<Instant> {
        match self {
            Self::Dch(link) => link.next_event(after),
            Self::EDch(link) => link.next_event(after),
        }
    }

    /// Whether a TTI that is used begins at `now`.
    pub fn takes_tti(&mut self, now: Instant) -> bool {
        let tti_at = match self {
            Self::Dch(link) => &mut link.tti_at,
            Self::EDch(link) => &mut link.tti_at,
        };
        tti_at.take_if(|at| *at == now).is_some()
    }

    /// Finds the next TTI that is used, after `now` and not before `earliest`.
    pub fn schedule(&mut self, now: Instant, earliest: Instant) {
        match self {
            Self::Dch(link) => {
                if link.tti_at.is_none() && link.has_something(now) {
                    // What arrives at the very beginning of a TTI goes in the next one.
                    let next = Instant::from_nanos(now.as_nanos() + 1).max(link.blocked_until).max(earliest);
                    link.tti_at = Some(next.round_up_to(link.formats[0].tti));
                }
            }
            Self::EDch(link) => link.schedule(now, earliest),
        }
    }

    /// Whether it may send at `now`.
    pub fn may_send(&self, now: Instant) -> bool {
        match self {
            Self::Dch(link) => link.blocked_until <= now,
            Self::EDch(link) => link.may_send(now),
        }
    }

    /// Nothing is sent before `until`.
    pub fn block(&mut self, until: Instant) {
        match self {
            Self::Dch(link) => {
                link.blocked_until = link.blocked_until.max(until);
                if link.tti_at.is_some_and(|at| at < until) {
                    link.tti_at = None;
                }
            }
            Self::EDch(link) => link.block(until),
        }
    }

    /// The next content that has come by `now` and is not packet data. `polled` is set if a report
    /// is to be sent.
    pub fn receive(&mut self, now: Instant, polled: &mut bool) -> Option<Received> {
        match self {
            Self::Dch(link) => link.receive(now, polled),
            Self::EDch(link) => link.receive(now, polled),
        }
    }

    /// The E-DCH, if it is one.
    pub const fn e_dch(&self) -> Option<&EDchLink> {
        match self {
            Self::Dch(_) => None,
            Self::EDch(link) => Some(link),
        }
    }

    /// The same, to change it.
    pub const fn e_dch_mut(&mut self) -> Option<&mut EDchLink> {
        match self {
            Self::Dch(_) => None,
            Self::EDch(link) => Some(link),
        }
    }

    /// From now on there is this fast fading.
    pub fn fade(&mut self, profile: Profile) {
        match self {
            Self::Dch(link) => link.fade(profile),
            Self::EDch(link) => link.fade(profile),
        }
    }

    /// From now on errors in this share of TTIs, or of first transmissions.
    pub const fn set_bler(&mut self, bler: Probability) {
        match self {
            Self::Dch(link) => link.errors.set_target(bler),
            Self::EDch(link) => link.set_bler(bler),
        }
    }

    /// Restarts with packets that were never sent; all others are lost.
    pub fn reset(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.rlc_mut().reset(now, cause, cx);
    }

    /// Loses all that was not delivered, what was never sent included.
    pub fn discard(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.rlc_mut().discard(now, cause, cx);
    }
}
