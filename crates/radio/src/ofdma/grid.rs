//! The resource blocks of a direction: how many a block of data takes, with which modulation and
//! code rate, and how likely it is in error.

use std::sync::Arc;

use airpath_core::{Decibel, Probability};

use super::transport_block::Sent;
use super::transport_format::{Estimate, TransportFormat};
use crate::common::link_adaptation::{
    Block, Combining, Decoder, FirstErrors, Format, Modulation, SoftBuffer, Thresholds,
};
use crate::common::slots::SYMBOLS;

/// The sizes of transport blocks.
pub trait BlockSizes: std::fmt::Debug + Send + Sync {
    /// The bits of a code word on `layers` layers, without its CRC, with scheme I_MCS in `blocks`
    /// resource blocks of a slot with `symbols` symbols for the direction.
    fn bits(&self, scheme: usize, layers: u8, blocks: u32, symbols: u8) -> u32;
}

/// On how many layers a code word lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeWords {
    /// One on each layer (TS 36.211 §6.3.3.2 for two layers).
    OnEachLayer,
    /// One on all layers, up to four (TS 38.211 §7.3.1.3).
    OnAllLayers,
}

impl CodeWords {
    const fn layers(self, layers: u8) -> u8 {
        match self {
            Self::OnEachLayer => 1,
            Self::OnAllLayers => layers,
        }
    }
}

/// Which numbers of resource blocks an allocation can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Groups of this number (type 0, TS 36.213 §7.1.6.1); the last group may be smaller. Groups
    /// of one are an allocation of type 1 of NR (TS 38.214 §5.1.2.2.2, §6.1.2.2.2).
    Groups(u32),
    /// Products of powers of 2, 3 and 5 (DFT precoding, TS 36.211 §5.3.3).
    Smooth,
}

impl Allocation {
    /// The least allocation of at least `blocks`, if it is at most `left`; otherwise the largest
    /// that is.
    fn round(self, blocks: u32, left: u32) -> u32 {
        match self {
            Self::Groups(group) => blocks.next_multiple_of(group).min(left),
            Self::Smooth => (blocks..=left)
                .find(|blocks| is_smooth(*blocks))
                .or_else(|| (1..=left.min(blocks)).rev().find(|blocks| is_smooth(*blocks)))
                .unwrap_or(0),
        }
    }
}

fn is_smooth(mut number: u32) -> bool {
    for factor in [2, 3, 5] {
        while number.is_multiple_of(factor) && number > 0 {
            number /= factor;
        }
    }
    number == 1
}

/// What makes up a [`Grid`].
#[derive(Debug)]
pub struct GridParameters<'a> {
    /// The formats of CQI 1, 2, ….
    pub cqis: &'a [Format],
    /// Bits a symbol of each scheme, from I_MCS 0.
    pub efficiencies: Vec<f64>,
    /// The modulation of each scheme.
    pub modulations: Vec<Modulation>,
    /// Sizes with these schemes.
    pub sizes: Arc<dyn BlockSizes>,
    /// Resource blocks.
    pub total: u32,
    /// What allocations they have.
    pub allocation: Allocation,
    /// Code words of several layers.
    pub codewords: CodeWords,
    /// Resource elements of a block that carry data, by the symbols of the slot.
    pub elements: [u32; SYMBOLS as usize + 1],
    /// The effective code rate above which a mobile may skip decoding. The base station is taken
    /// to avoid it in the uplink, too.
    pub highest_code_rate: f64,
    /// Bits of the largest block that a mobile can have, if it is less than the resource blocks
    /// carry.
    pub largest_block: Option<u32>,
}

/// The resource blocks of a direction, and the transport formats in them.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Resource blocks.
    pub total: u32,
    allocation: Allocation,
    codewords: CodeWords,
    elements: [u32; SYMBOLS as usize + 1],
    highest_code_rate: f64,
    largest_block: Option<u32>,
    modulations: Vec<Modulation>,
    /// The last scheme with QPSK.
    last_qpsk: usize,
    sizes: Arc<dyn BlockSizes>,
    /// Bits a symbol of each scheme.
    efficiencies: Vec<f64>,
    thresholds: Thresholds,
    /// Of each CQI, from CQI 1: the SINR that it stands for, and its efficiency.
    cqis: Vec<(f64, f64)>,
}

