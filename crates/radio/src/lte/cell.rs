//! What LTE gives to the cell that it shares with NR: slots, block sizes, headers.

use std::sync::Arc;

use airpath_link::queue::Queue;

use super::config::{self, Config};
use super::tables::{self, CqiTable, Mcs, McsTable, TTI};
use super::tdd;
use crate::common::link_adaptation::{Coding, Decoder, Modulation};
use crate::common::shared_channel::scheduler::options;
use crate::common::slots::{Offsets, SYMBOLS, SlotPattern, Timeline};
use crate::ofdma::config::{DownlinkModulation, UplinkModulation};
use crate::ofdma::rlc::{Framing, ModeParameters};
use crate::ofdma::rlc_am::StatusFormat;
use crate::ofdma::{
    Allocation, BlockSizes, Cell, CodeWords, ConfigError, Grid, GridParameters, Parameters, Technology, UplinkHarq,
    Voice, pdcp, reordering, rlc, rlc_am,
};

/// Subcarriers of a resource block (TS 36.211 §6.2.3).
pub(crate) const SUBCARRIERS: u32 = 12;
/// The symbols after the first that carry reference signals of two antenna ports, and the resource
/// elements of a block that these take in each (TS 36.211 §6.10.1.2).
const REFERENCE_SYMBOLS: [u8; 3] = [4, 7, 11];
const REFERENCE_ELEMENTS: u32 = 4;
/// Symbols of control channels in a special subframe at most (TS 36.211 Table 6.7-1).
const SPECIAL_CONTROL_SYMBOLS: u8 = 2;
/// From this number of downlink symbols on, a special subframe has the sizes of three quarters of
/// its resource blocks, with fewer those of three eighths (TS 36.213 §7.1.7).
const THREE_QUARTERS: u8 = 9;
/// Symbols of a subframe of the uplink that carry reference signals (TS 36.211 §5.5.2.1).
pub(crate) const UPLINK_REFERENCE_SYMBOLS: u32 = 2;
/// The effective code rate above which a mobile may skip decoding (TS 36.213 §7.1.7).
pub(crate) const HIGHEST_CODE_RATE: f64 = 0.931;
/// Bytes of the header of a PDCP data PDU with a sequence number of 12 bits (TS 36.323 §6.2.3).
pub(crate) const PDCP_HEADER: u64 = 2;
/// AM_Window_Size and UM_Window_Size with sequence numbers of 10 bits (TS 36.322 §7.2).
const WINDOW: u64 = 512;

/// Subframes from what the base station received to the attempt or grant that depends on it at the
/// earliest, as with frequency division duplex.
const REACTION: u32 = Offsets::LTE_FDD.feedback_to_attempt;

