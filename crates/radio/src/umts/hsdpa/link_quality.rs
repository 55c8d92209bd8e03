//! From signal-to-noise ratio to CQI and to block errors, and what combining adds.

use std::sync::OnceLock;

use airpath_core::{Decibel, Probability};

use super::transport_block::{CqiTable, LAST_16QAM, TransportBlock};
use crate::common::link_adaptation::{Block, Coding, Combining, Decoder, Modulation};
use crate::common::shared_channel::harq::{MAX_CQI, block_error_rate, ratio_of_block_error_rate};

/// The spreading factor of 16 in decibels: C/I is measured before despreading, the curves are over
/// what is after it.
const SPREADING_GAIN: f64 = 12.041_199_826_559_248;

/// The code rate of the turbo code (TS 25.212 §4.2.3.2).
const MOTHER_CODE_RATE: f64 = 1.0 / 3.0;

/// Decibels of a CQI step.
const DECIBELS_PER_CQI: f64 = 1.02;

/// The CQI of a C/I of 0 dB, before it is rounded down.
const CQI_AT_ZERO: f64 = 16.62;

/// The C/I in decibels from which on a CQI of Table 7D is reported.
fn line(cqi: u8) -> f64 {
    DECIBELS_PER_CQI * (f64::from(cqi) - CQI_AT_ZERO)
}

/// By how many decibels each CQI with 64QAM needs more than the line of the CQIs below: to where
/// the normal approximation with the gap of a turbo decoder has 10 % of errors, for the symbols of
/// its codes, which share the power.
fn more_for_64qam() -> &'static [f64; (MAX_CQI - LAST_16QAM) as usize] {
    static MORE: OnceLock<[f64; (MAX_CQI - LAST_16QAM) as usize]> = OnceLock::new();
    MORE.get_or_init(|| {
        let decoder = Decoder::new(Coding::Turbo);
        let target = Probability::new(TARGET).expect("a share");
        std::array::from_fn(|place| {
            let cqi = LAST_16QAM + 1 + place as u8;
            let block = CqiTable::G.block(cqi);
            let air = Block { modulation: Modulation::Qam64, bits: block.bits, symbols: block.symbols() };
            let each_code = decoder.required(&air, target).get();
            each_code + 10.0 * libm::log10(f64::from(block.codes)) - SPREADING_GAIN - line(cqi)
        })
    })
}

/// The block in this number of codes for a report of a CQI of Table 7G, if it is larger than that
/// of the table: the same power in more codes carries more. The base station selects codes,
/// modulation and size of a block (HS-SCCH, TS 25.212 §4.6); the CQI is a recommendation (TS 25.214
/// §6A.2).
pub fn block_of_codes(cqi: u8, codes: u8) -> Option<TransportBlock> {
    let row = CqiTable::G.block(cqi);
    if cqi <= LAST_16QAM || codes <= row.codes {
        return None;
    }
    let decoder = Decoder::new(Coding::Turbo);
    let needs = line(cqi) + more_for_64qam()[usize::from(cqi - LAST_16QAM - 1)];
    let each_code = Decibel::new(needs + SPREADING_GAIN - 10.0 * libm::log10(f64::from(codes))).expect("finite");
    let largest = |modulation: Modulation| {
        let block = |octets: u32| TransportBlock { bits: 8 * octets, codes, bits_per_symbol: modulation.bits() as u8 };
        let fits = |octets: u32| {
            let air = Block { modulation, bits: 8 * octets, symbols: block(octets).symbols() };
            decoder.errors(&air, each_code).get() <= TARGET
        };
        let (mut low, mut high) = (row.octets(), block(0).symbols() * modulation.bits() / 8);
        while low + 1 < high {
            let middle = u32::midpoint(low, high);
            *(if fits(middle) { &mut low } else { &mut high }) = middle;
        }
        block(low)
    };
    let best = [Modulation::Qam16, Modulation::Qam64].map(largest).into_iter().max_by_key(|block| block.bits);
    best.filter(|block| block.bits > row.bits)
}

/// The share of blocks in error at which a CQI is reported (TS 25.214 §6A.2.1).
const TARGET: f64 = 0.1;

/// A C/I in decibels as a ratio.
pub fn ratio(ci: f64) -> f64 {
    libm::exp10(ci / 10.0)
}

/// What follows from C/I for mobiles with a CQI table.
#[derive(Clone, Copy, Debug)]
pub struct LinkQuality {
    table: CqiTable,
}

impl LinkQuality {
    /// That of a table.
    pub const fn new(table: CqiTable) -> Self {
        Self { table }
    }

