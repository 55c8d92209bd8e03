//! The parameters that a scenario writes in the same way for LTE and NR.

mod check;
mod values;

use airpath_core::{Bytes, Decibel, Probability, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paging::PowerSaving;
use crate::common::link_adaptation::Combining;
pub(crate) use check::{RlcTimers, carriers, check_transmissions, milliseconds, no_configured_grant, outer_loop, pdcp};
pub(crate) use values::{MAX_RETX, T310, Values};

/// Other users of the cell, who take resource blocks and are not simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Share of the resource blocks of the downlink that they take: 0 to 0.95.
    pub downlink: Probability,
    /// Share of those of the uplink: 0 to 0.95.
    pub uplink: Probability,
    /// Mean duration of a burst in which they take that share; durations are exponentially
    /// distributed, and each direction has its own bursts. Without it, they always take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Span>,
    /// Mean duration of the pauses between bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<Span>,
}

/// A mobile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mobile {
    /// Layers that it can receive: 1 or 2 in LTE, 1 to 4 in NR. A report of its channel uses as
    /// many as carry most.
    pub layers: u8,
    /// The highest modulation that it receives: `64qam` or `256qam`.
    pub modulation: DownlinkModulation,
    /// How often it reports its CQI: in LTE a period of TS 36.213 Tables 7.2.2-1A (FDD) and
    /// 7.2.2-1C (TDD), in NR 4, 5, 8, 10, 16, 20, 40, 80, 160 or 320 slots (TS 38.331 §6.3.2).
    pub cqi_period: Span,
    /// From what a report is about to the subframe that can use it.
    pub cqi_delay: Span,
    /// From the end of a subframe to when the mobile has decoded it, and passes on the packets in
    /// it. That is before its feedback: at most 3 ms in LTE (TS 36.213 §10.2), in NR the slots of
    /// K1 less two symbols (TS 38.214 §5.3).
    pub processing: Span,
    /// Whether it can send and receive at the same time: `full`, or with frequency division duplex
    /// also `half` (type A, TS 36.211 §6.2.5, TS 38.213 §17.2). Default: `full`.
    #[serde(default)]
    pub duplex: Duplex,
}

/// Frequency division duplex of a mobile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Duplex {
    /// It sends or receives at a time.
    Half,
    /// It does both at once.
    #[default]
    Full,
}

/// The highest modulation of the downlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DownlinkModulation {
    /// CQI tables of TS 36.213 Table 7.2.3-1 and TS 38.214 Table 5.2.2.1-2.
    #[serde(rename = "64qam")]
    Qam64,
    /// CQI tables of TS 36.213 Table 7.2.3-2 and TS 38.214 Table 5.2.2.1-3.
    #[serde(rename = "256qam")]
    Qam256,
}

/// The highest modulation of the uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UplinkModulation {
    /// UE categories 1 to 4 of LTE.
    #[serde(rename = "16qam")]
    Qam16,
    /// UE category 5 of LTE; every mobile of NR.
    #[serde(rename = "64qam")]
    Qam64,
    /// NR only.
    #[serde(rename = "256qam")]
    Qam256,
}

/// Hybrid ARQ: asynchronous downwards; upwards synchronous in LTE (TS 36.321 §5.3.2, §5.4.2), by
/// grants in NR (TS 38.321 §5.3.2, §5.4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Harq {
    /// Processes of a mobile in the downlink: at most 8 in LTE, with TDD 4 to 15 by configuration
    /// (TS 36.213 §7, Table 7-1); 2, 4, 6, 8, 10, 12 or 16 in NR (nrofHARQ-ProcessesForPDSCH,
    /// TS 38.331 §6.3.2). The uplink has as many as fit into its round trip, in NR at most 16
    /// (TS 38.214 §6.1).
    pub processes: u8,
    /// How often a block is sent before it is left to the RLC.
    pub max_transmissions: u8,
    /// What the receiver makes of the repetitions of a block.
    pub combining: Combining,
    /// By how much a real decoder is worse than the normal approximation.
    pub gap: Decibel,
    /// The probability that a NACK is taken for an ACK. The block is then left to the RLC. It
    /// concerns the downlink, and the uplink of LTE: in NR the uplink has no feedback.
    #[serde(default)]
    pub nack_to_ack: Probability,
    /// The probability that the mobile misses an assignment, or a grant of a new block. Default: 0.
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
    /// By how much the SINR upwards is below that downwards, in LTE and NR in a tenth of the band
    /// or less. More resource blocks share the same power: ten times as many have 10 dB less.
    pub below_downlink: Decibel,
    /// The highest modulation that a mobile sends: `16qam` or `64qam` in LTE, `64qam` or `256qam`
    /// in NR.
    pub modulation: UplinkModulation,
    /// The probability that a block is in error when it is sent once, in place of what follows from
    /// the SINR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bler: Option<Probability>,
    /// Period of the occasions for scheduling requests: 1, 2, 5, 10, 20, 40 or 80 ms in LTE
    /// (TS 36.213 Table 10.1.5-1); 1, 2, 4, 5, 8, 10, 16, 20, 40 or 80 slots in NR, at 30 kHz also
    /// 160 (TS 38.331 §6.3.2).
    pub sr_period: Span,
    /// How often a scheduling request is sent before random access takes its place (dsr-TransMax,
    /// sr-TransMax): 4, 8, 16, 32 or 64.
    pub sr_max_transmissions: u8,
    /// Bytes of the transport block that the base station grants for a request, before it has a
    /// buffer status report.
    pub first_grant: Bytes,
    /// Grants that are sent to active mobiles without a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prescheduling: Option<Prescheduling>,
    /// Grants that mobiles have with the connection, in place of requests. NR only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configured_grant: Option<ConfiguredGrant>,
    /// periodicBSR-Timer: how often a mobile with grants reports its buffer (TS 36.331 §6.3.2, TS
    /// 38.331 §6.3.2).
    pub periodic_bsr: Span,
    /// retxBSR-Timer: after what time without a grant a mobile with data requests again (TS 36.331
    /// §6.3.2, TS 38.331 §6.3.2).
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

