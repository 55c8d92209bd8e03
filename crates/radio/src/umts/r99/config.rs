//! The parameters of UMTS, as a scenario has them, and their checks.

use std::collections::BTreeMap;

use airpath_core::{Bytes, Decibel, Probability, Span};
use airpath_link::command::Buffer;
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::arq::rlc_am::Rlc;
use crate::common::header_compression::HeaderCompression;
use crate::conditions;
use crate::conditions::{Profile, by_profile};
use crate::error::{ValueError, above_zero, at_most, check_queue, pdu_size, within_an_hour};
use crate::umts::ConfigError;

/// A packet bearer of UMTS for each mobile: its dedicated channels, their RLC, and the states of
/// its RRC connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Towards the mobile.
    pub downlink: RadioLink,
    /// From the mobile.
    pub uplink: RadioLink,
    /// The states of the RRC connection. Without it the mobile is always in CELL_DCH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rrc: Option<Rrc>,
    /// When another of the `formats` is chosen. Without it that is always the last one, the
    /// fastest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switching: Option<Switching>,
    /// What movement does to the connection.
    #[serde(default)]
    pub mobility: Mobility,
    /// Header compression of PDCP. Without it, headers are not compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<HeaderCompression>,
    /// What the radio of each mobile is like.
    pub conditions: conditions::Config,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RadioLink {
    /// What the dedicated channel can carry in a TTI, from the slowest to the fastest.
    pub formats: Vec<Format>,
    /// Payload of a PDU, without its header.
    pub pdu: Bytes,
    /// The share of TTIs in error that power control keeps to. All PDUs of such a TTI are lost.
    pub bler: Probability,
    /// How many TTIs in a row are in error, on average: 1 / (1 − `bler`), the default, if each is
    /// by itself; more in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
    /// How much C/I below what the format needs makes the odds of an error ten times as high: power
    /// is then at its limit.
    #[serde(default = "ci_per_decade")]
    pub ci_per_decade: Decibel,
    /// What fast fading costs, by the `fading` of the conditions. Where it is not in here, it costs
    /// nothing.
    #[serde(default, deserialize_with = "by_profile", skip_serializing_if = "BTreeMap::is_empty")]
    pub fading: BTreeMap<Profile, Fading>,
    /// By how much the mobile's highest power, over the noise and interference of the base station,
    /// is below the power of the cell over the mobile's noise. With it, C/I of this direction
    /// follows from the level of the serving cell, if there are cells; without it, it is that of
    /// the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_cell: Option<Decibel>,
    /// From the end of a TTI to when the RLC at the other end has it: the physical layer, Node B
    /// and Iub.
    pub radio_delay: Span,
    /// From the RLC at the other end to where the bearer ends: RNC, core network and the terminal
    /// itself.
    pub delay: Span,
    /// Bytes that PDCP adds to a packet.
    #[serde(default)]
    pub pdcp_header: Bytes,
    /// Bound and discipline of what waits to be cut into PDUs. Without it, any number of packets
    /// may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The acknowledged mode of the RLC.
    pub rlc: Rlc,
}

fn ci_per_decade() -> Decibel {
    Decibel::new(2.0).expect("a number")
}

/// What fast fading costs a dedicated channel. While there is power left, power control makes up
/// for it; at its limit nothing does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fading {
    /// By how much more C/I than its `needs` a format then needs.
    pub margin: Decibel,
    /// The `ci_per_decade` of the link then.
    pub ci_per_decade: Decibel,
}

/// What a dedicated channel carries in a TTI.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// Length of a TTI. TTIs begin at multiples of it.
    pub tti: Span,
    /// PDUs in it. The rate is `pdus` · `pdu` / `tti`.
    pub pdus: u32,
    /// C/I at which power control is at its limit. Without it, it never is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Decibel>,
}

/// The states of an RRC connection (TS 25.331 §7): IDLE, CELL_FACH, CELL_PCH or URA_PCH, CELL_DCH.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rrc {
    /// Without traffic, CELL_DCH is left for CELL_FACH after this time.
    pub dch_inactivity: Span,
    /// Without traffic, CELL_FACH is left after this time, for the state with `pch`, else for IDLE.
    pub fach_inactivity: Span,
    /// CELL_PCH or URA_PCH, in which the connection is kept without a channel. Without it, there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pch: Option<Pch>,
    /// From IDLE to the state in `connects_to`.
    pub idle_promotion: Span,
    /// Where a connection that is set up begins.
    #[serde(default)]
    pub connects_to: Connected,
    /// From CELL_FACH to CELL_DCH. Meanwhile nothing is sent.
    pub fach_promotion: Span,
    /// What waits towards the mobile in CELL_FACH before it gets a dedicated channel (event 4a):
    /// more than this.
    pub downlink_threshold: Bytes,
    /// As much from the mobile.
    pub uplink_threshold: Bytes,
    /// Length of the paging cycle: a mobile in IDLE or a PCH state hears of something for it at
    /// multiples of this.
    #[serde(default)]
    pub paging_cycle: Span,
    /// What a mobile in CELL_FACH gets of the common channel.
    pub fach: Format,
    /// What a mobile in CELL_FACH gets of the random access channel.
    pub rach: Format,
}