    /// What a CQI needs above the line of Table 7D, in decibels.
    fn more(self, cqi: u8) -> f64 {
        match self.table {
            CqiTable::G if cqi > LAST_16QAM => more_for_64qam()[usize::from(cqi - LAST_16QAM - 1)],
            CqiTable::D | CqiTable::G => 0.0,
        }
    }

    /// The CQI that a mobile reports at a C/I in decibels: the highest with which at most about 10
    /// % of blocks fail (TS 25.214 §6A.2.1); 0 if there is none. From F. Brouwer et al., "Usage of
    /// link-level performance indicators for HSDPA network-level simulations in E-UMTS", IEEE
    /// ISSSTA 2004, as in the user guide of EURANE (recalled, not verified); with 64QAM by the
    /// normal approximation.
    pub fn reported(self, ci: f64) -> u8 {
        let cqi = libm::floor(ci / DECIBELS_PER_CQI + CQI_AT_ZERO);
        let mut cqi = if cqi.is_nan() { 0 } else { cqi.clamp(0.0, f64::from(MAX_CQI)) as u8 };
        while self.more(cqi) > 0.0 && ci < line(cqi) + self.more(cqi) {
            cqi -= 1;
        }
        cqi
    }

    /// The share of the power that a block of `cqi` needs of what the mobile assumed when it
    /// reported `reported`.
    pub fn share(self, reported: u8, cqi: u8) -> f64 {
        let more = if reported > cqi { self.more(reported) - self.more(cqi) } else { 0.0 };
        libm::exp10(-(DECIBELS_PER_CQI * f64::from(reported.saturating_sub(cqi)) + more) / 10.0)
    }

    /// The C/I, as a ratio, at which a block of `cqi` fails with `bler` when it is sent once.
    pub fn ratio_of(self, bler: Probability, cqi: u8) -> f64 {
        if bler == Probability::NEVER {
            f64::INFINITY
        } else if bler == Probability::ALWAYS {
            0.0
        } else {
            ratio(ratio_of_block_error_rate(bler.get(), cqi) - SPREADING_GAIN + self.more(cqi))
        }
    }

    /// The probability that a block for a CQI fails which was received with these ratios, in
    /// `attempts` of it.
    pub fn bler(self, cqi: u8, air: &TransportBlock, combining: Combining, attempts: u32, last: f64, sum: f64) -> f64 {
        let ratio = match combining {
            Combining::None => last,
            Combining::Chase => sum,
            Combining::IncrementalRedundancy => sum * redundancy_gain(air, attempts) / f64::from(attempts),
        };
        if ratio <= 0.0 {
            return 1.0;
        }
        block_error_rate(10.0 * libm::log10(ratio) + SPREADING_GAIN - self.more(cqi), cqi)
    }
}