impl Grid {
    /// The resource blocks of a direction.
    pub fn new(decoder: &Decoder, parameters: GridParameters<'_>) -> Self {
        let GridParameters {
            cqis,
            efficiencies,
            modulations,
            sizes,
            total,
            allocation,
            codewords,
            elements,
            highest_code_rate,
            largest_block,
        } = parameters;
        let symbols = total * elements[usize::from(SYMBOLS)];
        let target = Probability::new(CQI_ERRORS).expect("within range");
        let thresholds = Thresholds::of_formats(decoder, cqis, symbols, target);
        let cqis = cqis.iter().enumerate();
        let cqis = cqis.map(|(index, format)| (thresholds.required(index).get(), format.efficiency())).collect();
        Self {
            total,
            allocation,
            codewords,
            elements,
            highest_code_rate,
            largest_block,
            last_qpsk: modulations.iter().rposition(|modulation| *modulation == Modulation::Qpsk).unwrap_or(0),
            modulations,
            sizes,
            efficiencies,
            thresholds,
            cqis,
        }
    }

    /// The CQI at a SINR in decibels, if this number of layers share the power.
    pub fn cqi(&self, sinr: f64, layers: u8) -> u8 {
        self.thresholds.cqi(of_layer(sinr, layers))
    }

    /// The resource blocks of a whole slot with which a block of the lowest scheme has this number
    /// of bytes, or all, and the SINR in decibels at which it may be sent.
    pub fn least_allocation(&self, bytes: u32, decoder: &Decoder) -> (u32, f64) {
        let bits = |blocks| self.sizes.bits(0, 1, blocks, SYMBOLS);
        let blocks = (1..=self.total).find(|blocks| bits(*blocks) >= 8 * bytes).unwrap_or(self.total);
        let symbols = blocks * self.elements(SYMBOLS);
        let block = Block { modulation: self.modulations[0], bits: bits(blocks), symbols };
        let target = Probability::new(CQI_ERRORS).expect("within range");
        (blocks, decoder.required(&block, target).get())
    }

    /// Bits a symbol that a CQI stands for.
    pub fn efficiency_of(&self, cqi: u8) -> f64 {
        usize::from(cqi).checked_sub(1).map_or(0.0, |index| self.cqis[index].1)
    }

    /// The SINR in decibels that a CQI stands for. CQI 0 stands for [`OUT_OF_RANGE`] less than
    /// CQI 1.
    #[inline]
    pub fn sinr_of(&self, cqi: u8) -> f64 {
        usize::from(cqi).checked_sub(1).map_or(self.cqis[0].0 - OUT_OF_RANGE, |index| self.cqis[index].0)
    }

    /// By how many decibels a SINR is above that of the highest CQI.
    pub fn excess(&self, sinr: f64) -> f64 {
        self.cqis.last().map_or(0.0, |(highest, _)| sinr - highest)
    }

    /// Bits a symbol at a SINR in decibels: between those of the CQIs interpolated, and at most
    /// those of the highest.
    #[inline]
    pub fn efficiency_at(&self, sinr: f64) -> f64 {
        let above = self.cqis.partition_point(|(at, _)| *at <= sinr);
        match above {
            // Far below capacity the rate is proportional to the power.
            0 => self.cqis[0].1 * libm::exp10((sinr - self.cqis[0].0) / 10.0),
            above if above == self.cqis.len() => self.cqis[above - 1].1,
            above => {
                let ((x0, y0), (x1, y1)) = (self.cqis[above - 1], self.cqis[above]);
                y0 + (y1 - y0) * (sinr - x0) / (x1 - x0)
            }
        }
    }

    /// One layer at a SINR in decibels.
    #[inline]
    pub fn estimate(&self, sinr: f64) -> Estimate {
        Estimate { sinr, ..Estimate::of(self.efficiency_at(sinr)) }
    }

    /// Whether more bits a symbol, or fewer, would not change the scheme: they are those of the
    /// highest CQI, or at most those of I_MCS 0.
    #[inline]
    pub fn is_limit(&self, efficiency: f64, more: bool) -> bool {
        if more {
            self.cqis.last().is_some_and(|(_, highest)| efficiency >= *highest)
        } else {
            self.efficiencies.first().is_some_and(|lowest| efficiency <= *lowest)
        }
    }

    /// About as many resource blocks of a whole slot as carry this number of bytes.
    #[inline]
    pub fn blocks_for(&self, bytes: u64, efficiency: f64) -> u32 {
        let bits = efficiency * f64::from(self.elements(SYMBOLS));
        (bytes.saturating_mul(8) as f64 / bits).ceil() as u32
    }

