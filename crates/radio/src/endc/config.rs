//! The parameters of EN-DC, as a scenario has them.

use airpath_core::{Bytes, Decibel, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::enumeration::Enumeration;
use crate::error::{ModelError, ValueError, range, within_an_hour};
use crate::ofdma::config::{Duplex, T310, Values, milliseconds, pdcp};
use crate::ofdma::{self, Parameters, Technology};
use crate::{conditions, lte, nr};

/// An LTE cell and an NR cell, and what all their mobiles have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the radio of each mobile is like in both cells, whose antennas stand on the same sites:
    /// without `network`, which each cell has in its own `conditions`. A cell whose `conditions`
    /// have more than that uses those alone. Conditions of single mobiles hold in both cells.
    #[serde(default, skip_serializing_if = "is_default")]
    pub conditions: conditions::Config,
    /// The LTE cell, the master cell group: the table of `lte-cell`, without `pdcp`, `voice` and
    /// `header_compression`.
    pub master: lte::Config,
    /// The NR cell, the secondary cell group: the table of `nr-cell`, without `rrc`. Its `pdcp` and
    /// `header_compression` are those of the bearer.
    pub secondary: nr::Config,
    /// When the NR cell is added (TS 37.340 §10.2).
    pub addition: Addition,
    /// When it is released though the connection stays (TS 37.340 §10.3).
    pub release: Release,
    /// Which cell carries the uplink.
    pub uplink: Uplink,
}

/// When the NR cell is added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Addition {
    /// From the set-up of the LTE connection, or from its handover, to the first measurement of NR:
    /// the network configures it, and the mobile finds the cell.
    pub measurement: Span,
    /// How often NR is measured: whole milliseconds.
    pub measurement_period: Span,
    /// b1-ThresholdNR: the SINR from which on the cell is reported, −23 to 40 dB (event B1, TS
    /// 36.331 §5.5.4.7).
    pub threshold: Decibel,
    /// timeToTrigger: for how long it must be reached. 0, 40, 64, 80, 100, 128, 160, 256, 320, 480,
    /// 512, 640, 1024, 1280, 2560 or 5120 ms (TS 36.331 §6.3.5).
    pub time_to_trigger: Span,
    /// From the report to the reconfiguration of the mobile: the LTE base station requests the
    /// addition over X2, and the NR base station acknowledges it.
    pub preparation: Span,
    /// How long the mobile takes for the reconfiguration (TS 38.331 §12). Random access to the NR
    /// cell follows, with `secondary.uplink.random_access`.
    pub reconfiguration: Span,
}

/// When the NR cell is released: an SCG failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The SINR below which the radio link of NR has a problem: −23 dB to `addition.threshold`.
    pub threshold: Decibel,
    /// T310: after what time below the threshold the radio link has failed. 0, 50, 100, 200, 500,
    /// 1000, 2000, 4000 or 6000 ms (TS 38.331 §6.3.2).
    pub t310: Span,
}

/// Which cell carries the uplink while the NR cell is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uplink {
    /// primaryPath: the cell that carries it (TS 38.331 §6.3.2).
    pub primary_path: CellGroup,
    /// ul-DataSplitThreshold: from this volume of waiting data on, both cells carry the uplink,
    /// each what it is granted (TS 38.323 §5.2.1). 0 B, 100 B to 819200 B in powers of two,
    /// 1228800, 1638400, 2457600, 3276800, 4096000, 4915200, 5734400 or 6553600 B (TS 38.331
    /// §6.3.2). Without it, infinity: only the primary path is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ul_data_split_threshold: Option<Bytes>,
}

/// A cell group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CellGroup {
    /// That of LTE.
    Master,
    /// That of NR.
    Secondary,
}

impl CellGroup {
    /// Both.
    pub(super) const BOTH: [Self; 2] = [Self::Master, Self::Secondary];

    /// The table of its cell.
    pub(super) const fn table(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Secondary => "secondary",
        }
    }

    /// The other one.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Master => Self::Secondary,
            Self::Secondary => Self::Master,
        }
    }
}