/// CELL_PCH or URA_PCH.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pch {
    /// Without traffic, it is left for IDLE after this time.
    pub inactivity: Span,
    /// From it to CELL_FACH: the cell or URA update.
    pub promotion: Span,
}

/// Where a connection begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connected {
    /// With a dedicated channel.
    #[default]
    CellDch,
    /// On the common channels.
    CellFach,
}

/// Radio-bearer switching in CELL_DCH.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switching {
    /// What waits for the next faster format to be chosen: more than this.
    pub up_threshold: Bytes,
    /// The next slower one is chosen when it would have done for what was sent in this time.
    pub down_after: Span,
    /// C/I above what a faster format needs, before it is chosen; a slower one is chosen as soon as
    /// C/I is below.
    pub hysteresis: Decibel,
    /// How long nothing is sent while the bearer is reconfigured.
    pub gap: Span,
}

/// What movement does to the connection. Where the mobile moves, and when it is handed over, is
/// given by its conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mobility {
    /// What a handover does to the packets that the RLC has not delivered.
    #[serde(default)]
    pub buffer: Undelivered,
    /// After the gap of a handover, for how long the terminal's driver keeps what it gets, before
    /// it gives it to IP at once.
    #[serde(default)]
    pub driver_hold: Span,
    /// Without coverage for so long, the radio link has failed: T313 (TS 25.331 §8.3.1.2).
    #[serde(default = "link_failure")]
    pub link_failure: Span,
    /// For so long after a failure the mobile looks for a cell with its radio bearers kept, and the
    /// RLC goes on in it where it was: T315 (TS 25.331 §8.3.1.13). Then, or at once without it,
    /// what the RLC has not delivered is lost.
    #[serde(default)]
    pub link_release: Span,
    /// How long it takes after a failure to set the bearer up again, once there is coverage.
    #[serde(default = "re_establishment")]
    pub re_establishment: Span,
    /// What follows a handover that fails. Without it, none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconnection: Option<Reconnection>,
}

/// How a mobile comes back that has lost its connection in a handover, as between controllers or
/// carriers for which the network has none: the radio link fails after `link_failure`, and what the
/// network has for the mobile is lost; then cell selection, an RRC connection, and a routing area
/// update with a service request, which sets up the radio bearers. The PDP context is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reconnection {
    /// The share of handovers that fail.
    pub failures: Probability,
    /// C/I that the common channels need, on which system information and answers come.
    pub needs: Decibel,
    /// To select a cell and read its system information.
    pub cell_selection: Span,
    /// From the RRC CONNECTION REQUEST to the connection.
    pub rrc_setup: Span,
    /// T300: the time between two RRC CONNECTION REQUESTs without an answer, at least `rrc_setup`.
    pub t300: Span,
    /// N300: the number of RRC CONNECTION REQUESTs that are sent again before another cell is
    /// selected (TS 25.331 §8.1.3).
    pub n300: u32,
    /// From the request to update the routing area to the radio bearers. If it fails, then with the
    /// RLC below it, before T3330.
    pub registration: Span,
    /// T3311: from such a failure to the next attempt (TS 24.008 table 11.3).
    pub t3311: Span,
    /// The number of failed attempts after which the mobile waits for T3302.
    pub attempts: u32,
    /// T3302: the wait after `attempts` failed attempts.
    pub t3302: Span,
}

/// What a handover does to the packets that the RLC has not delivered. It depends on where the RLC
/// ends: in the radio network controller (RNC), which stays the serving one as long as an Iur
/// connects it to the one of the new cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Undelivered {
    /// Both cells belong to one RNC, or there is an Iur: the RLC goes on where it was.
    #[default]
    Keep,
    /// The serving RNC is another one afterwards (TS 23.060 §6.9.2.2.2), and PDCP is not lossless:
    /// the RLC is re-established (TS 25.322 §9.7.7), so that what it has begun to send is lost;
    /// what waits is forwarded to the new RNC.
    Forward,
    /// All of it is lost.
    Discard,
}

impl From<Buffer> for Undelivered {
    fn from(buffer: Buffer) -> Self {
        match buffer {
            Buffer::Keep => Self::Keep,
            Buffer::Discard => Self::Discard,
        }
    }
}

const fn link_failure() -> Span {
    Span::from_secs(3)
}

const fn re_establishment() -> Span {
    Span::from_secs(2)
}