    /// The transport format for at least `bytes`, or for as many as fit into `left` resource
    /// blocks, in a slot with this number of symbols for the direction.
    #[inline]
    pub fn allocate(&self, estimate: Estimate, bytes: u64, left: u32, symbols: u8) -> Option<TransportFormat> {
        // Those of NR do not rise everywhere (TS 38.214 Table 5.1.3.1-1: 16 and 17).
        let best = self.efficiencies.iter().rposition(|it| *it <= estimate.efficiency).unwrap_or(0);
        let best = if estimate.is_qpsk_only { best.min(self.last_qpsk) } else { best };
        let mut formats =
            (0..=best).rev().filter_map(|scheme| self.allocate_with(scheme, &estimate, bytes, left, symbols));
        if self.largest_block.is_none() {
            return formats.next();
        }
        // A scheme with lower efficiency may have the larger of the blocks that are allowed.
        let mut largest: Option<TransportFormat> = None;
        for format in formats {
            if u64::from(format.bits) >= bytes.saturating_mul(8) {
                return Some(format);
            }
            if largest.is_none_or(|largest| format.bits > largest.bits) {
                largest = Some(format);
            }
        }
        largest
    }

    /// The transport format with a given scheme, unless its code rate is too high.
    fn allocate_with(
        &self,
        scheme: usize,
        estimate: &Estimate,
        bytes: u64,
        left: u32,
        symbols: u8,
    ) -> Option<TransportFormat> {
        let &Estimate { layers, mode, .. } = estimate;
        let modulation = self.modulations[scheme];
        let wanted = bytes.saturating_mul(8);
        let block_layers = self.codewords.layers(layers);
        let count = u32::from(layers / block_layers);
        let coded_per_block = self.elements(symbols) * modulation.bits() * u32::from(block_layers);
        let left = match self.largest_block {
            None => left,
            Some(largest) => {
                let fits = |blocks: &u32| self.sizes.bits(scheme, block_layers, *blocks, symbols) * count <= largest;
                (1..=left).take_while(fits).count() as u32
            }
        };
        // Sizes rise with the blocks. Those with too high a code rate count as zero.
        let size = |blocks: u32| {
            let bits = self.sizes.bits(scheme, block_layers, blocks, symbols);
            let coded = f64::from(blocks * coded_per_block);
            if f64::from(bits + CRC) > self.highest_code_rate * coded { 0 } else { u64::from(bits * count) }
        };
        let needed = match left {
            0 => return None,
            left if size(left) <= wanted => left,
            left => {
                let (mut low, mut high) = (0, left);
                while low + 1 < high {
                    let middle = u32::midpoint(low, high);
                    *(if size(middle) < wanted { &mut low } else { &mut high }) = middle;
                }
                high
            }
        };
        let blocks = self.allocation.round(needed, left);
        let bits = if blocks > 0 { size(blocks) as u32 } else { 0 };
        (bits > 0).then_some(TransportFormat { scheme: scheme as u8, modulation, blocks, layers, symbols, bits, mode })
    }

    /// Resource elements of a block that carry data, in a slot with this number of symbols for the
    /// direction.
    #[inline]
    fn elements(&self, symbols: u8) -> u32 {
        self.elements[usize::from(symbols)]
    }

    /// Symbols on all layers that carry a code word of this format in a slot.
    fn code_word_symbols(&self, format: &TransportFormat, symbols: u8) -> u32 {
        format.blocks * self.elements(symbols) * u32::from(self.codewords.layers(format.layers))
    }

    /// One code word, as it is sent first.
    fn block(&self, format: &TransportFormat) -> Block {
        let count = u32::from(format.layers / self.codewords.layers(format.layers));
        Block {
            modulation: format.modulation,
            bits: format.bits / count,
            symbols: self.code_word_symbols(format, format.symbols),
        }
    }

    /// The receiver's memory of a block. If each layer has a code word, all share one fate here.
    pub fn soft_buffer(&self, format: &TransportFormat, decoder: Decoder, combining: Combining) -> SoftBuffer {
        SoftBuffer::new(decoder, combining, self.block(format))
    }

    /// The probability that a block cannot be decoded after one more transmission at a SINR in
    /// decibels, in a slot with this number of symbols; `bler` is that of the first one, if it does
    /// not follow from the SINR.
    #[inline]
    pub fn block_errors(
        &self,
        sent: &mut Sent,
        symbols: u8,
        sinr: f64,
        bler: Option<Probability>,
        decoder: &Decoder,
        known: &FirstErrors,
    ) -> Probability {
        let symbols = self.code_word_symbols(&sent.format, symbols);
        match bler {
            None => sent.soft.receive_known(symbols, of_layer(sinr, sent.format.layers), known),
            Some(bler) => {
                sent.receptions += 1;
                if sent.receptions == 1 {
                    return bler;
                }
                // The SINR of that probability takes a search, so only retransmissions pay for it.
                let sinr = decoder.required(&self.block(&sent.format), bler);
                if sent.receptions == 2 {
                    sent.soft.receive(symbols, sinr);
                }
                sent.soft.receive(symbols, sinr)
            }
        }
    }
}

