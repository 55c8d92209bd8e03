//! Radio conditions: what the carrier-to-interference ratio of a mobile is at a time, which cell
//! serves it, and when that changes.
//!
//! A bearer has one [`Conditions`] for each mobile, and samples it at the beginning of a radio
//! block or a TTI. A sample depends on the seed and its time only. So a bearer that is polled late
//! gets the same samples, and a mobile that is idle costs nothing: when it wakes up, what happened
//! meanwhile is found without going through it.
//!
//! ```
//! use airpath_core::{Instant, Seed};
//! use airpath_radio::conditions::{Conditions, Config};
//!
//! let config: Config = toml::from_str(r#"ci = "12 dB""#)?;
//! let mut conditions = Conditions::new(&config, 0, Seed::new(1), "cell/user-0/conditions")?;
//! assert_eq!(conditions.at(Instant::ZERO).carrier_to_interference, 12.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blockage;
mod cell_selection;
mod config;
pub mod environments;
mod error;
mod fading;
mod indexed_random;
mod mobility;
mod movement;
mod path_loss;
mod profile;
mod recorded;
mod shadowing;
mod site;
mod table;

use airpath_core::{Decibel, Instant, Seed, Span};
use airpath_link::{Change, CommandError};

pub use blockage::Blockage;
pub use config::{CellChange, Config, Network, Variation};
pub use error::ConfigError;
pub use movement::{Movement, Path};
pub use profile::Profile;
pub(crate) use profile::by_profile;
pub use recorded::{Series, SeriesError};
pub use site::{Cells, Interferers};
pub use table::Table;

use fading::Fading;
use mobility::{Correlation, Mobility};
use movement::Motion;
use shadowing::Shadowing;

/// What the radio of one mobile is like at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Carrier to interference and noise, in decibels, averaged over fading that is faster than a
    /// radio block.
    pub carrier_to_interference: f64,
    /// The level of the serving cell in decibels over the noise of the receiver; `None` where there
    /// are no cells to have one.
    pub level: Option<f64>,
    /// The serving cell, from 0; the last one that was, where there is no coverage.
    pub cell: u16,
    /// Whether there is a cell that serves the mobile. Where there is none, nothing gets through.
    pub covered: bool,
}

impl Sample {
    /// In the only cell.
    pub const fn in_one_cell(carrier_to_interference: f64) -> Self {
        Self { carrier_to_interference, level: None, cell: 0, covered: true }
    }
}

/// What happens between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The mobile left its cell for another by itself (GSM and GPRS without the network's command).
    Reselection {
        /// The new cell.
        to: u16,
        /// How long the mobile sends and gets nothing.
        gap: Span,
    },
    /// The network handed the mobile over to another cell.
    Handover {
        /// The new cell.
        to: u16,
        /// How long the mobile sends and gets nothing; none with soft handover.
        gap: Span,
    },
    /// No cell is strong enough any more.
    CoverageLost,
    /// A cell serves the mobile again.
    CoverageBack {
        /// The cell.
        to: u16,
    },
}

/// The radio conditions of one mobile. Calls are monotone in `now`.
#[derive(Clone, Debug)]
pub struct Conditions {
    process: Process,
    /// Fast fading that is a part of C/I.
    fading: Option<Box<Fading>>,
    /// What blocks the signal at times.
    blockage: Option<Box<blockage::Process>>,
    /// The last sample with fading or blockage: an uplink and a downlink block often share a slot.
    last: Option<(Instant, Sample)>,
    profile: Profile,
    /// When the process began: a commanded environment starts at its beginning.
    origin: Instant,
    /// What another environment is made of.
    seed: Seed,
    path: Box<str>,
    network: Option<Box<Network>>,
}

/// What makes the ratio.
#[derive(Clone, Debug)]
enum Process {
    /// Always the same.
    Fixed { ratio: f64, cell: u16 },
    /// Shadowing around a median.
    Varying(Varying),
    /// The same of the level of the only cell, without interference.
    Level(Varying),
    /// Drawn again at intervals.
    Table(table::Process),
    /// As it was recorded.
    Recorded(Series),
    /// Among cells.
    Cells(Box<Mobility>),
}

/// A ratio in decibels that varies around its median.
#[derive(Clone, Debug)]
struct Varying {
    median: f64,
    deviation: f64,
    correlation: Correlation,
    /// Of a mobile that moves.
    motion: Option<Motion>,
    shadowing: Shadowing,
}

impl Varying {
    /// One that stays at its median.
    fn constant(median: Decibel, seed: Seed) -> Self {
        let (correlation, shadowing) = (Correlation::Time(1.0), Shadowing::new(seed, ""));
        Self { median: median.get(), deviation: 0.0, correlation, motion: None, shadowing }
    }

    fn at(&mut self, now: Instant) -> f64 {
        if self.deviation == 0.0 {
            return self.median;
        }
        let seconds = now.as_secs_f64();
        let position = self.motion.as_ref().map_or(0.0, |motion| motion.position(seconds));
        self.median + self.deviation * self.shadowing.at(self.correlation.reached(position, seconds))
    }
}

