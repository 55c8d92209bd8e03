//! The parameters of an HSDPA cell, as a scenario has them, and their checks.

use airpath_core::{Bytes, Probability, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::transport_block::{Category, TransportBlock};
use crate::common::arq::rlc_am::Rlc;
use crate::common::header_compression::HeaderCompression;
use crate::common::link_adaptation::Combining;
use crate::common::shared_channel::harq::MAX_CQI;
use crate::common::shared_channel::scheduler::SchedulerName;
use crate::conditions;
use crate::error::{ValueError, above_zero, at_most, check_queue, pdu_size, within_an_hour};
use crate::umts::ConfigError;
use crate::umts::r99;

/// A cell whose HS-DSCH its mobiles share, and a dedicated channel of each towards it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the mobiles share.
    pub cell: Cell,
    /// What each mobile can do.
    pub mobile: Mobile,
    /// Towards the mobiles.
    pub downlink: Downlink,
    /// The dedicated channel of each mobile; it has one format.
    pub uplink: r99::RadioLink,
    /// Header compression of PDCP. Without it, headers are not compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<HeaderCompression>,
    /// What the radio of each mobile is like.
    pub conditions: conditions::Config,
}

/// The HS-DSCH.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// HS-PDSCH codes of spreading factor 16, at most 15.
    pub codes: u8,
    /// Mobiles that a TTI can serve: the number of HS-SCCHs; a mobile monitors at most 4.
    pub users_per_tti: u8,
    /// Who is served next. Default: `round-robin`.
    #[serde(default)]
    pub scheduler: SchedulerName,
    /// Over what time the proportional fair scheduler averages what a mobile got. Default: 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging_time: Option<Span>,
}

/// A mobile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mobile {
    /// Its HS-DSCH category, 1 to 12.
    pub category: u8,
    /// How often it reports its CQI: a multiple of 2 ms.
    pub cqi_cycle: Span,
    /// From what a report is about to the TTI that follows it.
    pub cqi_delay: Span,
    /// How many blocks its MAC-hs has room for between one that is missing and the last that has
    /// come, at most 32.
    pub reordering_window: u8,
    /// T1: how long it waits for a block that is missing.
    pub reordering_timer: Span,
}

/// Towards the mobiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Downlink {
    /// Payload of a PDU of the RLC, without its header.
    pub pdu: Bytes,
    /// Always this CQI, 1 to 30, in place of what the mobiles report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cqi: Option<u8>,
    /// The probability that a block is in error when it is sent once, in place of what follows from
    /// C/I.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bler: Option<Probability>,
    /// Hybrid ARQ.
    pub harq: Harq,
    /// Between the RNC and the base station.
    pub iub: Iub,
    /// From the end of a TTI to when the mobile has decoded the block.
    pub radio_delay: Span,
    /// From the RLC of the mobile to where the bearer ends.
    pub delay: Span,
    /// Bytes that PDCP adds to a packet.
    #[serde(default)]
    pub pdcp_header: Bytes,
    /// Bound and discipline of what waits for each mobile in the RNC. Without it, any number of
    /// packets may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The acknowledged mode of the RLC.
    pub rlc: Rlc,
}

/// Hybrid ARQ: processes that each stop and wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Harq {
    /// How many processes a mobile has, at most 8.
    pub processes: u8,
    /// TTIs from a transmission to the next of the same process.
    pub round_trip: u8,
    /// How often a block is sent before it is left to the RLC.
    pub max_transmissions: u8,
    /// What the mobile makes of the repetitions of a block. Default: `incremental-redundancy`.
    #[serde(default)]
    pub combining: Combining,
}

/// Between the RNC and the base station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Iub {
    /// One way.
    pub delay: Span,
    /// How often, at most, the base station allocates capacity to a mobile.
    pub interval: Span,
    /// What the base station has room for, for each mobile.
    pub buffer: Bytes,
}