/// The sizes of transport blocks with these schemes (TS 36.213 §7.1.7.2.1).
#[derive(Debug)]
pub(crate) struct Sizes(pub &'static [Mcs]);

impl BlockSizes for Sizes {
    fn bits(&self, scheme: usize, _layers: u8, blocks: u32, symbols: u8) -> u32 {
        let blocks = match symbols {
            SYMBOLS => blocks,
            THREE_QUARTERS.. => (blocks * 3 / 4).max(1),
            _ => (blocks * 3 / 8).max(1),
        };
        tables::transport_block_bits(self.0[scheme].i_tbs, blocks)
    }
}

/// Resource elements of a block that carry data in a subframe with this number of downlink symbols.
/// Synchronisation signals and the broadcast channel are left out.
pub(crate) fn downlink_elements(symbols: u8, control_symbols: u8) -> u32 {
    let control = if symbols == SYMBOLS { control_symbols } else { control_symbols.min(SPECIAL_CONTROL_SYMBOLS) };
    let references = REFERENCE_SYMBOLS.iter().filter(|symbol| **symbol < symbols).count() as u32;
    (SUBCARRIERS * u32::from(symbols.saturating_sub(control))).saturating_sub(references * REFERENCE_ELEMENTS)
}

impl Technology for Config {
    const CELL: &'static str = "an LTE cell";
    const ONE_DIRECTION: &'static str = "one direction of an LTE cell";

    fn parameters(&self) -> Result<Parameters, ConfigError> {
        self.check()?;
        let config::Cell { bandwidth, tdd, control_symbols, pucch_blocks, users_per_tti, scheduler, .. } = self.cell;
        let channel = tables::channel(bandwidth).expect("it was checked before");
        let decoder = Decoder { coding: Coding::Turbo, gap: self.harq.gap };
        let (cqis, schemes) = match self.mobile.modulation {
            DownlinkModulation::Qam64 => (CqiTable::Qam64, McsTable::PdschQam64),
            DownlinkModulation::Qam256 => (CqiTable::Qam256, McsTable::PdschQam256),
        };
        let grid = |cqis, schemes: &'static [Mcs], total, allocation, elements: [u32; SYMBOLS as usize + 1]| {
            let symbols = f64::from(total * elements[usize::from(SYMBOLS)]);
            let bits = |scheme: &Mcs| f64::from(tables::transport_block_bits(scheme.i_tbs, total));
            let parameters = GridParameters {
                cqis: tables::cqis(cqis),
                efficiencies: schemes.iter().map(|scheme| bits(scheme) / symbols).collect(),
                modulations: schemes.iter().map(|scheme| scheme.modulation).collect(),
                sizes: Arc::new(Sizes(schemes)),
                total,
                allocation,
                codewords: CodeWords::OnEachLayer,
                elements,
                highest_code_rate: HIGHEST_CODE_RATE,
                largest_block: None,
            };
            Grid::new(&decoder, parameters)
        };
        let down = grid(
            cqis,
            tables::schemes(schemes),
            channel.resource_blocks,
            Allocation::Groups(channel.group),
            std::array::from_fn(|symbols| downlink_elements(symbols as u8, control_symbols)),
        );
        let highest = match self.uplink.modulation {
            UplinkModulation::Qam16 => Modulation::Qam16,
            UplinkModulation::Qam64 | UplinkModulation::Qam256 => Modulation::Qam64,
        };
        let schemes = tables::schemes(McsTable::Pusch);
        let count = schemes.iter().take_while(|scheme| scheme.modulation <= highest).count();
        let up = grid(
            CqiTable::Qam64,
            &schemes[..count],
            channel.resource_blocks - u32::from(pucch_blocks),
            Allocation::Smooth,
            std::array::from_fn(|symbols| match symbols as u8 {
                SYMBOLS => SUBCARRIERS * (u32::from(SYMBOLS) - UPLINK_REFERENCE_SYMBOLS),
                _ => 0,
            }),
        );
        Ok(Parameters {
            timeline: match tdd {
                None => Timeline::new(SlotPattern::fdd(TTI), Offsets::LTE_FDD),
                Some(config::Tdd { configuration, special }) => {
                    tdd::timeline(configuration, special, REACTION).expect("it was checked before")
                }
            },
            down,
            up,
            decoder,
            buffer_sizes: tables::buffer_sizes(),
            cell: Cell {
                carriers: self.cell.carriers,
                users_per_slot: users_per_tti,
                scheduler,
                scheduler_options: options!(self.cell),
                processing: self.cell.processing,
                target_bler: self.cell.target_bler,
                step: self.cell.step,
                max_correction: self.cell.max_correction,
                delay: self.cell.delay,
                background: self.cell.background.clone(),
            },
            uplink_harq: UplinkHarq::ByFeedback,
            mobile: self.mobile.clone(),
            harq: self.harq.clone(),
            downlink: self.downlink.clone(),
            uplink: self.uplink.clone(),
            configured_grant: None,
            rlc: (&self.rlc).into(),
            pdcp: pdcp::Parameters {
                header: PDCP_HEADER,
                discard: self.pdcp.discard,
                queue: self.pdcp.queue.clone().unwrap_or_default(),
                reordering: None,
            },
            drx: self.drx.clone(),
            rrc: self.rrc.as_ref().map(Into::into),
            voice: self.voice.as_ref().map(Into::into),
            repetition: None,
            conditions: self.conditions.clone(),
        })
    }
}

impl From<&config::Rlc> for rlc::Parameters {
    fn from(config: &config::Rlc) -> Self {
        let mode = match config {
            config::Rlc::Acknowledged(config) => ModeParameters::Acknowledged(rlc_am::Parameters {
                t_poll_retransmit: config.t_poll_retransmit,
                poll_pdu: config.poll_pdu,
                poll_byte: config.poll_byte,
                max_retx: config.max_retx,
                t_reordering: config.t_reordering,
                t_status_prohibit: config.t_status_prohibit,
                window: WINDOW,
                status: StatusFormat::LTE,
            }),
            config::Rlc::Unacknowledged(config) => ModeParameters::Unacknowledged(reordering::Parameters {
                wait: config.t_reordering,
                window: WINDOW,
                has_segments: false,
            }),
        };
        Self { framing: Framing::LTE, mode }
    }
}

impl From<&config::Voice> for Voice {
    fn from(config: &config::Voice) -> Self {
        let unacknowledged = config::Unacknowledged { t_reordering: config.t_reordering };
        Self {
            template: config.template(),
            rlc: (&config::Rlc::Unacknowledged(unacknowledged)).into(),
            pdcp: pdcp::Parameters {
                header: PDCP_HEADER,
                discard: Some(config.discard),
                queue: Queue::default(),
                reordering: None,
            },
        }
    }
}
