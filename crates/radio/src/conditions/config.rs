//! The parameters of radio conditions, as a scenario has them, and the processes made from them.

use std::path::PathBuf;

use airpath_core::{Decibel, Frequency, Length, Probability, Seed, Span, Speed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blockage::{self, Blockage};
use super::cell_selection::{Measurements, Rule};
use super::fading::Fading;
use super::mobility::{Correlation, Manner, Mobility};
use super::movement::Movement;
use super::profile::Profile;
use super::shadowing::Shadowing;
use super::site::{Cells, Radio, Sites};
use super::{Process, Series, Table, Varying};
use crate::conditions::ConfigError;
use crate::error::ValueError;

/// Radio conditions: exactly one of `ci`, `level`, `table`, `recorded` and `cells`, and what goes
/// with it.
///
/// All but `network` is the environment; `network` is how the technology deals with it.
///
/// ```toml
/// [bearer.conditions]
/// ci = "12 dB"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// C/I that is always the same, or the median of that with `shadowing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci: Option<Decibel>,
    /// The level of the only cell over the noise of the receiver, or the median of that with
    /// `shadowing`. Noise alone limits the link: C/I is the level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Decibel>,
    /// C/I that is drawn from a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    /// A file with a recorded series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<PathBuf>,
    /// Cells at positions, among which the mobile is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<Cells>,
    /// Slow variation by what stands in the way, with `ci`, `level` or `cells`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadowing: Option<Variation>,
    /// Where the mobile goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub movement: Option<Movement>,
    /// What fast fading the block-error curves of a GSM bearer are averaged over, and for which a
    /// dedicated channel of UMTS needs more C/I. Default: `tu3`; `static` with `rayleigh`. LTE, NR
    /// and NB-IoT reject it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fading: Option<Profile>,
    /// The speed of fast fading that is part of C/I, in place of that of the block-error curves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rayleigh: Option<Speed>,
    /// What stands in the way of the signal at times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blockage: Option<Blockage>,
    /// How the technology uses the cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What is different for some mobiles, by their number; all else holds for those that are not
    /// in here. The builder of the bearer sets it.
    #[serde(skip)]
    pub of_mobiles: Vec<Option<Config>>,
}

/// Slow variation of C/I, or of the levels of cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variation {
    /// Its standard deviation.
    pub deviation: Decibel,
    /// Over what distance its correlation falls to 1/e, for a mobile that moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_distance: Option<Length>,
    /// Over what time, for one that others move around.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_time: Option<Span>,
    /// The correlation of the shadowing of two sites, with `cells`. Default: 0.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_correlation: Option<Probability>,
}

/// How a technology uses the cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The carrier's frequency.
    pub frequency: Frequency,
    /// The reuse factor: how many cells share the spectrum among them. 1 with CDMA.
    pub reuse: u32,
    /// The share of time in which an interfering cell sends, or of the power with which it does.
    pub load: Probability,
    /// The power of a cell, antenna gain included, over the noise of a receiver in the bandwidth of
    /// the carrier.
    pub power_over_noise: Decibel,
    /// The lowest level at which a cell can serve, over that noise.
    pub lowest: Decibel,
    /// How often levels are measured.
    pub period: Span,
    /// By how much another cell must be better.
    pub hysteresis: Decibel,
    /// For how long it must be.
    pub time_to_trigger: Span,
    /// How a mobile changes cells.
    pub change: CellChange,
    /// How long nothing is sent or received then, with `reselection` and `hard-handover`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Span>,
    /// How much weaker than the strongest a cell may be that serves with it, with `soft-handover`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Decibel>,
}

/// How a mobile changes cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellChange {
    /// The mobile decides, and is gone for a time.
    Reselection,
    /// The network decides; nothing is sent for a time.
    HardHandover,
    /// The network decides; the mobile has several cells at once.
    SoftHandover,
}

/// The correlation of the shadowing of two sites if it is not given (3GPP TR 25.942 §5.1.4.3,
/// recalled).
const SITE_CORRELATION: Probability = Probability::HALF;

/// The longest times, so that counts of measurements stay small.
const LONGEST: Span = Span::from_secs(60);

impl Config {
    /// C/I that is always the same.
    pub fn fixed(ci: Decibel) -> Self {
        Self { ci: Some(ci), ..Self::default() }
    }

