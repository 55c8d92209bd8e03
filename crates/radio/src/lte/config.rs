//! The parameters of an LTE cell, as a scenario has them.

mod check;

pub(crate) use check::{check_processing, check_reports, check_rlc, check_sr_period};

use airpath_core::{Bytes, Decibel, Frequency, Probability, Span, deserialize_by_key};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::header_compression::HeaderCompression;
use crate::common::shared_channel::scheduler::SchedulerName;
use crate::conditions;
use crate::ofdma::channels::Template;
use crate::ofdma::config::{Background, Downlink, Drx, Harq, Mobile, Rrc, Uplink};

/// A cell of LTE with frequency or time division duplex, and what all its mobiles have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The base station.
    pub cell: Cell,
    /// What each mobile can do.
    pub mobile: Mobile,
    /// Hybrid ARQ of both directions.
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
    /// A second bearer for voice (QCI 1): it comes first, in the unacknowledged mode of the RLC.
    /// Without it, all packets use one bearer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// Discontinuous reception of a connected mobile. Without it, the mobile always listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drx: Option<Drx>,
    /// The RRC connection. Without it, the mobile is always connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rrc: Option<Rrc>,
    /// Header compression of PDCP. Without it, headers are not compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<HeaderCompression>,
    /// What the radio of each mobile is like: `ci` is the SINR of a resource block downwards.
    pub conditions: conditions::Config,
}

/// The base station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The channel bandwidth in each direction: 1.4, 3, 5, 10, 15 or 20 MHz (TS 36.101 §5.6).
    pub bandwidth: Frequency,
    /// Carriers of the downlink that a mobile has at once (carrier aggregation), each of this
    /// bandwidth: 1 to 5 (TS 36.300 §5.5). The uplink has one. Default: 1.
    #[serde(default = "crate::ofdma::config::one_carrier")]
    pub carriers: u8,
    /// Time division duplex. Without it, frequency division duplex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tdd: Option<Tdd>,
    /// OFDM symbols of a subframe that carry control channels: 1 to 3, at 1.4 MHz 2 to 4 (TS 36.211
    /// Table 6.7-1); at most 2 of a special subframe.
    pub control_symbols: u8,
    /// Resource blocks of the uplink that carry PUCCH, and no data.
    pub pucch_blocks: u8,
    /// Mobiles that a subframe of a carrier can serve in each direction: the limit of the PDCCH.
    pub users_per_tti: u8,
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
    /// From the end of what the base station received to the subframe in which it uses it: a
    /// scheduling request, a buffer status report, and feedback for the outer loop. Whole
    /// milliseconds. A block is sent again as the standard's timeline has it (TS 36.213 §8, §10.2).
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
    /// Load by other users who are not simulated. Without it, all resource blocks are for the
    /// mobiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
}

/// Time division duplex (frame structure type 2, TS 36.211 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tdd {
    /// Uplink-downlink configuration: 0 to 6 (TS 36.211 Table 4.2-2).
    pub configuration: u8,
    /// Special subframe configuration: 0 to 9 (TS 36.211 Table 4.2-1). With 0 and 5, special
    /// subframes carry no data.
    pub special: u8,
}

/// The RLC of a bearer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "kebab-case")]
#[schemars(transform = crate::ofdma::config::describe_mode)]
pub enum Rlc {
    /// What is lost is sent again (TS 36.322 §5.1.3).
    Acknowledged(Acknowledged),
    /// What is lost stays lost (TS 36.322 §5.1.2).
    Unacknowledged(Unacknowledged),
}

deserialize_by_key! {
    Rlc by mode {
        t_poll_retransmit: Span,
        poll_pdu: u32,
        poll_byte: Bytes,
        max_retx: u8,
        t_reordering: Span,
        t_status_prohibit: Span,
    }
    Acknowledged { t_poll_retransmit, poll_pdu, poll_byte, max_retx, t_reordering, t_status_prohibit }
    Unacknowledged { t_reordering }
}

/// The acknowledged mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acknowledged {
    /// t-PollRetransmit: how long a poll waits for its report.
    pub t_poll_retransmit: Span,
    /// pollPDU: a poll after this number of PDUs. Without it, infinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_pdu: Option<u32>,
    /// pollByte: a poll after this number of bytes. Without it, infinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_byte: Option<Bytes>,
    /// maxRetxThreshold: the radio link has failed when a PDU was to be sent again this often.
    pub max_retx: u8,
    /// t-Reordering: how long the receiver waits for HARQ before it takes a PDU for lost.
    pub t_reordering: Span,
    /// t-StatusProhibit: the shortest time between two status reports. Not longer than
    /// `t_poll_retransmit`.
    pub t_status_prohibit: Span,
}

/// The unacknowledged mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unacknowledged {
    /// t-Reordering: how long the receiver waits for HARQ before it takes a PDU for lost.
    pub t_reordering: Span,
}

/// The voice bearer (QCI 1, TS 23.203 Table 6.1.7), with the packets that use it (a traffic flow
/// template, TS 24.008 §10.5.6.12).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Voice {
    /// Packets with one of these values of the DSCP use it: 0 to 63. Default: none.
    #[serde(default)]
    pub dscp: Vec<u8>,
    /// UDP packets with a port at either end within one of these ranges, first and last, use it.
    /// Calls of a flow of kind `voice` have port 5004. Default: none.
    #[serde(default)]
    pub ports: Vec<[u16; 2]>,
    /// discardTimer: a packet that waits for longer is dropped.
    pub discard: Span,
    /// t-Reordering: how long the receiver waits for HARQ before it takes a PDU for lost.
    pub t_reordering: Span,
}

impl Voice {
    /// Which packets use it.
    pub(crate) fn template(&self) -> Template {
        Template { dscp: self.dscp.clone(), ports: self.ports.clone() }
    }
}

/// The queue in front of the RLC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pdcp {
    /// discardTimer: a packet that waits for longer is dropped. Without it, infinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Span>,
    /// Bound and discipline of the queue of each mobile. Without it, any number of packets may
    /// wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}