fn is_default(conditions: &conditions::Config) -> bool {
    *conditions == conditions::Config::default()
}

static TIME_TO_TRIGGER: Enumeration = Enumeration::millis(
    &[0, 40, 64, 80, 100, 128, 160, 256, 320, 480, 512, 640, 1024, 1280, 2560, 5120],
    "TimeToTrigger, TS 36.331 §6.3.5",
);
/// The lowest and the highest value of SINR-Range (TS 38.331 §6.3.2), in decibels.
const SINR_RANGE: [f64; 2] = [-23.0, 40.0];

impl Config {
    /// The parameters of the LTE cell and the NR cell, if all makes sense.
    pub(super) fn parameters(&self) -> Result<[Parameters; 2], ConfigError> {
        self.check()?;
        let master = lte::Config { conditions: self.conditions_of(CellGroup::Master), ..self.master.clone() };
        let secondary = nr::Config { conditions: self.conditions_of(CellGroup::Secondary), ..self.secondary.clone() };
        let mut master = master.parameters().map_err(|error| self.error_in(CellGroup::Master, error))?;
        let mut secondary = secondary.parameters().map_err(|error| self.error_in(CellGroup::Secondary, error))?;
        pdcp(self.secondary.pdcp.discard, None, self.master.drx.as_ref(), &Values::NR)
            .map_err(|error| self.error_in(CellGroup::Secondary, error))?;
        // The PDCP above both cells reorders.
        secondary.pdcp.reordering = None;
        master.pdcp = secondary.pdcp.clone();
        Ok([master, secondary])
    }

    /// The conditions in the table of a cell.
    const fn own_conditions(&self, group: CellGroup) -> &conditions::Config {
        match group {
            CellGroup::Master => &self.master.conditions,
            CellGroup::Secondary => &self.secondary.conditions,
        }
    }

    /// Whether a cell has the conditions of the bearer: its own table has at most `network`.
    fn shares_conditions(&self, group: CellGroup) -> bool {
        is_default(&conditions::Config { network: None, ..self.own_conditions(group).clone() })
    }

    /// The conditions in a cell.
    fn conditions_of(&self, group: CellGroup) -> conditions::Config {
        let own = self.own_conditions(group);
        let here = |shared: &conditions::Config| conditions::Config { network: own.network.clone(), ..shared.clone() };
        let of_mobiles = self.conditions.of_mobiles.iter().map(|mobile| mobile.as_ref().map(here)).collect();
        let of_others = if self.shares_conditions(group) { &self.conditions } else { own };
        conditions::Config { of_mobiles, ..here(of_others) }
    }