    /// The files that they are read from, those of single mobiles included.
    pub fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let own = self.of_mobiles.iter_mut().flatten().filter_map(|own| own.recorded.as_mut());
        self.recorded.as_mut().into_iter().chain(own).collect()
    }

    /// Whether any mobile is handed over between cells with a gap.
    pub fn has_hard_handovers(&self) -> bool {
        let own = |config: &Self| {
            let change = config.network.as_ref().map(|network| network.change);
            config.cells.is_some() && change == Some(CellChange::HardHandover)
        };
        own(self) || self.of_mobiles.iter().flatten().any(own)
    }

    /// Refuses `fading` of any mobile, for a bearer whose errors do not depend on it.
    pub(crate) fn refuse_fading(&self) -> Result<(), ConfigError> {
        let mut all = std::iter::once(self).chain(self.of_mobiles.iter().flatten());
        if all.any(|own| own.fading.is_some()) { Err(ConfigError::Fading) } else { Ok(()) }
    }

    /// Refuses soft handover of any mobile, for a technology that has hard handover only.
    pub(crate) fn refuse_soft_handover(&self) -> Result<(), ConfigError> {
        let is_soft = |own: &Self| own.network.as_ref().is_some_and(|it| it.change == CellChange::SoftHandover);
        let mut all = std::iter::once(self).chain(self.of_mobiles.iter().flatten());
        if !all.any(is_soft) {
            return Ok(());
        }
        let expected = "\"hard-handover\" or \"reselection\": LTE, NR and NB-IoT have no soft handover (TS 36.300 \
                        §10.1.2, TS 38.300 §9.2.3)";
        Err(ValueError::Range { key: "conditions.network.change".to_owned(), expected }.into())
    }

    /// The mobiles that have conditions of their own, and one of the others.
    pub(crate) fn distinct(&self) -> usize {
        self.of_mobiles.len() + 1
    }

    /// The conditions of the mobile `user`.
    pub(super) fn of(&self, user: usize) -> &Self {
        self.of_mobiles.get(user).and_then(Option::as_ref).unwrap_or(self)
    }

    pub(super) fn process(&self, seed: Seed, path: &str) -> Result<Process, ConfigError> {
        let made = match (&self.ci, &self.level, &self.table, &self.recorded, &self.cells) {
            (Some(ci), None, None, None, None) => match &self.shadowing {
                None => Process::Fixed { ratio: ci.get(), cell: 0 },
                Some(variation) => Process::Varying(self.varying(*ci, variation, seed, path)?),
            },
            (None, Some(level), None, None, None) => match &self.shadowing {
                None => Process::Level(Varying::constant(*level, seed)),
                Some(variation) => Process::Level(self.varying(*level, variation, seed, path)?),
            },
            (None, None, Some(table), None, None) => table.process(seed, path).map(Process::Table)?,
            (None, None, None, Some(file), None) => Series::read(file).map(Process::Recorded)?,
            (None, None, None, None, Some(cells)) => Process::Cells(Box::new(self.mobility(cells, seed, path)?)),
            _ => return Err(ConfigError::Kind),
        };
        let among_cells = matches!(made, Process::Cells(_));
        let varies = self.shadowing.is_some() && (self.ci.is_some() || self.level.is_some()) || among_cells;
        if self.shadowing.is_some() && !varies {
            return Err(foreign("shadowing", "ci`, `level` or `cells"));
        }
        if self.movement.is_some() && !varies {
            return Err(foreign("movement", "cells"));
        }
        if !among_cells && self.shadowing.as_ref().is_some_and(|variation| variation.site_correlation.is_some()) {
            return Err(foreign("shadowing.site_correlation", "cells"));
        }
        Ok(made)
    }

    /// Fast fading that is a part of C/I, if there is any.
    pub(super) fn rayleigh(&self, seed: Seed, path: &str) -> Result<Option<Fading>, ConfigError> {
        let Some(speed) = self.rayleigh else { return Ok(None) };
        // It counts once.
        if self.fading.is_some_and(|fading| fading != Profile::Static) {
            return Err(foreign("rayleigh", "fading = \"static\""));
        }
        let network = self.network.as_ref().ok_or_else(|| foreign("rayleigh", "network"))?;
        Ok(Some(Fading::new(speed, network.frequency, seed, &format!("{path}/fading"))))
    }

    /// What blocks the signal at times, if anything does.
    pub(super) fn blockage(&self, seed: Seed, path: &str) -> Result<Option<blockage::Process>, ConfigError> {
        let process = |blockage: &Blockage| blockage.process(seed, &format!("{path}/blockage"));
        self.blockage.as_ref().map(process).transpose()
    }

    /// The fast fading of the block-error curves.
    pub(super) fn profile(&self) -> Profile {
        let default = if self.rayleigh.is_some() { Profile::Static } else { Profile::default() };
        self.fading.unwrap_or(default)
    }

    fn varying(&self, ci: Decibel, variation: &Variation, seed: Seed, path: &str) -> Result<Varying, ConfigError> {
        let (deviation, correlation) = variation.check()?;
        let motion = match (correlation, &self.movement) {
            (Correlation::Distance(_), Some(movement)) => {
                Some(movement.motion(&mut seed.stream(&format!("{path}/start")))?)
            }
            (Correlation::Distance(_), None) => return Err(foreign("shadowing.correlation_distance", "movement")),
            (Correlation::Time(_), Some(_)) => {
                return Err(foreign("movement", "cells` or `shadowing.correlation_distance"));
            }
            (Correlation::Time(_), None) => None,
        };
        let shadowing = Shadowing::new(seed, &format!("{path}/shadowing"));
        Ok(Varying { median: ci.get(), deviation, correlation, motion, shadowing })
    }

    fn mobility(&self, cells: &Cells, seed: Seed, path: &str) -> Result<Mobility, ConfigError> {
        let network = self.network.as_ref().ok_or(ConfigError::Network)?;
        let movement = self.movement.as_ref().ok_or_else(|| foreign("cells", "movement"))?;
        let variation = self.shadowing.as_ref().ok_or_else(|| foreign("cells", "shadowing"))?;
        let (deviation, correlation) = variation.check()?;
        let radio = Radio {
            frequency: network.frequency,
            reuse: network.reuse,
            load: network.load,
            power_over_noise: network.power_over_noise,
            deviation,
            site_correlation: variation.site_correlation.unwrap_or(SITE_CORRELATION),
        };
        let place = Sites::new(cells, &radio, seed, path)?;
        let motion = movement.motion(&mut seed.stream(&format!("{path}/start")))?;
        let measurements = network.measurements()?;
        let rule = Rule { hysteresis: network.hysteresis.get(), measurements, lowest: network.lowest.get() };
        let (manner, cells) = (network.manner()?, place.cells());
        let period = (network.period, measurements);
        Ok(Mobility::new((motion, correlation), place, period, manner, Measurements::new(rule, cells)))
    }
}

