//! The parameters of an HSDPA cell, as a scenario has them, and their checks.

use airpath_core::{Bytes, Probability, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::buffer::Packing;
use super::e_dch::config::EDch;
use super::transport_block::Category;
use super::unit::RLC_HEADER;
use crate::common::arq::rlc_am::Rlc;
use crate::common::header_compression::HeaderCompression;
use crate::common::link_adaptation::Combining;
use crate::common::shared_channel::harq::MAX_CQI;
use crate::common::shared_channel::scheduler::SchedulerName;
use crate::conditions;
use crate::error::{ValueError, above_zero, at_most, between, check_queue, pdu_size, range, within_an_hour};
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink: Option<r99::RadioLink>,
    /// The enhanced dedicated channel of each mobile (HSUPA), in place of `uplink`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e_dch: Option<EDch>,
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
    /// Carriers on which a mobile can get a block in the same TTI, each with these codes: 1, or 2
    /// with the categories 21 to 24 (TS 25.308 §15, dual cell).
    #[serde(default = "one_carrier")]
    pub carriers: u8,
    /// Mobiles that a TTI of a carrier can serve: the number of HS-SCCHs; a mobile monitors at most
    /// 4.
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
}

/// A mobile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mobile {
    /// Its HS-DSCH category (TS 25.306 Table 5.1a): 1 to 12; 13 and 14 with 64QAM; 21 and 22 with
    /// two carriers, 23 and 24 with both.
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
    /// What makes blocks of PDUs. Default: `mac-hs`.
    #[serde(default)]
    pub mac: Mac,
    /// Payload of a PDU of the RLC, without its header. With `mac-ehs`, of the largest PDU, at most
    /// 1503 B (TS 25.322 §9.2.2.9): each is as long as the packet in it.
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

const fn one_carrier() -> u8 {
    1
}

/// The part of the MAC that makes blocks of PDUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mac {
    /// Release 5: whole PDUs of one size.
    #[default]
    MacHs,
    /// Release 7: PDUs of flexible size, which it cuts to fill a block.
    MacEhs,
}

impl Mac {
    /// How it makes blocks.
    pub(super) const fn packing(self) -> Packing {
        match self {
            Self::MacHs => Packing::WholePdus,
            Self::MacEhs => Packing::Segments,
        }
    }
}

/// Hybrid ARQ: processes that each stop and wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Harq {
    /// How many processes a mobile has on each carrier, at most 8.
    pub processes: u8,
    /// TTIs from a transmission to the next of the same process: 5 or more, for the feedback (TS
    /// 25.211 §7.7).
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

/// The least number of TTIs to a repetition. The time that the base station takes is not in the
/// standard.
const SHORTEST_ROUND_TRIP: u8 = 5;

/// Length of a TTI (TS 25.211 §5.3.3.13).
pub const TTI: Span = Span::from_millis(2);

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { cell, mobile, downlink, uplink, e_dch, .. } = self;
        within(cell.codes, 15, "cell", "codes")?;
        within(cell.users_per_tti, 4, "cell", "users_per_tti")?;
        let category = self.category()?;
        within(cell.carriers, 2, "cell", "carriers")?;
        if cell.carriers > category.carriers {
            let expected = "1, unless `mobile.category` is 21 to 24 (TS 25.306 Table 5.1a)";
            return Err(range("cell", "carriers", expected).into());
        }
        if category.needs_ehs && downlink.mac == Mac::MacHs {
            let expected = "1 to 12, unless `downlink.mac` is \"mac-ehs\" (TS 25.306 Table 5.1a)";
            return Err(range("mobile", "category", expected).into());
        }
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
        match (uplink, e_dch) {
            (Some(uplink), None) => {
                uplink.check("uplink")?;
                if uplink.formats.len() > 1 {
                    return Err(range("uplink", "formats", "one format: there is no switching here").into());
                }
                Ok(())
            }
            (None, Some(e_dch)) => e_dch.check(),
            (Some(_), Some(_)) => Err(ConfigError::Uplinks { problem: "there are two uplinks" }),
            (None, None) => Err(ConfigError::Uplinks { problem: "there is no uplink" }),
        }
    }

    /// The RLC of the uplink, in a checked configuration.
    pub(super) fn uplink_rlc(&self) -> &Rlc {
        let rlc = self.uplink.as_ref().map(|uplink| &uplink.rlc).or(self.e_dch.as_ref().map(|e_dch| &e_dch.rlc));
        rlc.expect("it was checked that there is an uplink")
    }

    /// The category of the mobiles.
    pub(super) fn category(&self) -> Result<Category, ConfigError> {
        const EXPECTED: &str = "1 to 14, or 21 to 24 (TS 25.306 Table 5.1a); 15 to 20 have MIMO, which is left out";
        let category = Category::of(self.mobile.category);
        category.ok_or_else(|| range("mobile", "category", EXPECTED).into())
    }
}

