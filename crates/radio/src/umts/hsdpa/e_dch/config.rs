//! The parameters of an E-DCH, as a scenario has them, and their checks.

use std::collections::BTreeMap;

use airpath_core::{Bitrate, Bytes, Decibel, Probability, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::category::{Tti, largest_block};
use super::grants::Scheduling;
use super::ladder::{Ladder, Range};
use crate::common::arq::rlc_am::Rlc;
use crate::common::link_adaptation::Combining;
use crate::conditions::{Profile, by_profile};
use crate::error::{ValueError, above_zero, at_most, check_queue, pdu_size, range, within_an_hour};
use crate::umts::ConfigError;

/// The enhanced dedicated channel of each mobile (E-DCH, HSUPA): blocks with hybrid ARQ, by grants
/// of the base station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EDch {
    /// Its E-DCH category (TS 25.306 Table 5.1g), 1 to 6: the largest block.
    pub category: u8,
    /// Length of a TTI: 10 ms with 4 processes of hybrid ARQ, or 2 ms with 8. Categories 2, 4 and 6
    /// have 2 ms.
    pub tti: Span,
    /// Payload of a PDU of the RLC, without its header.
    pub pdu: Bytes,
    /// The share of blocks in error at their first transmission that power control keeps to.
    pub bler: Probability,
    /// How often a block is sent before it is left to the RLC, at most 16.
    pub max_transmissions: u8,
    /// What the base station makes of the repetitions of a block: `none` or `chase`. Default:
    /// `chase`.
    #[serde(default = "chase")]
    pub combining: Combining,
    /// Energy of a bit over noise and interference that gives this share of errors. From it follow
    /// the noise rise of a grant, and the rate that the power of the mobile reaches.
    pub eb_n0: Decibel,
    /// By how much more of it is needed at the limit of power, by the `fading` of the conditions.
    /// Where it is not in here, nothing.
    #[serde(default, deserialize_with = "by_profile", skip_serializing_if = "BTreeMap::is_empty")]
    pub fading: BTreeMap<Profile, Decibel>,
    /// By how much the mobile's highest power, over the noise and interference of the base station,
    /// is below the power of the cell over the mobile's noise. With it, C/I of this direction
    /// follows from the level of the serving cell, if there are cells; without it, it is that of
    /// the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_cell: Option<Decibel>,
    /// What the base station allows.
    pub grants: Grants,
    /// How long the RNC waits for a block that is missing.
    pub reordering_timer: Span,
    /// From the end of a TTI to when the RNC has the block: the physical layer, base station and
    /// Iub.
    pub radio_delay: Span,
    /// From the RLC of the RNC to where the bearer ends: core network and the terminal itself.
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

/// Grants of the base station (TS 25.321 §11.8.2, §11.8.1.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grants {
    /// Noise rise that all granted mobiles of the cell may cause together.
    pub noise_rise: Decibel,
    /// The rate of the grant that answers scheduling information.
    pub first: Bitrate,
    /// A step of the ladder of grants: by it a grant grows or shrinks in a round trip of hybrid
    /// ARQ.
    pub step: Decibel,
    /// From the end of a TTI with scheduling information or a happy bit to the grant that answers
    /// it.
    pub delay: Span,
    /// A mobile is unhappy if its grant needs longer than this for what waits
    /// (Happy_Bit_Delay_Condition, TS 25.321 §11.8.1.5).
    pub happy_delay: Span,
    /// The grant of a mobile that has sent nothing for so long is withdrawn.
    pub inactivity: Span,
}

const fn chase() -> Combining {
    Combining::Chase
}

const TABLE: &str = "e_dch";
const GRANTS: &str = "e_dch.grants";

impl EDch {
    /// The TTI, and the largest block in bits.
    pub fn format(&self) -> Result<(Tti, u32), ValueError> {
        const EXPECTED: &str = "1 to 6, and 2, 4 or 6 with a `tti` of 2 ms (TS 25.306 Table 5.1g)";
        let tti = Tti::of(self.tti).ok_or_else(|| range(TABLE, "tti", "2 ms or 10 ms (TS 25.319 §7.2)"))?;
        let largest = largest_block(self.category, tti);
        largest.map(|bits| (tti, bits)).ok_or_else(|| range(TABLE, "category", EXPECTED))
    }

