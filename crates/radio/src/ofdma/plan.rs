//! What all mobiles of a cell have in common: resource blocks, transport formats, block errors.

use airpath_core::{Decibel, Direction, Instant, Probability, Span};

use super::config::{Config, DownlinkModulation, UplinkModulation};
use super::harq::Sent;
use super::tables::{self, CqiTable, Mcs, McsTable, TTI};
use super::transport_format::{Estimate, TransportFormat};
use crate::common::link_adaptation::{Block, Coding, Combining, Decoder, Modulation, SoftBuffer, Thresholds};

/// The parameters of a cell, prepared, and the resource blocks of the uplink that are promised.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The resource blocks of the downlink.
    pub down: Grid,
    /// Those of the uplink.
    pub up: Grid,
    decoder: Decoder,
    combining: Combining,
    pub users_per_tti: usize,
    /// From the end of what the base station heard to what it sends about it.
    pub processing: Span,
    pub mobile_processing: Span,
    pub max_transmissions: u8,
    pub nack_to_ack: Probability,
    pub dtx_missed: Probability,
    /// Bytes of a grant for a request.
    pub first_grant: u64,
    /// Interval and bytes of grants without a request.
    pub prescheduling: Option<(Span, u64)>,
    /// Resource blocks of the uplink that are promised, with the numbers of their subframes.
    promised: [(u64, u32); PROMISED],
}

/// The subframes for which resource blocks of the uplink can be promised at a time: a power of two
/// above the round trip, which is the furthest ahead.
const PROMISED: usize = 16;

impl Plan {
    /// The plan of a cell.
    pub fn new(config: &Config) -> Self {
        let cell = &config.cell;
        let channel = tables::channel(cell.bandwidth).expect("it was checked before");
        let decoder = Decoder { coding: Coding::Turbo, gap: config.harq.gap };
        let (cqis, schemes) = match config.mobile.modulation {
            DownlinkModulation::Qam64 => (CqiTable::Qam64, McsTable::PdschQam64),
            DownlinkModulation::Qam256 => (CqiTable::Qam256, McsTable::PdschQam256),
        };
        let highest = match config.uplink.modulation {
            UplinkModulation::Qam16 => Modulation::Qam16,
            UplinkModulation::Qam64 => Modulation::Qam64,
        };
        let control = u32::from(cell.control_symbols);
        let down = Grid::new(
            &decoder,
            (cqis, tables::schemes(schemes)),
            channel.resource_blocks,
            Allocation::Groups(channel.group),
            SUBCARRIERS * (SYMBOLS - control) - REFERENCE_ELEMENTS,
        );
        let schemes = tables::schemes(McsTable::Pusch);
        let count = schemes.iter().take_while(|scheme| scheme.modulation <= highest).count();
        let up = Grid::new(
            &decoder,
            (CqiTable::Qam64, &schemes[..count]),
            channel.resource_blocks - u32::from(cell.pucch_blocks),
            Allocation::Smooth,
            SUBCARRIERS * (SYMBOLS - UPLINK_REFERENCE_SYMBOLS),
        );
        let prescheduling = config.uplink.prescheduling.as_ref();
        Self {
            down,
            up,
            decoder,
            combining: config.harq.combining,
            users_per_tti: cell.users_per_tti.into(),
            processing: cell.processing,
            mobile_processing: config.mobile.processing,
            max_transmissions: config.harq.max_transmissions,
            nack_to_ack: config.harq.nack_to_ack,
            dtx_missed: config.harq.dtx_missed,
            first_grant: config.uplink.first_grant.get(),
            prescheduling: prescheduling.map(|it| (it.interval, it.bytes.get())),
            promised: [(0, 0); PROMISED],
        }
    }

    /// The resource blocks of a direction.
    pub const fn grid(&self, direction: Direction) -> &Grid {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// Resource blocks of the uplink that are not promised in the subframe that begins at `at`.
    #[inline]
    pub fn left_up(&self, at: Instant) -> u32 {
        let number = at.as_nanos() / TTI.as_nanos();
        let (promised_for, blocks) = self.promised[number as usize % PROMISED];
        if promised_for == number { self.up.total.saturating_sub(blocks) } else { self.up.total }
    }

    /// Promises resource blocks of the uplink in the subframe that begins at `at`.
    #[inline]
    pub fn reserve_up(&mut self, at: Instant, blocks: u32) {
        let number = at.as_nanos() / TTI.as_nanos();
        let promised = &mut self.promised[number as usize % PROMISED];
        if promised.0 == number {
            promised.1 += blocks
        } else {
            *promised = (number, blocks)
        }
        debug_assert!(promised.1 <= self.up.total, "{} of {} resource blocks", promised.1, self.up.total);
    }
}

/// Subcarriers of a resource block, and OFDM symbols of a subframe with the normal cyclic prefix
/// (TS 36.211 §6.2.3).
const SUBCARRIERS: u32 = 12;
const SYMBOLS: u32 = 14;
/// Resource elements of a block pair that carry the reference signals of two antenna ports, outside
/// the first symbol (TS 36.211 §6.10.1.2).
const REFERENCE_ELEMENTS: u32 = 12;
/// Symbols of a subframe of the uplink that carry reference signals (TS 36.211 §5.5.2.1).
const UPLINK_REFERENCE_SYMBOLS: u32 = 2;

/// Which numbers of resource blocks an allocation can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allocation {
    /// Groups of this number (type 0, TS 36.213 §7.1.6.1); the last group may be smaller.
    Groups(u32),
    /// Products of powers of 2, 3 and 5 (TS 36.211 §5.3.3).
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

/// The resource blocks of a direction, and the transport formats in them.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Resource blocks.
    pub total: u32,
    allocation: Allocation,
    /// Resource elements of a block that carry data.
    symbols: u32,
    schemes: &'static [Mcs],
    /// Bits a symbol of each scheme over all resource blocks.
    efficiencies: Vec<f64>,
    thresholds: Thresholds,
    /// Of each CQI, from CQI 1: the SINR that it stands for, and its efficiency.
    cqis: Vec<(f64, f64)>,
}

