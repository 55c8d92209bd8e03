//! The parameters of an LTE cell, as a scenario has them.

mod check;

use airpath_core::{Bytes, Decibel, Frequency, Probability, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::header_compression::HeaderCompression;
use crate::common::link_adaptation::Combining;
use crate::common::shared_channel::scheduler::SchedulerName;
use crate::conditions;

/// A cell of LTE with frequency division duplex, and what all its mobiles have in common.
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
    /// OFDM symbols of a subframe that carry control channels (CFI), 1 to 3.
    pub control_symbols: u8,
    /// Resource blocks of the uplink that carry PUCCH, and no data.
    pub pucch_blocks: u8,
    /// Mobiles that a subframe can serve in each direction: the limit of the PDCCH.
    pub users_per_tti: u8,
    /// Who is served next. Default: `round-robin`.
    #[serde(default)]
    pub scheduler: SchedulerName,
    /// Over what time the proportional fair scheduler averages what a mobile got. Default: 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging_time: Option<Span>,
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

/// A mobile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mobile {
    /// Layers that it can receive: 1 or 2. With 2, a report of its channel uses as many as carry
    /// more.
    pub layers: u8,
    /// The highest modulation that it receives: `64qam` or `256qam`.
    pub modulation: DownlinkModulation,
    /// How often it reports its CQI: whole milliseconds.
    pub cqi_period: Span,
    /// From what a report is about to the subframe that can use it.
    pub cqi_delay: Span,
    /// From the end of a subframe to when the mobile passes on the packets in it.
    pub processing: Span,
}

/// The highest modulation of the downlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DownlinkModulation {
    /// CQI table of TS 36.213 Table 7.2.3-1.
    #[serde(rename = "64qam")]
    Qam64,
    /// CQI table of TS 36.213 Table 7.2.3-2.
    #[serde(rename = "256qam")]
    Qam256,
}

/// The highest modulation of the uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UplinkModulation {
    /// UE categories 1 to 4.
    #[serde(rename = "16qam")]
    Qam16,
    /// UE category 5.
    #[serde(rename = "64qam")]
    Qam64,
}

/// Hybrid ARQ: asynchronous downwards, synchronous upwards (TS 36.321 §5.3.2, §5.4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Harq {
    /// Processes of a mobile in the downlink, at most 8 (TS 36.213 §7); the uplink always has 8.
    pub processes: u8,
    /// How often a block is sent before it is left to the RLC.
    pub max_transmissions: u8,
    /// What the receiver makes of the repetitions of a block.
    pub combining: Combining,
    /// By how much a real decoder is worse than the normal approximation.
    pub gap: Decibel,
    /// The probability that a NACK is taken for an ACK. The block is then left to the RLC.
    #[serde(default)]
    pub nack_to_ack: Probability,
    /// The probability that the mobile misses an assignment or a grant. Default: 0.
    #[serde(default)]
    pub dtx_missed: Probability,
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
    /// By how much the SINR of a resource block upwards is below that downwards.
    pub below_downlink: Decibel,
    /// The highest modulation that a mobile sends: `16qam` or `64qam`.
    pub modulation: UplinkModulation,
    /// The probability that a block is in error when it is sent once, in place of what follows from
    /// the SINR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bler: Option<Probability>,
    /// Period of the occasions for scheduling requests: 1, 2, 5, 10, 20, 40 or 80 ms
    /// (TS 36.213 Table 10.1.5-1).
    pub sr_period: Span,
    /// How often a scheduling request is sent before random access takes its place (dsr-TransMax):
    /// 4, 8, 16, 32 or 64.
    pub sr_max_transmissions: u8,
    /// Bytes of the transport block that the base station grants for a request, before it has a
    /// buffer status report.
    pub first_grant: Bytes,
    /// Grants that are sent to active mobiles without a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prescheduling: Option<Prescheduling>,
    /// periodicBSR-Timer: how often a mobile with grants reports its buffer.
    pub periodic_bsr: Span,
    /// retxBSR-Timer: after what time without a grant a mobile with data requests again.
    pub retx_bsr: Span,
    /// Random access, in place of a scheduling request that stays without an answer.
    pub random_access: RandomAccess,
}

/// Grants without a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prescheduling {
    /// Time between two: whole milliseconds.
    pub interval: Span,
    /// Bytes of the transport block of each.
    pub bytes: Bytes,
}

/// Random access (TS 36.321 §5.1) without collisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomAccess {
    /// Period of the PRACH: whole milliseconds.
    pub period: Span,
    /// From the subframe of the preamble to that of the first message of the mobile, with a buffer
    /// status report.
    pub message: Span,
}

/// The RLC of a bearer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "kebab-case")]
#[schemars(transform = describe_mode)]
pub enum Rlc {
    /// What is lost is sent again (TS 36.322 §5.1.3).
    Acknowledged(Acknowledged),
    /// What is lost stays lost (TS 36.322 §5.1.2).
    Unacknowledged(Unacknowledged),
}

/// Documents the key that selects the mode: it is no field.
fn describe_mode(schema: &mut schemars::Schema) {
    let forms = schema.get_mut("oneOf").and_then(|forms| forms.as_array_mut());
    for form in forms.into_iter().flatten() {
        if let Some(mode) = form.pointer_mut("/properties/mode").and_then(|mode| mode.as_object_mut()) {
            mode.insert("description".to_owned(), "Whether what is lost is sent again.".into());
        }
    }
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
    /// t-StatusProhibit: the shortest time between two status reports.
    pub t_status_prohibit: Span,
}

/// The unacknowledged mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unacknowledged {
    /// t-Reordering: how long the receiver waits for HARQ before it takes a PDU for lost.
    pub t_reordering: Span,
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

/// Discontinuous reception (TS 36.321 §5.7). Times are whole milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drx {
    /// onDurationTimer: how long the mobile listens in each cycle.
    pub on: Span,
    /// drx-InactivityTimer: how long it listens after an assignment or a grant of new data.
    pub inactivity: Span,
    /// shortDRX-Cycle, which comes first after activity. Without it, the long cycle follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<Span>,
    /// drxShortCycleTimer: the number of short cycles before the long one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_count: Option<u32>,
    /// longDRX-Cycle.
    pub long: Span,
}

/// The RRC connection (TS 36.331 §5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rrc {
    /// After what time without a packet in either direction the connection is released.
    pub inactivity: Span,
    /// From idle to connected, random access and signalling included: all data waits.
    pub promotion: Span,
    /// The paging cycle of an idle mobile: what comes for it waits for its occasion first.
    pub paging: Span,
    /// How long it takes to establish the connection again after a radio link failure.
    pub re_establishment: Span,
}