    /// Whether it makes sense.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (tti, largest) = self.format()?;
        let pdu = self.pdu_size()?;
        if Ladder::pdus(largest, pdu) == 0 {
            return Err(range(TABLE, "pdu", "so small that the largest block of the category holds one").into());
        }
        above_zero(self.max_transmissions > 0, TABLE, "max_transmissions")?;
        at_most(self.max_transmissions.into(), 16, TABLE, "max_transmissions")?;
        if self.combining == Combining::IncrementalRedundancy {
            let expected = "\"none\" or \"chase\": the gain of incremental redundancy is left out upwards";
            return Err(range(TABLE, "combining", expected).into());
        }
        let grants = &self.grants;
        if !(0.5..=20.0).contains(&grants.step.get()) {
            return Err(range(GRANTS, "step", "0.5 dB to 20 dB").into());
        }
        let first = grants.first.bytes_in(self.tti).get() * 8;
        above_zero(first > 0, GRANTS, "first")?;
        if first > u64::from(largest) {
            return Err(range(GRANTS, "first", "at most the rate of the largest block of the category").into());
        }
        if Ladder::pdus(first as u32, pdu) == 0 {
            return Err(range(GRANTS, "first", "so much that a block of it holds a PDU").into());
        }
        if !self.ladder(largest)?.admits_first() {
            return Err(range(GRANTS, "noise_rise", "so much that the first grant of one mobile fits").into());
        }
        within_an_hour(grants.delay, GRANTS, "delay")?;
        within_an_hour(grants.happy_delay, GRANTS, "happy_delay")?;
        if grants.inactivity < grants.delay + self.tti * u64::from(tti.processes()) {
            let expected = "at least `delay` and a round trip of hybrid ARQ, 16 ms or 40 ms, so that a grant is used";
            return Err(range(GRANTS, "inactivity", expected).into());
        }
        within_an_hour(grants.inactivity, GRANTS, "inactivity")?;
        above_zero(!self.reordering_timer.is_zero(), TABLE, "reordering_timer")?;
        within_an_hour(self.reordering_timer, TABLE, "reordering_timer")?;
        within_an_hour(self.radio_delay, TABLE, "radio_delay")?;
        within_an_hour(self.delay, TABLE, "delay")?;
        at_most(self.pdcp_header.get(), 255, TABLE, "pdcp_header")?;
        check_queue(self.queue.as_ref(), TABLE)?;
        Ok(self.rlc.check("e_dch.rlc")?)
    }

    /// The ladder of grants up to the largest block.
    pub fn ladder(&self, largest: u32) -> Result<Ladder, ValueError> {
        Ok(Ladder::new(Range {
            tti: self.tti,
            eb_n0: self.eb_n0,
            noise_rise: self.grants.noise_rise,
            first: 8 * self.grants.first.bytes_in(self.tti).get(),
            pdu: self.pdu_size()?,
            step: self.grants.step,
            largest,
        }))
    }

    /// The grants of a cell.
    pub fn scheduling(&self) -> Result<Scheduling, ConfigError> {
        let (tti, largest) = self.format()?;
        let round_trip = self.tti * u64::from(tti.processes());
        let Grants { delay, inactivity, .. } = self.grants;
        // As long as a grant and the first block of it take.
        let silence = inactivity.min(delay + round_trip * 2);
        Ok(Scheduling::new(self.ladder(largest)?, round_trip, [inactivity, silence]))
    }

    /// The payload of a PDU in bytes.
    pub fn pdu_size(&self) -> Result<u32, ValueError> {
        let size = pdu_size(self.pdu, TABLE)?;
        // Two length indicators and a byte between them.
        above_zero(size > 4, TABLE, "pdu").map(|()| size)
    }
}