/// Refuses what is not 1 to `max`.
fn within(number: u8, max: u8, table: &str, key: &str) -> Result<(), ValueError> {
    above_zero(number > 0, table, key)?;
    at_most(number.into(), max.into(), table, key)
}

/// The longest data field of an AMD PDU of flexible size (TS 25.322 §9.2.2.9).
const LARGEST_FLEXIBLE_PDU: u32 = 1503;

impl Downlink {
    fn check(&self, cell: &Cell, category: Category) -> Result<(), ConfigError> {
        let pdu = pdu_size(self.pdu, "downlink")?;
        // Two length indicators and a byte between them.
        above_zero(pdu > 4, "downlink", "pdu")?;
        let packing = self.mac.packing();
        if packing == Packing::Segments {
            if pdu > LARGEST_FLEXIBLE_PDU {
                let expected = "at most 1503 B with `mac = \"mac-ehs\"`, the data field of a PDU of flexible size (TS \
                                25.322 §9.2.2.9)";
                return Err(range("downlink", "pdu", expected).into());
            }
            if self.rlc.concatenation {
                let expected = "false with `mac = \"mac-ehs\"`: a PDU of flexible size has data of one packet";
                return Err(range("downlink.rlc", "concatenation", expected).into());
            }
        }
        let fits = |cqi: u8| {
            let block = category.table.block(cqi);
            block.codes <= cell.codes && packing.amount(block, pdu) > 0
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
        let clause = "3 bits of HS-SCCH, TS 25.212 §4.6.1";
        between(self.harq.processes.into(), [1, 8], "downlink.harq", "processes", clause)?;
        if self.harq.round_trip < SHORTEST_ROUND_TRIP {
            let expected = "at least 5 TTIs: HS-SCCH 2 slots ahead, 3 slots of data, 7.5 slots to HS-DPCCH and its slot \
                            are 9 ms (TS 25.211 §7.7, §7.8)";
            return Err(range("downlink.harq", "round_trip", expected).into());
        }
        above_zero(self.harq.max_transmissions > 0, "downlink.harq", "max_transmissions")?;
        within_an_hour(self.iub.delay, "downlink.iub", "delay")?;
        above_zero(!self.iub.interval.is_zero(), "downlink.iub", "interval")?;
        within_an_hour(self.iub.interval, "downlink.iub", "interval")?;
        let header = if packing == Packing::Segments { RLC_HEADER } else { 0 };
        if self.iub.buffer.get() < u64::from(pdu + header) {
            return Err(range("downlink.iub", "buffer", "enough for a PDU").into());
        }
        at_most(self.iub.buffer.get(), u64::from(u32::MAX), "downlink.iub", "buffer")?;
        within_an_hour(self.radio_delay, "downlink", "radio_delay")?;
        within_an_hour(self.delay, "downlink", "delay")?;
        at_most(self.pdcp_header.get(), 255, "downlink", "pdcp_header")?;
        check_queue(self.queue.as_ref(), "downlink")?;
        Ok(self.rlc.check("downlink.rlc")?)
    }
}
