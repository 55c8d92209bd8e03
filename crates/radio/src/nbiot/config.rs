//! The parameters of a carrier of NB-IoT, as a scenario has them.

mod check;

use airpath_core::{Bytes, Decibel, Probability, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tables::{Category, Tones};
use crate::common::header_compression::HeaderCompression;
use crate::conditions;
use crate::ofdma::paging::PowerSaving;

/// A carrier of NB-IoT, and what all its mobiles have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The carrier and its base station.
    pub carrier: Carrier,
    /// What each mobile can do.
    pub mobile: Mobile,
    /// The coverage levels, from the best to the worst: each key has one to three values, all keys
    /// the same number.
    pub coverage: Coverage,
    /// Hybrid ARQ: one process.
    pub harq: Harq,
    /// Towards the mobiles.
    #[serde(default)]
    pub downlink: Downlink,
    /// From the mobiles.
    pub uplink: Uplink,
    /// The acknowledged mode of the RLC, the same in both directions.
    pub rlc: Rlc,
    /// The queue in front of the RLC, the same in both directions. Without it, any number of
    /// packets may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The RRC connection.
    pub rrc: Rrc,
    /// Header compression of PDCP. Without it, headers are not compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<HeaderCompression>,
    /// What the radio of each mobile is like: `ci` is the SINR of the carrier downwards.
    pub conditions: conditions::Config,
}

/// The carrier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Carrier {
    /// Where it lies. In a carrier of LTE, blocks of the downlink end at I_TBS 10, and a subframe
    /// has fewer resource elements.
    pub operation: Operation,
    /// From the end of what the base station received to the earliest NPDCCH that depends on it.
    pub processing: Span,
    /// Block error rate of first transmissions that the base station accepts.
    pub target_bler: Probability,
    /// From the base station to where the bearer ends, one way.
    pub delay: Span,
}

/// Where a carrier lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// In a carrier of LTE.
    InBand,
    /// Beside one.
    GuardBand,
    /// Alone.
    StandAlone,
}

/// A mobile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mobile {
    /// Its category: `nb1` has blocks of at most 680 bits downwards and 1000 bits upwards, `nb2` of
    /// 2536 (TS 36.306 §4.1C).
    pub category: Category,
    /// From the end of a block to when the mobile has decoded it, and passes on the packets in it:
    /// at most 12 ms, when its acknowledgement goes (TS 36.213 §16.4.2).
    pub processing: Span,
}

/// The coverage levels, with no fewer repetitions in a worse one. A mobile has the first level
/// whose `lowest` is not above its SINR, or the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// The lowest SINR downwards of each level. That of the last one has no effect: a mobile below
    /// it stays in the last level, and is lost only where there is no coverage.
    pub lowest: Vec<Decibel>,
    /// Repetitions of NPDCCH: 1, 2, 4, … 2048.
    pub control_repetitions: Vec<u64>,
    /// Repetitions of NPDSCH (TS 36.213 Table 16.4.1.3-2).
    pub downlink_repetitions: Vec<u64>,
    /// Repetitions of NPUSCH, acknowledgements included (TS 36.213 Table 16.5.1.1-3).
    pub uplink_repetitions: Vec<u64>,
    /// Repetitions of the preamble (TS 36.331, NPRACH-ConfigSIB-NB).
    pub preamble_repetitions: Vec<u64>,
    /// Period of NPRACH (TS 36.331, NPRACH-ConfigSIB-NB).
    pub random_access_period: Vec<Span>,
    /// Tones of NPUSCH.
    pub tones: Vec<Tones>,
}

/// Hybrid ARQ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Harq {
    /// How often a block is sent, each time with its repetitions, before it is left to the RLC.
    pub max_transmissions: u8,
    /// By how much a real decoder is worse than the normal approximation.
    pub gap: Decibel,
    /// By how much less a repeated transmission gains than 10·log₁₀ of its repetitions, because the
    /// receiver estimates the channel.
    pub repetition_loss: Decibel,
}

/// Towards the mobiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Downlink {
    /// The probability that a block is in error when it is sent once, in place of what follows from
    /// the SINR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bler: Option<Probability>,
}

/// From the mobiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uplink {
    /// By how much the SINR of a mobile in all twelve tones is below that of the downlink. In fewer
    /// tones it has more.
    pub below_downlink: Decibel,
    /// The probability that a block is in error when it is sent once, in place of what follows from
    /// the SINR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bler: Option<Probability>,
}

/// The acknowledged mode of the RLC (TS 36.322 §5.1.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rlc {
    /// t-PollRetransmit: how long a poll waits for its report (T-PollRetransmit-NB, TS 36.331
    /// §6.7.3).
    pub t_poll_retransmit: Span,
    /// maxRetxThreshold: the radio link has failed when a PDU was to be sent again this often.
    pub max_retx: u8,
}

/// The RRC connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rrc {
    /// Sizes of the messages that set the connection up after random access: one to the mobile, one
    /// from it, and so on. The last one is from the mobile. Data of the mobile follows in the same
    /// block where there is room, as with control-plane optimisation (TS 23.401 §5.3.4B).
    pub setup: Vec<Bytes>,
    /// After what time without a block of data the connection is released.
    pub inactivity: Span,
    /// Whether the mobile indicates that no more data will come (TS 24.301 §9.9.4.25).
    #[serde(default)]
    pub release_assistance: ReleaseAssistance,
    /// With release assistance: from the last block to the release.
    pub release: Span,
    /// The paging cycle of an idle mobile: 1.28, 2.56, 5.12 or 10.24 s (TS 36.331 §6.7.3).
    pub paging: Span,
    /// Extended DRX and the power saving mode of an idle mobile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_saving: Option<PowerSaving>,
}

/// What a mobile indicates of its traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseAssistance {
    /// Nothing.
    #[default]
    Off,
    /// Its packet is the last: the connection can be released after it.
    AfterUplink,
    /// The answer to its packet is the last.
    AfterDownlink,
}