/// The SINR of each of this number of layers.
fn of_layer(sinr: f64, layers: u8) -> Decibel {
    // 3.0 dB less for two, 6.0 dB for four.
    let share = match layers {
        1 => 0.0,
        2 => 10.0 * std::f64::consts::LOG10_2,
        layers => 10.0 * libm::log10(f64::from(layers)),
    };
    Decibel::new(sinr - share).expect("a finite ratio")
}

/// Bits of the check sum of a transport block (TS 36.212 §5.3.2.1, TS 38.212 §7.2.1).
const CRC: u32 = 24;

/// The share of blocks in error at most which a CQI promises (TS 36.213 §7.2.3, TS 38.214
/// §5.2.2.1).
const CQI_ERRORS: f64 = 0.1;

/// CQI 0, "out of range", is taken for this number of decibels below CQI 1: a choice.
const OUT_OF_RANGE: f64 = 2.0;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::nr::tables::{self, FormatTable};
    use crate::ofdma::Technology;
    use crate::{lte, nr};

    /// The parameters of a preset with other keys of `cell`.
    pub fn parameters<T: Technology + serde::de::DeserializeOwned>(
        preset: &str,
        more: &str,
    ) -> crate::ofdma::Parameters {
        let preset: toml::Table = preset.parse().expect("TOML");
        let mut bearer = preset["bearer"].as_table().expect("a table").clone();
        bearer.remove("model");
        let more: toml::Table = more.parse().expect("TOML");
        bearer["cell"].as_table_mut().expect("a table").extend(more);
        let config: T = bearer.try_into().expect("a configuration");
        config.parameters().expect("sound parameters")
    }

    #[test]
    fn no_transport_format_has_a_code_rate_above_the_limit() {
        let lte = |more| parameters::<lte::Config>(include_str!("../../../../presets/lte-10mhz.toml"), more);
        let nr = |more| parameters::<nr::Config>(include_str!("../../../../presets/nr-n28-fdd-20mhz.toml"), more);
        let cells = [
            lte("bandwidth = \"1.4 MHz\"\npucch_blocks = 1\ncontrol_symbols = 2"),
            lte(""),
            lte("control_symbols = 3"),
            nr("bandwidth = \"5 MHz\""),
            nr(""),
        ];
        for (parameters, limit) in cells.iter().zip([0.931, 0.931, 0.931, 0.95, 0.95]) {
            for grid in [&parameters.down, &parameters.up] {
                assert_eq!(grid.highest_code_rate, limit);
                for (efficiency, left) in (1..120).flat_map(|n| (1..=grid.total).map(move |left| (n, left))) {
                    let estimate = Estimate::of(0.05 * f64::from(efficiency));
                    for bytes in [3, 15, 41, 300, 100_000] {
                        let format = grid.allocate(estimate, bytes, left, SYMBOLS).expect("a format");
                        let coded = format.blocks * grid.elements(SYMBOLS) * format.modulation.bits();
                        let rate = f64::from(format.bits + CRC) / f64::from(coded);
                        assert!(rate <= grid.highest_code_rate && format.blocks <= left, "{format:?}: {rate}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_outer_loop_of_presets_has_a_step_of_a_thousandth_of_a_cqi() {
        let lte = parameters::<lte::Config>(include_str!("../../../../presets/lte-20mhz.toml"), "");
        let nr = parameters::<nr::Config>(include_str!("../../../../presets/nr-n78-100mhz-sa.toml"), "");
        for (parameters, apart) in [(lte, 2.0), (nr, 2.4)] {
            let cqis = &parameters.down.cqis;
            let distance = (cqis[14].0 - cqis[0].0) / 14.0;
            assert!((distance - apart).abs() < 0.05, "{distance}");
            assert!((parameters.cell.step.get() / distance - 0.001).abs() < 0.0002);
        }
    }

    #[test]
    fn a_scheme_of_nr_has_the_efficiency_of_its_table() {
        let nr = parameters::<nr::Config>(include_str!("../../../../presets/nr-n28-fdd-20mhz.toml"), "");
        let schemes = tables::schemes(FormatTable::Qam256);
        for (scheme, format) in schemes.iter().enumerate() {
            let estimate = Estimate::of(format.efficiency());
            let chosen = nr.down.allocate(estimate, 100_000, nr.down.total, SYMBOLS).expect("a format");
            assert_eq!(usize::from(chosen.scheme), scheme);
        }
    }
}