/// Configured grants of type 1 (TS 38.321 §5.8.2): resource blocks of each mobile in one slot of
/// each period, which are reserved whether it sends in them or not. Without data it sends nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredGrant {
    /// Time from one to the next (periodicity): 1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128,
    /// 160, 320 or 640 slots, at 30 kHz also 256 and 1280 (TS 38.331 §6.3.2).
    pub period: Span,
    /// The slot of all mobiles in the period, as the time to its begin (timeDomainOffset). Without
    /// it, each mobile has a slot that is drawn for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Span>,
    /// I_MCS of the blocks (mcsAndTBS, TS 38.214 §6.1.4.1): 0 to 28, with `256qam` to 27.
    pub mcs: u8,
    /// Bytes of the transport block of each: as many resource blocks are reserved as it needs.
    pub bytes: Bytes,
}

/// Random access (TS 36.321 §5.1, TS 38.321 §5.1) without collisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomAccess {
    /// Period of the PRACH: 1, 2, 5, 10 or 20 ms (TS 36.211 Table 5.7.1-2), in NR also 40, 80 or
    /// 160 ms (TS 38.211 §6.3.3.2).
    pub period: Span,
    /// From the subframe of the preamble to that of the first message of the mobile, with a buffer
    /// status report.
    pub message: Span,
}

/// Discontinuous reception (TS 36.321 §5.7, TS 38.321 §5.7). Times are those that TS 36.331 §6.3.2
/// and TS 38.331 §6.3.2 list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drx {
    /// onDurationTimer: how long the mobile listens in each cycle.
    pub on: Span,
    /// drx-InactivityTimer: how long it listens after an assignment or a grant of new data. Shorter
    /// than the `inactivity` of the RRC.
    pub inactivity: Span,
    /// shortDRX-Cycle, which comes first after activity. Without it, the long cycle follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<Span>,
    /// drxShortCycleTimer: the number of short cycles before the long one, 1 to 16.
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
    /// The paging cycle of an idle mobile: 320, 640, 1280 or 2560 ms (TS 36.331 §6.3.2). What comes
    /// for it waits for its occasion first.
    pub paging: Span,
    /// How long it takes to establish the connection again after a radio link failure.
    pub re_establishment: Span,
    /// T310: from the report that no cell serves the mobile, 200 ms after the loss, to the radio
    /// link failure: 0, 50, 100, 200, 500, 1000, 2000, 4000 or 6000 ms (TS 36.331 §6.3.2).
    #[serde(default = "default_t310")]
    pub t310: Span,
    /// T311: from the failure to the state idle, if no cell was found; what waits is then lost: 1,
    /// 3, 5, 10, 15, 20 or 30 s (TS 36.331 §6.3.2).
    #[serde(default = "default_t311")]
    pub t311: Span,
    /// Extended DRX and the power saving mode of an idle mobile. Without it, an idle mobile listens
    /// in each paging cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_saving: Option<PowerSaving>,
}

/// The default of TS 38.331 §9.2.3.
pub(crate) const fn default_t310() -> Span {
    Span::from_secs(1)
}

/// The default of TS 38.331 §9.2.3.
pub(crate) const fn default_t311() -> Span {
    Span::from_secs(30)
}

/// The carriers of a cell without carrier aggregation.
pub(crate) const fn one_carrier() -> u8 {
    1
}

/// Documents the key that selects the mode: it is no field.
pub(crate) fn describe_mode(schema: &mut schemars::Schema) {
    let forms = schema.get_mut("oneOf").and_then(|forms| forms.as_array_mut());
    for form in forms.into_iter().flatten() {
        if let Some(mode) = form.pointer_mut("/properties/mode").and_then(|mode| mode.as_object_mut()) {
            mode.insert("description".to_owned(), "Whether what is lost is sent again.".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use crate::{lte, nr};

    fn error<T: DeserializeOwned>(text: &str) -> String {
        toml::from_str::<T>(text).map(drop).expect_err(text).message().to_owned()
    }

    #[test]
    fn the_mode_selects_the_keys_of_the_rlc() {
        let [lte, nr] = [error::<lte::Rlc>, error::<nr::Rlc>];
        let acknowledged = "mode = 'acknowledged'\nt_poll_retransmit = '45 ms'\nmax_retx = 8\n";
        assert_eq!(lte(acknowledged), "missing field `t_reordering`");
        assert_eq!(nr(acknowledged), "missing field `sequence_bits`");
        let unacknowledged = "mode = 'unacknowledged'\n";
        assert_eq!(lte(unacknowledged), "missing field `t_reordering`");
        assert_eq!(nr(&format!("{unacknowledged}sequence_bits = 6\n")), "missing field `t_reassembly`");
        let expected = "unknown field `max_retx`, expected";
        assert_eq!(lte(&format!("{unacknowledged}max_retx = 8\n")), format!("{expected} `mode` or `t_reordering`"));
        let known = "one of `mode`, `sequence_bits`, `t_reassembly`";
        assert_eq!(nr(&format!("{unacknowledged}max_retx = 8\n")), format!("{expected} {known}"));
    }
}
