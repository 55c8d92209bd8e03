//! The uplink of a mobile at its highest power: where the SINR in a tenth of the band is too low
//! even for repeated blocks of the lowest scheme, the base station gives it fewer resource blocks,
//! in which the same power has a higher SINR (TS 36.213 §5.1.1.1, TS 38.213 §7.1.1). Mobiles report
//! their power headroom (TS 36.321 §5.4.6, TS 38.321 §5.4.6).

use super::grid::Grid;
use crate::common::link_adaptation::Decoder;

/// `below_downlink` is the SINR in this share of the band.
const SHARE: f64 = 0.1;

/// Bytes that a block of the lowest scheme has at least: a segment of the RLC has 7 bytes of
/// headers (TS 36.322 §6.2.1, TS 36.321 §6.2.1), and a buffer status report 2. A choice.
const LEAST_BYTES: u32 = 16;

/// The largest shortage that a report can have.
const MOST_REPORTED: u8 = 15;

/// The power of a mobile in the resource blocks of the uplink.
#[derive(Clone, Copy, Debug)]
pub struct PowerLimit {
    /// Resource blocks in the share of `below_downlink`.
    share: f64,
    /// The lowest SINR in decibels at which blocks get through: that of the lowest scheme, less
    /// what hybrid ARQ adds with all transmissions but one.
    lowest: f64,
    /// Resource blocks that a mobile gets at least.
    least: u32,
    /// What these add to the SINR, in decibels.
    most: f64,
}

impl PowerLimit {
    /// That in a band, with blocks that are sent up to `transmissions` times.
    pub fn new(up: &Grid, decoder: &Decoder, transmissions: u8) -> Self {
        let share = f64::from(up.total) * SHARE;
        let (least, required) = up.least_allocation(LEAST_BYTES, decoder);
        let lowest = required - decibels(f64::from(transmissions.saturating_sub(1).max(1)));
        Self { share, lowest, least, most: decibels(share / f64::from(least)).max(0.0) }
    }

    /// Decibels that a SINR is short of what gets blocks through, at most those that fewer resource
    /// blocks can add.
    pub fn shortage(&self, sinr: f64) -> u8 {
        (self.lowest - sinr).clamp(0.0, self.most).ceil().min(f64::from(MOST_REPORTED)) as u8
    }

    /// Resource blocks that a mobile with this shortage gets at most.
    pub fn blocks(&self, shortage: u8) -> u32 {
        match shortage {
            0 => u32::MAX,
            shortage => ((self.share * libm::exp10(-f64::from(shortage) / 10.0)) as u32).max(self.least),
        }
    }

    /// What this number of resource blocks adds to a SINR that is too low, in decibels.
    #[inline]
    pub fn gain(&self, sinr: f64, blocks: u32) -> f64 {
        if sinr >= self.lowest {
            return 0.0;
        }
        decibels(self.share / f64::from(blocks)).clamp(0.0, self.lowest - sinr)
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
        let share = limit.share;
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
        let total = nr.up.total;
        assert_eq!(limit.gain(limit.lowest, 3), 0.0);
        assert_eq!(limit.gain(limit.lowest - 5.0, total), 0.0);
        assert!((limit.gain(limit.lowest - 5.0, (limit.share / 2.0) as u32) - 3.0).abs() < 0.4);
        assert!((limit.gain(limit.lowest - 5.0, limit.least) - 5.0).abs() < 1e-9);
        // A report of a shortage brings blocks that make up for it.
        for short in [0.3, 1.0, 4.2, 7.9] {
            let sinr = limit.lowest - short;
            let gain = limit.gain(sinr, limit.blocks(limit.shortage(sinr)));
            assert!(gain > short - 0.01, "{short}: {gain}");
        }
    }

    #[test]
    fn a_narrow_band_has_no_fewer_blocks() {
        let bandwidth = "bandwidth = \"1.4 MHz\"\npucch_blocks = 1\ncontrol_symbols = 2";
        let lte = parameters::<lte::Config>(include_str!("../../../../presets/lte-10mhz.toml"), bandwidth);
        let limit = PowerLimit::new(&lte.up, &lte.decoder, 4);
        assert_eq!((limit.shortage(-60.0), limit.gain(-60.0, 3)), (0, 0.0));
    }
}