/// Length of a TTI (TS 25.211 §5.3.3.13).
pub const TTI: Span = Span::from_millis(2);

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { cell, mobile, downlink, uplink, .. } = self;
        within(cell.codes, 15, "cell", "codes")?;
        within(cell.users_per_tti, 4, "cell", "users_per_tti")?;
        let category = self.category()?;
        above_zero(!mobile.cqi_cycle.is_zero(), "mobile", "cqi_cycle")?;
        if !mobile.cqi_cycle.as_nanos().is_multiple_of(TTI.as_nanos()) {
            let key = "mobile.cqi_cycle".to_owned();
            return Err(ValueError::Range { key, expected: "a multiple of 2 ms" }.into());
        }
        within_an_hour(mobile.cqi_cycle, "mobile", "cqi_cycle")?;
        within_an_hour(mobile.cqi_delay, "mobile", "cqi_delay")?;
        within(mobile.reordering_window, 32, "mobile", "reordering_window")?;
        above_zero(!mobile.reordering_timer.is_zero(), "mobile", "reordering_timer")?;
        within_an_hour(mobile.reordering_timer, "mobile", "reordering_timer")?;
        downlink.check(cell, category)?;
        uplink.check("uplink")?;
        if uplink.formats.len() > 1 {
            let key = "uplink.formats".to_owned();
            return Err(ValueError::Range { key, expected: "one format: there is no switching here" }.into());
        }
        Ok(())
    }

    /// The category of the mobiles.
    pub(super) fn category(&self) -> Result<Category, ConfigError> {
        let out_of_range = || ValueError::OutOfRange { key: "mobile.category".to_owned(), min: 1, max: 12 };
        Category::of(self.mobile.category).ok_or_else(out_of_range).map_err(ConfigError::from)
    }
}

/// Refuses what is not 1 to `max`.
fn within(number: u8, max: u8, table: &str, key: &str) -> Result<(), ValueError> {
    above_zero(number > 0, table, key)?;
    at_most(number.into(), max.into(), table, key)
}

impl Downlink {
    fn check(&self, cell: &Cell, category: Category) -> Result<(), ConfigError> {
        let pdu = pdu_size(self.pdu, "downlink")?;
        // Two length indicators and a byte between them.
        above_zero(pdu > 4, "downlink", "pdu")?;
        let fits = |cqi: u8| {
            let block = TransportBlock::of(cqi);
            block.codes <= cell.codes && block.pdus(pdu) > 0
        };
        if !(1..=category.highest).any(fits) {
            let key = "downlink.pdu".to_owned();
            return Err(ValueError::Range {
                key,
                expected: "so small that a block with the codes of the cell holds one",
            }
            .into());
        }
        if let Some(cqi) = self.cqi {
            within(cqi, MAX_CQI, "downlink", "cqi")?;
        }
        within(self.harq.processes, 8, "downlink.harq", "processes")?;
        above_zero(self.harq.round_trip > 0, "downlink.harq", "round_trip")?;
        above_zero(self.harq.max_transmissions > 0, "downlink.harq", "max_transmissions")?;
        within_an_hour(self.iub.delay, "downlink.iub", "delay")?;
        above_zero(!self.iub.interval.is_zero(), "downlink.iub", "interval")?;
        within_an_hour(self.iub.interval, "downlink.iub", "interval")?;
        if self.iub.buffer < self.pdu {
            let key = "downlink.iub.buffer".to_owned();
            return Err(ValueError::Range { key, expected: "enough for a PDU" }.into());
        }
        at_most(self.iub.buffer.get(), u64::from(u32::MAX), "downlink.iub", "buffer")?;
        within_an_hour(self.radio_delay, "downlink", "radio_delay")?;
        within_an_hour(self.delay, "downlink", "delay")?;
        at_most(self.pdcp_header.get(), 255, "downlink", "pdcp_header")?;
        check_queue(self.queue.as_ref(), "downlink")?;
        Ok(self.rlc.check("downlink.rlc")?)
    }
}