impl Default for Mobility {
    fn default() -> Self {
        Self {
            buffer: Undelivered::default(),
            driver_hold: Span::ZERO,
            link_failure: link_failure(),
            link_release: Span::ZERO,
            re_establishment: re_establishment(),
            reconnection: None,
        }
    }
}

impl Config {
    /// Whether it makes sense.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.downlink.check("downlink")?;
        self.uplink.check("uplink")?;
        if let Some(rrc) = &self.rrc {
            for (span, key) in [
                (rrc.dch_inactivity, "dch_inactivity"),
                (rrc.fach_inactivity, "fach_inactivity"),
                (rrc.idle_promotion, "idle_promotion"),
                (rrc.fach_promotion, "fach_promotion"),
                (rrc.paging_cycle, "paging_cycle"),
            ] {
                within_an_hour(span, "rrc", key)?;
            }
            if let Some(pch) = &rrc.pch {
                within_an_hour(pch.inactivity, "rrc.pch", "inactivity")?;
                within_an_hour(pch.promotion, "rrc.pch", "promotion")?;
            }
            rrc.fach.check("rrc.fach")?;
            rrc.rach.check("rrc.rach")?;
        }
        if let Some(switching) = &self.switching {
            above_zero(!switching.down_after.is_zero(), "switching", "down_after")?;
            within_an_hour(switching.down_after, "switching", "down_after")?;
            within_an_hour(switching.gap, "switching", "gap")?;
        }
        within_an_hour(self.mobility.driver_hold, "mobility", "driver_hold")?;
        within_an_hour(self.mobility.link_failure, "mobility", "link_failure")?;
        within_an_hour(self.mobility.link_release, "mobility", "link_release")?;
        within_an_hour(self.mobility.re_establishment, "mobility", "re_establishment")?;
        if let Some(reconnection) = &self.mobility.reconnection {
            reconnection.check(&self.conditions)?;
        }
        Ok(())
    }
}

impl Reconnection {
    fn check(&self, conditions: &conditions::Config) -> Result<(), ValueError> {
        const TABLE: &str = "mobility.reconnection";
        if !conditions.has_hard_handovers() {
            let needs = r#"conditions.cells` and `conditions.network.change = "hard-handover""#;
            return Err(ValueError::Needs { key: TABLE.to_owned(), needs });
        }
        for (span, key) in [
            (self.cell_selection, "cell_selection"),
            (self.rrc_setup, "rrc_setup"),
            (self.t300, "t300"),
            (self.registration, "registration"),
            (self.t3311, "t3311"),
            (self.t3302, "t3302"),
        ] {
            above_zero(!span.is_zero(), TABLE, key)?;
            within_an_hour(span, TABLE, key)?;
        }
        if self.t300 < self.rrc_setup {
            let expected = "at least `rrc_setup`, so that an answer comes before T300 expires";
            return Err(ValueError::Range { key: format!("{TABLE}.t300"), expected });
        }
        above_zero(self.attempts > 0, TABLE, "attempts")
    }
}

impl RadioLink {
    pub(crate) fn check(&self, table: &str) -> Result<(), ConfigError> {
        above_zero(!self.formats.is_empty(), table, "formats")?;
        self.formats.iter().try_for_each(|format| format.check(&format!("{table}.formats")))?;
        self.pdu_size(table)?;
        above_zero(self.ci_per_decade.get() > 0.0, table, "ci_per_decade")?;
        for fading in self.fading.values() {
            above_zero(fading.ci_per_decade.get() > 0.0, table, "fading")?;
        }
        at_most(self.pdcp_header.get(), 255, table, "pdcp_header")?;
        if self.burst.is_some_and(|burst| !burst.is_finite() || burst < self.shortest_burst()) {
            let shortest = self.shortest_burst();
            return Err(ConfigError::Burst { key: format!("{table}.burst"), shortest });
        }
        within_an_hour(self.radio_delay, table, "radio_delay")?;
        within_an_hour(self.delay, table, "delay")?;
        check_queue(self.queue.as_ref(), table)?;
        Ok(self.rlc.check(&format!("{table}.rlc"))?)
    }

    pub(crate) fn pdu_size(&self, table: &str) -> Result<u32, ValueError> {
        let size = pdu_size(self.pdu, table)?;
        // Two length indicators and a byte between them.
        above_zero(size > 4, table, "pdu").map(|()| size)
    }

    /// How long a burst of errors is on average when each is by itself, and so the shortest that
    /// there can be.
    fn shortest_burst(&self) -> f64 {
        1.0 / (1.0 - self.bler.get()).max(f64::MIN_POSITIVE)
    }
}

impl Format {
    pub(crate) fn check(&self, table: &str) -> Result<(), ValueError> {
        above_zero(!self.tti.is_zero(), table, "tti")?;
        within_an_hour(self.tti, table, "tti")?;
        above_zero(self.pdus > 0, table, "pdus")?;
        at_most(self.pdus.into(), u16::MAX.into(), table, "pdus")
    }
}