impl Grid {
    fn new(
        decoder: &Decoder,
        (cqi_table, schemes): (CqiTable, &'static [Mcs]),
        total: u32,
        allocation: Allocation,
        symbols: u32,
    ) -> Self {
        let efficiency =
            |scheme: &Mcs| f64::from(tables::transport_block_bits(scheme.i_tbs, total)) / f64::from(total * symbols);
        let formats = tables::cqis(cqi_table);
        let target = Probability::new(CQI_ERRORS).expect("within range");
        let thresholds = Thresholds::of_formats(decoder, formats, total * symbols, target);
        let cqis = formats.iter().enumerate();
        let cqis = cqis.map(|(index, format)| (thresholds.required(index).get(), format.efficiency())).collect();
        let efficiencies = schemes.iter().map(efficiency).collect();
        Self { total, allocation, symbols, schemes, efficiencies, thresholds, cqis }
    }

    /// The CQI at a SINR in decibels, if this number of layers share the power.
    pub fn cqi(&self, sinr: f64, layers: u8) -> u8 {
        self.thresholds.cqi(of_layer(sinr, layers))
    }

    /// Bits a symbol that a CQI stands for.
    pub fn efficiency_of(&self, cqi: u8) -> f64 {
        usize::from(cqi).checked_sub(1).map_or(0.0, |index| self.cqis[index].1)
    }

    /// Bits a symbol at the SINR that a CQI stands for, plus a correction in decibels: between the
    /// CQIs interpolated. CQI 0 stands for [`OUT_OF_RANGE`] less than CQI 1.
    #[inline]
    pub fn corrected_efficiency(&self, cqi: u8, correction: f64) -> f64 {
        let at = match usize::from(cqi).checked_sub(1) {
            Some(index) if correction == 0.0 => return self.cqis[index].1,
            Some(index) => self.cqis[index].0 + correction,
            None => self.cqis[0].0 - OUT_OF_RANGE + correction,
        };
        let above = self.cqis.partition_point(|(sinr, _)| *sinr <= at);
        match above {
            // Far below capacity the rate is proportional to the power.
            0 => self.cqis[0].1 * libm::exp10((at - self.cqis[0].0) / 10.0),
            above => {
                let upper = above.min(self.cqis.len() - 1);
                let ((x0, y0), (x1, y1)) = (self.cqis[upper - 1], self.cqis[upper]);
                y0 + (y1 - y0) * (at - x0) / (x1 - x0)
            }
        }
    }

    /// The transport format for at least `bytes`, or for as many as fit into `left` resource
    /// blocks.
    #[inline]
    pub fn allocate(&self, estimate: Estimate, bytes: u64, left: u32) -> Option<TransportFormat> {
        let best = self.efficiencies.partition_point(|it| *it <= estimate.efficiency).saturating_sub(1);
        (0..=best).rev().find_map(|scheme| self.allocate_with(scheme, estimate.layers, bytes, left))
    }

    /// The transport format with a given scheme, unless its code rate is too high.
    fn allocate_with(&self, scheme: usize, layers: u8, bytes: u64, left: u32) -> Option<TransportFormat> {
        let Mcs { modulation, i_tbs } = self.schemes[scheme];
        let bits = bytes.saturating_mul(8).div_ceil(layers.into());
        // Sizes rise with the blocks. Those with too high a code rate count as zero.
        let size = |blocks: u32| {
            let bits = tables::transport_block_bits(i_tbs, blocks);
            let coded = blocks * self.symbols * modulation.bits();
            if f64::from(bits + CRC) > HIGHEST_CODE_RATE * f64::from(coded) { 0 } else { u64::from(bits) }
        };
        let needed = match left {
            0 => return None,
            left if size(left) <= bits => left,
            left => {
                let (mut low, mut high) = (0, left);
                while low + 1 < high {
                    let middle = u32::midpoint(low, high);
                    *(if size(middle) < bits { &mut low } else { &mut high }) = middle;
                }
                high
            }
        };
        let blocks = self.allocation.round(needed, left);
        let bits = size(blocks) as u32 * u32::from(layers);
        (bits > 0).then_some(TransportFormat { scheme: scheme as u8, modulation, blocks, layers, bits })
    }

    /// The block of one layer.
    fn block(&self, format: &TransportFormat) -> Block {
        Block {
            modulation: format.modulation,
            bits: format.bits / u32::from(format.layers),
            symbols: format.blocks * self.symbols,
        }
    }

    /// The receiver's memory of a block. With two layers, their two blocks share one fate here.
    pub fn soft_buffer(&self, format: &TransportFormat, plan: &Plan) -> SoftBuffer {
        SoftBuffer::new(plan.decoder, plan.combining, self.block(format))
    }

    /// The probability that a block cannot be decoded after one more transmission at a SINR in
    /// decibels; `bler` is that of the first one, if it does not follow from the SINR.
    #[inline]
    pub fn block_errors(&self, sent: &mut Sent, sinr: f64, bler: Option<Probability>, plan: &Plan) -> Probability {
        let symbols = sent.format.blocks * self.symbols;
        match bler {
            None => sent.soft.receive(symbols, of_layer(sinr, sent.format.layers)),
            Some(bler) => {
                sent.receptions += 1;
                if sent.receptions == 1 {
                    return bler;
                }
                // The SINR of that probability takes a search, so only retransmissions pay for it.
                let sinr = plan.decoder.required(&self.block(&sent.format), bler);
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
    // 3.0 dB for two.
    let share = if layers == 2 { 10.0 * std::f64::consts::LOG10_2 } else { 0.0 };
    Decibel::new(sinr - share).expect("a finite ratio")
}

/// The effective code rate above which a mobile may skip decoding (TS 36.213 §7.1.7). The base
/// station is taken to avoid it in the uplink, too.
const HIGHEST_CODE_RATE: f64 = 0.931;

/// Bits of the check sum of a transport block (TS 36.212 §5.3.2.1).
const CRC: u32 = 24;

/// The share of blocks in error at most which a CQI promises (TS 36.213 §7.2.3).
const CQI_ERRORS: f64 = 0.1;

/// CQI 0, "out of range", is taken for this number of decibels below CQI 1: a choice.
const OUT_OF_RANGE: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(more: &str) -> Plan {
        let preset: toml::Table = include_str!("../../../../presets/lte-10mhz.toml").parse().expect("TOML");
        let mut bearer = preset["bearer"].as_table().expect("a table").clone();
        bearer.remove("model");
        let more: toml::Table = more.parse().expect("TOML");
        bearer["cell"].as_table_mut().expect("a table").extend(more);
        Plan::new(&bearer.try_into().expect("a configuration"))
    }

    #[test]
    fn no_transport_format_has_a_code_rate_above_the_limit() {
        for more in ["bandwidth = \"1.4 MHz\"\npucch_blocks = 1", "", "control_symbols = 3"] {
            let plan = plan(more);
            for grid in [&plan.down, &plan.up] {
                for (efficiency, left) in (1..120).flat_map(|n| (1..=grid.total).map(move |left| (n, left))) {
                    let estimate = Estimate { efficiency: 0.05 * f64::from(efficiency), layers: 1 };
                    for bytes in [3, 15, 41, 300, 100_000] {
                        let format = grid.allocate(estimate, bytes, left).expect("a format");
                        let coded = format.blocks * grid.symbols * format.modulation.bits();
                        let rate = f64::from(format.bits + CRC) / f64::from(coded);
                        assert!(rate <= HIGHEST_CODE_RATE && format.blocks <= left, "{format:?}: {rate}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_given_block_error_rate_is_that_of_first_transmissions_and_falls_with_retransmissions() {
        let plan = plan("");
        let format = plan.down.allocate(Estimate { efficiency: 2.0, layers: 1 }, 500, 50).expect("a format");
        let bler = Probability::new(0.3).expect("within range");
        let mut sent = Sent::new(Default::default(), format, plan.down.soft_buffer(&format, &plan));
        let mut errors = || plan.down.block_errors(&mut sent, 0.0, Some(bler), &plan).get();
        let (first, second, third) = (errors(), errors(), errors());
        assert_eq!(first, 0.3);
        assert!(second < 0.01 && third <= second, "{second} {third}");
    }

    #[test]
    fn resource_blocks_of_the_uplink_are_reserved_by_subframe() {
        let mut plan = plan("");
        let at = Instant::ZERO + Span::from_millis(1008);
        plan.reserve_up(at, 40);
        assert_eq!((plan.left_up(at), plan.left_up(at + TTI)), (plan.up.total - 40, plan.up.total));
        assert_eq!(plan.left_up(at + TTI.saturating_mul(PROMISED as u64)), plan.up.total);
    }
}
