//! What NR gives to the cell that it shares with LTE: slots, block sizes, headers.

use std::sync::Arc;

use super::config::{self, Config};
use super::tables::{self, Allocation as SlotAllocation, FormatTable};
use crate::common::link_adaptation::{Coding, Decoder, Format};
use crate::common::shared_channel::scheduler::options;
use crate::ofdma::config::{DownlinkModulation, UplinkModulation};
use crate::ofdma::rlc::{Framing, ModeParameters};
use crate::ofdma::rlc_am::StatusFormat;
use crate::ofdma::{
    Allocation, BlockSizes, Cell, CodeWords, ConfigError, Grid, GridParameters, Parameters, Technology, UplinkHarq,
    configured_grant, pdcp, reordering, rlc, rlc_am, rrc,
};

/// The effective code rate above which a mobile may skip decoding (TS 38.214 §5.1.3).
const HIGHEST_CODE_RATE: f64 = 0.95;

/// The processes of hybrid ARQ that a mobile has in the uplink at most (TS 38.214 §6.1).
const UPLINK_PROCESSES: usize = 16;

/// The part of a slot with this number of symbols that a data channel has.
type OfSymbols = fn(u8) -> SlotAllocation;

/// The sizes of transport blocks (TS 38.214 §5.1.3.2, §6.1.4.2).
#[derive(Debug)]
struct Sizes {
    schemes: &'static [Format],
    allocation: OfSymbols,
}

impl BlockSizes for Sizes {
    fn bits(&self, scheme: usize, layers: u8, blocks: u32, symbols: u8) -> u32 {
        tables::transport_block_bits(&self.schemes[scheme], layers.into(), blocks, (self.allocation)(symbols))
    }
}

impl Technology for Config {
    const CELL: &'static str = "an NR cell";
    const ONE_DIRECTION: &'static str = "one direction of an NR cell";

    fn parameters(&self) -> Result<Parameters, ConfigError> {
        let timeline = self.check()?;
        let config::Cell { pucch_blocks, users_per_slot, scheduler, .. } = self.cell;
        let blocks = self.cell.resource_blocks().expect("it was checked before");
        let decoder = Decoder { coding: Coding::Ldpc, gap: self.harq.gap };
        let grid = |table, total, allocation: OfSymbols| {
            let schemes = tables::schemes(table);
            let parameters = GridParameters {
                cqis: tables::cqis(table),
                efficiencies: schemes.iter().map(Format::efficiency).collect(),
                modulations: schemes.iter().map(|scheme| scheme.modulation).collect(),
                sizes: Arc::new(Sizes { schemes, allocation }),
                total,
                allocation: Allocation::Groups(1),
                codewords: CodeWords::OnAllLayers,
                elements: std::array::from_fn(|symbols| allocation(symbols as u8).resource_elements()),
                highest_code_rate: HIGHEST_CODE_RATE,
                largest_block: None,
            };
            Grid::new(&decoder, parameters)
        };
        let table = match self.mobile.modulation {
            DownlinkModulation::Qam64 => FormatTable::Qam64,
            DownlinkModulation::Qam256 => FormatTable::Qam256,
        };
        let down = grid(table, blocks, SlotAllocation::downlink);
        let table = match self.uplink.modulation {
            UplinkModulation::Qam16 | UplinkModulation::Qam64 => FormatTable::Qam64,
            UplinkModulation::Qam256 => FormatTable::Qam256,
        };
        let slot = timeline.pattern().duration().as_nanos();
        let up = grid(table, blocks - u32::from(pucch_blocks), SlotAllocation::uplink);
        Ok(Parameters {
            timeline,
            down,
            up,
            decoder,
            buffer_sizes: tables::buffer_sizes(),
            cell: Cell {
                carriers: self.cell.carriers,
                users_per_slot,
                scheduler,
                scheduler_options: options!(self.cell),
                processing: self.cell.processing,
                target_bler: self.cell.target_bler,
                step: self.cell.step,
                max_correction: self.cell.max_correction,
                delay: self.cell.delay,
                background: self.cell.background.clone(),
            },
            uplink_harq: UplinkHarq::ByGrants { processes: UPLINK_PROCESSES },
            mobile: self.mobile.clone(),
            harq: self.harq.clone(),
            downlink: self.downlink.clone(),
            uplink: self.uplink.clone(),
            configured_grant: self.uplink.configured_grant.as_ref().map(|grant| configured_grant::Parameters {
                period: grant.period.as_nanos() / slot,
                offset: grant.offset.map(|offset| offset.as_nanos() / slot),
                bytes: grant.bytes.get(),
                efficiency: tables::schemes(table)[usize::from(grant.mcs)].efficiency(),
            }),
            rlc: (&self.rlc).into(),
            pdcp: pdcp::Parameters {
                // TS 38.323 §6.2.2: 12 bits in two bytes, 18 in three.
                header: if self.pdcp.sequence_bits <= 12 { 2 } else { 3 },
                discard: self.pdcp.discard,
                queue: self.pdcp.queue.clone().unwrap_or_default(),
                reordering: Some(self.pdcp.t_reordering),
            },
            drx: self.drx.clone(),
            rrc: self.rrc.as_ref().map(|rrc| {
                let inactive = rrc.inactive.as_ref();
                let inactive = inactive.map(|it| rrc::Inactive { resume: it.resume, release: it.release });
                rrc::Parameters { inactive, ..(&rrc.connection()).into() }
            }),
            voice: None,
            repetition: None,
            conditions: self.conditions.clone(),
        })
    }
}

impl From<&config::Rlc> for rlc::Parameters {
    fn from(config: &config::Rlc) -> Self {
        match config {
            config::Rlc::Acknowledged(config) => Self {
                framing: Framing::nr_acknowledged(config.sequence_bits),
                mode: ModeParameters::Acknowledged(rlc_am::Parameters {
                    t_poll_retransmit: config.t_poll_retransmit,
                    poll_pdu: config.poll_pdu,
                    poll_byte: config.poll_byte,
                    max_retx: config.max_retx,
                    t_reordering: config.t_reassembly,
                    t_status_prohibit: config.t_status_prohibit,
                    window: window(config.sequence_bits),
                    status: if config.sequence_bits <= 12 { StatusFormat::NR_12 } else { StatusFormat::NR_18 },
                }),
            },
            config::Rlc::Unacknowledged(config) => Self {
                framing: Framing::nr_unacknowledged(config.sequence_bits),
                mode: ModeParameters::Unacknowledged(reordering::Parameters {
                    wait: config.t_reassembly,
                    window: window(config.sequence_bits),
                    has_segments: true,
                }),
            },
        }
    }
}

/// AM_Window_Size and UM_Window_Size: half of the sequence numbers (TS 38.322 §7.2).
const fn window(sequence_bits: u8) -> u64 {
    1 << (sequence_bits - 1)
}
