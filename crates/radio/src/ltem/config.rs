//! The parameters of a narrowband of LTE-M, as a scenario has them.

mod check;

use airpath_core::{Bytes, Decibel, Probability, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::header_compression::HeaderCompression;
use crate::common::shared_channel::scheduler::SchedulerName;
use crate::conditions;
use crate::lte::{Pdcp, Rlc};
use crate::ofdma::config::{Downlink, Drx, Duplex, Harq, Rrc, Uplink};

/// A narrowband of LTE-M, and what all its mobiles have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The narrowband and its base station.
    pub cell: Cell,
    /// What each mobile can do.
    pub mobile: Mobile,
    /// The coverage modes.
    pub coverage: Coverage,
    /// Hybrid ARQ of both directions: at most 8 processes, in mode B 2.
    pub harq: Harq,
    /// Towards the mobiles.
    #[serde(default)]
    pub downlink: Downlink,
    /// From the mobiles.
    pub uplink: Uplink,
    /// The RLC of the bearer, the same in both directions.
    pub rlc: Rlc,
    /// The queue in front of the RLC, the same in both directions.
    #[serde(default)]
    pub pdcp: Pdcp,
    /// Discontinuous reception of a connected mobile. Without it, the mobile always listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drx: Option<Drx>,
    /// The RRC connection. `promotion` is that of mode A.
    pub rrc: Rrc,
    /// Header compression of PDCP. Without it, headers are not compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<HeaderCompression>,
    /// What the radio of each mobile is like: `ci` is the SINR of a resource block downwards.
    pub conditions: conditions::Config,
}

/// The narrowband: six resource blocks in each direction (TS 36.211 §6.2.7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// OFDM symbols at the begin of a subframe that carry control channels of LTE, 1 to 4
    /// (startSymbolBR): MPDCCH and PDSCH begin after them.
    pub control_symbols: u8,
    /// Resource blocks of an MPDCCH: 2, 4 or 6 (TS 36.213 §9.1.5).
    pub control_blocks: u8,
    /// Who is served next. Default: `round-robin`.
    #[serde(default)]
    pub scheduler: SchedulerName,
    /// Over what time the schedulers `proportional-fair` and `run2c` average what a mobile got.
    /// Default: 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging_time: Option<Span>,
    /// For the schedulers `least-attained-service` and `run2c`: the pause after which what comes
    /// for a mobile is a new flow. Default: 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_timeout: Option<Span>,
    /// For the scheduler `run2c`: the bytes until which a flow is short. Default: 100 kB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_flow: Option<Bytes>,
    /// From the end of what the base station received to the subframe in which it reacts to it
    /// with an assignment or a grant: whole milliseconds.
    pub processing: Span,
    /// Block error rate of first transmissions that the outer loop aims at.
    pub target_bler: Probability,
    /// By how many decibels the outer loop raises its estimate after a block without error. Zero:
    /// no outer loop.
    pub step: Decibel,
    /// The largest correction of the outer loop, either way.
    pub max_correction: Decibel,
    /// From the base station to where the bearer ends, one way.
    pub delay: Span,
}

/// A mobile of category M1 (TS 36.306 §4.1): one layer, at most 16QAM, transport blocks of at most
/// 1000 bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mobile {
    /// Whether it can send and receive at the same time: `full`, or `half` with a subframe between
    /// the two (type B, TS 36.211 §6.2.5).
    pub duplex: Duplex,
    /// How often it reports its CQI: 2, 5, 10, 20, 32, 40, 64, 80, 128 or 160 ms (TS 36.213 Table
    /// 7.2.2-1A).
    pub cqi_period: Span,
    /// From what a report is about to the subframe that can use it.
    pub cqi_delay: Span,
    /// From the end of a block to when the mobile has decoded it, and passes on the packets in it:
    /// at most 3 ms, before its feedback (TS 36.213 §10.2).
    pub processing: Span,
}

/// The coverage modes. A mobile chooses its mode when it connects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// By how much a repeated transmission gains less than 10·log₁₀ of its repetitions, because the
    /// channel must be estimated.
    pub repetition_loss: Decibel,
    /// Coverage mode A.
    pub a: ModeA,
    /// Coverage mode B. Without it, all mobiles use mode A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<ModeB>,
}

/// Coverage mode A: few repetitions or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeA {
    /// Repetitions of MPDCCH: 1, 2, 4, … 256 (TS 36.331, mPDCCH-NumRepetition).
    pub control: u16,
    /// Repetitions of PDSCH: 1, 2, 4, 8, 16 or 32 (TS 36.213 Table 7.1.11-1).
    pub downlink: u16,
    /// Repetitions of PUSCH: 1, 2, 4, 8, 16 or 32 (TS 36.213 Table 8.2b).
    pub uplink: u16,
    /// Repetitions of PUCCH (feedback and scheduling requests): 1, 2, 4 or 8 (TS 36.331,
    /// pucch-NumRepetitionCE).
    pub feedback: u16,
}

/// Coverage mode B: many repetitions, QPSK, and two processes of hybrid ARQ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeB {
    /// A mobile with a SINR downwards below this uses the mode.
    pub below: Decibel,
    /// From idle to connected in this mode: all data waits.
    pub promotion: Span,
    /// Repetitions of MPDCCH: 1, 2, 4, … 256 (TS 36.331, mPDCCH-NumRepetition).
    pub control: u16,
    /// Repetitions of PDSCH: 1, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536 or 2048
    /// (TS 36.213 Table 7.1.11-2).
    pub downlink: u16,
    /// Repetitions of PUSCH, of the same numbers (TS 36.213 Table 8.2c).
    pub uplink: u16,
    /// Repetitions of PUCCH (feedback and scheduling requests): 4, 8, 16 or 32 (TS 36.331,
    /// pucch-NumRepetitionCE).
    pub feedback: u16,
}
