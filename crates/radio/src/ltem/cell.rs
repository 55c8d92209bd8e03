//! What LTE-M gives to the cell that it shares with LTE and NR.

use std::sync::Arc;

use airpath_core::Decibel;

use super::config::{Config, ModeB};
use crate::common::link_adaptation::{Coding, Decoder, Modulation};
use crate::common::shared_channel::scheduler::options;
use crate::common::slots::{Offsets, SYMBOLS, SlotPattern, Timeline};
use crate::lte::cell::{
    HIGHEST_CODE_RATE, PDCP_HEADER, SUBCARRIERS, Sizes, UPLINK_REFERENCE_SYMBOLS, downlink_elements,
};
use crate::lte::tables::{self, CqiTable, Mcs, McsTable, TTI};
use crate::ofdma::config::{DownlinkModulation, Mobile};
use crate::ofdma::repetition::{self, Mode, Repetitions, control_repetitions};
use crate::ofdma::{
    Allocation, Cell, CodeWords, ConfigError, Grid, GridParameters, Parameters, Technology, UplinkHarq, pdcp,
};

/// Resource blocks of a narrowband (TS 36.211 §6.2.7).
const BLOCKS: u32 = 6;
/// Bits of the largest transport block of category M1 (TS 36.306 Tables 4.1A-1 and 4.1A-2).
const LARGEST_BLOCK: u32 = 1000;
/// The largest I_TBS: I_MCS has four bits (TS 36.213 §7.1.7, §8.6; recalled).
const LARGEST_I_TBS: u8 = 14;
/// Processes of hybrid ARQ in mode B (TS 36.213 §7; recalled).
const PROCESSES_OF_B: u8 = 2;

/// The repetitions of PDSCH and PUSCH that the DCI of mode B can have, by the most that RRC
/// configures (TS 36.213 Tables 7.1.11-2, 8.2c).
const REPETITIONS_OF_B: [[u16; 8]; 8] = [
    [1, 4, 8, 16, 32, 64, 128, 192],
    [4, 8, 16, 32, 64, 128, 192, 256],
    [4, 16, 32, 64, 128, 192, 256, 384],
    [4, 16, 64, 128, 192, 256, 384, 512],
    [8, 32, 128, 192, 256, 384, 512, 768],
    [4, 8, 16, 64, 128, 256, 512, 1024],
    [4, 16, 64, 256, 512, 768, 1024, 1536],
    [4, 16, 64, 128, 256, 512, 1024, 2048],
];

/// The repetitions of a transfer in mode B where `wanted` are enough and those of the mode are
/// `most`.
fn repetitions_of_b(wanted: u16, most: u16) -> u16 {
    let all = REPETITIONS_OF_B.iter().find(|all| all.contains(&most)).expect("the parameters were checked");
    all.iter().copied().find(|repetitions| *repetitions >= wanted).unwrap_or(most).min(most)
}

/// The schemes of a table that category M1 has.
fn schemes(table: McsTable) -> &'static [Mcs] {
    let all = tables::schemes(table);
    let has = |scheme: &&Mcs| scheme.modulation <= Modulation::Qam16 && scheme.i_tbs <= LARGEST_I_TBS;
    &all[..all.iter().take_while(has).count()]
}

/// By how many decibels repetitions raise the SINR.
fn gain(repetitions: u16, loss: Decibel) -> f64 {
    match repetitions {
        1 => 0.0,
        repetitions => (10.0 * libm::log10(repetitions.into()) - loss.get()).max(0.0),
    }
}

impl Config {
    fn repetition(&self) -> repetition::Parameters {
        let loss = self.coverage.repetition_loss;
        let transfer = |control: u16, downlink: u16, uplink: u16| Repetitions {
            control: control.into(),
            downlink: downlink.into(),
            uplink: uplink.into(),
            gain: [downlink, uplink].map(|repetitions| gain(repetitions, loss)),
        };
        let a = &self.coverage.a;
        let in_a = transfer(a.control, a.downlink, a.uplink);
        let mode_a = Mode {
            lowest: self.coverage.b.as_ref().map_or(f64::NEG_INFINITY, |b| b.below.get()),
            transfers: vec![in_a],
            feedback: a.feedback.into(),
            processes: self.harq.processes,
            is_qpsk_only: false,
            promotion: self.rrc.promotion,
        };
        let mode_b = self.coverage.b.as_ref().map(|b| {
            let ModeB { promotion, control, downlink, uplink, feedback, .. } = *b;
            let better = Repetitions {
                control: control_repetitions(a.control.into(), control.into()),
                ..transfer(a.control, repetitions_of_b(a.downlink, downlink), repetitions_of_b(a.uplink, uplink))
            };
            Mode {
                lowest: f64::NEG_INFINITY,
                transfers: vec![better, transfer(control, downlink, uplink)],
                feedback: feedback.into(),
                processes: self.harq.processes.min(PROCESSES_OF_B),
                is_qpsk_only: true,
                promotion,
            }
        });
        repetition::Parameters {
            modes: [mode_a].into_iter().chain(mode_b).collect(),
            control_blocks: self.cell.control_blocks.into(),
            reaction: self.reaction().into(),
        }
    }

