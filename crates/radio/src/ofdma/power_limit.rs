//! The power of a mobile in the uplink. Up to a tenth of the band, power control keeps the SINR in
//! each resource block (TS 36.213 §5.1.1.1, TS 38.213 §7.1.1); in more, the mobile sends at its
//! highest power, and each block has less. Where the SINR in a tenth is too low even for repeated
//! blocks of the lowest scheme, the base station gives the mobile fewer blocks, in which the same
//! power has a higher one. Mobiles report their power headroom (TS 36.321 §5.4.6, TS 38.321
//! §5.4.6).

use super::grid::Grid;
use super::transport_format::{Estimate, TransportFormat};
use crate::common::link_adaptation::Decoder;

/// `below_downlink` is the SINR in this share of the band, at least in one resource block.
const SHARE: f64 = 0.1;

/// Bytes that a block of the lowest scheme has at least: a segment of the RLC has 7 bytes of
/// headers (TS 36.322 §6.2.1, TS 36.321 §6.2.1), and a buffer status report 2. A choice.
const LEAST_BYTES: u32 = 16;

/// The largest shortage that a report can have.
const MOST_REPORTED: u8 = 15;

/// The power of a mobile in the resource blocks of the uplink.
#[derive(Clone, Debug)]
pub struct PowerLimit {
    /// The share of `below_downlink` in resource blocks, rounded downwards.
    share: u32,
    /// What each number of resource blocks adds to the SINR in the share if the power stays the
    /// same, in decibels, from one block on: it falls.
    spread: Box<[f64]>,
    /// The SINR in decibels that the lowest scheme needs without a repetition.
    required: f64,
    /// The lowest SINR in decibels at which blocks get through: the same, less what hybrid ARQ adds
    /// with all transmissions but one.
    lowest: f64,
    /// Resource blocks that a mobile gets at least.
    least: u32,
}

impl PowerLimit {
    /// That in a band, with blocks that are sent up to `transmissions` times.
    pub fn new(up: &Grid, decoder: &Decoder, transmissions: u8) -> Self {
        let share = (f64::from(up.total) * SHARE).max(1.0);
        let (least, required) = up.least_allocation(LEAST_BYTES, decoder);
        Self {
            share: share as u32,
            spread: (1..=up.total).map(|blocks| decibels(share / f64::from(blocks))).collect(),
            required,
            lowest: required - decibels(f64::from(transmissions.saturating_sub(1).max(1))),
            least,
        }
    }

    /// Decibels that a SINR is short of what gets blocks through, at most those that fewer resource
    /// blocks can add.
    pub fn shortage(&self, sinr: f64) -> u8 {
        let most = self.spread(self.least).max(0.0);
        (self.lowest - sinr).clamp(0.0, most).ceil().min(f64::from(MOST_REPORTED)) as u8
    }

    /// Resource blocks that a mobile with this shortage gets at most.
    pub fn blocks(&self, shortage: u8) -> u32 {
        match shortage {
            0 => u32::MAX,
            shortage => self.widest(-f64::from(shortage), 0.0).max(self.least),
        }
    }

    /// What this number of resource blocks adds to the SINR in the share, in decibels.
    #[inline]
    pub fn gain(&self, sinr: f64, blocks: u32) -> f64 {
        self.spread(blocks).min((self.lowest - sinr).max(0.0))
    }

    /// The transport format for at least `bytes`, or for as many as fit into `left` resource
    /// blocks, in a slot with this number of symbols for the uplink. More blocks than the share
    /// have a lower scheme, but carry more together.
    #[inline]
    pub fn allocate(
        &self,
        up: &Grid,
        estimate: Estimate,
        bytes: u64,
        left: u32,
        symbols: u8,
    ) -> Option<TransportFormat> {
        let (left, wanted) = (left.min(estimate.blocks), bytes.saturating_mul(8));
        let in_all = |format: &TransportFormat| u64::from(format.bits) >= wanted;
        let in_blocks = |blocks: u32| {
            let efficiency = match self.spread(blocks) {
                spread if spread < 0.0 => up.efficiency_at(estimate.sinr + spread),
                _ => estimate.efficiency,
            };
            up.allocate(Estimate { efficiency, ..estimate }, bytes, blocks, symbols)
        };
        // A tenth of a narrow band is too little for a block of the lowest scheme.
        let narrow = in_blocks(left.min(self.share.max(self.least)))?;
        if in_all(&narrow) {
            return Some(narrow);
        }
        let widest = left.min(self.widest(estimate.sinr, self.required));
        if widest <= narrow.blocks {
            return Some(narrow);
        }
        let mut best = in_blocks(widest).filter(|format| format.bits > narrow.bits).unwrap_or(narrow);
        // As few blocks as carry the same, in steps of a half.
        let mut blocks = widest / 2;
        while in_all(&best) && blocks > self.share {
            let Some(format) = in_blocks(blocks).filter(in_all) else { break };
            best = format;
            blocks /= 2;
        }
        Some(best)
    }

    /// Of `left` resource blocks, those for a mobile with which others share the slot, each with
    /// the blocks that it `wants`: their power is better used in their part of the band than that
    /// of one mobile in all of it.
    #[inline]
    pub fn part(&self, left: u32, own: u32, others: impl Iterator<Item = u32>) -> u32 {
        if own <= self.share {
            return left;
        }
        let others: u32 = others.map(|blocks| blocks.min(self.share)).sum();
        left.saturating_sub(others).max(left.min(self.share))
    }

    /// The largest number of resource blocks in which a SINR in the share is not below another one.
    fn widest(&self, sinr: f64, other: f64) -> u32 {
        self.spread.partition_point(|spread| sinr + spread >= other) as u32
    }

