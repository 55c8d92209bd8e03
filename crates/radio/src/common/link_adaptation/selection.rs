//! The choice of a format by signal-to-noise ratio: the CQI that a mobile reports, and the
//! modulation and coding scheme that a base station selects.

use airpath_core::{Decibel, Probability};

use super::{Block, Decoder, Format};

/// The signal-to-noise ratios above which the formats of a table have few enough errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// The ratio that each format needs, in dB.
    required: Vec<f64>,
    /// The least that this or a later format needs.
    least_from: Vec<f64>,
}

impl Thresholds {
    /// The thresholds of blocks of rising size, each in error with at most the probability
    /// `errors`.
    pub fn of_blocks(decoder: &Decoder, blocks: impl IntoIterator<Item = Block>, errors: Probability) -> Self {
        let required: Vec<f64> = blocks.into_iter().map(|block| decoder.required(&block, errors).get()).collect();
        let mut least_from = required.clone();
        for index in (1..least_from.len()).rev() {
            least_from[index - 1] = least_from[index - 1].min(least_from[index]);
        }
        Self { required, least_from }
    }

    /// The thresholds of formats in blocks of `symbols` symbols.
    ///
    /// For CQI: with at most 10 % errors, in the symbols of the resource blocks that the report is
    /// about (TS 36.213 §7.2.3, TS 38.214 §5.2.2.1).
    pub fn of_formats(decoder: &Decoder, formats: &[Format], symbols: u32, errors: Probability) -> Self {
        Self::of_blocks(decoder, formats.iter().map(|format| Block::of(format, symbols)), errors)
    }

    /// The number of formats.
    pub fn count(&self) -> usize {
        self.required.len()
    }

    /// The last format that has few enough errors at `snr`, from zero; `None` if none has. A search
    /// over a few numbers.
    #[inline]
    pub fn select(&self, snr: Decibel) -> Option<usize> {
        self.least_from.partition_point(|least| *least <= snr.get()).checked_sub(1)
    }

    /// The CQI at `snr`, if the formats are those of CQI 1, 2, …; 0 is out of range.
    #[inline]
    pub fn cqi(&self, snr: Decibel) -> u8 {
        self.select(snr).map_or(0, |index| index as u8 + 1)
    }

    /// The signal-to-noise ratio that format `index` needs: what a report of its CQI stands for.
    ///
    /// # Panics
    /// If there is no such format.
    pub fn required(&self, index: usize) -> Decibel {
        Decibel::new(self.required[index]).expect("found between finite ends")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::link_adaptation::Coding;
    use crate::lte::tables as lte;
    use crate::nr::tables as nr;

    fn db(db: f64) -> Decibel {
        Decibel::new(db).expect("finite")
    }

    const TEN_PERCENT: &str = "10 %";

    #[test]
    fn the_cqi_is_the_largest_with_at_most_a_tenth_of_errors() {
        let target: Probability = TEN_PERCENT.parse().expect("a probability");
        for (decoder, formats) in [
            (Decoder::new(Coding::Turbo), lte::cqis(lte::CqiTable::Qam64)),
            (Decoder::new(Coding::Turbo), lte::cqis(lte::CqiTable::Qam256)),
            (Decoder::new(Coding::Ldpc), nr::cqis(nr::FormatTable::LowEfficiency)),
        ] {
            let thresholds = Thresholds::of_formats(&decoder, formats, 6000, target);
            assert_eq!(thresholds.count(), 15);
            for tenth in -200..350 {
                let snr = db(f64::from(tenth) / 10.0);
                let few = |format: &Format| decoder.errors(&Block::of(format, 6000), snr) <= target;
                let expected = formats.iter().rposition(few).map_or(0, |index| index as u8 + 1);
                assert_eq!(thresholds.cqi(snr), expected, "{snr}");
            }
        }
    }

    /// Where a modulation begins with a lower rate than the one below it ends, the later format is
    /// selected as soon as it can be.
    #[test]
    fn thresholds_that_fall_do_not_hide_later_formats() {
        let target: Probability = TEN_PERCENT.parse().expect("a probability");
        let formats = nr::schemes(nr::FormatTable::Qam64);
        let decoder = Decoder::new(Coding::Ldpc);
        let thresholds = Thresholds::of_formats(&decoder, formats, 20_000, target);
        for index in 0..thresholds.count() {
            let selected = thresholds.select(thresholds.required(index)).expect("a format");
            assert!(selected >= index);
        }
        assert_eq!(thresholds.select(db(-30.0)), None);
        assert_eq!(thresholds.select(db(60.0)), Some(28));
    }
}