    /// Subframes from the last of what the base station received to the first that depends on it.
    fn reaction(&self) -> u32 {
        (self.cell.processing.as_nanos() / TTI.as_nanos()) as u32 + 1
    }
}

impl Technology for Config {
    const CELL: &'static str = "a narrowband of LTE-M";
    const ONE_DIRECTION: &'static str = "one direction of a narrowband of LTE-M";

    fn parameters(&self) -> Result<Parameters, ConfigError> {
        self.check()?;
        let decoder = Decoder { coding: Coding::Turbo, gap: self.harq.gap };
        let grid = |schemes: &'static [Mcs], allocation, elements: u32| {
            let symbols = f64::from(BLOCKS * elements);
            let bits = |scheme: &Mcs| f64::from(tables::transport_block_bits(scheme.i_tbs, BLOCKS));
            let parameters = GridParameters {
                cqis: tables::cqis(CqiTable::Qam64),
                efficiencies: schemes.iter().map(|scheme| bits(scheme) / symbols).collect(),
                modulations: schemes.iter().map(|scheme| scheme.modulation).collect(),
                sizes: Arc::new(Sizes(schemes)),
                total: BLOCKS,
                allocation,
                codewords: CodeWords::OnEachLayer,
                elements: std::array::from_fn(|count| if count == usize::from(SYMBOLS) { elements } else { 0 }),
                highest_code_rate: HIGHEST_CODE_RATE,
                largest_block: Some(LARGEST_BLOCK),
            };
            Grid::new(&decoder, parameters)
        };
        let uplink_elements = SUBCARRIERS * (u32::from(SYMBOLS) - UPLINK_REFERENCE_SYMBOLS);
        let reaction = self.reaction();
        let offsets = Offsets { feedback_to_attempt: reaction, received_to_grant: reaction, ..Offsets::LTE_FDD };
        Ok(Parameters {
            timeline: Timeline::new(SlotPattern::fdd(TTI), offsets),
            down: grid(
                schemes(McsTable::PdschQam64),
                Allocation::Groups(1),
                downlink_elements(SYMBOLS, self.cell.control_symbols),
            ),
            up: grid(schemes(McsTable::Pusch), Allocation::Smooth, uplink_elements),
            decoder,
            buffer_sizes: tables::buffer_sizes(),
            cell: Cell {
                // The room for MPDCCH is the limit.
                carriers: 1,
                users_per_slot: BLOCKS as u8,
                scheduler: self.cell.scheduler,
                scheduler_options: options!(self.cell),
                processing: self.cell.processing,
                target_bler: self.cell.target_bler,
                step: self.cell.step,
                max_correction: self.cell.max_correction,
                delay: self.cell.delay,
                background: None,
            },
            uplink_harq: UplinkHarq::ByGrants { processes: self.harq.processes.into() },
            mobile: Mobile {
                layers: 1,
                modulation: DownlinkModulation::Qam64,
                cqi_period: self.mobile.cqi_period,
                cqi_delay: self.mobile.cqi_delay,
                processing: self.mobile.processing,
                duplex: self.mobile.duplex,
            },
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
            rrc: Some((&self.rrc).into()),
            voice: None,
            repetition: Some(self.repetition()),
            conditions: self.conditions.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_of_mode_b_have_repetitions_of_its_table() {
        let cases = [(1, 32, 1), (2, 32, 4), (16, 192, 16), (1, 256, 4), (1, 768, 8), (16, 768, 32), (32, 32, 32)];
        for (wanted, most, expected) in cases {
            assert_eq!(repetitions_of_b(wanted, most), expected, "{wanted} of {most}");
        }
    }

    #[test]
    fn category_m1_has_four_bits_of_i_mcs() {
        let down: Vec<u8> = schemes(McsTable::PdschQam64).iter().map(|scheme| scheme.i_tbs).collect();
        assert_eq!(down, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10, 11, 12, 13, 14]);
        let up = schemes(McsTable::Pusch);
        assert_eq!((up.len(), up.last().map(|scheme| scheme.i_tbs)), (16, Some(14)));
    }
}