    /// What a number of resource blocks adds to the SINR in the share at the highest power.
    #[inline]
    fn spread(&self, blocks: u32) -> f64 {
        self.spread[(blocks as usize).clamp(1, self.spread.len()) - 1]
    }
}

fn decibels(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ofdma::grid::tests::parameters;
    use crate::{lte, nr};

    #[test]
    fn a_mobile_gets_as_few_blocks_as_its_power_demands() {
        let nr = parameters::<nr::Config>(include_str!("../../../../presets/nr-n78-100mhz-sa.toml"), "");
        let limit = PowerLimit::new(&nr.up, &nr.decoder, 4);
        // A third of the power of a block that is sent once.
        let once = PowerLimit::new(&nr.up, &nr.decoder, 1);
        assert!((once.lowest - limit.lowest - 4.77).abs() < 0.01);
        assert_eq!((limit.shortage(limit.lowest), limit.blocks(0)), (0, u32::MAX));
        let share = f64::from(limit.share);
        for (short, blocks) in [(1, share / 1.26), (3, share / 2.0), (6, share / 4.0)] {
            assert_eq!(limit.shortage(limit.lowest - f64::from(short) + 0.1), short);
            assert!((f64::from(limit.blocks(short)) - blocks).abs() <= 1.0, "{short}");
        }
        assert_eq!((limit.blocks(limit.shortage(-60.0)), limit.least), (4, 4));
    }

    #[test]
    fn fewer_blocks_raise_a_sinr_up_to_the_lowest_that_carries_data() {
        let nr = parameters::<nr::Config>(include_str!("../../../../presets/nr-n78-100mhz-sa.toml"), "");
        let limit = PowerLimit::new(&nr.up, &nr.decoder, 4);
        assert_eq!(limit.gain(limit.lowest, 3), 0.0);
        assert!((limit.gain(limit.lowest - 5.0, limit.share / 2) - 3.0).abs() < 0.4);
        assert!((limit.gain(limit.lowest - 5.0, limit.least) - 5.0).abs() < 1e-9);
        // A report of a shortage brings blocks that make up for it.
        for short in [0.3, 1.0, 4.2, 7.9] {
            let sinr = limit.lowest - short;
            let gain = limit.gain(sinr, limit.blocks(limit.shortage(sinr)));
            assert!(gain > short - 0.01, "{short}: {gain}");
        }
    }

    #[test]
    fn more_blocks_share_the_same_power() {
        let lte = parameters::<lte::Config>(include_str!("../../../../presets/lte-20mhz.toml"), "");
        let limit = PowerLimit::new(&lte.up, &lte.decoder, 4);
        let share = f64::from(lte.up.total) * SHARE;
        for blocks in [20, 50, lte.up.total] {
            let expected = decibels(share / f64::from(blocks));
            for sinr in [limit.lowest, 10.0, 30.0] {
                assert!((limit.gain(sinr, blocks) - expected).abs() < 1e-9, "{blocks}");
            }
        }
        let bits = |sinr: f64, bytes, left| {
            let estimate = lte.up.estimate(sinr);
            let format = limit.allocate(&lte.up, estimate, bytes, left, 14).expect("a format");
            (format.blocks, format.bits)
        };
        let total = lte.up.total;
        // A full buffer: all blocks if their schemes are above the lowest, and then more bits than
        // in a tenth of them, but less than ten times as many.
        for sinr in [8.0, 11.0, 14.0] {
            let ((narrow, few), (wide, many)) = (bits(sinr, 1 << 20, limit.share), bits(sinr, 1 << 20, total));
            assert!(wide > 9 * narrow && few < many && many < 8 * few, "{sinr}: {few} {many}");
        }
        // Near the lowest scheme more blocks carry nothing more.
        assert_eq!(bits(limit.required, 1 << 20, total), bits(limit.required, 1 << 20, limit.share));
        // A SINR so high that the scheme is the highest in all blocks.
        let highest = lte.up.allocate(lte.up.estimate(99.0), 1 << 20, total, 14).expect("a format");
        assert_eq!(bits(60.0, 1 << 20, total), (highest.blocks, highest.bits));
        // Few bytes take few blocks.
        for bytes in [10, 100, 500, 1000] {
            let (blocks, carried) = bits(20.0, bytes, total);
            assert!(u64::from(carried) >= bytes * 8 && blocks < total / 2, "{bytes}: {blocks} {carried}");
        }
    }

    #[test]
    fn mobiles_with_much_to_send_share_a_slot() {
        let lte = parameters::<lte::Config>(include_str!("../../../../presets/lte-20mhz.toml"), "");
        let limit = PowerLimit::new(&lte.up, &lte.decoder, 4);
        let part = |left, own, others: &[u32]| limit.part(left, own, others.iter().copied());
        let share = limit.share;
        assert_eq!(part(90, share, &[90, 90]), 90, "it wants no more");
        assert_eq!(part(90, 90, &[]), 90);
        assert_eq!(part(90, 90, &[2, 90]), 90 - 2 - share);
        assert_eq!(part(30, 90, &[90; 7]), share);
        assert_eq!(part(5, 90, &[90; 7]), 5);
    }

    #[test]
    fn a_narrow_band_has_no_fewer_blocks() {
        let bandwidth = "bandwidth = \"1.4 MHz\"\npucch_blocks = 1\ncontrol_symbols = 2";
        let lte = parameters::<lte::Config>(include_str!("../../../../presets/lte-10mhz.toml"), bandwidth);
        let limit = PowerLimit::new(&lte.up, &lte.decoder, 4);
        assert_eq!((limit.shortage(-60.0), limit.gain(-60.0, 1)), (0, 0.0));
    }
}