    /// What is wrong in a cell, by the table in which it was given.
    pub(super) fn error_in(&self, group: CellGroup, source: impl Into<ofdma::ConfigError>) -> ConfigError {
        let source = source.into();
        let field = source.field();
        let is_shared = field.split('.').next() == Some("conditions") && !field.starts_with("conditions.network");
        let table = if is_shared && self.shares_conditions(group) { "" } else { group.table() };
        ConfigError::Cell { table, source }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let left_out = |is: bool, key: &str, expected| {
            if is { Ok(()) } else { Err(ValueError::Range { key: key.to_owned(), expected }) }
        };
        let Self { conditions, master, secondary, addition, release, uplink } = self;
        let mut given = std::iter::once(conditions).chain(conditions.of_mobiles.iter().flatten());
        let network = "left out: each cell has its own, `master.conditions.network` and `secondary.conditions.network`";
        left_out(given.all(|it| it.network.is_none()), "conditions.network", network)?;
        let pdcp = "left out: the bearer has the PDCP of NR, in `secondary.pdcp` (TS 37.340 §6.2)";
        left_out(master.pdcp == lte::Pdcp::default(), "master.pdcp", pdcp)?;
        let compression = "left out: the bearer has the PDCP of NR, so give `secondary.header_compression`";
        left_out(master.header_compression.is_none(), "master.header_compression", compression)?;
        left_out(master.voice.is_none(), "master.voice", "left out: a voice bearer beside EN-DC is not modelled")?;
        let rrc = "given: the NR cell is added to a connection of LTE (TS 37.340 §10.2)";
        left_out(master.rrc.is_some(), "master.rrc", rrc)?;
        let rrc = "left out: the connection is that of LTE, in `master.rrc` (TS 37.340 §4.1)";
        left_out(secondary.rrc.is_none(), "secondary.rrc", rrc)?;
        let duplex = "\"full\": a mobile with half duplex has no dual connectivity (TS 38.306 §4.2.21)";
        left_out(master.mobile.duplex == Duplex::Full, "master.mobile.duplex", duplex)?;
        left_out(secondary.mobile.duplex == Duplex::Full, "secondary.mobile.duplex", duplex)?;
        let mode = "\"acknowledged\": EN-DC without acknowledgements is not modelled";
        left_out(matches!(master.rlc, lte::Rlc::Acknowledged(_)), "master.rlc.mode", mode)?;
        left_out(matches!(secondary.rlc, nr::Rlc::Acknowledged(_)), "secondary.rlc.mode", mode)?;
        let released_after = master.rrc.as_ref().map(|rrc| rrc.inactivity);
        let listens_for = secondary.drx.as_ref().map(|drx| drx.inactivity);
        let begins = released_after.zip(listens_for).is_none_or(|(released, listens)| listens < released);
        let drx = "shorter than `master.rrc.inactivity`: otherwise the connection is released before DRX begins (TS \
                   38.321 §5.7); `secondary.drx = false` is a cell without DRX";
        left_out(begins, "secondary.drx.inactivity", drx)?;
        addition.check()?;
        release.check(addition.threshold)?;
        uplink.check()?;
        Ok(())
    }
}

impl Addition {
    fn check(&self) -> Result<(), ValueError> {
        let table = "addition";
        within_an_hour(self.measurement, table, "measurement")?;
        milliseconds(self.measurement_period, table, "measurement_period")?;
        sinr(self.threshold, SINR_RANGE[1], table, "-23 to 40 dB (SINR-Range, TS 38.331 §6.3.2)")?;
        TIME_TO_TRIGGER.check_span(self.time_to_trigger, table, "time_to_trigger")?;
        within_an_hour(self.preparation, table, "preparation")?;
        within_an_hour(self.reconfiguration, table, "reconfiguration")
    }
}

impl Release {
    fn check(&self, addition: Decibel) -> Result<(), ValueError> {
        let expected = "-23 dB (SINR-Range, TS 38.331 §6.3.2) to `addition.threshold`";
        sinr(self.threshold, addition.get(), "release", expected)?;
        T310.check_span(self.t310, "release", "t310")
    }
}

impl Uplink {
    fn check(&self) -> Result<(), ValueError> {
        let Some(threshold) = self.ul_data_split_threshold else { return Ok(()) };
        let is_allowed = match threshold.get() {
            0 | 1_228_800 | 1_638_400 | 2_457_600 | 3_276_800 | 4_096_000 | 4_915_200 | 5_734_400 | 6_553_600 => true,
            bytes => bytes.is_multiple_of(100) && (bytes / 100).is_power_of_two() && bytes <= 819_200,
        };
        if is_allowed {
            return Ok(());
        }
        let expected = "0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200, 102400, 204800, 409600, \
                        819200, 1228800, 1638400, 2457600, 3276800, 4096000, 4915200, 5734400 or 6553600 B \
                        (UL-DataSplitThreshold, TS 38.331 §6.3.2)";
        Err(range("uplink", "ul_data_split_threshold", expected))
    }
}

/// Refuses a threshold that the standard does not have.
fn sinr(threshold: Decibel, most: f64, table: &str, expected: &'static str) -> Result<(), ValueError> {
    if (SINR_RANGE[0]..=most).contains(&threshold.get()) { Ok(()) } else { Err(range(table, "threshold", expected)) }
}