/// SNR gain per attempt of incremental redundancy after k attempts. Each attempt brings new bits as
/// long as the code has any.
///
/// By Shannon, a symbol carries e bits where the ratio is at least 2^e − 1. After k attempts the
/// code rate is R/k, but not below 1/3, and so a symbol carries as much less; what goes beyond the
/// bits of the code repeats them.
fn redundancy_gain(block: &TransportBlock, attempts: u32) -> f64 {
    let attempts = f64::from(attempts);
    let efficiency = block.efficiency();
    let rate = efficiency / f64::from(block.bits_per_symbol);
    let dilution = (rate / MOTHER_CODE_RATE).clamp(1.0, attempts);
    let needs = |efficiency: f64| libm::exp2(efficiency) - 1.0;
    needs(efficiency) / needs(efficiency / dilution) * (attempts / dilution)
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: LinkQuality = LinkQuality::new(CqiTable::D);
    const G: LinkQuality = LinkQuality::new(CqiTable::G);

    #[test]
    fn the_reported_cqi_keeps_errors_near_a_tenth() {
        for quality in [D, G] {
            for cqi in 1..=30 {
                let ci = line(cqi) + quality.more(cqi) + 1e-9;
                assert_eq!(quality.reported(ci), cqi);
                let bler = quality.bler(cqi, &quality.table.block(cqi), Combining::None, 1, ratio(ci), ratio(ci));
                // The fits of CQI and of errors agree best in the middle of the scale, and are
                // 0.35 dB apart at its ends.
                assert!((0.03..0.18).contains(&bler), "{quality:?} {cqi}: {bler}");
            }
            assert_eq!((quality.reported(-40.0), quality.reported(60.0)), (0, 30));
        }
    }

    #[test]
    fn each_cqi_with_64qam_needs_about_two_decibels_more_than_the_one_before() {
        let needs: Vec<f64> = (LAST_16QAM..=MAX_CQI).map(|cqi| line(cqi) + G.more(cqi)).collect();
        for pair in needs.windows(2) {
            assert!((1.5..3.0).contains(&(pair[1] - pair[0])), "{needs:?}");
        }
        // No code can have 5.36 bits a symbol below the limit of Shannon: 2^5.36 - 1 = 16.0 dB for
        // each code, with 12.0 dB of spreading and 11.8 dB for the share of each of 15 codes.
        let shannon = 10.0 * libm::log10(libm::exp2(CqiTable::G.block(30).efficiency()) - 1.0);
        assert!(needs[5] > shannon - SPREADING_GAIN + 10.0 * libm::log10(15.0), "{needs:?}");
        // A block of CQI 25 in place of one of 30 needs as much less power.
        let step = -10.0 * libm::log10(G.share(30, 25));
        assert!((step - (needs[5] - needs[0])).abs() < 1e-9, "{step}");
        assert_eq!(G.share(20, 15), D.share(20, 15));
    }

    #[test]
    fn all_codes_carry_more_than_those_of_the_table() {
        let mut before = 0;
        for cqi in LAST_16QAM + 1..MAX_CQI {
            let (row, all) = (CqiTable::G.block(cqi), block_of_codes(cqi, 15).expect("it has fewer codes"));
            assert!(all.bits > row.bits && all.bits > before && all.codes == 15, "{cqi}: {all:?}");
            before = all.bits;
            // Below the limit of Shannon for the symbols of its codes.
            let each_code = ratio(line(cqi) + G.more(cqi) + SPREADING_GAIN) / 15.0;
            assert!(all.efficiency() < libm::log2(1.0 + each_code), "{cqi}: {all:?}");
        }
        assert_eq!((block_of_codes(30, 15), block_of_codes(26, 10), block_of_codes(25, 15)), (None, None, None));
    }

    #[test]
    fn chase_gains_three_decibels_and_redundancy_more_the_higher_the_rate() {
        let needed = |cqi, combining, attempts: u32| {
            // By bisection, the ratio of each attempt at which half of the blocks fail.
            let (mut low, mut high) = (-40.0, 40.0);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                let sum = f64::from(attempts) * ratio(middle);
                *(if D.bler(cqi, &CqiTable::D.block(cqi), combining, attempts, ratio(middle), sum) > 0.5 {
                    &mut low
                } else {
                    &mut high
                }) = middle;
            }
            low
        };
        for cqi in 1..=30 {
            let gain = |combining, attempts| needed(cqi, combining, 1) - needed(cqi, combining, attempts);
            assert!(gain(Combining::None, 2).abs() < 1e-6);
            assert!((gain(Combining::Chase, 2) - 3.0103).abs() < 1e-4);
            assert!((gain(Combining::Chase, 4) - 6.0206).abs() < 1e-4);
            assert!(gain(Combining::IncrementalRedundancy, 2) > 3.0102);
        }
        let redundancy =
            |cqi| needed(cqi, Combining::IncrementalRedundancy, 1) - needed(cqi, Combining::IncrementalRedundancy, 2);
        // CQI 22: 7168 bits over 2400 symbols are 2.987 a symbol; (2^2.987 − 1) / (2^1.493 − 1) =
        // 3.82, 5.82 dB.
        assert!((redundancy(22) - 5.82).abs() < 0.02, "{}", redundancy(22));
        // CQI 1: below a rate of 1/3 there are no new bits.
        assert!((redundancy(1) - 3.0103).abs() < 1e-4);
    }

    #[test]
    fn a_given_error_rate_is_that_of_the_first_attempt() {
        for cqi in [1, 15, 30] {
            for p in [0.01, 0.1, 0.9] {
                let ratio = G.ratio_of(Probability::new(p).expect("a share"), cqi);
                assert!((G.bler(cqi, &CqiTable::G.block(cqi), Combining::Chase, 1, ratio, ratio) - p).abs() < 1e-9);
            }
            let (never, always) = (G.ratio_of(Probability::NEVER, cqi), G.ratio_of(Probability::ALWAYS, cqi));
            assert_eq!(G.bler(cqi, &CqiTable::G.block(cqi), Combining::Chase, 1, never, never), 0.0);
            assert_eq!(G.bler(cqi, &CqiTable::G.block(cqi), Combining::Chase, 1, always, always), 1.0);
        }
    }
}