impl Conditions {
    /// The conditions of the mobile `user`, with generator streams below `path`, such as
    /// `cell/user-3/conditions`.
    ///
    /// # Errors
    /// If `config` makes no sense, or its recorded series cannot be read. Keys in it begin with
    /// `conditions`.
    pub fn new(config: &Config, user: usize, seed: Seed, path: &str) -> Result<Self, ConfigError> {
        let config = config.of(user);
        Ok(Self {
            process: config.process(seed, path)?,
            fading: config.rayleigh(seed, path)?.map(Box::new),
            blockage: config.blockage(seed, path)?.map(Box::new),
            last: None,
            profile: config.profile(),
            origin: Instant::ZERO,
            seed,
            path: path.into(),
            network: config.network.clone().map(Box::new),
        })
    }

    /// Always `ratio` decibels, in one cell.
    pub fn fixed(ratio: f64) -> Self {
        Self {
            process: Process::Fixed { ratio, cell: 0 },
            fading: None,
            blockage: None,
            last: None,
            profile: Profile::default(),
            origin: Instant::ZERO,
            seed: Seed::default(),
            path: "".into(),
            network: None,
        }
    }

    /// What fast fading the block-error curves are to be averaged over. It is in no [`Sample`];
    /// where samples have fast fading of their own, this is [`Profile::Static`], so that it counts
    /// once.
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// The C/I, if it never changes without a command; such a mobile is always covered.
    #[inline]
    pub const fn constant(&self) -> Option<f64> {
        match (&self.process, &self.fading, &self.blockage) {
            (Process::Fixed { ratio, .. }, None, None) => Some(*ratio),
            _ => None,
        }
    }

    /// What it is like at `now`.
    #[inline]
    pub fn at(&mut self, now: Instant) -> Sample {
        if let Some((_, sample)) = self.last.filter(|(at, _)| *at == now) {
            return sample;
        }
        let sampled_at = now;
        let now = Instant::ZERO + now.since(self.origin);
        let mut sample = match &mut self.process {
            Process::Fixed { ratio, cell } => Sample { cell: *cell, ..Sample::in_one_cell(*ratio) },
            Process::Varying(varying) => Sample::in_one_cell(varying.at(now)),
            Process::Level(varying) => {
                let level = varying.at(now);
                Sample { level: Some(level), ..Sample::in_one_cell(level) }
            }
            Process::Table(table) => Sample::in_one_cell(table.at(now)),
            Process::Recorded(series) => Sample::in_one_cell(series.at(now)),
            Process::Cells(mobility) => mobility.at(now),
        };
        if let Some(fading) = &self.fading {
            fading.apply(now, &mut sample);
        }
        if let Some(blockage) = &mut self.blockage {
            blockage.apply(now, &mut sample);
        }
        if self.fading.is_some() || self.blockage.is_some() {
            self.last = Some((sampled_at, sample));
        }
        sample
    }

    /// The next change of the serving cell up to and including `now` that was not returned yet,
    /// with its exact time; in the order of time. If not polled for long, only the changes of the
    /// last minute are returned.
    #[inline]
    pub fn next_transition(&mut self, now: Instant) -> Option<(Instant, Transition)> {
        match &mut self.process {
            Process::Cells(mobility) => {
                let (since, transition) = mobility.next_change(Instant::ZERO + now.since(self.origin))?;
                Some((self.origin + since.since(Instant::ZERO), transition))
            }
            Process::Fixed { .. }
            | Process::Varying(_)
            | Process::Level(_)
            | Process::Table(_)
            | Process::Recorded(_) => None,
        }
    }

    /// Whether this change is about radio conditions, and they can have it.
    ///
    /// # Errors
    /// If it is about something else, or names an unknown environment or one that needs a
    /// network that the bearer does not have.
    pub fn check(&self, change: &Change) -> Result<(), CommandError> {
        match change {
            Change::CarrierToInterference(_) => Ok(()),
            Change::Environment(environment) => self.in_environment(environment).map(drop),
            _ => Err(CommandError::Foreign {
                key: change.kind().name(),
                what: "a bearer with radio conditions",
                help: "it has `ci` and `environment`",
            }),
        }
    }

    /// Changes them from `now` on: to a fixed ratio in the cell that serves, or to an environment,
    /// which begins then.
    ///
    /// # Errors
    /// Those of [`Conditions::check`]; then nothing has changed.
    pub fn command(&mut self, now: Instant, change: &Change) -> Result<(), CommandError> {
        self.check(change)?;
        match change {
            Change::CarrierToInterference(ratio) => {
                let cell = self.at(now).cell;
                self.process = Process::Fixed { ratio: ratio.get(), cell };
                // What the curves are averaged over goes on, but where C/I had the fading.
                self.last = None;
                self.blockage = None;
                if self.fading.take().is_some() {
                    self.profile = Profile::default();
                }
            }
            Change::Environment(environment) => *self = Self { origin: now, ..self.in_environment(environment)? },
            _ => unreachable!("`check` lets no other pass"),
        }
        Ok(())
    }

    fn in_environment(&self, environment: &str) -> Result<Self, CommandError> {
        let config = environments::environment(environment).ok_or_else(|| CommandError::NoSuchEnvironment {
            environment: environment.to_owned(),
            known: environments::names().collect::<Vec<_>>().join(", "),
        })?;
        let config = Config { network: self.network.as_deref().cloned(), ..config };
        let wrong = |error: ConfigError| CommandError::Environment {
            environment: environment.to_owned(),
            error: error.to_string(),
        };
        Self::new(&config, 0, self.seed, &self.path).map_err(wrong)
    }
}