impl Variation {
    /// The deviation in decibels, and over what it changes.
    fn check(&self) -> Result<(f64, Correlation), ConfigError> {
        let key = |key: &str| format!("conditions.shadowing.{key}");
        if !(0.0..=40.0).contains(&self.deviation.get()) {
            return Err(ValueError::Range { key: key("deviation"), expected: "0 dB to 40 dB" }.into());
        }
        let correlation = match (self.correlation_distance, self.correlation_time) {
            (Some(distance), None) if distance.is_zero() => {
                return Err(ValueError::Zero { key: key("correlation_distance") }.into());
            }
            (None, Some(time)) if time.is_zero() => {
                return Err(ValueError::Zero { key: key("correlation_time") }.into());
            }
            (Some(distance), None) => Correlation::Distance(distance.as_metres()),
            (None, Some(time)) => Correlation::Time(time.as_secs_f64()),
            (None, None) | (Some(_), Some(_)) => return Err(ConfigError::Correlation),
        };
        Ok((self.deviation.get(), correlation))
    }
}

impl Network {
    /// In how many measurements in a row another cell must be better.
    fn measurements(&self) -> Result<u32, ConfigError> {
        let key = |key: &str| format!("conditions.network.{key}");
        if self.period < Span::from_millis(10) || self.period > LONGEST {
            return Err(ValueError::Range { key: key("period"), expected: "10 ms to 60 s" }.into());
        }
        if self.time_to_trigger > LONGEST {
            return Err(ValueError::Range { key: key("time_to_trigger"), expected: "at most 60 s" }.into());
        }
        if self.hysteresis.get() < 0.0 {
            return Err(ValueError::Range { key: key("hysteresis"), expected: "0 dB or more" }.into());
        }
        // The first measurement and all within the time that follows.
        Ok((self.time_to_trigger.as_nanos() / self.period.as_nanos()) as u32 + 1)
    }

    fn manner(&self) -> Result<Manner, ConfigError> {
        if self.gap.is_some_and(|gap| gap > LONGEST) {
            let key = "conditions.network.gap".to_owned();
            return Err(ValueError::Range { key, expected: "at most 60 s" }.into());
        }
        match (self.change, self.gap, self.window) {
            (CellChange::Reselection, Some(gap), None) => Ok(Manner::Reselection(gap)),
            (CellChange::HardHandover, Some(gap), None) => Ok(Manner::Handover(gap)),
            (CellChange::SoftHandover, None, Some(window)) => Ok(Manner::Soft(window.get())),
            (CellChange::SoftHandover, Some(_), _) => Err(foreign("network.gap", "change = \"hard-handover\"")),
            (CellChange::SoftHandover, None, None) => Err(foreign("network.change", "window")),
            (_, _, Some(_)) => Err(foreign("network.window", "change = \"soft-handover\"")),
            (_, None, None) => Err(foreign("network.change", "gap")),
        }
    }
}

/// What only means something with something else.
fn foreign(key: &str, needs: &'static str) -> ConfigError {
    ValueError::Needs { key: format!("conditions.{key}"), needs }.into()
}
