//! The parameters of an NR cell, as a scenario has them.

mod check;

use airpath_core::{Bytes, Decibel, Frequency, Probability, Span, deserialize_by_key};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::header_compression::HeaderCompression;
use crate::common::shared_channel::scheduler::SchedulerName;
use crate::conditions;
use crate::ofdma::config::{Background, Downlink, Drx, Harq, Mobile, Uplink};

/// A cell of NR, standalone, and what all its mobiles have in common.
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
    /// PDCP: the queue in front of the RLC, and the reordering behind it, the same in both
    /// directions.
    pub pdcp: Pdcp,
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
    /// The channel bandwidth; with FDD, in each direction. One that TS 38.101-1 (FR2: TS 38.101-2)
    /// Table 5.3.2-1 has for the spacing.
    pub bandwidth: Frequency,
    /// Carriers of the downlink that a mobile has at once (carrier aggregation), each of this
    /// bandwidth: 1 to 16 (TS 38.300 §5.4.1); with half duplex 1. The uplink has one. Default: 1.
    #[serde(default = "crate::ofdma::config::one_carrier")]
    pub carriers: u8,
    /// The subcarrier spacing: 15 or 30 kHz in FR1, 120 kHz in FR2 (millimetre waves, TDD only).
    pub spacing: Frequency,
    /// Time division duplex. Without it, frequency division duplex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tdd: Option<Tdd>,
    /// K1, the least number of slots from data to their feedback: 1 to 15, and not below the time
    /// that a mobile takes (TS 38.213 §9.2.3, TS 38.214 §5.3).
    pub k1: u8,
    /// K2, the least number of slots from a grant to its block: 1 to 32, and not below the time
    /// that a mobile takes (TS 38.214 §6.1.2.1, §6.4).
    pub k2: u8,
    /// Resource blocks of the uplink that carry PUCCH, and no data.
    pub pucch_blocks: u8,
    /// Mobiles that a slot of a carrier can serve in each direction: the limit of the PDCCH. Grants
    /// for uplink repetitions do not count.
    pub users_per_slot: u8,
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
    /// From the end of what the base station received to the slot in which it reacts to it with an
    /// assignment or a grant: whole slots.
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

/// Time division duplex (`TDD-UL-DL-Pattern` of TS 38.331 §6.3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tdd {
    /// The slots of one or two patterns, such as `DDDSU`: D downlink, U uplink, S special. Their
    /// duration divides 20 ms (TS 38.213 §11.1).
    pub pattern: String,
    /// Symbols of a special slot towards the mobiles: 0 to 13. It carries data from 5 on; feedback
    /// and requests of the mobiles use U slots. Default: 0.
    #[serde(default)]
    pub special_downlink: u8,
}

/// The RLC of a bearer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "kebab-case")]
#[schemars(transform = crate::ofdma::config::describe_mode)]
pub enum Rlc {
    /// What is lost is sent again (TS 38.322 §5.2.3).
    Acknowledged(Acknowledged),
    /// What is lost stays lost (TS 38.322 §5.2.2).
    Unacknowledged(Unacknowledged),
}

deserialize_by_key! {
    Rlc by mode {
        sequence_bits: u8,
        t_poll_retransmit: Span,
        poll_pdu: u32,
        poll_byte: Bytes,
        max_retx: u8,
        t_reassembly: Span,
        t_status_prohibit: Span,
    }
    Acknowledged { sequence_bits, t_poll_retransmit, poll_pdu, poll_byte, max_retx, t_reassembly, t_status_prohibit }
    Unacknowledged { sequence_bits, t_reassembly }
}

/// The acknowledged mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acknowledged {
    /// Bits of a sequence number: 12 or 18, for a window of 2048 or 131072 packets.
    pub sequence_bits: u8,
    /// t-PollRetransmit: how long a poll waits for its report.
    pub t_poll_retransmit: Span,
    /// pollPDU: a poll after this number of PDUs. Without it, infinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_pdu: Option<u32>,
    /// pollByte: a poll after this number of bytes. Without it, infinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_byte: Option<Bytes>,
    /// maxRetxThreshold: the radio link has failed when a packet was to be sent again this often.
    pub max_retx: u8,
    /// t-Reassembly: how long the receiver waits for HARQ before it takes a packet for lost. At
    /// most 200 ms, and not longer than `pdcp.t_reordering`.
    pub t_reassembly: Span,
    /// t-StatusProhibit: the shortest time between two status reports. Not longer than
    /// `t_poll_retransmit`.
    pub t_status_prohibit: Span,
}

/// The unacknowledged mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unacknowledged {
    /// Bits of a sequence number: 6 or 12.
    pub sequence_bits: u8,
    /// t-Reassembly: how long the receiver waits for the segments of a packet. At most 200 ms.
    pub t_reassembly: Span,
}

/// PDCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pdcp {
    /// Bits of a sequence number: 12 or 18, and in the acknowledged mode not fewer than those of
    /// the RLC.
    pub sequence_bits: u8,
    /// discardTimer: a packet that waits for longer is dropped. Without it, infinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Span>,
    /// t-Reordering: how long the receiver waits for a packet that is missing.
    pub t_reordering: Span,
    /// Bound and discipline of the queue of each mobile. Without it, any number of packets may
    /// wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// The RRC connection (TS 38.331 §5.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rrc {
    /// After what time without a packet in either direction the connection is suspended, or without
    /// `inactive` released.
    pub inactivity: Span,
    /// From idle to connected, random access and signalling included: all data waits.
    pub promotion: Span,
    /// The paging cycle of an idle or inactive mobile: 320, 640, 1280 or 2560 ms (TS 38.331
    /// §6.3.2). What comes for it waits for its occasion first.
    pub paging: Span,
    /// How long it takes to establish the connection again after a radio link failure.
    pub re_establishment: Span,
    /// T310: from the report that no cell serves the mobile, 200 ms after the loss, to the radio
    /// link failure: 0, 50, 100, 200, 500, 1000, 2000, 4000 or 6000 ms (TS 38.331 §6.3.2).
    #[serde(default = "crate::ofdma::config::default_t310")]
    pub t310: Span,
    /// T311: from the failure to the state idle, if no cell was found; what waits is then lost: 1,
    /// 3, 5, 10, 15, 20 or 30 s (TS 38.331 §6.3.2).
    #[serde(default = "crate::ofdma::config::default_t311")]
    pub t311: Span,
    /// The state inactive. Without it, the mobile is idle after inactivity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactive: Option<Inactive>,
}

/// The state inactive, RRC_INACTIVE (TS 38.331 §5.3.8, §5.3.13).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inactive {
    /// From inactive to connected, random access included: all data waits.
    pub resume: Span,
    /// After what time in the state the mobile is idle.
    pub release: Span,
}
